"""`earlybird measure`: run suites into a run folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli import batch_script, suite_options
from earlybird.cli.common import Format, make_command, note, print_table
from earlybird.cli.launchers import is_simulated, launcher_of, machine_of
from earlybird.cli.measured_table import check_osu, print_beside_paper, print_samples
from earlybird.cli.measuring import (
    Effort,
    create_run,
    extend,
    keep_place,
    open_run,
    refuse_changes,
    refuse_other_network,
    run_session,
    suited_to,
)
from earlybird.cli.options import (
    AgentOption,
    HostsOption,
    LauncherOption,
    MpiOption,
    PrintScriptOption,
    QuietOption,
    ResumeOption,
    RunOption,
    StallLimitOption,
    TimeLimitOption,
)
from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.launch.launcher import Launcher
from earlybird.measure import reproduce as reproduction
from earlybird.measure import suites
from earlybird.measure.groups import Group, Library, Options, Resources

SETTINGS = ("suites", "mpi", "launcher", "hosts", "quick", *suite_options.OF_ALL)
FIRST_PIPELINE_METHODS = "single,many"  # of runs that store no methods
DEFAULT_BUDGET_S = 60.0
QUICK_BUDGET_S = 20.0


def measure(
    context: typer.Context,
    suite: Annotated[
        list[str] | None,
        typer.Argument(
            help="pingpong, contention, completion, pipeline, msgrate, collective; none: list the suites."
        ),
    ] = None,
    output: RunOption = None,
    mpi: MpiOption = None,
    launcher: LauncherOption = "local",
    hosts: HostsOption = None,
    agent: AgentOption = None,
    threads: Annotated[
        str | None,
        typer.Option(
            help="Threads per rank, each on its own core; pipeline, msgrate: such as 1,2,4.  "
            "[default: 1; msgrate: 1, 2, 4, ... up to the cores of a rank]"
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Time for all suites together.  [default: 60s per suite, with --quick 20s]"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes and launches, less time.")] = False,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="150 iterations, Student-t 90 %, 5 %, 50 retries (Gillis et al. 2023)."),
    ] = False,
    launches: Annotated[
        int | None, typer.Option(help="Launches of every point.  [default: 5, with --quick 3]")
    ] = None,
    sizes: suite_options.SizesOption = None,
    buffers: suite_options.BuffersOption = None,
    competitors: suite_options.CompetitorsOption = None,
    levels: suite_options.LevelsOption = None,
    partitions: suite_options.PartitionsOption = None,
    gamma: suite_options.GammaOption = None,
    methods: suite_options.MethodsOption = None,
    window: suite_options.WindowOption = None,
    aggregation: suite_options.AggregationOption = None,
    vcis: suite_options.VcisOption = None,
    ai: suite_options.ArithmeticIntensityOption = None,
    ci: suite_options.CommunicationIntensityOption = None,
    frequency: suite_options.FrequencyOption = None,
    epsilon: suite_options.EpsilonOption = None,
    delta: suite_options.DeltaOption = None,
    reproduce: suite_options.ReproduceOption = None,
    operations: suite_options.OperationsOption = None,
    algorithms: suite_options.AlgorithmsOption = None,
    ranks: suite_options.RanksOption = None,
    segments: suite_options.SegmentsOption = None,
    map_by: suite_options.MapByOption = None,
    root: suite_options.RootOption = None,
    proof: suite_options.ProofOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the order of launches and points.")] = 1,
    time_limit: TimeLimitOption = "1h",
    stall_limit: StallLimitOption = "60s",
    resume: ResumeOption = False,
    print_script: PrintScriptOption = None,
    quiet: QuietOption = False,
    format: Annotated[
        str, typer.Option("--format", help="table, osu (one level and MPI), csv or json.")
    ] = "table",
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Measure how MPI communicates on this machine, and store the samples in a run folder."""
    if format not in (*Format, "osu"):
        raise InputError(f"--format is {format!r}; choose table, osu, csv or json")
    if print_script is not None:
        batch_script.check_kind(print_script, launcher=launcher, hosts=hosts, resume=resume)
        if not suite:
            raise InputError(f"--print-script needs a suite: {', '.join(suites.SUITES)}")
    if not suite and not resume:
        print_table(["suite", "measures"], [[s.name, s.help] for s in suites.SUITES.values()])
        print("\nearlybird measure " + " ".join(suites.SUITES) + " -o run")
        return
    of_pipeline = {
        "partitions": partitions,
        "gamma": gamma,
        "aggregation": aggregation,
        "vcis": vcis,
        "ai": ai,
        "ci": ci,
        "frequency": frequency,
        "epsilon": epsilon,
        "delta": delta,
    }
    of_collective = {
        "op": operations,
        "algorithm": algorithms,
        "ranks": ranks,
        "segments": segments,
        "map-by": map_by,
        "root": root,
        "proof": proof,
    }
    if resume:
        run, settings, effort = open_run(output, SETTINGS)
        if "pipeline" in settings["suites"]:
            settings = {"methods": FIRST_PIPELINE_METHODS} | settings
        settings = dict.fromkeys(suite_options.LATER_SETTINGS) | settings
        effort = extend(effort, launches, budget)
        if suite and list(suite) != settings["suites"]:
            raise InputError(
                f"{run.path} measures {' '.join(settings['suites'])}; omit the suite with --resume"
            )
        given = {
            "mpi": mpi,
            "hosts": hosts,
            "agent": agent,
            "quick": quick,
            "sizes": sizes,
            "buffers": buffers,
        }
        refuse_changes(run, settings, given | {"competitors": competitors, "levels": levels})
        refuse_changes(run, settings, of_pipeline | of_collective)
        refuse_changes(run, settings, {"methods": methods, "window": window, "reproduce": reproduce})
        if _takes_counts(settings["suites"]):
            refuse_changes(run, settings | {"threads": settings["thread_counts"]}, {"threads": threads})
    else:
        effort = Effort(
            launches=launches if launches is not None else _default_launches(quick, launcher),
            budget_s=units.parse_duration(budget, "--budget")
            if budget
            else _default_budget_s(quick, len(suite), reproduce),
            paper=paper,
            seed=seed,
            time_limit_s=units.parse_duration(time_limit, "--time-limit"),
            stall_limit_s=units.parse_duration(stall_limit, "--stall-limit"),
        )
        effort.check()
        settings = {
            "suites": list(dict.fromkeys(suite)),
            "mpi": mpi,
            "launcher": launcher,
            "hosts": hosts,
            "agent": agent,
            **_threads(threads, list(dict.fromkeys(suite))),
            "quick": quick,
            "sizes": sizes,
            "buffers": buffers,
            "competitors": competitors,
            "levels": levels,
            **of_pipeline,
            **of_collective,
            "reproduce": reproduce,
            "methods": methods,
            "window": window,
        }
    chosen = suites.find_suites(settings["suites"])
    options = suite_options.options_of(settings)
    if not resume:  # a resumed run was checked when it was created
        suites.check_options(chosen, options)
    if print_script is not None:
        _print_script(context, output or Path("run"), chosen, options, effort)
        return
    starter, resources = launcher_of(settings, effort.seed)
    _refuse_synthetic_threads(settings, options, starter)
    if is_simulated(settings["launcher"]):
        _refuse_without_threads(settings["suites"])
    if not resume:
        effort = suited_to(resources, effort)
    groups = [group for suite in chosen for group in suite.groups(options, resources, starter.flavour)]
    for remark in suites.remarks(chosen, options, resources):
        note(remark)
    for group in groups:
        starter.check(group.layout)
    if format == "osu":
        _check_one_column(groups)
    if resume:
        refuse_other_network(run, settings, starter)
    else:
        keep_place(settings, starter)
        run = create_run(output, "run", effort, machine_of(starter), **settings)
    result = run_session(run, starter, groups, effort, quiet)
    format = "json" if json else format
    compares_paper = options.reproduce and format == "table"
    if compares_paper:
        print_beside_paper(run)
    else:
        print_samples(run, result.samples, format)
    fitted = _can_be_fitted(groups) and not compares_paper
    next_command = f"fit {run.path} -o profile.json" if fitted else f"report {run.path} -o report.html"
    note(f"samples are in {run.path}; next: earlybird {next_command}")


def _can_be_fitted(groups: Sequence[Group]) -> bool:
    """Whether `fit` can make a profile from these groups alone: message rates, and pipelines with noise or of
    one size, are not enough."""
    sizes = {
        (point["level"], point["size_bytes"])
        for group in groups
        for point in group.points
        if group.kernel == "pipeline" and "gamma_s_per_byte" in point
    }
    return len(sizes) > len({level for level, _ in sizes}) or any(
        group.kernel not in ("pipeline", "msgrate") for group in groups
    )


def _threads(text: str | None, chosen: Sequence[str]) -> dict:
    """What a run stores of --threads: the threads of all launches, or the thread counts that a suite
    measures."""
    counts = suite_options.thread_counts(text)
    if _takes_counts(chosen):
        return {"threads": 1, "thread_counts": text}
    if counts is not None and len(counts) > 1:
        raise InputError(
            f"--threads is {text}, but only pipeline and msgrate, measured alone, take several thread "
            "counts; give one"
        )
    return {"threads": counts[0] if counts else 1, "thread_counts": None}


def _takes_counts(chosen: Sequence[str]) -> bool:
    """Whether the suite measures several thread counts."""
    return len(chosen) == 1 and chosen[0] in suites.SUITES and "threads" in suites.SUITES[chosen[0]].takes


def _refuse_without_threads(chosen: Sequence[str]) -> None:
    for name in chosen:
        if "threads" in suites.SUITES[name].takes:
            others = [other for other, suite in suites.SUITES.items() if "threads" not in suite.takes]
            raise InputError(
                f"{name} measures threads or partitions, which simulated ranks do not support; measure "
                f"{', '.join(others)}, or give another --launcher"
            )


def _refuse_synthetic_threads(settings: dict, options: Options, launcher: Launcher) -> None:
    if launcher.name == "synthetic" and "msgrate" in settings["suites"]:
        raise InputError(
            "the launcher synthetic draws times from a profile, which contains no message rates; measure "
            "msgrate with another --launcher"
        )
    most = max(options.threads or (options.launcher_threads,))
    if launcher.name == "synthetic" and most > 1:
        raise InputError(
            f"--threads is {most}, but the launcher synthetic draws times from a profile and ignores "
            "threads; omit --threads"
        )


def _print_script(
    context: typer.Context,
    run: Path,
    chosen: Sequence[suites.Suite],
    options: Options,
    effort: Effort,
) -> None:
    # The levels of the nodes are known on the nodes only: request two unless --levels needs only one.
    anywhere = replace(Resources.of(2, 2, 2), library=Library("mpi"))
    groups = [group for suite in chosen for group in suite.groups(options, anywhere, "mpi")]
    fit = ["fit", str(run), "-o", "profile.json"] if _can_be_fitted(groups) else None
    nodes = max(group.layout.num_nodes for group in groups)
    batch_script.print_slurm_script(context, run, nodes, effort.budget_s, next_command=fit)


def _default_launches(quick: bool, launcher: str) -> int:
    if is_simulated(launcher):
        return 1  # further launches give the same times
    return suites.QUICK_LAUNCHES if quick else suites.DEFAULT_LAUNCHES


def _default_budget_s(quick: bool, num_suites: int, paper: str | None) -> float:
    if paper is not None:
        return reproduction.QUICK_BUDGET_S if quick else reproduction.BUDGET_S
    return num_suites * (QUICK_BUDGET_S if quick else DEFAULT_BUDGET_S)


def _check_one_column(groups: Sequence[Group]) -> None:
    if {group.kernel for group in groups} == {"collective"}:
        check_osu(groups)
        return
    for group in groups:
        if group.kernel in ("completion", "pipeline", "msgrate", "collective"):
            raise InputError(
                f"--format osu prints one time, but {group.kernel} has several; choose table, csv or json"
            )
    columns = {(g.kernel, p["level"], p.get("competitors", 1)) for g in groups for p in g.points}
    if len(columns) > 1:
        raise InputError("--format osu prints one column: measure one suite with one level and one N")


command = make_command(
    measure,
    name="measure",
    example="earlybird measure pingpong contention completion --quick -o run\n\n"
    "For collectives: earlybird measure collective --op bcast,reduce --ranks 2,4 --sizes 1..1MiB -o trees",
)
