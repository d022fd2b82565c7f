"""Even sharing of all links of a described machine, against closed forms and the model of both ends."""

import dataclasses

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.simulated_machine import parse_simulated_machine
from earlybird.data.simulated_network import Dragonfly, FatTree
from earlybird.predict import predict_exchange
from earlybird.predict.on_machine import predict_on_machine

NIC = 1e9
PLAIN = dataclasses.replace(parse_simulated_machine("8x1x2"), nic_bandwidth_bytes_per_s=NIC)
LATENCY_S = PLAIN.levels["inter_node"].latency_s
LAYOUT = parse_layout("8x1x2")


def exchange_times_s(pattern, layout, machine, **more):
    return predict_on_machine(pattern, layout, machine, **more).time_s


def test_where_only_nics_limit_it_is_max_min_sharing_of_both_ends():
    rng = np.random.default_rng(5)
    src = rng.integers(0, 16, 60)
    dst = (src // 2 * 2 + 2 + rng.integers(0, 14, 60)) % 16
    pattern = Pattern(src, dst, rng.integers(10**5, 10**7, 60))
    protocol = Protocol(name="all", latency_s=0.0, sender_waits=True, bandwidth_bytes_per_s={1: NIC})
    profile = Profile({"inter_node": Level("inter_node", (protocol,))})
    fair_s = predict_exchange(pattern, LAYOUT, profile, "fair").time_s
    times_s = exchange_times_s(pattern, LAYOUT, PLAIN, batch_fraction=0.0)
    assert times_s - LATENCY_S == pytest.approx(fair_s, rel=1e-6)
    assert exchange_times_s(pattern, LAYOUT, PLAIN) == pytest.approx(times_s, rel=0.005)


@pytest.mark.parametrize(
    ("network", "shared_by"),
    [
        (None, 2),  # the NIC of a node
        (FatTree(4, 4), 2),
        (FatTree(4, 1), 8),  # the one uplink
        (Dragonfly(2, 2, 2, 1), 8),  # the one link between the groups
        (Dragonfly(2, 2, 2, 2), 4),
    ],
)
def test_what_shares_a_link_between_switches_waits_for_it(network, shared_by):
    """The ranks of nodes 0 to 3 send to those of nodes 4 to 7."""
    kind = {"fat_tree": network} if isinstance(network, FatTree) else {"dragonfly": network}
    pattern = Pattern(np.arange(8), np.arange(8) + 8, np.full(8, 10**6))
    times_s = exchange_times_s(pattern, LAYOUT, dataclasses.replace(PLAIN, **kind))
    assert times_s == pytest.approx(np.full(16, LATENCY_S + shared_by * 1e6 / NIC))


def test_a_core_takes_messages_of_its_own_node_and_of_others_at_once():
    core = PLAIN.levels["intra_socket"].bandwidth_bytes_per_s
    pattern = Pattern(np.array([1, 2]), np.array([0, 0]), np.array([10**6, 10**6]))
    times_s = exchange_times_s(pattern, LAYOUT, PLAIN)
    assert times_s[1] == pytest.approx(PLAIN.levels["intra_socket"].latency_s + 1e6 / (core - NIC))
    assert times_s[0] == pytest.approx(LATENCY_S + 1e6 / NIC)


def test_messages_between_sockets_of_a_node_have_their_own_limit_and_share_what_is_between():
    machine = parse_simulated_machine("1x2x16")
    cost, layout = machine.levels["inter_socket"], parse_layout("1x2x16")
    alone = predict_on_machine(Pattern(np.array([0]), np.array([16]), np.array([10**7])), layout, machine)
    expected_s = cost.latency_s + 1e7 / cost.bandwidth_bytes_per_s
    assert alone.time_s[[0, 16]] == pytest.approx([expected_s] * 2)
    ranks = np.arange(16)
    all_of_them = predict_on_machine(Pattern(ranks, ranks + 16, np.full(16, 10**7)), layout, machine)
    assert all_of_them.time_s == pytest.approx(
        np.full(32, cost.latency_s + 16e7 / machine.sockets_bandwidth_bytes_per_s)
    )
    assert not all_of_them.inter_node_s.any()


def test_each_link_between_switches_adds_its_latency_and_a_small_message_costs_its_sender_little():
    tree = FatTree(4, 4, hop_latency_s=1e-6)
    pattern = Pattern(np.array([0, 0]), np.array([2, 8]), np.array([1000, 1000]))
    found = predict_on_machine(pattern, LAYOUT, dataclasses.replace(PLAIN, fat_tree=tree))
    assert found.time_s[8] - found.time_s[2] == pytest.approx(2e-6)
    assert found.time_s[0] == pytest.approx(2 * PLAIN.send_overhead_s)
    assert found.inter_node_s == pytest.approx(found.time_s)


def test_empty_exchanges_and_messages_of_no_bytes():
    nothing = np.zeros(0, dtype=np.int64)
    assert not predict_on_machine(Pattern(nothing, nothing, nothing), LAYOUT, PLAIN).time_s.any()
    empty = predict_on_machine(Pattern(np.array([0]), np.array([2]), np.array([0])), LAYOUT, PLAIN)
    assert empty.time_s[2] == pytest.approx(LATENCY_S)


def test_a_layout_that_does_not_fit_on_the_machine_is_refused():
    pattern = Pattern(np.array([0]), np.array([1]), np.array([8]))
    with pytest.raises(InputError, match="needs 9 nodes"):
        predict_on_machine(pattern, parse_layout("9x1x1"), PLAIN)


def test_nearly_equal_messages_are_not_late():
    pattern = Pattern(np.array([0, 1]), np.array([2, 4]), np.array([1_000_000, 1_001_000]))
    times_s = exchange_times_s(pattern, LAYOUT, PLAIN)
    assert times_s[[2, 4]] - LATENCY_S == pytest.approx([2e6 / NIC, 2.001e6 / NIC], rel=1e-3)


def test_all_messages_of_a_socket_share_its_memory():
    machine = parse_simulated_machine("1x1x16")
    pattern = Pattern(np.arange(8), np.arange(8) + 8, np.full(8, 10**7))
    times_s = exchange_times_s(pattern, parse_layout("1x1x16"), machine)
    expected_s = machine.levels["intra_socket"].latency_s + 8e7 / machine.socket_bandwidth_bytes_per_s
    assert times_s == pytest.approx(np.full(16, expected_s))


def test_directions_between_sockets_and_between_routers_do_not_share():
    sockets = dataclasses.replace(parse_simulated_machine("1x3x16"), sockets_bandwidth_bytes_per_s=NIC)
    layout, latency_s = parse_layout("1x3x16"), sockets.levels["inter_socket"].latency_s
    for src, dst, shared_by in (([0, 16], [16, 0], 1), ([0, 16], [16, 32], 2)):
        pattern = Pattern(np.array(src), np.array(dst), np.array([10**6, 10**6]))
        times_s = predict_on_machine(pattern, layout, sockets).time_s
        assert times_s.max() == pytest.approx(latency_s + shared_by * 1e6 / NIC)
    # Nodes 0 and 1 have a router, 2 and 3 the other one of the group: one local link.
    routers = dataclasses.replace(PLAIN, dragonfly=Dragonfly(2, 2, 2, 1))
    for src, dst, shared_by in (([0, 4], [4, 0], 1), ([0, 2], [4, 6], 2)):
        pattern = Pattern(np.array(src), np.array(dst), np.array([10**6, 10**6]))
        assert exchange_times_s(pattern, LAYOUT, routers).max() == pytest.approx(
            LATENCY_S + shared_by * 1e6 / NIC
        )


def test_ranks_without_messages_take_no_time_and_too_many_messages_are_refused():
    pattern = Pattern(np.array([0]), np.array([2]), np.array([10**6]))
    assert not exchange_times_s(pattern, LAYOUT, PLAIN)[[1, 3, 15]].any()
    many = np.zeros(10_001, dtype=np.int64)
    with pytest.raises(InputError, match="10001 messages, and the model links takes at most 10000"):
        predict_on_machine(Pattern(many, many + 2, many), LAYOUT, PLAIN)
