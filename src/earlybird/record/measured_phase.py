"""What a recording says of a phase: its times, its exchange and its collectives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.data.phases import Phase
from earlybird.data.recorded_rank import CALL, CONCURRENT, RECEIVED, SENT, RankRecording
from earlybird.data.recording import Recording
from earlybird.patterns.recorded import exchange_of_phase

# Blocking collectives whose time is all inside the call, and the operation that models describe.
_OPERATIONS = {
    "MPI_Bcast": "bcast", "MPI_Reduce": "reduce", "MPI_Allreduce": "allreduce", "MPI_Allgather": "allgather",
    "MPI_Alltoall": "alltoall", "MPI_Gather": "gather", "MPI_Scatter": "scatter", "MPI_Barrier": "barrier",
}  # fmt: skip

_ROOTED = ("bcast", "reduce", "gather", "scatter")
_POLLS = (
    "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe", "MPI_Parrived",
    "MPI_Request_get_status",
)  # fmt: skip
# A rank that calls them more often than this, for each epoch and message, waits by them.
_MOST_POLLS = 2


@dataclass(frozen=True)
class RecordedCollective:
    """The calls of one collective on one communicator in a phase.

    Attributes
    ----------
    calls : of each rank in the run.
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

    @property
    def limits_s(self) -> tuple[float, ...]:
        """How much of the time its communication can have taken, the most likely limit first.

        A rank can leave a collective with a root long before it is complete, so there the rank that spends
        the least does not say how long the others waited.
        """
        return (self.mean_s, self.least_s) if self.operation in _ROOTED else (self.least_s,)


@dataclass(frozen=True)
class SharedCommunicator:
    """Messages of several threads of a rank on one communicator in a phase: of the rank with most of them.

    Attributes
    ----------
    threads : that send or receive on it.
    messages : that the busiest thread sends and receives in the run.
    size_bytes : the mean.
    rank, peer : of the pair with most of these messages.
    """

    threads: int
    messages: int
    size_bytes: float
    rank: int
    peer: int


class MeasuredPhase:
    """A phase of a recording, with times that are means over the ranks that take part in it.

    Times of threads that may be in the MPI at once are those of the thread with the longest time.
    """

    def __init__(self, recording: Recording, phase: Phase):
        self.recording, self.phase = recording, phase
        self.epochs = phase.epochs
        self.time_s = phase.time_s / len(phase.of_ranks)

    @cached_property
    def _entries(self) -> Mapping[int, np.ndarray]:
        return {
            rank: one.entries_of(self.phase.of_ranks[rank])
            for rank, one in self.recording.ranks.items()
            if rank in self.phase.of_ranks
        }

    @cached_property
    def _mpi_s(self) -> np.ndarray:
        """Seconds inside MPI calls by rank."""
        return np.array([
            1e-9 * float(busiest_thread(self.recording.ranks[rank], rows)["time_ns"].sum())
            for rank, rows in self._entries.items()
        ])  # fmt: skip

    @property
    def mpi_s(self) -> float:
        return float(self._mpi_s.mean())

    @cached_property
    def polls(self) -> bool:
        """Whether a rank waits by calling MPI_Test and the like again and again: also between the calls."""
        for rank, rows in self._entries.items():
            calls = self.recording.ranks[rank].calls
            is_poll = np.isin(rows["call"], [k for k, name in enumerate(calls) if name in _POLLS])
            once = self.phase.epochs_of[rank] + int(rows["messages"].sum())
            if int(rows["calls"][is_poll].sum()) > _MOST_POLLS * once:
                return True
        return False

    @property
    def most_communication_s(self) -> float:
        """The most of `time_s` that communication can have taken."""
        return self.time_s - self.least_s

    @property
    def least_s(self) -> float:
        """What remains without communication: the time outside MPI calls; nothing is known if ranks poll."""
        return 0.0 if self.polls else max(self.time_s - self.mpi_s, 0.0)

    @cached_property
    def exchange(self) -> Pattern | None:
        """The messages of one epoch; None without messages between ranks."""
        try:
            pattern = exchange_of_phase(self.recording, self.phase).pattern
        except InputError:  # too many messages
            pattern = exchange_of_phase(self.recording, self.phase, combined=True).pattern
        return pattern if len(pattern.bytes) else None

    @cached_property
    def combined_exchange(self) -> Pattern | None:
        """The same with one message for each pair; None if it is no other exchange."""
        if self.exchange is None:
            return None
        pattern = exchange_of_phase(self.recording, self.phase, combined=True).pattern
        return pattern if len(pattern.bytes) < len(self.exchange.bytes) else None

    def shared_communicator(self) -> SharedCommunicator | None:
        """The one with most messages that threads share; None if no two threads do."""
        found = [
            one
            for rank, rows in self._entries.items()
            if self.recording.ranks[rank].thread_level == CONCURRENT
            for one in _shared(rank, rows[np.isin(rows["role"], (SENT, RECEIVED)) & (rows["peer"] >= 0)])
        ]
        return max(found, key=lambda one: one.messages, default=None)

    @property
    def exchange_limits_s(self) -> tuple[float, ...]:
        """How much of `time_s` the exchange can have taken, the most likely limit first.

        Ranks that poll may wait between the calls too, or compute. What collectives took is theirs.
        """
        collective_s = sum(one.mean_s for one in self.collectives)
        limits_s = dict.fromkeys((self.most_communication_s, self.mpi_s))
        return tuple(max(limit_s - collective_s, 0.0) for limit_s in limits_s)

    @cached_property
    def collectives(self) -> list[RecordedCollective]:
        """The blocking collectives over intra-communicators, by time."""
        found: dict[tuple[str, tuple[int, ...]], dict[int, np.ndarray]] = {}
        for rank, rows in self._entries.items():
            one = self.recording.ranks[rank]
            for call in np.unique(rows["call"]).tolist():
                if one.calls[call] not in _OPERATIONS:
                    continue
                of_call = rows[(rows["call"] == call) & (rows["role"] == CALL)]
                for members, part in _by_members(one, of_call):
                    part = busiest_thread(one, part)
                    sums = [part[name].sum() for name in ("calls", "bytes", "time_ns")]
                    found.setdefault((one.calls[call], members), {})[rank] = np.array(sums, dtype=float)
        collectives = [
            _collective(_OPERATIONS[name], len(members), np.array(list(of_ranks.values())))
            for (name, members), of_ranks in found.items()
            if len(members) > 1
        ]
        return sorted(collectives, key=lambda one: -one.mean_s)


def _by_members(one: RankRecording, rows: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Entries on intra-communicators with the same members, as duplicates of one have."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    for number in np.unique(rows["communicator"]).tolist():
        communicator = one.communicators.get(number)
        if communicator is not None and not communicator.remote_members:
            numbers.setdefault(tuple(communicator.members), []).append(number)
    for members, alike in numbers.items():
        yield members, rows[np.isin(rows["communicator"], alike)]


def busiest_thread(one: RankRecording, rows: np.ndarray) -> np.ndarray:
    """The entries of the thread with most time, where threads may be in the MPI at once; else all."""
    if one.thread_level != CONCURRENT or not len(rows):
        return rows
    _, thread = np.unique(rows["thread"], return_inverse=True)
    return rows[thread == np.bincount(thread, rows["time_ns"]).argmax()]


def _shared(rank: int, rows: np.ndarray) -> Iterator[SharedCommunicator]:
    """The communicators on which several threads of a rank have `rows` of messages."""
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
    """`sums`: calls, bytes and nanoseconds of each rank that left a file."""
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
