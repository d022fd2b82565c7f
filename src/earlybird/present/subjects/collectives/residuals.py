"""Relative errors of the fitted models of collectives, against ranks and against size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.present.core import axes
from earlybird.present.core.lines import markers, method_name, size_x
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
    """Draw the errors of the fitted model against ranks and size; nothing without a model."""
    errors = [
        _Error(point, method, error)
        for point in collective.points
        for method in point.results
        if (error := point.fitted_error(method)) is not None
    ]
    if not errors:
        return []
    half, ninety = np.quantile([abs(item.error) for item in errors], (0.5, 0.9)).tolist()
    furthest = max(errors, key=lambda item: abs(item.error))
    drawn = errors[:: -(-len(errors) // MAX_POINTS)]
    by_ranks = (
        f"Of {labels.counted(len(errors), 'time')}, half are predicted within {labels.percent(half)} "
        f"and 90 % within {labels.percent(ninety)}."
    )
    by_size = (
        f"Largest error: {labels.method(furthest.method)}, {furthest.point.where}: "
        f"{labels.signed_percent(furthest.error)}."
    )
    ranks_axis = axes.log_count_axis([item.point.ranks for item in drawn], "ranks")
    size_axis = axes.size_axis([item.point.size_bytes for item in drawn])
    far = sum(item.error > FAR for item in drawn)
    return [
        Figure(
            f"collective-error-{against}-{k}",
            f"Error of the model against {against}: {collective.setting_text}",
            "One point per algorithm, ranks and size. Above 0, the prediction is larger than the measurement."
            + f" {labels.counted(far, 'point')} above +{labels.percent(FAR)} drawn at the edge." * bool(far),
            _traces(drawn, x, side),
            axes.layout(axis, axes.percent_axis([item.drawn for item in drawn], "relative error")),
            sentence=sentence,
            choice=collective.choice(),
        )
        for against, sentence, axis, x, side in (
            ("ranks", by_ranks, ranks_axis, lambda point: point.ranks, 1.025),
            ("size", by_size, size_axis, size_x, 1.25),
        )
    ]


def _traces(drawn: Sequence[_Error], x: Callable[[Point], float], side: float) -> list[dict[str, Any]]:
    """Return points of each algorithm, side by side within the factor `side` of the measured x value."""
    methods = sorted({item.method for item in drawn}, key=labels.method_order)
    traces = []
    for method, shift in zip(methods, np.linspace(-1, 1, len(methods)), strict=True):
        errors, name = [item for item in drawn if item.method == method], method_name(method)
        x_values = [round(float(x(item.point) * side**shift), 6) for item in errors]
        texts = [
            f"{name}<br>{item.point.where}: <b>{labels.signed_percent(item.error)}</b>" for item in errors
        ]
        drawn_errors = [item.drawn for item in errors]
        traces.append(markers(name, x_values, drawn_errors, texts, method, size=7, opacity=0.75))
    return traces
