"""The best method by size, as a strip whose colour changes at each crossover."""

from collections.abc import Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.advice import Advice, Stretch
from earlybird.data.units import format_bytes
from earlybird.report import advice_words, axes
from earlybird.report.parts import Figure

_HEIGHT = 150  # pixels with axis and legend
_MAX_LISTED = 4  # size ranges in the sentence
_MIN_LETTER_SHARE = 0.07  # share of the strip from which letters fit into a size range


def strip_figure(advice: Advice, id: str) -> Figure | None:
    """None if the advice has no size ranges."""
    stretches = [stretch for stretch in advice.stretches if stretch.to_bytes > max(stretch.from_bytes, 1)]
    if not stretches:
        return None
    in_legend: set[str] = set()
    data: list[dict[str, Any]] = []
    for stretch in stretches:
        name = advice_words.name(stretch.method, stretch.extra)
        data.append(_block(stretch, name, name not in in_legend))
        in_legend.add(name)
    ends = [stretches[0].from_bytes, stretches[-1].to_bytes]
    axis = {"showticklabels": False, "ticks": "", "showgrid": False, "showline": False, "range": [0, 1]}
    return Figure(
        id,
        f"Best by size: {_without_size(advice)}",
        "Each colour and letter is a method. Hover over or tap it to see what to do.",
        [*data, _letters(stretches)],
        axes.layout(
            axes.size_axis([max(size, 1) for size in ends]),
            axis,
            height=_HEIGHT,
            legend=axes.legend_below(_HEIGHT),
        ),
        wide=True,
        sentence=_sentence(stretches),
    )


def _without_size(advice: Advice) -> str:
    asked = {key: value for key, value in advice.asked.items() if key != "size_bytes"}
    return advice_words.title(Advice(advice.operation, asked, advice.baseline, advice.ranked))


def _block(stretch: Stretch, name: str, first: bool) -> dict[str, Any]:
    low, high = max(stretch.from_bytes, 1), stretch.to_bytes
    extrapolated = advice_words.extrapolated(stretch.extra)
    return {
        "x": [low, high, high, low, low],
        "y": [0, 0, 1, 1, 0],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": axes.color(stretch.method),
        "line": {"color": "var(--card)", "width": 2},
        "name": axes.label(f"{labels.method_letters(stretch.method)}: {name}"),
        "legendgroup": name,
        "showlegend": first,
        "hoveron": "fills",
        "hoverinfo": "text",
        "text": f"{format_bytes(stretch.from_bytes)} to {format_bytes(high)}<br><b>{axes.label(name)}</b>"
        + f"<br>{axes.label(extrapolated)}" * bool(extrapolated),
    }


def _letters(stretches: Sequence[Stretch]) -> dict[str, Any]:
    """Letters in the middle of each size range that is wide enough."""
    total = stretches[-1].to_bytes / max(stretches[0].from_bytes, 1)
    middles, texts = [], []
    for stretch in stretches:
        low, high = max(stretch.from_bytes, 1), stretch.to_bytes
        if high / low >= total**_MIN_LETTER_SHARE:
            middles.append((low * high) ** 0.5)
            texts.append(axes.label(labels.method_letters(stretch.method)))
    return {
        "x": middles,
        "y": [0.5] * len(middles),
        "mode": "text",
        "text": texts,
        "textfont": {"color": "var(--paper)", "size": 13},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _sentence(stretches: Sequence[Stretch]) -> str:
    """`The fastest method is single message up to 105 KiB and libearlybird from 105 KiB.`"""
    names = [advice_words.name(stretch.method, stretch.extra) for stretch in stretches]
    if len(stretches) == 1:
        return f"The fastest method at every size is {names[0]}."
    spans = [f"{names[0]} up to {format_bytes(stretches[0].to_bytes)}"]
    spans += [
        f"{name} from {format_bytes(stretch.from_bytes)}"
        for name, stretch in zip(names[1:_MAX_LISTED], stretches[1:_MAX_LISTED], strict=True)
    ]
    num_left = len(stretches) - _MAX_LISTED
    spans += [labels.counted(num_left, "more change")] if num_left > 0 else []
    return f"The fastest method is {labels.listed(spans)}."
