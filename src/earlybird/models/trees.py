"""Trees of broadcasts and reductions: sender, receiver, round and hops of every message."""

import numpy as np

TREES = ("linear", "chain", "binomial-doubling", "binomial-halving")


def edges(tree: str, ranks: int, root: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return parent and child of every edge of a broadcast, in the order of its rounds; a reduction runs
    backwards.

    With v = (rank - root) mod P: `linear` sends from 0 to each in turn, `chain` from v to v + 1. There are
    two binomial trees: `binomial-doubling` (Open MPI's broadcast: 0->1, then 0->2, 1->3) sends in round k
    from every v < 2^k to v + 2^k; `binomial-halving` (MPICH's, and both reductions: 0->2, then 0->1, 2->3)
    halves the distance each round: v receives from v less its lowest bit.

    Parameters
    ----------
    ranks : P >= 1, any number.
    root : 0..P-1.

    Returns
    -------
    parent, child : (P-1,) int64; a parent's own edge comes before its children's.
    """
    parent, child, _ = _by_round(tree, ranks)
    return (parent + root) % ranks, (child + root) % ranks


def edge_rounds(tree: str, ranks: int) -> np.ndarray:
    """Return (P-1,) the round, from 0, in which each edge of `edges` is used by a broadcast of one
    segment.
    """
    return _by_round(tree, ranks)[2]


def reaches(tree: str, ranks: int, root: int = 0) -> np.ndarray:
    """Return (P, P) bool: [a, b] is true if b is a or below it, and so late in a broadcast when a is late;
    for a reduction use the transpose.
    """
    below = np.eye(ranks, dtype=bool)
    parents, children = edges(tree, ranks, root)
    for parent, child in zip(parents[::-1], children[::-1], strict=True):
        below[parent] |= below[child]
    return below


def critical_path(
    parent: np.ndarray, child: np.ndarray, level: np.ndarray, num_levels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the hops of the longest path from the root to a rank that is done last, sends of one rank in
    turn.

    A rank that sends is busy for the whole hop, as in T = sum over rounds of (alpha + beta*m). One hop of a
    higher level outweighs any number of hops of lower levels.

    Parameters
    ----------
    parent, child : (E,) edges in the order of `edges`.
    level : (E,) index of the hop type of each edge, ascending from the quickest.

    Returns
    -------
    hops : (num_levels,) int64, hops of each type on the way.
    on_path : (E,) bool, whether an edge is on this path.
    """
    num_ranks = len(parent) + 1
    busy: list[tuple[int, ...]] = [(0,) * num_levels] * num_ranks
    last_of: list[int] = [-1] * num_ranks  # the edge a rank's time ends with
    before = [-1] * len(parent)
    ends: list[tuple[int, ...]] = []
    for edge, (a, b, kind) in enumerate(zip(parent.tolist(), child.tolist(), level.tolist(), strict=True)):
        # Counts from the slowest type to the quickest, so that tuples compare as the paths do.
        place = num_levels - 1 - kind
        end = (*busy[a][:place], busy[a][place] + 1, *busy[a][place + 1 :])
        before[edge] = last_of[a]
        busy[a] = busy[b] = end
        last_of[a] = last_of[b] = edge
        ends.append(end)
    on_path = np.zeros(len(parent), dtype=bool)
    if not ends:
        return np.zeros(num_levels, dtype=np.int64), on_path
    edge = max(range(len(ends)), key=ends.__getitem__)
    hops = np.array(ends[edge][::-1], dtype=np.int64)
    while edge >= 0:
        on_path[edge] = True
        edge = before[edge]
    return hops, on_path


def _by_round(tree: str, ranks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return parent, child and round of every edge, of the root 0, sorted by round."""
    child = np.arange(1, ranks, dtype=np.int64)
    if tree == "linear":
        return np.zeros_like(child), child, child - 1
    if tree == "chain":
        return child - 1, child, child - 1
    if tree == "binomial-doubling":
        bit = np.frexp(child)[1] - 1  # the highest
        return child - (1 << bit), child, bit
    if tree == "binomial-halving":
        lowest = child & -child
        turn = (ranks - 1).bit_length() - np.frexp(lowest)[1]
        order = np.argsort(turn, kind="stable")
        return (child - lowest)[order], child[order], turn[order]
    raise ValueError(f"the tree is {tree!r}; there are {', '.join(TREES)}")
