"""Relative errors of the fitted models of collectives, against ranks and against size."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.report.collective_choices import choice, setting_text
from earlybird.report.collectives import Collective, CollectivePoint
from earlybird.report.figures import axes
from earlybird.report.parts import Figure

MAX_POINTS = 800  # drawn at most, an even selection
FAR = 1.5  # larger errors are drawn at the edge
# Algorithms are drawn side by side, within this factor of the measured x value.
SIDE = {"ranks": 1.025, "size": 1.25}

_Error = tuple[CollectivePoint, str, float]


def residual_figures(k: int, collective: Collective) -> list[Figure]:
    """Two figures if a model was fitted, else none."""
    errors = list(collective.errors())
    if not errors:
        return []
    return [
        _figure(f"collective-error-ranks-{k}", collective, errors, "ranks", lambda point: point.ranks),
        _figure(
            f"collective-error-size-{k}",
            collective,
            errors,
            "size",
            lambda point: point.size_bytes or axes.ZERO_BYTES_AT,
        ),
    ]


def _figure(
    id: str,
    collective: Collective,
    errors: Sequence[_Error],
    against: str,
    x: Callable[[CollectivePoint], float],
) -> Figure:
    drawn = errors[:: -(-len(errors) // MAX_POINTS)]
    methods = [method for method in collective.methods() if any(entry == method for _, entry, _ in drawn)]
    last = max(len(methods) - 1, 1)
    far = sum(error > FAR for _, _, error in drawn)
    axis = (
        axes.log_count_axis([point.ranks for point, _, _ in drawn], "ranks")
        if against == "ranks"
        else axes.size_axis([point.size_bytes for point, _, _ in drawn])
    )
    caption = (
        "One point per algorithm, ranks and size. Above 0, the prediction is larger than the measurement."
    )
    caption += (
        f" {labels.counted(far, 'point')} above +{labels.percent(FAR)} drawn at the edge." if far else ""
    )
    return Figure(
        id,
        f"Error of the model against {against}: {setting_text(collective)}",
        caption,
        [
            _trace(
                method,
                [entry for entry in drawn if entry[1] == method],
                x,
                SIDE[against] ** (2 * k / last - 1),
            )
            for k, method in enumerate(methods)
        ],
        axes.layout(axis, axes.percent_axis([min(error, FAR) for _, _, error in drawn], "relative error")),
        sentence=_sentence(errors) if against == "ranks" else _furthest(errors),
        choice=choice(collective),
    )


def _trace(
    method: str, entries: Sequence[_Error], x: Callable[[CollectivePoint], float], x_factor: float
) -> dict[str, Any]:
    name = axes.label(labels.capital(labels.method(method)))
    return {
        "x": [round(x(point) * x_factor, 6) for point, _, _ in entries],
        "y": [min(error, FAR) for _, _, error in entries],
        "mode": "markers",
        "name": name,
        "marker": {"color": axes.color(method), "size": 7, "opacity": 0.75, "symbol": axes.symbol(method)},
        "hovertext": [
            f"{name}<br>{labels.counted(point.ranks, 'rank')}, {format_bytes(point.size_bytes)}: "
            f"<b>{labels.signed_percent(error)}</b>"
            for point, _, error in entries
        ],
        "hoverinfo": "text",
    }


def _sentence(errors: Sequence[_Error]) -> str:
    half, ninety = np.quantile([abs(error) for _, _, error in errors], (0.5, 0.9))
    return (
        f"Of {labels.counted(len(errors), 'time')}, half are predicted within {labels.percent(float(half))} "
        f"and 90 % within {labels.percent(float(ninety))}."
    )


def _furthest(errors: Sequence[_Error]) -> str:
    point, method, error = max(errors, key=lambda entry: abs(entry[2]))
    return (
        f"Largest error: {labels.method(method)} among {labels.counted(point.ranks, 'rank')} with "
        f"{format_bytes(point.size_bytes)}: {labels.signed_percent(error)}."
    )
