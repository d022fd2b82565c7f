"""The figure of an exchange on other numbers of nodes."""

from earlybird.data import labels
from earlybird.data.node_counts import NodeCounts
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import spread_traces
from earlybird.present.core.parts import Figure


def node_counts_figure(found: NodeCounts, id: str) -> Figure:
    """The slowest rank's seconds against the number of nodes."""
    counts = sorted(found.counts, key=lambda one: one.nodes)
    nodes, times_s = [one.nodes for one in counts], [one.time_s for one in counts]
    texts = [
        f"{labels.counted(one.nodes, 'node')} ({axes.label(one.layout)}): "
        f"<b>{format_seconds(one.time_s.value)}</b><br>"
        f"inside nodes {format_seconds(one.intra_node_s)}, between nodes {format_seconds(one.inter_node_s)}"
        for one in counts
    ]
    name = axes.label(f"{found.model} model")
    return Figure(
        id,
        "Time against the number of nodes",
        f"Time of the slowest of {found.ranks} ranks, predicted by the {found.model} model, if they are "
        "divided evenly among the nodes. Shading: the 95 % interval of the fit, if the profile has one.",
        spread_traces(found.model, name, nodes, times_s, texts),
        axes.layout(
            axes.log_count_axis(nodes, "nodes"),
            axes.linear_time_axis(max(one.high for one in times_s), "slowest rank"),
        ),
        wide=True,
    )
