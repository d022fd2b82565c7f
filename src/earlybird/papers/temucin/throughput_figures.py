"""Figures of the throughput of Sweep3D and Halo3D in runs that reproduce Temucin et al. 2022."""

from collections.abc import Sequence
from typing import Any

from earlybird.data.methods import FUNNELLED, MULTIPLE
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.papers.temucin.throughput import Throughput, throughput
from earlybird.present.core import axes
from earlybird.present.core.lines import hover, method_name, size_x, spread_traces
from earlybird.present.core.parts import Figure, figures_left

_DASHES = {FUNNELLED: "dot", MULTIPLE: "dash"}
MAX_FIGURES = 9  # three MPIs
_CAPTION = (
    "Bytes that all ranks send divided by the time of an iteration, against the size of the largest message."
)


def throughput_figures(measured: Sequence[Throughput]) -> list[Figure]:
    """Return a figure for every setting with several styles."""
    several = [one for one in measured if len(one.methods()) > 1]
    figures = [_figure(k, one) for k, one in enumerate(several[:MAX_FIGURES])]
    return figures + figures_left("motifs-temucin", len(several), MAX_FIGURES)


def _figure(k: int, one: Throughput) -> Figure:
    data: list[dict[str, Any]] = []
    values: list[float] = []
    for method in one.methods():
        known = [(point, found) for point in one.points if (found := throughput(point, method))]
        shown, spreads = method_name(method), [found for _, found in known]
        texts = [
            hover(
                shown,
                format_bytes(point.size_bytes),
                found,
                format_bandwidth,
                point.results[method].launches,
            )
            for point, found in known
        ]
        if known:
            sizes, dash = [size_x(point) for point, _ in known], _DASHES.get(method, "")
            data += spread_traces(method, shown, sizes, spreads, texts, dash=dash)
            values += [value for estimate in spreads for value in estimate]
    return Figure(
        f"motifs-temucin-{k}",
        f"Throughput: {one.title}",
        _CAPTION,
        data,
        axes.layout(
            axes.size_axis([point.size_bytes for point in one.points], "largest message"),
            axes.log_bandwidth_axis(values, "throughput"),
        ),
    )
