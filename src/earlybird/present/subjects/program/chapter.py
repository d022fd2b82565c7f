"""The chapter on projections: what changes of a recorded program would gain, phase by phase."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.projection import (
    ProjectedChange,
    ProjectedPhase,
    has_interval,
    is_bound,
    speed_up_text,
    time_text,
)
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.present import commands
from earlybird.present.core.notation import interval_text, ratio_text, with_interval
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.core.table import Table, table_of
from earlybird.present.core.text import NOTHING
from earlybird.present.material import Material
from earlybird.present.subjects.program.figures import gains_figure
from earlybird.present.subjects.program.view import Projected, projected

ID = "projection"
QUESTION = "What would a change of my program gain?"
MEANS = (
    "What the models predict as saved is subtracted from the recorded time. The 95 % interval contains the "
    "uncertainty of the profile and the error of such models, but not the assumptions below. Changes of one "
    "phase overlap or exclude each other: never add their gains. In the table and the figure each change is "
    "of one phase; a layout or an MPI changes all of them, and the answer has their sum."
)
# In the terminal: the number of changes, and the columns.
_BRIEF = 6
_IN_BRIEF = ("change", "phase", "recorded", "projected (95 %)", "of the run (95 %)")


def projection_chapter(material: Material) -> Chapter:
    """All projections in the order given, the changes of each by the time of the run that they save."""
    found = projected(material)
    if not found:
        return Chapter(ID, QUESTION, "", absent=_absent(material))
    return Chapter(
        ID,
        QUESTION,
        " ".join(_sentence(one) for one in found),
        [MEANS, *(line for one in found for line in _assumptions(one))],
        answers=[_answer(one) for one in found],
        warnings=[labels.capital(note) for one in found for note in one.projection.remarks()],
        figures=[
            gains_figure(one, f"projection-{k}")
            for k, one in enumerate(found)
            if any(gain.change.run_speed_up is not None for gain in one.gains)
        ],
        shown=[table for one in found for table in (_phases(one), *([_changes(one)] if one.gains else []))],
        brief=[
            _changes(one).only(lambda column: column.head in _IN_BRIEF).first(_BRIEF, "change")
            for one in found
            if one.gains
        ],
    )


def _absent(material: Material) -> Sequence[tuple[str, str]]:
    if not material.recordings:
        return []
    command = commands.project(material)
    return [("To project what another layout, aggregation or partitions would gain, run", command)]


def _sentence(one: Projected) -> str:
    best = one.best
    if best is None:
        return f"{one.title}: no change is clearly faster."
    interval = interval_text(best.run_speed_up, ratio_text)
    certain = "" if is_bound(best.run_speed_up) else f" (95 %: {interval})"
    return (
        f"{one.title}: with {best.name} instead of what was recorded, the run is projected to be "
        f"{speed_up_text(best.run_speed_up, ratio_text)} times as fast{certain}, by {best.where}."
    )


def _answer(one: Projected) -> Answer:
    best = one.best
    if best is None:
        finding = "No change is clearly faster." if one.gains else "There is no change to project."
        do = one.projection.uneven_work_remedy() or NOTHING
        return Answer(one.title, format_seconds(one.projection.run_s), "", finding, do)
    finding = f"With {best.name}, projected, by {best.where}. Run the program with the change to check it."
    number = f"speed-up {speed_up_text(best.run_speed_up, ratio_text)}"
    interval = "" if is_bound(best.run_speed_up) else interval_text(best.run_speed_up, ratio_text)
    return Answer(one.title, number, interval, finding, best.action)


def _assumptions(one: Projected) -> list[str]:
    texts = [f"{kind}: assumes that {text}" for kind, text in one.projection.assumptions.items()]
    return [labels.capital("; ".join(texts)) + "."] if texts else []


def _phases(one: Projected) -> Table:
    def model(phase: ProjectedPhase) -> str:
        return "-" if phase.model_s is None else format_seconds(phase.model_s)

    return table_of(
        f"Phases: {one.title}",
        one.projection.phases,
        {
            "phase": lambda phase: str(phase.number),
            "calls": lambda phase: labels.listed_briefly(phase.calls),
            "in": lambda phase: labels.listed_briefly(phase.functions),
            "epochs": lambda phase: str(phase.epochs),
            "time": lambda phase: format_seconds(phase.time_s),
            "in MPI": lambda phase: format_seconds(phase.mpi_s),
            "predicted": model,
        },
        wide=True,
    )


def _projected(change: ProjectedChange) -> str:
    if has_interval(change.speed_up):
        return with_interval(change.time_s, format_seconds)
    return time_text(change.time_s, change.speed_up) or "unknown"


def _speed_up(speed_up: Estimate | None) -> str:
    interval = interval_text(speed_up, ratio_text) if has_interval(speed_up) else ""
    return speed_up_text(speed_up, ratio_text) + (f" ({interval})" if interval else "")


def _changes(one: Projected) -> Table:
    return table_of(
        f"Changes, by the time of the run that each saves: {one.title}",
        one.gains,
        {
            "phase": lambda gain: str(gain.phase.number),
            "change": lambda gain: gain.name,
            "recorded": lambda gain: format_seconds(gain.phase.time_s),
            "projected (95 %)": lambda gain: _projected(gain.change),
            "speed-up of the phase (95 %)": lambda gain: _speed_up(gain.change.speed_up),
            "of the run (95 %)": lambda gain: _speed_up(gain.change.run_speed_up),
            "basis": lambda gain: gain.basis,
            "what to do": lambda gain: "; ".join(filter(None, (gain.change.action, gain.change.reason))),
        },
        wide=True,
    )
