"""Which way is best at every size and number of partitions, as a map of coloured cells with letters."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from earlybird.data.units import format_bytes
from earlybird.report import axes, words
from earlybird.report.parts import Figure
from earlybird.report.pipeline_choices import choice, setting_words
from earlybird.report.pipelines import TIE, Pipeline

MAX_TICKS = 9
_WIDE_COLUMNS = 8  # beyond as many the letters of a cell alone fit on a phone
_SAME_SIZE = 1 / 16  # sizes cut to a multiple of an odd number of partitions share a column
_FILLED = 2 / 3  # of a map, at least: numbers of partitions measured at different sizes make none
_Cell = tuple[str, float | None]  # the best way, and how many times as fast as one message it is


def best_way_figures(found: Sequence[Pipeline]) -> list[Figure]:
    """A map for all that a reader chooses but partitions, where those and sizes are several."""
    groups: dict[tuple, list[Pipeline]] = defaultdict(list)
    for one in found:
        groups[tuple(_choice(one).items())].append(one)
    maps = [
        group
        for group in groups.values()
        if len({one.setting.partitions for one in group}) > 1 and max(len(one.points) for one in group) > 1
    ]
    figures = [_figure(k, group) for k, group in enumerate(maps)]
    return [figure for figure in figures if _filled(figure) >= _FILLED]


def _filled(figure: Figure) -> float:
    cells = [cell is not None for row in figure.data[0]["z"] for cell in row]
    return sum(cells) / len(cells)


def _choice(one: Pipeline) -> dict[str, str]:
    return {name: value for name, value in choice(one).items() if name != "partitions"}


def _figure(k: int, group: Sequence[Pipeline]) -> Figure:
    rows = sorted({one.setting.partitions for one in group})
    cells: dict[tuple[int, int], _Cell] = {}
    for one in group:
        for point, way in zip(one.points, one.best_ways(), strict=True):
            if way:
                gain = point.gain.get(way)
                cells[one.setting.partitions, column_of(point.size_bytes)] = (way, gain and gain[0])
    columns = sorted({size for _, size in cells})
    ways = sorted({way for way, _ in cells.values()}, key=words.way_order)
    return Figure(
        f"best-way-{k}",
        f"The fastest way by size and partitions: {setting_words(group[0], ('partitions',))}",
        f"Letters and colours name the way; a way is replaced along a row where another is more than "
        f"{words.percent(TIE)} faster, in every launch. Touch a cell for its gain over one message.",
        [_cells(rows, columns, ways, cells), *(_legend(way) for way in ways)],
        _layout(rows, columns),
        wide=True,
        sentence=_sentence(cells),
        choice=_choice(group[0]),
    )


def column_of(size_bytes: int) -> int:
    """The power of two that `size_bytes` is nearly, or else itself."""
    near = 1 << max(round(math.log2(max(size_bytes, 1))), 0)
    return near if abs(size_bytes / near - 1) <= _SAME_SIZE else size_bytes


def _sentence(cells: dict[tuple[int, int], _Cell]) -> str:
    counts = Counter(way for way, _ in cells.values()).most_common()
    told = [f"{words.way(way)} in {number}" for way, number in counts]
    of = words.counted(len(cells), "combination")
    return f"Of {of} of size and partitions, fastest is {words.listed(told)}."


def _cells(
    rows: Sequence[int], columns: Sequence[int], ways: Sequence[str], cells: dict[tuple[int, int], _Cell]
) -> dict[str, Any]:
    table = [[cells.get((partitions, size)) for size in columns] for partitions in rows]
    count = len(ways)
    return {
        "type": "heatmap",
        "x": list(range(len(columns))),
        "y": list(range(len(rows))),
        "z": [[ways.index(cell[0]) if cell else None for cell in row] for row in table],
        "text": [[_text(cell, len(columns)) for cell in row] for row in table],
        "texttemplate": "%{text}",
        "textfont": {"color": "var(--paper)", "size": 11},
        "hovertext": [
            [_hover(cell, size, partitions) for cell, size in zip(row, columns, strict=True)]
            for row, partitions in zip(table, rows, strict=True)
        ],
        "hoverinfo": "text",
        "hoverongaps": False,
        "colorscale": [[edge / count, axes.color(way)] for k, way in enumerate(ways) for edge in (k, k + 1)],
        "zmin": -0.5,
        "zmax": count - 0.5,
        "xgap": 2,
        "ygap": 2,
        "showscale": False,
    }


def _text(cell: _Cell | None, columns: int) -> str:
    if cell is None:
        return ""
    way, gain = cell
    return words.way_letters(way) + (f"<br>{gain:.1f}" if gain and columns <= _WIDE_COLUMNS else "")


def _hover(cell: _Cell | None, size: int, partitions: int) -> str:
    if cell is None:
        return ""
    way, gain = cell
    much = f"<br><b>{gain:.2f}</b> times as fast as one message" if gain is not None else ""
    where = f"{format_bytes(size)} in {words.counted(partitions, 'partition')}"
    return f"{where}<br>{axes.label(words.way(way))}{much}"


def _legend(way: str) -> dict[str, Any]:
    """An entry of the legend alone: heat maps have none."""
    return {
        "type": "scatter",
        "x": [None],
        "y": [None],
        "mode": "markers",
        "name": axes.label(f"{words.way_letters(way)}: {words.way(way)}"),
        "marker": {"symbol": "square", "size": 12, "color": axes.color(way)},
        "hoverinfo": "skip",
    }


def _layout(rows: Sequence[int], columns: Sequence[int]) -> dict[str, Any]:
    step = -(-len(columns) // MAX_TICKS)
    shown = range(0, len(columns), step)
    common = {"showgrid": False, "tickangle": 0}
    x = common | {
        "tickvals": list(shown),
        "ticktext": [format_bytes(columns[k]) for k in shown],
        "range": [-0.5, len(columns) - 0.5],
        "title": axes.titled("buffer size"),
    }
    y = common | {
        "tickvals": list(range(len(rows))),
        "ticktext": [str(partitions) for partitions in rows],
        "range": [-0.5, len(rows) - 0.5],
        "title": axes.titled("partitions"),
    }
    height = 150 + 34 * len(rows)
    return axes.layout(x, y, height=height, legend=axes.legend_below(height))
