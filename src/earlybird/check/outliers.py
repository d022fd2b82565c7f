"""Values that are larger than those of their like, by the median and the median absolute deviation (MAD)."""

import numpy as np

# Of a normal distribution the standard deviation is 1.4826 MAD. Five of them: 3e-7 of values are beyond.
_DEVIATIONS, _MAD_TO_DEVIATION = 5.0, 1.4826
_LEAST_LIKE = 3  # with fewer values of one kind nothing can be said


def low_median(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The lower of the two middle values if their number is even; without NaN."""
    return np.nanquantile(values, 0.5, axis=axis, method="lower")


def outliers(values: np.ndarray, min_effect: float, least: float = 0.0) -> tuple[np.ndarray, float]:
    """(K,) which values are too large, and the median.

    Too large is more than `min_effect` above the median, by more than `least`, and beyond five standard
    deviations, estimated by the MAD. NaN is never too large.
    """
    if np.count_nonzero(~np.isnan(values)) < _LEAST_LIKE:
        return np.zeros(values.shape, dtype=bool), float("nan")
    centre = float(low_median(values))
    spread = float(low_median(np.abs(values - centre)))
    return values > _limit(centre, spread, min_effect, least), centre


def link_outliers(values: np.ndarray, like: np.ndarray, min_effect: float) -> tuple[np.ndarray, np.ndarray]:
    """(N, N) which links are too slow by these `values`, and (N, N) the median of the links that are alike.

    The median of the medians of the nodes, of what they send and receive: one slow node of four makes half of
    all links slow, but only a quarter of the nodes. Links with the same number in `like` are alike. Where a
    node has fewer than two of them, those of kind 0, the fastest, are compared with all, and others with
    none: their median is NaN.
    """
    slow = np.zeros(values.shape, dtype=bool)
    expected = np.full(values.shape, np.nan)
    if len(values) < _LEAST_LIKE:
        return slow, expected
    for kind in np.unique(like):
        chosen = like == kind
        of_kind = np.where(chosen, values, np.nan)
        if _links_of_node(of_kind) < 2:
            if kind:
                continue
            of_kind = values
        centre = _median_of_nodes(of_kind)
        spread = _median_of_nodes(np.abs(of_kind - centre))
        expected[chosen] = centre
        slow |= chosen & (values > _limit(centre, spread, min_effect))
    return slow, expected


def _links_of_node(values: np.ndarray) -> int:
    return int(np.count_nonzero(~np.isnan(values), axis=1).min())


def _median_of_nodes(values: np.ndarray) -> float:
    both = np.concatenate([values, values.T], axis=1)
    both = both[~np.isnan(both).all(axis=1)]
    return float(low_median(low_median(both, axis=1)))


def _limit(centre: float, spread: float, min_effect: float, least: float = 0.0) -> float:
    return max(centre * (1 + min_effect), centre + least, centre + _DEVIATIONS * _MAD_TO_DEVIATION * spread)
