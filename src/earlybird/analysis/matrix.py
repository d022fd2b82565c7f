"""The communication matrix of a recording in several orders of its ranks, with few enough rows to draw."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.recording import PairTotals, Recording
from earlybird.models.rank_order import community_order, node_order

MAX_ROWS = 200  # above, a row is a node or a block of ranks
MAX_FILLED = 4000  # cells with messages; with more, rows are joined further
_FEWER_ROWS = (128, 90, 63)
UNKNOWN_HOST = "unknown node"


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a matrix, which are also its columns.

    Attributes
    ----------
    order : "rank", "node" or "community".
    names : names of the rows, such as `rank 3`, `ranks 0 to 49` or `node n01 (32 ranks)`.
    of_rank : int64 of shape (P,), the row of each rank.
    unit : what a row is: "rank", "node" or "block"; `ranks_per_row` is the maximum number of ranks of a row.
    """

    order: str
    names: Sequence[str]
    of_rank: np.ndarray
    unit: str
    ranks_per_row: int = 1

    @property
    def num(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix of bytes and messages from rows to columns: two int64 arrays of shape (rows.num, rows.num)."""

    rows: Rows
    bytes: np.ndarray
    messages: np.ndarray


def matrices(recording: Recording, pairs: PairTotals) -> list[Matrix]:
    """Return the matrix by rank, by node if there are several, and by community if there are three ranks.

    `pairs` are those of `PairTotals.by_pair`.
    """
    size = recording.size
    hosts = [recording.ranks[rank].host if rank in recording.ranks else UNKNOWN_HOST for rank in range(size)]
    found = [_drawable(pairs, "rank", np.arange(size))]
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    if len(numbers) > 1:
        nodes = np.array([numbers[host] for host in hosts])
        found.append(_by_node(pairs, list(numbers), nodes))
    if size > 2 and len(pairs.src):
        found.append(_drawable(pairs, "community", community_order(pairs.src, pairs.dst, pairs.bytes, size)))
    return found


def _by_node(pairs: PairTotals, hosts: Sequence[str], nodes: np.ndarray) -> Matrix:
    """Return the matrix with a row for each node if there are too many ranks for a row each; with blocks of
    ranks if there are too many nodes, too."""
    order = node_order(nodes)
    if len(nodes) > MAX_ROWS and len(hosts) <= MAX_ROWS:
        counts = np.bincount(nodes)
        names = [
            f"node {host} ({count} rank{'s' if count > 1 else ''})"
            for host, count in zip(hosts, counts.tolist(), strict=True)
        ]
        matrix = _matrix(pairs, Rows("node", names, nodes, "node", int(counts.max())))
        if np.count_nonzero(matrix.messages) <= MAX_FILLED:
            return matrix
    return _drawable(pairs, "node", order)


def _drawable(pairs: PairTotals, name: str, order: np.ndarray) -> Matrix:
    """Return the matrix of ranks in `order`, with as many of them in a row as make few enough rows and
    cells."""
    for most in (MAX_ROWS, *_FEWER_ROWS):
        matrix = _matrix(pairs, _blocks(name, order, most))
        if np.count_nonzero(matrix.messages) <= MAX_FILLED:
            break
    return matrix


def _blocks(name: str, order: np.ndarray, most: int) -> Rows:
    """Return at most `most` rows of consecutive ranks of `order`."""
    per_row = max(-(-len(order) // most), 1)
    of_rank = np.empty(len(order), np.int64)
    of_rank[order] = np.arange(len(order)) // per_row
    starts = range(0, len(order), per_row)
    names = [_block_name(order[start : start + per_row]) for start in starts]
    return Rows(name, names, of_rank, "block" if per_row > 1 else "rank", per_row)


def _block_name(ranks: np.ndarray) -> str:
    """Return `rank 3`, `ranks 0 to 49`, or `50 ranks: 3, 17, 80, ...`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if (np.diff(ranks) == 1).all():
        return f"ranks {ranks[0]} to {ranks[-1]}"
    more = ", ..." if len(ranks) > 3 else ""
    return f"{len(ranks)} ranks: {', '.join(map(str, ranks[:3].tolist()))}{more}"


def _matrix(pairs: PairTotals, rows: Rows) -> Matrix:
    cell = rows.of_rank[pairs.src] * rows.num + rows.of_rank[pairs.dst]
    sums = []
    for values in (pairs.bytes, pairs.messages):
        total = np.zeros(rows.num * rows.num, np.int64)
        np.add.at(total, cell, values)
        sums.append(total.reshape(rows.num, rows.num))
    return Matrix(rows, *sums)
