"""A map of the fastest method by buffer size and number of partitions."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from earlybird.compare.ranking import MIN_EFFECT
from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.report.figures import axes
from earlybird.report.figures.method_map import Cell, MethodMap
from earlybird.report.parts import Figure
from earlybird.report.pipeline_choices import choice, setting_text
from earlybird.report.pipelines import Pipeline

_SAME_SIZE = 1 / 16  # relative difference up to which sizes share a column (rounding to odd partition counts)
_FILLED = 2 / 3  # least share of measured cells; below it no map is drawn


def best_method_figures(measured: Sequence[Pipeline]) -> list[Figure]:
    """One map per setting except the number of partitions, if several partition counts and sizes exist."""
    groups: dict[tuple, list[Pipeline]] = defaultdict(list)
    for pipeline in measured:
        groups[tuple(_choice(pipeline).items())].append(pipeline)
    several = [
        group
        for group in groups.values()
        if len({pipeline.setting.partitions for pipeline in group}) > 1
        and max(len(pipeline.points) for pipeline in group) > 1
    ]
    maps = [(group, _map(group)) for group in several]
    drawn = [(group, drawing) for group, drawing in maps if drawing.filled() >= _FILLED]
    return [_figure(k, group, drawing) for k, (group, drawing) in enumerate(drawn)]


def _choice(pipeline: Pipeline) -> dict[str, str]:
    return {name: value for name, value in choice(pipeline).items() if name != "partitions"}


def _map(group: Sequence[Pipeline]) -> MethodMap:
    rows = sorted({pipeline.setting.partitions for pipeline in group})
    best = {
        (pipeline.setting.partitions, column_of(point.size_bytes)): (method, point.speed_up.get(method))
        for pipeline in group
        for point, method in zip(pipeline.points, pipeline.best_methods(), strict=True)
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
        f"The fastest method by size and partitions: {setting_text(group[0], ('partitions',))}",
        "Letters and colours identify the method. Along a row, another method replaces it only if that "
        f"method is more than {labels.percent(MIN_EFFECT)} faster and the intervals do not overlap. Hover "
        "over or tap a cell for its speed-up over a single message.",
        drawing.data(),
        drawing.layout(),
        wide=True,
        sentence=_sentence(drawing),
        choice=_choice(group[0]),
    )


def column_of(size_bytes: int) -> int:
    """The power of two close to `size_bytes`, or `size_bytes` itself."""
    near = 1 << max(round(math.log2(max(size_bytes, 1))), 0)
    return near if abs(size_bytes / near - 1) <= _SAME_SIZE else size_bytes


def _sentence(drawing: MethodMap) -> str:
    counts = Counter(cell.method for cell in drawing.cells.values()).most_common()
    shares = [f"{labels.method(method)} in {number}" for method, number in counts]
    total = labels.counted(len(drawing.cells), "combination")
    return f"Fastest method in {total} of size and partitions: {labels.listed(shares)}."


def _hover(method: str, gain: float | None, size: int, partitions: int) -> str:
    speed_up = f"<br>speed-up <b>{gain:.2f}</b> over a single message" if gain is not None else ""
    where = f"{format_bytes(size)} in {labels.counted(partitions, 'partition')}"
    return f"{where}<br>{axes.label(labels.method(method))}{speed_up}"
