"""Figures of an exchange against latency and bandwidth, and against the number of nodes."""

from typing import Any

from earlybird.data import labels
from earlybird.data.node_counts import NodeCounts
from earlybird.data.tolerance import LATENCY, Tolerance, ToleranceCurve
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import line, spread_traces
from earlybird.present.core.parts import Figure

_MIN_SPAN = 1.7  # of the time axis around the time now, so that it has ticks


def tolerance_figure(tolerance: Tolerance, id: str) -> Figure:
    """Draw the slowest rank's seconds against the factor by which a parameter is multiplied, a line for
    each."""
    times_s = [time_s for curve in tolerance.curves for time_s in curve.time_s]
    factors = [factor for curve in tolerance.curves for factor in curve.factors]
    around = [tolerance.time_s / _MIN_SPAN, tolerance.time_s * _MIN_SPAN]
    return Figure(
        id,
        "Time against latency and bandwidth",
        f"Time of the slowest rank by the {tolerance.model} model if one parameter is multiplied by a "
        "factor. A flat line: the parameter does not matter to the exchange.",
        [_curve_line(curve) for curve in tolerance.curves],
        axes.layout(
            axes.factor_axis(factors, "factor of the latency or bandwidth"),
            axes.log_time_axis([*times_s, *around], "slowest rank"),
        ),
        wide=True,
    )


def _curve_line(curve: ToleranceCurve) -> dict[str, Any]:
    texts = [
        f"{curve.name}: {curve.value_text(factor)}<br><b>{format_seconds(time_s)}</b>"
        for factor, time_s in zip(curve.factors, curve.time_s, strict=True)
    ]
    is_latency = curve.parameter == LATENCY
    dash, symbol = "dash" if is_latency else "solid", axes.symbol(curve.level) + "-open" * is_latency
    name, color = labels.capital(curve.name), axes.color(curve.level)
    return line(name, curve.factors, curve.time_s, texts, color, dash, symbol=symbol)


def node_counts_figure(counts: NodeCounts, id: str) -> Figure:
    """Draw the slowest rank's seconds against the number of nodes."""
    ordered = sorted(counts.counts, key=lambda count: count.nodes)
    nodes, times_s = [count.nodes for count in ordered], [count.time_s for count in ordered]
    texts = [
        f"{labels.counted(count.nodes, 'node')} ({axes.label(count.layout)}): "
        f"<b>{format_seconds(count.time_s.value)}</b><br>inside nodes {format_seconds(count.intra_node_s)}, "
        f"between nodes {format_seconds(count.inter_node_s)}"
        for count in ordered
    ]
    return Figure(
        id,
        "Time against the number of nodes",
        f"Time of the slowest of {counts.ranks} ranks, predicted by the {counts.model} model, if they are "
        "divided evenly among the nodes. Shading: the 95 % interval of the fit, if the profile has one.",
        spread_traces(counts.model, axes.label(f"{counts.model} model"), nodes, times_s, texts),
        axes.layout(
            axes.log_count_axis(nodes, "nodes"),
            axes.linear_time_axis(max(time_s.high for time_s in times_s), "slowest rank"),
        ),
        wide=True,
    )
