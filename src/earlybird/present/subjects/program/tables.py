"""Tables of a projection: the phases as recorded and predicted, and every change."""

from earlybird.data.projection import has_interval, speed_up_text, time_text
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.program.view import Gain, Projected
from earlybird.present.subjects.recording.view import first_names

_PHASES = (
    Column("phase", lambda phase: phase.number),
    Column("calls", lambda phase: first_names(phase.calls), left=True, folded=True),
    Column("in", lambda phase: first_names(phase.functions), left=True, folded=True),
    Column("epochs", lambda phase: phase.epochs),
    Column("time", lambda phase: format_seconds(phase.time_s)),
    Column("in MPI", lambda phase: format_seconds(phase.mpi_s)),
    Column("predicted", lambda phase: "" if phase.model_s is None else format_seconds(phase.model_s)),
)
_CHANGES = (
    Column("phase", lambda gain: gain.phase.number),
    Column("change", lambda gain: gain.name, left=True, folded=True),
    Column("recorded", lambda gain: format_seconds(gain.phase.time_s)),
    Column("projected", lambda gain: time_text(gain.change.time_s, gain.change.speed_up)),
    Column("95 %", lambda gain: _time_interval(gain), detail=True),
    Column("speed-up (95 %)", lambda gain: speed_up_cell(gain.change.speed_up)),
    Column("of the run (95 %)", lambda gain: speed_up_cell(gain.change.run_speed_up)),
    Column("basis", lambda gain: gain.change.basis),
    Column("what to do", lambda gain: gain.change.action, detail=True),
    Column("remark", lambda gain: gain.change.reason, detail=True, optional=True),
)


def tables(projected: Projected) -> list[Table]:
    """Return the table of phases, and the table of changes if there are any."""
    return [phases_table(projected), *([changes_table(projected)] if projected.gains else [])]


def phases_table(projected: Projected) -> Table:
    """Return the phases, as recorded and as the models describe them."""
    mean = ", times are means over ranks" if projected.record.ranks > 1 else ""
    return Table(projected.named(f"Phases{mean}"), _PHASES, projected.record.phases, wide=True)


def changes_table(projected: Projected) -> Table:
    """Return every change, the one that saves most of the run first."""
    caption = (
        "Changes, by the time of the run that each saves; speed-up: recorded time / projected time, of the "
        "phase and of the run"
    )
    return Table(projected.named(caption), _CHANGES, projected.gains, wide=True)


def speed_up_cell(speed_up: Estimate | None) -> str:
    """Return `1.22 (1.13 .. 1.29)`, `at least 1.07` or `unknown`."""
    interval = interval_text(speed_up, ratio_text) if has_interval(speed_up) else ""
    return speed_up_text(speed_up, ratio_text) + (f" ({interval})" if interval else "")


def _time_interval(gain: Gain) -> str:
    return interval_text(gain.change.time_s, format_seconds) if has_interval(gain.change.speed_up) else ""
