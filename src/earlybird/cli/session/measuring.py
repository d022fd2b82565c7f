"""Shared by `measure`, `replay` and `demo`: measurement effort, run folders and measurement sessions."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from earlybird import __version__
from earlybird.cli.options.shared import LimitOptions
from earlybird.cli.session.launchers import machine_of, network_of, with_link_measured
from earlybird.cli.session.progress import ProgressLine
from earlybird.cli.session.sides import in_full, listed_mpis, mpi_setting
from earlybird.data import files, labels
from earlybird.data.clocks import doubt
from earlybird.data.collective_algorithms import VERIFICATION
from earlybird.data.errors import EarlybirdError, InputError
from earlybird.data.run import Run
from earlybird.data.run_continuation import STATED_AGAIN, resume_command
from earlybird.data.run_keys import MAX_LAUNCHES, MAX_SEED
from earlybird.data.units import format_seconds, parse_duration
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.launcher import Launcher, Rules
from earlybird.launch.several import launchers_in
from earlybird.machine import flavours
from earlybird.measure.groups import Group, Resources
from earlybird.measure.session import Plan, Result, measure
from earlybird.present.render.notes import note

# A message over a slow link takes milliseconds and varies little; the interval of a median needs 6.
_LINK_MIN_ITERATIONS = 8
# Warn if measuring takes more than this multiple of the budget.
_OVERRUN = 1.5
# Repetitions of a simulation differ only in the order of simultaneous messages; more iterations do not
# average that out.
_SIMULATED_MIN_ITERATIONS, _SIMULATED_TARGET = 3, 0.25


class Interrupted(EarlybirdError):
    """Ctrl-C while measuring; the message says what is kept."""

    exit_status = 130


@dataclass(frozen=True)
class Effort:
    """How hard to measure; stored in run.json, so that --resume continues with the same."""

    launches: int
    budget_s: float
    paper: bool = False
    seed: int = 1
    time_limit_s: float = 3600.0
    stall_limit_s: float = 60.0
    min_iterations: int = Rules.min_iterations
    target: float = Rules.target

    def __post_init__(self) -> None:
        if not 1 <= self.launches <= MAX_LAUNCHES:
            raise InputError(
                f"--launches is {self.launches}; give 1 to {MAX_LAUNCHES}; useful intervals need 5 or more"
            )
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"--seed is {self.seed}; give 0 to {MAX_SEED}")
        limits = {"budget": self.budget_s, "time-limit": self.time_limit_s, "stall-limit": self.stall_limit_s}
        for name, value in limits.items():
            if value <= 0:
                raise InputError(f"--{name} is {value:g} s; give more than 0")

    def plan(self, groups: Sequence[Group]) -> Plan:
        rules = Rules(min_iterations=self.min_iterations, target=self.target)
        if self.paper:
            from scipy.special import stdtrit

            quantile = float(stdtrit(rules.paper_iterations - 1, 0.95))  # two-sided 90 %
            rules = replace(rules, mode="paper", t_quantile=quantile)
        # In the paper's mode a point is complete only after its last attempt.
        stall_limit_s = self.stall_limit_s * (1 + rules.paper_retries if self.paper else 1)
        return Plan(groups, self.launches, self.budget_s, rules, self.seed, self.time_limit_s, stall_limit_s)


def new_effort(
    options: LimitOptions, launches: int, budget_s: float, seed: int, paper: bool = False
) -> Effort:
    """The effort of a new run."""
    return Effort(launches, budget_s, paper, seed, **_given_limits(options))


def _given_limits(options: LimitOptions) -> dict[str, float]:
    limits = {"time_limit": options.time_limit, "stall_limit": options.stall_limit}
    return {
        f"{name}_s": parse_duration(text, f"--{name.replace('_', '-')}")
        for name, text in limits.items()
        if text is not None
    }


def create_run(
    path: Path | None,
    prefix: str,
    effort: Effort,
    launcher: Launcher,
    settings: Mapping[str, Any],
    contents: Callable[[Path], None] | None = None,
) -> Run:
    """A new run folder at `path`, or one named after `prefix` and the time, with the MPI and the network that
    --resume must use again, and what `contents` writes into it."""
    path = path or Path(f"{prefix}-{datetime.now():%Y%m%d-%H%M%S}")
    if (path / "run.json").exists():
        raise InputError(f"{path} exists already; choose another name, or add --resume to continue that run")
    first, *others = launchers_in(launcher)
    place = {
        "mpi": [one.flavour for one in (first, *others)] if others else first.flavour,
        "network": network_of(launcher),
    }
    if isinstance(first, ClusterLauncher):
        place |= {"launcher": f"cluster:{first.cluster.name}", "nodes": len(first.cluster.nodes)}
    return Run.create(
        path, machine=machine_of(launcher), command=["earlybird", *sys.argv[1:]], seed=effort.seed,
        earlybird=__version__, settings={**settings, **place, "effort": vars(effort)}, contents=contents,
    )  # fmt: skip


def open_run(
    path: Path | None,
    needed: Iterable[str],
    launches: int | None,
    budget: str | None,
    options: LimitOptions,
) -> tuple[Run, dict[str, Any], Effort]:
    """The run to continue, with its settings, and its effort with `launches`, `budget` and the limits of
    `options` replaced if given; InputError if a setting in `needed` is missing because another command
    created it."""
    if path is None:
        raise InputError("--resume needs the run folder to continue; give it with -o RUN")
    run = Run.open(path)
    settings = run.header.get("settings")
    settings = files.with_current_keys(settings) if isinstance(settings, dict) else None
    if settings is None or not {"effort", *needed} <= settings.keys():
        raise InputError(
            f"{path} was created by another command or does not record how it was measured, so this command "
            "cannot continue it; use the command that created it, or measure again"
        )
    settings["mpi"] = mpi_setting(list(map(in_full, listed_mpis(settings.get("mpi")))))
    try:
        effort = Effort(**settings["effort"])
    except TypeError as error:
        raise InputError(
            f"{path} was created by another version of earlybird and cannot be continued; measure again"
        ) from error
    given: dict[str, Any] = _given_limits(options)
    given |= {} if launches is None else {"launches": launches}
    given |= {} if budget is None else {"budget_s": parse_duration(budget, "--budget")}
    return run, settings, replace(effort, **given)


def suited_to(resources: Resources, effort: Effort) -> Effort:
    """`effort` with fewer iterations over a virtual link, where they are slow, and in simulations, where
    they are alike."""
    if resources.family == flavours.SIMULATED:
        return replace(effort, min_iterations=_SIMULATED_MIN_ITERATIONS, target=_SIMULATED_TARGET)
    if resources.link_bytes_per_s is None:
        return effort
    return replace(effort, min_iterations=min(effort.min_iterations, _LINK_MIN_ITERATIONS))


def refuse_changes(run: Run, settings: dict[str, Any], given: dict[str, Any]) -> None:
    """Raise InputError if an option given with --resume differs from the setting stored in `run`."""
    for name, value in given.items():
        kept = settings.get(name)
        if value not in (None, False) and value != kept:
            stored = "without it" if kept in (None, False) else f"with {_text(kept)}"
            remedy = "give that one" if name in STATED_AGAIN and kept is not None else "omit the option"
            raise InputError(
                f"--{name} is {_text(value)}, but {run.path} was started {stored}; "
                f"{remedy}, or measure into another folder"
            )


def _text(setting: Any) -> str:
    return labels.listed(list(map(str, setting))) if isinstance(setting, list) else str(setting)


def refuse_other_network(run: Run, settings: dict[str, Any], launcher: Launcher) -> None:
    """Raise InputError if a run is continued on another network than it was started on."""
    stored, current = settings.get("network"), network_of(launcher)
    if stored != current:
        raise InputError(
            f"{run.path} was started on {stored or 'no virtual cluster'}, but this is {current or 'none'}; "
            "continue it on the same network, or measure into another folder"
        )


def run_session(
    run: Run, launcher: Launcher, groups: Sequence[Group], effort: Effort, quiet: bool, resumable: bool = True
) -> Result:
    """Measure `groups` into `run`; print progress and warnings on stderr.

    `resumable` says whether the calling command can continue the run.
    """
    again = f"; continue with `{resume_command(run)}`" if resumable else ""
    launcher = with_link_measured(launcher)
    progress = ProgressLine(quiet)
    try:
        result = measure(run, launcher, effort.plan(groups), progress)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; complete points are stored in {run.path}{again}") from None
    finally:
        progress.close()
    if result.missing:
        note(
            f"the budget ran out with {labels.counted(result.missing, 'sample')} not measured, so intervals "
            f"are wider than necessary{again or '; a larger --budget narrows them'}"
        )
    if not effort.paper and result.spent_s > _OVERRUN * effort.budget_s:
        note(
            f"measuring took {format_seconds(result.spent_s)} with a budget of "
            f"{format_seconds(effort.budget_s)}: every point gets one launch in any case; measure fewer "
            "points, or raise --budget"
        )
    oversubscribed = sum(sample.oversubscribed for sample in result.samples)
    if oversubscribed:
        note(
            f"{oversubscribed} samples had more ranks or threads than cores (oversubscribed): "
            "their times include scheduling delays"
        )
    if clock_warning := doubt(result.samples):
        note(clock_warning)
    # As the progress counts: without those that only show the tree of an algorithm.
    timed = [sample for sample in result.samples if sample.quantity != VERIFICATION]
    noisy = sum(not sample.converged for sample in timed)
    if noisy:
        rule = "the paper's 5 % in 50 attempts" if effort.paper else "2 % within their share of the budget"
        note(f"{noisy} of {len(timed)} samples did not converge to {rule}")
    return result
