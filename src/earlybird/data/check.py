"""Check: the nodes of a job and the links between them, and the ones that are not as fast as the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np

from earlybird.data import files
from earlybird.data.covers import connected, connected_nodes, smallest_covers
from earlybird.data.labels import counted, listed_briefly
from earlybird.data.run_keys import Facts
from earlybird.data.schema import (
    OMIT_EMPTY,
    Bytes,
    Extra,
    Natural,
    NotNegative,
    Number,
    Rank,
    Ranks,
    Record,
    check_keys,
    decode,
    require_not_negative,
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
EXPECTED: Final = "expected"
MIN_JUDGED: Final = 3  # of two nodes that differ, either may be at fault
# Whether messages arrive, and whether ranks start together.
MESSAGES, RANK = "messages", "rank"
# Measured of a pair as a whole: no direction can be named.
UNDIRECTED: Final = (BOTH, LATENCY, MESSAGES, RANK)
_AS_BANDWIDTH = (BANDWIDTH, BOTH, INCAST, OUTCAST)


@dataclass(frozen=True)
class CheckedNode(Record):
    """A node that was checked.

    Attributes
    ----------
    compute_s : the time of the reference computation on its slowest core; 0 if it was not measured.
    incast_s, outcast_s : the time to receive a message from every other node at once, and to send one to
        every other node; 0 if it was not measured.
    clock_offset_s : clock of the node minus the clock of the first node.
    clock_drift : seconds that its clock gains per second on the clock of the first node.
    host : name of the node.
    facts : properties and limits of the node, [Facts](#facts).
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
    """A node, or the link from one node to another, that differs from the others.

    Attributes
    ----------
    kind : `node` or `link`.
    hosts : the node; for a link the sender and the receiver.
    measure : the measure that differs.
    value, expected : the measured value, and the median of the others: s, bytes/s, a share or text.
    cause : a likely cause and what to look at, without a full stop.
    against : `expected` if the value is compared with an expected value and not with others.
    """

    kind: Literal["node", "link"]
    hosts: tuple[str, ...]
    measure: str
    value: float | str
    expected: float | str
    cause: str
    against: Literal["", "expected"] = field(default="", metadata=OMIT_EMPTY)

    @property
    def where(self) -> str:
        """The place of the fault, such as `node1` or `the link from node1 to node2`."""
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
        """The finding as a sentence without a full stop."""
        what = (
            f"{self.where}: {self.measure} {self.value_text}, {self.against or 'others'} {self.expected_text}"
        )
        return f"{what}; {self.cause}" if self.cause else what


def measure_text(measure: str, value: float | str) -> str:
    """Return a value of a measure with its unit, for people."""
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
    """The measurements of N nodes and the findings.

    Attributes
    ----------
    size_bytes, cast_bytes : size of a message between two nodes, and of each message of an incast or outcast.
    min_effect : minimum effect, as a fraction: a smaller difference is ignored.
    planned_s, spent_s : the longest time planned for the first launch, and the time of all launches.
    launches : 2 if something was suspicious and was measured again.
    latency_s, send_s, both_s : (N, N) seconds by sender and receiver: half a round trip of a small message; a
        message with its acknowledgement; two messages in opposite directions at once, until both are
        complete. The lower quartiles of all iterations; 0 where nothing was measured.
    lost_share : (N, N) the share of the TCP segments that the sender had to send again.
    findings : nodes and links that differ from the others; empty if there are none.
    undecided : differences that would be findings if the cores of a node had not been busy with other work.
    notes : remarks.
    measured_nodes : the number of nodes that were measured, if others could not be; 0 for all.
    unjudged_links : the number of links that were not measured, or could not be compared with others, by
        latency and bandwidth.
    mpi : name and version of the MPI.
    nodes : the N nodes.
    """

    schema: ClassVar[str] = SCHEMA

    mpi: str
    launcher: str
    size_bytes: Bytes
    cast_bytes: Bytes
    min_effect: NotNegative
    planned_s: NotNegative
    spent_s: NotNegative
    launches: Ranks
    nodes: tuple[CheckedNode, ...]
    latency_s: np.ndarray
    send_s: np.ndarray
    both_s: np.ndarray
    lost_share: np.ndarray
    findings: tuple[Finding, ...] = ()
    undecided: tuple[Finding, ...] = field(default=(), metadata=OMIT_EMPTY)
    notes: tuple[str, ...] = ()
    measured_nodes: Rank = field(default=0, metadata=OMIT_EMPTY)
    unjudged_links: Natural = field(default=0, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_not_negative(self, "latency_s", "send_s", "both_s", "lost_share")
        shape = (len(self.nodes), len(self.nodes))
        for name in ("latency_s", "send_s", "both_s", "lost_share"):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must hold a row and a column for each of `nodes`")
        for finding in (*self.findings, *self.undecided):
            count = 1 if finding.kind == NODE else 2
            if len(set(finding.hosts)) != count or not set(finding.hosts) <= set(self.hosts):
                raise ValueError("hosts of a finding must be a node of `nodes`, of a link two different ones")

    @property
    def hosts(self) -> list[str]:
        return [node.host for node in self.nodes]

    @property
    def is_judged(self) -> bool:
        """True if there are enough nodes to compare one with the others."""
        return len(self.nodes) >= MIN_JUDGED

    def is_open(self, has_expected: bool) -> bool:
        """Return whether a check without findings decides nothing: nodes were too busy, or there were too few
        to compare them with each other and nothing else to compare them with."""
        return bool(self.undecided) or not (self.is_judged or has_expected)

    @property
    def bytes_of_cast(self) -> int:
        """The number of bytes that a node receives in an incast, or sends in an outcast."""
        return self.cast_bytes * ((self.measured_nodes or len(self.nodes)) - 1)

    @property
    def links_text(self) -> str:
        """The number of links as text, such as `6 links`."""
        number = len(self.nodes)
        return counted(number * (number - 1) // 2, "link")

    @property
    def alike_text(self) -> str:
        """The nodes and links that are alike if there are no findings: `all 4 nodes and 6 links`; `all 4
        nodes and 4 of 6 links`."""
        number = len(self.nodes)
        judged = number * (number - 1) // 2 - self.unjudged_links
        some = f"{judged} of " if self.unjudged_links else ""
        return f"all {number} nodes and {some}{self.links_text}"

    def bandwidth_bytes_per_s(self) -> np.ndarray:
        """Return the (N, N) bandwidth of a message between two nodes; NaN where nothing was measured."""
        with np.errstate(divide="ignore"):
            return np.where(self.send_s > 0, self.size_bytes / self.send_s, np.nan)

    def bad_hosts(self) -> list[str]:
        """Return the nodes to leave out: the nodes that differ from the others, and the smallest set of nodes
        that covers the bad links between the remaining ones."""
        bad = {one.hosts[0] for one in self.findings if one.kind == NODE}
        for choices in self._covers_of_links():
            bad |= choices[0]
        return [host for host in self.hosts if host in bad]

    def good_hosts(self) -> list[str]:
        """Return the nodes that are not in `bad_hosts`."""
        bad = self.bad_hosts()
        return [host for host in self.hosts if host not in bad]

    def ties(self) -> list[list[list[str]]]:
        """Return, for bad links that several sets of nodes cover equally well, these sets; the set in
        `bad_hosts` comes first."""
        return [
            [[host for host in self.hosts if host in choice] for choice in choices]
            for choices in self._covers_of_links()
            if len(choices) > 1
        ]

    def _covers_of_links(self) -> list[list[set[str]]]:
        """Return, for each group of bad links connected by common nodes, the smallest sets of nodes to leave
        out."""
        hosts = self.hosts
        bad = {one.hosts[0] for one in self.findings if one.kind == NODE}
        links = [one.hosts for one in self.findings if one.kind == LINK and not bad & set(one.hosts)]
        numbered = [(hosts.index(one), hosts.index(other)) for one, other in links]
        return [
            [{hosts[node] for node in cover} for cover in smallest_covers(group)[0]]
            for group in connected(numbered)
        ]

    def groups(self) -> list["Group"]:
        """Return the measures by which half of the nodes or more differ from the others, or from expected
        values, in the order of the findings."""
        found: dict[tuple[str, str], list[Finding]] = {}
        for one in self.findings:
            if one.kind == NODE and (measure := _plain_measure(one.measure)):
                found.setdefault((measure, one.against), []).append(one)
        groups = []
        for (measure, against), of_measure in found.items():
            slow = tuple(host for host in self.hosts if any(host in one.hosts for one in of_measure))
            others = tuple(host for host in self.hosts if host not in slow)
            is_clock = measure in (CLOCK, DRIFT)
            if (others or against or is_clock) and len(slow) >= max(len(others), 2):
                values, expectations = (
                    [float(getattr(one, key)) for one in of_measure] for key in ("value", "expected")
                )
                if is_clock and not others:
                    value, expected = min(values), max(values)
                else:
                    value, expected = float(np.median(values)), float(np.median(expectations))
                groups.append(Group(measure, slow, others, value, expected, against))
        return groups

    def divisions(self) -> list["Division"]:
        """Return the measures by which all links between parts of the good nodes are bad, in the order of the
        findings. A part has two nodes or more."""
        hosts = self.hosts
        bad = {one.hosts[0] for one in self.findings if one.kind == NODE}
        links = [one for one in self.findings if one.kind == LINK and not bad & set(one.hosts)]
        is_bad = {frozenset(one.hosts) for one in links}
        parts = connected_nodes(
            (int(i), int(j))
            for i, j in np.argwhere(self.send_s > 0)
            if not bad & {hosts[i], hosts[j]} and {hosts[i], hosts[j]} not in is_bad
        )
        named = tuple(tuple(hosts[node] for node in sorted(nodes)) for nodes in parts)
        divisions = []
        for measure in dict.fromkeys(one.measure for one in links):
            whole = Division(measure, named, 0.0, 0.0)
            between = [one for one in links if whole.contains(one)]
            # Messages that do not arrive have no value.
            if len(between) > 1 and not any(isinstance(one.value, str) for one in between):
                value, expected = (
                    float(np.median([float(getattr(one, key)) for one in between]))
                    for key in ("value", "expected")
                )
                divisions.append(Division(measure, named, value, expected))
        return divisions


@dataclass(frozen=True)
class Division:
    """Parts of the nodes between which all links are bad by `measure`, with the medians of these links and of
    the expected values."""

    measure: str
    parts: tuple[tuple[str, ...], ...]
    value: float
    expected: float

    def contains(self, finding: Finding) -> bool:
        """Return whether a finding is about a link between two parts, by this measure."""
        if finding.kind != LINK or finding.measure != self.measure:
            return False
        touched = [k for k, part in enumerate(self.parts) for host in finding.hosts if host in part]
        return len(set(touched)) == 2

    @property
    def sentence(self) -> str:
        """The division as a sentence without a full stop."""
        parts = "; ".join(listed_briefly(part, 8) for part in self.parts)
        value, expected = (measure_text(self.measure, number) for number in (self.value, self.expected))
        return (
            f"there are {len(self.parts)} groups of nodes with slow links between them: {parts}; there "
            f"{self.measure} {value}, others {expected}; look at the switches and cables between them"
        )


@dataclass(frozen=True)
class Group:
    """Two groups of nodes that differ by `measure`, with the medians of both; or `against` expectations; or
    nodes whose clocks all differ, without `others` and with the least and the largest value."""

    measure: str
    hosts: tuple[str, ...]
    others: tuple[str, ...]
    value: float
    expected: float
    against: str = ""

    def contains(self, finding: Finding) -> bool:
        """Return whether a finding is about a node of the group that differs from the others, by this
        measure."""
        of_finding = _plain_measure(finding.measure), finding.against
        return finding.kind == NODE and of_finding == (self.measure, self.against)

    @property
    def sentence(self) -> str:
        """The group as a sentence without a full stop."""
        if self.against:
            which = listed_briefly(self.hosts, 8) if self.others else f"all {len(self.hosts)} nodes"
            texts = (measure_text(self.measure, value) for value in (self.value, self.expected))
            return "{}: {} {}, expected {}".format(which, self.measure, *texts)
        if not self.others:
            least, largest = (measure_text(self.measure, value) for value in (self.value, self.expected))
            return (
                f"the clocks of all {len(self.hosts)} nodes are not synchronized: {self.measure} {least} to "
                f"{largest}; which are right is not known; look at chronyc tracking or ntpq -p there"
            )
        slow, fast = (
            f"{measure_text(self.measure, value)} at {listed_briefly(hosts, 8)}"
            for value, hosts in ((self.value, self.hosts), (self.expected, self.others))
        )
        what = f"there are two groups of nodes by {self.measure}: {slow}; {fast}"
        return f"{what}; which clocks are right is not known" if self.measure in (CLOCK, DRIFT) else what


def _plain_measure(measure: str) -> str:
    """Return a measure without the direction: `sending bandwidth` -> `bandwidth`; "" for a fact."""
    known = (BANDWIDTH, BOTH, LATENCY, LOSS, COMPUTATION, INCAST, OUTCAST, CLOCK, DRIFT)
    return next((one for one in known if measure.endswith(one)), "")


def load_check(path: str | Path) -> Check:
    """Read a check; raise InputError if the file is not one."""
    return check_from_json(files.read_json(path, "check", SCHEMA), f"the check {path}")


def check_from_json(value: Mapping[str, Any], where: str = "the check") -> Check:
    remedy = "make it again with `earlybird check --json`"
    check = decode(value, Check, where, remedy)
    for node in check.nodes:
        check_keys(node.facts, Facts, f"{where}, facts of {node.host}", remedy)
    return check
