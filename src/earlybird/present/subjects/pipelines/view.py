"""Pipelines: time and speed-up of each method that sends a buffer in partitions, by setting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.kernels import PIPELINE
from earlybird.data.methods import ONE_RECEIVES, SINGLE, THREADS_RECEIVE, receivers_of
from earlybird.data.run import Sample
from earlybird.present.core import points as views
from earlybird.present.core.points import Point, groups
from earlybird.present.material import Material, MeasuredRun, number_or_none


@dataclass(frozen=True)
class Setting:
    """How a buffer was sent: threads, partitions, contexts of the MPI (0 for its default), and the delay of
    partitions: `gamma_s_per_byte` of the last one, or `compute_s_per_byte` with noise and imbalance,
    equations (6) to (9) of Gillis et al. 2023."""

    level_order: int
    level: str
    threads: int
    vcis: int
    partitions: int
    gamma_s_per_byte: float
    compute_s_per_byte: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    receivers: str = ONE_RECEIVES

    @property
    def delay(self) -> tuple[float, ...]:
        return self.gamma_s_per_byte, self.compute_s_per_byte, self.epsilon, self.delta

    def late(self) -> str:
        """The cause of late partitions, as text."""
        if self.compute_s_per_byte:
            rate = format_rate(self.compute_s_per_byte)
            return f"computing {rate}, noise {self.epsilon:g} and {self.delta:g}"
        return format_rate(self.gamma_s_per_byte) if self.gamma_s_per_byte else "none"

    def contexts(self) -> str:
        return str(self.vcis or "default")


@dataclass(frozen=True)
class Pipeline:
    """What one run measured of one MPI with one setting, sorted by size."""

    label: str
    setting: Setting
    points: tuple[Point, ...]
    reproduces: str = ""  # the paper whose figures the run reproduces
    mpi: str = ""
    run: MeasuredRun | None = None

    @property
    def oversubscribed(self) -> bool:
        return any(point.oversubscribed for point in self.points)

    @property
    def is_late(self) -> bool:
        """Whether the last partition is later than the first."""
        return self.points[0].figures["delay_rate_s_per_byte"] > 0

    def methods(self) -> list[str]:
        return views.methods_of(self.points)

    def best_methods(self) -> list[str]:
        return views.best_methods(self.points, SINGLE)

    def fitted_error(self) -> float | None:
        """The median over sizes and methods of |fitted - measured|/measured; None without a fitted model."""
        errors = [point.fitted_error(method) for point in self.points for method in point.results]
        known = [abs(error) for error in errors if error is not None]
        return float(np.median(known)) if known else None

    def choice(self) -> dict[str, str]:
        """The values of the selectors."""
        return {name: text(self) for name, (text, _) in _CHOICES.items()}


# For each selector: the text of a value, and its sort key.
_CHOICES: Mapping[str, tuple[Callable[[Pipeline], str], Callable[[Pipeline], Any]]] = {
    "MPI": (lambda one: one.label, lambda one: one.label),
    "level": (lambda one: labels.level(one.setting.level), lambda one: one.setting.level_order),
    "threads": (lambda one: str(one.setting.threads), lambda one: one.setting.threads),
    "contexts": (lambda one: one.setting.contexts(), lambda one: one.setting.vcis),
    "receivers": (lambda one: one.setting.receivers, lambda one: one.setting.receivers),
    "partitions": (lambda one: str(one.setting.partitions), lambda one: one.setting.partitions),
    "delay rate": (lambda one: one.setting.late(), lambda one: one.setting.delay),
}


def choices(measured: Sequence[Pipeline]) -> dict[str, list[str]]:
    """The values of every selector, in order."""
    return {
        name: list(dict.fromkeys(text(one) for one in sorted(measured, key=order)))
        for name, (text, order) in _CHOICES.items()
    }


def setting_text(pipeline: Pipeline, leave_out: Sequence[str] = ()) -> str:
    """`MPICH, same socket, 4 threads, 16 partitions, delay rate 100 us/MB`, without a single thread or the
    default number of contexts."""
    setting = pipeline.setting
    parts = {
        "MPI": pipeline.label,
        "level": labels.level(setting.level),
        "threads": labels.counted(setting.threads, "thread") if setting.threads > 1 else "",
        "contexts": labels.counted(setting.vcis, "context") if setting.vcis else "",
        "receivers": "receiving threads" if setting.receivers == THREADS_RECEIVE else "",
        "partitions": labels.counted(setting.partitions, "partition"),
        "delay rate": f"delay rate {setting.late()}" if setting.late() != "none" else "no delay",
    }
    return ", ".join(text for name, text in parts.items() if text and name not in leave_out)


def headline(measured: Sequence[Pipeline]) -> Pipeline:
    """The pipeline shown first: preferably one with a late partition, then one with a core per thread, then
    the one whose largest buffer has the largest speed-up over a single message."""

    def merit(pipeline: Pipeline) -> tuple:
        gains = [max(point.speed_up.values()).value for point in pipeline.points if point.speed_up]
        gain = gains[-1] if gains else 0.0
        return pipeline.is_late, not pipeline.oversubscribed, gain, len(pipeline.points)

    return max(measured, key=merit)


def format_rate(seconds_per_byte: float) -> str:
    return f"{seconds_per_byte * 1e12:.6g} us/MB"


def pipelines(material: Material) -> list[Pipeline]:
    """The pipelines of every run, MPI and setting, sorted by setting."""
    found = [
        Pipeline(
            group.label,
            group.setting,
            group.points(material.fitted_pipelines, "size_bytes"),
            reproduces(group.run),
            group.mpi,
            group.run,
        )
        for group in groups(material, _setting)
    ]
    return sorted(found, key=lambda pipeline: (*vars(pipeline.setting).values(), pipeline.label))


def reproduces(run: MeasuredRun) -> str:
    """The paper whose figures the run reproduces, or ""."""
    settings = run.header.get("settings")
    return str(settings.get("reproduce") or "") if isinstance(settings, dict) else ""


def _setting(sample: Sample) -> Setting | None:
    """The setting of a sample; None if its configuration is incomplete."""
    if sample.kernel != PIPELINE.name or sample.method is None:
        return None
    config = {"threads": 1} | {
        key: number for key, value in sample.config.items() if (number := number_or_none(value)) is not None
    }
    if not {"partitions", "size_bytes"} <= config.keys() or min(config["partitions"], config["threads"]) < 1:
        return None
    if not {"gamma_s_per_byte", "compute_s_per_byte"} & config.keys():
        return None
    level = str(sample.config.get("level", ""))
    whole = (int(config.get(key, 0)) for key in ("threads", "vcis", "partitions"))
    delay = ("gamma_s_per_byte", "compute_s_per_byte", "epsilon", "delta")
    return Setting(
        labels.level_order(level), level, *whole, *(config.get(key, 0.0) for key in delay),
        receivers=receivers_of(sample.config),
    )  # fmt: skip
