"""Verdicts on synthetic tournaments: planted faults are named, clean ones give no alarm."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.check.facts import fact_findings, fact_remarks
from earlybird.check.measured import measured_from
from earlybird.check.suspicions import confirmed, find_suspicions, unjudged_links
from earlybird.check.verdicts import findings
from earlybird.data.check import BOTH, COMPUTATION, LATENCY, LINK, NODE, Check, CheckedNode

SIZE_BYTES = 1 << 20
ETHERNET = {"mtu": 9000, "state": "up", "rate_mbit": 25000, "driver": "mlx5_core"}
INTERFACES = {
    "eth0": ETHERNET,
    "ib1:1": {"state": "ACTIVE", "rate": "100 Gb/sec (4X EDR)"},
    "docker0": {"mtu": 1500, "state": "down", "driver": "bridge"},
}


def judged(machine, min_effect=0.1):
    """The findings of two launches, as measure/check.py has them."""
    hosts = [f"node{k}" for k in range(machine.nodes)]
    like = np.zeros((machine.nodes, machine.nodes), dtype=int)
    first, second = (measured_from(machine.samples(), machine.nodes) for _ in range(2))
    before, again = (find_suspicions(one, like, min_effect) for one in (first, second))
    found = findings(confirmed(again, before), second, hosts, SIZE_BYTES, SIZE_BYTES)
    return found + fact_findings(hosts, second.facts, min_effect)


def check_of(found, nodes):
    values = np.zeros((nodes, nodes))
    return Check(
        "mpich", "hosts", SIZE_BYTES, SIZE_BYTES, 0.1, 1.0, 1.0, 2,
        tuple(CheckedNode(f"node{k}") for k in range(nodes)), values, values, values, values, tuple(found),
    )  # fmt: skip


def named(machine):
    return [(one.kind, one.hosts, one.measure) for one in judged(machine)]


def slower(factor, measures, senders=None, receivers=None):
    def change(measure, one, other, time_s):
        hit = measure in measures and (senders is None or one in senders)
        return time_s * (factor if hit and (receivers is None or other in receivers) else 1.0)

    return change


@pytest.mark.parametrize("nodes", [3, 4, 5, 8, pytest.param(17, marks=pytest.mark.thorough)])
def test_nodes_that_are_alike_give_no_alarm(machine, nodes):
    assert not [found for seed in range(40) for found in judged(machine(nodes, seed))]


def test_a_second_launch_is_what_prevents_some_alarms(machine):
    """Otherwise the test above would not need it."""
    single = 0
    for seed in range(30):
        one = machine(8, seed)
        measured = measured_from(one.samples(), 8)
        single += bool(find_suspicions(measured, np.zeros((8, 8), dtype=int), 0.0))
    assert single > 0


@pytest.mark.parametrize("nodes", [3, 4, 5, 8, 17])
@pytest.mark.parametrize(
    ("senders", "receivers", "measure"),
    [((1,), None, "sending bandwidth"), (None, (1,), "receiving bandwidth")],
)
def test_a_node_that_sends_or_receives_at_half_the_rate_is_named_once(
    machine, nodes, senders, receivers, measure
):
    one = machine(nodes)
    one.change = slower(2, ("send", "both"), senders, receivers)
    assert named(one) == [(NODE, ("node1",), measure)]


@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_a_node_that_is_slow_in_both_directions_is_named_once(machine, nodes):
    one = machine(nodes)

    def change(measure, sender, receiver, time_s):
        return 2 * time_s if measure in ("send", "both") and 1 in (sender, receiver) else time_s

    one.change = change
    assert named(one) == [(NODE, ("node1",), "sending and receiving bandwidth")]


@pytest.mark.parametrize("nodes", [4, 5, 8, 17])
def test_one_slow_link_is_named_with_its_direction(machine, nodes):
    one = machine(nodes)
    one.change = slower(2, ("send", "both"), (1,), (2,))
    (found,) = judged(one)
    assert (found.kind, found.hosts, found.measure) == (LINK, ("node1", "node2"), "bandwidth")
    assert found.value == pytest.approx(SIZE_BYTES / 200e-6, rel=0.1)
    assert found.expected == pytest.approx(SIZE_BYTES / 100e-6, rel=0.1)


def test_a_link_explains_the_incast_and_outcast_that_wait_for_it(machine):
    one = machine(5)

    def change(measure, sender, receiver, time_s):
        waits = (measure, sender) in (("outcast", 1), ("incast", 2))
        is_slow = measure in ("send", "both") and (sender, receiver) == (1, 2)
        return 10 * time_s if waits or is_slow else time_s

    one.change = change
    assert named(one) == [(LINK, ("node1", "node2"), "bandwidth")]


def test_a_link_that_is_slow_only_in_both_directions_at_once_has_another_cause(machine):
    one = machine(6)
    one.change = slower(1.7, ("both",), (1,), (2,))
    (found,) = judged(one)
    assert found.sentence.startswith("the link between node1 and node2: bandwidth both directions")
    assert "duplex" in found.cause


def test_a_pair_whose_messages_are_at_times_sent_one_after_the_other_is_not_slow(machine):
    """As Open MPI does over TCP: most often for some pairs, never for others."""
    one = machine(6)

    def change(measure, sender, receiver, time_s):
        if measure != "both" or {sender, receiver} != {1, 2}:
            return time_s
        return time_s * np.array([2.0] * 7 + [1.0])

    one.change = change
    assert named(one) == []


def test_between_nodes_that_share_cores_only_large_effects_count(machine):
    one = machine(6)
    one.change = lambda measure, sender, receiver, time_s: (
        {"both": 2.0, "compute": 1.25, "latency": 1.8}.get(measure, 1.0) * time_s if sender == 1 else time_s
    )
    measured = measured_from(one.samples(), 6)
    like = np.zeros((6, 6), dtype=int)
    assert {found.measure for found in find_suspicions(measured, like, 0.1)} == {BOTH, COMPUTATION, LATENCY}
    assert not find_suspicions(replace(measured, shares_cores=True), like, 0.1)


def test_that_one_rank_of_each_pair_begins_earlier_makes_no_link_slow(machine):
    """Its time of two messages at once has two latencies more: much of a message on a fast network."""
    one = machine(8)
    one.change = lambda measure, sender, receiver, time_s: (
        1.3 * time_s if measure == "both" and receiver < sender else time_s
    )
    assert judged(one) == []


def test_a_link_with_a_longer_latency_is_named_without_direction(machine):
    one = machine(6)
    one.change = lambda measure, i, j, time_s: (
        2 * time_s if measure == "latency" and {i, j} == {1, 2} else time_s
    )
    (found,) = judged(one)
    assert found.sentence.startswith("the link between node1 and node2: latency")


def test_lost_segments_are_named_before_the_time_that_they_cost(machine):
    one = machine(6)
    one.change = slower(1.5, ("send", "both"), None, (1,))
    one.lost = {(k, 1): 0.01 for k in range(6)}
    (found,) = judged(one)
    assert (found.hosts, found.measure) == (("node1",), "receiving lost segments")
    assert 0.005 < found.value < 0.015


def test_lost_segments_of_other_traffic_are_not_counted(machine):
    """Of a network that bypasses TCP: too few segments for the messages."""
    one = machine(6)
    one.segments, one.lost = 200, {(4, 2): 0.5}
    assert judged(one) == []


def test_a_link_that_loses_segments_is_named(machine):
    one = machine(6)
    one.lost = {(4, 2): 0.01}
    assert named(one) == [(LINK, ("node4", "node2"), "lost segments")]


def test_a_difference_below_the_minimum_effect_counts_as_none(machine):
    one = machine(8)
    one.change = slower(1.2, ("send",), (1,), None)
    assert judged(one, min_effect=0.3) == []
    assert [found.hosts for found in judged(one)] == [("node1",)]


@pytest.mark.parametrize("part", ["incast", "outcast"])
def test_a_node_that_is_slow_only_among_all_is_named(machine, part):
    one = machine(5)
    one.change = slower(1.5, (part,), (3,))
    (found,) = judged(one)
    assert (found.kind, found.hosts, found.measure) == (NODE, ("node3",), part)
    # Of all four messages together, as in the table of nodes.
    assert found.expected == pytest.approx(4 * SIZE_BYTES / 300e-6, rel=0.1)


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"compute_cpu_s": [10e-3, 10e-3]}, "other processes"),
        ({"compute_cpu_s": [10e-3, 10e-3], "cores": 2, "cpu_limit": 2.0}, "other processes"),
        ({"compute_cpu_s": [10e-3, 10e-3], "cores": 2, "cpu_limit": 1.0}, "limits CPU time"),
        ({"compute_cpu_s": [20e-3, 20e-3]}, "lower rate"),
        ({"compute_cpu_s": [20e-3, 20e-3], "stolen_share": 0.2}, "hypervisor"),
    ],
)
def test_a_core_that_computes_slower_has_a_cause(machine, facts, cause):
    one = machine(4)
    one.facts = {2: {"compute_s": [10e-3, 20e-3]} | facts}
    (found,) = [found for found in judged(one) if found.measure == "computation"]
    assert found.hosts == ("node2",)
    assert cause in found.cause


def test_a_wrong_clock_is_named_with_its_offset(machine):
    one = machine(4)
    one.offsets_s = np.array([0.0, 2.0, 1e-4, -1e-4])
    (found,) = judged(one)
    assert (found.hosts, found.measure) == (("node1",), "clock offset")
    assert found.value_text == "+2 s"
    # Also if it is that of the first node, against which all others are wrong.
    one.offsets_s = np.array([0.0, -2.0, -2.0, -2.0])
    assert [(found.hosts, found.value_text) for found in judged(one)] == [(("node0",), "+2 s")]


@pytest.mark.parametrize(
    ("offsets", "wrong"),
    [
        ((0, 5, 10), {0, 1, 2}),
        ((0, 1, -1), {0, 1, 2}),
        ((0, 2, 4, 6), {0, 1, 2, 3}),
        ((0, 0, 3, 6), {0, 1, 2, 3}),
        ((0, 0, 3, 3, 6, 6), set(range(6))),
        (range(0, 60, 10), set(range(6))),
        ((0, 0, 0, 3), {3}),
        ((5, 0, 0, 0, 9), {0, 4}),
        ((0, 0, 3, 3), {2, 3}),
        ((0, 1, 2, 0, 0), {1, 2}),
    ],
)
def test_clocks_far_from_those_of_the_majority_are_named_and_without_one_all(machine, offsets, wrong):
    nodes = len(offsets)
    for measure, unit in (("offsets_s", 1.0), ("drifts", 1e-3)):
        one = machine(nodes)
        setattr(one, measure, getattr(one, measure) + unit * np.array(offsets))
        found = judged(one)
        assert {int(finding.hosts[0].removeprefix("node")) for finding in found} == wrong
        groups = check_of(found, nodes).groups()
        assert bool(groups) == (2 * len(wrong) >= nodes)
        assert all("which" in group.sentence and "not known" in group.sentence for group in groups)
        if len(wrong) == nodes:
            assert groups[0].sentence.startswith(f"the clocks of all {nodes} nodes are not synchronized: ")


def test_a_drift_counts_beyond_what_the_comparisons_can_resolve(machine):
    """0.4 ms/s: of comparisons 0.1 s apart, errors of 2 us make 0.04 ms/s, and errors of 50 us 1 ms/s."""
    one = machine(4)
    one.drifts = np.array([0.0, 0.0, 4e-4, 0.0])
    assert [(found.hosts, found.measure) for found in judged(one)] == [(("node2",), "clock drift")]
    one.round_trip_s = 100e-6
    assert judged(one) == []


def test_devices_that_share_the_messages_are_not_different_devices(machine):
    one = machine(5)
    before = {"device_bytes_before": {}}
    for node, (first, second) in enumerate([(10, 9), (9, 10), (10, 8), (8, 10), (10, 10)]):
        one.facts[node] = before | {"device_bytes": {"ib0": 1e9 * first, "ib1": 1e9 * second}}
    assert judged(one) == []


@pytest.mark.parametrize(
    ("facts", "measure", "value"),
    [
        ({"shm_bytes": 1 << 26}, "/dev/shm", "64 MiB"),
        ({"cores": 1}, "cores", "1"),
        ({"single_copy": False}, "single copy between processes", "forbidden"),
        ({"mpi_version": "MPICH 4.1"}, "MPI library", "MPICH 4.1"),
        ({"settings": {}}, "UCX_TLS", "(none)"),
        ({"device_bytes": {"ib0": 5.0, "eth0": 9.0}}, "network device", "eth0"),
        ({"cpu_limit": 0.5}, "CPU limit", "0.5"),
        ({"smt": "on"}, "SMT", "on"),
        ({"hardware_threads": 2}, "hardware threads", "2"),
        ({"interfaces": INTERFACES | {"eth0": {**ETHERNET, "mtu": 1400}}}, "MTU of eth0", "1400"),
        (
            {"interfaces": INTERFACES | {"eth0": {**ETHERNET, "rate_mbit": 1000}}},
            "rate of eth0",
            "1000 Mbit/s",
        ),
        ({"interfaces": INTERFACES | {"ib1:1": {"state": "DOWN"}}}, "state of ib1:1", "DOWN"),
        ({"interfaces": {"eth0": ETHERNET}}, "state of ib1:1", "absent"),
    ],
)
def test_a_node_that_differs_in_a_fact_is_named(machine, facts, measure, value):
    one = machine(4)
    usual = {"smt": "off", "hardware_threads": 4, "interfaces": INTERFACES}
    one.facts = dict.fromkeys(range(3), usual) | {3: usual | facts}
    (found,) = judged(one)
    assert (found.hosts, found.measure, found.value_text) == (("node3",), measure, value)


def test_interfaces_inside_a_node_may_differ_unless_they_carry_the_messages(machine):
    one = machine(4)
    one.facts = {node: {"interfaces": INTERFACES} for node in range(4)}
    one.facts[2] = {"interfaces": INTERFACES | {"docker0": {"mtu": 1400, "state": "up", "driver": "bridge"}}}
    assert judged(one) == []
    carried = {"device_bytes": {"docker0": 9.0}, "device_bytes_before": {}}
    one.facts = {node: facts | carried for node, facts in one.facts.items()}
    assert {found.measure for found in judged(one)} == {"MTU of docker0", "state of docker0"}


def ethernet(**values):
    return {"interfaces": {"eth0": ETHERNET | values}, "device": "eth0"}


def infiniband(rate):
    return {"interfaces": {"ib0:1": {"state": "ACTIVE", "rate": rate}}}


@pytest.mark.parametrize(
    ("facts", "bad"),
    [
        ([ethernet(rate_mbit=10000)] * 4 + [ethernet(rate_mbit=100000)], []),
        ([ethernet(rate_mbit=10000)] * 3 + [ethernet(rate_mbit=25000)] * 2, []),
        ([ethernet(rate_mbit=25000)] * 3 + [ethernet(rate_mbit=1000)] * 3, [3, 4, 5]),
        ([ethernet(rate_mbit=1000), ethernet(rate_mbit=10000), ethernet(rate_mbit=25000)], [0]),
        ([infiniband("100 Gb/sec (4X EDR)")] * 3 + [infiniband("200 Gb/sec (4X HDR)")], []),
        ([infiniband("100 Gb/sec (4X EDR)")] * 2 + [infiniband("25 Gb/sec (1X EDR)")] * 2, [2, 3]),
        ([ethernet()] * 2 + [ethernet(mtu=1500)] * 2, [0, 1, 2, 3]),
        ([ethernet(), ethernet(mtu=1500), ethernet(mtu=576)], [0, 1, 2]),
        ([ethernet()] * 2 + [ethernet(state="down")] * 2, [2, 3]),
        ([{"cores": 4, "cpu_limit": 4.0}] * 4 + [{"cores": 4, "cpu_limit": 8.0}], []),
        ([{"cores": 4, "cpu_limit": 4.0}] * 4 + [{"cores": 4}], []),
        ([{"cores": 4}] * 4 + [{"cores": 4, "cpu_limit": 4.0}], [4]),
        ([{"cores": 4, "cpu_limit": 4.0}] * 4 + [{"cores": 4, "cpu_limit": 2.0}], [4]),
    ],
)
def test_better_nodes_are_not_at_fault_and_halves_that_cannot_work_together_are(facts, bad):
    found = fact_findings([f"node{k}" for k in range(len(facts))], facts, 0.1)
    assert [one.hosts[0] for one in found] == [f"node{k}" for k in bad]
    assert all(one.value_text != one.expected_text for one in found)


def test_several_faster_interfaces_are_a_remark():
    facts = [ethernet(rate_mbit=10000)] * 3 + [ethernet(rate_mbit=25000)] * 2
    assert fact_remarks(list("abcde"), facts, 0.1) == [
        "nodes differ in rate of eth0: 10000 Mbit/s on 3 nodes and 25000 Mbit/s on 2 nodes"
    ]


def test_that_most_nodes_have_less_is_a_remark():
    hosts = [f"node{k}" for k in range(5)]
    facts = [{"memory_bytes": 1 << (38 if k < 2 else 37)} for k in range(5)]
    assert fact_findings(hosts, facts, 0.1) == []
    assert fact_remarks(hosts, facts, 0.1) == [
        "nodes differ in memory: 128 GiB on 3 nodes and 256 GiB on 2 nodes"
    ]


def test_more_than_others_is_no_fault_and_halves_are_a_remark():
    hosts = [f"node{k}" for k in range(4)]
    facts = [{"shm_bytes": 1 << 33, "cores": 4} for _ in hosts]
    facts[0] = {"shm_bytes": 1 << 34, "cores": 4}
    assert fact_findings(hosts, facts, 0.1) == []
    facts[0]["cores"] = facts[1]["cores"] = 8
    assert fact_findings(hosts, facts, 0.1) == []
    assert fact_remarks(hosts, facts, 0.1) == ["nodes differ in cores: 8 on 2 nodes and 4 on 2 nodes"]


def test_memory_that_differs_by_pages_is_alike_and_half_of_it_is_named():
    hosts = [f"node{k}" for k in range(4)]
    facts = [{"memory_bytes": (1 << 38) + 4096 * k} for k in range(4)]
    assert fact_findings(hosts, facts, 0.1) == [] == fact_remarks(hosts, facts, 0.1)
    facts[2] = {"memory_bytes": 1 << 37}
    (found,) = fact_findings(hosts, facts, 0.1)
    assert (found.hosts, found.measure, found.value_text) == (("node2",), "memory", "128 GiB")


def test_empty_folders_in_a_path_are_no_difference():
    """Open MPI's ssh launcher leaves a colon at its end on all nodes but the first."""
    paths = ["/opt/mpi/lib", "/opt/mpi/lib:", ":/opt/mpi/lib", "/opt/other/lib:"]
    (found,) = fact_findings(list("abcd"), [{"settings": {"LD_LIBRARY_PATH": path}} for path in paths], 0.1)
    assert found.hosts == ("d",) and found.value_text == "/opt/other/lib"


def test_a_variable_that_half_of_the_nodes_have_is_a_remark():
    hosts = [f"node{k}" for k in range(4)]
    facts = [{"settings": {"UCX_TLS": "tcp"} if k < 2 else {}} for k in range(4)]
    assert fact_remarks(hosts, facts, 0.1) == [
        "nodes differ in UCX_TLS: tcp on 2 nodes and (none) on 2 nodes"
    ]
    # Numbers that a launcher gives to the nodes are no difference.
    facts = [{"settings": {"OMPI_MCA_ess_base_vpid": str(k)}} for k in range(4)]
    assert fact_remarks(hosts, facts, 0.1) == []
    facts = [{"settings": {"PRTE_MCA_ess_base_num_procs": str(k // 3)}} for k in range(4)]
    assert fact_remarks(hosts, facts, 0.1) == fact_findings(hosts, facts, 0.1) == []


def test_two_nodes_are_not_judged(machine):
    one = machine(2)
    one.change = slower(5, ("send", "both", "latency"), (1,))
    one.offsets_s = np.array([0.0, 9.0])
    one.facts = {1: {"cores": 1}}
    assert judged(one) == []


def test_where_ranks_share_cores_only_twice_the_latency_and_30_percent_more_time_count(machine):
    measured = measured_from(machine(6).samples(), 6)
    measured.latency_s[1, 2] = measured.latency_s[2, 1] = 3e-6
    like = np.zeros((6, 6), dtype=int)
    measured.send_s[3, 4] *= 1.25
    assert {one.measure for one in find_suspicions(measured, like, 0.1)} == {"latency", "bandwidth"}
    object.__setattr__(measured, "shares_cores", True)
    assert find_suspicions(measured, like, 0.1) == []


# Of four virtual nodes on two cores, each shares its core with one other; of three, only two do.
def sharing(nodes):
    return (np.add.outer(np.arange(nodes), np.arange(nodes)) + 1) % 2


@pytest.mark.parametrize("nodes", [3, 4])
def test_links_that_have_too_few_of_their_like_are_not_compared_with_faster_ones(machine, nodes):
    """Beside other work, pairs on one core are slower than others by any factor."""
    measured = measured_from(machine(nodes).samples(), nodes)
    like = sharing(nodes)
    for name in ("latency_s", "send_s"):
        getattr(measured, name)[like == 1] *= 5
    assert find_suspicions(replace(measured, shares_cores=True), like, 0.1) == []
    assert unjudged_links(measured, like) == [(0, 2), (1, 3)][: nodes - 2]
    # The others are judged all the same.
    measured.send_s[1, 2] *= 2
    found = find_suspicions(replace(measured, shares_cores=True), like, 0.1)
    assert [one.item for one in found] == [("bandwidth", 1, 2)]


def test_a_slow_node_is_named_by_the_links_that_are_judged(machine):
    measured = measured_from(machine(4).samples(), 4)
    measured.send_s[1] *= 2
    found = findings(
        find_suspicions(replace(measured, shares_cores=True), sharing(4), 0.1),
        measured, [f"node{k}" for k in range(4)], SIZE_BYTES, SIZE_BYTES,
    )  # fmt: skip
    assert [(one.kind, one.hosts, one.measure) for one in found] == [(NODE, ("node1",), "sending bandwidth")]


def test_all_links_are_judged_where_none_share_a_core_or_all_have_enough_like(machine):
    for nodes, like in ((3, np.zeros((3, 3), dtype=int)), (3, np.ones((3, 3), dtype=int)), (8, sharing(8))):
        assert unjudged_links(measured_from(machine(nodes).samples(), nodes), like) == []


def test_links_of_one_kind_are_compared_with_each_other(machine):
    """Pairs on one core answer late; without classes, half of them would be suspicious."""
    measured = measured_from(machine(8).samples(), 8)
    like = np.add.outer(np.arange(8), np.arange(8)) % 2
    measured.latency_s[like == 0] *= 3
    assert find_suspicions(measured, like, 0.1) == []
    measured.latency_s[1, 2] = measured.latency_s[2, 1] = 2 * measured.latency_s[1, 2]
    assert {one.item[1:] for one in find_suspicions(measured, like, 0.1)} == {(1, 2), (2, 1)}
