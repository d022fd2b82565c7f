"""`earlybird history`: when points changed over many runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.run import Run
from earlybird.data.units import parse_fraction, parse_level
from earlybird.present.render.notes import note


class HistoryFormat(StrEnum):
    """`--format`; `--json` is short for `--format json`."""

    table = "table"
    csv = "csv"
    json = "json"
    otava = "otava"


def history(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, such as those of every night; in any order."),
    ],
    mpi: Annotated[str | None, typer.Option(help="Of runs of several MPIs: the one to follow.")] = None,
    min_effect: Annotated[str, typer.Option(help="A smaller change counts as none.")] = "3%",
    level: Annotated[
        str, typer.Option(help="Share of histories without a change in which one is found.")
    ] = "1%",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write it as JSON, for `show` and `report`.")
    ] = None,
    format: Annotated[
        HistoryFormat, typer.Option(help="How to print the result; otava: CSV for Apache Otava.")
    ] = HistoryFormat.table,
) -> None:
    """Date the steps and drifts of every point over many runs.

    Runs are ordered by their start. A change counts if runs in random order hardly ever show one as large
    (--level, shared by all points), so single bad nights raise no alarm. Of each change the table names what
    else differs between the run before it and the first one after it. Exit status: 0 also with changes; a
    gate is `earlybird compare`.
    """
    # Of smaller levels more permutations are needed than anybody waits for.
    fractions = parse_level(level, "--level", 1e-4), parse_fraction(min_effect, "--min-effect")
    from earlybird.compare.history import caveats
    from earlybird.compare.history import history as history_of
    from earlybird.compare.sides import side_of
    from earlybird.present.subjects.changes.terminal import print_history

    runs = [Run.open(source) for source in sources]
    if twice := next((run for k, run in enumerate(runs) if run.id in {one.id for one in runs[:k]}), None):
        raise InputError(f"the run of {twice.path} is given twice; give each run once")
    sides = [(str(run.header.get("started", "")), side_of(run, mpi).medians()) for run in runs]
    found = history_of(sides, level=fractions[0], min_effect=fractions[1])
    if output is not None:
        files.write_json(output, found.to_json())
        note(f"wrote {output}")
    print_history(found, format)
    for text in caveats(sides, found):
        note(f"warning: {text}")


command = make_command(history, name="history", example="earlybird history nightly/*/ --min-effect 3%")
