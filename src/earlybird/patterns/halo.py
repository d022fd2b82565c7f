"""The halo exchange of a 3-D Cartesian grid of ranks, each with a box of cells."""

import itertools
import math

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.patterns.checks import require_messages, require_range, require_ranks, require_total_bytes

X_FASTEST, Z_FASTEST = "x-fastest", "z-fastest"
RANK_ORDERS = (X_FASTEST, Z_FASTEST)


def halo_exchange(
    grid: tuple[int, int, int],
    cells: tuple[int, int, int],
    *,
    halo_width: int = 1,
    bytes_per_cell: int = 8,
    neighbours: int = 6,
    periodic: bool = False,
    rank_order: str = X_FASTEST,
    available_bytes: int | None = None,
) -> Pattern:
    """Return the exchange in which every rank sends each neighbour the layers of cells that face it.

    Rank x + PX*(y + PY*z) is at (x, y, z), or rank z + PZ*(y + PY*x), see `rank_order`. A message in
    direction (dx, dy, dz) holds, along each axis, `halo_width` cells where the direction is not 0 and the
    whole box where it is.

    Parameters
    ----------
    grid : (PX, PY, PZ) ranks.
    cells : (NX, NY, NZ) cells of each rank.
    halo_width : 1 up to the thinnest side of the box across which something is sent.
    neighbours : 6 (faces) or 26 (faces, edges and corners).
    periodic : true if opposite sides of the grid are neighbours. Messages from a rank to itself are omitted;
        two neighbours that meet on both sides exchange one message per side.
    rank_order : X_FASTEST, or Z_FASTEST as MPI_Cart_create numbers the ranks of dims = (PX, PY, PZ).
    available_bytes : available memory; messages that take more are refused.

    Returns
    -------
    Messages ordered by rank, then by direction.
    """
    require_range(min(grid), "the smallest side of the process grid", 1)
    require_range(min(cells), "the thinnest side of a rank's box", 1)
    num_ranks = math.prod(grid)
    require_ranks(num_ranks, "the number of ranks in the process grid")
    # Across one rank of a periodic axis only edges and corners go to other ranks.
    round_one = periodic and neighbours == 26
    sent_across = [
        side for side, num_ranks_along in zip(cells, grid, strict=True) if round_one or num_ranks_along > 1
    ]
    require_range(halo_width, "the halo width", 1, min(sent_across, default=None))
    require_range(bytes_per_cell, "the number of bytes per cell", 0)
    if neighbours not in (6, 26):
        raise InputError(
            f"the number of neighbours is {neighbours}; give 6 (faces) or 26 (with edges and corners)"
        )
    if rank_order not in RANK_ORDERS:
        raise InputError(f"the rank order is {rank_order!r}; give {' or '.join(RANK_ORDERS)}")
    max_axes = 1 if neighbours == 6 else 3
    directions = [
        step for step in itertools.product((-1, 0, 1), repeat=3) if 1 <= np.count_nonzero(step) <= max_axes
    ]
    require_messages(
        sum(_num_messages(step, grid, periodic) for step in directions),
        available_bytes,
        "give a smaller process grid" + (", or 6 neighbours" if neighbours == 26 else ""),
    )
    rank = np.arange(num_ranks)
    strides = _strides(grid, rank_order)
    place = rank[:, None] // strides % np.array(grid)
    messages = [_messages_towards(step, place, grid, strides, periodic) for step in directions]
    sizes = [_size_bytes(step, cells, halo_width, bytes_per_cell) for step in directions]
    require_total_bytes(sum(size * len(src) for size, (src, _) in zip(sizes, messages, strict=True)))
    src = np.concatenate([src for src, _ in messages])
    dst = np.concatenate([dst for _, dst in messages])
    size_bytes = np.repeat(np.array(sizes, dtype=np.int64), [len(src) for src, _ in messages])
    by_rank = np.argsort(src, kind="stable")
    return Pattern(src[by_rank], dst[by_rank], size_bytes[by_rank])


def _strides(grid: tuple[int, int, int], rank_order: str) -> np.ndarray:
    """Return by how much the rank grows with a step along x, y and z."""
    px, py, pz = grid
    return np.array([1, px, px * py] if rank_order == X_FASTEST else [py * pz, pz, 1])


def _num_messages(step, grid, periodic: bool) -> int:
    """Return the number of messages in one direction."""
    if periodic:
        is_to_itself = all(moved % side == 0 for moved, side in zip(step, grid, strict=True))
        return 0 if is_to_itself else math.prod(grid)
    return math.prod(side - abs(moved) for moved, side in zip(step, grid, strict=True))


def _messages_towards(
    step, place: np.ndarray, grid, strides, periodic: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sender and receiver of every message in one direction."""
    there = place + np.array(step)
    if periodic:
        there %= np.array(grid)
    exists = ((there >= 0) & (there < np.array(grid))).all(axis=1)
    src, dst = (place @ strides)[exists], there[exists] @ strides
    apart = src != dst
    return src[apart], dst[apart]


def _size_bytes(step, cells, halo_width: int, bytes_per_cell: int) -> int:
    sides = (halo_width if moved else side for moved, side in zip(step, cells, strict=True))
    return math.prod(sides) * bytes_per_cell
