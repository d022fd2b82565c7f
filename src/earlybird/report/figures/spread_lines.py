"""A line of medians with shading over its interval, one style per method."""

from collections.abc import Sequence
from typing import Any

from earlybird.data.results import Estimate
from earlybird.report.figures import axes


def spread_traces(
    method: str,
    name: str,
    x: Sequence[float],
    spreads: Sequence[Estimate],
    hover: Sequence[str],
    *,
    shown: bool = True,
    dash: str = "",
    symbols: str | Sequence[str] = "",
) -> list[dict[str, Any]]:
    """The traces of one method or MPI; if not `shown`, they are hidden until the reader clicks the legend
    entry. `dash` and `symbols` replace the line style and the markers of the method."""
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
            "line": {"color": color, "width": 2, "dash": dash or axes.dash(method)},
            "marker": {"color": color, "size": 7, "symbol": symbols or axes.symbol(method)},
            "hovertext": list(hover),
            "hoverinfo": "text",
        },
    ]


def fitted_trace(
    method: str, name: str, x: Sequence[float], y: Sequence[float], hover: Sequence[str], first: bool
) -> dict[str, Any]:
    """The fitted model of one method; only the `first` trace has a legend entry, for all of them."""
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
