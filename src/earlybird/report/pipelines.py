"""Pipelines: time and speed-up of each method that sends a buffer in partitions, and crossovers."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.run import Sample, median_of_launches
from earlybird.report import fastest, words
from earlybird.report.curves import number_or_none
from earlybird.report.fastest import Crossover, Spread
from earlybird.report.material import Material, MeasuredRun

BULK = "single"


@dataclass(frozen=True)
class PipelinePoint:
    """One buffer size: the time of every method, and the speed-up (`gain`) over a single message.

    `fitted_s` are the times that the fitted model of a profile predicts.
    """

    size_bytes: int
    time_s: Mapping[str, Spread]
    gain: Mapping[str, Spread]
    gain_theory: float | None
    num_launches: int
    fitted_s: Mapping[str, float]

    def speeds(self) -> dict[str, Spread]:
        """Speed-up over a single message; if that was not measured, 1/s.

        These are ratios of times of the same round, not of medians: some methods have separate launches.
        """
        if BULK in self.time_s and self.gain:
            return {BULK: (1.0, 1.0, 1.0)} | dict(self.gain)
        return fastest.inverse(self.time_s)


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
        return (words.level_order(self.level), self.threads, self.vcis or 0, self.partitions,
                self.gamma_s_per_byte, noise)  # fmt: skip

    def delay_rate(self) -> float:
        """gamma, seconds per byte of a partition; with noise that of equation (9) of Gillis et al. 2023."""
        if self.noise is None:
            return self.gamma_s_per_byte
        theta, sigma = self.partitions / self.threads, (self.noise.epsilon + self.noise.delta) / 2
        return self.noise.compute_s_per_byte * (theta + sigma * (theta**0.5 + 1) - 1)

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
        return sorted({method for point in self.points for method in point.time_s}, key=words.method_order)

    def best_methods(self) -> list[str]:
        """The best method at each size, "" if none was measured; it changes if another is clearly faster."""
        return fastest.best_methods(self._speeds(), BULK)

    def crossovers(self) -> list[Crossover]:
        return fastest.crossovers([point.size_bytes for point in self.points], self._speeds(), BULK)

    def _speeds(self) -> list[dict[str, Spread]]:
        return [point.speeds() for point in self.points]

    def fitted_error(self) -> float | None:
        """The median over sizes and methods of |fitted - measured|/measured; None without a fitted model."""
        errors = [
            abs(fitted_s / point.time_s[method][0] - 1)
            for point in self.points
            for method, fitted_s in point.fitted_s.items()
            if method in point.time_s and point.time_s[method][0] > 0
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
                words.flavour(mpi) + (f" ({runs[key].name})" if several else ""),
                setting,
                _points(samples, setting, material.fitted_pipelines),
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


def _points(
    samples: Sequence[Sample], setting: Setting, fitted: Mapping[tuple, float]
) -> tuple[PipelinePoint, ...]:
    by_size: dict[int, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        by_size[int(sample.config["size_bytes"])][sample.method].append(sample)
    points = []
    for size_bytes, methods in sorted(by_size.items()):
        bulk = methods.get(BULK, [])
        gains = {
            method: fastest.paired_gain(bulk, group) for method, group in methods.items() if method != BULK
        }
        theory = gain_theory(setting, size_bytes, median_of_launches(bulk)) if bulk else None
        model = {method: fitted.get(group[0].point()) for method, group in methods.items()}
        points.append(
            PipelinePoint(
                size_bytes,
                {
                    method: fastest.spread([sample.median_s() for sample in group])
                    for method, group in methods.items()
                },
                {method: gain for method, gain in gains.items() if gain is not None},
                theory,
                len({sample.launch for group in methods.values() for sample in group}),
                {method: time_s for method, time_s in model.items() if time_s is not None},
            )
        )
    return tuple(points)


def gain_theory(setting: Setting, size_bytes: int, bulk_s: float) -> float | None:
    """N/max(N - gamma*beta, 1), equation (4) of Gillis et al. 2023, beta that of a single message."""
    if bulk_s <= 0:
        return None
    return setting.partitions / max(setting.partitions - setting.delay_rate() * size_bytes / bulk_s, 1.0)
