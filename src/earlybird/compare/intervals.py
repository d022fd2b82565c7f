"""The one interval of measured values: that of the median over launches."""

from collections.abc import Sequence

import numpy as np

from earlybird.data.schema import Estimate
from earlybird.models.statistics import median_coverage, median_interval


def over_launches(values: Sequence[np.ndarray]) -> tuple[Estimate, float]:
    """Return the median over launches of the median of each launch, its interval, and the coverage of the
    interval.

    A launch is a random factor that its iterations share, so the interval is that of the medians of the
    launches: their order statistics, up to 10 launches the lowest and the highest. The coverage is the
    probability that it contains the median: 0.75 with 3 launches, 0.94 with 5, 0.97 with 6. With a single
    launch it is the interval of its iterations, which does not include the variation between launches.

    Parameters
    ----------
    values : for every launch its values, (I,) with I >= 1, of any unit.
    """
    medians = np.array([np.median(one) for one in values])
    spread = medians if len(values) > 1 else values[0]
    return Estimate(float(np.median(medians)), *median_interval(spread)), median_coverage(len(spread))
