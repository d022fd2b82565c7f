"""`earlybird replay`: runs the exchange of a pattern on real MPI and, with a profile, reports the prediction
error."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.options import shared
from earlybird.cli.options.command import FORMAT, make_command
from earlybird.cli.options.packing import ReplayPackingOptions
from earlybird.cli.options.values import DURATION
from earlybird.cli.session import batch_script, measuring
from earlybird.cli.session.exchanges import load_exchange
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.pattern import Pattern, load_pattern
from earlybird.data.profile import load_profile
from earlybird.data.run import Run
from earlybird.measure.continued import refuse_changes, refuse_other_network
from earlybird.measure.effort import suited_to
from earlybird.measure.foreign_runs import refuse_unstated
from earlybird.measure.launch_counts import DEFAULT_LAUNCHES
from earlybird.measure.launchers import make_launcher
from earlybird.measure.replays import (
    DOUBLE_BYTES,
    better_combination,
    check_exchange,
    compare_run,
    exchange_settings,
    packing_of,
    predict_stages,
    replayed_exchange,
    save_exchange,
    stored_profiles,
)
from earlybird.measure.sides import as_stored, listed_mpis
from earlybird.measure.suites import exchange_groups, staged_group
from earlybird.predict import merge_profiles
from earlybird.present.render.data import Format
from earlybird.present.render.notes import note
from earlybird.present.subjects.exchange.terminal import print_comparison, print_measured

SETTINGS = ("mpi", "launcher", "hosts", "layout", "layout_text")
DEFAULT_BUDGET_S = 20.0


def replay(
    context: typer.Context,
    *,
    pattern: Annotated[
        Path | None, typer.Argument(help="Pattern: .csv, .npz or .mtx; not with --resume.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help=shared.LAYOUT_HELP)] = None,
    map_by: shared.MapByOption = MAPPINGS[0],
    profile: Annotated[
        list[Path] | None, typer.Option(help="Profile whose predictions to compare with.")
    ] = None,
    share: shared.ShareOption = None,
    mixed: shared.MixedOption = None,
    combine: shared.CombineOption = None,
    then: Annotated[
        list[Path] | None,
        typer.Option(
            help="A pattern that follows: a rank begins it when its messages of the one before are "
            "complete.  Repeat for more."
        ),
    ] = None,
    empty: Annotated[
        bool | None,
        typer.Option(
            "--empty/--no-empty",
            help="Also replay the messages without data, for what the exchange costs apart from them.  "
            "[default: with --profile, if ranks share cores]",
        ),
    ] = None,
    packing: ReplayPackingOptions,
    output: shared.RunOption = None,
    mpi: shared.MpiOption = None,
    place: shared.PlaceOptions,
    threads: shared.ThreadsOption = 1,
    budget: Annotated[
        float | None,
        typer.Option(help=f"Time for all launches together.  [default: {DEFAULT_BUDGET_S:g}s]"),
        DURATION,
    ] = None,
    launches: Annotated[
        int | None, typer.Option(help=f"Number of launches.  [default: {DEFAULT_LAUNCHES}]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed, stored in the run.")] = 1,
    session: shared.SessionOptions,
    format: Format = FORMAT,
) -> None:
    """Run the exchange on real MPI (Algorithm 2 of Thune et al. 2023) and record the time of every rank.

    With --then several exchanges follow each other, as through the leaders of `advise aggregate`.
    """
    if session.print_script is not None:
        batch_script.check_script(place, resume=session.resume)
    paths = [path for path in (pattern, *(then or ())) if path is not None]
    variant = {"share": share, "mixed": mixed, "combine": combine}
    if session.resume:
        run, settings, effort = measuring.open_run(output, SETTINGS, launches, budget, session)
        _check_given(run, settings, place, mpi, layout)
        refuse_changes(run, settings, vars(packing))
        profile = profile or stored_profiles(run)
        variant = {name: given or settings.get(name) for name, given in variant.items()}
        stages, where = replayed_exchange(run)
        if paths and [load_pattern(path).sha256() for path in paths] != [stage.sha256() for stage in stages]:
            raise InputError(
                f"{run.path} replays another pattern than {' and '.join(map(str, paths))}; omit the pattern "
                "and --then with --resume"
            )
    else:
        packing_given = packing.read()
        # What can never be replayed is refused before further options are asked for.
        stages = [load_exchange(path) for path in paths]
        for path in profile or ():
            load_profile(path)
        if pattern is None or layout is None:
            missing = "a pattern, such as mesh.csv" if pattern is None else "a layout, such as --layout 1x1x4"
            raise InputError(f"replay needs {missing}; see `earlybird replay --help`")
        where = parse_layout(layout, map_by)
        if len(stages) > 1 and empty:
            raise InputError("--empty applies to one exchange; omit it, or --then")
        place_settings = {"mpi": mpi, **vars(place), "threads": threads, "layout": layout}
        settings = place_settings | exchange_settings(stages, where, profile or (), variant)
        settings |= packing_given.to_json() if packing_given else {}
        effort = measuring.new_effort(
            session,
            DEFAULT_LAUNCHES if launches is None else launches,
            DEFAULT_BUDGET_S if budget is None else budget,
            seed,
        )
    if any(variant.values()) and not profile:
        raise InputError("--share, --mixed and --combine apply to predictions; add --profile, or omit them")
    messages, packed = Pattern.joined(stages), packing_of(settings)
    profiles = [load_profile(path) for path in profile or ()]
    if session.print_script is not None:
        messages.check_ranks(where.num_ranks)
        run_path = output or Path("replay")
        batch_script.print_slurm_script(context, run_path, where.num_nodes, effort.budget_s)
        return
    starter, resources = make_launcher(settings, effort.seed, note)
    check_exchange(messages, where, starter, packed)
    # Refuse an unsuitable profile before measuring.
    joined = merge_profiles(profiles) if profiles else None
    predicted_by = {name: given for name, given in variant.items() if given}
    predictions = (
        predict_stages(stages, where, joined, note=note, packing=packed, **predicted_by) if joined else {}
    )
    if session.resume:
        refuse_other_network(run, settings, starter)
    else:
        shared_cores = len(stages) == 1 and joined is not None and starter.shares_cores(where)
        settings["empty"] = shared_cores if empty is None else empty
        effort = suited_to(resources, effort)
        save = partial(save_exchange, messages, where)
        run = measuring.create_run(output, "replay", effort, starter, settings, save)
    on = where, starter.flavour, resources.link_bytes_per_s, settings if packed else None
    if packed and (messages.bytes % DOUBLE_BYTES).any():
        note("packed messages have whole doubles: sizes are rounded up to multiples of 8 bytes")
    if len(stages) > 1:
        groups = [staged_group(stages, *on)]
    else:
        groups = exchange_groups(messages, *on, with_empty=settings.get("empty", False))
    measuring.run_session(run, starter, groups, effort, session.quiet)
    if starter.name == "synthetic" and settings.get("threads", 1) > 1:
        note(f"warning: --threads {settings['threads']} has no effect: times are drawn from a profile")
    if joined is not None:
        compared = compare_run(
            run, messages, where, profiles, joined, predictions, note=note, packing=packed, **predicted_by
        )
        print_comparison(compared, format)
        if len(stages) == 1 and (
            better := better_combination(compared, messages, where, joined, packing=packed, **predicted_by)
        ):
            note(better)
    else:
        print_measured(run, format)
    note(f"samples are in {run.path}")


def _check_given(
    run: Run, settings: dict[str, Any], place: shared.PlaceOptions, mpi: str | None, layout: str | None
) -> None:
    """Raise InputError for options that differ from what `run` stores, and for those that must be stated."""
    stated = mpi and as_stored(mpi)
    given = {"mpi": stated, "hosts": place.hosts, "agent": place.agent, "srun": place.srun, "layout": layout}
    refuse_changes(run, settings, given)
    refuse_unstated(
        run, settings, vars(place),
        mpis=listed_mpis(settings["mpi"]), stated_mpis=listed_mpis(stated), has_env=False,
    )  # fmt: skip


command = make_command(
    replay, name="replay", example="earlybird replay mesh.csv --profile profile.json --layout 1x1x4 -o replay"
)
