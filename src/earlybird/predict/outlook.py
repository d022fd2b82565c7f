"""What is known of one method at one point: measured there, or predicted with an honest interval."""

import math
from dataclasses import dataclass

from earlybird.data.results import Estimate, Result


@dataclass(frozen=True)
class Outlook:
    """Time and speed-up of one method at one point, with 95 % intervals.

    Attributes
    ----------
    time_s, speed_up : the measured values if this very point was measured, else those of the model, corrected
        by the measured points around it. The speed-up is over the reference: (1, 1, 1) for the reference
        itself.
    result : what was measured at this very point.
    """

    time_s: Estimate
    speed_up: Estimate
    result: Result | None = None


def ratio_of(a: Estimate, b: Estimate) -> Estimate:
    """a/b of two independent estimates: the widest interval that the two allow."""
    return Estimate(a.value / b.value, a.low / b.high, a.high / b.low)


def within(value: float, bound: float) -> Estimate:
    """`value` with the interval of a bound of the absolute error of its logarithm."""
    return Estimate(value, value * math.exp(-bound), value * math.exp(bound))
