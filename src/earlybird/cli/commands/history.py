"""`earlybird history`: when points changed over many runs."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.options.outputs import ResultOption, write_result
from earlybird.cli.options.shared import MinEffectOption
from earlybird.cli.options.values import OneOf, as_written, level_from
from earlybird.data.errors import InputError
from earlybird.data.run import Run
from earlybird.present.render.notes import note


def history(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, such as those of every night; in any order."),
    ],
    mpi: Annotated[str | None, typer.Option(help="Of runs of several MPIs: the one to follow.")] = None,
    min_effect: MinEffectOption = as_written("3%"),
    # Of smaller levels more permutations are needed than anybody waits for.
    level: Annotated[
        float,
        typer.Option(help="Share of histories without a change in which one is found."),
        level_from(1e-4),
    ] = as_written("1%"),
    output: ResultOption = None,
    format: Annotated[
        str,
        typer.Option(help="How to print the result; otava: CSV for Apache Otava."),
        OneOf("table", "csv", "json", "otava"),
    ] = "table",
) -> None:
    """Date the steps and drifts of every point over many runs.

    Runs are ordered by their start. A change counts if runs in random order hardly ever show one as large
    (--level, shared by all points), so single bad nights raise no alarm. Of each change the table names what
    else differs between the run before it and the first one after it. Exit status: 0 also with changes; a
    gate is `earlybird compare`.
    """
    from earlybird.compare.history import caveats
    from earlybird.compare.history import history as history_of
    from earlybird.compare.sides import side_of
    from earlybird.present.subjects.changes.terminal import print_history

    runs = [Run.open(source) for source in sources]
    if twice := next((run for k, run in enumerate(runs) if run.id in {other.id for other in runs[:k]}), None):
        raise InputError(f"the run of {twice.path} is given twice; give each run once")
    sides = [(str(run.header.get("started", "")), side_of(run, mpi).medians()) for run in runs]
    result = history_of(sides, level=level, min_effect=min_effect)
    write_result(output, result)
    print_history(result, format)
    for text in caveats(sides, result):
        note(f"warning: {text}")


command = make_command(history, name="history", example="earlybird history nightly/*/ --min-effect 3%")
