"""Figures 1 to 8 of Insaghi's paper, and its surfaces over ranks and size, drawn from this machine."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.insaghi import load_insaghi
from earlybird.data.units import format_bytes, format_seconds
from earlybird.fit.insaghi_forms import Grid, design, is_logarithmic
from earlybird.papers.insaghi.measured import ALGORITHMS, OPERATIONS, STATISTICS, Latencies
from earlybird.predict.published_collectives import published_us
from earlybird.present.core import axes
from earlybird.present.core.lines import line
from earlybird.present.core.parts import Figure

_MAPPINGS = ("socket", "node")
_DASHES = {"socket": "solid", "node": "dash"}
_US = 1e-6
# The figures of each operation: the comparison, then one for each algorithm.
_NUMBERS = {"bcast": (1, 2, 3, 4), "reduce": (5, 6, 7, 8)}
_LARGEST_FIGURE_POINTS = 200


def paper_figures(measured: Sequence[Latencies]) -> list[Figure]:
    """Return the figures of every MPI; if nothing was measured, a figure that says what is missing."""
    figures = []
    for k, one in enumerate(measured):
        for operation in OPERATIONS:
            comparison, *numbers = _NUMBERS[operation]
            figures.append(_comparison(f"insaghi-{comparison}-{k}", comparison, operation, one))
            figures += [
                _regression_figure(f"insaghi-{number}-{k}", number, operation, algorithm, one)
                for number, algorithm in zip(numbers, ALGORITHMS, strict=True)
            ]
            figures.append(_surface(f"insaghi-{operation}-surface-{k}", operation, one))
    if not measured:
        figures = [Figure("insaghi", "Figures 1 to 8", "", absence="No run has latencies of collectives.")]
    return figures


def _caption(one: Latencies) -> str:
    crowded = f" Partly {one.crowded}." if one.crowded else ""
    own = " Algorithms of Earlybird, in the place of Open MPI's." if one.own else ""
    return f"Latency here: {STATISTICS[one.statistic]}; the paper's: mean over ranks.{own}{crowded}"


def _comparison(id: str, number: int, operation: str, one: Latencies) -> Figure:
    data: list[dict[str, Any]] = []
    values: list[float] = []
    ranks: list[int] = []
    for algorithm in ALGORITHMS:
        for map_by in _MAPPINGS:
            curve = one.curve(operation, algorithm, map_by)
            if not curve:
                continue
            counts, times_us = zip(*curve, strict=True)
            times_s = [time_us * _US for time_us in times_us]
            name = f"{algorithm} by {map_by}"
            texts = [f"{name}, {p} ranks: {format_seconds(t)}" for p, t in zip(counts, times_s, strict=True)]
            look = axes.color(algorithm), _DASHES[map_by]
            data.append(line(name, counts, times_s, texts, *look, symbol=axes.symbol(algorithm)))
            values += times_s
            ranks += counts
    title = f"Figure {number}: {operation}, 1 byte, {one.label}"
    if not data:
        return Figure(id, title, "", absence="No run has this operation.")
    layout = axes.layout(axes.log_count_axis(ranks, "ranks"), axes.log_time_axis(values, "latency"))
    return Figure(id, title, _caption(one), data, layout)


def _regression_figure(id: str, number: int, operation: str, algorithm: str, one: Latencies) -> Figure:
    """Draw the latencies, the regression through them, and the regression of the paper."""
    title = f"Figure {number}: {operation} {algorithm}, 1 byte, {one.label}"
    data: list[dict[str, Any]] = []
    values: list[float] = []
    ranks: list[int] = []
    left_out: list[str] = []
    for map_by in _MAPPINGS:
        curve = one.curve(operation, algorithm, map_by)
        if not curve:
            continue
        counts, times_us = zip(*curve, strict=True)
        color = axes.color(axes.series(_MAPPINGS.index(map_by)))
        grid = np.unique(np.linspace(min(counts), max(counts), _LARGEST_FIGURE_POINTS).round().astype(int))
        which = operation, algorithm, map_by
        lines = [
            (f"by {map_by}, measured", list(counts), list(times_us), "dot", {"mode": "markers"}),
            (f"by {map_by}, regression", grid.tolist(), _own(one, *which, grid), "solid", {}),
            (f"by {map_by}, regression of the paper", grid.tolist(), _paper(*which, grid), "dash", {}),
        ]
        for name, x, y_us, dash, more in lines:
            finite = [(p, t * _US) for p, t in zip(x, y_us, strict=False) if np.isfinite(t)]
            known = [(p, time_s) for p, time_s in finite if time_s > 0]
            if len(known) < len(finite):
                left_out.append(name)
            if not known:
                continue
            xs, ys = zip(*known, strict=True)
            texts = [f"{name}, {p} ranks: {format_seconds(t)}" for p, t in known]
            symbol = "circle" if more else ""
            data.append(line(name, xs, ys, texts, color, dash, symbol=symbol) | more)
            values += ys
            ranks += xs
    if not data:
        return Figure(id, title, "", absence="No run has this algorithm.")
    layout = axes.layout(
        axes.log_count_axis([p for p in ranks if p & (p - 1) == 0] or ranks, "ranks"),
        axes.log_time_axis(values, "latency"),
    )
    negative = f" Left out where it is not positive: {labels.listed(left_out)}." if left_out else ""
    return Figure(id, title, _caption(one) + negative, data, layout)


def _own(one: Latencies, operation: str, algorithm: str, map_by: str, ranks: np.ndarray) -> list[float]:
    """Return the microseconds that the regression of the paper's form through these latencies gives."""
    what = f"{algorithm} by {map_by}"
    fitted = [item for item in one.regressions() if (item.operation, item.what) == (operation, what)]
    if not fitted:
        return []
    points = Grid(
        ranks, np.ones_like(ranks), np.full(len(ranks), algorithm), np.full(len(ranks), map_by),
        np.ones(len(ranks)), one.break_ranks,
    )  # fmt: skip
    columns = design(points, fitted[0].form, algorithm)
    response = sum((row.estimate * columns[row.term] for row in fitted[0].rows), np.zeros(len(ranks)))
    return list(np.exp(response) if is_logarithmic(fitted[0].form, algorithm) else response)


def _paper(operation: str, algorithm: str, map_by: str, ranks: np.ndarray) -> list[float]:
    insaghi = load_insaghi()
    (published,) = (
        one
        for one in insaghi.regressions
        if (one.operation, one.algorithm, one.map_by) == (operation, algorithm, map_by) and one.form != 3
    )
    return list(np.asarray(published_us(published, ranks, 1, insaghi.break_ranks), dtype=float))


def _surface(id: str, operation: str, one: Latencies) -> Figure:
    """Draw latency over ranks and size, all three logarithmic, as the surfaces of section 3."""
    title = f"Surfaces of section 3: {operation} over ranks and size, {one.label}"
    data = []
    for algorithm in ALGORITHMS:
        for map_by in _MAPPINGS:
            points = one.surface(operation, algorithm, map_by)
            if len({size for _, size, _ in points}) < 2:
                continue
            name = f"{algorithm} by {map_by}"
            ranks, sizes, times_us = zip(*points, strict=True)
            data.append(
                {
                    "type": "scatter3d",
                    "mode": "markers",
                    "name": name,
                    "x": list(ranks),
                    "y": list(sizes),
                    "z": [time_us * _US for time_us in times_us],
                    "marker": {"color": axes.color(algorithm), "size": 4},
                    "hoverinfo": "text",
                    "hovertext": [
                        f"{name}, {p} ranks, {format_bytes(m)}: {format_seconds(t * _US)}"
                        for p, m, t in points
                    ],
                }
            )
    if not data:
        return Figure(id, title, "", absence="No run has several sizes.")
    scene: dict[str, Any] = {
        f"{axis}axis": {"type": "log", "title": {"text": text}, "dtick": dtick}
        for axis, text, dtick in (("x", "ranks", math.log10(2)), ("y", "bytes", 2), ("z", "seconds", 1))
    }
    # From farther away and above, so that the names of all axes are inside the figure.
    scene["camera"] = {"eye": {"x": 1.7, "y": 1.7, "z": 1.1}, "center": {"x": 0, "y": 0, "z": -0.2}}
    return Figure(id, title, _caption(one), data, axes.layout({}, {}, scene=scene), wide=True)
