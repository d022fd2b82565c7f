"""A map of coloured cells with letters: the best method by row and column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.data import labels
from earlybird.report.figures import axes

MAX_TICKS = 9
_WIDE_COLUMNS = 8  # with more columns, only the letters of a cell fit on a phone


@dataclass(frozen=True)
class Cell:
    """The best method, a number for cells that are wide enough, and the hover text."""

    method: str
    figure: str
    hover: str


@dataclass(frozen=True)
class MethodMap:
    """Cells by (row, column), labels of rows and columns, and titles of the two axes."""

    cells: Mapping[tuple[int, int], Cell]
    rows: Sequence[str]
    columns: Sequence[str]
    row_title: str
    column_title: str

    def filled(self) -> float:
        """The fraction of cells that exist."""
        return len(self.cells) / max(len(self.rows) * len(self.columns), 1)

    def methods(self) -> list[str]:
        return sorted({cell.method for cell in self.cells.values()}, key=labels.method_order)

    def data(self) -> list[dict[str, Any]]:
        """The heat map, and a trace per method for the legend, which heat maps lack."""
        methods = self.methods()
        rows, columns = range(len(self.rows)), range(len(self.columns))
        table = [[self.cells.get((row, column)) for column in columns] for row in rows]
        count = len(methods)
        cells = {
            "type": "heatmap",
            "x": list(columns),
            "y": list(rows),
            "z": [[methods.index(cell.method) if cell else None for cell in row] for row in table],
            "text": [[_text(cell, len(columns)) for cell in row] for row in table],
            "texttemplate": "%{text}",
            "textfont": {"color": "var(--paper)", "size": 11},
            "hovertext": [[cell.hover if cell else "" for cell in row] for row in table],
            "hoverinfo": "text",
            "hoverongaps": False,
            "colorscale": [
                [edge / count, axes.color(method)] for k, method in enumerate(methods) for edge in (k, k + 1)
            ],
            "zmin": -0.5,
            "zmax": count - 0.5,
            "xgap": 2,
            "ygap": 2,
            "showscale": False,
        }
        return [cells, *(_legend(method) for method in methods)]

    def layout(self) -> dict[str, Any]:
        return axes.layout(
            band_axis(self.columns, self.column_title, MAX_TICKS),
            band_axis(self.rows, self.row_title, len(self.rows)),
            height=100 + 34 * len(self.rows),
        )


def band_axis(names: Sequence[str], title: str, max_ticks: int) -> dict[str, Any]:
    """An axis with a band per name and at most `max_ticks` tick labels."""
    shown = range(0, len(names), max(-(-len(names) // max_ticks), 1))
    return {
        "showgrid": False,
        "tickangle": 0,
        "tickvals": list(shown),
        "ticktext": [names[k] for k in shown],
        "range": [-0.5, len(names) - 0.5],
        "title": axes.titled(title),
    }


def _text(cell: Cell | None, columns: int) -> str:
    if cell is None:
        return ""
    figure = f"<br>{cell.figure}" if cell.figure and columns <= _WIDE_COLUMNS else ""
    return labels.method_letters(cell.method) + figure


def _legend(method: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [None],
        "y": [None],
        "mode": "markers",
        "name": axes.label(f"{labels.method_letters(method)}: {labels.method(method)}"),
        "marker": {"symbol": "square", "size": 12, "color": axes.color(method)},
        "hoverinfo": "skip",
    }
