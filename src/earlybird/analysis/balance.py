"""Determines how evenly the ranks of a recorded program compute."""

import numpy as np

from earlybird.analysis.polling import busiest_thread, has_several_threads, polls
from earlybird.data.phases import find_phases
from earlybird.data.recording import MIN_CORE_WAIT, Recording
from earlybird.data.work_balance import WorkBalance

# Of the run: phases in which ranks poll and that take less than this do not hide who computes.
_MIN_POLLING = 0.02
# Where ranks waited for cores, the rank that is longest outside the MPI exceeds the mean by more than this
# before it counts as uneven work. Ranks that do the same differ by up to 40 % in one of the two estimates
# below, but in both by more than this in 1 of 24 runs of 0.3 s, with 3 or 4 ranks on 2 cores and three MPIs.
_MIN_EXCESS = 0.1


def outside_mpi_s(recording: Recording) -> np.ndarray:
    """Return the seconds outside MPI calls from MPI_Init to the end, for each rank that left a file."""
    outside = []
    for one in recording.ranks.values():
        is_init = np.isin(one.entries["call"], [k for k, name in enumerate(one.calls) if "MPI_Init" in name])
        rows = busiest_thread(one, one.entries[~is_init])
        outside.append(max(one.run_s - 1e-9 * float(rows["time_ns"].sum()), 0.0))
    return np.array(outside)


def work_balance(recording: Recording) -> WorkBalance | None:
    """Compare the rank that is longest outside the MPI with the mean over ranks.

    A rank that waited for a core did so in the MPI or outside of it, which is not recorded. The saving of
    even work therefore lies between two bounds; it is unknown if these are far apart.

    Returns None if the work is unknown: with one rank, if some ranks left no file or ended early, if they
    wait by polling, if several threads of a rank call the MPI, or if the waiting for cores hides which rank
    computes longest.
    """
    if recording.size < 2 or recording.missing or recording.ended_early:
        return None
    if any(map(has_several_threads, recording.ranks.values())) or _polls(recording):
        return None
    outside_s = outside_mpi_s(recording)
    most = int(np.argmax(outside_s))
    balance = WorkBalance(list(recording.ranks)[most], float(outside_s[most]), float(outside_s.mean()))
    waited = recording.core_wait_share or 0.0
    return balance if waited < MIN_CORE_WAIT else _between_bounds(recording, outside_s, balance)


def _between_bounds(recording: Recording, outside_s: np.ndarray, balance: WorkBalance) -> WorkBalance | None:
    """Return the balance with bounds of the saving of even work, or without a number; None if even the rank
    is unknown."""
    run_s = np.array([max(one.run_s, 1e-9) for one in recording.ranks.values()])
    core_wait_s = _core_wait_s(recording)
    most = int(np.argmax(outside_s))
    least_s = np.maximum(outside_s - core_wait_s, 0.0)
    most_saved_s = _saved_s(most, outside_s[most], least_s)
    least_saved_s = _saved_s(most, least_s[most], outside_s)
    waited = recording.core_wait_share or 0.0
    if 2 * least_saved_s >= most_saved_s:
        return WorkBalance(balance.rank, balance.most_s, balance.mean_s, waited, least_saved_s, most_saved_s)
    # As if ranks waited for cores in the MPI alone, and as if they did so in the MPI and outside of it alike.
    estimates_s = outside_s, outside_s * (1 - core_wait_s / run_s)
    if any(
        int(np.argmax(estimate_s)) != most or estimate_s[most] <= (1 + _MIN_EXCESS) * estimate_s.mean()
        for estimate_s in estimates_s
    ):
        return None
    return WorkBalance(balance.rank, balance.most_s, balance.mean_s, waited)


def _saved_s(most: int, most_s: float, others_s: np.ndarray) -> float:
    """Return how much less the rank `most` would compute if all had the mean."""
    return max(float(most_s - np.append(np.delete(others_s, most), most_s).mean()), 0.0)


def _core_wait_s(recording: Recording) -> np.ndarray:
    """Return how long each rank waited for a core; the value of the other ranks where it is unknown."""
    waited = recording.core_wait_share or 0.0
    return np.array([
        min(waited * one.run_s if one.core_wait_s is None else one.core_wait_s, one.run_s)
        for one in recording.ranks.values()
    ])  # fmt: skip


def _polls(recording: Recording) -> bool:
    """Return whether ranks wait by polling in phases that take a share of the run: between the calls they
    compute or wait."""
    run_s = sum(one.run_s for one in recording.ranks.values())
    return any(
        phase.time_s >= _MIN_POLLING * run_s and polls(recording, phase) for phase in find_phases(recording)
    )
