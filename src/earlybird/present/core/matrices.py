"""Square maps: a row for each sender and a column for each receiver, with their axes and lines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.maps import heat_map

MAX_TICKS = 8  # labels of an axis
MAX_SEPARATORS = 64  # lines across a matrix; more would hide the cells


def amounts_map(
    amounts: np.ndarray,
    messages: np.ndarray,
    hover: Sequence[Sequence[str]],
    gap: int = 0,
    text: Callable[[float], str] = format_bytes,
    decimals: int = 4,
) -> dict[str, Any]:
    """Return cells with colours for `amounts` on a log scale, empty where there are no `messages`; at least
    one cell is filled. Fewer `decimals` of the logarithms make a smaller page."""
    sent, logs = messages > 0, np.log10(np.maximum(amounts, 1)).round(decimals)
    low, high = float(logs[sent].min()), float(logs[sent].max())
    z: list[list[float | None]] = np.where(sent, logs, None).tolist()  # type: ignore[attr-defined]
    bar = axes.color_bar(*log_ticks(low, high, text), -0.2)
    # A single amount still spans a scale.
    return heat_map(z, hover, axes.AMOUNTS, (low - 0.01, high + 0.01), gap, colorbar=bar)


def amounts_caption(quantity: str) -> str:
    """Return what the colours of `amounts_map` mean."""
    return f"Colour: {quantity} from sender to receiver, on a log scale. Empty cells: no messages."


def cell_text(sender: str, receiver: str, num_bytes: int, num_messages: int) -> str:
    """Return the text that a cell shows when a user points at it."""
    count = labels.counted(num_messages, "message")
    return f"{sender} to {receiver}<br><b>{format_bytes(num_bytes)}</b> in {count}"


def matrix_layout(
    tick_texts: Mapping[int, str],
    receivers: str,
    senders: str,
    shapes: Iterable[Mapping[str, Any]] = (),
    *,
    height: int = axes.HEIGHT + 50,
    **more: Any,
) -> dict[str, Any]:
    """Return the layout of a matrix with senders in rows, from top to bottom; `more` are properties of both
    axes."""
    axis = {
        "tickvals": list(tick_texts),
        "ticktext": list(tick_texts.values()),
        "tickangle": 0,
        "showgrid": False,
        "constrain": "domain",
    } | more
    return axes.layout(
        axis | {"title": axes.titled(receivers)},
        axis | {"title": axes.titled(senders), "autorange": "reversed", "scaleanchor": "x"},
        height=height,
        shapes=list(shapes),
    )


def even_ticks(num_rows: int, most: int = MAX_TICKS) -> list[int]:
    """Return at most `most` rows from the first on, with equal distances."""
    return list(range(0, num_rows, max(-(-num_rows // most), 1)))


def separators(groups: Sequence[Any], block: int = 1) -> list[dict[str, Any]]:
    """Return lines between the rows of different `groups`, in both directions; none if they are too many.
    Each cell of the matrix has `block` rows."""
    at = [k / block - 0.5 for k in range(1, len(groups)) if groups[k] != groups[k - 1]]
    num_cells = -(-len(groups) // block)
    if len(at) > MAX_SEPARATORS:
        return []
    look = {"type": "line", "line": {"color": "var(--soft)", "width": 1}}
    ends = {"0": -0.5, "1": num_cells - 0.5}
    return [
        look | {f"{along}{end}": value for end, value in ends.items()} | {f"{across}{end}": x for end in ends}
        for x in at
        for along, across in (("x", "y"), ("y", "x"))
    ]


def frame(row: int, column: int) -> dict[str, Any]:
    """Return a rectangle around a cell."""
    return {
        "type": "rect", "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5,
        "line": {"color": "var(--ink)", "width": 2},
    }  # fmt: skip


def log_ticks(
    low: float, high: float, text: Callable[[float], str] = format_bytes
) -> tuple[list[float], list[str]]:
    """Return up to four tick positions (log10 of the values) and labels: powers of two, or the ends of the
    range."""
    first, last = np.ceil(low / np.log10(2)), np.floor(high / np.log10(2))
    if first >= last:
        ends = sorted({float(low), float(high)})
        return ends, [text(round(10**end)) for end in ends]
    powers = range(int(first), int(last) + 1, -(-int(last - first) // 3))
    return [k * float(np.log10(2)) for k in powers], [text(2**k) for k in powers]
