"""`earlybird show`: prints any file or run folder of earlybird again."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.common import FORMAT, JSON, Format, make_command, note, print_csv, print_json, print_table
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
    json: bool = JSON,
) -> None:
    """Print a run, profile, prediction, comparison, advice, pattern or layout as the command that made it."""
    format = Format.json if json else format
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
    from earlybird.cli.measure_command import print_run
    from earlybird.cli.replay_command import print_measured

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


def _show_profile(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.fit_command import print_profile
    from earlybird.data.profile import profile_from_json

    profile = profile_from_json(value, where)
    if format is Format.json:
        print_json(profile.to_json())
    else:
        print_profile(profile, format)


def _show_prediction(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.predict_command import print_prediction
    from earlybird.data.prediction import prediction_from_json

    print_prediction(prediction_from_json(value, where), format)


def _show_pipelines(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.predict_pipeline import print_methods

    _print_or_refuse(print_methods, value, where, format)


def _show_collectives(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.predict_collective import print_algorithms

    _print_or_refuse(print_algorithms, value, where, format)


def _print_or_refuse(
    print_value: Callable[[Any, Format], None], value: dict[str, Any], where: str, format: Format
) -> None:
    try:
        print_value(value, format)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where} is incomplete ({error!r}); make it again with `earlybird predict --json`"
        ) from error


def _show_comparison(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli.replay_command import print_comparison
    from earlybird.data.comparison import comparison_from_json

    comparison = comparison_from_json(value, where)
    for difference in comparison.extra.get("notes", ()):
        note(f"warning: {difference}")
    print_comparison(comparison, format)


def _show_advice(value: dict[str, Any], where: str, format: Format) -> None:
    from earlybird.cli import advise_collective, advise_command
    from earlybird.cli.advice_output import show_advice
    from earlybird.data.advice import advice_from_json

    advice = advice_from_json(value, where)
    module = advise_collective if advice.operation == "collective" else advise_command
    show_advice(advice, format, module.COLUMNS)


_PRINTERS: dict[Any, Callable[[dict[str, Any], str, Format], None]] = {
    "earlybird.profile/1": _show_profile,
    "earlybird.prediction/1": _show_prediction,
    "earlybird.pipeline-prediction/1": _show_pipelines,
    "earlybird.collective-prediction/1": _show_collectives,
    "earlybird.comparison/1": _show_comparison,
    "earlybird.advice/1": _show_advice,
}


def _show_pattern(pattern: Pattern, source: Path, format: Format) -> None:
    from earlybird.cli.pattern_command import print_summary, summary_of

    header, rows = HEADER.split(","), pattern.triples().tolist()
    summary = {"file": str(source)} | summary_of(pattern, pattern.num_ranks_named)
    if format is Format.json:
        print_json(summary | {"exchange": [dict(zip(header, row, strict=True)) for row in rows]})
    elif format is Format.csv:
        print_csv(header, rows)
    else:
        print_summary(summary)
        print()
        print_table(header, rows)


def _show_layout(layout: Layout, format: Format) -> None:
    header = LAYOUT_HEADER.split(",")
    rows = [
        [rank, *place]
        for rank, place in enumerate(zip(layout.node.tolist(), layout.socket.tolist(), strict=True))
    ]
    if format is Format.json:
        print_json(
            {"nodes": layout.num_nodes, "layout": [dict(zip(header, row, strict=True)) for row in rows]}
        )
    elif format is Format.csv:
        print_csv(header, rows)
    else:
        print_table(header, rows)
        note(f"{layout.num_ranks} ranks on {layout.num_nodes} nodes")


command = make_command(show, name="show", example="earlybird show profile.json --format csv")
