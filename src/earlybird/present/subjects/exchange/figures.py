"""Figures of exchanges: time of each rank, waiting for the slowest, predicted against measured."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.data.statistics import MEAN
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.bars import bars
from earlybird.present.core.lines import line, markers
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.exchange.view import Exchange

MAX_BARS = 32  # ranks drawn as bars in rank order; more are drawn as a line and points, slowest first
MAX_POINTS = 1500  # ranks drawn at most, an even selection from the slowest to the fastest


def ranks_figure(exchange: Exchange, id: str) -> Figure:
    """Draw the measured and predicted seconds of every rank."""
    ranks = _ranks(exchange)
    series = exchange.series()
    top = max(float(times.max()) for times in series.values())
    first, _ = exchange.reference()
    return Figure(
        id,
        "Time of each rank",
        f"{_times_text(exchange)}{_order_note(exchange)}",
        [_rank_trace(name, times[ranks], ranks, name == first) for name, times in series.items()],
        axes.layout(_rank_axis(exchange), axes.linear_time_axis(top, "time"), barmode="group", bargap=0.25),
        wide=True,
    )


def waiting_figure(exchange: Exchange, id: str) -> Figure:
    """Draw how long each rank waits for the slowest one: the largest time minus its own."""
    name, times = exchange.reference()
    ranks = _ranks(exchange)
    source = "measured" if name == "measured" else f"predicted by the {name} model"
    return Figure(
        id,
        "Waiting for the slowest rank",
        f"The time of the slowest rank minus the time of the rank, {source}.{_order_note(exchange)}",
        [_rank_trace(name, (times.max() - times)[ranks], ranks, True)],
        axes.layout(_rank_axis(exchange), axes.linear_time_axis(float(times.max()), "idle time")),
    )


def scatter_figure(exchange: Exchange, measured: np.ndarray, id: str) -> Figure:
    """Draw predicted against measured times, a point per rank and model, with the diagonal."""
    values = np.concatenate([measured, *exchange.predicted_s.values()])
    positive = values[values > 0]
    if len(positive) and positive.max() > 10 * positive.min():
        ends = [float(positive.min()) / 1.25, float(positive.max()) * 1.25]
        x, y = (axes.log_time_axis(positive, title) for title in ("measured", "predicted"))
    else:
        ends = [0.0, float(values.max()) * 1.06]
        x, y = (axes.linear_time_axis(float(values.max()), title) for title in ("measured", "predicted"))
    name, color = "predicted = measured", axes.color("measured")
    diagonal = line(name, ends, ends, [], color, "dash", width=1.4, hoverinfo="skip")
    ranks = _ranks(exchange)
    return Figure(
        id,
        "Predicted against measured",
        "One point per rank and model. Above the dashed diagonal, the prediction is larger than the "
        "measurement; below it, smaller.",
        [
            diagonal,
            *(
                _points(model, measured[ranks], exchange.predicted_s[model][ranks], ranks)
                for model in exchange.models()
            ),
        ],
        axes.layout(x, y),
    )


def _points(model: str, measured: np.ndarray, predicted: np.ndarray, ranks: np.ndarray) -> dict[str, Any]:
    name = axes.label(model)
    texts = [
        f"rank {rank}<br>measured {format_seconds(a)}<br>{name} <b>{format_seconds(b)}</b>"
        for rank, a, b in zip(ranks, measured, predicted, strict=True)
    ]
    return _markers(model, measured.tolist(), predicted.tolist(), texts)


def _ranks(exchange: Exchange) -> np.ndarray:
    """Return the ranks that are drawn, in the order of the axis."""
    if exchange.num_ranks <= MAX_BARS:
        return np.arange(exchange.num_ranks)
    slowest_first = np.argsort(-exchange.reference()[1], kind="stable")
    shown = min(MAX_POINTS, exchange.num_ranks)
    drawn: np.ndarray = slowest_first[np.linspace(0, exchange.num_ranks - 1, shown).astype(int)]
    return drawn


def _times_text(exchange: Exchange) -> str:
    if exchange.measured_s is None:
        return "The predictions of each model."
    predictions = ", and the predictions of each model" if exchange.predicted_s else ""
    if exchange.statistic == MEAN:
        return f"Mean over the iterations of all launches{predictions}."
    return f"Median over iterations, then launches{predictions}."


def _order_note(exchange: Exchange) -> str:
    if exchange.num_ranks <= MAX_BARS:
        return ""
    thinned = f", {MAX_POINTS} of {exchange.num_ranks} shown" if exchange.num_ranks > MAX_POINTS else ""
    return f" Slowest rank first{thinned}."


def _rank_trace(name: str, times: np.ndarray, ranks: np.ndarray, is_sort_key: bool) -> dict[str, Any]:
    """Return bars for few ranks; for many, a line if `is_sort_key` (it sorts them), else points."""
    label, places = axes.label(name), range(len(ranks))
    texts = [f"rank {r}, {label}<br><b>{format_seconds(t)}</b>" for r, t in zip(ranks, times, strict=True)]
    if len(ranks) <= MAX_BARS:
        return bars(name, places, times.tolist(), texts, name, axes.BAR_SHAPES.get(name, ""))
    if is_sort_key:
        return line(label, places, times.tolist(), texts, axes.color(name), width=2.5)
    return _markers(name, places, times.tolist(), texts)


def _markers(name: str, x: Sequence[float], y: Sequence[float], texts: Sequence[str]) -> dict[str, Any]:
    size, opacity = (9, 0.85) if len(x) <= MAX_BARS else (4, 0.45)
    return markers(axes.label(name), x, y, texts, name, size=size, opacity=opacity)


def _rank_axis(exchange: Exchange) -> dict[str, Any]:
    if exchange.num_ranks > MAX_BARS:
        return {"title": axes.titled("ranks, slowest first"), "showgrid": False, "showticklabels": False}
    return axes.number_axis(range(exchange.num_ranks), "rank") | {"range": [-0.6, exchange.num_ranks - 0.4]}
