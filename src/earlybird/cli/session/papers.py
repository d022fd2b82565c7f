"""Measures the plan of a paper: for each MPI its steps, a profile, and the comparisons of its replays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from earlybird.cli.session import measuring
from earlybird.data import labels
from earlybird.data.errors import WorkError
from earlybird.data.profile import Profile, save_profile
from earlybird.data.run import Run
from earlybird.launch.launcher import Launcher
from earlybird.measure.continued import refuse_other_network
from earlybird.measure.effort import Effort
from earlybird.measure.replays import compare_run, predict_all, save_exchange
from earlybird.papers.paper import Paper, Step
from earlybird.papers.planned import PlannedPaper
from earlybird.present.render.notes import note

PROFILE = "profile.json"
# Launches of a step that may fail before the step ends. More are an MPI that does not work.
_TOLERATED = 2


@dataclass(frozen=True)
class MeasuredPaper:
    """What one MPI has contributed: the `inputs` of the report, and what `failed`, in sentences."""

    inputs: Sequence[Path]
    failed: Sequence[str]


def measure_paper(
    paper: Paper,
    one: PlannedPaper,
    settings: Mapping[str, Any],
    effort: Effort,
    quiet: bool,
) -> MeasuredPaper:
    """Measure the steps that are missing or incomplete, fit, and compare. A step that fails keeps no other
    from being measured."""
    runs: dict[str, Run] = {}
    failed: dict[str, str] = {}
    for step in one.steps:
        of_step = one.effort_of(step, effort)
        path = one.folder / step.name
        if (path / "run.json").exists():
            run = Run.open(path)
            refuse_other_network(run, run.header.get("settings") or {}, one.launcher)
        else:
            run = _create(paper, step, path, one.launcher, settings, of_step)
        note(f"{labels.flavour(one.launcher.flavour)}, {step.name}:")
        runs[step.name] = run
        try:
            measuring.run_session(run, one.launcher, step.groups, of_step, quiet, tolerated=_TOLERATED)
        except WorkError as error:
            failed[step.name] = str(error)
            note(f"warning: {error}")
    inputs = [run.path for run in runs.values() if run.samples()]
    steps = [step for step in one.steps if step.name not in failed]
    fitted = [step for step in one.steps if step.is_fitted]
    if fitted and all(step in steps for step in fitted):
        profile = _fit([runs[step.name] for step in fitted], one.folder / PROFILE)
        _compare(steps, runs, profile)
        inputs.append(one.folder / PROFILE)
    return MeasuredPaper(inputs, list(failed.values()))


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
