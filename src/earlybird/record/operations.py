"""Turns the events of a recording into the operations of a program that can be simulated."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from earlybird.analysis.events import (
    ALL_WAIT_FOR_ALL,
    FENCE,
    IMMEDIATE,
    PARTITIONED,
    ROOT_WAITS,
    WAIT_FOR_ROOT,
    Collective,
    Matches,
    calls_of,
    row_numbers,
)
from earlybird.analysis.gaps import named_ranks
from earlybird.analysis.thread_events import (
    ThreadWaits,
    are_idle,
    thread_events_of,
    thread_waits,
)
from earlybird.analysis.waits import COMPLETING, PROBING, RECEIVING, Traced, traced
from earlybird.data import memory
from earlybird.data.errors import InputError
from earlybird.data.mpi_calls import POLLS, STARTS
from earlybird.data.phases import find_phases
from earlybird.data.recorded_rank import CALL, CONCURRENT, NULL_PEER, RECEIVED, SENT
from earlybird.data.recorded_trace import BEGINS, COMPLETION, CREATES, ENDS, LOCAL_THREAD_CALLS, open_traces
from earlybird.data.recording import Recording
from earlybird.data.shell_commands import command_text, path_argument
from earlybird.data.units import format_bytes, format_seconds
from earlybird.models.program import Operation, Semantics
from earlybird.record.partial_traces import traced_window
from earlybird.record.sites import phases_of_sites
from earlybird.record.window import Cut, Window, cut_of, fitting_window

_INIT, _FINALIZE = frozenset({"MPI_Init", "MPI_Init_thread"}), frozenset({"MPI_Finalize"})
_BUFFERED = frozenset({"MPI_Bsend", "MPI_Ibsend", "MPI_Bsend_init"})
_SYNCHRONOUS = frozenset({"MPI_Ssend", "MPI_Issend", "MPI_Ssend_init"})
# Whether the sender of a message waits: as its protocol, never, always, or as its protocol with a message
# that moves while ranks compute.
AS_PROTOCOL, NEVER, ALWAYS, EARLY = SENDERS = range(4)
# Polls of one place that are no farther apart are a wait; a program that computes between them does so for
# longer.
_SPIN_S = 5e-6
# Local calls, whose recorded duration is what they cost.
_LOCAL = STARTS | LOCAL_THREAD_CALLS | {
    "MPI_Bsend", "MPI_Send_init", "MPI_Bsend_init", "MPI_Ssend_init", "MPI_Rsend_init", "MPI_Recv_init",
    "MPI_Cancel", "MPI_Request_free", "MPI_Pcontrol", "MPI_Comm_set_name",
}  # fmt: skip
# What an event takes in memory while it is read and simulated.
BYTES_PER_EVENT = 800
# The order of the operations of one call.
_POSTED_BEFORE, _COMPUTE, _BEGUN, _POST_RECEIVE, _POST_SEND, _ENTER, _WAIT, _COMPUTE_ON = range(8)
NO_SITE = -1


@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of a recorded run, from the first MPI_Init that returned to the last MPI_Finalize.

    N operations, T threads, M messages, K collectives; see `models.program.Program` for what they are.

    Attributes
    ----------
    size : number of ranks.
    recorded_s : duration of the run.
    thread_rank, first, operation, argument, set_first, set_requests : as in `Program`.
    own_s : (N,) recorded seconds: a computation; a call that does not wait for others; the cost of a
        collective after the last rank that it waits for.
    site : (N,) index of `sites`: of a COMPUTE the call that follows; NO_SITE before the first call and after
        the last one.
    sites : call and place in the program of each site.
    in_calls_s : recorded seconds of all ranks in the calls of each site.
    src, dst, bytes : (M,) ranks and size of each message.
    sender : (M,) AS_PROTOCOL, NEVER, ALWAYS or EARLY.
    send_wait : (M,) position of the WAIT_ALL of the call that posts the send, whose `own_s` is the duration
        of this call; -1 without a call.
    is_blocking : (M,) whether that call also waits for the send.
    semantics, root : (K,).
    kept_s : by call, the seconds of all ranks in calls that are not simulated and keep their duration.
    num_calls : number of calls.
    num_unmatched : number of received messages without a send in the events, which are left out.
    collective : (K,) name of each collective; "" for what stands for requests that are not simulated.
    collective_bytes : (K,) its bytes, as models of collectives count them: of the buffer, or of the block
        between two ranks.
    is_immediate : (K,) whether it is a non-blocking one.
    leads_s : by rank whose threads were seen to arrive: the mean time from the arrival of each thread at the
        end of a parallel region before sends to that of the last one, of its most frequent region.
    window : the part of the run that these are, such as `--window 2s..5s`; "" for the whole run.
    num_under_way : messages and collectives that are only partly in the window, and left out.
    phases_of_sites : numbers of the phases of the recording that have each site; this and what follows are
        empty for operations that are of no recording.
    early : what are messages that leave a root when it enters, such as "MPI_Bcast of 64 KiB by binomial".
    early_others : the operations with the other algorithms of `early` that explain the recorded time, and
        with the recorded cost; they compute the same.
    event : (N,) position of the call in the events, -1 before the first call of a thread.
    recorded_end_s : (N,) when each operation ended when it was recorded.
    thread_slot : (T,) number of the thread in the events of its rank; threads that follow each other may have
        the same.
    """

    size: int
    recorded_s: float
    thread_rank: np.ndarray
    first: np.ndarray
    operation: np.ndarray
    argument: np.ndarray
    own_s: np.ndarray
    set_first: np.ndarray
    set_requests: np.ndarray
    site: np.ndarray
    sites: tuple[tuple[str, str], ...]
    in_calls_s: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    sender: np.ndarray
    send_wait: np.ndarray
    is_blocking: np.ndarray
    semantics: np.ndarray
    root: np.ndarray
    kept_s: Mapping[str, float]
    num_calls: int
    num_unmatched: int
    collective: tuple[str, ...] = ()
    collective_bytes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    is_immediate: np.ndarray = field(default_factory=lambda: np.empty(0, bool))
    leads_s: Mapping[int, np.ndarray] = field(default_factory=dict)
    window: str = ""
    num_under_way: int = 0
    phases_of_sites: Sequence[tuple[int, ...]] = ()
    early: tuple[str, ...] = ()
    early_others: "tuple[Operations, ...]" = ()
    event: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    recorded_end_s: np.ndarray = field(default_factory=lambda: np.empty(0))
    thread_slot: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def row(self) -> np.ndarray:
        """The (T,) number, from 0, of each thread among those that differ in their rank or their slot."""
        if not len(self.thread_slot):
            return np.arange(len(self.thread_rank))
        return row_numbers(self.thread_rank, self.thread_slot)

    @property
    def is_of_threads(self) -> np.ndarray:
        """Whether each operation, (N,), is a call by which threads of a process wait for each other."""
        of_site = np.array([not call.startswith("MPI_") for call, _ in self.sites], bool)
        is_call = self.operation != Operation.COMPUTE
        if not len(of_site):
            return np.zeros(len(is_call), bool)
        chosen: np.ndarray = is_call & ((self.site == NO_SITE) | of_site[np.maximum(self.site, 0)])
        return chosen

    @property
    def rank(self) -> np.ndarray:
        """The (N,) rank of each operation."""
        return np.repeat(self.thread_rank, np.diff(self.first))


def operations_of(
    recording: Recording, window: Window | None = None, with_threads: bool = True
) -> Operations:
    """Return the operations of a recording, of the window only if one is given, and from the moment on from
    which the events of all ranks are whole. Raises InputError if events are missing after that.

    Without threads, what those that are not in the MPI do is left out.
    """
    joined = events_for(recording, window)
    return _Builder(recording, joined if with_threads else replace(joined, threads=None), window).build()


def events_for(recording: Recording, window: Window | None) -> Traced:
    """Return the events that `operations_of` is made of."""
    if window is None:
        _require_memory(recording)
    return _without_holes(recording, window)


def _require_memory(recording: Recording) -> None:
    """Refuse more events than fit into memory before they are read."""
    opened = open_traces(recording) or {}
    num = sum(len(file) for file in opened.values())
    needed, free = num * BYTES_PER_EVENT, memory.available_memory_bytes()
    if num and needed > free:
        run_s = max(file.duration_s for file in opened.values())
        fitting = fitting_window(0.0, run_s * free / needed)
        raise InputError(
            f"the recording {path_argument(recording.path)} has {num} events, whose simulation takes about "
            f"{format_bytes(needed)} of memory, and {format_bytes(free)} are available; give {fitting}, "
            "which fits if events are spread evenly, or use a machine with more memory"
        )


def _require_all(recording: Recording, lacking: list[int], cut_s: Mapping[int, float], again: str) -> None:
    """Raise InputError for ranks without events, and for those whose events end before the run."""
    path = path_argument(recording.path)
    if lacking:
        raise InputError(f"{named_ranks(lacking)} of the recording {path} left no events; {again}")
    if cut_s:
        raise InputError(
            f"the events of {named_ranks(sorted(cut_s))} of {path} end {format_seconds(min(cut_s.values()))} "
            f"after MPI_Init, as on a full disk; {again}"
        )


def _without_holes(recording: Recording, window: Window | None) -> Traced:
    path = path_argument(recording.path)
    again = "record the program again with --events all"
    if recording.command:
        new = recording.path.with_name(f"{recording.path.name}-events")
        command = (
            f"earlybird record --events all -o {path_argument(new)} -- {command_text(recording.command)}"
        )
        again += f": {command}"
    if recording.missing:
        raise InputError(f"{named_ranks(recording.missing)} of the recording {path} left no file; {again}")
    if recording.ended_early:
        raise InputError(
            f"{named_ranks(recording.ended_early)} of the recording {path} did not reach the end of "
            f"MPI_Finalize, so messages may be missing; {again}"
        )
    opened = open_traces(recording)
    if opened:  # before the files are read
        lacking = [rank for rank in range(recording.size) if not len(opened.get(rank, ()))]
        cut_s = {rank: file.duration_s for rank, file in opened.items() if file.is_cut}
        _require_all(recording, lacking if len(lacking) < recording.size else [], cut_s, again)
    joined = traced(recording) if window is None else traced_window(recording, window, BYTES_PER_EVENT)
    if joined is None:
        raise InputError(f"the recording {path} has no events, which a simulation needs; {again}")
    events = joined.events
    lacking = sorted(set(range(recording.size)) - set(np.unique(events.rank).tolist()))
    _require_all(recording, lacking, joined.cut_s, again)
    if joined.clocks.unconnected:
        raise InputError(
            f"the clocks of {named_ranks(joined.clocks.unconnected)} cannot be compared with that of rank 0: "
            "no messages connect them; record on one node, or a program that communicates between nodes"
        )
    if (events.role == RECEIVED).any() and not (events.request > 0).any():
        raise InputError(f"the events of {path} are of an earlier version, without requests; {again}")
    return joined


def _lookup(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the positions of `wanted` in `keys`, -1 where they are not; of equal keys the last one."""
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], wanted, side="right") - 1
    if not len(keys):
        return np.full(len(wanted), -1)
    return np.where((place >= 0) & (keys[order][place] == wanted), order[place], -1)


def _taken(values: np.ndarray, places: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return `values` at the places, and `otherwise` where they are -1."""
    taken = np.array(otherwise)
    is_there = places >= 0
    taken[is_there] = values[places[is_there]]
    return taken


class _Builder:
    """Collects rows of operations (call, order within the call) and sorts them."""

    def __init__(self, recording: Recording, joined: Traced, window: Window | None):
        self.recording, self.joined, self.events = recording, joined, joined.events
        self._add_threads()
        events = self.events
        self.call_of = calls_of(events)
        self.rows: list[tuple[np.ndarray, ...]] = []
        init = events.is_call(_INIT) & (events.calls > 0)
        self.is_finalize = events.is_call(_FINALIZE) & (events.calls > 0)
        begun_s = np.full(recording.size, np.inf)
        np.minimum.at(begun_s, events.rank[init], events.end_s[init])
        ended_s = np.full(recording.size, -np.inf)
        np.maximum.at(ended_s, events.rank[self.is_finalize], events.begin_s[self.is_finalize])
        if not joined.reaches_back:
            begun_s = np.full(recording.size, joined.whole_from_s)
        begun_s[~np.isfinite(begun_s)] = begun_s[np.isfinite(begun_s)].min(initial=np.inf)
        if not np.isfinite(begun_s).all() or not self.is_finalize.any():
            raise InputError(
                f"the events of {recording.path} lack MPI_Init or MPI_Finalize; record the program again "
                "with --events all"
            )
        if begun_s.min() >= ended_s.max():
            raise InputError(
                f"the events of {recording.path} of all ranks are whole only from its end on, since older "
                "ones were overwritten; record the program again with --events all"
            )
        cut = Cut(begun_s, np.full(recording.size, np.inf))
        if window is not None:
            cut = cut_of(window, recording, joined, begun_s, ended_s)
        self.cut, self.from_s = cut, float(cut.from_s.min())
        self.until_s = float(np.minimum(cut.until_s, ended_s).max())
        self.window = "" if window is None else f"--window {window.text}"
        if window is None and not joined.reaches_back:
            self.window = f"the last {format_seconds(self.until_s - self.from_s)} of the run"
        self.begin_s = np.maximum(events.begin_s, cut.from_s[events.rank])
        self.end_s = np.minimum(events.end_s, cut.until_s[events.rank])
        self.timeline = self._timelines()
        calls = np.flatnonzero(
            (events.calls > 0) & ~init & (events.end_s > cut.from_s[events.rank])
            & (events.begin_s < cut.until_s[events.rank])
        )  # fmt: skip
        # Calls in which ranks are when the window ends, which take until then, and when the run ends.
        self.is_cut = events.end_s > cut.until_s[events.rank]
        self.end = self.is_finalize | self.is_cut
        self._keep_threads_of(calls)
        self.calls = calls[np.lexsort([events.begin_s[calls], self.timeline[calls]])]
        self.is_called, self.is_whole_call = np.zeros((2, len(events)), bool)
        self.is_called[self.calls] = True
        self.is_whole_call[self.calls] = (events.begin_s >= cut.from_s[events.rank])[self.calls] & ~self.end[
            self.calls
        ]
        self._choose(joined)

    def _add_threads(self) -> None:
        """Put the events of threads behind those of the MPI; those that are not simulated are no calls."""
        events, threads = self.joined.all_events, self.joined.threads
        self.num_of_mpi = len(self.joined.events)
        if threads is None:
            threads = thread_events_of(self.recording, {})
        # What each event is of threads; -1: of the MPI, or not simulated.
        self.threads, self.thread_event = threads, np.full(len(events), -1)
        if len(threads):
            until_s = np.full(self.recording.size, np.inf)
            finalizes = events.is_call(_FINALIZE) & (events.calls > 0)
            np.minimum.at(until_s, events.rank[finalizes], events.begin_s[finalizes])
            is_apart = np.ones(self.recording.size, bool)
            for rank, one in self.recording.ranks.items():
                is_apart[rank] = one.has_apart_threads
            # After that the run ends, whatever threads do.
            is_kept = is_apart[threads.rank] & (threads.end_s <= until_s[threads.rank])
            is_kept &= ~are_idle(threads, self.joined.events)
            self.thread_event[self.num_of_mpi :] = np.where(is_kept, threads.event, -1)
            is_left_out = np.concatenate([np.zeros(self.num_of_mpi, bool), ~is_kept])
            one_thread = np.full(self.recording.size, np.iinfo(np.int64).max)
            np.minimum.at(one_thread, events.rank, events.thread)
            events = replace(
                events, calls=np.where(is_left_out, 0, events.calls),
                thread=np.where(is_left_out, one_thread[events.rank], events.thread),
            )  # fmt: skip
        self.events = events

    def _choose(self, joined: Traced) -> None:
        """Choose the messages and collectives that are in the window."""
        matches, of_call = joined.matches, np.where(self.call_of >= 0, self.call_of, 0)
        has_send = self.is_whole_call[of_call[matches.sent]]
        receiving = of_call[matches.received]
        has_receive = self.is_called[receiving] & ~self.end[receiving]
        both = has_send & has_receive
        self.matches = Matches(matches.sent[both], matches.received[both], 0)
        events = self.events
        is_received = (events.role == RECEIVED) & (events.kind != COMPLETION) & (events.tag >= 0)
        is_received &= (events.peer >= 0) & ~events.is_call(PARTITIONED) & self.is_called[of_call]
        is_received[matches.received] = False
        self.num_under_way = int((has_send ^ has_receive).sum())
        is_partial = joined.num_before is not None
        if is_partial or not joined.reaches_back:  # other ends were left out, or overwritten
            is_cut_off = is_received & ((events.communicator >= 0) | (not joined.reaches_back))
            self.num_under_way += int((is_cut_off & ~self.end[of_call]).sum())
            is_received &= ~is_cut_off
        if is_partial:
            is_sent = (events.role == SENT) & (events.kind != COMPLETION) & self.is_whole_call[of_call]
            is_sent &= (np.minimum(events.tag, events.peer) >= 0) & (events.communicator >= 0)
            is_sent &= ~events.is_call(PARTITIONED)
            is_sent[matches.sent] = False
            self.num_under_way += int(is_sent.sum())
        self.num_unmatched = int(is_received.sum())
        self.groups: list[Collective] = []
        self.immediate: list[Collective] = []
        for groups, kept in ((joined.groups, self.groups), (joined.immediate, self.immediate)):
            for group in groups:
                inside = self.is_whole_call[group.events]
                if inside.all():
                    kept.append(group)
                elif inside.any() and group.name not in _FINALIZE:
                    self.num_under_way += 1
        self.num_under_way += sum(bool(self.is_whole_call[one.events].any()) for one in joined.partial)

    def _timelines(self) -> np.ndarray:
        """Return an array (N,): the number of the thread of each event. The threads of a rank that are never
        in the MPI at once count as one."""
        events = self.events
        is_concurrent, is_of_threads = np.zeros((2, self.recording.size), bool)
        for rank, one in self.recording.ranks.items():
            is_concurrent[rank] = one.thread_level == CONCURRENT
        is_of_threads[events.rank[self.thread_event >= 0]] = True
        thread = np.where((is_concurrent | is_of_threads)[events.rank], events.thread, 0)
        slot = row_numbers(events.rank, thread)
        number = row_numbers(slot, self._lives(slot))
        self.thread_rank, self.thread_slot = np.empty((2, number.max() + 1), np.int64)
        self.thread_rank[number], self.thread_slot[number] = events.rank, thread
        return number

    def _keep_threads_of(self, calls: np.ndarray) -> None:
        """Number the threads that have one of these calls, and one of each rank that has none; others would
        be in the MPI all the time."""
        is_kept = np.zeros(len(self.thread_rank), bool)
        is_kept[self.timeline[calls]] = True
        ranks, first = np.unique(self.thread_rank, return_index=True)
        is_kept[first[~np.isin(ranks, self.thread_rank[is_kept])]] = True
        self.timeline = np.where(is_kept, np.cumsum(is_kept) - 1, -1)[self.timeline]
        self.thread_rank, self.thread_slot = self.thread_rank[is_kept], self.thread_slot[is_kept]

    def _lives(self, slot: np.ndarray) -> np.ndarray:
        """Return which of the threads that have had a slot one after another each event is of."""
        lives = np.zeros(len(slot), np.int64)
        if not len(self.threads):
            return lives
        events = self.events
        order = np.lexsort([self.thread_event == ENDS, self.thread_event != BEGINS, events.begin_s, slot])
        begins = self.thread_event[order] == BEGINS
        begins[1:] |= self.thread_event[order][:-1] == ENDS
        lives[order] = np.cumsum(begins)
        return lives

    def _add(self, call: np.ndarray, order: int, kind: int, seconds: Any, reference: Any) -> None:
        """Add an operation to each of `call`; `reference` is the message, collective or place of it."""
        num = len(call)
        self.rows.append((
            np.asarray(call), np.full(num, order), np.full(num, kind), np.broadcast_to(seconds, num),
            np.broadcast_to(reference, num),
        ))  # fmt: skip

    def build(self) -> Operations:
        events, calls, matches = self.events, self.calls, self.matches
        duration_s = self.end_s - self.begin_s
        of_call = np.where(self.call_of >= 0, self.call_of, 0)
        sent, received = matches.sent, matches.received
        message = np.arange(len(sent))
        width = int(events.request.max(initial=0)) + 1
        key = events.rank * width + events.request
        # Where each receive was posted: by the call that started its request, or by the call that received.
        starts = np.flatnonzero((events.role == CALL) & (events.kind != COMPLETION) & (events.request > 0))
        posting = _lookup(key[starts], key[received])
        post_call = _taken(of_call[starts], posting, of_call[received])
        # What was posted before the window, perhaps by a call that is left out, is posted at its begin.
        is_before = ~self.is_called[post_call]
        is_before |= (posting < 0) & (events.posted_s[received] < self.cut.from_s[events.rank[received]])
        self._add(post_call[~is_before], _POST_RECEIVE, Operation.RECEIVE, 0.0, message[~is_before])
        first_calls = calls[np.searchsorted(self.timeline[calls], self.timeline[of_call[received]])]
        self._add(first_calls[is_before], _POSTED_BEFORE, Operation.RECEIVE, 0.0, message[is_before])
        post_call = np.where(is_before, first_calls, post_call)
        self._add(of_call[sent], _POST_SEND, Operation.SEND, 0.0, message)
        groups = [group for group in self.groups if self._is_simulated(group)]
        for number, group in enumerate(groups):
            self._add(group.events, _ENTER, Operation.ENTER, self._costs_s(group), number)
        for number, group in enumerate(self.immediate, len(groups)):
            self._add(group.events, _ENTER, Operation.ENTER, 0.0, number)
        waits = self._thread_waits()
        # What completes sends: their own call, or the one that completes their requests.
        ends = np.flatnonzero(
            (events.request > 0) & ((events.kind == COMPLETION) | (events.role == RECEIVED))
        )
        is_blocking = events.request[sent] == 0
        completing = _lookup(key[ends], key[sent])
        send_done = _taken(of_call[ends], completing, np.full(len(sent), -1))
        send_done[is_blocking] = of_call[sent][is_blocking]
        send_done[(send_done >= 0) & self.is_cut[send_done]] = -1
        is_buffered = events.is_call(_BUFFERED)[sent]
        sender = np.where(is_buffered, NEVER, AS_PROTOCOL)
        sender[events.is_call(_SYNCHRONOUS)[sent]] = ALWAYS
        completes = np.zeros(len(events), bool)
        completes[of_call[received]] = True
        completes[send_done[send_done >= 0]] = True
        has_post = np.zeros(len(events), bool)
        has_post[post_call] = has_post[of_call[sent]] = True
        in_group = np.zeros(len(events), bool)
        for group in groups:
            in_group[group.events] = True
        only_sends = np.zeros(len(events), bool)
        only_sends[of_call[sent][is_blocking]] = True
        only_sends[of_call[received]] = False
        waits_for_thread = np.zeros(len(events), bool)
        waits_for_thread[np.concatenate([waits.pairs[:, 1], *waits.meetings])] = True
        own_s = np.where(completes & ~only_sends | in_group | waits_for_thread, 0.0, duration_s)
        waits_s = self._other_requests(own_s, completes, key, ends, of_call, groups, only_sends)
        self._add_thread_waits(waits)
        gaps_s = self._gaps_s()
        own_s, gaps_s = self._without_polls(own_s, gaps_s, completes)
        is_end = self.is_finalize[calls]
        self._add(calls, _COMPUTE, Operation.COMPUTE, gaps_s, calls)
        kept = calls[~is_end]
        self._add(kept, _WAIT, Operation.WAIT_ALL, own_s[kept], kept)
        self._add_ends()
        return self._sorted(
            message, of_call, send_done, sender, is_blocking, groups,
            self._kept_s(kept, own_s, completes | has_post | in_group | waits_for_thread, waits_s),
        )  # fmt: skip

    def _thread_waits(self) -> ThreadWaits:
        """Return who waits for whom among the threads, by positions in the events."""
        events = self.events
        is_usable = (self.is_called & ~self.end & (self.thread_event >= 0))[self.num_of_mpi :]
        waits = thread_waits(self.threads, is_usable)
        pairs, meetings = waits.pairs + self.num_of_mpi, [each + self.num_of_mpi for each in waits.meetings]
        first, second = pairs.T
        # A damaged file may say otherwise.
        can_be = events.begin_s[first] <= events.end_s[second]
        can_be &= self.timeline[first] != self.timeline[second]
        return ThreadWaits(pairs[can_be], meetings)

    def _add_thread_waits(self, waits: ThreadWaits) -> None:
        """Let threads wait for those that create or join them, and for each other at barriers; then they take
        what they took after these had come."""
        first, second = waits.pairs.T
        number = self.num_collectives + len(self.stands_for) + np.arange(len(first))
        # A thread may begin before the call that creates it has returned.
        from_s = np.where(
            self.thread_event[first] == CREATES, self.begin_s[first], self.end_s[first]
        )  # fmt: skip
        cost_s = np.maximum(self.end_s[second] - np.maximum(from_s, self.begin_s[second]), 0.0)
        begins = self.thread_event[second] == BEGINS
        cost_s[begins] = np.maximum(self.begin_s[second] - from_s, 0.0)[begins]
        self._add(first, _ENTER, Operation.ENTER, 0.0, number)
        self._add(second, _ENTER, Operation.ENTER, cost_s, number)
        semantics = [(int(Semantics.WAIT_FOR_THREAD), root) for root in self.timeline[first].tolist()]
        for at, together in enumerate(
            waits.meetings, self.num_collectives + len(self.stands_for) + len(first)
        ):
            last_s = self.begin_s[together].max()
            self._add(together, _ENTER, Operation.ENTER, np.maximum(self.end_s[together] - last_s, 0.0), at)
            semantics.append((int(Semantics.THREADS_WAIT), 0))
        # Others wait for nobody, and are outside the MPI all the same.
        is_alone = self.thread_event[self.calls] >= 0
        is_alone &= ~np.isin(self.calls, np.concatenate([first, second, *waits.meetings]))
        alone = self.calls[is_alone]
        at = self.num_collectives + len(self.stands_for) + len(semantics)
        self._add(alone, _ENTER, Operation.ENTER, 0.0, at + np.arange(len(alone)))
        semantics += [(int(Semantics.THREADS_WAIT), 0)] * len(alone)
        self.is_created = np.zeros(len(self.events), bool)
        self.is_created[second[begins]] = True
        self.of_threads = np.array(semantics, np.int64).reshape(-1, 2)

    def _add_ends(self) -> None:
        """Let threads compute from their last call until the end of the window."""
        events, calls = self.events, self.calls
        last = calls[np.diff(self.timeline[calls], append=-1) != 0]
        until_s = self.cut.until_s[events.rank[last]]
        has_ended = np.zeros(self.recording.size, bool)
        has_ended[events.rank[calls[self.is_finalize[calls]]]] = True
        computes = np.isfinite(until_s) & ~has_ended[events.rank[last]] & (self.thread_event[last] != ENDS)
        last, until_s = last[computes], until_s[computes]
        self._add(last, _COMPUTE_ON, Operation.COMPUTE, np.maximum(until_s - self.end_s[last], 0.0), last)

    def _other_requests(
        self, own_s: np.ndarray, completes: np.ndarray, key: np.ndarray, ends: np.ndarray,
        of_call: np.ndarray, groups: list[Collective], only_sends: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Let calls that complete non-blocking collectives, or requests that are not simulated, take what
        they took after the last message or rank that they waited for had come; return these seconds of the
        latter, (N,), by call.

        Together with messages, which take their time in the simulation, what such a request took is one that
        is complete so long after the call was entered, and after that last message was sent.
        """
        events, matches = self.events, self.matches
        sent, received = matches.sent, matches.received
        waits_s = np.zeros(len(events))
        started, latest = self._last_to_enter()
        completing = _taken(of_call[ends], _lookup(key[ends], key[started]), np.full(len(started), -1))
        completing[(completing >= 0) & self.is_cut[completing]] = -1
        self.completing_of = np.full(len(events), -1)
        self.completing_of[started] = completing
        known = np.concatenate([key[sent], key[received], key[started]])
        # Requests of MPI_PROC_NULL wait for nothing.
        others = ~np.isin(key[ends], known) & (self.call_of[ends] >= 0) & (events.peer[ends] != NULL_PEER)
        other = np.unique(of_call[ends[others]])
        calls = np.union1d(other, completing[completing >= 0])
        calls = calls[self.is_called[calls] & ~self.end[calls]]
        # The last of those who send or enter what each call completes: their moment, and their call.
        last_s, last = self.begin_s.copy(), np.full(len(events), -1)
        awaiting = np.concatenate([of_call[received], completing])
        by = np.concatenate([of_call[sent], latest])
        is_there = (awaiting >= 0) & (by >= 0)
        awaiting, by = awaiting[is_there], by[is_there]
        order = np.argsort(self.begin_s[by], kind="stable")
        awaiting, by = awaiting[order], by[order]
        is_later = (self.begin_s[by] > last_s[awaiting]) & (self.begin_s[by] <= self.end_s[awaiting])
        last[awaiting[is_later]] = by[is_later]
        last_s[awaiting[is_later]] = self.begin_s[by[is_later]]
        rest_s = np.maximum(self.end_s - last_s, 0.0)
        waits_s[other] = rest_s[other]
        with_messages = completes & ~only_sends
        # A call of such requests alone takes that itself.
        has_started = np.zeros(len(events), bool)
        has_started[completing[completing >= 0]] = True
        alone = calls[~with_messages[calls] & has_started[calls]]
        own_s[alone] = rest_s[alone]
        mixed = calls[with_messages[calls] & (rest_s[calls] > 0)]
        self.num_collectives = len(groups) + len(self.immediate)
        numbers, partner = self.num_collectives + np.arange(len(mixed)), last[mixed]
        has_partner = (partner >= 0) & self.is_called[partner] & (events.rank[partner] != events.rank[mixed])
        self._add(mixed, _ENTER, Operation.ENTER, rest_s[mixed], numbers)
        self._add(partner[has_partner], _BEGUN, Operation.ENTER, 0.0, numbers[has_partner])
        self.stands_for = np.where(has_partner, events.rank[partner], -1)
        completes[calls] = True
        return waits_s

    def _last_to_enter(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the starts of non-blocking collectives, and the last start that each of them waits for; -1
        if none."""
        starts, latest = [], []
        for group in self.immediate:
            begin_s = self.begin_s[group.events]
            last = group.events[int(np.argmax(begin_s))]
            is_root = group.ranks == group.root
            name = IMMEDIATE[group.name]
            by = np.full(len(group.events), last)
            if name in ROOT_WAITS:
                by = np.where(is_root, last, -1)
            elif name in WAIT_FOR_ROOT:
                by[:] = group.events[int(np.argmax(is_root))] if is_root.any() else -1
            starts.append(group.events)
            latest.append(by)
        empty = np.empty(0, np.int64)
        return np.concatenate([empty, *starts]), np.concatenate([empty, *latest])

    def _is_simulated(self, group: Collective) -> bool:
        """Leave out MPI_Finalize, after which the run ends, and fences that do not wait."""
        events = self.events
        if group.name in _FINALIZE:
            return False
        return group.name != FENCE or bool(
            (events.end_s[group.events] >= events.begin_s[group.events].max()).all()
        )

    def _costs_s(self, group: Collective) -> np.ndarray:
        """Return what the collective cost each rank after those that it waits for had come."""
        begin_s, end_s = self.begin_s[group.events], self.end_s[group.events]
        is_root = group.ranks == group.root
        awaited_s = begin_s.copy()
        if group.name in ALL_WAIT_FOR_ALL:
            awaited_s[:] = begin_s.max()
        elif group.name in ROOT_WAITS:
            awaited_s[is_root] = begin_s.max()
        elif is_root.any():
            awaited_s = np.maximum(begin_s, begin_s[is_root].max())
        return np.maximum(end_s - awaited_s, 0.0)

    def _gaps_s(self) -> np.ndarray:
        """Return for each of the calls the time since the one before it, or since MPI_Init."""
        events, calls, timeline = self.events, self.calls, self.timeline[self.calls]
        before_s = np.empty(len(calls))
        before_s[1:] = self.end_s[calls[:-1]]
        is_first = np.diff(timeline, prepend=-1) != 0
        before_s[is_first] = self.cut.from_s[events.rank[calls[is_first]]]
        # There is no thread before.
        is_new = self.thread_event[calls] == BEGINS
        before_s[is_new] = self.begin_s[calls[is_new]]
        return np.maximum(self.begin_s[calls] - before_s, 0.0)

    def _without_polls(
        self, own_s: np.ndarray, gaps_s: np.ndarray, completes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return both without what polls wait for what the next call of their thread completes: polls of the
        same place, and probes before a receive."""
        events, calls = self.events, self.calls
        own_s, gaps_s = own_s.copy(), gaps_s.copy()
        if len(calls) < 2:
            return own_s, gaps_s
        here, following = calls[:-1], calls[1:]
        is_same_thread = self.timeline[here] == self.timeline[following]
        is_same_place = (events.call[here] == events.call[following]) & (
            events.site[here] == events.site[following]
        )
        is_poll = events.is_call(POLLS)[here] & ~completes[here] & is_same_thread & is_same_place
        is_probe = (
            events.is_call(PROBING)[here]
            & is_same_thread
            & events.is_call(RECEIVING | STARTS | PROBING)[following]
        )
        own_s[here[is_poll | is_probe]] = 0.0
        gaps_s[1:][is_poll & (gaps_s[1:] <= _SPIN_S)] = 0.0
        return own_s, gaps_s

    def _kept_s(
        self, calls: np.ndarray, own_s: np.ndarray, is_simulated: np.ndarray, waits_s: np.ndarray
    ) -> dict[str, float]:
        """Return the seconds of calls that are not simulated, and of `waits_s`, those in others."""
        events = self.events
        immediate = frozenset(
            name for name in events.names if name.startswith("MPI_I") and name[5:6].islower()
        )
        is_local = events.is_call(_LOCAL | immediate | PROBING | (COMPLETING & POLLS))
        kept = calls[~is_simulated[calls] & ~is_local[calls] & (waits_s[calls] == 0)]
        sums_s = np.bincount(events.call[kept], own_s[kept], len(events.names)).astype(float)
        sums_s += np.bincount(events.call[calls], waits_s[calls], len(events.names))
        return {
            events.names[k]: float(sums_s[k]) for k in np.argsort(-sums_s, kind="stable") if sums_s[k] > 0
        }

    def _sorted(
        self, message: np.ndarray, of_call: np.ndarray, send_done: np.ndarray,
        sender: np.ndarray, is_blocking: np.ndarray, groups: list[Collective], kept_s: dict[str, float],
    ) -> Operations:  # fmt: skip
        events, matches, calls = self.events, self.matches, self.calls
        call, order, kind, seconds, reference = (
            np.concatenate(column) for column in zip(*self.rows, strict=True)
        )
        place_of_call = np.full(len(events), -1)
        place_of_call[calls] = np.arange(len(calls))
        # Posts of one call in the order of its records.
        event_of = np.zeros(len(kind), np.int64)
        event_of[kind == Operation.SEND] = matches.sent[reference[kind == Operation.SEND]]
        rows = np.lexsort([event_of, order, place_of_call[call]])
        call, order, kind, seconds, reference = (
            column[rows] for column in (call, order, kind, seconds, reference)
        )
        position = np.empty(len(rows), np.int64)
        position[rows] = np.arange(len(rows))
        wait_of = np.full(len(events), -1)
        is_wait = kind == Operation.WAIT_ALL
        wait_of[call[is_wait]] = np.flatnonzero(is_wait)
        post_of = np.full((2, len(message)), -1)
        for row, which in enumerate((Operation.SEND, Operation.RECEIVE)):
            chosen = np.flatnonzero(kind == which)
            post_of[row, reference[chosen]] = chosen
        # The requests of each wait: receives, sends and collectives.
        enters = np.flatnonzero(kind == Operation.ENTER)
        has_end = (send_done >= 0) & (sender != NEVER)
        waits = np.concatenate([
            wait_of[of_call[matches.received]], wait_of[send_done[has_end]],
            self._waits_of_collectives(wait_of, call[enters], reference[enters], len(groups)),
        ])  # fmt: skip
        requests = np.concatenate([post_of[1], post_of[0][has_end], enters])
        is_there = waits >= 0
        waits, requests = waits[is_there], requests[is_there]
        set_of = np.cumsum(is_wait) - 1
        by_set = np.lexsort([requests, set_of[waits]])
        num_sets = int(is_wait.sum())
        argument = np.where(is_wait, set_of, reference)
        argument[kind == Operation.COMPUTE] = 0
        timeline = self.timeline[call]
        site, sites = self._sites(call)
        site = np.where((order == _COMPUTE_ON) | (self.thread_event[call] == BEGINS), NO_SITE, site)
        waits_at = np.flatnonzero(is_wait & (site != NO_SITE))
        in_calls_s = np.bincount(site[waits_at], (self.end_s - self.begin_s)[call[waits_at]], len(sites))
        recorded_end_s = np.where(is_wait, self.end_s[call], self.begin_s[call]) - self.from_s
        goes_on = order == _COMPUTE_ON
        recorded_end_s[goes_on] = self.cut.until_s[events.rank[call[goes_on]]] - self.from_s
        has_begun = (self.thread_event[call] == BEGINS) & (kind == Operation.COMPUTE)
        # What ranks wait for before their first call, and do after their last one, is of the run.
        starts_s = self.cut.from_s[self.thread_rank] - self.from_s
        is_idle = ~np.isin(self.thread_rank, self.thread_rank[np.unique(timeline)])
        starts_s[is_idle] = self.until_s - self.from_s  # ranks without a call in the window
        # Threads whose creation is not known begin when they began.
        begins = calls[self.thread_event[calls] == BEGINS]
        starts_s[self.timeline[begins]] = np.where(
            self.is_created[begins], 0.0, self.begin_s[begins] - self.from_s
        )
        recorded_end_s[has_begun] = starts_s[timeline[has_begun]]
        first = np.searchsorted(timeline, np.arange(len(self.thread_rank) + 1))
        shift = np.arange(1, len(self.thread_rank) + 1)
        moved = shift[timeline] if len(timeline) else timeline

        def with_starts(column: np.ndarray, value: Any) -> np.ndarray:
            return np.insert(column, first[:-1], value)

        def at(places: np.ndarray) -> np.ndarray:
            return places + moved[places]

        all_groups = [*groups, *self.immediate]
        num_nameless = len(self.stands_for) + len(self.of_threads)
        stands_semantics = [
            Semantics.ALL_WAIT if partner < 0 else Semantics.WAIT_FOR_ROOT
            for partner in self.stands_for.tolist()
        ]
        return Operations(
            self.recording.size, self.until_s - self.from_s, self.thread_rank,
            first + np.arange(len(first)), with_starts(kind, Operation.COMPUTE), with_starts(argument, 0),
            with_starts(seconds, starts_s), np.searchsorted(np.sort(set_of[waits]), np.arange(num_sets + 1)),
            at(requests[by_set]), with_starts(site, NO_SITE), sites, in_calls_s,
            events.rank[matches.sent], events.rank[matches.received], events.bytes[matches.sent], sender,
            at(wait_of[of_call[matches.sent]]) if len(message) else np.empty(0, np.int64), is_blocking,
            np.array(
                [*map(_semantics, all_groups), *stands_semantics, *self.of_threads[:, 0]], np.int64
            ),
            np.array(
                [
                    *(max(group.root, 0) for group in all_groups), *np.maximum(self.stands_for, 0),
                    *self.of_threads[:, 1],
                ],
                np.int64,
            ),
            kept_s, int((calls < self.num_of_mpi).sum()), self.num_unmatched,
            (*(_blocking_name(group) for group in all_groups), *[""] * num_nameless),
            np.array([*map(self._size_of, all_groups), *[0] * num_nameless], np.int64),
            np.arange(len(all_groups) + num_nameless) >= len(groups),
            self._leads_s(), self.window, self.num_under_way,
            phases_of_sites(self.recording, find_phases(self.recording), sites),
            event=with_starts(call, -1), recorded_end_s=with_starts(recorded_end_s, starts_s),
            thread_slot=self.thread_slot,
        )  # fmt: skip

    def _leads_s(self) -> dict[int, np.ndarray]:
        most = {
            rank: max(one.arrivals, key=lambda arrivals: arrivals.regions)
            for rank, one in self.recording.ranks.items()
            if one.arrivals
        }
        return {rank: arrivals.lead_s for rank, arrivals in most.items() if len(arrivals.lead_s) > 1}

    def _waits_of_collectives(
        self, wait_of: np.ndarray, call: np.ndarray, number: np.ndarray, num_blocking: int
    ) -> np.ndarray:
        """Return the wait of each collective that is entered: of its own call, or of the call that completes
        a non-blocking one; none of a call that others wait for."""
        waits = wait_of[call]
        is_immediate = (number >= num_blocking) & (number < self.num_collectives)
        completing = self.completing_of[call[is_immediate]]
        waits[is_immediate] = np.where(completing >= 0, wait_of[completing], -1)
        stands = np.flatnonzero(
            (number >= self.num_collectives) & (number < self.num_collectives + len(self.stands_for))
        )
        partner = self.stands_for[number[stands] - self.num_collectives]
        waits[stands[partner == self.events.rank[call[stands]]]] = -1
        return waits

    def _size_of(self, group: Collective) -> int:
        """Return the bytes of a collective as models count them: see `measured_phase.RecordedCollective`."""
        mean_bytes, ranks = float(self.events.bytes[group.events].mean()), len(group.events)
        name = _blocking_name(group)
        if name in ("MPI_Gather", "MPI_Scatter"):
            mean_bytes *= ranks / (2 * ranks - 1)
        elif name == "MPI_Alltoall":
            mean_bytes /= ranks
        return round(mean_bytes)

    def _sites(self, call: np.ndarray) -> tuple[np.ndarray, tuple[tuple[str, str], ...]]:
        """Return the site of each operation, by its call, and what the sites are called."""
        events = self.events
        number = row_numbers(events.rank[call], events.call[call], events.site[call])
        _, first = np.unique(number, return_index=True)
        one_of = call[first]
        numbers: dict[tuple[str, str], int] = {}
        of_key = []
        keys = (events.rank[one_of], events.call[one_of], events.site[one_of])
        for rank, of_call, site in zip(*(column.tolist() for column in keys), strict=True):
            step = self.recording.ranks[rank].sites.get(site)
            label = events.names[of_call], step.place if step else ""
            of_key.append(numbers.setdefault(label, len(numbers)))
        return np.array(of_key, np.int64)[number], tuple(numbers)


def _blocking_name(group: Collective) -> str:
    return IMMEDIATE.get(group.name, group.name)


def _semantics(group: Collective) -> Semantics:
    name = _blocking_name(group)
    if group.root < 0 or name in ALL_WAIT_FOR_ALL:
        return Semantics.ALL_WAIT
    return Semantics.WAIT_FOR_ROOT if name in WAIT_FOR_ROOT else Semantics.ROOT_WAITS


def kept_remark(operations: Operations, run_s: float, least: float = 0.05) -> str:
    """Return which calls keep their recorded duration, if they take `least` of the run of all ranks; else an
    empty text."""
    total_s = sum(operations.kept_s.values())
    if not run_s or total_s < least * run_s * operations.size:
        return ""
    by_name: dict[str, float] = defaultdict(float, operations.kept_s)
    named = ", ".join(f"{name} ({format_seconds(seconds)})" for name, seconds in list(by_name.items())[:3])
    share = total_s / (run_s * operations.size)
    return (
        f"{100 * share:.0f} % of the time of all ranks is in calls that are not simulated and keep their "
        f"recorded duration: {named}"
    )
