"""The fastest method at each size, when one is clearly faster, and the crossovers between methods."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from earlybird.data.results import Result
from earlybird.data.schema import Estimate

# The least relative difference that counts: launches differ by about this much.
MIN_EFFECT = 0.05
Speeds = Mapping[str, Estimate]  # speed of every method, in any unit: higher is faster


@dataclass(frozen=True)
class Crossover:
    """A change of the best method with the size; `size_bytes` is interpolated between two measured sizes."""

    before: str
    after: str
    size_bytes: float
    between: tuple[int, int]


def is_clearly_faster(speed: Estimate, other: Estimate) -> bool:
    """Return whether `speed` is above `other` by more than MIN_EFFECT and their intervals do not overlap."""
    return speed.value > other.value * (1 + MIN_EFFECT) and speed.low > other.high


def speeds(point: Mapping[str, Result]) -> dict[str, Estimate]:
    """Return the speed of every method of one point: its speed-up if all methods have one, else 1/s.

    Speed-ups are ratios of times of the same round, and differ less between launches than times do.
    """
    found = {
        method: Estimate.exact(1.0) if method == result.reference else result.speed_up
        for method, result in point.items()
    }
    known = {method: speed for method, speed in found.items() if speed is not None}
    if len(known) == len(found) and any(method == result.reference for method, result in point.items()):
        return known
    return {method: result.time_s.inverse() for method, result in point.items() if result.time_s.low > 0}


def best_methods(of_sizes: Sequence[Speeds], first: str) -> list[str]:
    """Return the best method at each size, "" if none was measured. `first` is the best until another method
    is clearly faster, and likewise for every method after it.
    """
    best: list[str] = []
    for at_size in of_sizes:
        previous = best[-1] if best else first
        better = {
            method: speed.value
            for method, speed in at_size.items()
            if previous not in at_size or is_clearly_faster(speed, at_size[previous])
        }
        best.append(
            max(better, key=lambda method: better[method])
            if better
            else previous
            if previous in at_size
            else ""
        )
    return best


def crossovers(sizes_bytes: Sequence[int], of_sizes: Sequence[Speeds], first: str) -> list[Crossover]:
    """Return every change of `best_methods`, by ascending size."""
    return [
        _crossover(sizes_bytes[: k + 1], of_sizes, before, after)
        for k, (before, after) in enumerate(pairwise(best_methods(of_sizes, first)), start=1)
        if before != after
    ]


def _crossover(sizes: Sequence[int], of_sizes: Sequence[Speeds], before: str, after: str) -> Crossover:
    """Return the crossover between the last two sizes, or earlier if `after` led there by less than
    MIN_EFFECT.
    """
    k = len(sizes) - 1
    ratios = [_ratio(at_size, after, before) for at_size in of_sizes[: k + 1]]
    slower = [j for j, ratio in enumerate(ratios) if ratio is not None and ratio <= 1]
    j = slower[-1] if slower else k - 1
    low, high = sizes[j], sizes[min(j + 1, k)]
    ends = ratios[j], ratios[min(j + 1, k)]
    if not slower or ends[0] is None or ends[1] is None or low < 1:
        return Crossover(before, after, float(high), (low, high))
    share = -math.log(ends[0]) / (math.log(ends[1]) - math.log(ends[0]))
    return Crossover(before, after, low * (high / low) ** share, (low, high))


def _ratio(at_size: Speeds, above: str, below: str) -> float | None:
    return at_size[above].value / at_size[below].value if {above, below} <= at_size.keys() else None
