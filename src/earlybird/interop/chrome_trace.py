"""Writes the trace of a recording in the Trace Event Format, for Perfetto and the browsers' own viewers."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from earlybird.analysis.events import Events, Matches, calls_of, communicator_names
from earlybird.data.recorded_trace import COMPLETION, THREAD
from earlybird.data.recording import Recording

_US = 1e6
_ROLES = {1: "sent", 2: "received", 3: "put", 4: "got"}
# An arrow ends inside of the call that it points to.
_INSIDE_US = 1e-3
# Of one call, such as an MPI_Waitall of many requests.
_MAX_MESSAGES = 32


def chrome_trace(events: Events, matches: Matches, recording: Recording) -> Iterator[str]:
    """Yield the lines of the file: a process for each rank, a slice for each call, an arrow for each message.

    Slices of the category `thread` are no calls of the MPI: a thread creates, joins or meets others.

    Times are microseconds since the first event, by the clock that the events have. The arguments of a slice
    are the place in the program, the communicator, the request that the call starts, and peer, tag, bytes and
    request of the message that it sends, receives or completes; a list if there are several.
    """
    first_s = float(events.begin_s.min()) if len(events) else 0.0
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    separator = ""
    for line in _lines(events, matches, recording, first_s):
        yield separator + json.dumps(line, allow_nan=False, separators=(",", ":"))
        separator = ",\n"
    yield "\n]}\n"


class _Facts:
    """The known properties of each record, for the arguments of slices."""

    def __init__(self, events: Events, recording: Recording):
        columns = ("rank", "role", "kind", "peer", "tag", "calls", "bytes", "request", "communicator", "site")
        self._columns = {name: getattr(events, name).tolist() for name in columns}
        self._recording, self._names = recording, communicator_names(recording)
        call_of = calls_of(events)
        own = np.flatnonzero((events.calls == 0) & (call_of >= 0))
        own = own[np.argsort(call_of[own], kind="stable")]
        calls, begins = np.unique(call_of[own], return_index=True)
        self._messages = dict(zip(calls.tolist(), np.split(own, begins[1:]), strict=True)) if len(own) else {}

    def of_call(self, k: int) -> dict[str, Any]:
        facts = self._of_record(k)
        if self._columns["calls"][k] > 1:
            facts["calls"] = self._columns["calls"][k]
        if (
            step := self._recording.ranks[self._columns["rank"][k]].sites.get(self._columns["site"][k])
        ) is not None:
            facts["site"] = step.place
        messages = self._messages.get(k, ())
        if len(messages) == 1:
            return self._of_record(int(messages[0])) | facts
        if len(messages):
            facts["messages"] = [self._of_message(message) for message in messages[:_MAX_MESSAGES].tolist()]
        if len(messages) > _MAX_MESSAGES:
            facts["more_messages"] = len(messages) - _MAX_MESSAGES
        return facts

    def _of_message(self, k: int) -> dict[str, Any]:
        role, is_completed = self._columns["role"][k], self._columns["kind"][k] == COMPLETION
        what = "completed" if is_completed else _ROLES.get(role, "completed")
        return {"what": what} | self._of_record(k)

    def _of_record(self, k: int) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        for name, key, is_known in (
            ("peer", "peer", lambda value: value >= 0), ("tag", "tag", lambda value: value >= 0),
            ("bytes", self._name_of_bytes(k), bool), ("request", "request", bool),
        ):  # fmt: skip
            if is_known(value := self._columns[name][k]):
                facts[key] = value
        if (communicator := self._names.get(self._columns["communicator"][k])) is not None:
            facts["communicator"] = communicator
        return facts

    def _name_of_bytes(self, k: int) -> str:
        """Return what the bytes of a record are: of threads the number of a thread or a barrier."""
        return "number" if self._columns["kind"][k] == THREAD else "bytes"


def _lines(
    events: Events, matches: Matches, recording: Recording, first_s: float
) -> Iterator[dict[str, Any]]:
    for rank, one in recording.ranks.items():
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank} on {one.host}"}}
        yield {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}
    facts = _Facts(events, recording)
    begin_us = ((events.begin_s - first_s) * _US).round(3).tolist()
    end_us = ((events.end_s - first_s) * _US).round(3).tolist()
    columns = ("rank", "thread", "call", "role", "kind", "calls")
    rank, thread, call, role, kind, calls = (getattr(events, name).tolist() for name in columns)
    for k in range(len(events)):
        if calls[k]:
            category = "thread" if kind[k] == THREAD else _ROLES.get(role[k], "call")
            yield {
                "ph": "X", "name": events.names[call[k]], "cat": category,
                "pid": rank[k], "tid": thread[k], "ts": begin_us[k],
                "dur": round(end_us[k] - begin_us[k], 3), "args": facts.of_call(k),
            }  # fmt: skip
    for number, (sent, received) in enumerate(
        zip(matches.sent.tolist(), matches.received.tolist(), strict=True)
    ):
        arrow = {"name": "message", "cat": "message", "id": number}
        ends_us = max(end_us[received] - _INSIDE_US, begin_us[received])
        yield arrow | {"ph": "s", "pid": rank[sent], "tid": thread[sent], "ts": begin_us[sent]}
        yield arrow | {
            "ph": "f", "bp": "e", "pid": rank[received], "tid": thread[received], "ts": round(ends_us, 3),
        }  # fmt: skip
