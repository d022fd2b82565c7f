"""Which method is best at every size and number of partitions, as a map of coloured cells with letters."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from earlybird.data.units import format_bytes
from earlybird.report import axes, words
from earlybird.report.fastest import TIE
from earlybird.report.method_map import Cell, MethodMap
from earlybird.report.parts import Figure
from earlybird.report.pipeline_choices import choice, setting_words
from earlybird.report.pipelines import Pipeline

_SAME_SIZE = 1 / 16  # sizes cut to a multiple of an odd number of partitions share a column
_FILLED = 2 / 3  # of a map, at least: numbers of partitions measured at different sizes make none


def best_method_figures(found: Sequence[Pipeline]) -> list[Figure]:
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


def _map(group: Sequence[Pipeline]) -> MethodMap:
    rows = sorted({one.setting.partitions for one in group})
    best = {
        (one.setting.partitions, column_of(point.size_bytes)): (method, point.gain.get(method))
        for one in group
        for point, method in zip(one.points, one.best_methods(), strict=True)
        if method
    }
    columns = sorted({size for _, size in best})
    cells = {
        (rows.index(partitions), columns.index(size)): Cell(
            method, f"{gain[0]:.1f}" if gain else "", _hover(method, gain and gain[0], size, partitions)
        )
        for (partitions, size), (method, gain) in best.items()
    }
    return MethodMap(
        cells,
        [str(row) for row in rows],
        [format_bytes(size) for size in columns],
        "partitions",
        "buffer size",
    )


def _figure(k: int, group: Sequence[Pipeline], drawing: MethodMap) -> Figure:
    return Figure(
        f"best-method-{k}",
        f"The fastest method by size and partitions: {setting_words(group[0], ('partitions',))}",
        f"Letters and colours name the method; a method is replaced along a row where another is more than "
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


def _sentence(drawing: MethodMap) -> str:
    counts = Counter(cell.method for cell in drawing.cells.values()).most_common()
    told = [f"{words.method(method)} in {number}" for method, number in counts]
    of = words.counted(len(drawing.cells), "combination")
    return f"Of {of} of size and partitions, fastest is {words.listed(told)}."


def _hover(method: str, gain: float | None, size: int, partitions: int) -> str:
    much = f"<br><b>{gain:.2f}</b> times as fast as one message" if gain is not None else ""
    where = f"{format_bytes(size)} in {words.counted(partitions, 'partition')}"
    return f"{where}<br>{axes.label(words.method(method))}{much}"
