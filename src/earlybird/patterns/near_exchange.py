"""An exchange between ranks that are near each other in space, as of a partitioned domain, at any density."""

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.data.units import MAX_BYTES
from earlybird.patterns.checks import (
    require_messages,
    require_other_rank,
    require_range,
    require_ranks,
    require_total_bytes,
)

# Sizes are log-normal: one standard deviation is a factor of e.
SIZE_SIGMA = 1.0
# Of the largest to the mean number of messages; each of three graded axes adds less than a factor of 2.
MAX_UNEVENNESS = 7.9


def near_exchange(
    num_ranks: int,
    messages_per_rank: float,
    *,
    mean_size_bytes: float = 4096,
    unevenness: float = 2.0,
    seed: int = 1,
    available_bytes: int | None = None,
) -> Pattern:
    """Return an exchange in which every rank sends a message to each rank within a distance, so each receives
    as many as it sends.

    Ranks are random points of a cube, denser towards one corner, so that some have up to about `unevenness`
    times as many neighbours as the mean. They are numbered along a space-filling (Morton) curve, so that
    blocks of ranks, such as those of a node, are near each other. Sizes are log-normal.

    Parameters
    ----------
    messages_per_rank : mean over ranks; the distance is chosen for it.
    unevenness : 1 for the same density everywhere.
    available_bytes : available memory; messages that take more are refused.

    Raises
    ------
    InputError : an argument is out of its range, or more messages are asked for than there are pairs.
    """
    from scipy.spatial import cKDTree

    require_ranks(num_ranks)
    require_other_rank(num_ranks)
    require_range(seed, "the seed", 0)
    if not 0 < messages_per_rank <= num_ranks - 1:
        raise InputError(
            f"the mean number of messages per rank is {messages_per_rank:g}; give more than 0 and at most "
            f"{num_ranks - 1}, one to each other rank"
        )
    require_messages(
        int(num_ranks * messages_per_rank), available_bytes, "give fewer ranks or fewer messages per rank"
    )
    if not 1 <= unevenness <= MAX_UNEVENNESS:
        raise InputError(f"the unevenness is {unevenness:g}; give 1 to {MAX_UNEVENNESS:g}")
    if not 1 <= mean_size_bytes <= MAX_BYTES:
        raise InputError(f"the mean size is {mean_size_bytes:g} bytes; give 1 or more, at most {MAX_BYTES}")
    require_total_bytes(int(num_ranks * messages_per_rank * mean_size_bytes))
    rng = np.random.default_rng(seed)
    points = _graded(rng.random((num_ranks, 3)), unevenness)
    points = points[_morton_order(points)]
    tree = cKDTree(points)
    wanted = round(num_ranks * messages_per_rank / 2)
    pairs = _nearest_pairs(tree, points, wanted)
    src, dst = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.lexsort((dst, src))
    size = rng.lognormal(np.log(mean_size_bytes) - SIZE_SIGMA**2 / 2, SIZE_SIGMA, len(src))
    return Pattern(src[order], dst[order], np.maximum(np.rint(size), 1).astype(np.int64))


def _graded(uniform: np.ndarray, unevenness: float) -> np.ndarray:
    """Return points of a density that grows exponentially along each axis, so that the largest is about
    `unevenness` times the mean that a point sees: on each axis 2 a/(a + 1) times, for a the ratio of its
    ends.
    """
    per_axis = unevenness ** (1 / 3)
    ratio = per_axis / (2 - per_axis)
    if ratio <= 1 + 1e-9:
        return uniform
    return np.log1p(uniform * (ratio - 1)) / np.log(ratio)


def _morton_order(points: np.ndarray, bits: int = 10) -> np.ndarray:
    """Return the points along a Z-order curve."""
    cells = np.minimum((points * (1 << bits)).astype(np.int64), (1 << bits) - 1)
    code = np.zeros(len(points), dtype=np.int64)
    for bit in range(bits):
        for axis in range(points.shape[1]):
            code |= (cells[:, axis] >> bit & 1) << (points.shape[1] * bit + axis)
    return np.argsort(code, kind="stable")


def _nearest_pairs(tree, points: np.ndarray, wanted: int) -> np.ndarray:
    """Return (wanted, 2) the pairs of points with the smallest distances."""
    radius = (wanted / max(len(points), 2) ** 2) ** (1 / 3)
    while int(tree.count_neighbors(tree, radius)) < 2 * wanted + len(points):
        radius *= 1.1
    pairs = tree.query_pairs(radius, output_type="ndarray").astype(np.int64)
    apart = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1)
    return pairs[np.argpartition(apart, wanted - 1)[:wanted]]
