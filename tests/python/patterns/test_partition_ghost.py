"""Partitions leave no part empty, and the ghost exchange is what its definition says, cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.patterns import partition
from earlybird.patterns.adjacency import adjacency_from_edges
from earlybird.patterns.ghost import ghost_exchange
from earlybird.patterns.mesh import tetrahedral_mesh
from earlybird.patterns.partition import (
    edge_cut,
    has_hypergraphs,
    partition_cells,
    partition_neighbourhoods,
)


def path_graph(num_cells):
    return adjacency_from_edges(np.arange(num_cells - 1), np.arange(1, num_cells), num_cells)


def messages(pattern) -> dict:
    return {(p, q): size for p, q, size in pattern.triples().tolist()}


@pytest.mark.parametrize("num_parts", [1, 2, 7, 8, 9, 32])
def test_parts_are_even_and_none_is_empty(num_parts):
    graph = tetrahedral_mesh(3000, 1)
    part = partition_cells(graph, num_parts)
    sizes = np.bincount(part, minlength=num_parts)
    assert len(sizes) == num_parts
    assert sizes.max() <= 1.15 * graph.shape[0] / num_parts + 1
    assert sizes.min() > 0


def test_same_seed_gives_the_same_partition():
    graph = tetrahedral_mesh(2000, 1)
    assert np.array_equal(partition_cells(graph, 6, seed=4), partition_cells(graph, 6, seed=4))


def test_as_many_parts_as_cells_is_one_cell_each():
    assert partition_cells(path_graph(5), 5).tolist() == [0, 1, 2, 3, 4]


def test_partition_that_cannot_be_is_refused():
    with pytest.raises(InputError, match=r"6 parts of a mesh with 5 cells.*at most 5"):
        partition_cells(path_graph(5), 6)
    with pytest.raises(InputError, match="parts is 0"):
        partition_cells(path_graph(5), 0)


def test_empty_part_is_tried_the_other_method_and_then_reported(monkeypatch):
    graph = path_graph(4)
    tried = []

    def leaves_part_1_empty(graph, num_parts, seed, recursive, *_):
        tried.append(recursive)
        return np.zeros(4, dtype=np.int64)

    monkeypatch.setattr(partition, "_metis_parts", leaves_part_1_empty)
    with pytest.raises(InputError, match=r"1 of 2 parts without cells .the first is part 1."):
        partition_cells(graph, 2)
    assert tried == [True, False]


def test_edge_cut_counts_each_pair_once():
    assert edge_cut(path_graph(6), np.array([0, 0, 1, 1, 2, 2])) == 2
    assert edge_cut(path_graph(6), np.zeros(6, dtype=int)) == 0


def test_ghosts_of_a_line_of_cells():
    part = np.array([0, 0, 0, 1, 2, 2, 2])
    one = ghost_exchange(path_graph(7), part, halo_width=1, bytes_per_cell=10)
    two = ghost_exchange(path_graph(7), part, halo_width=2, bytes_per_cell=10)
    assert messages(one) == {(0, 1): 10, (1, 0): 10, (1, 2): 10, (2, 1): 10}
    assert messages(two) == {(0, 1): 20, (0, 2): 10, (1, 0): 10, (1, 2): 10, (2, 0): 10, (2, 1): 20}


def test_halo_wider_than_the_mesh_sends_every_cell_to_every_other_part():
    part = np.array([0, 0, 1, 2])
    pattern = ghost_exchange(path_graph(4), part, halo_width=10**9, bytes_per_cell=1)
    assert messages(pattern) == {(p, q): [2, 1, 1][p] for p in range(3) for q in range(3) if p != q}


def test_one_part_sends_nothing():
    assert ghost_exchange(path_graph(4), np.zeros(4, dtype=int)).num_messages == 0


@given(data=st.data(), num_cells=st.integers(2, 12), halo_width=st.integers(1, 3))
def test_ghosts_equal_the_definition_on_small_graphs(data, num_cells, halo_width):
    cells = st.integers(0, num_cells - 1)
    edges = data.draw(st.lists(st.tuples(cells, cells), max_size=20))
    part = np.array(data.draw(st.lists(st.integers(0, 3), min_size=num_cells, max_size=num_cells)))
    first, second = (
        (np.array(side, dtype=int) for side in zip(*edges, strict=True)) if edges else (part[:0],) * 2
    )
    graph = adjacency_from_edges(first, second, num_cells)
    within = np.linalg.matrix_power(graph.toarray() + np.eye(num_cells, dtype=int), halo_width) > 0
    expected = {}
    for p in set(part.tolist()):
        for q in set(part.tolist()) - {p}:
            count = sum(within[c][part == q].any() for c in np.flatnonzero(part == p))
            if count:
                expected[(p, q)] = 8 * count
    assert messages(ghost_exchange(graph, part, halo_width=halo_width, bytes_per_cell=8)) == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"halo_width": 0}, "halo width is 0"),
        ({"bytes_per_cell": -1}, "bytes per cell is -1"),
        ({"bytes_per_cell": 2**62}, "would move"),
    ],
)
def test_impossible_ghosts_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        ghost_exchange(path_graph(4), np.array([0, 0, 1, 1]), **options)


@pytest.mark.skipif(not has_hypergraphs(), reason="needs the package mtkahypar")
def test_partitions_of_the_hypergraph_send_few_cells():
    graph = tetrahedral_mesh(3000)
    part = partition_neighbourhoods(graph, 8, imbalance=0.05)
    count = np.bincount(part, minlength=8)
    assert count.min() > 0 and count.max() <= np.ceil(1.05 * len(part) / 8)
    sent = [
        ghost_exchange(graph, one, bytes_per_cell=1).total_bytes for one in (part, partition_cells(graph, 8))
    ]
    assert sent[0] < 1.1 * sent[1]


@pytest.mark.skipif(has_hypergraphs(), reason="the package mtkahypar is there")
def test_without_the_package_hypergraphs_are_refused():
    with pytest.raises(InputError, match="pip install mtkahypar"):
        partition_neighbourhoods(path_graph(5), 2)
