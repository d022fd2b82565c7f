"""Writes a communication matrix in the Matrix Market format."""

import io
from pathlib import Path

import numpy as np

from earlybird.data import files


def save_matrix(
    path: Path, src: np.ndarray, dst: np.ndarray, values: np.ndarray, num_ranks: int, quantity: str
) -> None:
    """Write the matrix with `values[k]` in row `src[k]` and column `dst[k]`, atomically.

    The arrays are integers of shape (M,), and no pair of ranks occurs twice. Rows and columns count from 1 in
    the file, as the format demands: row 1 is what rank 0 sends. A value of 0 stays an entry.
    """
    from scipy.io import mmwrite
    from scipy.sparse import coo_array

    matrix = coo_array((values.astype(np.int64), (src, dst)), shape=(num_ranks, num_ranks))
    stream = io.BytesIO()
    mmwrite(stream, matrix, comment=f" row sends to column, {quantity}", field="integer", symmetry="general")
    with files.replace_when_complete(path) as temporary:
        temporary.write_bytes(stream.getvalue())
