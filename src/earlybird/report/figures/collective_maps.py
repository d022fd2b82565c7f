"""Maps of collectives by size and ranks: the fastest algorithm, and the time it takes."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from earlybird.compare.ranking import MIN_EFFECT
from earlybird.data import labels
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report.collective_choices import choice, setting_text
from earlybird.report.collectives import Collective, CollectivePoint, base
from earlybird.report.figures import axes
from earlybird.report.figures.method_map import MAX_TICKS, Cell, MethodMap, band_axis
from earlybird.report.parts import Figure

MAX_ROWS = 16  # rank counts drawn
_FILLED = 2 / 3


def map_figures(k: int, collective: Collective) -> list[Figure]:
    """Maps of the fastest MPI algorithm, of the fastest including ours if it differs, and of the time."""
    if len(collective.ranks()) < 2 or len(collective.sizes()) < 2:
        return []
    kinds = (
        ("mpi", "of the MPI's algorithms", collective.mpi_methods()),
        ("all", "of all algorithms, including ours", collective.methods()),
    )
    figures, previous_cells = [], None
    for kind, name, methods in kinds:
        drawing = _map(collective, methods)
        # If ours are never the fastest, the second map equals the first.
        if len(methods) > 1 and drawing.filled() >= _FILLED and drawing.cells != previous_cells:
            figures.append(_figure(f"collective-best-{kind}-{k}", collective, name, drawing))
            previous_cells = drawing.cells
    return [*figures, _surface(f"collective-surface-{k}", collective)]


def _rows(collective: Collective) -> list[int]:
    """All rank counts; if there are too many, the ends and the powers of two."""
    counts = collective.ranks()
    if len(counts) <= MAX_ROWS:
        return counts
    return sorted({counts[0], counts[-1], *(count for count in counts if count & (count - 1) == 0)})


def _map(collective: Collective, methods: Sequence[str]) -> MethodMap:
    rows, columns = _rows(collective), collective.sizes()
    cells = {}
    for row, ranks in enumerate(rows):
        for point, method in zip(
            collective.of_ranks(ranks), collective.best_methods(ranks, methods), strict=True
        ):
            if method:
                gain = point.speed_up(method)
                figure = f"{gain:.1f}" if gain is not None else ""
                cells[row, columns.index(point.size_bytes)] = Cell(
                    base(method), figure, _hover(point, method)
                )
    return MethodMap(
        cells, [str(row) for row in rows], [format_bytes(size) for size in columns], "ranks", "size"
    )


def _hover(point: CollectivePoint, method: str) -> str:
    gain = point.speed_up(method)
    speed_up = f"<br>speed-up <b>{gain:.2f}</b> over the MPI's default" if gain is not None else ""
    where = f"{format_bytes(point.size_bytes)}, {labels.counted(point.ranks, 'rank')}"
    return (
        f"{where}<br>{axes.label(labels.method(method))}: {format_seconds(point.time_s[method][0])}{speed_up}"
    )


def _figure(id: str, collective: Collective, which: str, drawing: MethodMap) -> Figure:
    return Figure(
        id,
        f"The fastest {which}: {setting_text(collective)}",
        "Letters and colours identify the algorithm. Along a row, another algorithm replaces it only if that "
        f"algorithm is more than {labels.percent(MIN_EFFECT)} faster and the intervals do not overlap. Hover "
        "over or tap a cell for its time and segment size.",
        drawing.data(),
        drawing.layout(),
        wide=True,
        sentence=_sentence(drawing),
        choice=choice(collective),
    )


def _sentence(drawing: MethodMap) -> str:
    counts = Counter(cell.method for cell in drawing.cells.values()).most_common()
    shares = [f"{labels.method(method)} in {number}" for method, number in counts]
    total = labels.counted(len(drawing.cells), "combination")
    return f"Fastest algorithm in {total} of size and ranks: {labels.listed_briefly(shares, 5)}."


def _surface(id: str, collective: Collective) -> Figure:
    """The time of the fastest algorithm by size and ranks; the hover text lists all algorithms."""
    rows, columns = _rows(collective), collective.sizes()
    cells: dict[tuple[int, int], CollectivePoint] = {
        (rows.index(point.ranks), columns.index(point.size_bytes)): point
        for point in collective.points
        if point.ranks in rows
    }
    least = {where: min(spread[0] for spread in point.time_s.values()) for where, point in cells.items()}
    z = [[_log(least.get((row, column))) for column in range(len(columns))] for row in range(len(rows))]
    known = [value for row in z for value in row if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    slow, fast = (pick(cells, key=least.get) for pick in (max, min))
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
        "colorscale": axes.AMOUNTS,
        "zmin": low - 0.01,
        "zmax": high + 0.01,
        "xgap": 1,
        "ygap": 1,
        "colorbar": _colorbar(low, high, height),
    }
    return Figure(
        id,
        f"Time by size and ranks: {setting_text(collective)}",
        "Colour: the time of the fastest algorithm, on a log scale. Hover over or tap a cell for all times.",
        [trace],
        axes.layout(
            band_axis([format_bytes(size) for size in columns], "size", MAX_TICKS),
            band_axis([str(row) for row in rows], "ranks", len(rows)),
            height=height,
        ),
        wide=True,
        sentence=f"Shortest time: {format_seconds(least[fast])} ({_where(cells[fast])}). Longest time: "
        f"{format_seconds(least[slow])} ({_where(cells[slow])}).",
        choice=choice(collective),
    )


def _where(point: CollectivePoint) -> str:
    return f"{format_bytes(point.size_bytes)} among {labels.counted(point.ranks, 'rank')}"


def _log(value: float | None) -> float | None:
    return round(math.log10(value), 4) if value and value > 0 else None


def _times(point: CollectivePoint | None) -> str:
    """The time of every algorithm, the fastest first."""
    if point is None:
        return ""
    ordered = sorted(point.time_s.items(), key=lambda item: item[1][0])
    lines = [
        f"{axes.label(labels.method(method))}: {format_seconds(spread[0])}" for method, spread in ordered
    ]
    return f"<b>{_where(point)}</b><br>" + "<br>".join(lines)


def _colorbar(low: float, high: float, height: int) -> dict[str, Any]:
    """A colour bar below the axis title, with at most five ticks."""
    steps = (1,) if high - low >= 2 else (1, 2, 5)
    decades = range(math.floor(low), math.ceil(high) + 1)
    values = [step * 10.0**decade for decade in decades for step in steps]
    values = [value for value in values if low <= math.log10(value) <= high]
    values = values[:: -(-len(values) // 5)] if len(values) > 1 else sorted({10**low, 10**high})
    texts = [format_seconds(float(f"{value:.3g}")) for value in values]
    return axes.color_bar([math.log10(value) for value in values], texts, -80 / height)
