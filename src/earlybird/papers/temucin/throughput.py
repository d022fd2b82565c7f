"""The throughput of motifs in runs that reproduce Temucin et al. 2022, by setting."""

from collections.abc import Mapping
from dataclasses import dataclass

from earlybird.compare.ratios import Ratio, paired_ratio
from earlybird.data import labels
from earlybird.data.kernels import HALO3D, SWEEP3D
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.papers.page import only_runs_of
from earlybird.present.core.points import Point, groups, methods_of
from earlybird.present.material import Material, number_or_none

NAME = "temucin"
# Their names in the paper, by kernel.
TITLES: Mapping[str, str] = {SWEEP3D.name: "Sweep3D", HALO3D.name: "Halo3D"}


@dataclass(frozen=True)
class Setting:
    """How a motif was measured, apart from the size of its messages."""

    motif: str
    ranks: int
    layout: str
    threads: int
    partitions: int
    compute_s: float
    noise: str
    noise_share: float


@dataclass(frozen=True)
class Throughput:
    """What one run measured of one MPI with one setting, sorted by the size of the largest message."""

    label: str
    run: str  # its name, where several runs reproduce the paper with this MPI
    setting: Setting
    points: tuple[Point, ...]
    samples: tuple[Sample, ...]

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

    @property
    def oversubscribed(self) -> bool:
        return any(point.oversubscribed for point in self.points)

    def methods(self) -> list[str]:
        return methods_of(self.points)

    def ratio(self, point: Point, method: str, other: str) -> Ratio | None:
        """The throughput of `method` over that of `other`, from times of the same rounds; None if no launch
        measured both. In all styles the same bytes are sent."""
        both = [
            [one for one in self.samples if one.method == name and one.config == point.config]
            for name in (other, method)
        ]
        return paired_ratio(*both)


def throughput(point: Point, method: str) -> Estimate | None:
    """Bytes per second that all ranks send; None if unknown."""
    result = point.results.get(method)
    if result is None or not result.figures.get("sent_bytes") or result.time_s.low <= 0:
        return None
    sent_bytes, time_s = result.figures["sent_bytes"], result.time_s
    return Estimate(sent_bytes / time_s.value, sent_bytes / time_s.high, sent_bytes / time_s.low)


def throughputs(material: Material) -> list[Throughput]:
    """Sweep3D first, and fewer threads first."""
    all_groups = groups(only_runs_of(material, NAME), _setting)
    runs: dict[str, set[int]] = {}
    for group in all_groups:
        runs.setdefault(group.mpi, set()).add(id(group.run))
    found = [
        Throughput(
            group.label, group.run.name if len(runs[group.mpi]) > 1 else "", group.setting,
            group.points({}, "size_bytes"), tuple(group.samples),
        )
        for group in all_groups
    ]  # fmt: skip
    order = list(TITLES)
    return sorted(found, key=lambda one: (one.label, order.index(one.setting.motif), one.setting.threads))


def _setting(sample: Sample) -> Setting | None:
    """The setting of a sample; None if it is of another kernel or its configuration is incomplete."""
    config = sample.config
    keys = ("ranks", "threads", "partitions", "compute_s", "noise_share", "size_bytes")
    numbers = {key: number_or_none(config.get(key)) for key in keys}
    if sample.kernel not in TITLES or sample.method is None or None in numbers.values():
        return None
    ranks, threads, partitions = (int(numbers[key] or 1) for key in keys[:3])
    compute_s, share = float(numbers["compute_s"] or 0), float(numbers["noise_share"] or 0)
    noise, layout = str(config.get("noise", "none")), str(config.get("layout", ""))
    return Setting(sample.kernel, ranks, layout, threads, partitions, compute_s, noise, share)
