"""Layout: where each rank is asked to sit, from `NODESxSOCKETSxRANKS` or a CSV `rank,node,socket`."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError

LEVELS = ("intra_socket", "inter_socket", "inter_node")
MAPPINGS = ("core", "socket", "node")
MAX_RANKS = 10_000_000


@dataclass(frozen=True)
class Layout:
    """Node and socket of every rank; sockets are numbered within their node.

    Attributes
    ----------
    node, socket : int64 arrays of shape (P,).
    text : what the user gave, for messages and provenance.
    """

    node: np.ndarray
    socket: np.ndarray
    text: str

    @property
    def num_ranks(self) -> int:
        return len(self.node)

    @property
    def num_nodes(self) -> int:
        return len(np.unique(self.node))

    def socket_group(self) -> np.ndarray:
        """(P,) group number of each rank's socket, unique over all nodes."""
        return np.unique(np.column_stack([self.node, self.socket]), axis=0, return_inverse=True)[1].reshape(-1)

    def level(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Index into LEVELS of each message: 0 on one socket, 1 between sockets of a node, 2 between nodes."""
        same_node = self.node[src] == self.node[dst]
        same_socket = same_node & (self.socket[src] == self.socket[dst])
        return np.where(same_socket, 0, np.where(same_node, 1, 2))


def parse_layout(text: str, map_by: str = "core") -> Layout:
    """`2x2x8` (nodes x sockets x ranks per socket) with `map_by` core, socket or node; or the path of a CSV.

    With C = SOCKETS*RANKS rank r sits on node r//C, socket (r%C)//RANKS (core); node r//C, socket (r%C)%SOCKETS
    (socket); node r%NODES, socket (r//NODES)//RANKS (node). Raises InputError.
    """
    if map_by not in MAPPINGS:
        raise InputError(f"--map-by is {map_by!r}; choose one of {', '.join(MAPPINGS)}")
    if text.endswith(".csv"):
        return _load_csv(Path(text))
    match = re.fullmatch(r"(\d+)x(\d+)x(\d+)", text.strip())
    if not match or min(int(word) for word in match.groups()) == 0:
        raise InputError(
            f"the layout is {text!r}; give NODESxSOCKETSxRANKS, ranks per socket, such as 1x1x4, "
            "or a CSV file with the header rank,node,socket"
        )
    nodes, sockets, ranks = (int(word) for word in match.groups())
    if nodes * sockets * ranks > MAX_RANKS:
        raise InputError(f"the layout {text!r} has {nodes * sockets * ranks} ranks; at most {MAX_RANKS} are supported")
    r = np.arange(nodes * sockets * ranks, dtype=np.int64)
    per_node = sockets * ranks
    if map_by == "core":
        node, socket = r // per_node, r % per_node // ranks
    elif map_by == "socket":
        node, socket = r // per_node, r % per_node % sockets
    else:
        node, socket = r % nodes, r // nodes // ranks
    return Layout(node, socket, text if map_by == "core" else f"{text} by {map_by}")


def _load_csv(path: Path) -> Layout:
    lines = files.read_text(path, "layout").splitlines()
    if not lines or [word.strip() for word in lines[0].split(",")] != ["rank", "node", "socket"]:
        raise InputError(f"{path} line 1 is {lines[0] if lines else ''!r}; a layout begins with 'rank,node,socket'")
    place: dict[int, tuple[int, int]] = {}
    for number, row in enumerate(csv.reader(lines[1:]), start=2):
        if not row:
            continue
        try:
            rank, node, socket = (int(word) for word in row)
        except ValueError:
            raise InputError(f"{path} line {number} is {','.join(row)!r}; each row is rank,node,socket") from None
        if min(rank, node, socket) < 0 or rank in place:
            raise InputError(f"{path} line {number}: rank {rank} is given twice or a number is negative")
        place[rank] = (node, socket)
    missing = next((r for r in range(len(place)) if r not in place), None)
    if missing is not None or not place:
        raise InputError(f"{path} has no row for rank {missing or 0}; give every rank from 0 to the last")
    table = np.array([place[r] for r in range(len(place))], dtype=np.int64)
    return Layout(table[:, 0], table[:, 1], str(path))
