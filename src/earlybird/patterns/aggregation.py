"""Node-aware aggregation: messages between nodes go through leaders, one message for each two nodes."""

from dataclasses import dataclass

import numpy as np

from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.patterns.checks import require_range


@dataclass(frozen=True)
class Stages:
    """Three exchanges, one after the other, that together move the data of one exchange.

    Attributes
    ----------
    collect : ranks send what goes to each other node to the leader for it; messages inside nodes go directly.
    between : leaders send one message to each other node.
    distribute : leaders send each rank what is for it from each other node.
    """

    collect: Pattern
    between: Pattern
    distribute: Pattern

    def all(self) -> dict[str, Pattern]:
        return {"collect": self.collect, "between": self.between, "distribute": self.distribute}


def aggregated(pattern: Pattern, layout: Layout, leaders_per_node: int = 1) -> Stages:
    """Return the exchange of `pattern` through leaders: three-step node-aware communication (Bienz et al.
    2019).

    The first `leaders_per_node` ranks of a node are its leaders, at most all of them; other nodes are
    assigned to them in turn, each pair of nodes to one leader at either end. A leader that is the sender or
    the receiver itself needs no message. Sizes are sums: the cost of packing is not included.
    """
    require_range(leaders_per_node, "the number of leaders per node", 1)
    pattern.check_ranks(layout.num_ranks)
    node = layout.node_group()
    num_nodes = int(node.max()) + 1
    order = np.argsort(node, kind="stable")
    first = np.searchsorted(node[order], np.arange(num_nodes))
    count = np.minimum(np.bincount(node, minlength=num_nodes), leaders_per_node)

    def leader(own: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the rank of node `own` that communicates with node `other`."""
        return order[first[own] + (other - (other > own)) % count[own]]

    src, dst, size = pattern.src, pattern.dst, pattern.bytes
    from_node, to_node = node[src], node[dst]
    out = from_node != to_node
    sender, receiver = leader(from_node[out], to_node[out]), leader(to_node[out], from_node[out])
    apart = src[out], dst[out], size[out]
    collect = _summed(apart[0], sender, apart[2], to_node[out])
    direct = src[~out], dst[~out], size[~out]
    collect = Pattern(*(np.append(a, b) for a, b in zip(direct, collect, strict=True)))
    pair = from_node[out] * num_nodes + to_node[out]
    return Stages(
        collect,
        Pattern(*_summed(sender, receiver, apart[2], pair)),
        Pattern(*_summed(receiver, apart[1], apart[2], from_node[out])),
    )


def _summed(
    src: np.ndarray, dst: np.ndarray, size: np.ndarray, of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one message for each (src, dst, of), without those from a rank to itself."""
    here = src != dst
    keys, group = np.unique(np.column_stack([src[here], dst[here], of[here]]), axis=0, return_inverse=True)
    total = np.zeros(len(keys), dtype=np.int64)
    np.add.at(total, group.reshape(-1), size[here])
    return keys[:, 0], keys[:, 1], total
