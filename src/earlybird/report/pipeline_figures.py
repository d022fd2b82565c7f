"""Figures of pipelines in chapter 2: time against size per way, and the gain beside equation (4)."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import axes, words
from earlybird.report.parts import Figure
from earlybird.report.pipelines import Pipeline, PipelinePoint, Spread

MAX_SETTINGS = 6  # of level, partitions and delay rate that are drawn; the table has all
# Runs and MPIs of one figure share the colours of their ways and differ in these.
_DASHES = ("solid", "dot", "dashdot", "longdash")
_Cell = tuple[PipelinePoint, Spread]


def pipeline_figures(found: Sequence[Pipeline]) -> list[Figure]:
    """A pair of figures for every setting: times of all ways, and what they gain over one message."""
    settings = [list(group) for _, group in groupby(found, key=lambda one: one.setting)]
    figures = []
    for k, group in enumerate(settings[:MAX_SETTINGS]):
        title = f"{words.level(group[0].level)}, {words.counted(group[0].partitions, 'partition')}"
        if sum(one[0].setting[:2] == group[0].setting[:2] for one in settings) > 1:
            title += f", gamma {format_gamma(group[0].gamma_s_per_byte)}"
        figures += [_time_figure(k, title, group), _gain_figure(k, title, group)]
    left = len(settings) - MAX_SETTINGS
    if left > 0:
        why = f"{MAX_SETTINGS} settings are drawn; the figures of the others are in the table of pipelines."
        figures.append(Figure("pipelines-left", f"{words.counted(left, 'more setting')}", "", why_not=why))
    return figures


def format_gamma(gamma_s_per_byte: float) -> str:
    return f"{gamma_s_per_byte * 1e12:.6g} us/MB"


def _time_figure(k: int, title: str, group: Sequence[Pipeline]) -> Figure:
    data, times = [], []
    for number, one in enumerate(group):
        for way in one.ways():
            cells = [(point, point.time_s[way]) for point in one.points if way in point.time_s]
            data += _traces(number, len(group), one, way, cells, format_seconds)
            times += [time_s for _, spread in cells for time_s in spread]
    sizes = [point.size_bytes for one in group for point in one.points]
    return Figure(
        f"pipeline-time-{k}",
        f"A buffer in partitions, {title}",
        "From the start until the buffer is received, without the delay of the last partition, which is "
        f"{format_gamma(group[0].gamma_s_per_byte)} times its size. Line: median over iterations, then "
        "launches. Shading: from the lowest to the highest launch.",
        data,
        axes.layout(axes.size_axis(sizes, "buffer size"), axes.log_time_axis(times, "time to solution")),
    )


def _gain_figure(k: int, title: str, group: Sequence[Pipeline]) -> Figure:
    id, name = f"pipeline-gain-{k}", f"Gain over one message, {title}"
    data: list[dict[str, Any]] = []
    values: list[float] = []
    for number, one in enumerate(group):
        for way in one.ways():
            cells = [(point, point.gain[way]) for point in one.points if way in point.gain]
            if cells:
                data += _traces(number, len(group), one, way, cells, lambda gain: f"{gain:.2f}")
                values += [gain for _, spread in cells for gain in spread]
    if not data:
        why = "No launch measured one message and another way in turn, and only such times make a gain."
        return Figure(id, name, "", why_not=why)
    for number, one in enumerate(group):
        points = [point for point in one.points if point.gain_theory is not None]
        values += [point.gain_theory for point in points]
        data.append(_theory(number, len(group), one, points))
    sizes = [point.size_bytes for one in group for point in one.points]
    return Figure(
        id,
        name,
        "How many times faster than one message when all is ready: the median of the ratios of times taken "
        "in turn; shading from the lowest to the highest launch. Dashed: equation (4) of Gillis et al. 2023 "
        "at the bandwidth of one message; it leaves latency out, so small buffers gain less.",
        data,
        axes.layout(axes.size_axis(sizes, "buffer size"), axes.linear_axis(max(values), "gain")),
    )


def _traces(
    number: int, of: int, one: Pipeline, way: str, cells: Sequence[_Cell], text: Callable[[float], str]
) -> list[dict[str, Any]]:
    x = [point.size_bytes or axes.ZERO_BYTES_AT for point, _ in cells]
    color, name = axes.color(way), axes.label(_name(of, one, way))
    edge = {
        "x": x,
        "mode": "lines",
        "line": {"width": 0, "color": color},
        "fillcolor": axes.color(way, faint=True),
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": name,
    }
    return [
        edge | {"y": [spread[1] for _, spread in cells]},
        edge | {"y": [spread[2] for _, spread in cells], "fill": "tonexty"},
        {
            "x": x,
            "y": [spread[0] for _, spread in cells],
            "mode": "lines+markers",
            "name": name,
            "legendgroup": name,
            "line": {"color": color, "width": 2, "dash": _DASHES[number % len(_DASHES)]},
            "marker": {"color": color, "size": 7, "symbol": axes.symbol(way)},
            "hovertext": [
                f"{name}<br>{format_bytes(point.size_bytes)}: <b>{text(middle)}</b><br>"
                f"{words.counted(point.num_launches, 'launch', 'launches')}: {text(low)} to {text(high)}"
                for point, (middle, low, high) in cells
            ],
            "hoverinfo": "text",
        },
    ]


def _theory(number: int, of: int, one: Pipeline, points: Sequence[PipelinePoint]) -> dict[str, Any]:
    name = axes.label(f"equation (4), {one.label}" if of > 1 else "equation (4)")
    return {
        "x": [point.size_bytes or axes.ZERO_BYTES_AT for point in points],
        "y": [point.gain_theory for point in points],
        "mode": "lines+markers" if len(points) == 1 else "lines",
        "name": name,
        "legendrank": 2000 + number,
        "line": {"color": axes.color("measured"), "width": 1.6, "dash": "dash"},
        "marker": {"color": axes.color("measured"), "size": 9, "symbol": "line-ew-open"},
        "hovertext": [
            f"{name}<br>{format_bytes(point.size_bytes)}: {point.gain_theory:.2f}" for point in points
        ],
        "hoverinfo": "text",
    }


def _name(of: int, one: Pipeline, way: str) -> str:
    return f"{one.label}, {words.way(way)}" if of > 1 else words.capital(words.way(way))
