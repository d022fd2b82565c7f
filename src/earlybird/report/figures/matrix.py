"""The communication matrix: bytes from each sender to each receiver as a heat map."""

from collections.abc import Callable

import numpy as np

from earlybird.data import labels
from earlybird.data.pattern import Pattern
from earlybird.data.units import format_bytes
from earlybird.report.figures import axes
from earlybird.report.figures.maps import heat_map
from earlybird.report.parts import Figure
from earlybird.report.views.exchanges import Exchange

MAX_CELLS = 64  # rows of the matrix; with more ranks, several share a cell


def matrix_figure(exchange: Exchange, id: str) -> Figure:
    """Bytes from each sender to each receiver, log colours; above MAX_CELLS ranks, a cell sums several."""
    title = "Communication matrix"
    if exchange.pattern.num_messages == 0:
        return Figure(id, title, "", absence="The pattern has no messages.")
    block, volume, messages = _blocks(exchange.pattern, exchange.num_ranks)
    names = _block_names(len(volume), block, exchange.num_ranks)
    logs = np.log10(np.maximum(volume, 1)).round(4)
    z: list[list[float | None]] = np.where(messages > 0, logs, None).tolist()  # type: ignore[attr-defined]
    low, high = float(logs[messages > 0].min()), float(logs[messages > 0].max())
    exponents, texts = log_ticks(low, high)
    hover = [
        [
            f"{names[i]} to {names[j]}<br><b>{format_bytes(size)}</b> in {labels.counted(count, 'message')}"
            for j, (size, count) in enumerate(zip(*rows, strict=True))
        ]
        for i, rows in enumerate(zip(volume.tolist(), messages.tolist(), strict=True))
    ]
    # A single volume still spans a scale.
    ends, gap = (low - 0.01, high + 0.01), 1 if len(volume) <= 32 else 0
    bar = axes.color_bar(exponents, texts, -0.2)
    trace = heat_map(z, hover, axes.AMOUNTS, ends, gap, colorbar=bar)
    ticks = sorted({round(k) for k in np.linspace(0, len(volume) - 1, min(len(volume), 7))})
    axis = {
        "tickvals": ticks,
        "ticktext": [str(k * block) for k in ticks],
        "tickangle": 0,
        "showgrid": False,
        "constrain": "domain",
    }
    caption = "Colour: bytes from sender to receiver, on a log scale. Empty cells: no messages."
    if block > 1:
        caption += f" Each cell is the sum over {block} by {block} ranks."
    return Figure(
        id,
        title,
        caption,
        [trace],
        axes.layout(
            axis | {"title": axes.titled("receiving rank")},
            axis | {"title": axes.titled("sending rank"), "autorange": "reversed", "scaleanchor": "x"},
            height=axes.HEIGHT + 50,
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


def log_ticks(
    low: float, high: float, text: Callable[[float], str] = format_bytes
) -> tuple[list[float], list[str]]:
    """Up to four tick positions (log10 of the values) and labels: powers of two, or the ends of the range."""
    first, last = np.ceil(low / np.log10(2)), np.floor(high / np.log10(2))
    if first >= last:
        ends = sorted({float(low), float(high)})
        return ends, [text(round(10**end)) for end in ends]
    powers = range(int(first), int(last) + 1, -(-int(last - first) // 3))
    return [k * float(np.log10(2)) for k in powers], [text(2**k) for k in powers]
