"""Adjacency graphs from METIS, Matrix Market and Eclipse files: weights set aside, damage named by line."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from earlybird.data import memory
from earlybird.data.errors import InputError
from earlybird.patterns import graph_files
from earlybird.patterns.actnum import cell_graph, check_refine, parse_actnum
from earlybird.patterns.adjacency import adjacency_from_edges, largest_component
from earlybird.patterns.deck import read_deck
from earlybird.patterns.graph_files import parse_graph
from tests.reference import needs_reference, reference

NORNE = "norne_actnum.prop"

# A triangle 1-2-3 with 4 hanging on 3, and 5 alone.
DENSE = [[0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]


MESH = Path("mesh")


def test_edges_in_any_direction_and_number_make_one_symmetric_graph():
    graph = adjacency_from_edges(np.array([0, 1, 0, 2, 2]), np.array([1, 0, 1, 2, 1]), 3)
    assert graph.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_largest_component_keeps_order():
    graph = adjacency_from_edges(np.array([0, 4, 3]), np.array([1, 3, 2]), 5)
    assert largest_component(graph).toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "5 4\n2 3\n1 3\n1 2 4\n3\n\n",
        "% a mesh\n5 4 000\n2 3\n% inside\n1 3\n1 2 4\n3\n\n% after\n\n",
        "5 4 1\n2 7 3 7\n1 7 3 7\n1 7 2 7 4 7\n3 7\n\n",
        "5 4 010\n9 2 3\n9 1 3\n9 1 2 4\n9 3\n9\n",
        "5 4 011 2\n9 8 2 7 3 7\n9 8 1 7 3 7\n9 8 1 7 2 7 4 7\n9 8 3 7\n9 8\n",
        "5 4 100\n6 2 3\n6 1 3\n6 1 2 4\n6 3\n6\n",
        "5 4 111 1\n6 9 2 7 3 7\n6 9 1 7 3 7\n6 9 1 7 2 7 4 7\n6 9 3 7\n6 9\n",
        "%%MatrixMarket matrix coordinate pattern symmetric\n5 5 5\n2 1\n3 1\n3 2\n4 3\n2 2\n",
        "%%MatrixMarket matrix coordinate real general\n5 5 4\n1 2 0.5\n1 3 1\n2 3 -1\n4 3 2\n",
    ],
)
def test_every_form_of_a_graph_reads_the_same(text):
    assert parse_graph(text, MESH).toarray().tolist() == DENSE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1 is ''; a METIS graph begins"),
        ("% only\n", "has only comments"),
        ("% only\n\n", "line 2 is ''"),
        ("three 2\n", "line 1 .*whole numbers"),
        ("% only a comment", "has only comments"),
        ("2\n", "line 1 is '2'"),
        ("0 0\n", "has 0 cells"),
        ("3 2 200\n2\n1 3\n2\n", "the format is 200"),
        ("3 2\n2\n1 x\n2\n", "line 3 is '1 x'"),
        ("3 2\n2\n1 4\n2\n", "line 3: the neighbours of vertex 2 .*between 1 and 3"),
        ("3 2\n2\n% c\n2 3\n2\n", "line 4: the neighbours of vertex 2 must be other"),
        ("3 2\n2\n1 3\n", "declares 3 vertices, but it has 2 lines"),
        ("3 1\n2\n1\n", "declares 3 vertices, but it has 2 lines"),
        ("3 2\n2\n1 3", "declares 3 vertices, but it has 2 lines"),
        ("3 2\n2\n1 3\n2\n1\n", "line 5 follows the last"),
        ("3 3\n2\n1 3\n2\n", "declares 3 edges, so 6 neighbours, but lists 4"),
        ("3 2\n2\n3\n2 1\n", "vertex 1 lists the neighbour 2, but vertex 2 does not list 1; list each edge"),
        ("3 4\n2 2 2\n1 1 1 3\n2\n", "vertex 1 lists its neighbour 2 more than once; list it once"),
        ("3 3 001\n2 7 2 7\n1 7 1 7 3 7\n2 7\n", "vertex 1 lists its neighbour 2 more than once"),
        ("3 2 001\n2 1\n1 1 3\n2 1\n", "line 3: .*edge weight"),
        ("%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 2\n", "2 rows and 3 columns"),
        ("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n", "not a Matrix Market file"),
    ],
)
def test_damaged_graph_is_refused_by_line(text, says):
    with pytest.raises(InputError, match=says) as refused:
        parse_graph(text, MESH)
    assert "\n" not in str(refused.value)


ACTNUM = (
    "SPECGRID\n 3 2 1 1 F /\n-- ACTNUM in a comment\nACTNUM -- the mask\n 1 2*1\n 0 1/ 0 0\nPORO\n 6*0.2 /\n"
)


def graph_of(text, dims=None, refine=1):
    return cell_graph(read_deck(text, MESH), MESH, dims, refine)


def test_actnum_repeats_comments_and_other_keywords_are_read():
    mask = parse_actnum(ACTNUM.replace("0 1/", "0 1 1/"), MESH, (3, 2, 1))
    assert mask.tolist() == [[[True, True, True], [False, True, True]]]


def test_active_cells_next_to_each_other_are_neighbours():
    # x fastest: 1 1 0 / 1 0 0 below, 1 0 0 / 0 0 1 above.
    graph = graph_of("ACTNUM\n1 1 0 1 0 0  1 4*0 1 /\n", (3, 2, 2))
    pairs = {(i, j) for i, j in zip(*graph.nonzero(), strict=True) if i < j}
    assert graph.shape == (5, 5)
    assert pairs == {(0, 1), (0, 2), (0, 3)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("PORO\n1 /\n", "no keyword ACTNUM"),
        (ACTNUM, "5 values for ACTNUM, but 3x2x1 cells are 6"),
        ("ACTNUM\n1 1\n2 1 1 1 /\n", "line 3: '2'"),
        ("ACTNUM\n1 1 1\nPORO\n", "line 3: 'PORO'.*end the keyword"),
        ("ACTNUM\n0*1 6*1 /\n", "line 2: '0\\*1'"),
        ("ACTNUM\n6*0 /\n", "no active cell"),
        ("ACTNUM\n9999999999*1 /\n", "9999999999 values"),
    ],
)
def test_damaged_actnum_is_refused_by_line(text, says):
    with pytest.raises(InputError, match=says):
        graph_of(text, (3, 2, 1))


def edges_of_box(x, y, z):
    return (x - 1) * y * z + x * (y - 1) * z + x * y * (z - 1)


def test_a_refined_grid_is_the_grid_of_smaller_cells():
    fine = graph_of("ACTNUM\n8*1 /\n", (2, 2, 2), 2)
    same = graph_of("ACTNUM\n64*1 /\n", (4, 4, 4))
    assert fine.shape == (64, 64) and fine.nnz == 2 * edges_of_box(4, 4, 4)
    assert (fine != same).nnz == 0


def test_cells_refined_from_an_inactive_cell_are_inactive():
    # Of the 27 cells across each face of the missing corner, 9 lose their neighbour.
    graph = graph_of("ACTNUM\n0 7*1 /\n", (2, 2, 2), 3)
    assert graph.shape[0] == 7 * 27
    assert graph.nnz == 2 * (edges_of_box(6, 6, 6) - edges_of_box(3, 3, 3) - 3 * 9)


@pytest.mark.parametrize(("refine", "says"), [(0, "refinement is 0"), (2**21, "at most 20000000")])
def test_a_refinement_out_of_range_is_refused_unread(refine, says):
    with pytest.raises(InputError, match=says):
        check_refine((2, 2, 2), refine)


@needs_reference(NORNE)
def test_norne_has_its_44927_active_cells():
    graph = graph_of(reference(NORNE).read_text(), (46, 112, 22))
    assert graph.shape == (44927, 44927)
    assert (graph != graph.T).nnz == 0
    assert graph.diagonal().sum() == 0
    assert np.diff(graph.indptr).max() <= 6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%%MatrixMarket matrix coordinate pattern general\n200000000 200000000 1\n2 1\n", "most cells have"),
        ("%%MatrixMarket matrix array integer general\n0 0\n", "0 cells; give one with 1 to"),
        ("%%MatrixMarket matrix coordinate pattern general\n9999999999 9999999999 0\n", "9999999999 cells"),
        ("200000000 1\n2\n1\n", "declares 200000000 vertices, but it has 2 lines"),
        (f"2 {10**30}\n2\n1\n", "declares 1000000000000000000000000000000 edges"),
        ("2 1\n99999999999999999999999\n1\n", "neighbours of vertex 1 must be other vertices"),
    ],
)
def test_what_a_header_declares_takes_no_memory(text, says):
    tracemalloc.start()
    with pytest.raises(InputError, match=says):
        parse_graph(text, Path("mesh"))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DIMENS\n 1000 1000 1000 /\nEQUALS\n ACTNUM 0 1 2 1 2 1 2 /\n/\n", "would have 1000000000 cells"),
        ("DIMENS\n 200 200 200 /\nACTNUM\n 8000000*1 /\n", "would have 8000000 active cells"),
        ("DIMENS\n 2 2 2 /\nACTNUM\n 9999999999*1 /\n", "9999999999 values for ACTNUM, but 2x2x2"),
    ],
)
def test_a_grid_beyond_the_memory_is_refused_before_it_takes_it(monkeypatch, text, says):
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1 << 30)
    tracemalloc.start()
    with pytest.raises(InputError, match=says):
        cell_graph(read_deck(text, Path("deck")), Path("deck"), None)
    assert tracemalloc.get_traced_memory()[1] < 1 << 25
    tracemalloc.stop()


@pytest.mark.parametrize(
    "text", ["200 0\n" + "\n" * 200, "%%MatrixMarket matrix coordinate pattern general\n200 200 0\n"]
)
def test_a_graph_of_cells_without_neighbours_is_refused(monkeypatch, text):
    monkeypatch.setattr(graph_files, "_FEW_CELLS", 100)
    with pytest.raises(InputError, match="has 200 cells, but 0 entries: most cells have no neighbour"):
        parse_graph(text, Path("mesh"))
