"""Figures and table of message rates in chapter 2: messages per second against threads, a line per method."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from earlybird.data.units import format_bytes
from earlybird.report import axes, words
from earlybird.report.msgrates import METHODS, MessageRates, RatePoint, millions
from earlybird.report.parts import Figure, Table

MAX_SETTINGS = 6  # of level, size and window that are drawn; the table has all
# Runs and MPIs of one figure share the colours of their methods and differ in these.
_DASHES = ("solid", "dot", "dashdot", "longdash")
_MOST_NAMED = 4  # threads whose rates are listed one by one


def rate_figures(found: Sequence[MessageRates]) -> list[Figure]:
    """A figure for every level, size and window."""
    settings = [list(group) for _, group in groupby(found, key=lambda one: one.setting)]
    figures = [_figure(k, group) for k, group in enumerate(settings[:MAX_SETTINGS])]
    left = len(settings) - MAX_SETTINGS
    if left > 0:
        why = f"{MAX_SETTINGS} settings are drawn; the figures of the others are in the table of rates."
        figures.append(Figure("rates-left", f"{words.counted(left, 'more setting')}", "", why_not=why))
    return figures


def rates_table(found: Sequence[MessageRates]) -> Table:
    """A row per number of threads and method."""
    rows = [
        [
            one.label,
            words.level(one.level),
            format_bytes(one.size_bytes),
            str(one.window),
            f"{point.threads}{' *' if point.oversubscribed else ''}",
            METHODS.get(method, method),
            "-" if point.vcis is None else str(point.vcis),
            millions(point.rate_per_s[0]),
            f"{millions(point.rate_per_s[1])} to {millions(point.rate_per_s[2])}",
            _of_threads(point),
        ]
        for one in found
        for method, point in one.rows()
    ]
    star = " (*: more threads than cores)" if any(row[4].endswith("*") for row in rows) else ""
    header = ["MPI", "where", "size", "window", "threads", "method", "contexts", "Mmsg/s", "launches",
              "per thread"]  # fmt: skip
    return Table(f"Message rates of threads, million messages per second{star}", header, rows)


def brief_rates_table(found: Sequence[MessageRates]) -> Table:
    table = rates_table(found)
    names = ("MPI", "where", "size", "threads", "method", "contexts", "Mmsg/s", "launches")
    chosen = [table.header.index(name) for name in names]
    return Table(table.caption, names, [[row[k] for k in chosen] for row in table.rows])


def _figure(k: int, group: Sequence[MessageRates]) -> Figure:
    level, size_bytes, window = group[0].setting
    data = [
        trace
        for number, one in enumerate(group)
        for method, points in one.drawn().items()
        for trace in _traces(number, len(group), one, method, points)
    ]
    points = [point for one in group for found in one.drawn().values() for point in found]
    rates = [rate for point in points for rate in point.rate_per_s]
    return Figure(
        f"message-rate-{k}",
        f"Messages per second of threads, {words.level(level)}, {format_bytes(size_bytes)} each",
        f"Every thread has windows of {window} messages under way. The messages of all threads over the "
        "time until the last is received: median over iterations, then launches; shading from the lowest to "
        "the highest launch. Hollow: more threads than cores, which then take turns. Processes instead of "
        "threads are the ceiling.",
        data,
        axes.layout(
            axes.log_count_axis([point.threads for point in points], "threads of each rank"),
            axes.log_rate_axis(rates, "messages per second"),
        ),
    )


def _traces(
    number: int, of: int, one: MessageRates, method: str, points: Sequence[RatePoint]
) -> list[dict[str, Any]]:
    x, color = [point.threads for point in points], axes.color(method)
    said = METHODS.get(method, method)
    name = axes.label(f"{one.label}, {said}" if of > 1 else words.capital(said))
    edge = {
        "x": x,
        "mode": "lines",
        "line": {"width": 0, "color": color},
        "fillcolor": axes.color(method, faint=True),
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": name,
    }
    symbols = [axes.symbol(method) + ("-open" if point.oversubscribed else "") for point in points]
    return [
        edge | {"y": [point.rate_per_s[1] for point in points]},
        edge | {"y": [point.rate_per_s[2] for point in points], "fill": "tonexty"},
        {
            "x": x,
            "y": [point.rate_per_s[0] for point in points],
            "mode": "lines+markers",
            "name": name,
            "legendgroup": name,
            "line": {"color": color, "width": 2, "dash": _DASHES[number % len(_DASHES)]},
            "marker": {"color": color, "size": 8, "symbol": symbols},
            "hovertext": [_hover(name, point) for point in points],
            "hoverinfo": "text",
        },
    ]


def _hover(name: str, point: RatePoint) -> str:
    middle, low, high = map(millions, point.rate_per_s)
    over = ", more threads than cores" if point.oversubscribed else ""
    return (
        f"{name}<br>{words.counted(point.threads, 'thread')}{over}: <b>{middle} million/s</b><br>"
        f"{words.counted(point.num_launches, 'launch', 'launches')}: {low} to {high}"
    )


def _of_threads(point: RatePoint) -> str:
    rates = point.thread_rates_per_s
    if not rates:
        return "-"
    if len(rates) <= _MOST_NAMED:
        return ", ".join(map(millions, rates))
    return f"{millions(min(rates))} to {millions(max(rates))}"
