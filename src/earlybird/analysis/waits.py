"""Computes where ranks of a recorded program wait for each other: late senders and receivers, peers that are
outside the MPI, and late ranks in collectives.

The states are those of Scalasca's trace analysis (Geimer et al. 2010): late sender, late receiver, wait at
barrier and at N x N, late broadcast, early reduce. The latter lasts here until the last rank has come, not
the first. A peer outside the MPI is none of these: it began to send in time, but then computes, and messages
may need calls of both sides.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from earlybird.analysis.clocks import Clocks, compare_clocks
from earlybird.analysis.events import (
    ALL_WAIT_FOR_ALL,
    FENCE,
    IMMEDIATE,
    PARTITIONED,
    ROOT_WAITS,
    Collective,
    Counted,
    Events,
    Matches,
    calls_of,
    collectives,
    events_of,
    match_messages,
)
from earlybird.analysis.gaps import named_ranks
from earlybird.analysis.thread_events import ThreadEvents, thread_events_of, with_threads
from earlybird.data import labels, units
from earlybird.data.mpi_calls import BLOCKING_RECEIVES, COMPLETIONS, POLLS, STARTS
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, RankTrace, load_traces, whole_from_s
from earlybird.data.recording import Recording

# Calls that return when requests are complete, and those that are repeated until they are.
COMPLETING = COMPLETIONS | {"MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome"}
RECEIVING = BLOCKING_RECEIVES | COMPLETING
# Those for which one request suffices.
_FOR_ANY = frozenset({"MPI_Waitany", "MPI_Waitsome", "MPI_Testany", "MPI_Testsome"})
PROBING = frozenset({"MPI_Probe", "MPI_Mprobe", "MPI_Iprobe", "MPI_Improbe"})
# Calls that may return when the message is received.
SENDING = frozenset({"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Sendrecv", "MPI_Sendrecv_replace"})
# Local calls, in which a rank waits for none; so are all that start a request, MPI_I...
_LOCAL = STARTS | {
    "MPI_Bsend", "MPI_Send_init", "MPI_Bsend_init", "MPI_Ssend_init", "MPI_Rsend_init", "MPI_Recv_init",
    "MPI_Psend_init", "MPI_Precv_init", "MPI_Pready", "MPI_Pready_range", "MPI_Pready_list", "MPI_Cancel",
    "MPI_Request_free", "MPI_Pcontrol", "MPI_Comm_set_name",
}  # fmt: skip
# Receives without a send, by what of a send of their pair and tag is in the traces: none; one, but on no
# communicator that is known to be the same; one on the same, but of another size, or more or less of them.
NO_SEND, OTHER_COMMUNICATOR, OTHER_SENDS = "no send", "other communicator", "other sends"
# Why a rank waits: `late_sender_s` and so on are the times.
LATE_SENDER, LATE_RECEIVER, PEER_OUTSIDE, LATE_COLLECTIVE = CAUSES = (
    "late_sender", "late_receiver", "peer_outside", "late_collective",
)  # fmt: skip
_MIN_CAUSE = 0.01  # of all waiting, and of the time in MPI: less is not named
_KNOWN, _UNKNOWN = -1, -2  # in place of a call
_MIN_PRINTED, _MAX_NAMES = 0.001, 3


@dataclass(frozen=True)
class PlaceWaits:
    """The calls from one place of the program on all ranks: their time, and how much of it was waiting.

    `function` is the calling function, with file and line if they are known; otherwise module and offset, or
    empty. `late` is the rank that was waited for most, None if there is none. `unknown_s` is the time in
    calls whose waiting is not known.
    """

    call: str
    function: str
    calls: int
    time_s: float
    late_sender_s: float
    late_receiver_s: float
    peer_outside_s: float
    late_collective_s: float
    late: int | None
    unknown_s: float = 0.0

    @property
    def waiting_s(self) -> float:
        return self.late_sender_s + self.late_receiver_s + self.peer_outside_s + self.late_collective_s


@dataclass(frozen=True, eq=False)
class Waits:
    """The waiting times in the traces of a recording.

    Attributes
    ----------
    ranks : (R,), the ranks with a trace.
    window_s : (R,), from the first to the last record.
    in_mpi_s : (R,), time in calls; times of several threads add up.
    late_sender_s : (R,), in calls that complete a receive, until the message was sent.
    late_receiver_s : (R,), in calls that complete a send, after that, until its receive was posted.
    peer_outside_s : (R,), in these calls after that, while the other rank was in no MPI call and came to one
        before the call ended: the most that the call can have waited for it to send on, or to receive.
    late_collective_s : (R,), in collectives, until the last rank had arrived.
    caused_s : (R,), for how long other ranks waited for this rank.
    unknown_s : (R,), in calls whose waiting is not known, without the part that is known.
    examined_s : time of all ranks in the other calls.
    unexamined : the other calls, by their time, with what they complete if that is known.
    places : places of the program, the one with most waiting first.
    num_received, num_matched : messages received, and those whose send is in the traces, too.
    unmatched : why the others have no send: one of NO_SEND, OTHER_COMMUNICATOR, OTHER_SENDS; "" if all have.
    clock_uncertainty_s : by how much the clocks of hosts may be apart; 0 for one clock.
    unconnected : ranks whose clock cannot be compared with that of the first rank.
    reaches_back : the traces reach back to the beginning of the run.
    cut_s : time from MPI_Init to the end of the trace, by rank whose trace could not be written any more.
    """

    ranks: np.ndarray
    window_s: np.ndarray
    in_mpi_s: np.ndarray
    late_sender_s: np.ndarray
    late_receiver_s: np.ndarray
    peer_outside_s: np.ndarray
    late_collective_s: np.ndarray
    caused_s: np.ndarray
    unknown_s: np.ndarray
    examined_s: float
    unexamined: list[str]
    places: tuple[PlaceWaits, ...]
    num_received: int
    num_matched: int
    unmatched: str
    clock_uncertainty_s: float
    unconnected: list[int]
    reaches_back: bool
    cut_s: Mapping[int, float]

    @property
    def is_whole(self) -> bool:
        """True if the traces are of the whole run."""
        return self.reaches_back and not self.cut_s

    @property
    def cut(self) -> str:
        """The sentence `the traces of ranks 0, 1 end 2 s after MPI_Init`, and its consequences; "" if no
        trace ends early."""
        if not self.cut_s:
            return ""
        several, first_s = len(self.cut_s) > 1, units.format_seconds(min(self.cut_s.values()))
        return (
            f"the trace{'s' * several} of {named_ranks(list(self.cut_s))} end{'s' * (not several)} "
            f"{first_s} after MPI_Init{' at the earliest' * several}, as on a full disk; waits after that "
            "are not known"
        )

    @property
    def waiting_s(self) -> np.ndarray:
        """All waiting, of shape (R,)."""
        waiting_s: np.ndarray = np.sum([self.by_cause_s(cause) for cause in CAUSES], axis=0)
        return waiting_s

    def by_cause_s(self, cause: str) -> np.ndarray:
        """Return the waiting for one of CAUSES, of shape (R,)."""
        times_s: np.ndarray = getattr(self, f"{cause}_s")
        return times_s

    @property
    def share_waiting(self) -> float:
        """The part of the time in MPI that is waiting."""
        in_mpi_s = float(self.in_mpi_s.sum())
        return float(self.waiting_s.sum()) / in_mpi_s if in_mpi_s else 0.0

    @property
    def main_causes(self) -> dict[str, float]:
        """The part of the time in MPI that is waiting for each cause, without causes of little waiting."""
        in_mpi_s, waiting_s = float(self.in_mpi_s.sum()), float(self.waiting_s.sum())
        totals_s = {cause: float(self.by_cause_s(cause).sum()) for cause in CAUSES}
        return {
            cause: total_s / in_mpi_s
            for cause, total_s in totals_s.items()
            if total_s >= _MIN_CAUSE * waiting_s > 0
        }

    @property
    def is_little(self) -> bool:
        """True if so little of the time in MPI is waiting that its causes do not matter."""
        return self.share_waiting < _MIN_CAUSE

    @property
    def latest_rank(self) -> tuple[int, float]:
        """The rank that others wait for most, and its part of all their waiting."""
        most = int(np.argmax(self.caused_s))
        return int(self.ranks[most]), float(self.caused_s[most]) / max(float(self.caused_s.sum()), 1e-12)

    @property
    def unknown(self) -> str:
        """The part of the time in MPI whose waiting is not known, such as `12 % of the time in MPI, in
        MPI_Wait for MPI_Ialltoall`; "" if all is known."""
        in_mpi_s = float(self.in_mpi_s.sum())
        if not self.unexamined or not in_mpi_s:
            return ""
        share = max(1 - self.examined_s / in_mpi_s, 0.0)
        percent = labels.percent(share) if share >= _MIN_PRINTED else f"less than {100 * _MIN_PRINTED:g} %"
        named = self.unexamined[:_MAX_NAMES]
        more = f" and {len(self.unexamined) - len(named)} others" if len(self.unexamined) > len(named) else ""
        return f"{percent} of the time in MPI, in {', '.join(named)}{more}"


@dataclass(frozen=True, eq=False)
class Traced:
    """The traces of a recording with times by one clock, that of the first rank.

    Attributes
    ----------
    groups, immediate : the blocking collectives, and the starts of non-blocking ones.
    whole_from_s : the time from which no event of any rank is missing; -inf if none is.
    num_before : None, or, where these are the events of a window: (P,), how many calls of the collective that
        names the window are not among them and come before it.
    partial : the collectives, and starts of these, of which the events of some ranks were left out or
        overwritten.
    threads : what threads do with each other outside the MPI; None if that is not known.
    """

    events: Events
    matches: Matches
    groups: Sequence[Collective]
    clocks: Clocks
    reaches_back: bool
    cut_s: Mapping[int, float]
    immediate: Sequence[Collective] = ()
    whole_from_s: float = -np.inf
    num_before: np.ndarray | None = None
    partial: Sequence[Collective] = ()
    threads: ThreadEvents | None = None

    @property
    def all_events(self) -> Events:
        """The events, and after them those of threads."""
        if self.threads is None or not len(self.threads):
            return self.events
        return with_threads(self.events, self.threads)


def traced(recording: Recording) -> Traced | None:
    """Return the joined traces; None if the recording has none."""
    traces = load_traces(recording)
    if not any(len(trace.records) for trace in traces.values()):
        return None
    return join_traces(recording, traces)


def join_traces(
    recording: Recording,
    traces: Mapping[int, RankTrace],
    counted: Counted | None = None,
    num_before: np.ndarray | None = None,
    clocks_before: Clocks | None = None,
) -> Traced:
    """Return the events of all ranks by one clock, with their messages matched.

    If events have been left out of the traces, they have been `counted`; `clocks_before` are used if the
    others do not connect the clocks of all hosts.
    """
    events = events_of(recording, traces)
    matches = match_messages(events, traces, recording, counted)
    partial: list[Collective] = []
    groups = collectives(events, traces, recording, counted=counted, partial=partial)
    immediate = collectives(events, traces, recording, frozenset(IMMEDIATE), counted, partial)
    clocks = compare_clocks(recording, events, matches, groups)
    if clocks.unconnected and clocks_before is not None:
        clocks = clocks_before
    reaches_back = all(trace.is_whole for trace in traces.values())
    cut_s = {rank: trace.until_s for rank, trace in sorted(traces.items()) if trace.is_cut}
    # Ranks whose clock nothing connects with the first one's keep their own times.
    is_known = np.isfinite([clocks.ahead_s.get(rank, np.nan) for rank in range(recording.size)])
    known = is_known[events.rank[matches.sent]] & is_known[events.rank[matches.received]]
    comparable = Matches(matches.sent[known], matches.received[known], matches.num_received)
    ahead_s = {rank: float(np.nan_to_num(by_s)) for rank, by_s in clocks.ahead_s.items()}
    events, threads = _by_one_clock(clocks, events, thread_events_of(recording, traces))
    return Traced(
        events, comparable, [one for one in groups if is_known[one.ranks].all()], clocks,
        reaches_back, cut_s, [one for one in immediate if is_known[one.ranks].all()],
        whole_from_s(traces, ahead_s), num_before, [one for one in partial if is_known[one.ranks].all()],
        threads,
    )  # fmt: skip


def _by_one_clock(clocks: Clocks, events: Events, threads: ThreadEvents) -> tuple[Events, ThreadEvents]:
    if not len(threads):
        return clocks.common(events), threads
    both, num = clocks.common(with_threads(events, threads)), len(events)
    of_mpi = {name: getattr(both, name)[:num] for name in Events.__dataclass_fields__ if name != "names"}
    return replace(both, **of_mpi), replace(threads, begin_s=both.begin_s[num:], end_s=both.end_s[num:])


def waits_of(recording: Recording, joined: Traced) -> Waits:
    """Return the waiting times in the joined traces, by rank and by place of the program."""
    events = joined.events
    size = recording.size
    waits = _CallWaits.of(len(events))
    call_of = calls_of(events)
    dependences, cause = _dependences(events, joined.matches, call_of)
    _late_to_probes(events, joined.matches, waits, cause)
    _late_peers(events, dependences, _next_completing(events, call_of), cause, waits)
    for group in joined.groups:
        _late_ranks(events, group, waits)
    is_run = ~events.is_call(frozenset({"MPI_Init", "MPI_Init_thread"}))
    is_timed = is_run & (events.calls > 0)
    durations_s = events.end_s - events.begin_s

    def by_rank(values: np.ndarray, ranks: np.ndarray = events.rank) -> np.ndarray:
        return np.bincount(ranks, values, size)

    first_s, last_s = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(first_s, events.rank[is_run], events.begin_s[is_run])
    np.maximum.at(last_s, events.rank[is_run], events.end_s[is_run])
    ranks = np.unique(events.rank)
    caused_s = np.zeros(size)
    for waited_s, late in waits.causes:
        caused_s += by_rank(waited_s[late >= 0], late[late >= 0])
    cause[_not_examined(events, joined)] = _UNKNOWN
    is_unknown = is_timed & (cause != _KNOWN)
    waiting_s = waits.sender_s + waits.receiver_s + waits.outside_s + waits.collective_s
    return Waits(
        ranks, np.maximum(last_s - first_s, 0)[ranks], by_rank(durations_s * is_timed)[ranks],
        by_rank(waits.sender_s)[ranks], by_rank(waits.receiver_s)[ranks], by_rank(waits.outside_s)[ranks],
        by_rank(waits.collective_s)[ranks], caused_s[ranks],
        by_rank(np.maximum(durations_s - waiting_s, 0) * is_unknown)[ranks],
        float((durations_s * (is_timed & ~is_unknown)).sum()), _unexamined(events, is_unknown, cause),
        _places(recording, events, is_timed, is_unknown, waits),
        joined.matches.num_received, len(joined.matches.sent), _unmatched(events, joined.matches),
        joined.clocks.uncertainty_s,
        joined.clocks.unconnected, joined.reaches_back, joined.cut_s,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _CallWaits:
    """The waits of each event, arrays (N,), 0 for events other than calls: seconds of waiting by cause, and
    the rank waited for, or -1: `receiver` and `outside` for the seconds of these names, and `late` for the
    other causes, of which a call has one."""

    sender_s: np.ndarray
    receiver_s: np.ndarray
    outside_s: np.ndarray
    collective_s: np.ndarray
    late: np.ndarray
    receiver: np.ndarray
    outside: np.ndarray

    @classmethod
    def of(cls, num: int) -> "_CallWaits":
        return cls(*np.zeros((4, num)), *np.full((3, num), -1))

    @property
    def causes(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """The seconds of waiting of each event, and the ranks that it was for, or -1."""
        return (
            (self.sender_s + self.collective_s, self.late), (self.receiver_s, self.receiver),
            (self.outside_s, self.outside),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Dependences:
    """The events for which calls waited, arrays (D,).

    Attributes
    ----------
    call : the event of the call.
    peer : the rank whose part was needed.
    ready_s : when that rank did its part: began to send, or posted the receive.
    returned_s : when it returned: from then on it may have been outside the MPI.
    is_send : the call sends, so the other rank is the receiver.
    """

    call: np.ndarray
    peer: np.ndarray
    ready_s: np.ndarray
    returned_s: np.ndarray
    is_send: np.ndarray


def _dependences(events: Events, matches: Matches, call_of: np.ndarray) -> tuple[_Dependences, np.ndarray]:
    """Return the events for which each call that completes messages waits; and an array (N,) of what makes
    the waiting of a call unknown: the call that has started a request, _UNKNOWN, or _KNOWN."""
    cause = np.full(len(events), _KNOWN)
    partner = np.full(len(events), -1)
    partner[matches.received], partner[matches.sent] = matches.sent, matches.received
    is_completing = events.is_call(COMPLETING)
    # What a call receives, and the sends that it completes or is.
    is_point = (events.peer >= 0) & (events.tag >= 0) & (call_of >= 0)
    received = np.flatnonzero(is_point & (events.role == RECEIVED) & (events.kind != COMPLETION))
    received = received[events.is_call(RECEIVING)[call_of[received]]]
    started = events.kind == COMPLETION
    completed = np.flatnonzero(started & (call_of >= 0) & (events.peer >= 0))
    own = np.flatnonzero(
        is_point & (events.role == SENT) & (events.kind != COMPLETION) & (events.request == 0)
    )
    own = own[events.is_call(SENDING)[call_of[own]]]
    # Without requests, as in traces of former versions, it is not known what else a call has completed, nor
    # when receives were posted: a call that receives is judged by what it receives.
    has_requests = np.bincount(events.rank, events.request > 0) > 0
    own = own[has_requests[events.rank[own]] | ~events.is_call(BLOCKING_RECEIVES)[call_of[own]]]
    is_sent = events.role[completed] == SENT
    cause[call_of[completed[~is_sent]]] = events.call[completed[~is_sent]]
    others = np.flatnonzero(started & (call_of >= 0) & (events.role == CALL))
    cause[call_of[others]] = events.call[others]
    completed = completed[is_sent]
    # A request of MPI_Isendrecv is of a send, too.
    of_both = _posting(events, received)
    both = received[of_both >= 0]
    sent = np.concatenate([_posting(events, completed), own, of_both[of_both >= 0]])
    call = call_of[np.concatenate([completed, own, both])]
    matching = np.where(sent >= 0, partner[sent], -1)
    is_known = matching >= 0
    posted_s = np.where(is_known, _posted_s(events, call_of)[matching], np.nan)
    is_known = np.isfinite(posted_s)
    cause[call[~is_known]] = np.where(sent >= 0, events.call[sent], _UNKNOWN)[~is_known]
    has_sender = partner[received] >= 0
    cause[call_of[received[~has_sender]]] = _UNKNOWN
    has_received = np.zeros(len(events), bool)
    has_received[call_of[received]] = True
    cause[is_completing & (events.calls > 0) & ~has_received & ~has_requests[events.rank]] = _UNKNOWN
    received, matching = received[has_sender], matching[is_known]
    senders = partner[received]
    return _Dependences(
        np.concatenate([call_of[received], call[is_known]]),
        np.concatenate([events.rank[senders], events.rank[matching]]),
        np.concatenate([events.begin_s[senders], posted_s[is_known]]),
        np.concatenate([events.end_s[senders], posted_s[is_known]]),
        np.repeat([False, True], [len(received), len(matching)]),
    ), cause


def _posting(events: Events, completed: np.ndarray) -> np.ndarray:
    """Return the event of the send whose request each of `completed` completes; -1 if it is missing."""
    sends = np.flatnonzero((events.role == SENT) & (events.kind != COMPLETION) & (events.request > 0))
    width = int(events.request.max(initial=0)) + 1
    keys = events.rank[sends] * width + events.request[sends]
    order = np.argsort(keys, kind="stable")
    wanted = events.rank[completed] * width + events.request[completed]
    place = np.searchsorted(keys[order], wanted)
    is_there = place < len(keys)
    is_there[is_there] = keys[order][place[is_there]] == wanted[is_there]
    found = np.full(len(completed), -1)
    found[is_there] = sends[order][place[is_there]]
    return found


def _posted_s(events: Events, call_of: np.ndarray) -> np.ndarray:
    """Return an array (N,) of when the receive of a message was posted, NaN if that is not known."""
    is_blocking = (call_of >= 0) & events.is_call(BLOCKING_RECEIVES)[call_of]
    return np.where(is_blocking, events.begin_s[call_of], events.posted_s)


def _late_peers(
    events: Events, dependences: _Dependences, completing: np.ndarray, cause: np.ndarray, waits: _CallWaits
) -> None:
    """Store the wait of each call until the last of its messages was sent, then until the last receive of its
    sends was posted, and then for one of the peers that was outside the MPI. A call for which one request
    suffices waits for the first, and a poll that completes nothing for what the call in `completing` waits
    for."""
    call, peer, is_send = dependences.call, dependences.peer, dependences.is_send
    begin_s, end_s = events.begin_s[call], events.end_s[call]
    # The MPI has kept the message of a send that was over before.
    ready_s = np.where(is_send & (end_s < dependences.ready_s), -np.inf, dependences.ready_s)
    is_for_any = events.is_call(_FOR_ANY)
    order = np.argsort(np.where(is_for_any[call], -ready_s, ready_s), kind="stable")
    polls = np.flatnonzero(completing >= 0)
    until_s, decisive = np.full((2, len(events)), -np.inf), np.full((2, len(events)), -1)
    for of_sends in (0, 1):
        part = order[is_send[order] == of_sends]
        decisive[of_sends, call[part]] = part  # that which counts comes last, and stays
        decisive[of_sends, polls] = decisive[of_sends, completing[polls]]
        has_one = decisive[of_sends] >= 0
        until_s[of_sends, has_one] = ready_s[decisive[of_sends, has_one]]
    cause[polls] = cause[completing[polls]]
    # Where one request suffices, only the first of both counts.
    has_both = is_for_any & (decisive >= 0).all(axis=0)
    until_s[0, has_both & (until_s[1] < until_s[0])] = -np.inf
    until_s[1, has_both & (until_s[0] <= until_s[1])] = -np.inf
    waited_s = np.zeros(len(events))
    for of_sends, (wait_s, late) in enumerate(
        ((waits.sender_s, waits.late), (waits.receiver_s, waits.receiver))
    ):  # fmt: skip
        own_s = np.clip(until_s[of_sends] - events.begin_s, 0, events.end_s - events.begin_s) - waited_s
        is_long = own_s > 0
        wait_s[is_long], late[is_long] = own_s[is_long], peer[decisive[of_sends, is_long]]
        waited_s += wait_s
    from_s = np.maximum(begin_s + waited_s[call], dependences.returned_s)
    outside_s = np.zeros(len(call))
    for rank in np.unique(peer).tolist():
        of_rank = peer == rank
        outside_s[of_rank] = _outside_s(events, rank, from_s[of_rank], end_s[of_rank])
    _keep_longest(waits.outside_s, waits.outside, call, outside_s, peer)


def _next_completing(events: Events, call_of: np.ndarray) -> np.ndarray:
    """Return an array (N,): for each poll that completes nothing the next poll from the same place that does;
    otherwise -1.

    It is -1 for traces without requests, in which it is not known what polls complete.
    """
    completes = np.zeros(len(events), bool)
    completes[call_of[(events.calls == 0) & (call_of >= 0)]] = True
    has_requests = np.bincount(events.rank, events.request > 0) > 0
    is_poll = events.is_call(COMPLETING & POLLS) & (events.calls > 0) & has_requests[events.rank]
    polls = np.flatnonzero(is_poll)
    keys = np.column_stack(
        [getattr(events, name)[polls].astype(np.uint64) for name in ("rank", "thread", "call", "site")]
    )
    group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.lexsort([events.begin_s[polls], group])
    polls, group = polls[order], group[order]
    place = np.where(completes[polls], np.arange(len(polls)), len(polls))
    following = np.minimum.accumulate(place[::-1])[::-1]
    has_next = (following < len(polls)) & ~completes[polls]
    has_next[has_next] = group[following[has_next]] == group[has_next]
    completing = np.full(len(events), -1)
    completing[polls[has_next]] = polls[following[has_next]]
    return completing


def _late_to_probes(events: Events, matches: Matches, waits: _CallWaits, cause: np.ndarray) -> None:
    """Store the wait of each probe for the message that its thread receives next."""
    probes = np.flatnonzero(events.is_call(PROBING) & (events.calls > 0))
    if not len(probes):
        return
    begun = np.flatnonzero((events.role == RECEIVED) & (events.kind != COMPLETION) & (events.tag >= 0))
    begun = begun[np.argsort(events.begin_s[begun], kind="stable")]
    sent_of = np.full(len(events), -1)
    sent_of[matches.received] = matches.sent
    keys = np.column_stack([events.rank, events.thread])
    for rank, thread in np.unique(keys[probes], axis=0).tolist():
        own = probes[(events.rank[probes] == rank) & (events.thread[probes] == thread)]
        messages = begun[(events.rank[begun] == rank) & (events.thread[begun] == thread)]
        following = np.searchsorted(events.begin_s[messages], events.end_s[own], "left")
        has_one = following < len(messages)
        own, sent = own[has_one], sent_of[messages[following[has_one]]]
        cause[own[sent < 0]] = _UNKNOWN
        own, sent = own[sent >= 0], sent[sent >= 0]
        begin_s, end_s = events.begin_s[own], events.end_s[own]
        wait_s = np.clip(events.begin_s[sent] - begin_s, 0, end_s - begin_s)
        _keep_longest(waits.sender_s, waits.late, own, wait_s, events.rank[sent])


def _unmatched(events: Events, matches: Matches) -> str:
    """Return why receives have no send."""
    is_message = (events.peer >= 0) & (events.tag >= 0) & (events.kind != COMPLETION)
    is_message &= ~events.is_call(PARTITIONED)
    received = np.flatnonzero(is_message & (events.role == RECEIVED))
    received = received[~np.isin(received, matches.received)]
    if not len(received):
        return ""
    sent = np.flatnonzero(is_message & (events.role == SENT))
    both = np.concatenate([sent, received])
    is_sent = np.arange(len(both)) < len(sent)
    keys = np.column_stack([
        np.where(is_sent, events.rank[both], events.peer[both]),
        np.where(is_sent, events.peer[both], events.rank[both]), events.tag[both],
    ])  # fmt: skip

    def have_sends(columns: np.ndarray) -> np.ndarray:
        key = np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)
        return np.isin(key[~is_sent], key[is_sent])

    if not have_sends(keys).any():
        return NO_SEND
    is_same = have_sends(np.column_stack([keys, events.communicator[both]]))
    return OTHER_SENDS if (is_same & (events.communicator[received] >= 0)).any() else OTHER_COMMUNICATOR


def _not_examined(events: Events, joined: Traced) -> np.ndarray:
    """Return a boolean array (N,), true for calls whose waiting cannot be recognized."""
    immediate = frozenset(name for name in events.names if name.startswith("MPI_I") and name[5:6].islower())
    is_examined = events.is_call(RECEIVING | PROBING | SENDING | _LOCAL | immediate)
    for group in joined.groups:
        is_examined[group.events] = True
    return ~is_examined


def _unexamined(events: Events, is_unknown: np.ndarray, cause: np.ndarray) -> list[str]:
    """Return the calls whose waiting is unknown, with what they complete, by their time."""
    rows = np.flatnonzero(is_unknown)
    pairs, place = np.unique(np.column_stack([events.call[rows], cause[rows]]), axis=0, return_inverse=True)
    missed_s = np.bincount(place.reshape(-1), (events.end_s - events.begin_s)[rows], len(pairs))
    return [
        events.names[call] + (f" for {events.names[started]}" if started >= 0 and started != call else "")
        for call, started in pairs[np.argsort(-missed_s, kind="stable")].tolist()
    ]


def _keep_longest(
    waited_s: np.ndarray, late: np.ndarray, call: np.ndarray, wait_s: np.ndarray, rank: np.ndarray
) -> None:
    """Keep the longest wait of a call, and its rank."""
    order = np.argsort(wait_s, kind="stable")
    order = order[wait_s[order] > 0]  # the longest comes last, and stays
    waited_s[call[order]], late[call[order]] = wait_s[order], rank[order]


def _outside_s(events: Events, rank: int, from_s: np.ndarray, to_s: np.ndarray) -> np.ndarray:
    """Return an array (M,) of the seconds of a rank outside the MPI from `from_s` to its last call that
    begins by `to_s`."""
    rows = np.flatnonzero((events.rank == rank) & (events.calls > 0))
    if not len(rows):
        return np.zeros(len(from_s))
    rows = rows[np.argsort(events.begin_s[rows], kind="stable")]
    # Threads may be in calls at once: no thread is before a call that begins after the ends of all others.
    begin_s, end_s = events.begin_s[rows], np.maximum.accumulate(events.end_s[rows])
    gap_s = np.concatenate([[0.0], np.maximum(begin_s[1:] - end_s[:-1], 0)])
    until_s = np.cumsum(gap_s)
    first, last = np.searchsorted(begin_s, from_s, "right"), np.searchsorted(begin_s, to_s, "right") - 1
    is_known = (first > 0) & (first <= last)
    before, after = np.maximum(first - 1, 0), np.minimum(first, len(rows) - 1)
    first_gap_s = np.maximum(begin_s[after] - np.maximum(from_s, end_s[before]), 0)
    return np.where(is_known, first_gap_s + until_s[last] - until_s[after], 0.0)


def _late_ranks(events: Events, group: Collective, waits: _CallWaits) -> None:
    """Store the waits of a collective, according to which ranks wait for which in it."""
    begin_s, end_s = events.begin_s[group.events], events.end_s[group.events]
    is_root = group.ranks == group.root
    if group.name in ALL_WAIT_FOR_ALL:
        last, is_waiting = int(np.argmax(begin_s)), np.ones(len(begin_s), bool)
    elif not is_root.any():
        return
    elif group.name in ROOT_WAITS:
        last, is_waiting = int(np.argmax(begin_s)), is_root
    else:
        last, is_waiting = int(np.argmax(is_root)), ~is_root
    wait_s = np.where(is_waiting, np.clip(begin_s[last] - begin_s, 0, end_s - begin_s), 0)
    wait_s[last] = 0
    if group.name == FENCE:  # it need not wait, such as with MPI_MODE_NOPRECEDE
        wait_s[end_s < begin_s[last]] = 0
    is_late = wait_s > 0
    waits.collective_s[group.events[is_late]] = wait_s[is_late]
    waits.late[group.events[is_late]] = group.ranks[last]


def _places(
    recording: Recording, events: Events, is_timed: np.ndarray, is_unknown: np.ndarray, waits: _CallWaits
) -> tuple[PlaceWaits, ...]:
    """Return the sums by call and function, on all ranks."""
    rows = np.flatnonzero(is_timed)
    keys = np.column_stack(
        [events.rank[rows].astype(np.uint64), events.call[rows].astype(np.uint64), events.site[rows]]
    )
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    place = place.reshape(-1)
    sums = np.array([
        np.bincount(place, values[rows], len(distinct))
        for values in (
            events.calls, events.end_s - events.begin_s, waits.sender_s, waits.receiver_s, waits.outside_s,
            waits.collective_s, (events.end_s - events.begin_s) * is_unknown,
        )
    ])  # fmt: skip
    found: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(len(sums)))
    of_place = []
    for k, (rank, call, site) in enumerate(distinct.tolist()):
        step = recording.ranks[rank].sites.get(site)
        key = events.names[call], step.place if step else ""
        of_place.append(key)
        found[key] += sums[:, k]
    causes: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for waited_s, late in waits.causes:
        for k in np.flatnonzero(late[rows] >= 0).tolist():
            causes[of_place[place[k]]][int(late[rows[k]])] += waited_s[rows[k]]
    places = [
        PlaceWaits(
            call, function, int(calls), time_s, sender_s, receiver_s, outside_s, collective_s,
            max(causes[call, function], key=causes[call, function].__getitem__, default=None), unknown_s,
        )
        for (call, function), (calls, time_s, sender_s, receiver_s, outside_s, collective_s, unknown_s) in (
            (key, values.tolist()) for key, values in found.items()
        )
    ]  # fmt: skip
    return tuple(sorted(places, key=lambda one: (-one.waiting_s, -one.time_s, one.call, one.function)))
