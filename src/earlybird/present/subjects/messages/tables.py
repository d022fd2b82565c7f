"""Tables of messages: ping-pong, fitted protocols, received bandwidth, and message rates of threads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data import labels
from earlybird.data.packing_form import PackingForm
from earlybird.data.profile import Profile, Protocol
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core.notation import percent_text, range_text, with_interval
from earlybird.present.core.parts import few
from earlybird.present.core.table import Column, Table
from earlybird.present.core.text import star
from earlybird.present.material import number_or_none
from earlybird.present.subjects.measured.columns import labelled, results_table
from earlybird.present.subjects.messages.rates import MessageRates
from earlybird.present.subjects.messages.view import (
    Contention,
    Curve,
    Fit,
    Received,
    bandwidth,
)

BRIEF_SIZES = 7  # sizes per curve in the terminal, from the smallest to the largest


# Of rows that begin with what an MPI does at a level.
_MPI_AND_LEVEL = (
    Column("MPI", lambda row: row[0].label, common=True, left=True),
    Column("level", lambda row: labels.level(row[0].level), common=True, left=True),
)


def points_table(curves: Sequence[Curve]) -> Table:
    """Return the time and bandwidth of each ping-pong."""
    columns = [
        *_MPI_AND_LEVEL,
        Column("size", lambda row: format_bytes(row[1].config["size_bytes"])),
        Column("time", lambda row: with_interval(row[1].time_s, format_seconds)),
        Column("bandwidth", lambda row: _bandwidth_text(row[1])),
        Column("launches", lambda row: row[1].launches, detail=True),
        Column("iterations", lambda row: row[0].num_iterations(row[1]), detail=True),
    ]
    rows = [(curve, point) for curve in curves for point in curve.points]
    return Table("Ping-pong: half of the round trip, and size divided by this time", columns, rows)


def _bandwidth_text(point: Result) -> str:
    return format_bandwidth(bandwidth(point).value) if point.config["size_bytes"] else ""


def brief_points_table(curves: Sequence[Curve]) -> Table:
    """Return BRIEF_SIZES sizes of each curve."""
    chosen = [
        replace(curve, points=tuple(curve.points[k] for k in few(len(curve.points), BRIEF_SIZES)))
        for curve in curves
    ]
    return points_table(chosen).brief()


def fit_table(lines: Sequence[Fit]) -> Table:
    """Return the protocols of ping-pongs."""
    columns = [
        *_MPI_AND_LEVEL,
        Column("protocol", lambda row: row[1].name, left=True),
        Column("from", lambda row: format_bytes(row[1].min_bytes)),
        Column("latency", lambda row: format_seconds(row[1].latency_s)),
        Column("bandwidth", lambda row: format_bandwidth(row[1].bandwidth_bytes_per_s)),
        Column("held-out error", lambda row: percent_text(row[0].held_out_error)),
    ]
    return Table(
        "Fitted protocols of the ping-pong (held-out error: median relative error at sizes left out)",
        columns,
        [(line, segment) for line in lines if line.is_pingpong for segment in line.segments],
    )


def protocols_table(profiles: Sequence[tuple[Profile, str]]) -> Table:
    """Return the protocols of profiles, given with the names of their MPIs, and their held-out errors."""

    def error(key: str) -> Callable[[tuple[Any, ...]], str]:
        return lambda row: percent_text(number_or_none(row[2].extra.get(key)))

    columns = [
        Column("MPI", lambda row: row[0], common=True, varying=True, left=True),
        Column("level", lambda row: labels.level(row[2].name), common=True, left=True),
        Column("protocol", lambda row: row[3].name, left=True),
        Column("from", lambda row: format_bytes(row[3].min_bytes)),
        Column("latency", lambda row: _latency(row[1], row[2].name, row[3])),
        Column("sender waits", lambda row: _sender_waits(row[3]), left=True),
        Column("held-out size", error("held_out_error"), common=True, optional=True),
        Column("held-out N", error("held_out_error_n"), common=True, optional=True),
    ]
    return Table(
        "Fitted protocols with N processes receiving at once (sender waits: a send completes only after its "
        "receive is posted; held-out: median relative error at sizes or N left out)",
        columns,
        [
            (label, profile, level, protocol)
            for profile, label in profiles
            for level in profile.levels.values()
            for protocol in level.protocols
        ],
    )


def _latency(profile: Profile, level: str, protocol: Protocol) -> str:
    latency_s = protocol.latency_s
    ends_s = profile.interval(level, protocol.name, "latency_s") or (latency_s, latency_s)
    return with_interval(Estimate(latency_s, *ends_s), format_seconds)


def _sender_waits(protocol: Protocol) -> str:
    source = "measured" if protocol.extra.get("sender_waits_measured") else "assumed"
    begins = ", begins with its receive" * bool(protocol.awaits_receive)
    return f"{labels.sender_waits(protocol.sender_waits, protocol.buffered_bytes)}{begins}, {source}"


def bandwidth_table(items: Sequence[Contention]) -> Table:
    """Return the bandwidth that N processes receive together, next to ideal scaling."""
    rows = [(item, point) for item in items for point in item.points]
    crowded = any(point.oversubscribed for _, point in rows)
    bound = " (bound: the times do not determine it)" * any(point.is_bound for _, point in rows)
    columns = [
        replace(_MPI_AND_LEVEL[0], varying=True),
        _MPI_AND_LEVEL[1],
        Column("protocol", lambda row: row[0].protocol or "largest size", common=True, left=True),
        Column("N", lambda row: str(row[1].count) + " *" * row[1].oversubscribed),
        Column("received", _received),
        Column("ideal scaling", lambda row: format_bandwidth(row[0].ideal(row[1].count))),
        Column("deviation", lambda row: labels.signed_percent(round(row[0].deviation(row[1]), 4) + 0.0)),
    ]
    caption = "BW(N): total bandwidth of N processes of a group that receive at once"
    return Table(f"{caption}{star(crowded, 'ranks')}{bound}", columns, rows)


def _received(row: tuple[Contention, Received]) -> str:
    return with_interval(row[1].bandwidth_bytes_per_s, format_bandwidth) + " bound" * row[1].is_bound


_PACKING = (
    Column("MPI", lambda row: row[0], common=True, varying=True, left=True),
    Column("packing", lambda row: row[1].what.packing, common=True, left=True),
    Column("cache", lambda row: row[1].what.cache, common=True, left=True),
    Column("method", lambda row: row[1].what.method, left=True),
    Column("size", lambda row: _ends(row[1].parameters.size_bytes, format_bytes)),
    Column("time", lambda row: _ends(row[1].parameters.time_s, format_seconds)),
    Column("bandwidth", lambda row: _packed_rate(row[1])),
)


def packings_table(profiles: Sequence[tuple[Profile, str]]) -> Table:
    """Return what packing and unpacking cost, of the smallest and of the largest size."""
    rows = [(label, form) for profile, label in profiles for form in profile.packings]
    caption = "Packing: time of the smallest and of the largest size, and bandwidth of the largest"
    return Table(caption, _PACKING, rows)


def _ends(values: Sequence[float], text: Callable[[float], str]) -> str:
    return range_text((values[0], values[-1]), text) if len(values) > 1 else text(values[0])


def _packed_rate(form: PackingForm) -> str:
    time_s = form.parameters.time_s[-1]
    return format_bandwidth(form.parameters.size_bytes[-1] / time_s) if time_s > 0 else ""


def rates_table(all_rates: Sequence[MessageRates]) -> Table:
    """Return the table of message rates, with a row for each number of threads and method."""
    results = [labelled(result, series.label) for series in all_rates for result in series.results]
    return results_table("Message rates of threads, million messages per second", results, on_page=True)
