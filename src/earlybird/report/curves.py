"""Data of chapter 2: ping-pong curves, fitted lines and BW(N), without evaluating a model."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.compare.intervals import over_launches
from earlybird.data import labels
from earlybird.data.profile import Profile, Protocol
from earlybird.data.results import Estimate
from earlybird.data.run import Sample
from earlybird.models.maxrate import maxrate_bandwidth
from earlybird.models.postal import postal_time_s
from earlybird.report.material import Material


@dataclass(frozen=True)
class Point:
    """One size: median over iterations, then launches, with its interval; raw times."""

    size_bytes: int
    median_s: float
    interval_s: tuple[float, float]
    times_s: np.ndarray
    num_launches: int
    oversubscribed: bool


@dataclass(frozen=True)
class Curve:
    """Half round trips of one MPI at one level, sorted by size."""

    mpi: str
    level: str
    label: str
    reused_buffers: bool
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Segment:
    """One fitted protocol of the ping-pong: T = latency + size/bandwidth from min_bytes to end_bytes."""

    name: str
    min_bytes: float
    end_bytes: float
    latency_s: float
    bandwidth_bytes_per_s: float

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


@dataclass(frozen=True)
class Contention:
    """Received bandwidth of a group against the number N of its processes that receive at once."""

    mpi: str
    level: str
    protocol: str
    label: str
    count: np.ndarray
    bandwidth_bytes_per_s: np.ndarray
    interval: np.ndarray  # (len(count), 2): from the profile, or over launches
    oversubscribed: np.ndarray
    fitted: bool
    bound: frozenset[int] = frozenset()  # the N whose value is only a bound, according to the profile

    def straight_line(self) -> np.ndarray:
        """Equation (3) of Thune et al. 2023, with the largest measured value as BW_max."""
        top = self.bandwidth_bytes_per_s.max()
        return maxrate_bandwidth(self.count, top / self.bend(), top)

    def bend(self) -> float:
        """The N at which the line reaches BW_max: BW_max/BW(1)."""
        return float(self.bandwidth_bytes_per_s.max() * self.count[0] / self.bandwidth_bytes_per_s[0])


def pingpong_curves(material: Material) -> list[Curve]:
    """One curve per run, MPI, level and kind of buffer, sorted by level, then flavour."""
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    for run in material.runs:
        for sample in run.samples:
            if sample.kernel == "pingpong" and _size(sample) is not None:
                config = sample.config
                reused = config.get("buffers", "vary") == "reuse"
                groups[(_mpi(sample), str(config.get("level", "")), reused, run.name)].append(sample)
    curves = []
    for (mpi, level, reused, run_name), samples in groups.items():
        several = len({key[3] for key in groups if key[:3] == (mpi, level, reused)}) > 1
        label = (
            labels.flavour(mpi)
            + (", reused buffers" if reused else "")
            + (f" ({run_name})" if several else "")
        )
        curves.append(Curve(mpi, level, label, reused, tuple(_points(samples))))
    return sorted(curves, key=lambda curve: (labels.level_order(curve.level), curve.label))


def _points(samples: Iterable[Sample]) -> list[Point]:
    by_size: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_size[_size(sample)].append(sample)
    points = []
    for size_bytes, group in sorted(by_size.items()):
        times_s = np.concatenate([sample.steady_times_s() for sample in group])
        time_s, _ = over_launches([sample.steady_times_s() for sample in group])
        launches = len({sample.launch for sample in group})
        oversubscribed = any(sample.oversubscribed for sample in group)
        interval_s = time_s.low, time_s.high
        points.append(Point(size_bytes, time_s.value, interval_s, times_s, launches, oversubscribed))
    return points


def fits(material: Material) -> list[Fit]:
    """The ping-pong lines of every profile: its `piecewise_postal` form, or its levels at N = 1."""
    result = []
    for profile, label in labelled_profiles(material):
        for level in sorted(profile.levels, key=labels.level_order):
            form = _pingpong_form(profile, level)
            rows = _form_rows(form) if form else _level_rows(profile, level)
            error = (form or {}).get("held_out_error", profile.levels[level].extra.get("held_out_error"))
            result.append(Fit(profile_mpi(profile), level, label, _segments(rows), number_or_none(error)))
    return result


def _pingpong_form(profile: Profile, level: str) -> dict | None:
    wanted = {"operation": "pingpong", "level": level}
    for form in profile.forms:
        what = form.get("what") if isinstance(form, dict) else None
        if (
            isinstance(what, dict)
            and form.get("form") == "piecewise_postal"
            and wanted.items() <= what.items()
        ):
            return form if _form_rows(form) else None
    return None


def _form_rows(form: dict) -> list[tuple[str, float, float, float]]:
    try:
        rows = [
            (
                str(row.get("name", "")),
                float(row["min_bytes"]),
                float(row["latency_s"]),
                float(row["bandwidth_bytes_per_s"]),
            )
            for row in form["parameters"]["protocols"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    usable = all(np.isfinite(row[1:]).all() and row[2] >= 0 and row[3] > 0 for row in rows)
    return rows if usable else []


def _level_rows(profile: Profile, level: str) -> list[tuple[str, float, float, float]]:
    rows = []
    for protocol in _lines(profile, level):
        counts, bandwidth = protocol.bandwidth_table()
        rows.append((protocol.name, protocol.min_bytes, protocol.latency_s, bandwidth[0] / counts[0]))
    return rows


def _segments(rows: Sequence[tuple[str, float, float, float]]) -> tuple[Segment, ...]:
    ends = [row[1] for row in rows[1:]] + [np.inf]
    return tuple(
        Segment(name, start, end, tau, rate) for (name, start, tau, rate), end in zip(rows, ends, strict=True)
    )


def contentions(material: Material) -> list[Contention]:
    """BW(N) of every profile, level and protocol; for runs without a profile, at their largest size."""
    result = []
    for profile, label in labelled_profiles(material):
        for level in sorted(profile.levels, key=labels.level_order):
            result += [_of_protocol(profile, label, level, protocol) for protocol in _lines(profile, level)]
    fitted = {(item.mpi, item.level) for item in result}
    return result + [item for item in _of_samples(material) if (item.mpi, item.level) not in fitted]


def _lines(profile: Profile, level: str) -> list[Protocol]:
    """The protocols of a level, without those that differ from the previous one only in sender behaviour."""
    protocols = profile.levels[level].protocols
    return [
        protocol for k, protocol in enumerate(protocols) if not k or not protocol.continues(protocols[k - 1])
    ]


def _of_protocol(profile: Profile, label: str, level: str, protocol: Protocol) -> Contention:
    counts, bandwidth = protocol.bandwidth_table()
    bounds = profile_interval(profile, level, protocol.name, "bandwidth_bytes_per_s")
    bounds = bounds if isinstance(bounds, dict) else {}
    pairs = [pair_or_none(bounds.get(str(n))) or (b, b) for n, b in zip(counts, bandwidth, strict=True)]
    over = _numbers_of(protocol, "oversubscribed_n")
    return Contention(
        profile_mpi(profile),
        level,
        protocol.name,
        label,
        counts,
        bandwidth,
        np.array(pairs, dtype=float),
        np.array([int(n) in over for n in counts]),
        True,
        _numbers_of(protocol, "bounded_n") | _numbers_of(protocol, "above_link_n"),
    )


def _numbers_of(protocol: Protocol, key: str) -> frozenset[int]:
    """The N that a protocol lists under `key`; empty if the file has no list there."""
    listed = protocol.extra.get(key, [])
    return (
        frozenset(int(n) for n in listed if number_or_none(n) is not None)
        if isinstance(listed, list)
        else frozenset()
    )


def _of_samples(material: Material) -> list[Contention]:
    groups: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in contention_samples(material):
        groups[(_mpi(sample), str(sample.config.get("level", "")))].append(sample)
    result = []
    for (mpi, level), samples in sorted(groups.items(), key=lambda item: labels.level_order(item[0][1])):
        largest = max(_size(sample) for sample in samples)
        by_count: dict[int, list[Sample]] = defaultdict(list)
        for sample in samples:
            if _size(sample) == largest:
                by_count[int(sample.config["competitors"])].append(sample)
        counts = np.array(sorted(by_count))
        rows = [_launch_bandwidths(by_count[n]) for n in counts]
        over = np.array([any(sample.oversubscribed for sample in by_count[n]) for n in counts])
        table = np.array(rows)
        result.append(
            Contention(mpi, level, "", labels.flavour(mpi), counts, table[:, 0], table[:, 1:], over, False)
        )
    return result


def _launch_bandwidths(samples: Iterable[Sample]) -> Estimate:
    """The received bandwidth and its interval over launches."""
    return over_launches([received_bandwidth([sample]) for sample in samples])[0]


def large_message_protocols(items: Iterable[Contention]) -> list[Contention]:
    """The last protocol of each profile and level: that of large messages."""
    return list({(item.label, item.level): item for item in items}.values())


def contention_samples(material: Material) -> list[Sample]:
    """Contention samples with a size and a number of competitors above zero."""
    return [
        sample
        for run in material.runs
        for sample in run.samples
        if sample.kernel == "contention" and _size(sample) and _whole(sample.config.get("competitors"))
    ]


def rate(size_bytes: float, time_s: float) -> float:
    """Bytes per second; 0 if the clock did not resolve the time."""
    return size_bytes / time_s if time_s > 0 else 0.0


def received_bandwidth(samples: Iterable[Sample]) -> np.ndarray:
    """N*size/time of every iteration, bytes/s received by the group."""
    return np.concatenate(
        [int(s.config["competitors"]) * _size(s) / np.maximum(s.steady_times_s(), 1e-12) for s in samples]
    )


def profile_mpi(profile: Profile) -> str:
    return str(profile.context.get("flavour") or profile.context.get("mpi") or "other")


def labelled_profiles(material: Material) -> list[tuple[Profile, str]]:
    """Each profile with its flavour, and with the name of its file if several share a flavour."""
    names = [profile_mpi(profile) for profile in material.profiles]
    return [
        (
            profile,
            ("the profile" if name == "other" else labels.flavour(name))
            + (f" ({material.name_of('profiles', k) or k + 1})" if names.count(name) > 1 else ""),
        )
        for k, (name, profile) in enumerate(zip(names, material.profiles, strict=True))
    ]


def profile_interval(profile: Profile, level: str, protocol: str, key: str):
    """intervals[level][protocol][key] of a profile, or None if the file does not have it."""
    value = profile.intervals
    for name in (level, protocol, key):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def pair_or_none(value) -> tuple[float, float] | None:
    if isinstance(value, list | tuple) and len(value) == 2 and None not in map(number_or_none, value):
        return float(value[0]), float(value[1])
    return None


def number_or_none(value) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    return None


def _mpi(sample: Sample) -> str:
    return str(sample.config.get("mpi", "other"))


def _size(sample: Sample) -> int | None:
    size = sample.config.get("size_bytes")
    return int(size) if number_or_none(size) is not None and size >= 0 else None


def _whole(value) -> bool:
    return number_or_none(value) is not None and value >= 1
