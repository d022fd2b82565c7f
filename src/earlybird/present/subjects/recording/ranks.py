"""Figures of a recording by rank: the time in each call, and the waiting."""

from collections.abc import Mapping, Sequence

import numpy as np

from earlybird.analysis.calls import CallTimes
from earlybird.analysis.waits import Waits
from earlybird.data import labels
from earlybird.present.core import axes
from earlybird.present.core.bars import SHAPES, bars, bars_layout
from earlybird.present.core.maps import heat_map
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.answer import NO_TIME
from earlybird.present.subjects.recording.tables import CAUSE_NAMES
from earlybird.present.subjects.recording.view import Recorded

MAX_BARS = 32  # ranks with a bar each; more are columns of a map
MAX_COLUMNS = 200  # of the map; with more ranks, a column is the mean of several
MAX_WAITS = 64  # bars of waiting; with more ranks, a bar is the mean of several
_MAX_PARTS, _MAX_ROWS, _MAX_TICKS = 6, 8, 6
_REST = "other calls"
_LEVELS = 100
_THREADS = " Times of several threads of a rank add up."


def ranks_figure(recorded: Recorded, id: str) -> Figure:
    """Draw the share of the run of each rank in each call: stacked bars, or a map for many ranks."""
    title, calls = "Time in MPI by rank", recorded.calls
    if not calls.with_time:
        return Figure(id, title, "", absence=NO_TIME, choice=recorded.choice)
    return (_stacked_calls if len(calls.ranks) <= MAX_BARS else _map_of_calls)(recorded, id, title)


def _stacked_calls(recorded: Recorded, id: str, title: str) -> Figure:
    calls = recorded.calls
    main, rest = _main_calls(calls, _MAX_PARTS)
    parts = {calls.names[call]: calls.shares[call] for call in main}
    if rest:
        parts[_REST] = calls.shares[rest].sum(axis=0)
    caption = f"The share of the run of each rank inside MPI.{_THREADS}"
    blocks = _blocks_of_ranks(len(calls.ranks), MAX_BARS)
    return _stacked(recorded, id, title, caption, parts, calls.ranks, blocks, "run")


def _stacked(
    recorded: Recorded,
    id: str,
    title: str,
    caption: str,
    parts: Mapping[str, np.ndarray],
    ranks: np.ndarray,
    blocks: Sequence[range],
    whole: str,
) -> Figure:
    """Draw a bar for each block of ranks, divided into `parts` of a `whole`."""
    names, first = _block_names(ranks, blocks), [int(ranks[block.start]) for block in blocks]
    shares = {name: _means(part, blocks) for name, part in parts.items()}
    traces = []
    for k, (name, part) in enumerate(shares.items()):
        look, shape = ("other", "") if name == _REST else (axes.series(k), SHAPES[k])
        if part.any():
            traces.append(bars(name, first, part.tolist(), _hover(names, name, part, whole), look, shape))
    top = float(np.sum(list(shares.values()), axis=0).max())
    y = axes.linear_share_axis(top, f"share of the {whole}")
    layout = bars_layout(axes.number_axis(first, "rank"), y, "stack")
    return Figure(id, title, caption, traces, layout, choice=recorded.choice)


def _map_of_calls(recorded: Recorded, id: str, title: str) -> Figure:
    calls = recorded.calls
    main = _main_calls(calls, _MAX_ROWS)[0][:_MAX_ROWS]
    blocks = _blocks_of_ranks(len(calls.ranks), MAX_COLUMNS)
    means = _means(np.vstack([calls.in_mpi, calls.shares[main]]), blocks)
    names = ["all calls", *(calls.names[call] for call in main)]
    top = float(means.max()) or 1.0
    ranks = _block_names(calls.ranks, blocks)
    hover = [_hover(ranks, name, row, "run") for name, row in zip(names, means, strict=True)]
    z: list[list[float | None]] = np.rint(means / top * _LEVELS).tolist()
    ticks = (0.0, 0.5, 1.0)
    texts = [labels.percent(tick * top) for tick in ticks]
    bar = axes.color_bar([tick * _LEVELS for tick in ticks], texts, -0.28)
    per_block = len(blocks[0])
    caption = "Colour: the share of the run of each rank in each call."
    if per_block > 1:
        caption = f"Colour: the share of the run in each call, the mean of {per_block} ranks in each column."
    rows = axes.band_axis([axes.label(name) for name in names], "", len(names))
    return Figure(
        id,
        title,
        caption + _THREADS,
        [heat_map(z, hover, axes.AMOUNTS, (0, _LEVELS), 0, colorbar=bar)],
        axes.layout(
            axes.band_axis([str(calls.ranks[block.start]) for block in blocks], "rank", _MAX_TICKS),
            rows | {"range": rows["range"][::-1]},
            height=axes.height_of_rows(len(names), extra=60),
        ),
        choice=recorded.choice,
    )


def waits_figure(recorded: Recorded, waits: Waits, id: str) -> Figure:
    """Draw the shares of the traced time that each rank spends in MPI: waiting by its cause, and not
    waiting."""
    window_s = np.maximum(waits.window_s, 1e-12)
    parts_s = {"in MPI, not waiting": np.maximum(waits.in_mpi_s - waits.waiting_s - waits.unknown_s, 0)}
    parts_s |= {name: waits.by_cause_s(cause) for cause, name in CAUSE_NAMES.items()}
    parts_s["in MPI, waiting or not is unknown"] = waits.unknown_s
    blocks = _blocks_of_ranks(len(waits.ranks), MAX_WAITS)
    more = f" A bar is the mean of {len(blocks[0])} ranks." if len(blocks[0]) > 1 else ""
    caption = (
        "The share of the traced time that each rank spends in MPI, and how much of it is waiting until "
        "another rank has sent or receives, or has come to a collective; or while a rank that had begun "
        f"to send was outside the MPI.{more}"
    )
    parts = {name: part_s / window_s for name, part_s in parts_s.items()}
    return _stacked(recorded, id, "Waiting by rank", caption, parts, waits.ranks, blocks, "traced time")


def _main_calls(calls: CallTimes, most: int) -> tuple[list[int], list[int]]:
    """Return at most `most` calls with the most time in the run, and the others; a single other call is no
    rest."""
    drawn = calls.with_time
    return (drawn, []) if len(drawn) <= most + 1 else (drawn[:most], drawn[most:])


def _blocks_of_ranks(num_ranks: int, most: int) -> list[range]:
    """Return the places of all ranks in at most `most` blocks of equal size; the last may be smaller."""
    per_block = max(-(-num_ranks // most), 1)
    return [range(k, min(k + per_block, num_ranks)) for k in range(0, num_ranks, per_block)]


def _block_names(ranks: np.ndarray, blocks: Sequence[range]) -> list[str]:
    """Return `rank 3` or `ranks 3 to 7` for each block."""
    return [axes.span_text("rank", ranks[block.start], ranks[block[-1]]) for block in blocks]


def _means(values: np.ndarray, blocks: Sequence[range]) -> np.ndarray:
    """Return the means over the ranks of each block; ranks are the last dimension."""
    starts, counts = [block.start for block in blocks], [len(block) for block in blocks]
    means: np.ndarray = np.add.reduceat(values, starts, axis=-1) / counts
    return means


def _hover(ranks: Sequence[str], name: str, shares: np.ndarray, of_what: str) -> list[str]:
    return [
        f"{rank}, {axes.label(name)}<br><b>{labels.percent(share)}</b> of the {of_what}"
        for rank, share in zip(ranks, shares.tolist(), strict=True)
    ]
