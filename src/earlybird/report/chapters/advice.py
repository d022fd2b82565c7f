"""The chapter on what to do: advice by predicted speed-up, with the command or setting to use."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data import labels
from earlybird.data.advice import Advice
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report.figures.advice import strip_figure
from earlybird.report.material import Material
from earlybird.report.parts import Answer, Chapter, Columns, Table, table_of
from earlybird.report.texts import ratio, spread, value_and_spread
from earlybird.report.views import advice as advice_text

ID = "advice"
QUESTION = "What should I do?"
PIPELINE = (
    "earlybird advise pipeline --threads 8 --size 64MiB --gamma 100us/MB --profile profile.json "
    "--json > advice.json"
)
COLLECTIVE = "earlybird advise collective --op bcast --ranks 8 --profile profile.json --json > advice.json"
MEANS = (
    "Where a point was measured, its time and speed-up are the measured ones, with the interval over "
    "launches. Elsewhere a model predicts them, corrected by the measured points around it; its 95 % "
    "interval covers the error at points left out. The first alternative is the fastest that is clearly "
    "faster than the reference, or a simpler one that is almost as fast; without one, the reference."
)
# Column titles that differ from the keys in the file.
_KEYS = {"message_bytes": "message size"}
# Part of the display name of the method, or not useful to the reader.
_SHOWN_ELSEWHERE = ("vcis", "algorithm", "segment_bytes", "form", "source")
_BRIEF = 4  # alternatives in the terminal
_COLUMNS: Columns = {
    "method": lambda one: advice_text.name(one.method, one.extra),
    "time (95 %)": lambda one: value_and_spread(one.time_s, format_seconds),
    "speed-up (95 %)": lambda one: value_and_spread(one.speed_up, ratio),
    "measured": lambda one: value_and_spread(one.measured_speed_up, ratio),
    "model alone": lambda one: value_and_spread(one.predicted_speed_up, ratio),
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
            absent=[
                ("To get advice on a buffer that threads fill, run", PIPELINE),
                ("To get advice on a collective operation, run", COLLECTIVE),
            ],
        )
    strips = [strip_figure(piece, f"advice-{k}") for k, piece in enumerate(pieces)]
    return Chapter(
        ID,
        QUESTION,
        _sentence(pieces[0]),
        [MEANS],
        answers=[_answer(piece) for piece in pieces],
        warnings=_notes(pieces),
        figures=[figure for figure in strips if figure is not None],
        tables=[_crossovers(piece) for piece in pieces if piece.size_ranges],
        shown=[_alternatives(piece) for piece in pieces],
        brief=[_brief(piece) for piece in pieces],
        listings=[listing for piece in pieces for listing in _listing(piece)],
    )


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
    first, what = advice.ranked[0], labels.capital(advice_text.title(advice))
    method = advice_text.name(first.method, first.extra)
    if first.method == advice.baseline:
        return f"{what}: {method} is already the fastest."
    gain = advice_text.speed_up(advice, first)
    return f"{what}: the time with {method} is {format_seconds(first.time_s.value)}, {gain}."


def _answer(advice: Advice) -> Answer:
    first, what = advice.ranked[0], labels.capital(advice_text.title(advice))
    method = advice_text.name(first.method, first.extra)
    if first.method == advice.baseline or first.speed_up is None:
        number, interval = format_seconds(first.time_s.value), spread(first.time_s, format_seconds)
        finding = labels.capital(method) + " is already the fastest" * (first.method == advice.baseline)
    else:
        number, interval = f"speed-up {first.speed_up.value:.2f}", spread(first.speed_up, ratio)
        finding = f"With {method} instead of {labels.method(advice.baseline)}: time "
        finding += f"{advice_text.takes(first)}, {advice_text.basis(first)}"
    return Answer(what, number, interval, f"{finding}.", first.action)


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
    columns = _COLUMNS | {
        _KEYS.get(
            key, key.removesuffix("_bytes").removesuffix("_s").replace("_", " ")
        ): lambda one, key=key: advice_text.extra_cell(key, one.extra.get(key))
        for key in keys
    }
    reference = f"; speed-up over {labels.method(advice.baseline)}" if advice.baseline else ""
    caption = labels.capital(advice_text.title(advice)) + reference
    columns["what to do"] = lambda one: one.action
    return table_of(caption, advice.ranked, columns, wide=True)


def _brief(advice: Advice) -> Table:
    names = ("method", "time (95 %)", "speed-up (95 %)", "basis")
    caption = labels.capital(advice_text.title(advice))
    return table_of(caption, advice.ranked, _COLUMNS).columns(names).first(_BRIEF, "alternative")


def _config(advice: Advice) -> Mapping[str, Any]:
    config = advice.extra.get("config")
    return config if isinstance(config, Mapping) else {"text": config}


def _listing(advice: Advice) -> list[tuple[str, str]]:
    """The settings as a file, and how to use it if the advice says so."""
    config = _config(advice)
    if not isinstance(config.get("text"), str) or not config["text"]:
        return []
    use = f" ({config['use']})" if config.get("use") else ""
    return [(f"The settings as a file{use}: {advice_text.title(advice)}", config["text"])]


def _crossovers(advice: Advice) -> Table:
    return table_of(
        f"What to do by size: {advice_text.title(advice)}",
        advice.size_ranges,
        {
            "from": lambda one: format_bytes(one.from_bytes),
            "to": lambda one: format_bytes(one.to_bytes),
            "best method": lambda one: advice_text.name(one.method, one.extra),
            "what to do": lambda one: one.action,
            "": lambda one: advice_text.extrapolated(one.extra),
        },
    )
