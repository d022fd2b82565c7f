"""Bars of figures: side by side or on top of each other for several series, or a row for each item."""

from collections.abc import Sequence
from typing import Any

from earlybird.present.core import axes

# Hatching of the series of a figure, in the order of `axes.series`.
SHAPES = ("", "/", "x", ".", "\\", "-", "+")


def bars(
    name: str, x: Sequence[float], y: Sequence[float], hover: Sequence[str], look: str, shape: str = ""
) -> dict[str, Any]:
    """Return a series of vertical bars of the colour `look`."""
    return {
        "type": "bar",
        "name": axes.label(name),
        "x": list(x),
        "y": [rounded(value) for value in y],
        "marker": {"color": axes.color(look)} | axes.bar_pattern(shape),
        "hoverinfo": "text",
        "hovertext": list(hover),
    }


def row_bars(rows: Sequence[str], x: Sequence[float], hover: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return a horizontal bar for each of `rows`."""
    return {
        "type": "bar",
        "orientation": "h",
        "y": [axes.label(row) for row in rows],
        "x": list(x),
        "marker": {"color": axes.color(axes.series(0))},
        "hoverinfo": "text",
        "hovertext": list(hover),
        "showlegend": False,
    } | more


def bars_layout(x: dict[str, Any], y: dict[str, Any], mode: str, **more: Any) -> dict[str, Any]:
    """Return the layout of several series; `mode` is "group" or "stack"."""
    return axes.layout(x, y, barmode=mode, legend={**axes.LEGEND, "traceorder": "normal"}, **more)


def rows_layout(x: dict[str, Any], num_rows: int) -> dict[str, Any]:
    """Return the layout of `row_bars`, the first row at the top."""
    y = {"autorange": "reversed", "showgrid": False}
    return axes.layout(x, y, height=axes.height_of_rows(num_rows))


def rounded(value: float) -> float:
    """Return four significant digits: the page stays small."""
    return float(f"{value:.4g}")
