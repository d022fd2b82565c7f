"""Tables with the numbers of the figures of chapters 2 to 4."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from earlybird.data import labels
from earlybird.data.profile import Protocol
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.report.curves import (
    Contention,
    Curve,
    Fit,
    labelled_profiles,
    pair_or_none,
    profile_interval,
    rate,
)
from earlybird.report.exchanges import Exchange
from earlybird.report.material import Material
from earlybird.report.parts import Table, few

BRIEF_SIZES = 7  # sizes per curve in the terminal
MAX_ROWS = 500  # rows of a per-rank table; the slowest ranks are kept


def points_table(curves: Sequence[Curve]) -> Table:
    rows = [
        [
            curve.label,
            labels.level(curve.level),
            format_bytes(p.size_bytes),
            format_seconds(p.median_s),
            f"{format_seconds(p.interval_s[0])} to {format_seconds(p.interval_s[1])}",
            format_bandwidth(rate(p.size_bytes, p.median_s)) if p.size_bytes else "-",
            f"{len(p.times_s)} in {labels.counted(p.num_launches, 'launch', 'launches')}",
        ]
        for curve in curves
        for p in curve.points
    ]
    header = ["MPI", "level", "size", "median", "interval", "bandwidth", "iterations"]
    return Table("Ping-pong, half round trip", header, rows)


def brief_points_table(curves: Sequence[Curve]) -> Table:
    """Median and bandwidth at BRIEF_SIZES sizes of each curve, from the smallest to the largest."""
    chosen = [
        replace(curve, points=tuple(curve.points[k] for k in few(len(curve.points), BRIEF_SIZES)))
        for curve in curves
    ]
    return points_table(chosen).columns(("MPI", "level", "size", "median", "bandwidth"))


def fit_table(material: Material, lines: Sequence[Fit]) -> Table:
    rows = [
        [
            line.label,
            labels.level(line.level),
            segment.name,
            format_bytes(segment.min_bytes),
            format_seconds(segment.latency_s),
            format_bandwidth(segment.bandwidth_bytes_per_s),
            "-" if line.held_out_error is None else labels.percent(line.held_out_error),
            "-",
        ]
        for line in lines
        for segment in line.segments
    ]
    for profile, label in labelled_profiles(material):
        for level in profile.levels.values():
            for protocol in level.protocols:
                pair = pair_or_none(profile_interval(profile, level.name, protocol.name, "latency_s"))
                interval = f" ({format_seconds(pair[0])} to {format_seconds(pair[1])})" if pair else ""
                rows.append(
                    [
                        label,
                        labels.level(level.name),
                        f"{protocol.name}, with competitors",
                        format_bytes(protocol.min_bytes),
                        format_seconds(protocol.latency_s) + interval,
                        "see BW(N)",
                        "-",
                        _sender_waits(protocol),
                    ]
                )
    header = ["MPI", "level", "protocol", "from", "latency", "bandwidth", "held-out error", "sender waits"]
    return Table("Fitted protocols", header, rows)


def _sender_waits(protocol: Protocol) -> str:
    source = "measured" if protocol.extra.get("sender_waits_measured") else "assumed"
    return f"{'yes' if protocol.sender_waits else 'no'}, {source}"


def bandwidth_table(items: Sequence[Contention]) -> Table:
    rows = [
        [
            item.label,
            labels.level(item.level),
            item.protocol or "largest size",
            str(int(n)) + (" *" if over else ""),
            format_bandwidth(b) + (" (bound)" if int(n) in item.bound else ""),
            f"{format_bandwidth(low)} to {format_bandwidth(high)}" if low < high else "-",
            format_bandwidth(line),
            labels.signed_percent(b / line - 1),
        ]
        for item in items
        for n, over, b, (low, high), line in zip(
            item.count,
            item.oversubscribed,
            item.bandwidth_bytes_per_s,
            item.interval,
            item.straight_line(),
            strict=True,
        )
    ]
    star = " (*: more ranks than cores)" if any(item.oversubscribed.any() for item in items) else ""
    header = ["MPI", "level", "protocol", "N", "received", "interval", "ideal scaling", "deviation"]
    return Table(f"Received bandwidth of the group, BW(N){star}", header, rows)


def brief_bandwidth_table(items: Sequence[Contention]) -> Table:
    names = ("MPI", "level", "N", "received", "interval", "ideal scaling", "deviation")
    return bandwidth_table(items).columns(names)


def ranks_table(item: Exchange, limit: int = MAX_ROWS) -> Table:
    _, times = item.reference()
    columns = ([("measured", item.measured_s)] if item.measured_s is not None else []) + [
        (model, item.predicted_s[model]) for model in item.models()
    ]
    order = np.arange(len(times)) if len(times) <= limit else np.argsort(-times, kind="stable")[:limit]
    rows = [
        [
            str(rank),
            *(format_seconds(values[rank]) for _, values in columns),
            format_seconds(times.max() - times[rank]),
        ]
        for rank in order.tolist()
    ]
    which = f", the {limit} slowest of {len(times)}" if len(times) > limit else ""
    return Table(
        f"Seconds per rank{which}: {item.name or item.title}",
        ["rank", *(name for name, _ in columns), "waits"],
        rows,
    )


def error_table(item: Exchange) -> Table:
    rows = [
        [
            model,
            labels.percent(item.error[model]),
            labels.signed_percent(item.slowest_error[model]),
            format_seconds(float(item.predicted_s[model].max())),
        ]
        for model in item.best_first()
    ]
    rows.append(["measured", "", "", format_seconds(float(item.measured_s.max()))])
    caption = "Error of each model, best first" + (f": {item.name}" if item.name else "")
    return Table(caption, ["model", "total error", "slowest-rank error", "slowest rank"], rows)
