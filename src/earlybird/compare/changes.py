"""What changed between two sets of launches: ratios with intervals, and which of them are significant."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from earlybird.data.schema import Estimate

# Fewer launches on one side do not decide: of 3 against 3, no p-value is below 0.10.
MIN_LAUNCHES = 5
_RESAMPLES = 1000
# Resampled medians of a launch that the resamples of launches draw from.
_MEDIANS_PER_LAUNCH = 50
_CONFIDENCE = 0.95
_MOST_LAUNCHES = 1000


def p_values(before_s: np.ndarray, after_s: np.ndarray) -> np.ndarray:
    """(K,) two-sided p-values of the Mann-Whitney U test on medians of launches, (K, A) and (K, B) seconds.

    Exact where a point has no ties, which is the rule for times; with ties the normal approximation.
    """
    tied = (np.diff(np.sort(np.hstack([before_s, after_s]), axis=1), axis=1) == 0).any(axis=1)
    found = np.ones(len(before_s))
    for rows, method in ((~tied, "exact"), (tied, "asymptotic")):
        if rows.any():
            found[rows] = stats.mannwhitneyu(before_s[rows], after_s[rows], axis=1, method=method).pvalue
    return found


def adjusted(p: np.ndarray) -> np.ndarray:
    """(K,) p-values adjusted for K points by Benjamini and Hochberg (1995): those at most q contain at most
    the share q of false discoveries."""
    return stats.false_discovery_control(p) if len(p) else p


def tested(
    pairs: Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]],
) -> list[tuple[float, float] | None]:
    """The p-value of each pair of sets of launches, and the adjusted one; None if one of the sets has fewer
    than `MIN_LAUNCHES`, which does not count as a point."""
    by_count: dict[tuple[int, int], list[int]] = {}
    for number, (before, after) in enumerate(pairs):
        if min(len(before), len(after)) >= MIN_LAUNCHES:
            by_count.setdefault((len(before), len(after)), []).append(number)
    p: dict[int, float] = {}
    for numbers in by_count.values():
        medians = [
            np.array([[np.median(one) for one in pairs[number][side]] for number in numbers])
            for side in (0, 1)
        ]
        p |= dict(zip(numbers, p_values(*medians).tolist(), strict=True))
    q = dict(zip(p, adjusted(np.array(list(p.values()))).tolist(), strict=True))
    return [(p[number], q[number]) if number in p else None for number in range(len(pairs))]


def smallest_p(before: int, after: int) -> float:
    """The p-value of `before` against `after` launches that do not overlap."""
    return min(2 / math.comb(before + after, before), 1.0)


def launches_for(points: int, level: float) -> int:
    """Launches on each side with which a change of one among `points` can be significant at `level`."""
    return next(n for n in range(MIN_LAUNCHES, _MOST_LAUNCHES) if smallest_p(n, n) * points <= level)


def fewest_changes(before: int, after: int, points: int, level: float) -> int:
    """How many of `points` must have changed for any of them to be significant at `level`."""
    return max(math.ceil(smallest_p(before, after) * points / level - 1e-9), 1)


def ratio(before: Sequence[np.ndarray], after: Sequence[np.ndarray], random: np.random.Generator) -> Estimate:
    """The median over launches of `after` over that of `before`, with an interval of 95 %.

    Hierarchical bootstrap: launches are drawn with replacement, and the iterations of each. With one launch
    on a side it leaves out how launches differ.

    Parameters
    ----------
    before, after : for every launch its times, (I,) seconds with I >= 1; the median of each is above 0.
    """
    numerator, denominator = _medians(after, random), _medians(before, random)
    # A coarse clock may show 0 for single iterations, and so for the median of a resample.
    drawn = numerator[denominator > 0] / denominator[denominator > 0]
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    value = median_of_launches(after) / median_of_launches(before)
    return Estimate(float(value), float(min(low, value)), float(max(high, value)))


def median_of_launches(launches: Sequence[np.ndarray]) -> float:
    """Seconds: the median over launches of the median of each."""
    return float(np.median([np.median(one) for one in launches]))


def _medians(launches: Sequence[np.ndarray], random: np.random.Generator) -> np.ndarray:
    """(R,) medians over resampled launches of the medians of their resampled iterations."""
    of_launches = np.array([
        np.median(one[random.integers(len(one), size=(_MEDIANS_PER_LAUNCH, len(one)))], axis=1)
        for one in launches
    ])  # fmt: skip
    which = random.integers(len(launches), size=(_RESAMPLES, len(launches)))
    draw = random.integers(_MEDIANS_PER_LAUNCH, size=which.shape)
    return np.median(of_launches[which, draw], axis=1)
