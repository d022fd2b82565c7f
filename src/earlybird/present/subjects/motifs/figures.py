"""Figures of motifs: the parts of an iteration's time, speed-up and throughput by style, and scaling."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from earlybird.compare.motifs import PARTS, Scaling
from earlybird.data import labels
from earlybird.data.methods import FUNNELLED
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bandwidth, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import (
    error_bars,
    hover,
    line,
    markers,
    measured_text,
    method_name,
    spread_traces,
    time_hover,
)
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.parts import Figure, figures_left
from earlybird.present.core.points import Point, results_of
from earlybird.present.core.text import crowded_sentence
from earlybird.present.subjects.motifs.view import WEAK, Motif, ScalingOf, scalings, setting_text

MAX_SETTINGS = 12  # settings with figures, one shown at a time; the table has all
MAX_POINTS = 4  # of a setting, the largest grids
MAX_SCALINGS = 6
SLEEP = "Threads without a core of their own sleep instead of computing."
THROUGHPUT = "throughput_bytes_per_s"
_ROW_HEIGHT, _AROUND_ROWS = 30, 96  # pixels of a row; of the axis, its title and the margins
_GAP = 1.4  # rows between two points, with the name of the second
_NAMES = dict(zip(PARTS, ("computing", "communicating", "waiting"), strict=True))
_WHOLE = "not divided"


@dataclass(frozen=True)
class _Row:
    """A style at a point, at height `y` of the figure."""

    y: float
    point: Point
    where: str
    method: str

    @property
    def figures(self) -> Mapping[str, Any]:
        return self.point.results[self.method].figures

    @property
    def name(self) -> str:
        return f"{method_name(self.method)}<br>{axes.label(self.where)}"

    @property
    def time_text(self) -> str:
        return time_hover(self.name, self.point, self.method)

    @property
    def time_s(self) -> float:
        return self.point.time_s[self.method].value

    @property
    def gain(self) -> Estimate:
        return self.point.speed_up[self.method]


def motif_figures(measured: Sequence[Motif]) -> list[Figure]:
    """Draw the parts of the time, speed-up and throughput of every setting, and how every style scales."""
    figures: list[Figure | None] = []
    for k, motif in enumerate(measured[:MAX_SETTINGS]):
        figures += [_parts_figure(k, motif), _speed_up_figure(k, motif), _throughput_figure(k, motif)]
    figures += [_scaling_figure(k, scaled) for k, scaled in enumerate(scalings(measured)[:MAX_SCALINGS])]
    return [figure for figure in figures if figure] + figures_left("motif", len(measured), MAX_SETTINGS)


def _rows(motif: Motif, holds: Callable[[Point, str], bool] = lambda *_: True) -> list[_Row]:
    """Return the styles of the largest grids for which `holds`, from top to bottom."""
    rows: list[_Row] = []
    y = 0.0
    named = list(zip(motif.points, motif.names_of_points(), strict=True))[-MAX_POINTS:]
    for point, where in named:
        methods = [method for method in motif.methods() if method in point.results and holds(point, method)]
        y += _GAP * bool(rows and methods)
        rows += [_Row(y + k, point, where, method) for k, method in enumerate(methods)]
        y += len(methods)
    return rows


def _figure(
    id: str,
    title: str,
    motif: Motif,
    caption: str,
    rows: Sequence[_Row],
    data: Sequence[Mapping[str, Any]],
    x: dict[str, Any],
    **more: Any,
) -> Figure:
    """Draw a row for each style, with the name of its point above the first one."""
    first = {row.where: row.y for row in reversed(rows)}
    names = [
        {
            "text": axes.label(where), "x": 0, "xref": "paper", "xanchor": "left", "y": y - 0.55,
            "yanchor": "bottom", "showarrow": False, "font": {"size": 12.5},
        }
        for where, y in first.items()
    ]  # fmt: skip
    y = {
        "tickvals": [row.y for row in rows],
        "ticktext": [row.method for row in rows],
        "range": [rows[-1].y + 0.6, -1.3],
        "showgrid": False,
        "fixedrange": True,
    }
    height = round(_AROUND_ROWS + _ROW_HEIGHT * (rows[-1].y + 1.9))
    left = len(motif.points) - MAX_POINTS
    remarks = [f"The table has {labels.counted(left, 'more point')}."] if left > 0 else []
    return Figure(
        id,
        f"{title}: {setting_text(motif)}",
        caption,
        data,
        axes.layout(x, y, annotations=names, height=height, **more),
        sentence=" ".join([*remarks, *([crowded_sentence(), SLEEP] if motif.oversubscribed else [])]),
        choice=motif.choice(),
    )


def _parts_caption(motif: Motif) -> str:
    text = "Parts of the time of the slowest rank, each a "
    if any(result.mean_of_iterations for result in results_of(motif.points)):
        return text + "mean over the iterations of all launches."
    return text + (
        "median; their sum may differ a little from the median of the time, which a tap or the pointer shows."
    )


def _parts_figure(k: int, motif: Motif) -> Figure:
    rows = _rows(motif)
    data = [trace for part in _NAMES for trace in _part_traces(part, rows)]
    whole = [row for row in rows if PARTS[0] not in row.figures]
    if whole:
        data += _bars(_WHOLE, whole, [row.time_s for row in whole], [row.time_text for row in whole])
    longest_s = max(max(row.time_s, sum(row.figures.get(part) or 0.0 for part in PARTS)) for row in rows)
    return _figure(
        f"motif-parts-{k}",
        "Time of an iteration",
        motif,
        _parts_caption(motif),
        rows,
        data,
        axes.linear_time_axis(longest_s, "time of an iteration"),
        barmode="stack",
    )


def _part_traces(part: str, rows: Sequence[_Row]) -> list[dict[str, Any]]:
    known = [row for row in rows if row.figures.get(part) is not None]
    values = [row.figures[part] for row in known]
    texts = [f"{row.time_text}<br>{_NAMES[part]}: {format_seconds(row.figures[part])}" for row in known]
    return _bars(_NAMES[part], known, values, texts) if known else []


def _bars(
    name: str, rows: Sequence[_Row], values: Sequence[float], texts: Sequence[str]
) -> list[dict[str, Any]]:
    """Return bars in the colours of the styles, and the entry of the legend in the colour of the text;
    communicating is hatched, waiting pale."""
    look = axes.bar_pattern("/" if name == _NAMES[PARTS[1]] else "")
    color = partial(axes.color, faint=name == _NAMES[PARTS[2]])
    bars = {"type": "bar", "orientation": "h", "name": name, "legendgroup": name}
    drawn = bars | {
        "x": list(values),
        "y": [row.y for row in rows],
        "width": 0.74,
        "showlegend": False,
        "marker": {"color": [color(row.method) for row in rows]} | look,
        "hovertext": list(texts),
        "hoverinfo": "text",
    }
    entry = bars | {"x": [None], "y": [None], "marker": {"color": color("measured")} | look}
    return [drawn, entry]


def _speed_up_figure(k: int, motif: Motif) -> Figure | None:
    """Draw the speed-ups, if a launch compares a style with the reference."""
    rows = _rows(motif, lambda point, method: method in point.speed_up)
    if not rows:
        return None
    dashed = {"color": axes.color("measured"), "width": 1.4, "dash": "dash"}
    reference = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": dashed}
    return _figure(
        f"motif-gain-{k}",
        f"Speed-up over {labels.method(FUNNELLED)}",
        motif,
        f"Time of {labels.method(FUNNELLED)} divided by that of the style, in the same round. Marker: median "
        "over launches. Bar: its interval. Dashed: as fast as the reference.",
        rows,
        [
            _speed_up_trace(method, own)
            for method in motif.methods()
            if (own := [row for row in rows if row.method == method])
        ],
        axes.ratio_axis([value for row in rows for value in row.gain], "speed-up"),
        shapes=[reference],
    )


def _speed_up_trace(method: str, rows: Sequence[_Row]) -> dict[str, Any]:
    gains, places = [row.gain for row in rows], [row.y for row in rows]
    texts = [
        hover(row.name, "speed-up", row.gain, ratio_text, row.point.results[method].launches) for row in rows
    ]
    whiskers = error_bars(gains) | {"thickness": 2, "width": 5}
    values = [gain.value for gain in gains]
    return markers(method_name(method), values, places, texts, method, size=10, error_x=whiskers)


def _throughput_figure(k: int, motif: Motif) -> Figure | None:
    """Draw the throughput, if anything is sent."""
    rows = _rows(motif, lambda point, method: bool(point.results[method].figures.get(THROUGHPUT)))
    if not rows:
        return None
    rates = [row.figures[THROUGHPUT] for row in rows]
    texts = [f"{row.name}: <b>{format_bandwidth(rate)}</b>" for row, rate in zip(rows, rates, strict=True)]
    return _figure(
        f"motif-sent-{k}",
        "Throughput",
        motif,
        "Bytes that all ranks send in an iteration, divided by its time. Every style sends the same bytes.",
        rows,
        _bars("throughput", rows, rates, texts)[:1],
        axes.linear_bandwidth_axis(max(rates), "sent by all ranks"),
    )


def _scaling_figure(k: int, scaling: ScalingOf) -> Figure:
    """Draw time against ranks, and the ideal time of the first style."""
    data: list[dict[str, Any]] = []
    for method in scaling.methods():
        own = scaling.of(method)
        name, spreads = method_name(method), [scaled.result.time_s for scaled in own]
        texts = [_scaling_hover(name, scaled) for scaled in own]
        data += spread_traces(method, name, [_ranks(scaled.result) for scaled in own], spreads, texts)
    first = scaling.of(scaling.methods()[0])[0]
    counts = sorted({_ranks(scaled.result) for scaled in scaling.scalings})
    times_s = [time_s for scaled in scaling.scalings for time_s in scaled.result.time_s]
    ideal_s = [first.ideal_s(ranks) for ranks in counts]
    name = f"Ideal, from {method_name(first.result.method).lower()}"
    color = axes.color("measured")
    data.append(line(name, counts, ideal_s, [], color, "dash", width=1.6, legendrank=2000, hoverinfo="skip"))
    kind = "Weak" if scaling.first.setting.scaling == WEAK else "Strong"
    crowded = any(scaled.result.oversubscribed for scaled in scaling.scalings)
    return Figure(
        f"motif-scaling-{k}",
        f"{kind} scaling of {scaling.cells_text()}: {setting_text(scaling.first, with_ranks=False)}",
        f"{measured_text([first.result])} Dashed: ideal scaling from the fewest ranks."
        + f" {crowded_sentence()} {SLEEP}" * crowded,
        data,
        axes.layout(axes.log_count_axis(counts, "ranks"), axes.log_time_axis([*times_s, *ideal_s], "time")),
        choice=scaling.choice(),
    )


def _ranks(result: Result) -> int:
    return int(result.config["ranks"])


def _scaling_hover(name: str, scaled: Scaling) -> str:
    time = with_interval(scaled.result.time_s, format_seconds)
    text = f"{name}<br>{labels.counted(_ranks(scaled.result), 'rank')}: <b>{time}</b>"
    if scaled.efficiency is None:
        return text
    fewest = labels.counted(_ranks(scaled.fewest), "rank")
    return f"{text}<br>efficiency {labels.percent(scaled.efficiency)} relative to {fewest}"
