"""Decides why ranks do not get on: deadlock, a message that nobody sends, a rank that computes, and others.

A rank is live if one of its threads may get on: it computes, polls, or waits for a live rank. The others can
never get on; the groups of ranks among them that wait for nobody outside are the causes.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from earlybird.analysis.stuck import graph, sentences
from earlybird.analysis.stuck.messages import Unreceived, undelivered
from earlybird.analysis.stuck.waits import FINALIZE, Condition, Wait, Waiting, finalizes
from earlybird.data.rank_states import (
    ANY_TAG,
    COLLECTIVE,
    ENDED,
    FINALIZED,
    PARTITIONED_RECEIVE,
    PARTITIONED_SEND,
    RECEIVE,
    RUNS,
    STOPPED,
    UNSEEN,
    Awaited,
    RankState,
    Where,
)
from earlybird.data.recorded_rank import ANY_PEER

# Verdicts after which no rank can ever get on by itself.
FOREVER = frozenset({"deadlock", "buffering", "mismatch", "missing", "collective", "partitioned", "ended"})
_ORDER = ("collective", "mismatch", "deadlock", "buffering", "missing", "one-sided", "partitioned", "ended",
          "stopped")  # fmt: skip
_ONE_SIDED = ("MPI_Win_", "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Rput", "MPI_Rget", "MPI_Fetch_and_op",
              "MPI_Compare_and_swap")  # fmt: skip


@dataclass(frozen=True)
class NearMiss:
    """A message that was sent and not received, and that differs from what a rank waits for in one thing:
    "tag", "communicator", "sender" or "receiver"."""

    message: Unreceived
    differs_in: str


@dataclass(frozen=True)
class Cause:
    """A group of ranks that wait for nobody outside, and what is wrong.

    Attributes
    ----------
    waits : what is wrong, as the waits of the group that matter, by rank.
    waiting : ranks outside of the group that wait for it.
    """

    verdict: str
    guilty: tuple[int, ...]
    cycle: tuple[int, ...]
    waits: Mapping[int, Wait]
    waiting: frozenset[int]
    near_miss: NearMiss | None = None


def judge(ranks: Mapping[int, RankState], *, is_over: bool = False) -> Where:
    """Return who waits for whom, from the states of all ranks of a job.

    `is_over`: the job has ended, and which rank ended first is not known.
    """
    waiting = Waiting(ranks)
    waits = {rank: _waits_of(waiting, state) for rank, state in ranks.items()}
    live = _live(ranks, waits)
    dead = {rank for rank, state in ranks.items() if not live[rank] and state.state == RUNS}
    if not dead:
        return _judge_live(waiting, waits, is_over)
    successors = {rank: _causes_of(waits[rank], live) for rank in dead}
    causes = [
        cause
        for group in graph.components(successors)
        if not _leaves(group, successors)
        for cause in (_cause_of(waiting, waits, successors, group),)
        if cause is not None
    ]
    best = min(causes, key=lambda cause: (cause.verdict in ("ended", "stopped"), -len(cause.waiting),
                                          _ORDER.index(cause.verdict), cause.guilty))  # fmt: skip
    all_waits = {rank: of_rank[0] for rank, of_rank in waits.items() if of_rank and rank in dead}
    all_waits |= best.waits
    others = [cause for cause in causes if cause is not best]
    sentence = sentences.of_cause(ranks, best, all_waits, others)
    every = (best, *sorted(others, key=lambda cause: cause.guilty))
    guilty = tuple(dict.fromkeys(rank for cause in every for rank in cause.guilty))
    return Where(best.verdict, sentence, guilty, best.cycle, ranks, _pending(waiting))


def _pending(waiting: Waiting) -> dict[tuple[int, int], tuple[Awaited, ...]]:
    """Return what the calls of threads still wait for, as far as is known. A thread that polls may wait for
    any open request."""
    return {
        (rank, thread.number): tuple(
            awaited
            for awaited in (thread.awaited or (state.requests if thread.is_polling else ()))
            if not waiting.messages.is_matched(awaited)
        )
        for rank, state in waiting.ranks.items()
        for thread in state.threads
    }


def _waits_of(waiting: Waiting, state: RankState) -> list[Wait]:
    """Return what all threads of a rank wait for; empty if one of them may get on by itself. Threads that
    wait for others of their process do not."""
    threads = [thread for thread in state.threads if not thread.is_idle]
    if state.state != RUNS or not threads:
        return []
    # No thread may call the MPI once another one is in MPI_Finalize.
    if state.has_other_threads and not finalizes(state):
        return []
    waits = [waiting.wait_of(state, thread) for thread in threads]
    return [] if None in waits else [wait for wait in waits if wait is not None]


def _live(ranks: Mapping[int, RankState], waits: Mapping[int, Sequence[Wait]]) -> dict[int, bool]:
    """Return for each rank whether it may get on: not until ranks for which it waits may."""
    live = {
        rank: state.state == UNSEEN or (state.state == RUNS and not waits[rank])
        for rank, state in ranks.items()
    }
    # Ranks in a collective have the same condition, which is looked at once.
    conditions: dict[int, Condition] = {}
    waiting: dict[int, list[int]] = defaultdict(list)
    for rank, of_rank in waits.items():
        for wait in of_rank:
            for condition in wait.conditions:
                conditions[id(condition)] = condition
                waiting[id(condition)].append(rank)
    needing: dict[int, list[int]] = defaultdict(list)
    num_left = {}
    for key, condition in conditions.items():
        num_left[key] = len(condition.ranks) if condition.of_all else min(len(condition.ranks), 1)
        for rank in condition.ranks:
            needing[rank].append(key)
    queue = deque(rank for rank in ranks if live[rank])
    while queue:
        for key in needing[queue.popleft()]:
            num_left[key] -= 1
            if num_left[key] != 0:
                continue
            for rank in waiting[key]:
                if not live[rank] and any(_may_end(wait, num_left) for wait in waits[rank]):
                    live[rank] = True
                    queue.append(rank)
    return live


def _may_end(wait: Wait, num_left: Mapping[int, int]) -> bool:
    holds = (num_left[id(condition)] <= 0 for condition in wait.conditions)
    return all(holds) if wait.of_all else any(holds)


def _causes_of(waits: Sequence[Wait], live: Mapping[int, bool]) -> set[int]:
    """Return the ranks that keep a rank from getting on."""
    return {
        rank
        for wait in waits
        for condition in wait.conditions
        if not condition.holds(live)
        for rank in condition.ranks
        if not live[rank]
    }


def _leaves(group: Sequence[int], successors: Mapping[int, set[int]]) -> bool:
    inside = set(group)
    return any(not successors.get(rank, set()) <= inside for rank in group)


def _cause_of(
    waiting: Waiting,
    waits: Mapping[int, Sequence[Wait]],
    successors: Mapping[int, set[int]],
    group: Sequence[int],
) -> Cause | None:
    """Return what is wrong in a group of ranks that wait for nobody outside."""
    ranks = waiting.ranks
    outside = frozenset(graph.reaching(successors, group)) - set(group)
    first = ranks[group[0]]
    if first.state != RUNS:
        return _cause_of_end(waiting, waits, successors, first, outside)
    of_group = {rank: waits[rank][0] for rank in group}
    conditions = [(rank, condition) for rank in group for condition in _missed(waits[rank])]
    if epochs := [each for each in conditions if _is_of_window(waiting, *each)]:
        cycle = tuple(graph.shortest_cycle(successors, group))
        late = [rank for _, condition in epochs for rank in sorted(condition.ranks)]
        guilty = tuple(dict.fromkeys([*late, *(rank for rank, _ in epochs)]))
        return Cause("one-sided", guilty, cycle, of_group, outside)
    for rank, condition in conditions:
        if condition.others:
            shown = {rank: _with(waits[rank], condition)}
            return Cause("collective", _odd_ranks(waiting, condition), (), shown, outside)
    near = _near_miss_of(waiting, conditions)
    cycle = tuple(graph.shortest_cycle(successors, group))
    if near is not None:
        rank, miss = near
        guilty = tuple(dict.fromkeys((rank, miss.message.src)))
        return Cause("mismatch", guilty, cycle, of_group, outside, miss)
    finalizing = {rank for rank in group if of_group[rank].thread.call == FINALIZE}
    if finalizing:
        return _cause_of_finalize(of_group, conditions, finalizing, outside)
    in_cycle = [
        condition
        for rank, following in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True)
        for condition in _missed(waits[rank])
        if following in condition.ranks
    ]
    kinds = {condition.awaited.kind for condition in in_cycle if condition.awaited is not None}
    if kinds & {PARTITIONED_SEND, PARTITIONED_RECEIVE}:
        return Cause("partitioned", _unready(ranks, cycle), cycle, of_group, outside)
    if kinds == {COLLECTIVE}:
        return Cause("collective", cycle, cycle, of_group, outside)
    if len(cycle) == 1 and kinds == {RECEIVE}:
        return Cause("missing", cycle, cycle, of_group, outside)
    unbuffered = {
        rank: {
            following
            for condition in _missed(waits[rank])
            if not condition.is_buffered_elsewhere
            for following in condition.ranks
        }
        for rank in group
        if not any(condition.is_buffered_elsewhere for condition in _missed(waits[rank]))
    }
    verdict = "deadlock" if graph.has_cycle(unbuffered, unbuffered) else "buffering"
    return Cause(verdict, cycle, cycle, of_group, outside)


def _is_of_window(waiting: Waiting, rank: int, condition: Condition) -> bool:
    """Return whether a rank waits for the synchronization of a window."""
    if condition.awaited is None:
        return False
    communicator = waiting.ranks[rank].communicators.get(condition.awaited.communicator)
    return communicator is not None and communicator.is_window


def _with(waits: Sequence[Wait], condition: Condition) -> Wait:
    """Return that of the threads of a rank which has a condition."""
    return next(wait for wait in waits if any(each is condition for each in wait.conditions))


def _on(waits: Sequence[Wait], awaited: int) -> Wait:
    """Return that of the threads of a rank which waits for another rank."""
    return next(
        (wait for wait in waits if any(awaited in condition.ranks for condition in wait.conditions)), waits[0]
    )


def _missed(waits: Sequence[Wait]) -> list[Condition]:
    return [condition for wait in waits for condition in wait.conditions]


def _cause_of_end(
    waiting: Waiting,
    waits: Mapping[int, Sequence[Wait]],
    successors: Mapping[int, set[int]],
    state: RankState,
    outside: frozenset[int],
) -> Cause | None:
    """Return the cause of ranks that wait for one that is stopped or has ended."""
    direct = [rank for rank in sorted(outside) if state.rank in successors.get(rank, ())]
    of_group = {rank: _on(waits[rank], state.rank) for rank in direct}
    verdict = {STOPPED: "stopped", ENDED: "ended"}.get(state.state)
    if verdict is None:
        assert state.state == FINALIZED
        conditions = [
            condition
            for wait in of_group.values()
            for condition in wait.conditions
            if state.rank in condition.ranks
        ]
        is_collective = any(
            condition.awaited is not None and condition.awaited.kind == COLLECTIVE for condition in conditions
        )
        verdict = "collective" if is_collective else "missing"
    return Cause(verdict, (state.rank,), (), of_group, outside) if direct else None


def _cause_of_finalize(
    of_group: Mapping[int, Wait],
    conditions: Sequence[tuple[int, Condition]],
    finalizing: set[int],
    outside: frozenset[int],
) -> Cause:
    """Return the cause of ranks that wait for others in MPI_Finalize."""
    for kind, verdict in ((COLLECTIVE, "collective"), (None, "missing")):
        of_kind = [
            (rank, condition)
            for rank, condition in conditions
            if condition.awaited is not None
            and (kind is None or condition.awaited.kind == kind)
            and condition.ranks & finalizing
        ]
        if of_kind:
            rank, condition = of_kind[0]
            absent = tuple(sorted(condition.ranks & finalizing))
            guilty = absent if kind == COLLECTIVE else tuple(dict.fromkeys((rank, *absent)))
            shown = {rank: of_group[rank] for rank, _ in of_kind} | {each: of_group[each] for each in absent}
            return Cause(verdict, guilty, (), shown, outside)
    first = next(rank for rank, condition in conditions if condition.awaited is not None)
    return Cause("deadlock", (first,), (), of_group, outside)


def _odd_ranks(waiting: Waiting, condition: Condition) -> tuple[int, ...]:
    """Return the ranks that have entered another collective than most, else all that differ."""
    assert condition.awaited is not None
    groups: dict[object, list[int]] = {}
    for rank, state in waiting.ranks.items():
        communicator = state.communicators.get(condition.awaited.communicator)
        entered = communicator.entered.get(condition.awaited.number) if communicator else None
        if entered is not None:
            groups.setdefault(entered, []).append(rank)
    if not groups:
        return tuple(sorted(condition.others))
    fewest: list[int] = min(groups.values(), key=lambda members: (len(members), members))
    return tuple(fewest)


def _unready(ranks: Mapping[int, RankState], cycle: Sequence[int]) -> tuple[int, ...]:
    """Return the ranks of a cycle that have not made all partitions ready, first."""
    return tuple(
        sorted(
            cycle,
            key=lambda rank: (
                not any(
                    request.kind == PARTITIONED_SEND and request.num_ready < request.partitions
                    for request in ranks[rank].requests
                )
            ),
        )
    )


def _near_miss_of(
    waiting: Waiting, conditions: Sequence[tuple[int, Condition]]
) -> tuple[int, NearMiss] | None:
    """Return a rank that waits for a message, and one that was sent and differs from it in one thing."""
    for rank, condition in conditions:
        awaited = condition.awaited
        if awaited is None or awaited.kind != RECEIVE:
            continue
        misses = [
            NearMiss(message, difference)
            for message in waiting.messages.unreceived.get(rank, ())
            if (difference := _difference(waiting, rank, awaited, message))
        ]
        misses += [
            NearMiss(message, "receiver")
            for dst, messages in waiting.messages.unreceived.items()
            if dst != rank
            for message in messages
            if message.src == awaited.peer
            and message.communicator == awaited.communicator
            and message.tag == awaited.tag
        ]
        # The number that the sender names is that of another process in another communicator.
        number = waiting.number_in(awaited.communicator, rank)
        misses += [
            NearMiss(message, "communicator")
            for dst, messages in waiting.messages.unreceived.items()
            if dst != rank and number is not None
            for message in messages
            if message.src == awaited.peer
            and message.communicator != awaited.communicator
            and message.tag == awaited.tag
            and number == waiting.number_in(message.communicator, dst)
        ]
        if misses:
            order = ("tag", "communicator", "sender", "receiver")
            return rank, min(misses, key=lambda miss: order.index(miss.differs_in))
    return None


def _difference(waiting: Waiting, rank: int, awaited: Awaited, message: Unreceived) -> str:
    """Return in which single thing a message to a rank differs from what it awaits; empty if not in one."""
    differing = []
    if awaited.tag not in (ANY_TAG, message.tag):
        differing.append("tag")
    if awaited.communicator != message.communicator:
        differing.append("communicator")
    if awaited.peer not in (ANY_PEER, message.src):
        number = waiting.number_in(awaited.communicator, awaited.peer)
        # In another communicator the same number is another process.
        if number is None or number != waiting.number_in(message.communicator, message.src):
            differing.append("sender")
    return differing[0] if len(differing) == 1 else ""


def _judge_live(waiting: Waiting, waits: Mapping[int, Sequence[Wait]], is_over: bool) -> Where:
    """Return the answer if every rank may get on, as far as is known."""
    ranks = waiting.ranks
    blocked = {rank: of_rank[0] for rank, of_rank in waits.items() if of_rank}
    threads = [
        (rank, thread) for rank, state in ranks.items() if state.state == RUNS for thread in state.threads
    ]
    moving = sorted({rank for rank, thread in threads if not thread.is_steady})
    inside = [(rank, thread) for rank, thread in threads if thread.is_inside and thread.is_steady]
    computing = [rank for rank, state in ranks.items() if state.state == RUNS and _computes(state)]
    unseen = [rank for rank, state in ranks.items() if state.state == UNSEEN]
    others = sorted({rank for rank, _ in inside} - set(computing))
    verdict, guilty = "unknown", []
    if moving or not threads:
        verdict = "running" if moving else "unknown"
    elif computing and (others or unseen):
        verdict, guilty = "computing", _most_awaited(computing, blocked)
    elif computing:
        verdict = "running"
    elif unseen:
        verdict, guilty = "unreachable", unseen
    elif senders := undelivered(ranks):
        verdict, guilty = "unreachable", sorted({*senders, *senders.values()})
    elif all(state.state == FINALIZED or finalizes(state) for state in ranks.values()):
        verdict = "finalize"
    elif one_sided := [rank for rank, thread in inside if thread.call.startswith(_ONE_SIDED)]:
        verdict, guilty = "one-sided", sorted(set(one_sided))
    sentence = sentences.of_live(ranks, verdict, guilty, blocked, moving, is_over)
    return Where(verdict, sentence, tuple(guilty), (), ranks, _pending(waiting))


def _computes(state: RankState) -> bool:
    """Return whether a thread of a rank is in no call, other than those that wait for another thread."""
    outside = [thread for thread in state.threads if not thread.is_inside and thread.is_steady]
    return any(not thread.is_idle for thread in outside) or (0 < len(outside) == len(state.threads))


def _most_awaited(computing: Sequence[int], blocked: Mapping[int, Wait]) -> list[int]:
    """Return the ranks that compute, those first for which most others wait."""
    num = dict.fromkeys(computing, 0)
    for wait in blocked.values():
        for condition in wait.conditions:
            for rank in condition.ranks & num.keys():
                num[rank] += 1
    awaited = [rank for rank in computing if num[rank]] or list(computing)
    return sorted(awaited, key=lambda rank: (-num[rank], rank))
