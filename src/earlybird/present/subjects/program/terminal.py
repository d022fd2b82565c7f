"""Prints a projection: the phases as recorded and predicted, and the time of each with every change."""

from typing import Any

from earlybird.data.projection import (
    ProjectedChange,
    ProjectedPhase,
    Projection,
    has_interval,
    speed_up_text,
    time_text,
)
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.recording.terminal import first_names

_CSV = ("phase", "kind", "change", "recorded_s", "time_s", "time_low_s", "time_high_s", "speed_up",
        "speed_up_low", "speed_up_high", "run_speed_up", "run_speed_up_low", "run_speed_up_high",
        "action", "reason")  # fmt: skip
MORE_CHANGES = "; add some with --to-layout, --to-profile or --partitions"
_Row = tuple[ProjectedPhase, ProjectedChange]
_PHASES = (
    Column("phase", lambda one: one.number),
    Column("calls", lambda one: first_names(one.calls), left=True, folded=True),
    Column("in", lambda one: first_names(one.functions), left=True, folded=True),
    Column("epochs", lambda one: one.epochs),
    Column("time", lambda one: format_seconds(one.time_s)),
    Column("in MPI", lambda one: format_seconds(one.mpi_s)),
    Column("model", lambda one: "" if one.model_s is None else format_seconds(one.model_s)),
)
_CHANGES = (
    Column("phase", lambda row: row[0].number),
    Column("change", lambda row: row[1].kind, left=True, folded=True),
    Column("to", lambda row: row[1].change, left=True, folded=True),
    Column("time", lambda row: format_seconds(row[0].time_s)),
    Column("projected", lambda row: time_text(row[1].time_s, row[1].speed_up)),
    Column("speed-up", lambda row: speed_up_text(row[1].speed_up, ratio_text)),
    Column("95 %", lambda row: _interval(row[1].speed_up)),
    Column("of the run", lambda row: speed_up_text(row[1].run_speed_up, ratio_text)),
    Column("basis", lambda row: row[1].basis),
)


def print_projection(projection: Projection, format: Format, hint: str = "") -> None:
    """Print a projection; as CSV, the changes. `hint`: how to ask for more, printed if there is none."""
    for remark in projection.remarks():
        note(f"warning: {remark}")
    rows = [(phase, change) for phase in projection.phases for change in phase.changes]
    if print_data(format, projection.to_json(), list(map(_flat, rows)), _CSV):
        return
    print_line(
        f"recording {projection.recording}: {projection.ranks} ranks on {projection.layout}, "
        f"{format_seconds(projection.run_s)}"
    )
    print_line()
    print_table(Table("", _PHASES, projection.phases))
    if projection.ranks > 1:
        print_line("times are means over ranks")
    print_line()
    if rows:
        print_table(Table("", _CHANGES, rows))
        print_line("speed-up: recorded time / projected time, of the phase and of the run")
        for phase, change in rows:
            if change.reason:
                print_line(f"{change.change}, phase {phase.number}: {change.reason}")
    else:
        print_line(f"no change to project{hint}")
    for kind, text in projection.assumptions.items():
        print_line(f"{kind}: assumes that {text}")


def _interval(speed_up: Estimate | None) -> str:
    return interval_text(speed_up, ratio_text) if has_interval(speed_up) else ""


def _flat(row: _Row) -> dict[str, Any]:
    phase, change = row
    return {"phase": phase.number, "recorded_s": phase.time_s} | change.to_json()
