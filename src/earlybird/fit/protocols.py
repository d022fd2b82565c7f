"""Latency and bandwidths of every protocol of a level, their intervals, and their error on unseen points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from earlybird.fit.observations import LevelTimes, median_over_launches
from earlybird.fit.switches import Segmentation, segmentations
from earlybird.models.regression import fit_line, fit_slope

# The minimum share of the bandwidth term in the time at a protocol's largest size. If times do not grow with
# size (short messages) the bandwidth is unknown: this keeps it finite and its effect within 1 %.
MIN_BANDWIDTH_SHARE = 0.01
# A latency that does not suit some N must not lead to an absurd bandwidth: given that latency, BW(N) is at
# most this many times that of the line of this N alone.
MAX_BANDWIDTH_RATIO = 2.0
CONFIDENCE = 0.95
NUM_RESAMPLES = 200
SEED = 20230


@dataclass(frozen=True)
class Lines:
    """The lines time = latency_s[q] + slope_s_per_byte[q, k] * size for protocol q and number of competitors
    k.

    Attributes
    ----------
    starts : index of the first size of each protocol.
    latency_s : (..., Q) seconds.
    slope_s_per_byte : (..., Q, K); BW(N) = N / slope; NaN where a protocol has no measurement of that N.
    bounded : (..., Q, K) whether the slope is one of the two bounds above and not fitted.
    """

    starts: tuple[int, ...]
    latency_s: np.ndarray
    slope_s_per_byte: np.ndarray
    bounded: np.ndarray

    def predict(self, size_bytes: np.ndarray) -> np.ndarray:
        """Return (..., K, S) seconds."""
        q = np.searchsorted(self.starts, np.arange(len(size_bytes)), side="right") - 1
        slope = np.moveaxis(self.slope_s_per_byte[..., q, :], -1, -2)
        return self.latency_s[..., None, q] + slope * size_bytes


def fit_lines(
    level: LevelTimes, starts: Sequence[int], *, paper: bool = False, time_s: np.ndarray | None = None
) -> Lines:
    """Fit every protocol of a level to (..., K, S) times, by default the medians over its launches.

    The latency comes from the fit of N = 2 (Thune et al. 2023, section II-C), or of N = 1, or of the
    smallest N, among those not oversubscribed if there are any. By default the fit minimises relative errors.
    BW(1) = 1/slope of the line of N = 1 with its own intercept: a single message goes one way and pairs go
    both ways at once, so the latency of N = 2 does not suit it. The slope of N >= 2 is fitted for the given
    latency, so that both are consistent; BW(N) stays below MAX_BANDWIDTH_RATIO times that of the line of
    this N alone. With `paper` the fit minimises errors in seconds and every slope has its own intercept.
    """
    times = level.median_s() if time_s is None else time_s
    medians = level.median_s()
    latencies, slopes, bounded = [], [], []
    for first, end in _bounds(starts, len(level.size_bytes)):
        sizes, part = level.size_bytes[first:end], times[..., first:end]
        k = _latency_row(level, medians[:, first:end])
        intercepts, own_slopes = fit_line(sizes, part, relative=not paper)
        latency = intercepts[..., k]
        given = fit_slope(
            sizes, part, np.broadcast_to(latency[..., None], part.shape[:-1]), relative=not paper
        )
        own_line = np.isfinite(own_slopes) & (paper | (level.n == 1))
        free = np.where(own_line, own_slopes, given)
        least = np.where(own_line, 0.0, np.nan_to_num(own_slopes) / MAX_BANDWIDTH_RATIO)
        slope = np.maximum(free, np.maximum(least, _least_slope(sizes, part)))
        latencies.append(latency)
        slopes.append(slope)
        bounded.append(slope > free)
    return Lines(
        tuple(starts),
        np.stack(latencies, axis=-1),
        np.stack(slopes, axis=-2),
        np.stack(bounded, axis=-2),
    )


def has_line(time_s: np.ndarray) -> bool:
    """Return whether some row of (K, S) times has the two sizes that a line needs."""
    return bool((np.isfinite(time_s).sum(axis=1) >= 2).any())


def relative_errors(lines: Lines, level: LevelTimes) -> np.ndarray:
    """Return the relative errors at the measured points, one after another."""
    return _finite_errors(lines.predict(level.size_bytes), level.median_s())


def kept_switches_error(level: LevelTimes, starts: Sequence[int], *, paper: bool = False) -> float | None:
    """Return the median relative error at sizes left out one at a time, with the switches that all sizes
    give.

    It decides on further segments; None if no fit is left.
    """
    medians = level.median_s()
    left_out = np.eye(len(level.size_bytes), dtype=bool)
    with np.errstate(invalid="ignore"):
        lines = fit_lines(level, starts, paper=paper, time_s=np.where(left_out[:, None, :], np.nan, medians))
    predicted = np.einsum("sks->ks", lines.predict(level.size_bytes))
    return _median(_finite_errors(predicted, medians))


def held_out_size_errors(
    level: LevelTimes,
    divisions: Sequence[Segmentation],
    thresholds_bytes: Mapping[str, int] | None = None,
    *,
    paper: bool = False,
) -> list[float | None]:
    """Return the median relative error at sizes left out one at a time, per division; None if no fit is left.

    The switches are refitted without the left-out size, as many as the division has. If the other sizes are
    too few for that many, the switches of the division stay.
    """
    medians = level.median_s()
    errors: list[list[np.ndarray]] = [[] for _ in divisions]
    for left_out in range(len(level.size_bytes)):
        rest = _without_size(level, left_out)
        rest_s = np.delete(medians, left_out, axis=1)
        if not has_line(rest_s):
            continue
        found = {one.num_segments: one for one in segmentations(rest.size_bytes, rest_s, thresholds_bytes)}
        size_bytes = level.size_bytes[left_out]
        for k, division in enumerate(divisions):
            known = found.get(division.num_segments, division)
            starts = np.searchsorted(rest.size_bytes, known.min_bytes)
            lines = fit_lines(rest, starts, paper=paper)
            q = np.searchsorted(known.min_bytes, size_bytes, side="right") - 1
            predicted_s = lines.latency_s[q] + lines.slope_s_per_byte[q] * size_bytes
            errors[k].append(_finite_errors(predicted_s, medians[:, left_out]))
    return [_median(np.concatenate(found)) if found else None for found in errors]


def held_out_n_error(level: LevelTimes, starts: Sequence[int], *, paper: bool = False) -> float | None:
    """Return the median relative error at inner N left out one at a time and interpolated; None below four
    N.
    """
    if len(level.n) < 4:
        return None
    medians = level.median_s()
    errors = []
    for k in range(1, len(level.n) - 1):
        others = np.arange(len(level.n)) != k
        rest = LevelTimes(
            level.name,
            level.n[others],
            level.size_bytes,
            level.time_s[:, others],
            level.oversubscribed[others],
        )
        if not all(
            has_line(medians[others, first:end]) for first, end in _bounds(starts, len(level.size_bytes))
        ):
            continue
        lines = fit_lines(rest, starts, paper=paper)
        slope = [
            level.n[k] / _interpolate(level.n[k], rest.n, rest.n / row) for row in lines.slope_s_per_byte
        ]
        between = replace(lines, slope_s_per_byte=np.array(slope)[:, None])
        errors.append(_finite_errors(between.predict(level.size_bytes)[0], medians[k]))
    return _median(np.concatenate(errors)) if errors else None


def resample(
    level: LevelTimes,
    starts: Sequence[int],
    *,
    paper: bool = False,
    count: int = NUM_RESAMPLES,
    seed: int = SEED,
) -> Lines | None:
    """Fit `count` resamples of the launches (a leading axis), with the same switches; None if no two
    launches measured the same set of N.

    Launches are drawn with replacement among those that measured the same set of N: a launch is the random
    factor, and its iterations are not independent.
    """
    launches = _drawn_launches(level, count, np.random.default_rng(seed))
    if launches is None:
        return None
    return fit_lines(level, starts, paper=paper, time_s=median_over_launches(level.time_s[launches]))


def num_launches(level: LevelTimes) -> np.ndarray:
    """Return the (K,) numbers of launches that measured each N."""
    return np.isfinite(level.time_s).any(axis=2).sum(axis=0)


def interval(resamples: np.ndarray) -> list[float] | None:
    """Return the central `CONFIDENCE` interval of (R,) resampled values; None if some could not be fitted."""
    if not np.isfinite(resamples).all():
        return None
    margin = (1 - CONFIDENCE) / 2
    return [float(bound) for bound in np.quantile(resamples, [margin, 1 - margin])]


def _without_size(level: LevelTimes, s: int) -> LevelTimes:
    return replace(
        level, size_bytes=np.delete(level.size_bytes, s), time_s=np.delete(level.time_s, s, axis=2)
    )


def _drawn_launches(level, count, generator):
    strata: dict[bytes, list[int]] = {}
    for launch, measured in enumerate(np.isfinite(level.time_s).any(axis=2)):
        strata.setdefault(measured.tobytes(), []).append(launch)
    if all(len(members) < 2 for members in strata.values()):
        return None
    return np.concatenate(
        [generator.choice(members, (count, len(members))) for members in strata.values()], axis=1
    )


def _bounds(starts, num_sizes):
    return list(zip(starts, (*starts[1:], num_sizes), strict=True))


def latency_n(level: LevelTimes, starts: Sequence[int]) -> list[int]:
    """Return the N that gives the latency of each protocol, see `fit_lines`."""
    medians = level.median_s()
    return [
        int(level.n[_latency_row(level, medians[:, first:end])])
        for first, end in _bounds(starts, len(level.size_bytes))
    ]


def _latency_row(level, part):
    usable = np.flatnonzero(np.isfinite(part).sum(axis=1) >= 2)
    return min(usable, key=lambda k: (level.oversubscribed[k], level.n[k] != 2, level.n[k]))


def _least_slope(size_bytes, time_s):
    """Return the (..., K) slopes whose bandwidth term is MIN_BANDWIDTH_SHARE of the time at the largest size
    present.
    """
    present = np.isfinite(time_s) & (size_bytes > 0)
    last = np.where(present, size_bytes, 0).argmax(axis=-1)
    largest = np.where(present.any(axis=-1), size_bytes[last], np.nan)
    time_there = np.take_along_axis(time_s, last[..., None], axis=-1)[..., 0]
    return MIN_BANDWIDTH_SHARE * time_there / largest


def _interpolate(n, counts, bandwidths):
    known = np.isfinite(bandwidths)
    return np.interp(n, counts[known], bandwidths[known])


def _finite_errors(predicted_s, measured_s):
    errors = np.abs(predicted_s - measured_s) / measured_s
    return errors[np.isfinite(errors)]


def _median(errors):
    return float(np.median(errors)) if len(errors) else None
