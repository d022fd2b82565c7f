"""The throughput of motifs in runs that reproduce Temucin et al. 2022, by setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from earlybird.compare.ratios import Ratio, paired_ratio
from earlybird.data import labels
from earlybird.data.kernels import HALO3D, SWEEP3D
from earlybird.data.methods import NO_NOISE
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.papers.page import crowded_text, only_runs_of
from earlybird.present.core import points
from earlybird.present.core.points import Measured, Point, measured_series
from earlybird.present.material import Material

NAME = "temucin"
# Their names in the paper, by kernel.
TITLES: Mapping[str, str] = {SWEEP3D.name: "Sweep3D", HALO3D.name: "Halo3D"}


@dataclass(frozen=True, kw_only=True)
class Setting(points.Setting):
    """The settings of the measurement of a motif, except the size of its messages."""

    motif: str
    ranks: int
    layout: str = ""
    threads: int
    partitions: int
    compute_s: float
    noise: str = NO_NOISE
    noise_share: float

    def selectors(self) -> dict[str, tuple[str, Any]]:
        """Return the text of the value of every selector of the page, and its sort key."""
        return {"motif": (TITLES[self.motif], list(TITLES).index(self.motif))}


@dataclass(frozen=True)
class Throughput(Measured[Setting]):
    """The throughputs of one MPI with one setting, measured in one run, by size of the largest message."""

    @property
    def crowded(self) -> str:
        """Return that threads or ranks had too few cores, as text; "" if they had enough."""
        return crowded_text("threads", self.run) if self.oversubscribed else ""

    @property
    def title(self) -> str:
        """`MPICH, Sweep3D, 2 ranks of 2 threads, 16 partitions, 10 ms of computation, noise single 4 %`"""
        setting = self.setting
        noise = labels.noise(setting.noise, setting.noise_share)
        return ", ".join(
            (
                self.label,
                TITLES[setting.motif],
                f"{labels.counted(setting.ranks, 'rank')} of {labels.counted(setting.threads, 'thread')}",
                labels.counted(setting.partitions, "partition"),
                f"{format_seconds(setting.compute_s)} of computation",
                f"noise {noise}",
            )
        )

    def ratio(self, point: Point, method: str, other: str) -> Ratio | None:
        """Return the throughput of `method` over that of `other`, from times of the same rounds; None if no
        launch measured both. In all styles the same bytes are sent."""
        both = [
            [one for one in self.samples if one.method == name and one.config == point.config]
            for name in (other, method)
        ]
        return paired_ratio(*both)


def throughput(point: Point, method: str) -> Estimate | None:
    """Return the bytes per second that all ranks send; None if unknown."""
    result = point.results.get(method)
    if result is None or not result.figures.get("sent_bytes") or result.time_s.low <= 0:
        return None
    sent_bytes, time_s = result.figures["sent_bytes"], result.time_s
    return Estimate(sent_bytes / time_s.value, sent_bytes / time_s.high, sent_bytes / time_s.low)


def throughputs(material: Material) -> list[Throughput]:
    """Return what the runs that reproduce the paper measured: Sweep3D first, and fewer threads first."""
    found = measured_series(Throughput, only_runs_of(material, NAME), _setting)
    order = list(TITLES)
    return sorted(found, key=lambda one: (one.label, order.index(one.setting.motif), one.setting.threads))


def _setting(sample: Sample) -> Setting | None:
    """Return the setting of a sample; None if it is of another kernel or its configuration is incomplete."""
    if sample.kernel not in TITLES or sample.method is None or "size_bytes" not in sample.config:
        return None
    return Setting.from_config({**sample.config, "motif": sample.kernel})
