"""The histogram of message sizes of a recording: the share of messages and of bytes in each size class."""

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.view import Recorded

_LOOKS = {"messages": ("staircase", ""), "bytes": ("max-rate", "/")}
_MOST_TICKS = 8


def sizes_figure(recorded: Recorded, id: str) -> Figure:
    """Two bars for each size class: its share of all messages and of all bytes."""
    title, sizes = "Message sizes", recorded.sizes
    if not sizes:
        return Figure(id, title, "", absence="There are no messages.", choice=recorded.choice)
    traces, top = [], 0.0
    for quantity, (color, shape) in _LOOKS.items():
        values = [getattr(one, quantity) for one in sizes]
        shares = [value / max(sum(values), 1) for value in values]
        top = max(top, *shares)
        pattern = axes.bar_pattern(shape)
        traces.append(
            {
                "type": "bar",
                "name": f"share of {quantity}",
                "x": list(range(len(sizes))),
                "y": [round(share, 5) for share in shares],
                "marker": {"color": axes.color(color)} | pattern,
                "hoverinfo": "text",
                "hovertext": [
                    f"{size_text(one.low_bytes, one.high_bytes)}<br>"
                    f"<b>{labels.counted(one.messages, 'message')}, {format_bytes(one.bytes)}</b>"
                    for one in sizes
                ],
            }
        )
    shown = range(0, len(sizes), -(-len(sizes) // _MOST_TICKS))
    axis = {
        "title": axes.titled("message size from"),
        "showgrid": False,
        "tickvals": list(shown),
        "ticktext": [format_bytes(sizes[k].low_bytes) for k in shown],
        "tickangle": 0,
    }
    caption = (
        "Each class ends below twice the size where it begins. Classes without messages are left out. "
        "Messages are point to point, and the blocks of MPI_Alltoallv, MPI_Alltoallw and neighbourhood "
        "collectives."
    )
    return Figure(
        id, title, caption, traces,
        axes.layout(axis, axes.linear_share_axis(top, "share"), barmode="group", bargap=0.2),
        choice=recorded.choice,
    )  # fmt: skip


def size_text(low_bytes: int, high_bytes: int) -> str:
    """`1 KiB to below 2 KiB`; `1 B` for a single size."""
    if low_bytes == high_bytes:
        return format_bytes(low_bytes)
    return f"{format_bytes(low_bytes)} to below {format_bytes(high_bytes + 1)}"
