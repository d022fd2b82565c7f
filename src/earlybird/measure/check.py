"""Runs a check: one launch of all pairs and nodes, and a second one of what was suspicious in it.

If the nodes cannot complete it together, pairs of them are launched, and those that can are checked.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.check.expectations import Expected
from earlybird.check.facts import fact_findings, fact_remarks
from earlybird.check.load import busy_nodes, split_undecided
from earlybird.check.locating import (
    Located,
    OutOfTime,
    dead_finding,
    division_remarks,
    failure_findings,
    find_bad_links,
    find_guilty,
    killed_finding,
    stopped_finding,
)
from earlybird.check.measured import Measured, measured_from
from earlybird.check.plan import MIN_ITERATIONS, CheckPlan
from earlybird.check.suspicions import Suspicion, confirmed, faster_remarks, find_suspicions, unjudged_links
from earlybird.check.tournament import round_of
from earlybird.check.verdicts import findings
from earlybird.data.check import MIN_JUDGED, NODE, Check, CheckedNode, Finding
from earlybird.data.covers import connected, smallest_covers
from earlybird.data.errors import WorkError
from earlybird.data.labels import listed_briefly
from earlybird.data.run import Run
from earlybird.data.units import format_seconds
from earlybird.launch.job_output import signalled_host
from earlybird.launch.launcher import Launcher, Rules
from earlybird.measure.check_launches import FailedLaunch, Heard, Launches, Say

_TARGET = 0.05  # of the stop rule: links differ by more if they are called slow
_CONTROLS = 3  # other nodes of which an incast or outcast is measured again, next to a suspicious one
# Evidence of single nodes is followed so often before pairs are tried.
_MAX_EVIDENCE = 3


@dataclass(frozen=True)
class CheckSettings:
    """The settings of a check, apart from what it measures.

    `hosts` : the names of the nodes for the files of hosts; empty if the nodes' own names are used.
    `stall_limit_s` : a launch ends if it completes no point for this time. `expected` : values that nodes
    must have, however slow the others are.
    """

    hosts: tuple[str, ...] = ()
    min_effect: float = 0.10
    stall_limit_s: float = 30.0
    expected: Expected | None = None


def run_check(
    launcher: Launcher,
    plan: CheckPlan,
    settings: CheckSettings,
    folder: Path,
    run: Run | None,
    heard: Heard,
    say: Say = lambda text: None,
) -> Check:
    """Check the nodes of `launcher`; `folder` is for temporary files that all nodes see. Launches and samples
    are kept in `run` if it is given. `say` gets a message about each step that takes longer than planned.

    Raises WorkError if the ranks cannot be started or do not complete, and the nodes at fault are not found:
    the message states the cause and how far the check has come.
    """
    begin_s = time.monotonic()
    launches = Launches(launcher, plan, settings.hosts, settings.stall_limit_s, folder, run, heard)
    able = _AbleNodes(launches, say)
    part = able.measure(lambda nodes: _measure(launches, nodes, settings))
    hosts = launches.hosts
    found = [*able.findings, *part.findings]
    notes = [*able.notes, *part.notes]
    measured = part.measured.among(part.nodes, plan.nodes)
    pairs = ~np.isnan(measured.latency_s) | ~np.isnan(measured.latency_s.T)
    unmeasured = plan.nodes * (plan.nodes - 1) // 2 - int(np.count_nonzero(np.triu(pairs, 1)))
    return Check(
        mpi=f"{launcher.flavour} {part.version}".strip(), launcher=launcher.name,
        size_bytes=plan.size_bytes, cast_bytes=launches.plan_of(part.nodes).cast_bytes,
        min_effect=settings.min_effect,
        planned_s=plan.total_s(), spent_s=round(time.monotonic() - begin_s, 3), launches=launches.count,
        nodes=tuple(_node(hosts[k], measured, k) for k in range(plan.nodes)),
        latency_s=_known(measured.latency_s), send_s=_known(measured.send_s), both_s=_known(measured.both_s),
        lost_share=_known(measured.lost_share), findings=tuple(found), undecided=tuple(part.undecided),
        notes=tuple(notes), unjudged_links=part.unjudged + unmeasured,
        measured_nodes=len(part.nodes) if len(part.nodes) < plan.nodes else 0,
    )  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """The measurement of some nodes, numbered by their position among these, and the findings."""

    nodes: tuple[int, ...]
    measured: Measured
    version: str = ""
    findings: Sequence[Finding] = ()
    undecided: Sequence[Finding] = ()
    notes: Sequence[str] = ()
    unjudged: int = 0


def _measure(launches: Launches, nodes: tuple[int, ...], settings: CheckSettings) -> _Part:
    """Measure `nodes`; raise FailedLaunch if a launch does not complete."""
    plan, effect = launches.plan_of(nodes), settings.min_effect
    if len(nodes) < 2:
        return _Part(nodes, measured_from([], len(nodes)))
    rules = Rules(target=_TARGET, budget_s=max(plan.point_s, 1e-3), min_iterations=MIN_ITERATIONS)
    first = launches.check(nodes, plan.points(launches.flavour), rules)
    hosts = [launches.hosts[node] for node in nodes]
    like = _alike(first.record["placement"], plan.shared_machine)
    expected = settings.expected

    def below(measured: Measured) -> list[Finding]:
        return expected.findings(measured, hosts, plan, effect) if expected else []

    measured = measured_from(first.samples, len(nodes)).with_load(launches.load)
    suspicious, too_slow = find_suspicions(measured, like, effect), below(measured)
    if points := _points_again(plan, suspicious, launches.flavour, every=bool(too_slow)):
        point_s, iterations = plan.again(len(points))
        rules = replace(rules, budget_s=max(point_s, 1e-3), min_iterations=iterations)
        again = launches.check(nodes, points, rules)
        measured = measured_from(again.samples, len(nodes)).filled_with(measured).with_load(launches.load)
        suspicious = confirmed(find_suspicions(measured, like, effect), suspicious)
        before = {(one.hosts, one.measure) for one in too_slow}
        too_slow = [one for one in below(measured) if (one.hosts, one.measure) in before]
    unjudged = unjudged_links(measured, like, effect) if len(nodes) >= MIN_JUDGED else []
    found = findings(suspicious, measured, hosts, plan.size_bytes, plan.cast_bytes, unjudged)
    named = {(host, one.measure.split()[-1]) for one in found for host in one.hosts if one.kind == NODE}
    found += [one for one in too_slow if (one.hosts[0], one.measure) not in named]
    decided, undecided = split_undecided(found, busy_nodes(hosts, measured.facts))
    decided += fact_findings(hosts, measured.facts, effect)
    notes = [*fact_remarks(hosts, measured.facts, effect), *faster_remarks(measured, hosts, effect)]
    if len(nodes) < MIN_JUDGED:
        notes.insert(0, f"two nodes cannot show which of them is at fault; check at least {MIN_JUDGED}")
    if unjudged:
        pairs = [f"{hosts[one]} with {hosts[other]}" for one, other in unjudged]
        notes.append(
            f"the latency and bandwidth of {listed_briefly(pairs)} were not judged: they share a core, and "
            "some nodes have fewer than two such links to compare"
        )
    version = first.record.get("version", "")
    return _Part(nodes, measured, version, decided, undecided, notes, len(unjudged))


class _AbleNodes:
    """The nodes that complete a launch together; the others are identified from what a failed launch left and
    by launches of pairs."""

    def __init__(self, launches: Launches, say: Say):
        self._launches, self._say = launches, say
        self.findings: list[Finding] = []
        self.notes: list[str] = []

    def measure(self, measure_nodes: Callable[[tuple[int, ...]], _Part]) -> _Part:
        """Return the result of `measure_nodes` for the nodes that can complete it; raise WorkError if these
        are not identified."""
        nodes = self._without_dead(tuple(range(self._launches.plan.nodes)))
        searches = [self._by_pairs, self._by_links]
        followed = 0
        unexplained = ""
        while True:
            try:
                part = measure_nodes(nodes)
                if unexplained:
                    self.notes.append(
                        f"a first launch did not complete, and that did not happen again: {unexplained}"
                    )
                return part
            except FailedLaunch as failed:
                if not self._launches.can_be_divided or len(nodes) <= 2:
                    raise WorkError(failed.sentence) from None
                left = self._without_dead(nodes)
                if left == nodes and followed < _MAX_EVIDENCE:
                    left = self._by_evidence(failed, nodes)
                followed += 1
                if left == nodes:
                    if not searches:
                        raise WorkError(
                            f"{failed.sentence}; pairs of these nodes complete launches of their own, so "
                            "which of them is at fault was not found"
                        ) from None
                    left = self._searched(searches.pop(0), failed, nodes)
                unexplained = failed.cause if left == nodes else ""
                nodes = left

    def _without_dead(self, nodes: tuple[int, ...]) -> tuple[int, ...]:
        dead = [node for node in self._launches.dead_nodes() if node in nodes]
        self.findings += [dead_finding(self._launches.hosts[node]) for node in dead]
        return tuple(node for node in nodes if node not in dead)

    def _by_evidence(self, failed: FailedLaunch, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """Return `nodes` without those whose ranks stopped, or were ended by a signal."""
        hosts = self._launches.hosts
        found = {node: stopped_finding(hosts[node], doing) for node, doing in failed.stopped.items()}
        if not found and (killed := signalled_host(failed.cause)):
            host, how = killed
            known = [node for node in nodes if host in self._launches.names_of(node)]
            found = {node: killed_finding(hosts[node], how) for node in known}
        self.findings += found.values()
        if found:
            self._say(f"{failed.sentence}; checking the other nodes")
        return tuple(node for node in nodes if node not in found)

    def _searched(
        self,
        search: Callable[[FailedLaunch, tuple[int, ...]], tuple[int, ...]],
        failed: FailedLaunch,
        nodes: tuple[int, ...],
    ) -> tuple[int, ...]:
        limit = format_seconds(round(self._launches.begin_search()))
        self._say(f"{failed.sentence}; looking for the nodes at fault by launches of pairs, at most {limit}")
        try:
            return search(failed, nodes)
        except OutOfTime:
            sentence = f"{failed.sentence}; which nodes are at fault was not found within {limit}"
            raise WorkError(sentence) from None

    def _by_pairs(self, failed: FailedLaunch, nodes: tuple[int, ...]) -> tuple[int, ...]:
        located = find_guilty(nodes, self._launches.try_groups)
        if not located.good:
            raise WorkError(
                f"{failed.sentence}; no two of these nodes complete a launch of their own, so the launcher, "
                "the network of all or this machine is at fault"
            )
        self._add(located)
        return self._without_links(located.links, located.good)

    def _by_links(self, failed: FailedLaunch, nodes: tuple[int, ...]) -> tuple[int, ...]:
        bad = find_bad_links(nodes, self._launches.try_groups)
        self._add(Located(links=bad))
        return self._without_links(bad, nodes)

    def _add(self, located: Located) -> None:
        hosts = self._launches.hosts
        self.findings += failure_findings(located, hosts, self._launches.plan.size_bytes)
        self.notes += division_remarks(located, hosts)

    def _without_links(self, links: Any, nodes: Sequence[int]) -> tuple[int, ...]:
        """Return `nodes` without one end of each link."""
        out = {node for group in connected(links) for node in smallest_covers(group)[0][0]}
        return tuple(node for node in nodes if node not in out)


def _points_again(
    plan: CheckPlan, suspicious: Sequence[Suspicion], mpi: str, *, every: bool = False
) -> list[dict[str, Any]]:
    """Return the points to measure again: the rounds in which suspicious pairs meet, the incasts and outcasts
    of suspicious nodes and of some others, and all nodes; all points if `every`, none if nothing is
    suspicious."""
    if every:
        return plan.points(mpi)
    if not suspicious:
        return []
    rounds = {round_of(one.first, one.second, plan.nodes) for one in suspicious if one.is_link}
    roots = {one.first for one in suspicious if not one.is_link}
    if roots:
        others = [node for node in range(plan.nodes) if node not in roots]
        roots |= set(others[:_CONTROLS])
    return plan.chosen(mpi, sorted(rounds), sorted(roots))


def _alike(placement: Sequence[dict[str, Any]], shared_machine: bool) -> np.ndarray:
    """Return an (N, N) array with equal numbers for links that should be equally fast: virtual nodes on one
    core (kind 1) answer later than those on two (0)."""
    if not shared_machine:
        return np.zeros((len(placement), len(placement)), dtype=int)
    cpus = [set(entry.get("cpus", ())) for entry in placement]
    return np.array([[int(bool(one & other)) for other in cpus] for one in cpus])


def _known(values: np.ndarray) -> np.ndarray:
    """Return `values` with 0 where nothing was measured."""
    return np.nan_to_num(values, nan=0.0)


def _node(host: str, measured: Measured, k: int) -> CheckedNode:
    values = {
        name: float(_known(getattr(measured, name))[k])
        for name in ("compute_s", "incast_s", "outcast_s", "clock_offset_s", "clock_drift")
    }
    return CheckedNode(host=host, **values, facts=measured.facts[k] if measured.facts else {})
