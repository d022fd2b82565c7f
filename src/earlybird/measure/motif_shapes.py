"""Process grids and blocks of cells of motifs, and the size of the messages that they exchange."""

from collections.abc import Sequence
from itertools import product
from math import prod

Triple = tuple[int, int, int]

_VALUE_BYTES = 8  # a double


def triple_text(triple: Sequence[int]) -> str:
    """Write (64, 32, 16) as `64x32x16`."""
    return "x".join(map(str, triple))


def near_cubic(num_ranks: int, dimensions: int) -> Triple:
    """Return the process grid of `num_ranks` with the shortest sides, the longest along x; with one rank
    along z if there are two `dimensions`."""
    sides = [k for k in range(1, num_ranks + 1) if num_ranks % k == 0]
    grids = [
        (x, y, num_ranks // (x * y))
        for x, y in product(sides, repeat=2)
        if num_ranks % (x * y) == 0 and x >= y >= num_ranks // (x * y)
        if dimensions == 3 or num_ranks == x * y
    ]
    return min(grids, key=lambda grid: (sum(grid), grid))


def block_of(cells: Triple, grid: Triple) -> Triple:
    """Return the largest block of a rank along each dimension."""
    x, y, z = (-(-number // ranks) for number, ranks in zip(cells, grid, strict=True))
    return x, y, z


def padded(number: int, partitions: int) -> int:
    """Return the size of `number` planes or angles after padding to partitions of equal size."""
    return partitions * -(-number // partitions)


def largest_halo_bytes(
    cells: Triple, grid: Triple, variables: int, stencil: int, periodic: bool, partitions: int
) -> int:
    """Return the size of the largest message of a halo exchange, including the padding of its partitions; 0
    without neighbours."""
    block = block_of(cells, grid)
    extents = (block[0], block[1], padded(block[2], partitions))
    largest = 0
    for direction in product((-1, 0, 1), repeat=3):
        away = sum(map(abs, direction))
        if away == 0 or (stencil == 7 and away > 1):
            continue
        if all(grid[d] > 1 or periodic for d in range(3) if direction[d]):
            area = prod(extents[d] for d in range(3) if not direction[d])
            largest = max(largest, variables * area * _VALUE_BYTES)
    return largest


def largest_face_bytes(cells: Triple, grid: Triple, angles: int, planes: int, partitions: int) -> int:
    """Return the size of the largest message of a sweep: a face of a block of planes, including the padding
    of its partitions."""
    x, y, _ = block_of(cells, grid)
    lengths = [length for length, ranks in ((y, grid[0]), (x, grid[1])) if ranks > 1]
    return padded(angles, partitions) * planes * max(lengths, default=0) * _VALUE_BYTES


def cells_bytes(block: Triple, variables: int) -> int:
    """Return the size of a block of cells with its ghost cells."""
    return prod(n + 2 for n in block) * variables * _VALUE_BYTES
