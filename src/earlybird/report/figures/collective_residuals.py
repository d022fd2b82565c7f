"""Relative errors of the fitted models of collectives, against ranks and against size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.report.figures import axes
from earlybird.report.figures.lines import method_name, size_x
from earlybird.report.parts import Figure, few
from earlybird.report.views.collectives import Collective
from earlybird.report.views.points import Point, methods_of

MAX_POINTS = 800  # drawn at most, an even selection
FAR = 1.5  # larger errors are drawn at the edge


@dataclass(frozen=True)
class _Error:
    point: Point
    method: str
    error: float


def residual_figures(k: int, collective: Collective) -> list[Figure]:
    """Two figures if a model was fitted, else none."""
    found = [
        _Error(point, method, error)
        for point in collective.points
        for method in point.results
        if (error := point.fitted_error(method)) is not None
    ]
    if not found:
        return []
    half, ninety = np.quantile([abs(one.error) for one in found], (0.5, 0.9)).tolist()
    furthest = max(found, key=lambda one: abs(one.error))
    drawn = [found[i] for i in few(len(found), min(MAX_POINTS, len(found)))] if len(found) > 1 else found
    count_axis = axes.log_count_axis([one.point.ranks for one in drawn], "ranks")
    size_axis = axes.size_axis([one.point.size_bytes for one in drawn])
    by_ranks = (
        f"Of {labels.counted(len(found), 'time')}, half are predicted within {labels.percent(half)} "
        f"and 90 % within {labels.percent(ninety)}."
    )
    by_size = (
        f"Largest error: {labels.method(furthest.method)}, {furthest.point.where}: "
        f"{labels.signed_percent(furthest.error)}."
    )
    return [
        _figure(f"collective-error-{against}-{k}", against, collective, drawn, sentence, axis, x, side)
        for against, sentence, axis, x, side in (
            ("ranks", by_ranks, count_axis, lambda point: point.ranks, 1.025),
            ("size", by_size, size_axis, size_x, 1.25),
        )
    ]


def _figure(
    id: str,
    against: str,
    collective: Collective,
    drawn: Sequence[_Error],
    sentence: str,
    axis: dict[str, Any],
    x: Callable[[Point], float],
    side: float,
) -> Figure:
    """Algorithms are drawn side by side, within the factor `side` of the measured x value."""
    methods = [
        method
        for method in methods_of(one.point for one in drawn)
        if any(one.method == method for one in drawn)
    ]
    far = sum(one.error > FAR for one in drawn)
    look = {"size": 7, "opacity": 0.75}
    data = []
    for method, shift in zip(methods, np.linspace(-1, 1, len(methods)), strict=True):
        errors = [one for one in drawn if one.method == method]
        data.append(
            {
                "x": [round(float(x(one.point) * side**shift), 6) for one in errors],
                "y": [min(one.error, FAR) for one in errors],
                "mode": "markers",
                "name": method_name(method),
                "marker": look | {"color": axes.color(method), "symbol": axes.symbol(method)},
                "hovertext": [
                    f"{method_name(method)}<br>{one.point.where}: <b>{labels.signed_percent(one.error)}</b>"
                    for one in errors
                ],
                "hoverinfo": "text",
            }
        )
    return Figure(
        id,
        f"Error of the model against {against}: {collective.setting_text}",
        "One point per algorithm, ranks and size. Above 0, the prediction is larger than the measurement."
        + f" {labels.counted(far, 'point')} above +{labels.percent(FAR)} drawn at the edge." * bool(far),
        data,
        axes.layout(axis, axes.percent_axis([min(one.error, FAR) for one in drawn], "relative error")),
        sentence=sentence,
        choice=collective.choice(),
    )
