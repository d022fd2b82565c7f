"""The links between nodes as heat maps: bandwidth and latency of every pair."""

from collections.abc import Callable

import numpy as np

from earlybird.data import labels
from earlybird.data.check import BANDWIDTH, LATENCY, LINK, Check
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.maps import heat_map
from earlybird.present.core.matrices import even_ticks, frame, matrix_layout
from earlybird.present.core.parts import Figure

_WITH_GAPS = 32  # nodes up to which cells are separated


def bandwidth_map(check: Check, id: str) -> Figure:
    """Draw the bytes per second of a message between two nodes, senders in rows."""
    title = f"Bandwidth of every link: messages of {format_bytes(check.size_bytes)}"
    return _map(check, id, title, check.bandwidth_bytes_per_s(), BANDWIDTH, format_bandwidth)


def latency_map(check: Check, id: str) -> Figure:
    """Draw half the round trip of a small message."""
    latency_s = np.where(check.latency_s > 0, check.latency_s, np.nan)
    return _map(check, id, "Latency of every link", latency_s, LATENCY, format_seconds)


def _map(
    check: Check, id: str, title: str, values: np.ndarray, measure: str, text: Callable[[float], str]
) -> Figure:
    if np.isnan(values).all():
        return Figure(id, title, "", absence="No link was measured.")
    hosts = check.hosts
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    bad = [
        (hosts.index(finding.hosts[0]), hosts.index(finding.hosts[-1]))
        for finding in check.findings
        if finding.measure == measure and finding.kind == LINK
    ]
    hover = [
        ["" if np.isnan(value) else _hover(hosts[i], hosts[j], text(value)) for j, value in enumerate(row)]
        for i, row in enumerate(values.tolist())
    ]
    z = [[None if np.isnan(value) else value for value in row] for row in values.tolist()]
    ends = (low, high if high > low else low * 1.01 + 1e-30)
    ticks = np.linspace(*ends, 4).tolist()
    bar = axes.color_bar(ticks, [text(tick) for tick in ticks], -0.25)
    trace = heat_map(z, hover, axes.AMOUNTS, ends, int(len(hosts) <= _WITH_GAPS), colorbar=bar)
    marked = f" Frames: {labels.counted(len(bad), 'link')} not as the others." if bad else ""
    return Figure(
        id,
        title,
        f"Senders in rows, receivers in columns; lower quartiles of all iterations.{marked}",
        [trace],
        matrix_layout(
            {k: axes.label(hosts[k]) for k in even_ticks(len(hosts))},
            "receiver",
            "sender",
            [frame(i, j) for i, j in bad],
        ),
    )


def _hover(sender: str, receiver: str, value: str) -> str:
    return f"{axes.label(sender)} to {axes.label(receiver)}<br><b>{value}</b>"
