"""Figures of pipelines: time against size per method, and speed-up over a single message."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from earlybird.data import labels
from earlybird.data.methods import SINGLE
from earlybird.data.results import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report.figures import axes
from earlybird.report.figures.spread_lines import fitted_trace, spread_traces
from earlybird.report.parts import Figure
from earlybird.report.pipeline_choices import choice, setting_text
from earlybird.report.pipelines import Pipeline, PipelinePoint, Setting

MAX_SETTINGS = 60  # settings with figures, one shown at a time; the table has all
CROWDED = "More threads than cores: these times include context switches."
_Cell = tuple[PipelinePoint, Estimate]


def pipeline_figures(measured: Sequence[Pipeline]) -> list[Figure]:
    """Two figures per setting: times of all methods, and speed-ups over a single message."""
    figures = []
    for k, pipeline in enumerate(measured[:MAX_SETTINGS]):
        figures += [_time_figure(k, pipeline), _speed_up_figure(k, pipeline)]
    num_left = len(measured) - MAX_SETTINGS
    if num_left > 0:
        reason = (
            f"{MAX_SETTINGS} settings have figures; the times of the others are in the table of pipelines."
        )
        figures.append(
            Figure("pipelines-left", f"{labels.counted(num_left, 'more setting')}", "", why_not=reason)
        )
    return figures


def _time_figure(k: int, pipeline: Pipeline) -> Figure:
    data, times = [], []
    for method in pipeline.methods():
        cells = [(point, point.time_s[method]) for point in pipeline.points if method in point.time_s]
        data += _traces(method, cells, format_seconds)
        times += [time_s for _, spread in cells for time_s in spread]
    fitted = _fitted_traces(pipeline)
    times += [time_s for trace in fitted for time_s in trace["y"]]
    caption = (
        f"{_lateness(pipeline)} Line: median over iterations, then launches. Shading: its interval "
        "over launches."
    )
    caption += " Dashed, without markers: the fitted model." if fitted else ""
    return Figure(
        f"pipeline-time-{k}",
        f"Time of a buffer: {setting_text(pipeline)}",
        caption + (f" {CROWDED}" if pipeline.oversubscribed else ""),
        data + fitted,
        axes.layout(_sizes(pipeline), axes.log_time_axis(times, "time to solution")),
        sentence=_time_sentence(pipeline),
        choice=choice(pipeline),
    )


def _lateness(pipeline: Pipeline) -> str:
    start = "Time from the start until the buffer is received"
    if pipeline.setting.noise is not None:
        return f"{start}, without the computation of the slowest thread."
    if not pipeline.setting.gamma_s_per_byte:
        return f"{start}; all partitions are ready at once."
    delay = f"{pipeline.setting.late()} times its size"
    return f"{start}, without the delay of the last partition, which is {delay}."


def _time_sentence(pipeline: Pipeline) -> str:
    """`Fastest: single message up to 64 KiB and libearlybird from 128 KiB.`, and the error of the model."""
    runs = [
        (method, [point.size_bytes for _, point in group])
        for method, group in groupby(
            zip(pipeline.best_methods(), pipeline.points, strict=True), key=lambda pair: pair[0]
        )
    ]
    if len(runs) == 1:
        text = f"No method is clearly faster than {labels.method(runs[0][0])} at any size."
    else:
        spans = [f"{labels.method(runs[0][0])} up to {format_bytes(runs[0][1][-1])}"]
        spans += [f"{labels.method(method)} from {format_bytes(sizes[0])}" for method, sizes in runs[1:]]
        text = f"Fastest: {labels.listed(spans)}."
    error = pipeline.fitted_error()
    return text + (
        f" Median error of the fitted model: {labels.percent(error)}." if error is not None else ""
    )


def _speed_up_figure(k: int, pipeline: Pipeline) -> Figure:
    id, title = f"pipeline-gain-{k}", f"Speed-up over a single message: {setting_text(pipeline)}"
    data: list[dict[str, Any]] = []
    values: list[float] = []
    for method in pipeline.methods():
        cells = [(point, point.speed_up[method]) for point in pipeline.points if method in point.speed_up]
        if cells:
            data += _traces(method, cells, lambda gain: f"speed-up {gain:.2f}")
            values += [gain for _, spread in cells for gain in spread]
    if not data:
        reason = "The ratio requires rounds with a single message and another method; no launch has them."
        return Figure(id, title, "", why_not=reason, choice=choice(pipeline))
    data.insert(0, _bulk_line(pipeline))
    caption = (
        "Time of a single message, sent when all partitions are ready, divided by the time of the method. "
        "Line: median of the ratios within a round. Shading: its interval over launches."
    )
    points = [point for point in pipeline.points if point.ideal_speed_up is not None]
    if points:
        values += [point.ideal_speed_up for point in points]
        data.append(_theory(points))
        caption += (
            " Dashed: equation (4) of Gillis et al. 2023 at the bandwidth of a single message. It neglects "
            "latency, so the measured speed-up of small buffers is lower."
        )
    return Figure(
        id,
        title,
        caption + (f" {CROWDED}" if pipeline.oversubscribed else ""),
        data,
        axes.layout(_sizes(pipeline), axes.ratio_axis(values, "speed-up over a single message")),
        sentence=_speed_up_sentence(pipeline),
        choice=choice(pipeline),
    )


def _speed_up_sentence(pipeline: Pipeline) -> str:
    """`4 MiB: speed-up 2.50 with libearlybird over a single message (equation (4): 2.67).`, and the same for
    the smallest buffer."""
    first, last = ([point for point in pipeline.points if point.speed_up][k] for k in (0, -1))
    return " ".join(
        labels.capital(speed_up_text(point, pipeline.setting)) + "."
        for point in ((last, first) if first is not last else (last,))
    )


def speed_up_text(point: PipelinePoint, setting: Setting) -> str:
    """The speed-up of this buffer size with the best method other than a single message, and equation (4)."""
    method = max(point.speed_up, key=lambda name: point.speed_up[name][0])
    gain = point.speed_up[method][0]
    size, name = format_bytes(point.size_bytes), labels.method(method)
    if gain < 1:
        return f"{size} takes {1 / gain:.3g} times as long with {name} as with a single message"
    theory = setting.delay_rate() and point.ideal_speed_up
    theory_text = f" (equation (4): {theory:.2f})" if theory else ""
    return f"{size}: speed-up {gain:.2f} with {name} over a single message{theory_text}"


def _sizes(pipeline: Pipeline) -> dict[str, Any]:
    return axes.size_axis([point.size_bytes for point in pipeline.points], "buffer size")


def _x(points: Sequence[PipelinePoint]) -> list[float]:
    return [point.size_bytes or axes.ZERO_BYTES_AT for point in points]


def _traces(method: str, cells: Sequence[_Cell], text: Callable[[float], str]) -> list[dict[str, Any]]:
    name = axes.label(labels.capital(labels.method(method)))
    hover = [
        f"{name}<br>{format_bytes(point.size_bytes)}: <b>{text(middle)}</b><br>"
        f"{labels.counted(point.num_launches, 'launch', 'launches')}: {text(low)} to {text(high)}"
        for point, (middle, low, high) in cells
    ]
    return spread_traces(
        method, name, _x([point for point, _ in cells]), [spread for _, spread in cells], hover
    )


def _fitted_traces(pipeline: Pipeline) -> list[dict[str, Any]]:
    """The fitted model of every method that has one, with one common legend entry."""
    traces = []
    for method in pipeline.methods():
        points = [point for point in pipeline.points if method in point.fitted_s]
        if not points:
            continue
        name = axes.label(f"fitted model, {labels.method(method)}")
        hover = [
            f"{name}<br>{format_bytes(point.size_bytes)}: {format_seconds(point.fitted_s[method])}"
            for point in points
        ]
        fitted = [point.fitted_s[method] for point in points]
        traces.append(fitted_trace(method, "Fitted model", _x(points), fitted, hover, not traces))
    return traces


def _bulk_line(pipeline: Pipeline) -> dict[str, Any]:
    """The reference line of a single message, 1 at every size."""
    points = [point for point in pipeline.points if point.speed_up]
    return {
        "x": _x(points),
        "y": [1.0] * len(points),
        "mode": "lines+markers",
        "name": labels.capital(labels.method(SINGLE)),
        "line": {"color": axes.color(SINGLE), "width": 2},
        "marker": {"color": axes.color(SINGLE), "size": 6, "symbol": axes.symbol(SINGLE)},
        "hoverinfo": "skip",
    }


def _theory(points: Sequence[PipelinePoint]) -> dict[str, Any]:
    name = "Equation (4)"
    return {
        "x": _x(points),
        "y": [point.ideal_speed_up for point in points],
        "mode": "lines+markers" if len(points) == 1 else "lines",
        "name": name,
        "legendrank": 2000,
        "line": {"color": axes.color("measured"), "width": 1.6, "dash": "dash"},
        "marker": {"color": axes.color("measured"), "size": 9, "symbol": "line-ew-open"},
        "hovertext": [
            f"{name}<br>{format_bytes(point.size_bytes)}: {point.ideal_speed_up:.2f}" for point in points
        ],
        "hoverinfo": "text",
    }
