"""However many nodes are slow, exactly these are named: by the smallest explanation, and as two groups."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.check.measured import measured_from
from earlybird.check.outliers import link_outliers, outliers
from earlybird.check.suspicions import confirmed, faster_remarks, find_suspicions, unjudged_links
from earlybird.check.verdicts import findings
from earlybird.data.check import LINK, NODE, Finding
from earlybird.data.covers import connected, smallest_covers
from earlybird.present.subjects.check.answer import explanations
from tests.python.check.test_verdicts import SIZE_BYTES, check_of, judged, sharing, slower

MODES = ("sending", "receiving", "sending and receiving")


def slow_nodes(slow, mode, factor=2.0):
    """A change of times for nodes that send, receive or do both at a fraction of the rate."""
    sends, receives = "sending" in mode, "receiving" in mode

    def change(measure, one, other, time_s):
        hit = {
            "send": (sends and one in slow) or (receives and other in slow),
            "both": one in slow or other in slow,
            "outcast": sends and one in slow,
            "incast": receives and one in slow,
        }.get(measure, False)
        return time_s * factor if hit else time_s

    return change


def drawn(nodes, count, seed):
    return set(np.random.default_rng(seed).choice(nodes, count, replace=False).tolist())


def named(found):
    assert {one.kind for one in found} <= {NODE}
    return {int(one.hosts[0].removeprefix("node")) for one in found}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "nodes", [*range(3, 9), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(9, 13))]
)
def test_any_number_of_slow_nodes_is_named_exactly(machine, nodes, mode):
    for count in range(1, nodes) if nodes < 9 else (1, nodes // 2, nodes - 2, nodes - 1):
        slow = drawn(nodes, count, 100 * nodes + count)
        one = machine(nodes, seed=count)
        one.change = slow_nodes(slow, mode)
        found = judged(one)
        assert named(found) == slow
        check = check_of(found, nodes)
        assert bool(check.groups()) == (2 * count >= nodes)
        for group in check.groups():
            assert set(group.hosts) == {f"node{k}" for k in slow} == set(check.bad_hosts())
            assert group.expected == pytest.approx(2 * group.value, rel=0.1)


def test_seven_of_eight_slow_nodes_are_one_of_two_groups(machine):
    one = machine(8)
    one.change = slow_nodes(set(range(7)), "sending")
    (group,) = check_of(judged(one), 8).groups()
    assert group.sentence.startswith("there are two groups of nodes by bandwidth: ")
    assert " at node0, node1, node2, node3, node4, node5 and node6; " in group.sentence
    assert group.sentence.endswith(" at node7")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nodes", [4, 6, 7, 8])
def test_no_innocent_of_virtual_nodes_that_share_two_cores_is_named(machine, nodes, mode):
    """Links on one core are of another kind, and of four nodes not judged: less is known of who is slow."""
    like = sharing(nodes)
    for count in range(1, nodes):
        slow = drawn(nodes, count, 10 * nodes + count)
        one, change = machine(nodes, seed=count), slow_nodes(slow, mode)
        one.change = lambda measure, i, j, time_s, change=change: (
            change(measure, i, j, time_s) * (3 if measure == "latency" and like[i, j] else 1)
        )
        launches = [replace(measured_from(one.samples(), nodes), shares_cores=True) for _ in range(2)]
        before, again = (find_suspicions(measured, like, 0.1) for measured in launches)
        unjudged = unjudged_links(launches[1], like)
        hosts = [f"node{k}" for k in range(nodes)]
        found = findings(
            confirmed(again, before), launches[1], hosts, SIZE_BYTES, SIZE_BYTES, unjudged
        )  # fmt: skip
        assert named(found) == slow


@pytest.mark.parametrize("nodes", [3, 6, 11])
def test_slow_nodes_of_different_rates_are_named_together(machine, nodes):
    for count in {1, nodes // 2, nodes - 2}:
        slow = drawn(nodes, count, count)
        factors = {node: 1.3 * 1.7**k for k, node in enumerate(sorted(slow))}
        one = machine(nodes, seed=count)

        def change(measure, sender, receiver, time_s, factors=factors):
            if measure in ("send", "both"):
                return time_s * max(factors.get(sender, 1.0), factors.get(receiver, 1.0))
            return time_s * factors.get(sender, 1.0) if measure in ("incast", "outcast") else time_s

        one.change = change
        assert named(judged(one)) == slow


@pytest.mark.parametrize(("measure", "name"), [("compute", "computation"), ("incast", "incast")])
@pytest.mark.parametrize("count", [3, 5, 7])
def test_most_nodes_that_compute_or_receive_slowly_are_named(machine, measure, name, count):
    one = machine(8 if measure == "incast" else 9)
    slow = drawn(one.nodes, count, count)
    one.change = slower(2, (measure,), slow)
    found = judged(one)
    assert named(found) == slow and {finding.measure for finding in found} == {name}


@pytest.mark.parametrize(("nodes", "slow"), [(3, None), (4, None), (5, 1), (8, None), (8, 5)])
def test_one_node_that_computes_faster_accuses_no_other(machine, nodes, slow):
    """It is the one that differs from a majority that is alike; a slower one is named as without it."""
    one = machine(nodes)
    factors = {0: 0.5} | ({} if slow is None else {slow: 2.0})
    one.change = lambda what, i, j, time_s: time_s * factors.get(i, 1.0) if what == "compute" else time_s
    assert named(judged(one)) == factors.keys() - {0}
    (remark,) = faster_remarks(measured_from(one.samples(), nodes), [f"node{k}" for k in range(nodes)], 0.1)
    assert remark.startswith("node0 computes faster than all others, ")


@pytest.mark.parametrize("measure", ["compute", "incast", "outcast"])
@pytest.mark.parametrize(
    "factors",
    [(1, 1.5, 5), (1, 2, 4), (1, 1.3, 1.7), (1, 1, 2, 4), (1, 2, 2, 4, 4, 4)]
    + [tuple(np.repeat(levels, 3)) for levels in ((1, 2, 3), (1, 1.3, 1.7), (1, 2, 4), (1, 1.5, 5))],
)
def test_all_nodes_slower_than_the_fastest_are_named_whatever_their_rates(machine, measure, factors):
    one = machine(len(factors))
    one.change = lambda what, i, j, time_s: time_s * factors[i] if what == measure else time_s
    assert named(judged(one)) == {node for node, factor in enumerate(factors) if factor > 1}


def test_noisy_nodes_that_are_alike_are_not_of_several_rates():
    """With 6 % of noise, in two launches."""
    random = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        nodes = int(random.integers(3, 13))
        first, again = (outliers(random.lognormal(0, 0.06, nodes), 0.1)[0] for _ in range(2))
        alarms += bool((first & again).any())
    assert alarms <= 4


@pytest.mark.parametrize("count", [1, 4, 6])
def test_most_nodes_that_lose_segments_are_named(machine, count):
    one = machine(8)
    slow = drawn(8, count, count)
    one.lost = {(sender, node): 0.01 for sender in range(8) for node in slow}
    assert named(judged(one)) == slow


@pytest.mark.parametrize("count", [1, 4, 5])
def test_nodes_that_answer_late_are_named_by_latency_and_not_by_the_bandwidth_it_costs(machine, count):
    one = machine(8)
    late = drawn(8, count, count)

    def change(measure, sender, receiver, time_s):
        delay_s = 50e-6 * ((sender in late) + (receiver in late))
        return time_s + {"latency": 1, "send": 4, "both": 3}.get(measure, 0) * delay_s

    one.change = change
    found = judged(one)
    assert named(found) == late and {finding.measure for finding in found} == {"latency"}


def test_a_delayed_link_is_late_and_not_narrow(machine):
    one = machine(6)

    def change(measure, sender, receiver, time_s):
        late = {sender, receiver} == {1, 2}
        return time_s + late * {"latency": 1e-3, "send": 3e-3, "both": 2e-3}.get(measure, 0)

    one.change = change
    (found,) = judged(one)
    assert (found.kind, found.hosts, found.measure) == (LINK, ("node1", "node2"), "latency")
    # A narrow link delays small messages that queue there, but by less than it costs large ones.
    one.change = lambda measure, sender, receiver, time_s: (
        change(measure, sender, receiver, time_s) + 0.1 * (measure == "send") * ({sender, receiver} == {1, 2})
    )
    assert {found.measure for found in judged(one)} == {"bandwidth"}


def between(part, measures, factor, one_way=False):
    """A change of the times of links from one part of the nodes to another."""

    def change(measure, i, j, time_s):
        hit = part[i] < part[j] if one_way else part[i] != part[j]
        return time_s * factor if hit and measure in measures else time_s

    return change


@pytest.mark.parametrize("switches", [(4, 4), (3, 3, 2), (5, 3), (2, 2)])
def test_distance_between_switches_makes_no_node_and_no_link_slow(machine, switches):
    """Links between the groups are compared with each other."""
    one = machine(sum(switches))
    one.change = between(np.repeat(np.arange(len(switches)), switches), ("latency",), 1.5)
    assert judged(one) == []


@pytest.mark.parametrize(
    ("part", "factor", "one_way"),
    [
        (np.repeat(np.arange(len(switches)), switches), 10, False)
        for switches in ((2, 2), (4, 2), (5, 3), (6, 2), (2, 2, 2), (3, 3, 3), (8, 8))
    ]
    + [(np.arange(8) % 2, 3, False), (np.arange(8) // 4, 3, True)],
)
@pytest.mark.parametrize("measure", ["bandwidth", "latency"])
def test_a_slow_trunk_divides_the_nodes_and_none_of_them_is_accused(machine, part, factor, one_way, measure):
    if one_way and measure == "latency":
        return  # it has no direction
    one = machine(len(part))
    one.change = between(part, ("send", "both") if measure == "bandwidth" else (measure,), factor, one_way)
    found = judged(one)
    assert {(finding.kind, finding.measure) for finding in found} == {(LINK, measure)}
    check = replace(check_of(found, len(part)), send_s=1.0 - np.eye(len(part)))
    (division,) = check.divisions()
    assert [set(hosts) for hosts in division.parts] == [
        {f"node{k}" for k in np.flatnonzero(part == number)} for number in range(max(part) + 1)
    ]
    ratio = division.value / division.expected
    assert (1 / ratio if measure == "bandwidth" else ratio) == pytest.approx(factor, rel=0.1)
    assert explanations(check)[0] == division.sentence
    # Those that are left are of one part, in which all links are fast.
    assert len({part[k] for k in range(len(part)) if f"node{k}" not in check.bad_hosts()}) == 1


def test_messages_that_do_not_arrive_between_groups_have_no_median():
    links = [("node0", "node2"), ("node0", "node3"), ("node1", "node2"), ("node1", "node3")]
    found = [Finding(LINK, hosts, "messages", "do not arrive", "arrive", "") for hosts in links]
    check = replace(check_of(found, 4), send_s=np.kron(np.eye(2), np.ones((2, 2))) - np.eye(4))
    assert check.divisions() == [] and len(explanations(check)) == len(links) + 1


def test_a_slow_node_beside_a_slow_trunk_is_named_for_itself(machine):
    part = np.repeat([0, 1], 4)
    one, trunk, node = (
        machine(8),
        between(part, ("send", "both"), 10),
        slow_nodes({1}, "sending and receiving", 3),
    )
    one.change = lambda measure, i, j, time_s: max(
        trunk(measure, i, j, time_s), node(measure, i, j, time_s), key=np.max
    )
    found = judged(one)
    assert named([finding for finding in found if finding.kind == NODE]) == {1}
    assert {finding.kind for finding in found} == {NODE, LINK}


def test_groups_of_noisy_nodes_that_are_alike_are_not_found(machine):
    """Two hundred runs with 5 % of noise."""
    random = np.random.default_rng(3)
    for seed in range(200):
        nodes = int(random.integers(3, 13))
        values = 1e-4 * random.lognormal(0, 0.05, (nodes, nodes))
        np.fill_diagonal(values, np.nan)
        slow, _ = link_outliers(values, np.zeros((nodes, nodes), dtype=int), 0.1)
        assert slow.mean() < 0.5, seed


@pytest.mark.parametrize(
    ("links", "covers"),
    [
        ([(0, 1)], [{0}, {1}]),
        ([(0, 1), (0, 2), (3, 0)], [{0}]),
        ([(0, 1), (1, 2), (2, 3)], [{0, 2}, {1, 2}, {1, 3}]),
        ([(i, j) for i in range(3) for j in range(3, 6)], [{0, 1, 2}, {3, 4, 5}]),
        ([(i, j) for i in range(5) for j in range(i)], [set(range(5)) - {k} for k in (4, 3, 2, 1, 0)]),
    ],
)
def test_all_smallest_sets_of_nodes_that_explain_links_are_found(links, covers):
    found, is_certain = smallest_covers(links)
    assert is_certain and [set(cover) for cover in found] == covers


def cliques(size, count):
    """Cliques of so many nodes, each of which has a link to its like in the clique before."""
    inside = [(k * size + i, k * size + j) for k in range(count) for i in range(size) for j in range(i)]
    return inside + [(k * size + i, k * size + i - size) for k in range(1, count) for i in range(size)]


@pytest.mark.parametrize(("size", "count", "number"), [(10, 2, 90), (12, 2, 132), (3, 6, 96)])
def test_of_many_covers_that_are_as_small_none_is_omitted_and_no_node_is_accused_by_its_number(
    machine, size, count, number
):
    links = cliques(size, count)
    covers, is_certain = smallest_covers(links)
    assert is_certain and len(covers) == number
    assert not frozenset.intersection(*covers)
    nodes = size * count + 9
    one = machine(nodes)
    pairs = {(i, j) for link in links for i, j in (link, link[::-1])}
    one.change = lambda measure, i, j, time_s: (
        3 * time_s if measure in ("send", "both") and (i, j) in pairs else time_s
    )
    found = judged(one)
    assert {finding.kind for finding in found} == {LINK}
    (sentence,) = [text for text in explanations(check_of(found, nodes)) if "that could be" in text]
    choices = sentence.partition("that could be ")[2].partition(",")[0].split(" or ")
    assert len(choices) == len(set(choices)) == 3 and choices[2] == f"{number - 3} other choices"
    assert all(" in the place of " in choice for choice in choices[:2])


def test_many_links_are_explained_approximately():
    random = np.random.default_rng(1)
    links = [(i, j) for i in range(60) for j in range(i) if random.random() < 0.15]
    (cover,), is_certain = smallest_covers(links)
    assert not is_certain and all(set(link) & cover for link in links)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [3, 50])
def test_among_many_nodes_exactly_the_slow_ones_are_named(machine, mode, count):
    """So many that not all explanations are tried."""
    slow = drawn(60, count, count)
    one = machine(60)
    one.change = slow_nodes(slow, mode)
    measured = measured_from(one.samples(), 60)
    hosts = [f"node{k}" for k in range(60)]
    suspicious = find_suspicions(measured, np.zeros((60, 60), dtype=int), 0.1)
    assert named(findings(suspicious, measured, hosts, SIZE_BYTES, SIZE_BYTES)) == slow


def test_links_without_a_common_node_are_explained_apart():
    assert connected([(3, 1), (1, 2), (5, 4), (4, 5)]) == [[(1, 2), (1, 3)], [(4, 5)]]


def test_of_a_bad_link_either_node_may_be_left_out():
    check = check_of([Finding(LINK, ("node1", "node2"), "bandwidth", 1.0, 2.0, "cable")], 4)
    assert check.bad_hosts() == ["node1"] and check.ties() == [[["node1"], ["node2"]]]
    more = Finding(LINK, ("node3", "node2"), "bandwidth", 1.0, 2.0, "cable")
    check = replace(check, findings=(*check.findings, more))
    assert check.bad_hosts() == ["node2"] and check.ties() == []
