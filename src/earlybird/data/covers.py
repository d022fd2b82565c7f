"""Smallest sets of nodes that explain slow links: each link has one of its ends among them."""

from collections.abc import Iterable, Iterator, Sequence

Link = tuple[int, int]
Neighbours = dict[int, set[int]]

# Beyond, covers of connected links are no longer enumerated: a greedy one is taken.
_MAX_EXACT = 40
_MAX_STEPS = 5000


class _TooManyError(Exception):
    pass


def connected(links: Iterable[Link]) -> list[list[Link]]:
    """Return the links in groups without a common node, each in ascending order, regardless of direction."""
    pairs = sorted({(min(link), max(link)) for link in links})
    neighbours = _neighbours(pairs)
    first: dict[int, int] = {}  # of the nodes that are connected with a node
    for start in sorted(neighbours):
        waiting = [] if start in first else [start]
        while waiting:
            node = waiting.pop()
            if node not in first:
                first[node] = start
                waiting += neighbours[node]
    groups: dict[int, list[Link]] = {}
    for pair in pairs:
        groups.setdefault(first[pair[0]], []).append(pair)
    return list(groups.values())


def connected_nodes(links: Iterable[Link]) -> list[set[int]]:
    """Return the nodes that these links connect, as disjoint sets that no link connects with each other."""
    return [{node for link in group for node in link} for group in connected(links)]


def smallest_covers(links: Sequence[Link]) -> tuple[list[frozenset[int]], bool]:
    """Return the smallest sets of nodes that contain an end of each of some connected links, in ascending
    order, and whether it is certain that they are the smallest.

    All of them are found for small numbers of nodes. Otherwise one set is returned, built by repeatedly
    taking the node with most links, which need not be the smallest.
    """
    neighbours = _neighbours(links)
    greedy = frozenset(_greedy(neighbours))
    if len(greedy) > _MAX_EXACT:
        return [greedy], False
    try:
        found = set(_covers(neighbours, len(greedy), [_MAX_STEPS]))
    except _TooManyError:
        return [greedy], False
    least = min(map(len, found), default=len(greedy))
    return sorted((cover for cover in found if len(cover) == least), key=sorted), True


def _neighbours(links: Iterable[Link]) -> Neighbours:
    neighbours: Neighbours = {}
    for one, other in links:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    return neighbours


def _without(neighbours: Neighbours, nodes: Iterable[int]) -> Neighbours:
    gone = set(nodes)
    left = {node: others - gone for node, others in neighbours.items() if node not in gone}
    return {node: others for node, others in left.items() if others}


def _busiest(neighbours: Neighbours) -> int:
    return max(sorted(neighbours), key=lambda node: len(neighbours[node]))


def _greedy(neighbours: Neighbours) -> Iterator[int]:
    left = {node: set(others) for node, others in neighbours.items()}
    while left and left[node := _busiest(left)]:
        yield node
        for other in left.pop(node):
            left[other].discard(node)


def _covers(neighbours: Neighbours, most: int, steps: list[int]) -> Iterator[frozenset[int]]:
    """Yield every smallest cover of at most `most` nodes, and others: either the node with most links is part
    of it, or all of its neighbours are."""
    steps[0] -= 1
    if steps[0] < 0:
        raise _TooManyError
    if not neighbours:
        yield frozenset()
        return
    node = _busiest(neighbours)
    edges = sum(map(len, neighbours.values())) // 2
    if most * len(neighbours[node]) < edges:
        return
    for chosen in ({node}, neighbours[node]):
        if len(chosen) <= most:
            for rest in _covers(_without(neighbours, chosen), most - len(chosen), steps):
                yield rest | chosen
