"""Figures of pipelines: time against size per method, and the speed-up of each method over a single
message."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import axes, words
from earlybird.report.fastest import Spread
from earlybird.report.parts import Figure
from earlybird.report.pipeline_choices import choice, setting_words
from earlybird.report.pipelines import BULK, Pipeline, PipelinePoint, Setting
from earlybird.report.spread_lines import fitted_trace, spread_traces

MAX_SETTINGS = 60  # drawn one at a time, as the reader chooses; the table has all
CROWDED = "More threads than cores: these times hold the scheduler's switches too."
_Cell = tuple[PipelinePoint, Spread]


def pipeline_figures(found: Sequence[Pipeline]) -> list[Figure]:
    """A pair of figures for every setting: times of all methods, and their ratios to one message."""
    figures = []
    for k, one in enumerate(found[:MAX_SETTINGS]):
        figures += [_time_figure(k, one), _gain_figure(k, one)]
    left = len(found) - MAX_SETTINGS
    if left > 0:
        why = f"{MAX_SETTINGS} settings are drawn; the figures of the others are in the table of pipelines."
        figures.append(Figure("pipelines-left", f"{words.counted(left, 'more setting')}", "", why_not=why))
    return figures


def _time_figure(k: int, one: Pipeline) -> Figure:
    data, times = [], []
    for method in one.methods():
        cells = [(point, point.time_s[method]) for point in one.points if method in point.time_s]
        data += _traces(method, cells, format_seconds)
        times += [time_s for _, spread in cells for time_s in spread]
    fitted = _fitted_traces(one)
    times += [time_s for trace in fitted for time_s in trace["y"]]
    caption = (
        f"{_lateness(one)} Line: median over iterations, then launches. Shading: from the lowest to "
        "the highest launch."
    )
    caption += " Dashed, without marks: the fitted model." if fitted else ""
    return Figure(
        f"pipeline-time-{k}",
        f"Time of a buffer: {setting_words(one)}",
        caption + (f" {CROWDED}" if one.oversubscribed else ""),
        data + fitted,
        axes.layout(_sizes(one), axes.log_time_axis(times, "time to solution")),
        sentence=_time_sentence(one),
        choice=choice(one),
    )


def _lateness(one: Pipeline) -> str:
    start = "From the start until the buffer is received"
    if one.setting.noise is not None:
        return f"{start}, without the computing of the slowest thread."
    if not one.setting.gamma_s_per_byte:
        return f"{start}; all partitions are ready at once."
    return f"{start}, without the delay of the last partition, which is {one.setting.late()} times its size."


def _time_sentence(one: Pipeline) -> str:
    """`Fastest is one message up to 64 KiB, libearlybird from 128 KiB.`, and how far off the model is."""
    runs = [
        (method, [point.size_bytes for _, point in group])
        for method, group in groupby(
            zip(one.best_methods(), one.points, strict=True), key=lambda pair: pair[0]
        )
    ]
    if len(runs) == 1:
        text = f"At no size is another clearly faster than {words.method(runs[0][0])}."
    else:
        spans = [f"{words.method(runs[0][0])} up to {format_bytes(runs[0][1][-1])}"]
        spans += [f"{words.method(method)} from {format_bytes(sizes[0])}" for method, sizes in runs[1:]]
        text = f"Fastest is {words.listed(spans)}."
    error = one.fitted_error()
    return text + (
        f" The fitted model is {words.percent(error)} off in the median." if error is not None else ""
    )


def _gain_figure(k: int, one: Pipeline) -> Figure:
    id, title = f"pipeline-gain-{k}", f"Beside one message: {setting_words(one)}"
    data: list[dict[str, Any]] = []
    values: list[float] = []
    for method in one.methods():
        cells = [(point, point.gain[method]) for point in one.points if method in point.gain]
        if cells:
            data += _traces(method, cells, lambda gain: f"{gain:.2f} times as fast as one message")
            values += [gain for _, spread in cells for gain in spread]
    if not data:
        why = "No launch measured one message and another method in turn, and only such times make a ratio."
        return Figure(id, title, "", why_not=why, choice=choice(one))
    data.insert(0, _bulk_line(one))
    caption = (
        "How many times as fast as one message when all is ready: the median of the ratios of times taken in "
        "turn; shading from the lowest to the highest launch."
    )
    points = [point for point in one.points if point.gain_theory is not None]
    if points:
        values += [point.gain_theory for point in points]
        data.append(_theory(points))
        caption += (
            " Dashed: equation (4) of Gillis et al. 2023 at the bandwidth of one message; it leaves latency "
            "out, so small buffers gain less."
        )
    return Figure(
        id,
        title,
        caption + (f" {CROWDED}" if one.oversubscribed else ""),
        data,
        axes.layout(_sizes(one), axes.ratio_axis(values, "times as fast as one message")),
        sentence=_gain_sentence(one),
        choice=choice(one),
    )


def _gain_sentence(one: Pipeline) -> str:
    """`4 MiB goes 2.50 times as fast with libearlybird as in one message (equation (4) says 2.67).`, and what
    the smallest buffer loses."""
    first, last = ([point for point in one.points if point.gain][k] for k in (0, -1))
    return " ".join(
        words.capital(gain_words(point, one.setting)) + "."
        for point in ((last, first) if first is not last else (last,))
    )


def gain_words(point: PipelinePoint, setting: Setting) -> str:
    """How a buffer of this size goes with the best method but one message, and what equation (4) says of
    it."""
    method = max(point.gain, key=lambda name: point.gain[name][0])
    gain = point.gain[method][0]
    size, name = format_bytes(point.size_bytes), words.method(method)
    if gain < 1:
        return f"{size} takes {1 / gain:.3g} times as long with {name} as in one message"
    theory = setting.delay_rate() and point.gain_theory
    says = f" (equation (4) says {theory:.2f})" if theory else ""
    return f"{size} goes {gain:.2f} times as fast with {name} as in one message{says}"


def _sizes(one: Pipeline) -> dict[str, Any]:
    return axes.size_axis([point.size_bytes for point in one.points], "buffer size")


def _x(points: Sequence[PipelinePoint]) -> list[float]:
    return [point.size_bytes or axes.ZERO_BYTES_AT for point in points]


def _traces(method: str, cells: Sequence[_Cell], text: Callable[[float], str]) -> list[dict[str, Any]]:
    name = axes.label(words.capital(words.method(method)))
    hover = [
        f"{name}<br>{format_bytes(point.size_bytes)}: <b>{text(middle)}</b><br>"
        f"{words.counted(point.num_launches, 'launch', 'launches')}: {text(low)} to {text(high)}"
        for point, (middle, low, high) in cells
    ]
    return spread_traces(
        method, name, _x([point for point, _ in cells]), [spread for _, spread in cells], hover
    )


def _fitted_traces(one: Pipeline) -> list[dict[str, Any]]:
    """The fitted model of every method that has one; a single entry of the legend hides and shows them
    all."""
    traces = []
    for method in one.methods():
        points = [point for point in one.points if method in point.fitted_s]
        if not points:
            continue
        name = axes.label(f"fitted model, {words.method(method)}")
        hover = [
            f"{name}<br>{format_bytes(point.size_bytes)}: {format_seconds(point.fitted_s[method])}"
            for point in points
        ]
        fitted = [point.fitted_s[method] for point in points]
        traces.append(fitted_trace(method, "Fitted model", _x(points), fitted, hover, not traces))
    return traces


def _bulk_line(one: Pipeline) -> dict[str, Any]:
    """One message beside itself."""
    points = [point for point in one.points if point.gain]
    return {
        "x": _x(points),
        "y": [1.0] * len(points),
        "mode": "lines+markers",
        "name": words.capital(words.method(BULK)),
        "line": {"color": axes.color(BULK), "width": 2},
        "marker": {"color": axes.color(BULK), "size": 6, "symbol": axes.symbol(BULK)},
        "hoverinfo": "skip",
    }


def _theory(points: Sequence[PipelinePoint]) -> dict[str, Any]:
    name = "Equation (4)"
    return {
        "x": _x(points),
        "y": [point.gain_theory for point in points],
        "mode": "lines+markers" if len(points) == 1 else "lines",
        "name": name,
        "legendrank": 2000,
        "line": {"color": axes.color("measured"), "width": 1.6, "dash": "dash"},
        "marker": {"color": axes.color("measured"), "size": 9, "symbol": "line-ew-open"},
        "hovertext": [
            f"{name}<br>{format_bytes(point.size_bytes)}: {point.gain_theory:.2f}" for point in points
        ],
        "hoverinfo": "text",
    }
