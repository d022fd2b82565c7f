"""`earlybird measure`: run suites into a run folder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.options.shared import MpisOption, PlaceOptions, RunOption, SessionOptions
from earlybird.cli.options.suites import make_suite_group
from earlybird.cli.session import batch_script, measuring, sides
from earlybird.cli.session.foreign_runs import refuse_unstated, unstated
from earlybird.cli.session.launchers import is_simulated, launchers_of
from earlybird.cli.session.osu_format import check_one_column
from earlybird.cli.session.synthetic_times import is_drawn
from earlybird.data import kernels, labels, units
from earlybird.data.errors import InputError
from earlybird.data.run import Run
from earlybird.data.shell_commands import command_text, no_option
from earlybird.interop.osu_tables import ONE_COLUMN
from earlybird.measure import suites
from earlybird.measure.groups import Group, Library, Options, Resources, Suite
from earlybird.measure.options import thread_counts
from earlybird.measure.session import refuse_conflicts_of
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_rows
from earlybird.present.subjects.measured.terminal import print_run

SETTINGS = ("suites", "mpi", "launcher", "hosts", "quick")
FIRST_PIPELINE_METHODS = "single,many"  # of runs that store no methods


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
        str | None,
        typer.Option(
            help="Time for all suites together.  [default: {:g}s per suite, with --quick {:g}s".format(
                *Suite.budgets_s
            )
            + "".join(
                "; for {} {:g}s and {:g}s".format(suite.name, *suite.budgets_s)
                for suite in suites.SUITES.values()
                if suite.budgets_s != Suite.budgets_s
            )
            + "]"
        ),
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
    launches: Annotated[
        int | None, typer.Option(help="Launches of every point.  [default: 5, with --quick 3]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order of launches and points, and of noise.")] = 1,
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
    if format not in (*Format, "osu"):
        instead = f"; {way} writes {format}" if (way := _OTHER_FORMATS.get(format)) else ""
        raise InputError(f"--format is {format!r}; choose table, osu, csv or json{instead}")
    if session.print_script is not None:
        batch_script.check_script(place, resume=session.resume)
        if not suite and against is None:
            raise InputError(f"--print-script needs a suite: {', '.join(suites.SUITES)}")
    names = list(dict.fromkeys(suite))
    given = _Given(place, threads, quick, of_suites)
    run: Run | None = None
    if session.resume:
        run, settings, effort = measuring.open_run(output, SETTINGS, launches, budget, session)
        given.refuse_changes(run, settings)
        if names and names != settings["suites"]:
            raise InputError(
                f"{run.path} measures {' '.join(settings['suites'])}; omit the suite with --resume"
            )
        repeated = against and str(against.absolute())
        measuring.refuse_changes(run, settings, {"against": repeated})
        _refuse_other_mpis(run, settings, mpi, env)
        _refuse_unstated(run, settings, place, mpi, env)
    elif against is not None:
        before, settings, effort = measuring.open_run(against, SETTINGS, launches, budget, session)
        given.refuse_changes(before, settings)
        if place.launcher != PlaceOptions.launcher:
            measuring.refuse_changes(before, settings, {"launcher": place.launcher})
        if not set(names) <= set(settings["suites"]):
            raise InputError(
                f"{against} measures {' '.join(settings['suites'])}; omit the suite with --against, or give "
                "one of these"
            )
        settings = settings | sides.sides_against(against, settings["mpi"], mpi, env)
        _refuse_unstated(before, settings, place, mpi, env)
        settings["suites"] = names or settings["suites"]
        effort = replace(effort, seed=seed)
        if budget is None:
            effort = replace(effort, budget_s=effort.budget_s * sides.growth(before, settings))
    elif not names:
        _list_suites(format)
        return 0
    else:
        chosen = suites.find_suites(names)
        if len(chosen) > 1 and (first := given.of_suites()):
            _refuse_option_of_suite(next(iter(first)))
        mpis = sides.asked_mpis(mpi, env)
        num_launches, budget_s = _default_effort(quick, chosen)
        if is_simulated(place.launcher):
            num_launches = 1  # further launches give the same times
        effort = measuring.new_effort(
            session,
            num_launches if launches is None else launches,
            units.parse_duration(budget, "--budget") if budget else budget_s * max(len(mpis), 1),
            seed,
            paper,
        )
        settings = {"suites": names, "mpi": sides.mpi_setting(mpis), **vars(place)}
        settings |= {"threads": _threads(threads), "quick": quick}
        settings |= of_suites if len(names) == 1 else {}
    chosen = suites.find_suites(settings["suites"])
    options = suites.options_of(chosen, settings)
    if session.print_script is not None:
        several = len(sides.listed_mpis(settings["mpi"])) > 1
        _print_script(context, output or Path("run"), chosen, options, effort.budget_s, fits=not several)
        return 0
    with sides.failing_without_verdict(settings):
        return _measure(run, settings, effort, chosen, options, output, session, format)


def _refuse_other_mpis(
    run: Run, settings: dict[str, Any], mpi: list[str] | None, env: list[str] | None
) -> None:
    """Raise InputError if --mpi and --env are not those of `run`: all, or those that must be stated again."""
    asked, stored = sides.asked_mpis(mpi, env, settings["mpi"]), sides.listed_mpis(settings["mpi"])
    if not (set(asked) <= set(stored) and (env or any(map(unstated, stored)))):
        measuring.refuse_changes(run, settings, {"mpi": sides.mpi_setting(asked)})


def _refuse_unstated(
    run: Run,
    settings: dict[str, Any],
    place: PlaceOptions,
    mpi: list[str] | None,
    env: list[str] | None,
) -> None:
    refuse_unstated(
        run, settings, place,
        mpis=sides.listed_mpis(settings["mpi"]), stated_mpis=mpi or (), stated_variables=env or (),
    )  # fmt: skip


def _measure(
    run: Run | None,
    settings: dict[str, Any],
    effort: measuring.Effort,
    chosen: Sequence[Suite],
    options: Options,
    output: Path | None,
    session: SessionOptions,
    format: str,
) -> int:
    """Measure, print, and return the exit status; `run` is the one to continue."""
    starter, resources = launchers_of(settings, effort.seed)
    if starter.name == "synthetic":
        _refuse_undrawn(chosen, options)
    if is_simulated(settings["launcher"]):
        _refuse_without_threads(chosen)
    groups = [
        group
        for name, of_mpi in resources.items()
        for suite in chosen
        for group in suite.groups(options, of_mpi, name)
    ]
    for remark in dict.fromkeys(
        r for one in resources.values() for suite in chosen for r in suite.remarks(options, one)
    ):
        note(remark)
    if not groups:
        raise InputError(
            f"there is nothing to measure: {', '.join(suite.name for suite in chosen)} has no points with "
            "these options on this machine; give other options or another suite"
        )
    if len(resources) > 1:
        note(f"measuring {' and '.join(resources)}, their launches interleaved")
    for group in groups:
        starter.check(group.layout)
    refuse_conflicts_of(groups, starter)
    if format == "osu":
        check_one_column(groups)
    if run is not None:
        measuring.refuse_other_network(run, settings, starter)
    else:
        effort = measuring.suited_to(next(iter(resources.values())), effort)
        run = measuring.create_run(output, "run", effort, starter, settings)
    result = measuring.run_session(run, starter, groups, effort, session.quiet)
    print_run(run, result.samples, format)
    status = sides.compare_measured(run, settings, prints=format == "table")
    fitted = _can_be_fitted(groups)
    of_one = ["--mpi", next(iter(resources))] if len(resources) > 1 else []
    name = no_option(run.path)
    next_command = ["fit", name, *of_one] if fitted else ["report", name]
    output_name = _profile_name(settings["suites"]) if fitted else "report.html"
    following = command_text(["earlybird", *next_command, "-o", output_name])
    note(f"samples of {labels.listed(list(resources))} are in {run.path}; next: {following}")
    return status


@dataclass(frozen=True)
class _Given:
    """The options that a run stores and that are given again, to continue or to repeat it."""

    place: PlaceOptions
    threads: str | None
    quick: bool
    suite_options: dict[str, Any]

    def of_suites(self) -> dict[str, Any]:
        return {name: value for name, value in self.suite_options.items() if value is not None}

    def refuse_changes(self, run: Run, settings: dict[str, Any]) -> None:
        """InputError for an option that differs from what `run` stores."""
        if kernels.PIPELINE.name in settings["suites"]:
            settings = {"methods": FIRST_PIPELINE_METHODS} | settings
        of_suites, threads = self.of_suites(), self.threads
        given = {
            "hosts": self.place.hosts, "agent": self.place.agent, "srun": self.place.srun,
            "quick": self.quick,
        }  # fmt: skip
        measuring.refuse_changes(run, settings, given)
        chosen = suites.find_suites(settings["suites"])
        compares_threads = len(chosen) == 1 and chosen[0].compares_threads  # several suites do not
        key = "thread_counts" if compares_threads else "threads"
        threads = of_suites.pop(key, threads)
        measuring.refuse_changes(
            run, {"threads": settings.get(key) and str(settings[key])}, {"threads": threads}
        )
        measuring.refuse_changes(run, settings, of_suites)


def _profile_name(names: Sequence[str]) -> str:
    """A name that does not overwrite the profile of messages, to which others are added."""
    profiles = {kernels.KERNELS[name].profile for name in names}
    return profiles.pop() if len(profiles) == 1 else kernels.PINGPONG.profile


def _default_effort(quick: bool, chosen: Sequence[Suite]) -> tuple[int, float]:
    """Return launches, and seconds for all suites."""
    launches = suites.QUICK_LAUNCHES if quick else suites.DEFAULT_LAUNCHES
    return launches, sum(suite.budgets_s[quick] for suite in chosen)


def _refuse_option_of_suite(key: str) -> None:
    taking = [
        (suite.name, one.option) for suite in suites.SUITES.values() for one in suite.takes if one.key == key
    ]
    names = ", ".join(name for name, _ in taking)
    raise InputError(
        f"{taking[0][1]} is an option of {names}, and several suites take the common options only; measure "
        "one suite, or omit it"
    )


def _list_suites(format: str) -> None:
    listed = [{"suite": one.name, "measures": one.help} for one in suites.SUITES.values()]
    if not print_data(format, {"suites": listed}, listed):
        header = list(listed[0])
        print_rows(header, [list(one.values()) for one in listed], left=header)
        print_line()
        print_line("earlybird measure " + " ".join(suites.SUITES) + " -o run")
        print_line("earlybird measure SUITE --help    the options of a suite")


def _can_be_fitted(groups: Sequence[Group]) -> bool:
    """Whether `fit` can make a profile from these groups alone."""
    points: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        points.setdefault(group.kernel, []).extend(group.points)
    return any(kernels.KERNELS[name].is_fitted(of_kernel) for name, of_kernel in points.items())


def _threads(text: str | None) -> int:
    """The threads of all launches; suites that compare thread counts have an option of their own."""
    counts = thread_counts(text) or (1,)
    if len(counts) > 1:
        comparing = [suite.name for suite in suites.SUITES.values() if suite.compares_threads]
        raise InputError(
            f"--threads is {text}, but only {labels.listed(comparing)}, measured alone, take several thread "
            "counts; give one"
        )
    return counts[0]


def _refuse_without_threads(chosen: Sequence[Suite]) -> None:
    for suite in chosen:
        if suite.compares_threads and not suite.simulated:
            others = [
                other.name
                for other in suites.SUITES.values()
                if other.simulated or not other.compares_threads
            ]
            raise InputError(
                f"{suite.name} measures threads or partitions, which simulated ranks do not support; measure "
                f"{', '.join(others)}, or give another --launcher"
            )


def _refuse_undrawn(chosen: Sequence[Suite], options: Options) -> None:
    """Raise InputError for what the launcher synthetic cannot draw."""
    for suite in chosen:
        if not is_drawn(suite.name):
            raise InputError(
                f"the launcher synthetic draws times from a profile, which does not describe {suite.name}; "
                f"measure {suite.name} with another --launcher"
            )
    most = max(options.threads or (options.launcher_threads,))
    if most > 1 and not all(suite.draws_threads for suite in chosen):
        raise InputError(
            f"--threads is {most}, but the launcher synthetic draws times from a profile and ignores "
            "threads; omit --threads"
        )


def _print_script(
    context: typer.Context,
    run: Path,
    chosen: Sequence[Suite],
    options: Options,
    budget_s: float,
    *,
    fits: bool,
) -> None:
    """With `fits`, the script fits the run; a run of several MPIs has no one to fit."""
    # The levels of the nodes are known on the nodes only: request two unless --levels needs only one.
    anywhere = replace(Resources.of(2, 2, 2), library=Library("mpi"))
    groups = [group for suite in chosen for group in suite.groups(options, anywhere, "mpi")]
    fit = ["fit", str(run), "-o", "profile.json"] if fits and _can_be_fitted(groups) else None
    nodes = max(group.layout.num_nodes for group in groups)
    batch_script.print_slurm_script(context, run, nodes, budget_s, next_command=fit)


command = make_suite_group(
    measure,
    examples=(
        "earlybird measure pingpong contention completion --quick -o run",
        "earlybird measure collective --op bcast,reduce --ranks 2,4 --sizes 1..1MiB -o trees",
    ),
)
