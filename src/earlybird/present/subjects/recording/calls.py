"""Time by call of a recording: the share of the run of each call, and of each rank."""

from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.maps import heat_map
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.view import REST, Recorded, columns_of, main_calls, ranks_text

MAX_BARS = 32  # ranks with a bar each; more are columns of a map
MAX_COLUMNS = 200  # of the map; with more ranks, a column is the mean of several
_MOST_CALLS, _MOST_PARTS, _MOST_ROWS = 12, 6, 8
# Colours and hatching of the parts of a bar, the first for the call with most time.
_PARTS = (
    ("staircase", ""), ("max-rate", "/"), ("mpich", "x"), ("postal", "."), ("openmpi", "\\"), ("intel", "-"),
    ("multiple", "+"),
)  # fmt: skip
_ROW_HEIGHT, _AROUND_ROWS = 28, 90  # pixels
_LEVELS = 100
_NONE = "No MPI call took measurable time after MPI_Init."
_THREADS = " Times of several threads of a rank add up."


def calls_figure(recorded: Recorded, id: str) -> Figure:
    """A bar for each call: its share of the run, with the lowest and highest rank."""
    title, calls = "Time by call", recorded.calls
    chosen, _ = main_calls(calls, _MOST_CALLS)
    if not chosen:
        return Figure(id, title, "", absence=_NONE, choice=recorded.choice)
    shares, spreads = [calls.share(call) for call in chosen], [calls.spread(call) for call in chosen]
    hover = [
        f"{axes.label(calls.names[call])}<br><b>{labels.percent(share)}</b> of the run, "
        f"{format_seconds(float(calls.time_s[call].sum()))} on all ranks<br>"
        f"rank {one.low_rank}: {labels.percent(one.low)}, rank {one.high_rank}: {labels.percent(one.high)}"
        for call, share, one in zip(chosen, shares, spreads, strict=True)
    ]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [axes.label(calls.names[call]) for call in chosen],
        "x": [_rounded(share) for share in shares],
        "marker": {"color": axes.color("staircase")},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_rounded(max(one.high - share, 0)) for share, one in zip(shares, spreads, strict=True)],
            "arrayminus": [
                _rounded(max(share - one.low, 0)) for share, one in zip(shares, spreads, strict=True)
            ],
            "color": "var(--ink)",
            "thickness": 1.2,
            "width": 4,
        },
        "hoverinfo": "text",
        "hovertext": hover,
        "showlegend": False,
    }
    top = max(one.high for one in spreads)
    left = len([call for call in calls.in_run if calls.time_s[call].any()]) - len(chosen)
    more = f" {labels.counted(left, 'more call')} in the table." if left else ""
    return Figure(
        id,
        title,
        "Time of all ranks in a call, divided by the time of their runs. Whiskers: lowest and highest rank."
        + more,
        [bars],
        axes.layout(
            axes.linear_share_axis(max(top, *shares), "share of the run"),
            {"autorange": "reversed", "showgrid": False},
            height=_AROUND_ROWS + _ROW_HEIGHT * max(len(chosen), 4),
        ),
        choice=recorded.choice,
    )


def ranks_figure(recorded: Recorded, id: str) -> Figure:
    """The share of the run of each rank in each call: stacked bars, or a map for many ranks."""
    title, calls = "Time in MPI by rank", recorded.calls
    chosen, _ = main_calls(calls, _MOST_PARTS)
    if not chosen:
        return Figure(id, title, "", absence=_NONE, choice=recorded.choice)
    return (_bars if len(calls.ranks) <= MAX_BARS else _map)(recorded, id, title)


def _bars(recorded: Recorded, id: str, title: str) -> Figure:
    calls = recorded.calls
    chosen, rest = main_calls(calls, _MOST_PARTS)
    parts = [(calls.names[call], calls.shares[call]) for call in chosen]
    if rest:
        parts.append((REST, calls.shares[rest].sum(axis=0)))
    ranks = calls.ranks.tolist()
    traces = []
    for k, (name, shares) in enumerate(parts):
        color, shape = ("other", "") if name == REST else _PARTS[k]
        pattern = axes.bar_pattern(shape)
        traces.append(
            {
                "type": "bar",
                "name": axes.label(name),
                "x": ranks,
                "y": [_rounded(share) for share in shares.tolist()],
                "marker": {"color": axes.color(color)} | pattern,
                "hoverinfo": "text",
                "hovertext": [
                    f"rank {rank}, {axes.label(name)}<br><b>{labels.percent(share)}</b> of the run"
                    for rank, share in zip(ranks, shares.tolist(), strict=True)
                ],
            }
        )
    axis: dict[str, Any] = {"title": axes.titled("rank"), "showgrid": False}
    if len(ranks) <= 16:
        axis["tickvals"] = ranks
    return Figure(
        id,
        title,
        f"The share of the run of each rank inside MPI.{_THREADS}",
        traces,
        axes.layout(
            axis,
            axes.linear_share_axis(float(calls.in_mpi.max()), "share of the run"),
            barmode="stack",
            legend=axes.LEGEND | {"traceorder": "normal"},
        ),
        choice=recorded.choice,
    )


def _map(recorded: Recorded, id: str, title: str) -> Figure:
    calls = recorded.calls
    chosen, _ = main_calls(calls, _MOST_ROWS)
    blocks = columns_of(len(calls.ranks), MAX_COLUMNS)
    starts = [block.start for block in blocks]
    counts = np.array([len(block) for block in blocks])
    rows = np.vstack([calls.in_mpi, calls.shares[chosen[:_MOST_ROWS]]])
    means = np.add.reduceat(rows, starts, axis=1) / counts
    names = ["all calls", *(axes.label(calls.names[call]) for call in chosen[:_MOST_ROWS])]
    top = float(means.max()) or 1.0
    where = [ranks_text(calls.ranks[block.start], calls.ranks[block[-1]]) for block in blocks]
    hover = [
        [f"{at}, {name}<br><b>{labels.percent(share)}</b>" for at, share in zip(where, row, strict=True)]
        for name, row in zip(names, means.tolist(), strict=True)
    ]
    z: list[list[float | None]] = np.rint(means / top * _LEVELS).tolist()
    ticks = [0.0, 0.5, 1.0]
    texts = [labels.percent(tick * top) for tick in ticks]
    bar = axes.color_bar([tick * _LEVELS for tick in ticks], texts, -0.28)
    trace = heat_map(z, hover, axes.AMOUNTS, (0, _LEVELS), 0, colorbar=bar)
    shown = sorted({round(k) for k in np.linspace(0, len(blocks) - 1, 6)})
    per_block = len(blocks[0])
    caption = "Colour: the share of the run of each rank in each call."
    if per_block > 1:
        caption = f"Colour: the share of the run in each call, the mean of {per_block} ranks in each column."
    return Figure(
        id,
        title,
        caption + _THREADS,
        [trace],
        axes.layout(
            {
                "title": axes.titled("rank"),
                "showgrid": False,
                "tickvals": shown,
                "ticktext": [str(calls.ranks[blocks[k].start]) for k in shown],
                "tickangle": 0,
            },
            {
                "autorange": "reversed",
                "showgrid": False,
                "tickvals": list(range(len(names))),
                "ticktext": names,
            },
            height=_AROUND_ROWS + 60 + _ROW_HEIGHT * len(names),
        ),
        choice=recorded.choice,
    )


def _rounded(share: float) -> float:
    return float(f"{share:.4g}")
