"""Derives the collectives of a phase, and the communicators that its threads share, from a recording."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from earlybird.analysis.polling import busiest_thread
from earlybird.data.mpi_calls import OPERATIONS, base_name
from earlybird.data.phases import Phase
from earlybird.data.recorded_rank import CALL, CONCURRENT, RECEIVED, SENT, RankRecording
from earlybird.data.recording import Recording


@dataclass(frozen=True)
class RecordedCollective:
    """The calls of one collective on one communicator in a phase.

    Attributes
    ----------
    calls : number of calls of each rank in the run.
    size_bytes : the mean size, as the models count it: of the buffer, or of the block between two ranks.
    least_s, mean_s : time in all these calls of the rank that spends the least, which waits least for the
        others; and the mean over ranks.
    """

    operation: str
    ranks: int
    calls: int
    size_bytes: int
    least_s: float
    mean_s: float


@dataclass(frozen=True)
class SharedCommunicator:
    """The messages of several threads of a rank on one communicator in a phase, for the rank with most of
    them.

    Attributes
    ----------
    threads : number of threads that send or receive on it.
    messages : number of messages that the busiest thread sends and receives in the run.
    size_bytes : the mean size.
    rank, peer : the pair with most of these messages.
    """

    threads: int
    messages: int
    size_bytes: float
    rank: int
    peer: int


class MeasuredPhase:
    """A phase of a recording. Times of threads that may be in the MPI at once are those of the thread with
    the longest time."""

    def __init__(self, recording: Recording, phase: Phase):
        self.recording, self.phase = recording, phase

    @cached_property
    def _entries(self) -> Mapping[int, np.ndarray]:
        return {
            rank: one.entries_of(self.phase.of_ranks[rank])
            for rank, one in self.recording.ranks.items()
            if rank in self.phase.of_ranks
        }

    def shared_communicator(self) -> SharedCommunicator | None:
        """Return the communicator with most messages that threads share; None if no two threads share one."""
        found = [
            one
            for rank, rows in self._entries.items()
            if self.recording.ranks[rank].thread_level == CONCURRENT
            for one in _shared(rank, rows[np.isin(rows["role"], (SENT, RECEIVED)) & (rows["peer"] >= 0)])
        ]
        return max(found, key=lambda one: one.messages, default=None)

    @cached_property
    def collectives(self) -> list[RecordedCollective]:
        """The blocking collectives over intra-communicators, by time."""
        found: dict[tuple[str, tuple[int, ...]], dict[int, np.ndarray]] = {}
        for rank, rows in self._entries.items():
            one = self.recording.ranks[rank]
            for call in np.unique(rows["call"]).tolist():
                name = base_name(one.calls[call])
                if name not in OPERATIONS:
                    continue
                of_call = rows[(rows["call"] == call) & (rows["role"] == CALL)]
                for members, part in _by_members(one, of_call):
                    part = busiest_thread(one, part)
                    sums = [part[name].sum() for name in ("calls", "bytes", "time_ns")]
                    of_ranks = found.setdefault((name, members), {})
                    of_ranks[rank] = of_ranks.get(rank, 0) + np.array(sums, dtype=float)
        collectives = [
            _collective(OPERATIONS[name], len(members), np.array(list(of_ranks.values())))
            for (name, members), of_ranks in found.items()
            if len(members) > 1
        ]
        return sorted(collectives, key=lambda one: -one.mean_s)


def _by_members(one: RankRecording, rows: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the entries on intra-communicators with the same members, such as duplicates of one."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    for number in np.unique(rows["communicator"]).tolist():
        communicator = one.communicators.get(number)
        if communicator is not None and not communicator.remote_members:
            numbers.setdefault(tuple(communicator.members), []).append(number)
    for members, alike in numbers.items():
        yield members, rows[np.isin(rows["communicator"], alike)]


def _shared(rank: int, rows: np.ndarray) -> Iterator[SharedCommunicator]:
    """Yield the communicators on which several threads of a rank have `rows` of messages."""
    for number in np.unique(rows["communicator"]).tolist():
        part = rows[rows["communicator"] == number]
        threads, of_thread = np.unique(part["thread"], return_inverse=True)
        if len(threads) < 2:
            continue
        peers, of_peer = np.unique(part["peer"], return_inverse=True)
        yield SharedCommunicator(
            len(threads), int(np.bincount(of_thread, part["messages"]).max()),
            float(part["bytes"].sum()) / float(part["messages"].sum()), rank,
            int(peers[np.bincount(of_peer, part["messages"]).argmax()]),
        )  # fmt: skip


def _collective(operation: str, ranks: int, sums: np.ndarray) -> RecordedCollective:
    """Return the collective from `sums`: calls, bytes and nanoseconds of each rank that left a file."""
    calls, size, time_ns = sums.T
    mean_bytes = float(size.sum() / max(calls.sum(), 1))
    if operation in ("gather", "scatter"):
        # The root passes in the blocks of all ranks, each other one a block.
        block = mean_bytes * ranks / (2 * ranks - 1)
    elif operation == "alltoall":
        block = mean_bytes / ranks
    else:
        block = mean_bytes
    least_s, mean_s = 1e-9 * float(time_ns.min()), 1e-9 * float(time_ns.mean())
    return RecordedCollective(operation, ranks, int(np.median(calls)), round(block), least_s, mean_s)
