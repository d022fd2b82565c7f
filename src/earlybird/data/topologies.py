"""The topologies of neighbourhood collectives: their names, and the number of neighbours of a rank."""

import math

from earlybird.data.errors import InputError
from earlybird.data.units import whole_number

RING, GRID_5, GRID_9 = "ring", "grid-5", "grid-9"
RANDOM_PREFIX = "random-"  # followed by the number of neighbours
DEFAULT_TOPOLOGY = GRID_5


def parse_topology(text: str, option: str) -> str:
    """Return the topology name as it is in points; raise InputError if there is no such topology."""
    degree = text.removeprefix(RANDOM_PREFIX)
    neighbours = whole_number(degree) if degree != text else None
    if text in (RING, GRID_5, GRID_9) or neighbours:
        return RANDOM_PREFIX + str(neighbours) if neighbours else text
    raise InputError(
        f"{option} has {text!r}; give {RING}, {GRID_5}, {GRID_9}, or {RANDOM_PREFIX}K with K neighbours, "
        f"such as {RANDOM_PREFIX}4"
    )


def num_neighbours(topology: str, ranks: int) -> int:
    """Return the number of distinct destinations of each rank, see
    native/kernels/collectives/parts/topology.hpp.

    A periodic grid with one or two rows has the same neighbour on both sides, and counts it once. Raise
    InputError if `topology` needs more ranks.
    """
    if topology == RING:
        return min(2, ranks - 1)
    if topology.startswith(RANDOM_PREFIX):
        degree = int(topology.removeprefix(RANDOM_PREFIX))
        if degree >= ranks:
            raise InputError(
                f"the topology {topology} needs more than {degree} ranks and {ranks} were asked for; give "
                f"--ranks {degree + 1} or more, or --topology {RANDOM_PREFIX}{max(ranks - 1, 1)}"
            )
        return degree
    rows, columns = rows_and_columns(ranks)
    if topology == GRID_9:
        return min(3, rows) * min(3, columns) - 1
    return min(2, rows - 1) + min(2, columns - 1)


def rows_and_columns(ranks: int) -> tuple[int, int]:
    """Return the rows and columns of the grid for a number of ranks: as square as possible, with as many rows
    as columns or fewer."""
    rows = max(k for k in range(1, math.isqrt(ranks) + 1) if ranks % k == 0)
    return rows, ranks // rows
