"""`earlybird replay`: runs the exchange of a pattern on real MPI and, with a profile, reports the prediction
error."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from earlybird.cli import batch_script, measuring, options
from earlybird.cli.common import (
    FORMAT,
    JSON,
    Format,
    make_command,
    note,
    print_csv,
    print_json,
    print_table,
    prints_all,
)
from earlybird.cli.launchers import launcher_of, machine_of
from earlybird.compare import compare_times, measured_times
from earlybird.data import files, units
from earlybird.data.comparison import Comparison
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout, save_layout
from earlybird.data.pattern import Pattern, load_pattern, save_pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import USUAL_CONTEXT, Profile, load_profile
from earlybird.data.run import Run
from earlybird.launch.launcher import Launcher
from earlybird.machine import hardware
from earlybird.measure.suites import exchange_group
from earlybird.predict import MIXED, MODELS, SHARES, Exchange, merge_profiles, silent_senders

SETTINGS = ("mpi", "launcher", "hosts", "layout", "layout_text")
DEFAULT_LAUNCHES = 5
DEFAULT_BUDGET_S = 20.0
MAX_TABLE_RANKS = 32
# Maximum share of free memory for the buffers of both sides of all messages.
_MEMORY_SHARE = 0.7


def replay(
    context: typer.Context,
    pattern: Annotated[Path | None, typer.Argument(help="The messages: .csv, .npz or .mtx.")] = None,
    layout: Annotated[
        str | None, typer.Option(help="NODESxSOCKETSxRANKS, ranks per socket, or a CSV.")
    ] = None,
    map_by: Annotated[str, typer.Option(help="How the layout numbers ranks: core, socket or node.")] = "core",
    profile: Annotated[
        list[Path] | None, typer.Option(help="Profile whose predictions to compare with.")
    ] = None,
    share: options.ShareOption = None,
    mixed: options.MixedOption = None,
    output: options.RunOption = None,
    mpi: options.MpiOption = None,
    launcher: options.LauncherOption = "local",
    hosts: options.HostsOption = None,
    agent: options.AgentOption = None,
    threads: options.ThreadsOption = 1,
    budget: Annotated[
        str | None, typer.Option(help="Time for all launches together.  [default: 20s]")
    ] = None,
    launches: Annotated[int | None, typer.Option(help="Number of launches.  [default: 5]")] = None,
    seed: Annotated[int, typer.Option(help="Seed, stored in the run.")] = 1,
    time_limit: options.TimeLimitOption = "1h",
    stall_limit: options.StallLimitOption = "60s",
    resume: options.ResumeOption = False,
    print_script: options.PrintScriptOption = None,
    quiet: options.QuietOption = False,
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Run the exchange on real MPI (Algorithm 2 of Thune et al. 2023) and record the time of every rank."""
    if (share or mixed) and not profile:
        raise InputError("--share and --mixed apply to predictions; add --profile, or omit them")
    if print_script is not None:
        batch_script.check_kind(print_script, launcher=launcher, hosts=hosts, resume=resume)
    if resume:
        run, settings, effort = measuring.open_run(output, SETTINGS)
        measuring.refuse_changes(
            run, settings, {"mpi": mpi, "hosts": hosts, "agent": agent, "layout": layout}
        )
        effort = measuring.extend(effort, launches, budget)
        messages = load_pattern(run.path / "pattern.npz")
        # From the run: the original layout file may have changed or be missing.
        where = replace(parse_layout(str(run.path / "layout.csv")), text=settings["layout_text"])
        if pattern is not None and load_pattern(pattern).sha256() != messages.sha256():
            raise InputError(
                f"{run.path} replays another pattern than {pattern}; omit the pattern with --resume"
            )
    else:
        if pattern is None or layout is None:
            missing = "a pattern, such as mesh.csv" if pattern is None else "a layout, such as --layout 1x1x4"
            raise InputError(f"replay needs {missing}; see `earlybird replay --help`")
        messages = load_pattern(pattern)
        where = parse_layout(layout, map_by)
        settings = {
            "mpi": mpi,
            "launcher": launcher,
            "hosts": hosts,
            "agent": agent,
            "threads": threads,
            "layout": layout,
            "layout_text": where.text,
        }
        effort = measuring.Effort(
            DEFAULT_LAUNCHES if launches is None else launches,
            DEFAULT_BUDGET_S if budget is None else units.parse_duration(budget, "--budget"),
            seed=seed,
            time_limit_s=units.parse_duration(time_limit, "--time-limit"),
            stall_limit_s=units.parse_duration(stall_limit, "--stall-limit"),
        )
        effort.check()
    profiles = [load_profile(path) for path in profile or ()]
    joined = merge_profiles(profiles) if profiles else None
    if print_script is not None:
        messages.check_ranks(where.num_ranks)
        run = output or Path("replay")
        batch_script.print_slurm_script(context, run, where.num_nodes, effort.budget_s)
        return
    starter, resources = launcher_of(settings, effort.seed)
    if not resume:
        effort = measuring.suited_to(resources, effort)
    check_exchange(messages, where, starter)
    # Refuse an unsuitable profile before measuring.
    variant = (share or SHARES[0], mixed or MIXED[0])
    predictions = None if joined is None else predict_all(messages, where, joined, *variant)
    if resume:
        measuring.refuse_other_network(run, settings, starter)
    else:
        measuring.keep_place(settings, starter)
        run = measuring.create_run(output, "replay", effort, machine_of(starter), **settings)
        save_pattern(messages, run.path / "pattern.npz")
        save_layout(where, run.path / "layout.csv")
    group = exchange_group(messages, where, starter.flavour, resources.link_bytes_per_s)
    measuring.run_session(run, starter, [group], effort, quiet)
    if starter.name == "synthetic" and settings.get("threads", 1) > 1:
        note(f"warning: --threads {settings['threads']} has no effect: times are drawn from a profile")
    if joined is None:
        print_measured(run, Format.json if json else format)
    else:
        compared = compare_run(run, messages, where, joined, predictions, profiles)
        print_comparison(compared, Format.json if json else format)
    note(f"samples are in {run.path}")


def check_exchange(pattern: Pattern, layout: Layout, launcher: Launcher) -> None:
    """Raise InputError if the ranks cannot be placed or the buffers do not fit into memory."""
    pattern.check_ranks(layout.num_ranks)
    launcher.check(layout)
    free = hardware.available_memory_bytes() * layout.num_nodes
    if launcher.name != "synthetic" and 2 * pattern.total_bytes > _MEMORY_SHARE * free:
        raise InputError(
            f"the pattern needs {units.format_bytes(2 * pattern.total_bytes)} for its buffers and "
            f"{units.format_bytes(free)} are free; give a smaller pattern"
        )


def predict_all(
    pattern: Pattern, layout: Layout, profile: Profile, share: str = SHARES[0], mixed: str = MIXED[0]
) -> dict[str, Prediction]:
    """The predictions of all models that apply; InputError if none does.

    Without messages between nodes `fair` is omitted, as it equals the staircase.
    """
    predictions, refusals = {}, []
    exchange = Exchange(pattern, layout, mixed=mixed)
    for model in MODELS:
        if model == "fair" and "inter_node" not in exchange.levels:
            continue
        try:
            predictions[model] = exchange.predict(profile, model, share=share)
        except InputError as error:
            refusals.append(error)
    if not predictions:
        raise refusals[0]
    for refusal in refusals:
        note(f"omitted: {refusal}")
    return predictions


def compare_run(
    run: Run,
    pattern: Pattern,
    layout: Layout,
    profile: Profile,
    predictions: dict[str, Prediction] | None = None,
    parts: Sequence[Profile] = (),
) -> Comparison:
    """Compare the exchange measured in `run` with every model, and store the comparison in the run folder.

    `predictions` is the result of `predict_all`, if known; `parts` are the profiles merged into `profile`.
    """
    predictions = predictions or predict_all(pattern, layout, profile)
    samples = [sample for sample in run.samples() if sample.kernel == "exchange"]
    compared = compare_times(measured_times(samples), predictions)
    levels = set(Exchange(pattern, layout).levels)
    notes = [
        difference
        for part in parts or [profile]
        for difference in _context_notes(samples[0].config["mpi"], run.launches()[-1], part, levels)
    ]
    for difference in notes:
        note(f"warning: {difference}")
    first = next(iter(predictions.values()))
    if silent := silent_senders(pattern, first.time_s, first.model):
        note(silent)
        notes.append(silent)
    oversubscribed = any(sample.oversubscribed for sample in samples)
    if oversubscribed:
        notes.append("more ranks than cores: waiting ranks yield, and the times include scheduling delays")
    compared = Comparison(
        compared.measured_s,
        compared.predicted_s,
        compared.error,
        compared.slowest_error,
        {
            "run_id": run.id,
            "profile_id": profile.id,
            "pattern_sha256": pattern.sha256(),
            "layout": layout.text,
            "oversubscribed": oversubscribed,
            "notes": notes,
        }
        | {
            option: prediction.extra[option]
            for prediction in predictions.values()
            for option in ("share", "mixed")
            if option in prediction.extra
        },
    )
    files.write_json(run.path / "comparison.json", compared.to_json())
    return compared


def _context_notes(mpi: str, launch: Mapping[str, Any], profile: Profile, levels: set[str]) -> list[str]:
    """Differences between the context of `profile` and that of the exchange, for `levels`; a profile without
    an MPI matches any."""
    fitted, needed = profile.context.get("flavour"), levels & profile.levels.keys()
    if fitted is None or mpi == "synthetic" or not needed:
        return []
    notes = []
    if fitted != mpi:
        notes.append(f"the profile was measured with {fitted}, the replay with {mpi}")
    threads, network = (
        [context.get(key) or usual for context in (profile.context, launch)]
        for key, usual in USUAL_CONTEXT.items()
    )
    if threads[0] != threads[1]:
        notes.append(f"the profile was measured with --threads {threads[0]}, the replay with {threads[1]}")
    if "inter_node" in needed and network[0] != network[1]:
        notes.append(f"the profile's network is {network[0]}, the replay's is {network[1]}")
    return notes


def print_measured(run: Run, format: Format) -> None:
    """Print the time of every rank of an exchange without prediction."""
    samples = [sample for sample in run.samples() if sample.kernel == "exchange"]
    times_s = measured_times(samples)
    if format is Format.json:
        print_json(
            {"run": str(run.path), "measured_s": times_s.tolist(), "slowest_rank": int(times_s.argmax())}
        )
    elif format is Format.csv:
        print_csv(["rank", "measured_s"], [[rank, time_s] for rank, time_s in enumerate(times_s)])
    else:
        _print_ranks({"measured": times_s})
        print("\nadd --profile PROFILE.json to compare with a prediction")


def print_comparison(comparison: Comparison, format: Format) -> None:
    """Print measured and predicted times of every rank, and the errors of the models."""
    columns = {"measured": comparison.measured_s} | dict(comparison.predicted_s)
    if format is Format.json:
        print_json(comparison.to_json())
    elif format is Format.csv:
        header = ["rank", *(f"{name.replace('-', '_')}_s" for name in columns)]
        print_csv(header, [[rank, *times] for rank, times in enumerate(zip(*columns.values(), strict=True))])
    else:
        _print_ranks(columns)
        print()
        print_errors(comparison)


def print_errors(comparison: Comparison) -> None:
    """Error (11) and the slowest rank's error of every model, best first."""
    rows = sorted(comparison.error, key=comparison.error.get)
    print_table(
        ["model", "error (11)", "slowest rank"],
        [
            [model, f"{comparison.error[model]:.1%}", f"{comparison.slowest_error[model]:+.1%}"]
            for model in rows
        ],
    )


def _print_ranks(columns: dict[str, np.ndarray]) -> None:
    measured = columns["measured"]
    shown: Sequence[int] = range(len(measured))
    if len(measured) > MAX_TABLE_RANKS and not prints_all():
        shown = np.argsort(-measured, kind="stable")[:MAX_TABLE_RANKS]
        print(f"the {MAX_TABLE_RANKS} slowest of {len(measured)} ranks:")
    rows = [[int(rank), *(units.format_seconds(times[rank]) for times in columns.values())] for rank in shown]
    print_table(["rank", *columns], rows)
    slowest = int(measured.argmax())
    others_wait_s = float((measured.max() - measured).sum()) / max(len(measured) - 1, 1)
    print(
        f"slowest: rank {slowest}, {units.format_seconds(measured[slowest])}; the other ranks wait for it "
        f"{units.format_seconds(others_wait_s)} on average"
    )


command = make_command(
    replay, name="replay", example="earlybird replay mesh.csv --profile profile.json --layout 1x1x4 -o replay"
)
