"""The communication matrix: bytes from each sender to each receiver as a heat map."""

from collections.abc import Callable

import numpy as np

from earlybird.data.pattern import Pattern
from earlybird.present.core import axes
from earlybird.present.core.matrices import (
    amounts_caption,
    amounts_map,
    cell_text,
    even_ticks,
    matrix_layout,
    separators,
)
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.exchange.view import Exchange

MAX_CELLS = 64  # rows of the matrix; with more ranks, several share a cell
MAX_SPARSE_CELLS = 256  # the same if at most MAX_CELLS**2 pairs of ranks exchange messages
MAX_NUMBERS = 16  # rows of a matrix with numbers in its cells


def matrix_figure(pattern: Pattern, exchange: Exchange, id: str) -> Figure:
    """Draw the bytes from each sender to each receiver, log colours; with many ranks, a cell sums several.
    Up to MAX_NUMBERS ranks with sizes as figure 2 of Thune et al. 2023; lines separate the nodes if known."""
    title = "Communication matrix"
    if pattern.num_messages == 0:
        return Figure(id, title, "", absence="The pattern has no messages.")
    block, volume, messages = _blocks(pattern, exchange.num_ranks)
    last = exchange.num_ranks - 1
    starts = range(0, len(volume) * block, block)
    names = [axes.span_text("rank", start, max(min(start + block - 1, last), start)) for start in starts]
    hover = _texts(volume, messages, lambda i, j, size, count: cell_text(names[i], names[j], size, count))
    trace = amounts_map(volume, messages, hover, gap=1 if len(volume) <= 32 else 0)
    has_numbers = len(volume) <= MAX_NUMBERS
    if has_numbers:
        trace |= {
            "text": _texts(volume, messages, lambda i, j, size, count: _short_size(size)),
            "texttemplate": "%{text}",
        }
    caption = amounts_caption("bytes")
    if block > 1:
        caption += f" Each cell is the sum over {block} by {block} ranks."
    if has_numbers:
        caption += " Numbers: bytes, K for KiB, M for MiB, G for GiB."
    # None if ranks are not in order of nodes.
    nodes = exchange.where.node.tolist() if exchange.where else []
    lines = separators(nodes, block) if nodes == sorted(nodes) else []
    if lines:
        caption += " Lines separate nodes."
    return Figure(
        id,
        title,
        caption,
        [trace],
        matrix_layout(
            {k: str(k * block) for k in even_ticks(len(volume))},
            "receiving rank",
            "sending rank",
            lines,
            height=axes.HEIGHT + (130 if has_numbers and len(volume) > 8 else 50),
        ),
    )


def _texts(
    volume: np.ndarray, messages: np.ndarray, text: Callable[[int, int, int, int], str]
) -> list[list[str]]:
    """Return the `text` of each cell that has messages, from its row, column, bytes and messages."""
    return [
        [text(i, j, *cell) if cell[1] else "" for j, cell in enumerate(zip(*rows, strict=True))]
        for i, rows in enumerate(zip(volume.tolist(), messages.tolist(), strict=True))
    ]


def _short_size(size_bytes: int) -> str:
    """Return a size in at most four characters: `1K` for 1024, 2836 -> `2.8K`, 64,000 -> `63K`."""
    value, units = float(size_bytes), iter(("", "K", "M", "G", "T", "P", "E"))
    unit = next(units)
    while value >= 999.5:
        value, unit = value / 1024, next(units)
    short = f"{value:.1f}".removesuffix(".0") if unit and value < 9.95 else f"{value:.0f}"
    return short + unit


def _blocks(pattern: Pattern, num_ranks: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return (ranks per cell, bytes, messages); the last two are (cells, cells) with senders in rows."""
    num_ranks = max(num_ranks, pattern.num_ranks_named)
    num_pairs = len(np.unique(pattern.src * num_ranks + pattern.dst))
    is_sparse = num_ranks <= MAX_SPARSE_CELLS and num_pairs <= MAX_CELLS**2
    block = 1 if is_sparse else -(-num_ranks // MAX_CELLS)
    cells = -(-num_ranks // block)
    index = (pattern.src // block) * cells + pattern.dst // block
    messages = np.bincount(index, minlength=cells * cells).reshape(cells, cells)
    volume = np.zeros(cells * cells, dtype=np.int64)
    np.add.at(volume, index, pattern.bytes)
    return block, volume.reshape(cells, cells), messages
