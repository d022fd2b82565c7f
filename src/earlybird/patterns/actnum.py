"""The cell graph of a reservoir grid, from the active cells of an Eclipse deck (keyword ACTNUM)."""

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from earlybird.data import memory
from earlybird.data.errors import InputError
from earlybird.data.units import number_in
from earlybird.patterns.adjacency import adjacency_from_edges
from earlybird.patterns.checks import require_memory, require_range
from earlybird.patterns.deck import Deck, Keyword, format_dims, read_deck

Dims = tuple[int, int, int]
# The first and the last cell along x, y and z, counted from 0.
Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]

# Active or not. METIS needs some 600 bytes for each active one, so a full grid of this size takes 12 GB.
MAX_REFINED_CELLS = 20_000_000
_BYTES_PER_ACTIVE_CELL = 600
# Cells that are not refined cost a byte each until the active ones are known, and then have a number.
MAX_CELLS = 2**31 - 2
_BYTES_PER_CELL = 12


def cell_graph(deck: Deck, path: Path, dims: Dims | None, refine: int = 1) -> csr_array:
    """Return the six-point neighbours between the active cells of a grid.

    `deck` is the content of the file `path`; `dims` = (NX, NY, NZ) may be omitted if the file states it.

    Returns
    -------
    (n, n) symmetric adjacency, n the number of active cells, numbered with x fastest. With `refine` above 1
    every cell is divided into refine x refine x refine cells. Raises InputError with the line that does not
    describe a mask of this grid, or for a `refine` below 1 or with more than MAX_REFINED_CELLS cells.
    """
    dims = grid_of(deck, path, dims)
    check_refine(dims, refine)
    _require_memory(dims[0] * dims[1] * dims[2] * refine**3, "cells", _BYTES_PER_CELL)
    active = active_cells(deck, path, dims)
    if not active.any():
        raise InputError(f"{path} has no active cell; give a mask with at least one 1")
    _require_memory(int(active.sum()) * refine**3, "active cells", _BYTES_PER_ACTIVE_CELL)
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


def _require_memory(count: int, what: str, bytes_each: int) -> None:
    require_memory(
        count, what, bytes_each, memory.available_memory_bytes(), "the mesh", most=MAX_CELLS,
        instead="give a smaller grid, or use a machine with more memory",
    )  # fmt: skip


def check_refine(dims: Dims, refine: int) -> None:
    """Refuse more cells than fit the memory of an ordinary machine."""
    require_range(refine, "the refinement", 1)
    num_cells = dims[0] * dims[1] * dims[2] * refine**3
    most = MAX_REFINED_CELLS if refine > 1 else MAX_CELLS
    if num_cells > most:
        refined = f" refined {refine} times along each axis" if refine > 1 else ""
        raise InputError(f"{format_dims(dims)} cells{refined} are {num_cells}; at most {most} are supported")


def grid_of(deck: Deck, path: Path, dims: Dims | None) -> Dims:
    """Return the cells along each axis; raise InputError if `dims` and the deck differ, or without both."""
    if dims is None and deck.dims is None:
        raise InputError(
            f"{path} has neither SPECGRID nor DIMENS; add the grid of its ACTNUM, such as --dims 46x112x22"
        )
    if dims is not None and deck.dims is not None and dims != deck.dims:
        raise InputError(
            f"the grid is given as {format_dims(dims)}, but {deck.dims_from} says {format_dims(deck.dims)}; "
            "omit --dims, or give that grid"
        )
    return dims or deck.dims


def parse_actnum(text: str, path: Path, dims: Dims | None) -> np.ndarray:
    """Return the mask in `text`, that of the file `path`, see `active_cells`."""
    deck = read_deck(text, path)
    return active_cells(deck, path, grid_of(deck, path, dims))


def active_cells(deck: Deck, path: Path, dims: Dims) -> np.ndarray:
    """Return the mask of the active cells, a boolean array of shape (NZ, NY, NX).

    All cells are active at first. ACTNUM sets those of the current box, EQUALS, ADD and MULTIPLY those of
    their own, in the order of the deck.
    """
    if all(change.name in ("BOX", "ENDBOX") for change in deck.changes):
        raise InputError(f"{path} has no keyword ACTNUM; give an Eclipse grid file that holds it")
    whole: Box = ((0, dims[0] - 1), (0, dims[1] - 1), (0, dims[2] - 1))
    box = whole
    active = np.ones(dims[::-1], dtype=bool)
    for change in deck.changes:
        if change.name == "ENDBOX":
            box = whole
        elif change.name == "BOX":
            box = _box(change.records[0], box, whole, change.where[0])
        elif change.name == "ACTNUM":
            _set_values(active, box, change, whole)
        else:
            _operate(active, change, box, whole)
    return active


def _set_values(active: np.ndarray, box: Box, actnum: Keyword, whole: Box) -> None:
    target = active[_slices(box)]
    num_values = int(actnum.counts.sum())
    if num_values != target.size:
        cells = f"{format_dims(target.shape[::-1])} cells are {target.size}"
        remedy = "give the dimensions of that grid" if box == whole else "give one for each cell of the BOX"
        raise InputError(f"{actnum.where[0]}: {num_values} values for ACTNUM, but {cells}; {remedy}")
    target[...] = np.repeat(actnum.values == 1, actnum.counts).reshape(target.shape)


def _operate(active: np.ndarray, change: Keyword, box: Box, whole: Box) -> None:
    """Apply the records of EQUALS, ADD or MULTIPLY; an omitted box is that of the previous record, whatever
    array that record changes.
    """
    for record, where in zip(change.records, change.where, strict=True):
        box = _box(record[2:], box, whole, where)
        if (record[0] or "").upper() != "ACTNUM":
            continue
        number = _number(record, change.name, where)
        target = active[_slices(box)]
        values = {bool(value) for value in np.unique(target)}
        results = {
            value: {"EQUALS": number, "ADD": value + number, "MULTIPLY": value * number}[change.name]
            for value in values
        }
        other = sorted(result for result in results.values() if result not in (0, 1))
        if other:
            raise InputError(
                f"{where}: {change.name} makes an ACTNUM of {other[0]:g}; only 0 and 1 are supported"
            )
        target[...] = np.where(target, results.get(True, 0) == 1, results.get(False, 0) == 1)


def _number(record: list[str | None], name: str, where: str) -> float:
    try:
        return number_in(record[1] or "")
    except (IndexError, ValueError) as error:
        raise InputError(f"{where}: {name} has no number for ACTNUM; give one, such as 0") from error


def _box(items: list[str | None], current: Box, whole: Box, where: str) -> Box:
    """Return the box of six items; omitted items must be the same for all simulators.

    Eclipse takes the limits of the previous box, OPM Flow those of the whole grid unless all are omitted.
    """
    if all(item is None for item in items):
        return current
    if len(items) > 6:
        raise InputError(f"{where}: a box has 6 numbers, but {len(items)} are given; end the record with /")
    limits = []
    for k, item in enumerate((*items, *[None] * (6 - len(items)))):
        axis, last = "XYZ"[k // 2], whole[k // 2][1] + 1
        if item is None:
            before = current[k // 2][k % 2]
            if before != whole[k // 2][k % 2]:
                raise InputError(
                    f"{where}: number {k + 1} of the box is omitted, which simulators take for different "
                    "cells after another box; give all 6"
                )
            limits.append(before)
        elif item.isascii() and item.isdigit() and len(item) < 10 and 1 <= int(item) <= last:
            limits.append(int(item) - 1)
        else:
            raise InputError(f"{where}: {item[:30]!r} of the box is not 1 to {last}, the cells along {axis}")
    x, y, z = (limits[0], limits[1]), (limits[2], limits[3]), (limits[4], limits[5])
    if any(first > last for first, last in (x, y, z)):
        raise InputError(f"{where}: the box ends before it begins; give the smaller number first")
    return x, y, z


def _slices(box: Box) -> tuple[slice, slice, slice]:
    x, y, z = (slice(first, last + 1) for first, last in box)
    return z, y, x
