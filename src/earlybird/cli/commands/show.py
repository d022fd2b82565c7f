"""`earlybird show`: prints any file or run folder of earlybird again."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT, make_command
from earlybird.cli.output.notes import note
from earlybird.cli.output.printing import Format, print_data, print_json, print_table
from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.layout import LAYOUT_HEADER, Layout, parse_layout
from earlybird.data.pattern import HEADER, MATRIX_MARKET_SUFFIXES, Pattern, load_pattern
from earlybird.data.run import SCHEMA as RUN
from earlybird.data.run import Run

ALLOWED = (
    "give a run folder, a profile, prediction, comparison or advice (.json), a pattern (.csv, .npz, .mtx) "
    "or a layout (.csv)"
)


def show(
    source: Annotated[
        Path, typer.Argument(metavar="FILE|RUN/", help="Any file or run folder that earlybird wrote.")
    ],
    format: Format = FORMAT,
) -> None:
    """Print a run, profile, prediction, comparison, advice, pattern or layout as the command that made it."""
    if not source.exists():
        raise InputError(f"{source} does not exist; {ALLOWED}")
    if source.is_dir():
        _show_run(Run.open(source), format)
    elif source.suffix in (".npz", *MATRIX_MARKET_SUFFIXES):
        _show_pattern(load_pattern(source), source, format)
    elif source.suffix == ".json":
        _show_json(source, format)
    else:
        _show_table(source, format)


def _show_table(source: Path, format: Format) -> None:
    header = next(iter(files.read_text(source, "file").splitlines()), "").replace(" ", "")
    if header == HEADER:
        _show_pattern(load_pattern(source), source, format)
    elif header == LAYOUT_HEADER and source.suffix == ".csv":
        _show_layout(parse_layout(str(source)), format)
    else:
        raise InputError(f"{source} is no file that earlybird wrote; {ALLOWED}")


def _show_json(source: Path, format: Format) -> None:
    value = files.read_json(source, "file")
    schema = value.get("schema")
    if schema == RUN:
        _show_run(Run.open(source.parent), format)
    elif schema in _PRINTERS:
        _PRINTERS[schema](value, f"the file {source}", format)
    else:
        has = f"has the schema {schema!r}, which this version does not print" if schema else "has no schema"
        raise InputError(f"{source} {has}; {ALLOWED}")


def _show_run(run: Run, format: Format) -> None:
    from earlybird.cli.output.exchange import print_measured
    from earlybird.cli.output.measured import print_run

    samples = run.samples()
    if not samples:
        raise InputError(f"{run.path} has no samples yet; continue it with --resume -o {run.path}")
    comparison = run.path / "comparison.json"
    if comparison.exists():
        _show_json(comparison, format)
    elif samples[0].kernel == "exchange":
        print_measured(run, format)
    else:
        print_run(run, samples, format)


# The modules are imported in the functions: all together, and what they import, take a second.
def _show_profile(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.output.profile import print_profile
    from earlybird.data.profile import profile_from_json

    profile = profile_from_json(value, where)
    if format is Format.json:
        print_json(profile.to_json())
    else:
        print_profile(profile, format)


def _show_prediction(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.output.exchange import print_prediction
    from earlybird.data.prediction import prediction_from_json

    print_prediction(prediction_from_json(value, where), format)


def _show_methods(value: dict[str, Any], where: str, format: Format) -> None:
    """A prediction of pipelines or of collectives."""
    from earlybird.cli.commands import predict_collective, predict_pipeline

    is_pipeline = value["schema"] == predict_pipeline.SCHEMA
    try:
        (predict_pipeline.print_methods if is_pipeline else predict_collective.print_algorithms)(
            value, format
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where} is incomplete ({error!r}); make it again with `earlybird predict --json`"
        ) from error


def _show_comparison(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.output.exchange import print_comparison
    from earlybird.data.comparison import comparison_from_json

    comparison = comparison_from_json(value, where)
    for difference in comparison.extra.get("notes", ()):
        note(f"warning: {difference}")
    print_comparison(comparison, format)


def _show_advice(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.output.advice import print_advice
    from earlybird.data.advice import advice_from_json

    print_advice(advice_from_json(value, where), format)


_PRINTERS: dict[Any, Callable[[dict[str, Any], str, Format], None]] = {
    "earlybird.profile/1": _show_profile,
    "earlybird.prediction/1": _show_prediction,
    "earlybird.pipeline-prediction/1": _show_methods,
    "earlybird.collective-prediction/1": _show_methods,
    "earlybird.comparison/1": _show_comparison,
    "earlybird.advice/1": _show_advice,
}


def _show_pattern(pattern: Pattern, source: Path, format: Format) -> None:
    from earlybird.cli.commands.pattern import print_summary, summary_of

    header, rows = HEADER.split(","), pattern.triples().tolist()
    messages = [dict(zip(header, row, strict=True)) for row in rows]
    summary = {"file": str(source)} | summary_of(pattern, pattern.num_ranks_named)
    if not print_data(format, summary | {"exchange": messages}, messages, header):
        print_summary(summary)
        print()
        print_table(header, rows)


def _show_layout(layout: Layout, format: Format) -> None:
    header = LAYOUT_HEADER.split(",")
    places = zip(layout.node.tolist(), layout.socket.tolist(), strict=True)
    rows = [(rank, *place) for rank, place in enumerate(places)]
    ranks = [dict(zip(header, row, strict=True)) for row in rows]
    if not print_data(format, {"nodes": layout.num_nodes, "layout": ranks}, ranks, header):
        print_table(header, rows)
        note(f"{layout.num_ranks} ranks on {layout.num_nodes} nodes")


command = make_command(show, name="show", example="earlybird show profile.json --format csv")
