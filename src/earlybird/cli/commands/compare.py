"""`earlybird compare`: what changed between runs, point by point, and what else differs."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.commands.baseline import FolderOption, baselines_like
from earlybird.cli.options.command import make_command
from earlybird.cli.options.outputs import ResultOption, write_result
from earlybird.cli.options.shared import MinEffectOption
from earlybird.cli.options.values import OneOf, as_written, level_from
from earlybird.data.baseline import FOLDER, find_baseline
from earlybird.data.errors import InputError
from earlybird.data.guidelines import UNDECIDED, VIOLATED
from earlybird.data.run_comparison import INCONCLUSIVE, SLOWER


def compare(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders; the others are compared with the first one."),
    ],
    mpi: Annotated[
        list[str] | None,
        typer.Option(help="Of a run of several MPIs: the one to compare; of a single RUN, those to compare."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Compare all runs with this baseline, see `earlybird baseline save`.",
            autocompletion=baselines_like,
        ),
    ] = None,
    folder: FolderOption = FOLDER,
    guidelines: Annotated[
        bool,
        typer.Option(
            "--guidelines",
            help="Compare the collectives of one RUN with what can replace them, as allgather with gather "
            "and bcast.",
        ),
    ] = False,
    min_effect: MinEffectOption = as_written("5%"),
    level: Annotated[
        float,
        typer.Option(help="Share of false discoveries among the points that are called changed."),
        level_from(),
    ] = as_written("3%"),
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare runs of other hosts, networks or placements too.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="An inconclusive point fails too.")] = False,
    output: ResultOption = None,
    format: Annotated[
        str,
        typer.Option(help="How to print the result on stdout."),
        OneOf("table", "csv", "json", "markdown", "junit"),
    ] = "table",
) -> int:
    """Compare runs point by point: which are slower, which faster, and what else differs.

    The launch is the sample, not the iteration: a point is slower or faster if the medians of its launches
    differ significantly (Mann-Whitney U, adjusted for the number of points by Benjamini and Hochberg) and by
    more than --min-effect, and the interval of the ratio does not include 1; the same if the interval lies
    within --min-effect; otherwise inconclusive. At least five launches on each side decide. The honest
    comparison of two MPIs or settings interleaves their launches: measure both in one run (`measure ...
    --mpi a --mpi b`, or --env), then give that run alone.

    With --guidelines, an operation that takes longer than what can replace it fails.

    Exit status: 0 without a slower point, 1 with one, 2 if the runs cannot be compared, 3 if the result
    cannot be written.
    """
    if baseline is None and folder != FOLDER:
        raise InputError(f"--folder {folder} is where --baseline looks for one; give --baseline, or omit it")
    if guidelines and (anyway or baseline is not None):
        option = "--anyway" if anyway else "--baseline"
        raise InputError(f"--guidelines compares operations within one run; omit {option}")
    from earlybird.compare.chosen_sides import one_side, sides_of, sides_with_baseline
    from earlybird.compare.guidelines import check_guidelines
    from earlybird.compare.runs import compare_sides
    from earlybird.present.subjects.changes.terminal import print_run_comparisons
    from earlybird.present.subjects.guidelines.terminal import print_guidelines

    mpis = mpi or []
    if guidelines:
        checks = check_guidelines(one_side(sources, mpis), level=level, min_effect=min_effect)
        print_guidelines(checks, format, strict=strict)
        write_result(output, checks)
        return int(bool(checks.count(VIOLATED) or (strict and checks.count(UNDECIDED))))
    path = find_baseline(baseline, folder) if baseline else None
    pairs = sides_of(sources, mpis) if path is None else sides_with_baseline(path, sources, mpis)
    if output is not None and len(pairs) > 1:
        raise InputError(f"-o is for one comparison, and these are {len(pairs)}; give two runs, or omit -o")
    comparisons = [compare_sides(*pair, level=level, min_effect=min_effect, anyway=anyway) for pair in pairs]
    print_run_comparisons(comparisons, format, strict=strict)
    write_result(output, comparisons[0])
    failing = (SLOWER, INCONCLUSIVE) if strict else (SLOWER,)
    return int(any(comparison.count(verdict) for comparison in comparisons for verdict in failing))


command = make_command(compare, name="compare", example="earlybird compare before/ after/ --min-effect 3%")
