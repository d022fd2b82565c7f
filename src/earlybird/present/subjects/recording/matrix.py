"""The communication matrix of a recording: bytes or messages, in several orders of the ranks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from earlybird.analysis.matrix import Matrix, Rows
from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.maps import heat_map
from earlybird.present.core.matrices import MAX_TICKS, even_ticks, log_ticks, matrix_layout, separators
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.view import Recorded

QUANTITIES = ("bytes", "messages")
ORDERS = {"rank": "by rank", "node": "by node", "community": "by community"}
_SAYS = {
    "rank": "",
    "node": " Ranks of a node are next to each other; lines separate nodes.",
    "community": " Ranks that exchange much are next to each other.",
}
_LEVELS = 60  # shades: the page stays small
_MAX_TEXTS = 200  # cells with text, those with the largest values
_FEW_TICKS = 3  # of the names of nodes


def matrix_figures(recorded: Recorded, id: str) -> list[Figure]:
    """A figure for each order and quantity, chosen with selectors."""
    if not recorded.heaviest:
        reason = "The program sent no message between two ranks in a call that names them."
        return [Figure(id, "Communication matrix", "", absence=reason, choice=recorded.choice)]
    return [
        _figure(matrix, quantity, f"{id}-{matrix.rows.order}-{quantity}", recorded)
        for matrix in recorded.matrices
        for quantity in QUANTITIES
    ]


def _figure(matrix: Matrix, quantity: str, id: str, recorded: Recorded) -> Figure:
    rows, values = matrix.rows, getattr(matrix, quantity)
    sent = matrix.messages > 0
    logs = np.log10(np.maximum(values, 1))
    low, high = float(logs[sent].min()), float(logs[sent].max())
    span = max(high - low, 0.02)
    levels = np.rint((logs - low) / span * _LEVELS).astype(int)
    z: list[list[float | None]] = np.where(sent, levels, None).tolist()  # type: ignore[attr-defined]
    text: Callable[[float], str] = format_bytes if quantity == "bytes" else _count
    exponents, texts = log_ticks(low, high, text)
    bar = axes.color_bar([(exponent - low) / span * _LEVELS for exponent in exponents], texts, -0.2)
    trace = heat_map(z, _hover(matrix, quantity), axes.AMOUNTS, (-0.5, _LEVELS + 0.5), 0, colorbar=bar) | {
        "hoverongaps": False
    }
    lines = _node_lines(rows, recorded) if rows.order == "node" and rows.unit == "rank" else []
    receivers, senders = f"receiving {_unit(rows)}", f"sending {_unit(rows)}"
    # Rows of ranks without a common order have no labels.
    is_labelled = not any(": " in name for name in rows.names)
    layout = matrix_layout(_ticks(rows), receivers, senders, lines, showticklabels=is_labelled)
    chosen = {"quantity": quantity, "order of ranks": ORDERS[rows.order]}
    title = f"Communication matrix: {quantity}, {ORDERS[rows.order]}"
    return Figure(id, title, _caption(rows, quantity), [trace], layout, choice=recorded.choice | chosen)


def _caption(rows: Rows, quantity: str) -> str:
    caption = f"Colour: {quantity} from sender to receiver, on a log scale. Empty cells: no messages."
    if rows.unit == "rank":
        return caption + _SAYS[rows.order]
    if rows.unit == "node":
        return f"{caption} Each row and column is a node: there are too many ranks for a row each."
    joined = f" Each row and column is {rows.ranks_per_row} ranks: there are too many for a row each."
    return caption + joined + _SAYS[rows.order].replace("; lines separate nodes", "")


def _hover(matrix: Matrix, quantity: str) -> list[list[str]]:
    """Texts of the cells with the largest values, "" for the others."""
    names = [axes.label(name) for name in matrix.rows.names]
    texts = [[""] * len(names) for _ in names]
    flat = np.where(matrix.messages > 0, getattr(matrix, quantity), -1).ravel()
    for cell in np.argsort(-flat, kind="stable")[: min(_MAX_TEXTS, int((flat >= 0).sum()))].tolist():
        i, j = divmod(cell, len(names))
        count = labels.counted(int(matrix.messages[i, j]), "message")
        texts[i][j] = f"{names[i]} to {names[j]}<br><b>{format_bytes(int(matrix.bytes[i, j]))}</b> in {count}"
    return texts


def _ticks(rows: Rows) -> dict[int, str]:
    """Return the first ranks of rows, or the names of nodes, by row."""
    is_long = rows.order == "node" and rows.unit == "node"
    ticks = even_ticks(rows.num, _FEW_TICKS if is_long else MAX_TICKS)
    return {k: axes.label(_short(rows.names[k])) for k in ticks}


def _short(name: str) -> str:
    """`rank 3`: `3`, `ranks 0 to 49`: `0`, `node n01 (32 ranks)`: `n01`."""
    if name.startswith("node "):
        return name.removeprefix("node ").partition(" (")[0][:12]
    return name.split()[1]


def _unit(rows: Rows) -> str:
    return "node" if rows.unit == "node" else "rank"


def _node_lines(rows: Rows, recorded: Recorded) -> list[dict[str, Any]]:
    """Lines between the last rank of a node and the first of the next."""
    ranks = np.argsort(rows.of_rank, kind="stable").tolist()
    known = recorded.recording.ranks
    hosts = [known[rank].host if rank in known else "" for rank in ranks]
    at = [k - 0.5 for k in range(1, len(hosts)) if hosts[k] != hosts[k - 1]]
    return separators(at, len(hosts))


def _count(value: float) -> str:
    return f"{round(value)}"
