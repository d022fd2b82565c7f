"""The traces of all ranks of a recording in one table, its messages matched and its collectives grouped."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from earlybird.data.recorded_rank import CALL, RECEIVED, SENT, Communicator
from earlybird.data.recorded_trace import RankTrace
from earlybird.data.recording import Recording

_FINALIZE = "MPI_Finalize"
# Blocking collectives by who waits for whom.
ALL_WAIT_FOR_ALL = frozenset(
    {
        "MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv",
        "MPI_Alltoallw", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block", _FINALIZE,
    }
)  # fmt: skip
WAIT_FOR_ROOT = frozenset({"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"})
ROOT_WAITS = frozenset({"MPI_Reduce", "MPI_Gather", "MPI_Gatherv"})
COLLECTIVES = ALL_WAIT_FOR_ALL | WAIT_FOR_ROOT | ROOT_WAITS
# Communicators that ranks do not name: none, and that of MPI_Finalize.
_NO_COMMUNICATOR, _WORLD = -1, -2


@dataclass(frozen=True, eq=False)
class Events:
    """Calls and messages of all ranks, by rank and then in the order of the rank: arrays of shape (N,).

    Attributes
    ----------
    names : of the calls, without the `_c` of large counts.
    rank, thread, call, role, peer, tag, calls, bytes, site : as in `RankTrace`; `call` is an index of
        `names`.
    communicator : the same number on all ranks; negative without one.
    begin_s, end_s : of the call, by the clock of the rank's host, or by a common one.
    """

    names: tuple[str, ...]
    rank: np.ndarray
    thread: np.ndarray
    call: np.ndarray
    role: np.ndarray
    communicator: np.ndarray
    peer: np.ndarray
    tag: np.ndarray
    calls: np.ndarray
    bytes: np.ndarray
    site: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)

    def shifted(self, by_s: Mapping[int, float]) -> "Events":
        """With `by_s` of each rank subtracted from its times."""
        shift_s = np.array([by_s[rank] for rank in range(int(self.rank.max(initial=-1)) + 1)])[self.rank]
        return replace(self, begin_s=self.begin_s - shift_s, end_s=self.end_s - shift_s)

    def is_call(self, names: frozenset[str]) -> np.ndarray:
        """(N,): is the call one of these?"""
        return np.array([name in names for name in self.names], bool)[self.call]


@dataclass(frozen=True, eq=False)
class Matches:
    """Messages of which both ends are in the traces.

    Attributes
    ----------
    sent, received : int64 (M,), places in the events.
    num_received : how many receives there are, with and without a partner.
    """

    sent: np.ndarray
    received: np.ndarray
    num_received: int


@dataclass(frozen=True, eq=False)
class Collective:
    """One call of a collective on all ranks of its communicator: `events` are places, `ranks` theirs, and
    `root` a rank, or negative."""

    name: str
    events: np.ndarray
    ranks: np.ndarray
    root: int


def events_of(recording: Recording, traces: Mapping[int, RankTrace]) -> Events:
    """All records of all traces."""
    numbers: dict[str, int] = {}
    of_communicators = _common_numbers(recording)
    parts: dict[str, list[np.ndarray]] = {}
    for rank, trace in sorted(traces.items()):
        one, rows = recording.ranks[rank], trace.records
        calls = [numbers.setdefault(name.removesuffix("_c"), len(numbers)) for name in one.calls]
        common = of_communicators[rank]
        numbers_here = np.array(
            [common.get(number, _NO_COMMUNICATOR) for number in rows["communicator"].tolist()]
        )
        columns = {
            "rank": np.full(len(rows), rank), "call": np.array(calls, np.int64)[rows["call"]],
            "communicator": numbers_here, "begin_s": trace.begin_s, "end_s": trace.end_s,
        } | {
            name: rows[name] for name in ("thread", "role", "peer", "tag", "calls", "bytes", "site")
        }  # fmt: skip
        for name, column in columns.items():
            parts.setdefault(name, []).append(column)
    types = {"site": np.uint64, "begin_s": float, "end_s": float}
    joined = {
        name: np.concatenate(
            [np.empty(0), *parts.get(name, [])], dtype=types.get(name, np.int64), casting="unsafe"
        )
        for name in Events.__dataclass_fields__
        if name != "names"
    }
    return Events(tuple(numbers), **joined)


def match_messages(events: Events, traces: Mapping[int, RankTrace], recording: Recording) -> Matches:
    """Sends with their receives: those of one pair, communicator and tag are received in the order sent.

    Counted from the beginning if both traces are whole, else from the end if both ranks reached the end of
    MPI_Finalize. Pairs with different bytes are left out: something was not recorded.
    """
    is_sent = (events.role == SENT) & (events.peer >= 0)
    is_received = (events.role == RECEIVED) & (events.peer >= 0)
    sent, received = np.flatnonzero(is_sent), np.flatnonzero(is_received)
    ends = np.concatenate([sent, received])
    src = np.where(is_sent[ends], events.rank[ends], events.peer[ends])
    dst = np.where(is_sent[ends], events.peer[ends], events.rank[ends])
    keys = np.column_stack([src, dst, events.communicator[ends], events.tag[ends]])
    key = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    size = _largest_rank(events) + 1
    is_whole, has_ended = _states(traces, recording, size)
    forward = is_whole[src] & is_whole[dst]
    usable = forward | (has_ended[src] & has_ended[dst])
    place = np.empty(len(ends), np.int64)
    split = len(sent)
    for part in (slice(None, split), slice(split, None)):
        place[part] = _places(key[part], ~forward[part])
    code = key * (place.max(initial=0) + 1) + place
    is_usable = np.split(usable, [split])
    sends, receives = (np.flatnonzero(part) for part in is_usable)
    _, in_sends, in_receives = np.intersect1d(
        code[:split][sends], code[split:][receives], assume_unique=True, return_indices=True
    )
    order = np.argsort(in_receives)
    found = np.column_stack([sent[sends][in_sends], received[receives][in_receives]])[order]
    is_same = events.bytes[found[:, 0]] == events.bytes[found[:, 1]]
    return Matches(found[is_same, 0], found[is_same, 1], len(received))


def collectives(events: Events, traces: Mapping[int, RankTrace], recording: Recording) -> list[Collective]:
    """The blocking collectives that all ranks of their communicator have in their traces.

    The k-th one on a communicator is the same on all of its ranks; counted from the end as in
    `match_messages`.
    """
    communicator = np.where(
        events.is_call(frozenset({_FINALIZE})) & (events.communicator < 0), _WORLD, events.communicator
    )
    chosen = np.flatnonzero(
        events.is_call(COLLECTIVES) & (events.role == CALL) & (communicator != _NO_COMMUNICATOR)
    )
    is_whole, has_ended = _states(traces, recording, _largest_rank(events) + 1)
    members = _members(recording)
    found = []
    for number in np.unique(communicator[chosen]).tolist():
        ranks = members[number]
        here = chosen[communicator[chosen] == number]
        if not all(rank in traces for rank in ranks) or len(ranks) < 2:
            continue
        forward = all(is_whole[rank] for rank in ranks)
        if not forward and not all(has_ended[rank] for rank in ranks):
            continue
        place = _places(events.rank[here], np.full(len(here), not forward))
        order = np.lexsort([events.rank[here], place])
        ordered = here[order]
        for group in np.split(ordered, np.flatnonzero(np.diff(place[order])) + 1):
            names = {events.names[call] for call in events.call[group].tolist()}
            if len(group) == len(ranks) and len(names) == 1:
                root = int(events.peer[group].max())
                found.append(Collective(names.pop(), group, events.rank[group], root))
    return found


def _largest_rank(events: Events) -> int:
    """The largest rank that an event names; -1 without one."""
    return int(max(events.rank.max(initial=-1), events.peer.max(initial=-1)))


def _states(
    traces: Mapping[int, RankTrace], recording: Recording, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """(size,) by rank: is its trace whole, and is there one of a rank that reached the end?"""
    is_whole, has_ended = np.zeros(size, bool), np.zeros(size, bool)
    for rank, trace in traces.items():
        if rank < size:
            is_whole[rank] = trace.is_whole
            has_ended[rank] = recording.ranks[rank].end == "finalize"
    return is_whole, has_ended


def _places(keys: np.ndarray, from_end: np.ndarray) -> np.ndarray:
    """(N,): how many rows with the same key come before each, or after it where `from_end`."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    counts = np.diff(np.append(starts, len(keys)))
    before = np.arange(len(keys)) - np.repeat(starts, counts)
    after = np.repeat(counts, counts) - 1 - before
    places = np.empty(len(keys), np.int64)
    places[order] = np.where(from_end[order], after, before)
    return places


_Identity = tuple[frozenset[tuple[int, ...]], str, str]


def _identities(communicators: Mapping[int, Communicator]) -> dict[int, tuple[_Identity, int]]:
    """By number, what is the same on all ranks of a communicator, and how many before it are alike."""
    seen: dict[_Identity, int] = {}
    found = {}
    for number, one in sorted(communicators.items()):
        identity = frozenset({tuple(one.members), tuple(one.remote_members)}), one.topology, one.name
        seen[identity] = seen.get(identity, -1) + 1
        found[number] = (identity, seen[identity])
    return found


def _common_numbers(recording: Recording) -> dict[int, dict[int, int]]:
    """By rank, and by the number of a communicator there: its number among those of all ranks."""
    common: dict[tuple[_Identity, int], int] = {}
    return {
        rank: {
            number: common.setdefault(identity, len(common))
            for number, identity in _identities(one.communicators).items()
        }
        for rank, one in recording.ranks.items()
    }


def _members(recording: Recording) -> dict[int, tuple[int, ...]]:
    """The ranks of each communicator by its common number."""
    members = {_WORLD: tuple(range(recording.size))}
    common = _common_numbers(recording)
    for rank, one in recording.ranks.items():
        for number, communicator in one.communicators.items():
            both = (*communicator.members, *communicator.remote_members)
            members[common[rank][number]] = tuple(sorted(both))
    return members
