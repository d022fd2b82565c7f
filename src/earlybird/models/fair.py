"""Max-min fair sharing: every message is a flow through the nodes of its sender and its receiver."""

import numpy as np

from earlybird.models.staircase import share_by_volume

SHARES = ("message", "process")

# Completions closer than this fraction of the elapsed time are ties separated by rounding.
_ROUNDING = 1e-12


def completion_times_s(
    src: np.ndarray,
    dst: np.ndarray,
    size_bytes: np.ndarray,
    group: np.ndarray,
    message_class: np.ndarray,
    bandwidth_bytes_per_s: np.ndarray,
    share: str = "message",
    *,
    sending_bytes_per_s: np.ndarray | None = None,
    batch_fraction: float = 0.0,
) -> np.ndarray:
    """When each message is complete, without latency, if both ends have a limited capacity.

    All rates rise together; when a node's sending or receiving end is full, the messages through it keep
    their rate and the others continue to rise; at the next completion all capacities are shared again. The
    capacity of an end is BW(n) of Thune et al. 2023, n the number of processes with unfinished messages
    there: senders at a sending end, receivers at a receiving end.

    With `share` "process" the messages of a receiving process rise together as one message would, each by an
    equal part of it. If senders never limit, the last message of a receiver completes as in the staircase
    (7). The others complete when their bytes have arrived; (9) gives their fraction of the time instead,
    which is the same if the rate of the receiver is constant. With "message" every message has the same
    weight: this equals the staircase only if every receiver has one message.

    With several classes a share is scaled as in (12): at a receiving end with n receivers a message's weight
    is that of its class, BW_c(n), and with "process" the volume-weighted mean of BW_c(n) over all that its
    process receives, so that it equals (12)-(17) if senders never limit. The capacity of an end is the mean
    over its unfinished messages of their classes' bandwidth, each counted by its share.

    Parameters
    ----------
    src, dst, size_bytes, message_class : (M,) int64; a class is a protocol. A message of 0 bytes is complete
        at once and does not compete.
    group : (P,) the node of each rank.
    bandwidth_bytes_per_s : (R, N, C), BW(n) of class c at [:, n-1, c], N at least the largest n.
    sending_bytes_per_s : the same for the sending ends, if different.
    batch_fraction : completions within this fraction of the elapsed time are one step, which bounds the
        number of steps by about ln(last/first time)/batch_fraction; times change by a few such fractions.

    Returns
    -------
    (R, M) seconds. Not valid if the network between the nodes is the bottleneck, or if BW(1) limits a single
    process that could use the remaining capacity of its node. Without batching there is a step per
    completion, which costs 0.1 ms for 4 nodes, 0.3 to 0.5 ms for 16 and about 1 ms for 64 with messages
    between all pairs; further parameter sets cost from a quarter (few nodes) up to as much each.
    """
    competing = np.flatnonzero(size_bytes > 0)
    finished_s = np.zeros((len(bandwidth_bytes_per_s), len(size_bytes)))
    if len(competing):
        used, message_class = np.unique(message_class[competing], return_inverse=True)
        receiving = bandwidth_bytes_per_s[..., used]
        sending = receiving if sending_bytes_per_s is None else sending_bytes_per_s[..., used]
        flows = _Flows(src[competing], dst[competing], size_bytes[competing], message_class, group, share)
        run = _Run(flows, sending, receiving)
        while len(run.rows):
            run.step(max(batch_fraction, _ROUNDING))
        finished_s[:, competing] = run.finished_s
    return finished_s


class _Flows:
    """Messages that always have the same rate as bundles, bundles between the same nodes as pairs.

    A bundle of a pair is a class, with `share` "process" a class and a receiver. Its messages have received
    the same number of bytes at any time, and complete in order of size: one number describes all of them.
    """

    def __init__(
        self,
        src: np.ndarray,
        dst: np.ndarray,
        size_bytes: np.ndarray,
        message_class: np.ndarray,
        group: np.ndarray,
        share: str,
    ) -> None:
        src_groups, src_group = np.unique(group[src], return_inverse=True)
        dst_groups, dst_group = np.unique(group[dst], return_inverse=True)
        senders, self.message_src = np.unique(src, return_inverse=True)
        receivers, message_dst = np.unique(dst, return_inverse=True)
        self.src_end = np.searchsorted(src_groups, group[senders])  # of each sender
        self.dst_end = np.searchsorted(dst_groups, group[receivers])
        self.num_sends = np.bincount(self.message_src)
        self.num_receives = np.bincount(message_dst)
        self.message_dst = message_dst

        unit = message_dst if share == "process" else np.zeros_like(message_dst)
        keys = np.column_stack([src_group, dst_group, unit, message_class])
        bundles, bundle = np.unique(keys, axis=0, return_inverse=True)
        bundle = bundle.reshape(-1)
        counts = np.bincount(bundle)
        self.order = np.lexsort((size_bytes, bundle))
        # A sentinel of infinite size, which never completes, follows the last message of each bundle.
        self.first = np.cumsum(counts + 1) - counts - 1
        self.end = self.first + counts
        places = np.arange(len(bundle)) + bundle[self.order]
        self.size_bytes = np.full(len(bundle) + len(bundles), np.inf)
        self.size_bytes[places] = size_bytes[self.order]
        self.message = np.full(len(self.size_bytes), -1)
        self.message[places] = self.order
        self.bundle_class = bundles[:, 3]
        self.bundle_dst = bundles[:, 2] if share == "process" else None

        starts = np.flatnonzero((np.diff(bundles[:, :2], axis=0, prepend=-1) != 0).any(axis=1))
        self.pair_starts = starts
        self.bundle_pair = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(bundles)))
        self.pair_src, self.pair_dst = bundles[starts, :2].T
        self.src_starts = np.flatnonzero(np.diff(self.pair_src, prepend=-1))
        self.by_dst = np.argsort(self.pair_dst, kind="stable")
        self.dst_starts = np.flatnonzero(np.diff(self.pair_dst[self.by_dst], prepend=-1))

        num_classes = message_class.max() + 1
        if share == "process":
            volume_bytes = np.zeros((len(receivers), num_classes), dtype=np.int64)
            np.add.at(volume_bytes, (message_dst, message_class), size_bytes)
            self.fraction = share_by_volume(volume_bytes)[self.bundle_dst]
        else:
            self.fraction = np.eye(num_classes)[self.bundle_class]

    def over_src(self, function: np.ufunc, pairs: np.ndarray) -> np.ndarray:
        """(R, sending ends): `function` (add, minimum) over the pairs of each, from (R, pairs)."""
        return function.reduceat(pairs, self.src_starts, axis=1)

    def over_dst(self, function: np.ufunc, pairs: np.ndarray) -> np.ndarray:
        return function.reduceat(pairs[:, self.by_dst], self.dst_starts, axis=1)

    def over_pairs(self, bundles: np.ndarray) -> np.ndarray:
        """(R, pairs) sums of (R, bundles)."""
        if len(self.pair_starts) == len(self.bundle_pair):
            return bundles
        return np.add.reduceat(bundles, self.pair_starts, axis=1)


class _Run:
    """The state of R parameter sets that advance in parallel, each at its own time; (R, ...) arrays."""

    def __init__(self, flows: _Flows, sending: np.ndarray, receiving: np.ndarray):
        self.flows, self.sending, self.receiving = flows, sending, receiving
        num_rows = len(receiving)
        self.rows = np.arange(num_rows)
        self.now_s = np.zeros(num_rows)
        self.finished_s = np.zeros((num_rows, len(flows.order)))
        self.next = np.tile(flows.first, (num_rows, 1))
        self.served_bytes = np.zeros(self.next.shape)
        self.sends_left = np.tile(flows.num_sends, (num_rows, 1))
        self.receives_left = np.tile(flows.num_receives, (num_rows, 1))
        self.num_senders = np.tile(np.bincount(flows.src_end), (num_rows, 1))
        self.num_receivers = np.tile(np.bincount(flows.dst_end), (num_rows, 1))

    def step(self, batch_fraction: float) -> None:
        """Share the capacities, advance to the next completion and to those that follow immediately."""
        rate = self._rates()
        left_s = np.maximum(self.flows.size_bytes[self.next] - self.served_bytes, 0.0) / rate
        soonest_s = left_s.min(axis=1)
        until_s = soonest_s + batch_fraction * (self.now_s + soonest_s)
        last_s = self._complete(left_s, rate, until_s)
        self.served_bytes += rate * last_s[:, None]
        self.now_s += last_s
        unfinished = self.num_receivers.any(axis=1)
        if not unfinished.all():
            self._keep(np.asarray(unfinished))

    def _complete(self, left_s: np.ndarray, rate: np.ndarray, until_s: np.ndarray) -> np.ndarray:
        """Take out the messages complete within `until_s` from now; (R,) when the last of them is."""
        flows, last_s = self.flows, np.zeros(len(until_s))
        row, bundle = np.nonzero(left_s <= until_s[:, None])
        taken_s = left_s[row, bundle]
        while len(row):
            message = flows.message[self.next[row, bundle]]
            self.finished_s[self.rows[row], message] = self.now_s[row] + taken_s
            np.maximum.at(last_s, row, taken_s)
            _count_down(self.sends_left, self.num_senders, row, flows.message_src[message], flows.src_end)
            _count_down(
                self.receives_left, self.num_receivers, row, flows.message_dst[message], flows.dst_end
            )
            self.next[row, bundle] += 1
            left_bytes = flows.size_bytes[self.next[row, bundle]] - self.served_bytes[row, bundle]
            taken_s = left_bytes / rate[row, bundle]
            more = taken_s <= until_s[row]
            row, bundle, taken_s = row[more], bundle[more], taken_s[more]
        return last_s

    def _rates(self) -> np.ndarray:
        """(R, bundles) bytes/s of one message of each."""
        flows = self.flows
        unfinished = flows.end - self.next
        weight = np.ones(unfinished.shape)
        if flows.bundle_dst is not None:
            weight /= np.maximum(self.receives_left[:, flows.bundle_dst], 1)
        if flows.fraction.shape[1] == 1:
            capacity_src = _at(self.sending, self.num_senders)[..., 0]
            capacity_dst = _at(self.receiving, self.num_receivers)[..., 0]
        else:
            capacity_src, capacity_dst, weight = self._mixed(unfinished, weight)
        level = _fill(flows, flows.over_pairs(unfinished * weight), capacity_src, capacity_dst)
        return weight * level[:, flows.bundle_pair]

    def _mixed(self, unfinished: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Capacities of the ends, and the weights scaled by class, where there are several classes."""
        flows = self.flows
        sent = _at(self.sending, self.num_senders)[:, flows.pair_src[flows.bundle_pair], flows.bundle_class]
        dst_end = flows.pair_dst[flows.bundle_pair]
        received = np.einsum(
            "rbc,bc->rb", _at(self.receiving, self.num_receivers)[:, dst_end], flows.fraction
        )
        share = unfinished * weight
        shares, sent, total = (flows.over_pairs(values) for values in (share, share * sent, share * received))
        capacity_src = _mean(flows.over_src(np.add, sent), flows.over_src(np.add, shares))
        capacity_dst = _mean(flows.over_dst(np.add, total), flows.over_dst(np.add, shares))
        return capacity_src, capacity_dst, weight * received / capacity_dst[:, dst_end]

    def _keep(self, rows: np.ndarray) -> None:
        for name in ("rows", "now_s", "next", "served_bytes", "sends_left", "receives_left", "num_senders",
                     "num_receivers", "sending", "receiving"):  # fmt: skip
            setattr(self, name, getattr(self, name)[rows])


def _fill(
    flows: _Flows, weight: np.ndarray, capacity_src: np.ndarray, capacity_dst: np.ndarray
) -> np.ndarray:
    """(R, pairs) the rate, per unit of weight, at which each pair's messages stop rising; 1 without weight.

    An end would be full at the level capacity/weight if no other end were. Settling other ends never lowers
    this level, so every end with the lowest level among the ends that it shares messages with is full at it:
    many are settled at once, not only the lowest of all.
    """
    result = np.ones(weight.shape)
    while (rising := weight > 0).any():
        level_src = _level(capacity_src, flows.over_src(np.add, weight))
        level_dst = _level(capacity_dst, flows.over_dst(np.add, weight))
        level = np.minimum(level_src[:, flows.pair_src], level_dst[:, flows.pair_dst])
        level = np.where(rising, level, np.inf)
        full_src = level_src <= flows.over_src(np.minimum, level)
        full_dst = level_dst <= flows.over_dst(np.minimum, level)
        settled = rising & (full_src[:, flows.pair_src] | full_dst[:, flows.pair_dst])
        result[settled] = level[settled]
        used = np.multiply(weight, level, out=np.zeros(weight.shape), where=settled)
        capacity_src = capacity_src - flows.over_src(np.add, used)
        capacity_dst = capacity_dst - flows.over_dst(np.add, used)
        weight = np.where(settled, 0.0, weight)
    return result


def _count_down(
    left: np.ndarray, active: np.ndarray, row: np.ndarray, process: np.ndarray, end: np.ndarray
) -> None:
    """Take one message each from `left` (R, processes), and from `active` (R, ends) the processes without any
    left."""
    np.subtract.at(left, (row, process), 1)
    done = left[row, process] == 0
    if done.any():
        row, process = np.unique(np.column_stack([row[done], process[done]]), axis=0).T
        np.subtract.at(active, (row, end[process]), 1)


def _at(bandwidth: np.ndarray, count: np.ndarray) -> np.ndarray:
    """(R, ends, C) BW(n), from (R, N, C) and (R, ends) n; for an idle end an unused number."""
    return bandwidth[np.arange(len(count))[:, None], np.maximum(count, 1) - 1]


def _level(capacity: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.divide(capacity, weight, out=np.full(weight.shape, np.inf), where=weight > 0)


def _mean(total: np.ndarray, share: np.ndarray) -> np.ndarray:
    return np.divide(total, share, out=np.ones(share.shape), where=share > 0)
