"""Says where the time of a simulated run goes: by call site, and along its critical path."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data.simulated_program import CriticalShare, PhaseOfRun
from earlybird.models.program import Operation, Program, Semantics, SimulatedRun
from earlybird.record.operations import NO_SITE, Operations
from earlybird.record.segments import largest_places, largest_until


def _begin_s(program: Program, run: SimulatedRun) -> np.ndarray:
    begin_s = np.empty(len(run.end_s))
    begin_s[1:] = run.end_s[:-1]
    begin_s[program.first[:-1][np.diff(program.first) > 0]] = 0.0
    return begin_s


class _Ends:
    """The positions of the operations of each message and collective.

    Attributes
    ----------
    of_message : (2, M) the send and the receive.
    enters, collective : (E,) the operations that enter collectives, by collective and then by rank, and the
        collective of each.
    """

    def __init__(self, program: Program):
        self.of_message = np.full((2, len(program.message_bytes)), -1)
        for row, kind in enumerate((Operation.SEND, Operation.RECEIVE)):
            here = np.flatnonzero(program.operation == kind)
            self.of_message[row, program.argument[here]] = here
        enters = np.flatnonzero(program.operation == Operation.ENTER)
        self.enters = enters[np.argsort(program.argument[enters], kind="stable")]
        self.collective = program.argument[self.enters]


@dataclass(frozen=True, eq=False)
class Awaited:
    """What operations of a simulated run waited for, arrays (N,).

    Attributes
    ----------
    begin_s : when each operation began.
    by : the operation because of which it ended late; -1 if none.
    done_s : when that was done; NaN if none.
    """

    begin_s: np.ndarray
    by: np.ndarray
    done_s: np.ndarray


def awaited(operations: Operations, program: Program, run: SimulatedRun) -> Awaited:
    """Return what each operation waited for: the other end of the message that it needed last, or the last
    rank of a collective."""
    ends, rank = _Ends(program), operations.rank
    by, done_s = np.full(len(run.end_s), -1), np.full(len(run.end_s), np.nan)
    waits = np.flatnonzero(run.last_request >= 0)
    requests = run.last_request[waits]
    of_messages = program.operation[requests] != Operation.ENTER
    messages = program.argument[requests[of_messages]]
    send, receive = ends.of_message[:, messages]
    # A message that began when its receive was posted, not when it was sent, was awaited by its sender.
    is_late_receive = (run.end_s[receive] > run.end_s[send]) & (run.begun_s[messages] >= run.end_s[receive])
    other_end = np.where(is_late_receive, receive, send)
    outside = _computed_until(program, run, send, receive, run.begun_s[messages])
    by[waits[of_messages]] = np.where(outside >= 0, outside, other_end)
    entered = waits[~of_messages]
    by[entered] = _last_members(program, run, ends, rank, requests[~of_messages])
    done_s[waits] = run.end_s[by[waits]]
    return Awaited(_begin_s(program, run), by, done_s)


def _last_members(
    program: Program, run: SimulatedRun, ends: _Ends, rank: np.ndarray, requests: np.ndarray
) -> np.ndarray:
    """Return for each operation that enters a collective the last one that it waits for, perhaps itself."""
    collective, num = program.argument[requests], len(program.semantics)
    semantics, root = program.semantics[collective], program.root[collective]
    end_s = run.end_s[ends.enters]
    last = ends.enters[largest_places(ends.collective, end_s, num)[collective]]
    is_root = rank[ends.enters] == program.root[ends.collective]
    of_root = np.full(num, -1)
    of_root[ends.collective[is_root]] = ends.enters[is_root]
    until = np.full(len(run.end_s), -1)
    until[ends.enters] = ends.enters[largest_until(ends.collective, end_s)]
    thread = np.searchsorted(program.first, ends.enters, side="right") - 1
    is_root_thread = thread == program.root[ends.collective]
    is_root_thread &= program.semantics[ends.collective] == Semantics.WAIT_FOR_THREAD
    of_root[ends.collective[is_root_thread]] = ends.enters[is_root_thread]
    for_one = (semantics == Semantics.WAIT_FOR_ROOT) | (semantics == Semantics.WAIT_FOR_THREAD)
    last = np.where(for_one, of_root[collective], last)
    last = np.where((semantics == Semantics.ROOT_WAITS) & (rank[requests] != root), requests, last)
    members: np.ndarray = np.where(semantics == Semantics.PREFIX, until[requests], last)
    return members


def _computed_until(
    program: Program, run: SimulatedRun, send: np.ndarray, receive: np.ndarray, begun_s: np.ndarray
) -> np.ndarray:
    """Return for each message that began when a thread that had posted it came back into the MPI the
    operation in which that thread had computed until then; otherwise -1."""
    computing = np.full(len(send), -1)
    is_late = np.flatnonzero(begun_s > np.maximum(run.end_s[send], run.end_s[receive]))
    if not len(is_late):
        return computing
    for posts in (send[is_late], receive[is_late]):
        thread = np.searchsorted(program.first, posts, side="right") - 1
        order = np.argsort(thread, kind="stable")
        for here in np.split(order, np.flatnonzero(np.diff(thread[order])) + 1):
            number = int(thread[here[0]])
            first, end = program.first[number], program.first[number + 1]
            place = first + np.searchsorted(run.end_s[first:end], begun_s[is_late[here]], side="left")
            place = np.minimum(place, end - 1)
            is_it = (run.end_s[place] == begun_s[is_late[here]]) & (
                program.operation[place] == Operation.COMPUTE
            )
            computing[is_late[here[is_it]]] = place[is_it]
    return computing


def time_parts(program: Program, run: SimulatedRun, of_run: Awaited) -> np.ndarray:
    """Return the seconds (3, N) that each operation computes, waits for what others had not done, and the
    rest; in an operation they follow each other in this order. `of_run` is what `awaited` returns."""
    duration_s = run.end_s - of_run.begin_s
    waiting_s = np.clip(np.nan_to_num(of_run.done_s, nan=-np.inf) - of_run.begin_s, 0.0, duration_s)
    is_compute = program.operation == Operation.COMPUTE
    return np.stack(
        [duration_s * is_compute, waiting_s * ~is_compute, (duration_s - waiting_s) * ~is_compute]
    )


def phases(operations: Operations, parts_s: np.ndarray) -> list[PhaseOfRun]:
    """Return the `time_parts` of all ranks by call site: computing before it, waiting in it, and the rest,
    most first."""
    num = len(operations.sites)
    of_sites = operations.phases_of_sites or [()] * num
    here = operations.site != NO_SITE
    sums = [np.bincount(operations.site[here], values[here], num) for values in parts_s]
    is_used = np.bincount(operations.site[here], minlength=num) > 0
    rows = [
        PhaseOfRun(
            place, call, float(computing_s), float(waits_s), float(transfer_s), float(recorded_s), of_phases
        )
        for (call, place), computing_s, waits_s, transfer_s, recorded_s, of_phases, is_there in zip(
            operations.sites, *sums, operations.in_calls_s, of_sites, is_used.tolist(), strict=True
        )
        if is_there
    ]
    return sorted(rows, key=lambda row: (-row.total_s, row.call, row.site))


def critical_path(
    operations: Operations, program: Program, run: SimulatedRun, of_run: Awaited | None = None
) -> list[CriticalShare]:
    """Return the time on the path that determines the run time, by rank and call site, most first.

    From the end of the run back: what a rank did, until it had to wait for another rank, and then what that
    one did. `of_run` is what `awaited` returns.
    """
    if not len(run.end_s):
        return []
    of_run = of_run or awaited(operations, program, run)
    is_first = np.zeros(len(run.end_s), bool)
    is_first[program.first[:-1][np.diff(program.first) > 0]] = True
    # Views read single values as fast as lists, and take no memory.
    columns: list[Any] = [
        run.end_s, of_run.begin_s, of_run.by, is_first, program.operation == Operation.COMPUTE,
        operations.rank, operations.site,
    ]  # fmt: skip
    views: list[Any] = [memoryview(column) for column in columns]
    end_s, begin_s, by_of, first_of, computes, rank, site = views
    sums: dict[tuple[int, int], list[float]] = {}
    at, until_s = int(np.argmax(run.end_s)), float(run.end_s.max())
    while True:
        by = by_of[at]
        jumps = by >= 0 and end_s[by] >= begin_s[at] and by != at
        from_s = min(end_s[by] if jumps else begin_s[at], until_s)
        row = sums.setdefault((rank[at], site[at]), [0.0, 0.0])
        row[0 if computes[at] else 1] += until_s - from_s
        until_s = from_s
        if jumps:
            at = by
        elif first_of[at]:
            break
        else:
            at -= 1
    shares = [
        CriticalShare(of_rank, _site_text(operations, of_site), times[0], times[1])
        for (of_rank, of_site), times in sums.items()
        if sum(times) > 0
    ]
    return sorted(shares, key=lambda share: (-share.total_s, share.rank, share.site))


def _site_text(operations: Operations, site: int) -> str:
    if site == NO_SITE:
        return "the window's edge" if operations.window else "start"
    call, place = operations.sites[site]
    return f"{call} in {place}" if place else call
