"""The fastest method at each size, and the crossovers between methods, for pipelines and collectives."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from earlybird.data.run import Sample, round_ratios

# A method replaces the best one of the previous size if it is faster by more than this fraction, and its
# slowest launch beats the fastest launch of the other. Launches differ by about this much.
TIE = 0.05
Spread = tuple[float, float, float]  # median over launches, lowest and highest launch
Speeds = Mapping[str, Spread]  # speed of every method, in any unit: higher is faster


@dataclass(frozen=True)
class Crossover:
    """A change of the best method with the size. `size_bytes` is interpolated between two measured sizes."""

    before: str
    after: str
    size_bytes: float
    between: tuple[int, int]


def paired_gain(bulk: Sequence[Sample], samples: Sequence[Sample]) -> Spread | None:
    """Speed-up over `bulk`: the median of the time ratios within a round, for each launch that has both.

    With a single launch, the range is that of the quartiles of its rounds. None without a shared launch.
    """
    of_launch = {sample.launch: sample for sample in bulk}
    pairs = [(of_launch[sample.launch], sample) for sample in samples if sample.launch in of_launch]
    ratios = [ratio for pair in pairs if len(ratio := round_ratios(*pair))]
    if len(ratios) == 1:
        low, middle, high = np.percentile(ratios[0], (25, 50, 75))
        return float(middle), float(low), float(high)
    return spread([float(np.median(ratio)) for ratio in ratios]) if ratios else None


def spread(values: Sequence[float]) -> Spread:
    return float(np.median(values)), min(values), max(values)


def inverse(times_s: Mapping[str, Spread]) -> dict[str, Spread]:
    """Speeds, 1/s, from times."""
    return {
        method: (1 / middle, 1 / high, 1 / low) for method, (middle, low, high) in times_s.items() if low > 0
    }


def best_methods(speeds: Sequence[Speeds], first: str) -> list[str]:
    """The best method at each size, "" if none was measured. `first` is the best until another method is
    clearly faster, and likewise for every method after it."""
    best: list[str] = []
    for at_size in speeds:
        previous = best[-1] if best else first
        better = {
            method: speed[0] for method, speed in at_size.items() if _beats(speed, at_size.get(previous))
        }
        best.append(max(better, key=better.get) if better else previous if previous in at_size else "")
    return best


def crossovers(sizes_bytes: Sequence[int], speeds: Sequence[Speeds], first: str) -> list[Crossover]:
    """Every change of `best_methods`, by ascending size."""
    return [
        _crossover(sizes_bytes[: k + 1], speeds, before, after)
        for k, (before, after) in enumerate(pairwise(best_methods(speeds, first)), start=1)
        if before != after
    ]


def _crossover(sizes: Sequence[int], speeds: Sequence[Speeds], before: str, after: str) -> Crossover:
    """The crossover between the last two sizes, or earlier if `after` led there by less than TIE."""
    k = len(sizes) - 1
    ratios = [_ratio(at_size, after, before) for at_size in speeds[: k + 1]]
    slower = [j for j, ratio in enumerate(ratios) if ratio is not None and ratio <= 1]
    j = slower[-1] if slower else k - 1
    low, high = sizes[j], sizes[min(j + 1, k)]
    ends = ratios[j], ratios[min(j + 1, k)]
    if not slower or ends[1] is None or low < 1:
        return Crossover(before, after, float(high), (low, high))
    share = -math.log(ends[0]) / (math.log(ends[1]) - math.log(ends[0]))
    return Crossover(before, after, low * (high / low) ** share, (low, high))


def _beats(speed: Spread, other: Spread | None) -> bool:
    return other is None or (speed[0] > other[0] * (1 + TIE) and speed[1] > other[2])


def _ratio(speeds: Speeds, above: str, below: str) -> float | None:
    return speeds[above][0] / speeds[below][0] if {above, below} <= speeds.keys() else None
