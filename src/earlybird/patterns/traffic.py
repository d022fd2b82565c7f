"""Compute the traffic of a pattern on a layout: how much of it stays on a socket or a node, and what its
nodes move.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern


@dataclass(frozen=True)
class Traffic:
    """The statistics of Tables III and IV and of figure 8 of Thune et al. 2023.

    Attributes
    ----------
    messages, bytes : totals of each of LEVELS.
    nodes : (N,) the numbers of the nodes, ascending.
    node_index : (P,) the position in `nodes` of the node of each rank.
    rank_level_bytes : (P, 3) bytes that each rank receives, by level.
    rank_messages : (P,) messages received by each rank.
    """

    messages: dict[str, int]
    bytes: dict[str, int]
    nodes: np.ndarray
    node_index: np.ndarray
    rank_level_bytes: np.ndarray
    rank_messages: np.ndarray

    @property
    def rank_bytes(self) -> np.ndarray:
        """The (P,) bytes received by each rank."""
        return self.rank_level_bytes.sum(axis=1)

    @property
    def node_bytes(self) -> np.ndarray:
        """The (N, 3) bytes that the ranks of each node receive, by level."""
        found = np.zeros((len(self.nodes), len(LEVELS)), dtype=np.int64)
        np.add.at(found, self.node_index, self.rank_level_bytes)
        return found

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes.values())

    def share(self, level: str) -> float:
        """Return the fraction of all bytes that `level` carries; 0 if there are no bytes."""
        return self.bytes[level] / self.total_bytes if self.total_bytes else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the totals, the levels, and what each node receives."""
        received = self.rank_bytes[self.rank_bytes > 0]
        nodes = zip(self.nodes.tolist(), self.node_bytes.tolist(), strict=True)
        return {
            "messages": sum(self.messages.values()),
            "most_messages_received": int(self.rank_messages.max(initial=0)),
            "total_bytes": self.total_bytes,
            "most_bytes_received": int(received.max(initial=0)),
            "fewest_bytes_received": int(received.min()) if len(received) else 0,
            "levels": {
                level: {
                    "messages": self.messages[level], "bytes": self.bytes[level], "share": self.share(level)
                }
                for level in LEVELS
            },
            "nodes": [
                {"node": node} | {f"{level}_bytes": count for level, count in zip(LEVELS, row, strict=True)}
                for node, row in nodes
            ],
        }  # fmt: skip


def traffic(pattern: Pattern, layout: Layout) -> Traffic:
    """Return the traffic of a pattern on a layout; raise InputError if the pattern has a rank outside the
    layout.
    """
    pattern.check_ranks(layout.num_ranks)
    level = layout.level(pattern.src, pattern.dst)
    nodes, node_index = np.unique(layout.node, return_inverse=True)
    rank_level_bytes = np.zeros((layout.num_ranks, len(LEVELS)), dtype=np.int64)
    np.add.at(rank_level_bytes, (pattern.dst, level), pattern.bytes)
    messages = np.bincount(level, minlength=len(LEVELS))
    return Traffic(
        dict(zip(LEVELS, messages.tolist(), strict=True)),
        dict(zip(LEVELS, rank_level_bytes.sum(axis=0).tolist(), strict=True)),
        nodes,
        node_index.reshape(-1),
        rank_level_bytes,
        np.bincount(pattern.dst, minlength=layout.num_ranks),
    )
