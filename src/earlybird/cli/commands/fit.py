"""`earlybird fit`: fits a profile to run folders or a table of ping-pong times, and prints its summary."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT, make_command
from earlybird.data import files
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import EarlybirdError, InputError
from earlybird.data.exchange_models import with_reason
from earlybird.data.layout import level_phrase
from earlybird.data.profile import SCHEMA, Profile, save_profile
from earlybird.data.run import Run
from earlybird.present.render.data import Format, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line
from earlybird.present.subjects.collectives.terminal import print_comparison, print_regressions
from earlybird.present.subjects.messages.terminal import print_profile

if TYPE_CHECKING:
    from earlybird.fit.insaghi_forms import Regression


def fit(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run folders of one context, those of `replay` too, or one table with columns "
            "level,placement,pairs,bytes,time_s.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Profile to write.")] = Path("profile.json"),
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Ordinary least squares with an intercept per N, as in Thune et al. 2023."
        ),
    ] = False,
    model_selection: Annotated[
        bool,
        typer.Option(
            "--model-selection",
            help="Also compare one, two and three protocols per level, and the forms of collectives.",
        ),
    ] = False,
    mean_over_ranks: Annotated[
        bool,
        typer.Option(
            "--mean-over-ranks",
            help="Compare the forms of collectives by the mean over ranks, as OSU prints it.",
        ),
    ] = False,
    mpi: Annotated[
        str | None, typer.Option(help="Use only the samples of this MPI, of runs with several.")
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Fit latency, bandwidth under contention and protocol switches, with intervals and held-out error.

    For held-out errors, protocol switches are refitted with each size left out; the number of protocols is
    fixed. Nothing is fitted to runs of `earlybird replay`: the errors of the models for them are stored in
    the profile, and predictions are then by the model that errs least.
    """
    from earlybird.measure.replays import is_replay, replay_of

    _require_replaceable(output)
    replays = [Run.open(source) for source in sources if is_replay(source)]
    sources = [source for source in sources if not is_replay(source)]
    if not sources:
        raise InputError(
            f"{replays[0].path} is a replay, to which nothing is fitted; give it after the run folders of "
            "`earlybird measure`"
        )
    from earlybird.fit.observations import read_sources

    observations = read_sources(sources, mpi)
    from earlybird.fit.collective_comparison import COMPLETION, MEAN, compare_forms
    from earlybird.fit.profile import compare_segmentations, fit_profile

    times = MEAN if mean_over_ranks else COMPLETION
    profile = fit_profile(observations, paper=paper, collective_times=times)
    profile = replace(profile, replays=tuple(replay_of(run, profile) for run in replays))
    choices = compare_segmentations(observations, paper=paper) if model_selection else []
    compared = [choice.to_json() for choice in choices]
    selection = (
        compare_forms(observations.collectives, profile.collectives, times)
        if model_selection and profile.collectives
        else None
    )
    save_profile(profile, output)
    if format == Format.json:
        more = {} if selection is None else _selection_json(*selection)
        print_json(_summary(profile, output, compared) | more)
    else:
        print_profile(profile, format, compared)
    if format == Format.table:
        if selection is not None:
            _print_selection(profile.collectives, times, *selection)
        _note_next(sources, profile, output)
    for warning in profile.extra["warnings"]:
        note(f"warning: {warning}")


def _note_next(sources: list[Path], profile: Profile, output: Path) -> None:
    """Print which files were written, the next commands, and the models by which predictions are made."""
    from earlybird.fit import following
    from earlybird.predict import choose_model

    next_command = f"; next: {following.predict_command(sources, profile, output)}" if profile.levels else ""
    note(f"wrote {output}{next_command}")
    if profile.pipelines:
        note(f"and: {following.advise_pipeline_command(profile, output)}")
    for level in dict.fromkeys(replay.level for replay in profile.replays):
        chosen = choose_model([level], profile)
        note(f"predictions {level_phrase(level)}: {with_reason(chosen.name, chosen.to_json())}")
    if profile.collectives:
        note(f"next: {following.advise_collective_command(profile.collectives, output)}")


def _print_selection(
    forms: list[CollectiveForm], times: str, regressions: "list[Regression]", verdicts: list[str]
) -> None:
    print_line()
    print_comparison(forms)
    print_line()
    print_line(f"AICc: from the likelihood of times in us, lower is better; times are {times}")
    print_regressions(regressions)
    print_line()
    for text in verdicts:
        print_line(text)


def _selection_json(regressions: "list[Regression]", verdicts: list[str]) -> dict[str, Any]:
    """Return regressions and verdicts; the comparison of the forms is in their `alternatives`."""
    rows = [vars(result) | {"rows": [vars(row) for row in result.rows]} for result in regressions]
    return {"regressions": rows, "verdicts": verdicts}


def _require_replaceable(path: Path) -> None:
    """Raise InputError for an output that exists and is not a profile."""
    if not path.exists():
        return
    try:
        files.read_json(path, "output", SCHEMA)
    except EarlybirdError as error:
        raise InputError(f"{path} exists and is not a profile; choose another file for -o") from error


def _summary(profile: Profile, output: Path, choices: list[dict[str, Any]]) -> dict[str, Any]:
    keys = ("id", "context", "runs", "levels", "forms", "intervals", "replays", "warnings")
    value = profile.to_json()
    summary = {"profile": str(output)} | {key: value[key] for key in keys if key in value}
    return summary | ({"model_selection": choices} if choices else {})


command = make_command(fit, name="fit", example="earlybird fit RUN -o profile.json --model-selection")
