"""Runs a check: one launch of all pairs and nodes, and a second one of what was suspicious in it."""

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.check.facts import fact_findings, fact_remarks
from earlybird.check.measured import Measured, measured_from
from earlybird.check.plan import MIN_ITERATIONS, CheckPlan
from earlybird.check.suspicions import Suspicion, confirmed, find_suspicions, unjudged_links
from earlybird.check.tournament import pairs_of, round_of
from earlybird.check.verdicts import findings
from earlybird.data.check import MIN_JUDGED, Check, CheckedNode
from earlybird.data.errors import WorkError
from earlybird.data.labels import counted, listed_briefly
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.run import Run, Sample, require_validated
from earlybird.data.units import format_seconds
from earlybird.launch.launcher import Launched, Launcher, Request, Rules
from earlybird.launch.placement import require_placed

_TARGET = 0.05  # of the stop rule: links differ by more if they are called slow
_CONTROLS = 3  # other nodes of which an incast or outcast is measured again, next to a suspicious one
# A launch that takes so many times the planned time hangs.
_PATIENCE = 4.0

Heard = Callable[[int, int, str, float], None]  # points done, all points, what is measured, seconds left


@dataclass(frozen=True)
class CheckSettings:
    """`hosts` : the names of the nodes for the files of hosts; empty if they are those that the nodes have.
    `stall_limit_s` : a launch ends if it completes no point for so long."""

    hosts: tuple[str, ...] = ()
    min_effect: float = 0.10
    stall_limit_s: float = 30.0


def run_check(
    launcher: Launcher, plan: CheckPlan, settings: CheckSettings, folder: Path, run: Run | None, heard: Heard
) -> Check:
    """Check the nodes of `launcher`; `folder` is for temporary files that all nodes see. Launches and samples
    are kept in `run` if it is given.

    Raises WorkError if the ranks cannot be started or do not complete: the sentence has the cause and how far
    the check has come.
    """
    begin_s = time.monotonic()
    layout = parse_layout(f"{plan.nodes}x1x1")
    launcher.check(layout)
    session = _Session(launcher, plan, settings, layout, folder, run, heard)
    rules = Rules(target=_TARGET, budget_s=max(plan.point_s, 1e-3), min_iterations=MIN_ITERATIONS)
    first = session.launch(plan.points(launcher.flavour), rules)
    hosts = list(settings.hosts) or [entry["host"] for entry in first.record["placement"]]
    like = _alike(first.record["placement"], plan.shared_machine)
    measured = measured_from(first.samples, plan.nodes)
    suspicious = find_suspicions(measured, like, settings.min_effect)
    if points := _points_again(plan, suspicious, launcher.flavour):
        point_s, iterations = plan.again(len(points))
        rules = replace(rules, budget_s=max(point_s, 1e-3), min_iterations=iterations)
        again = session.launch(points, rules)
        measured = measured_from(again.samples, plan.nodes).filled_with(measured)
        suspicious = confirmed(find_suspicions(measured, like, settings.min_effect), suspicious)
    found = findings(suspicious, measured, hosts, plan.size_bytes, plan.cast_bytes)
    found += fact_findings(hosts, measured.facts, settings.min_effect)
    notes = fact_remarks(hosts, measured.facts, settings.min_effect)
    if plan.nodes < MIN_JUDGED:
        notes.insert(0, f"two nodes cannot show which of them is at fault; check at least {MIN_JUDGED}")
    unjudged = unjudged_links(measured, like) if plan.nodes >= MIN_JUDGED else []
    if unjudged:
        pairs = [f"{hosts[one]} with {hosts[other]}" for one, other in unjudged]
        notes.append(
            f"the latency and bandwidth of {listed_briefly(pairs)} were not judged: they share a core, and "
            "some nodes have fewer than two such links to compare"
        )
    return Check(
        mpi=f"{launcher.flavour} {first.record.get('version', '')}".strip(), launcher=launcher.name,
        size_bytes=plan.size_bytes, cast_bytes=plan.cast_bytes, min_effect=settings.min_effect,
        planned_s=plan.total_s(), spent_s=round(time.monotonic() - begin_s, 3), launches=session.launches,
        nodes=tuple(_node(hosts[k], measured, k) for k in range(plan.nodes)),
        latency_s=_known(measured.latency_s), send_s=_known(measured.send_s), both_s=_known(measured.both_s),
        lost_share=_known(measured.lost_share), findings=tuple(found), notes=tuple(notes),
        unjudged_links=len(unjudged),
    )  # fmt: skip


@dataclass
class _Session:
    launcher: Launcher
    plan: CheckPlan
    settings: CheckSettings
    layout: Layout
    folder: Path
    run: Run | None
    heard: Heard
    launches: int = 0

    def launch(self, points: Sequence[dict[str, Any]], rules: Rules) -> Launched:
        plan, expected_s = self.plan, self.plan.total_s()
        request = Request(
            f"check-{self.launches}", "check", points, self.layout, rules,
            # A simulation takes as long as it takes, if its points complete.
            time_limit_s=_PATIENCE * expected_s + 2 * self.settings.stall_limit_s if plan.facts else math.inf,
            stall_limit_s=self.settings.stall_limit_s,
        )  # fmt: skip
        self.launches += 1
        begin_s, done = time.monotonic(), 0

        def heard(count: int, last: Sample | None) -> None:
            nonlocal done
            done = count
            share = count / len(points)
            pace_s = expected_s if plan.facts or not count else (time.monotonic() - begin_s) / share
            self.heard(count, len(points), _what(points, count, plan.nodes), max(pace_s * (1 - share), 0.0))

        launched = self._launch(request, heard)
        if self.run is not None:
            self.run.append_launch(launched.record)
            self.run.append_samples(launched.samples)
        if launched.interrupted:
            raise KeyboardInterrupt
        require_placed(self.layout, launched.record.get("placement", []))
        if launched.cause is not None:
            raise WorkError(self._failure(launched, points, time.monotonic() - begin_s))
        require_validated(launched.samples)
        return launched

    def _launch(self, request: Request, heard: Any) -> Launched:
        scratch = Path(tempfile.mkdtemp(prefix=".check-", dir=self.folder))
        try:
            return self.launcher.launch(request, scratch, heard)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _failure(self, launched: Launched, points: Sequence[dict[str, Any]], spent_s: float) -> str:
        placement = launched.record.get("placement", [])
        spent = format_seconds(round(spent_s, 1))
        if not placement:
            return f"the check ended after {spent} before all ranks had started: {launched.cause}"
        hosts = list(self.settings.hosts) or [entry["host"] for entry in placement]
        done = len(launched.samples)
        where = _what(points, done, self.plan.nodes, hosts)
        return (
            f"the check ended after {spent} and {done} of {counted(len(points), 'part')}, while all "
            f"nodes took part in {where}: {launched.cause}"
        )


def _what(points: Sequence[dict[str, Any]], index: int, nodes: int, hosts: Sequence[str] = ()) -> str:
    """What is measured once `index` points are done, with the pairs if the hosts are known."""
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


def _points_again(plan: CheckPlan, suspicious: Sequence[Suspicion], mpi: str) -> list[dict[str, Any]]:
    """The rounds in which suspicious pairs meet, the incasts and outcasts of suspicious nodes and of some
    others, and all nodes; nothing if nothing is suspicious."""
    if not suspicious:
        return []
    rounds = {round_of(one.first, one.second, plan.nodes) for one in suspicious if one.is_link}
    roots = {one.first for one in suspicious if not one.is_link}
    if roots:
        others = [node for node in range(plan.nodes) if node not in roots]
        roots |= set(others[:_CONTROLS])
    return plan.chosen(mpi, sorted(rounds), sorted(roots))


def _alike(placement: Sequence[dict[str, Any]], shared_machine: bool) -> np.ndarray:
    """(N, N) equal numbers for links that should be as fast as each other: virtual nodes on one core (kind 1)
    answer later than those on two (0)."""
    if not shared_machine:
        return np.zeros((len(placement), len(placement)), dtype=int)
    cpus = [set(entry.get("cpus", ())) for entry in placement]
    return np.array([[int(bool(one & other)) for other in cpus] for one in cpus])


def _known(values: np.ndarray) -> np.ndarray:
    """0 where nothing was measured."""
    return np.nan_to_num(values, nan=0.0)


def _node(host: str, measured: Measured, k: int) -> CheckedNode:
    values = {
        name: float(_known(getattr(measured, name))[k])
        for name in ("compute_s", "incast_s", "outcast_s", "clock_offset_s", "clock_drift")
    }
    return CheckedNode(host=host, **values, facts=measured.facts[k] if measured.facts else {})
