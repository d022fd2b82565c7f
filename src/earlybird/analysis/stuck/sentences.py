"""Writes the answer to who waits for whom in a sentence that names ranks in the same place once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from earlybird.analysis.stuck.messages import undelivered
from earlybird.analysis.stuck.waits import FINALIZE, Wait, is_same_window
from earlybird.data import labels, units
from earlybird.data.rank_states import (
    ANY_TAG,
    COLLECTIVE,
    COMPLETED_TAG,
    ENDED,
    EXCLUSIVE_LOCK,
    FINALIZED,
    LOCK,
    PARTITIONED_RECEIVE,
    PARTITIONED_SEND,
    POSTED_TAG,
    RECEIVE,
    RUNS,
    SEND,
    UNSEEN,
    Awaited,
    CommunicatorState,
    Entered,
    RankState,
    ThreadState,
)
from earlybird.data.recorded_rank import ANY_PEER, NO_PEER

if TYPE_CHECKING:
    from earlybird.analysis.stuck.verdict import Cause

_MAX_RANGES, _MAX_SHOWN, _MAX_AWAITED, _MAX_APART, _MAX_UNREADY = 8, 6, 2, 2, 4
_WORLD = "MPI_COMM_WORLD"
_EPOCH_CALLS = {POSTED_TAG: "MPI_Win_post", COMPLETED_TAG: "MPI_Win_complete"}


def named_ranks(ranks: Iterable[int]) -> str:
    """Return ranks in order with ranges: `rank 3`, `ranks 0 and 2`, `ranks 0-5 and 7`."""
    ordered = sorted(set(ranks))
    texts = []
    for first, last in _ranges(ordered):
        texts += (
            [str(first)]
            if first == last
            else [str(first), str(last)]
            if last == first + 1
            else [f"{first}-{last}"]
        )
    over = len(texts) - _MAX_RANGES
    text = labels.listed(texts) if over <= 0 else f"{', '.join(texts[:_MAX_RANGES])} and others"
    return f"rank{'s' if len(ordered) > 1 else ''} {text}"


def _ranges(ordered: Iterable[int]) -> list[list[int]]:
    """Return the first and the last of each range of ascending numbers."""
    ranges: list[list[int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _ready_text(awaited: Awaited) -> str:
    """Return how many partitions are ready and which not: `, 3 of 4 partitions ready, not partition 2`."""
    shown = _ranges(awaited.unready)[:_MAX_UNREADY]
    texts = [f"{first}-{last}" if last > first else f"{first}" for first, last in shown]
    more = awaited.partitions - awaited.num_ready - sum(last - first + 1 for first, last in shown)
    if texts and more > 0:
        texts.append(f"{more} more")
    noun = "partition" if len(awaited.unready) == len(texts) == 1 else "partitions"
    missing = f", not {noun} {labels.listed(texts)}" if texts else ""
    return f", {awaited.num_ready} of {awaited.partitions} partitions ready{missing}"


def seconds(since_s: float) -> str:
    """Return a duration in whole seconds from one on."""
    return f"{since_s:.0f} s" if since_s >= 1 else units.format_seconds(since_s)


def communicator_text(communicator: CommunicatorState | None) -> str:
    """Return the name of a communicator, else its ranks: `a communicator of ranks 0-3`."""
    if communicator is None:
        return "another communicator"
    members = communicator.members or ()
    return communicator.name or f"a communicator of {named_ranks(members) if members else 'some ranks'}"


def awaited_text(awaited: Awaited, state: RankState) -> str:
    """Return what a call waits for, to follow its name: ` from rank 3, tag 5`."""
    communicator = state.communicators.get(awaited.communicator)
    on = f" on {communicator_text(communicator)}" if communicator and communicator.name != _WORLD else ""
    if awaited.tag in _EPOCH_CALLS:
        return f" for {_EPOCH_CALLS[awaited.tag]} of rank {awaited.peer}{on}"
    if awaited.kind == LOCK:
        return f" of {'all ranks' if awaited.peer == ANY_PEER else f'rank {awaited.peer}'}{on}"
    if awaited.kind == COLLECTIVE:
        return f"{f' no. {awaited.number}' if awaited.number else ''}{on.replace(' on ', ' of ', 1)}"
    sends = awaited.kind in (SEND, PARTITIONED_SEND)
    peer = "any rank" if awaited.peer == ANY_PEER else f"rank {awaited.peer}"
    tag = f", tag {awaited.tag}" if awaited.tag != ANY_TAG else ""
    is_partitioned = awaited.kind == PARTITIONED_SEND or awaited.unready
    ready = _ready_text(awaited) if is_partitioned else ""
    return f" {'to' if sends else 'from'} {peer}{tag}{ready}{on}"


def request_text(awaited: Awaited, state: RankState) -> str:
    """Return the call that started a request, and where: `MPI_Irecv in exchange (solver.c:57)`."""
    place = state.place_of(awaited.site, awaited.call) if awaited.site else ""
    is_persistent = awaited.call.endswith("_init")
    return f"{awaited.call}{', started' if place and is_persistent else ''}{f' in {place}' if place else ''}"


def call_text(wait: Wait, state: RankState, thread: ThreadState) -> str:
    """Return the call that a thread is in with what it still waits for: `MPI_Recv from rank 3, tag 5`."""
    awaited = [each.awaited for each in wait.conditions if each.awaited is not None]
    if not awaited:
        return thread.call
    texts = []
    for each in awaited[:_MAX_AWAITED]:
        of_request = "" if each.call == thread.call else f" for {request_text(each, state)}"
        texts.append(f"{of_request}{awaited_text(each, state)}")
    joined = " and" if wait.of_all else " or"
    more = len(awaited) - _MAX_AWAITED
    return f"{thread.call}{joined.join(texts)}{f' and {more} more' if more > 0 else ''}"


def place_text(thread: ThreadState) -> str:
    """Return place and duration in parentheses."""
    return f" ({', '.join(filter(None, [thread.place, seconds(thread.since_s)]))})"


def _groups(
    ranks: Mapping[int, RankState], waits: Mapping[int, Wait], of: Iterable[int]
) -> list[tuple[list[int], str, Wait]]:
    """Return the ranks that are in the same call in the same place, with its text, in the order of `of`."""
    groups: dict[tuple[str, str], tuple[list[int], str, Wait]] = {}
    for rank in of:
        wait = waits[rank]
        text = call_text(wait, ranks[rank], wait.thread)
        groups.setdefault((text, wait.thread.place), ([], text, wait))[0].append(rank)
    return list(groups.values())


def _are_in(ranks: Mapping[int, RankState], waits: Mapping[int, Wait], of: Iterable[int]) -> list[str]:
    """Return a clause for each group: `rank 1 is in MPI_Recv from rank 3, tag 5 (solver.c:120, 62 s)`."""
    groups = _groups(ranks, waits, of)
    clauses = [
        f"{named_ranks(members)} {'is' if len(members) == 1 else 'are'} in {text}{place_text(wait.thread)}"
        for members, text, wait in groups[:_MAX_SHOWN]
    ]
    left = [rank for members, _, _ in groups[_MAX_SHOWN:] for rank in members]
    return clauses + ([f"{labels.counted(len(left), 'more rank')} of the cycle"] if left else [])


def _wait_in(
    ranks: Mapping[int, RankState], waits: Mapping[int, Wait], waiting: Collection[int], whom: str
) -> list[str]:
    """Return a clause for each group of waiting ranks: `ranks 0 and 2 wait for them in MPI_Barrier no. 3`."""
    groups = _groups(ranks, waits, sorted(rank for rank in waiting if rank in waits))
    groups.sort(key=lambda group: -len(group[0]))
    clauses = [
        f"{named_ranks(members)} wait{'s' if len(members) == 1 else ''} for {whom} in {text}"
        for members, text, _ in groups[:_MAX_SHOWN]
    ]
    left = sum(len(members) for members, _, _ in groups[_MAX_SHOWN:])
    return clauses + (
        [f"{labels.counted(left, 'more rank')} wait{'s' if left == 1 else ''}, too"] if left else []
    )


def of_cause(
    ranks: Mapping[int, RankState], cause: Cause, waits: Mapping[int, Wait], others: Sequence[Cause] = ()
) -> str:
    """Return the sentence for ranks that can never get on. `others`: further causes, apart from it."""
    clauses = _of_cause(ranks, cause, waits)
    apart = sorted(others, key=lambda each: each.guilty)
    for other in apart[:_MAX_APART]:
        first, *more = _of_cause(ranks, other, {**waits, **other.waits})
        clauses += [f"apart from that, {other.verdict}: {first}", *more]
    by_verdict: dict[str, list[int]] = {}
    for other in apart[_MAX_APART:]:
        by_verdict.setdefault(other.verdict, []).extend(other.cycle or other.guilty)
    clauses += [f"{verdict} of {named_ranks(guilty)}, too" for verdict, guilty in by_verdict.items()]
    return f"{labels.capital(cause.verdict)}: {'; '.join(clauses)}."


def _of_cause(ranks: Mapping[int, RankState], cause: Cause, waits: Mapping[int, Wait]) -> list[str]:
    """Return the clauses that say what is wrong, and who waits for that."""
    whom = "it" if len(cause.guilty) == 1 else "them"
    shown: Sequence[int] = cause.cycle or sorted(cause.waits)
    after = _wait_in(ranks, waits, cause.waiting - set(shown), whom)
    if cause.verdict == "collective":
        clauses = _of_collective(ranks, cause, waits)
    elif cause.verdict in ("ended", "stopped"):
        state = ranks[cause.guilty[0]]
        clauses = [f"{named_ranks(cause.guilty)} {_end_of(state)}"]
        after = _wait_in(ranks, waits, cause.waiting, whom)
    elif cause.verdict == "mismatch":
        clauses = _of_mismatch(ranks, cause, waits)
    elif cause.verdict == "missing":
        clauses = _of_missing(ranks, cause, waits)
        after = _wait_in(ranks, waits, cause.waiting - set(cause.waits), whom)
    else:
        clauses = _are_in(ranks, waits, shown) + _locks_of(ranks, cause)
        if cause.verdict == "buffering":
            clauses[-1] += ": their messages are not buffered, and no receive takes them"
    return [*clauses, *after]


def _locks_of(ranks: Mapping[int, RankState], cause: Cause) -> list[str]:
    """Return which ranks have locked windows for which others wait."""
    awaited = {
        (holder, condition.awaited)
        for wait in cause.waits.values()
        for condition in wait.conditions
        if condition.awaited is not None and condition.awaited.kind == LOCK
        for holder in condition.ranks
    }
    clauses: dict[str, None] = {}
    for holder, locked in sorted(awaited, key=lambda each: (each[0], each[1].peer, each[1].posted_s)):
        locks = [lock for lock in ranks[holder].locks if is_same_window(lock, locked)]
        lock = max(locks, key=lambda each: each.number == EXCLUSIVE_LOCK)
        clauses[f"rank {holder} holds the lock ({request_text(lock, ranks[holder])})"] = None
    return list(clauses)[:_MAX_SHOWN]


def _end_of(state: RankState) -> str:
    last = state.threads[0] if state.threads else None
    where = ""
    if last is not None:
        where = f" in {last.call}" if last.is_inside else f" after {last.call}"
        where += f" ({last.place})" if last.place else ""
    if state.state == ENDED:
        return f"has ended without MPI_Finalize{where}"
    if state.state == FINALIZED:
        return "has left MPI_Finalize"
    return f"is stopped, by a signal or a debugger,{where}"


def _of_mismatch(ranks: Mapping[int, RankState], cause: Cause, waits: Mapping[int, Wait]) -> list[str]:
    """Return the receive, the message that it almost takes, and where the sender is."""
    assert cause.near_miss is not None
    message, kind = cause.near_miss.message, cause.near_miss.differs_in
    receiver = cause.guilty[0]
    clauses = _are_in(ranks, waits, [receiver])
    communicator = ranks[message.src].communicators.get(message.communicator)
    name = communicator_text(communicator)
    what = {
        "tag": f"to it with tag {message.tag}",
        "communicator": f"to {'it' if message.dst == receiver else f'rank {message.dst}'} on {name}",
        "sender": "to it with this tag",
        "receiver": f"to rank {message.dst}",
    }[kind]
    sends = waits.get(message.src)
    is_sending = sends is not None and any(
        condition.awaited is not None and condition.awaited.kind == SEND for condition in sends.conditions
    )
    verb = "sends" if is_sending else "has sent"
    if message.src == receiver:
        clauses.append(f"it {verb} such a message {what} itself")
        return clauses
    clauses.append(f"rank {message.src} {verb} such a message {what}, which nobody receives")
    if sends is not None and not is_sending:
        clauses += _are_in(ranks, waits, [message.src])
    return clauses


def _of_missing(ranks: Mapping[int, RankState], cause: Cause, waits: Mapping[int, Wait]) -> list[str]:
    """Return the call that waits for a message, and where those are that have not sent it."""
    receivers = [rank for rank, wait in cause.waits.items() if wait.thread.call != FINALIZE]
    clauses = _are_in(ranks, waits, receivers)
    awaited = [
        condition.awaited
        for rank in receivers
        for condition in waits[rank].conditions
        if condition.awaited is not None
    ]
    is_sent = any(each.kind in (RECEIVE, PARTITIONED_RECEIVE) for each in awaited)
    verb = "sent it" if is_sent else "received it"
    absent = [rank for rank in cause.guilty if rank not in receivers]
    if not absent:
        clauses[-1] += f", and has not {verb}"
        return clauses
    has = "has" if len(absent) == 1 else "have"
    states = {ranks[rank].state for rank in absent}
    where = (
        f"{'is' if len(absent) == 1 else 'are'} in {FINALIZE}"
        if states == {RUNS}
        else "has left MPI_Finalize"
    )
    clauses.append(f"{named_ranks(absent)} {has} not {verb} and {where}")
    return clauses


def _of_collective(ranks: Mapping[int, RankState], cause: Cause, waits: Mapping[int, Wait]) -> list[str]:
    """Return who is in a collective, and who has entered another one or none."""
    of_collectives = [
        (rank, each, each.awaited)
        for rank, wait in cause.waits.items()
        for each in wait.conditions
        if each.awaited is not None and each.awaited.kind == COLLECTIVE
    ]
    if not of_collectives:
        return _are_in(ranks, waits, sorted(cause.waits))
    rank, condition, awaited = next((each for each in of_collectives if each[1].others), of_collectives[0])
    if not condition.others:
        same = [
            other
            for other, wait in waits.items()
            if any(
                each.awaited is not None
                and (each.awaited.communicator, each.awaited.number, each.awaited.call)
                == (awaited.communicator, awaited.number, awaited.call)
                for each in wait.conditions
            )
        ]
        clauses = _are_in(ranks, waits, sorted(same))
        absent = sorted(condition.ranks)
        it = f"{named_ranks(absent)} {'has' if len(absent) == 1 else 'have'} not entered it"
        there = _absent_texts(ranks, waits, absent)
        return [*clauses, f"{it}: {labels.listed(there)}" if there else it]
    groups: dict[Entered, list[int]] = {}
    for other, state in ranks.items():
        communicator = state.communicators.get(awaited.communicator)
        if communicator and (entered := communicator.entered.get(awaited.number)):
            groups.setdefault(entered, []).append(other)
    by_size = sorted(groups.items(), key=lambda group: (-len(group[1]), group[1]))
    kinds = list(groups)
    shows_root = len({each.root for each in kinds}) > 1
    shows_size = len({each.bytes for each in kinds}) > 1 and len({each.call for each in kinds}) == 1
    clauses = []
    for each, members in by_size[:_MAX_SHOWN]:
        root = f" with root {each.root}" if shows_root and each.root != NO_PEER else ""
        size = f" with {units.format_bytes(each.bytes)}" if shows_size and each.bytes is not None else ""
        place = _entered_text(ranks, waits, members, awaited)
        verb = "have" if len(members) > 1 else "has"
        clauses.append(f"{named_ranks(members)} {verb} entered {each.call}{root}{size}{place}")
    name = communicator_text(ranks[rank].communicators[awaited.communicator])
    clauses[-1] += f", all as no. {awaited.number} of {name}"
    return clauses


def _entered_text(
    ranks: Mapping[int, RankState], waits: Mapping[int, Wait], members: Sequence[int], awaited: Awaited
) -> str:
    """Return in parentheses where members have entered a collective, and for how long they have been in it,
    if they still are."""
    inside = [
        waits[member].thread
        for member in members
        if member in waits
        for each in waits[member].conditions
        if each.awaited is not None
        and (each.awaited.communicator, each.awaited.number) == (awaited.communicator, awaited.number)
    ]
    entered = ranks[members[0]].communicators[awaited.communicator].entered[awaited.number]
    place = ranks[members[0]].place_of(entered.site, entered.call) if entered.site else ""
    if not place and inside:
        place = inside[0].place
    texts = [place, *([seconds(inside[0].since_s)] if inside else [])]
    return f" ({', '.join(filter(None, texts))})" if any(texts) else ""


def _absent_texts(
    ranks: Mapping[int, RankState], waits: Mapping[int, Wait], absent: Sequence[int]
) -> list[str]:
    """Return where the ranks are that have not entered a collective."""
    texts = []
    for members, text, wait in _groups(ranks, waits, [rank for rank in absent if rank in waits])[:_MAX_SHOWN]:
        whom = "it" if len(absent) == 1 else "they" if len(members) == len(absent) else named_ranks(members)
        texts.append(f"{whom} {'is' if len(members) == 1 else 'are'} in {text}{place_text(wait.thread)}")
    ended = [rank for rank in absent if ranks[rank].state in (ENDED, FINALIZED)]
    if ended:
        whom = "it" if len(absent) == 1 else named_ranks(ended)
        texts.append(f"{whom} {_end_of(ranks[ended[0]])}")
    return texts


def of_live(
    ranks: Mapping[int, RankState],
    verdict: str,
    guilty: Sequence[int],
    blocked: Mapping[int, Wait],
    moving: Sequence[int],
    is_over: bool,
) -> str:
    """Return the sentence if every rank may get on, as far as is known."""
    waiting = _wait_in(ranks, blocked, [rank for rank in blocked if rank not in moving], "others")
    in_calls = _others_in(ranks, blocked, guilty)
    if verdict == "running":
        computing = [
            rank for rank, state in ranks.items()
            if rank not in moving and any(not thread.is_inside for thread in state.threads)
        ]  # fmt: skip
        clauses = [f"{named_ranks(moving)} get{'s' if len(moving) == 1 else ''} on"] if moving else []
        if computing:
            clauses.append(f"{named_ranks(computing)} compute{'s' if len(computing) == 1 else ''}")
        clauses += waiting if moving else []
    elif verdict == "computing":
        clauses = _computing(ranks, guilty, is_over) + _wait_in(
            ranks, blocked, list(blocked), "it" if len(guilty) == 1 else "them"
        )
        clauses += in_calls
    elif verdict == "unreachable" and not any(ranks[rank].state == UNSEEN for rank in guilty):
        clauses = [
            f"{named_ranks([rank])} on {ranks[rank].host} waits for a message that {named_ranks([sender])} "
            f"on {ranks[sender].host} has sent, and that does not arrive"
            for rank, sender in list(undelivered(ranks).items())[:_MAX_SHOWN]
        ] + waiting
    elif verdict == "unreachable":
        hosts = sorted({ranks[rank].host for rank in guilty} - {""})
        where = f" on {labels.listed(hosts)}" if hosts else ""
        clauses = [f"{named_ranks(guilty)}{where} cannot be seen from here", *waiting, *in_calls]
    elif verdict == "finalize":
        clauses = [f"all ranks are in {FINALIZE}", *_open_requests(ranks)]
    else:
        clauses = [*in_calls, *waiting] or ["no rank has left MPI_Init"]
        if verdict == "unknown" and in_calls:
            clauses.append("what these calls wait for is not known")
        others = [rank for rank, state in ranks.items() if state.has_other_threads]
        if verdict == "unknown" and others:
            clauses.append(f"{named_ranks(others)} may have threads that have not called the MPI yet")
    unseen = [rank for rank, state in ranks.items() if state.state == UNSEEN]
    if unseen and verdict != "unreachable":
        hosts = sorted({ranks[rank].host for rank in unseen} - {""})
        where = f" on {labels.listed(hosts)}" if hosts else ", which may be in MPI_Init or on other nodes"
        clauses.append(f"{named_ranks(unseen)}{where} cannot be seen from here")
    return f"{labels.capital(verdict)}: {'; '.join(clauses)}."


def _computing(ranks: Mapping[int, RankState], guilty: Sequence[int], is_over: bool) -> list[str]:
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for rank in guilty:
        outside = [each for each in ranks[rank].threads if not each.is_inside]
        thread = min(outside, key=lambda each: each.is_idle)
        since = "" if is_over else seconds(thread.since_s)
        does = "used no processor" if thread.is_idle else "computed"
        groups.setdefault((thread.call, thread.place, since, does), []).append(rank)
    clauses = []
    for (call, place, since, does), members in list(groups.items())[:_MAX_SHOWN]:
        has = "has" if len(members) == 1 else "have"
        what = "computed or ended" if is_over else f"{has} {does} for {since}"
        clauses.append(f"{named_ranks(members)} {what} after {call}{f' ({place})' if place else ''}")
    left = sum(len(members) for members in list(groups.values())[_MAX_SHOWN:])
    return clauses + (
        [f"{labels.counted(left, 'more rank')} compute{'s' if left == 1 else ''}"] if left > 0 else []
    )


def _others_in(
    ranks: Mapping[int, RankState], blocked: Mapping[int, Wait], guilty: Sequence[int]
) -> list[str]:
    """Return where ranks are of which it is not known what they wait for."""
    calls: dict[tuple[str, str, bool], tuple[list[int], ThreadState]] = {}
    for rank, state in ranks.items():
        for thread in state.threads[:1]:
            if rank in blocked or not thread.is_inside or not thread.is_steady or state.state != RUNS:
                continue
            key = (thread.call, thread.place, thread.is_polling)
            calls.setdefault(key, ([], thread))[0].append(rank)
    clauses = []
    for (call, _, is_polling), (members, thread) in list(calls.items())[:_MAX_SHOWN]:
        is_one = len(members) == 1
        verb = f"poll{'s' if is_one else ''} with" if is_polling else "is in" if is_one else "are in"
        clauses.append(f"{named_ranks(members)} {verb} {call}{place_text(thread)}")
    return clauses


def _open_requests(ranks: Mapping[int, RankState]) -> list[str]:
    """Return receives that are open although all ranks are in MPI_Finalize."""
    return [
        f"rank {rank} has not completed {request.call}{awaited_text(request, state)}"
        for rank, state in ranks.items()
        for request in state.requests
        if request.kind == RECEIVE
    ][:_MAX_SHOWN]
