"""A check whose nodes cannot complete it together names those at fault and checks the others."""

import itertools
import time
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from earlybird.check.locating import Located, Tried, failure_findings, find_bad_links, find_guilty
from earlybird.check.plan import make_plan
from earlybird.data.errors import WorkError
from earlybird.launch.job_output import signalled_host
from earlybird.launch.launcher import Launched, Request
from earlybird.measure.check import CheckSettings, run_check
from earlybird.measure.check_launches import MAX_TRIES
from earlybird.measure.heartbeats import Heartbeats
from tests.python.check.conftest import Machine


class Network:
    """Nodes and links between which no message arrives, or only small ones."""

    def __init__(self, nodes=(), links=(), reached="start"):
        self.nodes, self.links, self.reached = set(nodes), [set(link) for link in links], reached
        self.failures = 0  # that take time, one after the other

    def can(self, group) -> bool:
        return not self.nodes & set(group) and not any(link <= set(group) for link in self.links)

    def try_groups(self, groups: Sequence[tuple[int, ...]]) -> list[Tried]:
        nodes = [node for group in groups for node in group]
        assert groups and len(nodes) == len(set(nodes)), "groups that are tried at once share a node"
        can = [self.can(group) for group in groups]
        self.failures += not all(can)
        return [Tried("end") if one else Tried(self.reached, "it hangs") for one in can]


@pytest.mark.parametrize("nodes", [3, 4, 5, 8, 12, 33, 200])
def test_dead_nodes_are_found_in_few_rounds(nodes):
    random = np.random.default_rng(nodes)
    for count in {0, 1, 2, nodes // 2, nodes - 2}:
        dead = set(random.choice(nodes, min(count, nodes - 2), replace=False).tolist())
        network = Network(dead)
        found = find_guilty(range(nodes), network.try_groups)
        assert set(found.guilty) == dead and found.links == {}
        assert found.good == [node for node in range(nodes) if node not in dead]
        assert network.failures <= MAX_TRIES or 2 * count >= nodes > 8


@pytest.mark.parametrize("nodes", [3, 4, 5, 6, 7])
def test_of_few_nodes_any_that_are_dead_are_found_in_time(nodes):
    for count in range(1, nodes - 1):
        for dead in itertools.combinations(range(nodes), count):
            network = Network(dead)
            assert set(find_guilty(range(nodes), network.try_groups).guilty) == set(dead)
            assert network.failures <= MAX_TRIES, dead


def test_a_dead_link_is_found_where_pairs_are_tried():
    found = find_guilty(range(6), Network(links=[(2, 3)]).try_groups)
    assert set(found.links) == {(2, 3)} and found.guilty == {} and len(found.good) == 6
    assert find_bad_links(range(6), Network(links=[(1, 4), (0, 5)]).try_groups).keys() == {(1, 4), (0, 5)}


@pytest.mark.parametrize("nodes", [4, 5, 6, 7, 8, 16, 32, 33, 100])
@pytest.mark.parametrize(
    "network_of", [lambda k, n: k % 2, lambda k, n: k < n // 2, lambda k, n: k % 3, lambda k, n: k > 1]
)
def test_nodes_of_networks_that_do_not_meet_are_not_accused(nodes, network_of):
    networks = [network_of(node, nodes) for node in range(nodes)]
    parts = {tuple(k for k in range(nodes) if networks[k] == one) for one in networks}
    apart = {
        pair for pair in itertools.combinations(range(nodes), 2) if networks[pair[0]] != networks[pair[1]]
    }
    network = Network(links=apart)
    found = find_guilty(range(nodes), network.try_groups)
    assert network.failures <= MAX_TRIES or len(parts) > 2
    # A node alone in its network communicates with none.
    alone = {part[0] for part in parts if len(part) == 1}
    assert set(found.guilty) == alone and found.unclear == {}
    assert set(found.groups) == {part for part in parts if len(part) > 1}
    assert set(found.links) == {pair for pair in apart if not alone & set(pair)}


def test_a_dead_node_is_told_from_nodes_of_another_network():
    apart = [pair for pair in itertools.combinations(range(9), 2) if pair[0] % 2 != pair[1] % 2]
    found = find_guilty(range(9), Network({5}, apart).try_groups)
    assert set(found.guilty) == {5} and set(found.groups) == {(0, 2, 4, 6, 8), (1, 3, 7)}


def test_two_dead_links_do_not_divide_the_nodes():
    for links in itertools.combinations(itertools.combinations(range(6), 2), 2):
        if set(links[0]) & set(links[1]):
            continue  # of one node, which may be at fault
        found = find_guilty(range(6), Network(links=links).try_groups)
        assert len(found.groups) == 1 and len(found.good) == 6 and set(found.links) <= set(links), links


def test_without_two_nodes_that_communicate_nobody_is_guilty():
    found = find_guilty(range(5), Network(range(4)).try_groups)
    assert (found.good, found.guilty) == ([], {})


def test_the_failure_says_what_did_not_arrive():
    hosts = ["a", "b"]
    black_hole, dead = Tried("small messages", "stalled"), Tried("start", "stalled")
    (first,) = failure_findings(Located(guilty={1: black_hole}), hosts, 1 << 20)
    assert first.sentence.startswith(
        "b: messages of 1 MiB do not arrive, others arrive; small ones do: look at"
    )
    assert "MTU" in first.cause
    (second,) = failure_findings(Located(guilty={0: dead}), hosts, 1 << 20)
    assert second.sentence.startswith("a: messages do not arrive, others arrive; its rank started")
    (third,) = failure_findings(Located(links={(0, 1): dead}), hosts, 1 << 20)
    assert third.sentence.startswith("the link between a and b: messages do not arrive")
    assert "; the ranks of both started: look at" in third.sentence
    (fourth,) = failure_findings(Located(links={(0, 1): Tried("nothing", "it ended")}), hosts, 1 << 20)
    assert fourth.sentence == (
        "the link between a and b: rank does not start with the other, others start; each starts with "
        "others, and a launch of both ended: it ended"
    )


@pytest.mark.parametrize(
    ("cause", "found"),
    [
        ("mpiexec reports that a rank on n2 failed: EXIT CODE: 9", ("n2", "EXIT CODE: 9")),
        ("mpiexec reports that rank 3 on n2 failed: Killed (signal 9)", ("n2", "Killed (signal 9)")),
        ("mpiexec reports that a rank on n2 failed: EXIT CODE: 1", None),
        ("no point was finished for 4 s", None),
    ],
)
def test_only_a_rank_that_a_signal_ended_is_evidence(cause, found):
    assert signalled_host(cause) == found


class Launcher:
    """Ranks of a simulated machine; launches hang that `network` does not allow, or while `until` is larger
    than their number."""

    name, flavour = "hosts", "mpich"

    def __init__(self, network, cause="no point was finished for 1 s", until=0, beating=None):
        self.network, self.cause, self.until, self.beating = network, cause, until, beating
        self.launched: list[list[int]] = []
        self.requests: list[Request] = []

    def check(self, layout) -> None: ...

    def launch(self, request, scratch, progress) -> Launched:
        nodes = request.layout.node.tolist()
        self.launched.append(nodes)
        self.requests.append(request)
        for step in range(24 if self.beating and len(self.launched) <= self.until else 0):
            for node in nodes:
                (scratch / f"beat.n{node}").write_text(f"{self.beating(node, step):10} 3 1\n")
            time.sleep(0.05)
        placement = [
            {"host": f"n{node}", "rank": rank, "node": rank, "socket": 0, "cpus": [0]}
            for rank, node in enumerate(nodes)
        ]
        machine = Machine(len(nodes))
        machine.facts = {k: {"load_of_others": 0.0} for k in range(len(nodes))}
        samples = [machine._sample(dict(point)) for point in request.points]
        record = {"placement": placement, "version": "5"}
        if self.network.can(nodes) and len(self.launched) > self.until:
            return Launched(record, samples)
        done = len(samples) // 2 if self.network.reached == "small messages" else 0
        return Launched(record, samples[:done], self.cause)


def checked(launcher, tmp_path, nodes=6):
    hosts = tuple(f"n{k}" for k in range(nodes))
    said: list[str] = []
    settings = CheckSettings(hosts, stall_limit_s=1.0)
    check = run_check(launcher, make_plan(nodes), settings, tmp_path, None, lambda *heard: None, said.append)
    return check, said


@pytest.mark.parametrize("reached", ["start", "small messages"])
def test_the_rest_is_checked_without_the_node_at_fault(tmp_path, reached):
    check, said = checked(Launcher(Network({4}, reached=reached)), tmp_path)
    (found,) = check.findings
    assert (found.hosts, found.measure) == (("n4",), "messages")
    assert check.bad_hosts() == ["n4"] and check.measured_nodes == 5
    assert check.alike_text == "all 6 nodes and 10 of 15 links"
    assert (check.latency_s[4] == 0).all() and (check.latency_s[0, [1, 2, 3, 5]] > 0).all()
    assert check.nodes[4].facts == {} and check.nodes[5].facts["cores"] == 2
    (sentence,) = said
    assert "looking for the nodes at fault by launches of pairs, at most 12 s" in sentence


def test_a_link_at_fault_is_found_although_each_of_the_first_pairs_works(tmp_path):
    check, _ = checked(Launcher(Network(links=[(1, 4)])), tmp_path)
    (found,) = check.findings
    assert (found.kind, found.hosts) == ("link", ("n1", "n4"))
    assert not any("did not happen again" in text for text in check.notes)
    assert check.ties() == [[["n1"], ["n4"]]] and check.measured_nodes == 5


def test_of_two_halves_that_do_not_meet_half_is_left_out_and_no_node_is_named(tmp_path):
    apart = [pair for pair in itertools.combinations(range(8), 2) if pair[0] % 2 != pair[1] % 2]
    check, _ = checked(Launcher(Network(links=apart)), tmp_path, nodes=8)
    assert {one.kind for one in check.findings} == {"link"} and len(check.findings) == 16
    assert check.bad_hosts() == ["n0", "n2", "n4", "n6"] and check.measured_nodes == 4
    assert "not between them" in check.notes[0] and "n0, n2, n4 and n6; n1, n3, n5 and n7" in check.notes[0]


def test_a_rank_that_stopped_is_known_by_its_heartbeats(tmp_path, monkeypatch):
    monkeypatch.setattr("earlybird.measure.heartbeats._BEAT_S", 0.05)

    def beating(node, step):
        return 1 + min(step, 1) if node == 3 else 1 + step

    launcher = Launcher(Network(), until=1, beating=beating)
    check, _ = checked(launcher, tmp_path)
    assert [(one.hosts, one.value) for one in check.findings] == [(("n3",), "stopped")]
    assert "while the others waited, last seen in large messages with n1: " in check.findings[0].cause
    assert launcher.launched[1] == [0, 1, 2, 4, 5]


def test_a_slow_or_late_heartbeat_has_not_stopped(tmp_path):
    beats = Heartbeats(tmp_path, stall_limit_s=4.0)
    for step in range(40):
        now_s = step * 0.25
        counts = {"usual": step, "slow": step // 6, "stopped": min(step, 20)}
        if step > 15:
            counts["late"] = step - 15
        for host, count in counts.items():
            (tmp_path / f"beat.{host}").write_text(f"{count:10} 1 -1\n")
        beats.look(now_s)
        assert now_s > 6.9 or beats.stopped == set()
    assert beats.stopped == {"stopped"} and beats.hosts == set(counts)
    assert beats.doing("stopped", ["a"]) == "while it waited for the other nodes"


def test_a_rank_that_was_killed_is_named_as_mpiexec_reports_it(tmp_path):
    cause = "mpiexec reports that a rank on n2 failed: Killed (signal 9)"
    check, _ = checked(Launcher(Network(), cause, until=1), tmp_path)
    assert [(one.hosts, one.value) for one in check.findings] == [(("n2",), "was killed")]


def test_a_failure_that_does_not_happen_again_is_a_note(tmp_path):
    check, _ = checked(Launcher(Network(), until=1), tmp_path)
    assert check.findings == () and "that did not happen again" in check.notes[0]


def test_nobody_is_named_if_all_launches_fail(tmp_path):
    with pytest.raises(WorkError, match="no two of these nodes complete a launch of their own"):
        checked(Launcher(Network(range(6))), tmp_path)
    # Or if only the launch of all fails, each time.
    launcher = Launcher(Network())
    launcher.network.can = lambda group: len(group) < 3
    with pytest.raises(WorkError, match="which of them is at fault was not found"):
        checked(launcher, tmp_path)


def test_pairs_have_time_for_the_largest_messages(tmp_path):
    launcher = Launcher(Network({4}))
    plan = make_plan(6, 1800.0, size_bytes=256 << 20)
    run_check(
        launcher,
        plan,
        CheckSettings(tuple("abcdef"), stall_limit_s=60.0),
        tmp_path,
        None,
        lambda *heard: None,
    )
    assert plan.round_s() > 40
    tries = [request for request in launcher.requests if request.layout.num_nodes < 5]
    assert tries and all(request.stall_limit_s >= 2 * plan.round_s() for request in tries)
    assert all(request.time_limit_s > len(request.points) / 2 * plan.round_s() for request in tries)


def test_two_nodes_are_not_divided(tmp_path):
    with pytest.raises(WorkError, match="no point was finished"):
        checked(Launcher(Network({1})), tmp_path, nodes=2)


@pytest.fixture
def hurried(monkeypatch):
    """Each look at the clock takes 8 s."""
    monkeypatch.setattr("earlybird.measure.check_launches.time.monotonic", iter(range(0, 10**6, 8)).__next__)


def test_the_search_ends_in_time(tmp_path, hurried):
    with pytest.raises(WorkError, match="was not found within"):
        checked(Launcher(Network({1, 2, 5})), tmp_path)


def test_what_was_found_by_the_end_of_the_time_is_kept(tmp_path, hurried):
    check, _ = checked(Launcher(Network({1, 2, 3})), tmp_path)
    assert check.bad_hosts() == ["n0", "n1", "n2", "n3"] and check.measured_nodes == 2
    assert check.findings[0].sentence.startswith(
        "n0: launch with n1 does not complete, others complete; there was no time to find out which"
    )


def test_simulated_nodes_are_not_divided(tmp_path):
    plan = make_plan(6, facts=False)
    with pytest.raises(WorkError, match="no point was finished"):
        run_check(
            Launcher(Network({1})), plan, CheckSettings(tuple("abcdef")), tmp_path, None, lambda *heard: None
        )


def test_a_subset_of_nodes_of_slurm_is_named(monkeypatch):
    from earlybird.launch.slurm import SrunLauncher, allocated_hosts
    from earlybird.measure.check_launches import Launches

    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-5]")
    shown = SimpleNamespace(returncode=0, stdout="n0\nn1\nn2\nn3\nn4\nn5\n")
    monkeypatch.setattr("earlybird.launch.slurm.subprocess.run", lambda *arguments, **more: shown)
    monkeypatch.setattr(SrunLauncher, "check", lambda self, layout: None)
    assert allocated_hosts() == ("n0", "n1", "n2", "n3", "n4", "n5")
    launches = Launches(SrunLauncher(None), make_plan(6), (), 1.0, None, None, None)
    launcher, layout = launches._layout((1, 4))
    assert launcher.nodelist == ("n1", "n4") and (layout.text, layout.num_nodes) == ("2x1x1", 2)
