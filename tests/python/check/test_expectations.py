"""What is slower than expected is found, also if all nodes are slow alike; busy nodes are undecided."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.check.expectations import expected_of_check, parse_figure, with_figures
from earlybird.check.facts import fact_findings
from earlybird.check.load import busy_nodes, split_undecided
from earlybird.check.measured import measured_from
from earlybird.check.plan import make_plan
from earlybird.data.check import COMPUTATION, LINK, NODE, Check, CheckedNode, Finding, check_from_json
from earlybird.data.errors import InputError
from earlybird.present.subjects.check.answer import explanations, verdict
from tests.python.check.test_verdicts import slower


def check_of(measured, plan, hosts, found=()):
    nodes = tuple(
        CheckedNode(
            host, *(float(getattr(measured, name)[k]) for name in ("compute_s", "incast_s", "outcast_s"))
        )
        for k, host in enumerate(hosts)
    )
    arrays = (
        np.nan_to_num(getattr(measured, name)) for name in ("latency_s", "send_s", "both_s", "lost_share")
    )
    return Check(
        "mpich", "hosts", plan.size_bytes, plan.cast_bytes, 0.1, 1.0, 1.0, 1, nodes, *arrays, tuple(found)
    )


@pytest.fixture
def measured(machine):
    def measure(change=None, nodes=4, seed=1):
        one = machine(nodes, seed)
        one.change = change or one.change
        return measured_from(one.samples(), nodes)

    return measure


HOSTS = [f"n{k}" for k in range(4)]
PLAN = make_plan(4)


def test_all_nodes_that_are_slower_than_in_an_earlier_check_are_found(measured):
    expected = expected_of_check(check_of(measured(), PLAN, HOSTS), "the check before")
    for seed in range(20):
        assert expected.findings(measured(seed=seed), HOSTS, PLAN, 0.1) == []
    found = expected.findings(measured(slower(2, ("send", "incast"))), HOSTS, PLAN, 0.1)
    assert [(one.hosts[0], one.measure) for one in found] == [
        (host, measure) for host in HOSTS for measure in ("bandwidth", "incast")
    ]
    assert found[0].sentence.startswith("n0: bandwidth ") and ", expected " in found[0].sentence
    check = check_of(measured(slower(2, ("send",))), PLAN, HOSTS, found[::2])
    (group,) = check.groups()
    assert group.sentence.startswith("all 4 nodes: bandwidth ") and check.bad_hosts() == HOSTS
    assert explanations(check) == [group.sentence]
    assert verdict(check).startswith("all of 4 nodes are to be left out")
    assert check_from_json(check.to_json()).findings == check.findings


def test_other_hosts_are_compared_with_the_median_of_the_good_ones(measured):
    bad = Finding(NODE, ("n1",), "sending bandwidth", 1.0, 2.0, "")
    before = check_of(measured(slower(5, ("compute",), (1,))), PLAN, HOSTS, [bad])
    expected = expected_of_check(before, "before")
    assert "n1" not in expected.of_hosts
    found = expected.findings(measured(slower(2, ("compute",))), list("abcd"), PLAN, 0.1)
    assert {one.measure for one in found} == {COMPUTATION} and len(found) == 4


def test_incasts_of_another_number_of_nodes_are_not_compared(measured):
    expected = expected_of_check(check_of(measured(), PLAN, HOSTS), "before")
    now = measured(slower(9, ("incast", "outcast")), nodes=6)
    assert expected.findings(now, list("abcdef"), make_plan(6), 0.1) == []


def test_given_figures_count_for_all_nodes(measured):
    expected = with_figures(None, dict([parse_figure("latency=1us"), parse_figure("bandwidth=1GB/s")]))
    found = expected.findings(measured(), HOSTS, PLAN, 0.1)
    assert {one.measure for one in found} == {"latency"} and len(found) == 4
    assert "latency 1 us" in found[0].cause
    # Before those of a check.
    before = expected_of_check(check_of(measured(), PLAN, HOSTS), "before")
    assert with_figures(before, {"latency": 1e-3}).findings(measured(), HOSTS, PLAN, 0.1) == []


@pytest.mark.parametrize(
    "text",
    ["speed=3", "bandwidth=fast", "latency=0s", "bandwidth=0", "latency=-1us", "latency=2", "bandwidth=11"],
)
def test_figures_that_are_none_are_refused(text):
    with pytest.raises(InputError, match="--expect"):
        parse_figure(text)


def test_a_path_is_no_figure(tmp_path):
    assert parse_figure("checked/check.json") is None
    (tmp_path / "a=b").touch()
    assert parse_figure(str(tmp_path / "a=b")) is None


def finding(kind, hosts, measure, cause="look"):
    return Finding(kind, hosts, measure, 2.0, 1.0, cause)


def loads(*values, cores=2):
    return [{"cores": cores, "load_of_others": load} for load in values]


def test_if_most_nodes_were_busy_times_are_undecided_and_facts_are_not():
    facts = loads(0.3, 2.0, 6.0, 6.0)
    busy = busy_nodes(HOSTS, facts)
    assert busy == {"n1": "load 2 on 2 cores", "n2": "load 6 on 2 cores", "n3": "load 6 on 2 cores"}
    assert fact_findings(HOSTS, facts, 0.1) == []
    assert busy_nodes(HOSTS, ()) == {}
    slow = finding(NODE, ("n3",), "sending bandwidth")
    link = finding(LINK, ("n0", "n3"), "latency")
    shm, other = finding(NODE, ("n3",), "/dev/shm"), finding(NODE, ("n0",), "computation")
    decided, undecided = split_undecided([slow, link, shm, other], busy)
    assert decided == [shm, other] and [one.hosts for one in undecided] == [("n3",), ("n0", "n3")]
    assert "undecided because n3 had load 6 on 2 cores" in undecided[0].sentence


@pytest.mark.parametrize(
    ("values", "cores", "bad"),
    [
        ((0, 0, 0, 64, 0, 0, 0, 0), 64, ["n3"]),
        ((0.3, 0, 0, 6), 2, ["n3"]),
        ((33, 0, 40, 0, 1), 64, ["n0", "n2"]),
        ((0, 31, 0), 64, []),
        ((6, 6, 0, 0), 2, []),
        ((6, 6, 6), 2, []),
        ((6, 0), 2, []),
    ],
)
def test_a_few_busy_nodes_among_idle_ones_are_bad_and_their_times_are_decided(values, cores, bad):
    hosts, facts = [f"n{k}" for k in range(len(values))], loads(*values, cores=cores)
    found = fact_findings(hosts, facts, 0.1)
    assert [one.hosts[0] for one in found] == bad
    assert {one.measure for one in found} <= {"load of others"}
    if bad:
        assert busy_nodes(hosts, facts) == {}
        assert f"load of others {values[int(bad[0][1:])]:g}, others 0; " in found[0].sentence


def test_undecided_suspicions_are_said_and_leave_no_node_out(measured):
    check = check_of(measured(), PLAN, HOSTS)
    check = replace(check, undecided=(finding(NODE, ("n3",), "computation", "undecided because of load"),))
    assert check.bad_hosts() == [] and "undecided because of load" in explanations(check)[0]
    assert verdict(check) == (
        "1 suspicion is undecided because cores were busy; otherwise all 4 nodes and 6 links are alike"
    )
    assert check_from_json(check.to_json()).undecided == check.undecided


def test_a_machine_of_all_nodes_has_one_load(measured):
    before = measured()
    assert {one["load_of_others"] for one in before.with_load(3.0).facts} == {3.0}
    assert before.with_load(None) is before
