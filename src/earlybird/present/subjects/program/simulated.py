"""Prints the simulation of a recorded program: its time, what it consists of, and what to do."""

from earlybird.data import labels
from earlybird.data.simulated_program import Efficiency, SimulatedProgram
from earlybird.data.speed_ups import is_unknown, speed_up_text
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_captioned, print_line
from earlybird.present.subjects.program.tables import (
    MAX_PATH,
    path_table,
    phases_table,
    sites_table,
    tolerance_table,
)

# Sources of an interval that are named.
_MAX_PARTS = 3
_CSV = ("site", "call", "computing_s", "waiting_s", "transfer_s", "recorded_s", "phases")


def print_simulated_program(simulated: SimulatedProgram, format: str | Format) -> None:
    """Print a simulation; as CSV, its call sites."""
    for remark in simulated.notes:
        note(f"warning: {remark}")
    records = [row.to_json() | {"phases": " ".join(map(str, row.phases))} for row in simulated.phases]
    if print_data(format, simulated.to_json(), records, _CSV):
        return
    print_line(first_line(simulated))
    if simulated.changes:
        print_line(change_line(simulated))
        if simulated.interval_parts:
            print_line(parts_line(simulated))
    print_line(efficiency_line(simulated.efficiency))
    print_captioned(sites_table(simulated))
    if simulated.recorded_phases:
        print_captioned(phases_table(simulated))
    if simulated.tolerance:
        print_captioned(tolerance_table(simulated))
    print_captioned(path_table(simulated).first(MAX_PATH, "part", "in --json"))
    print_line()
    print_line(simulated.remedy())


def first_line(simulated: SimulatedProgram) -> str:
    """Return the run time as recorded, simulated as recorded, and the difference."""
    return (
        f"Recorded {format_seconds(simulated.recorded_s)}, simulated as recorded "
        f"{format_seconds(simulated.as_recorded_s)}, difference {100 * simulated.error:+.1f} %."
    )


def change_line(simulated: SimulatedProgram) -> str:
    """Return the simulated time with the changes, and the speed-up."""
    if simulated.changes_nothing:
        return (
            f"With {', '.join(simulated.changes)} nothing changes: {format_seconds(simulated.simulated_s)}."
        )
    low_s, high_s = simulated.interval_s
    line = (
        f"With {', '.join(simulated.changes)}: {format_seconds(simulated.simulated_s)} "
        f"({format_seconds(low_s)} .. {format_seconds(high_s)})"
    )
    speed_up = simulated.speed_up
    if speed_up is None:
        return f"{line}."
    if is_unknown(speed_up):
        interval = interval_text(speed_up, ratio_text)
        return (
            f"{line}, speed-up unknown: {interval} over the simulation as recorded agree with what is known."
        )
    return f"{line}, speed-up {speed_up_text(speed_up, ratio_text)} over the simulation as recorded."


def parts_line(simulated: SimulatedProgram) -> str:
    """Return the largest sources of the interval."""
    parts = [
        f"{part.source} {100 * (part.low - 1):+.1f} to {100 * (part.high - 1):+.1f} %"
        for part in simulated.interval_parts[:_MAX_PARTS]
    ]
    more = len(simulated.interval_parts) - len(parts)
    return f"The interval consists of: {'; '.join(parts)}{f'; {more} smaller' if more else ''}."


def efficiency_line(efficiency: Efficiency) -> str:
    """Return the efficiencies as a sentence."""
    return (
        f"Parallel efficiency {labels.percent(efficiency.parallel)}: load balance "
        f"{labels.percent(efficiency.load_balance)}, serialization "
        f"{labels.percent(efficiency.serialization)}, transfer {labels.percent(efficiency.transfer)}."
    )
