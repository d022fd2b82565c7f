"""Launches the ranks of a check: on all nodes, on some, and on pairs at once; reports how far each launch
came."""

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from earlybird.check.locating import MAX_AT_ONCE, Group, OutOfTime, Tried
from earlybird.check.plan import CheckPlan
from earlybird.check.tournament import num_rounds, pairs_of
from earlybird.data.errors import WorkError
from earlybird.data.kernels import CHECK
from earlybird.data.labels import counted, listed_briefly
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.run import Run, Sample, require_validated
from earlybird.data.units import format_seconds
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.launcher import Launched, Launcher, Request, Rules
from earlybird.launch.placement import require_placed
from earlybird.launch.slurm import SrunLauncher, allocated_hosts
from earlybird.machine.hardware import runnable
from earlybird.measure.heartbeats import Heartbeats

# A launch that takes so many times the planned time hangs.
_PATIENCE = 4.0
# A launch of a pair ends if it completes nothing for so long, or for so many times the plan of a round.
_MAX_TRY_S, _TRY_PATIENCE = 15.0, 2.0
# Launches of pairs that fail, one after the other, for which there is time: see `find_guilty`.
MAX_TRIES = 12
_TRY_RULES = Rules(budget_s=1e-3, min_iterations=2)

Heard = Callable[[int, int, str, float], None]  # points done, all points, what is measured, seconds left
Say = Callable[[str], None]


class FailedLaunch(Exception):
    """A launch that did not complete: the cause, and the nodes whose ranks did nothing while others waited,
    with what they did last."""

    def __init__(self, sentence: str, cause: str, stopped: Mapping[int, str]):
        super().__init__(sentence)
        self.sentence, self.cause, self.stopped = sentence, cause, stopped


@dataclass
class Launches:
    """A launcher of some nodes of a check, which keep the numbers that they have among all nodes."""

    launcher: Launcher
    plan: CheckPlan
    given_hosts: tuple[str, ...]
    stall_limit_s: float
    folder: Path
    run: Run | None
    heard: Heard
    count: int = 0
    load: float | None = None  # of others on this machine, if all nodes share it

    def __post_init__(self) -> None:
        self.launcher.check(self._layout(range(self.plan.nodes))[1])
        self._names = list(self.given_hosts) or _names_of(self.launcher)
        self._reported: list[str] = []  # the names that the nodes have themselves
        self._end_s = math.inf

    @property
    def flavour(self) -> str:
        return self.launcher.flavour

    @property
    def hosts(self) -> list[str]:
        """The name of every node; empty while it is not known."""
        if self._reported and not self.given_hosts:
            return self._reported
        return self._names[: self.plan.nodes]

    def names_of(self, node: int) -> set[str]:
        """Return the names by which a node may be called."""
        known = {names[node] for names in (self.hosts, self._reported) if names}
        return known | {name.partition(".")[0] for name in known if not name.replace(".", "").isdigit()}

    @property
    def can_be_divided(self) -> bool:
        """True if single nodes can be launched: they are real, and known by name."""
        return self.plan.facts and len(self.hosts) == self.plan.nodes

    def plan_of(self, nodes: Sequence[int]) -> CheckPlan:
        return self.plan if len(nodes) == self.plan.nodes else self.plan.of_fewer(len(nodes))

    def check(self, nodes: Sequence[int], points: Sequence[dict[str, Any]], rules: Rules) -> Launched:
        """Launch `points` on `nodes`; raise FailedLaunch if the launch does not complete."""
        plan = self.plan_of(nodes)
        expected_s = plan.total_s()
        launcher, layout = self._layout(nodes)
        request = Request(
            f"check-{self.count}", CHECK.name, points, layout, rules,
            # A simulation takes as long as it takes, if its points complete.
            time_limit_s=_PATIENCE * expected_s + 2 * self.stall_limit_s if plan.facts else math.inf,
            stall_limit_s=self.stall_limit_s,
        )  # fmt: skip
        self.count += 1
        begin_s = time.monotonic()

        def heard(count: int, last: Sample | None) -> None:
            share = count / len(points)
            pace_s = expected_s if plan.facts or not count else (time.monotonic() - begin_s) / share
            self.heard(count, len(points), _what(points, count, plan.nodes), max(pace_s * (1 - share), 0.0))

        before = runnable() if plan.shared_machine else None
        launched, beats = self._launch(launcher, request, heard)
        if before is not None:
            self.load = max(before, runnable())
        if self.run is not None:
            self.run.append_launch(launched.record)
            self.run.append_samples(launched.samples)
        if launched.interrupted:
            raise KeyboardInterrupt
        placement = launched.record.get("placement", [])
        require_placed(layout, placement)
        if len(placement) == len(nodes) == self.plan.nodes:
            self._reported = [entry["host"] for entry in placement]
        if launched.cause is not None:
            spent_s = time.monotonic() - begin_s
            sentence = self._failure(launched, points, nodes, spent_s)
            raise FailedLaunch(sentence, launched.cause, self._stopped(beats, nodes))
        require_validated(launched.samples)
        return launched

    def dead_nodes(self) -> list[int]:
        """Return the nodes of a virtual cluster that no longer exist; others can be launched without them."""
        if not isinstance(self.launcher, ClusterLauncher):
            return []
        lost = self.launcher.cluster.lost_nodes()
        self.launcher = replace(self.launcher, left_out=frozenset(lost))
        return [node for node, name in enumerate(self.hosts) if name in lost]

    def begin_search(self) -> float:
        """Start the time in which `try_groups` may be called."""
        limit_s = MAX_TRIES * self._try_limit_s()
        self._end_s = time.monotonic() + limit_s
        return limit_s

    def try_groups(self, groups: Sequence[Group]) -> list[Tried]:
        """Launch groups without a common node, up to MAX_AT_ONCE at once: a message of 8 bytes in each
        direction of every pair, then the large ones of the check. Raises OutOfTime."""
        if time.monotonic() > self._end_s:
            raise OutOfTime
        stop = Event()
        with ThreadPoolExecutor(min(len(groups), MAX_AT_ONCE)) as pool:
            tries = [pool.submit(self._try, group, stop) for group in groups]
            try:
                return [one.result() for one in tries]
            except BaseException:
                stop.set()
                raise

    def _try(self, group: Group, stop: Event) -> Tried:
        limit_s, rounds = self._try_limit_s(), num_rounds(len(group))
        launcher, layout = self._layout(group)
        common = {"mpi": self.flavour, "nodes": len(group), "part": "pairs", "batch": 1}
        points = [
            common | {"size_bytes": size_bytes, "round": round_}
            for size_bytes in (1, self.plan.size_bytes) for round_ in range(rounds)
        ]  # fmt: skip
        id = f"check-{'-'.join(map(str, group[:2]))}"
        request = Request(
            id,
            CHECK.name,
            points,
            layout,
            _TRY_RULES,
            time_limit_s=2 * limit_s + rounds * self.plan.round_s(),
            stall_limit_s=limit_s,
            stop=stop,
        )
        try:
            launched, beats = self._launch(launcher, request, lambda count, last: None)
        except WorkError as error:
            return Tried("nothing", str(error))
        if launched.cause is None:
            return Tried("end")
        if len(launched.samples) >= rounds:
            return Tried("small messages", launched.cause)
        has_started = launched.record.get("placement") or len(beats.hosts) >= len(group)
        return Tried("start" if has_started else "nothing", launched.cause)

    def _try_limit_s(self) -> float:
        return max(min(self.stall_limit_s, _MAX_TRY_S), _TRY_PATIENCE * self.plan.round_s())

    def _layout(self, nodes: Sequence[int]) -> tuple[Launcher, Layout]:
        """Return the launcher and the layout that start a rank on each of these nodes."""
        if len(nodes) == self.plan.nodes:
            return self.launcher, parse_layout(f"{len(nodes)}x1x1")
        if isinstance(self.launcher, SrunLauncher):
            names = tuple(self.hosts[node] for node in nodes)
            return replace(self.launcher, nodelist=names), parse_layout(f"{len(nodes)}x1x1")
        return self.launcher, Layout.from_arrays(list(nodes))

    def _launch(self, launcher: Launcher, request: Request, heard: Any) -> tuple[Launched, Heartbeats]:
        """Launch `request`; return the result and the heartbeats that its ranks left."""
        scratch = Path(tempfile.mkdtemp(prefix=".check-", dir=self.folder))
        try:
            with Heartbeats(scratch, request.stall_limit_s) as beats:
                launched = launcher.launch(request, scratch, heard)
            return launched, beats
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _stopped(self, beats: Heartbeats, nodes: Sequence[int]) -> dict[int, str]:
        if not self.hosts:
            return {}
        hosts = [self.hosts[node] for node in nodes]
        of_nodes = ((node, host) for node in nodes for host in self.names_of(node) & beats.stopped)
        return {node: beats.doing(host, hosts) for node, host in of_nodes}

    def _failure(
        self, launched: Launched, points: Sequence[dict[str, Any]], nodes: Sequence[int], spent_s: float
    ) -> str:
        placement = launched.record.get("placement", [])
        spent = format_seconds(round(spent_s, 1))
        if not placement:
            return f"the check ended after {spent} before all ranks had started: {launched.cause}"
        hosts = [self.hosts[node] for node in nodes] or [entry["host"] for entry in placement]
        done = len(launched.samples)
        where = _what(points, done, len(nodes), hosts)
        return (
            f"the check ended after {spent} and {done} of {counted(len(points), 'part')}, while all "
            f"nodes took part in {where}: {launched.cause}"
        )


def _names_of(launcher: Launcher) -> list[str]:
    if isinstance(launcher, ClusterLauncher):
        return [node.name for node in launcher.cluster.nodes]
    return list(allocated_hosts(launcher.srun.component)) if isinstance(launcher, SrunLauncher) else []


def _what(points: Sequence[dict[str, Any]], index: int, nodes: int, hosts: Sequence[str] = ()) -> str:
    """Return what is measured once `index` points are done, with the pairs if the hosts are known."""
    point = points[min(index, len(points) - 1)]
    if point["part"] == "nodes":
        return "the description of the nodes"
    if point["part"] != "pairs":
        root = hosts[point["root"]] if hosts else f"node {point['root']}"
        return f"the {point['part']} of {root}"
    text = f"round {point['round']}"
    if not hosts:
        return text
    pairs = [f"{hosts[one]} with {hosts[other]}" for one, other in pairs_of(point["round"], nodes)]
    return f"{text} ({listed_briefly(pairs)})"
