"""Phases of a recorded program: the epochs that the same places in the program make, on all ranks."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.data.mpi_calls import OF_PARTITIONS
from earlybird.data.recorded_rank import CONCURRENT, RECEIVED, SENT, RankPhase, RankRecording, Step
from earlybird.data.recording import PairTotals, Recording

# Of the steps that two sets have together, the part that must be common: a rank at the border of a domain
# lacks some, such as the sends to neighbours that it does not have.
_MIN_COMMON = 0.5

# More groups of some of the ranks are no variants of one phase.
_MAX_PARTS = 100

# A run begins when these return.
_BEFORE_THE_RUN = frozenset({"MPI_Init", "MPI_Init_thread"})

_Key = tuple[str, str, int]
# The phases of some ranks, by rank and by their numbers there.
_Group = dict[int, dict[int, RankPhase]]
# Messages by sender and receiver.
_Pairs = dict[tuple[int, int], int]


@dataclass(frozen=True, eq=False)
class Phase:
    """A phase of the program on all ranks.

    Attributes
    ----------
    number : number of the phase, from 1, in the order of time spent.
    region : level set by MPI_Pcontrol during the phase.
    steps : steps of the rank that has most of them, then those with calls or functions of other ranks alone.
    of_ranks : the numbers of the phase in each rank's recording, by rank.
    epochs_of : number of epochs of each rank.
    time_s : time from the first to the last call of each epoch, summed over epochs and ranks; for threads
        that only call MPI_Pready and similar functions, the time inside these calls.
    first_s, last_s : beginning of the first epoch and end of the last one on any rank, since its MPI_Init.
    """

    number: int
    region: int
    steps: tuple[Step, ...]
    of_ranks: Mapping[int, tuple[int, ...]]
    epochs_of: Mapping[int, int]
    time_s: float
    first_s: float
    last_s: float

    @property
    def epochs(self) -> int:
        """The number of epochs, the median over its ranks."""
        return int(statistics.median_low(self.epochs_of.values()))

    @property
    def calls(self) -> list[str]:
        """The names of the calls, each once, in the order of the first epoch; those of other ranks follow."""
        return list(dict.fromkeys(step.call for step in self.steps))

    @property
    def functions(self) -> list[str]:
        """The functions of the program that call the MPI, as far as the modules name them; otherwise as
        `Step.name`."""
        return list(dict.fromkeys(step.name for step in self.steps))

    def sent(self, recording: Recording, *, one_sided: bool = False) -> PairTotals:
        """Return all messages of the phase; with `one_sided`, also the data that MPI_Put, MPI_Get and similar
        functions moved."""
        sent = recording.sent(self.of_ranks)
        return sent.joined(recording.one_sided(self.of_ranks)) if one_sided else sent


@dataclass(frozen=True, eq=False)
class ThreadArrivals:
    """The times at which the threads of parallel regions reach the end, before the sends of a phase, on all
    ranks.

    Attributes
    ----------
    function : the function that contains the region, else module and offset.
    threads : number of threads of the largest team.
    regions : number of regions on all ranks.
    lead_s : (threads,) the mean time from the arrival of each thread to the arrival of the last one.
    classes : number of arrivals whose lead is of class k: 0 ns, or 2**(k-1) to 2**k - 1 ns.
    """

    function: str
    threads: int
    regions: int
    lead_s: np.ndarray
    classes: np.ndarray

    @property
    def mean_lead_s(self) -> float:
        """The mean over all threads except the last one: how much earlier their data could be sent."""
        return float(self.lead_s.sum() / max(self.threads - 1, 1))


def arrivals_before(recording: Recording, phase: Phase) -> list[ThreadArrivals]:
    """Return the parallel regions that precede a send of the phase, the most frequent first."""
    found = defaultdict(list)
    for rank, one in recording.ranks.items():
        for arrivals in one.arrivals:
            if arrivals.phase in phase.of_ranks.get(rank, ()):
                found[_file_name(arrivals.site.module), arrivals.site.offset].append(arrivals)
    merged = []
    for several in found.values():
        threads = max(len(part.lead_s) for part in several)
        regions = sum(part.regions for part in several)
        lead_s, classes = np.zeros(threads), np.zeros(max(len(part.classes) for part in several), np.int64)
        for part in several:
            lead_s[: len(part.lead_s)] += part.lead_s * part.regions / max(regions, 1)
            classes[: len(part.classes)] += part.classes
        function = next((one.site.function for one in several if one.site.function), "")
        merged.append(ThreadArrivals(function or several[0].site.name, threads, regions, lead_s, classes))
    return sorted(merged, key=lambda one: -one.regions)


def find_phases(recording: Recording) -> list[Phase]:
    """Return the phases of all ranks except MPI_Init, the one with most time first.

    Phases of two ranks are joined if their steps are the same, or if at least half of them are and no rank
    has both. Then phases are joined if the ranks of one receive what the other sends, in the same functions:
    a rank at the border of a domain makes few of the calls, and compilers copy them. Then the remaining ones
    that have no rank in common are joined if at least half of the calls and functions are the same: each
    corner of a domain may go through other branches of one function.
    """
    ranks_of: dict[tuple[int, frozenset[_Key]], set[int]] = defaultdict(set)
    for rank, one in recording.ranks.items():
        for phase in _of_the_run(one).values():
            ranks_of[phase.region, _keys(phase)].add(rank)
    group_of: dict[tuple[int, frozenset[_Key]], int] = {}
    groups: list[tuple[int, frozenset[_Key], set[int]]] = []
    order = sorted(ranks_of, key=lambda what: (-len(what[1]), -len(ranks_of[what]), sorted(what[1])))
    for region, keys in order:
        ranks = ranks_of[region, keys]
        best = max(
            (
                (_common(keys, other), -k)
                for k, (its_region, other, its_ranks) in enumerate(groups)
                if its_region == region and not its_ranks & ranks
            ),
            default=(0.0, 0),
        )
        if best[0] >= _MIN_COMMON:
            group_of[region, keys] = -best[1]
            groups[-best[1]][2].update(ranks)
        else:
            group_of[region, keys] = len(groups)
            groups.append((region, keys, set(ranks)))
    members: list[_Group] = [defaultdict(dict) for _ in groups]
    for rank, one in recording.ranks.items():
        for number, phase in _of_the_run(one).items():
            members[group_of[phase.region, _keys(phase)]][rank][number] = phase
    members = _joined_by_messages(members, recording)
    return _numbered(_joined_by_functions(members, recording.size))


def _of_the_run(one: RankRecording) -> dict[int, RankPhase]:
    return {
        number: _without_computing(one, number, phase)
        for number, phase in one.phases.items()
        if not phase.steps or any(step.call not in _BEFORE_THE_RUN for step in phase.steps)
    }


def _without_computing(one: RankRecording, number: int, phase: RankPhase) -> RankPhase:
    """Return the phase; for threads that call the MPI for partitions alone, with the time in these calls.

    Such a thread completes no request, so its epochs have no end of their own: the time between the calls is
    the computation of the whole run.
    """
    if not phase.steps or any(step.call not in OF_PARTITIONS for step in phase.steps):
        return phase
    rows = one.entries_of([number])
    of_threads = [
        int(rows["time_ns"][rows["thread"] == thread].sum()) for thread in np.unique(rows["thread"])
    ]
    in_calls_ns = max(of_threads, default=0) if one.thread_level == CONCURRENT else sum(of_threads)
    return replace(phase, time_s=min(phase.time_s, 1e-9 * in_calls_ns))


def _joined_by_messages(members: list[_Group], recording: Recording) -> list[_Group]:
    """Return groups, joined only if one receives what the other sends; the best matches are joined first."""
    parts = [
        (by_rank, pairs)
        for by_rank, pairs in zip(members, _unbalanced(members, recording), strict=True)
        if pairs
    ]
    if len(parts) > _MAX_PARTS:
        return members
    while True:
        fits = [
            (_common_part(pairs, others), _common(_every_key(one), _every_key(other)), -k, -j)
            for k, (one, pairs) in enumerate(parts)
            for j, (other, others) in enumerate(parts[:k])
            if _may_be_one(one, other)
        ]
        best = max(fits, default=(0.0, 0.0, 0, 0))
        if best[0] < _MIN_COMMON:
            return members
        one, pairs = parts.pop(-best[2])
        other, others = parts.pop(-best[3])
        for rank, phases in one.items():
            other.setdefault(rank, {}).update(phases)
        members = [by_rank for by_rank in members if by_rank is not one]
        sums = {pair: pairs.get(pair, 0) + others.get(pair, 0) for pair in pairs.keys() | others.keys()}
        if rest := {pair: messages for pair, messages in sums.items() if messages}:
            parts.append((other, rest))


def _unbalanced(members: Sequence[_Group], recording: Recording) -> list[_Pairs]:
    """Return for each group, by sender and receiver, the number of messages sent in it minus the number
    received, where that is not 0."""
    group_of: dict[int, dict[int, int]] = defaultdict(dict)
    for group, by_rank in enumerate(members):
        for rank, phases in by_rank.items():
            group_of[rank] |= dict.fromkeys(phases, group)
    parts = [np.empty((0, 4), np.int64)]
    for rank, one in recording.ranks.items():
        rows = one.entries[np.isin(one.entries["role"], (SENT, RECEIVED)) & (one.entries["peer"] >= 0)]
        numbers, place = np.unique(rows["phase"], return_inverse=True)
        groups = np.array([group_of[rank].get(number, -1) for number in numbers.tolist()], np.int64)
        peer, is_sent = rows["peer"].astype(np.int64), rows["role"] == SENT
        sign = np.where(is_sent, 1, -1)
        columns = (
            groups[place.reshape(-1)], np.where(is_sent, rank, peer), np.where(is_sent, peer, rank),
            sign * rows["messages"].astype(np.int64),
        )  # fmt: skip
        is_known = (columns[0] >= 0) & ~np.isin(peer, recording.missing)
        parts.append(np.column_stack(columns)[is_known])
    table = np.concatenate(parts)
    keys, place = np.unique(table[:, :3], axis=0, return_inverse=True)
    more = np.zeros(len(keys), np.int64)
    np.add.at(more, place.reshape(-1), table[:, 3])
    found: list[_Pairs] = [{} for _ in members]
    for (group, src, dst), messages in zip(keys[more != 0].tolist(), more[more != 0].tolist(), strict=True):
        found[group][src, dst] = messages
    return found


def _common_part(one: _Pairs, other: _Pairs) -> float:
    """Return the share of the unmatched messages of one group that unmatched messages of the other group
    match."""
    fitting = sum(
        min(abs(messages), abs(other[pair]))
        for pair, messages in one.items()
        if messages * other.get(pair, 0) < 0
    )
    return fitting / min(sum(map(abs, one.values())), sum(map(abs, other.values())))


def _may_be_one(one: _Group, other: _Group) -> bool:
    """Return whether the same code may have made two groups that messages connect.

    Ranks of both must make only calls of the other ranks, and have as many epochs as they in both together.
    """
    first, second = _first(one), _first(other)
    if first.region != second.region:
        return False
    if not (_every_key(one) & _every_key(other) or _function_names(one) & _function_names(other)):
        return False
    both = one.keys() & other.keys()
    if not both:
        return True
    rest = [by_rank[rank] for by_rank in (one, other) for rank in by_rank.keys() - both]
    keys = {key for phases in rest for phase in phases.values() for key in _keys(phase)}
    epochs = {sum(phase.epochs for phase in phases.values()) for phases in rest}
    of_both = [
        (phase, sum(p.epochs for p in [*one[rank].values(), *other[rank].values()]))
        for rank in both
        for phase in [*one[rank].values(), *other[rank].values()]
    ]
    return all(_keys(phase) <= keys and num in epochs for phase, num in of_both)


def _joined_by_functions(members: list[_Group], size: int) -> list[_Group]:
    """Return groups of some ranks, joined if the same functions make the same calls, the most similar
    first."""
    whole = [by_rank for by_rank in members if len(by_rank) == size or not _functions(by_rank)]
    parts = [by_rank for by_rank in members if not any(by_rank is one for one in whole)]
    if len(parts) > _MAX_PARTS:
        return members
    while True:
        pairs = [
            (_likeness(one, other), -k, -j)
            for k, one in enumerate(parts)
            for j, other in enumerate(parts[:k])
            if not one.keys() & other.keys()
        ]
        best = max(pairs, default=((0.0, 0), 0, 0))
        if best[0][0] < _MIN_COMMON:
            return [*whole, *parts]
        parts[-best[2]].update(parts.pop(-best[1]))


def _likeness(one: _Group, other: _Group) -> tuple[float, int]:
    """Return a measure of similarity: the share of common calls and functions, then, for equal shares, the
    similarity of the numbers of epochs."""
    first, second = _first(one), _first(other)
    if first.region != second.region:
        return 0.0, 0
    return _common(_functions(one), _functions(other)), -abs(first.epochs - second.epochs)


def _first(by_rank: _Group) -> RankPhase:
    return next(iter(next(iter(by_rank.values())).values()))


def _steps(by_rank: _Group) -> Iterator[Step]:
    """Return the steps of all phases of a group."""
    for phases in by_rank.values():
        for phase in phases.values():
            yield from phase.steps


def _functions(by_rank: _Group) -> frozenset[tuple[str, str]]:
    """Return the pairs of a call and the function that makes it, where the function is known."""
    return frozenset((step.call, step.function) for step in _steps(by_rank) if step.function)


def _function_names(by_rank: _Group) -> frozenset[str]:
    return frozenset(step.function for step in _steps(by_rank) if step.function)


def _every_key(by_rank: _Group) -> frozenset[_Key]:
    return frozenset(key for phases in by_rank.values() for phase in phases.values() for key in _keys(phase))


def _numbered(members: list[_Group]) -> list[Phase]:
    sums = []
    for by_rank in members:
        every = [phase for phases in by_rank.values() for phase in phases.values()]
        sums.append((sum(phase.time_s for phase in every), by_rank, every))
    sums.sort(key=lambda one: (-one[0], min(phase.first_s for phase in one[2])))
    return [
        Phase(
            number=number,
            region=every[0].region,
            steps=_steps_of_all(every),
            of_ranks={rank: tuple(phases) for rank, phases in by_rank.items()},
            epochs_of={rank: sum(p.epochs for p in phases.values()) for rank, phases in by_rank.items()},
            time_s=time_s,
            first_s=min(phase.first_s for phase in every),
            last_s=max(phase.last_s for phase in every),
        )
        for number, (time_s, by_rank, every) in enumerate(sums, 1)
    ]


def _steps_of_all(every: Sequence[RankPhase]) -> tuple[Step, ...]:
    """Return the steps of the rank that has most of them, followed by those with a call or function that only
    others have, as where one side sends and the other receives."""
    several = sorted(dict.fromkeys(phase.steps for phase in every), key=len, reverse=True)
    steps = list(several[0])
    known = {(step.call, step.function) for step in steps}
    for step in (step for others in several[1:] for step in others):
        if (step.call, step.function) not in known:
            known.add((step.call, step.function))
            steps.append(step)
    return tuple(steps)


def _file_name(path: str) -> str:
    """Return the last part of a path. pathlib takes ten times as long, for each step of each rank."""
    return path.rpartition("/")[2]


def _keys(phase: RankPhase) -> frozenset[_Key]:
    return frozenset((step.call, _file_name(step.module), step.offset) for step in phase.steps)


def _common(one: frozenset[Any], other: frozenset[Any]) -> float:
    """Return the common share of all their steps (the Jaccard index)."""
    return len(one & other) / max(len(one | other), 1)
