"""Which way is best at every size and number of partitions, as a map of coloured cells with letters."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from earlybird.data.units import format_bytes
from earlybird.report import axes, words
from earlybird.report.fastest import TIE
from earlybird.report.parts import Figure
from earlybird.report.pipeline_choices import choice, setting_words
from earlybird.report.pipelines import Pipeline
from earlybird.report.way_map import Cell, WayMap

_SAME_SIZE = 1 / 16  # sizes cut to a multiple of an odd number of partitions share a column
_FILLED = 2 / 3  # of a map, at least: numbers of partitions measured at different sizes make none


def best_way_figures(found: Sequence[Pipeline]) -> list[Figure]:
    """A map for all that a reader chooses but partitions, where those and sizes are several."""
    groups: dict[tuple, list[Pipeline]] = defaultdict(list)
    for one in found:
        groups[tuple(_choice(one).items())].append(one)
    several = [
        group
        for group in groups.values()
        if len({one.setting.partitions for one in group}) > 1 and max(len(one.points) for one in group) > 1
    ]
    maps = [(group, _map(group)) for group in several]
    drawn = [(group, drawing) for group, drawing in maps if drawing.filled() >= _FILLED]
    return [_figure(k, group, drawing) for k, (group, drawing) in enumerate(drawn)]


def _choice(one: Pipeline) -> dict[str, str]:
    return {name: value for name, value in choice(one).items() if name != "partitions"}


def _map(group: Sequence[Pipeline]) -> WayMap:
    rows = sorted({one.setting.partitions for one in group})
    best = {
        (one.setting.partitions, column_of(point.size_bytes)): (way, point.gain.get(way))
        for one in group
        for point, way in zip(one.points, one.best_ways(), strict=True)
        if way
    }
    columns = sorted({size for _, size in best})
    cells = {
        (rows.index(partitions), columns.index(size)): Cell(
            way, f"{gain[0]:.1f}" if gain else "", _hover(way, gain and gain[0], size, partitions)
        )
        for (partitions, size), (way, gain) in best.items()
    }
    return WayMap(
        cells,
        [str(row) for row in rows],
        [format_bytes(size) for size in columns],
        "partitions",
        "buffer size",
    )


def _figure(k: int, group: Sequence[Pipeline], drawing: WayMap) -> Figure:
    return Figure(
        f"best-way-{k}",
        f"The fastest way by size and partitions: {setting_words(group[0], ('partitions',))}",
        f"Letters and colours name the way; a way is replaced along a row where another is more than "
        f"{words.percent(TIE)} faster, in every launch. Touch a cell for its gain over one message.",
        drawing.data(),
        drawing.layout(),
        wide=True,
        sentence=_sentence(drawing),
        choice=_choice(group[0]),
    )


def column_of(size_bytes: int) -> int:
    """The power of two that `size_bytes` is nearly, or else itself."""
    near = 1 << max(round(math.log2(max(size_bytes, 1))), 0)
    return near if abs(size_bytes / near - 1) <= _SAME_SIZE else size_bytes


def _sentence(drawing: WayMap) -> str:
    counts = Counter(cell.way for cell in drawing.cells.values()).most_common()
    told = [f"{words.way(way)} in {number}" for way, number in counts]
    of = words.counted(len(drawing.cells), "combination")
    return f"Of {of} of size and partitions, fastest is {words.listed(told)}."


def _hover(way: str, gain: float | None, size: int, partitions: int) -> str:
    much = f"<br><b>{gain:.2f}</b> times as fast as one message" if gain is not None else ""
    where = f"{format_bytes(size)} in {words.counted(partitions, 'partition')}"
    return f"{where}<br>{axes.label(words.way(way))}{much}"
