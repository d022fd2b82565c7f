"""Check: the nodes of a job and the links between them, and which are not as fast as the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np

from earlybird.data import files
from earlybird.data.labels import counted
from earlybird.data.schema import (
    OMIT_EMPTY,
    Bytes,
    Count,
    Extra,
    Natural,
    NotNegative,
    Number,
    Record,
    decode,
)
from earlybird.data.units import format_bandwidth, format_seconds

SCHEMA = "earlybird.check/1"

NODE: Final = "node"
LINK: Final = "link"
# What is measured of a link, and how it is printed.
BANDWIDTH, BOTH, LATENCY, LOSS = "bandwidth", "bandwidth both directions", "latency", "lost segments"
# What is measured of a node; further measures of a node are facts.
COMPUTATION, INCAST, OUTCAST = "computation", "incast", "outcast"
CLOCK, DRIFT = "clock offset", "clock drift"
MIN_JUDGED: Final = 3  # of two nodes that differ, either may be at fault
# Measured of a pair as a whole: no direction can be named.
UNDIRECTED: Final = (BOTH, LATENCY)
_AS_BANDWIDTH = (BANDWIDTH, BOTH, INCAST, OUTCAST)


@dataclass(frozen=True)
class CheckedNode(Record):
    """One node.

    Attributes
    ----------
    compute_s : the time of the reference computation on its slowest core; 0 if it was not measured.
    incast_s, outcast_s : the time to receive a message from every other node at once, and to send one to
        every other node; 0 if it was not measured.
    clock_offset_s : its clock minus that of the first node.
    clock_drift : seconds that its clock gains per second on that of the first node.
    facts : what it has and allows, by key; see docs/files.md.
    """

    host: str
    compute_s: NotNegative = 0.0
    incast_s: NotNegative = 0.0
    outcast_s: NotNegative = 0.0
    clock_offset_s: Number = 0.0
    clock_drift: Number = 0.0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding(Record):
    """A node, or the link from one node to another, that is not as the others.

    Attributes
    ----------
    kind : `node` or `link`.
    hosts : the node; of a link the sender and the receiver.
    measure : what differs.
    value, expected : what was measured, and the median of the others: s, bytes/s, a share or text.
    cause : a likely cause and what to look at, without a full stop.
    """

    kind: Literal["node", "link"]
    hosts: tuple[str, ...]
    measure: str
    value: float | str
    expected: float | str
    cause: str

    @property
    def where(self) -> str:
        """`node1`, `the link from node1 to node2`."""
        if self.kind == NODE:
            return self.hosts[0]
        if self.measure in UNDIRECTED:
            return f"the link between {self.hosts[0]} and {self.hosts[1]}"
        return f"the link from {self.hosts[0]} to {self.hosts[1]}"

    @property
    def value_text(self) -> str:
        return measure_text(self.measure, self.value)

    @property
    def expected_text(self) -> str:
        return measure_text(self.measure, self.expected)

    @property
    def sentence(self) -> str:
        """Without a full stop."""
        what = f"{self.where}: {self.measure} {self.value_text}, others {self.expected_text}"
        return f"{what}; {self.cause}" if self.cause else what


def measure_text(measure: str, value: float | str) -> str:
    """A value of a measure for people."""
    if isinstance(value, str):
        return value
    if measure.endswith(_AS_BANDWIDTH):
        return format_bandwidth(value)
    if measure.endswith(LOSS):
        return f"{100 * value:.2g} %"
    if measure == DRIFT:
        return f"{1e6 * value:+.3g} us/s"
    if measure == CLOCK:
        return f"{'-' if value < 0 else '+'}{format_seconds(abs(value))}"
    if measure in (LATENCY, COMPUTATION):
        return format_seconds(value)
    return f"{value:g}"


@dataclass(frozen=True, eq=False)
class Check(Record):
    """What was measured of N nodes and found.

    Attributes
    ----------
    size_bytes, cast_bytes : of a message between two nodes, and of each message of an incast or outcast.
    min_effect : a smaller difference counts as none, as a fraction.
    planned_s, spent_s : the longest time planned for the first launch, and the time of all launches.
    launches : 2 if something was suspicious and was measured again.
    latency_s, send_s, both_s : (N, N) seconds by sender and receiver: half a round trip of a small message; a
        message with its acknowledgement; two messages in opposite directions at once, until both are
        complete. The lower quartiles of all iterations; 0 where nothing was measured.
    lost_share : (N, N) the share of the TCP segments that the sender had to send again.
    findings : what is not as the others; empty if all is well.
    notes : remarks.
    unjudged_links : the number of links that could be compared with no others, by latency and bandwidth.
    """

    schema: ClassVar[str] = SCHEMA

    mpi: str
    launcher: str
    size_bytes: Bytes
    cast_bytes: Bytes
    min_effect: Number
    planned_s: NotNegative
    spent_s: NotNegative
    launches: Count
    nodes: tuple[CheckedNode, ...]
    latency_s: np.ndarray
    send_s: np.ndarray
    both_s: np.ndarray
    lost_share: np.ndarray
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    unjudged_links: Natural = field(default=0, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.nodes), len(self.nodes))
        for name in ("latency_s", "send_s", "both_s", "lost_share"):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must hold a row and a column for each of `nodes`")
        for finding in self.findings:
            count = 1 if finding.kind == NODE else 2
            if len(set(finding.hosts)) != count or not set(finding.hosts) <= set(self.hosts):
                raise ValueError("hosts of a finding must be a node of `nodes`, of a link two different ones")

    @property
    def hosts(self) -> list[str]:
        return [node.host for node in self.nodes]

    @property
    def is_judged(self) -> bool:
        """Whether there are enough nodes to compare one with the others."""
        return len(self.nodes) >= MIN_JUDGED

    @property
    def links_text(self) -> str:
        """`6 links`."""
        number = len(self.nodes)
        return counted(number * (number - 1) // 2, "link")

    @property
    def alike_text(self) -> str:
        """What is alike if nothing was found: `all 4 nodes and 6 links`; `all 4 nodes and 4 of 6 links`."""
        number = len(self.nodes)
        judged = number * (number - 1) // 2 - self.unjudged_links
        some = f"{judged} of " if self.unjudged_links else ""
        return f"all {number} nodes and {some}{self.links_text}"

    def bandwidth_bytes_per_s(self) -> np.ndarray:
        """(N, N) of a message between two nodes; NaN where nothing was measured."""
        with np.errstate(divide="ignore"):
            return np.where(self.send_s > 0, self.size_bytes / self.send_s, np.nan)

    def bad_hosts(self) -> list[str]:
        """The nodes to leave out: those that are not as the others, and for each bad link between two other
        nodes one of them, the one with more bad links."""
        bad = {one.hosts[0] for one in self.findings if one.kind == NODE}
        links = [set(one.hosts) for one in self.findings if one.kind == LINK]
        while left := [link for link in links if not link & bad]:
            bad.add(max(self.hosts, key=lambda host: sum(host in link for link in left)))
        return [host for host in self.hosts if host in bad]


def load_check(path: str | Path) -> Check:
    """Raises InputError for a file that is none."""
    return check_from_json(files.read_json(path, "check", SCHEMA), f"the check {path}")


def check_from_json(value: Mapping[str, Any], where: str = "the check") -> Check:
    return decode(value, Check, where, "make it again with `earlybird check --json`")
