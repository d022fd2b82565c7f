"""Which nodes or links are at fault if a job of all nodes cannot complete: those that others cannot reach.

Pairs of nodes are tried apart from the others: see `find_guilty`. Nothing is launched here.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, permutations, product
from typing import Any, Literal

from earlybird.check.tournament import num_rounds, pairs_of
from earlybird.data.check import LINK, MESSAGES, NODE, RANK, Finding
from earlybird.data.labels import listed_briefly
from earlybird.data.units import format_bytes

# More pairs are not tried at once: each is a job of its own.
MAX_AT_ONCE = 16
# Pairs that must fail before two groups have no link between them, and nodes of each group with which a node
# must fail to be guilty: a single link may be at fault.
_ATTEMPTS, _PARTNERS = 3, 2
# Rounds in which nodes that fail with all others are tried with each other.
_MEETINGS = 3

Group = tuple[int, ...]  # nodes
Link = tuple[int, int]


@dataclass(frozen=True)
class Tried:
    """The progress of a launch of some nodes, and the cause of its end."""

    reached: Literal["end", "small messages", "start", "nothing"]
    cause: str = ""

    @property
    def is_complete(self) -> bool:
        return self.reached == "end"


Try = Callable[[Sequence[Group]], Sequence[Tried]]  # of groups without a common node, at once


class OutOfTime(Exception):
    """The error that the time to find the nodes at fault is over."""


@dataclass(frozen=True)
class Located:
    """The nodes that communicate with others, in groups without a link between them, and the nodes that
    communicate with none of these; links between nodes that communicate with others, but not with each other.

    `unclear` : nodes for which there was no time, with the last launch of them that failed.
    """

    groups: Sequence[Group] = ()
    guilty: Mapping[int, Tried] = field(default_factory=dict)
    links: Mapping[Link, Tried] = field(default_factory=dict)
    unclear: Mapping[int, Group] = field(default_factory=dict)

    @property
    def good(self) -> list[int]:
        return sorted(node for group in self.groups for node in group)


def find_guilty(nodes: Sequence[int], try_groups: Try) -> Located:
    """Find the nodes at fault. Try disjoint groups of nodes, halve those that fail down to pairs, find which
    of the groups that work communicate, and try each node of a failing pair with nodes of every such group. A
    node is guilty if it fails with two of each.

    Without two nodes that communicate, nobody is guilty and nobody is good. `try_groups` may raise OutOfTime:
    then what was found so far is returned, and the other nodes are `unclear`. It is raised again if no two
    nodes communicate by then.
    """
    search = _Search(nodes, try_groups)
    try:
        search.run()
    except OutOfTime:
        if not search.groups:
            raise
    return search.located()


class _Search:
    """The state of the search among some nodes: `groups` that communicate, and the groups and pairs that
    `failed`."""

    def __init__(self, nodes: Sequence[int], try_groups: Try):
        self._nodes, self._try_groups = nodes, try_groups
        self.groups: list[list[int]] = []
        self.failed: dict[Group, Tried] = {}
        self.met: dict[int, list[int]] = {}  # the nodes with which a node failed as a pair

    def run(self) -> None:
        self._halve()
        if not self.groups:
            self._meet(len(self._nodes))
        self._unite()
        self._place()
        # What fails with all of these may be a group of its own.
        while self.groups and self._meet(_MEETINGS):
            self._unite()
            self._place()

    def located(self) -> Located:
        if not self.groups:
            return Located()
        main = max(self.groups, key=len)
        groups = [group for group in self.groups if group is main or self._is_apart(group, main)]
        good = {node for group in groups for node in group}
        guilty, unclear = {}, {}
        unknown = set(self._unknown())
        for node in sorted(set(self._nodes) - good):
            failures = [self._failures([node], group) for group in groups]
            if node in unknown and all(map(_is_enough, failures, groups)):
                guilty[node] = self.failed[failures[0][-1]]
            else:
                unclear[node] = next((one for one in reversed(self.failed) if node in one), ())
        links = {pair: tried for pair, tried in self.failed.items() if len(pair) == 2 and set(pair) <= good}
        for one, other in combinations(groups, 2):
            tried = self.failed[self._failures(one, other)[-1]] if self._is_apart(one, other) else None
            if tried is not None:
                links |= {(min(pair), max(pair)): tried for pair in product(one, other)}
        of_pairs = {(pair[0], pair[1]): tried for pair, tried in links.items()}
        return Located(tuple(tuple(sorted(group)) for group in groups), guilty, of_pairs, unclear)

    def _unknown(self) -> list[int]:
        known = {node for group in self.groups for node in group}
        return [node for node in self._nodes if node not in known]

    def _tried(self, groups: Sequence[Group]) -> list[bool]:
        """Return whether each of the groups completes."""
        tries = self._try_groups(groups)
        for group, tried in zip(groups, tries, strict=True):
            if not tried.is_complete:
                self.failed[tuple(sorted(group))] = tried
                for one, other in permutations(group) if len(group) == 2 else ():
                    self.met.setdefault(one, []).append(other)
        return [tried.is_complete for tried in tries]

    def _failures(self, some: Sequence[int], others: Sequence[int]) -> list[Group]:
        """Return the failed pairs of one node of each."""
        few, many = sorted((some, others), key=len)
        within = set(many)
        pairs = (
            tuple(sorted((node, met))) for node in few for met in self.met.get(node, ()) if met in within
        )
        return list(dict.fromkeys(pairs))

    def _halve(self) -> None:
        waiting = _chunks(self._nodes, max(2, -(-len(self._nodes) // MAX_AT_ONCE)))
        while waiting:
            halves: list[Group] = []
            for group, is_complete in zip(waiting, self._tried(waiting), strict=True):
                if is_complete:
                    self.groups.append(list(group))
                elif len(group) > 3:
                    halves += _chunks(group, -(-len(group) // 2))
            waiting = halves

    def _meet(self, most_rounds: int) -> bool:
        """Try pairs of nodes that are in no group, in at most `most_rounds` rounds, until some
        communicate."""
        for pairs in islice(_rounds(self._unknown()), most_rounds):
            new = [pair for pair in pairs if pair not in self.failed]
            tries = zip(new, self._tried(new) if new else (), strict=True)
            if complete := [list(pair) for pair, is_complete in tries if is_complete]:
                self.groups += complete
                return True
        return False

    def _unite(self) -> None:
        """Unite the groups between which messages arrive."""
        if len(self.groups) > 2 and self._tried([tuple(group[0] for group in self.groups)])[0]:
            self.groups = [[node for group in self.groups for node in group]]
        while True:
            waiting, pairs = list(self.groups), []
            for one, other in combinations(self.groups, 2):
                if one in waiting and other in waiting and not self._is_apart(one, other):
                    pairs.append(self._next_pair(one, other))
                    waiting = [group for group in waiting if group not in (one, other)]
            if not pairs:
                return
            for (first, second), is_complete in zip(pairs, self._tried(pairs), strict=True):
                if is_complete:
                    one, other = (self._group_of(node) for node in (first, second))
                    self.groups.remove(other)
                    one += other

    def _group_of(self, node: int) -> list[int]:
        return next(group for group in self.groups if node in group)

    def _is_apart(self, one: Sequence[int], other: Sequence[int]) -> bool:
        return len(self._failures(one, other)) >= min(_ATTEMPTS, len(one) * len(other))

    def _next_pair(self, one: Sequence[int], other: Sequence[int]) -> Group:
        """Return the pair of one node of each group that has failed with the fewest others of these."""
        met = set(self._failures(one, other))
        times = Counter(node for pair in met for node in pair)
        untried = (pair for pair in product(one, other) if tuple(sorted(pair)) not in met)
        return min(untried, key=lambda pair: times[pair[0]] + times[pair[1]])

    def _place(self) -> None:
        """Try each node that is in no group with some nodes of every group."""
        while self.groups:
            pairs: list[Group] = []
            busy: set[int] = set()
            for node in self._unknown():
                met = set(self.met.get(node, ()))
                waiting = [group for group in self.groups if not _is_enough(met & set(group), group)]
                # One of each group first: that costs less if it is of the second one.
                for group in sorted(waiting, key=lambda group: len(met & set(group))):
                    partner = next((one for one in group if one not in met | busy), None)
                    if partner is not None:
                        pairs.append((node, partner))
                        busy.add(partner)
                        break
            if not pairs:
                return
            for (node, partner), is_complete in zip(pairs, self._tried(pairs), strict=True):
                if is_complete:
                    self._group_of(partner).append(node)


def _is_enough(failures: Collection[Any], group: Sequence[int]) -> bool:
    return len(failures) >= min(_PARTNERS, len(group))


def find_bad_links(nodes: Sequence[int], try_groups: Try) -> dict[Link, Tried]:
    """Try every pair of nodes, in rounds of disjoint pairs. `try_groups` may raise OutOfTime: then what was
    found so far is returned; it is raised again if nothing was."""
    bad: dict[Link, Tried] = {}
    try:
        for pairs in _rounds(nodes):
            tries = zip(pairs, try_groups(pairs), strict=True)
            bad |= {(pair[0], pair[1]): tried for pair, tried in tries if not tried.is_complete}
    except OutOfTime:
        if not bad:
            raise
    return bad


def _chunks(nodes: Sequence[int], size: int) -> list[Group]:
    """Return the nodes in groups of `size`; a single remaining node joins the last group."""
    groups = [tuple(nodes[k : k + size]) for k in range(0, len(nodes), size)]
    if len(groups) > 1 and len(groups[-1]) == 1:
        groups[-2:] = [groups[-2] + groups[-1]]
    return groups


def _rounds(nodes: Sequence[int]) -> Iterator[list[Group]]:
    players = len(nodes)
    for round_ in range(num_rounds(players) if players > 1 else 0):
        yield [(nodes[one], nodes[other]) for one, other in pairs_of(round_, players)]


def failure_findings(located: Located, hosts: Sequence[str], size_bytes: int) -> list[Finding]:
    """Return findings on the nodes and links between which not all messages arrive."""
    of_nodes = [
        Finding(NODE, (hosts[node],), *_texts(tried, size_bytes, NODE))
        for node, tried in sorted(located.guilty.items())
    ]
    of_links = [
        Finding(LINK, (hosts[one], hosts[other]), *_texts(tried, size_bytes, LINK))
        for (one, other), tried in sorted(located.links.items())
    ]
    return of_nodes + _unclear_findings(located, hosts) + of_links


def _unclear_findings(located: Located, hosts: Sequence[str]) -> list[Finding]:
    found = []
    for node, group in sorted(located.unclear.items()):
        others = listed_briefly([hosts[other] for other in group if other != node])
        value = f"with {others} does not complete" if others else "with others was not tried"
        cause = "there was no time to find out which of these nodes is at fault"
        found.append(Finding(NODE, (hosts[node],), "launch", value, "complete", cause))
    return found


def division_remarks(located: Located, hosts: Sequence[str]) -> list[str]:
    """Return a remark on the groups of nodes that do not communicate with each other."""
    if len(located.groups) < 2:
        return []
    groups = "; ".join(listed_briefly([hosts[node] for node in group], 8) for group in located.groups)
    return [
        f"messages arrive within {len(located.groups)} groups of nodes and not between them, as far as was "
        f"tried: {groups}; look at what connects the groups (switch, trunk, VLAN, subnet)"
    ]


def _texts(tried: Tried, size_bytes: int, kind: Literal["node", "link"]) -> tuple[str, str, str, str]:
    """Return the measure, the value, what others have, and a likely cause."""
    if tried.reached == "small messages":
        return (
            MESSAGES, f"of {format_bytes(size_bytes)} do not arrive", "arrive",
            "small ones do: look at the MTU of the interface and of the switch ports on the way",
        )  # fmt: skip
    if tried.reached == "start":
        started = "its rank" if kind == NODE else "the ranks of both"
        where = "the interface, the port, the MTU and the firewall of the data network"
        cause = f"{started} started: look at {where}"
        return MESSAGES, "do not arrive", "arrive", cause
    if kind == LINK:
        cause = f"each starts with others, and a launch of both ended: {tried.cause}"
        return RANK, "does not start with the other", "start", cause
    return RANK, "does not start", "start", f"a launch with it ended: {tried.cause}"


def dead_finding(host: str) -> Finding:
    """Return a finding on a node that no longer exists."""
    return Finding(NODE, (host,), RANK, "does not start", "start", "the node no longer exists")


def stopped_finding(host: str, doing: str) -> Finding:
    """Return a finding on a node whose rank made no progress any more; `doing`: what it did last, empty if
    unknown."""
    last = f", last seen {doing}" if doing else ""
    return Finding(
        NODE, (host,), RANK, "stopped", "run",
        f"it did nothing while the others waited{last}: it was stopped (SIGSTOP), or the node hangs or does "
        "not reach the folder of the check; look at ps and dmesg there",
    )  # fmt: skip


def killed_finding(host: str, how: str) -> Finding:
    """Return a finding on a node whose rank was ended by a signal, as mpiexec or srun reports."""
    cause = (
        f"the launcher reports {how}: look for the out-of-memory killer in dmesg, and at limits of the job"
    )
    return Finding(NODE, (host,), RANK, "was killed", "run", cause)
