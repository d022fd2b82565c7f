"""Axes and colours of all figures: sizes as 1 KiB, times as us, one colour per flavour, model and way."""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from earlybird.data.units import format_bandwidth, format_bytes, format_seconds

# name -> (light, dark). Hues follow Okabe and Ito (2008), darkened or lightened to stand out from the paper.
PALETTE: Mapping[str, tuple[str, str]] = {
    "measured": ("#2b3038", "#e4e7ec"),
    "staircase": ("#0072b2", "#56b4e9"),
    "fair": ("#7a6a00", "#f0e442"),
    "max-rate": ("#d55e00", "#ff8a3d"),
    "postal": ("#b0588f", "#e39cc6"),
    "mpich": ("#00845f", "#2ec99c"),
    "openmpi": ("#c47a00", "#f2b134"),
    "intel": ("#2f7fc1", "#7cc4f5"),
    "system": ("#8a4b9e", "#c79bd8"),
    "single": ("#4a5a7b", "#a8b8da"),
    "many": ("#a3283f", "#ff8095"),
    "other": ("#6b7280", "#9ca3af"),
}
SYMBOLS = {
    "mpich": "circle",
    "openmpi": "square",
    "intel": "diamond",
    "system": "triangle-up",
    "measured": "circle",
    "staircase": "square",
    "fair": "diamond",
    "max-rate": "triangle-up",
    "postal": "x",
    "single": "square",
    "many": "circle",
}
BAR_SHAPES = {"staircase": "/", "max-rate": "x", "postal": "-", "fair": "."}
ZERO_BYTES_AT = 0.5  # where a log axis shows messages of 0 bytes


def color(name: str, faint: bool = False) -> str:
    """CSS variable of a flavour, model or way; `faint` is the same colour for shading and raw samples."""
    return f"var(--{name if name in PALETTE else 'other'}{'-faint' if faint else ''})"


def symbol(name: str) -> str:
    return SYMBOLS.get(name, "star")


def label(text: str) -> str:
    """Text from a file inside a figure, where plotly would read tags."""
    return html.escape(text, quote=False)


def layout(x: Mapping[str, Any], y: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Common layout with the two axes; legends lie below, where a phone has room."""
    return {
        "xaxis": _axis_look() | dict(x),
        "yaxis": _axis_look() | dict(y),
        "font": {
            "family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
            "size": 12.5,
            "color": "var(--ink)",
        },
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 12, "r": 12, "t": 12, "b": 12},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": -0.22,
            "yanchor": "top",
            "itemsizing": "constant",
            "font": {"size": 12},
        },
        "hoverlabel": {
            "bgcolor": "var(--paper)",
            "bordercolor": "var(--line)",
            "font": {"color": "var(--ink)"},
        },
        "hovermode": "closest",
        "height": 400,
        "autosize": True,
    } | more


def _axis_look() -> dict[str, Any]:
    return {
        "automargin": True,
        "gridcolor": "var(--grid)",
        "linecolor": "var(--line)",
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "var(--line)",
    }


def titled(text: str) -> dict[str, Any]:
    """Title of an axis, no larger than its ticks."""
    return {"text": text, "standoff": 8, "font": {"size": 12.5}}


def size_axis(sizes_bytes: Iterable[float], title: str = "message size") -> dict[str, Any]:
    """Log axis with a tick at every factor of 32 from 1 B, and one for 0 B where there are such messages."""
    sizes = [float(size) for size in sizes_bytes]
    top = max([size for size in sizes if size > 0], default=1.0)
    bottom = min([size for size in sizes if size > 0], default=1.0)
    first, last = math.floor(math.log2(bottom) / 5), math.ceil(math.log2(top) / 5)
    ticks = [float(32**k) for k in range(max(first, 0), last + 1)]
    texts = [format_bytes(tick) for tick in ticks]
    if 0 in sizes:
        ticks, texts = [ZERO_BYTES_AT, *ticks[1:]], ["0 B", *texts[1:]]
    low = ZERO_BYTES_AT if 0 in sizes else bottom
    return _log_axis(title, ticks, texts, low / 1.4, top * 1.4)


def log_time_axis(times_s: Iterable[float], title: str) -> dict[str, Any]:
    return _decades(times_s, title, format_seconds)


def log_bandwidth_axis(values: Iterable[float], title: str) -> dict[str, Any]:
    return _decades(values, title, format_bandwidth)


def _decades(values: Iterable[float], title: str, text: Callable[[float], str]) -> dict[str, Any]:
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive) / 1.25, max(positive) * 1.25
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high / low) > 2 else (1, 2, 5)
    ticks = [step * 10.0**e for e in exponents for step in steps]
    return _log_axis(title, ticks, [text(_clean(tick)) for tick in ticks], low, high)


def _log_axis(
    title: str, ticks: Sequence[float], texts: Sequence[str], low: float, high: float
) -> dict[str, Any]:
    return {
        "type": "log",
        "title": titled(title),
        "tickvals": list(ticks),
        "ticktext": list(texts),
        "range": [math.log10(low), math.log10(high)],
    }


def linear_time_axis(maximum_s: float, title: str) -> dict[str, Any]:
    return _linear(maximum_s, title, format_seconds)


def linear_bandwidth_axis(maximum: float, title: str) -> dict[str, Any]:
    return _linear(maximum, title, format_bandwidth)


def linear_axis(maximum: float, title: str) -> dict[str, Any]:
    """Plain numbers from 0."""
    return _linear(maximum, title, lambda value: f"{value:g}")


def _linear(maximum: float, title: str, text: Callable[[float], str]) -> dict[str, Any]:
    """From 0 with four to eight ticks at 1, 2 or 5 times a power of ten."""
    maximum = maximum if maximum > 0 and math.isfinite(maximum) else 1.0
    power = 10.0 ** math.floor(math.log10(maximum / 4))
    step = next(step for step in (5 * power, 2 * power, power) if maximum / step >= 3.9 or step == power)
    ticks = [_clean(k * step) for k in range(math.floor(maximum * 1.06 / step) + 1)]
    return {
        "title": titled(title),
        "tickvals": ticks,
        "ticktext": ["0"] + [text(tick) for tick in ticks[1:]],
        "range": [0, maximum * 1.06],
    }


def _clean(value: float) -> float:
    """Drop rounding noise, which would print as 0.30000000000000004."""
    return float(f"{value:.6g}")
