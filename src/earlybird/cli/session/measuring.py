"""Shared by `measure`, `replay` and `demo`: measurement effort, run folders and measurement sessions."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from earlybird import __version__
from earlybird.cli.options.shared import LimitOptions
from earlybird.cli.session.progress import shown_progress
from earlybird.data.errors import EarlybirdError, InputError
from earlybird.data.run import Run
from earlybird.data.run_continuation import resume_command
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.launcher import Launcher
from earlybird.launch.several import launchers_in
from earlybird.measure.continued import stored_effort
from earlybird.measure.effort import Effort, remarks_on
from earlybird.measure.groups import Group
from earlybird.measure.launchers import machine_of, network_of, with_link_measured
from earlybird.measure.session import Result, measure
from earlybird.present.render.notes import note


class Interrupted(EarlybirdError):
    """The interruption of a measurement by Ctrl-C; the message says which data is kept."""

    exit_status = 130


def new_effort(
    options: LimitOptions, launches: int, budget_s: float, seed: int, paper: bool = False
) -> Effort:
    """Return the effort of a new run."""
    return Effort(launches, budget_s, paper, seed, **options.limits())


def create_run(
    path: Path | None,
    prefix: str,
    effort: Effort,
    launcher: Launcher,
    settings: Mapping[str, Any],
    contents: Callable[[Path], None] | None = None,
) -> Run:
    """Create a run folder at `path`, or one named after `prefix` and the time, with the MPI and the network
    that --resume must use again, and what `contents` writes into it."""
    path = path or Path(f"{prefix}-{datetime.now():%Y%m%d-%H%M%S}")
    if (path / "run.json").exists():
        raise InputError(f"{path} exists already; choose another name, or add --resume to continue that run")
    first, *others = launchers_in(launcher)
    place: dict[str, Any] = {
        "mpi": [part.flavour for part in (first, *others)] if others else first.flavour,
        "network": network_of(launcher),
    }
    if isinstance(first, ClusterLauncher):
        place |= {"launcher": f"cluster:{first.cluster.name}", "nodes": len(first.cluster.nodes)}
    return _create(path, launcher, effort.seed, {**settings, **place, "effort": vars(effort)}, contents)


def _create(
    path: Path,
    launcher: Launcher,
    seed: int,
    settings: Mapping[str, Any],
    contents: Callable[[Path], None] | None = None,
) -> Run:
    return Run.create(
        path, machine=machine_of(launcher), command=["earlybird", *sys.argv[1:]], seed=seed,
        earlybird=__version__, settings=settings, contents=contents,
    )  # fmt: skip


def create_check_run(path: Path, launcher: Launcher, settings: Mapping[str, Any]) -> Run:
    """Create the run folder of a check."""
    place = {"mpi": launcher.flavour, "network": network_of(launcher)}
    return _create(path, launcher, 0, {**settings, **place})


def open_run(
    path: Path | None,
    needed: Iterable[str],
    launches: int | None,
    budget_s: float | None,
    options: LimitOptions,
) -> tuple[Run, dict[str, Any], Effort]:
    """Open the run to continue, with its settings, and its effort with `launches`, the budget and the limits
    of `options` replaced if given; raise InputError if a setting in `needed` is missing."""
    if path is None:
        raise InputError("--resume needs the run folder to continue; give it with -o RUN")
    run = Run.open(path)
    settings, effort = stored_effort(run, needed)
    given: dict[str, Any] = {"launches": launches, "budget_s": budget_s} | options.limits()
    return (
        run,
        settings,
        replace(effort, **{name: value for name, value in given.items() if value is not None}),
    )


def run_session(
    run: Run,
    launcher: Launcher,
    groups: Sequence[Group],
    effort: Effort,
    quiet: bool,
    *,
    resumable: bool = True,
    tolerated: int = 0,
) -> Result:
    """Measure `groups` into `run`; print progress and warnings on stderr.

    `resumable` says whether the calling command can continue the run; `tolerated` is how many groups may fail
    while the others are measured.
    """
    again = f"; continue with `{resume_command(run)}`" if resumable else ""
    launcher = with_link_measured(launcher, note)
    try:
        with shown_progress(quiet) as progress:
            result = measure(run, launcher, replace(effort.plan(groups), tolerated=tolerated), progress)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; complete points are stored in {run.path}{again}") from None
    for remark in remarks_on(result, effort, again or "; a larger --budget narrows them"):
        note(remark)
    return result
