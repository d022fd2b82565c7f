"""Volumes of an exchange by level: what each rank and each node receives, as stacked bars."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.levels import LEVELS
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.bars import bars, bars_layout
from earlybird.present.core.parts import Figure, few
from earlybird.present.subjects.exchange.view import Exchange

MAX_BARS = 256  # of more ranks, that of each group that receives most is drawn; more nodes are summed
MAX_WIDE = 64  # bars with gaps and hatching; more are drawn as areas, because browsers blur narrow bars
MAX_TICKS = 9


def rank_volumes_figure(exchange: Exchange, id: str) -> Figure:
    """Draw what each rank receives, as figures 4(d) and 6 of Thune et al. 2023."""
    traffic = exchange.traffic
    title = "Volume that each rank receives"
    caption = "Bytes that a rank receives, by the level of the message."
    volumes = traffic.rank_level_bytes
    ranks = np.arange(len(volumes))
    if len(ranks) > MAX_BARS:
        by_node = MAX_BARS // 8 <= len(traffic.nodes) <= MAX_BARS  # of few nodes, too few bars
        group = traffic.node_index if by_node else ranks // -(-len(ranks) // MAX_BARS)
        ranks = _largest_of_groups(traffic.rank_bytes, group)
        of = "each node" if by_node else f"each {np.bincount(group).max()} ranks in order"
        caption += f" Of {of}, the rank that receives most."
    names = [
        f"rank {rank}, node {traffic.nodes[traffic.node_index[rank]]}, "
        f"{labels.counted(int(traffic.rank_messages[rank]), 'message')}"
        for rank in ranks.tolist()
    ]
    return _stacked(id, title, caption, "rank", ranks.tolist(), names, volumes[ranks])


def node_volumes_figure(exchange: Exchange, id: str) -> Figure | None:
    """Draw what the ranks of each node receive, as figure 8 of Thune et al. 2023; return None for a single
    node."""
    traffic = exchange.traffic
    if len(traffic.nodes) < 2:
        return None
    caption = "Bytes that the ranks of a node receive, by the level of the message."
    block = -(-len(traffic.nodes) // MAX_BARS)
    starts = np.arange(0, len(traffic.nodes), block)
    if block > 1:
        caption += f" Each bar is the sum over {block} nodes."
    volumes = np.add.reduceat(traffic.node_bytes, starts)
    first = traffic.nodes[starts].tolist()
    last = traffic.nodes[np.minimum(starts + block, len(traffic.nodes)) - 1].tolist()
    names = [axes.span_text("node", *ends) for ends in zip(first, last, strict=True)]
    return _stacked(id, "Volume that each node receives", caption, "node", first, names, volumes)


def _largest_of_groups(received: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the rank that receives most of each group, in the order of the groups."""
    order = np.lexsort((-received, group))
    return order[np.unique(group[order], return_index=True)[1]]


def _stacked(
    id: str,
    title: str,
    caption: str,
    unit: str,
    numbers: Sequence[int],
    names: Sequence[str],
    volumes: np.ndarray,
) -> Figure:
    """Draw a bar for each row of the (bars, 3) `volumes`, divided by level."""
    totals = volumes.sum(axis=1)
    if not totals.any():
        return Figure(id, title, "", absence="No message has any bytes.")
    draw = _areas if len(numbers) > MAX_WIDE else _bars
    traces = []
    for level, values in zip(LEVELS, volumes.T.tolist(), strict=True):
        texts = [
            f"{name}<br>{labels.level(level)}: <b>{format_bytes(value)}</b> of {format_bytes(total)}"
            for name, value, total in zip(names, values, totals.tolist(), strict=True)
        ]
        traces += [draw(level, values, texts)] if any(values) else []
    ticks = few(len(numbers), MAX_TICKS) if len(numbers) > 16 else range(len(numbers))
    axis = axes.number_axis(numbers, unit) | {
        "range": [-0.6, len(numbers) - 0.4],
        "tickvals": list(ticks),
        "ticktext": [str(numbers[k]) for k in ticks],
    }
    y = axes.linear_size_axis(float(totals.max()), "received")
    layout = bars_layout(axis, y, "stack", bargap=0.2)
    return Figure(id, title, caption, traces, layout, wide=len(numbers) > 32)


def _bars(level: str, values: Sequence[float], texts: Sequence[str]) -> dict[str, Any]:
    shape = axes.BAR_SHAPES.get(level, "")
    return bars(labels.level(level), range(len(values)), values, texts, level, shape)


def _areas(level: str, values: Sequence[float], texts: Sequence[str]) -> dict[str, Any]:
    color = axes.color(level)
    return {
        "name": labels.level(level),
        "x": list(range(len(values))),
        "y": list(values),
        "mode": "lines",
        "stackgroup": "levels",
        "line": {"shape": "hvh", "width": 0, "color": color},
        "fillcolor": color,
        "hoverinfo": "text",
        "hovertext": list(texts),
    }
