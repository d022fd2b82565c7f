"""Trees of collectives: the edges the MPIs use, at any number of ranks and any root, and the longest path."""

import itertools

import numpy as np
import pytest

from earlybird.models.trees import TREES, critical_path, edge_rounds, edges, reaches


def pairs(tree, ranks, root=0):
    return list(zip(*(one.tolist() for one in edges(tree, ranks, root)), strict=True))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("linear", [(0, 1), (0, 2), (0, 3)]),
        ("chain", [(0, 1), (1, 2), (2, 3)]),
        ("binomial-doubling", [(0, 1), (0, 2), (1, 3)]),
        ("binomial-halving", [(0, 2), (0, 1), (2, 3)]),
    ],
)
def test_edges_at_four_ranks_are_those_seen_in_the_mpis(tree, expected):
    assert pairs(tree, 4) == expected


def test_any_other_root_turns_the_tree():
    assert pairs("binomial-halving", 4, root=3) == [(3, 1), (3, 0), (1, 2)]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(
    ("ranks", "root"), [(1, 0), (2, 1), (3, 0), (5, 4), (7, 2), (8, 0), (13, 6), (256, 9)]
)
def test_every_rank_but_the_root_receives_once_from_a_rank_that_has_the_data(tree, ranks, root):
    have = {root}
    for parent, child in pairs(tree, ranks, root):
        assert parent in have
        assert child not in have
        have.add(child)
    assert have == set(range(ranks))


@pytest.mark.parametrize("tree", ["binomial-doubling", "binomial-halving"])
@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 8, 9, 31])
def test_binomial_trees_take_the_logarithm_of_the_ranks_in_rounds(tree, ranks):
    turn = edge_rounds(tree, ranks)
    assert set(turn.tolist()) == set(range((ranks - 1).bit_length()))
    assert (np.diff(turn) >= 0).all()
    # In a round no rank takes part twice.
    for k in set(turn.tolist()):
        taking_part = [
            r for (a, b), t in zip(pairs(tree, ranks), turn, strict=True) if t == k for r in (a, b)
        ]
        assert len(taking_part) == len(set(taking_part))


def test_late_ranks_of_a_broadcast_are_those_below():
    assert np.flatnonzero(reaches("chain", 5, root=3)[0]).tolist() == [0, 1, 2]
    assert np.flatnonzero(reaches("binomial-halving", 8)[4]).tolist() == [4, 5, 6, 7]
    assert np.flatnonzero(reaches("binomial-doubling", 8)[1]).tolist() == [1, 3, 5, 7]
    assert np.flatnonzero(reaches("linear", 4).T[2]).tolist() == [0, 2]


def slowest_by_time(parent, child, level, hop_s):
    """The same by simulated times of hops."""
    busy = dict.fromkeys(range(len(parent) + 1), 0.0)
    for a, b, kind in zip(parent, child, level, strict=True):
        busy[a] = busy[b] = busy[a] + hop_s[kind]
    return max(busy.values())


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("ranks", [2, 5, 8, 12])
def test_critical_path_is_the_one_that_a_simulation_waits_for(tree, ranks):
    hop_s = (1.0, 1e3, 1e6)
    for nodes, root in itertools.product((1, 2, 3), (0, ranks - 1)):
        parent, child = edges(tree, ranks, root)
        node, socket = np.arange(ranks) % nodes, np.arange(ranks) // nodes % 2
        level = np.where(node[parent] != node[child], 2, np.where(socket[parent] != socket[child], 1, 0))
        hops, on_path = critical_path(parent, child, level, 3)
        assert hops @ hop_s == slowest_by_time(parent, child, level, hop_s)
        assert np.bincount(level[on_path], minlength=3).tolist() == hops.tolist()


def test_no_hops_without_edges():
    hops, on_path = critical_path(*edges("chain", 1), np.array([], dtype=int), 3)
    assert hops.tolist() == [0, 0, 0]
    assert on_path.tolist() == []


def test_the_root_is_rank_0_unless_another_is_given():
    for tree in TREES:
        assert [one.tolist() for one in edges(tree, 6)] == [one.tolist() for one in edges(tree, 6, 0)]


@pytest.mark.parametrize("tree", ["linear", "chain"])
def test_linear_trees_and_chains_have_a_round_per_edge_from_0_on(tree):
    assert edge_rounds(tree, 5).tolist() == [0, 1, 2, 3]
