"""Ratios of the times of alternatives that were measured interleaved, pair by pair."""

from collections.abc import Iterable
from dataclasses import dataclass

from earlybird.compare.intervals import over_launches
from earlybird.data.run import Sample, round_ratios
from earlybird.data.schema import Estimate


@dataclass(frozen=True)
class Ratio:
    """The ratio of the time of one method to that of another, with its interval; `launches` contained both.

    `coverage` is how often such an interval contains the median, see `intervals.over_launches`.
    """

    estimate: Estimate
    coverage: float
    launches: int

    @property
    def value(self) -> float:
        return self.estimate.value

    @property
    def low(self) -> float:
        return self.estimate.low

    @property
    def high(self) -> float:
        return self.estimate.high


def paired_ratio(longer: Iterable[Sample], shorter: Iterable[Sample]) -> Ratio | None:
    """Return the median over launches of the median ratio of times of one round, `longer` over `shorter`.

    Rounds in the warm-up of either method, and launches without one of the methods, are left out; None if
    nothing is left.
    """
    other = {sample.launch: sample for sample in shorter}
    ratios = [round_ratios(sample, other[sample.launch]) for sample in longer if sample.launch in other]
    ratios = [one for one in ratios if len(one)]
    if not ratios:
        return None
    return Ratio(*over_launches(ratios), len(ratios))


def chained_ratio(
    longer: Iterable[Sample], common: Iterable[Sample], shorter: Iterable[Sample]
) -> Ratio | None:
    """Return `longer` over `shorter` if no launch contained both, through a method interleaved with each of
    them.

    The interval reaches from the lower end of one ratio over the upper end of the other to the reverse: it
    contains the median at least as often as both intervals do at the same time. Returns None if a launch is
    missing.
    """
    common = list(common)
    first, second = paired_ratio(longer, common), paired_ratio(shorter, common)
    if first is None or second is None:
        return None
    return Ratio(
        Estimate(first.value / second.value, first.low / second.high, first.high / second.low),
        max(first.coverage + second.coverage - 1, 0.0),
        min(first.launches, second.launches),
    )
