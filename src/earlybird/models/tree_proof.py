"""Which tree a collective operation ran along, told from who is late when one rank comes late."""

from dataclasses import dataclass

import numpy as np

from earlybird.models.trees import TREES, reaches

PROVEN, CONTRADICTED, NOT_TOLD = "proven", "contradicted", "not told"
# Seen of algorithms in which every rank needs something of every other, such as scatter and allgather.
ALL_WAIT = "all wait for all"


@dataclass(frozen=True)
class TreeProof:
    """What late ranks tell of an algorithm.

    Attributes
    ----------
    verdict : `proven` where exactly those were late who are below (above, where data go up) the late rank in
        the tree asked for; `contradicted` where somebody who needs the late rank's data was not late, or
        where another known tree was seen instead; `not told` otherwise: no tree was asked for, all trees of
        so few ranks are alike, or noise made others late.
    seen : the tree of models/trees.py that all late ranks fit, ALL_WAIT, or None.
    edges : (parent, child) of every edge, ascending by child; None where not every rank came late once or
        where those late fit no tree.
    """

    verdict: str
    seen: str | None
    edges: tuple[tuple[int, int], ...] | None


def late_ranks(rank_times_s: np.ndarray, delayed: np.ndarray, delay_s: float) -> np.ndarray:
    """(K, P) bool: [k, r] whether rank r finished late when `delayed[k]` began `delay_s` late; itself not
    counted.

    Parameters
    ----------
    rank_times_s : (K, P) when each rank was done, from a common start; late is half the delay or more, far
        from what small messages take and from a whole delay.
    """
    late = np.asarray(rank_times_s) >= delay_s / 2
    late[np.arange(len(late)), delayed] = False
    return late


def judge_tree(late: np.ndarray, delayed: np.ndarray, tree: str | None, root: int, upward: bool) -> TreeProof:
    """Compare what `late_ranks` gives with the tree asked for.

    Nobody can be done before data that are not sent yet, so that one rank missing among the late contradicts.
    A rank too many may be noise: it contradicts only where all together fit another known tree.

    Parameters
    ----------
    late : (K, P) as of `late_ranks`; delayed : (K,) ranks.
    tree : one of models/trees.py, None where the algorithm asked for runs along none of them.
    upward : whether data go to the root, as in a reduction, and not from it.
    """
    num_ranks = late.shape[1]
    expected = {name: _expected(name, delayed, num_ranks, root, upward) for name in TREES}
    fitting = [name for name in TREES if np.array_equal(late, expected[name])]
    everybody = np.ones_like(late)
    everybody[np.arange(len(late)), delayed] = False
    seen = fitting[0] if fitting else ALL_WAIT if np.array_equal(late, everybody) else None
    edges = _edges(late, delayed, root, upward)
    if tree is None or num_ranks <= 2:
        return TreeProof(NOT_TOLD, seen if num_ranks > 2 else None, edges)
    if tree in fitting:
        return TreeProof(PROVEN, tree, edges)
    missing = expected[tree] & ~late
    return TreeProof(CONTRADICTED if seen or missing.any() else NOT_TOLD, seen, edges)


def _expected(tree: str, delayed: np.ndarray, num_ranks: int, root: int, upward: bool) -> np.ndarray:
    below = reaches(tree, num_ranks, root)
    late = (below.T if upward else below)[delayed].copy()
    late[np.arange(len(late)), delayed] = False
    return late


def _edges(
    late: np.ndarray, delayed: np.ndarray, root: int, upward: bool
) -> tuple[tuple[int, int], ...] | None:
    """The tree in which exactly these are late."""
    num_ranks = late.shape[1]
    if not np.array_equal(np.sort(delayed), np.arange(num_ranks)):
        return None
    below = late[np.argsort(delayed)]
    if upward:
        below = below.T
    counts = below.sum(axis=1)
    found = []
    for child in range(num_ranks):
        above = np.flatnonzero(below[:, child])
        if child != root and len(above) == 0:
            return None
        if child != root:
            found.append((int(above[np.argmin(counts[above])]), child))
    return tuple(found) if _is_tree(found, below, root) else None


def _is_tree(edges: list[tuple[int, int]], below: np.ndarray, root: int) -> bool:
    """Whether the ranks below each other by these edges are those of `below`."""
    parent = dict((child, parent) for parent, child in edges)
    reached = np.zeros_like(below)
    for rank in parent:
        above, steps = rank, 0
        while above != root:
            above, steps = parent[above], steps + 1
            if steps > len(parent):
                return False  # a ring
            reached[above, rank] = True
    return bool(np.array_equal(reached, below))
