"""How evenly the ranks of a recorded program compute."""

import numpy as np

from earlybird.analysis.polling import busiest_thread, has_several_threads, polls
from earlybird.data.phases import find_phases
from earlybird.data.projection import WorkBalance
from earlybird.data.recording import LEAST_CORE_WAIT, Recording

# Of the run: phases in which ranks poll and that take less than this do not hide who computes.
_LEAST_POLLING = 0.02


def outside_mpi_s(recording: Recording) -> np.ndarray:
    """Seconds outside MPI calls from MPI_Init to the end, of each rank that left a file."""
    outside = []
    for one in recording.ranks.values():
        is_init = np.isin(one.entries["call"], [k for k, name in enumerate(one.calls) if "MPI_Init" in name])
        rows = busiest_thread(one, one.entries[~is_init])
        outside.append(max(one.run_s - 1e-9 * float(rows["time_ns"].sum()), 0.0))
    return np.array(outside)


def work_balance(recording: Recording) -> WorkBalance | None:
    """The rank that is longest outside the MPI beside the mean.

    None if that says nothing of work: with one rank, if some ranks left no file or ended early, if they
    waited for cores or by polling, or if several threads of a rank call the MPI.
    """
    waited = recording.core_wait_share or 0.0
    if recording.size < 2 or recording.missing or recording.ended_early or waited >= LEAST_CORE_WAIT:
        return None
    if any(map(has_several_threads, recording.ranks.values())) or _polls(recording):
        return None
    outside_s = outside_mpi_s(recording)
    most = int(np.argmax(outside_s))
    return WorkBalance(list(recording.ranks)[most], float(outside_s[most]), float(outside_s.mean()))


def _polls(recording: Recording) -> bool:
    """Whether ranks wait by polling in phases that take a share of the run: between the calls they compute
    or wait."""
    run_s = sum(one.run_s for one in recording.ranks.values())
    return any(
        phase.time_s >= _LEAST_POLLING * run_s and polls(recording, phase) for phase in find_phases(recording)
    )
