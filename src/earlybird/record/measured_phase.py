"""Derives the times, the exchange and the collectives of a phase from a recording."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from earlybird.analysis.polling import busiest_thread, polls
from earlybird.data.errors import InputError
from earlybird.data.mpi_calls import BLOCKING_RECEIVES, OPERATIONS, SENDS, STARTS, base_name
from earlybird.data.pattern import Pattern
from earlybird.data.phases import Phase
from earlybird.data.recorded_rank import CALL, CONCURRENT, RECEIVED, SENT, RankRecording
from earlybird.data.recording import Recording
from earlybird.patterns.recorded_epochs import exchanges_of_phase

# Of more different exchanges of a phase, as many are drawn: each is predicted for itself.
_MAX_EXCHANGES = 16

# Numbers of epochs that differ by less make an error of the same size, far below those of the models.
_MAX_UNEQUAL = 0.02

_ROOTED = ("bcast", "reduce", "gather", "scatter")


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

    @property
    def limits_s(self) -> tuple[float, ...]:
        """The possible times of its communication, the most likely limit first.

        A rank can leave a collective with a root long before it is complete, so there the rank that spends
        the least does not show how long the others waited.
        """
        return (self.mean_s, self.least_s) if self.operation in _ROOTED else (self.least_s,)


@dataclass(frozen=True, eq=False)
class PhaseExchange:
    """The exchanges in the epochs of a phase: distinct exchanges, and their shares of the epochs."""

    patterns: tuple[Pattern, ...]
    shares: tuple[float, ...]

    @property
    def num_messages(self) -> float:
        """The mean number of messages over epochs."""
        return sum(
            share * len(pattern.bytes) for pattern, share in zip(self.patterns, self.shares, strict=True)
        )

    @property
    def mean_bytes(self) -> float:
        """The mean size over all messages."""
        totals = [float(pattern.bytes.sum()) for pattern in self.patterns]
        total = sum(share * size for size, share in zip(totals, self.shares, strict=True))
        return total / max(self.num_messages, 1e-300)

    def combined(self) -> "PhaseExchange":
        """Return the exchanges with one message for each pair."""
        return PhaseExchange(tuple(map(_combined, self.patterns)), self.shares)


def _combined(pattern: Pattern) -> Pattern:
    pairs, place = np.unique(np.column_stack([pattern.src, pattern.dst]), axis=0, return_inverse=True)
    sums = np.zeros(len(pairs), np.int64)
    np.add.at(sums, place.reshape(-1), pattern.bytes)
    return Pattern(pairs[:, 0], pairs[:, 1], sums)


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
        """The seconds inside MPI calls by rank."""
        return np.array([
            1e-9 * float(busiest_thread(self.recording.ranks[rank], rows)["time_ns"].sum())
            for rank, rows in self._entries.items()
        ])  # fmt: skip

    @property
    def mpi_s(self) -> float:
        return float(self._mpi_s.mean())

    @cached_property
    def polls(self) -> bool:
        """True if a rank waits by calling MPI_Test and similar functions repeatedly: it also waits between
        the calls."""
        return polls(self.recording, self.phase)

    @property
    def most_communication_s(self) -> float:
        """The maximum of `time_s` that communication can have taken."""
        return self.time_s - self.least_s

    @property
    def least_s(self) -> float:
        """The time that remains without communication: that outside MPI calls; 0 if ranks poll."""
        return 0.0 if self.polls else max(self.time_s - self.mpi_s, 0.0)

    @cached_property
    def has_messages(self) -> bool:
        """True if a rank sends to another rank."""
        sent = self.phase.sent(self.recording)
        return bool((sent.src != sent.dst).any())

    @cached_property
    def exchange(self) -> PhaseExchange | None:
        """The messages of the epochs; None without messages between ranks. Raises InputError if they are not
        known."""
        try:
            exchange = self._exchange(combined=False)
        except InputError:  # too many messages
            exchange = self._exchange(combined=True)
        return exchange if exchange.num_messages else None

    def _exchange(self, *, combined: bool) -> PhaseExchange:
        made = exchanges_of_phase(self.recording, self.phase, combined=combined)
        if made.most_epochs - made.least_epochs > _MAX_UNEQUAL * made.most_epochs:
            # A rank sends its part as often as it goes through the phase: that is no number of exchanges.
            epochs = self.phase.epochs_of.values()
            raise InputError(f"ranks go through it {min(epochs)} to {max(epochs)} times")
        drawn = made.drawn(_MAX_EXCHANGES)
        patterns = tuple(made.exchange(number).pattern for number, _ in drawn)
        return PhaseExchange(patterns, tuple(share for _, share in drawn))

    @cached_property
    def combined_exchange(self) -> PhaseExchange | None:
        """The exchange with one message for each pair; None if it is the same exchange, or if the program may
        not know a message before it has received another one."""
        if self.exchange is None or not self._sends_are_independent:
            return None
        combined = self.exchange.combined()
        return combined if combined.num_messages < self.exchange.num_messages else None

    @cached_property
    def _sends_are_independent(self) -> bool:
        """True if all messages of an epoch are started and then completed, without a receive that returns
        between two sends; false for a cut of blocking calls without end."""
        calls = set(map(base_name, self.phase.calls))
        received_by = {
            base_name(self.recording.ranks[rank].calls[call])
            for rank, rows in self._entries.items()
            for call in np.unique(rows["call"][(rows["role"] == RECEIVED)]).tolist()
        }
        return bool(calls & STARTS) and not received_by & BLOCKING_RECEIVES

    @cached_property
    def mean_sent_bytes(self) -> float:
        """The mean size of messages to single ranks, outside collectives; 0 without messages."""
        messages, size_bytes = 0, 0
        for rank, rows in self._entries.items():
            sends = [k for k, name in enumerate(self.recording.ranks[rank].calls) if base_name(name) in SENDS]
            part = rows[(rows["role"] == SENT) & np.isin(rows["call"], sends)]
            messages += int(part["messages"].sum())
            size_bytes += int(part["bytes"].sum())
        return size_bytes / messages if messages else 0.0

    def shared_communicator(self) -> SharedCommunicator | None:
        """Return the communicator with most messages that threads share; None if no two threads share one."""
        found = [
            one
            for rank, rows in self._entries.items()
            if self.recording.ranks[rank].thread_level == CONCURRENT
            for one in _shared(rank, rows[np.isin(rows["role"], (SENT, RECEIVED)) & (rows["peer"] >= 0)])
        ]
        return max(found, key=lambda one: one.messages, default=None)

    @property
    def exchange_limits_s(self) -> tuple[float, ...]:
        """The possible values of the exchange's part of `time_s`, the most likely limit first.

        Ranks that poll may wait between the calls too, or compute. The time of collectives is excluded.
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
