"""Figures of message rates: messages per second against threads, by method."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from earlybird.data import labels
from earlybird.data.results import Result
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.lines import hover, spread_traces
from earlybird.present.core.parts import Figure, figures_left
from earlybird.present.subjects.messages.rates import METHODS, MessageRates, millions, rate, threads

MAX_SETTINGS = 6  # settings (level, size, window) with figures; the table has all
# Line styles that distinguish the runs and MPIs of one figure; methods have the same colours in all.
_DASHES = ("solid", "dot", "dashdot", "longdash")


def rate_figures(all_rates: Sequence[MessageRates], id: str = "message-rate") -> list[Figure]:
    """One figure per level, size and window."""
    settings = [list(group) for _, group in groupby(all_rates, key=lambda series: series.setting)]
    figures = [_figure(f"{id}-{k}", group) for k, group in enumerate(settings[:MAX_SETTINGS])]
    return figures + figures_left(id, len(settings), MAX_SETTINGS)


def _figure(id: str, group: Sequence[MessageRates]) -> Figure:
    level, size_bytes, window = group[0].setting
    data = [
        trace
        for series, dash in zip(group, _DASHES * len(group), strict=False)
        for method, results in series.drawn().items()
        for trace in _traces(series.label if len(group) > 1 else "", dash, method, results)
    ]
    drawn = [result for series in group for results in series.drawn().values() for result in results]
    return Figure(
        id,
        f"Messages per second of threads, {labels.level(level)}, {format_bytes(size_bytes)} each",
        f"Every thread sends windows of {window} messages. The rate is the number of messages of all threads "
        "divided by the time until the last one is received. Line: median over iterations, then launches. "
        "Shading: its interval over launches. Open markers: more threads than cores. Processes "
        "instead of threads are for comparison: their messages share no lock.",
        data,
        axes.layout(
            axes.log_count_axis(map(threads, drawn), "threads of each rank"),
            axes.log_rate_axis([value for one in drawn for value in rate(one)], "messages per second"),
        ),
    )


def _traces(label: str, dash: str, method: str, results: Sequence[Result]) -> list[dict[str, Any]]:
    kind = METHODS.get(method, method)
    name = axes.label(f"{label}, {kind}" if label else labels.capital(kind))
    over = {True: ", more threads than cores", False: ""}
    return spread_traces(
        method,
        name,
        [threads(one) for one in results],
        [rate(one) for one in results],
        [
            hover(
                name,
                labels.counted(threads(one), "thread") + over[one.oversubscribed],
                rate(one),
                lambda value: f"{millions(value)} million/s",
                one.launches,
            )
            for one in results
        ],
        dash=dash,
        symbols=[axes.symbol(method) + "-open" * one.oversubscribed for one in results],
    )
