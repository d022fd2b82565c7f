"""Writes the trace of a recording in the Trace Event Format, for Perfetto and the browsers' own viewers."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from earlybird.analysis.events import Events, Matches

_US = 1e6
_ROLES = {1: "sent", 2: "received", 3: "put", 4: "got"}
# An arrow ends inside of the call that it points to.
_INSIDE_US = 1e-3


def chrome_trace(events: Events, matches: Matches, hosts: Mapping[int, str]) -> Iterator[str]:
    """The lines of the file: a process for each rank of `hosts`, a slice for each call, an arrow for each
    message.

    Times are microseconds since the first event, by the clock that the events have.
    """
    first_s = float(events.begin_s.min()) if len(events) else 0.0
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    separator = ""
    for line in _lines(events, matches, hosts, first_s):
        yield separator + json.dumps(line, allow_nan=False, separators=(",", ":"))
        separator = ",\n"
    yield "\n]}\n"


def _lines(
    events: Events, matches: Matches, hosts: Mapping[int, str], first_s: float
) -> Iterator[dict[str, Any]]:
    for rank, host in hosts.items():
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank} on {host}"}}
        yield {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}
    begin_us = ((events.begin_s - first_s) * _US).round(3).tolist()
    end_us = ((events.end_s - first_s) * _US).round(3).tolist()
    columns = ("rank", "thread", "call", "role", "peer", "tag", "calls", "bytes")
    rank, thread, call, role, peer, tag, calls, size = (getattr(events, name).tolist() for name in columns)
    for k in range(len(events)):
        if not calls[k]:
            continue
        facts: dict[str, Any] = {}
        if peer[k] >= 0:
            facts["peer"] = peer[k]
        if tag[k] >= 0:
            facts["tag"] = tag[k]
        if size[k]:
            facts["bytes"] = size[k]
        if calls[k] > 1:
            facts["calls"] = calls[k]
        yield {
            "ph": "X", "name": events.names[call[k]], "cat": _ROLES.get(role[k], "call"), "pid": rank[k],
            "tid": thread[k], "ts": begin_us[k], "dur": round(end_us[k] - begin_us[k], 3), "args": facts,
        }  # fmt: skip
    for number, (sent, received) in enumerate(
        zip(matches.sent.tolist(), matches.received.tolist(), strict=True)
    ):
        arrow = {"name": "message", "cat": "message", "id": number}
        ends_us = max(end_us[received] - _INSIDE_US, begin_us[received])
        yield arrow | {"ph": "s", "pid": rank[sent], "tid": thread[sent], "ts": begin_us[sent]}
        yield arrow | {
            "ph": "f",
            "bp": "e",
            "pid": rank[received],
            "tid": thread[received],
            "ts": round(ends_us, 3),
        }
