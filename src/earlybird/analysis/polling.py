"""Ranks that wait by calling MPI_Test and the like, and ranks of which several threads call the MPI."""

import numpy as np

from earlybird.data.mpi_calls import POLLS, base_name
from earlybird.data.phases import Phase
from earlybird.data.recorded_rank import CONCURRENT, RankRecording
from earlybird.data.recording import Recording

# A rank that calls them more often than this, for each epoch and message, waits by them.
_MAX_POLLS = 2


def polls(recording: Recording, phase: Phase) -> bool:
    """Return whether a rank waits by calling MPI_Test and similar functions repeatedly: it also waits between
    the calls."""
    for rank, numbers in phase.of_ranks.items():
        if rank not in recording.ranks:
            continue
        one = recording.ranks[rank]
        rows = one.entries_of(numbers)
        is_poll = np.isin(rows["call"], [k for k, name in enumerate(one.calls) if base_name(name) in POLLS])
        once = phase.epochs_of[rank] + int(rows["messages"].sum())
        if int(rows["calls"][is_poll].sum()) > _MAX_POLLS * once:
            return True
    return False


def busiest_thread(one: RankRecording, rows: np.ndarray) -> np.ndarray:
    """Return the entries of the thread with most time, if threads may be in the MPI at once; otherwise
    all."""
    if one.thread_level != CONCURRENT or not len(rows):
        return rows
    _, thread = np.unique(rows["thread"], return_inverse=True)
    entries: np.ndarray = rows[thread == np.bincount(thread, rows["time_ns"]).argmax()]
    return entries


def has_several_threads(one: RankRecording) -> bool:
    """Return whether several threads of the rank call the MPI, possibly at once."""
    return one.thread_level == CONCURRENT and len(np.unique(one.entries["thread"])) > 1
