"""Runs groups of points launch by launch until every point has its launches or the budget is spent."""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from earlybird.data.collective_algorithms import VERIFICATION
from earlybird.data.contexts import context_variables
from earlybird.data.errors import WorkError, cause_of
from earlybird.data.labels import counted
from earlybird.data.run import Run, Sample, require_validated
from earlybird.data.run_continuation import resume_command
from earlybird.data.units import format_bytes
from earlybird.launch.launcher import Heard, Launched, Launcher, Request, Rules
from earlybird.launch.placement import require_placed
from earlybird.launch.several import launchers_in
from earlybird.launch.variables import refuse_changed, refuse_conflicts, refuse_replaced
from earlybird.measure.groups import Group, is_cold

# Share of the budget for starting ranks and for filling and checking buffers; the rest is for timed
# iterations.
_OVERHEAD_SHARE = 0.4
_MIN_POINT_BUDGET_S = 0.005
_MAX_POINT_BUDGET_S = 2.0
# Share of the stall limit after which a point ends with fewer iterations than the minimum, as where many
# ranks share few cores: the rest is for what comes before, and for one more iteration.
_MAX_POINT_SHARE = 1 / 3
# About what it takes to start the ranks of a launch.
_START_S = 1.0


@dataclass(frozen=True)
class Plan:
    """A plan of what to measure and with which effort: `launches` per point, `budget_s` in total.

    Up to `tolerated` groups may fail, of which nothing more is measured then, before the others end, too.
    """

    groups: Sequence[Group]
    launches: int
    budget_s: float
    rules: Rules
    seed: int
    time_limit_s: float = 3600.0
    stall_limit_s: float = 60.0
    tolerated: int = 0

    def num_samples(self) -> int:
        """Return the number of samples of a complete run: one for each point, method and launch."""
        return self.launches * sum(len(group.points) * group.num_methods for group in self.groups)

    def least_s(self) -> float:
        """Return about how long one launch of every point takes, which the budget does not shorten."""
        return sum(
            _START_S + sum(_least_s(self, group, point) for point in group.points) for group in self.groups
        )


class Progress(Protocol):
    """A listener for how many samples of a complete run are done; `cli` draws it."""

    def update(self, done: int, total: int, what: str, left_s: float, last: Sample | None) -> None: ...


@dataclass(frozen=True)
class Result:
    """The result of a session: `missing` samples were not measured because the budget was spent; it took
    `spent_s`."""

    samples: list[Sample]
    missing: int
    spent_s: float


def measure(run: Run, launcher: Launcher, plan: Plan, progress: Progress) -> Result:
    """Append to `run` the samples of `plan` that it lacks.

    Launches are shuffled, and the points inside each, so that a drift of the machine affects all equally.
    Raises InputError when another process measures into `run`, or when variables of the user differ from
    those of its launches; WorkError when launches die (their complete samples are kept); KeyboardInterrupt
    after keeping the complete samples.
    """
    with run.exclusive():
        for left in run.path.glob(".launch-*"):  # of a session that was killed outright
            shutil.rmtree(left, ignore_errors=True)
        return _measure(run, launcher, plan, progress)


def refuse_conflicts_of(groups: Iterable[Group], launcher: Launcher) -> None:
    """Raise InputError, as the launches would, for a variable of the user that conflicts with what the points
    of `groups` need."""
    mpis = {one.flavour: getattr(one, "mpi", None) for one in launchers_in(launcher)}
    for group in groups:
        mpi = mpis.get(group.points[0]["mpi"])
        if mpi is not None:
            needed = context_variables(mpi.family, group.vcis, group.streams) | dict(group.environment)
            refuse_conflicts(mpi.settings, needed)
            refuse_replaced(mpi, group.environment, group.settings.values())


def _refuse_changed_variables(run: Run, samples: Iterable[Sample], launcher: Launcher) -> None:
    """Raise InputError if `run` has launches of these MPIs with other values of the user's variables than
    now."""
    ids_of: dict[str, set[str]] = {}
    for sample in samples:
        ids_of.setdefault(str(sample.config.get("mpi", "")), set()).add(sample.launch)
    launches = run.launches()
    for one in launchers_in(launcher):
        mpi = getattr(one, "mpi", None)
        if mpi is not None:
            ids = ids_of.get(one.flavour, set())
            refuse_changed(mpi, [launch for launch in launches if launch.get("id") in ids], run.path)


def _measure(run: Run, launcher: Launcher, plan: Plan, progress: Progress) -> Result:
    for group in plan.groups:
        launcher.check(group.layout)
    held_samples = run.samples()
    _refuse_changed_variables(run, held_samples, launcher)
    run.cut_unterminated_lines()
    order = random.Random(f"{plan.seed}:{len(run.launches())}")
    held = _Held(held_samples)
    begin_s = time.monotonic()
    done = held.points(plan)
    samples, total = held.samples(plan), plan.num_samples()
    first = done
    expected_s = 0.0  # expected time of the points measured so far
    failures: list[tuple[Group, str]] = []
    going = plan  # with the groups that have not failed

    for index, group in _order_of_launches(plan, order):
        if not any(group is other for other in going.groups):
            continue
        points = [point for point in group.points if held.launches(group, point) <= index]
        order.shuffle(points)
        verifying = bool(points) and group.verifies and not held.has_verification(group, points[0])
        if verifying:  # with the smallest messages: large ones wait for their receivers
            points.insert(0, points.pop(_smallest(points)))
        ahead = _Ahead.of(going, held, group, points)
        if verifying:  # no cost of points in general
            ahead.costs_s[0] += group.verification_s
        pace = _Pace(done - first, expected_s, time.monotonic() - begin_s)
        # The last launch is the one of which more than half fits.
        ends_s = pace.spent_s + pace.seconds(sum(ahead.costs_s), len(points)) / 2
        spent = done > first and ends_s > plan.budget_s and held.every_point(going)
        if not points or spent:
            continue
        request = Request(
            _launch_id(run, group), group.kernel, points, group.layout,
            _rules(plan, group, points), group.pattern, plan.time_limit_s,
            plan.stall_limit_s + _computing_s(plan, group, points), group.methods,
            preload=group.preload, threads=group.threads, vcis=group.vcis, streams=group.streams,
            environment=group.environment, settings=group.settings, verifying=verifying,
            seed=order.randrange(1 << 31), mean_over_ranks=group.mean_over_ranks,
        )  # fmt: skip

        def heard(
            count: int,
            last: Sample | None,
            before: int = samples,
            request: Request = request,
            methods: int = group.num_methods,
            ahead: _Ahead = ahead,
            begun: _Pace = pace,
        ) -> None:
            pace = begun.after(ahead.costs_s[:count], time.monotonic() - begin_s)
            left_s = ahead.seconds(count, pace, plan.budget_s)
            progress.update(before + count * methods, total, _describe_point(request, count), left_s, last)

        launched = _launch(run, launcher, request, heard)
        require_placed(group.layout, launched.record.get("placement", []))
        held.add(launched.samples)
        done, samples = held.points(plan), held.samples(plan)
        expected_s += sum(ahead.costs_s)
        _keep(run, launched)
        if launched.interrupted:
            raise KeyboardInterrupt
        if launched.cause is not None:
            failures.append((group, launched.cause))
            going = replace(going, groups=[other for other in going.groups if other is not group])
            if len(failures) > plan.tolerated:
                break
    if failures:
        raise WorkError(
            f"{_describe_failures(failures)}; "
            f"{samples} of {total} samples are kept in {run.path}, continue with `{resume_command(run)}`"
        )
    written = run.samples()
    require_validated(written)
    return Result(written, total - samples, time.monotonic() - begin_s)


def _launch(run: Run, launcher: Launcher, request: Request, heard: Heard) -> Launched:
    scratch = None
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".launch-", dir=run.path))
        return launcher.launch(request, scratch, heard)
    except OSError as error:
        kept = "what was complete is kept, " if run.samples() else ""
        raise WorkError(
            f"cannot write in {run.path}: {cause_of(error)}; {kept}free some space and continue with "
            f"`{resume_command(run)}`"
        ) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _keep(run: Run, launched: Launched) -> None:
    # The launch first: a sample always finds the launch it names.
    run.append_launch(launched.record)
    run.append_samples(launched.samples)


def _order_of_launches(plan: Plan, order: random.Random) -> list[tuple[int, Group]]:
    """Return launch k of every group before launch k+1 of any, with groups shuffled in each round."""
    result = []
    for index in range(plan.launches):
        groups = list(plan.groups)
        order.shuffle(groups)
        result += [(index, group) for group in groups]
    return result


class _Held:
    """The number of launches that have measured each point; a point of several methods counts when all of
    them are measured."""

    def __init__(self, samples: Iterable[Sample]):
        self._launches: Counter = Counter()
        self._verifications: set[tuple] = set()
        self.add(samples)

    def add(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            if sample.quantity == VERIFICATION:
                self._verifications.add(_verification_key(sample.method, sample.config))
            else:
                self._launches[_key(sample.kernel, sample.method, sample.config)] += 1

    def has_verification(self, group: Group, point: Mapping[str, Any]) -> bool:
        """Return whether the tree of every method is known for these ranks."""
        return all(_verification_key(method, point) in self._verifications for method in group.methods)

    def launches(self, group: Group, point: Mapping[str, Any]) -> int:
        return min(self._launches[_key(group.kernel, method, point)] for method in group.methods or (None,))

    def points(self, plan: Plan) -> int:
        """Return the number of points times launches, not counting those beyond `plan`."""
        return sum(min(self.launches(g, point), plan.launches) for g in plan.groups for point in g.points)

    def samples(self, plan: Plan) -> int:
        """Return the number of `points` in samples: a point that lacks a method is measured again, and counts
        as 0."""
        return sum(
            min(self.launches(group, point), plan.launches) * group.num_methods
            for group in plan.groups
            for point in group.points
        )

    def every_point(self, plan: Plan) -> bool:
        return all(self.launches(group, point) > 0 for group in plan.groups for point in group.points)


def _key(kernel: str, method: str | None, config: Mapping[str, Any]) -> tuple:
    # Version 0.1.0 measured one thread without recording it.
    return (kernel, method, *sorted(item for item in config.items() if item != ("threads", 1)))


def _verification_key(method: str | None, config: Mapping[str, Any]) -> tuple:
    return (method, *(config.get(key) for key in ("mpi", "operation", "ranks", "layout", "root")))


def _smallest(points: Sequence[Mapping[str, Any]]) -> int:
    return min(range(len(points)), key=lambda index: points[index]["size_bytes"])


def _share_budget(plan: Plan, group: Group) -> Rules:
    """Return the rules of a launch of `group`, with an even share of the budget for every method of every
    point."""
    series = plan.launches * sum(len(g.points) * g.num_methods for g in plan.groups)
    share_s = plan.budget_s * (1 - _OVERHEAD_SHARE) / max(series, 1)
    share_s = min(max(share_s, _MIN_POINT_BUDGET_S), _MAX_POINT_BUDGET_S)
    return replace(plan.rules, budget_s=share_s * group.num_methods)


def _rules(plan: Plan, group: Group, points: Sequence[Mapping[str, Any]]) -> Rules:
    """Return the rules of a launch of `points`, each of which ends before the stall limit."""
    most_s = _MAX_POINT_SHARE * plan.stall_limit_s + _computing_s(plan, group, points)
    return replace(_share_budget(plan, group), most_s=most_s)


def _expected_s(plan: Plan, group: Group, point: Mapping[str, Any]) -> float:
    """Return the expected time to measure `point` once: its share of the budget, or the time of links and
    computation for the minimum iterations."""
    return max(group.settling_s(point) + _share_budget(plan, group).budget_s, _least_s(plan, group, point))


def _least_s(plan: Plan, group: Group, point: Mapping[str, Any]) -> float:
    """Return the minimum time to measure `point` once: links and computation of the minimum iterations, and
    the emptying of caches."""
    busy_s = group.link_s(point) + group.computing_s(point)
    return group.settling_s(point) + _min_iterations(plan, point) * busy_s


def _min_iterations(plan: Plan, point: Mapping[str, Any]) -> int:
    rules = plan.rules
    if rules.mode == "paper":
        return rules.paper_iterations
    return min(rules.min_iterations, rules.min_cold_iterations) if is_cold(point) else rules.min_iterations


def _computing_s(plan: Plan, group: Group, points: Sequence[Mapping[str, Any]]) -> float:
    """Return how long threads compute by request at most in one of `points`, which is no stall. Half of the
    iterations may be warm-up."""
    return max(
        group.settling_s(point) + 2 * _min_iterations(plan, point) * group.computing_s(point)
        for point in points
    )


@dataclass(frozen=True)
class _Pace:
    """The actual time of `points` points, `spent_s`, and their expected time."""

    points: int
    expected_s: float
    spent_s: float

    def seconds(self, expected_s: float, points: int) -> float:
        """Return the estimated time of further `points` with the expected time `expected_s`.

        Lost time is treated as a cost per point (starting ranks, checking data), gained time as a share of
        the time (points that converge early).
        """
        if self.points == 0:
            return expected_s
        lost_s = self.spent_s - self.expected_s
        if lost_s >= 0:
            return expected_s + points * lost_s / self.points
        return expected_s * self.spent_s / self.expected_s

    def after(self, costs_s: Sequence[float], spent_s: float) -> "_Pace":
        """Return the pace after points of these expected costs, with `spent_s` spent in all."""
        return _Pace(self.points + len(costs_s), self.expected_s + sum(costs_s), spent_s)


@dataclass(frozen=True)
class _Ahead:
    """The work that is ahead when a launch begins, its own points included.

    Attributes
    ----------
    costs_s : expected seconds of each point of the launch, in its order; new : whether it has no launch yet.
    new_points, new_s : all points without any launch, which the budget does not stop.
    more_points, more_s : further launches of points, which the budget may stop.
    """

    costs_s: list[float]
    new: Sequence[bool]
    new_points: int
    new_s: float
    more_points: int
    more_s: float

    @classmethod
    def of(cls, plan: Plan, held: _Held, group: Group, points: Sequence[Mapping[str, Any]]) -> "_Ahead":
        costs_s = [_expected_s(plan, group, point) for point in points]
        new = [held.launches(group, point) == 0 for point in points]
        new_points, new_s, more_points, more_s = 0, 0.0, 0, 0.0
        for other in plan.groups:
            for point in other.points:
                launches, cost_s = held.launches(other, point), _expected_s(plan, other, point)
                missing = max(plan.launches - launches, 0)
                if missing and not launches:
                    new_points, new_s, missing = new_points + 1, new_s + cost_s, missing - 1
                more_points, more_s = more_points + missing, more_s + missing * cost_s
        return cls(costs_s, new, new_points, new_s, more_points, more_s)

    def seconds(self, count: int, pace: _Pace, budget_s: float) -> float:
        """Return the seconds left at this pace once `count` points of the launch are measured."""
        measured = list(zip(self.costs_s, self.new, strict=True))[:count]
        news = [cost_s for cost_s, is_new in measured if is_new]
        others = [cost_s for cost_s, is_new in measured if not is_new]
        new_s = pace.seconds(self.new_s - sum(news), self.new_points - len(news))
        more_s = pace.seconds(self.more_s - sum(others), self.more_points - len(others))
        return max(new_s + max(min(more_s, budget_s - pace.spent_s - new_s), 0.0), 0.0)


def _launch_id(run: Run, group: Group) -> str:
    return f"{group.kernel}-{len(run.launches())}"


def _describe(group: Group) -> str:
    parts = [group.kernel]
    if "level" in group.points[0]:
        parts.append(group.points[0]["level"])
    if "competitors" in group.points[0]:
        parts.append(f"N={group.points[0]['competitors']}")
    if "threads" in group.points[0]:
        parts.append(f"T={group.points[0]['threads']}")
    return " ".join([*parts, group.layout.text])


def _describe_failures(failures: Sequence[tuple[Group, str]]) -> str:
    group, cause = failures[0]
    more = f" (and {counted(len(failures) - 1, 'other launch', 'other launches')})" if failures[1:] else ""
    return f"{_describe(group)} on {group.points[0]['mpi']} failed: {cause}{more}"


def _describe_point(request: Request, index: int) -> str:
    """Return a description of point `index` of a launch, which is being measured when `index` are done."""
    point = request.points[min(index, len(request.points) - 1)]
    parts = [request.kernel, point.get("level", request.layout.text)]
    if "competitors" in point:
        parts.append(f"N={point['competitors']}")
    if "threads" in point:
        parts.append(f"T={point['threads']}")
    if "size_bytes" in point:
        parts.append(format_bytes(point["size_bytes"]))
    return " ".join(parts)
