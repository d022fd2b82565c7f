"""Figures of pipelines: time against size, speed-up over a single message, and the fastest method."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.methods import SINGLE
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.lines import (
    MethodLines,
    line,
    measured_text,
    method_name,
    method_traces,
    size_x,
)
from earlybird.present.core.maps import Cell, method_map
from earlybird.present.core.parts import Figure, figures_left, grouped
from earlybird.present.core.points import Point, results_of
from earlybird.present.core.text import UNPAIRED, best_by_size, crowded_sentence
from earlybird.present.subjects.pipelines.view import Pipeline, setting_text

MAX_SETTINGS = 60  # settings with figures, one shown at a time; the table has all
_SAME_SIZE = 1 / 16  # relative difference up to which sizes share a column (rounding to odd partition counts)


def pipeline_figures(measured: Sequence[Pipeline]) -> list[Figure]:
    """Return two figures per setting, times of all methods and speed-ups over a single message; and maps."""
    figures = []
    for k, pipeline in enumerate(measured[:MAX_SETTINGS]):
        figures += [_time_figure(k, pipeline), _speed_up_figure(k, pipeline)]
    figures += figures_left("pipelines", len(measured), MAX_SETTINGS)
    return figures + _best_method_figures(measured)


def _time_figure(k: int, pipeline: Pipeline) -> Figure:
    lines = MethodLines(pipeline.points, pipeline.methods(), size_x)
    sizes = [point.size_bytes for point in pipeline.points]
    error = pipeline.fitted_error()
    fitted = f" Median error of the fitted model: {labels.percent(error)}." if error is not None else ""
    return Figure(
        f"pipeline-time-{k}",
        f"Time of a buffer: {setting_text(pipeline)}",
        f"{_lateness(pipeline)} {measured_text(results_of(pipeline.points))}"
        + " Dashed, without markers: the fitted model." * bool(lines.fitted)
        + f" {crowded_sentence()}" * pipeline.oversubscribed,
        lines.data + lines.fitted,
        axes.layout(
            axes.size_axis(sizes, "buffer size"), axes.log_time_axis(lines.times_s, "time to solution")
        ),
        sentence=best_by_size("method", pipeline.best_methods(), sizes) + fitted,
        choice=pipeline.choice(),
    )


def _lateness(pipeline: Pipeline) -> str:
    start = "Time from the start until the buffer is received"
    if pipeline.setting.compute_s_per_byte:
        return f"{start}, without the computation of the slowest thread."
    if not pipeline.setting.gamma_s_per_byte:
        return f"{start}; all partitions are ready at once."
    delay = f"{pipeline.setting.late()} (the delay rate) times its size"
    return f"{start}, without the delay of the last partition, which is {delay}."


def _speed_up_figure(k: int, pipeline: Pipeline) -> Figure:
    id, title = f"pipeline-gain-{k}", f"Speed-up over a single message: {setting_text(pipeline)}"
    points = [point for point in pipeline.points if point.speed_up]
    if not points:
        return Figure(id, title, "", absence=UNPAIRED, choice=pipeline.choice())
    caption = (
        "Time of a single message, sent when all partitions are ready, divided by the time of the method. "
        "Line: median of the ratios within a round. Shading: its interval over launches."
    )
    traces, gains = method_traces(
        points, pipeline.methods(), lambda result: result.speed_up, lambda gain: f"speed-up {gain:.2f}"
    )
    data = [_reference_line(points), *traces]
    ideal = {point.size_bytes: point.ideal_speed_up for point in pipeline.points if point.ideal_speed_up}
    if ideal:
        gains += ideal.values()
        data.append(_ideal_line(ideal))
        caption += (
            " Dashed: the ideal speed-up, equation (4) of Gillis et al. 2023 at the bandwidth of a single "
            "message. It neglects latency and overhead, so the measured speed-up of small buffers is lower."
        )
    sizes = [point.size_bytes for point in pipeline.points]
    ends = (points[-1], points[0]) if len(points) > 1 else points
    return Figure(
        id,
        title,
        caption + f" {crowded_sentence()}" * pipeline.oversubscribed,
        data,
        axes.layout(
            axes.size_axis(sizes, "buffer size"), axes.ratio_axis(gains, "speed-up over a single message")
        ),
        sentence=" ".join(labels.capital(_speed_up_text(point, pipeline)) + "." for point in ends),
        choice=pipeline.choice(),
    )


def _speed_up_text(point: Point, pipeline: Pipeline) -> str:
    """Return the speed-up of this buffer size with the fastest method except a single message, and the ideal
    one."""
    method = max(point.speed_up, key=lambda name: point.speed_up[name].value)
    gain = point.speed_up[method].value
    size, name = format_bytes(point.size_bytes), labels.method(method)
    if gain < 1:
        return f"{size} takes {1 / gain:.3g} times as long with {name} as with a single message"
    ideal = f" (ideal: {point.ideal_speed_up:.2f})" if point.ideal_speed_up and pipeline.is_late else ""
    return f"{size}: speed-up {gain:.2f} with {name} over a single message{ideal}"


def _reference_line(points: Sequence[Point]) -> dict[str, Any]:
    """Return the line of a single message, 1 at every size."""
    name, ones = method_name(SINGLE), [1.0] * len(points)
    x, symbol = list(map(size_x, points)), axes.symbol(SINGLE)
    return line(name, x, ones, [], axes.color(SINGLE), symbol=symbol, hoverinfo="skip")


def _ideal_line(ideal: Mapping[int, float]) -> dict[str, Any]:
    """Return the line of the ideal speed-ups of sizes."""
    name, gains = "Ideal speed-up", list(ideal.values())
    texts = [f"{name}<br>{format_bytes(size_bytes)}: {gain:.2f}" for size_bytes, gain in ideal.items()]
    color = axes.color("measured")
    return line(name, list(ideal), gains, texts, color, "dash", width=1.6, legendrank=2000)


def _best_method_figures(measured: Sequence[Pipeline]) -> list[Figure]:
    """Return one map per setting except the number of partitions."""
    groups = grouped(measured, lambda pipeline: tuple(_map_choice(pipeline).items()))
    maps = [
        method_map(
            f"best-method-{k}",
            f"The best method by size and partitions: {setting_text(group[0], ('partitions',))}",
            "method",
            "partitions",
            {
                (pipeline.setting.partitions, _column_of(point.size_bytes)): Cell(method, point, method)
                for pipeline in group
                for point, method in zip(pipeline.points, pipeline.best_methods(), strict=True)
                if method
            },
            _map_choice(group[0]),
        )
        for k, group in enumerate(groups.values())
    ]
    return [figure for figure in maps if figure]


def _map_choice(pipeline: Pipeline) -> dict[str, str]:
    return {name: value for name, value in pipeline.choice().items() if name != "partitions"}


def _column_of(size_bytes: int) -> int:
    """Return the power of two close to `size_bytes`, or `size_bytes` itself."""
    near = 1 << max(round(math.log2(max(size_bytes, 1))), 0)
    return near if abs(size_bytes / near - 1) <= _SAME_SIZE else size_bytes
