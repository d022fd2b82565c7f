"""The sizes for which each method is advised, as a strip of colours that change where crossovers lie."""

from collections.abc import Sequence
from typing import Any

from earlybird.data.advice import Advice, Stretch
from earlybird.data.units import format_bytes
from earlybird.report import advice_words, axes, words
from earlybird.report.parts import Figure

_HEIGHT = 150  # pixels with axis and legend
_TOLD = 4  # stretches in the sentence
_ROOM = 0.07  # of the strip, from which on letters fit into a stretch


def strip_figure(advice: Advice, id: str) -> Figure | None:
    """None where the advice tells of no sizes."""
    stretches = [one for one in advice.stretches if one.to_bytes > max(one.from_bytes, 1)]
    if not stretches:
        return None
    named: set[str] = set()
    data: list[dict[str, Any]] = []
    for one in stretches:
        name = advice_words.name(one.method, one.extra)
        data.append(_block(one, name, name not in named))
        named.add(name)
    ends = [stretches[0].from_bytes, stretches[-1].to_bytes]
    axis = {"showticklabels": False, "ticks": "", "showgrid": False, "showline": False, "range": [0, 1]}
    return Figure(
        id,
        f"Best by size: {_without_size(advice)}",
        "Each colour and letter is a method; touch it for what to do.",
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


def _block(one: Stretch, name: str, first: bool) -> dict[str, Any]:
    low, high = max(one.from_bytes, 1), one.to_bytes
    far = advice_words.extrapolated(one.extra)
    return {
        "x": [low, high, high, low, low],
        "y": [0, 0, 1, 1, 0],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": axes.color(one.method),
        "line": {"color": "var(--card)", "width": 2},
        "name": axes.label(f"{words.method_letters(one.method)}: {name}"),
        "legendgroup": name,
        "showlegend": first,
        "hoveron": "fills",
        "hoverinfo": "text",
        "text": f"{format_bytes(one.from_bytes)} to {format_bytes(high)}<br><b>{axes.label(name)}</b>"
        + f"<br>{axes.label(far)}" * bool(far),
    }


def _letters(stretches: Sequence[Stretch]) -> dict[str, Any]:
    """In the middle of each stretch that has room."""
    whole = stretches[-1].to_bytes / max(stretches[0].from_bytes, 1)
    middles, texts = [], []
    for one in stretches:
        low, high = max(one.from_bytes, 1), one.to_bytes
        if high / low >= whole**_ROOM:
            middles.append((low * high) ** 0.5)
            texts.append(axes.label(words.method_letters(one.method)))
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
    """`Best is one message up to 105 KiB, a message per partition from there on.`"""
    names = [advice_words.name(one.method, one.extra) for one in stretches]
    if len(stretches) == 1:
        return f"Best at every size is {names[0]}."
    spans = [f"{names[0]} up to {format_bytes(stretches[0].to_bytes)}"]
    spans += [
        f"{name} from {format_bytes(one.from_bytes)}"
        for name, one in zip(names[1:_TOLD], stretches[1:_TOLD], strict=True)
    ]
    left = len(stretches) - _TOLD
    spans += [words.counted(left, "more change")] if left > 0 else []
    return f"Best is {words.listed(spans)}."
