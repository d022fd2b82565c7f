"""Figures of chapter 2 for each level: time and bandwidth against size, received bandwidth against N."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.results import Estimate
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.report.curves import (
    Contention,
    Curve,
    Fit,
    contention_samples,
    large_message_protocols,
    rate,
    received_bandwidth,
)
from earlybird.report.figures import axes
from earlybird.report.figures.spread_lines import spread_traces
from earlybird.report.material import Material
from earlybird.report.parts import Figure

DOTS_PER_POINT = 40  # raw samples drawn per point; limits the size of the page


def level_figures(
    level: str,
    curves: Sequence[Curve],
    fits: Sequence[Fit],
    contentions: Sequence[Contention],
    material: Material,
) -> list[Figure]:
    """The figures of one level, with all flavours."""
    curves = [curve for curve in curves if curve.level == level]
    fits = [fit for fit in fits if fit.level == level]
    contentions = [item for item in contentions if item.level == level]
    figures = (
        [_time_figure(level, curves, fits), _bandwidth_figure(level, curves, fits)] if curves or fits else []
    )
    return figures + ([_contention_figure(level, contentions, material)] if contentions else [])


def _time_figure(level: str, curves: Sequence[Curve], fits: Sequence[Fit]) -> Figure:
    sizes, lines = _grid(curves, fits)
    data = [
        trace for curve in curves for trace in _curve_traces(curve, lambda size, time: time, format_seconds)
    ]
    data += [
        _fit_trace(fit, grid, lambda size, time: time, format_seconds, len(lines)) for fit, grid in lines
    ]
    times = [t for curve in curves for p in curve.points for t in (*p.interval_s, p.median_s)]
    times += [t for trace in data if trace.get("meta") == "fit" for t in trace["y"] if t]
    return Figure(
        f"time-{level}",
        f"Time of a message, {labels.level(level)}",
        "Half a round trip. Line: median over iterations, then launches. Shading: its interval over "
        "launches. " + _FIT_NOTE + " Click the legend to show raw samples.",
        data,
        axes.layout(axes.size_axis(sizes), axes.log_time_axis(times, "half round trip")),
    )


def _bandwidth_figure(level: str, curves: Sequence[Curve], fits: Sequence[Fit]) -> Figure:
    sizes, lines = _grid(curves, fits)
    data = [
        trace for curve in curves for trace in _curve_traces(curve, rate, format_bandwidth, positive=True)
    ]
    data += [_fit_trace(fit, grid[grid > 0], np.divide, format_bandwidth, len(lines)) for fit, grid in lines]
    rates = [rate(p.size_bytes, t) for curve in curves for p in curve.points for t in p.interval_s]
    rates += [r for trace in data if trace.get("meta") == "fit" for r in trace["y"] if r]
    return Figure(
        f"bandwidth-{level}",
        f"Bandwidth of one pair of processes, {labels.level(level)}",
        "Message size divided by half a round trip, without messages of 0 bytes. " + _FIT_NOTE,
        data,
        axes.layout(axes.size_axis(s for s in sizes if s > 0), axes.log_bandwidth_axis(rates, "bandwidth")),
    )


_FIT_NOTE = "Dashed: the fitted protocols, with a gap between protocols."


def _grid(curves: Sequence[Curve], fits: Sequence[Fit]) -> tuple[list[float], list[tuple[Fit, np.ndarray]]]:
    """The measured sizes, and for each fit the sizes at which its lines are drawn."""
    sizes = sorted({p.size_bytes for curve in curves for p in curve.points}) or [1, 1 << 22]
    top = max(sizes[-1], *(2 * s.min_bytes for fit in fits for s in fit.segments)) if fits else sizes[-1]
    grid = np.array(sorted({0.0} | {float(size) for size in sizes} | set(np.geomspace(1, max(top, 2), 80))))
    return [*sizes, *([top] if top > sizes[-1] else [])], [
        (fit, grid if 0 in sizes else grid[1:]) for fit in fits
    ]


def _curve_traces(curve: Curve, value, text, positive: bool = False) -> list[dict[str, Any]]:
    points = [p for p in curve.points if p.size_bytes > 0 or not positive]
    x = [p.size_bytes or axes.ZERO_BYTES_AT for p in points]
    low, high = ([value(p.size_bytes, p.interval_s[k]) for p in points] for k in (0, 1))
    label = axes.label(curve.label)
    spreads = [
        Estimate(value(p.size_bytes, p.median_s), a, b) for p, a, b in zip(points, low, high, strict=True)
    ]
    hover = [
        f"{label}<br>{format_bytes(p.size_bytes)}: <b>{text(middle)}</b><br>"
        f"medians of {labels.counted(p.num_launches, 'launch', 'launches')}: "
        f"{text(min(a, b))} to {text(max(a, b))}"
        for p, (middle, a, b) in zip(points, spreads, strict=True)
    ]
    *shading, line = spread_traces(
        curve.mpi,
        label,
        x,
        spreads,
        hover,
        dash="dot" if curve.reused_buffers else "solid",
        symbols=axes.symbol(curve.mpi) + "-open" * curve.reused_buffers,
    )
    return [*shading, _dots(curve, points, value, label), line]


def _dots(curve: Curve, points, value, label: str) -> dict[str, Any]:
    x, y = [], []
    for p in points:
        step = max(1, -(-len(p.times_s) // DOTS_PER_POINT))
        chosen = [float(t) for t in p.times_s[::step] if t > 0]
        x += [p.size_bytes or axes.ZERO_BYTES_AT] * len(chosen)
        y += [float(f"{value(p.size_bytes, t):.4g}") for t in chosen]
    return {
        "x": x,
        "y": y,
        "mode": "markers",
        "legendrank": 3000,
        "name": f"{label}, raw samples",
        "visible": "legendonly",
        "hoverinfo": "skip",
        "marker": {"color": axes.color(curve.mpi), "opacity": 0.3, "size": 4},
    }


def _fit_trace(fit: Fit, grid: np.ndarray, value, text, num_fits: int) -> dict[str, Any]:
    # A single fit has the text colour; several have the colours of their MPIs.
    color = axes.color("measured" if num_fits == 1 else fit.mpi)
    x: list[float | None] = []
    y: list[float | None] = []
    hover: list[str | None] = []
    for segment in fit.segments:
        inside = grid[(grid >= segment.min_bytes) & (grid < segment.end_bytes)]
        ends = [edge for edge in (segment.min_bytes, segment.end_bytes) if inside.size and edge <= grid[-1]]
        inside = np.unique(np.append(inside, [edge for edge in ends if edge >= grid[0]]))
        values = value(inside, segment.time_s(inside))
        x += [*(float(size) or axes.ZERO_BYTES_AT for size in inside), None]
        y += [*(float(v) if v > 0 else None for v in values), None]
        name = f"{axes.label(fit.label)}, {axes.label(segment.name)} fit"
        hover += [
            *(f"{name}<br>{format_bytes(round(s))}: {text(v)}" for s, v in zip(inside, values, strict=True)),
            None,
        ]
    return {
        "x": x,
        "y": y,
        "mode": "lines",
        "name": f"{axes.label(fit.label)}, fitted protocols",
        "meta": "fit",
        "legendrank": 2000,
        "connectgaps": False,
        "line": {"color": color, "width": 1.6, "dash": _dash(fit.mpi)},
        "hovertext": hover,
        "hoverinfo": "text",
    }


def _dash(mpi: str) -> str:
    return {"openmpi": "dashdot", "intel": "longdash"}.get(mpi, "dash")


def _contention_figure(level: str, items: Sequence[Contention], material: Material) -> Figure:
    shown = large_message_protocols(items)
    data = [trace for item in shown for trace in _contention_traces(item)]
    data += _contention_dots(level, {item.mpi for item in items}, material)
    counts = sorted({int(n) for item in shown for n in item.count})
    top = max(float(max(item.interval.max(), item.bandwidth_bytes_per_s.max())) for item in shown)
    others = " The table also has the protocols of smaller messages." if len(shown) < len(items) else ""
    return Figure(
        f"contention-{level}",
        f"Total received bandwidth, {labels.level(level)}",
        "Points: measured, with their intervals; open points had more ranks than cores. Dashed: ideal "
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
    name = axes.label(item.label + (f", {item.protocol}" if item.protocol else ""))
    color, shape = axes.color(item.mpi), axes.symbol(item.mpi)
    counts = item.count.tolist()
    bend, top = item.bend(), float(item.bandwidth_bytes_per_s.max())
    ends = [(counts[0], top * counts[0] / bend), (bend, top), (max(counts[-1], bend), top)]
    return [
        {
            "x": [n for n, _ in ends],
            "y": [b for _, b in ends],
            "mode": "lines",
            "name": f"{name}: ideal scaling",
            "line": {"color": color, "width": 1.6, "dash": "dash"},
            "hoverinfo": "text",
            "hovertext": [f"ideal scaling<br>N = {n:.3g}: {format_bandwidth(b)}" for n, b in ends],
        },
        {
            "x": counts,
            "y": item.bandwidth_bytes_per_s.tolist(),
            "mode": "lines+markers",
            "name": f"{name}: {'measured' if not item.fitted else 'BW(N)'}",
            "line": {"color": color, "width": 2},
            "marker": {
                "color": color,
                "size": 9,
                "line": {"width": 2, "color": color},
                "symbol": [shape + ("-open" if over else "") for over in item.oversubscribed],
            },
            "error_y": {
                "type": "data",
                "symmetric": False,
                "color": color,
                "thickness": 1.4,
                "width": 5,
                "array": np.maximum(item.interval[:, 1] - item.bandwidth_bytes_per_s, 0).tolist(),
                "arrayminus": np.maximum(item.bandwidth_bytes_per_s - item.interval[:, 0], 0).tolist(),
            },
            "hoverinfo": "text",
            "hovertext": [
                f"{name}<br>N = {n}: <b>{format_bandwidth(b)}</b><br>{format_bandwidth(low)} to "
                f"{format_bandwidth(high)}"
                for n, b, (low, high) in zip(counts, item.bandwidth_bytes_per_s, item.interval, strict=True)
            ],
        },
    ]


def _contention_dots(level: str, mpis: set[str], material: Material) -> list[dict[str, Any]]:
    """Raw received bandwidth at the largest measured size, hidden by default."""
    traces = []
    for mpi in sorted(mpis):
        samples = [
            s
            for s in contention_samples(material)
            if s.config.get("level") == level and str(s.config.get("mpi", "other")) == mpi
        ]
        if not samples:
            continue
        largest = max(int(s.config["size_bytes"]) for s in samples)
        x, y = [], []
        for sample in samples:
            if int(sample.config["size_bytes"]) == largest:
                rates = received_bandwidth([sample])
                rates = rates[:: max(1, -(-len(rates) // DOTS_PER_POINT))]
                x += [int(sample.config["competitors"])] * len(rates)
                y += [float(f"{rate:.4g}") for rate in rates]
        name = f"{axes.label(labels.flavour(mpi))}, raw samples of {format_bytes(largest)}"
        traces.append(
            {
                "x": x,
                "y": y,
                "mode": "markers",
                "legendrank": 3000,
                "name": name,
                "visible": "legendonly",
                "hoverinfo": "skip",
                "marker": {"color": axes.color(mpi), "opacity": 0.3, "size": 5},
            }
        )
    return traces
