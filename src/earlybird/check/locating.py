"""Which nodes or links are at fault if a job of all nodes cannot complete: those that others cannot reach.

Pairs of nodes are tried apart from the others: see `find_guilty`. Nothing is launched here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from earlybird.check.tournament import num_rounds, pairs_of
from earlybird.data.check import LINK, NODE, Finding
from earlybird.data.units import format_bytes

# More pairs are not tried at once: each is a job of its own.
MOST_AT_ONCE = 16
MESSAGES, RANK = "messages", "rank"

Group = tuple[int, ...]  # nodes


@dataclass(frozen=True)
class Tried:
    """How far a launch of some nodes came, and why it ended."""

    reached: Literal["end", "small messages", "start", "nothing"]
    cause: str = ""

    @property
    def is_complete(self) -> bool:
        return self.reached == "end"


Try = Callable[[Sequence[Group]], Sequence[Tried]]  # of groups without a common node, at once


@dataclass
class Located:
    """The nodes that communicate with each other as far as was tried, and those that do with none of them;
    links between nodes that communicate with others, but not with each other."""

    good: list[int] = field(default_factory=list)
    guilty: dict[int, Tried] = field(default_factory=dict)
    links: dict[tuple[int, int], Tried] = field(default_factory=dict)


def find_guilty(nodes: Sequence[int], try_groups: Try) -> Located:
    """Try disjoint groups of nodes, halve those that fail down to pairs, and try each node of a failing pair
    with others that communicate. A node is guilty if it fails with two of these.

    Without two nodes that communicate, nobody is guilty and `good` is empty. `try_groups` may raise what
    ends the search.
    """
    found = Located()
    failed: dict[Group, Tried] = {}
    waiting = _chunks(nodes, max(2, -(-len(nodes) // MOST_AT_ONCE)))
    while waiting:
        halves: list[Group] = []
        for group, tried in zip(waiting, try_groups(waiting), strict=True):
            if tried.is_complete:
                found.good += group
            elif len(group) > 3:
                halves += _chunks(group, -(-len(group) // 2))
            else:
                failed[group] = tried
        waiting = halves
    unknown = [node for group in failed for node in group]
    for pairs in _rounds(unknown):
        if found.good:
            break
        pairs = [pair for pair in pairs if pair not in failed]
        for pair, tried in zip(pairs, try_groups(pairs), strict=True) if pairs else ():
            if tried.is_complete:
                found.good += pair
            else:
                failed[pair] = tried
    if found.good:
        _try_with_good(found, [node for node in unknown if node not in found.good], try_groups, failed)
    _note_links(found, failed)
    found.good.sort()
    return found


def find_bad_links(nodes: Sequence[int], try_groups: Try) -> dict[tuple[int, int], Tried]:
    """Try every pair of nodes, in rounds of disjoint pairs."""
    bad: dict[tuple[int, int], Tried] = {}
    for pairs in _rounds(nodes):
        tries = zip(pairs, try_groups(pairs), strict=True)
        bad |= {(pair[0], pair[1]): tried for pair, tried in tries if not tried.is_complete}
    return bad


def _chunks(nodes: Sequence[int], size: int) -> list[Group]:
    """In groups of `size`; a single node that is left joins the last group."""
    groups = [tuple(nodes[k : k + size]) for k in range(0, len(nodes), size)]
    if len(groups) > 1 and len(groups[-1]) == 1:
        groups[-2:] = [groups[-2] + groups[-1]]
    return groups


def _rounds(nodes: Sequence[int]) -> Iterator[list[Group]]:
    players = len(nodes)
    for round_ in range(num_rounds(players) if players > 1 else 0):
        yield [(nodes[one], nodes[other]) for one, other in pairs_of(round_, players)]


def _try_with_good(found: Located, unknown: list[int], try_groups: Try, failed: dict[Group, Tried]) -> None:
    partners = list(found.good)
    for attempt in range(2):
        reached: list[int] = []
        for first in range(0, len(unknown), len(partners)):
            nodes = unknown[first : first + len(partners)]
            # Another partner each time: the link to the first one may be at fault.
            turned = partners[attempt:] + partners[:attempt]
            pairs: list[Group] = [(node, turned[k]) for k, node in enumerate(nodes)]
            for pair, tried in zip(pairs, try_groups(pairs), strict=True):
                if tried.is_complete:
                    reached.append(pair[0])
                else:
                    failed[pair] = found.guilty[pair[0]] = tried
        found.good += reached
        found.guilty = {node: tried for node, tried in found.guilty.items() if node not in reached}
        unknown = [node for node in unknown if node not in reached]


def _note_links(found: Located, failed: Mapping[Group, Tried]) -> None:
    for group, tried in failed.items():
        if len(group) == 2 and set(group) <= set(found.good):
            found.links[min(group), max(group)] = tried


def failure_findings(
    guilty: Mapping[int, Tried], links: Mapping[tuple[int, int], Tried], hosts: Sequence[str], size_bytes: int
) -> list[Finding]:
    """Nodes and links between which not all messages arrive."""
    of_nodes = [
        Finding(NODE, (hosts[node],), *_texts(tried, size_bytes)) for node, tried in sorted(guilty.items())
    ]
    return of_nodes + [
        Finding(LINK, (hosts[one], hosts[other]), *_texts(tried, size_bytes))
        for (one, other), tried in sorted(links.items())
    ]


def _texts(tried: Tried, size_bytes: int) -> tuple[str, str, str, str]:
    """Measure, value, what others have, and a likely cause."""
    if tried.reached == "small messages":
        return (
            MESSAGES, f"of {format_bytes(size_bytes)} do not arrive", "arrive",
            "small ones do: look at the MTU of the interface and of the switch ports on the way",
        )  # fmt: skip
    if tried.reached == "start":
        cause = (
            "its rank started: look at the interface, the port, the MTU and the firewall of the data network"
        )
        return MESSAGES, "do not arrive", "arrive", cause
    return RANK, "does not start", "start", f"a launch with it ended: {tried.cause}"


def dead_finding(host: str) -> Finding:
    """A node that no longer exists."""
    return Finding(NODE, (host,), RANK, "does not start", "start", "the node no longer exists")


def stopped_finding(host: str) -> Finding:
    """A node whose rank no longer did anything."""
    return Finding(
        NODE, (host,), RANK, "stopped", "run",
        "it did nothing while the others waited: it was stopped (SIGSTOP), or the node hangs or does not "
        "reach the folder of the check; look at ps and dmesg there",
    )  # fmt: skip


def killed_finding(host: str, how: str) -> Finding:
    """A node whose rank was ended by a signal, as mpiexec reports."""
    cause = f"mpiexec reports {how}: look for the out-of-memory killer in dmesg, and at limits of the job"
    return Finding(NODE, (host,), RANK, "was killed", "run", cause)
