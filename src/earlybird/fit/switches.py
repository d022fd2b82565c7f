"""Find the message sizes at which protocols change, common to every number of competitors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from earlybird.models.regression import fit_line

MAX_SEGMENTS = 3
# Two points always lie on a line, so a segment needs a third one to have an error.
MIN_SIZES = 3
# Errors below 1 % do not count: finer structure is not a protocol switch.
ERROR_FLOOR = 0.01
# A further switch must reduce the root-mean-square relative error to this share of that with fewer switches.
MAX_REMAINING_ERROR = 0.75


@dataclass(frozen=True)
class Segmentation:
    """The best division of a level's sizes into `num_segments` segments.

    Attributes
    ----------
    starts : index of the first size of each segment; starts[0] is 0.
    min_bytes : beginning of each segment: 0, then its first measured size or the threshold of the library.
    reported_by : the control variable that gives the beginning of each segment; None if the times give it.
    num_parameters : an intercept and a slope per segment and series, and every switch that the library does
        not report.
    criterion : n ln(mean squared relative error + ERROR_FLOOR**2) + num_parameters ln n; lower is better.
    rms_error : root mean squared relative error.
    """

    starts: tuple[int, ...]
    min_bytes: tuple[int, ...]
    reported_by: tuple[str | None, ...]
    num_parameters: int
    criterion: float
    rms_error: float

    @property
    def num_segments(self) -> int:
        return len(self.starts)


def segmentations(
    size_bytes: np.ndarray, time_s: np.ndarray, thresholds_bytes: Mapping[str, int] | None = None
) -> list[Segmentation]:
    """Return the best division into 1, 2 and 3 segments, if the sizes allow them, by an exhaustive search.

    Parameters
    ----------
    size_bytes : (S,) ascending.
    time_s : (K, S) seconds, one row per number of competitors, NaN where missing. Each row has its own line
        in every segment; the switches are common.
    thresholds_bytes : control variable -> switch reported by the library. It does not count as a parameter.
    """
    cost, parameters = _interval_costs(size_bytes, time_s)
    count = int(np.isfinite(time_s).sum())
    best = []
    for num_segments in range(1, MAX_SEGMENTS + 1):
        candidates = [
            _segmentation((0, *cuts), size_bytes, cost, parameters, count, thresholds_bytes or {})
            for cuts in combinations(range(1, len(size_bytes)), num_segments - 1)
            if _long_enough((0, *cuts), time_s)
        ]
        if candidates:
            best.append(min(candidates, key=lambda candidate: candidate.criterion))
    return best


def choose(candidates: Sequence[Segmentation], errors: Sequence[float | None]) -> Segmentation:
    """Return the division to use: more segments only if they fit noticeably better and predict no worse.

    `errors` are those at left-out sizes, one per candidate, None if unknown.
    """
    chosen, chosen_error = candidates[0], errors[0]
    for candidate, error in zip(candidates[1:], errors[1:], strict=True):
        predicts = error is None or chosen_error is None or error <= chosen_error
        noticeable = candidate.rms_error <= MAX_REMAINING_ERROR * chosen.rms_error
        if candidate.criterion < chosen.criterion and noticeable and predicts:
            chosen, chosen_error = candidate, error
    return chosen


def protocol_names(num_segments: int) -> tuple[str, ...]:
    """Return the names of the protocols from small to large messages; the last is always rendezvous."""
    return ("short", "eager", "rendezvous")[MAX_SEGMENTS - num_segments :]


def _interval_costs(size_bytes, time_s):
    """Return (S, S+1) sums of squared relative errors and numbers of parameters of lines through [first,
    end).
    """
    num_sizes = len(size_bytes)
    cost = np.full((num_sizes, num_sizes + 1), np.inf)
    parameters = np.zeros((num_sizes, num_sizes + 1), dtype=int)
    for first in range(num_sizes):
        ends = np.arange(first + 1, num_sizes + 1)
        inside = np.arange(first, num_sizes) < ends[:, None]
        times = np.where(inside[:, None, :], time_s[None, :, first:], np.nan)
        intercept, slope = fit_line(size_bytes[first:], times)
        error = 1 - (intercept[..., None] + slope[..., None] * size_bytes[first:]) / times
        cost[first, ends] = np.nansum(error**2, axis=(1, 2))
        parameters[first, ends] = np.minimum(np.isfinite(times).sum(axis=2), 2).sum(axis=1)
    return cost, parameters


def _long_enough(starts, time_s):
    if len(starts) == 1:
        return True
    bounds = (*starts, time_s.shape[1])
    return all(
        np.isfinite(time_s[:, first:end]).sum(axis=1).max() >= MIN_SIZES for first, end in pairwise(bounds)
    )


def _segmentation(starts, size_bytes, cost, parameters, count, thresholds_bytes):
    ends = (*starts[1:], len(size_bytes))
    mean_square = sum(cost[first, end] for first, end in zip(starts, ends, strict=True)) / count
    reported = [reported_switch(size_bytes[k - 1], size_bytes[k], thresholds_bytes) for k in starts[1:]]
    num_parameters = sum(
        parameters[first, end] for first, end in zip(starts, ends, strict=True)
    ) + reported.count(None)
    min_bytes = [
        int(size_bytes[k]) if switch is None else switch[1]
        for k, switch in zip(starts[1:], reported, strict=True)
    ]
    names = (None, *(switch and switch[0] for switch in reported))
    criterion = count * np.log(mean_square + ERROR_FLOOR**2) + num_parameters * np.log(count)
    return Segmentation(
        starts, (0, *min_bytes), names, int(num_parameters), float(criterion), float(np.sqrt(mean_square))
    )


def reported_switch(
    last_before: int, first_after: int, thresholds_bytes: Mapping[str, int]
) -> tuple[str, int] | None:
    """Return the variable that places a switch between two neighbouring sizes, and its size; None if there is
    none.

    Libraries differ in whether a message of the threshold size uses the old protocol; its measurement
    decides.
    """
    for name, threshold in thresholds_bytes.items():
        if last_before <= threshold <= first_after:
            return name, int(max(threshold, last_before + 1))
    return None
