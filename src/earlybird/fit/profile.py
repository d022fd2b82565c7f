"""Fit observations to a profile: levels with their intervals, ping-pong curves and warnings."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.kernels import PINGPONG
from earlybird.data.measure_commands import MEASURED_WITH
from earlybird.data.profile import REUSED, Level, Profile, Protocol, Replicate
from earlybird.data.results import results_to_json
from earlybird.data.units import format_bandwidth
from earlybird.fit import collective, completion, pipelined, protocols, switches
from earlybird.fit.collective_comparison import COMPLETION, compare
from earlybird.fit.collective_samples import Collectives
from earlybird.fit.launches import LINK_TOLERANCE
from earlybird.fit.observations import (
    LevelTimes,
    Observations,
    level_times,
    measure_hint,
    pingpong_times,
    select,
)
from earlybird.fit.protocols import Lines

MAX_REPLICATES = 50
# Launches are bimodal on small machines: with fewer launches, intervals are unreliable.
FEW_LAUNCHES = 5
# From here on, BW(1) against the bandwidth of a single message is worth a warning.
_MUCH_FASTER = 1.5
# From this share of a virtual link's rate on, the link counts as the limit, even with shared cores.
LINK_LIMIT = 0.9


@dataclass(frozen=True)
class Choice:
    """The quality of one number of segments on a level.

    Attributes
    ----------
    in_sample_error : median relative error at the points of the fit.
    kept_switches_error : median relative error at left-out sizes, with the same switches; it decides on
        further segments.
    held_out_error : median relative error at left-out sizes, with refitted switches; both are None if no size
        can be left out.
    """

    level: str
    segmentation: switches.Segmentation
    chosen: bool
    in_sample_error: float
    kept_switches_error: float | None
    held_out_error: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "level": self.level,
            "segments": self.segmentation.num_segments,
            "min_bytes": list(self.segmentation.min_bytes),
            "parameters": self.segmentation.num_parameters,
            "criterion": self.segmentation.criterion,
            "in_sample_error": self.in_sample_error,
            "kept_switches_error": self.kept_switches_error,
            "held_out_error": self.held_out_error,
            "chosen": self.chosen,
        }


@dataclass(frozen=True)
class _Division:
    candidates: list[switches.Segmentation]
    kept_switches_errors: list[float | None]

    @property
    def chosen(self) -> switches.Segmentation:
        return switches.choose(self.candidates, self.kept_switches_errors)


@dataclass(frozen=True)
class _FittedLevel:
    times: LevelTimes
    level: Level
    intervals: dict[str, Any]
    replicates: list[Level]
    warnings: list[str]


def fit_profile(
    observations: Observations, *, paper: bool = False, collective_times: str = COMPLETION
) -> Profile:
    """Fit everything the observations allow.

    Parameters
    ----------
    observations : times of one context, see `observations.read_runs`.
    paper : ordinary least squares with a separate intercept for every N, as in Thune et al. 2023.
    collective_times : the times on which forms of collectives are compared, `completion` or `mean over
        ranks`; the profile always predicts completion.

    Returns
    -------
    Profile with levels (`extra["held_out_error"]`: median relative error at sizes left out of the fit,
    switches included,
    `extra["held_out_error_n"]`: at left-out numbers of competitors; no levels if there are only
    collectives), forms (ping-pong curves, pipelines, collectives), intervals and replicates (resampled
    launches) and `extra["warnings"]`.

    Raises
    ------
    InputError if no level has two message sizes and no collective has enough points for a form.
    """
    usable, warnings = _usable_levels(observations)
    warnings = [*observations.warnings, *warnings]
    waiting = completion.find_waiting(observations.completions)
    fitted = [
        _fit_level(
            times,
            observations.thresholds_bytes.get(times.name, {}),
            waiting.get(times.name),
            observations.link_bytes_per_s if times.name == "inter_node" else None,
            paper,
            _reused_s(observations, times.name),
        )
        for times in usable
    ]
    for part in fitted:
        warnings += part.warnings
    forms = _pingpong_forms(observations, paper)
    warnings += [text for part in fitted for text in _extrapolation_warnings(part.level, forms)]
    warnings += [text for part in fitted for text in _single_message_warnings(part.level, forms)]
    warnings += completion.warnings([part.level for part in fitted], waiting, observations.launch)
    warnings += _convergence_warnings(observations, usable)
    warnings += pipelined.warnings(observations.pipelines)
    forms += pipelined.pipeline_forms(observations.pipelines, observations.receivers)
    forms += observations.packings
    warnings += collective.warnings(observations.collectives)
    of_collectives = _collective_forms(observations.collectives, collective_times)
    warnings += [f"{form.operation}: {form.doubt}" for form in of_collectives if form.doubt]
    forms += of_collectives
    if not fitted and not forms:
        raise InputError(
            f"nothing to fit: every algorithm was measured at fewer than {collective.MIN_POINTS} "
            "points, too few for a model; measure more --sizes or --ranks"
        )
    method = "paper" if paper else "relative"
    return Profile(
        levels={part.level.name: part.level for part in fitted},
        id=_identity(observations, method),
        machine=observations.machine,
        context=observations.context,
        runs=observations.runs,
        forms=tuple(forms),
        intervals={part.level.name: part.intervals for part in fitted if part.intervals},
        replicates=_replicates(fitted),
        extra={
            "fit": {
                "method": method,
                "confidence": protocols.CONFIDENCE,
                "resamples": protocols.NUM_RESAMPLES,
            },
            "warnings": warnings,
            MEASURED_WITH: observations.launch.to_json(),
        }
        | ({"results": results_to_json(observations.results)} if observations.results else {}),
    )


def compare_segmentations(observations: Observations, *, paper: bool = False) -> list[Choice]:
    """Return every level with 1, 2 and 3 segments: the candidates of `fit_profile` and its choice."""
    choices = []
    for times in _usable_levels(observations)[0]:
        thresholds_bytes = observations.thresholds_bytes.get(times.name, {})
        division = _divide(times, thresholds_bytes, paper)
        held_out = protocols.held_out_size_errors(times, division.candidates, thresholds_bytes, paper=paper)
        for candidate, kept_switches_error, held_out_error in zip(
            division.candidates, division.kept_switches_errors, held_out, strict=True
        ):
            lines = protocols.fit_lines(times, candidate.starts, paper=paper)
            choices.append(
                Choice(
                    times.name,
                    candidate,
                    candidate is division.chosen,
                    float(np.median(protocols.relative_errors(lines, times))),
                    kept_switches_error,
                    held_out_error,
                )
            )
    return choices


def _usable_levels(observations):
    levels = level_times(observations.table)
    usable = [times for times in levels if protocols.has_line(times.median_s())]
    if not usable and not len(observations.collectives):
        raise InputError(
            "every level was measured at one message size only, which does not separate latency from "
            "bandwidth; "
            f"measure at least two sizes: {measure_hint(observations.launch)}"
        )
    return usable, [
        f"{times.name}: one message size does not separate latency from bandwidth; the level is left out"
        for times in levels
        if times not in usable
    ]


def _divide(times: LevelTimes, thresholds_bytes: Mapping[str, int], paper: bool) -> _Division:
    candidates = switches.segmentations(times.size_bytes, times.median_s(), thresholds_bytes)
    errors = [protocols.kept_switches_error(times, candidate.starts, paper=paper) for candidate in candidates]
    return _Division(candidates, errors)


def _fit_level(
    times: LevelTimes,
    thresholds_bytes: Mapping[str, int],
    waiting: completion.Waiting | None,
    link_bytes_per_s: float | None,
    paper: bool,
    reused_s: dict[str, dict[str, float]],
) -> _FittedLevel:
    chosen = _divide(times, thresholds_bytes, paper).chosen
    lines = protocols.fit_lines(times, chosen.starts, paper=paper)
    extra = _level_extra(times, chosen, thresholds_bytes, paper)
    extra |= {REUSED: reused_s} if reused_s else {}
    level = _level(times, chosen, lines, extra)
    resampled = protocols.resample(times, chosen.starts, paper=paper)
    level = _with_bounds_of_link(level, link_bytes_per_s)
    warnings = _level_warnings(times, level, link_bytes_per_s, has_intervals=resampled is not None)
    # Replicates get the same division: whether senders wait does not depend on the drawn launches.
    level, *replicates = (
        completion.with_senders(one, waiting, thresholds_bytes)
        for one in (
            level,
            *(_level(times, chosen, one, {}) for one in (_drawn(resampled, lines) if resampled else ())),
        )
    )
    intervals = _intervals(times, chosen, resampled) if resampled else {}
    return _FittedLevel(times, level, intervals, replicates, warnings)


def _reused_s(observations: Observations, level: str) -> dict[str, dict[str, float]]:
    """Return the time of a message whose buffers a cache holds, by N and by size."""
    rows = observations.reused
    rows = rows[(rows.level == level) & ~rows.oversubscribed]
    medians = rows.groupby(["n", "size_bytes"]).time_s.median()
    times_s: dict[str, dict[str, float]] = {}
    for (n, size_bytes), time_s in medians.items():
        times_s.setdefault(str(n), {})[str(size_bytes)] = float(time_s)
    return times_s


def _level_extra(times, chosen, thresholds_bytes, paper):
    (error,) = protocols.held_out_size_errors(times, [chosen], thresholds_bytes, paper=paper)
    errors = {
        "held_out_error": error,
        "held_out_error_n": protocols.held_out_n_error(times, chosen.starts, paper=paper),
    }
    extra = {key: value for key, value in errors.items() if value is not None}
    return extra | {
        "size_bytes": [int(times.size_bytes[0]), int(times.size_bytes[-1])],
        "launches": int(protocols.num_launches(times).min()),
    }


def _level(times: LevelTimes, chosen: switches.Segmentation, lines: Lines, extra: dict[str, Any]) -> Level:
    return Level(
        times.name,
        tuple(_protocol(times, chosen, lines, q) for q in range(chosen.num_segments)),
        extra,
    )


def _protocol(times, chosen, lines, q):
    name = switches.protocol_names(chosen.num_segments)[q]
    measured = [
        (int(n), float(n / slope), bool(over))
        for n, slope, over in zip(times.n, lines.slope_s_per_byte[q], times.oversubscribed, strict=True)
        if np.isfinite(slope)
    ]
    extra: dict[str, Any] = {"latency_n": protocols.latency_n(times, chosen.starts)[q]}
    if q:
        first = chosen.starts[q]
        extra["begins_between_bytes"] = [int(size) for size in times.size_bytes[first - 1 : first + 1]]
    if chosen.reported_by[q]:
        extra["threshold"] = chosen.reported_by[q]
    if oversubscribed := [n for n, _, over in measured if over]:
        extra["oversubscribed_n"] = oversubscribed
    if lines.bounded[q].any():
        extra["bounded_n"] = [int(n) for n in times.n[lines.bounded[q]]]
    bandwidth = {n: rate for n, rate, _ in measured}
    return Protocol(
        name=name,
        min_bytes=chosen.min_bytes[q],
        latency_s=float(lines.latency_s[q]),
        bandwidth_bytes_per_s=bandwidth,
        extra=extra,
    )


def _intervals(times, chosen, resampled):
    enough = protocols.num_launches(times) >= 2
    latency_n = protocols.latency_n(times, chosen.starts)
    result = {}
    for q, name in enumerate(switches.protocol_names(chosen.num_segments)):
        bounds = {
            str(n): protocols.interval(n / resampled.slope_s_per_byte[:, q, k])
            for k, n in enumerate(times.n)
            if enough[k]
        }
        entry: dict[str, Any] = {
            "bandwidth_bytes_per_s": {n: bound for n, bound in bounds.items() if bound is not None}
        }
        if enough[list(times.n).index(latency_n[q])]:
            latency = protocols.interval(resampled.latency_s[:, q])
            entry |= {"latency_s": latency} if latency is not None else {}
        result[name] = entry
    return result


def _drawn(resampled: Lines, lines: Lines) -> list[Lines]:
    """Return the single draws of the resamples, with the fitted value if a draw has none."""
    return [
        Lines(
            lines.starts,
            np.where(np.isfinite(latency), latency, lines.latency_s),
            np.where(np.isfinite(slope), slope, lines.slope_s_per_byte),
            bounded,
        )
        for latency, slope, bounded in zip(
            resampled.latency_s[:MAX_REPLICATES],
            resampled.slope_s_per_byte[:MAX_REPLICATES],
            resampled.bounded[:MAX_REPLICATES],
            strict=True,
        )
    ]


def _replicates(fitted: list[_FittedLevel]) -> tuple[Replicate, ...]:
    """Return all levels of each draw together; a level without resamples keeps its fitted values."""
    count = max((len(part.replicates) for part in fitted), default=0)
    return tuple(
        Replicate({part.level.name: part.replicates[k] if part.replicates else part.level for part in fitted})
        for k in range(count)
    )


def _collective_forms(collectives: Collectives, times: str) -> list[CollectiveForm]:
    return [
        replace(
            form,
            extra=dict(form.extra)
            | {
                "alternatives": compare(
                    collectives,
                    form.operation,
                    form.algorithm,
                    form.mpi,
                    times,
                    judged if times == COMPLETION else None,
                )
            },
        )
        for form, judged in collective.collective_forms(collectives)
    ]


def _pingpong_forms(observations: Observations, paper: bool) -> list[Any]:
    """Fit ping-pongs of a single pair, with separate switches: they cover more sizes than contention data."""
    forms = []
    for times in pingpong_times(observations.table):
        if not protocols.has_line(times.median_s()):
            continue
        thresholds_bytes = observations.thresholds_bytes.get(times.name, {})
        chosen = _divide(times, thresholds_bytes, paper).chosen
        lines = protocols.fit_lines(times, chosen.starts, paper=paper)
        (error,) = protocols.held_out_size_errors(times, [chosen], thresholds_bytes, paper=paper)
        form = {
            "what": {"operation": PINGPONG.name, "level": times.name},
            "form": "piecewise_postal",
            "parameters": {
                "protocols": [
                    {
                        "name": name,
                        "min_bytes": start,
                        "latency_s": float(latency),
                        "bandwidth_bytes_per_s": float(1 / slope),
                    }
                    for name, start, latency, slope in zip(
                        switches.protocol_names(chosen.num_segments),
                        chosen.min_bytes,
                        lines.latency_s,
                        lines.slope_s_per_byte[:, 0],
                        strict=True,
                    )
                ]
            },
            "range": {"size_bytes": [int(times.size_bytes[0]), int(times.size_bytes[-1])]},
            "held_out_error": error,
        }
        forms.append(form | ({"oversubscribed": True} if times.oversubscribed[0] else {}))
    return forms


def _with_bounds_of_link(level: Level, link_bytes_per_s: float | None) -> Level:
    """Mark `level` at every N with a BW(N) above the rate of a virtual link: small messages pass in its token
    bucket or wait in a buffer, so that their times hardly grow with size.
    """
    if link_bytes_per_s is None:
        return level
    protocols = []
    for protocol in level.protocols:
        counts, rates = protocol.bandwidth_table()
        above = counts[rates > (1 + LINK_TOLERANCE) * link_bytes_per_s].tolist()
        extra = {**protocol.extra, "above_link_n": above} if above else protocol.extra
        protocols.append(replace(protocol, extra=extra))
    return replace(level, protocols=tuple(protocols))


def _oversubscription_warning(times: LevelTimes, link_bytes_per_s: float | None) -> str:
    crowded = times.n[times.oversubscribed]
    text = f"{times.name}: N = {', '.join(map(str, crowded))} measured with more ranks than cores"
    time_s = times.median_s()[times.oversubscribed]
    largest = np.isfinite(time_s).cumsum(axis=1).argmax(axis=1)
    rates = crowded * times.size_bytes[largest] / time_s[np.arange(len(crowded)), largest]
    if link_bytes_per_s is None or (rates < LINK_LIMIT * link_bytes_per_s).any():
        return f"{text}, which measures the scheduler too"
    return (
        f"{text}; large messages still fill the link ({format_bandwidth(rates.min())} or more of "
        f"{format_bandwidth(link_bytes_per_s)}), so their bandwidth is that of the link, while times of "
        "small "
        "messages include the scheduler"
    )


def _level_warnings(
    times: LevelTimes, level: Level, link_bytes_per_s: float | None, *, has_intervals: bool
) -> list[str]:
    warnings = []
    if times.oversubscribed.any():
        warnings.append(_oversubscription_warning(times, link_bytes_per_s))
    fewest = int(protocols.num_launches(times).min())
    if not has_intervals:
        reason = "one launch only" if len(times.time_s) < 2 else "no two launches measured the same set of N"
        warnings.append(f"{times.name}: {reason}, so no intervals; measure at least {FEW_LAUNCHES} launches")
    elif fewest < FEW_LAUNCHES:
        warnings.append(
            f"{times.name}: some points have {labels.counted(fewest, 'launch', 'launches')}, so intervals "
            f"are rough; measure at least {FEW_LAUNCHES}"
        )
    for protocol in level.protocols:
        missing = sorted(set(times.n.tolist()) - set(protocol.bandwidth_bytes_per_s))
        if missing:
            which = ", ".join(map(str, missing))
            warnings.append(f"{times.name}: the {protocol.name} protocol was not measured at N = {which}")
        if bounded := protocol.extra.get("bounded_n"):
            which = ", ".join(map(str, bounded))
            warnings.append(
                f"{times.name}: the times of the {protocol.name} protocol do not determine BW at N = "
                f"{which}; "
                "the value is a bound"
            )
        if above := protocol.extra.get("above_link_n"):
            which = ", ".join(f"{n} ({format_bandwidth(protocol.bandwidth_bytes_per_s[n])})" for n in above)
            warnings.append(
                f"{times.name}: BW of the {protocol.name} protocol at N = {which} is above the rate of "
                f"the link ({format_bandwidth(link_bytes_per_s)}): messages this small fit into a buffer "
                "or the token bucket of the link, and only their latency counts; the value is a bound, not "
                "the bandwidth of the link"
            )
    return warnings


def _extrapolation_warnings(level: Level, forms) -> list[str]:
    """Return warnings of protocols that ping-pongs show below the smallest size of the times of the level."""
    smallest = level.extra["size_bytes"][0]
    unseen = [
        protocol["min_bytes"]
        for form in forms
        if form["what"]["level"] == level.name
        for protocol in form["parameters"]["protocols"]
        if 0 < protocol["min_bytes"] <= smallest
    ]
    if not unseen:
        return []
    return [
        f"{level.name}: ping-pongs switch protocol at {max(unseen)} B, but contention was measured from "
        f"{smallest} B on; smaller messages are extrapolated: measure contention at smaller sizes"
    ]


def _single_message_warnings(level: Level, forms) -> list[str]:
    """Return a warning if messages of a pair that follow each other are much faster than that of a
    ping-pong.
    """
    for form in forms:
        if form["what"]["level"] != level.name:
            continue
        single = form["parameters"]["protocols"][-1]["bandwidth_bytes_per_s"]
        following = level.protocols[-1].bandwidth_bytes_per_s.get(1, 0.0)
        if following > _MUCH_FASTER * single:
            return [
                f"{level.name}: a single message moves {format_bandwidth(single)}, messages of a pair that "
                f"follow each other {format_bandwidth(following)}, which predictions use: ranks with one "
                f"message may take up to {following / single:.1f} times as long"
            ]
    return []


def _convergence_warnings(observations, usable):
    used = {times.name for times in usable}
    counted = [select(rows) for name, rows in observations.table.groupby("level") if name in used]
    total = sum(len(rows) for rows in counted)
    unsteady = sum(int((~rows.converged).sum()) for rows in counted)
    return [f"the fit uses {total} samples, {unsteady} of them not converged"] if unsteady else []


def _identity(observations, method):
    tables = [one.to_csv(index=False) for one in (observations.table, observations.completions)]
    if len(observations.pipelines):
        tables.append(observations.pipelines.to_csv(index=False))
    if len(observations.collectives):
        tables.append(observations.collectives.table.to_csv(index=False))
    text = json.dumps([method, list(observations.runs), *tables])
    return f"fit-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
