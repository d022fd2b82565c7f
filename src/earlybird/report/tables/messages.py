"""Tables of messages: ping-pong, fitted protocols, received bandwidth, and message rates of threads."""

from collections.abc import Sequence
from dataclasses import replace

from earlybird.data import labels
from earlybird.data.profile import Protocol
from earlybird.data.results import Result
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.report.material import Material, labelled_profiles
from earlybird.report.parts import Table, few, table_of
from earlybird.report.texts import spread, star
from earlybird.report.views.message_rates import METHODS, MessageRates, contexts, millions, rate, threads
from earlybird.report.views.messages import (
    Contention,
    Curve,
    Fit,
    bandwidth,
    pair_or_none,
    profile_interval,
)

# Columns in the terminal.
BRIEF_POINTS = ("MPI", "level", "size", "median", "bandwidth")
BRIEF_BANDWIDTH = ("MPI", "level", "N", "received", "interval", "ideal scaling", "deviation")
BRIEF_RATES = ("MPI", "level", "size", "threads", "method", "contexts", "Mmsg/s", "interval")
_MAX_LISTED = 4  # threads whose rates are listed individually
BRIEF_SIZES = 7  # sizes per curve in the terminal, from the smallest to the largest


def points_table(curves: Sequence[Curve]) -> Table:
    return table_of(
        "Ping-pong, half round trip",
        [(curve, point) for curve in curves for point in curve.points],
        {
            "MPI": lambda row: row[0].label,
            "level": lambda row: labels.level(row[0].level),
            "size": lambda row: format_bytes(row[1].config["size_bytes"]),
            "median": lambda row: format_seconds(row[1].time_s.value),
            "interval": lambda row: spread(row[1].time_s, format_seconds) or "-",
            "bandwidth": lambda row: (
                format_bandwidth(bandwidth(row[1]).value) if row[1].config["size_bytes"] else "-"
            ),
            "launches": lambda row: str(row[1].launches),
            "iterations": lambda row: str(row[0].num_iterations(row[1])),
        },
    )


def brief_points_table(curves: Sequence[Curve]) -> Table:
    """Median and bandwidth at BRIEF_SIZES sizes of each curve."""
    chosen = [
        replace(curve, points=tuple(curve.points[k] for k in few(len(curve.points), BRIEF_SIZES)))
        for curve in curves
    ]
    return points_table(chosen).columns(BRIEF_POINTS)


def fit_table(material: Material, lines: Sequence[Fit]) -> Table:
    """The protocols of ping-pongs, then those of the profiles, with competitors."""
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
    rows = [(item, point) for item in items for point in item.points]
    crowded = any(point.oversubscribed for _, point in rows)
    return table_of(
        f"Received bandwidth of the group, BW(N){star(crowded, 'ranks')}",
        rows,
        {
            "MPI": lambda row: row[0].label,
            "level": lambda row: labels.level(row[0].level),
            "protocol": lambda row: row[0].protocol or "largest size",
            "N": lambda row: str(row[1].count) + " *" * row[1].oversubscribed,
            "received": lambda row: (
                format_bandwidth(row[1].bandwidth_bytes_per_s.value) + " (bound)" * row[1].is_bound
            ),
            "interval": lambda row: spread(row[1].bandwidth_bytes_per_s, format_bandwidth) or "-",
            "ideal scaling": lambda row: format_bandwidth(row[0].ideal(row[1].count)),
            "deviation": lambda row: labels.signed_percent(row[0].deviation(row[1])),
        },
    )


def rates_table(all_rates: Sequence[MessageRates]) -> Table:
    """One row per number of threads and method."""
    rows = [(series, result) for series in all_rates for result in series.results]
    crowded = any(result.oversubscribed for _, result in rows)
    return table_of(
        f"Message rates of threads, million messages per second{star(crowded)}",
        rows,
        {
            "MPI": lambda row: row[0].label,
            "level": lambda row: labels.level(row[0].setting[0]),
            "size": lambda row: format_bytes(row[0].setting[1]),
            "window": lambda row: str(row[0].setting[2]),
            "threads": lambda row: str(threads(row[1])) + " *" * row[1].oversubscribed,
            "method": lambda row: METHODS.get(row[1].method, row[1].method),
            "contexts": lambda row: contexts(row[1]),
            "Mmsg/s": lambda row: millions(rate(row[1]).value),
            "interval": lambda row: spread(rate(row[1]), millions),
            "per thread": lambda row: _of_threads(row[1]),
        },
    )


def _of_threads(result: Result) -> str:
    rates = result.figures["thread_rates_per_s"] or []
    if len(rates) > _MAX_LISTED:
        return f"{millions(min(rates))} to {millions(max(rates))}"
    return ", ".join(map(millions, rates)) or "-"
