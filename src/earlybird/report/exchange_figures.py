"""Figures of chapters 3 and 4: communication matrix, time per rank, waiting, predicted against measured."""

from typing import Any

import numpy as np

from earlybird.data.pattern import Pattern
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import axes, words
from earlybird.report.exchanges import Exchange
from earlybird.report.parts import Figure

MAX_CELLS = 64  # rows of the matrix; more ranks share a cell
# Dark to bright in even steps, as Cividis, but never as dark as the dark page.
COLORS = ((0.0, "#2a5591"), (0.33, "#6d7681"), (0.67, "#b3a570"), (1.0, "#fde643"))
MAX_BARS = 32  # ranks drawn as bars; more are drawn as lines
MAX_POINTS = 2000  # ranks in the scatter


def matrix_figure(exchange: Exchange, id: str) -> Figure:
    """Bytes from each sender to each receiver, log colour; beyond MAX_CELLS ranks neighbours are added up."""
    title = "Who sends how much to whom"
    if exchange.pattern is None:
        return Figure(
            id,
            title,
            "",
            why_not="The pattern was not given: add the pattern file, or the run folder of the "
            "replay, which holds it.",
        )
    if exchange.pattern.num_messages == 0:
        return Figure(id, title, "", why_not="The pattern has no messages.")
    block, volume, messages = _blocks(exchange.pattern, exchange.num_ranks)
    names = _block_names(len(volume), block, exchange.num_ranks)
    with np.errstate(divide="ignore"):
        z = np.where(messages > 0, np.log10(np.maximum(volume, 1)), np.nan)
    exponents, texts = _byte_ticks(np.nanmin(z), np.nanmax(z))
    hover = [
        [
            f"{names[i]} to {names[j]}<br><b>{format_bytes(int(volume[i, j]))}</b> in "
            f"{words.counted(int(messages[i, j]), 'message')}"
            if messages[i, j]
            else ""
            for j in range(len(volume))
        ]
        for i in range(len(volume))
    ]
    trace = {
        "type": "heatmap",
        "x": list(range(len(volume))),
        "y": list(range(len(volume))),
        "z": _none_for_nan(z),
        "hovertext": hover,
        "hoverinfo": "text",
        "colorscale": COLORS,
        "xgap": 1 if len(volume) <= 32 else 0,
        "ygap": 1 if len(volume) <= 32 else 0,
        "colorbar": {
            "tickvals": exponents,
            "ticktext": texts,
            "thickness": 12,
            "outlinewidth": 0,
            "orientation": "h",
            "y": -0.2,
            "yanchor": "top",
            "tickangle": 0,
        },
    }
    ticks = sorted({round(k) for k in np.linspace(0, len(volume) - 1, min(len(volume), 9))})
    axis = {
        "tickvals": ticks,
        "ticktext": [str(k * block) for k in ticks],
        "showgrid": False,
        "constrain": "domain",
    }
    caption = "Colour: bytes from sender to receiver, on a log scale; no colour where nothing is sent."
    if block > 1:
        caption += f" Each cell adds up {block} by {block} ranks."
    return Figure(
        id,
        title,
        caption,
        [trace],
        axes.layout(
            axis | {"title": axes.titled("receiving rank")},
            axis | {"title": axes.titled("sending rank"), "autorange": "reversed", "scaleanchor": "x"},
        ),
    )


def _blocks(pattern: Pattern, num_ranks: int) -> tuple[int, np.ndarray, np.ndarray]:
    """(ranks per cell, bytes, messages); the last two are (cells, cells) with senders in rows."""
    num_ranks = max(num_ranks, pattern.num_ranks_named)
    block = -(-num_ranks // MAX_CELLS)
    cells = -(-num_ranks // block)
    index = (pattern.src // block) * cells + pattern.dst // block
    messages = np.bincount(index, minlength=cells * cells).reshape(cells, cells)
    volume = np.zeros(cells * cells, dtype=np.int64)
    np.add.at(volume, index, pattern.bytes)
    return block, volume.reshape(cells, cells), messages


def _block_names(cells: int, block: int, num_ranks: int) -> list[str]:
    if block == 1:
        return [f"rank {k}" for k in range(cells)]
    return [f"ranks {k * block} to {min((k + 1) * block, num_ranks) - 1}" for k in range(cells)]


def _byte_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Up to five positions (log10 of bytes) and names: powers of two, or else the ends of the range."""
    first, last = np.ceil(low / np.log10(2)), np.floor(high / np.log10(2))
    if first >= last:
        ends = sorted({float(low), float(high)})
        return ends, [format_bytes(round(10**end)) for end in ends]
    powers = np.unique(np.rint(np.linspace(first, last, 5))).astype(int).tolist()
    return [k * float(np.log10(2)) for k in powers], [format_bytes(2**k) for k in powers]


def _none_for_nan(values: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(v) else round(float(v), 4) for v in row] for row in values]


def ranks_figure(exchange: Exchange, id: str) -> Figure:
    """Measured and predicted seconds of every rank: bars, or lines where there are too many."""
    series = _series(exchange)
    draw = _bar if exchange.num_ranks <= MAX_BARS else _line
    top = max(float(times.max()) for _, times in series)
    return Figure(
        id,
        "Time of each rank",
        "Median over iterations, then launches, beside what each model predicts.",
        [draw(name, times) for name, times in series],
        axes.layout(
            _rank_axis(exchange.num_ranks), axes.linear_time_axis(top, "time"), barmode="group", bargap=0.25
        ),
        wide=True,
    )


def waiting_figure(exchange: Exchange, id: str) -> Figure:
    """How long each rank would wait for the slowest one: the largest time minus its own."""
    name, times = exchange.reference()
    waiting = times.max() - times
    trace = (_bar if exchange.num_ranks <= MAX_BARS else _line)(name, waiting)
    said = "measured" if name == "measured" else f"predicted by the {name} model"
    return Figure(
        id,
        "Waiting for the slowest rank",
        f"The slowest rank's time minus the rank's own, {said}.",
        [trace],
        axes.layout(_rank_axis(exchange.num_ranks), axes.linear_time_axis(float(times.max()), "idle time")),
    )


def scatter_figure(exchange: Exchange, id: str) -> Figure:
    """Predicted against measured, a point per rank and model, with the diagonal where both agree."""
    measured = exchange.measured_s
    values = np.concatenate([measured, *exchange.predicted_s.values()])
    positive = values[values > 0]
    step = max(1, -(-len(measured) // MAX_POINTS))
    data: list[dict[str, Any]] = []
    for model in exchange.models():
        predicted = exchange.predicted_s[model]
        hover = [
            f"rank {r}<br>measured {format_seconds(measured[r])}<br>{axes.label(model)} "
            f"<b>{format_seconds(predicted[r])}</b>"
            for r in range(0, len(measured), step)
        ]
        data.append(
            {
                "x": measured[::step].tolist(),
                "y": predicted[::step].tolist(),
                "mode": "markers",
                "name": axes.label(model),
                "hovertext": hover,
                "hoverinfo": "text",
                "marker": {
                    "color": axes.color(model),
                    "symbol": axes.symbol(model),
                    "size": 9,
                    "opacity": 0.85,
                },
            }
        )
    if len(positive) and positive.max() > 10 * positive.min():
        ends = [float(positive.min()) / 1.25, float(positive.max()) * 1.25]
        x, y = axes.log_time_axis(positive, "measured"), axes.log_time_axis(positive, "predicted")
    else:
        ends = [0.0, float(values.max()) * 1.06]
        x, y = (
            axes.linear_time_axis(values.max(), "measured"),
            axes.linear_time_axis(values.max(), "predicted"),
        )
    diagonal = {
        "x": ends,
        "y": ends,
        "mode": "lines",
        "name": "predicted = measured",
        "hoverinfo": "skip",
        "line": {"color": axes.color("measured"), "width": 1.4, "dash": "dash"},
    }
    return Figure(
        id,
        "Predicted against measured",
        "A point per rank and model. Above the dashed diagonal the model says more than was measured, "
        "below it less.",
        [diagonal, *data],
        axes.layout(x, y),
    )


def _series(exchange: Exchange) -> list[tuple[str, np.ndarray]]:
    measured = [] if exchange.measured_s is None else [("measured", exchange.measured_s)]
    return measured + [(model, exchange.predicted_s[model]) for model in exchange.models()]


def _bar(name: str, times: np.ndarray) -> dict[str, Any]:
    marker: dict[str, Any] = {"color": axes.color(name)}
    if name in axes.BAR_SHAPES:
        marker["pattern"] = {
            "shape": axes.BAR_SHAPES[name],
            "fillmode": "overlay",
            "fgcolor": "var(--card)",
            "size": 7,
            "solidity": 0.2,
        }
    return {
        "type": "bar",
        "x": list(range(len(times))),
        "y": times.tolist(),
        "name": axes.label(name),
        "marker": marker,
        "hovertext": _rank_hover(name, times),
        "hoverinfo": "text",
    }


def _line(name: str, times: np.ndarray) -> dict[str, Any]:
    dashes = {"measured": "solid", "staircase": "dash", "max-rate": "dot", "postal": "dashdot"}
    return {
        "x": list(range(len(times))),
        "y": times.tolist(),
        "name": axes.label(name),
        "mode": "lines",
        "line": {"color": axes.color(name), "width": 1.6, "dash": dashes.get(name, "longdash")},
        "hovertext": _rank_hover(name, times),
        "hoverinfo": "text",
    }


def _rank_hover(name: str, times: np.ndarray) -> list[str]:
    return [f"rank {r}, {axes.label(name)}<br><b>{format_seconds(t)}</b>" for r, t in enumerate(times)]


def _rank_axis(num_ranks: int) -> dict[str, Any]:
    ticks = {"tickvals": list(range(num_ranks))} if num_ranks <= 16 else {}
    return {"title": axes.titled("rank"), "showgrid": False, "range": [-0.6, num_ranks - 0.4]} | ticks
