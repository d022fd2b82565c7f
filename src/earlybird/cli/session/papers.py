"""Runs the plan of a paper: for each MPI its steps, a profile, and the comparisons of its replays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from earlybird.cli.session import measuring
from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.mpi_settings import split_settings
from earlybird.data.profile import Profile, save_profile
from earlybird.data.run import Run
from earlybird.data.units import format_seconds
from earlybird.launch.launcher import Launcher, Rules
from earlybird.measure.continued import refuse_other_network
from earlybird.measure.effort import Effort, suited_to
from earlybird.measure.groups import Options, Resources
from earlybird.measure.launchers import is_simulated, make_launcher
from earlybird.measure.replays import compare_run, predict_all, save_exchange
from earlybird.measure.session import refuse_conflicts_of
from earlybird.measure.synthetic_times import is_drawn
from earlybird.papers.paper import Paper, Step
from earlybird.present.render.notes import note

PROFILE = "profile.json"
# About what it takes to start the ranks of a launch.
_START_S = 1.0


@dataclass(frozen=True)
class Measurements:
    """The measurements of one MPI, in one folder."""

    folder: Path
    launcher: Launcher
    resources: Resources
    steps: Sequence[Step]

    @property
    def num_points(self) -> int:
        return sum(len(group.points) for step in self.steps for group in step.groups)

    def least_s(self, launches: int) -> float:
        """Return an estimate of the minimum time: each launch starts, and each point has few iterations."""
        groups = [group for step in self.steps for group in step.groups]
        iterations = Rules.min_iterations
        return sum(
            _START_S * launches
            + sum(
                max(group.computing_s(point), group.link_s(point)) * iterations + group.settling_s(point)
                for point in group.points
            )
            for group in groups
        )


def plan_of(
    paper: Paper, folder: Path, settings: Mapping[str, Any], options: Options, mpi: str, seed: int
) -> Measurements:
    """Return the measurements of `mpi`, "" for the default; raise InputError if it cannot be measured."""
    launcher, resources = make_launcher({**settings, "mpi": mpi or None}, seed, note)
    steps = paper.plan(options, resources, launcher.flavour)
    groups = [group for step in steps for group in step.groups]
    if not groups:
        raise InputError(
            f"there is nothing to measure for {paper.name} with {launcher.flavour} and these options; give "
            "other options or another --mpi"
        )
    for group in groups:
        launcher.check(group.layout)
        if launcher.name == "synthetic" and not is_drawn(group.kernel):
            raise InputError(
                f"{paper.name} measures {group.kernel}, whose times the launcher synthetic cannot draw from "
                "a profile; give another --launcher"
            )
        if is_simulated(settings["launcher"]) and (group.threads or 1) > 1:
            raise InputError(
                f"{paper.name} measures ranks with several threads, which simulated ranks do not have; give "
                "another --launcher"
            )
    refuse_conflicts_of(groups, launcher)
    for remark in dict.fromkeys(paper.remarks(options, resources)):
        note(f"{labels.flavour(launcher.flavour)}: {remark}")
    return Measurements(folder / _folder_name(launcher.flavour), launcher, resources, steps)


def _folder_name(mpi: str) -> str:
    """Return a name of a folder for an MPI, which may be the path of a compiler."""
    name, _ = split_settings(mpi)
    return name.strip("/").replace("/", "-")


def estimate(planned: Sequence[Measurements], effort: Effort) -> str:
    """Return one sentence on the measurements and their duration."""
    points = sum(one.num_points for one in planned)
    least_s = sum(one.least_s(effort.launches) for one in planned)
    budget_s = effort.budget_s * len(planned)
    mpis = labels.listed([labels.flavour(one.launcher.flavour) for one in planned])
    launches = labels.counted(effort.launches, "launch", "launches")
    return (
        f"measuring {labels.counted(points, 'point')} of {mpis} in up to {launches}, which takes about "
        f"{format_seconds(max(budget_s, least_s))} (change it with --budget, continue it with --resume)"
    )


def measure_paper(
    paper: Paper,
    one: Measurements,
    settings: Mapping[str, Any],
    effort: Effort,
    quiet: bool,
) -> list[Path]:
    """Measure the steps that are missing or incomplete, fit, and compare; return the inputs of the report."""
    shares = sum(step.share for step in one.steps)
    runs: dict[str, Run] = {}
    for step in one.steps:
        of_step = replace(effort, budget_s=effort.budget_s * step.share / shares)
        of_step = suited_to(one.resources, of_step)
        path = one.folder / step.name
        if (path / "run.json").exists():
            run = Run.open(path)
            refuse_other_network(run, run.header.get("settings") or {}, one.launcher)
        else:
            run = _create(paper, step, path, one.launcher, settings, of_step)
        note(f"{labels.flavour(one.launcher.flavour)}, {step.name}:")
        measuring.run_session(run, one.launcher, step.groups, of_step, quiet)
        runs[step.name] = run
    inputs = [run.path for run in runs.values()]
    fitted = [runs[step.name] for step in one.steps if step.is_fitted]
    if fitted:
        profile = _fit(fitted, one.folder / PROFILE)
        _compare(one.steps, runs, profile)
        inputs.append(one.folder / PROFILE)
    return inputs


def _create(
    paper: Paper,
    step: Step,
    path: Path,
    launcher: Launcher,
    settings: Mapping[str, Any],
    effort: Effort,
) -> Run:
    # Those of a continued run are from another step.
    own = {key: value for key, value in settings.items() if key not in ("layout", "layout_text")}
    own |= {"reproduce": paper.name, "step": step.name}
    if step.exchange is None:
        return measuring.create_run(path, step.name, effort, launcher, own)
    pattern, layout = step.exchange
    own |= {"layout": layout.text, "layout_text": layout.text}
    return measuring.create_run(
        path, step.name, effort, launcher, own, partial(save_exchange, pattern, layout)
    )


def _fit(runs: Sequence[Run], output: Path) -> Profile:
    from earlybird.fit.observations import read_runs
    from earlybird.fit.profile import fit_profile

    profile = fit_profile(read_runs([run.path for run in runs], None))
    save_profile(profile, output)
    for warning in profile.extra["warnings"]:
        note(f"warning: {warning}")
    return profile


def _compare(steps: Sequence[Step], runs: Mapping[str, Run], profile: Profile) -> None:
    """Store the comparison of each replay with the predictions of the profile in its folder."""
    for step in steps:
        if step.exchange is not None:
            pattern, layout = step.exchange
            predictions = predict_all(pattern, layout, profile, note=note)
            compare_run(runs[step.name], pattern, layout, [profile], profile, predictions, note=note)
