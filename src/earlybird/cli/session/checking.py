"""Plans and performs a check with the launcher that a command's options select."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earlybird import __version__
from earlybird.check.plan import CheckPlan, make_plan
from earlybird.cli.output.progress import ProgressLine
from earlybird.cli.session.launchers import is_simulated, machine_of, make_launcher, network_of
from earlybird.data.check import Check
from earlybird.data.errors import InputError
from earlybird.data.run import Run
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.launcher import Launcher
from earlybird.launch.local import MpiexecLauncher
from earlybird.launch.simgrid import SimgridLauncher
from earlybird.measure.check import CheckSettings, run_check


@dataclass(frozen=True)
class PlannedCheck:
    """The launcher, and what it will measure; `settings` are those of the command."""

    launcher: Launcher
    plan: CheckPlan
    settings: Mapping[str, Any]


def planned_check(settings: Mapping[str, Any], budget_s: float, size_bytes: int | None) -> PlannedCheck:
    """Raises InputError for a job of one node, for a launcher without ranks, and for too short a budget."""
    if settings["launcher"].partition(":")[0] == "synthetic":
        raise InputError(
            "--launcher synthetic starts no ranks, so there is no node to check; give --hosts, or --launcher "
            "srun, cluster:NAME or simgrid:NODESx1x1"
        )
    launcher, resources = make_launcher(settings)
    bandwidth, latency_s = _network(launcher)
    plan = make_plan(
        resources.nodes, budget_s, size_bytes=size_bytes, bandwidth_bytes_per_s=bandwidth,
        latency_s=latency_s, shared_machine=isinstance(launcher, ClusterLauncher),
        facts=not is_simulated(settings["launcher"]),
    )  # fmt: skip
    return PlannedCheck(launcher, plan, settings)


def perform_check(
    planned: PlannedCheck,
    min_effect: float,
    stall_limit_s: float,
    folder: Path,
    output: Path | None,
    quiet: bool,
) -> Check:
    """Temporary files go to `folder`, launches and samples to a run folder `output` if it is given."""
    launcher = planned.launcher
    hosts = launcher.hosts if isinstance(launcher, MpiexecLauncher) else ()
    settings = CheckSettings(hosts, min_effect, stall_limit_s)
    run = _create_run(planned, output) if output is not None else None
    progress = ProgressLine(quiet)

    def heard(done: int, total: int, what: str, left_s: float) -> None:
        progress.update(done, total, what, left_s, None)

    try:
        return run_check(launcher, planned.plan, settings, folder, run, heard)
    finally:
        progress.close()


def _create_run(planned: PlannedCheck, output: Path) -> Run:
    launcher = planned.launcher
    place = {"mpi": launcher.flavour, "network": network_of(launcher)}
    return Run.create(
        output, machine=machine_of(launcher), command=["earlybird", *sys.argv[1:]], seed=0,
        earlybird=__version__, settings={**planned.settings, **place},
    )  # fmt: skip


def _network(launcher: Launcher) -> tuple[float | None, float | None]:
    """Bandwidth and latency if they are known; the latency of virtual nodes, which share cores, roughly."""
    if isinstance(launcher, ClusterLauncher):
        link = launcher.cluster.link or {}
        return launcher.cluster.rate_bytes_per_s, max(200e-6, 2 * link.get("latency_s", 0.0))
    if isinstance(launcher, SimgridLauncher):
        cost = launcher.machine.levels["inter_node"]
        return cost.bandwidth_bytes_per_s, cost.latency_s
    return None, None
