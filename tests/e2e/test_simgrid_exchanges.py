"""Exchanges in SimGrid, on machines for which the assumptions of a model hold: its times are predicted."""

import json

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.run import Run
from earlybird.data.simulated_machine import SCHEMA
from earlybird.predict import predict_exchange

RANKS = 16
ONE_BYTES_PER_S, ALL_BYTES_PER_S = 4e9, 10e9
# SMPI sends so many with each message. Ranks that are done send some more, to end the iteration: messages are
# so large that this is a millionth.
HEADER_BYTES = 16


def machine(socket_bytes_per_s, **keys):
    """One message gets ONE_BYTES_PER_S, all of a socket `socket_bytes_per_s`; nothing else takes time."""
    cost = {"latency_s": 1e-15, "bandwidth_bytes_per_s": ONE_BYTES_PER_S}
    levels = dict.fromkeys(("intra_socket", "inter_socket", "inter_node"), cost)
    return {
        "schema": SCHEMA, "nodes": 1, "sockets": 1, "cores": RANKS, "levels": levels, "eager_bytes": 0,
        "socket_bandwidth_bytes_per_s": socket_bytes_per_s, "send_overhead_s": 0, "receive_overhead_s": 0,
    } | keys  # fmt: skip


def profile(level, bytes_per_s_of):
    table = {n: bytes_per_s_of(n) for n in range(1, RANKS + 1)}
    protocol = Protocol(name="rendezvous", latency_s=0.0, sender_waits=True, bandwidth_bytes_per_s=table)
    return Profile({level: Level(level, (protocol,))})


@pytest.fixture
def compared(earlybird, tmp_path, simgrid):
    """What a pattern takes on a simulated machine, and what models say: each (P,) seconds."""

    def run(pattern, machine, profile, layout, models):
        save_pattern(pattern, tmp_path / "pattern.npz")
        (tmp_path / "machine.json").write_text(json.dumps(machine))
        earlybird(
            "replay",
            "pattern.npz",
            "--layout",
            layout,
            "--launcher",
            "simgrid:machine.json",
            "--launches",
            "1",
            "-o",
            "run",
        )
        sample = Run.open(tmp_path / "run").samples()[0]
        sent = Pattern(pattern.src, pattern.dst, pattern.bytes + HEADER_BYTES)
        predicted_s = [
            predict_exchange(sent, parse_layout(layout), profile, model).time_s for model in models
        ]
        return np.median(sample.rank_times_s, axis=0), *predicted_s

    return run


def permutation(seed):
    """Every rank sends one message and receives one."""
    rng = np.random.default_rng(seed)
    ranks = rng.permutation(RANKS)
    return Pattern(ranks, np.roll(ranks, 1), rng.integers(10**6, 4 * 10**7, RANKS))


@pytest.mark.parametrize("seed", [1, 2])
def test_receivers_that_share_a_socket_finish_as_in_the_staircase(compared, seed):
    """(5), (6): N receivers get BW(N) = min(N BW(1), BW_max), which links that messages share evenly give."""
    table = profile("intra_socket", lambda n: min(n * ONE_BYTES_PER_S, ALL_BYTES_PER_S))
    shared = machine(ALL_BYTES_PER_S)
    measured_s, staircase_s, max_rate_s = compared(
        permutation(seed), shared, table, "1x1x16", ("staircase", "max-rate")
    )
    assert staircase_s == pytest.approx(measured_s, rel=2e-6)
    assert np.abs(max_rate_s / measured_s - 1).max() > 0.05


@pytest.mark.parametrize("seed", [1, 2])
def test_messages_of_a_receiver_complete_as_in_equation_9(compared, seed):
    """(8), (9): four ranks receive from twelve, each at BW(1); a sender waits for its message."""
    rng = np.random.default_rng(seed)
    pattern = Pattern(np.arange(4, RANKS), rng.integers(0, 4, 12), rng.integers(10**4, 10**7, 12))
    table = profile("intra_socket", lambda n: n * ONE_BYTES_PER_S)
    unlimited = machine(RANKS * ONE_BYTES_PER_S)
    measured_s, staircase_s = compared(pattern, unlimited, table, "1x1x16", ("staircase",))
    assert staircase_s == pytest.approx(measured_s, rel=1e-6)


CROSSBAR = {}
FAT_TREE = {"fat_tree": {"nodes_per_leaf": 4, "uplinks_per_leaf": 4, "bandwidth_bytes_per_s": 1e12}}
DRAGONFLY = {
    "dragonfly": {
        "groups": 2, "routers_per_group": 2, "nodes_per_router": 2,
        "local_bandwidth_bytes_per_s": 1e12, "global_bandwidth_bytes_per_s": 1e12,
    }
}  # fmt: skip
NODES = {"nodes": 8, "cores": 2, "nic_bandwidth_bytes_per_s": ONE_BYTES_PER_S}


@pytest.mark.parametrize("network", [CROSSBAR, FAT_TREE, DRAGONFLY])
def test_between_nodes_fast_switches_leave_the_model_fair(compared, network):
    """Eight nodes of two ranks with any messages between nodes: only the NICs limit them."""
    rng = np.random.default_rng(3)
    src = rng.integers(0, RANKS, 40)
    dst = (src // 2 * 2 + 2 + rng.integers(0, RANKS - 2, 40)) % RANKS
    pattern = Pattern(src, dst, rng.integers(10**6, 10**7, 40))
    table = profile("inter_node", lambda n: ONE_BYTES_PER_S)
    measured_s, fair_s, staircase_s = compared(
        pattern, machine(1e12, **NODES, **network), table, "8x1x2", ("fair", "staircase")
    )
    assert fair_s == pytest.approx(measured_s, rel=1e-6)
    assert np.abs(staircase_s / measured_s - 1).max() > 0.1


def test_a_link_between_switches_limits_what_passes_it(compared):
    """Two leaf switches with one link between them: eight ranks send over it at once."""
    pattern = Pattern(np.arange(8), np.arange(8) + 8, np.full(8, 10**6))
    tree = {"nodes_per_leaf": 4, "uplinks_per_leaf": 1, "bandwidth_bytes_per_s": 2e9}
    table = profile("inter_node", lambda n: ONE_BYTES_PER_S)
    measured_s, fair_s = compared(pattern, machine(1e12, **NODES, fat_tree=tree), table, "8x1x2", ("fair",))
    assert measured_s == pytest.approx(np.full(RANKS, 8 * (1e6 + HEADER_BYTES) / 2e9), rel=1e-6)
    assert fair_s.max() < 0.2 * measured_s.max()
