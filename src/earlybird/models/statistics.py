"""Statistics of repeated timings: interval of the median, warm-up, stop rule; the harness has the same."""

import math
from statistics import NormalDist

import numpy as np

MIN_STEADY = 10
MIN_FOR_WARMUP = 8


def median_interval(times: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Return the distribution-free confidence interval of the median from order statistics.

    With n values and the normal quantile z, the bounds are the order statistics (counted from 1)
    j = floor((n - z*sqrt(n))/2) and k = ceil(1 + (n + z*sqrt(n))/2), kept within 1..n: the normal
    approximation to the binomial interval of a quantile.

    Parameters
    ----------
    times : (n,) with n >= 1, any unit.

    Returns
    -------
    (low, high) in the unit of `times`; up to n = 10 the smallest and the largest value, which below n = 6
    contain the median in less than 95 % of all cases: see `median_coverage`.
    """
    ordered = np.sort(np.asarray(times, dtype=float))
    low, high = _bounds(len(ordered), confidence)
    return float(ordered[low - 1]), float(ordered[high - 1])


def median_coverage(n: int, confidence: float = 0.95) -> float:
    """Return the probability that `median_interval` of n >= 1 independent values contains the median.

    The number of values below the median is binomial with p = 1/2, and must lie in j..k-1: 1 - 2^(1-n) from
    the smallest to the largest value, 0.75 for n = 3, 0.94 for 5, 0.97 for 6.
    """
    low, high = _bounds(n, confidence)
    # The probability that between `low` and `high` - 1 of n fair coins show heads.
    return sum(math.comb(n, k) for k in range(low, high)) / 2**n


def _bounds(n: int, confidence: float) -> tuple[int, int]:
    spread = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(n)
    return max(math.floor((n - spread) / 2), 1), min(math.ceil(1 + (n + spread) / 2), n)


def relative_half_width(times: np.ndarray) -> float:
    """Return half the width of `median_interval`, relative to the median; inf below three values or around
    zero.
    """
    if len(times) < 3:
        return math.inf
    low, high = median_interval(times)
    return _relative((high - low) / 2, float(np.median(times)))


def warmup_count(times: np.ndarray) -> int:
    """Count the leading entries that are transient: the leading run above the Tukey fence of the second half.

    The fence is Q3 + 1.5*(Q3 - Q1) of times[n//2:], quartiles by linear interpolation. The count is at most
    n//2, and 0 for n < 8, where quartiles of half the series are meaningless.
    """
    times = np.asarray(times, dtype=float)
    half = len(times) // 2
    if len(times) < MIN_FOR_WARMUP:
        return 0
    first, third = np.percentile(times[half:], [25, 75])
    settled = times[:half] <= third + 1.5 * (third - first)
    return int(np.argmax(settled)) if settled.any() else half


def student_t(degrees: float) -> float:
    """Return the 97.5 % quantile of Student's t."""
    from scipy.stats import t  # takes long to import

    return float(t.ppf(0.975, degrees))


def student_t_half_width(times: np.ndarray, t_quantile: float) -> float:
    """Return the half-width of the Student-t interval of the mean, relative to the mean; inf below two
    values.

    `t_quantile` is the quantile for len(times) - 1 degrees of freedom (0.95 for a 90 % interval).
    """
    if len(times) < 2:
        return math.inf
    half_width = t_quantile * float(np.std(times, ddof=1)) / math.sqrt(len(times))
    return _relative(half_width, float(np.mean(times)))


def stop_median(times: np.ndarray, target: float) -> bool:
    """Return whether the median is known well enough: 10 steady entries or more, `relative_half_width` <=
    target.
    """
    steady = times[warmup_count(times) :]
    return len(steady) >= MIN_STEADY and relative_half_width(steady) <= target


def stop_paper(times: np.ndarray, t_quantile: float, target: float = 0.05) -> bool:
    """Return whether the stop rule of Gillis et al. 2023, section 4, holds: half the Student-t interval is at
    most 5 % of the mean.

    `times` are the iterations after the protocol's one warm-up; a series that fails is measured again.
    """
    return student_t_half_width(times, t_quantile) <= target


def median_ratio_interval(
    a: np.ndarray, b: np.ndarray, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the median of the pairwise ratios a[k]/b[k] of interleaved measurements, with its interval.

    Parameters
    ----------
    a, b : (n,) of one length; entries with one index were measured in the same round; b above zero.

    Returns
    -------
    (median, low, high), dimensionless.
    """
    ratios = np.asarray(a, dtype=float) / np.asarray(b, dtype=float)
    return (float(np.median(ratios)), *median_interval(ratios, confidence))


def _relative(half_width: float, centre: float) -> float:
    if half_width == 0:
        return 0.0
    return half_width / centre if centre > 0 else math.inf
