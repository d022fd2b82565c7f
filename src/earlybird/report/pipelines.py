"""Pipelines of chapter 2: the time of each way to send a buffer in partitions, and what it gains."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.run import Sample, median_of_launches, round_ratios
from earlybird.report import words
from earlybird.report.curves import number_or_none
from earlybird.report.material import Material

BULK = "single"
Spread = tuple[float, float, float]  # median over launches, lowest and highest launch


@dataclass(frozen=True)
class PipelinePoint:
    """One size of a whole buffer: the time of every way, and the gain over one message of every other way."""

    size_bytes: int
    time_s: Mapping[str, Spread]
    gain: Mapping[str, Spread]
    gain_theory: float | None
    num_launches: int


@dataclass(frozen=True)
class Pipeline:
    """What one run measured of one MPI with one level, number of partitions and delay rate, by size."""

    mpi: str
    level: str
    partitions: int
    gamma_s_per_byte: float
    label: str
    points: tuple[PipelinePoint, ...]

    @property
    def setting(self) -> tuple[str, int, float]:
        """What a figure is drawn for."""
        return self.level, self.partitions, self.gamma_s_per_byte

    def ways(self) -> list[str]:
        """One message first."""
        return sorted({way for point in self.points for way in point.time_s}, key=lambda w: (w != BULK, w))


def pipelines(material: Material) -> list[Pipeline]:
    """Every run, MPI and setting in the order of levels, partitions and delay rates."""
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    for run in material.runs:
        for sample in run.samples:
            if setting := _setting(sample):
                groups[(*setting, str(sample.config.get("mpi", "other")), run.name)].append(sample)
    result = []
    for (level, partitions, gamma, mpi, run_name), samples in groups.items():
        several = sum(key[:4] == (level, partitions, gamma, mpi) for key in groups) > 1
        label = words.flavour(mpi) + (f" ({run_name})" if several else "")
        result.append(Pipeline(mpi, level, partitions, gamma, label, _points(samples, partitions, gamma)))
    return sorted(result, key=lambda one: (words.level_order(one.level), *one.setting[1:], one.label))


def _setting(sample: Sample) -> tuple[str, int, float] | None:
    config = sample.config
    values = [number_or_none(config.get(key)) for key in ("size_bytes", "partitions", "gamma_s_per_byte")]
    if sample.kernel != "pipeline" or sample.way is None or None in values or values[1] < 1:
        return None
    return str(config.get("level", "")), int(values[1]), values[2]


def _points(samples: Sequence[Sample], partitions: int, gamma: float) -> tuple[PipelinePoint, ...]:
    by_size: dict[int, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        by_size[int(sample.config["size_bytes"])][sample.way].append(sample)
    points = []
    for size_bytes, ways in sorted(by_size.items()):
        bulk = ways.get(BULK, [])
        gains = {way: _gain(bulk, found) for way, found in ways.items() if way != BULK}
        points.append(
            PipelinePoint(
                size_bytes,
                {way: _spread([sample.median_s() for sample in found]) for way, found in ways.items()},
                {way: gain for way, gain in gains.items() if gain is not None},
                gain_theory(partitions, gamma, size_bytes, median_of_launches(bulk)) if bulk else None,
                len({sample.launch for found in ways.values() for sample in found}),
            )
        )
    return tuple(points)


def gain_theory(partitions: int, gamma: float, size_bytes: int, bulk_s: float) -> float | None:
    """N/max(N - gamma*beta, 1), equation (4) of Gillis et al. 2023, beta that of one message of all."""
    return partitions / max(partitions - gamma * size_bytes / bulk_s, 1.0) if bulk_s > 0 else None


def _gain(bulk: Sequence[Sample], found: Sequence[Sample]) -> Spread | None:
    """Median of the ratios of times of one round, of each launch that has both."""
    of_launch = {sample.launch: sample for sample in bulk}
    pairs = [(of_launch[sample.launch], sample) for sample in found if sample.launch in of_launch]
    ratios = [ratio for pair in pairs if len(ratio := round_ratios(*pair))]
    return _spread([float(np.median(ratio)) for ratio in ratios]) if ratios else None


def _spread(values: Sequence[float]) -> Spread:
    return float(np.median(values)), min(values), max(values)
