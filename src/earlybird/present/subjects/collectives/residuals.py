"""Relative errors of the fitted models of collectives, against ranks and against size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.present.core import axes
from earlybird.present.core.lines import method_name, size_x
from earlybird.present.core.parts import Figure
from earlybird.present.core.points import Point
from earlybird.present.subjects.collectives.view import Collective

MAX_POINTS = 800  # drawn at most, an even selection
FAR = 1.5  # larger errors are drawn at the edge


@dataclass(frozen=True)
class _Error:
    point: Point
    method: str
    error: float

    @property
    def drawn(self) -> float:
        return min(self.error, FAR)


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
    drawn = found[:: -(-len(found) // MAX_POINTS)]
    by_ranks = (
        f"Of {labels.counted(len(found), 'time')}, half are predicted within {labels.percent(half)} "
        f"and 90 % within {labels.percent(ninety)}."
    )
    by_size = (
        f"Largest error: {labels.method(furthest.method)}, {furthest.point.where}: "
        f"{labels.signed_percent(furthest.error)}."
    )
    ranks_axis = axes.log_count_axis([one.point.ranks for one in drawn], "ranks")
    size_axis = axes.size_axis([one.point.size_bytes for one in drawn])
    far = sum(one.error > FAR for one in drawn)
    return [
        Figure(
            f"collective-error-{against}-{k}",
            f"Error of the model against {against}: {collective.setting_text}",
            "One point per algorithm, ranks and size. Above 0, the prediction is larger than the measurement."
            + f" {labels.counted(far, 'point')} above +{labels.percent(FAR)} drawn at the edge." * bool(far),
            _traces(drawn, x, side),
            axes.layout(axis, axes.percent_axis([one.drawn for one in drawn], "relative error")),
            sentence=sentence,
            choice=collective.choice(),
        )
        for against, sentence, axis, x, side in (
            ("ranks", by_ranks, ranks_axis, lambda point: point.ranks, 1.025),
            ("size", by_size, size_axis, size_x, 1.25),
        )
    ]


def _traces(drawn: Sequence[_Error], x: Callable[[Point], float], side: float) -> list[dict[str, Any]]:
    """Points of each algorithm, side by side within the factor `side` of the measured x value."""
    methods = sorted({one.method for one in drawn}, key=labels.method_order)
    traces = []
    for method, shift in zip(methods, np.linspace(-1, 1, len(methods)), strict=True):
        errors, name = [one for one in drawn if one.method == method], method_name(method)
        look = {"color": axes.color(method), "symbol": axes.symbol(method), "size": 7, "opacity": 0.75}
        texts = [f"{one.point.where}: <b>{labels.signed_percent(one.error)}</b>" for one in errors]
        traces.append(
            {
                "x": [round(float(x(one.point) * side**shift), 6) for one in errors],
                "y": [one.drawn for one in errors],
                "mode": "markers",
                "name": name,
                "marker": look,
                "hovertext": [f"{name}<br>{text}" for text in texts],
                "hoverinfo": "text",
            }
        )
    return traces
