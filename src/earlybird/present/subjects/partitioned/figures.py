"""Figures of partitioned communication: each metric against size, and the timeline of one iteration."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from earlybird.compare.partitioned import AVAILABILITY, BANDWIDTH, DELIVERED, EARLY_BIRD, OVERHEAD
from earlybird.data import labels
from earlybird.data.kernels import PARTITIONED
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import line, method_name, method_traces
from earlybird.present.core.parts import Figure, figures_left
from earlybird.present.core.text import UNPAIRED
from earlybird.present.subjects.measured.columns import TEXTS
from earlybird.present.subjects.partitioned.view import Metrics, Timeline, metric, setting_text

MAX_SETTINGS = 8  # settings with figures, one shown at a time; the table has all
MAX_LINES = 64  # partitions in a timeline

_Axis = Callable[[Sequence[float], str], dict[str, Any]]


class MetricView(NamedTuple):
    """The presentation of a metric: its title, its meaning, the text of a value and the axis."""

    title: str
    meaning: str
    text: Callable[[float], str]
    axis: _Axis


_DRAWN: Sequence[tuple[str, str, _Axis]] = (
    (OVERHEAD, "Overhead", axes.ratio_axis),
    (BANDWIDTH, "Perceived bandwidth", axes.log_bandwidth_axis),
    (AVAILABILITY, "Application availability", axes.percent_axis),
    (EARLY_BIRD, "Early-bird communication", axes.percent_axis),
    (DELIVERED, "Delivered before the join", axes.percent_axis),
)
METRICS = {
    name: MetricView(title, f"{labels.capital(column.meaning)}.", TEXTS[column.kind], axis)
    for name, title, axis in _DRAWN
    for column in [PARTITIONED.column(name)]
}


def partitioned_figures(measured: Sequence[Metrics]) -> list[Figure]:
    """Return one timeline and one figure per metric for every setting."""
    figures = []
    for k, metrics in enumerate(measured[:MAX_SETTINGS]):
        figures += [_timeline_figure(k, metrics), *(_metric_figure(k, metrics, name) for name in METRICS)]
    return figures + figures_left("partitioned", len(measured), MAX_SETTINGS)


def _metric_figure(k: int, metrics: Metrics, name: str) -> Figure:
    title, meaning, text, axis = METRICS[name]
    traces, values = method_traces(
        metrics.points, metrics.methods(), lambda result: metric(result, name), text
    )
    id, whole_title = f"partitioned-{name.split('_')[0]}-{k}", f"{title}: {setting_text(metrics)}"
    if not traces:
        return Figure(id, whole_title, "", absence=UNPAIRED, choice=metrics.choice())
    sizes = axes.size_axis([point.size_bytes for point in metrics.points], "buffer size")
    layout = axes.layout(sizes, axis(values, title.lower()))
    return Figure(id, whole_title, meaning, traces, layout, choice=metrics.choice())


def _timeline_figure(k: int, metrics: Metrics) -> Figure:
    """Return a row per partition, a block of rows per method: MPI_Pready, its return, the arrival."""
    data: list[dict[str, Any]] = []
    ticks, names, moments = [], [], [0.0]
    base = 0
    for method, timeline in metrics.timelines().items():
        count = min(len(timeline.ready_s), MAX_LINES)
        ticks.append(base + (count - 1) / 2)
        names.append(axes.label(labels.method_letters(method)))
        moments += [*timeline.ready_s, *timeline.arrived_s]
        data += _timeline_traces(method, range(base, base + count), timeline)
        base += count + 1
    join = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1,
            "line": {"color": axes.color("measured"), "width": 1.4, "dash": "dash"}}  # fmt: skip
    margin = 0.05 * (max(moments) - min(moments)) or 1e-6
    time_axis = {
        "title": axes.titled("time after the threads have joined"),
        "range": [min(moments) - margin, max(moments) + margin],
        "tickformat": "~s",
        "ticksuffix": "s",
    }
    method_axis = {
        "tickvals": ticks,
        "ticktext": names,
        "title": axes.titled("partitions of each method"),
        "autorange": "reversed",
    }
    return Figure(
        f"partitioned-timeline-{k}",
        f"One iteration with {format_bytes(metrics.points[-1].size_bytes)}: {setting_text(metrics)}",
        "The iteration with the median time in flight of the first launch of each method. Line: a partition "
        "is in flight. Open circle: MPI_Pready is called. Bar: the call has returned. Filled marker: the "
        "receiver has the partition. Dashed: the threads join; what is left of it is early-bird "
        "communication, what is right of it keeps the application waiting.",
        data,
        axes.layout(time_axis, method_axis, shapes=[join]),
        choice=metrics.choice(),
        wide=True,
    )


def _timeline_traces(method: str, rows: Sequence[int], timeline: Timeline) -> list[dict[str, Any]]:
    """Return the line and the markers of the partitions of a method, a partition in each of `rows`."""
    name, color = method_name(method), axes.color(method)
    x: list[float | None] = []
    y: list[float | None] = []
    for row, ready_s, arrived_s in zip(rows, timeline.ready_s, timeline.arrived_s, strict=False):
        x += [_rounded(ready_s), _rounded(arrived_s), None]
        y += [row, row, None]
    in_flight = line(name, x, y, [], color, legendgroup=name, hoverinfo="skip", mode="lines")
    moments = (
        ("MPI_Pready is called", timeline.ready_s, "circle-open"),
        ("MPI_Pready has returned", timeline.returned_s, "line-ns-open"),
        ("arrived", timeline.arrived_s, axes.symbol(method)),
    )
    markers = [
        {
            "x": [_rounded(moment_s) for moment_s in moments_s[: len(rows)]],
            "y": list(rows),
            "mode": "markers",
            "name": f"{name}: {event}",
            "legendgroup": name,
            "showlegend": False,
            "marker": {"color": color, "size": 7, "symbol": symbol},
            "hovertext": [
                f"{name}, partition {partition}<br>{event} {_when(moment_s)}"
                for partition, moment_s in enumerate(moments_s[: len(rows)])
            ],
            "hoverinfo": "text",
        }
        for event, moments_s, symbol in moments
    ]
    return [in_flight, *markers]


def _rounded(moment_s: float) -> float:
    return float(f"{moment_s:.6g}")


def _when(moment_s: float) -> str:
    return f"{format_seconds(abs(float(moment_s)))} {'before' if moment_s < 0 else 'after'} the join"
