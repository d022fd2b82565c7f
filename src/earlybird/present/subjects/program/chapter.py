"""The chapter on simulated programs: what determines the run time, and what would change it."""

from collections.abc import Sequence
from dataclasses import dataclass

from earlybird.compare.ranking import is_clearly_faster
from earlybird.data import labels
from earlybird.data.schema import Estimate
from earlybird.data.simulated_program import SimulatedProgram
from earlybird.data.speed_ups import has_interval, is_unknown, speed_up_text
from earlybird.present import commands
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.parts import Answer, Chapter, Figure
from earlybird.present.core.table import Table
from earlybird.present.material import Material
from earlybird.present.subjects.program.figures import (
    changes_figure,
    path_figure,
    timeline_figure,
    tolerance_figure,
    windows_figure,
)
from earlybird.present.subjects.program.simulated import change_line, efficiency_line, first_line
from earlybird.present.subjects.program.tables import (
    MAX_PATH,
    path_table,
    phases_table,
    sites_table,
    tolerance_table,
    windows_table,
)

ID = "simulation"
QUESTION = "What determines the run time of my program, and what would change it?"
MEANS = (
    "Every rank repeats its recorded calls, computes between them as recorded, and waits for what it waited "
    "for; messages share the links as the profile says. The interval contains the difference between the run "
    "and its simulation as recorded, and the uncertainty of the profile. Changes of one simulation are made "
    "together. Run the program with the change to check it."
)
MAX_DRAWN = 3  # simulations with timelines: the page stays small
_BRIEF = 6  # rows in the terminal


@dataclass(frozen=True)
class Shown:
    """A simulation and its title: the program, and the changes if other simulations are next to it."""

    record: SimulatedProgram
    title: str
    is_only: bool

    @property
    def of(self) -> str:
        """The end of captions."""
        return "" if self.is_only else f": {self.title}"


def simulation_chapter(material: Material) -> Chapter:
    """Return the chapter on all simulations in the order given."""
    shown = _shown(material)
    if not shown:
        return Chapter(ID, QUESTION, "", absent=_absent(material))
    return Chapter(
        ID,
        QUESTION,
        " ".join(f"{_prefix(one)}{_sentence_of(one.record)}" for one in shown),
        [MEANS, *(f"{_prefix(one)}{efficiency_line(one.record.efficiency)}" for one in shown)],
        answers=[_answer(one) for one in shown],
        warnings=[labels.capital(text) + "." for one in shown for text in one.record.notes],
        figures=_figures(shown),
        tables=[table for one in shown for table in _tables(one)],
        brief=[
            table.brief().first(_BRIEF, "row")
            for one in shown
            for table in (sites_table(one.record, one.of), path_table(one.record, one.of))
        ],
    )


def _shown(material: Material) -> list[Shown]:
    return [
        Shown(record, _title(record, file), len(material.simulations) == 1)
        for record, file in material.named("simulations")
    ]


def _title(record: SimulatedProgram, file: str) -> str:
    """Return `Program recorded in rec, 4 ranks, with --balance all`."""
    recording = f" recorded in {record.recording}" if record.recording else ""
    changes = f", with {', '.join(record.changes)}" if record.changes else ""
    of_file = f", {file}" if file and not record.recording else ""
    return f"Program{recording}, {labels.counted(record.num_ranks, 'rank')}{changes}{of_file}"


def _prefix(one: Shown) -> str:
    return "" if one.is_only else f"{one.title}: "


def _sentence_of(record: SimulatedProgram) -> str:
    changed = f" {change_line(record)}" if record.changes else ""
    return f"{first_line(record)}{changed} {record.remedy()}"


def _answer(one: Shown) -> Answer:
    record, speed_up = one.record, one.record.speed_up
    if not record.changes or speed_up is None:
        number = f"parallel efficiency {labels.percent(record.efficiency.parallel)}"
        return Answer(one.title, number, "", first_line(record), record.remedy())
    interval = interval_text(speed_up, ratio_text) if has_interval(speed_up) else ""
    is_faster = is_clearly_faster(speed_up, Estimate.exact(1.0))
    do = "run the program with the change to check it" if is_faster else record.remedy()
    number = f"speed-up {speed_up_text(speed_up, ratio_text)}"
    return Answer(one.title, number, interval, change_line(record), do)


def _figures(shown: Sequence[Shown]) -> list[Figure]:
    figures = []
    changed = [
        (one.title, one.record)
        for one in shown
        if one.record.changes and one.record.speed_up and not is_unknown(one.record.speed_up)
    ]
    if changed:
        figures.append(changes_figure(changed, "simulation-changes"))
    for k, one in enumerate(shown[:MAX_DRAWN]):
        if one.record.timelines:
            figures.append(timeline_figure(one.record, one.of, f"simulation-timeline-{k}"))
        if one.record.windows:
            figures.append(windows_figure(one.record, one.of, f"simulation-windows-{k}"))
        if one.record.critical_path:
            figures.append(path_figure(one.record, one.of, f"simulation-path-{k}"))
        if one.record.tolerance:
            figures.append(tolerance_figure(one.record, one.of, f"simulation-tolerance-{k}"))
    num_left = len(shown) - MAX_DRAWN
    if num_left > 0:
        reason = "Their numbers are in the tables; give fewer simulations for their figures."
        title = labels.counted(num_left, "more simulation")
        figures.append(Figure("simulation-left", title, "", absence=reason))
    return figures


def _tables(one: Shown) -> list[Table]:
    tables = [sites_table(one.record, one.of)]
    if one.record.recorded_phases:
        tables.append(phases_table(one.record, one.of))
    tables.append(path_table(one.record, one.of).first(2 * MAX_PATH, "part", "in the file"))
    if one.record.tolerance:
        tables.append(tolerance_table(one.record, one.of))
    if one.record.windows:
        tables.append(windows_table(one.record, one.of))
    return tables


def _absent(material: Material) -> Sequence[tuple[str, str]]:
    if not material.recordings:
        return []
    command = commands.predict_program(material)
    remark = "To simulate the program, as recorded with `--events all` and with changes, run"
    return [(remark, command)]
