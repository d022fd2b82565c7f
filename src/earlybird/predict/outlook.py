"""Combine the measurements and predictions of one method at one point, with their intervals."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.models.residuals import Residuals, prediction_bound

# The mean range of n values of a normal distribution over its standard deviation, n = 2 to 10.
_RANGE = (1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078)
# The standard deviation of the median of n values over that of a value is about 1.25/sqrt(n).
_OF_MEDIAN = 1.25
_QUANTILE = 1.96
# How launches differ if no point has two of them.
_UNKNOWN_SPREAD = 0.05


@dataclass(frozen=True)
class Outlook:
    """The time and speed-up of one method at one point, with 95 % intervals.

    Attributes
    ----------
    time_s, speed_up : the measured values if this very point was measured, else those of the model, corrected
        by the measured points around it. The speed-up is over the reference: (1, 1, 1) for the reference
        itself. Its interval is that in which a repeated measurement lies.
    result, measured_speed_up : the result and speed-up measured at this very point, with the interval over
        its launches.
    """

    time_s: Estimate
    speed_up: Estimate
    result: Result | None = None
    measured_speed_up: Estimate | None = None


class CorrectedModel(ABC):
    """The model of one method, corrected by the measured `results` around a point.

    Points are tuples, the keys of `results`. `error_bound` is the 95 % bound of the absolute log error of the
    model alone.
    """

    def __init__(self, results: Mapping[tuple, Result], error_bound: float):
        self.results, self._error_bound = results, error_bound
        self._corrected_s: dict[tuple, float] = {}
        self._bound: tuple[float | None] | None = None  # once it is known

    @abstractmethod
    def coordinates(self, point: tuple) -> np.ndarray:
        """Return the coordinates of a point, in octaves of its sizes and counts."""

    @abstractmethod
    def model_s(self, point: tuple) -> float:
        """Return the seconds by the model alone."""

    def measured_s(self, point: tuple) -> float:
        """Return the seconds measured at one of the points of `results`."""
        return self.results[point].time_s.value

    def reference_point(self, point: tuple) -> tuple:
        """Return the point of the reference with which a point is compared."""
        return point

    def corrected_s(self, point: tuple) -> float:
        """Return the seconds by the model, corrected by the residuals of the measured points."""
        if point not in self._corrected_s:
            correction = self._residuals.correction(self.coordinates(point)) if self.results else 0.0
            self._corrected_s[point] = self.model_s(point) * math.exp(correction)
        return self._corrected_s[point]

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the speed-ups of launches, see `spread_of_launches`."""
        return spread_of_launches(self.results.values())

    @cached_property
    def time_bound(self) -> float:
        """The 95 % bound of the absolute log error of a time."""
        errors = list(self._left_out.values())
        return prediction_bound(errors) if len(errors) > 1 else self._error_bound

    def speed_up_bound(self, reference: "CorrectedModel") -> float | None:
        """Return the 95 % bound of the absolute log error of a speed-up over `reference`, which must be the
        same in all calls; None below two common points.
        """
        if self._bound is None:
            common = [point for point in self.results if self.reference_point(point) in reference.results]
            errors = [
                self._left_out[point] - reference._left_out[self.reference_point(point)] for point in common
            ]
            places = {self.reference_point(point) for point in common}
            self._bound = (prediction_bound(errors) if len(places) > 1 else None,)
        return self._bound[0]

    @cached_property
    def _residuals(self) -> Residuals:
        where = np.array([self.coordinates(point) for point in self.results])
        ratios = [self.measured_s(point) / self.model_s(point) for point in self.results]
        return Residuals(where.reshape(len(ratios), -1), np.log(ratios))

    @cached_property
    def _left_out(self) -> dict[tuple, float]:
        if not self.results:
            return {}
        return dict(zip(self.results, self._residuals.left_out_errors(), strict=True))


def is_resolved(result: Result) -> bool:
    """Return whether the clock resolved all times of `result`: a time of 0 has no ratio."""
    return result.time_s.low > 0 and (result.speed_up is None or result.speed_up.low > 0)


def ratio_of(a: Estimate, b: Estimate) -> Estimate:
    """Return a/b of two independent estimates: the widest interval that the two allow."""
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low)


def within(value: float, bound: float) -> Estimate:
    """Return `value` with the interval of a bound of the absolute error of its logarithm."""
    return Estimate(value, value * math.exp(-bound), value * math.exp(bound))


def spread_of_launches(results: Iterable[Result]) -> float:
    """Return the standard deviation of the logarithm of a launch's speed-up, the mean over `results`."""
    spreads = [
        _spread(result.speed_up, result.launches)
        for result in results
        if result.speed_up is not None and result.launches > 1
    ]
    return fmean(spreads) if spreads else _UNKNOWN_SPREAD


def of_repetition(measured: Estimate, launches: int, spread: float) -> Estimate:
    """Return the 95 % interval in which the same measurement lies when it is repeated with as many launches.

    The interval over few launches is too narrow for that: two launches may agree by chance. `spread` is that
    of all points of the method; if the launches of this point differ more, theirs is used."""
    if launches > 1:
        spread = max(spread, _spread(measured, launches))
    wide = within(measured.value, _QUANTILE * _OF_MEDIAN * spread * math.sqrt(2 / launches))
    return Estimate(measured.value, min(measured.low, wide.low), max(measured.high, wide.high))


def p_value(measured: Estimate, launches: int, spread: float) -> float | None:
    """Return the two-sided p-value of a measured speed-up, by Student's t on the logarithms of its launches.

    Returns None for a single launch. `spread` is that of all points of the method, see `of_repetition`; the
    degrees of freedom are those of this point alone, because launches have outliers.
    """
    from scipy.special import stdtr  # late, as small commands import this module

    if launches < 2:
        return None
    spread = max(spread, _spread(measured, launches))
    if spread == 0:
        return 0.0 if measured.value != 1 else 1.0
    statistic = math.log(measured.value) * math.sqrt(launches) / (_OF_MEDIAN * spread)
    return float(2 * stdtr(launches - 1, -abs(statistic)))


def _spread(estimate: Estimate, launches: int) -> float:
    """Return the standard deviation of the logarithms of launches with this interval, see
    `compare.intervals`.
    """
    width = math.log(estimate.high / estimate.low)
    if launches <= len(_RANGE) + 1:
        return width / _RANGE[launches - 2]
    return width * math.sqrt(launches) / (2 * _QUANTILE * _OF_MEDIAN)
