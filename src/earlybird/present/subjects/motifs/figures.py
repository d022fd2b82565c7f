"""Figures of motifs: the parts of an iteration's time, speed-up and throughput by style, and scaling."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from earlybird.compare.motifs import PARTS, Scaling
from earlybird.data import labels
from earlybird.data.methods import FUNNELLED
from earlybird.data.units import format_bandwidth, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import MEASURED, hover, line, method_name, spread_traces, time_hover
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.parts import Figure, figures_left
from earlybird.present.core.points import Point
from earlybird.present.subjects.motifs.view import WEAK, Motif, ScalingOf, scalings, setting_text

MAX_SETTINGS = 12  # settings with figures, one shown at a time; the table has all
MAX_POINTS = 4  # of a setting, the largest grids
MAX_SCALINGS = 6
CROWDED = "More threads than cores: they sleep instead of computing, and the times include the scheduler."
THROUGHPUT = "throughput_bytes_per_s"
_ROW_HEIGHT, _AROUND_ROWS = 30, 96  # pixels of a row; of the axis, its title and the margins
_GAP = 1.4  # rows between two points, with the name of the second
# The parts of a bar, all in the colour of its style.
_PATTERN = {"fillmode": "overlay", "fgcolor": "var(--card)", "size": 6, "solidity": 0.3, "shape": "/"}
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
    def figures(self):
        return self.point.results[self.method].figures


def motif_figures(measured: Sequence[Motif]) -> list[Figure]:
    """The parts of the time, speed-up and throughput of every setting, and the scaling of every style."""
    figures: list[Figure] = []
    for k, one in enumerate(measured[:MAX_SETTINGS]):
        figures += [_parts_figure(k, one), *_speed_up_figures(k, one), *_throughput_figures(k, one)]
    scaled = scalings(measured)
    figures += [_scaling_figure(k, one) for k, one in enumerate(scaled[:MAX_SCALINGS])]
    return figures + figures_left("motif", len(measured), MAX_SETTINGS)


def _rows(one: Motif, holds: Callable[[Point, str], bool] = lambda *_: True) -> list[_Row]:
    """The styles of the largest grids for which `holds`, from top to bottom."""
    found, y = [], 0.0
    named = list(zip(one.points, one.names_of_points(), strict=True))[-MAX_POINTS:]
    for point, where in named:
        methods = [method for method in one.methods() if method in point.results and holds(point, method)]
        y += _GAP * bool(found and methods)
        found += [_Row(y + k, point, where, method) for k, method in enumerate(methods)]
        y += len(methods)
    return found


def _layout(rows: Sequence[_Row], x: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A row for each style, with the name of its point above the first one."""
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
    height = _AROUND_ROWS + _ROW_HEIGHT * (rows[-1].y + 1.9)
    return axes.layout(x, y, annotations=names, height=round(height), **more)


def _remarks(one: Motif) -> str:
    """What is not drawn, and whether threads shared cores."""
    left = len(one.points) - MAX_POINTS
    more = f"The table has {labels.counted(left, 'more point')}." if left > 0 else ""
    return f"{more} {CROWDED * one.oversubscribed}".strip()


def _parts_figure(k: int, one: Motif) -> Figure:
    rows = _rows(one)
    data = [trace for part in _NAMES for trace in _part_traces(part, rows)]
    whole = [row for row in rows if PARTS[0] not in row.figures]
    if whole:
        times_s = [row.point.time_s[row.method].value for row in whole]
        data += _bars(_WHOLE, whole, times_s, [_time_text(row) for row in whole])
    longest_s = max(max(row.point.time_s[row.method].value, _sum_of_parts(row)) for row in rows)
    return Figure(
        f"motif-parts-{k}",
        f"Time of an iteration: {setting_text(one)}",
        "Parts of the time of the slowest rank, each a median; their sum may differ a little from the median "
        "of the time, which a tap or the pointer shows.",
        data,
        _layout(rows, axes.linear_time_axis(longest_s, "time of an iteration"), barmode="stack"),
        sentence=_remarks(one),
        choice=one.choice(),
    )


def _sum_of_parts(row: _Row) -> float:
    return sum(row.figures.get(part) or 0.0 for part in PARTS)


def _part_traces(part: str, rows: Sequence[_Row]) -> list[dict[str, Any]]:
    known = [row for row in rows if row.figures.get(part) is not None]
    if not known:
        return []
    values = [row.figures[part] for row in known]
    texts = [f"{_time_text(row)}<br>{_NAMES[part]}: {format_seconds(row.figures[part])}" for row in known]
    return _bars(_NAMES[part], known, values, texts)


def _bars(
    name: str, rows: Sequence[_Row], values: Sequence[float], texts: Sequence[str]
) -> list[dict[str, Any]]:
    """Bars in the colours of the styles, and the entry of the legend in the colour of the text; communicating
    is hatched, waiting pale."""
    look = {"pattern": _PATTERN} if name == _NAMES[PARTS[1]] else {}
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


def _time_text(row: _Row) -> str:
    return time_hover(f"{method_name(row.method)}<br>{axes.label(row.where)}", row.point, row.method)


def _speed_up_figures(k: int, one: Motif) -> Iterator[Figure]:
    """One figure, if a launch compares a style with the reference."""
    rows = _rows(one, lambda point, method: method in point.speed_up)
    if not rows:
        return
    gains = [row.point.speed_up[row.method] for row in rows]
    data = []
    for method in one.methods():
        own = [row for row in rows if row.method == method]
        if own:
            data.append(_speed_up_trace(method, own))
    yield Figure(
        f"motif-gain-{k}",
        f"Speed-up over {labels.method(FUNNELLED)}: {setting_text(one)}",
        f"Time of {labels.method(FUNNELLED)} divided by that of the style, in the same round. Marker: median "
        "over launches. Bar: its interval. Dashed: as fast as the reference.",
        data,
        _layout(
            rows,
            axes.ratio_axis([value for gain in gains for value in gain], "speed-up"),
            shapes=[_line_at_one()],
        ),
        sentence=_remarks(one),
        choice=one.choice(),
    )


def _speed_up_trace(method: str, rows: Sequence[_Row]) -> dict[str, Any]:
    gains = [row.point.speed_up[method] for row in rows]
    name, color = method_name(method), axes.color(method)
    texts = [
        hover(
            f"{name}<br>{axes.label(row.where)}",
            "speed-up",
            gain,
            ratio_text,
            row.point.results[method].launches,
        )
        for row, gain in zip(rows, gains, strict=True)
    ]
    return {
        "x": [gain.value for gain in gains],
        "y": [row.y for row in rows],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [gain.high - gain.value for gain in gains],
            "arrayminus": [gain.value - gain.low for gain in gains],
            "color": color,
            "thickness": 2,
            "width": 5,
        },
        "mode": "markers",
        "name": name,
        "marker": {"color": color, "size": 10, "symbol": axes.symbol(method)},
        "hovertext": texts,
        "hoverinfo": "text",
    }


def _line_at_one() -> dict[str, Any]:
    look = {"color": axes.color("measured"), "width": 1.4, "dash": "dash"}
    return {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": look}


def _throughput_figures(k: int, one: Motif) -> Iterator[Figure]:
    """One figure, if anything is sent."""
    rows = _rows(one, lambda point, method: bool(point.results[method].figures.get(THROUGHPUT)))
    if not rows:
        return
    rates = [row.figures[THROUGHPUT] for row in rows]
    texts = [
        f"{method_name(row.method)}<br>{axes.label(row.where)}: <b>{format_bandwidth(rate)}</b>"
        for row, rate in zip(rows, rates, strict=True)
    ]
    bars, _ = _bars("throughput", rows, rates, texts)
    yield Figure(
        f"motif-sent-{k}",
        f"Throughput: {setting_text(one)}",
        "Bytes that all ranks send in an iteration, divided by its time. Every style sends the same bytes.",
        [bars],
        _layout(rows, axes.linear_bandwidth_axis(max(rates), "sent by all ranks")),
        sentence=_remarks(one),
        choice=one.choice(),
    )


def _scaling_figure(k: int, one: ScalingOf) -> Figure:
    """Time against ranks, and the ideal time of the first style."""
    data: list[dict[str, Any]] = []
    for method in one.methods():
        own = one.of(method)
        name, spreads = method_name(method), [scaled.result.time_s for scaled in own]
        texts = [_scaling_hover(name, scaled) for scaled in own]
        data += spread_traces(method, name, [_ranks(scaled) for scaled in own], spreads, texts)
    first = one.of(one.methods()[0])
    counts = sorted({_ranks(scaled) for scaled in one.scalings})
    times_s = [time_s for scaled in one.scalings for time_s in scaled.result.time_s]
    ideal_s = [_ideal_s(first[0], ranks) for ranks in counts]
    name = f"Ideal, from {method_name(first[0].result.method).lower()}"
    look = {"width": 1.6, "legendrank": 2000, "hoverinfo": "skip"}
    data.append(line(name, counts, ideal_s, [], axes.color("measured"), "dash", **look))
    is_weak = one.first.setting.scaling == WEAK
    crowded = any(scaled.result.oversubscribed for scaled in one.scalings)
    return Figure(
        f"motif-scaling-{k}",
        f"{'Weak' if is_weak else 'Strong'} scaling of {one.cells_text()}: "
        f"{setting_text(one.first, with_ranks=False)}",
        f"{MEASURED} Dashed: ideal scaling from the fewest ranks.{f' {CROWDED}' * crowded}",
        data,
        axes.layout(axes.log_count_axis(counts, "ranks"), axes.log_time_axis([*times_s, *ideal_s], "time")),
        choice=one.choice(),
    )


def _ranks(one: Scaling) -> int:
    return int(one.result.config["ranks"])


def _ideal_s(one: Scaling, ranks: int) -> float:
    """The time of the fewest ranks, shared by `ranks` unless the work grows with them."""
    time_s = one.fewest.time_s.value
    return time_s if one.is_weak else time_s * one.fewest.config["ranks"] / ranks


def _scaling_hover(name: str, one: Scaling) -> str:
    time = with_interval(one.result.time_s, format_seconds)
    text = f"{name}<br>{labels.counted(_ranks(one), 'rank')}: <b>{time}</b>"
    if one.efficiency is None:
        return text
    fewest = labels.counted(int(one.fewest.config["ranks"]), "rank")
    return f"{text}<br>efficiency {labels.percent(one.efficiency)} relative to {fewest}"
