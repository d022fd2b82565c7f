"""`earlybird show`: prints any file or run folder of earlybird again."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.options.shared import StatisticOption
from earlybird.cli.options.values import OneOf
from earlybird.data import files, kernels
from earlybird.data.errors import InputError
from earlybird.data.layout import LAYOUT_HEADER, Layout, parse_layout
from earlybird.data.pattern import HEADER, MATRIX_MARKET_SUFFIXES, Pattern, load_fitting_pattern, load_pattern
from earlybird.data.recording import SUMMARY, load_recording
from earlybird.data.run import SCHEMA as RUN_SCHEMA
from earlybird.data.run import Run
from earlybird.data.run_continuation import resume_command
from earlybird.data.statistics import MEDIAN, SHOWN, Statistic
from earlybird.present.registry import KINDS, kind_of, nouns
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_rows

ALLOWED = (
    f"give a run folder, a recording, a {nouns(list(KINDS.values()))} (.json), a pattern (.csv, .npz, .mtx) "
    "or a layout (.csv)"
)


def show(
    source: Annotated[
        Path, typer.Argument(metavar="FILE|RUN/", help="Any file or run folder that earlybird wrote.")
    ],
    layout: Annotated[
        str | None,
        typer.Option(help="Of a pattern: the layout for which to print how much stays on sockets and nodes."),
    ] = None,
    statistic: StatisticOption = MEDIAN,
    format: Annotated[
        str,
        typer.Option(help="How to print it on stdout; junit for checks, comparisons and guidelines."),
        OneOf("table", "csv", "json", "junit"),
    ] = "table",
) -> None:
    """Print a result file or run folder as a table, CSV or JSON.

    Of a pattern with --layout, the messages and bytes of each level, what ranks receive, and what each node
    does, as in Tables III and IV and figure 8 of Thune et al. 2023.
    """
    source = Path(files.shipped(source))
    if not source.exists():
        raise InputError(f"{source} does not exist; {ALLOWED}{files.or_shipped(source)}")
    if format == "junit" and not _has_testcases(source):
        raise InputError(
            f"{source} has no testcases for --format junit, which checks, comparisons of runs and guidelines "
            "have; give table, csv or json"
        )
    if statistic != MEDIAN:
        _require_samples(source, statistic)
    if layout is not None:
        _show_traffic(source, layout, format)
        return
    if source.name == SUMMARY:
        source = source.parent
    if (source / SUMMARY).exists():
        _show_recording(source, format)
    elif source.is_dir():
        _show_run(Run.open(source), format, SHOWN[statistic])
    elif (suffix := files.suffix_of(source)) in (".npz", *MATRIX_MARKET_SUFFIXES):
        _show_pattern(load_pattern(source), source, format)
    elif suffix == ".json":
        _show_json(source, format, statistic)
    else:
        _show_table(source, format)


def _require_samples(source: Path, statistic: str) -> None:
    """Raise InputError unless the times that are shown of `source` come from samples: those of other files
    are stored."""
    run = source if source.is_dir() else source.parent
    is_run = (source.is_dir() or source.name == _RUN) and (run / _RUN).exists()
    if not is_run:
        raise InputError(
            f"--statistic {statistic} is for run folders, but {source} is none; omit it, or give the folder "
            "of a run"
        )
    if stored := next((name for name in _OF_RUNS if (run / name).exists()), None):
        raise InputError(
            f"--statistic {statistic} is for times of samples, but {run} is shown by its {stored}, whose "
            "values are medians; omit it"
        )


def _has_testcases(source: Path) -> bool:
    """Return whether the JSON file that is shown of `source` has testcases."""
    if source.is_dir():
        source = next((path for name in _OF_RUNS if (path := source / name).exists()), source)
    if source.is_dir() or files.suffix_of(source) != ".json":
        return False
    kind = kind_of(files.read_json(source, "file").get("schema"))
    return kind is not None and kind.has_testcases


def _show_table(source: Path, format: str) -> None:
    first = next(iter(files.read_text(source, "file").splitlines()), "")
    header = first.replace(" ", "")
    if header == HEADER:
        _show_pattern(load_pattern(source), source, format)
    elif header == LAYOUT_HEADER and files.suffix_of(source) == ".csv":
        _show_layout(parse_layout(str(source)), format)
    else:
        is_csv = files.suffix_of(source) == ".csv"
        begins = (
            f": line 1 is {first[:60]!r}; a pattern begins with the header {HEADER!r}, a layout with "
            f"{LAYOUT_HEADER!r}"
        )
        raise InputError(f"{source} is no file that earlybird wrote{begins if is_csv else ''}; {ALLOWED}")


def _show_json(source: Path, format: str, statistic: str = MEDIAN) -> None:
    value = files.read_json(source, "file")
    schema = value.get("schema")
    if schema == RUN_SCHEMA:
        _show_run(Run.open(source.parent), format, SHOWN[statistic])
    elif kind := kind_of(schema):
        kind.show(kind.read(value, source), format)
    elif not schema:
        raise InputError(f"{source} has no schema; {ALLOWED}")
    else:
        raise InputError(f"{source} has the schema {schema!r}, which this version does not print; {ALLOWED}")


def _show_recording(source: Path, format: str) -> None:
    from earlybird.present.subjects.recording.terminal import print_recording

    print_recording(load_recording(source), Format(format))


# The files in a run folder that say what its samples mean.
_RUN = "run.json"
_OF_RUNS = ("comparison.json", "check.json")


def _show_run(run: Run, format: str, statistic: Statistic) -> None:
    from earlybird.present.subjects.exchange.terminal import print_measured
    from earlybird.present.subjects.measured.terminal import print_run

    samples = run.samples()
    if not samples:
        raise InputError(f"{run.path} has no samples yet; continue it with `{resume_command(run)}`")
    whole = next((path for name in _OF_RUNS if (path := run.path / name).exists()), None)
    if whole is not None:
        _show_json(whole, format)
    elif all(sample.kernel == kernels.CHECK.name for sample in samples):
        raise InputError(f"the check in {run.path} did not complete; run `earlybird check` with another -o")
    elif suites := [sample for sample in samples if sample.kernel != kernels.EXCHANGE.name]:
        print_run(run, suites, format, statistic)
    else:
        print_measured(run, format, statistic)


def _show_pattern(pattern: Pattern, source: Path, format: str) -> None:
    from earlybird.patterns.summary import summary_lines, summary_of

    header, rows = HEADER.split(","), pattern.triples().tolist()
    messages = [dict(zip(header, row, strict=True)) for row in rows]
    summary = {"file": str(source)} | summary_of(pattern, pattern.num_ranks_named)
    if not print_data(format, summary | {"exchange": messages}, messages, header):
        for line in (*summary_lines(summary), ""):
            print_line(line)
        print_rows(header, rows)


def _show_traffic(source: Path, layout: str, format: str) -> None:
    from earlybird.present.subjects.exchange.terminal import print_traffic

    if source.is_dir() or files.suffix_of(source) == ".json":
        raise InputError(f"--layout is for a pattern, but {source} is none; omit it")
    where = parse_layout(layout)
    print_traffic(load_fitting_pattern(source), where, format)


def _show_layout(layout: Layout, format: str) -> None:
    header = LAYOUT_HEADER.split(",")
    places = zip(layout.node.tolist(), layout.socket.tolist(), strict=True)
    rows = [(rank, *place) for rank, place in enumerate(places)]
    ranks = [dict(zip(header, row, strict=True)) for row in rows]
    if not print_data(format, {"nodes": layout.num_nodes, "layout": ranks}, ranks, header):
        print_rows(header, rows)
        note(f"{layout.num_ranks} ranks on {layout.num_nodes} nodes")


command = make_command(show, name="show", example="earlybird show profile.json --format csv")
