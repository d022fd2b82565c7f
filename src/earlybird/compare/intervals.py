"""The statistics of measured values, and their intervals: the median over launches, or the mean."""

from collections.abc import Sequence

import numpy as np

from earlybird.data.schema import Estimate
from earlybird.data.statistics import MEAN, MEDIAN, Statistic
from earlybird.models.statistics import median_coverage, median_interval

# That of the interval of a mean, as in Gillis et al. 2023.
MEAN_CONFIDENCE = 0.9


def over_launches(values: Sequence[np.ndarray], statistic: Statistic = MEDIAN) -> tuple[Estimate, float]:
    """Return the median over launches of the median of each launch, its interval, and the coverage of the
    interval.

    A launch is a random factor that its iterations share, so the interval is that of the medians of the
    launches: their order statistics, up to 10 launches the lowest and the highest. The coverage is the
    probability that it contains the median: 0.75 with 3 launches, 0.94 with 5, 0.97 with 6. With a single
    launch it is the interval of its iterations, which does not include the variation between launches.

    With the statistic MEAN it is the mean over the iterations of all launches and its 90 % interval by
    Student's t, as in Gillis et al. 2023 (Thune et al. 2023, algorithm 2, print the mean of ten iterations
    alone). That takes iterations as independent, so it leaves out how launches differ. Values are not below
    zero, and neither is the interval.

    Parameters
    ----------
    values : for every launch its values, (I,) with I >= 1, of any unit.
    """
    if statistic == MEAN:
        return _mean(np.concatenate(values))
    medians = np.array([np.median(one) for one in values])
    spread = medians if len(values) > 1 else values[0]
    return Estimate(float(np.median(medians)), *median_interval(spread)), median_coverage(len(spread))


def _mean(values: np.ndarray) -> tuple[Estimate, float]:
    """Return the mean, its interval, and the confidence; a single value is its own interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate.exact(mean), 0.0
    from scipy.special import stdtrit  # imported late: slow

    quantile = float(stdtrit(len(values) - 1, (1 + MEAN_CONFIDENCE) / 2))
    half = quantile * float(values.std(ddof=1)) / len(values) ** 0.5
    return Estimate(mean, max(mean - half, 0.0), mean + half), MEAN_CONFIDENCE
