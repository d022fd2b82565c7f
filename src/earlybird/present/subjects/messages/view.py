"""Messages: ping-pong by size, its fitted protocols, and the bandwidth of processes that receive at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from earlybird.compare.results import results
from earlybird.data import kernels, labels
from earlybird.data.profile import Profile, Protocol
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.statistics import Statistic
from earlybird.models.maxrate import maxrate_bandwidth
from earlybird.models.postal import postal_time_s
from earlybird.present.core.parts import grouped
from earlybird.present.core.points import groups
from earlybird.present.material import Material, labelled_profiles, number_or_none, profile_mpi


@dataclass(frozen=True)
class Curve:
    """Half round trips of one MPI at one level: a result and the samples of every size, sorted by size."""

    mpi: str
    level: str
    label: str
    reused_buffers: bool
    points: tuple[Result, ...]
    samples: Mapping[int, list[Sample]]

    def num_iterations(self, point: Result) -> int:
        return sum(len(sample.steady_times_s()) for sample in self.samples[point.config["size_bytes"]])


@dataclass(frozen=True)
class Segment:
    """One fitted protocol of the ping-pong: T = latency + size/bandwidth from min_bytes to end_bytes."""

    name: str
    min_bytes: float
    latency_s: float
    bandwidth_bytes_per_s: float
    end_bytes: float = np.inf

    def time_s(self, size_bytes: np.ndarray) -> np.ndarray:
        return postal_time_s(size_bytes, self.latency_s, self.bandwidth_bytes_per_s)


@dataclass(frozen=True)
class Fit:
    """The fitted protocols of one profile at one level."""

    mpi: str
    level: str
    label: str
    segments: tuple[Segment, ...]
    held_out_error: float | None
    is_pingpong: bool = True  # else these are the protocols of the level at N = 1


@dataclass(frozen=True)
class Received:
    """The bytes that a group receives per second if `count` of its processes receive at once."""

    count: int
    bandwidth_bytes_per_s: Estimate  # with the interval of the profile, or over launches
    oversubscribed: bool
    is_bound: bool = False  # according to the profile, the value is only a bound


@dataclass(frozen=True)
class Contention:
    """Received bandwidth of a group against the number N of its processes that receive at once."""

    mpi: str
    level: str
    protocol: str  # "" if it was measured only, at the largest size
    label: str
    points: tuple[Received, ...]

    @property
    def top(self) -> float:
        """BW_max: the largest value."""
        return max(point.bandwidth_bytes_per_s.value for point in self.points)

    @property
    def bend(self) -> float:
        """The N at which ideal scaling reaches BW_max: BW_max/BW(1)."""
        return self.top * self.points[0].count / self.points[0].bandwidth_bytes_per_s.value

    def ideal(self, count: float) -> float:
        """Return equation (3) of Thune et al. 2023, with the largest measured value as BW_max."""
        return float(maxrate_bandwidth(np.array(count), self.top / self.bend, self.top))

    def deviation(self, point: Received) -> float:
        """Return the relative deviation from ideal scaling."""
        return point.bandwidth_bytes_per_s.value / self.ideal(point.count) - 1


def bandwidth(result: Result) -> Estimate:
    """Return the bytes per second that all receivers together receive; 0 if the clock did not resolve the
    time."""
    size_bytes = result.config["size_bytes"] * result.config["competitors"]
    low, value, high = (size_bytes / time_s if time_s > 0 else 0.0 for time_s in sorted(result.time_s)[::-1])
    return Estimate(value, low, high)


def pingpong_curves(material: Material) -> list[Curve]:
    """Return a curve for each run, MPI, level and kind of buffer, sorted by level, then flavour."""
    curves = []
    for group in groups(material, _pingpong_setting):
        level, reused = group.setting
        samples = grouped(group.samples, lambda sample: int(sample.config["size_bytes"]))
        points = {int(result.config["size_bytes"]): result for result in group.results()}
        curves.append(
            Curve(
                group.mpi,
                level,
                group.label + ", reused buffers" * reused,
                reused,
                tuple(points[size_bytes] for size_bytes in sorted(points)),
                samples,
            )
        )
    return sorted(curves, key=lambda curve: (labels.level_order(curve.level), curve.label))


def _pingpong_setting(sample: Sample) -> tuple[str, bool] | None:
    size_bytes = number_or_none(sample.config.get("size_bytes"))
    if sample.kernel != kernels.PINGPONG.name or size_bytes is None or size_bytes < 0:
        return None
    return str(sample.config.get("level", "")), sample.config.get("buffers", "vary") == "reuse"


def fits(material: Material) -> list[Fit]:
    """Return the ping-pong lines of every profile: its `piecewise_postal` form, or its levels at N = 1."""
    result = []
    for profile, label in labelled_profiles(material):
        for level in sorted(profile.levels, key=labels.level_order):
            form, lines = profile.ping_pong(level)
            segments = [Segment(*line) for line in lines] or _segments_of_levels(profile, level)
            error = form.get("held_out_error", profile.levels[level].extra.get("held_out_error"))
            ends = [segment.min_bytes for segment in segments[1:]] + [np.inf]
            ended = [replace(segment, end_bytes=end) for segment, end in zip(segments, ends, strict=True)]
            result.append(
                Fit(profile_mpi(profile), level, label, tuple(ended), number_or_none(error), bool(form))
            )
    return result


def _segments_of_levels(profile: Profile, level: str) -> list[Segment]:
    return [
        Segment(protocol.name, protocol.min_bytes, protocol.latency_s, rates[0] / counts[0])
        for protocol in _lines(profile, level)
        for counts, rates in [protocol.bandwidth_table()]
    ]


def contentions(material: Material) -> list[Contention]:
    """Return BW(N) of every profile, level and protocol; for runs without a profile, at their largest
    size."""
    result = [
        Contention(profile_mpi(profile), level, protocol.name, label, _of_protocol(profile, level, protocol))
        for profile, label in labelled_profiles(material)
        for level in sorted(profile.levels, key=labels.level_order)
        for protocol in _lines(profile, level)
    ]
    fitted = {(item.mpi, item.level) for item in result}
    measured = [
        Contention(mpi, level, "", labels.flavour(mpi), _of_samples(samples, material.statistic))
        for (mpi, level), samples in largest_contention_samples(material).items()
        if (mpi, level) not in fitted
    ]
    return result + sorted(measured, key=lambda item: labels.level_order(item.level))


def _lines(profile: Profile, level: str) -> list[Protocol]:
    """Return the protocols of a level, without those that differ from the previous one only in sender
    behaviour."""
    protocols = profile.levels[level].protocols
    return [
        protocol for k, protocol in enumerate(protocols) if not k or not protocol.continues(protocols[k - 1])
    ]


def _of_protocol(profile: Profile, level: str, protocol: Protocol) -> tuple[Received, ...]:
    bounds = {*protocol.extra.get("bounded_n", ()), *protocol.extra.get("above_link_n", ())}
    over = protocol.extra.get("oversubscribed_n", ())
    key = "bandwidth_bytes_per_s"
    return tuple(
        Received(
            n,
            Estimate(rate, *(profile.interval(level, protocol.name, key, n) or (rate, rate))),
            n in over,
            n in bounds,
        )
        for n, rate in zip(*(column.tolist() for column in protocol.bandwidth_table()), strict=True)
    )


def _of_samples(samples: Iterable[Sample], statistic: Statistic) -> tuple[Received, ...]:
    points = {int(result.config["competitors"]): result for result in results(samples, statistic=statistic)}
    return tuple(Received(n, bandwidth(points[n]), points[n].oversubscribed) for n in sorted(points))


def largest_contention_samples(material: Material) -> dict[tuple[str, str], list[Sample]]:
    """Return, by MPI and level, the samples of the largest size with a number of competitors above zero."""
    groups_of_samples = grouped(
        (sample for run in material.runs for sample in run.samples if _is_contention(sample)),
        lambda sample: (str(sample.config.get("mpi", "other")), str(sample.config.get("level", ""))),
    )
    for key, samples in groups_of_samples.items():
        largest = max(sample.config["size_bytes"] for sample in samples)
        groups_of_samples[key] = [sample for sample in samples if sample.config["size_bytes"] == largest]
    return groups_of_samples


def _is_contention(sample: Sample) -> bool:
    size, count = (number_or_none(sample.config.get(key)) or 0 for key in ("size_bytes", "competitors"))
    return sample.kernel == kernels.CONTENTION.name and size > 0 and count >= 1


def large_message_protocols(items: Iterable[Contention]) -> list[Contention]:
    """Return the last protocol of each profile and level: that of large messages."""
    return list({(item.label, item.level): item for item in items}.values())
