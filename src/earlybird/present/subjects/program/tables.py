"""Tables of the simulation of a recorded program: its call sites, phases, critical path and windows."""

from earlybird.data import labels
from earlybird.data.simulated_program import SimulatedProgram
from earlybird.data.tolerance import LATENCY, growth_text
from earlybird.data.units import format_bandwidth, format_seconds
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.recording.view import first_names

MAX_PATH = 10  # parts of the critical path in a terminal
_SITES = (
    Column("call", lambda row: row.call, left=True),
    Column("in", lambda row: row.site, left=True, folded=True),
    Column("phase", lambda row: ", ".join(map(str, row.phases)), optional=True),
    Column(
        "recorded", lambda row: "" if row.recorded_s is None else format_seconds(row.recorded_s), detail=True
    ),
    Column("computing before", lambda row: format_seconds(row.computing_s)),
    Column("waiting", lambda row: format_seconds(row.waiting_s)),
    Column("transfer", lambda row: format_seconds(row.transfer_s)),
)
_PHASES = (
    Column("phase", lambda row: row.number),
    Column("calls", lambda row: first_names(row.calls), left=True, folded=True),
    Column("in", lambda row: first_names(row.functions), left=True, folded=True),
    Column("epochs", lambda row: row.epochs),
    Column("recorded", lambda row: format_seconds(row.recorded_s)),
    Column("recorded in MPI", lambda row: format_seconds(row.in_mpi_s)),
    Column("computing before", lambda row: format_seconds(row.computing_s)),
    Column("waiting", lambda row: format_seconds(row.waiting_s)),
    Column("transfer", lambda row: format_seconds(row.transfer_s)),
)
_OF_WHOLE_RUN = ("epochs", "recorded")
_PATH = (
    Column("rank", lambda row: row.rank),
    Column("until", lambda row: row.site, left=True, folded=True),
    Column("computing", lambda row: format_seconds(row.computing_s)),
    Column("communicating", lambda row: format_seconds(row.communicating_s)),
)
_WINDOWS = (
    Column("from", lambda row: format_seconds(row.begin_s)),
    Column("to", lambda row: format_seconds(row.end_s)),
    Column("parallel efficiency", lambda row: labels.percent(row.parallel)),
    Column("load balance", lambda row: labels.percent(row.load_balance)),
)

_TOLERANCE = (
    Column("level", lambda point: labels.level(point.level), left=True),
    Column("run longer by", lambda point: growth_text(point.growth)),
    Column("at", lambda point: point.parameter, left=True),
    Column(
        "of",
        lambda point: (
            format_seconds(point.latency_s)
            if point.parameter == LATENCY
            else format_bandwidth(point.bandwidth_bytes_per_s)
        ),
    ),
)


def sites_table(simulated: SimulatedProgram, of: str = "") -> Table:
    """Return the time of all ranks by call site, most first."""
    caption = f"Time of all ranks in the simulated run, by call site{of}"
    return Table(caption, _SITES, simulated.phases, wide=True)


def phases_table(simulated: SimulatedProgram, of: str = "") -> Table:
    """Return the phases of the recording, as recorded and in the simulated run; of a part of the run without
    what is only known of the whole."""
    caption = (
        "Time of all ranks by phase: recorded from the first to the last call of its epochs, recorded in its "
        "MPI calls, and the rest in the simulated run; a call site of several phases counts in the first"
    )
    if not simulated.window:
        return Table(f"{caption}{of}", _PHASES, simulated.recorded_phases, wide=True)
    caption = (
        f"Time of all ranks by phase in {simulated.window}: recorded in its MPI calls, and the rest in the "
        "simulated run; a call site of several phases counts in the first"
    )
    columns = [column for column in _PHASES if column.head not in _OF_WHOLE_RUN]
    return Table(f"{caption}{of}", columns, simulated.recorded_phases, wide=True)


def path_table(simulated: SimulatedProgram, of: str = "") -> Table:
    """Return the parts of the critical path, the longest first."""
    caption = f"Critical path, by rank and call site: what determines the run time{of}"
    return Table(caption, _PATH, simulated.critical_path, wide=True)


def windows_table(simulated: SimulatedProgram, of: str = "") -> Table:
    return Table(f"Efficiency over time in the simulated run{of}", _WINDOWS, simulated.windows)


def tolerance_table(simulated: SimulatedProgram, of: str = "") -> Table:
    """Return the latency and bandwidth of each level at which the run takes 1, 5 and 10 % longer."""
    points = [point for point in simulated.tolerance if point.growth is not None]
    caption = (
        "Latency and bandwidth at which the run takes longer; what is missing does not change it so much, up "
        f"to 1000 times worse{of}"
    )
    return Table(caption, _TOLERANCE, points)
