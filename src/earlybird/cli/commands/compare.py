"""`earlybird compare`: what changed between runs, point by point, and what else differs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.commands.baseline import FOLDER, FolderOption, baselines_like, find_baseline
from earlybird.cli.options.command import make_command
from earlybird.data import files
from earlybird.data.baseline import load_baseline
from earlybird.data.errors import InputError
from earlybird.data.guidelines import UNDECIDED, VIOLATED
from earlybird.data.labels import counted
from earlybird.data.run import Run
from earlybird.data.run_comparison import INCONCLUSIVE, SLOWER
from earlybird.data.units import parse_fraction, parse_level
from earlybird.present.render.notes import note


class CompareFormat(StrEnum):
    """`--format`; `--json` is short for `--format json`."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"
    junit = "junit"


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
    min_effect: Annotated[str, typer.Option(help="A smaller change counts as none.")] = "5%",
    level: Annotated[
        str, typer.Option(help="Share of false discoveries among the points that are called changed.")
    ] = "3%",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare runs of other hosts, networks or placements too.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="An inconclusive point fails too.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write it as JSON, for `show` and `report`.")
    ] = None,
    format: Annotated[
        CompareFormat, typer.Option(help="How to print the result on stdout.")
    ] = CompareFormat.table,
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
    fractions = parse_level(level, "--level"), parse_fraction(min_effect, "--min-effect")
    if baseline is None and folder != FOLDER:
        raise InputError(f"--folder {folder} is where --baseline looks for one; give --baseline, or omit it")
    if guidelines:
        if anyway:
            raise InputError("--guidelines compares operations within one run; omit --anyway")
        return _check_guidelines(sources, mpi or [], baseline, fractions, strict, output, format)
    pairs = _pairs_with(baseline, folder, sources, mpi or []) if baseline else _pairs(sources, mpi or [])
    if output is not None and len(pairs) > 1:
        raise InputError(f"-o is for one comparison, and these are {len(pairs)}; give two runs, or omit -o")
    from earlybird.compare.runs import compare_sides
    from earlybird.present.subjects.changes.terminal import print_run_comparisons

    found = [
        compare_sides(before, after, level=fractions[0], min_effect=fractions[1], anyway=anyway)
        for before, after in pairs
    ]
    print_run_comparisons(found, format, strict=strict)
    if output is not None:
        files.write_json(output, found[0].to_json())
        note(f"wrote {output}")
    failing = (SLOWER, INCONCLUSIVE) if strict else (SLOWER,)
    return int(any(one.count(verdict) for one in found for verdict in failing))


def _check_guidelines(
    sources: list[Path],
    mpis: list[str],
    baseline: str | None,
    fractions: tuple[float, float],
    strict: bool,
    output: Path | None,
    format: str,
) -> int:
    if len(sources) > 1 or len(mpis) > 1 or baseline is not None:
        raise InputError(
            "--guidelines compares the operations of one RUN and one MPI with each other; give one run, "
            "--mpi once at most, and no --baseline"
        )
    from earlybird.compare.guidelines import check_guidelines
    from earlybird.compare.sides import side_of
    from earlybird.present.subjects.guidelines.terminal import print_guidelines

    side = side_of(Run.open(sources[0]), *mpis)
    found = check_guidelines(side, level=fractions[0], min_effect=fractions[1])
    print_guidelines(found, format, strict=strict)
    if output is not None:
        files.write_json(output, found.to_json())
        note(f"wrote {output}")
    return int(bool(found.count(VIOLATED) or (strict and found.count(UNDECIDED))))


def _pairs_with(name: str, folder: Path, sources: list[Path], mpis: list[str]):
    """The baseline and each run; of a run of several MPIs, the baseline's."""
    from earlybird.compare.sides import side_of, side_of_baseline

    if len(mpis) > 1:
        raise InputError(f"--mpi is given {len(mpis)} times with --baseline; give it once at most")
    before = side_of_baseline(load_baseline(find_baseline(name, folder)))
    runs = [Run.open(source) for source in sources]
    mpi = mpis[0] if mpis else None
    return [(before, side_of(run, mpi, preferred=before.mpi)) for run in runs]


def _pairs(sources: list[Path], mpis: list[str]):
    """(before, after) of each comparison."""
    from earlybird.compare.sides import mpis_of, side_of

    runs = [Run.open(source) for source in sources]
    if len(runs) == 1:
        mpis = mpis or mpis_of(runs[0])
        if len(mpis) < 2:
            raise InputError(
                f"{sources[0]} alone has nothing to be compared with; give a second run, or one of several "
                "MPIs or settings, from `earlybird measure --mpi A --mpi B`"
            )
        sides = [side_of(runs[0], mpi, f"{sources[0]}, {mpi}") for mpi in mpis]
    else:
        if len(mpis) > 1:
            raise InputError(
                f"{counted(len(runs), 'run')} and {len(mpis)} times --mpi are given; give --mpi once for "
                "several runs, or one run and --mpi twice"
            )
        sides = [side_of(run, mpis[0] if mpis else None) for run in runs]
    return [(sides[0], other) for other in sides[1:]]


command = make_command(compare, name="compare", example="earlybird compare before/ after/ --min-effect 3%")
