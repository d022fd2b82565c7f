"""The advised method by size, as a strip whose colour changes at each crossover."""

from collections.abc import Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.advice import Advice, SizeRange
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.notation import range_text
from earlybird.present.core.parts import Figure
from earlybird.present.core.text import spans_text
from earlybird.present.subjects.advice import view

_HEIGHT = 120  # pixels with axis
_MIN_LETTER_SHARE = 0.07  # share of the strip from which letters fit into a size range


def strip_figure(advice: Advice, id: str) -> Figure | None:
    """Draw the advised method by size; None if the advice has no size ranges."""
    ranges = [
        size_range
        for size_range in advice.distinct_ranges()
        if size_range.to_bytes > max(size_range.from_bytes, 1)
    ]
    if not ranges:
        return None
    names = [view.name(advice, size_range) for size_range in ranges]
    data = [_block(size_range, names[k], names[k] not in names[:k]) for k, size_range in enumerate(ranges)]
    ends = [ranges[0].from_bytes, ranges[-1].to_bytes]
    axis = {"showticklabels": False, "ticks": "", "showgrid": False, "showline": False, "range": [0, 1]}
    return Figure(
        id,
        f"Advised by size: {view.title(advice, 'size_bytes')}",
        "Each colour and letter is a method. Hover over or tap it to see what to do.",
        [*data, _letters(ranges)],
        axes.layout(axes.size_axis([max(size, 1) for size in ends]), axis, height=_HEIGHT),
        wide=True,
        sentence=_spans_sentence(ranges, names),
    )


def _block(size_range: SizeRange, name: str, first: bool) -> dict[str, Any]:
    low, high = max(size_range.from_bytes, 1), size_range.to_bytes
    extrapolated = view.extrapolated(size_range.extra)
    return {
        "x": [low, high, high, low, low],
        "y": [0, 0, 1, 1, 0],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": axes.color(size_range.method),
        "line": {"color": "var(--card)", "width": 2},
        "name": axes.label(f"{labels.method_letters(size_range.method)}: {name}"),
        "legendgroup": name,
        "showlegend": first,
        "hoveron": "fills",
        "hoverinfo": "text",
        "text": f"{range_text((size_range.from_bytes, high), format_bytes)}<br><b>{axes.label(name)}</b>"
        + f"<br>extrapolated {axes.label(extrapolated)}" * bool(extrapolated),
    }


def _letters(ranges: Sequence[SizeRange]) -> dict[str, Any]:
    """Return letters in the middle of each size range that is wide enough."""
    total = ranges[-1].to_bytes / max(ranges[0].from_bytes, 1)
    middles, texts = [], []
    for size_range in ranges:
        low, high = max(size_range.from_bytes, 1), size_range.to_bytes
        if high / low >= total**_MIN_LETTER_SHARE:
            middles.append((low * high) ** 0.5)
            texts.append(axes.label(labels.method_letters(size_range.method)))
    return {
        "x": middles,
        "y": [0.5] * len(middles),
        "mode": "text",
        "text": texts,
        "textfont": {"color": "var(--paper)", "size": 13},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _spans_sentence(ranges: Sequence[SizeRange], names: Sequence[str]) -> str:
    """Return `Advised: single message up to 105 KiB and libearlybird from 105 KiB.`"""
    if len(ranges) == 1:
        return f"Advised at every size: {names[0]}."
    spans = [(name, item.from_bytes, item.to_bytes) for name, item in zip(names, ranges, strict=True)]
    return f"Advised: {spans_text(spans)}."
