"""`earlybird replay`: runs the exchange of a pattern on real MPI and, with a profile, reports the prediction
error."""

from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.options import shared
from earlybird.cli.options.command import FORMAT, make_command
from earlybird.cli.session import batch_script, measuring
from earlybird.cli.session.exchange import (
    check_exchange,
    compare_run,
    note_other_combination,
    predict_stages,
    replayed_exchange,
)
from earlybird.cli.session.foreign_runs import refuse_unstated
from earlybird.cli.session.launchers import make_launcher
from earlybird.cli.session.memory import load_fitting_pattern
from earlybird.cli.session.sides import in_full, listed_mpis
from earlybird.data import files, units
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout, save_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.pattern import Pattern, load_pattern, save_pattern
from earlybird.data.profile import load_profile
from earlybird.data.run import Run
from earlybird.measure.suites import exchange_groups, staged_group
from earlybird.predict import COMBINE, MIXED, SHARES, merge_profiles
from earlybird.present.render.data import Format
from earlybird.present.render.notes import note
from earlybird.present.subjects.exchange.terminal import print_comparison, print_measured

SETTINGS = ("mpi", "launcher", "hosts", "layout", "layout_text")
DEFAULT_LAUNCHES = 5
DEFAULT_BUDGET = "20s"


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
    output: shared.RunOption = None,
    mpi: shared.MpiOption = None,
    place: shared.PlaceOptions,
    threads: shared.ThreadsOption = 1,
    budget: Annotated[
        str | None, typer.Option(help=f"Time for all launches together.  [default: {DEFAULT_BUDGET}]")
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
    if session.resume:
        run, settings, effort = measuring.open_run(output, SETTINGS, launches, budget, session)
        mpi = mpi and in_full(mpi)
        measuring.refuse_changes(
            run, settings,
            {"mpi": mpi, "hosts": place.hosts, "agent": place.agent, "srun": place.srun, "layout": layout},
        )  # fmt: skip
        refuse_unstated(
            run, settings, place,
            mpis=listed_mpis(settings["mpi"]), stated_mpis=listed_mpis(mpi), has_env=False,
        )  # fmt: skip
        profile = profile or _stored_profiles(run, settings)
        share, mixed, combine = (
            given or settings.get(name)
            for name, given in (("share", share), ("mixed", mixed), ("combine", combine))
        )
        stages, where = replayed_exchange(run)
        messages = Pattern.joined(stages)
        given = [load_pattern(path) for path in (pattern, *(then or ())) if path is not None]
        if given and [one.sha256() for one in given] != [stage.sha256() for stage in stages]:
            paths = " and ".join(str(path) for path in (pattern, *(then or ())) if path is not None)
            raise InputError(
                f"{run.path} replays another pattern than {paths}; omit the pattern and --then with --resume"
            )
    else:
        if pattern is None or layout is None:
            missing = "a pattern, such as mesh.csv" if pattern is None else "a layout, such as --layout 1x1x4"
            raise InputError(f"replay needs {missing}; see `earlybird replay --help`")
        stages = [load_fitting_pattern(path) for path in (pattern, *(then or ()))]
        if len(stages) > 1 and empty:
            raise InputError("--empty applies to one exchange; omit it, or --then")
        messages = Pattern.joined(stages)
        where = parse_layout(layout, map_by)
        settings = {"mpi": mpi, **vars(place), "threads": threads, "layout": layout}
        settings["layout_text"] = where.text
        if profile:
            settings["profile"] = [str(Path(files.shipped(path)).absolute()) for path in profile]
            variants = {"share": share, "mixed": mixed, "combine": combine}
            settings |= {name: given for name, given in variants.items() if given}
        if len(stages) > 1:
            settings["stages"] = [stage.num_messages for stage in stages]
        effort = measuring.new_effort(
            session,
            DEFAULT_LAUNCHES if launches is None else launches,
            units.parse_duration(DEFAULT_BUDGET if budget is None else budget, "--budget"),
            seed,
        )
    if (share or mixed or combine) and not profile:
        raise InputError("--share, --mixed and --combine apply to predictions; add --profile, or omit them")
    profiles = [load_profile(path) for path in profile or ()]
    joined = merge_profiles(profiles) if profiles else None
    if session.print_script is not None:
        messages.check_ranks(where.num_ranks)
        run_path = output or Path("replay")
        batch_script.print_slurm_script(context, run_path, where.num_nodes, effort.budget_s)
        return
    starter, resources = make_launcher(settings, effort.seed)
    check_exchange(messages, where, starter)
    # Refuse an unsuitable profile before measuring.
    variant = (share or SHARES[0], mixed or MIXED[0], combine or COMBINE[0])
    predictions = predict_stages(stages, where, joined, *variant) if joined else {}
    if session.resume:
        measuring.refuse_other_network(run, settings, starter)
    else:
        shared_cores = len(stages) == 1 and joined is not None and starter.shares_cores(where)
        settings["empty"] = shared_cores if empty is None else empty
        effort = measuring.suited_to(resources, effort)

        def save_exchange(folder: Path) -> None:
            save_pattern(messages, folder / "pattern.npz")
            save_layout(where, folder / "layout.csv")

        run = measuring.create_run(output, "replay", effort, starter, settings, save_exchange)
    on = where, starter.flavour, resources.link_bytes_per_s
    if len(stages) > 1:
        groups = [staged_group(stages, *on)]
    else:
        groups = exchange_groups(messages, *on, with_empty=settings.get("empty", False))
    measuring.run_session(run, starter, groups, effort, session.quiet)
    if starter.name == "synthetic" and settings.get("threads", 1) > 1:
        note(f"warning: --threads {settings['threads']} has no effect: times are drawn from a profile")
    if predictions:
        compared = compare_run(run, messages, where, profiles, joined, predictions, *variant)
        print_comparison(compared, format)
        if len(stages) == 1:
            note_other_combination(compared, messages, where, joined, *variant)
    else:
        print_measured(run, format)
    note(f"samples are in {run.path}")


def _stored_profiles(run: Run, settings: dict[str, Any]) -> list[Path]:
    """The profiles with which `run` was started; InputError if one does not exist any more."""
    paths = [Path(path) for path in settings.get("profile", ())]
    missing = next((path for path in paths if not path.is_file()), None)
    if missing is not None:
        raise InputError(
            f"{run.path} was started with the profile {missing}, which does not exist any more; "
            "give its present path with --profile"
        )
    return paths


command = make_command(
    replay, name="replay", example="earlybird replay mesh.csv --profile profile.json --layout 1x1x4 -o replay"
)
