"""Figures of collectives: time of each algorithm against ranks and against size."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report.collective_choices import choice, drawn_sizes, setting_text, sized
from earlybird.report.collectives import Collective, CollectivePoint, is_own
from earlybird.report.figures import axes
from earlybird.report.figures.spread_lines import fitted_trace, spread_traces
from earlybird.report.material import ReferenceCurve
from earlybird.report.parts import Figure

MAX_LINES = 10  # visible lines; the legend shows the others on request
# From this number of ranks, published regressions (fitted to hundreds of ranks) are visible by default.
REFERENCE_RANKS = 32
CROWDED = "More ranks than cores: these times include context switches."
COMPLETION = (
    "Time until the last rank completes. Line: median over iterations, then launches. Shading: its "
    "interval over launches."
)


def collective_figures(
    k: int, collective: Collective, measured: Sequence[Collective], references: Sequence[ReferenceCurve]
) -> list[Figure]:
    """For one operation, MPI and mapping: figures against ranks for each drawn size, one against size."""
    figures = []
    for size_bytes in drawn_sizes(collective, measured):
        known = [
            curve
            for curve in references
            if (curve.operation, curve.map_by, curve.size_bytes)
            == (collective.operation, collective.map_by, size_bytes)
        ]
        figures.append(_ranks_figure(f"collective-ranks-{k}-{size_bytes}", collective, size_bytes, known))
    return figures + (
        [_size_figure(f"collective-size-{k}", collective)] if len(collective.sizes()) > 1 else []
    )


def _ranks_figure(
    id: str, collective: Collective, size_bytes: int, references: Sequence[ReferenceCurve]
) -> Figure:
    title = f"Time against ranks, {format_bytes(size_bytes)}: {setting_text(collective)}"
    points = collective.of_size(size_bytes)
    if len({point.ranks for point in points}) < 2 and len(collective.sizes()) > 1:
        ranks = labels.counted(points[0].ranks, "rank")
        reason = f"Only {ranks} were measured with this size; see the figure against size."
        return Figure(id, title, "", why_not=reason, choice=sized(collective, size_bytes))
    lines = _Lines(collective, points, lambda point: point.ranks)
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
        sentence=_ranks_sentence(collective, points),
        choice=sized(collective, size_bytes),
    )


def _size_figure(id: str, collective: Collective) -> Figure:
    """At the largest number of ranks measured with several sizes."""
    counts = collective.ranks()
    ranks = next((count for count in reversed(counts) if len(collective.of_ranks(count)) > 1), counts[-1])
    points = collective.of_ranks(ranks)
    lines = _Lines(collective, points, lambda point: point.size_bytes or axes.ZERO_BYTES_AT)
    return Figure(
        id,
        f"Time against size, {labels.counted(ranks, 'rank')}: {setting_text(collective)}",
        _caption(points, bool(lines.fitted), lines.hidden, ()),
        [*lines.data, *lines.fitted],
        axes.layout(
            axes.size_axis([point.size_bytes for point in points]),
            axes.log_time_axis(lines.times_s, "completion"),
        ),
        sentence=_size_sentence(collective, ranks),
        choice=choice(collective),
    )


class _Lines:
    """The traces of every method over `points`: measured `data`, `fitted` models, all visible `times_s`, and
    the number of `hidden` methods."""

    def __init__(
        self, collective: Collective, points: Sequence[CollectivePoint], x: Callable[[CollectivePoint], float]
    ):
        methods = [
            method for method in collective.methods() if any(method in point.time_s for point in points)
        ]
        shown = set(_shown(methods, points))
        self.hidden = len(methods) - len(shown)
        self.data: list[dict[str, Any]] = []
        self.fitted: list[dict[str, Any]] = []
        self.times_s: list[float] = []
        for method in methods:
            cells = [point for point in points if method in point.time_s]
            name = axes.label(labels.capital(labels.method(method)))
            spreads = [point.time_s[method] for point in cells]
            hover_texts = [hover(name, point, method) for point in cells]
            self.data += spread_traces(
                method, name, list(map(x, cells)), spreads, hover_texts, shown=method in shown
            )
            predicted = [point for point in cells if method in point.fitted_s and method in shown]
            if predicted:
                hover_texts = [_fitted_hover(method, point) for point in predicted]
                times_s = [point.fitted_s[method] for point in predicted]
                first = not self.fitted
                self.fitted.append(
                    fitted_trace(method, "Fitted model", list(map(x, predicted)), times_s, hover_texts, first)
                )
                self.times_s += times_s
            self.times_s += [time_s for spread in spreads for time_s in spread if method in shown]


def _shown(methods: Sequence[str], points: Sequence[CollectivePoint]) -> list[str]:
    """At most MAX_LINES: the MPI's default, the fastest at any point, then the fastest at the last point."""
    fastest = {point.fastest() for point in points}
    last = points[-1].time_s

    def priority(method: str) -> tuple:
        return method != DEFAULT, method not in fastest, last[method][0] if method in last else math.inf

    return sorted(methods, key=priority)[:MAX_LINES]


def hover(name: str, point: CollectivePoint, method: str) -> str:
    middle, low, high = point.time_s[method]
    launches = labels.counted(point.num_launches, "launch", "launches")
    gain = point.speed_up(method)
    speed_up = f"<br>speed-up {gain:.2f} over the MPI's default" if gain is not None else ""
    return (
        f"{name}<br>{labels.counted(point.ranks, 'rank')}, {format_bytes(point.size_bytes)}: "
        f"<b>{format_seconds(middle)}</b><br>"
        f"{launches}: {format_seconds(low)} to {format_seconds(high)}{speed_up}"
    )


def _fitted_hover(method: str, point: CollectivePoint) -> str:
    fitted_s = point.fitted_s[method]
    off = labels.signed_percent(fitted_s / point.time_s[method][0] - 1) if point.time_s[method][0] > 0 else ""
    return (
        f"{axes.label(f'fitted model, {labels.method(method)}')}<br>{labels.counted(point.ranks, 'rank')}, "
        f"{format_bytes(point.size_bytes)}: {format_seconds(fitted_s)} ({off})"
    )


def _reference_trace(curve: ReferenceCurve, most: int) -> dict[str, Any]:
    name = axes.label(f"{curve.source}, {labels.method(curve.algorithm)}")
    return {
        "x": list(curve.ranks),
        # Regression lines may be negative for few ranks.
        "y": [time_s if time_s > 0 else None for time_s in curve.time_s],
        "mode": "lines",
        "name": name,
        "legendrank": 2500,
        "visible": True if most >= REFERENCE_RANKS else "legendonly",
        "line": {"color": axes.color(curve.algorithm), "width": 1.4, "dash": "10px,3px,2px,3px"},
        "hovertext": [
            f"{name}<br>{labels.counted(ranks, 'rank')}: {format_seconds(time_s)}"
            for ranks, time_s in zip(curve.ranks, curve.time_s, strict=True)
        ],
        "hoverinfo": "text",
    }


def _visible_times(published: Sequence[dict[str, Any]], measured: Sequence[float]) -> list[float]:
    """Times of the visible regressions, without values far below all measured times."""
    least = min((time_s for time_s in measured if time_s > 0), default=0.0) / 10
    drawn = [time_s for trace in published if trace["visible"] is True for time_s in trace["y"]]
    return [time_s for time_s in drawn if time_s is not None and time_s >= least]


def _caption(
    points: Sequence[CollectivePoint], fitted: bool, hidden: int, published: Sequence[dict[str, Any]]
) -> str:
    parts = [COMPLETION]
    if any(is_own(method) for point in points for method in point.time_s):
        parts.append("Open markers: our own algorithms, on point-to-point calls.")
    if fitted:
        parts.append("Dashed, without markers: the fitted model.")
    if hidden:
        parts.append(f"{labels.counted(hidden, 'more algorithm')} hidden: click the legend to show them.")
    if published and published[0]["visible"] == "legendonly":
        parts.append("Published regressions, fitted to hundreds of ranks, are hidden: click the legend.")
    if any(point.oversubscribed for point in points):
        parts.append(CROWDED)
    return " ".join(parts)


def _ranks_sentence(collective: Collective, points: Sequence[CollectivePoint]) -> str:
    """`Among 8 ranks, binomial tree is the fastest (12 us, speed-up 1.30 over the MPI's default).`"""
    last = points[-1]
    method, time = fastest_text(collective, last)
    among = f"Among {labels.counted(last.ranks, 'rank')}"
    if method == labels.method(DEFAULT) and len(last.time_s) > 1:
        return f"{among}, no algorithm is clearly faster than {method} ({time})."
    return f"{among}, {method} is the fastest ({time})."


def fastest_text(collective: Collective, point: CollectivePoint) -> tuple[str, str]:
    """The fastest algorithm at a point, the same as in tables and maps, and its time with the speed-up over
    the MPI's default."""
    method = collective.best_at(point)
    time = format_seconds(point.time_s[method][0])
    gain = point.speed_up(method)
    speed_up = f", speed-up {gain:.2f} over the MPI's default" if gain is not None else ""
    return labels.method(method), time + speed_up


def _size_sentence(collective: Collective, ranks: int) -> str:
    """`Fastest: the MPI's default up to 4 KiB and pipeline in segments of 8 KiB from 8 KiB.`"""
    best = collective.best_methods(ranks, collective.methods())
    if "" in best:
        return "The clock did not resolve every time."
    sizes = [point.size_bytes for point in collective.of_ranks(ranks)]
    starts = [k for k in range(len(best)) if not k or best[k] != best[k - 1]]
    if len(starts) == 1:
        return f"No algorithm is clearly faster than {labels.method(best[0])} at any size."
    spans = [f"{labels.method(best[0])} up to {format_bytes(sizes[starts[1] - 1])}"]
    spans += [f"{labels.method(best[k])} from {format_bytes(sizes[k])}" for k in starts[1:]]
    return f"Fastest: {labels.listed_briefly(spans, 4)}."
