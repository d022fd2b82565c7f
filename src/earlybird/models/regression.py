"""Straight lines through times against sizes, in relative or absolute error, many at once."""

from dataclasses import dataclass

import numpy as np


def fit_line(
    size_bytes: np.ndarray, time_s: np.ndarray, *, relative: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least-squares intercept and slope of time = intercept + slope * size, neither below zero.

    The line is equation (1) of Thune et al. 2023 with the intercept for tau and 1/slope for BW.

    Parameters
    ----------
    size_bytes : (S,) bytes.
    time_s : (..., S) seconds above zero; NaN marks a missing point.
    relative : weigh every point by 1/time**2, so that errors count in per cent and large messages do not
        drown the latency; otherwise ordinary least squares, as the paper does.

    Returns
    -------
    intercept_s, slope_s_per_byte : (...); NaN where fewer than two different sizes are present.
    """
    x, weight, t = _points(size_bytes, time_s, relative)
    total = weight.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_x = (weight * x).sum(axis=-1) / total
        mean_t = (weight * t).sum(axis=-1) / total
        centred = x - mean_x[..., None]
        slope = (weight * centred * t).sum(axis=-1) / (weight * centred**2).sum(axis=-1)
        through_origin = (weight * x * t).sum(axis=-1) / (weight * x * x).sum(axis=-1)
    intercept = mean_t - slope * mean_x
    # Convex: if the free optimum is outside the quadrant, the best point is on the edge that it crossed.
    flat, steep = slope < 0, intercept < 0
    slope = np.where(flat, 0.0, np.where(steep, through_origin, slope))
    intercept = np.where(flat, mean_t, np.where(steep, 0.0, intercept))
    enough = _different_sizes(x, weight) >= 2
    return np.where(enough, intercept, np.nan), np.where(enough, slope, np.nan)


def fit_slope(
    size_bytes: np.ndarray, time_s: np.ndarray, intercept_s: np.ndarray, *, relative: bool = True
) -> np.ndarray:
    """Return the least-squares slope of time = intercept + slope * size for a given intercept, not below
    zero.

    Parameters
    ----------
    size_bytes : (S,) bytes.
    time_s : (..., S) seconds above zero; NaN marks a missing point.
    intercept_s : (...) seconds.
    relative : see `fit_line`.

    Returns
    -------
    slope_s_per_byte : (...); NaN where no point has a size above zero.
    """
    x, weight, t = _points(size_bytes, time_s, relative)
    rest_s = t - np.asarray(intercept_s)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (weight * x * rest_s).sum(axis=-1) / (weight * x * x).sum(axis=-1)
    return np.maximum(slope, 0.0)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The result of ordinary least squares with p coefficients of n > p values: (p,) each but the (n,)
    residuals.

    `t` is coefficient / standard error, `p` the probability of such a |t| or a larger one if the coefficient
    is 0, by Student's t with n - p degrees of freedom."""

    coefficients: np.ndarray
    standard_errors: np.ndarray
    t: np.ndarray
    p: np.ndarray
    residuals: np.ndarray


def least_squares(features: np.ndarray, values: np.ndarray) -> LeastSquares:
    """Return the coefficients of `features`, (n, p) of rank p, that minimise the squared residuals of
    `values`, (n,).
    """
    from scipy.special import stdtr  # late, and of scipy.special: scipy.stats takes a second to import

    count, num_coefficients = features.shape
    coefficients, *_ = np.linalg.lstsq(features, values, rcond=None)
    residuals = values - features @ coefficients
    freedom = count - num_coefficients
    variance = float(residuals @ residuals) / freedom
    errors = np.sqrt(np.diag(np.linalg.pinv(features.T @ features)) * variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = coefficients / errors
    return LeastSquares(coefficients, errors, ratio, 2 * stdtr(freedom, -np.abs(ratio)), residuals)


def not_negative(features: np.ndarray, values: np.ndarray, pull: float = 0.0) -> np.ndarray:
    """Return (p,) least squares of `features` (n, p) with coefficients of 0 or more; columns are scaled, as
    they may differ by ten powers of ten.

    The penalty `pull` towards 0, relative to the 1 of all points together, splits time evenly between
    coefficients that the points do not distinguish: two types of hops that always occur together in equal
    numbers cost the same, instead of one nothing and the other twice as much. With six hops of one type and
    one of the other, the single hop costs as much as the six together.
    """
    from scipy.optimize import nnls  # the import takes longer than most commands

    scale = np.sqrt((features**2).sum(axis=0))
    scale[scale == 0] = 1.0
    count = features.shape[1]
    if pull:
        features = np.concatenate([features, pull * np.diag(scale)])
        values = np.concatenate([values, np.zeros(count)])
    found, _ = nnls(features / scale, values, maxiter=30 * count)
    return found / scale


def _points(
    size_bytes: np.ndarray, time_s: np.ndarray, relative: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    time_s = np.asarray(time_s, dtype=float)
    x = np.broadcast_to(np.asarray(size_bytes, dtype=float), time_s.shape)
    present = np.isfinite(time_s)
    t = np.where(present, time_s, 1.0)
    return x, np.where(present, 1 / t**2 if relative else 1.0, 0.0), t


def _different_sizes(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    missing = -1.0
    ordered = np.sort(np.where(weight > 0, x, missing), axis=-1)
    return (np.diff(ordered, axis=-1, prepend=missing) > 0).sum(axis=-1)
