"""Pipelines: time and speed-up of each method that sends a buffer in partitions, and crossovers."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.compare.ranking import Crossover, best_methods, crossovers, speeds
from earlybird.compare.results import results
from earlybird.data import labels
from earlybird.data.methods import SINGLE
from earlybird.data.results import Estimate, Result
from earlybird.data.run import Sample
from earlybird.models.pipelined import delay_rate_s_per_byte
from earlybird.report.curves import number_or_none
from earlybird.report.material import Material, MeasuredRun


@dataclass(frozen=True)
class PipelinePoint:
    """One buffer size: the result of every method."""

    size_bytes: int
    results: Mapping[str, Result]

    @property
    def time_s(self) -> dict[str, Estimate]:
        return {method: result.time_s for method, result in self.results.items()}

    @property
    def speed_up(self) -> dict[str, Estimate]:
        """Over a single message."""
        return {method: result.speed_up for method, result in self.results.items() if result.speed_up}

    @property
    def ideal_speed_up(self) -> float | None:
        """By equation (4) of Gillis et al. 2023, at the bandwidth of a single message."""
        return next(iter(self.results.values())).figures["ideal_speed_up"]

    @property
    def fitted_s(self) -> dict[str, float]:
        """The times that fitted models predict."""
        found = {method: result.fitted_s for method, result in self.results.items()}
        return {method: time_s for method, time_s in found.items() if time_s is not None}

    @property
    def num_launches(self) -> int:
        return max(result.launches for result in self.results.values())


@dataclass(frozen=True)
class Noise:
    """Computation with noise, equations (6) to (9) of Gillis et al. 2023: rate, noise and imbalance."""

    compute_s_per_byte: float
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Setting:
    """How a buffer was sent: threads, partitions, contexts of the MPI, and the delay of partitions.

    `vcis` is None for the MPI's default. `gamma_s_per_byte` is 0 if there is a `noise`.
    """

    level: str
    threads: int
    vcis: int | None
    partitions: int
    gamma_s_per_byte: float
    noise: Noise | None = None

    def order(self) -> tuple:
        noise = (0.0, 0.0, 0.0) if self.noise is None else tuple(vars(self.noise).values())
        return (labels.level_order(self.level), self.threads, self.vcis or 0, self.partitions,
                self.gamma_s_per_byte, noise)  # fmt: skip

    def delay_rate(self) -> float:
        """gamma, seconds per byte of a partition; with noise that of equation (9) of Gillis et al. 2023."""
        if self.noise is None:
            return self.gamma_s_per_byte
        noise = self.noise
        theta = self.partitions // self.threads
        return delay_rate_s_per_byte(noise.compute_s_per_byte, theta, noise.epsilon, noise.delta)

    def late(self) -> str:
        """The cause of late partitions, as text."""
        if self.noise is not None:
            rate = format_rate(self.noise.compute_s_per_byte)
            return f"computing {rate}, noise {self.noise.epsilon:g} and {self.noise.delta:g}"
        return format_rate(self.gamma_s_per_byte) if self.gamma_s_per_byte else "none"

    def contexts(self) -> str:
        return "default" if self.vcis is None else str(self.vcis)


@dataclass(frozen=True)
class Pipeline:
    """What one run measured of one MPI with one setting, sorted by size."""

    mpi: str
    label: str
    setting: Setting
    points: tuple[PipelinePoint, ...]
    oversubscribed: bool = False
    reproduces: str = ""  # the paper whose figures the run reproduces

    def methods(self) -> list[str]:
        """A single message first."""
        return sorted({method for point in self.points for method in point.time_s}, key=labels.method_order)

    def best_methods(self) -> list[str]:
        """The best method at each size, "" if none was measured; it changes if another is clearly faster."""
        return best_methods(self._speeds(), SINGLE)

    def crossovers(self) -> list[Crossover]:
        return crossovers([point.size_bytes for point in self.points], self._speeds(), SINGLE)

    def _speeds(self) -> list[dict[str, Estimate]]:
        return [speeds(point.results) for point in self.points]

    def fitted_error(self) -> float | None:
        """The median over sizes and methods of |fitted - measured|/measured; None without a fitted model."""
        errors = [
            abs(fitted_s / point.time_s[method].value - 1)
            for point in self.points
            for method, fitted_s in point.fitted_s.items()
            if point.time_s[method].value > 0
        ]
        return float(np.median(errors)) if errors else None


def format_rate(seconds_per_byte: float) -> str:
    return f"{seconds_per_byte * 1e12:.6g} us/MB"


def pipelines(material: Material) -> list[Pipeline]:
    """The pipelines of every run, MPI and setting, sorted by setting."""
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    runs: dict[tuple, MeasuredRun] = {}
    for number, run in enumerate(material.runs):
        for sample in run.samples:
            if setting := _setting(sample):
                key = (setting, str(sample.config.get("mpi", "other")), number)
                groups[key].append(sample)
                runs[key] = run
    result = []
    for key, samples in groups.items():
        setting, mpi, _ = key
        several = sum(other[:2] == key[:2] for other in groups) > 1
        result.append(
            Pipeline(
                mpi,
                labels.flavour(mpi) + (f" ({runs[key].name})" if several else ""),
                setting,
                _points(samples, material.fitted_pipelines),
                any(sample.oversubscribed for sample in samples),
                _reproduces(runs[key]),
            )
        )
    return sorted(result, key=lambda pipeline: (pipeline.setting.order(), pipeline.label))


def _reproduces(run: MeasuredRun) -> str:
    settings = run.header.get("settings")
    return str(settings.get("reproduce") or "") if isinstance(settings, dict) else ""


def _setting(sample: Sample) -> Setting | None:
    """The setting of a sample; None if its configuration is incomplete."""
    config = sample.config
    if sample.kernel != "pipeline" or sample.method is None:
        return None
    noise = [number_or_none(config.get(key)) for key in ("compute_s_per_byte", "epsilon", "delta")]
    partitions, size = (number_or_none(config.get(key)) for key in ("partitions", "size_bytes"))
    threads, vcis = number_or_none(config.get("threads", 1)), number_or_none(config.get("vcis"))
    gamma = number_or_none(config.get("gamma_s_per_byte", 0 if noise[0] is not None else None))
    if None in (partitions, size, threads, gamma) or partitions < 1 or threads < 1:
        return None
    return Setting(
        str(config.get("level", "")),
        int(threads),
        None if vcis is None else int(vcis),
        int(partitions),
        gamma,
        None if noise[0] is None else Noise(*(value or 0.0 for value in noise)),
    )


def _points(samples: Sequence[Sample], fitted: Mapping[tuple, float]) -> tuple[PipelinePoint, ...]:
    by_size: dict[int, dict[str, Result]] = defaultdict(dict)
    for result in results(samples, fitted):
        by_size[int(result.config["size_bytes"])][result.method] = result
    return tuple(
        PipelinePoint(
            size_bytes,
            of_methods,
        )
        for size_bytes, of_methods in sorted(by_size.items())
    )
