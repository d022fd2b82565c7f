"""The mesh made here: of the size asked for, the same for the same seed, and truly tetrahedral."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from earlybird.data.errors import InputError
from earlybird.patterns.mesh import tetrahedral_mesh


@given(num_cells=st.integers(200, 3000), seed=st.integers(0, 1 << 40))
def test_mesh_has_about_the_cells_asked_for(num_cells, seed):
    assert abs(tetrahedral_mesh(num_cells, seed).shape[0] - num_cells) <= 0.1 * num_cells


def test_mesh_is_one_symmetric_piece_with_at_most_four_faces_a_cell():
    graph = tetrahedral_mesh(20_000, 3)
    degree = np.diff(graph.indptr)
    assert (graph != graph.T).nnz == 0
    assert graph.diagonal().sum() == 0
    assert set(graph.data) == {1}
    assert csgraph.connected_components(graph)[0] == 1
    assert degree.max() == 4
    # A surface is there, and it is a small part of the whole.
    assert 0.001 < np.mean(degree < 4) < 0.3


def test_same_seed_gives_the_same_mesh_and_another_seed_another():
    first, again, other = (tetrahedral_mesh(1000, seed) for seed in (5, 5, 6))
    assert first.shape == again.shape
    assert (first != again).nnz == 0
    assert first.shape != other.shape or (first != other).nnz > 0


@pytest.mark.parametrize(
    ("num_cells", "seed", "says"), [(199, 1, "cells is 199"), (10**9, 1, "cells"), (500, -1, "seed")]
)
def test_impossible_mesh_is_refused(num_cells, seed, says):
    with pytest.raises(InputError, match=says):
        tetrahedral_mesh(num_cells, seed)
