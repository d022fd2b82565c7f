"""Collectives: alpha-beta-gamma forms, hops counted from the placement, and the forms of Insaghi (paper).

The physical forms (section 5 of the project's equations) are linear in coefficients of 0 or more. With n
segments of m_s bytes, h = alpha + beta*m_s by the type of the hop and gamma per byte that is reduced:

- linear: Gamma(P)*(alpha + beta*m), 1 <= Gamma <= P-1: one message, and P-2 that each cost a share of it;
- pipeline: the sum of h over the P-1 hops of the chain and n-1 times h of its slowest hop, (P+n-2)*h if all
  hops are equal;
- binomial: n times the sum of h over the longest path through the tree, k*n*h with k = ceil(log2 P) if all
hops
  are equal.

Algorithms without a known tree get terms in 1, log2 P, P-1 and (P-1)/P, each once per call and once per
byte, by the outermost type of hop of the placement: an interpolation, not a physical model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from earlybird.models.trees import TREES, critical_path, edge_rounds, edges

# Types of hops: on one socket, across sockets of a node, between nodes.
NUM_LEVELS = 3
BETWEEN_NODES = NUM_LEVELS - 1
EMPIRICAL = "empirical"
STRUCTURES = (*TREES, EMPIRICAL)
# Resources that messages may share, so that their bytes count more than once: the link of a node, in one
# round or in a full chain; the outgoing path of a rank that sends to all its children in a binomial tree at
# once.
SHARED = ("links", "sends")


def term_names(structure: str) -> tuple[str, ...]:
    """Return the terms of a structure: every hop, and the additional cost of the first message of `linear`;
    for `empirical` every call, log2 P, P-1 and (P-1)/P.
    """
    if structure == EMPIRICAL:
        return ("each", "log2", "ranks", "share")
    return ("each", "first") if structure == "linear" else ("each",)


@dataclass(frozen=True, eq=False)
class Hops:
    """The hops of one call on a placement.

    Attributes
    ----------
    once, again : (T, NUM_LEVELS) hops of a single segment, and hops that every further one adds, by term.
    crowds : weights of their bytes, (T, NUM_LEVELS, 2), for a single segment and for every further one, by
        the shared resource (see SHARED).
    reductions : bytes reduced, per byte of a single segment and of every further one.
    busiest : number of times that the whole message leaves, or enters, the node with the busiest link.
    idle : hops of a single segment over idle links: all hops between nodes, because the link of a node
        recovers while the segment is on other links.
    """

    ranks: int
    once: np.ndarray
    again: np.ndarray
    crowds: Mapping[str, np.ndarray]
    reductions: tuple[float, float]
    busiest: float = 0.0
    idle: float = 0.0


def hop_levels(node: np.ndarray, socket: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the index of the type of the hop between each two ranks: 0 on one socket, 1 across sockets, 2
    between nodes.
    """
    same_node = node[a] == node[b]
    return np.where(same_node & (socket[a] == socket[b]), 0, np.where(same_node, 1, BETWEEN_NODES))


def count_hops(structure: str, node: np.ndarray, socket: np.ndarray, root: int = 0) -> Hops:
    """Count the hops of one call of a structure (see STRUCTURES) among ranks on `node` and `socket`, (P,)
    each.
    """
    ranks = len(node)
    if structure == EMPIRICAL:
        return _empirical_hops(node, socket)
    parent, child = edges(structure, ranks, root)
    level = hop_levels(node, socket, parent, child)
    counts = np.bincount(level, minlength=NUM_LEVELS).astype(float)
    slowest = np.zeros(NUM_LEVELS)
    if len(level):
        slowest[level.max()] = 1.0
    between = level == BETWEEN_NODES
    busiest = _flows(node[parent[between]], node[child[between]])
    if structure == "linear":
        # The root sends to one rank after another: a call has one segment, and its link carries one at a
        # time.
        once = np.array([counts, slowest])
        return _hops(ranks, once, np.zeros_like(once), (float(ranks - 1), 0.0), busiest)
    if structure == "chain":
        hops = _hops(ranks, counts[None], slowest[None], (float(ranks - 1), 1.0), busiest)
        hops.crowds["links"][0, BETWEEN_NODES, 1] = slowest[BETWEEN_NODES] * busiest
        return replace(hops, idle=float(between.sum()))
    path, on_path = critical_path(parent, child, level, NUM_LEVELS)
    hops = _hops(ranks, path[None].astype(float), path[None].astype(float), (float(path.sum()),) * 2, busiest)
    turn = edge_rounds(structure, ranks)
    crowded = [
        _flows(node[parent[between & (turn == k)]], node[child[between & (turn == k)]])
        for k in turn[on_path & between]
    ]
    hops.crowds["links"][0, BETWEEN_NODES, :] = sum(crowded)
    hops.crowds["sends"][0] = _sent_at_once(parent, child, level)
    return hops


def _sent_at_once(parent: np.ndarray, child: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return (NUM_LEVELS, 2) weights of bytes if a rank sends to all its children at once: no child has the
    data before all have. The weights for a single segment are those of the longest such path; every further
    segment leaves when the root has sent the previous one to all children.
    """
    num_ranks = len(parent) + 1
    sends = np.zeros((num_ranks, NUM_LEVELS))
    np.add.at(sends, (parent, level), 1.0)
    ready = np.zeros((num_ranks, NUM_LEVELS))
    slowest_first = slice(None, None, -1)
    last = int(parent[0]) if len(parent) else 0
    for a, b in zip(parent.tolist(), child.tolist(), strict=True):
        ready[b] = ready[a] + sends[a]
        if tuple(ready[b][slowest_first]) > tuple(ready[last][slowest_first]):
            last = b
    root = int(parent[0]) if len(parent) else 0
    return np.stack([ready[last], sends[root]], axis=-1)


def _empirical_hops(node: np.ndarray, socket: np.ndarray) -> Hops:
    ranks = len(node)
    everyone = np.arange(ranks)
    outermost = int(hop_levels(node, socket, np.zeros(ranks, dtype=np.int64), everyone).max(initial=0))
    if not outermost and len({*zip(node.tolist(), socket.tolist(), strict=True)}) > 1:
        outermost = 1
    once, again = np.zeros((4, NUM_LEVELS)), np.zeros((4, NUM_LEVELS))
    once[:, outermost] = 1.0, np.log2(ranks), ranks - 1.0, 1 - 1 / ranks
    again[0, outermost] = 1.0
    return _hops(ranks, once, again, (0.0, 0.0))


def _hops(
    ranks: int,
    once: np.ndarray,
    again: np.ndarray,
    reductions: tuple[float, float],
    busiest: float = 0.0,
) -> Hops:
    crowds = {name: np.stack([once, again], axis=-1) for name in SHARED}
    return Hops(ranks, once, again, crowds, reductions, busiest)


def _flows(sender: np.ndarray, receiver: np.ndarray) -> float:
    """Return the largest number of messages that one node sends, or receives, at a time."""
    ends = [np.unique(end, return_counts=True)[1].max(initial=0) for end in (sender, receiver)]
    return float(max(ends))


@dataclass(frozen=True, eq=False)
class Calls:
    """The collective calls of one structure, (n,) each.

    Attributes
    ----------
    message_bytes : bytes of one segment; they determine the protocol.
    alpha, beta : (n, T, NUM_LEVELS) hops, and hops times bytes; `shared_beta` with the weights of
        `Hops.crowds`.
    reduced_bytes : bytes reduced one after another.
    messages, moved_bytes : totals over all ranks, the work of cores that ranks share.
    link_bytes : bytes through the link of the busiest node, in one direction.
    idle_hops : hops of the first segment over idle links.
    """

    ranks: np.ndarray
    size_bytes: np.ndarray
    message_bytes: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    shared_beta: Mapping[str, np.ndarray]
    reduced_bytes: np.ndarray
    messages: np.ndarray
    moved_bytes: np.ndarray
    link_bytes: np.ndarray
    idle_hops: np.ndarray

    def only(self, chosen: np.ndarray) -> "Calls":
        arrays = {name: item[chosen] for name, item in vars(self).items() if isinstance(item, np.ndarray)}
        return replace(
            self,
            **arrays,
            shared_beta={name: item[chosen] for name, item in self.shared_beta.items()},
        )

    def beta_of(self, shared: str | None, burst_bytes: float = 0.0) -> np.ndarray:
        """Return (n, T, NUM_LEVELS) hops times bytes: weighted if messages share a resource, without the
        first `burst_bytes` on idle links.
        """
        beta = (self.beta if shared is None else self.shared_beta[shared]).copy()
        beta[:, 0, BETWEEN_NODES] -= self.idle_hops * np.minimum(burst_bytes, self.message_bytes)
        return beta


def make_calls(hops: Sequence[Hops], size_bytes: np.ndarray, segment_bytes: np.ndarray) -> Calls:
    """Return one call for each of `hops`, with `size_bytes` in segments of `segment_bytes` (0: in one)."""
    size, segment = np.asarray(size_bytes, dtype=float), np.asarray(segment_bytes, dtype=float)
    whole = (segment == 0) | (segment >= size)
    message = np.where(whole, size, segment)
    further = np.where(whole, 0.0, np.ceil(size / np.where(whole, 1.0, segment)) - 1)
    once, again = (np.array([getattr(one, name) for one in hops]) for name in ("once", "again"))
    reductions = np.array([one.reductions for one in hops])
    ranks = np.array([one.ranks for one in hops], dtype=float)
    rest = size - message

    def wide(values: np.ndarray) -> np.ndarray:
        return values[:, None, None]

    alpha = once + wide(further) * again
    beta = wide(message) * once + wide(rest) * again
    if once.shape[1] == len(term_names(EMPIRICAL)):
        alpha[:, -1, :] = 0.0  # this term applies to bytes only
    return Calls(
        ranks,
        size,
        message,
        alpha,
        beta,
        {
            name: wide(message) * crowd[..., 0] + wide(rest) * crowd[..., 1]
            for name in SHARED
            for crowd in [np.array([one.crowds[name] for one in hops])]
        },
        message * reductions[:, 0] + rest * reductions[:, 1],
        (ranks - 1) * (1 + further),
        (ranks - 1) * size,
        size * np.array([one.busiest for one in hops]),
        np.array([one.idle for one in hops]),
    )


@dataclass(frozen=True, eq=False)
class CollectiveCosts:
    """The coefficients of one form, all 0 or more.

    Attributes
    ----------
    min_bytes : (C,) sizes of messages at which protocols begin, ascending from 0.
    alpha_s, beta_s_per_byte : (C, T, NUM_LEVELS) coefficients of the terms of `term_names`.
    gamma_r_s_per_byte : time to reduce a byte.
    constant_s : time added once per call.
    link_s_per_byte : time per byte of the link of the busiest node; no call completes before it has carried
        all bytes.
    work_alpha_s, work_beta_s_per_byte : time per message, and per byte, of all ranks together; cores shared
        by `work_from_ranks` or more ranks handle them one after another.
    shared : the resource that messages share, see SHARED; None if they share none.
    burst_bytes : bytes that an idle link between nodes carries at once, as with a token bucket; 0 if every
        byte costs the same. Otherwise no call completes before the busiest link, with a bucket emptied by
        earlier calls, has carried all bytes at `beta_s_per_byte`.
    """

    min_bytes: np.ndarray
    alpha_s: np.ndarray
    beta_s_per_byte: np.ndarray
    gamma_r_s_per_byte: float = 0.0
    constant_s: float = 0.0
    link_s_per_byte: float = 0.0
    work_from_ranks: int = 0
    work_alpha_s: float = 0.0
    work_beta_s_per_byte: float = 0.0
    shared: str | None = None
    burst_bytes: float = 0.0


def collective_time_s(calls: Calls, costs: CollectiveCosts) -> np.ndarray:
    """Compute (n,) seconds from the common start until the last rank is done: T = max(path, link, work).

    The path is that of the segments through the tree. A link that buffers data, and cores that ranks share,
    work in parallel with it; the slowest of the three determines the time.

    The formula is not valid if ranks or messages disturb each other in other ways than by sharing the link of
    a node or the cores, or if a placement has hops of a type with coefficients of 0 because it was not
    measured.
    """
    protocol = np.searchsorted(costs.min_bytes, calls.message_bytes, side="right") - 1
    path_s = (
        (calls.alpha * costs.alpha_s[protocol]).sum(axis=(1, 2))
        + (calls.beta_of(costs.shared, costs.burst_bytes) * costs.beta_s_per_byte[protocol]).sum(axis=(1, 2))
        + costs.gamma_r_s_per_byte * calls.reduced_bytes
        + costs.constant_s
    )
    crowded = (costs.work_from_ranks > 0) & (calls.ranks >= costs.work_from_ranks)
    work_s = costs.work_alpha_s * calls.messages + costs.work_beta_s_per_byte * calls.moved_bytes
    link_s_per_byte = costs.link_s_per_byte
    if costs.burst_bytes:
        link_s_per_byte = np.maximum(link_s_per_byte, costs.beta_s_per_byte[protocol, 0, BETWEEN_NODES])
    return np.maximum(np.maximum(path_s, link_s_per_byte * calls.link_bytes), np.where(crowded, work_s, 0.0))


def by_socket_us(
    ranks: np.ndarray, break_ranks: int, coefficients: Sequence[float], *, logarithm: bool
) -> np.ndarray:
    """Compute y = b0*[P<=c] + b1*[P>c] + (k0 + k1*[P>c])*P, Insaghi's tables 1a to 6a; y = T in microseconds
    or, with `logarithm`, ln T.

    `coefficients` are k0, b0, b1, k1, as printed; c = `break_ranks` are the cores of the first node.
    """
    ranks = np.asarray(ranks, dtype=float)
    slope, below, above, steeper = coefficients
    beyond = ranks > break_ranks
    y = np.where(beyond, above, below) + (slope + steeper * beyond) * ranks
    return np.exp(y) if logarithm else y


def by_node_us(ranks: np.ndarray, coefficients: Sequence[float], *, logarithm: bool) -> np.ndarray:
    """Compute T = k*P, or with `logarithm` ln T = a + k*P, in microseconds: Insaghi's tables 1b to 6b, (k,)
    or (a, k).
    """
    ranks = np.asarray(ranks, dtype=float)
    if logarithm:
        intercept, slope = coefficients
        return np.exp(intercept + slope * ranks)
    (slope,) = coefficients
    return slope * ranks


def size_grid_us(
    ranks: np.ndarray, size_bytes: np.ndarray, per_doubling: float, per_byte: float
) -> np.ndarray:
    """Compute log2 T = a*log2 P + b*m, T in microseconds: Insaghi's tables 7 and 8.

    The paper does not state the base of its logarithm; 2 fits its own times of one byte, e does not. T of one
    rank and no bytes is one microsecond for any coefficients, and T grows exponentially in m.
    """
    exponent = per_doubling * np.log2(np.asarray(ranks, dtype=float)) + per_byte * np.asarray(size_bytes)
    with np.errstate(over="ignore"):
        return np.exp2(exponent)
