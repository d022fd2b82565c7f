"""The communication matrix of a recording: bytes or messages, in several orders of the ranks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from earlybird.analysis.matrix import Matrix, Rows
from earlybird.data.units import format_bytes
from earlybird.present.core import axes
from earlybird.present.core.matrices import (
    MAX_TICKS,
    amounts_caption,
    amounts_map,
    cell_text,
    even_ticks,
    matrix_layout,
    separators,
)
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.view import Recorded

QUANTITIES = ("bytes", "messages")
ORDERS = {"rank": "by rank", "node": "by node", "community": "by community"}
_ORDER_NOTES = {
    "rank": "",
    "node": " Ranks of a node are next to each other; lines separate nodes.",
    "community": " Ranks that exchange much are next to each other.",
}
_MAX_TEXTS = 200  # cells with text, those with the largest values
_FEW_TICKS = 3  # of the names of nodes


def matrix_figures(recorded: Recorded, id: str) -> list[Figure]:
    """Draw a figure for each order and quantity, chosen with selectors."""
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
    text: Callable[[float], str] = format_bytes if quantity == "bytes" else "{:.0f}".format
    trace = amounts_map(values, matrix.messages, _hover(matrix, quantity), text=text, decimals=2)
    lines = _node_lines(rows, recorded) if rows.order == "node" and rows.unit == "rank" else []
    receivers, senders = f"receiving {_unit(rows)}", f"sending {_unit(rows)}"
    # Rows of ranks without a common order have no labels.
    is_labelled = not any(": " in name for name in rows.names)
    layout = matrix_layout(_ticks(rows), receivers, senders, lines, showticklabels=is_labelled)
    chosen = {"quantity": quantity, "order of ranks": ORDERS[rows.order]}
    title = f"Communication matrix: {quantity}, {ORDERS[rows.order]}"
    return Figure(id, title, _caption(rows, quantity), [trace], layout, choice=recorded.choice | chosen)


def _caption(rows: Rows, quantity: str) -> str:
    caption = amounts_caption(quantity)
    if rows.unit == "rank":
        return caption + _ORDER_NOTES[rows.order]
    if rows.unit == "node":
        return f"{caption} Each row and column is a node: there are too many ranks for a row each."
    joined = f" Each row and column is {rows.ranks_per_row} ranks: there are too many for a row each."
    return caption + joined + _ORDER_NOTES[rows.order].replace("; lines separate nodes", "")


def _hover(matrix: Matrix, quantity: str) -> list[list[str]]:
    """Return the texts of the cells with the largest values, "" for the others."""
    names = [axes.label(name) for name in matrix.rows.names]
    texts = [[""] * len(names) for _ in names]
    flat = np.where(matrix.messages > 0, getattr(matrix, quantity), -1).ravel()
    for cell in np.argsort(-flat, kind="stable")[: min(_MAX_TEXTS, int((flat >= 0).sum()))].tolist():
        i, j = divmod(cell, len(names))
        texts[i][j] = cell_text(names[i], names[j], int(matrix.bytes[i, j]), int(matrix.messages[i, j]))
    return texts


def _ticks(rows: Rows) -> dict[int, str]:
    """Return the first ranks of rows, or the names of nodes, by row."""
    is_long = rows.order == "node" and rows.unit == "node"
    ticks = even_ticks(rows.num, _FEW_TICKS if is_long else MAX_TICKS)
    return {k: axes.label(_short(rows.names[k])) for k in ticks}


def _short(name: str) -> str:
    """Return `3` of `rank 3`, `0` of `ranks 0 to 49`, `n01` of `node n01 (32 ranks)`."""
    if name.startswith("node "):
        return name.removeprefix("node ").partition(" (")[0][:12]
    return name.split()[1]


def _unit(rows: Rows) -> str:
    return "node" if rows.unit == "node" else "rank"


def _node_lines(rows: Rows, recorded: Recorded) -> list[dict[str, Any]]:
    """Return lines between the last rank of a node and the first of the next."""
    ranks = np.argsort(rows.of_rank, kind="stable").tolist()
    known = recorded.recording.ranks
    hosts = [known[rank].host if rank in known else "" for rank in ranks]
    return separators(hosts)
