"""Plans a check for the nodes on which a launcher starts ranks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from earlybird.check.plan import CheckPlan, make_plan
from earlybird.data.errors import InputError
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.launcher import Launcher
from earlybird.launch.simgrid import SimgridLauncher
from earlybird.measure.launchers import Note, ignore, is_simulated, make_launcher


@dataclass(frozen=True)
class PlannedCheck:
    """The launcher and the plan of a check; `settings` are those of the command."""

    launcher: Launcher
    plan: CheckPlan
    settings: Mapping[str, Any]


def planned_check(
    settings: Mapping[str, Any], budget_s: float, size_bytes: int | None, note: Note = ignore
) -> PlannedCheck:
    """Plan the check of the nodes on which a launcher of these settings starts ranks.

    Raises InputError for a job of one node, for a launcher without ranks, and for too short a budget.
    """
    if settings["launcher"].partition(":")[0] == "synthetic":
        raise InputError(
            "--launcher synthetic starts no ranks, so there is no node to check; give --hosts, or --launcher "
            "srun, cluster:NAME or simgrid:NODESx1x1"
        )
    launcher, resources = make_launcher({**settings, "without_dead_nodes": True}, note=note)
    bandwidth, latency_s = _network(launcher)
    plan = make_plan(
        resources.nodes, budget_s, size_bytes=size_bytes, bandwidth_bytes_per_s=bandwidth,
        latency_s=latency_s, shared_machine=isinstance(launcher, ClusterLauncher),
        facts=not is_simulated(settings["launcher"]),
    )  # fmt: skip
    return PlannedCheck(launcher, plan, settings)


def _network(launcher: Launcher) -> tuple[float | None, float | None]:
    """Return bandwidth and latency if they are known; the latency of virtual nodes, which share cores, is
    approximate."""
    if isinstance(launcher, ClusterLauncher):
        link = launcher.cluster.link or {}
        return launcher.cluster.rate_bytes_per_s, max(200e-6, 2 * link.get("latency_s", 0.0))
    if isinstance(launcher, SimgridLauncher):
        cost = launcher.machine.levels["inter_node"]
        return cost.bandwidth_bytes_per_s, cost.latency_s
    return None, None
