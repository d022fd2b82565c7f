"""Figures and table of message rates in chapter 2: messages per second against threads, by method."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.report.figures import axes
from earlybird.report.figures.spread_lines import spread_traces
from earlybird.report.msgrates import METHODS, MessageRates, RatePoint, millions
from earlybird.report.parts import Figure, Table

MAX_SETTINGS = 6  # settings (level, size, window) with figures; the table has all
# Line styles that distinguish the runs and MPIs of one figure; methods have the same colours in all.
_DASHES = ("solid", "dot", "dashdot", "longdash")
_MAX_LISTED = 4  # threads whose rates are listed individually


def rate_figures(all_rates: Sequence[MessageRates]) -> list[Figure]:
    """One figure per level, size and window."""
    settings = [list(group) for _, group in groupby(all_rates, key=lambda series: series.setting)]
    figures = [_figure(k, group) for k, group in enumerate(settings[:MAX_SETTINGS])]
    num_left = len(settings) - MAX_SETTINGS
    if num_left > 0:
        reason = f"{MAX_SETTINGS} settings have figures; the rates of the others are in the table."
        figures.append(
            Figure("rates-left", f"{labels.counted(num_left, 'more setting')}", "", why_not=reason)
        )
    return figures


def rates_table(all_rates: Sequence[MessageRates]) -> Table:
    """One row per number of threads and method."""
    rows = [
        [
            series.label,
            labels.level(series.level),
            format_bytes(series.size_bytes),
            str(series.window),
            f"{point.threads}{' *' if point.oversubscribed else ''}",
            METHODS.get(method, method),
            "-" if point.vcis is None else str(point.vcis),
            millions(point.rate_per_s[0]),
            f"{millions(point.rate_per_s[1])} to {millions(point.rate_per_s[2])}",
            _of_threads(point),
        ]
        for series in all_rates
        for method, point in series.rows()
    ]
    star = " (*: more threads than cores)" if any(row[4].endswith("*") for row in rows) else ""
    header = ["MPI", "level", "size", "window", "threads", "method", "contexts", "Mmsg/s", "launches",
              "per thread"]  # fmt: skip
    return Table(f"Message rates of threads, million messages per second{star}", header, rows)


def brief_rates_table(all_rates: Sequence[MessageRates]) -> Table:
    names = ("MPI", "level", "size", "threads", "method", "contexts", "Mmsg/s", "launches")
    return rates_table(all_rates).columns(names)


def _figure(k: int, group: Sequence[MessageRates]) -> Figure:
    level, size_bytes, window = group[0].setting
    data = [
        trace
        for number, series in enumerate(group)
        for method, points in series.drawn().items()
        for trace in _traces(number, len(group), series, method, points)
    ]
    points = [point for series in group for drawn in series.drawn().values() for point in drawn]
    rates = [rate for point in points for rate in point.rate_per_s]
    return Figure(
        f"message-rate-{k}",
        f"Messages per second of threads, {labels.level(level)}, {format_bytes(size_bytes)} each",
        f"Every thread sends windows of {window} messages. The rate is the number of messages of all threads "
        "divided by the time until the last one is received. Line: median over iterations, then launches. "
        "Shading: its interval over launches. Open markers: more threads than cores. Processes "
        "instead of threads are the upper bound.",
        data,
        axes.layout(
            axes.log_count_axis([point.threads for point in points], "threads of each rank"),
            axes.log_rate_axis(rates, "messages per second"),
        ),
    )


def _traces(
    number: int, num_series: int, series: MessageRates, method: str, points: Sequence[RatePoint]
) -> list[dict[str, Any]]:
    label = METHODS.get(method, method)
    name = axes.label(f"{series.label}, {label}" if num_series > 1 else labels.capital(label))
    return spread_traces(
        method,
        name,
        [point.threads for point in points],
        [point.rate_per_s for point in points],
        [_hover(name, point) for point in points],
        dash=_DASHES[number % len(_DASHES)],
        symbols=[axes.symbol(method) + "-open" * point.oversubscribed for point in points],
    )


def _hover(name: str, point: RatePoint) -> str:
    middle, low, high = map(millions, point.rate_per_s)
    over = ", more threads than cores" if point.oversubscribed else ""
    return (
        f"{name}<br>{labels.counted(point.threads, 'thread')}{over}: <b>{middle} million/s</b><br>"
        f"{labels.counted(point.num_launches, 'launch', 'launches')}: {low} to {high}"
    )


def _of_threads(point: RatePoint) -> str:
    rates = point.thread_rates_per_s
    if not rates:
        return "-"
    if len(rates) <= _MAX_LISTED:
        return ", ".join(map(millions, rates))
    return f"{millions(min(rates))} to {millions(max(rates))}"
