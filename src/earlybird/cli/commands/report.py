"""`earlybird report`: one self-contained page, or the same results in the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.output.notes import note
from earlybird.cli.output.printing import print_json
from earlybird.data.errors import InputError


def report(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|RUN/...",
            help="Any of: run folders, recordings, profiles, predictions, comparisons, advice, projections, "
            "patterns.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write.  [default: report.html]")
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Print the results; write the page only if -o is given.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the name of the page as JSON.")] = False,
) -> None:
    """Write one HTML page, readable offline, from any outputs of the other commands."""
    if terminal and json:
        raise InputError("--terminal and --json are both given; give one of them")
    from earlybird.cli.output.fitted import with_fitted
    from earlybird.report import material, page
    from earlybird.report import terminal as tables

    collected = with_fitted(material.collect(inputs))
    if output is not None or not terminal:
        output = output or Path("report.html")
        page.write_page(collected, output)
        if json:
            print_json({"page": str(output)})
        note(f"wrote {output}")
    if terminal:
        print(tables.render(collected), end="")


command = make_command(
    report, name="report", example="earlybird report run profile.json replay -o report.html"
)
