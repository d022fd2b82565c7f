"""What an exchange takes on a simulated machine if the messages that pass a link share it evenly.

Independent of `earlybird.models`, and for a machine whose links are known, which a profile does not contain.
"""

import numpy as np
from scipy.sparse import csr_array

from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.simulated_machine import SimulatedMachine

# A fiftieth: errors of a percent, and some hundred steps.
STEP = 2e-2


def exchange_times_s(
    pattern: Pattern, layout: Layout, machine: SimulatedMachine, step: float = STEP
) -> np.ndarray:
    """(P,) seconds: the latency, and max-min fair sharing of all links of `machine`, its NICs and its cores.

    A rank is done when all that it receives has arrived, and what it sends, if that is not eager.
    Completions within the fraction `step` of the elapsed time are one.
    """
    passes, bytes_per_s = _links(pattern, layout, machine)
    complete_s = _complete(passes, bytes_per_s, pattern.bytes.astype(float), step)
    between = layout.node[pattern.src] != layout.node[pattern.dst]
    levels = machine.levels
    complete_s += np.where(between, levels["inter_node"].latency_s, levels["intra_socket"].latency_s)
    done_s = np.zeros(layout.num_ranks)
    np.maximum.at(done_s, pattern.dst, complete_s)
    waits = pattern.bytes > machine.eager_bytes
    np.maximum.at(done_s, pattern.src[waits], complete_s[waits])
    # Each eager message occupies its sender, then its receiver.
    eager = ~waits
    busy_s = np.bincount(pattern.src[eager], minlength=layout.num_ranks) * machine.send_overhead_s
    busy_s += np.bincount(pattern.dst[eager], minlength=layout.num_ranks) * machine.receive_overhead_s
    return np.maximum(done_s, busy_s)


def _links(pattern: Pattern, layout: Layout, machine: SimulatedMachine) -> tuple[csr_array, np.ndarray]:
    """(L, M) which message passes which link, and (L,) bytes/s, for machines with one socket per node."""
    numbers: dict[tuple, int] = {}
    bytes_per_s: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    network = machine.network
    own = machine.levels["intra_socket"].bandwidth_bytes_per_s
    nic = machine.nic_bandwidth_bytes_per_s
    between = (
        {link.name: link.bandwidth_bytes_per_s or nic for link in network.links(machine.nodes)}
        if network
        else {}
    )
    for message, (src, dst) in enumerate(zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True)):
        first, last = int(layout.node[src]), int(layout.node[dst])
        passed = {("core", src, "out"): own, ("core", dst, "in"): own}
        passed |= dict.fromkeys([("socket", first), ("socket", last)], machine.socket_bandwidth_bytes_per_s)
        if first != last:
            passed |= {("nic", first, "out"): nic, ("nic", last, "in"): nic}
            hops = network.route(first, last) if network else []
            passed |= {(hop.link, hop.up): between[hop.link] for hop in hops}
        for link, rate in passed.items():
            if link not in numbers:
                numbers[link] = len(bytes_per_s)
                bytes_per_s.append(rate)
            rows.append(numbers[link])
            columns.append(message)
    shape = len(bytes_per_s), len(pattern.src)
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape), np.array(bytes_per_s)


def _complete(passes: csr_array, bytes_per_s: np.ndarray, left_bytes: np.ndarray, step: float) -> np.ndarray:
    """When each message is complete, if all start at 0."""
    complete_s, now_s = np.zeros(len(left_bytes)), 0.0
    active = left_bytes > 0
    while active.any():
        rate = _shares(passes, bytes_per_s, active)
        ends_s = left_bytes[active] / rate[active]
        step_s = max(ends_s.min(), step * now_s)
        now_s += step_s
        ended = np.flatnonzero(active)[ends_s <= step_s * (1 + 1e-9)]
        left_bytes = np.maximum(left_bytes - rate * step_s, 0)
        complete_s[ended] = now_s
        active[ended] = False
    return complete_s


def _shares(passes: csr_array, bytes_per_s: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Raise all rates together; messages of a full link keep theirs; repeat."""
    rate, rising, free = np.zeros(len(active)), active.copy(), bytes_per_s.copy()
    by_message = passes.T.tocsr()
    while rising.any():
        count = passes @ rising.astype(float)
        share = np.full(len(free), np.inf)
        np.divide(free, count, out=share, where=count > 0)
        full = share <= share.min() * (1 + 1e-9)
        stops = rising & (by_message @ full.astype(float) > 0)
        rate[stops] = share.min()
        free = np.maximum(free - passes @ np.where(stops, rate, 0.0), 0)
        rising &= ~stops
    return rate
