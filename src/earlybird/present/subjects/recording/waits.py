"""Waiting of ranks in the trace of a recording: stacked bars of what each rank does with its time."""

from typing import Any

import numpy as np

from earlybird.analysis.waits import Waits
from earlybird.data import labels
from earlybird.present.core import axes
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.view import Recorded, columns_of, ranks_text

MAX_COLUMNS = 64  # with more ranks, a bar is the mean of several
_PARTS = (
    ("in MPI, not waiting", "staircase", ""), ("late senders", "max-rate", "/"),
    ("late receivers", "measured", "\\"),
    ("peers outside MPI", "fair", "."), ("late ranks in collectives", "postal", "x"),
)  # fmt: skip


def waits_figure(recorded: Recorded, waits: Waits, id: str) -> Figure:
    """For each rank the shares of the traced time in MPI: waiting by its cause, and not waiting."""
    window_s = np.maximum(waits.window_s, 1e-12)
    busy_s = np.maximum(waits.in_mpi_s - waits.waiting_s, 0)
    blocks = columns_of(len(waits.ranks), MAX_COLUMNS)
    starts, counts = [block.start for block in blocks], np.array([len(block) for block in blocks])
    names = [ranks_text(waits.ranks[block.start], waits.ranks[block[-1]]) for block in blocks]
    traces, top = [], np.zeros(len(blocks))
    for (name, color, shape), part_s in zip(
        _PARTS,
        (busy_s, waits.late_sender_s, waits.late_receiver_s, waits.peer_outside_s, waits.late_collective_s),
        strict=True,
    ):
        if not part_s.any():
            continue
        shares = np.add.reduceat(part_s / window_s, starts) / counts
        top += shares
        pattern = axes.bar_pattern(shape)
        traces.append(
            {
                "type": "bar",
                "name": name,
                "x": waits.ranks[starts].tolist(),
                "y": [float(f"{share:.4g}") for share in shares.tolist()],
                "marker": {"color": axes.color(color)} | pattern,
                "hoverinfo": "text",
                "hovertext": [
                    f"{rank}, {name}<br><b>{labels.percent(share)}</b> of the traced time"
                    for rank, share in zip(names, shares.tolist(), strict=True)
                ],
            }
        )
    axis: dict[str, Any] = {"title": axes.titled("rank"), "showgrid": False}
    if len(blocks) <= 16:
        axis["tickvals"] = waits.ranks[starts].tolist()
    more = f" A bar is the mean of {len(blocks[0])} ranks." if len(blocks[0]) > 1 else ""
    return Figure(
        id,
        "Waiting by rank",
        "The share of the traced time that each rank spends in MPI, and how much of it is waiting until "
        "another rank has sent or receives, or has come to a collective; or while a rank that had begun "
        f"to send was outside the MPI.{more}",
        traces,
        axes.layout(
            axis,
            axes.linear_share_axis(float(top.max()), "share of the traced time"),
            barmode="stack",
            legend=axes.LEGEND | {"traceorder": "normal"},
        ),
        choice=recorded.choice,
    )
