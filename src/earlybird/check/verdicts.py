"""From suspicions to findings: a node whose links are mostly slow is slow itself; likely causes."""

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from earlybird.check.measured import Measured
from earlybird.check.suspicions import Suspicion
from earlybird.data import labels
from earlybird.data.check import (
    BANDWIDTH,
    BOTH,
    CLOCK,
    COMPUTATION,
    DRIFT,
    INCAST,
    LATENCY,
    LINK,
    LOSS,
    NODE,
    OUTCAST,
    UNDIRECTED,
    Finding,
)
from earlybird.data.covers import Link, connected, connected_nodes, smallest_covers

# So many nodes more are a better explanation than a link that contradicts one.
_CONTRADICTION = 2
# What TCP sends before it waits for the first acknowledgement: ten segments.
_FIRST_SEGMENTS_BYTES = 14600

# One finding for each link and direction: that which explains the others comes first.
_LINK_MEASURES = (LOSS, BANDWIDTH, BOTH, LATENCY)
_IN_BYTES_PER_S = (BANDWIDTH, BOTH)
# Of a core that other processes use, the computation has less CPU time than it takes.
_OWN_SHARE = 0.95
_STOLEN_SHARE = 0.02

_LINK_CAUSES = {
    LOSS: "packets are lost: look at the cable, the switch port, error counters and the MTU",
    BANDWIDTH: "look at the negotiated rate of the port, the cable and other traffic on this path",
    BOTH: "each direction alone is as fast as others: look at duplex settings and flow control",
    LATENCY: "messages may take a longer path, or a node saves power between messages",
}


def findings(
    suspicions: Sequence[Suspicion],
    measured: Measured,
    hosts: Sequence[str],
    size_bytes: int,
    cast_bytes: int,
    unjudged: Iterable[Link] = (),
) -> list[Finding]:
    """Return findings, nodes first, then links. Omit what a bad node or link explains. The links `unjudged`
    are unknown."""
    computing = [one for one in suspicions if one.measure == COMPUTATION]
    busy = {one.first for one in computing}
    # A node whose cores are busy answers late.
    suspicions = [one for one in suspicions if one.measure != LATENCY or not busy & {one.first, one.second}]
    suspicions = _without_effects_of_latency(suspicions, size_bytes)
    judged = ~np.isnan(measured.send_s)
    for sender, receiver in unjudged:
        judged[sender, receiver] = judged[receiver, sender] = False
    of_nodes, explained = _nodes_by_links(suspicions, judged, hosts, size_bytes)
    links = [one for one in suspicions if one.is_link and (one.first, one.second) not in explained]
    of_nodes += [_computation(one, measured, hosts) for one in computing]
    bad = {host for finding in of_nodes for host in finding.hosts}
    # An incast or outcast takes as long as its slowest link.
    bad |= {hosts[end] for one in links for end in (one.first, one.second)}
    for one in suspicions:
        if one.measure in (INCAST, OUTCAST) and hosts[one.first] not in bad:
            of_nodes.append(_cast(one, hosts, cast_bytes * (measured.num_nodes - 1)))
        elif one.measure in (CLOCK, DRIFT):
            of_nodes.append(_clock(one, hosts))
    return [*of_nodes, *_links(links, hosts, size_bytes)]


def _without_effects_of_latency(suspicions: Sequence[Suspicion], size_bytes: int) -> list[Suspicion]:
    """Return the suspicions without bandwidths that the latency of the same link causes: a message passes it
    several times before it is acknowledged, which is the excess of its time over that of others."""
    # To ask whether the receiver is ready, to send, to acknowledge; and TCP waits for acknowledgements before
    # it doubles what it sends at once.
    doublings = max(size_bytes / _FIRST_SEGMENTS_BYTES, 1.0)
    passes = 4 + 2 * (1 + math.log2(doublings))
    late = {(one.first, one.second): one.value - one.expected for one in suspicions if one.measure == LATENCY}

    def is_effect(one: Suspicion) -> bool:
        excess_s = late.get((one.first, one.second), 0.0)
        return one.measure in _IN_BYTES_PER_S and one.value - one.expected <= passes * excess_s

    return [one for one in suspicions if not is_effect(one)]


def _nodes_by_links(
    suspicions: Sequence[Suspicion], judged: np.ndarray, hosts: Sequence[str], size_bytes: int
) -> tuple[list[Finding], set[Link]]:
    """Return the nodes to which most of their links in one direction are slow, and the links that this
    explains.

    Only nodes of the smallest set that explains all slow links are returned: a node that is slow only with
    slow ones is not slow itself. Slow links between parts of the nodes in which they are fast are explained
    by no node.
    """
    found: list[Finding] = []
    explained: set[Link] = set()
    for measure in _LINK_MEASURES:
        slow = {(one.first, one.second): one for one in suspicions if one.is_link and one.measure == measure}
        between = _between_parts(slow, judged)
        links = {link: one for link, one in slow.items() if link not in explained and not between[link]}
        within = judged & ~between
        casts = [{one.first for one in suspicions if one.measure == cast} for cast in (OUTCAST, INCAST)]
        guilty = _guilty(links, within, casts if measure == BANDWIDTH and any(casts) else None)
        for node in sorted(guilty):
            directions = {
                text: own
                for end, text in enumerate(("sending", "receiving"))
                if (own := _slow_links(node, end, links, guilty, within))
            }
            if directions:
                own_links = [link for own in directions.values() for link in own]
                how = "" if measure in UNDIRECTED else " and ".join(directions) + " "
                found.append(_slow_node(node, how, [links[link] for link in own_links], hosts, size_bytes))
                # Whatever else is slow about these links has the same cause, acknowledgements included.
                explained |= {link for own in own_links for link in (own, own[::-1])}
    return found, explained


def _between_parts(links: Collection[Link], judged: np.ndarray) -> np.ndarray:
    """Return a boolean array (N, N), true for links between parts of the nodes, of two or more each, that
    only slow links connect."""
    is_good = judged | judged.T
    for one, other in links:
        is_good[one, other] = is_good[other, one] = False
    part = np.full(len(judged), -1)
    for number, nodes in enumerate(connected_nodes((int(i), int(j)) for i, j in np.argwhere(is_good))):
        part[list(nodes)] = number
    return np.logical_and.outer(part >= 0, part >= 0) & np.not_equal.outer(part, part)


def _guilty(links: Collection[Link], judged: np.ndarray, casts: Sequence[Collection[int]] | None) -> set[int]:
    """Return the nodes that are in every best explanation of these slow links.

    The best explanation has the smallest sum of nodes and contradictions, and then the fewest directions. A
    contradiction is a link of these nodes that is not slow in a direction in which others are, or a node that
    is slow in a direction but not in its outcast or incast, if `casts` has the nodes that are. If several are
    as good, which nodes are at fault is not known, except for those in all of them. Among too many nodes to
    search all sets, see `_slowest_by_share`.
    """
    guilty: set[int] = set()
    for group in connected(links):
        if len(group) == 1:
            continue
        pairs = set(group)
        own = {link for link in links if (min(link), max(link)) in pairs}
        covers, is_certain = smallest_covers(group)
        if not is_certain:
            guilty |= _slowest_by_share(own, judged)
            continue
        covers += [cover for cover in _always_slow(own, judged) if all(cover & set(link) for link in own)]
        costs = [_cost(cover, own, judged, casts) for cover in covers]
        best = [cover for cover, cost in zip(covers, costs, strict=True) if cost == min(costs)]
        guilty |= frozenset.intersection(*best)
    return guilty


def _slowest_by_share(links: Collection[Link], judged: np.ndarray) -> set[int]:
    """Return nodes at fault, found one at a time: the node with the largest share of slow links in one
    direction, with nodes that are not yet at fault, as long as most of them are slow."""
    slow = np.zeros(judged.shape, dtype=bool)
    slow[tuple(np.array(list(links)).T)] = True
    slow &= judged
    counts, totals = (np.stack([one.sum(axis=1), one.sum(axis=0)]).astype(float) for one in (slow, judged))
    guilty: set[int] = set()
    while (shares := counts / np.maximum(totals, 1)).max() > 0.5:
        node = int(shares.max(axis=0).argmax())
        for matrix, left in ((slow, counts), (judged, totals)):
            left[0] -= matrix[:, node]
            left[1] -= matrix[node]
        counts[:, list(guilty := guilty | {node})] = 0
    return guilty


def _always_slow(links: Collection[Link], judged: np.ndarray) -> list[frozenset[int]]:
    """Return the nodes all of whose links are slow: those that begin there, those that end there, and
    either."""
    slow = np.zeros(judged.shape, dtype=bool)
    slow[tuple(np.array(list(links)).T)] = True
    sets = [
        frozenset(np.flatnonzero(slow.any(axis=axis) & ~(judged & ~slow).any(axis=axis)).tolist())
        for axis in (1, 0)
    ]
    return [one for one in (*sets, sets[0] | sets[1]) if one]


def _cost(
    cover: Collection[int],
    links: Collection[Link],
    judged: np.ndarray,
    casts: Sequence[Collection[int]] | None,
) -> tuple[int, int]:
    """Return the number of nodes plus weighted contradictions, and the number of directions plus unexplained
    links."""
    ends = {(end, link[end]) for link in links for end in (0, 1) if not set(link) <= set(cover)}
    ends = {(end, node) for end, node in ends if node in cover}
    explained = {link for link in links if (0, link[0]) in ends or (1, link[1]) in ends}
    good = 0
    for end, node in ends:
        others = np.flatnonzero(judged[node] if end == 0 else judged[:, node]).tolist()
        good += sum((node, other)[:: 1 - 2 * end] not in links for other in others)
    good += sum(node not in casts[end] for end, node in ends) if casts else 0
    return len(cover) + _CONTRADICTION * good, len(ends) + len(links) - len(explained)


def _slow_links(
    node: int, end: int, links: Collection[Link], guilty: Collection[int], judged: np.ndarray
) -> list[Link]:
    """Return the slow links of `node` that begin (`end` 0) or end there, if they are most of those with nodes
    that are not at fault, and several."""
    own = [link for link in links if link[end] == node]
    all_others = np.flatnonzero(judged[node] if end == 0 else judged[:, node]).tolist()
    others = [other for other in all_others if other not in guilty] or all_others
    slow = sum(link[1 - end] in others for link in own)
    return own if len(own) > 1 and 2 * slow > len(others) else []


def _slow_node(
    node: int, how: str, links: Sequence[Suspicion], hosts: Sequence[str], size_bytes: int
) -> Finding:
    measure = links[0].measure
    value, expected = (
        float(np.median([getattr(one, key) for one in links])) for key in ("value", "expected")
    )
    others = len({end for one in links for end in (one.first, one.second)}) - 1
    cause = f"with {labels.counted(others, 'other node')}; {_LINK_CAUSES[measure]}"
    return Finding(
        NODE, (hosts[node],), how + measure, *_in_units(measure, value, expected, size_bytes), cause
    )  # fmt: skip


def _in_units(measure: str, value: float, expected: float, size_bytes: int) -> tuple[float, float]:
    """Return the value and its expected value, with times of messages as bandwidth."""
    if measure in _IN_BYTES_PER_S:
        return size_bytes / value, size_bytes / expected
    return value, expected


def _links(links: Sequence[Suspicion], hosts: Sequence[str], size_bytes: int) -> list[Finding]:
    """Return the findings for the first measure of each link and direction. The other direction of a slow
    link is named if it is slow by the same measure that has a direction."""
    chosen: dict[Link, Suspicion] = {}
    for one in sorted(links, key=lambda one: _LINK_MEASURES.index(one.measure)):
        back = chosen.get((one.second, one.first))
        if back is None or (back.measure == one.measure and one.measure not in UNDIRECTED):
            chosen.setdefault((one.first, one.second), one)
    return [
        Finding(
            LINK, (hosts[one.first], hosts[one.second]), one.measure,
            *_in_units(one.measure, one.value, one.expected, size_bytes), _LINK_CAUSES[one.measure],
        )
        for one in sorted(chosen.values(), key=lambda one: (one.first, one.second))
    ]  # fmt: skip


def _computation(one: Suspicion, measured: Measured, hosts: Sequence[str]) -> Finding:
    node = one.first
    facts = measured.facts[node]
    core = int(measured.slowest_cpu[node])
    own_share = float(measured.compute_cpu_s[node] / measured.compute_s[node])
    limit = facts.get("cpu_limit")
    if own_share < _OWN_SHARE and limit is not None and limit < facts.get("cores", limit + 1):
        cause = f"the control group limits CPU time to that of {limit:g} cores"
    elif own_share < _OWN_SHARE:
        share = labels.percent(1 - own_share)
        cause = f"other processes, or a limit on CPU time, take {share} of CPU {core}: look at top there"
    elif facts.get("stolen_share", 0.0) > _STOLEN_SHARE:
        cause = (
            f"the hypervisor gives {labels.percent(facts['stolen_share'])} of the CPU time to other guests"
        )
    else:
        governor = facts.get("governor")
        cause = f"CPU {core} runs at a lower rate: look at temperature, power limits and " + (
            f"the frequency governor ({governor})" if governor else "the other thread of its core"
        )
    return Finding(NODE, (hosts[node],), COMPUTATION, one.value, one.expected, cause)


def _cast(one: Suspicion, hosts: Sequence[str], size_bytes: int) -> Finding:
    """Return a finding for all messages of an incast or outcast together."""
    cause = {
        INCAST: "each link alone is as fast as others: look at buffers and flow control of its switch port",
        OUTCAST: "each link alone is as fast as others: look at its adapter and the CPU that serves it",
    }[one.measure]
    value, expected = size_bytes / one.value, size_bytes / one.expected
    return Finding(NODE, (hosts[one.first],), one.measure, value, expected, cause)


def _clock(one: Suspicion, hosts: Sequence[str]) -> Finding:
    cause = "its clock is not synchronized: look at chronyc tracking or ntpq -p there"
    return Finding(NODE, (hosts[one.first],), one.measure, one.value, one.expected, cause)
