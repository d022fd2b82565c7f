"""The exchange of ghost cells between the parts of a mesh."""

import numpy as np
from scipy.sparse import csr_array, eye_array

from earlybird.data.pattern import Pattern
from earlybird.patterns.checks import require_messages, require_range, require_total_bytes


def ghost_exchange(
    graph: csr_array, part: np.ndarray, *, halo_width: int = 1, bytes_per_cell: int = 8
) -> Pattern:
    """Return the exchange in which part p sends to part q every cell of p within `halo_width` layers of q's
    cells, all in one message.

    Parameters
    ----------
    graph : (n, n) symmetric adjacency.
    part : (n,) part of each cell.
    halo_width : graph distance, 1 or more.
    bytes_per_cell : 0 or more.

    Returns
    -------
    Messages by ascending (src, dst), one for each ordered pair of parts with at least one cell to send.
    """
    require_range(halo_width, "the halo width", 1)
    require_range(bytes_per_cell, "the number of bytes per cell", 0)
    cell, receiver = _cells_within(graph, part, halo_width)
    foreign = part[cell] != receiver
    num_parts = int(part.max(initial=-1)) + 1
    pair, num_cells = np.unique(part[cell[foreign]] * num_parts + receiver[foreign], return_counts=True)
    require_messages(len(pair))
    require_total_bytes(int(num_cells.sum()) * bytes_per_cell)
    return Pattern(pair // num_parts, pair % num_parts, num_cells * bytes_per_cell)


def _cells_within(graph: csr_array, part: np.ndarray, halo_width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all (cell, part) such that the cell lies within `halo_width` layers of that part, or in it."""
    num_cells = graph.shape[0]
    num_parts = int(part.max(initial=-1)) + 1
    ones = np.ones(num_cells, dtype=np.int32)
    near = csr_array((ones, (np.arange(num_cells), part)), shape=(num_cells, num_parts))
    one_layer = graph + eye_array(num_cells, dtype=np.int32, format="csr")
    for _ in range(halo_width):
        num_known = near.nnz
        near = one_layer @ near
        near.data[:] = 1
        if near.nnz == num_known:  # every reachable cell is in: wider halos add nothing
            break
    pairs = near.tocoo()
    return pairs.row.astype(np.int64), pairs.col.astype(np.int64)
