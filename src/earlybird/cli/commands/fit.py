"""`earlybird fit`: fits a profile to run folders or a table of ping-pong times, and prints its summary."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT, make_command
from earlybird.data import files
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import EarlybirdError, InputError
from earlybird.data.exchange_models import with_reason
from earlybird.data.layout import level_phrase
from earlybird.data.measure_commands import LaunchOptions
from earlybird.data.profile import SCHEMA, Profile, save_profile
from earlybird.data.run import Run
from earlybird.data.shell_commands import command_text, path_argument, quoted
from earlybird.data.tables import PINGPONG_HEADER, THUNE_HEADER
from earlybird.present.render.data import Format, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line
from earlybird.present.subjects.collectives.terminal import print_comparison, print_regressions
from earlybird.present.subjects.messages.terminal import print_profile


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
    from earlybird.cli.session.exchange import is_replay, replay_of
    from earlybird.predict import choose_model

    _require_replaceable(output)
    replays = [Run.open(source) for source in sources if is_replay(source)]
    sources = [source for source in sources if not is_replay(source)]
    if not sources:
        raise InputError(
            f"{replays[0].path} is a replay, to which nothing is fitted; give it after the run folders of "
            "`earlybird measure`"
        )
    observations = _read(sources, mpi)
    from earlybird.fit.collective_comparison import COMPLETION, MEAN
    from earlybird.fit.profile import compare_segmentations, fit_profile

    times = MEAN if mean_over_ranks else COMPLETION
    profile = fit_profile(observations, paper=paper, collective_times=times)
    collectives = profile.collectives
    profile = replace(profile, replays=tuple(replay_of(run, profile) for run in replays))
    choices = compare_segmentations(observations, paper=paper) if model_selection else []
    compared = [_choice_json(choice) for choice in choices]
    save_profile(profile, output)
    if format is Format.json:
        compares_forms = collectives and model_selection
        more = _selection_json(observations, collectives, times) if compares_forms else {}
        print_json(_summary(profile, output, compared) | more)
    else:
        print_profile(profile, format, compared)
    if format is Format.table:
        if collectives and model_selection:
            _print_selection(observations, collectives, times)
        following = f"; next: {_next(sources, profile, output)}" if profile.levels else ""
        note(f"wrote {output}{following}")
        if profile.pipelines:
            note(f"and: {_advise(profile, output)}")
        for level in dict.fromkeys(replay.level for replay in profile.replays):
            chosen = choose_model([level], profile)
            note(f"predictions {level_phrase(level)}: {with_reason(chosen.name, chosen.to_json())}")
        if collectives:
            note(f"next: {_advise_collective(collectives, output)}")
    for warning in profile.extra["warnings"]:
        note(f"warning: {warning}")


def _read(sources, mpi):
    from earlybird.fit.observations import read_runs, read_table

    tables = [path for path in sources if path.is_file() or path.is_fifo()]
    if not tables:
        return read_runs(sources, mpi)
    if len(sources) > 1:
        raise InputError(
            f"{tables[0]} is a table, given with {len(sources) - 1} more; give one table only, or run folders"
        )
    text = files.read_text(tables[0], "table")
    if text.lstrip().startswith(("{", "[")):
        inside = tables[0].parent / "run.json"
        run = f", such as {inside.parent}" if inside.is_file() else ""
        raise InputError(
            f"{tables[0]} is JSON and no table of times; give run folders{run}, or a table with the columns "
            f"{','.join(PINGPONG_HEADER)}"
        )
    if text.partition("\n")[0].strip() == ",".join(THUNE_HEADER):
        raise InputError(
            f"{tables[0]} contains fitted parameters, not times; give run folders or a table of times"
        )
    return read_table(tables[0])


def _next(sources: list[Path], profile: Profile, output: Path) -> str:
    """The next command for the profile, with a layout of the measured nodes; if the ranks ran on other
    machines, also the command that replays there."""
    runs = [Run.open(source) for source in sources if source.is_dir()]
    nodes = max((_num_nodes(launch) for run in runs for launch in run.launches()), default=1)
    layout = f"{nodes}x1x{2 if 'intra_socket' in profile.levels else 1}" if nodes > 1 else "1x1x4"
    arguments = f"PATTERN --profile {path_argument(output)} --layout {layout}"
    launch = LaunchOptions.of(profile)
    if nodes == 1 or not launch.arguments:
        return f"earlybird predict {arguments}"
    return (
        f"earlybird predict {arguments}, or with real MPI: "
        f"earlybird replay {arguments} {command_text(launch.arguments)} -o replay"
    )


def _advise(profile: Profile, output: Path) -> str:
    """The command for advice on pipelines, at the size and thread count measured with the longest delay."""
    form = max(profile.pipelines, key=lambda one: one.range["gamma_s_per_byte"][1])
    size = form.threads * (round(form.range["size_bytes"][1]) // form.threads)
    return (
        f"earlybird advise pipeline --threads {form.threads} --size {size} "
        f"--gamma {form.range['gamma_s_per_byte'][1] * 1e12:g}us/MB --profile {path_argument(output)}"
    )


def _advise_collective(forms: list[CollectiveForm], output: Path) -> str:
    """The command for advice on collectives, at the largest rank count measured of the first."""
    form = forms[0]
    ranks, map_by = form.range["ranks"][1], form.map_by
    alike = [one.operation for one in forms if (one.range["ranks"][1], one.map_by) == (ranks, map_by)]
    mapping = f" --map-by {quoted(map_by[0])}" if map_by else ""
    return (
        f"earlybird advise collective --op {quoted(','.join(dict.fromkeys(alike)))} --ranks {ranks}{mapping} "
        f"--profile {path_argument(output)}"
    )


def _selection(observations, forms: list[CollectiveForm], times: str) -> tuple[list, list[str]]:
    """Insaghi's regressions, and a verdict on the forms of every algorithm."""
    from earlybird.fit.collective_comparison import cores_per_node, time_column, verdict
    from earlybird.fit.insaghi_forms import regressions

    collectives = observations.collectives
    results = regressions(collectives.table, cores_per_node(collectives), time_column(times))
    return results, [
        verdict(one.operation, one.algorithm, one.extra.get("alternatives", ())) for one in forms
    ]


def _print_selection(observations, forms: list[CollectiveForm], times: str) -> None:
    results, verdicts = _selection(observations, forms, times)
    print_line()
    print_comparison(forms)
    print_line()
    print_line(f"AICc: from the likelihood of times in us, lower is better; times are {times}")
    print_regressions(results)
    print_line()
    for text in verdicts:
        print_line(text)


def _selection_json(observations, forms: list[CollectiveForm], times: str) -> dict[str, Any]:
    """Regressions and verdicts; the comparison of the forms is in their `alternatives`."""
    results, verdicts = _selection(observations, forms, times)
    rows = [vars(one) | {"rows": [vars(row) for row in one.rows]} for one in results]
    return {"regressions": rows, "verdicts": verdicts}


def _num_nodes(launch: dict[str, Any]) -> int:
    """Number of nodes of a launch: all of a virtual cluster, otherwise those with ranks."""
    hosts = {place.get("host") for place in launch.get("placement") or ()}
    return max(len(hosts), len(launch.get("node_received_bytes") or ()), 1)


def _require_replaceable(path: Path) -> None:
    if not path.exists():
        return
    try:
        files.read_json(path, "output", SCHEMA)
    except EarlybirdError as error:
        raise InputError(f"{path} exists and is not a profile; choose another file for -o") from error


def _summary(profile: Profile, output: Path, choices: list[dict[str, Any]]) -> dict[str, Any]:
    value = profile.to_json()
    summary = {"profile": str(output)} | {
        key: value[key]
        for key in ("id", "context", "runs", "levels", "forms", "intervals", "replays", "warnings")
        if key in value
    }
    return summary | ({"model_selection": choices} if choices else {})


def _choice_json(choice) -> dict[str, Any]:
    return {
        "level": choice.level,
        "segments": choice.segmentation.num_segments,
        "min_bytes": list(choice.segmentation.min_bytes),
        "parameters": choice.segmentation.num_parameters,
        "criterion": choice.segmentation.criterion,
        "in_sample_error": choice.in_sample_error,
        "kept_switches_error": choice.kept_switches_error,
        "held_out_error": choice.held_out_error,
        "chosen": choice.chosen,
    }


command = make_command(fit, name="fit", example="earlybird fit RUN -o profile.json --model-selection")
