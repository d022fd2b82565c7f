"""Other work on the nodes: of a node whose cores were busy nothing is decided by times."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data.check import BANDWIDTH, BOTH, COMPUTATION, INCAST, LATENCY, OUTCAST, Finding
from earlybird.data.labels import counted, listed_briefly

_TIMES = (BANDWIDTH, BOTH, LATENCY, COMPUTATION, INCAST, OUTCAST)
# A node is busy if others used so many of its cores, and at least one.
_BUSY_SHARE = 0.5


def busy_nodes(hosts: Sequence[str], facts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """`load 6 on 2 cores` by host, of the nodes on which others ran while they were measured."""
    busy = {}
    for host, one in zip(hosts, facts, strict=bool(facts)):
        load, cores = float(one.get("load_of_others", 0.0)), int(one.get("cores", 1))
        if load >= max(_BUSY_SHARE * cores, 1.0):
            busy[host] = f"load {load:.2g} on {counted(cores, 'core')}"
    return busy


def split_undecided(found: Sequence[Finding], busy: Mapping[str, str]) -> tuple[list[Finding], list[Finding]]:
    """Findings that stand, and those by times of nodes that were busy, with that as the cause."""
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
