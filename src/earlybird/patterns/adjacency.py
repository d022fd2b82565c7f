"""Adjacency graphs of cells: symmetric scipy CSR matrices without self loops."""

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array


def adjacency_from_edges(first: np.ndarray, second: np.ndarray, num_cells: int) -> csr_array:
    """Join cell `first[k]` with cell `second[k]`, for every k; order, repeats and self loops do not matter.

    Parameters
    ----------
    first, second : integer arrays of shape (E,), cells counted from 0.

    Returns
    -------
    (num_cells, num_cells) symmetric matrix of ones, its column indices sorted within each row.
    """
    apart = first != second
    rows = np.concatenate([first[apart], second[apart]])
    columns = np.concatenate([second[apart], first[apart]])
    ones = np.ones(len(rows), dtype=np.int32)
    graph = coo_array((ones, (rows, columns)), shape=(num_cells, num_cells)).tocsr()
    graph.sum_duplicates()
    graph.data[:] = 1
    return graph


def largest_component(graph: csr_array) -> csr_array:
    """Return the cells of the largest connected component, in their old order; the first of equally large
    ones.
    """
    component = csgraph.connected_components(graph, directed=False)[1]
    inside = np.flatnonzero(component == np.argmax(np.bincount(component)))
    return graph[inside][:, inside]
