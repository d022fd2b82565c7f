"""Ratios of the times of alternatives that were measured interleaved, pair by pair."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from earlybird.data.run import Sample, round_ratios
from earlybird.models.statistics import median_coverage, median_interval


@dataclass(frozen=True)
class Ratio:
    """The time of one method over that of another, from `low` to `high`; `launches` contained both.

    `coverage` is how often such an interval contains the median: 0.95 or more from 6 launches on, 0.75 with
    3.
    """

    value: float
    low: float
    high: float
    coverage: float
    launches: int


def paired_ratio(longer: Iterable[Sample], shorter: Iterable[Sample]) -> Ratio | None:
    """Median over launches of the median ratio of times of one round, `longer` over `shorter`.

    A launch is a random factor, so the interval is that of the medians of the launches, with up to 10
    launches from the lowest to the highest. With a single launch it is that of its rounds, which is less
    reliable. Rounds in the warm-up of either method, and launches without one of the methods, are left out;
    None if nothing is left.
    """
    other = {sample.launch: sample for sample in shorter}
    ratios = [round_ratios(sample, other[sample.launch]) for sample in longer if sample.launch in other]
    ratios = [one for one in ratios if len(one)]
    if not ratios:
        return None
    medians = np.array([np.median(one) for one in ratios])
    spread = medians if len(ratios) > 1 else ratios[0]
    coverage = median_coverage(len(spread))
    return Ratio(float(np.median(medians)), *median_interval(spread), coverage, len(ratios))


def chained_ratio(
    longer: Iterable[Sample], common: Iterable[Sample], shorter: Iterable[Sample]
) -> Ratio | None:
    """`longer` over `shorter` if no launch contained both, through a method interleaved with each of them.

    The interval reaches from the lower end of one ratio over the upper end of the other to the reverse: it
    contains the median at least as often as both intervals do at the same time. None if a launch is missing.
    """
    common = list(common)
    first, second = paired_ratio(longer, common), paired_ratio(shorter, common)
    if first is None or second is None:
        return None
    return Ratio(
        first.value / second.value,
        first.low / second.high,
        first.high / second.low,
        max(first.coverage + second.coverage - 1, 0.0),
        min(first.launches, second.launches),
    )
