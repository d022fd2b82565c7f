"""Tables of messages: ping-pong, fitted protocols, received bandwidth, and message rates of threads."""

from collections.abc import Sequence
from dataclasses import replace

from earlybird.data import labels
from earlybird.data.profile import Profile, Protocol
from earlybird.data.results import Result
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import few
from earlybird.present.core.table import Table, table_of
from earlybird.present.core.text import star
from earlybird.present.material import Material, labelled_profiles
from earlybird.present.subjects.messages.rates import METHODS, MessageRates, contexts, millions, rate, threads
from earlybird.present.subjects.messages.view import (
    Contention,
    Curve,
    Fit,
    bandwidth,
    bounds_of,
    pair_or_none,
    profile_interval,
)

# Columns in the terminal.
BRIEF_POINTS = ("MPI", "level", "size", "median", "bandwidth")
BRIEF_BANDWIDTH = ("MPI", "level", "N", "received", "interval", "ideal scaling", "deviation")
BRIEF_RATES = ("MPI", "level", "size", "threads", "method", "contexts", "Mmsg/s", "interval")
_CONSTANT = (1, 2)  # columns of BRIEF_RATES that move to the caption if they have a single text
_MAX_LISTED = 4  # threads whose rates are listed individually
BRIEF_SIZES = 7  # sizes per curve in the terminal, from the smallest to the largest


def points_table(curves: Sequence[Curve]) -> Table:
    return table_of(
        "Ping-pong: half of the round trip, and size divided by this time",
        [(curve, point) for curve in curves for point in curve.points],
        {
            "MPI": lambda row: row[0].label,
            "level": lambda row: labels.level(row[0].level),
            "size": lambda row: format_bytes(row[1].config["size_bytes"]),
            "median": lambda row: format_seconds(row[1].time_s.value),
            "interval": lambda row: interval_text(row[1].time_s, format_seconds) or "-",
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
    return points_table(chosen).only(lambda column: column.head in BRIEF_POINTS)


def fit_table(lines: Sequence[Fit]) -> Table:
    """The protocols of ping-pongs."""
    return table_of(
        "Fitted protocols of the ping-pong (held-out error: median relative error at sizes left out)",
        [(line, segment) for line in lines if line.is_pingpong for segment in line.segments],
        {
            "MPI": lambda row: row[0].label,
            "level": lambda row: labels.level(row[0].level),
            "protocol": lambda row: row[1].name,
            "from": lambda row: format_bytes(row[1].min_bytes),
            "latency": lambda row: format_seconds(row[1].latency_s),
            "bandwidth": lambda row: format_bandwidth(row[1].bandwidth_bytes_per_s),
            "held-out error": lambda row: (
                "-" if row[0].held_out_error is None else labels.percent(row[0].held_out_error)
            ),
        },
    )


def contention_fit_table(material: Material) -> Table:
    """The protocols of the profiles, of processes that receive at once."""
    return table_of(
        "Fitted protocols with N processes receiving at once (sender waits: a send completes only after its "
        "receive is posted)",
        [
            (label, profile, level, protocol)
            for profile, label in labelled_profiles(material)
            for level in profile.levels.values()
            for protocol in level.protocols
        ],
        {
            "MPI": lambda row: row[0],
            "level": lambda row: labels.level(row[2].name),
            "protocol": lambda row: row[3].name,
            "from": lambda row: format_bytes(row[3].min_bytes),
            "latency": lambda row: format_seconds(row[3].latency_s),
            "interval": lambda row: _latency_interval(row[1], row[2].name, row[3]),
            "BW(1)": lambda row: _first_bandwidth(row[3]),
            "sender waits": lambda row: _sender_waits(row[3]),
        },
    )


def _latency_interval(profile: Profile, level: str, protocol: Protocol) -> str:
    pair = pair_or_none(profile_interval(profile, level, protocol.name, "latency_s"))
    return f"{format_seconds(pair[0])} to {format_seconds(pair[1])}" if pair else "-"


def _first_bandwidth(protocol: Protocol) -> str:
    """The bandwidth at the smallest N."""
    counts, rates = protocol.bandwidth_table()
    bound = " (bound)" * (int(counts[0]) in bounds_of(protocol))
    return format_bandwidth(float(rates[0])) + bound + f", N = {counts[0]:g}" * bool(counts[0] != 1)


def _sender_waits(protocol: Protocol) -> str:
    source = "measured" if protocol.extra.get("sender_waits_measured") else "assumed"
    return f"{labels.sender_waits(protocol.sender_waits, protocol.buffered_bytes)}, {source}"


def bandwidth_table(items: Sequence[Contention]) -> Table:
    rows = [(item, point) for item in items for point in item.points]
    crowded = any(point.oversubscribed for _, point in rows)
    return table_of(
        f"BW(N): total bandwidth of N processes of a group that receive at once{star(crowded, 'ranks')}",
        rows,
        {
            "MPI": lambda row: row[0].label,
            "level": lambda row: labels.level(row[0].level),
            "protocol": lambda row: row[0].protocol or "largest size",
            "N": lambda row: str(row[1].count) + " *" * row[1].oversubscribed,
            "received": lambda row: (
                format_bandwidth(row[1].bandwidth_bytes_per_s.value) + " (bound)" * row[1].is_bound
            ),
            "interval": lambda row: interval_text(row[1].bandwidth_bytes_per_s, format_bandwidth) or "-",
            "ideal scaling": lambda row: format_bandwidth(row[0].ideal(row[1].count)),
            "deviation": lambda row: labels.signed_percent(round(row[0].deviation(row[1]), 4) + 0.0),
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
            "interval": lambda row: interval_text(rate(row[1]), millions),
            "per thread": lambda row: _of_threads(row[1]),
        },
    )


def brief_rates_table(all_rates: Sequence[MessageRates]) -> Table:
    """The columns of BRIEF_RATES; those of level and size are in the caption if all rows have the same."""
    table = rates_table(all_rates).only(lambda column: column.head in BRIEF_RATES)
    same = [k for k in _CONSTANT if len({row[k] for row in table.rows}) == 1]
    caption = ", ".join([table.caption, *(table.rows[0][k] for k in same)])
    constant = [BRIEF_RATES[k] for k in same]
    return replace(table.only(lambda column: column.head not in constant), caption=caption)


def _of_threads(result: Result) -> str:
    rates = result.figures["thread_rates_per_s"] or []
    if len(rates) > _MAX_LISTED:
        return f"{millions(min(rates))} to {millions(max(rates))}"
    return ", ".join(map(millions, rates)) or "-"
