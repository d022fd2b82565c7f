"""Layout: the requested node and socket of each rank, from `NODESxSOCKETSxRANKS` or a CSV
`rank,node,socket`."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.kinds import require_kind, require_path
from earlybird.data.levels import LEVEL_LABELS, MAPPINGS

LAYOUT_HEADER = "rank,node,socket"
MAX_RANKS = 10_000_000
MAX_PLACE = 2**31 - 1  # of nodes and sockets
_AT_ONCE = 1 << 16  # messages
_SHAPE = re.compile(r"([0-9]{1,18})x([0-9]{1,18})x([0-9]{1,18})")


def level_phrase(level: str) -> str:
    """Return a level as part of a sentence: `on the same socket`, `across sockets`, `between nodes`."""
    label = LEVEL_LABELS.get(level, level.replace("_", " "))
    return f"on the {label}" if level == "intra_socket" else label


@dataclass(frozen=True, eq=False)
class Layout:
    """The node and socket of every rank; sockets are numbered within their node.

    Attributes
    ----------
    node, socket : read-only int64 arrays of shape (P,).
    text : the layout as given, for messages and provenance.
    """

    node: np.ndarray
    socket: np.ndarray
    text: str

    def __post_init__(self) -> None:
        for name in ("node", "socket"):
            given = np.asarray(getattr(self, name))
            if (
                given.dtype.kind not in "iu"
                or given.ndim != 1
                or len(given) != len(self.node)
                or not len(given)
            ):
                raise InputError("a layout needs the node and the socket of each rank, as whole numbers")
            array = given.astype(np.int64)  # a copy: the caller's array stays writable
            wrong = (array < 0) | (array > MAX_PLACE)  # unsigned numbers may be negative in 64 bits
            if wrong.any():
                raise InputError(f"a {name} is {given[wrong][0]}; they count from 0, to {MAX_PLACE}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def parse(cls, text: str | Path, map_by: str = "core") -> "Layout":
        """Parse `2x2x8` (nodes x sockets x ranks per socket), or read the CSV at a path; see
        `parse_layout`."""
        require_kind(text, (str, os.PathLike), "the layout", "a str, such as '2x2x8' or the path of a CSV")
        require_kind(map_by, str, "map_by", f"one of {', '.join(MAPPINGS)}")
        return parse_layout(str(text), map_by)

    @classmethod
    def from_arrays(cls, node: ArrayLike, socket: ArrayLike | None = None) -> "Layout":
        """Build a layout from the node of each rank, and its socket within the node, by default 0; raise
        InputError for invalid numbers."""
        try:
            nodes = np.asarray(node)
            sockets = np.zeros_like(nodes) if socket is None else np.asarray(socket)
        except ValueError as error:  # lists of unequal length
            raise InputError(f"a layout needs the node and the socket of each rank: {error}") from None
        return cls(nodes, sockets, f"{nodes.size} ranks from arrays")

    def save(self, path: str | Path) -> None:
        """Write the CSV `rank,node,socket`, atomically; raise InputError for a name without `.csv`, which
        `parse` would not read as a file."""
        require_path(path, "the file to write")
        require_csv_name(path, "the file to write")
        save_layout(self, path)

    @property
    def num_ranks(self) -> int:
        return len(self.node)

    @property
    def num_nodes(self) -> int:
        return len(np.unique(self.node))

    def node_group(self) -> np.ndarray:
        """Return the number (P,) of each rank's node, counted from 0 in the order of the nodes, without
        gaps."""
        return np.unique(self.node, return_inverse=True)[1].reshape(-1)

    def socket_group(self) -> np.ndarray:
        """Return the group number (P,) of each rank's socket, unique over all nodes."""
        return np.unique(np.column_stack([self.node, self.socket]), axis=0, return_inverse=True)[1].reshape(
            -1
        )

    def level(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Return the index into LEVELS of each message: 0 on one socket, 1 across sockets of a node, 2
        between nodes."""
        same_node = self.node[src] == self.node[dst]
        same_socket = same_node & (self.socket[src] == self.socket[dst])
        return np.where(same_socket, 0, np.where(same_node, 1, 2))

    def levels_of_messages(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Return `level` of millions of messages, (M,) each, as uint8 and with little further memory."""
        node, socket = self.node.astype(np.int32), self.socket.astype(np.int32)
        level = np.empty(len(src), np.uint8)
        for begin in range(0, len(src), _AT_ONCE):  # in the caches of a core
            here = slice(begin, begin + _AT_ONCE)
            differs = node[src[here]] != node[dst[here]]
            level[here] = differs
            level[here] += differs | (socket[src[here]] != socket[dst[here]])
        return level


def is_shape(text: str) -> bool:
    """Return whether the text has the form NODESxSOCKETSxRANKS."""
    return _SHAPE.fullmatch(text.strip()) is not None


def parse_layout(text: str, map_by: str = "core") -> Layout:
    """Parse `2x2x8` (nodes x sockets x ranks per socket) with `map_by` core, socket or node, or read the CSV
    at a path.

    With C = SOCKETS*RANKS rank r is on node r//C, socket (r%C)//RANKS (core); node r//C, socket (r%C)%SOCKETS
    (socket); node r%NODES, socket (r//NODES)//RANKS (node). Raise InputError if the text is neither.
    """
    if map_by not in MAPPINGS:
        raise InputError(f"--map-by is {map_by!r}; choose one of {', '.join(MAPPINGS)}")
    if text.endswith(".csv") or (os.sep in text and files.suffix_of(text) == ".csv"):
        if map_by != "core":
            raise InputError(
                f"--map-by {map_by} has no effect on the layout {text}, which places every rank; leave it out"
            )
        return _load_csv(Path(text))
    match = _SHAPE.fullmatch(text.strip())
    if not match or min(int(word) for word in match.groups()) == 0:
        raise InputError(
            f"the layout is {text!r}; give NODESxSOCKETSxRANKS, ranks per socket, such as 1x1x4, "
            "or a CSV file with the header rank,node,socket"
        )
    nodes, sockets, ranks = (int(word) for word in match.groups())
    if nodes * sockets * ranks > MAX_RANKS:
        raise InputError(
            f"the layout {text!r} has {nodes * sockets * ranks} ranks; at most {MAX_RANKS} are supported"
        )
    node, socket = _places(nodes, sockets, ranks, sockets * ranks, map_by)
    return Layout(node, socket, text if map_by == "core" else f"{text} by {map_by}")


def even_layout(num_ranks: int, nodes: int, sockets: int = 1, map_by: str = "core") -> Layout:
    """Return a layout of `num_ranks` ranks divided evenly among `nodes`, and the ranks of a node divided as
    evenly as possible among its `sockets`; `map_by` is as in `parse_layout`. Raise InputError if the nodes do
    not divide the ranks."""
    if map_by not in MAPPINGS:
        raise InputError(f"--map-by is {map_by!r}; choose one of {', '.join(MAPPINGS)}")
    if num_ranks % nodes:
        ranks, remedy = f"{num_ranks} ranks", f"numbers of nodes that divide {num_ranks}"
        if num_ranks == 1:
            ranks, remedy = "1 rank", "1 node"
        raise InputError(
            f"{ranks} cannot be divided evenly among {nodes} nodes; give {remedy}, or a --layout"
        )
    per_node = num_ranks // nodes
    used = min(sockets, per_node)
    node, socket = _places(nodes, used, -(-per_node // used), per_node, map_by)
    text = f"{nodes}x{used}x{per_node // used}" if per_node % used == 0 else f"{nodes} x {per_node} ranks"
    return Layout(node, socket, text if map_by == "core" else f"{text} by {map_by}")


def layout_of_label(text: str) -> Layout | None:
    """Return the layout whose `text` this is, such as `2x2x8` or `2x2x8 by node`; None if the text has
    another form."""
    shape, _, map_by = text.partition(" by ")
    try:
        return None if shape.endswith(".csv") else parse_layout(shape, map_by or "core")
    except InputError:
        return None


def _places(
    nodes: int, sockets: int, ranks: int, per_node: int, map_by: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return (node, socket) of nodes * per_node ranks, at most `ranks` on a socket."""
    r = np.arange(nodes * per_node, dtype=np.int64)
    if map_by == "core":
        return r // per_node, r % per_node // ranks
    if map_by == "socket":
        return r // per_node, r % per_node % sockets
    return r % nodes, r // nodes // ranks


def require_csv_name(path: str | Path, what: str) -> None:
    """Raise InputError if `path`, named `what`, does not end in .csv."""
    if not str(path).endswith(".csv"):
        raise InputError(
            f"a layout is a CSV file, but {what} is {str(path)!r}; give a name that ends in .csv"
        )


def save_layout(layout: Layout, path: str | Path) -> None:
    """Write the CSV that `parse_layout` reads, atomically."""
    rows = [
        f"{rank},{node},{socket}\n"
        for rank, (node, socket) in enumerate(zip(layout.node, layout.socket, strict=True))
    ]
    files.write_text(path, f"{LAYOUT_HEADER}\n{''.join(rows)}")


def _load_csv(path: Path) -> Layout:
    place: dict[int, tuple[int, int]] = {}
    text = files.read_text(path, "layout")
    for number, (rank, node, socket) in files.integer_rows(text, path, "layout", LAYOUT_HEADER):
        if min(rank, node, socket) < 0:
            raise InputError(
                f"{path} line {number} has a negative number; ranks, nodes and sockets count from 0"
            )
        if rank in place:
            raise InputError(f"{path} line {number}: rank {rank} has a row already; give each rank once")
        place[rank] = (node, socket)
    missing = next((r for r in range(len(place)) if r not in place), None)
    if missing is not None or not place:
        raise InputError(f"{path} has no row for rank {missing or 0}; give every rank from 0 to the last")
    table = np.array([place[r] for r in range(len(place))], dtype=np.int64)
    return Layout(table[:, 0], table[:, 1], str(path))
