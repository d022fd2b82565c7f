"""The cell graph of a reservoir grid, from the mask of its active cells (Eclipse keyword ACTNUM)."""

import re
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from earlybird.data.errors import InputError
from earlybird.patterns.adjacency import adjacency_from_edges
from earlybird.patterns.checks import require_range

# Active or not. METIS needs some 600 bytes for each active one, so a full grid of this size takes 12 GB.
MAX_REFINED_CELLS = 20_000_000

_VALUES = re.compile(r"(?:([1-9][0-9]{0,9})\*)?([01])")


def parse_actnum_graph(text: str, path: Path, dims: tuple[int, int, int], refine: int = 1) -> csr_array:
    """Six-point neighbours between the active cells of a grid of `dims` = (NX, NY, NZ) cells, x fastest.

    `text` is that of the file `path`.

    Returns
    -------
    (n, n) symmetric adjacency, n the number of active cells, numbered with x fastest. With `refine` above 1
    every cell is divided into refine x refine x refine cells.
    Raises InputError with the line of an invalid value, a count other than NX*NY*NZ, or a `refine` below 1
    or with more than MAX_REFINED_CELLS cells.
    """
    _check_refine(dims, refine)
    active = parse_actnum(text, path, dims)
    if not active.any():
        raise InputError(f"{path} has no active cell; give a mask with at least one 1")
    for axis in range(3) if refine > 1 else ():
        active = np.repeat(active, refine, axis=axis)
    # Half the memory of 64-bit numbers, also in the adjacency.
    number_type = np.int32 if active.size <= MAX_REFINED_CELLS else np.int64
    number = np.cumsum(active, dtype=number_type).reshape(active.shape) - 1
    first, second = [], []
    for axis in range(3):
        before = tuple(slice(None, -1) if k == axis else slice(None) for k in range(3))
        after = tuple(slice(1, None) if k == axis else slice(None) for k in range(3))
        joined = active[before] & active[after]
        first.append(number[before][joined])
        second.append(number[after][joined])
    return adjacency_from_edges(np.concatenate(first), np.concatenate(second), int(active.sum()))


def _check_refine(dims: tuple[int, int, int], refine: int) -> None:
    """Refuse, before anything is parsed, more cells than fit the memory of an ordinary machine."""
    require_range(refine, "the refinement", 1)
    num_cells = dims[0] * dims[1] * dims[2] * refine**3
    if refine > 1 and num_cells > MAX_REFINED_CELLS:
        raise InputError(
            f"{'x'.join(map(str, dims))} cells refined {refine} times along each axis are {num_cells}; at "
            f"most {MAX_REFINED_CELLS} are supported"
        )


def parse_actnum(text: str, path: Path, dims: tuple[int, int, int]) -> np.ndarray:
    """The mask itself, a boolean array of shape (NZ, NY, NX)."""
    num_cells = dims[0] * dims[1] * dims[2]
    values: list[str] = []
    counts: list[int] = []
    for line_number, value in _values_of_keyword(text, path):
        match = _VALUES.fullmatch(value)
        if not match:
            raise InputError(
                f"{path} line {line_number}: {value[:30]!r} is not 0, 1 or a repeat such as 5*0; "
                "end the keyword with /"
            )
        counts.append(int(match[1] or 1))
        values.append(match[2])
    if sum(counts) != num_cells:
        raise InputError(
            f"{path} has {sum(counts)} values for ACTNUM, but {'x'.join(map(str, dims))} cells are "
            f"{num_cells}; give the dimensions of that grid"
        )
    return np.repeat(np.array(values) == "1", counts).reshape(dims[::-1])


def _values_of_keyword(text: str, path: Path):
    """Yield (line number, value) from after ACTNUM up to its `/`, without comments."""
    inside = False
    for line_number, line in enumerate(text.split("\n"), start=1):
        content, slash, _ = line.partition("--")[0].partition("/")
        for item in content.split():
            if inside:
                yield line_number, item
            elif item.upper() == "ACTNUM":
                inside = True
        if inside and slash:
            return
    if not inside:
        raise InputError(f"{path} has no keyword ACTNUM; give an Eclipse grid file that holds it")
