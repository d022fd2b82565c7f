"""Maps of coloured cells: the best method by row and column, and amounts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.compare.ranking import MIN_EFFECT
from earlybird.data import labels
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.parts import Figure
from earlybird.present.core.points import Point

MAX_TICKS = 9
_WIDE_COLUMNS = 8  # with more columns, only the letters of a cell fit on a phone
_FILLED = 2 / 3  # least share of measured cells; below it no map is drawn
_LISTED = 5  # methods in the sentence


@dataclass(frozen=True)
class Cell:
    """The best method at a point, which may stand for several with its letters and colour."""

    method: str
    point: Point
    best: str

    @property
    def figure(self) -> str:
        """Return the speed-up over the reference, for cells that are wide enough."""
        gain = self.point.speed_up.get(self.best)
        return f"{gain.value:.1f}" if gain else ""

    @property
    def hover(self) -> str:
        """Return the best method with its speed-up, and the time of every method, the fastest first."""
        result = self.point.results[self.best]
        gain = result.speed_up
        over = f", speed-up {gain.value:.2f} over {labels.method(result.reference)}" if gain else ""
        times = sorted(self.point.time_s.items(), key=lambda item: item[1].value)
        lines = [
            f"{axes.label(labels.method(method))}: {format_seconds(time_s.value)}" for method, time_s in times
        ]
        best = f"<b>{axes.label(labels.method(self.best))}</b>{over}"
        return "<br>".join([self.point.where, best, *lines])


def method_map(
    id: str,
    title: str,
    noun: str,
    row_title: str,
    cells: Mapping[tuple[int, int], Cell],
    choice: Mapping[str, str],
) -> Figure | None:
    """Draw the best `noun` (method, algorithm) by (row, size); None with one row or size, or too few
    cells."""
    rows, sizes = (sorted({key[k] for key in cells}) for k in (0, 1))
    if len(rows) < 2 or len(sizes) < 2 or len(cells) < _FILLED * len(rows) * len(sizes):
        return None
    table = [[cells.get((row, size)) for size in sizes] for row in rows]
    shares = Counter(cell.method for cell in cells.values())
    methods, count = sorted(shares, key=labels.method_order), len(shares)
    cell_width = len(sizes) <= _WIDE_COLUMNS
    heat = heat_map(
        [[methods.index(cell.method) if cell else None for cell in row] for row in table],
        [[cell.hover if cell else "" for cell in row] for row in table],
        [[edge / count, axes.color(method)] for k, method in enumerate(methods) for edge in (k, k + 1)],
        (-0.5, count - 0.5),
        gap=2,
        text=[[_text(cell, cell_width) if cell else "" for cell in row] for row in table],
        texttemplate="%{text}",
        textfont={"color": "var(--paper)", "size": 11},
        showscale=False,
    )
    listed = [f"{labels.method(method)} in {number}" for method, number in shares.most_common()]
    total = labels.counted(len(cells), "combination")
    return Figure(
        id,
        title,
        f"Letters and colours identify the {noun}. Along a row, another {noun} replaces it only if that one "
        f"is clearly faster: by more than {labels.percent(MIN_EFFECT)}, and the intervals do not overlap. "
        "Hover over or tap a cell for the times of all.",
        [heat, *map(_legend, methods)],
        axes.layout(
            axes.band_axis([format_bytes(size) for size in sizes], "size", MAX_TICKS),
            axes.band_axis([str(row) for row in rows], row_title, len(rows)),
            height=100 + 34 * len(rows),
        ),
        wide=True,
        sentence=f"Best {noun} in {total} of size and {row_title}: {labels.listed_briefly(listed, _LISTED)}.",
        choice=choice,
    )


def heat_map(
    z: Sequence[Sequence[float | None]],
    hover: Sequence[Sequence[str]],
    colors: Sequence[Any],
    ends: tuple[float, float],
    gap: int,
    **more: Any,
) -> dict[str, Any]:
    """Return cells by row and column with colours of the scale `colors` between `ends`."""
    return {
        "type": "heatmap",
        "x": list(range(len(z[0]))),
        "y": list(range(len(z))),
        "z": z,
        "hovertext": hover,
        "hoverinfo": "text",
        "hoverongaps": False,
        "colorscale": colors,
        "zmin": ends[0],
        "zmax": ends[1],
        "xgap": gap,
        "ygap": gap,
    } | more


def _text(cell: Cell, is_wide: bool) -> str:
    return labels.method_letters(cell.method) + (f"<br>{cell.figure}" if cell.figure and is_wide else "")


def _legend(method: str) -> dict[str, Any]:
    """Return a trace for the legend, which heat maps lack."""
    return {
        "type": "scatter",
        "x": [None],
        "y": [None],
        "mode": "markers",
        "name": axes.label(f"{labels.method_letters(method)}: {labels.method(method)}"),
        "marker": {"symbol": "square", "size": 12, "color": axes.color(method)},
        "hoverinfo": "skip",
    }
