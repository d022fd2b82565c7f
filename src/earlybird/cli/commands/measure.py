"""`earlybird measure`: run suites into a run folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.options.shared import (
    LaunchesOption,
    MpisOption,
    PlaceOptions,
    RunOption,
    SeedOption,
    SessionOptions,
)
from earlybird.cli.options.suites import make_suite_group
from earlybird.cli.options.values import DURATION
from earlybird.cli.session import batch_script, measuring
from earlybird.data import labels
from earlybird.data.errors import FAILED_VERDICT, InputError
from earlybird.data.run import Run
from earlybird.data.run_comparison import SLOWER
from earlybird.data.shell_commands import command_text, no_option, path_argument
from earlybird.interop.osu_format import check_one_column
from earlybird.interop.osu_tables import ONE_COLUMN
from earlybird.measure import continued, planned, sides, suites
from earlybird.measure.effort import Effort, overrun_remark, suited_to
from earlybird.measure.groups import Group, Options, Suite
from earlybird.measure.launchers import launchers_of
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_rows
from earlybird.present.subjects.changes.terminal import print_run_comparisons
from earlybird.present.subjects.measured.terminal import print_run

SETTINGS = ("suites", "mpi", "launcher", "hosts", "quick")

_OF_RUN = "`earlybird export RUN --to {} -o FILE`"
_OF_PROFILE = "`earlybird export PROFILE.json --to {} -o FILE`, of a profile from `earlybird fit RUN`,"
_OF_TWO_RUNS = "`earlybird compare RUN RUN --format {}`"
# Formats of other commands -> what writes them.
_OTHER_FORMATS = {
    **dict.fromkeys(("openmetrics", "prometheus"), _OF_RUN.format("openmetrics")),
    **{name: _OF_PROFILE.format(name) for name in ("simgrid-platform", "loggps", "simulated-machine")},
    **{name: _OF_TWO_RUNS.format(name) for name in ("markdown", "junit")},
    "otava": "`earlybird history RUN... --format otava`",
}
_BUDGETS = "; ".join(
    [
        "{:g}s per suite, with --quick {:g}s".format(*Suite.budgets_s),
        *(
            "for {} {:g}s and {:g}s".format(suite.name, *suite.budgets_s)
            for suite in suites.SUITES.values()
            if suite.budgets_s != Suite.budgets_s
        ),
    ]
)


def measure(
    context: typer.Context,
    suite: list[str],
    of_suites: dict[str, Any],
    *,
    output: RunOption = None,
    mpi: MpisOption = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE: a variable of the launches. Values of one name alternate and are compared; "
            "NAME alone, next to NAME=VALUE: as it is in the shell."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Measure the points of this run and compare; with another --mpi or --env, both sides, "
            "interleaved."
        ),
    ] = None,
    place: PlaceOptions,
    threads: Annotated[
        str | None,
        typer.Option(
            help="Cores per rank; above 1 with MPI_THREAD_MULTIPLE, one thread communicates.  [default: 1]"
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help=f"Time for all suites together.  [default: {_BUDGETS}]"), DURATION
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes and launches, less time.")] = False,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="Stop rule of Gillis et al. 2023: 150 iterations, repeated up to 50 times until the 90 % "
            "Student-t interval is within 5 % of the mean.",
        ),
    ] = False,
    launches: LaunchesOption = None,
    seed: SeedOption = 1,
    session: SessionOptions,
    format: Annotated[
        str,
        typer.Option(help="table, osu (" + " or ".join(ONE_COLUMN) + ", as OSU prints), csv or json."),
    ] = "table",
) -> int:
    """Measure how MPI communicates on this machine, and store the samples in a run folder.

    With --against, or several --mpi or values of --env, the exit status is that of `earlybird compare`: 1 if
    a point is slower, 3 if there is no comparison.
    """
    _check_format(format)
    if session.print_script is not None:
        batch_script.check_script(place, resume=session.resume)
        if not suite and against is None:
            raise InputError(f"--print-script needs a suite: {', '.join(suites.SUITES)}")
    names, mpis, variables = list(dict.fromkeys(suite)), mpi or [], env or []
    given = {"hosts": place.hosts, "agent": place.agent, "srun": place.srun, "quick": quick}
    run: Run | None = None
    before: Run | None = None
    if session.resume or against is not None:
        start = output if session.resume else against
        started, settings, effort = measuring.open_run(start, SETTINGS, launches, budget, session)
        continued.refuse_other_options(started, settings, given, threads, of_suites)
        if session.resume:
            run = started
            if names and names != settings["suites"]:
                raise InputError(
                    f"{run.path} measures {' '.join(settings['suites'])}; omit the suite with --resume"
                )
            continued.refuse_changes(run, settings, {"against": against and str(against.absolute())})
        else:
            before = started
            settings, effort = _repeated(
                started, settings, effort, names, place, mpis, variables, seed, budget
            )
        continued.refuse_other_mpis(
            started, settings, vars(place), mpis, variables, is_continued=session.resume
        )
    elif not names:
        _list_suites(format)
        return 0
    else:
        chosen = suites.find_suites(names)
        if len(chosen) > 1:
            planned.refuse_options_of_suites(of_suites)
        compared = sides.asked_mpis(mpis, variables)
        effort = measuring.new_effort(
            session,
            planned.default_launches(quick, place.launcher) if launches is None else launches,
            planned.default_budget_s(chosen, quick, compared) if budget is None else budget,
            seed,
            paper,
        )
        settings = {"suites": names, "mpi": sides.mpi_setting(compared), **vars(place)}
        settings |= {"threads": planned.launcher_threads(threads), "quick": quick}
        settings |= of_suites if len(names) == 1 else {}
    chosen = suites.find_suites(settings["suites"])
    options = suites.options_of(chosen, settings)
    if session.print_script is not None:
        _print_script(
            context, output or Path("run"), settings, planned.groups_anywhere(chosen, options), effort
        )
        return 0
    with sides.failing_without_verdict(settings):
        return _measure(run, before, settings, effort, chosen, options, output, session, format)


def _check_format(format: str) -> None:
    if format not in (*Format, "osu"):
        instead = f"; {command} writes {format}" if (command := _OTHER_FORMATS.get(format)) else ""
        raise InputError(f"--format is {format!r}; choose table, osu, csv or json{instead}")


def warn_if_undecided(before: Run, settings: dict[str, Any], launches: int) -> None:
    """Say before anything is measured if the comparison cannot decide, for lack of launches."""
    if settings["launcher"].partition(":")[0] in ("simgrid", "synthetic"):
        return  # these take no time
    from earlybird.compare.changes import MIN_LAUNCHES  # and with it scipy

    known = sides.most_launches(before) if settings["against"] is not None else MIN_LAUNCHES
    if known >= MIN_LAUNCHES <= launches:
        return
    first = ""
    if known < MIN_LAUNCHES:
        first = (
            f"first continue {before.path}, which has at most {known} of a point, with --resume -o "
            f"{path_argument(before.path)} --launches {MIN_LAUNCHES} --budget 60s, then "
        )
    note(
        f"warning: this comparison will not decide, since that needs {MIN_LAUNCHES} launches on each side; "
        f"{first}give --launches {MIN_LAUNCHES} or more"
    )


def _repeated(
    before: Run,
    settings: dict[str, Any],
    effort: Effort,
    names: list[str],
    place: PlaceOptions,
    mpis: list[str],
    variables: list[str],
    seed: int,
    budget_s: float | None,
) -> tuple[dict[str, Any], Effort]:
    """Return settings and effort of a run that measures `before` again, to be compared with it."""
    if place.launcher != PlaceOptions.launcher:
        continued.refuse_changes(before, settings, {"launcher": place.launcher})
    if not set(names) <= set(settings["suites"]):
        raise InputError(
            f"{before.path} measures {' '.join(settings['suites'])}; omit the suite with --against, or give "
            "one of these"
        )
    settings = settings | sides.sides_against(before.path, settings["mpi"], mpis, variables)
    settings["suites"] = names or settings["suites"]
    factor = sides.growth(before, settings) if budget_s is None else 1.0
    return settings, replace(effort, seed=seed, budget_s=effort.budget_s * factor)


def _measure(
    run: Run | None,
    before: Run | None,
    settings: dict[str, Any],
    effort: Effort,
    chosen: Sequence[Suite],
    options: Options,
    output: Path | None,
    session: SessionOptions,
    format: str,
) -> int:
    """Measure, print, and return the exit status; `run` is the one to continue, `before` the one
    to repeat and compare with."""
    starter, resources = launchers_of(settings, effort.seed, note)
    groups, remarks = planned.planned_groups(chosen, options, resources, starter, settings["launcher"])
    if len(resources) > 1:
        remarks.append(f"measuring {' and '.join(resources)}, their launches interleaved")
    for remark in remarks:
        note(remark)
    if format == "osu":
        check_one_column(groups)
    if run is not None:
        continued.refuse_other_network(run, settings, starter)
    else:
        if before is not None:
            warn_if_undecided(before, settings, effort.launches)
        effort = suited_to(next(iter(resources.values())), effort)
        run = measuring.create_run(output, "run", effort, starter, settings)
        takes_time = starter.name not in ("simgrid", "synthetic")
        if takes_time and (overrun := overrun_remark(groups, effort)):
            note(overrun)
    result = measuring.run_session(run, starter, groups, effort, session.quiet)
    print_run(run, result.samples, format)
    status = _compare(run, settings, prints=format == "table")
    fitted = planned.can_be_fitted(groups)
    of_one = ["--mpi", next(iter(resources))] if len(resources) > 1 else []
    name = no_option(run.path)
    next_command = ["fit", name, *of_one] if fitted else ["report", name]
    written = planned.profile_name(settings["suites"]) if fitted else "report.html"
    following = command_text(["earlybird", *next_command, "-o", written])
    note(f"samples of {labels.listed(list(resources))} are in {run.path}; next: {following}")
    return status


def _compare(run: Run, settings: dict[str, Any], *, prints: bool) -> int:
    """Compare the sides of a run that has several, or another run to be compared with; return the exit
    status: 1 if a point is slower, 3 if they cannot be compared."""
    try:
        comparisons = sides.comparisons_of(run, settings)
    except InputError as error:  # what was measured is stored; the other run may be missing by now
        note(f"warning: not compared: {error}")
        return FAILED_VERDICT
    if prints and comparisons:
        print_line()
        print_run_comparisons(comparisons, "table")
    return int(any(comparison.count(SLOWER) for comparison in comparisons))


def _list_suites(format: str) -> None:
    listed = [{"suite": suite.name, "measures": suite.help} for suite in suites.SUITES.values()]
    if not print_data(format, {"suites": listed}, listed):
        header = list(listed[0])
        print_rows(header, [list(row.values()) for row in listed], left=header)
        print_line()
        print_line("earlybird measure " + " ".join(suites.SUITES) + " -o run")
        print_line("earlybird measure SUITE --help    the options of a suite")


def _print_script(
    context: typer.Context, run: Path, settings: dict[str, Any], groups: Sequence[Group], effort: Effort
) -> None:
    """Print a batch script for as many nodes as the groups need, which fits the run if it is of one MPI."""
    fits = len(sides.listed_mpis(settings["mpi"])) <= 1 and planned.can_be_fitted(groups)
    nodes = max(group.layout.num_nodes for group in groups)
    batch_script.print_slurm_script(
        context, run, nodes, effort.budget_s,
        next_command=["fit", str(run), "-o", "profile.json"] if fits else None,
    )  # fmt: skip


command = make_suite_group(
    measure,
    examples=(
        "earlybird measure pingpong contention completion --quick -o run",
        "earlybird measure collective --op bcast,reduce --ranks 2,4 --sizes 1..1MiB -o trees",
    ),
)
