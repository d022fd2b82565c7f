"""Adjacency graphs from files: METIS `.graph` and Matrix Market."""

import re
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from earlybird.data.errors import InputError
from earlybird.data.matrix_market import is_matrix_market, parse_matrix_market
from earlybird.data.units import require_plain_digits
from earlybird.patterns.adjacency import adjacency_from_edges

MAX_CELLS = 2**31 - 2  # METIS counts in 32-bit integers
# A cell takes memory and time even if the text has no neighbour of it.
_MAX_CELLS_PER_ENTRY = 10
_FEW_CELLS = 1_000_000
_FIRST_CHARACTER = re.compile(r"^(?!%)[^\S\n]*(\S)", re.MULTILINE)


def parse_graph(text: str, path: Path) -> csr_array:
    """Return the adjacency in the `text` of `path`: Matrix Market if its first line says so, METIS otherwise.

    Weights and values are ignored. A Matrix Market file may be of any field and
    symmetry; it must be square, an entry in either direction makes two cells neighbours. Raises InputError.
    """
    if is_matrix_market(text):
        return _parse_matrix_market(text, path)
    return _parse_metis(text, path)


def begins_as_graph(text: str) -> bool:
    """Return whether the first line that is not a METIS comment begins with a number, or all lines are
    comments, such as that of Matrix Market.
    """
    first = _FIRST_CHARACTER.search(text)
    return first is None or first[1] in "0123456789"


def _parse_matrix_market(text: str, path: Path) -> csr_array:
    matrix = parse_matrix_market(text, f"the graph {path}")
    num_rows, num_columns = matrix.num_rows, matrix.num_columns
    if num_rows != num_columns:
        raise InputError(
            f"the graph {path} has {num_rows} rows and {num_columns} columns; an adjacency matrix is square"
        )
    _require_cells(num_rows, len(matrix.row), path)
    return adjacency_from_edges(matrix.row, matrix.column, num_rows)


def _parse_metis(text: str, path: Path) -> csr_array:
    # An empty line is a cell without neighbours, so that only comment lines may be dropped.
    numbered = enumerate(text.removesuffix("\n").split("\n"), start=1)
    lines = [(k, line) for k, line in numbered if not line.startswith("%")]
    if not lines:
        raise InputError(f"the graph {path} has only comments; give a METIS or a Matrix Market file")
    header = _integers(lines[0][1], lines[0][0], path)
    if not 2 <= len(header) <= 4 or min(header) < 0:
        raise InputError(
            f"{path} line {lines[0][0]} is {lines[0][1][:60]!r}; a METIS graph begins with its numbers of "
            "vertices and edges, a Matrix Market file with %%MatrixMarket"
        )
    num_cells, num_edges = header[:2]
    num_leading, stride = _metis_columns(header, lines[0][0], path)
    body = lines[1 : num_cells + 1]
    surplus = next((k for k, line in lines[num_cells + 1 :] if line.strip()), None)
    if len(body) < num_cells or surplus is not None:
        found = f"line {surplus} follows the last of them" if surplus else f"it has {len(body)} lines of them"
        raise InputError(f"{path} declares {num_cells} vertices, but {found}; give one line per vertex")
    _require_cells(num_cells, 2 * num_edges, path)
    counts = np.zeros(num_cells, dtype=np.int64)
    neighbours: list[int] = []
    for cell, (line_number, line) in enumerate(body):
        if not line:
            continue
        numbers = _integers(line, line_number, path)[num_leading:]
        own = numbers[::stride]
        if len(numbers) % stride or any(not 1 <= one <= num_cells or one == cell + 1 for one in own):
            raise InputError(
                f"{path} line {line_number}: the neighbours of vertex {cell + 1} must be other vertices "
                f"between 1 and {num_cells}{', each with its edge weight' if stride == 2 else ''}"
            )
        counts[cell] = len(own)
        neighbours.extend(own)
    if len(neighbours) != 2 * num_edges:
        raise InputError(
            f"{path} declares {num_edges} edges, so {2 * num_edges} neighbours, but lists {len(neighbours)}; "
            "each edge is listed at both of its vertices"
        )
    first = np.repeat(np.arange(num_cells), counts)
    second = np.array(neighbours, dtype=np.int64) - 1
    _require_edges_at_both_vertices(first, second, num_cells, path)
    return adjacency_from_edges(first, second, num_cells)


def _require_edges_at_both_vertices(
    first: np.ndarray, second: np.ndarray, num_cells: int, path: Path
) -> None:
    """Raise InputError unless vertex `first[k]` lists `second[k]` once and is listed by it, for every k."""
    listed = np.sort(first * num_cells + second)
    repeated = np.flatnonzero(listed[1:] == listed[:-1])
    if repeated.size:
        vertex, neighbour = divmod(int(listed[repeated[0]]), num_cells)
        raise InputError(
            f"{path}: vertex {vertex + 1} lists its neighbour {neighbour + 1} more than once; list it once"
        )
    reverse = np.sort(second * num_cells + first)
    if not np.array_equal(listed, reverse):
        vertex, neighbour = divmod(int(np.setdiff1d(listed, reverse)[0]), num_cells)
        raise InputError(
            f"{path}: vertex {vertex + 1} lists the neighbour {neighbour + 1}, but vertex {neighbour + 1} "
            f"does not list {vertex + 1}; list each edge at both of its vertices"
        )


def _metis_columns(header: list[int], line_number: int, path: Path) -> tuple[int, int]:
    """Return how many numbers come before a vertex's neighbours, and how many make up one neighbour."""
    fmt = f"{header[2]:03d}" if len(header) > 2 else "000"
    if len(fmt) != 3 or set(fmt) - set("01"):
        raise InputError(
            f"{path} line {line_number}: the format is {fmt}; it is three digits 0 or 1 "
            "(vertex sizes, vertex weights, edge weights)"
        )
    has_sizes, has_weights, has_edge_weights = (digit == "1" for digit in fmt)
    num_weights = (header[3] if len(header) > 3 else 1) if has_weights else 0
    return has_sizes + num_weights, 1 + has_edge_weights


def _integers(line: str, line_number: int, path: Path) -> list[int]:
    try:
        return [int(number) for number in require_plain_digits(line).split()]
    except ValueError:
        raise InputError(
            f"{path} line {line_number} is {line[:60]!r}; it must hold whole numbers only"
        ) from None


def _require_cells(num_cells: int, num_entries: int, path: Path) -> None:
    """Raise InputError for more cells than are supported, or if most cells have no entry."""
    if not 1 <= num_cells <= MAX_CELLS:
        raise InputError(f"the graph {path} has {num_cells} cells; give one with 1 to {MAX_CELLS}")
    if num_cells > _MAX_CELLS_PER_ENTRY * num_entries + _FEW_CELLS:
        raise InputError(
            f"the graph {path} has {num_cells} cells, but {num_entries} entries: most cells have no "
            "neighbour; give the adjacency of a mesh"
        )
