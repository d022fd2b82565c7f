"""Late ranks show which tree ran, or leave it open."""

import numpy as np
import pytest

from earlybird.models.tree_verification import (
    ALL_WAIT,
    CONFIRMED,
    CONTRADICTED,
    NOT_VERIFIED,
    judge_tree,
    late_ranks,
)
from earlybird.models.trees import TREES, edges, reaches


def late(tree, ranks, root=0, upward=False):
    below = reaches(tree, ranks, root).copy()
    np.fill_diagonal(below, False)
    return below.T if upward else below


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(
    ("ranks", "root", "upward"), [(5, 0, False), (8, 3, False), (7, 2, True), (6, 5, True)]
)
def test_the_tree_that_ran_is_confirmed_with_its_edges(tree, ranks, root, upward):
    found = judge_tree(late(tree, ranks, root, upward), np.arange(ranks), tree, root, upward)
    assert found.verdict == CONFIRMED and found.seen == tree
    parents, children = edges(tree, ranks, root)
    assert sorted(found.edges) == sorted(zip(parents.tolist(), children.tolist(), strict=True))


def test_another_tree_contradicts_and_is_named():
    found = judge_tree(late("chain", 5), np.arange(5), "linear", 0, False)
    assert (found.verdict, found.seen) == (CONTRADICTED, "chain")
    assert found.edges == ((0, 1), (1, 2), (2, 3), (3, 4))


def test_a_rank_that_does_not_wait_contradicts_even_where_no_known_tree_is_seen():
    seen = late("chain", 5).copy()
    seen[1, 3] = seen[1, 4] = seen[2, 3] = seen[2, 4] = False  # 0->1->2, 0->3->4
    found = judge_tree(seen, np.arange(5), "chain", 0, False)
    assert (found.verdict, found.seen) == (CONTRADICTED, None)
    assert found.edges == ((0, 1), (1, 2), (0, 3), (3, 4))


def test_noise_that_makes_a_rank_late_tells_nothing():
    seen = late("linear", 6).copy()
    seen[3, 4] = True
    found = judge_tree(seen, np.arange(6), "linear", 0, False)
    assert (found.verdict, found.seen) == (NOT_VERIFIED, None)


def test_all_ranks_waiting_contradicts_a_tree_and_is_seen_without_one():
    seen = ~np.eye(4, dtype=bool)
    assert judge_tree(seen, np.arange(4), "linear", 0, False).verdict == CONTRADICTED
    found = judge_tree(seen, np.arange(4), None, 0, False)
    assert (found.verdict, found.seen, found.edges) == (NOT_VERIFIED, ALL_WAIT, None)


def test_two_ranks_tell_nothing():
    assert judge_tree(late("linear", 2), np.arange(2), "linear", 0, False).verdict == NOT_VERIFIED


def test_some_delayed_ranks_of_many_are_enough():
    delayed = np.array([0, 5, 10])
    found = judge_tree(late("binomial-halving", 17)[delayed], delayed, "binomial-halving", 0, False)
    assert found.verdict == CONFIRMED and found.edges is None


def test_late_is_half_the_delay_and_the_delayed_rank_is_not_counted():
    times_s = np.array([[0.1, 0.1, 0.04], [0.001, 0.11, 0.06]])
    assert late_ranks(times_s, np.array([0, 1]), 0.1).tolist() == [[False, True, False], [False, False, True]]
