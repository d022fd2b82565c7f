"""Other work on the nodes: on few of them it is a finding, and if most are busy, times decide nothing."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data.check import (
    BANDWIDTH,
    BOTH,
    COMPUTATION,
    INCAST,
    LATENCY,
    MIN_JUDGED,
    NODE,
    OUTCAST,
    Finding,
)
from earlybird.data.labels import counted, listed_briefly

_TIMES = (BANDWIDTH, BOTH, LATENCY, COMPUTATION, INCAST, OUTCAST)
# A node is busy if others used so many of its cores, and at least one.
_BUSY_SHARE, _MIN_LOAD = 0.5, 1.0


def busy_nodes(hosts: Sequence[str], facts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return texts such as `load 6 on 2 cores` by host, for the nodes on which other programs ran while they
    were measured, if these are too many for their times to be judged; few of them are findings."""
    busy = _busy_positions(facts)
    if _is_minority(busy, facts):
        return {}
    return {
        hosts[k]: f"load {_load(facts[k]):.2g} on {counted(int(facts[k].get('cores', 1)), 'core')}"
        for k in busy
    }


def load_findings(hosts: Sequence[str], facts: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return the nodes on which other programs ran, if there were none on most nodes: such a program is left
    over, or belongs to another job."""
    busy = _busy_positions(facts)
    if not _is_minority(busy, facts):
        return []
    usual = statistics.median_low(_load(one) for k, one in enumerate(facts) if k not in busy)
    cause = "other processes use its cores: look at top there, for what an earlier job has left"
    return [
        Finding(NODE, (hosts[k],), "load of others", f"{_load(facts[k]):.2g}", f"{usual:.2g}", cause)
        for k in busy
    ]


def _load(facts: Mapping[str, Any]) -> float:
    return float(facts.get("load_of_others", 0.0))


def _busy_positions(facts: Sequence[Mapping[str, Any]]) -> list[int]:
    return [
        k
        for k, one in enumerate(facts)
        if _load(one) >= max(_BUSY_SHARE * int(one.get("cores", 1)), _MIN_LOAD)
    ]


def _is_minority(busy: Sequence[int], facts: Sequence[Mapping[str, Any]]) -> bool:
    return len(facts) >= MIN_JUDGED and 2 * len(busy) < len(facts)


def split_undecided(found: Sequence[Finding], busy: Mapping[str, str]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that stand, and those by times of nodes that were busy, with that as the cause."""
    decided, undecided = [], []
    for one in found:
        loads = [busy[host] for host in one.hosts if host in busy]
        reasons = [f"{host} had {busy[host]}" for host in one.hosts if host in busy]
        if len(loads) > 1 and len(set(loads)) == 1:
            reasons = [f"{listed_briefly(one.hosts)} had {loads[0]}"]
        if reasons and one.measure.endswith(_TIMES):
            cause = f"undecided because {listed_briefly(reasons)}; check again when nothing else runs there"
            undecided.append(replace(one, cause=cause))
        else:
            decided.append(one)
    return decided, undecided
