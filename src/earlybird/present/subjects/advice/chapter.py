"""The chapter on what to do: advice by speed-up, with the command or setting to use."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data import labels
from earlybird.data.advice import Advice
from earlybird.data.units import format_seconds
from earlybird.present import commands
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.advice import view
from earlybird.present.subjects.advice.figures import strip_figure
from earlybird.present.subjects.advice.tables import alternatives_table, sizes_table

ID = "advice"
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
    "Times are of the whole run, simulated with one change, or with several together; the 95 % interval "
    "contains the difference between the run and its simulation as recorded, and the uncertainty of the "
    "profile, but not the assumptions. The first alternative is advised: of those that are clearly faster, "
    "what needs the least effort within 5 % of the fastest; if none is, as recorded. Run the program with "
    "the change to check it."
)
LAYOUT_MEANS = (
    "Times are those of the slowest rank of the exchange, by the model alone: the 95 % interval contains the "
    "uncertainty of the profile, not the error of the model. Replay the advised exchange to check it."
)
OWN_MEANS = " Earlybird's algorithms are for comparison: the MPI cannot select them."
_BRIEF = 4  # alternatives in the terminal


def advice_chapter(material: Material) -> Chapter:
    """Return all pieces of advice, the largest speed-up first."""
    pieces = sorted(_distinct(material), key=view.gain, reverse=True)
    if not pieces:
        return Chapter(ID, QUESTION, "", absent=_absent(material))
    tables = [alternatives_table(advice) for advice in pieces]
    answers = [_answer(advice) for advice in pieces]
    strips = [strip_figure(advice, f"advice-{k}") for k, advice in enumerate(pieces)]
    warnings = view.notes(pieces, view.title, _left_out)
    return Chapter(
        ID,
        QUESTION,
        f"{answers[0].what}: {_finding(pieces[0])}.",
        _means(pieces),
        answers=answers,
        warnings=[labels.capital(text) for text in warnings],
        figures=[figure for figure in strips if figure is not None],
        tables=[sizes_table([advice]) for advice in pieces if advice.size_ranges],
        shown=tables,
        brief=[table.brief().first(_BRIEF, "alternative") for table in tables],
        listings=_listings(pieces),
    )


def _absent(material: Material) -> list[tuple[str, str]]:
    """Return the commands that give advice, for a program first if there is a recording of one."""
    of_program = ("To rank what would make the program faster, run", commands.advise_program(material))
    of_buffer = "To get advice on a buffer that threads fill, run this with your values:"
    of_operation = "To get advice on a collective operation, run"
    return [
        *([of_program] if material.recordings else []),
        (of_buffer, commands.advise_buffer(material)),
        (of_operation, commands.advise_operation(material)),
    ]


def _means(pieces: Sequence[Advice]) -> list[str]:
    """Return the meaning of the values of the pieces, and the assumptions of simulations of programs."""
    programs = [advice for advice in pieces if advice.operation == view.PROGRAM]
    exchanges = [advice for advice in pieces if advice.operation in view.OF_EXCHANGES]
    lines = [LAYOUT_MEANS] if exchanges else []
    if len(programs) + len(exchanges) < len(pieces):
        has_own = any(labels.is_own(alternative.method) for advice in pieces for alternative in advice.ranked)
        lines.append(MEANS + OWN_MEANS * has_own)
    if programs:
        assumed = [text for advice in programs for text in advice.extra.get("assumptions", [])]
        lines += [PROGRAM_MEANS, *(f"Assumed, {text}." for text in dict.fromkeys(map(str, assumed)))]
    return lines


def _distinct(material: Material) -> list[Advice]:
    """Return the pieces of advice; those with the same title get the names of their files."""
    titles = [view.title(advice) for advice in material.advice]
    return [
        advice
        if titles.count(title) == 1
        else replace(advice, asked={**advice.asked, "file": material.name_of("advice", k) or k + 1})
        for k, (advice, title) in enumerate(zip(material.advice, titles, strict=True))
    ]


def _answer(advice: Advice) -> Answer:
    advised = advice.ranked[0]
    if advised.method == advice.baseline or advised.speed_up is None:
        number = format_seconds(advised.time_s.value)
        interval = interval_text(advised.time_s, format_seconds)
    else:
        speed_up, interval = view.speed_up_and_interval(advised)
        number = f"speed-up {speed_up}"
    return Answer(
        labels.capital(view.title(advice)),
        number,
        interval,
        f"{labels.capital(_finding(advice))}.",
        view.action(advice, advised),
    )


def _finding(advice: Advice) -> str:
    """Return how the advised alternative compares with the reference, as a clause."""
    advised = advice.ranked[0]
    if advised.method == advice.baseline:
        better = f"no {view.noun(advice)} is clearly faster than {view.reference(advice)}"
        return f"{better} ({view.basis(advice, advised)})"
    if advised.speed_up is None:
        return view.name(advice, advised)
    return (
        f"with {view.name(advice, advised)} instead of {view.reference(advice)}: time "
        f"{view.format_time(advised)}, {view.describe_speed_up(advice, advised)}"
    )


def _left_out(advice: Advice) -> list[str]:
    """Return the sizes that the settings of this MPI cannot express."""
    sizes = _config(advice).get("left_out")
    if not isinstance(sizes, list) or not sizes:
        return []
    why = "this MPI cannot express these settings together with the others, so they are left out"
    return [f"{why}: {labels.listed(list(map(str, sizes)))}"]


def _config(advice: Advice) -> Mapping[str, Any]:
    config = advice.extra.get("config")
    return config if isinstance(config, Mapping) else {"text": config}


def _listings(pieces: Sequence[Advice]) -> list[tuple[str, str]]:
    """Return the settings as files, each once, and how to use them if the advice says so."""
    titles_of: dict[tuple[str, str], list[str]] = {}
    for advice in pieces:
        config = _config(advice)
        if isinstance(config.get("text"), str) and config["text"]:
            use = f" ({config['use']})" if config.get("use") else ""
            titles_of.setdefault((config["text"], use), []).append(view.title(advice))
    return [
        (f"The settings as a file{use}: {'; '.join(titles)}", text)
        for (text, use), titles in titles_of.items()
    ]
