"""A session appends what is missing, in a shuffled order, within its budget, and keeps what was complete."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.errors import InputError, WorkError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.run import Run, Sample
from earlybird.launch.launcher import Launched, Rules
from earlybird.launch.several import SeveralMpis
from earlybird.machine.flavours import Flavour
from earlybird.measure import session
from earlybird.measure.groups import Group
from earlybird.measure.session import Plan, measure
from earlybird.measure.suites import exchange_group


def group(kernel, num_points=3, layout="1x1x2"):
    points = tuple({"mpi": "fake", "level": "intra_socket", "size_bytes": 1 << k} for k in range(num_points))
    return Group(kernel, parse_layout(layout), points)


GROUPS = (group("pingpong"), replace(group("contention"), points=(
    {"mpi": "fake", "level": "intra_socket", "size_bytes": 8, "competitors": 2},)))  # fmt: skip


def plan(launches=3, budget_s=1000.0, groups=GROUPS, seed=1, **more):
    return Plan(groups, launches, budget_s, Rules(), seed, **more)


class FakeLauncher:
    """Launches in no time; `fail` maps the number of a launch to what becomes of it."""

    name = "fake"
    flavour = "fake"

    def __init__(self, fail=None, sockets=(0, 0)):
        self.requests, self.checked = [], []
        self.fail = fail or {}
        self.sockets = sockets

    def check(self, layout):
        self.checked.append(layout.text)

    def launch(self, request, scratch, progress):
        assert scratch.is_dir()
        (scratch / "left").write_text("scratch of a launch")
        number = len(self.requests)
        self.requests.append(request)
        samples = [
            Sample(request.kernel, "time", dict(point), request.id, np.ones(3), method=method)
            for point in request.points
            for method in request.methods or (None,)
        ]
        placement = [{"rank": rank, "host": "here", "node": 0, "socket": socket, "sockets": [socket]}
                     for rank, socket in enumerate(self.sockets)]  # fmt: skip
        launched = Launched({"id": request.id, "placement": placement}, samples)
        if number in self.fail:
            launched = self.fail[number](launched)
        for count in range(len(launched.samples) + 1):
            progress(request.points_in(count), launched.samples[count - 1] if count else None)
        return launched


class Heard:
    def __init__(self):
        self.updates = []

    def update(self, done, total, what, left_s, last):
        self.updates.append((done, total, what, left_s, last))


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run", machine={}, command=[], seed=1)


def start(run, launcher, plan, heard=None):
    result = measure(run, launcher, plan, heard or Heard())
    assert not list(run.path.glob(".launch-*"))
    return result


def launches_of_points(run) -> Counter:
    return Counter(json.dumps([sample.kernel, sample.config]) for sample in run.samples())


def order(launcher):
    return [(r.kernel, [point["size_bytes"] for point in r.points]) for r in launcher.requests]


def test_every_point_gets_its_launches(run):
    result = start(run, FakeLauncher(), plan())
    assert result.missing == 0
    assert set(launches_of_points(run).values()) == {3}
    assert len(result.samples) == 12 == plan().num_samples()
    assert {sample.launch for sample in run.samples()} == {launch["id"] for launch in run.launches()}


def test_the_order_is_shuffled_and_decided_by_the_seed(tmp_path):
    def orders(seed):
        launcher = FakeLauncher()
        run = Run.create(
            tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}", machine={}, command=[], seed=seed
        )
        start(run, launcher, plan(seed=seed, groups=(group("pingpong", 6), GROUPS[1])))
        return order(launcher)

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)
    sizes = [points for kernel, points in orders(1) if kernel == "pingpong"]
    assert len({tuple(points) for points in sizes}) > 1


def test_a_round_launches_every_group_before_any_gets_its_next(run):
    launcher = FakeLauncher()
    start(run, launcher, plan())
    kernels = [request.kernel for request in launcher.requests]
    assert [set(kernels[k : k + 2]) for k in (0, 2, 4)] == [{"pingpong", "contention"}] * 3


def test_a_resumed_session_measures_only_what_is_missing(run):
    start(run, FakeLauncher(), plan(launches=1))
    path = run.path / "samples.ndjson"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]) + lines[2][:30])  # killed while the third sample was written
    launcher = FakeLauncher()
    start(run, launcher, plan(launches=2))
    assert path.read_text().startswith("".join(lines[:2]))
    assert set(launches_of_points(run).values()) == {2}
    before = path.read_bytes()
    idle = FakeLauncher()
    start(run, idle, plan(launches=2))
    assert idle.requests == [] and path.read_bytes() == before


def test_launch_names_stay_unique_when_resumed(run):
    start(run, FakeLauncher(), plan(launches=1))
    start(run, FakeLauncher(), plan(launches=3))
    ids = [launch["id"] for launch in run.launches()]
    assert len(set(ids)) == len(ids) == 6


def test_a_spent_budget_leaves_every_point_one_launch(run):
    result = start(run, FakeLauncher(), plan(launches=5, budget_s=1e-9))
    assert set(launches_of_points(run).values()) == {1}
    assert result.missing == 16


def test_the_budget_is_shared_among_the_points(run):
    launcher = FakeLauncher()
    start(run, launcher, plan(launches=2, budget_s=8.0))
    # Less than an even share: starting ranks takes time too.
    assert all(request.rules.budget_s == pytest.approx(0.6) for request in launcher.requests)


def test_limits_reach_every_launch(run):
    launcher = FakeLauncher()
    start(run, launcher, plan(time_limit_s=7.0, stall_limit_s=3.0))
    assert {(request.time_limit_s, request.stall_limit_s) for request in launcher.requests} == {(7.0, 3.0)}


def test_a_launch_may_compute_as_long_as_requested_before_it_counts_as_stalled(run):
    """30 iterations of two methods after as many of warm-up, and 110 in which libearlybird settles, of 1.5 s
    each."""
    point = {"mpi": "mpich", "size_bytes": 8, "compute_s": 1.5}
    methods = ("single", "earlybird")
    launcher = FakeLauncher()
    computing = Group("partitioned", parse_layout("1x1x2"), (point,), methods=methods)
    start(run, launcher, plan(1, groups=[computing], stall_limit_s=3.0))
    assert launcher.requests[0].stall_limit_s == pytest.approx(3 + (2 * 30 * 2 + 110) * 1.5)


def test_a_dying_launch_keeps_what_it_had_completed(run):
    launcher = FakeLauncher({1: lambda it: replace(it, samples=it.samples[:1], cause="rank 1 was killed")})
    with pytest.raises(
        WorkError,
        match=r"on fake failed: rank 1 was killed; \d of 12 samples are kept .* with `earlybird .* --resume",
    ):
        start(run, launcher, plan())
    held = sum(len(request.points) for request in launcher.requests[:1]) + 1
    assert len(run.samples()) == held and len(run.launches()) == 2
    start(run, FakeLauncher(), plan())
    assert set(launches_of_points(run).values()) == {3}


def test_a_point_may_end_before_the_stall_limit_with_fewer_iterations(run):
    launcher = FakeLauncher()
    start(run, launcher, plan(stall_limit_s=60.0))
    assert {request.rules.most_s for request in launcher.requests} == {20.0}


def test_groups_that_fail_are_left_out_while_the_others_are_measured(run):
    several = (*GROUPS, group("completion"), group("msgrate"))
    launcher = FakeLauncher(dict.fromkeys((0, 1), lambda it: replace(it, samples=[], cause="it hung")))
    with pytest.raises(
        WorkError, match=r"failed: it hung \(and 1 other launch\); \d+ of 30 samples are kept"
    ):
        start(run, launcher, plan(groups=several, tolerated=2))
    failed = {request.kernel for request in launcher.requests[:2]}
    by_kernel = Counter(sample.kernel for sample in run.samples())
    numbers = {one.kernel: 3 * len(one.points) for one in several if one.kernel not in failed}
    assert by_kernel == numbers and len(launcher.requests) == 2 + 3 * 2
    # Those that failed are measured by a continued run.
    start(run, FakeLauncher(), plan(groups=several))
    assert set(launches_of_points(run).values()) == {3}


def test_more_failures_than_are_tolerated_end_the_run(run):
    launcher = FakeLauncher(dict.fromkeys(range(9), lambda it: replace(it, samples=[], cause="no rank")))
    with pytest.raises(WorkError, match=r"no rank \(and 1 other launch\)"):
        start(run, launcher, plan(groups=(*GROUPS, group("completion")), tolerated=1))
    assert len(launcher.requests) == 2


def test_groups_that_failed_keep_no_launch_beyond_the_budget(run):
    launcher = FakeLauncher({0: lambda it: replace(it, samples=[], cause="it hung")})
    with pytest.raises(WorkError):
        start(run, launcher, plan(launches=5, budget_s=1e-9, tolerated=1))
    assert len(launcher.requests) == 2


METHODS = (replace(group("pipeline"), methods=("single", "many")), GROUPS[1])


def test_progress_counts_a_sample_of_each_method_as_the_result_does(run):
    heard = Heard()
    result = start(run, FakeLauncher(), plan(groups=METHODS), heard)
    assert (result.missing, len(result.samples)) == (0, 3 * (3 * 2 + 1))
    assert heard.updates[-1][:2] == (21, 21)
    idle = FakeLauncher()
    start(run, idle, plan(groups=METHODS))
    assert idle.requests == []


def test_a_point_without_one_of_its_methods_is_measured_again(run):
    launcher = FakeLauncher({0: lambda it: replace(it, samples=it.samples[:3], cause="it died")})
    with pytest.raises(WorkError, match="2 of 6 samples are kept"):
        start(run, launcher, plan(launches=1, groups=METHODS[:1]))
    assert len(run.samples()) == 3
    lacking = [point for point in launcher.requests[0].points[1:]]
    again = FakeLauncher()
    start(run, again, plan(launches=1, groups=METHODS[:1]))
    (request,) = again.requests
    assert sorted(p["size_bytes"] for p in request.points) == sorted(p["size_bytes"] for p in lacking)
    assert request.methods == ("single", "many")
    assert Counter(sample.method for sample in run.samples()) == {"single": 4, "many": 3}


def test_methods_have_each_their_share_of_the_budget(run):
    launcher = FakeLauncher()
    start(run, launcher, plan(launches=1, budget_s=7.0, groups=METHODS))
    budgets = {request.kernel: request.rules.budget_s for request in launcher.requests}
    assert budgets["pipeline"] == pytest.approx(2 * budgets["contention"]) == pytest.approx(1.2)


def test_threads_and_contexts_of_a_group_reach_its_launches_alone(run):
    launcher = FakeLauncher()
    start(run, launcher, plan(launches=1, groups=(GROUPS[0], replace(GROUPS[1], threads=2, vcis=4))))
    output = {request.kernel: (request.threads, request.vcis) for request in launcher.requests}
    assert output == {"pingpong": (None, None), "contention": (2, 4)}


def test_kernels_with_the_same_points_are_counted_apart(run):
    groups = (group("pingpong"), group("completion"))
    assert start(run, FakeLauncher(), plan(groups=groups)).missing == 0
    assert set(launches_of_points(run).values()) == {3}


def test_an_interrupted_launch_is_kept_before_the_session_ends(run):
    launcher = FakeLauncher({0: lambda it: replace(it, samples=it.samples[:1], cause="it was interrupted",
                                                  interrupted=True)})  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        start(run, launcher, plan())
    assert len(run.samples()) == 1 and len(run.launches()) == 1


def test_samples_of_misplaced_ranks_are_not_kept(run):
    with pytest.raises(WorkError, match=r"rank 1 is not where the layout 1x1x2"):
        start(run, FakeLauncher(sockets=(0, 1)), plan())
    assert run.samples() == [] and run.launches() == []


def test_wrong_data_ends_the_session_with_an_error(run):
    launcher = FakeLauncher(
        {0: lambda it: replace(it, samples=[replace(s, validated=False) for s in it.samples])}
    )
    with pytest.raises(WorkError, match="received wrong data"):
        start(run, launcher, plan())


def test_a_layout_that_cannot_be_placed_ends_it_before_anything_starts(run):
    class Refusing(FakeLauncher):
        def check(self, layout):
            raise InputError("no such socket")

    launcher = Refusing()
    with pytest.raises(InputError):
        start(run, launcher, plan())
    assert launcher.requests == []


def test_a_disk_that_is_full_is_reported_in_a_sentence(run):
    class Full(FakeLauncher):
        def launch(self, request, scratch, progress):
            raise OSError(28, "No space left on device")

    with pytest.raises(WorkError, match="no space left on device; free some space and continue with"):
        start(run, Full(), plan())
    start(run, FakeLauncher(), plan(launches=1))
    with pytest.raises(WorkError, match="no space left on device; what was complete is kept, free some"):
        start(run, Full(), plan(launches=2))


def test_progress_only_grows_and_reaches_the_end(run):
    heard = Heard()
    start(run, FakeLauncher(), plan(), heard)
    done = [update[0] for update in heard.updates]
    assert done == sorted(done) and done[-1] == 12
    assert {update[1] for update in heard.updates} == {12}
    assert all(update[3] >= 0 for update in heard.updates)
    start(run, FakeLauncher(), plan(launches=4), heard)
    assert heard.updates[-1][:2] == (16, 16)


def test_time_left_is_reported_at_the_pace_so_far(run, monkeypatch):
    class Clock:
        now_s = 0.0

    class Slow(FakeLauncher):
        def launch(self, request, scratch, progress):
            Clock.now_s += 10.0 * len(request.points)
            return super().launch(request, scratch, progress)

    monkeypatch.setattr(session.time, "monotonic", lambda: Clock.now_s)
    heard = Heard()
    start(run, Slow(), plan(), heard)
    ends = [update for update in heard.updates if update[0] * 10.0 == pytest.approx(120 - update[3])]
    assert len(ends) >= len(GROUPS) * 3


class Clock:
    """Stands in for the session's clock: launches take `point_s(request, point)` for every point."""

    def __init__(self, monkeypatch, point_s):
        self.now_s, self.point_s = 0.0, point_s
        monkeypatch.setattr(session.time, "monotonic", lambda: self.now_s)

    def launcher(clock):
        class Slow(FakeLauncher):
            def launch(self, request, scratch, progress):
                progress(0, None)
                clock.now_s += sum(clock.point_s(request, point) for point in request.points)
                return super().launch(request, scratch, progress)

        return Slow()


def link_group(kernel, sizes):
    points = tuple({"mpi": "fake", "level": "inter_node", "size_bytes": size} for size in sizes)
    return Group(kernel, parse_layout("1x1x2"), points, link_bytes_per_s=1e6)


def test_time_left_knows_what_the_link_needs_before_anything_is_measured(run, monkeypatch):
    """A ping-pong of 1 MB takes 2 s over this link, eight of them 16 s, budget or not."""
    rules = Rules(min_iterations=8)
    groups = (link_group("pingpong", (1_000_000,)), link_group("completion", (1, 2)))
    clock = Clock(monkeypatch, lambda request, point: 16.0 if request.kernel == "pingpong" else 0.001)
    heard = Heard()
    start(run, clock.launcher(), Plan(groups, 3, 0.006, rules, 1), heard)
    done, _, _, left_s, _ = heard.updates[0]
    assert done == 0 and left_s == pytest.approx(16.0, rel=0.01)
    after = [left_s for done, _, what, left_s, _ in heard.updates if done == 3]
    assert after[-1] < 0.1


def test_a_launch_of_which_less_than_half_fits_into_the_budget_is_not_begun(run, monkeypatch):
    """Long launches take 10 s, short ones 1 s; no long one fits after the first."""
    groups = (link_group("pingpong", (500_000,)), link_group("completion", (1,)))
    clock = Clock(monkeypatch, lambda request, point: 10.0 if request.kernel == "pingpong" else 1.0)
    launcher = clock.launcher()
    result = start(run, launcher, Plan(groups, 5, 15.0, Rules(min_iterations=10), 1))
    kernels = Counter(request.kernel for request in launcher.requests)
    assert kernels["pingpong"] == 1 and kernels["completion"] == 5
    assert result.missing == 4 and clock.now_s == 15.0


@pytest.mark.parametrize(
    ("kernel", "point", "methods", "seconds"),
    [
        ("pingpong", {}, (), 2.0),
        ("contention", {"competitors": 4, "repeats": 3}, (), 12.0),
        ("completion", {"receiver": "prompt"}, (), 1.0),
        ("completion", {"receiver": "late"}, (), 4.0),
        ("pipeline", {"partitions": 4, "gamma_s_per_byte": 0.0}, ("single", "many"), 2.0),
    ],
)
def test_an_iteration_keeps_the_link_busy_with_its_bytes(kernel, point, methods, seconds):
    point = {"size_bytes": 1_000_000} | point
    layout = parse_layout("2x1x1")
    assert Group(kernel, layout, (point,), methods=methods, link_bytes_per_s=1e6).link_s(point) == seconds
    assert Group(kernel, layout, (point,), methods=methods).link_s(point) == 0


def test_an_exchange_keeps_its_busiest_link_busy():
    pattern = Pattern([0, 1, 2, 0], [2, 3, 0, 1], [300_000, 400_000, 500_000, 9_000_000])
    group = exchange_group(pattern, parse_layout("2x1x2"), "mpich", 1e6)
    assert group.link_s(group.points[0]) == pytest.approx(0.7)
    inside = exchange_group(Pattern([0], [1], [8]), parse_layout("2x1x2"), "mpich", 1e6)
    assert inside.link_s(inside.points[0]) == 0


def test_launches_of_several_mpis_alternate_and_each_goes_to_its_launcher(run):
    groups = [
        replace(one, points=tuple(point | {"mpi": mpi} for point in one.points))
        for mpi in ("a", "b")
        for one in GROUPS
    ]
    launchers = {mpi: FakeLauncher() for mpi in ("a", "b")}
    for mpi, launcher in launchers.items():
        launcher.flavour = mpi
    start(run, SeveralMpis(tuple(launchers.values())), plan(groups=groups))
    for mpi, launcher in launchers.items():
        assert {point["mpi"] for request in launcher.requests for point in request.points} == {mpi}
        assert len(launcher.requests) == 2 * 3
    order = [sample.config["mpi"] for sample in run.samples()]
    for rounds in (order[:8], order[8:16], order[16:]):  # launch k of all before launch k+1 of any
        assert Counter(rounds) == {"a": 4, "b": 4}


def test_a_run_is_not_continued_with_other_variables_of_the_same_mpi(run, monkeypatch):
    launcher = FakeLauncher()
    launcher.mpi = Flavour("fake", "mpich", "1", Path("/opt/mpicc"), Path("/opt/mpiexec"))
    start(run, launcher, plan(launches=1))
    path = run.path / "launches.ndjson"
    records = [json.loads(line) | {"environment": {"UCX_TLS": "1"}, "set_by_launcher": []}
               for line in path.read_text().splitlines()]  # fmt: skip
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    before = run.samples()
    with pytest.raises(InputError, match="UCX_TLS was '1'"):
        start(run, launcher, plan())
    assert len(run.samples()) == len(before)
    monkeypatch.setenv("UCX_TLS", "1")
    start(run, launcher, plan(launches=1))
