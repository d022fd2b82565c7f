"""Axes, colours and markers of all figures: one colour per MPI flavour, model and method."""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from earlybird.data import labels
from earlybird.data.exchange_models import MODELS
from earlybird.data.methods import OWN, SEGMENTED
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds, whole_number

_Look = tuple[str, str, str]  # light, dark, marker
# Of models of exchanges in their order, with some for further ones.
_MODEL_LOOKS: Sequence[_Look] = (
    ("#0072b2", "#56b4e9", "square"), ("#7a6a00", "#f0e442", "diamond"), ("#00735c", "#3fd0ae", "star"),
    ("#d55e00", "#ff8a3d", "triangle-up"), ("#b0588f", "#e39cc6", "x"), ("#5b4bb0", "#a99cf0", "pentagon"),
    ("#a1453a", "#f0948a", "cross"), ("#4f7a1f", "#a6cf70", "hexagon"),
)  # fmt: skip
_MODEL_SHAPES = ("/", ".", "+", "x", "-", "\\", "|")  # of their bars
# Of what is told apart by its place in a figure only.
_SERIES_LOOKS: Sequence[_Look] = (
    ("#1f6aa5", "#66b2e4", "square"), ("#c9581a", "#ff9450", "triangle-up"), ("#117a66", "#48c9ad", "star"),
    ("#a84f88", "#dd93c0", "x"), ("#726600", "#e6da3c", "diamond"), ("#b56f00", "#eaa92a", "circle"),
    ("#1d8a6c", "#5adb84", "hexagon"), ("#824393", "#c08fd4", "pentagon"),
)  # fmt: skip


def series(k: int) -> str:
    """Return the name of the k-th colour and marker of a figure's series; after the last, the first again."""
    return f"series-{k % len(_SERIES_LOOKS)}"


# name -> (light, dark, marker). Hues follow Okabe and Ito (2008), with more contrast with the background.
_LOOKS: Mapping[str, _Look] = {
    **dict(zip(MODELS, _MODEL_LOOKS, strict=False)),
    **{series(k): look for k, look in enumerate(_SERIES_LOOKS)},
    "measured": ("#2b3038", "#e4e7ec", "circle"), "funnelled": ("#5a6068", "#b6bcc6", "square"),
    "persistent": ("#00786a", "#4bd0bd", "triangle-up"), "multiple": ("#8d3a9c", "#d78fe3", "circle"),
    "shared": ("#9c3d1e", "#ff9d76", "square"), "per-thread": ("#3d6fb0", "#8fb8ee", "diamond"),
    "per-thread-contexts": ("#1c7c7c", "#55cfcf", "circle"),
    "funneled": ("#8a6d00", "#e0c34a", "triangle-down"), "serialized": ("#a03a7a", "#e58fc4", "pentagon"),
    "processes": ("#3a3f47", "#cfd4dc", "triangle-up"), "mpich": ("#00845f", "#2ec99c", "circle"),
    "openmpi": ("#c47a00", "#f2b134", "square"), "intel": ("#2f7fc1", "#7cc4f5", "diamond"),
    "system": ("#8a4b9e", "#c79bd8", "triangle-up"), "simgrid": ("#7b5231", "#d9ab81", "cross"),
    "single": ("#4a5a7b", "#a8b8da", "square"), "many": ("#a3283f", "#ff8095", "circle"),
    "partitioned": ("#e8590c", "#ffc528", "diamond"), "earlybird": ("#0069a8", "#5ebcf2", "star"),
    "earlybird-partition": ("#3f6d93", "#9accee", "star-triangle-up"),
    "earlybird-segments": ("#16507a", "#7fb4da", "star-triangle-down"),
    "stream": ("#1a9273", "#62e08a", "triangle-up"),
    "rma-single-passive": ("#3e2088", "#a276fd", "triangle-down"),
    "rma-many-passive": ("#9138f3", "#ecd9ff", "triangle-down-open"),
    "rma-single-active": ("#641807", "#a8742f", "pentagon"),
    "rma-many-active": ("#9b834e", "#fbe7c6", "pentagon-open"), "rma-fence": ("#538f1a", "#8a9c2f", "x"),
    "default": ("#555c66", "#bcc4cf", "star"), "linear": ("#c8500c", "#ff9a57", "square"),
    "pipeline": ("#1168a9", "#6abdf1", "diamond"), "binomial": ("#0d7f5e", "#3dd0a6", "circle"),
    "chain": ("#7c51a9", "#c4a1eb", "triangle-right"), "binary": ("#5f7d00", "#b9d646", "triangle-up"),
    "split-binary": ("#4d6b1c", "#9dbb62", "triangle-left"),
    "in-order-binary": ("#74722a", "#cfcc78", "triangle-down"),
    "knomial": ("#00808e", "#4ed1de", "pentagon"), "scatter-allgather": ("#b14580", "#f19bc7", "hexagram"),
    "scatter-ring-allgather": ("#8d3f6b", "#d98fb8", "star-triangle-up"),
    "ring": ("#8d6e1f", "#ddc063", "bowtie"), "recursive-doubling": ("#a43a2f", "#ff9285", "star-square"),
    "rabenseifner": ("#4658c5", "#a0abff", "star-diamond"), "bruck": ("#5d6c2f", "#aec079", "cross"),
    "pairwise": ("#8f502b", "#dda37d", "x"), "segmented-ring": ("#2d6d75", "#86c3ca", "hourglass"),
    "double-ring": ("#75611d", "#c4ad5c", "circle-cross"),
    "neighbor-exchange": ("#9a4a66", "#e0a0b5", "hexagon2"),
    "dissemination": ("#6a45b8", "#b59cf5", "diamond-tall"),
    "reduce-bcast": ("#3f6f3a", "#93c68c", "star-triangle-down"),
    "linear-sync": ("#a65a2a", "#e8a878", "square-cross"),
    "linear-nonblocking": ("#b4442f", "#f59a80", "square-x"), "sparbit": ("#4a5fa0", "#a3b4ea", "octagon"),
    "tree": ("#2f7a4f", "#7fcf9f", "triangle-ne"), "two-ranks": ("#737373", "#a8a8a8", "diamond-wide"),
    "blocked": ("#6b5b95", "#b3a6d9", "diamond-x"), "gather-bcast": ("#3b6ea5", "#8fb8e3", "triangle-se"),
    "plum": ("#8e4585", "#d39bcd", "circle-x"), "recursive-exchange": ("#7a5c3e", "#c6a98a", "triangle-sw"),
    "intra_socket": ("#5b93cf", "#79b3f2", "circle"), "inter_socket": ("#c98a1b", "#e8b04a", "square"),
    "inter_node": ("#8a2846", "#e8789c", "diamond"), "other": ("#6b7280", "#9ca3af", "asterisk-open"),
}  # fmt: skip
PALETTE = {name: (light, dark) for name, (light, dark, _) in _LOOKS.items()}
# Methods of one family share a hue and differ in line style, for colour-blind readers and for print.
DASHES = {"rma-many-passive": "dash", "rma-many-active": "dash", "rma-fence": "dashdot", "stream": "longdash",
          "earlybird-partition": "dash"}  # fmt: skip
_BOUND_DASHES = ("dot", "dashdot", "longdash", "longdashdot", "5px,2px")
_BOUND_SYMBOLS = ("hexagon", "star-open", "hexagon-open", "star-diamond", "star-diamond-open", "hash-open")
# By whether an operation is persistent, and whether MPICH's generic transport runs it.
_ENGINE_SYMBOLS = {(False, True): "y-up-open", (True, False): "y-down-open", (True, True): "y-left-open"}
_ENGINE_DASHES = {(False, True): "dot", (True, False): "dash", (True, True): "longdash"}
_SEGMENT_SYMBOLS = ("triangle-up", "hexagon", "star-square", "triangle-down", "pentagon")
BAR_SHAPES = {**dict(zip(MODELS, _MODEL_SHAPES, strict=False)), "inter_socket": "/", "inter_node": "x"}
# From small to large amounts in even steps of lightness, as Cividis, but lighter than the dark page.
AMOUNTS = ((0.0, "#2a5591"), (0.33, "#6d7681"), (0.67, "#b3a570"), (1.0, "#fde643"))
HEIGHT = 350  # of a figure without its legend, pixels; the page adds the height of the legend
_ROW_HEIGHT, _AROUND_ROWS, _MIN_ROWS = 28, 90, 4
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
LEGEND: Mapping[str, Any] = {
    "orientation": "h", "xref": "container", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom",
    "itemsizing": "constant", "font": {"size": 12},
    "maxheight": 10_000,  # never a legend that scrolls
}  # fmt: skip
_AXIS: Mapping[str, Any] = {
    "automargin": True, "gridcolor": "var(--grid)", "linecolor": "var(--line)", "zeroline": False,
    "showline": True, "ticks": "outside", "ticklen": 4, "tickcolor": "var(--line)",
}  # fmt: skip
MAX_COUNTS = 8  # tick labels on a log axis of counts
_MAX_NUMBERS = 16  # ranks or threads with a tick each
# Ratios whose ends differ by less than this factor have at most so many ticks, at multiples of 0.05 to 0.5.
_CLOSE_RATIOS, _MAX_RATIOS = 4, 8
ZERO_BYTES_AT = 0.5  # where a log axis shows messages of 0 bytes


def color(name: str, faint: bool = False) -> str:
    """Return the CSS variable of a flavour, model or method. `earlybird:4096` has the colour of `earlybird`,
    and `own-linear` and `persistent-linear` that of `linear`. `faint` selects the variant for shading and raw
    samples."""
    name = name if name in PALETTE else _base(name)
    return f"var(--{name if name in PALETTE else 'other'}{'-faint' if faint else ''})"


def symbol(name: str) -> str:
    """Return the marker of a flavour, model or method, the same in every figure; open for our own
    collectives."""
    base = _base(name)
    if name.startswith(SEGMENTED):
        return _LOOKS[SEGMENTED.removesuffix(":")][2]
    if name not in _LOOKS and _engine(name) in _ENGINE_SYMBOLS:
        return _ENGINE_SYMBOLS[_engine(name)]
    if base in labels.ALGORITHMS:
        return _by_bound(name, _SEGMENT_SYMBOLS, _LOOKS[base][2]) + "-open" * name.startswith(OWN)
    return _LOOKS[name][2] if name in _LOOKS else _by_bound(name, _BOUND_SYMBOLS, _LOOKS["other"][2])


def dash(method: str) -> str:
    """Return the line style of a method, the same in every figure; for collectives it shows the segment
    size."""
    usual = DASHES.get(method) or _ENGINE_DASHES.get(_engine(method), "solid")
    return _by_bound(method, _BOUND_DASHES, usual)


def _base(name: str) -> str:
    return labels.split_algorithm(name.partition(":")[0].removesuffix("-fresh").removesuffix("-segments"))[1]


def _engine(name: str) -> tuple[bool, bool]:
    before, _, after = labels.split_algorithm(name.partition(":")[0])
    return before.startswith("persistent"), bool(after)


def _by_bound(name: str, choices: Sequence[str], otherwise: str) -> str:
    """Return one of `choices` by the log2 of the bound in `earlybird:4096`; a bound of 0 counts as no
    bound."""
    bound = name.partition(":")[2]
    if whole_number(bound) is None:
        return choices[0] if bound else otherwise
    return choices[int(bound).bit_length() % len(choices)] if int(bound) else otherwise


def label(text: str) -> str:
    """Return text from a file escaped: plotly interprets tags."""
    return html.escape(text, quote=False)


def bar_pattern(shape: str) -> dict[str, Any]:
    """Return the hatching of bars, as part of their marker; none for an empty shape."""
    if not shape:
        return {}
    look = {"fillmode": "overlay", "fgcolor": "var(--card)", "size": 7, "solidity": 0.25, "shape": shape}
    return {"pattern": look}


def layout(x: Mapping[str, Any], y: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the common layout with the two axes; the legend is at the bottom."""
    return {
        "xaxis": {**_AXIS, **x},
        "yaxis": {**_AXIS, **y},
        "font": {"family": _FONT, "size": 12.5, "color": "var(--ink)"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 12, "r": 12, "t": 12, "b": 12},
        "legend": LEGEND,
        "hoverlabel": {
            "bgcolor": "var(--paper)",
            "bordercolor": "var(--line)",
            "font": {"color": "var(--ink)"},
        },
        "hovermode": "closest",
        "height": HEIGHT,
        "autosize": True,
    } | more


def height_of_rows(num_rows: int, extra: int = 0) -> int:
    """Return the height of a figure with a row for each item, and `extra` pixels for a colour bar."""
    return _AROUND_ROWS + _ROW_HEIGHT * max(num_rows, _MIN_ROWS) + extra


def color_bar(ticks: Sequence[float], texts: Sequence[str], y: float) -> dict[str, Any]:
    """Return a horizontal colour bar below the axis title."""
    look = {"thickness": 12, "outlinewidth": 0, "orientation": "h", "yanchor": "top", "tickangle": 0}
    return {"tickvals": list(ticks), "ticktext": list(texts), "y": y} | look


def titled(text: str) -> dict[str, Any]:
    """Return an axis title in the font size of the tick labels."""
    return {"text": text, "standoff": 8, "font": {"size": 12.5}}


def size_axis(sizes_bytes: Iterable[float], title: str = "message size") -> dict[str, Any]:
    """Return a log axis with a tick at every power of 32 bytes, and one for 0 B if such messages exist; at
    every size if these are close to each other."""
    sizes = [float(size) for size in sizes_bytes]
    top = max([size for size in sizes if size > 0], default=1.0)
    bottom = min([size for size in sizes if size > 0], default=1.0)
    first, last = math.floor(math.log2(bottom) / 5), math.ceil(math.log2(top) / 5)
    ticks = [float(32**k) for k in range(max(first, 0), last + 1)]
    if sum(bottom <= tick <= top for tick in ticks) < 2 and 0 not in sizes:
        ticks = sorted(set(sizes))  # a narrow range
    texts = [format_bytes(tick) for tick in ticks]
    if 0 in sizes:
        ticks, texts = [ZERO_BYTES_AT, *ticks[1:]], ["0 B", *texts[1:]]
    low = ZERO_BYTES_AT if 0 in sizes else bottom
    return _log_axis(title, ticks, texts, low / 1.4, top * 1.4)


def log_count_axis(counts: Iterable[int], title: str) -> dict[str, Any]:
    """Return a log axis with a tick at every count; with many counts, at the powers of two among them."""
    ticks = sorted(set(counts))
    ends = ticks[0] / 1.3, ticks[-1] * 1.3
    if len(ticks) > MAX_COUNTS:
        ticks = [tick for tick in ticks if tick & (tick - 1) == 0] or ticks[:: -(-len(ticks) // MAX_COUNTS)]
    return _log_axis(title, ticks, [str(tick) for tick in ticks], *ends)


def _decades(values: Iterable[float], title: str, text: Callable[[float], str]) -> dict[str, Any]:
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive) / 1.25, max(positive) * 1.25
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high) - math.log10(low) > 2 else (1, 2, 5)
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


def band_axis(names: Sequence[str], title: str, max_ticks: int) -> dict[str, Any]:
    """Return an axis with a band for each name and at most `max_ticks` tick labels."""
    shown = range(0, len(names), max(-(-len(names) // max_ticks), 1))
    return {
        "showgrid": False,
        "tickangle": 0,
        "tickvals": list(shown),
        "ticktext": [names[k] for k in shown],
        "range": [-0.5, len(names) - 0.5],
        "title": titled(title),
    }


def number_axis(numbers: Sequence[int], title: str) -> dict[str, Any]:
    """Return an axis of ranks or threads, with a tick at each of a few."""
    ticks = {"tickvals": list(numbers)} if len(numbers) <= _MAX_NUMBERS else {}
    return {"title": titled(title), "showgrid": False} | ticks


def span_text(noun: str, first: int, last: int) -> str:
    """Return `rank 3`, or `ranks 3 to 7`."""
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"


def percent_axis(fractions: Iterable[float], title: str) -> dict[str, Any]:
    """Return a linear axis of signed fractions as percent, including 0."""
    values = [0.0, *fractions]
    low, high = min(*values, -0.05), max(*values, 0.05)
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(s for s in (power / 5, power / 2, power) if (high - low) / s <= 10)
    ticks = [_clean(k * step) for k in range(math.floor(low / step), math.ceil(high / step) + 1)]
    margin = 0.04 * (high - low)
    return {
        "title": titled(title),
        "tickvals": ticks,
        "ticktext": [f"{'+' if tick > 0 else ''}{100 * tick:.4g} %" for tick in ticks],
        "range": [low - margin, high + margin],
        "zeroline": True,
        "zerolinecolor": "var(--soft)",
    }


def ratio_axis(ratios: Iterable[float], title: str) -> dict[str, Any]:
    """Return a log axis around 1; values below 1 are fractions, or decimals if all are close to 1."""
    positive = [1.0, *(ratio for ratio in ratios if ratio > 0)]
    low, high = min(*positive, 0.8) / 1.15, max(*positive, 1.25) * 1.15
    if high / low < _CLOSE_RATIOS:
        step = next(step for step in (0.05, 0.1, 0.2, 0.5) if (high - low) / step <= _MAX_RATIOS)
        ticks = [_clean(k * step) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
        return _log_axis(title, ticks, [f"{tick:g}" for tick in ticks], low, high)
    steps = (1,) if high / low > 1e4 else (1, 2, 5)
    whole = [step * 10**e for e in range(6) for step in steps]
    ticks = [1 / number for number in reversed(whole[1:])] + whole
    texts = [f"1/{number}" for number in reversed(whole[1:])] + [str(number) for number in whole]
    return _log_axis(title, ticks, texts, low, high)


def _linear(maximum: float, title: str, text: Callable[[float], str]) -> dict[str, Any]:
    """Return a linear axis from 0 with four to eight ticks at 1, 2 or 5 times a power of ten."""
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


def linear_size_axis(maximum_bytes: float, title: str) -> dict[str, Any]:
    """Return a linear axis of bytes from 0, in one binary unit."""
    power = math.floor(math.log(max(maximum_bytes, 1.0), 1024))
    unit_bytes = 1024.0**power
    name = format_bytes(unit_bytes).partition(" ")[2]
    axis = _linear(maximum_bytes / unit_bytes, title, lambda value: f"{value:g} {name}")
    return axis | {key: [value * unit_bytes for value in axis[key]] for key in ("tickvals", "range")}


def factor_axis(factors: Sequence[float], title: str) -> dict[str, Any]:
    """Return a log axis with a tick at every power of two within the factors."""
    least, most = min(factors, default=1.0), max(factors, default=1.0)
    powers = range(math.ceil(math.log2(least)), math.floor(math.log2(most)) + 1)
    texts = [str(2**k) if k >= 0 else f"1/{2**-k}" for k in powers]
    return _log_axis(title, [2.0**k for k in powers], texts, least / 1.06, most * 1.06)


def _clean(value: float) -> float:
    """Remove rounding errors such as 0.30000000000000004."""
    return float(f"{value:.6g}")


log_time_axis = partial(_decades, text=format_seconds)
log_bandwidth_axis = partial(_decades, text=format_bandwidth)
log_rate_axis = partial(_decades, text=lambda value: f"{value / 1e6:g} million")
linear_time_axis = partial(_linear, text=format_seconds)
linear_share_axis = partial(_linear, text=labels.percent)
linear_bandwidth_axis = partial(_linear, text=format_bandwidth)
