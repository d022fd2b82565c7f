"""A tetrahedral mesh made here: an irregular, perforated, bent body, the same for the same size and seed."""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import Delaunay

from earlybird.data.errors import WorkError
from earlybird.patterns.adjacency import adjacency_from_edges, largest_component
from earlybird.patterns.checks import require_memory, require_range

MIN_CELLS, MAX_CELLS = 200, 20_000_000
# Making and dividing a mesh of a million cells takes 880.
BYTES_PER_CELL = 900

# The body is a thick tube bent along an arc of the unit circle and pierced by a vertical hole.
TUBE_RADIUS = 0.62
ARC_RAD = 1.15 * np.pi
HOLE_ANGLE_RAD = 0.5 * np.pi
HOLE_RADIUS = 0.25
BUMP_HEIGHT = 0.03
NUM_BUMPS = 6
BOX = 1.0 + TUBE_RADIUS + BUMP_HEIGHT * NUM_BUMPS

JITTER = 0.25  # of the lattice spacing, to every side
GRADING = 0.55  # relative change of the spacing between the coarse and the fine side of an axis
MIN_QUALITY = 0.03  # 6 sqrt(2) volume / longest edge^3: 1 for the regular tetrahedron, 0 for a flat one

TETRAHEDRA_PER_POINT = 6.0
SIZE_TOLERANCE = 0.04
MAX_ATTEMPTS = 100  # large meshes need two or three; among small ones a shift of the jitter decides


def tetrahedral_mesh(num_cells: int, seed: int = 1, *, available_bytes: int | None = None) -> csr_array:
    """Return the face neighbours of an unstructured tetrahedral mesh with `num_cells` cells, to within 10 %.

    A jittered lattice, graded towards one side of the body, is triangulated (Delaunay); tetrahedra outside
    the body and slivers are discarded, and the largest connected component is kept. The lattice spacing is
    corrected until the number of cells is right.

    Parameters
    ----------
    num_cells : 200 or more. 200,000 take a few seconds.
    seed : seed of the jitter and of the body's bumps; the same seed and size give the same mesh.
    available_bytes : available memory; a mesh that takes more is refused.

    Returns
    -------
    (n, n) symmetric adjacency matrix, one row per tetrahedron, at most four neighbours each.
    """
    require_range(num_cells, "the number of cells", MIN_CELLS)
    require_memory(num_cells, "cells", BYTES_PER_CELL, available_bytes, "the mesh", most=MAX_CELLS)
    require_range(seed, "the seed", 0)
    spacing = (_body_volume(seed) * TETRAHEDRA_PER_POINT / num_cells) ** (1 / 3)
    best: csr_array | None = None
    for attempt in range(MAX_ATTEMPTS):
        graph = _mesh_of_spacing(spacing, seed, attempt)
        if best is None or abs(graph.shape[0] - num_cells) < abs(best.shape[0] - num_cells):
            best = graph
        if abs(best.shape[0] - num_cells) <= SIZE_TOLERANCE * num_cells:
            return best
        spacing *= (max(graph.shape[0], num_cells / 8) / num_cells) ** (1 / 3)
    if abs(best.shape[0] - num_cells) > 0.1 * num_cells:
        raise WorkError(
            f"no mesh with about {num_cells} cells was found; the closest has {best.shape[0]}; "
            "ask for more cells or another seed"
        )
    return best


def _mesh_of_spacing(spacing: float, seed: int, attempt: int) -> csr_array:
    points = _points_inside(spacing, seed, attempt)
    if len(points) < 5:
        return csr_array((1, 1), dtype=np.int32)
    triangulation = Delaunay(points)
    corners = points[triangulation.simplices]
    kept = _inside(corners.mean(axis=1), seed) & (_quality(corners) >= MIN_QUALITY)
    if not kept.any():
        return csr_array((1, 1), dtype=np.int32)
    number = np.cumsum(kept) - 1
    neighbours = triangulation.neighbors[kept]
    cell, face = np.nonzero((neighbours >= 0) & kept[neighbours])
    graph = adjacency_from_edges(cell, number[neighbours[cell, face]], int(kept.sum()))
    return largest_component(graph)


def _points_inside(spacing: float, seed: int, attempt: int) -> np.ndarray:
    num_per_axis = max(2, int(np.ceil(2 * BOX / spacing)))
    axis = (np.arange(num_per_axis) + 0.5) * spacing - num_per_axis * spacing / 2
    axis_z = axis[np.abs(axis) <= TUBE_RADIUS + BUMP_HEIGHT * NUM_BUMPS + spacing]
    lattice = np.stack(np.meshgrid(axis, axis, axis_z, indexing="ij"), axis=-1).reshape(-1, 3)
    rng = np.random.default_rng([seed, 1, attempt])
    points = _grade(lattice + rng.uniform(-JITTER, JITTER, lattice.shape) * spacing)
    return points[_inside(points, seed)]


def _grade(points: np.ndarray) -> np.ndarray:
    """Stretch x and y so that cells are finer on the negative side; order and the box stay."""
    graded = points.copy()
    graded[:, :2] += GRADING / 2 * (points[:, :2] ** 2 / BOX - BOX)
    return graded


def _inside(points: np.ndarray, seed: int) -> np.ndarray:
    """Return which (n, 3) points lie in the bent, pierced, bumpy tube."""
    x, y, z = points.T
    angle = np.mod(np.arctan2(y, x), 2 * np.pi)
    # Past either end of the arc the nearer end counts, which rounds the ends off.
    beyond = np.where(angle > (ARC_RAD + 2 * np.pi) / 2, 0.0, ARC_RAD)
    nearest = np.where(angle <= ARC_RAD, angle, beyond)
    distance = np.sqrt((x - np.cos(nearest)) ** 2 + (y - np.sin(nearest)) ** 2 + z**2)
    hole = np.hypot(x - np.cos(HOLE_ANGLE_RAD), y - np.sin(HOLE_ANGLE_RAD)) < HOLE_RADIUS
    return (distance < TUBE_RADIUS + _bumps(points, seed)) & ~hole


def _bumps(points: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 2])
    waves = rng.normal(scale=4.0, size=(NUM_BUMPS, 3))
    phases = rng.uniform(0, 2 * np.pi, NUM_BUMPS)
    return BUMP_HEIGHT * np.sin(points @ waves.T + phases).sum(axis=1)


def _body_volume(seed: int) -> float:
    """Estimate the volume of the body by Monte Carlo; the number of cells corrects this first guess."""
    points = np.random.default_rng(0).uniform(-BOX, BOX, (20_000, 3))
    return (2 * BOX) ** 3 * float(_inside(points, seed).mean())


def _quality(corners: np.ndarray) -> np.ndarray:
    """Return the shape of (n, 4, 3) tetrahedra: 1 regular, 0 flat."""
    edges = corners[:, [1, 2, 3, 2, 3, 3]] - corners[:, [0, 0, 0, 1, 1, 2]]
    longest = np.sqrt((edges**2).sum(axis=2).max(axis=1))
    volume = np.abs(np.linalg.det(edges[:, :3])) / 6
    return 6 * np.sqrt(2) * volume / longest**3
