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
    """Draw the rates of each level, size and window."""
    settings = [list(group) for _, group in groupby(all_rates, key=lambda series: series.setting)]
    figures = [_figure(f"{id}-{k}", group) for k, group in enumerate(settings[:MAX_SETTINGS])]
    return figures + figures_left(id, len(settings), MAX_SETTINGS)


def _figure(id: str, group: Sequence[MessageRates]) -> Figure:
    first = group[0]
    data = [
        trace
        for series, dash in zip(group, _DASHES * len(group), strict=False)
        for method, results in series.drawn().items()
        for trace in _traces(series.label if len(group) > 1 else "", dash, method, results)
    ]
    drawn = [result for series in group for results in series.drawn().values() for result in results]
    return Figure(
        id,
        f"Messages per second of threads, {labels.level(first.level)}, {format_bytes(first.size_bytes)} each",
        f"Every thread sends windows of {first.window} messages. The rate is the number of messages of all "
        "threads divided by the time until the last one is received. Line: median over iterations, then "
        "launches. Shading: its interval over launches. Open markers: more threads than cores. Processes "
        "instead of threads are for comparison: their messages share no lock.",
        data,
        axes.layout(
            axes.log_count_axis(map(threads, drawn), "threads of each rank"),
            axes.log_rate_axis([value for result in drawn for value in rate(result)], "messages per second"),
        ),
    )


def _traces(label: str, dash: str, method: str, results: Sequence[Result]) -> list[dict[str, Any]]:
    kind = METHODS.get(method, method)
    name = axes.label(f"{label}, {kind}" if label else labels.capital(kind))
    texts = [
        hover(
            name,
            labels.counted(threads(result), "thread") + ", more threads than cores" * result.oversubscribed,
            rate(result),
            lambda value: f"{millions(value)} million/s",
            result.launches,
        )
        for result in results
    ]
    symbols = [axes.symbol(method) + "-open" * result.oversubscribed for result in results]
    counts, rates = [threads(result) for result in results], [rate(result) for result in results]
    return spread_traces(method, name, counts, rates, texts, dash=dash, symbols=symbols)
