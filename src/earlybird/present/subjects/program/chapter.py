"""The chapter on projections: what changes of a recorded program would gain, phase by phase."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.projection import is_bound, speed_up_text
from earlybird.data.units import format_seconds
from earlybird.present import commands
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.core.text import NOTHING
from earlybird.present.material import Material
from earlybird.present.subjects.program.figures import gains_figure
from earlybird.present.subjects.program.tables import changes_table, tables
from earlybird.present.subjects.program.view import Projected, projected

ID = "projection"
QUESTION = "What would a change of my program gain?"
MEANS = (
    "What the models predict as saved is subtracted from the recorded time. The 95 % interval contains the "
    "uncertainty of the profile and the error of such models, but not the assumptions below. Changes of one "
    "phase overlap or exclude each other: never add their gains. In the table and the figure each change is "
    "of one phase; a layout or an MPI changes all of them, and the answer has their sum."
)
_BRIEF = 6  # changes in the terminal


def projection_chapter(material: Material) -> Chapter:
    """Return the chapter on all projections in the order given."""
    projections = projected(material)
    if not projections:
        return Chapter(ID, QUESTION, "", absent=_absent(material))
    changed = [projection for projection in projections if projection.gains]
    return Chapter(
        ID,
        QUESTION,
        " ".join(f"{projection.title}: {verdict(projection)}." for projection in projections),
        [MEANS, *(line for projection in projections for line in _lines(projection))],
        answers=[_answer(projection) for projection in projections],
        warnings=[labels.capital(note) for projection in projections for note in projection.record.remarks()],
        figures=[
            gains_figure(projection, f"projection-{k}")
            for k, projection in enumerate(projections)
            if any(gain.change.run_speed_up is not None for gain in projection.gains)
        ],
        shown=[table for projection in projections for table in tables(projection)],
        brief=[changes_table(projection).brief().first(_BRIEF, "change") for projection in changed],
    )


def _lines(projected: Projected) -> list[str]:
    return [f"{labels.capital(projected.run_text)}.", *basis(projected)]


def verdict(projected: Projected) -> str:
    """Return the gain of the best change, as a clause."""
    best = projected.best
    if best is None:
        return "no change is clearly faster" if projected.gains else "there is no change to project"
    interval = interval_text(best.run_speed_up, ratio_text)
    certain = "" if is_bound(best.run_speed_up) else f" (95 %: {interval})"
    return (
        f"with {best.name} instead of what was recorded, the run is projected to be "
        f"{speed_up_text(best.run_speed_up, ratio_text)} times as fast{certain}, by {best.where}"
    )


def basis(projected: Projected) -> list[str]:
    """Return the models of the phases and the assumptions, a sentence each."""
    models = [f"Model of exchanges: {name}." for name in projected.record.models()]
    return models + [
        labels.capital(f"{kind}: assumes that {text}.") for kind, text in projected.record.assumptions.items()
    ]


def _absent(material: Material) -> Sequence[tuple[str, str]]:
    if not material.recordings:
        return []
    command = commands.project(material)
    return [("To project what another layout, aggregation or partitions would gain, run", command)]


def _answer(projected: Projected) -> Answer:
    best = projected.best
    if best is None:
        do = projected.record.uneven_work_remedy() or NOTHING
        run = format_seconds(projected.record.run_s)
        return Answer(projected.title, run, "", f"{labels.capital(verdict(projected))}.", do)
    how = f"With {best.name}, projected, by {best.where}. Run the program with the change to check it."
    number = f"speed-up {speed_up_text(best.run_speed_up, ratio_text)}"
    interval = "" if is_bound(best.run_speed_up) else interval_text(best.run_speed_up, ratio_text)
    return Answer(projected.title, number, interval, how, best.action)
