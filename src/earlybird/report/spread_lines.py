"""A line of medians with the shading between its lowest and highest launch, one style per method."""

from collections.abc import Sequence
from typing import Any

from earlybird.report import axes
from earlybird.report.fastest import Spread


def spread_traces(
    method: str,
    name: str,
    x: Sequence[float],
    spreads: Sequence[Spread],
    hover: Sequence[str],
    *,
    shown: bool = True,
) -> list[dict[str, Any]]:
    """The traces of one method; those not `shown` wait in the legend until a reader touches them."""
    color = axes.color(method)
    common: dict[str, Any] = {"x": list(x), "legendgroup": name} | (
        {} if shown else {"visible": "legendonly"}
    )
    edge = common | {
        "mode": "lines",
        "line": {"width": 0, "color": color},
        "fillcolor": axes.color(method, faint=True),
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [
        edge | {"y": [spread[1] for spread in spreads]},
        edge | {"y": [spread[2] for spread in spreads], "fill": "tonexty"},
        common
        | {
            "y": [spread[0] for spread in spreads],
            "mode": "lines+markers",
            "name": name,
            "line": {"color": color, "width": 2, "dash": axes.dash(method)},
            "marker": {"color": color, "size": 7, "symbol": axes.symbol(method)},
            "hovertext": list(hover),
            "hoverinfo": "text",
        },
    ]


def fitted_trace(
    method: str, name: str, x: Sequence[float], y: Sequence[float], hover: Sequence[str], first: bool
) -> dict[str, Any]:
    """What a fitted model says of one method; a single entry of the legend, the `first`, stands for all."""
    return {
        "x": list(x),
        "y": list(y),
        "mode": "lines+markers" if len(x) == 1 else "lines",
        "name": name,
        "legendgroup": name,
        "showlegend": first,
        "legendrank": 2000,
        "line": {"color": axes.color(method), "width": 1.4, "dash": "3px,3px"},
        "marker": {"color": axes.color(method), "size": 9, "symbol": "line-ew-open"},
        "hovertext": list(hover),
        "hoverinfo": "text",
    }
