"""Gives the events of a recording the times of its simulation, for writers of traces."""

from dataclasses import replace

import numpy as np

from earlybird.analysis.events import Events, Matches, calls_of
from earlybird.models.program import Operation
from earlybird.record.operations import NO_SITE, Operations

_INIT = frozenset({"MPI_Init", "MPI_Init_thread"})


def trace_at(
    events: Events, matches: Matches, operations: Operations, end_s: np.ndarray
) -> tuple[Events, Matches]:
    """Return the events and messages with the simulated times of their calls, from 0, at which the first
    MPI_Init returns or the window begins.

    `end_s` is the end of each operation. What is no call has the times of the call that it belongs to.
    MPI_Init keeps its duration; calls that are not in the window count no more.
    """
    is_call = operations.event >= 0
    begins = is_call & (operations.operation == Operation.COMPUTE) & (operations.site != NO_SITE)
    waits = is_call & (operations.operation == Operation.WAIT_ALL)
    first = np.flatnonzero(begins)[:1]
    from_s = (events.begin_s[operations.event[first]] - operations.recorded_end_s[first]).sum()
    duration_s = events.end_s - events.begin_s
    begin_s = events.begin_s - from_s
    begin_s[operations.event[begins]] = end_s[begins]
    until_s = begin_s + duration_s
    until_s[operations.event[waits]] = end_s[waits]
    call = calls_of(events)
    inside = np.flatnonzero((call >= 0) & (events.calls == 0))
    begin_s[inside], until_s[inside] = begin_s[call[inside]], until_s[call[inside]]
    is_shown = np.zeros(len(events), bool)
    is_shown[operations.event[begins]] = True
    if not operations.window:
        is_shown |= events.is_call(_INIT)
    ends = call[matches.sent], call[matches.received]
    is_kept = is_shown[ends[0]] & is_shown[ends[1]]
    kept = Matches(matches.sent[is_kept], matches.received[is_kept], matches.num_received)
    calls = np.where(is_shown, events.calls, 0)
    return replace(events, calls=calls, begin_s=begin_s, end_s=np.maximum(until_s, begin_s)), kept
