"""Figures of messages: time and bandwidth against size, received bandwidth against N, rates of threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import error_bars, hover, line, measured_text, raw_samples, spread_traces
from earlybird.present.core.notation import millions
from earlybird.present.core.parts import Figure, figures_left
from earlybird.present.core.text import crowd
from earlybird.present.material import Material
from earlybird.present.subjects.messages.rates import METHODS, MessageRates, rate, threads
from earlybird.present.subjects.messages.view import (
    Contention,
    Curve,
    Fit,
    bandwidth,
    large_message_protocols,
    largest_contention_samples,
)

_FIT_NOTE = "Dashed: the fitted protocols, with a gap between protocols."
MAX_SETTINGS = 6  # settings (level, size, window) with figures; the table has all
# Line styles that distinguish the runs and MPIs of one figure; methods have the same colours in all.
_DASHES = ("solid", "dot", "dashdot", "longdash")
_GRID_POINTS = 80  # of a fitted line


@dataclass(frozen=True)
class _Quantity:
    """A quantity drawn against the message size: its values for results, and for times at sizes."""

    kind: str
    title: str
    caption: str
    axis: Callable[[Sequence[float]], dict[str, Any]]
    text: Callable[[float], str]
    of_result: Callable[[Result], Estimate]
    of_times: Callable[[np.ndarray, np.ndarray], np.ndarray]
    least_bytes: int


_QUANTITIES = (
    _Quantity(
        "time",
        "Time of a message",
        f"Half a round trip. {{measured}} {_FIT_NOTE} Click the legend to show raw samples.",
        lambda times_s: axes.log_time_axis(times_s, "half round trip"),
        format_seconds,
        lambda result: result.time_s,
        lambda sizes, times_s: times_s,
        0,
    ),
    _Quantity(
        "bandwidth",
        "Bandwidth of one pair of processes",
        f"Message size divided by half a round trip, without messages of 0 bytes. {_FIT_NOTE}",
        lambda rates: axes.log_bandwidth_axis(rates, "bandwidth"),
        format_bandwidth,
        bandwidth,
        np.divide,
        1,
    ),
)


def level_figures(
    level: str,
    curves: Sequence[Curve],
    fits: Sequence[Fit],
    contentions: Sequence[Contention],
    material: Material,
) -> list[Figure]:
    """Draw the figures of a level, with all flavours."""
    curves = [curve for curve in curves if curve.level == level]
    fits = [fit for fit in fits if fit.level == level]
    contentions = [item for item in contentions if item.level == level]
    figures = [_size_figure(level, curves, fits, quantity) for quantity in _QUANTITIES if curves or fits]
    return figures + ([_contention_figure(level, contentions, material)] if contentions else [])


def _size_figure(level: str, curves: Sequence[Curve], fits: Sequence[Fit], quantity: _Quantity) -> Figure:
    sizes = sorted({int(point.config["size_bytes"]) for curve in curves for point in curve.points})
    sizes = [size for size in sizes or [1, 1 << 22] if size >= quantity.least_bytes]
    top = max([*sizes, 2, *(2 * segment.min_bytes for fit in fits for segment in fit.segments)])
    grid = np.unique([*sizes, *np.geomspace(1, top, _GRID_POINTS)])
    data = [trace for curve in curves for trace in _curve_traces(curve, quantity)]
    # A single fit has the text colour; several have the colours of their MPIs.
    lines = [_fit_trace(fit, grid, quantity, "measured" if len(fits) == 1 else fit.mpi) for fit in fits]
    points = [point for curve in curves for point in curve.points]
    spreads = [quantity.of_result(point) for point in points]
    values = [value for spread in spreads for value in spread if value > 0]
    values += [value for trace in lines for value in trace["y"] if value]
    return Figure(
        f"{quantity.kind}-{level}",
        f"{quantity.title}, {labels.level(level)}",
        quantity.caption.format(measured=measured_text(points)),
        data + lines,
        axes.layout(axes.size_axis([*sizes, top] if fits else sizes), quantity.axis(values)),
    )


def _curve_traces(curve: Curve, quantity: _Quantity) -> list[dict[str, Any]]:
    points = [point for point in curve.points if point.config["size_bytes"] >= quantity.least_bytes]
    label, sizes = axes.label(curve.label), [int(point.config["size_bytes"]) for point in points]
    spreads = [quantity.of_result(point) for point in points]
    *shading, medians = spread_traces(
        curve.mpi,
        label,
        [size or axes.ZERO_BYTES_AT for size in sizes],
        spreads,
        [
            hover(label, format_bytes(size), spread, quantity.text, point.launches)
            for size, spread, point in zip(sizes, spreads, points, strict=True)
        ],
        dash="dot" if curve.reused_buffers else "solid",
        symbols=axes.symbol(curve.mpi) + "-open" * curve.reused_buffers,
    )
    times = [
        (size, np.concatenate([sample.steady_times_s() for sample in curve.samples[size]])) for size in sizes
    ]
    samples = [
        (size or axes.ZERO_BYTES_AT, quantity.of_times(np.array(size), times_s[times_s > 0]))
        for size, times_s in times
    ]
    return [*shading, raw_samples(f"{label}, raw samples", curve.mpi, samples), medians]


def _fit_trace(fit: Fit, grid: np.ndarray, quantity: _Quantity, color: str) -> dict[str, Any]:
    """Return the lines of all protocols, with gaps between them."""
    x: list[float | None] = []
    y: list[float | None] = []
    texts: list[str | None] = []
    for segment in fit.segments:
        edges = [edge for edge in (segment.min_bytes, segment.end_bytes) if grid[0] <= edge <= grid[-1]]
        inside = grid[(grid >= segment.min_bytes) & (grid < segment.end_bytes)]
        inside = np.unique([*inside, *edges]) if inside.size else inside
        values = quantity.of_times(inside, segment.time_s(inside))
        x += [*(float(size) or axes.ZERO_BYTES_AT for size in inside), None]
        y += [*(float(value) if value > 0 else None for value in values), None]
        name = f"{axes.label(fit.label)}, {axes.label(segment.name)} fit"
        texts += [
            f"{name}<br>{format_bytes(round(size))}: {quantity.text(value)}"
            for size, value in zip(inside, values, strict=True)
        ]
        texts.append(None)
    dash = {"openmpi": "dashdot", "intel": "longdash"}.get(fit.mpi, "dash")
    name = f"{axes.label(fit.label)}, fitted protocols"
    more: dict[str, Any] = {"meta": "fit", "legendrank": 2000, "connectgaps": False}
    return line(name, x, y, texts, axes.color(color), dash, width=1.6, **more)


def _contention_figure(level: str, items: Sequence[Contention], material: Material) -> Figure:
    shown = large_message_protocols(items)
    data = [trace for item in shown for trace in _contention_traces(item)]
    mpis = {item.mpi for item in items}
    for (mpi, of_level), samples in sorted(largest_contention_samples(material).items()):
        if of_level == level and mpi in mpis:
            size_bytes = samples[0].config["size_bytes"]
            name = f"{axes.label(labels.flavour(mpi))}, raw samples of {format_bytes(size_bytes)}"
            counted = [(int(sample.config["competitors"]), sample.steady_times_s()) for sample in samples]
            rates = [(n, n * size_bytes / np.maximum(times_s, 1e-12)) for n, times_s in counted]
            data.append(raw_samples(name, mpi, rates))
    points = [point for item in shown for point in item.points]
    counts = sorted({point.count for point in points})
    top = max(value for point in points for value in point.bandwidth_bytes_per_s)
    others = " The table also has the protocols of smaller messages." if len(shown) < len(items) else ""
    return Figure(
        f"contention-{level}",
        f"Total received bandwidth, {labels.level(level)}",
        f"Points: measured, with their intervals; open points had {crowd('ranks')}. Dashed: ideal "
        f"scaling (max-rate bound), min(N*BW(1), BW_max).{others}",
        data,
        axes.layout(
            {"title": axes.titled("processes receiving at once, N"), "range": [0.7, counts[-1] + 0.3]}
            | ({"tickvals": counts} if len(counts) <= 10 else {}),
            axes.linear_bandwidth_axis(top, "received bandwidth"),
        ),
        wide=True,
    )


def _contention_traces(item: Contention) -> list[dict[str, Any]]:
    """Return ideal scaling, and the measured points with error bars."""
    name = axes.label(item.label + (f", {item.protocol}" if item.protocol else ""))
    color, shape = axes.color(item.mpi), axes.symbol(item.mpi)
    counts = [point.count for point in item.points]
    ends = [counts[0], item.bend, max(counts[-1], item.bend)]
    ideal = [item.ideal(n) for n in ends]
    texts = [f"ideal scaling<br>N = {n:.3g}: {format_bandwidth(b)}" for n, b in zip(ends, ideal, strict=True)]
    received = [point.bandwidth_bytes_per_s for point in item.points]
    shapes = [shape + "-open" * point.oversubscribed for point in item.points]
    measured = line(
        f"{name}: {'BW(N)' if item.protocol else 'measured'}",
        counts,
        [rate.value for rate in received],
        [
            f"{name}<br>N = {n}: <b>{format_bandwidth(rate.value)}</b><br>{format_bandwidth(rate.low)} to "
            f"{format_bandwidth(rate.high)}"
            for n, rate in zip(counts, received, strict=True)
        ],
        color,
        symbol=shape,
        marker={"color": color, "size": 9, "line": {"width": 2, "color": color}, "symbol": shapes},
        error_y=error_bars(received) | {"color": color},
    )
    return [line(f"{name}: ideal scaling", ends, ideal, texts, color, "dash", width=1.6), measured]


def rate_figures(all_rates: Sequence[MessageRates], id: str = "message-rate") -> list[Figure]:
    """Draw the rates of each level, size and window."""
    settings = [list(group) for _, group in groupby(all_rates, key=lambda series: series.setting)]
    figures = [_rates_figure(f"{id}-{k}", group) for k, group in enumerate(settings[:MAX_SETTINGS])]
    return figures + figures_left(id, len(settings), MAX_SETTINGS)


def _rates_figure(id: str, group: Sequence[MessageRates]) -> Figure:
    first = group[0]
    data = [
        trace
        for series, dash in zip(group, _DASHES * len(group), strict=False)
        for method, results in series.drawn().items()
        for trace in _rate_traces(series.label if len(group) > 1 else "", dash, method, results)
    ]
    drawn = [result for series in group for results in series.drawn().values() for result in results]
    return Figure(
        id,
        f"Messages per second of threads, {labels.level(first.level)}, {format_bytes(first.size_bytes)} each",
        f"Every thread sends windows of {first.window} messages. The rate is the number of messages of all "
        "threads divided by the time until the last one is received. "
        f"{measured_text(drawn)} Open markers: {crowd()}. Processes "
        "instead of threads are for comparison: their messages share no lock.",
        data,
        axes.layout(
            axes.log_count_axis(map(threads, drawn), "threads of each rank"),
            axes.log_rate_axis([value for result in drawn for value in rate(result)], "messages per second"),
        ),
    )


def _rate_traces(label: str, dash: str, method: str, results: Sequence[Result]) -> list[dict[str, Any]]:
    kind = METHODS.get(method, method)
    name = axes.label(f"{label}, {kind}" if label else labels.capital(kind))
    texts = [
        hover(
            name,
            labels.counted(threads(result), "thread") + f", {crowd()}" * result.oversubscribed,
            rate(result),
            lambda value: f"{millions(value)} million/s",
            result.launches,
        )
        for result in results
    ]
    symbols = [axes.symbol(method) + "-open" * result.oversubscribed for result in results]
    counts, rates = [threads(result) for result in results], [rate(result) for result in results]
    return spread_traces(method, name, counts, rates, texts, dash=dash, symbols=symbols)
