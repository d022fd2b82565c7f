"""Joins the traces of all ranks of a recording in one table; matches messages and groups collectives."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from earlybird.data.mpi_calls import POLLS
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT, Communicator
from earlybird.data.recorded_trace import COMPLETION, RankTrace, role_and_kind
from earlybird.data.recording import Recording

_FINALIZE, FENCE = "MPI_Finalize", "MPI_Win_fence"
# Blocking collectives by who waits for whom.
ALL_WAIT_FOR_ALL = frozenset(
    {
        "MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv",
        "MPI_Alltoallw", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block", FENCE, _FINALIZE,
    }
)  # fmt: skip
WAIT_FOR_ROOT = frozenset({"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"})
ROOT_WAITS = frozenset({"MPI_Reduce", "MPI_Gather", "MPI_Gatherv"})
PARTITIONED = frozenset({"MPI_Psend_init", "MPI_Precv_init"})
COLLECTIVES = ALL_WAIT_FOR_ALL | WAIT_FOR_ROOT | ROOT_WAITS
# Those that begin in one call and are complete in another one, and the blocking ones that do the same.
IMMEDIATE = {f"MPI_I{name[4:].lower()}": name for name in COLLECTIVES - {FENCE, _FINALIZE}}
# Communicators that ranks do not name: none, and that of MPI_Finalize.
NO_COMMUNICATOR, _WORLD = -1, -2


@dataclass(frozen=True, eq=False)
class Events:
    """The calls and messages of all ranks, by rank and then in the order of the rank: arrays of shape (N,).

    Attributes
    ----------
    names : names of the calls, without the `_c` of large counts.
    rank, thread, call, role, kind, peer, tag, order, request, calls, bytes, site : as in `RankTrace`; `call`
        is an index of `names`.
    communicator : the same number on all ranks; negative without a communicator. That of a fence stands for
        all communicators with its ranks.
    begin_s, end_s : begin and end of the call, by the clock of the rank's host, or by a common clock.
    posted_s : when the request of a message received or of a COMPLETION was posted, by the same clock; NaN if
        there is no request, or if that is not known.
    """

    names: tuple[str, ...]
    rank: np.ndarray
    thread: np.ndarray
    call: np.ndarray
    role: np.ndarray
    communicator: np.ndarray
    peer: np.ndarray
    tag: np.ndarray
    kind: np.ndarray
    order: np.ndarray
    request: np.ndarray
    calls: np.ndarray
    bytes: np.ndarray
    site: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray
    posted_s: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)

    def shifted(self, by_s: Mapping[int, float]) -> "Events":
        """Return the events with `by_s` of each rank, by default 0, subtracted from its times."""
        num = int(self.rank.max(initial=-1)) + 1
        shift_s = np.array([by_s.get(rank, 0.0) for rank in range(num)])[self.rank]
        times = {name: getattr(self, name) - shift_s for name in ("begin_s", "end_s", "posted_s")}
        return replace(self, **times)

    def is_call(self, names: frozenset[str]) -> np.ndarray:
        """Return a boolean array (N,), true for calls in `names`."""
        is_named: np.ndarray = np.array([name in names for name in self.names], bool)[self.call]
        return is_named


@dataclass(frozen=True, eq=False)
class Matches:
    """The messages that have both ends in the traces.

    Attributes
    ----------
    sent, received : int64 (M,), positions in the events.
    num_received : number of receives, with and without a partner.
    """

    sent: np.ndarray
    received: np.ndarray
    num_received: int


@dataclass(frozen=True, eq=False)
class Counted:
    """What is matched in order, of events of which others have been left out: arrays (N,).

    Attributes
    ----------
    before : of all events of the rank that are matched in one order with this one, such as its sends to one
        rank with one tag, how many precede it in this order, also of those that have been left out.
    total : how many these are.
    """

    before: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, by_rank: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> "Counted":
        """Return both of the events of all ranks, in the order of `events_of`."""
        columns = zip(*(by_rank[rank] for rank in sorted(by_rank)), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def places(self, events: np.ndarray, from_end: np.ndarray) -> np.ndarray:
        """Return the place of each of the `events`, counted from the end where `from_end`."""
        before = self.before[events]
        return np.where(from_end, self.total[events] - 1 - before, before)


@dataclass(frozen=True, eq=False)
class Collective:
    """A call of a collective on all ranks of its communicator: `events` are positions, `ranks` their ranks,
    and `root` a rank, or negative."""

    name: str
    events: np.ndarray
    ranks: np.ndarray
    root: int


def events_of(recording: Recording, traces: Mapping[int, RankTrace]) -> Events:
    """Return all records of all traces."""
    numbers: dict[str, int] = {}
    of_communicators, of_groups = _common_numbers(recording), _group_numbers(recording)
    parts: dict[str, list[np.ndarray]] = {}
    for rank, trace in sorted(traces.items()):
        one, rows = recording.ranks[rank], trace.records
        calls = [numbers.setdefault(name.removesuffix("_c"), len(numbers)) for name in one.calls]
        # A window is recorded with any communicator of its ranks, which may be another one on each.
        fences = np.array([name == FENCE for name in one.calls], bool)[rows["call"]]
        common = np.where(
            fences, _numbered(rows["communicator"], of_groups[rank]),
            _numbered(rows["communicator"], of_communicators[rank]),
        )  # fmt: skip
        fields = ("thread", "role", "kind", "peer", "tag", "order", "site")
        columns = {
            "rank": np.full(len(rows), rank), "call": np.array(calls, np.int64)[rows["call"]],
            "communicator": common, "calls": trace.calls, "bytes": trace.bytes,
            "begin_s": trace.begin_s, "end_s": trace.end_s, "posted_s": trace.posted_s,
            "request": trace.request,
        } | {name: rows[name] for name in fields}  # fmt: skip
        for name, column in columns.items():
            parts.setdefault(name, []).append(column)
    types = {"site": np.uint64, "begin_s": float, "end_s": float, "posted_s": float}
    joined = {
        name: np.concatenate(
            [np.empty(0), *parts.get(name, [])], dtype=types.get(name, np.int64), casting="unsafe"
        )
        for name in Events.__dataclass_fields__
        if name != "names"
    }
    return Events(tuple(numbers), **joined)


def _numbered(numbers: np.ndarray, common: Mapping[int, int]) -> np.ndarray:
    """Return the common numbers of communicators; NO_COMMUNICATOR where there is none."""
    distinct, place = np.unique(numbers, return_inverse=True)
    return np.array([common.get(number, NO_COMMUNICATOR) for number in distinct.tolist()], np.int64)[
        place.reshape(-1)
    ]


def match_messages(
    events: Events,
    traces: Mapping[int, RankTrace],
    recording: Recording,
    counted: Counted | None = None,
) -> Matches:
    """Return sends with their receives: the messages of one pair, communicator and tag are received in the
    order sent.

    They are counted from the beginning if both traces are whole, otherwise from the end if both ranks reached
    the end of MPI_Finalize. Messages of different bytes are omitted, and in whole traces of ranks that
    reached it, tags with more sends than receives: something was not recorded. Partitioned transfers and
    blocks of collectives are omitted, too.
    """
    is_message = (events.peer >= 0) & (events.tag >= 0) & ~events.is_call(PARTITIONED)
    is_message &= events.kind != COMPLETION
    received = np.flatnonzero(is_message & (events.role == RECEIVED))
    is_known = is_message & (events.communicator >= 0)
    # Receives in the order in which the MPI matches them, which is not that of their ends.
    order = np.lexsort([events.order[received], events.rank[received]])
    ends = np.concatenate([np.flatnonzero(is_known & (events.role == SENT)), received[order]])
    ends = ends[is_known[ends]]
    is_sent = events.role[ends] == SENT
    src = np.where(is_sent, events.rank[ends], events.peer[ends])
    dst = np.where(is_sent, events.peer[ends], events.rank[ends])
    key = row_numbers(src, dst, events.communicator[ends], events.tag[ends])
    is_whole, has_ended = _states(traces, recording, _largest_rank(events) + 1)
    forward = is_whole[src] & is_whole[dst]
    num_sent, num_received = (np.bincount(key[part], minlength=len(key)) for part in (is_sent, ~is_sent))
    place = np.empty(len(ends), np.int64)
    for part, num in ((is_sent, num_sent), (~is_sent, num_received)):
        if counted is None:
            place[part] = _places(key[part], ~forward[part])
        else:
            place[part] = counted.places(ends[part], ~forward[part])
            num[key[part]] = counted.total[ends[part]]
    has_both_ends = has_ended[src] & has_ended[dst]
    usable = np.where(forward, (num_sent[key] == num_received[key]) | ~has_both_ends, has_both_ends)
    code = key * (place.max(initial=0) + 1) + place
    sends, receives = np.flatnonzero(is_sent & usable), np.flatnonzero(~is_sent & usable)
    _, of_sends, of_receives = np.intersect1d(
        code[sends], code[receives], assume_unique=True, return_indices=True
    )
    found = np.column_stack([ends[sends][of_sends], ends[receives][of_receives]])
    found = found[np.argsort(found[:, 1])]
    is_same = events.bytes[found[:, 0]] == events.bytes[found[:, 1]]
    return Matches(found[is_same, 0], found[is_same, 1], len(received))


def collectives(
    events: Events,
    traces: Mapping[int, RankTrace],
    recording: Recording,
    names: frozenset[str] = COLLECTIVES,
    counted: Counted | None = None,
    partial: list[Collective] | None = None,
) -> list[Collective]:
    """Return the collectives of `names`, the blocking ones by default, that all ranks of their
    intra-communicator have in their traces. Non-blocking ones are their starts.

    The k-th collective on a communicator is the same on all of its ranks; it is counted from the end as in
    `match_messages`. Fences are counted separately, those of all windows with the same ranks together.
    Those of which the events of some ranks were left out or overwritten are added to `partial`.
    """
    communicator = np.where(
        events.is_call(frozenset({_FINALIZE})) & (events.communicator < 0), _WORLD, events.communicator
    )
    members = _members(recording)
    chosen = np.flatnonzero(events.is_call(names) & (events.role == CALL) & (events.kind != COMPLETION))
    chosen = chosen[np.argsort(communicator[chosen], kind="stable")]
    is_whole, has_ended = _states(traces, recording, max(_largest_rank(events) + 1, recording.size))
    has_trace = np.isin(np.arange(len(is_whole)), list(traces))
    found: list[Collective] = []
    for here in np.split(chosen, np.flatnonzero(np.diff(communicator[chosen])) + 1):
        ranks = members.get(int(communicator[here[0]]), ()) if len(here) else ()
        if len(ranks) < 2 or not has_trace[ranks].all():
            continue
        forward = bool(is_whole[ranks].all())
        if not forward and not has_ended[ranks].all():
            continue
        from_end = np.full(len(here), not forward)
        place = _places(events.rank[here], from_end) if counted is None else counted.places(here, from_end)
        order = np.lexsort([events.rank[here], place])
        ordered = here[order]
        for group in np.split(ordered, np.flatnonzero(np.diff(place[order])) + 1):
            called = {events.names[call] for call in np.unique(events.call[group]).tolist()}
            into = found if len(group) == len(ranks) else partial
            if into is not None and len(called) == 1:
                root = int(events.peer[group].max())
                into.append(Collective(called.pop(), group, events.rank[group], root))
    return found


class Matching:
    """Finds what in the trace of a rank is matched in one order, from its records as they are in the file."""

    def __init__(self, recording: Recording):
        of_communicators, of_groups = _common_numbers(recording), _group_numbers(recording)
        numbers = {rank: (of_communicators[rank], of_groups[rank]) for rank in recording.ranks}
        # Numbers from 1; 0: none.
        self._common = {
            rank: tuple(_table({k: of + 3 for k, of in common.items()}) for common in both)
            for rank, both in numbers.items()
        }
        self._flags = {
            rank: tuple(_is_named(one.calls, names) for names in _MATCHED_CALLS)
            for rank, one in recording.ranks.items()
        }
        self._num_ranks = recording.size
        largest = max((int(table.max()) for both in self._common.values() for table in both), default=0)
        # Whether a key, with a tag of 31 bits, fits into an integer.
        self.has_keys = (largest + 1) * max(self._num_ranks, 1) < 2**29

    def keys(
        self, rank: int, rows: np.ndarray, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the places of the rows that are matched in some order, what each of them has in common with
        those that are matched in the same order, and its place in this order."""
        is_partitioned, is_fence, is_finalize, is_blocking, is_immediate = self._flags[rank]
        call, number = rows["call"], rows["what"] & 0xFFFFFF
        role, kind = role_and_kind(rows)
        of_communicators, of_groups = self._common[rank]
        common = _looked_up(of_communicators, number)
        is_message = (role == SENT) | (role == RECEIVED)
        is_message &= (rows["peer"] >= 0) & (rows["peer"] < self._num_ranks) & (rows["tag"] >= 0)
        is_message &= ~is_partitioned[call] & (kind != COMPLETION) & (common > 0)
        of_calls = (role == CALL) & (kind != COMPLETION)
        blocking, immediate = of_calls & is_blocking[call], of_calls & is_immediate[call]
        fences = blocking & is_fence[call]
        common[fences] = _looked_up(of_groups, number[fences])
        common[blocking & is_finalize[call] & (common == 0)] = _WORLD + 3
        place = np.flatnonzero(is_message | (blocking | immediate))
        message = is_message[place]
        which = np.where(message, role[place] == SENT, 2 + immediate[place]).astype(np.int64)
        peer = np.where(message, rows["peer"][place], 0).astype(np.int64)
        tag = np.where(message, rows["tag"][place], 0).astype(np.int64)
        key = ((common[place] * self._num_ranks + peer) << 31 | tag) << 2 | which
        # Receives in the order in which they were posted, see `match_messages`.
        is_received = message & (which == 0)
        order = np.where(is_received, rows["request"][place], numbers[place]).astype(np.int64)
        return place, key, order


_MATCHED_CALLS = (
    PARTITIONED, frozenset({FENCE}), frozenset({_FINALIZE}), COLLECTIVES, frozenset(IMMEDIATE)
)  # fmt: skip


def _is_named(calls: Sequence[str], names: frozenset[str]) -> np.ndarray:
    return np.array([name.removesuffix("_c") in names for name in calls], bool)


def _table(numbers: Mapping[int, int]) -> np.ndarray:
    """Return the numbers by position, 0 where there is none."""
    table = np.zeros(max(numbers, default=0) + 1, np.int64)
    table[list(numbers)] = list(numbers.values())
    return table


def _looked_up(table: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    found: np.ndarray = table[np.minimum(numbers, len(table) - 1)]
    return np.where(numbers < len(table), found, 0)


def _largest_rank(events: Events) -> int:
    """Return the largest rank that an event names; -1 if there is none."""
    return int(max(events.rank.max(initial=-1), events.peer.max(initial=-1)))


def _states(
    traces: Mapping[int, RankTrace], recording: Recording, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (size,) by rank: whether its trace is whole, and whether the rank has a trace and
    reached the end."""
    is_whole, has_ended = np.zeros(size, bool), np.zeros(size, bool)
    for rank, trace in traces.items():
        if rank < size:
            is_whole[rank] = trace.is_whole
            has_ended[rank] = recording.ranks[rank].end == "finalize" and not trace.is_cut
    return is_whole, has_ended


def _places(keys: np.ndarray, from_end: np.ndarray) -> np.ndarray:
    """Return an array (N,) of how many rows with the same key precede each, or follow it where `from_end`."""
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


_Identity = tuple[frozenset[Sequence[int]], str, str, int | None]


def _looks(one: Communicator) -> _Identity:
    """Return the properties of a communicator that are the same on all ranks, and on its duplicates."""
    return frozenset({one.members, one.remote_members}), one.topology, one.name, None


def _identity(one: Communicator, unidentified: Set[_Identity]) -> _Identity:
    """Return a key that is the same on all ranks of a communicator; it includes `_looks` for communicators
    without an identity."""
    looks = _looks(one)
    return looks if looks in unidentified else (looks[0], "", "", one.identity)


def _common_numbers(recording: Recording) -> dict[int, dict[int, int]]:
    """Return, by rank and by the number of a communicator there, its number among those of all ranks.

    Ranks number communicators when they first use them. If their identities are not known, communicators of
    which a rank has several that look alike, such as duplicates without names, cannot be distinguished and
    are omitted. What one rank does not know of a communicator, another rank may know: it is used where all
    ranks know it of all communicators that look alike.
    """
    unidentified = {
        _looks(communicator)
        for one in recording.ranks.values()
        for communicator in one.communicators.values()
        if communicator.identity is None
    }
    identities = {
        rank: {
            number: _identity(communicator, unidentified)
            for number, communicator in one.communicators.items()
        }
        for rank, one in recording.ranks.items()
    }
    ambiguous = {
        identity
        for of_rank in identities.values()
        for identity, count in Counter(of_rank.values()).items()
        if count > 1 and identity[-1] is None
    }
    common: dict[_Identity, int] = {}
    return {
        rank: {
            number: 2 * common.setdefault(identity, len(common))
            for number, identity in of_rank.items()
            if identity not in ambiguous
        }
        for rank, of_rank in identities.items()
    }


def _group_numbers(recording: Recording) -> dict[int, dict[int, int]]:
    """Return, by rank and by the number of a communicator there, a number for all communicators with its
    ranks."""
    groups: dict[Sequence[int], int] = {}
    return {
        rank: {
            number: 2 * groups.setdefault(tuple(communicator.members), len(groups)) + 1
            for number, communicator in one.communicators.items()
            if not communicator.remote_members
        }
        for rank, one in recording.ranks.items()
    }


def _members(recording: Recording) -> dict[int, list[int]]:
    """Return the ranks of each intra-communicator, and of each group, by its common number."""
    members = {_WORLD: list(range(recording.size))}
    for of_ranks in (_common_numbers(recording), _group_numbers(recording)):
        for rank, one in recording.ranks.items():
            for number, communicator in one.communicators.items():
                known = of_ranks[rank].get(number)
                if known is not None and known not in members and not communicator.remote_members:
                    members[known] = sorted(communicator.members)
    return members


def row_numbers(*columns: np.ndarray) -> np.ndarray:
    """Return for each row of the columns, (N,) each, the place of its values among the distinct rows in
    ascending order: as `np.unique` of rows, which compares them byte by byte and is slower by far."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct, place = np.unique(column, return_inverse=True)
        number = np.unique(number * max(len(distinct), 1) + place.reshape(-1), return_inverse=True)[1]
        number = number.reshape(-1)
    return number


def calls_of(events: Events) -> np.ndarray:
    """Return an array (N,): the record of the call to which each record belongs, which may be itself; -1
    without a call."""
    thread = row_numbers(events.rank, events.thread)
    order = np.lexsort([events.calls == 0, events.begin_s, thread])
    is_call = events.calls[order] > 0
    last = np.maximum.accumulate(np.where(is_call, np.arange(len(order)), -1))
    found = np.where(last >= 0, order[np.maximum(last, 0)], -1)
    # The record of polls one after another begins before the last one, which has completed the message.
    is_poll = events.is_call(POLLS)[found]
    is_in = (events.begin_s[found] == events.begin_s[order]) | (
        is_poll & (events.begin_s[order] <= events.end_s[found])
    )
    is_same = (thread[found] == thread[order]) & is_in
    calls = np.full(len(events), -1)
    calls[order] = np.where((found >= 0) & is_same, found, -1)
    return calls


def communicator_names(recording: Recording) -> dict[int, str]:
    """Return, by the common number of a communicator, its name, or how many ranks it has."""
    names = {_WORLD: "MPI_COMM_WORLD"}
    for rank, of_rank in _common_numbers(recording).items():
        for number, common in of_rank.items():
            one = recording.ranks[rank].communicators[number]
            names.setdefault(common, one.name or f"{len(one.members)} ranks, number {common // 2 + 1}")
    for rank, of_rank in _group_numbers(recording).items():
        for number, common in of_rank.items():
            one = recording.ranks[rank].communicators[number]
            names.setdefault(common, f"{len(one.members)} ranks of a window")
    return names
