"""Changes of a recorded program's messages: collectives by other algorithms, partitions, and aggregation."""

import numpy as np

from earlybird.analysis.events import row_numbers
from earlybird.data.collective_algorithms import OPERATIONS as KNOWN_OPERATIONS
from earlybird.data.errors import InputError
from earlybird.data.mpi_calls import OPERATIONS
from earlybird.models.program import Operation
from earlybird.models.schedules import POWERS_ONLY, Schedule, known_algorithms, schedule
from earlybird.record.operations import AS_PROTOCOL, EARLY, NEVER, NO_SITE, Operations
from earlybird.record.rewriting import Rewriting
from earlybird.record.segments import largest_until

# Messages of fewer bytes have no parts worth sending early.
MIN_PARTITIONED_BYTES = 1024
# The delay that paper 002 assumes of one thread, as a part of what it computes.
NOISE_SHARE = 0.04


def parse_algorithm(operations: Operations, text: str) -> tuple[str, str]:
    """Parse `allreduce=ring`; raise InputError, with what there is, if no such collective was recorded or if
    the messages of the algorithm are not known."""
    operation, sign, name = text.partition("=")
    known = known_algorithms(operation) if operation in KNOWN_OPERATIONS else ()
    if not sign or not known:
        all_of = [one for one in KNOWN_OPERATIONS if known_algorithms(one)]
        raise InputError(
            f"--algorithm is {text[:80]!r}; give OPERATION=NAME, such as allreduce=ring, of "
            f"{', '.join(all_of)}"
        )
    if name not in known:
        raise InputError(
            f"--algorithm {text[:80]}: the messages of such an algorithm are not known; give one of "
            f"{', '.join(known)}"
        )
    recorded = {one for one in KNOWN_OPERATIONS if len(_chosen(operations, one))}
    if operation not in recorded:
        has = f"it has {', '.join(sorted(recorded))}" if recorded else "it has no blocking collectives"
        raise InputError(f"--algorithm {text}: the recording has no {operation}; {has}")
    sizes = _sizes(operations, operation)
    if (operation, name) in POWERS_ONLY and any(size & (size - 1) for size in sizes):
        raise InputError(f"--algorithm {text}: it needs a power of two of ranks, and there are {max(sizes)}")
    return operation, name


def _chosen(operations: Operations, operation: str) -> np.ndarray:
    """Return the blocking collectives of an operation."""
    is_of = np.array([OPERATIONS.get(call) == operation for call in operations.collective], bool)
    chosen: np.ndarray = np.flatnonzero(is_of & ~operations.is_immediate)
    return chosen


def _sizes(operations: Operations, operation: str) -> set[int]:
    enters = operations.argument[operations.operation == Operation.ENTER]
    num = np.bincount(enters, minlength=len(operations.collective))
    return set(num[_chosen(operations, operation)].tolist())


def by_messages(
    operations: Operations, operation: str, algorithm: str, chosen: np.ndarray | None = None,
    sender: int = AS_PROTOCOL,
) -> Operations:  # fmt: skip
    """Return the operations with the blocking collectives of an operation, all or those `chosen`, as messages
    of an algorithm, which late ranks delay as the messages do, instead of their recorded cost."""
    chosen = _chosen(operations, operation) if chosen is None else chosen
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    of = operations.argument[enters]
    order = np.argsort(of, kind="stable")
    enters, of = enters[order], of[order]
    rank = operations.rank
    schedules: dict[tuple[int, int, int], Schedule] = {}
    parts: list[tuple[np.ndarray, ...]] = []
    for k in chosen.tolist():
        members = enters[np.searchsorted(of, k) : np.searchsorted(of, k, side="right")]
        ranks = rank[members]
        root = int(np.searchsorted(ranks, operations.root[k]))
        key = len(members), root if root < len(members) else 0, int(operations.collective_bytes[k])
        if key not in schedules:
            schedules[key] = schedule(operation, algorithm, *key)
        messages = schedules[key]
        parts.append((messages.step, members[messages.src], members[messages.dst], messages.bytes))
    rewriting = Rewriting(operations)
    rewriting.drop(enters[np.isin(of, chosen)])
    if parts:
        step, sends, receives, size_bytes = (np.concatenate(column) for column in zip(*parts, strict=True))
        # The waits of each call and step.
        both = np.concatenate([sends, receives])
        steps = np.concatenate([step, step])
        number = row_numbers(both, steps)
        _, first = np.unique(number, return_index=True)
        waits = rewriting.insert(both[first], 3 * steps[first] + 2, Operation.WAIT_ALL)
        of_send, of_receive = np.split(waits[number], 2)
        new = rewriting.add_messages(rank[sends], rank[receives], size_bytes, sender, of_send)
        rewriting.wait(of_receive, rewriting.insert(receives, 3 * step, Operation.RECEIVE, argument=new))
        rewriting.wait(of_send, rewriting.insert(sends, 3 * step + 1, Operation.SEND, argument=new))
    return rewriting.done()


def _spans(operations: Operations, ends_span: np.ndarray) -> np.ndarray:
    """Return the number of the span of each operation: a span ends after an operation of `ends_span`, and
    with its thread."""
    begins = np.zeros(len(ends_span) + 1, np.int64)
    begins[1:][ends_span] = 1
    begins[operations.first[:-1]] = 1
    return np.cumsum(begins[:-1])


def _waits_for_others(operations: Operations) -> np.ndarray:
    """Return whether each operation waits for a receive or a collective."""
    waits = np.flatnonzero(operations.operation == Operation.WAIT_ALL)
    of_request = np.repeat(np.arange(len(waits)), np.diff(operations.set_first))
    is_other = operations.operation[operations.set_requests] != Operation.SEND
    has_other = np.bincount(of_request[is_other], minlength=len(waits)) > 0
    does = np.zeros(len(operations.operation), bool)
    does[waits] = has_other[operations.argument[waits]]
    return does


def _ends(operations: Operations) -> np.ndarray:
    """Return (2, M) the positions of the send and the receive of each message."""
    ends = np.empty((2, len(operations.bytes)), np.int64)
    for row, kind in enumerate((Operation.SEND, Operation.RECEIVE)):
        here = np.flatnonzero(operations.operation == kind)
        ends[row, operations.argument[here]] = here
    return ends


def _leads_s(
    operations: Operations, filling: np.ndarray, partitions: int, noise_share: float | None
) -> np.ndarray:
    """Return (F, N - 1) how long before the end of each computation all partitions but the last are ready, in
    descending order: `noise_share` of it, or as the threads of its rank arrived, in whose order equally many
    threads fill each partition."""
    own_s = operations.own_s[filling]
    share = NOISE_SHARE if noise_share is None else noise_share
    leads_s = np.repeat(share * own_s[:, None], partitions - 1, axis=1)
    if noise_share is None:
        rank = operations.rank[filling]
        for of_rank, by_thread_s in operations.leads_s.items():
            here, num = np.flatnonzero(rank == of_rank), len(by_thread_s)
            last_thread = -(-np.arange(1, partitions) * num // partitions) - 1
            leads_s[here] = np.sort(by_thread_s)[::-1][last_thread]
    limited: np.ndarray = np.minimum(leads_s, own_s[:, None])
    return limited


def partitioned(operations: Operations, partitions: int, noise_share: float | None = None) -> Operations:
    """Return the operations with messages in partitions, all but the last of which leave while the sender
    still computes.

    What a rank computes before it sends fills the partitions: the longest computing since the rank last
    waited for others. The last one is ready at its end, and the others `noise_share` of it before; without
    that as the threads of the rank arrived, if that was recorded, else NOISE_SHARE. They move while ranks
    compute, as libearlybird's do. Buffered and small messages remain.
    """
    send, receive = _ends(operations)
    span = _spans(operations, _waits_for_others(operations))
    is_compute = (operations.operation == Operation.COMPUTE) & (operations.site != NO_SITE)
    fills = largest_until(span, np.where(is_compute, operations.own_s, -1.0))[send]
    is_split = (
        (operations.bytes >= MIN_PARTITIONED_BYTES) & (operations.sender != NEVER)
        & is_compute[fills] & (operations.own_s[fills] > 0)
    )  # fmt: skip
    messages = np.flatnonzero(is_split)
    rewriting = Rewriting(operations)
    if not len(messages):
        return rewriting.done()
    waits = rewriting.waits_of()
    filling = np.unique(fills[messages])
    leads_s = _leads_s(operations, filling, partitions, noise_share)
    pieces_s = -np.diff(leads_s, prepend=operations.own_s[filling][:, None], axis=1)
    rewriting.own_s[filling] = leads_s[:, -1]
    last_bytes = -(-operations.bytes[messages] // partitions)
    early = operations.bytes[messages] - last_bytes
    src, dst = operations.src[messages], operations.dst[messages]
    for k in range(partitions - 1):
        size_bytes = early * (k + 1) // (partitions - 1) - early * k // (partitions - 1)
        new = rewriting.add_messages(src, dst, size_bytes, EARLY, -1)
        if (pieces_s[:, k] > 0).any():
            rewriting.insert(filling, 2 * k, Operation.COMPUTE, pieces_s[:, k])
        sends = rewriting.insert(fills[messages], 2 * k + 1, Operation.SEND, argument=new)
        receives = rewriting.insert(receive[messages], k, Operation.RECEIVE, argument=new)
        rewriting.wait(waits[send[messages]], sends)
        rewriting.wait(waits[receive[messages]], receives)
    rewriting.change_messages(messages, size_bytes=last_bytes, sender=EARLY)
    return rewriting.done()


def aggregated(operations: Operations) -> Operations:
    """Return the operations with the messages that a rank sends to the same other rank from one call site,
    before it waits for others, as one that leaves with the last of them.

    It is received where the first of them was awaited. Of blocking sends, only those join that follow each
    other.
    """
    send, receive = _ends(operations)
    thread = np.searchsorted(operations.first, send, side="right") - 1
    has_requests = np.zeros(len(operations.operation), bool)
    waits = np.flatnonzero(operations.operation == Operation.WAIT_ALL)
    has_requests[waits] = np.diff(operations.set_first)[operations.argument[waits]] > 0
    alone = _spans(operations, has_requests)[send]
    blocking = _spans(operations, _waits_for_others(operations))[send]
    # Runs of blocking sends to one rank.
    run = np.zeros(len(send), np.int64)
    order = np.argsort(send)
    order = order[operations.is_blocking[order]]
    keys = np.column_stack([thread[order], operations.dst[order]])
    run[order] = np.cumsum(np.concatenate([[True], (np.diff(keys, axis=0) != 0).any(axis=1)])[: len(order)])
    group = row_numbers(
        operations.is_blocking, thread, operations.dst, operations.sender, operations.site[send],
        np.where(operations.is_blocking, blocking, alone), run,
    )  # fmt: skip
    num = int(group.max(initial=-1)) + 1
    rewriting = Rewriting(operations)
    total = np.bincount(group, operations.bytes, num).astype(np.int64)
    last = np.zeros(num, np.int64)
    order = np.argsort(send, kind="stable")
    last[group[order]] = order
    # Of the receives the one that is awaited first.
    awaited = rewriting.waits_of()[receive]
    awaited = np.where(awaited >= 0, awaited, len(operations.operation))
    order = np.lexsort([receive, awaited])[::-1]
    first = np.zeros(num, np.int64)
    first[group[order]] = order
    is_kept = np.zeros(len(send), bool)
    is_kept[last] = True
    rewriting.drop(send[~is_kept])
    is_received = np.zeros(len(send), bool)
    is_received[first] = True
    rewriting.drop(receive[~is_received])
    rewriting.receive_instead(receive[first], last)
    rewriting.change_messages(last, size_bytes=total)
    rewriting.drop_messages(np.flatnonzero(~is_kept))
    return rewriting.done()
