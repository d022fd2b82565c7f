"""Plans and performs a check with the launcher that a command's options select."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earlybird import __version__
from earlybird.check.expectations import Expected, expected_of_check, parse_figure, with_figures
from earlybird.check.plan import CheckPlan, make_plan
from earlybird.cli.commands.baseline import FOLDER, find_baseline
from earlybird.cli.session.launchers import is_simulated, machine_of, make_launcher, network_of
from earlybird.cli.session.progress import ProgressLine
from earlybird.data.check import Check, load_check
from earlybird.data.errors import InputError
from earlybird.data.run import Run
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.launcher import Launcher
from earlybird.launch.local import MpiexecLauncher
from earlybird.launch.simgrid import SimgridLauncher
from earlybird.measure.check import CheckSettings, run_check
from earlybird.present.render.notes import note


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
    launcher, resources = make_launcher({**settings, "without_dead_nodes": True})
    bandwidth, latency_s = _network(launcher)
    plan = make_plan(
        resources.nodes, budget_s, size_bytes=size_bytes, bandwidth_bytes_per_s=bandwidth,
        latency_s=latency_s, shared_machine=isinstance(launcher, ClusterLauncher),
        facts=not is_simulated(settings["launcher"]),
    )  # fmt: skip
    return PlannedCheck(launcher, plan, settings)


def expected_values(texts: Sequence[str]) -> Expected | None:
    """Of `--expect`: at most one check, and figures; None without any."""
    figures = {}
    checks = []
    for text in texts:
        if (figure := parse_figure(text)) is not None:
            figures[figure[0]] = figure[1]
        else:
            checks.append(text)
    if len(checks) > 1:
        raise InputError(f"--expect names {len(checks)} checks, {checks[0]} and {checks[1]}; give one")
    expected = expected_of_check(*_found_check(checks[0])) if checks else None
    return with_figures(expected, figures)


def _found_check(text: str) -> tuple[Check, str]:
    """The check of a file, of a folder or of a name, and what it is called."""
    path = Path(text)
    if path.is_dir():
        path = path / "check.json"
        if not path.exists():
            raise InputError(f"--expect {text} has no check.json; give the folder of a check that completed")
    elif not path.exists():
        path = find_baseline(text, FOLDER)
    return load_check(path), f"the check {text}"


def perform_check(
    planned: PlannedCheck,
    min_effect: float,
    stall_limit_s: float,
    expected: Expected | None,
    folder: Path,
    output: Path | None,
    quiet: bool,
) -> Check:
    """Temporary files go to `folder`, launches and samples to a run folder `output` if it is given."""
    launcher = planned.launcher
    hosts = launcher.hosts if isinstance(launcher, MpiexecLauncher) else ()
    settings = CheckSettings(hosts, min_effect, stall_limit_s, expected)
    run = _create_run(planned, output) if output is not None else None
    progress = ProgressLine(quiet)

    def heard(done: int, total: int, what: str, left_s: float) -> None:
        progress.update(done, total, what, left_s, None)

    def say(text: str) -> None:
        progress.close()
        note(text)

    try:
        return run_check(launcher, planned.plan, settings, folder, run, heard, say)
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
