"""Infer the tree of a collective operation from the ranks that are late when one rank is delayed."""

from dataclasses import dataclass

import numpy as np

from earlybird.models.trees import TREES, reaches

CONFIRMED, CONTRADICTED, NOT_VERIFIED = "confirmed", "contradicted", "not verified"
# Observed for algorithms in which every rank needs data of every other, such as scatter and allgather.
ALL_WAIT = "all wait for all"


@dataclass(frozen=True)
class TreeVerification:
    """The conclusion from late ranks about an algorithm.

    Attributes
    ----------
    verdict : `confirmed` if exactly the ranks below (above, if data go up) the delayed rank in the requested
        tree were late; `contradicted` if a rank that needs the data of the delayed rank was not late, or if
        another known tree was seen instead; `not verified` otherwise: no tree was requested, all trees of so
        few ranks are equal, or noise made other ranks late.
    seen : the tree of models/trees.py that all late ranks fit, ALL_WAIT, or None.
    edges : (parent, child) of every edge, ascending by child; None if not every rank was delayed once or
        if the late ranks fit no tree.
    """

    verdict: str
    seen: str | None
    edges: tuple[tuple[int, int], ...] | None


def late_ranks(rank_times_s: np.ndarray, delayed: np.ndarray, delay_s: float) -> np.ndarray:
    """Return (K, P) bool: [k, r] whether rank r finished late when `delayed[k]` began `delay_s` late, except
    that rank itself.

    Parameters
    ----------
    rank_times_s : (K, P) times at which each rank was done, from a common start; a rank is late by half the
        delay or more, far from the time of small messages and from a whole delay.
    """
    late = np.asarray(rank_times_s) >= delay_s / 2
    late[np.arange(len(late)), delayed] = False
    return late


def judge_tree(
    late: np.ndarray, delayed: np.ndarray, tree: str | None, root: int, upward: bool
) -> TreeVerification:
    """Compare the result of `late_ranks` with the requested tree.

    No rank can finish before its data are sent, so one missing late rank contradicts the tree. An additional
    late rank may be noise: it contradicts only if all late ranks fit another known tree.

    Parameters
    ----------
    late : (K, P) from `late_ranks`; delayed : (K,) ranks.
    tree : one of models/trees.py, None if the requested algorithm uses none of them.
    upward : whether data go to the root, as in a reduction, instead of from it.
    """
    num_ranks = late.shape[1]
    expected = {name: _expected(name, delayed, num_ranks, root, upward) for name in TREES}
    fitting = [name for name in TREES if np.array_equal(late, expected[name])]
    all_late = np.ones_like(late)
    all_late[np.arange(len(late)), delayed] = False
    seen = fitting[0] if fitting else ALL_WAIT if np.array_equal(late, all_late) else None
    edges = _edges(late, delayed, root, upward)
    if tree is None or num_ranks <= 2:
        return TreeVerification(NOT_VERIFIED, seen if num_ranks > 2 else None, edges)
    if tree in fitting:
        return TreeVerification(CONFIRMED, tree, edges)
    missing = expected[tree] & ~late
    return TreeVerification(CONTRADICTED if seen or missing.any() else NOT_VERIFIED, seen, edges)


def _expected(tree: str, delayed: np.ndarray, num_ranks: int, root: int, upward: bool) -> np.ndarray:
    below = reaches(tree, num_ranks, root)
    late = (below.T if upward else below)[delayed].copy()
    late[np.arange(len(late)), delayed] = False
    return late


def _edges(
    late: np.ndarray, delayed: np.ndarray, root: int, upward: bool
) -> tuple[tuple[int, int], ...] | None:
    """Return the edges of the tree in which exactly these ranks are late."""
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
    """Return whether these edges give the relation `below`."""
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
