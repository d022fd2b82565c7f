"""Compute what changed between two sets of launches: ratios with intervals, and which of them are
significant.
"""

import math
from collections.abc import Sequence

import numpy as np

from earlybird.data.schema import Estimate
from earlybird.data.statistics import MEAN, MEDIAN, Statistic

# Fewer launches on one side do not decide: of 3 against 3, no p-value is below 0.10.
MIN_LAUNCHES = 5
_RESAMPLES = 1000
# Resampled medians of a launch that the resamples of launches draw from.
_MEDIANS_PER_LAUNCH = 50
_CONFIDENCE = 0.95
_MAX_LAUNCHES = 1000


def value(launch_s: np.ndarray, statistic: Statistic = MEDIAN) -> float:
    """Compute the value that represents a launch: the mean of its times, or their median; for a single time,
    that time.
    """
    return float(launch_s.mean() if statistic == MEAN else np.median(launch_s))


def p_values(before_s: np.ndarray, after_s: np.ndarray) -> np.ndarray:
    """Compute (K,) two-sided p-values of the Mann-Whitney U test on medians of launches, (K, A) and (K, B)
    seconds.

    They are exact where a point has no ties, as is usual for times; with ties they use the normal
    approximation.
    """
    from scipy import stats  # late, as commands that compare nothing import this module

    tied = (np.diff(np.sort(np.hstack([before_s, after_s]), axis=1), axis=1) == 0).any(axis=1)
    found = np.ones(len(before_s))
    for rows, method in ((~tied, "exact"), (tied, "asymptotic")):
        if rows.any():
            found[rows] = stats.mannwhitneyu(before_s[rows], after_s[rows], axis=1, method=method).pvalue
    return found


def adjusted(p: np.ndarray) -> np.ndarray:
    """Adjust (K,) p-values for K points by Benjamini and Hochberg (1995): of the points with an adjusted
    value of at most q, at most the share q are false discoveries.
    """
    from scipy import stats

    return stats.false_discovery_control(p) if len(p) else p


def tested(
    pairs: Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]],
    statistics: Sequence[Statistic] | None = None,
) -> list[tuple[float, float] | None]:
    """Return the p-value of each pair of sets of launches, and the adjusted one; None if one of the sets has
    fewer than `MIN_LAUNCHES`, which does not count as a point. `statistics` gives the statistic of the
    launches of each pair, by default their medians.
    """
    statistics = statistics or [MEDIAN] * len(pairs)
    by_count: dict[tuple[int, int], list[int]] = {}
    for number, (before, after) in enumerate(pairs):
        if min(len(before), len(after)) >= MIN_LAUNCHES:
            by_count.setdefault((len(before), len(after)), []).append(number)
    p: dict[int, float] = {}
    for numbers in by_count.values():
        medians = [
            np.array([[value(one, statistics[number]) for one in pairs[number][side]] for number in numbers])
            for side in (0, 1)
        ]
        p |= dict(zip(numbers, p_values(*medians).tolist(), strict=True))
    q = dict(zip(p, adjusted(np.array(list(p.values()))).tolist(), strict=True))
    return [(p[number], q[number]) if number in p else None for number in range(len(pairs))]


def smallest_p(before: int, after: int) -> float:
    """Return the p-value of `before` against `after` launches that do not overlap."""
    return min(2 / math.comb(before + after, before), 1.0)


def launches_for(points: int, level: float) -> int:
    """Return the number of launches on each side with which a change of one among `points` can be significant
    at `level`.
    """
    return next(n for n in range(MIN_LAUNCHES, _MAX_LAUNCHES) if smallest_p(n, n) * points <= level)


def fewest_changes(before: int, after: int, points: int, level: float) -> int:
    """Return how many of `points` must have changed for any of them to be significant at `level`."""
    return max(math.ceil(smallest_p(before, after) * points / level - 1e-9), 1)


def ratio(
    before: Sequence[np.ndarray],
    after: Sequence[np.ndarray],
    random: np.random.Generator,
    statistic: Statistic = MEDIAN,
) -> Estimate:
    """Estimate the median over launches of `after` over that of `before`, with an interval of 95 %.

    The interval is that of a hierarchical bootstrap: launches are drawn with replacement, and the iterations
    of each. With one launch on a side it does not include the variation between launches.

    Parameters
    ----------
    before, after : for every launch its times, (I,) seconds with I >= 1; the median of each is above 0.
    statistic : the statistic of each launch.
    """
    numerator, denominator = (_medians(side, random, statistic) for side in (after, before))
    # A coarse clock may show 0 for single iterations, and so for the median of a resample.
    drawn = numerator[denominator > 0] / denominator[denominator > 0]
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    middle = median_of_launches(after, statistic) / median_of_launches(before, statistic)
    return Estimate(float(middle), float(min(low, middle)), float(max(high, middle)))


def median_of_launches(launches: Sequence[np.ndarray], statistic: Statistic = MEDIAN) -> float:
    """Return the seconds of the median over launches of the statistic of each."""
    return float(np.median([value(one, statistic) for one in launches]))


def _medians(launches: Sequence[np.ndarray], random: np.random.Generator, statistic: Statistic) -> np.ndarray:
    """Return (R,) medians over resampled launches of the statistic of their resampled iterations."""
    over_iterations = np.mean if statistic == MEAN else np.median
    of_launches = np.array([
        over_iterations(one[random.integers(len(one), size=(_MEDIANS_PER_LAUNCH, len(one)))], axis=1)
        for one in launches
    ])  # fmt: skip
    which = random.integers(len(launches), size=(_RESAMPLES, len(launches)))
    draw = random.integers(_MEDIANS_PER_LAUNCH, size=which.shape)
    return np.median(of_launches[which, draw], axis=1)
