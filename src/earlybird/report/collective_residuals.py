"""How far the fitted models of collectives are off: their relative error against ranks and against size."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from earlybird.data.units import format_bytes
from earlybird.report import axes, words
from earlybird.report.collective_choices import choice, setting_words
from earlybird.report.collectives import Collective, CollectivePoint
from earlybird.report.parts import Figure

MAX_POINTS = 800  # drawn of very many, evenly
FAR = 1.5  # errors beyond stand at the edge
# Algorithms stand side by side, from the measured value over this to the value times it.
SIDE = {"ranks": 1.025, "size": 1.25}

_Error = tuple[CollectivePoint, str, float]


def residual_figures(k: int, one: Collective) -> list[Figure]:
    """A pair, where a model was fitted."""
    errors = list(one.errors())
    if not errors:
        return []
    return [
        _figure(f"collective-error-ranks-{k}", one, errors, "ranks", lambda point: point.ranks),
        _figure(
            f"collective-error-size-{k}",
            one,
            errors,
            "size",
            lambda point: point.size_bytes or axes.ZERO_BYTES_AT,
        ),
    ]


def _figure(
    id: str, one: Collective, errors: Sequence[_Error], against: str, x: Callable[[CollectivePoint], float]
) -> Figure:
    drawn = errors[:: -(-len(errors) // MAX_POINTS)]
    methods = [method for method in one.methods() if any(told == method for _, told, _ in drawn)]
    last = max(len(methods) - 1, 1)
    far = sum(error > FAR for _, _, error in drawn)
    axis = (
        axes.log_count_axis([point.ranks for point, _, _ in drawn], "ranks")
        if against == "ranks"
        else axes.size_axis([point.size_bytes for point, _, _ in drawn])
    )
    caption = "A point per algorithm, ranks and size: above 0 the model says more than was measured."
    caption += f" {words.counted(far, 'point')} beyond +{words.percent(FAR)} at the edge." if far else ""
    return Figure(
        id,
        f"Error of the model against {against}: {setting_words(one)}",
        caption,
        [
            _trace(
                method, [told for told in drawn if told[1] == method], x, SIDE[against] ** (2 * k / last - 1)
            )
            for k, method in enumerate(methods)
        ],
        axes.layout(axis, axes.percent_axis([min(error, FAR) for _, _, error in drawn], "relative error")),
        sentence=_sentence(errors) if against == "ranks" else _furthest(errors),
        choice=choice(one),
    )


def _trace(
    method: str, told: Sequence[_Error], x: Callable[[CollectivePoint], float], beside: float
) -> dict[str, Any]:
    name = axes.label(words.capital(words.method(method)))
    return {
        "x": [round(x(point) * beside, 6) for point, _, _ in told],
        "y": [min(error, FAR) for _, _, error in told],
        "mode": "markers",
        "name": name,
        "marker": {"color": axes.color(method), "size": 7, "opacity": 0.75, "symbol": axes.symbol(method)},
        "hovertext": [
            f"{name}<br>{words.counted(point.ranks, 'rank')}, {format_bytes(point.size_bytes)}: "
            f"<b>{words.signed_percent(error)}</b>"
            for point, _, error in told
        ],
        "hoverinfo": "text",
    }


def _sentence(errors: Sequence[_Error]) -> str:
    half, most = np.quantile([abs(error) for _, _, error in errors], (0.5, 0.9))
    return (
        f"Half of {words.counted(len(errors), 'time')} are predicted within {words.percent(float(half))}, "
        f"nine in ten within {words.percent(float(most))}."
    )


def _furthest(errors: Sequence[_Error]) -> str:
    point, method, error = max(errors, key=lambda told: abs(told[2]))
    return (
        f"Furthest off is {words.method(method)} among {words.counted(point.ranks, 'rank')} with "
        f"{format_bytes(point.size_bytes)}: {words.signed_percent(error)}."
    )
