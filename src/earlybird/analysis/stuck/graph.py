"""Graphs of ranks that wait for each other: components, and a shortest cycle."""

from collections import deque
from collections.abc import Collection, Mapping

_MAX_BEGINNINGS = 64


def components(successors: Mapping[int, Collection[int]]) -> list[list[int]]:
    """Return the strongly connected components, each after those that it leads to (Tarjan's algorithm)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    is_on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in successors:
        if root in index:
            continue
        work = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        is_on_stack.add(root)
        while work:
            node, rest = work[-1]
            for following in rest:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    is_on_stack.add(following)
                    work.append((following, iter(successors.get(following, ()))))
                    break
                if following in is_on_stack:
                    low[node] = min(low[node], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[int] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        is_on_stack.discard(component[-1])
                    found.append(sorted(component))
    return found


def shortest_cycle(successors: Mapping[int, Collection[int]], within: Collection[int]) -> list[int]:
    """Return a shortest cycle among these nodes that begins with the smallest of its nodes; empty without
    one. Of many nodes only the first ones are tried as its beginning."""
    nodes = set(within)
    best: list[int] = []
    for begin in sorted(nodes)[:_MAX_BEGINNINGS]:
        path = _path_back(successors, nodes, begin)
        if path and (not best or len(path) < len(best)):
            best = path
        is_only = all(len(nodes.intersection(successors.get(node, ()))) <= 1 for node in best)
        if len(best) in (1, 2) or (best and is_only):
            break
    first = best.index(min(best)) if best else 0
    return best[first:] + best[:first]


def _path_back(successors: Mapping[int, Collection[int]], nodes: set[int], begin: int) -> list[int]:
    """Return the nodes of a shortest way from `begin` back to it."""
    before = {begin: begin}
    queue = deque([begin])
    while queue:
        node = queue.popleft()
        for following in sorted(nodes.intersection(successors.get(node, ()))):
            if following == begin:
                path = [node]
                while path[-1] != begin:
                    path.append(before[path[-1]])
                return path[::-1]
            if following not in before:
                before[following] = node
                queue.append(following)
    return []


def has_cycle(successors: Mapping[int, Collection[int]], within: Collection[int]) -> bool:
    """Return whether some of these nodes lead back to themselves without leaving them."""
    nodes = set(within)
    inner = {node: nodes.intersection(successors.get(node, ())) for node in nodes}
    return any(len(group) > 1 or group[0] in inner[group[0]] for group in components(inner))


def reaching(successors: Mapping[int, Collection[int]], targets: Collection[int]) -> set[int]:
    """Return the nodes that lead to a target, and the targets."""
    before: dict[int, list[int]] = {}
    for node, following in successors.items():
        for each in following:
            before.setdefault(each, []).append(node)
    reached = set(targets)
    queue = deque(reached)
    while queue:
        for node in before.get(queue.popleft(), ()):
            if node not in reached:
                reached.add(node)
                queue.append(node)
    return reached
