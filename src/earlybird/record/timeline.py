"""Draws runs over time: what the threads of a recorded or simulated run do, and how efficient they are."""

import numpy as np

from earlybird.data.simulated_program import (
    COMPUTING,
    ENDED,
    IN_MPI,
    RECORDED,
    TRANSFER,
    WAITING,
    Timeline,
    TimelineOfRun,
    WindowOfRun,
)
from earlybird.models.program import Operation
from earlybird.record.operations import NO_SITE, Operations

# Of a timeline: its threads, and the moments between which a thread has one state. Of the run: its windows.
MAX_THREADS, NUM_MOMENTS, NUM_WINDOWS = 32, 240, 20


def recorded_timeline(operations: Operations) -> TimelineOfRun:
    """Return what the threads did when the run was recorded: compute, or be in the MPI."""
    end_s = operations.recorded_end_s
    duration_s = np.maximum(end_s - _begin_s(operations, end_s), 0.0)
    is_compute, is_of_threads = operations.operation == Operation.COMPUTE, operations.is_of_threads
    waits = is_of_threads & (operations.site != NO_SITE)
    is_in_mpi = ~is_compute & ~is_of_threads
    parts_s = np.stack([duration_s * is_compute, duration_s * waits, duration_s * is_in_mpi])
    run_s = operations.recorded_s
    return _timeline(operations, end_s, parts_s, (COMPUTING, WAITING, IN_MPI), RECORDED, run_s)


def simulated_timeline(
    operations: Operations, end_s: np.ndarray, parts_s: np.ndarray, run: str
) -> TimelineOfRun:
    """Return what the threads of a simulated run do, by the `time_parts` of its operations."""
    run_s = float(end_s.max(initial=0.0))
    # A thread that has not begun does not wait.
    parts_s = np.where(operations.is_of_threads & (operations.site == NO_SITE), 0.0, parts_s)
    return _timeline(operations, end_s, parts_s, (COMPUTING, WAITING, TRANSFER), run, run_s)


def windows(operations: Operations, end_s: np.ndarray, parts_s: np.ndarray) -> list[WindowOfRun]:
    """Return the efficiencies of equal parts of a simulated run."""
    run_s = float(end_s.max(initial=0.0))
    if not run_s:
        return []
    edges_s = np.linspace(0.0, run_s, NUM_WINDOWS + 1)
    row = operations.row
    computing_s = np.zeros((int(row.max()) + 1, NUM_WINDOWS))
    for thread in range(len(row)):
        computing_s[row[thread]] += np.diff(_until(operations, thread, end_s, parts_s[0], edges_s))
    found = []
    ends_s = edges_s.tolist()
    for begin_s, until_s, of_threads_s in zip(ends_s[:-1], ends_s[1:], computing_s.T, strict=True):
        mean_s, most_s = float(of_threads_s.mean()), float(of_threads_s.max())
        found.append(
            WindowOfRun(
                begin_s, until_s, min(mean_s / (until_s - begin_s), 1.0),
                min(mean_s / most_s, 1.0) if most_s else 1.0,
            )
        )  # fmt: skip
    return found


def _begin_s(operations: Operations, end_s: np.ndarray) -> np.ndarray:
    """Return when each operation begins: when the one before it in its thread ends."""
    begin_s = np.zeros(len(end_s))
    begin_s[1:] = end_s[:-1]
    first = operations.first[:-1]
    begin_s[first[np.diff(operations.first) > 0]] = 0.0
    return begin_s


def _until(
    operations: Operations, thread: int, end_s: np.ndarray, part_s: np.ndarray, moments_s: np.ndarray
) -> np.ndarray:
    """Return the seconds of a part of the time of a thread until each moment."""
    here = slice(operations.first[thread], operations.first[thread + 1])
    sums_s = np.concatenate([[0.0], np.cumsum(part_s[here])])
    ends_s = np.concatenate([[0.0], np.maximum.accumulate(end_s[here])])
    return np.interp(moments_s, ends_s, sums_s)


def _timeline(
    operations: Operations,
    end_s: np.ndarray,
    parts_s: np.ndarray,
    states: tuple[str, ...],
    run: str,
    run_s: float,
) -> TimelineOfRun:
    edges_s = np.linspace(0.0, run_s, NUM_MOMENTS + 1)
    threads = []
    row = operations.row
    _, first = np.unique(row, return_index=True)
    rank_of_row = operations.thread_rank[first]
    for number in range(min(len(rank_of_row), MAX_THREADS)):
        rank = int(rank_of_row[number])
        thread = number - int(np.searchsorted(rank_of_row, rank))
        # Threads that follow each other are shown as one.
        spent_s = np.zeros((len(parts_s), NUM_MOMENTS))
        for one in np.flatnonzero(row == number).tolist():
            spent_s += [np.diff(_until(operations, one, end_s, part_s, edges_s)) for part_s in parts_s]
        most = np.where(spent_s.max(axis=0) > 0, spent_s.argmax(axis=0), len(states))
        begins = np.flatnonzero(np.diff(most, prepend=-1))
        threads.append(
            Timeline(
                rank, thread, tuple(round(float(edges_s[k]), 9) for k in begins),
                tuple((*states, ENDED)[most[k]] for k in begins),
            )
        )  # fmt: skip
    return TimelineOfRun(run, run_s, tuple(threads))
