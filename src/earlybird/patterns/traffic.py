"""What a pattern means on a layout: how much of it stays on a socket or a node, and what its nodes move."""

from dataclasses import dataclass

import numpy as np

from earlybird.data.layout import LEVELS, Layout
from earlybird.data.pattern import Pattern


@dataclass(frozen=True)
class Traffic:
    """The statistics of Tables III and IV and of figure 8 of Thune et al. 2023.

    Attributes
    ----------
    messages, bytes : of each of LEVELS.
    node_bytes : (N, 3) bytes that the ranks of each node receive, by level; nodes in the order of their
        numbers.
    rank_bytes, rank_messages : (P,) received by each rank.
    """

    messages: dict[str, int]
    bytes: dict[str, int]
    node_bytes: np.ndarray
    rank_bytes: np.ndarray
    rank_messages: np.ndarray


def traffic(pattern: Pattern, layout: Layout) -> Traffic:
    """Raises InputError if the pattern has a rank outside the layout."""
    pattern.check_ranks(layout.num_ranks)
    level = layout.level(pattern.src, pattern.dst)
    node = np.unique(layout.node, return_inverse=True)[1].reshape(-1)
    node_bytes = np.zeros((layout.num_nodes, len(LEVELS)), dtype=np.int64)
    np.add.at(node_bytes, (node[pattern.dst], level), pattern.bytes)
    rank_bytes = np.zeros(layout.num_ranks, dtype=np.int64)
    np.add.at(rank_bytes, pattern.dst, pattern.bytes)
    messages = np.bincount(level, minlength=len(LEVELS))
    return Traffic(
        dict(zip(LEVELS, messages.tolist(), strict=True)),
        dict(zip(LEVELS, node_bytes.sum(axis=0).tolist(), strict=True)),
        node_bytes,
        rank_bytes,
        np.bincount(pattern.dst, minlength=layout.num_ranks),
    )
