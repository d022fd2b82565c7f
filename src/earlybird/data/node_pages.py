"""The file in which the agent of a node keeps the pages of its ranks for other nodes: see
native/recorder/agent/bundle.h."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from earlybird.data.rank_states import ENDED, RUNS, STOPPED

_MAGIC, _BLOCK = 0x3145444F4E4245, 64
_MAX_PAGE = 1 << 20
_STATES = (RUNS, STOPPED, ENDED)
_HEAD = np.dtype(
    [
        ("magic", "u8"), ("serial", "u8"), ("monotonic_ns", "u8"), ("period_ms", "u4"), ("num_pages", "u4"),
        ("is_final", "u4"), ("reserved", "u4", 7),
    ]
)  # fmt: skip
_PAGE = np.dtype(
    [("name", "S64"), ("state", "u4"), ("num_threads", "u4"), ("bytes", "u4"), ("num_blocks", "u4")]
)


@dataclass(frozen=True)
class NodePage:
    """A page of a rank, as it was on its node.

    Attributes
    ----------
    state : RUNS, STOPPED or ENDED.
    num_threads : number of threads of the process; 2**32 - 1 if it is unknown.
    num_blocks : blocks of the page; those whose bits in `bitmap` are set are in `blocks`, others are zero.
    """

    state: str
    num_threads: int
    num_blocks: int
    bitmap: np.ndarray
    blocks: np.ndarray

    @property
    def data(self) -> memoryview:
        """The page."""
        return self._first(self.num_blocks)

    def begin(self, num_bytes: int) -> memoryview:
        """Return the first bytes of the page."""
        return self._first(min(-(-num_bytes // _BLOCK), self.num_blocks))[:num_bytes]

    def _first(self, num: int) -> memoryview:
        kept = np.flatnonzero(np.unpackbits(self.bitmap, count=num, bitorder="little"))
        page = np.zeros(num, self.blocks.dtype)
        page[kept] = self.blocks[: len(kept)]
        return page.view(np.uint8).data


@dataclass(frozen=True)
class NodePages:
    """The pages of the ranks of a node at one moment.

    Attributes
    ----------
    serial : number of the writing, from 1.
    now_s : the moment, by CLOCK_MONOTONIC of the node.
    period_s : time until the agent writes again.
    is_final : whether no rank of the node runs any more.
    pages : pages by the name of their files.
    """

    serial: int
    now_s: float
    period_s: float
    is_final: bool
    pages: Mapping[str, NodePage]


def load_node_serial(path: Path) -> NodePages | None:
    """Return what the file of a node says of its writing, without its pages; None if the file is absent, or
    not one of this version."""
    try:
        with path.open("rb", buffering=0) as stream:
            return _without_pages(stream.read(_HEAD.itemsize) or b"")
    except OSError:
        return None


def _without_pages(data: bytes) -> NodePages | None:
    if len(data) < _HEAD.itemsize:
        return None
    head = np.frombuffer(data, _HEAD, 1)[0]
    if int(head["magic"]) != _MAGIC:
        return None
    return NodePages(
        int(head["serial"]), 1e-9 * int(head["monotonic_ns"]), 1e-3 * int(head["period_ms"]),
        bool(head["is_final"]), {},
    )  # fmt: skip


def load_node_pages(path: Path) -> NodePages | None:
    """Return the pages of a node; None if the file is absent, or not one of this version."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    node = _without_pages(data)
    if node is None:
        return None
    pages, at = {}, _HEAD.itemsize
    for _ in range(int(np.frombuffer(data, _HEAD, 1)[0]["num_pages"])):
        if len(data) < at + _PAGE.itemsize:
            return None
        about = np.frombuffer(data, _PAGE, 1, at)[0]
        num, num_kept = int(about["bytes"]) // _BLOCK, int(about["num_blocks"])
        bitmap_bytes = -(-num // (8 * _BLOCK)) * _BLOCK
        at += _PAGE.itemsize
        blocks_at = at + bitmap_bytes
        end = blocks_at + num_kept * _BLOCK
        if len(data) < end or num * _BLOCK > _MAX_PAGE or int(about["state"]) >= len(_STATES):
            return None
        bits = int.from_bytes(data[at:blocks_at], "little")
        if bits.bit_count() != num_kept or bits.bit_length() > num:
            return None
        name = bytes(about["name"]).decode(errors="replace")
        pages[name] = NodePage(
            _STATES[int(about["state"])], int(about["num_threads"]), num,
            np.frombuffer(data, np.uint8, bitmap_bytes, at),
            np.frombuffer(data, f"V{_BLOCK}", num_kept, blocks_at),
        )  # fmt: skip
        at = end
    return replace(node, pages=pages)
