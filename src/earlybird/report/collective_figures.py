"""Figures of collectives: time of each algorithm against ranks and against size."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import axes, words
from earlybird.report.collective_choices import choice, drawn_sizes, setting_words, sized
from earlybird.report.collectives import DEFAULT, Collective, CollectivePoint, is_own
from earlybird.report.material import ReferenceCurve
from earlybird.report.parts import Figure
from earlybird.report.spread_lines import fitted_trace, spread_traces

MAX_LINES = 10  # drawn at once; more wait in the legend
# From as many ranks on the regressions of a paper, made of hundreds, are drawn unasked.
REFERENCE_RANKS = 32
CROWDED = "More ranks than cores: these times hold the scheduler's switches too."
COMPLETION = (
    "Time until the last rank is through. Line: median over iterations, then launches; shading: from the "
    "lowest to the highest launch."
)


def collective_figures(
    k: int, one: Collective, found: Sequence[Collective], references: Sequence[ReferenceCurve]
) -> list[Figure]:
    """Of one operation, MPI and mapping: a figure against ranks for each size drawn, one against size."""
    figures = []
    for size_bytes in drawn_sizes(one, found):
        known = [
            curve
            for curve in references
            if (curve.operation, curve.map_by, curve.size_bytes) == (one.operation, one.map_by, size_bytes)
        ]
        figures.append(_ranks_figure(f"collective-ranks-{k}-{size_bytes}", one, size_bytes, known))
    return figures + ([_size_figure(f"collective-size-{k}", one)] if len(one.sizes()) > 1 else [])


def _ranks_figure(id: str, one: Collective, size_bytes: int, references: Sequence[ReferenceCurve]) -> Figure:
    title = f"Time against ranks, {format_bytes(size_bytes)}: {setting_words(one)}"
    points = one.of_size(size_bytes)
    if len({point.ranks for point in points}) < 2 and len(one.sizes()) > 1:
        ranks = words.counted(points[0].ranks, "rank")
        why = f"Only {ranks} were measured with this size; the figure against size shows them."
        return Figure(id, title, "", why_not=why, choice=sized(one, size_bytes))
    lines = _Lines(one, points, lambda point: point.ranks)
    published = [_reference_trace(curve, points[-1].ranks) for curve in references]
    counts = [point.ranks for point in points]
    return Figure(
        id,
        title,
        _caption(points, bool(lines.fitted), lines.hidden, published),
        [*lines.data, *lines.fitted, *published],
        axes.layout(
            axes.log_count_axis(counts, "ranks"),
            axes.log_time_axis([*lines.times_s, *_visible_times(published, lines.times_s)], "completion"),
        ),
        sentence=_ranks_sentence(one, points),
        choice=sized(one, size_bytes),
    )


def _size_figure(id: str, one: Collective) -> Figure:
    """Of the most ranks that several sizes were measured with."""
    counts = one.ranks()
    ranks = next((count for count in reversed(counts) if len(one.of_ranks(count)) > 1), counts[-1])
    points = one.of_ranks(ranks)
    lines = _Lines(one, points, lambda point: point.size_bytes or axes.ZERO_BYTES_AT)
    return Figure(
        id,
        f"Time against size, {words.counted(ranks, 'rank')}: {setting_words(one)}",
        _caption(points, bool(lines.fitted), lines.hidden, ()),
        [*lines.data, *lines.fitted],
        axes.layout(
            axes.size_axis([point.size_bytes for point in points]),
            axes.log_time_axis(lines.times_s, "completion"),
        ),
        sentence=_size_sentence(one, ranks),
        choice=choice(one),
    )


class _Lines:
    """The traces of every method over `points`: measured `data`, `fitted` ones, all `times_s`, how many are
    `hidden`."""

    def __init__(
        self, one: Collective, points: Sequence[CollectivePoint], x: Callable[[CollectivePoint], float]
    ):
        methods = [method for method in one.methods() if any(method in point.time_s for point in points)]
        shown = set(_shown(methods, points))
        self.hidden = len(methods) - len(shown)
        self.data: list[dict[str, Any]] = []
        self.fitted: list[dict[str, Any]] = []
        self.times_s: list[float] = []
        for method in methods:
            cells = [point for point in points if method in point.time_s]
            name = axes.label(words.capital(words.method(method)))
            spreads = [point.time_s[method] for point in cells]
            told = [hover(name, point, method) for point in cells]
            self.data += spread_traces(
                method, name, list(map(x, cells)), spreads, told, shown=method in shown
            )
            known = [point for point in cells if method in point.fitted_s and method in shown]
            if known:
                told = [_fitted_hover(method, point) for point in known]
                times_s = [point.fitted_s[method] for point in known]
                first = not self.fitted
                self.fitted.append(
                    fitted_trace(method, "Fitted model", list(map(x, known)), times_s, told, first)
                )
                self.times_s += times_s
            self.times_s += [time_s for spread in spreads for time_s in spread if method in shown]


def _shown(methods: Sequence[str], points: Sequence[CollectivePoint]) -> list[str]:
    """At most MAX_LINES: the MPI's own choice, the fastest anywhere, then the fastest at the last point."""
    fastest = {point.fastest() for point in points}
    last = points[-1].time_s

    def place(method: str) -> tuple:
        return method != DEFAULT, method not in fastest, last[method][0] if method in last else math.inf

    return sorted(methods, key=place)[:MAX_LINES]


def hover(name: str, point: CollectivePoint, method: str) -> str:
    middle, low, high = point.time_s[method]
    launches = words.counted(point.num_launches, "launch", "launches")
    gain = point.gain(method)
    beside = f"<br>{gain:.2f} times as fast as the MPI's own choice" if gain is not None else ""
    return (
        f"{name}<br>{words.counted(point.ranks, 'rank')}, {format_bytes(point.size_bytes)}: "
        f"<b>{format_seconds(middle)}</b><br>"
        f"{launches}: {format_seconds(low)} to {format_seconds(high)}{beside}"
    )


def _fitted_hover(method: str, point: CollectivePoint) -> str:
    fitted_s = point.fitted_s[method]
    off = words.signed_percent(fitted_s / point.time_s[method][0] - 1) if point.time_s[method][0] > 0 else ""
    return (
        f"{axes.label(f'fitted model, {words.method(method)}')}<br>{words.counted(point.ranks, 'rank')}, "
        f"{format_bytes(point.size_bytes)}: {format_seconds(fitted_s)} ({off})"
    )


def _reference_trace(curve: ReferenceCurve, most: int) -> dict[str, Any]:
    name = axes.label(f"{curve.source}, {words.method(curve.algorithm)}")
    return {
        "x": list(curve.ranks),
        # Straight lines fall below 0 for few ranks.
        "y": [time_s if time_s > 0 else None for time_s in curve.time_s],
        "mode": "lines",
        "name": name,
        "legendrank": 2500,
        "visible": True if most >= REFERENCE_RANKS else "legendonly",
        "line": {"color": axes.color(curve.algorithm), "width": 1.4, "dash": "10px,3px,2px,3px"},
        "hovertext": [
            f"{name}<br>{words.counted(ranks, 'rank')}: {format_seconds(time_s)}"
            for ranks, time_s in zip(curve.ranks, curve.time_s, strict=True)
        ],
        "hoverinfo": "text",
    }


def _visible_times(published: Sequence[dict[str, Any]], measured: Sequence[float]) -> list[float]:
    """Those drawn unasked, but where they lie far below all that was measured."""
    least = min((time_s for time_s in measured if time_s > 0), default=0.0) / 10
    drawn = [time_s for trace in published if trace["visible"] is True for time_s in trace["y"]]
    return [time_s for time_s in drawn if time_s is not None and time_s >= least]


def _caption(
    points: Sequence[CollectivePoint], fitted: bool, hidden: int, published: Sequence[dict[str, Any]]
) -> str:
    parts = [COMPLETION]
    if any(is_own(method) for point in points for method in point.time_s):
        parts.append("Open marks: our own algorithms, on point-to-point calls.")
    if fitted:
        parts.append("Dashed, without marks: the fitted model.")
    if hidden:
        parts.append(f"{words.counted(hidden, 'more algorithm')}: touch them in the legend.")
    if published and published[0]["visible"] == "legendonly":
        parts.append("The published regressions, made of hundreds of ranks: touch them in the legend.")
    if any(point.oversubscribed for point in points):
        parts.append(CROWDED)
    return " ".join(parts)


def _ranks_sentence(one: Collective, points: Sequence[CollectivePoint]) -> str:
    """`Among 8 ranks binomial tree is the fastest (12 us, 1.30 times as fast as the MPI's own choice).`"""
    last = points[-1]
    method, told = fastest_words(one, last)
    among = f"Among {words.counted(last.ranks, 'rank')}"
    if method == words.method(DEFAULT) and len(last.time_s) > 1:
        return f"{among} nothing is clearly faster than {method} ({told})."
    return f"{among} {method} is the fastest ({told})."


def fastest_words(one: Collective, point: CollectivePoint) -> tuple[str, str]:
    """The fastest algorithm at a point, the one that tables and maps name, and its time with what that gains
    over the MPI's own choice."""
    best = one.best_methods(point.ranks, one.methods())
    method = best[one.of_ranks(point.ranks).index(point)] or point.fastest()
    time = format_seconds(point.time_s[method][0])
    gain = point.gain(method)
    beside = f", {gain:.2f} times as fast as the MPI's own choice" if gain is not None else ""
    return words.method(method), time + beside


def _size_sentence(one: Collective, ranks: int) -> str:
    """`Fastest is the MPI's own choice up to 4 KiB and pipeline in segments of 8 KiB from 8 KiB.`"""
    best = one.best_methods(ranks, one.methods())
    if "" in best:
        return "The clock did not resolve every time."
    sizes = [point.size_bytes for point in one.of_ranks(ranks)]
    starts = [k for k in range(len(best)) if not k or best[k] != best[k - 1]]
    if len(starts) == 1:
        return f"At no size is another clearly faster than {words.method(best[0])}."
    spans = [f"{words.method(best[0])} up to {format_bytes(sizes[starts[1] - 1])}"]
    spans += [f"{words.method(best[k])} from {format_bytes(sizes[k])}" for k in starts[1:]]
    return f"Fastest is {words.listed_briefly(spans, 4)}."
