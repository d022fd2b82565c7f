"""Metrics of partitioned communication, by setting, and one measured iteration for the timeline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earlybird.data import labels
from earlybird.data.kernels import PARTITIONED
from earlybird.data.methods import NO_NOISE, SINGLE
from earlybird.data.partition_moments import PartitionMoments
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate, estimate_keys
from earlybird.data.units import format_seconds
from earlybird.present.core import points
from earlybird.present.core.points import Measured, measured_series
from earlybird.present.material import Material


@dataclass(frozen=True, kw_only=True)
class Setting(points.Setting):
    """The conditions of sending a buffer, apart from its size."""

    partitions: int
    threads: int
    compute_s: float
    noise: str = NO_NOISE
    noise_share: float
    cache: str = "hot"

    def noise_text(self) -> str:
        return labels.noise(self.noise, self.noise_share)

    def selectors(self) -> dict[str, tuple[str, Any]]:
        """Return the text of the value of every selector, and its sort key."""
        return {
            "level": self.level_selector,
            "partitions": (str(self.partitions), self.partitions),
            "threads": (str(self.threads), self.threads),
            "compute": (format_seconds(self.compute_s), self.compute_s),
            "noise": (self.noise_text(), (self.noise_share > 0, self.noise, self.noise_share)),
            "cache": (self.cache, self.cache == "cold"),
        }


@dataclass(frozen=True)
class Timeline:
    """The iteration with the median time of a sample: (n,) seconds after the threads joined."""

    ready_s: npt.NDArray[np.float64]
    returned_s: npt.NDArray[np.float64]
    arrived_s: npt.NDArray[np.float64]

    @classmethod
    def of(cls, sample: Sample) -> "Timeline":
        moments, times_s = PartitionMoments.of(sample), sample.steady_times_s()
        k = int(np.argsort(times_s)[len(times_s) // 2])
        parts = (moments.ready_s[k], moments.returned_s[k], moments.arrived_s[k])
        return cls(*(part - moments.joined_s[k] for part in parts))


@dataclass(frozen=True)
class Metrics(Measured[Setting]):
    """The metrics of one run of one MPI with one setting, sorted by size."""

    def timelines(self) -> dict[str, Timeline]:
        """Return an iteration with the largest buffer of each method."""
        size_bytes = self.points[-1].size_bytes
        first: dict[str, Sample] = {}
        for sample in self.samples:
            if sample.method and sample.config["size_bytes"] == size_bytes:
                first.setdefault(sample.method, sample)
        return {method: Timeline.of(first[method]) for method in self.methods() if method in first}


def setting_text(metrics: Metrics) -> str:
    """Return `MPICH, same socket, 8 partitions of 8 threads, 10 ms of computation, noise single 4 %`."""
    setting = metrics.setting
    parts = [
        metrics.label,
        labels.level(setting.level),
        f"{labels.counted(setting.partitions, 'partition')} of {labels.counted(setting.threads, 'thread')}",
        f"{format_seconds(setting.compute_s)} of computation",
        f"noise {setting.noise_text()}" if setting.noise_share else "no noise",
        "cold cache" if setting.cache == "cold" else "",
    ]
    return ", ".join(part for part in parts if part)


def metric(result: Result, name: str) -> Estimate | None:
    """Return a metric of a result with its interval; None if it was not measured."""
    values = [value for key in estimate_keys(name) if (value := result.figures.get(key)) is not None]
    return Estimate(*values) if len(values) == len(estimate_keys(name)) else None


def partitioned_metrics(material: Material) -> list[Metrics]:
    """Return the metrics of every run, MPI and setting, sorted by setting."""
    return measured_series(Metrics, material, _setting)


def by_interest(measured: Sequence[Metrics]) -> list[Metrics]:
    """Return the settings that show most first: with a single message to compare with, with noise, with more
    partitions, with a core for each thread."""

    def merit(metrics: Metrics) -> tuple[Any, ...]:
        has_single, setting = SINGLE in metrics.points[-1].results, metrics.setting
        return has_single, setting.noise_share > 0, setting.partitions, not metrics.oversubscribed

    return sorted(measured, key=merit, reverse=True)


def _setting(sample: Sample) -> Setting | None:
    """Return the setting of a sample; None if it is of another kernel or its configuration is incomplete."""
    is_result = sample.kernel == PARTITIONED.name and sample.method is not None
    return Setting.from_config(sample.config) if is_result else None
