"""Predict the time of an exchange on a machine whose links are all described, also those between switches."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.simulated_machine import SimulatedMachine
from earlybird.models.links import BATCH_FRACTION, completion_times_s

if TYPE_CHECKING:  # imported late, as by `models.links`
    from scipy.sparse import csr_array

MODEL = "links"
# The time grows with the messages times the different rates, times the completions.
MAX_MESSAGES = 10_000


def predict_on_machine(
    pattern: Pattern, layout: Layout, machine: SimulatedMachine, *, batch_fraction: float = BATCH_FRACTION
) -> Prediction:
    """Predict the seconds per rank for the messages of `pattern`, all posted at once, if the messages that
    pass a link of `machine` share it evenly: links of cores, sockets, NICs, and between switches.

    A rank is done when all messages that it receives, and those that it sends and that are larger than
    `eager_bytes`, have arrived. It is not done before the overheads of its smaller messages, one after the
    other; but these overheads delay no message, so the messages of a rank that sends many small ones arrive
    too early. `batch_fraction` is that of `models.links.completion_times_s`.

    Returns
    -------
    Prediction of the model `links`, which has no profile. The times of messages inside a node and between
    nodes do not add up here, so the whole time of a rank is in `inter_node_s` if its last message goes
    between nodes, else in `intra_node_s`. For a rank that only sends small messages it is in `inter_node_s`
    if any of them goes between nodes.

    Raises
    ------
    InputError : the pattern has a rank outside the layout or more than `MAX_MESSAGES`; the layout does not
        fit on the machine.
    """
    pattern.check_ranks(layout.num_ranks)
    machine.check(layout)
    if pattern.num_messages > MAX_MESSAGES:
        raise InputError(
            f"the pattern has {pattern.num_messages} messages, and the model {MODEL} takes at most "
            f"{MAX_MESSAGES}, which take about a minute; give a smaller one, or a profile and --model fair"
        )
    network = _Network(pattern, layout, machine)
    arrived_s = completion_times_s(
        network.passes(),
        network.bandwidth_bytes_per_s(),
        pattern.bytes,
        network.of_level("bandwidth_bytes_per_s"),
        batch_fraction,
    )
    complete_s = arrived_s + network.latency_s()
    waits = pattern.bytes > machine.eager_bytes
    inside_s, between_s, receive_s = (np.zeros(layout.num_ranks) for _ in range(3))
    np.maximum.at(receive_s, pattern.dst, arrived_s)
    for done_s, here in ((inside_s, ~network.between), (between_s, network.between)):
        np.maximum.at(done_s, pattern.dst[here], complete_s[here])
        np.maximum.at(done_s, pattern.src[here & waits], complete_s[here & waits])
    busy_s = np.bincount(pattern.src[~waits], minlength=layout.num_ranks) * machine.send_overhead_s
    busy_s += np.bincount(pattern.dst[~waits], minlength=layout.num_ranks) * machine.receive_overhead_s
    time_s = np.maximum(np.maximum(inside_s, between_s), busy_s)
    last_is_between = between_s > inside_s
    sends_between = np.zeros(layout.num_ranks, dtype=bool)
    sends_between[pattern.src[network.between]] = True
    last_is_between |= (inside_s == 0) & sends_between  # all it does is to send small messages
    prediction = Prediction(
        model=MODEL,
        receive_s=receive_s,
        intra_node_s=np.where(last_is_between, 0.0, time_s),
        inter_node_s=np.where(last_is_between, time_s, 0.0),
        pattern_sha256=pattern.sha256(),
        layout=layout.text,
        extra={"machine": machine.describe()},
    )
    return prediction.require_possible()


class _Network:
    """The links of a machine, numbered, and the links that each message passes."""

    def __init__(self, pattern: Pattern, layout: Layout, machine: SimulatedMachine) -> None:
        self._machine, self._layout = machine, layout
        self._src, self._dst = pattern.src, pattern.dst
        self._first, self._last = layout.node[pattern.src], layout.node[pattern.dst]
        self.between = self._first != self._last
        first, last = layout.socket[pattern.src], layout.socket[pattern.dst]
        self._apart = ~self.between & (first != last)
        self._up = first < last
        self._from_socket = self._first * machine.sockets + first
        self._to_socket = self._last * machine.sockets + last
        self._switched, self._num_hops = self._between_switches()

    def latency_s(self) -> np.ndarray:
        """Return the (M,) latency of each message, including that of the links between switches."""
        hop_s = self._machine.network.hop_latency_s if self._machine.network else 0.0
        return self.of_level("latency_s") + self._num_hops * hop_s

    def of_level(self, name: str) -> np.ndarray:
        """Return the (M,) attribute `name` of the level of each message."""
        inside, apart, between = (
            getattr(self._machine.levels[level], name)
            for level in ("intra_socket", "inter_socket", "inter_node")
        )
        return np.where(self.between, between, np.where(self._apart, apart, inside))

    def bandwidth_bytes_per_s(self) -> np.ndarray:
        """Return the (L,) bandwidth of each link."""
        return np.concatenate([bandwidth for bandwidth, *_ in self._kinds()])

    def passes(self) -> "csr_array":
        """Return the (L, M) matrix that is 1 where a message passes a link."""
        rows, columns, begin = [], [], 0
        for bandwidth, links, messages in self._kinds():
            rows.append(begin + links)
            columns.append(messages)
            begin += len(bandwidth)
        row, column = np.concatenate(rows), np.concatenate(columns)
        from scipy.sparse import csr_array

        return csr_array((np.ones(len(row)), (row, column)), shape=(begin, len(self._src)))

    def _kinds(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the bandwidths of each kind of link, and the pairs of a link and a message that passes it."""
        machine, every = self._machine, np.arange(len(self._src))
        core = np.full(self._layout.num_ranks, machine.levels["intra_socket"].bandwidth_bytes_per_s)
        yield core, self._src, every
        yield core, self._dst, every
        socket = np.full(machine.nodes * machine.sockets, machine.socket_bandwidth_bytes_per_s)
        other = np.flatnonzero(self._from_socket != self._to_socket)
        links = np.concatenate([self._from_socket, self._to_socket[other]])
        yield socket, links, np.concatenate([every, other])
        here = np.flatnonzero(self._apart)
        sockets = np.full(2 * machine.nodes, machine.sockets_bandwidth_bytes_per_s)
        yield sockets, 2 * self._first[here] + self._up[here], here
        here = np.flatnonzero(self.between)
        nic = np.full(machine.nodes, machine.nic_bandwidth_bytes_per_s)
        yield nic, self._first[here], here
        yield nic, self._last[here], here
        yield self._switched

    def _between_switches(self) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """Return the links between switches, two for the directions of each; and (M,) the number that a
        message passes.
        """
        num_hops = np.zeros(len(self._src), dtype=np.int64)
        network, nothing = self._machine.network, np.zeros(0, dtype=np.int64)
        if network is None:
            return (np.zeros(0), nothing, nothing), num_hops
        links = network.links(self._machine.nodes)
        number = {link.name: k for k, link in enumerate(links)}
        own = [link.bandwidth_bytes_per_s or self._machine.nic_bandwidth_bytes_per_s for link in links]
        here = np.flatnonzero(self.between)
        pairs, which = np.unique(
            np.stack([self._first[here], self._last[here]], axis=1), axis=0, return_inverse=True
        )
        routes = [
            np.array([2 * number[hop.link] + hop.up for hop in network.route(first, last)], dtype=np.int64)
            for first, last in pairs.tolist()
        ]
        which = which.reshape(-1)
        num_hops[here] = [len(routes[k]) for k in which]
        passed = np.concatenate([nothing, *(routes[k] for k in which)])
        return (np.repeat(own, 2), passed, np.repeat(here, num_hops[here])), num_hops
