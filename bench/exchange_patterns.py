"""Exchanges of many kinds for any number of ranks, none of which any model was fitted to."""

import numpy as np

from earlybird.data.pattern import Pattern
from earlybird.patterns.ghost import ghost_exchange
from earlybird.patterns.halo import halo_exchange
from earlybird.patterns.mesh import tetrahedral_mesh
from earlybird.patterns.near_exchange import near_exchange
from earlybird.patterns.partition import partition_cells

KIB = 1024


def exchanges(num_ranks: int, scale: float = 1.0) -> dict[str, Pattern]:
    """Name -> messages of 1 KiB to 4 MiB, those of most kinds times `scale`."""
    made = _random(num_ranks, scale) | _hubs(num_ranks, scale) | _dense(num_ranks, scale)
    return made | _physical(num_ranks, scale)


def _random(num_ranks: int, scale: float) -> dict[str, Pattern]:
    """Few messages of 40 to 900 KB; of 1 KiB to 4 MiB; and many of 1 to 64 KiB."""
    made = {}
    for seed in range(1, 11):
        drawn = np.random.default_rng(seed)
        count = num_ranks + 7 * seed % 41 * num_ranks // 8
        sizes = drawn.uniform(40e3, 900e3, count) * scale
        made[f"random {seed}"] = _between_random_ranks(drawn, num_ranks, sizes)
    for seed in range(1, 9):
        drawn = np.random.default_rng(100 + seed)
        sizes = _spread(drawn, num_ranks * (1 + seed % 5), KIB, 4096 * KIB) * scale
        made[f"wide {seed}"] = _between_random_ranks(drawn, num_ranks, sizes)
    for seed in range(1, 5):
        drawn = np.random.default_rng(200 + seed)
        sizes = _spread(drawn, 20 * num_ranks, KIB, 64 * KIB)
        made[f"small {seed}"] = _between_random_ranks(drawn, num_ranks, sizes)
    return made


def _hubs(num_ranks: int, scale: float) -> dict[str, Pattern]:
    """One rank sends to all, receives from all, or both."""
    made = {}
    for hub, size in enumerate((64 * KIB, 1024 * KIB)):
        sizes = np.random.default_rng(300 + hub).uniform(0.5, 1.5, num_ranks - 1) * size * scale
        others, same = np.delete(np.arange(num_ranks), hub), np.full(num_ranks - 1, hub)
        made[f"scatter {hub}"] = _pattern(same, others, sizes)
        made[f"gather {hub}"] = _pattern(others, same, sizes)
        both = np.append(same, others), np.append(others, same)
        made[f"hub {hub}"] = _pattern(*both, np.append(sizes, sizes[::-1]))
    return made


def _dense(num_ranks: int, scale: float) -> dict[str, Pattern]:
    """All ranks send to some, and all to all with equal and unequal sizes."""
    made = {}
    ranks = np.arange(num_ranks)
    for seed in range(3):
        drawn = np.random.default_rng(400 + seed)
        src, dst = _pairs(ranks, drawn.choice(num_ranks, max(2, num_ranks // 4), replace=False))
        made[f"some {seed}"] = _pattern(src, dst, _spread(drawn, len(src), 32 * KIB, 1024 * KIB) * scale)
    src, dst = _pairs(ranks, ranks)
    made["all equal"] = _pattern(src, dst, np.full(len(src), 128 * KIB * scale))
    sizes = _spread(np.random.default_rng(501), len(src), 8 * KIB, 1024 * KIB)
    made["all unequal"] = _pattern(src, dst, sizes * scale)
    return made


def _physical(num_ranks: int, scale: float) -> dict[str, Pattern]:
    """Meshes divided by METIS, halos of Cartesian grids, and ranks that are near each other."""
    made = {}
    for cells, cell_bytes in ((2500, 400), (7500, 400), (18_750, 200)):
        graph = tetrahedral_mesh(cells * num_ranks)
        part = partition_cells(graph, num_ranks)
        made[f"mesh {cells}"] = ghost_exchange(graph, part, bytes_per_cell=max(1, round(cell_bytes * scale)))
    grid = _grid(num_ranks)
    shapes = (((64, 64, 64), 6), ((128, 32, 64), 6), ((48, 48, 48), 26), ((150, 150, 10), 26))
    for k, (cells, neighbours) in enumerate(shapes):
        made[f"halo {k}"] = halo_exchange(
            grid, cells, bytes_per_cell=max(1, round(40 * scale)), neighbours=neighbours, periodic=bool(k % 2)
        )
    for per_rank, mean in ((4, 100), (6, 300)):
        made[f"near {per_rank}"] = near_exchange(
            num_ranks, min(per_rank, num_ranks - 1), mean_size_bytes=mean * KIB * scale
        )
    return made


def _grid(num_ranks: int) -> tuple[int, int, int]:
    """A 3-D grid of `num_ranks`, a power of two, as cubic as possible."""
    sides = [1, 1, 1]
    for k in range(num_ranks.bit_length() - 1):
        sides[k % 3] *= 2
    return sides[0], sides[1], sides[2]


def _spread(drawn: np.random.Generator, count: int, low: float, high: float) -> np.ndarray:
    return np.exp(drawn.uniform(np.log(low), np.log(high), count))


def _pairs(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    src, dst = (axis.ravel() for axis in np.meshgrid(src, dst, indexing="ij"))
    return src[src != dst], dst[src != dst]


def _between_random_ranks(drawn: np.random.Generator, num_ranks: int, sizes: np.ndarray) -> Pattern:
    src = drawn.integers(0, num_ranks, len(sizes))
    return _pattern(src, (src + drawn.integers(1, num_ranks, len(sizes))) % num_ranks, sizes)


def _pattern(src: np.ndarray, dst: np.ndarray, sizes: np.ndarray) -> Pattern:
    return Pattern.from_arrays(src, dst, sizes.astype(np.int64))
