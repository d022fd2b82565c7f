"""`earlybird reproduce`: measures the figures of a paper, and prints its values next to those of here."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from earlybird.cli.options.command import FORMAT, example_text
from earlybird.cli.options.shared import LaunchesOption, LimitOptions, MpisOption, PlaceOptions, SeedOption
from earlybird.cli.options.suites import make_own_command
from earlybird.cli.options.values import DURATION
from earlybird.cli.session import measuring
from earlybird.cli.session.papers import measure_paper
from earlybird.data import labels
from earlybird.data.errors import InputError, WorkError
from earlybird.data.shell_commands import command_text, no_option
from earlybird.measure import sides
from earlybird.measure.continued import refuse_changes
from earlybird.measure.effort import Effort
from earlybird.measure.foreign_runs import refuse_unstated
from earlybird.measure.launch_counts import DEFAULT_LAUNCHES, QUICK_LAUNCHES
from earlybird.measure.suites import read_options
from earlybird.papers.page import place_line, printed_table, rows_table, summary, with_footnotes
from earlybird.papers.paper import Paper
from earlybird.papers.planned import estimate, plan_paper
from earlybird.papers.registry import PAPERS, find_paper, paper_chapters
from earlybird.present.material import Material
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_rows, print_table

SETTINGS = ("reproduce", "step", "mpis", "launcher", "hosts", "quick")
PAGE = "report.html"
_EXAMPLES = ("earlybird reproduce gillis --quick -o gillis", "earlybird reproduce temucin --published")


def reproduce(
    context: typer.Context,
    name: str,
    of_paper: dict[str, Any],
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to create.  [default: the name of the paper]"),
    ] = None,
    mpi: MpisOption = None,
    place: PlaceOptions,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and launches, less time.")] = False,
    budget: Annotated[
        float | None, typer.Option(help="Time for all MPIs together.  [default: by paper and MPI]"), DURATION
    ] = None,
    launches: LaunchesOption = None,
    seed: SeedOption = 1,
    published: Annotated[
        bool, typer.Option("--published", help="Print what the paper printed; measure nothing.")
    ] = False,
    session: LimitOptions,
    format: Format = FORMAT,
) -> None:
    """Measure the figures of a paper on this machine, each MPI in a folder of its own, and write a page."""
    paper = find_paper(name)
    if published:
        _print(paper, Material(), format)
        return
    folder = output or Path(name)
    if session.resume:
        run, settings, effort = _continued(paper, folder, launches, budget, session)
        mpis = [str(one) for one in settings["mpis"]]
        asked = sides.asked_mpis(mpi, None, mpis)
        refused = {"quick": quick, **vars(place), **of_paper}
        if place.launcher == PlaceOptions.launcher:
            del refused["launcher"]
        refuse_changes(run, settings, refused)
        if asked and asked != mpis:
            refuse_changes(run, {"mpi": mpis}, {"mpi": asked})
        refuse_unstated(run, settings, vars(place), mpis=mpis, stated_mpis=asked, has_env=False)
    else:
        _refuse_used(folder)
        mpis = sides.asked_mpis(mpi, None)
        settings = {**vars(place), "quick": quick, "threads": 1}
        settings |= {key: value for key, value in of_paper.items() if value is not None}
        budget_s = paper.budgets_s[quick]
        if budget is not None:
            budget_s = budget / max(len(mpis), 1)
        count = (QUICK_LAUNCHES if quick else DEFAULT_LAUNCHES) if launches is None else launches
        effort = measuring.new_effort(session, count, budget_s, seed)
        settings["budget_s"] = budget_s
    options = read_options(paper.takes, settings)
    planned = [plan_paper(paper, folder, settings, options, one, effort.seed, note) for one in mpis or [""]]
    note(estimate(planned, effort))
    settings["mpis"] = mpis or [planned[0].launcher.flavour]
    measured = [measure_paper(paper, one, settings, effort, session.quiet) for one in planned]
    failed = [sentence for one in measured for sentence in one.failed]
    inputs = [path for one in measured for path in one.inputs]
    if not inputs:
        raise WorkError(failed[0])

    from earlybird.data.pattern import load_fitting_pattern
    from earlybird.present.fitted import with_fitted
    from earlybird.present.material import collect
    from earlybird.present.render import html as page

    material = with_fitted(collect(inputs, None, load_fitting_pattern))
    page.write_page(material, folder / PAGE, paper_chapters)
    _print(paper, material, format, folder)
    note(f"samples are in {folder}, and the figures in {folder / PAGE}")
    if failed:
        raise WorkError(
            failed[0] if not failed[1:] else f"{len(failed)} steps failed; the first: {failed[0]}"
        )


def _print(paper: Paper, material: Material, format: Format, folder: Path | None = None) -> None:
    rows = paper.rows(material)
    records = [row.to_json() for row in rows]
    value = {"paper": paper.name, "citation": paper.citation, "rows": records}
    if folder is not None:
        value["folder"] = str(folder)
    if not print_data(format, value, records):
        noted, footnotes = with_footnotes(rows) if material.runs else (rows, [])
        table = rows_table(paper, noted) if material.runs else printed_table(paper, rows)
        print_line(table.caption)
        print_table(table)
        for line in footnotes:
            print_line(line)
        print_line()
        repeated = summary(rows) if material.runs else ""
        for line in filter(None, (place_line(material, paper.name), paper.legend, repeated)):
            print_line(line)


def _continued(
    paper: Paper, folder: Path, launches: int | None, budget: float | None, session: LimitOptions
) -> tuple[Any, dict[str, Any], Effort]:
    """Return a run of the folder, the settings of all, and the effort for an MPI."""
    _refuse_file(folder)
    found = sorted(folder.glob("*/*/run.json"))
    if not found and folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} has no figures of a paper; give another -o, without --resume")
    if not found:
        raise InputError(
            f"{folder} has no run to continue; start with `{_command(paper, folder)}`, or give another -o"
        )
    run, settings, effort = measuring.open_run(found[0].parent, SETTINGS, launches, None, session)
    if settings["reproduce"] != paper.name:
        again = ["earlybird", "reproduce", str(settings["reproduce"]), "--resume", "-o", no_option(folder)]
        raise InputError(
            f"{folder} has the figures of {settings['reproduce']}; continue with `{command_text(again)}`"
        )
    # The effort of a run is that of its step.
    budget_s = float(settings.get("budget_s") or paper.budgets_s[bool(settings["quick"])])
    if budget is not None:
        budget_s = budget / max(len(settings["mpis"]), 1)
    return run, settings, replace(effort, budget_s=budget_s)


def _refuse_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder with -o")


def _refuse_used(folder: Path) -> None:
    _refuse_file(folder)
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} exists already; give another -o, or add --resume to continue what it has")


def _command(paper: Paper, folder: Path) -> str:
    return command_text(["earlybird", "reproduce", paper.name, "-o", no_option(folder)])


class _PaperGroup(TyperGroup):
    """A subcommand for each paper; without one, it lists the papers."""

    def invoke(self, ctx: Any) -> Any:
        if not ctx.args and not getattr(ctx, "_protected_args", None):
            _list_papers()
            return 0
        return super().invoke(ctx)


def _list_papers() -> None:
    rows = [
        [paper.name if k == 0 else "", paper.citation if k == 0 else "", figure, text]
        for paper in PAPERS.values()
        for k, (figure, text) in enumerate(paper.figures.items())
    ]
    header = ["paper", "citation", "figure", "what it shows"]
    print_rows(header, rows, left=header)
    print_line()
    for example in _EXAMPLES:
        print_line(example)


def _command_of(paper: Paper) -> Any:
    listed = "\n".join(f"  {name}: {text}" for name, text in paper.figures.items())
    doc = f"{labels.capital(paper.citation)}: {paper.title}.\n\n\b\n{listed}"
    name = paper.name
    example = f"earlybird reproduce {name} --mpi mpich --quick -o {name}"
    return make_own_command(
        reproduce, paper.takes, name=paper.name, doc=doc, example=example, subject=paper.name
    )


command = _PaperGroup(
    name="reproduce",
    help="Measure the figures of a paper on this machine, and print them next to the values of the paper. "
    "Without a paper: list the papers and their figures.",
    epilog=example_text(*_EXAMPLES),
    commands=[_command_of(paper) for paper in PAPERS.values()],
    invoke_without_command=True,
    no_args_is_help=False,
    rich_markup_mode=None,
)  # fmt: skip
