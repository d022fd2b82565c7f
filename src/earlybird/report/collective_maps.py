"""Maps of collectives by size and ranks: the fastest algorithm, and the time it takes."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import axes, words
from earlybird.report.collective_choices import choice, setting_words
from earlybird.report.collectives import Collective, CollectivePoint, base
from earlybird.report.fastest import TIE
from earlybird.report.method_map import MAX_TICKS, Cell, MethodMap, band_axis
from earlybird.report.parts import Figure

MAX_ROWS = 16  # numbers of ranks drawn
_FILLED = 2 / 3
# Quick to slow in even steps of lightness, for light and dark pages alike.
_COLORS = ((0.0, "#2a5591"), (0.33, "#6d7681"), (0.67, "#b3a570"), (1.0, "#fde643"))


def map_figures(k: int, one: Collective) -> list[Figure]:
    """The fastest of the MPI's algorithms, of all where one of ours is it somewhere, and its time."""
    if len(one.ranks()) < 2 or len(one.sizes()) < 2:
        return []
    kinds = (
        ("mpi", "of the MPI's algorithms", one.mpi_methods()),
        ("all", "of all algorithms, ours among them", one.methods()),
    )
    figures, before = [], None
    for kind, name, methods in kinds:
        drawing = _map(one, methods)
        # Where ours are nowhere the fastest, a second map would be the first again.
        if len(methods) > 1 and drawing.filled() >= _FILLED and drawing.cells != before:
            figures.append(_figure(f"collective-best-{kind}-{k}", one, name, drawing))
            before = drawing.cells
    return [*figures, _surface(f"collective-surface-{k}", one)]


def _rows(one: Collective) -> list[int]:
    """Of very many numbers of ranks the powers of two, and the ends."""
    counts = one.ranks()
    if len(counts) <= MAX_ROWS:
        return counts
    return sorted({counts[0], counts[-1], *(count for count in counts if count & (count - 1) == 0)})


def _map(one: Collective, methods: Sequence[str]) -> MethodMap:
    rows, columns = _rows(one), one.sizes()
    cells = {}
    for row, ranks in enumerate(rows):
        for point, method in zip(one.of_ranks(ranks), one.best_methods(ranks, methods), strict=True):
            if method:
                gain = point.gain(method)
                figure = f"{gain:.1f}" if gain is not None else ""
                cells[row, columns.index(point.size_bytes)] = Cell(
                    base(method), figure, _hover(point, method)
                )
    return MethodMap(
        cells, [str(row) for row in rows], [format_bytes(size) for size in columns], "ranks", "size"
    )


def _hover(point: CollectivePoint, method: str) -> str:
    gain = point.gain(method)
    much = f"<br><b>{gain:.2f}</b> times as fast as the MPI's own choice" if gain is not None else ""
    where = f"{format_bytes(point.size_bytes)}, {words.counted(point.ranks, 'rank')}"
    return f"{where}<br>{axes.label(words.method(method))}: {format_seconds(point.time_s[method][0])}{much}"


def _figure(id: str, one: Collective, which: str, drawing: MethodMap) -> Figure:
    return Figure(
        id,
        f"The fastest {which}: {setting_words(one)}",
        "Letters and colours name the algorithm; along a row it is replaced where another is more than "
        f"{words.percent(TIE)} faster, and faster in every launch than the other in any. Touch a cell for "
        "its time and segments.",
        drawing.data(),
        drawing.layout(),
        wide=True,
        sentence=_sentence(drawing),
        choice=choice(one),
    )


def _sentence(drawing: MethodMap) -> str:
    counts = Counter(cell.method for cell in drawing.cells.values()).most_common()
    told = [f"{words.method(method)} in {number}" for method, number in counts]
    of = words.counted(len(drawing.cells), "combination")
    return f"Of {of} of size and ranks, fastest is {words.listed_briefly(told, 5)}."


def _surface(id: str, one: Collective) -> Figure:
    """The time of the fastest algorithm by size and ranks; a cell tells those of all."""
    rows, columns = _rows(one), one.sizes()
    cells: dict[tuple[int, int], CollectivePoint] = {
        (rows.index(point.ranks), columns.index(point.size_bytes)): point
        for point in one.points
        if point.ranks in rows
    }
    least = {where: min(spread[0] for spread in point.time_s.values()) for where, point in cells.items()}
    z = [[_log(least.get((row, column))) for column in range(len(columns))] for row in range(len(rows))]
    known = [value for row in z for value in row if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    slow, quick = (pick(cells, key=least.get) for pick in (max, min))
    height = 190 + 34 * len(rows)
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": list(range(len(columns))),
        "y": list(range(len(rows))),
        "z": z,
        "hovertext": [
            [_times(cells.get((row, column))) for column in range(len(columns))] for row in range(len(rows))
        ],
        "hoverinfo": "text",
        "hoverongaps": False,
        "colorscale": _COLORS,
        "zmin": low - 0.01,
        "zmax": high + 0.01,
        "xgap": 1,
        "ygap": 1,
        "colorbar": _colorbar(low, high, height),
    }
    return Figure(
        id,
        f"Time by size and ranks: {setting_words(one)}",
        "Colour: the time of the fastest algorithm, on a log scale. Touch a cell for the times of all.",
        [trace],
        axes.layout(
            band_axis([format_bytes(size) for size in columns], "size", MAX_TICKS),
            band_axis([str(row) for row in rows], "ranks", len(rows)),
            height=height,
        ),
        wide=True,
        sentence=f"From {_where(cells[quick])}, {format_seconds(least[quick])}, to {_where(cells[slow])}, "
        f"{format_seconds(least[slow])}.",
        choice=choice(one),
    )


def _where(point: CollectivePoint) -> str:
    return f"{format_bytes(point.size_bytes)} among {words.counted(point.ranks, 'rank')}"


def _log(value: float | None) -> float | None:
    return round(math.log10(value), 4) if value and value > 0 else None


def _times(point: CollectivePoint | None) -> str:
    """Of every algorithm, the fastest first."""
    if point is None:
        return ""
    ordered = sorted(point.time_s.items(), key=lambda item: item[1][0])
    lines = [f"{axes.label(words.method(method))}: {format_seconds(spread[0])}" for method, spread in ordered]
    return f"<b>{_where(point)}</b><br>" + "<br>".join(lines)


def _colorbar(low: float, high: float, height: int) -> dict[str, Any]:
    """Below the axis title, with at most five ticks."""
    steps = (1,) if high - low >= 2 else (1, 2, 5)
    decades = range(math.floor(low), math.ceil(high) + 1)
    values = [step * 10.0**decade for decade in decades for step in steps]
    values = [value for value in values if low <= math.log10(value) <= high]
    values = values[:: -(-len(values) // 5)] if len(values) > 1 else sorted({10**low, 10**high})
    return {
        "tickvals": [math.log10(value) for value in values],
        "ticktext": [format_seconds(float(f"{value:.3g}")) for value in values],
        "thickness": 12,
        "outlinewidth": 0,
        "orientation": "h",
        "y": -0.2 * axes.HEIGHT / height,
        "yanchor": "top",
        "tickangle": 0,
    }
