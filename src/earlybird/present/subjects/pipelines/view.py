"""Pipelines: time and speed-up of each method that sends a buffer in partitions, by setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.kernels import PIPELINE
from earlybird.data.methods import ONE_RECEIVES, SINGLE, THREADS_RECEIVE
from earlybird.data.run import Sample
from earlybird.data.units import format_delay_rate
from earlybird.present.core import points
from earlybird.present.core.points import Measured, measured_series
from earlybird.present.material import Material, number_or_none


@dataclass(frozen=True, kw_only=True)
class Setting(points.Setting):
    """The conditions of sending a buffer: threads, partitions, contexts of the MPI (0 for its default), and
    the delay of partitions: `gamma_s_per_byte` of the last one, or `compute_s_per_byte` with noise and
    imbalance, equations (6) to (9) of Gillis et al. 2023."""

    threads: int = 1
    vcis: int = 0
    partitions: int
    gamma_s_per_byte: float = 0.0
    compute_s_per_byte: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    receivers: str = ONE_RECEIVES

    @property
    def delay(self) -> tuple[float, ...]:
        return self.gamma_s_per_byte, self.compute_s_per_byte, self.epsilon, self.delta

    def late(self) -> str:
        """Return the cause of late partitions as text."""
        if self.compute_s_per_byte:
            rate = format_delay_rate(self.compute_s_per_byte)
            return f"computing {rate}, noise {self.epsilon:g} and {self.delta:g}"
        return format_delay_rate(self.gamma_s_per_byte) if self.gamma_s_per_byte else "none"

    def contexts(self) -> str:
        return str(self.vcis or "default")

    def selectors(self) -> dict[str, tuple[str, Any]]:
        """Return the text of the value of every selector, and its sort key."""
        return {
            "level": self.level_selector,
            "threads": (str(self.threads), self.threads),
            "contexts": (self.contexts(), self.vcis),
            "receivers": (self.receivers, self.receivers),
            "partitions": (str(self.partitions), self.partitions),
            "delay rate": (self.late(), self.delay),
        }


@dataclass(frozen=True)
class Pipeline(Measured[Setting]):
    """The pipelines of one run of one MPI with one setting, sorted by size."""

    @property
    def is_late(self) -> bool:
        """Return whether the last partition is later than the first."""
        return bool(self.points[0].figures["delay_rate_s_per_byte"] > 0)

    def best_methods(self) -> list[str]:
        return points.best_methods(self.points, SINGLE)

    def fitted_error(self) -> float | None:
        """Return the median over sizes and methods of |fitted - measured|/measured; None without a model."""
        errors = [result.fitted_error for point in self.points for result in point.results.values()]
        known = [abs(error) for error in errors if error is not None]
        return float(np.median(known)) if known else None


def setting_text(pipeline: Pipeline, leave_out: Sequence[str] = ()) -> str:
    """Return `MPICH, same socket, 4 threads, 16 partitions, delay rate 100 us/MB`, without a single thread or
    the default number of contexts."""
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
    """Return the pipeline shown first: preferably one with a late partition, then one with a core per thread,
    then the one whose largest buffer has the largest speed-up over a single message."""

    def merit(pipeline: Pipeline) -> tuple[Any, ...]:
        gains = [max(point.speed_up.values()).value for point in pipeline.points if point.speed_up]
        gain = gains[-1] if gains else 0.0
        return pipeline.is_late, not pipeline.oversubscribed, gain, len(pipeline.points)

    return max(measured, key=merit)


def pipelines(material: Material) -> list[Pipeline]:
    """Return the pipelines of every run, MPI and setting, sorted by setting."""
    return measured_series(Pipeline, material, _setting, material.fitted_pipelines)


def _setting(sample: Sample) -> Setting | None:
    """Return the setting of a sample; None if its configuration is incomplete."""
    if sample.kernel != PIPELINE.name or sample.method is None:
        return None
    setting, known = Setting.from_config(sample.config), _known(sample.config)
    if setting is None or "size_bytes" not in known or not {"gamma_s_per_byte", "compute_s_per_byte"} & known:
        return None
    return setting if min(setting.partitions, setting.threads) >= 1 else None


def _known(config: Mapping[str, Any]) -> set[str]:
    """Return the keys whose values are numbers."""
    return {key for key, value in config.items() if number_or_none(value) is not None}
