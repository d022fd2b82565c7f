"""What is known of one method at one point: measured there, or predicted with an honest interval."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from earlybird.data.results import Estimate, Result

# The mean range of n values of a normal distribution over its standard deviation, n = 2 to 10.
_RANGE = (1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078)
# The standard deviation of the median of n values over that of a value is about 1.25/sqrt(n).
_OF_MEDIAN = 1.25
_QUANTILE = 1.96
# How launches differ if no point has two of them.
_UNKNOWN_SPREAD = 0.05


@dataclass(frozen=True)
class Outlook:
    """Time and speed-up of one method at one point, with 95 % intervals.

    Attributes
    ----------
    time_s, speed_up : the measured values if this very point was measured, else those of the model, corrected
        by the measured points around it. The speed-up is over the reference: (1, 1, 1) for the reference
        itself. Its interval is that in which a repeated measurement lies.
    result, measured_speed_up : what was measured at this very point, with the interval over its launches.
    """

    time_s: Estimate
    speed_up: Estimate
    result: Result | None = None
    measured_speed_up: Estimate | None = None


def ratio_of(a: Estimate, b: Estimate) -> Estimate:
    """a/b of two independent estimates: the widest interval that the two allow."""
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low)


def within(value: float, bound: float) -> Estimate:
    """`value` with the interval of a bound of the absolute error of its logarithm."""
    return Estimate(value, value * math.exp(-bound), value * math.exp(bound))


def spread_of_launches(results: Iterable[Result]) -> float:
    """The standard deviation of the logarithm of a launch's speed-up, the mean over `results`."""
    spreads = [
        _spread(result.speed_up, result.launches)
        for result in results
        if result.speed_up is not None and result.launches > 1
    ]
    return fmean(spreads) if spreads else _UNKNOWN_SPREAD


def of_repetition(measured: Estimate, launches: int, spread: float) -> Estimate:
    """The 95 % interval in which the same measurement lies when it is repeated with as many launches.

    The interval over few launches is too narrow for that: two launches may agree by chance. `spread` is that
    of all points of the method; if the launches of this point differ more, theirs is used."""
    if launches > 1:
        spread = max(spread, _spread(measured, launches))
    wide = within(measured.value, _QUANTILE * _OF_MEDIAN * spread * math.sqrt(2 / launches))
    return Estimate(measured.value, min(measured.low, wide.low), max(measured.high, wide.high))


def _spread(estimate: Estimate, launches: int) -> float:
    """The standard deviation of the logarithms of launches with this interval, see `compare.intervals`."""
    width = math.log(estimate.high / estimate.low)
    if launches <= len(_RANGE) + 1:
        return width / _RANGE[launches - 2]
    return width * math.sqrt(launches) / (2 * _QUANTILE * _OF_MEDIAN)
