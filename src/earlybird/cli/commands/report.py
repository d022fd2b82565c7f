"""`earlybird report`: one self-contained page, or the same results in the terminal."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.options.shared import LAYOUT_HELP, LayoutMapByOption, StatisticOption, check_map_by
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.statistics import MEDIAN, SHOWN
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_text


def report(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|RUN/...",
            help="Any of: run folders, recordings, profiles, predictions, also of --nodes and --tolerance, "
            "comparisons, advice, simulations, patterns.",
        ),
    ],
    layout: Annotated[
        str | None,
        typer.Option(help=f"Where the ranks of patterns run: {LAYOUT_HELP}"),
    ] = None,
    map_by: LayoutMapByOption = None,
    statistic: StatisticOption = MEDIAN,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write.  [default: report.html]")
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Print the results; write the page only if -o is given.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the name of the page as JSON.")] = False,
) -> None:
    """Write one HTML page, readable offline, from any outputs of the other commands.

    Of a pattern with --layout, the page has the communication matrix and the volume that each rank and each
    node receives on the same socket, across sockets and between nodes.
    """
    if terminal and json:
        raise InputError("--terminal and --json are both given; give one of them")
    check_map_by(map_by, layout)
    from earlybird.data.pattern import load_fitting_pattern
    from earlybird.papers.registry import paper_chapters
    from earlybird.present import material
    from earlybird.present.fitted import with_fitted
    from earlybird.present.render import html as page
    from earlybird.present.render import text as tables

    where = None if layout is None else parse_layout(layout, map_by or MAPPINGS[0])
    collected = with_fitted(
        replace(material.collect(inputs, where, load_fitting_pattern), statistic=SHOWN[statistic])
    )
    if where is not None and not collected.patterns:
        raise InputError(f"--layout {layout} is for patterns, but none is given; add one, such as mesh.csv")
    for remark in collected.remarks:
        note(remark)
    if output is not None or not terminal:
        output = output or Path("report.html")
        page.write_page(collected, output, paper_chapters)
        if json:
            print_json({"page": str(output)})
        note(f"wrote {output}")
    if terminal:
        print_text(tables.render(collected, paper_chapters))


command = make_command(
    report,
    name="report",
    example=(
        "earlybird report run profile.json replay -o report.html",
        "earlybird report mesh.csv --layout 2x2x2 -o report.html",
    ),
)
