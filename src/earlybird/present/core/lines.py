"""Lines of figures: measured medians with shading, fitted models, and raw samples."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.bars import rounded
from earlybird.present.core.points import Point

DOTS_PER_POINT = 40  # raw values drawn of each array; limits the size of the page
MEASURED = "Line: median over iterations, then launches. Shading: its interval over launches."
MEANS = "Line: mean over the iterations of all launches. Shading: its 90 % interval by Student's t."


def measured_text(results: Iterable[Result]) -> str:
    """Say what the lines of measured results and their shading are."""
    return MEANS if any(result.mean_of_iterations for result in results) else MEASURED


def line(
    name: str,
    x: Sequence[float | str | None],
    y: Sequence[float | None],
    hover: Sequence[str | None],
    color: str,
    dash: str = "solid",
    *,
    width: float = 2,
    symbol: str | Sequence[str] = "",
    **more: Any,
) -> dict[str, Any]:
    """Return a line; with markers if there is a `symbol`, or if it has a single point."""
    markers = bool(symbol) or len(x) == 1
    return {
        "x": list(x),
        "y": list(y),
        "mode": "lines+markers" if markers else "lines",
        "name": name,
        "line": {"color": color, "width": width, "dash": dash},
        "hovertext": list(hover),
        "hoverinfo": "text",
    } | ({"marker": {"color": color, "size": 7 if symbol else 9, "symbol": symbol or "line-ew-open"}}
         if markers else {}) | more  # fmt: skip


def markers(
    name: str,
    x: Sequence[float | None],
    y: Sequence[float | str | None],
    hover: Sequence[str],
    look: str,
    *,
    size: float = 9,
    opacity: float = 1,
    **more: Any,
) -> dict[str, Any]:
    """Return points with the colour and marker of `look`."""
    marker = {"color": axes.color(look), "symbol": axes.symbol(look), "size": size, "opacity": opacity}
    return {
        "mode": "markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "marker": marker,
        "hoverinfo": "text",
        "hovertext": list(hover),
    } | more


def error_bars(estimates: Sequence[Estimate]) -> dict[str, Any]:
    """Return the intervals of points, as `error_x` or `error_y` of their trace."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [rounded(max(estimate.high - estimate.value, 0)) for estimate in estimates],
        "arrayminus": [rounded(max(estimate.value - estimate.low, 0)) for estimate in estimates],
        "thickness": 1.2,
        "width": 4,
    }


def whiskers(
    name: str,
    look: str,
    estimates: Sequence[Estimate],
    rows: Sequence[str],
    hover: Sequence[str],
    less: float = 0.0,
) -> dict[str, Any]:
    """Return a point with its interval for each of `rows`, along x, where `less` is 0."""
    values = [estimate.value - less for estimate in estimates]
    return markers(name, values, list(map(axes.label, rows)), hover, look, error_x=error_bars(estimates))


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
    """Return the medians of a method or MPI with shading over their intervals; if not `shown`, they are
    hidden until the reader clicks the legend entry. `dash` and `symbols` replace the look of the method."""
    color = axes.color(method)
    common: dict[str, Any] = {"legendgroup": name} | ({} if shown else {"visible": "legendonly"})
    edge = common | {
        "x": list(x),
        "mode": "lines",
        "line": {"width": 0, "color": color},
        "fillcolor": axes.color(method, faint=True),
        "hoverinfo": "skip",
        "showlegend": False,
    }
    values, lows, highs = zip(*spreads, strict=True)
    dash, symbols = dash or axes.dash(method), symbols or axes.symbol(method)
    return [
        edge | {"y": list(lows)},
        edge | {"y": list(highs), "fill": "tonexty"},
        line(name, x, values, hover, color, dash, symbol=symbols, **common),
    ]


def method_traces(
    points: Sequence[Point],
    methods: Sequence[str],
    estimate_of: Callable[[Result], Estimate | None],
    text: Callable[[float], str],
) -> tuple[list[dict[str, Any]], list[float]]:
    """Return the traces of a value of every method against the size, and all values that are drawn."""
    traces: list[dict[str, Any]] = []
    drawn: list[float] = []
    for method in methods:
        results = [(point, point.results[method]) for point in points if method in point.results]
        known = [(point, result, value) for point, result in results if (value := estimate_of(result))]
        if not known:
            continue
        name, values = method_name(method), [value for *_, value in known]
        texts = [hover(name, point.where, value, text, result.launches) for point, result, value in known]
        traces += spread_traces(method, name, [size_x(point) for point, *_ in known], values, texts)
        drawn += [end for value in values for end in value]
    return traces, drawn


def hover(name: str, where: str, estimate: Estimate, text: Callable[[float], str], num_launches: int) -> str:
    """Return what a point shows on hover: its value, and its interval over launches."""
    launches = labels.counted(num_launches, "launch", "launches")
    return (
        f"{name}<br>{where}: <b>{text(estimate.value)}</b><br>"
        f"{launches}: {text(estimate.low)} to {text(estimate.high)}"
    )


def time_hover(name: str, point: Point, method: str) -> str:
    """Return what the time of a method shows on hover, with its speed-up."""
    result = point.results[method]
    gain = result.speed_up
    over = f"<br>speed-up {gain.value:.2f} over {labels.method(result.reference)}" if gain else ""
    return hover(name, point.where, result.time_s, format_seconds, result.launches) + over


def method_name(method: str) -> str:
    """Return the name of a method in a legend."""
    return axes.label(labels.capital(labels.method(method)))


class MethodLines:
    """Lines of every method over `points`: measured `data`, `fitted` models, and all visible `times_s`.
    Methods that are not in `shown` are hidden."""

    def __init__(
        self,
        points: Sequence[Point],
        methods: Sequence[str],
        x: Callable[[Point], float],
        shown: Collection[str] | None = None,
    ):
        self.data: list[dict[str, Any]] = []
        self.fitted: list[dict[str, Any]] = []
        self.times_s: list[float] = []
        for method in methods:
            cells = [point for point in points if method in point.results]
            is_shown = shown is None or method in shown
            name, spreads = method_name(method), [point.time_s[method] for point in cells]
            texts = [time_hover(name, point, method) for point in cells]
            self.data += spread_traces(method, name, list(map(x, cells)), spreads, texts, shown=is_shown)
            if is_shown:
                self.times_s += [time_s for spread in spreads for time_s in spread]
                self._add_fitted(method, [point for point in cells if method in point.fitted_s], x)

    def _add_fitted(self, method: str, points: Sequence[Point], x: Callable[[Point], float]) -> None:
        """Add the fitted model of a method; all methods have a legend entry together."""
        if not points:
            return
        name, times_s = "Fitted model", [point.fitted_s[method] for point in points]
        title = axes.label(f"fitted model, {labels.method(method)}")
        texts = [
            f"{title}<br>{point.where}: {format_seconds(point.fitted_s[method])} "
            f"({labels.signed_percent(point.fitted_error(method) or 0)})"
            for point in points
        ]
        more: dict[str, Any] = {"legendgroup": name, "showlegend": not self.fitted, "legendrank": 2000}
        xs, color = list(map(x, points)), axes.color(method)
        self.fitted.append(line(name, xs, times_s, texts, color, "3px,3px", width=1.4, **more))
        self.times_s += times_s


def size_x(point: Point) -> float:
    """Return where a log axis shows the size of a point."""
    return point.size_bytes or axes.ZERO_BYTES_AT


def raw_samples(name: str, mpi: str, samples: Iterable[tuple[float, np.ndarray]]) -> dict[str, Any]:
    """Return faint dots, hidden until the reader clicks the legend entry; `samples` are x and all values
    there."""
    x, y = [], []
    for at, values in samples:
        few = values[:: max(-(-len(values) // DOTS_PER_POINT), 1)]
        chosen = [rounded(value) for value in few if value > 0]
        x += [at] * len(chosen)
        y += chosen
    return {
        "x": x,
        "y": y,
        "mode": "markers",
        "legendrank": 3000,
        "name": name,
        "visible": "legendonly",
        "hoverinfo": "skip",
        "marker": {"color": axes.color(mpi), "opacity": 0.3, "size": 4},
    }
