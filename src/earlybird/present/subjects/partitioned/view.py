"""Metrics of partitioned communication, by setting, and one measured iteration for the timeline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.kernels import PARTITIONED
from earlybird.data.methods import SINGLE
from earlybird.data.partition_moments import PartitionMoments
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate, estimate_keys
from earlybird.data.units import format_seconds
from earlybird.present.core import points as views
from earlybird.present.core.points import Point, groups
from earlybird.present.material import Material, number_or_none
from earlybird.present.subjects.pipelines.view import reproduces


@dataclass(frozen=True)
class Setting:
    """How a buffer was sent, apart from its size."""

    level_order: int
    level: str
    partitions: int
    threads: int
    compute_s: float
    noise: str
    noise_share: float
    cache: str

    def noise_text(self) -> str:
        return labels.noise(self.noise, self.noise_share)


@dataclass(frozen=True)
class Metrics:
    """What one run measured of one MPI with one setting, sorted by size."""

    label: str
    mpi: str
    setting: Setting
    points: tuple[Point, ...]
    samples: tuple[Sample, ...]
    reproduces: str = ""  # the paper whose figures the run reproduces

    @property
    def oversubscribed(self) -> bool:
        return any(point.oversubscribed for point in self.points)

    def methods(self) -> list[str]:
        return views.methods_of(self.points)

    def choice(self) -> dict[str, str]:
        """The values of the selectors."""
        return {name: text(self) for name, (text, _) in _CHOICES.items()}

    def timelines(self) -> dict[str, "Timeline"]:
        """Of the largest buffer, by method."""
        size_bytes = self.points[-1].size_bytes
        found: dict[str, Timeline] = {}
        for sample in self.samples:
            if sample.method and sample.config["size_bytes"] == size_bytes:
                found.setdefault(sample.method, Timeline.of(sample))
        return {method: found[method] for method in self.methods() if method in found}


@dataclass(frozen=True)
class Timeline:
    """The iteration with the median time of a sample: (n,) seconds after the threads joined."""

    ready_s: np.ndarray
    returned_s: np.ndarray
    arrived_s: np.ndarray
    in_flight_s: float

    @classmethod
    def of(cls, sample: Sample) -> "Timeline":
        moments, times_s = PartitionMoments.of(sample), sample.steady_times_s()
        k = int(np.argsort(times_s)[len(times_s) // 2])
        parts = (moments.ready_s[k], moments.returned_s[k], moments.arrived_s[k])
        return cls(*(part - moments.joined_s[k] for part in parts), in_flight_s=float(times_s[k]))


# For each selector: the text of a value, and its sort key.
_CHOICES: Mapping[str, tuple[Callable[[Metrics], str], Callable[[Metrics], Any]]] = {
    "MPI": (lambda one: one.label, lambda one: one.label),
    "level": (lambda one: labels.level(one.setting.level), lambda one: one.setting.level_order),
    "partitions": (lambda one: str(one.setting.partitions), lambda one: one.setting.partitions),
    "threads": (lambda one: str(one.setting.threads), lambda one: one.setting.threads),
    "computation": (lambda one: format_seconds(one.setting.compute_s), lambda one: one.setting.compute_s),
    "noise": (
        lambda one: one.setting.noise_text(),
        lambda one: (one.setting.noise_share > 0, one.setting.noise, one.setting.noise_share),
    ),
    "cache": (lambda one: one.setting.cache, lambda one: one.setting.cache == "cold"),
}


def choices(measured: Sequence[Metrics]) -> dict[str, list[str]]:
    """The values of every selector, in order."""
    return {
        name: list(dict.fromkeys(text(one) for one in sorted(measured, key=order)))
        for name, (text, order) in _CHOICES.items()
    }


def setting_text(one: Metrics) -> str:
    """`MPICH, same socket, 8 partitions of 8 threads, 10 ms of computation, noise single 4 %`"""
    setting = one.setting
    parts = [
        one.label,
        labels.level(setting.level),
        f"{labels.counted(setting.partitions, 'partition')} of {labels.counted(setting.threads, 'thread')}",
        f"{format_seconds(setting.compute_s)} of computation",
        f"noise {setting.noise_text()}" if setting.noise_share else "no noise",
        "cold cache" if setting.cache == "cold" else "",
    ]
    return ", ".join(part for part in parts if part)


def metric(result: Result, name: str) -> Estimate | None:
    values = [result.figures.get(key) for key in estimate_keys(name)]
    return None if None in values else Estimate(*values)


def partitioned_metrics(material: Material) -> list[Metrics]:
    """The metrics of every run, MPI and setting, sorted by setting."""
    found = [
        Metrics(
            group.label,
            group.mpi,
            group.setting,
            group.points({}, "size_bytes"),
            tuple(group.samples),
            reproduces(group.run),
        )
        for group in groups(material, _setting)
    ]
    return sorted(found, key=lambda one: (*vars(one.setting).values(), one.label))


def by_interest(measured: Sequence[Metrics]) -> list[Metrics]:
    """The settings that show most first: with a single message to compare with, with noise, with more
    partitions, with a core for each thread."""

    def merit(one: Metrics) -> tuple:
        has_single = SINGLE in one.points[-1].results
        return has_single, one.setting.noise_share > 0, one.setting.partitions, not one.oversubscribed

    return sorted(measured, key=merit, reverse=True)


def _setting(sample: Sample) -> Setting | None:
    """The setting of a sample; None if it is of another kernel or its configuration is incomplete."""
    config, keys = sample.config, ("partitions", "threads", "compute_s", "noise_share")
    numbers = {key: number_or_none(config.get(key)) for key in keys}
    if sample.kernel != PARTITIONED.name or sample.method is None or None in numbers.values():
        return None
    level = str(config.get("level", ""))
    partitions, threads = int(numbers["partitions"] or 1), int(numbers["threads"] or 1)
    noise, share = str(config.get("noise", "none")), float(numbers["noise_share"] or 0)
    compute_s, cache = float(numbers["compute_s"] or 0), str(config.get("cache", "hot"))
    order = labels.level_order(level)
    return Setting(order, level, partitions, threads, compute_s, noise, share, cache)
