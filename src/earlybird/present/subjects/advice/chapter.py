"""The chapter on what to do: advice by predicted speed-up, with the command or setting to use."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data import labels
from earlybird.data.advice import Advice, Alternative, SizeRange
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present import commands
from earlybird.present.core.parts import Answer, Chapter, Columns, Table, table_of
from earlybird.present.core.text import NOTHING, ratio, spread, value_and_spread
from earlybird.present.material import Material
from earlybird.present.subjects.advice import view as advice_text
from earlybird.present.subjects.advice.figures import strip_figure
from earlybird.present.subjects.advice.view import AGGREGATE, LAYOUT, OF_EXCHANGES, PARTITION

ID = "advice"
PROGRAM = "program"
QUESTION = "What should I do?"
MEANS = (
    "Where a point was measured, its time and speed-up are the measured ones, with the interval over "
    "launches. Elsewhere a model predicts them, corrected by the measured points around it; its 95 % "
    "interval covers the error at points left out. The first alternative is advised: of those that are "
    "clearly faster than the reference, the fastest or one that is easier to use and takes at most 5 % more "
    "time; if none is, the reference. Alternatives outside the measured range follow last."
)
# Of a recorded program.
PROGRAM_MEANS = (
    "Times are of the whole run with one change. What the models predict as saved is subtracted from the "
    "recorded time; the 95 % interval contains the uncertainty of the profile and the error of such models, "
    "but not the assumptions. The first alternative is advised: of those that are clearly faster, the one "
    "that is least work within 5 % of the fastest; if none is, as recorded. Never add gains, and run the "
    "program with the change to check it."
)
LAYOUT_MEANS = (
    "Times are those of the slowest rank of the exchange, by the model alone: the 95 % interval contains the "
    "uncertainty of the profile, not the error of the model. Replay the advised exchange to check it."
)
OWN_MEANS = " Earlybird's algorithms are for comparison: the MPI cannot select them."
NOT_SELECTABLE = "for comparison; the MPI cannot select it"
_VARIABLES = re.compile(r"[A-Z]\w*=[\w./:,@+-]+( \w+=[\w./:,@+-]+)*", re.A)  # settings without a command
# Column titles that differ from the keys in the file.
_KEYS = {"message_bytes": "message size"}
# Part of the display name of the method, or not useful to the reader.
_SHOWN_ELSEWHERE = ("vcis", "algorithm", "segment_bytes", "form", "source")
_NOUNS = {
    "pipeline": "method", PROGRAM: "change", LAYOUT: "layout", PARTITION: "partition",
    AGGREGATE: "number of leaders",
}  # fmt: skip
_BRIEF = 4  # alternatives in the terminal
# What is not measured, advice on programs and layouts, does not have.
_NOT_MEASURED = ("measured speed-up", "speed-up by the model alone")
_COLUMNS: Columns = {
    "time (95 %)": advice_text.takes_in_table,
    "speed-up (95 %)": advice_text.speed_up_in_table,
    "measured speed-up": lambda one: value_and_spread(one.measured_speed_up, ratio),
    "speed-up by the model alone": lambda one: value_and_spread(one.predicted_speed_up, ratio),
    "basis": lambda one: one.basis,
}


def advice_chapter(material: Material) -> Chapter:
    """All pieces of advice, the largest speed-up first."""
    pieces = sorted(_distinct(material), key=advice_text.gain, reverse=True)
    if not pieces:
        return Chapter(
            ID,
            QUESTION,
            "",
            absent=_absent(material),
        )
    strips = [strip_figure(piece, f"advice-{k}") for k, piece in enumerate(pieces)]
    return Chapter(
        ID,
        QUESTION,
        _sentence(pieces[0]),
        _means(pieces),
        answers=[_answer(piece) for piece in pieces],
        warnings=_notes(pieces),
        figures=[figure for figure in strips if figure is not None],
        tables=[_crossovers(piece) for piece in pieces if piece.size_ranges],
        shown=[_alternatives(piece) for piece in pieces],
        brief=[_brief(piece) for piece in pieces],
        listings=_listings(pieces),
    )


def _absent(material: Material) -> list[tuple[str, str]]:
    """The advice on a program first, if there is a recording of one."""
    of_program = ("To rank what would make the program faster, run", commands.advise_program(material))
    of_buffer = "To get advice on a buffer that threads fill, run this with your values:"
    of_operation = "To get advice on a collective operation, run"
    return [
        *([of_program] if material.recordings else []),
        (of_buffer, commands.advise_buffer(material)),
        (of_operation, commands.advise_operation(material)),
    ]


def _means(pieces: Sequence[Advice]) -> list[str]:
    """What the values of the pieces mean, and what projections of programs assume."""
    programs = [piece for piece in pieces if piece.operation == PROGRAM]
    layouts = [piece for piece in pieces if piece.operation in OF_EXCHANGES]
    lines = [LAYOUT_MEANS] if layouts else []
    if len(programs) + len(layouts) < len(pieces):
        has_own = any(advice_text.is_own(one.method) for piece in pieces for one in piece.ranked)
        lines.append(MEANS + OWN_MEANS * has_own)
    if programs:
        assumed = [text for piece in programs for text in piece.extra.get("assumptions", [])]
        lines += [PROGRAM_MEANS, *(f"Assumed, {text}." for text in dict.fromkeys(map(str, assumed)))]
    return lines


def _distinct(material: Material) -> list[Advice]:
    """The pieces of advice; those with the same title get the names of their files."""
    titles = [advice_text.title(piece) for piece in material.advice]
    return [
        piece
        if titles.count(title) == 1
        else replace(piece, asked={**piece.asked, "file": material.name_of("advice", k) or k + 1})
        for k, (piece, title) in enumerate(zip(material.advice, titles, strict=True))
    ]


def _sentence(advice: Advice) -> str:
    what = labels.capital(advice_text.title(advice))
    best = advice_text.best(advice)
    if best.method == advice.baseline:
        return f"{what}: {_no_better(advice)}{_comparison(advice)}."
    gain = advice_text.speed_up(advice, best)
    time = advice_text.value_of_time(best)
    return f"{what}: the time with {advice_text.name(advice, best)} is {time}, {gain}{_comparison(advice)}."


def _answer(advice: Advice) -> Answer:
    best, what = advice_text.best(advice), labels.capital(advice_text.title(advice))
    if best.method == advice.baseline or best.speed_up is None:
        number, interval = format_seconds(best.time_s.value), spread(best.time_s, format_seconds)
        finding = _no_better(advice) if best.method == advice.baseline else advice_text.name(advice, best)
        finding += f" ({advice_text.basis(advice, best)})" * (best.method == advice.baseline)
    else:
        value, interval = advice_text.value_and_interval(best)
        number = f"speed-up {value}"
        finding = f"With {advice_text.name(advice, best)} instead of {advice_text.reference(advice)}: time "
        finding += f"{advice_text.takes(best)}, {advice_text.basis(advice, best)}"
    sentence = f"{labels.capital(finding)}{_comparison(advice)}."
    return Answer(what, number, interval, sentence, _action(advice, best))


def _action(advice: Advice, alternative: Alternative | SizeRange) -> str:
    """What to do, nothing for the reference; without a setting for what the MPI cannot select."""
    if alternative.method == advice.baseline:
        return alternative.action if advice.operation == PROGRAM else NOTHING
    if advice_text.is_own(alternative.method):
        return NOT_SELECTABLE
    action = alternative.action
    return f"start the job with `{action} mpiexec ...`" if _VARIABLES.fullmatch(action) else action


def _no_better(advice: Advice) -> str:
    """`no algorithm is clearly faster than the MPI's default`."""
    noun = _NOUNS.get(advice.operation, "algorithm")
    own = any(advice_text.is_own(one.method) for one in advice.ranked)
    return f"no {noun}{' of the MPI' * own} is clearly faster than {advice_text.reference(advice)}"


def _comparison(advice: Advice) -> str:
    """The first alternative if the MPI cannot select it."""
    first = advice.ranked[0]
    if not advice_text.is_own(first.method) or advice_text.best(advice) is first:
        return ""
    gain = advice_text.speed_up(advice, first)
    return (
        f". For comparison: {advice_text.name(advice, first)} (Earlybird's) takes "
        f"{format_seconds(first.time_s.value)}, {gain}; the MPI cannot select it"
    )


def _notes(pieces: Sequence[Advice]) -> list[str]:
    """The notes of all pieces of advice, each distinct note once."""
    titles_of: dict[str, list[str]] = {}
    for piece in pieces:
        for note in [*piece.notes, *_left_out(piece)]:
            titles_of.setdefault(note, []).append(advice_text.title(piece))
    if len(pieces) == 1:
        return [labels.capital(note) for note in titles_of]
    return [
        f"{labels.capital(labels.listed_briefly(titles, 2))}: {note}" for note, titles in titles_of.items()
    ]


def _left_out(advice: Advice) -> list[str]:
    """The sizes that the settings of this MPI cannot express."""
    sizes = _config(advice).get("left_out")
    if not isinstance(sizes, list) or not sizes:
        return []
    why = "this MPI cannot express these settings together with the others, so they are left out"
    return [f"{why}: {labels.listed(list(map(str, sizes)))}"]


def _alternatives(advice: Advice) -> Table:
    keys = [
        key
        for key in dict.fromkeys(key for alternative in advice.ranked for key in alternative.extra)
        if key not in _SHOWN_ELSEWHERE
    ]
    columns = _columns(advice) | {
        _KEYS.get(
            key, key.removesuffix("_bytes").removesuffix("_s").replace("_", " ")
        ): lambda one, key=key: advice_text.extra_cell(key, one.extra.get(key))
        for key in keys
    }
    if advice.operation in (PROGRAM, LAYOUT):
        for name in _NOT_MEASURED:
            columns.pop(name)
    reference = f"; speed-up over {advice_text.reference(advice)}" if advice.baseline else ""
    caption = labels.capital(advice_text.title(advice)) + reference
    columns["what to do"] = lambda one: _action(advice, one)
    return table_of(caption, advice.ranked, columns, wide=True)


def _columns(advice: Advice) -> Columns:
    return {"method": lambda one: advice_text.name(advice, one), **_COLUMNS}


def _brief(advice: Advice) -> Table:
    names = ("method", "time (95 %)", "speed-up (95 %)", "basis")
    caption = labels.capital(advice_text.title(advice))
    return table_of(caption, advice.ranked, _columns(advice)).columns(names).first(_BRIEF, "alternative")


def _config(advice: Advice) -> Mapping[str, Any]:
    config = advice.extra.get("config")
    return config if isinstance(config, Mapping) else {"text": config}


def _listings(pieces: Sequence[Advice]) -> list[tuple[str, str]]:
    """The settings as files, each once, and how to use them if the advice says so."""
    titles_of: dict[tuple[str, str], list[str]] = {}
    for piece in pieces:
        config = _config(piece)
        if isinstance(config.get("text"), str) and config["text"]:
            use = f" ({config['use']})" if config.get("use") else ""
            titles_of.setdefault((config["text"], use), []).append(advice_text.title(piece))
    return [
        (f"The settings as a file{use}: {'; '.join(titles)}", text)
        for (text, use), titles in titles_of.items()
    ]


def _crossovers(advice: Advice) -> Table:
    return table_of(
        f"What to do by size: {advice_text.title(advice)}",
        advice_text.size_ranges(advice),
        {
            "from": lambda one: format_bytes(one.from_bytes),
            "to": lambda one: format_bytes(one.to_bytes),
            "advised": lambda one: advice_text.name(advice, one),
            "what to do": lambda one: _action(advice, one),
            "range": lambda one: advice_text.extrapolated(one.extra),
        },
    )
