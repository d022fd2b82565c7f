"""`earlybird predict collective`: the time of every algorithm of a collective operation."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from earlybird.cli.common import FORMAT, JSON, Format, note, print_csv, print_json, print_table
from earlybird.cli.options import ProfilesOption
from earlybird.cli.predict_pipeline import load_profiles
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.units import format_bytes, format_seconds, parse_bytes
from earlybird.predict.collective import (
    AlgorithmPrediction,
    Reference,
    forms_of,
    place_ranks,
    predict_collective,
)

SCHEMA = "earlybird.collective-prediction/1"
_COLUMNS = ("method", "algorithm", "segment_bytes", "time_s", "time_low_s", "time_high_s", "form", "tree",
            "extrapolated")  # fmt: skip

OperationOption = Annotated[str, typer.Option("--op", help="The operation, such as bcast or reduce.")]
RanksOption = Annotated[
    int | None, typer.Option("--ranks", help="Number of ranks.  [default: all of --layout]")
]
PlacesOption = Annotated[
    str | None,
    typer.Option(
        "--layout", help="NODESxSOCKETSxRANKS or a CSV.  [default: the nodes measured, extended if needed]"
    ),
]
MapOption = Annotated[
    str | None,
    typer.Option("--map-by", help="How ranks fill the layout: core, socket or node.  [default: as measured]"),
]
RootOption = Annotated[int, typer.Option("--root", help="The root rank.")]


def collective(
    op: OperationOption,
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            help="Size of the buffer; for (all)gather, scatter, alltoall the block per pair of ranks.",
        ),
    ] = None,
    ranks: RanksOption = None,
    profile: ProfilesOption = [],  # noqa: B006
    map_by: MapOption = None,
    layout: PlacesOption = None,
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", help="Only this algorithm, such as linear or pipeline:8192.")
    ] = None,
    root: RootOption = 0,
    reference: Annotated[
        bool, typer.Option("--reference", help="Also print the published regressions of Insaghi (paper).")
    ] = False,
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Predict the time of every algorithm of a collective operation, until the last rank is done.

    Uses the forms of docs/models.md, fitted to `measure collective`: the hops of an algorithm's tree are
    counted for the placement of its ranks. Without --layout, ranks are placed on the machine measured, with
    further nodes of the same kind if they are needed.
    """
    joined = load_profiles(profile)
    size_bytes = 0 if size is None else parse_bytes(size, "--size")
    if size is not None:
        require_size(op, size_bytes)
    forms = forms_of(joined, op)
    if size is None and op != "barrier":
        raise InputError(f"{op} needs a size; add --size, such as --size 64KiB")
    placed, notes = place_ranks(forms, ranks, layout, map_by, root)
    answer = predict_collective(
        forms, placed, size_bytes, None if algorithm is None else read_method(algorithm)
    )
    notes = [*notes, *answer.notes]
    value = {
        "schema": SCHEMA,
        "operation": op,
        "ranks": placed.ranks,
        "size_bytes": size_bytes,
        "root": root,
        "layout": placed.layout.text,
        "map_by": placed.map_by,
        "mpi": forms[0].mpi,
        "algorithms": [_to_json(one, _left_out_error(forms, one)) for one in answer.predictions],
        "references": [vars(one) for one in answer.references],
        "profile_id": joined.id,
        "notes": notes,
    }
    print_algorithms(value, Format.json if json else format, reference)


def print_algorithms(value: Mapping[str, Any], format: Format, reference: bool = False) -> None:
    """Print a prediction of collectives from its JSON object; `reference` adds published regressions."""
    for reservation in value.get("notes", ()):
        note(f"warning: {reservation}")
    if format is Format.json:
        print_json(value)
    elif format is Format.csv:
        print_csv(_COLUMNS, [_csv_row(one) for one in value["algorithms"]])
    else:
        shown = sorted(value["algorithms"], key=lambda one: one["time_s"])
        print_table(
            ["algorithm", "segments", "time", "95 %", "form", "held-out ranks", "extrapolated"],
            [_cells(one) for one in shown]
            + [_reference_cells(Reference(**one)) for one in value["references"] if reference],
        )
        note(
            f"{value['operation']} of {format_bytes(value['size_bytes'])} among {value['ranks']} ranks on "
            f"{value['layout']}, until the last rank is done"
        )


def require_size(operation: str, size_bytes: int) -> None:
    """Raise InputError if a barrier has a size, or another operation has none."""
    if (operation == "barrier") != (size_bytes == 0):
        allowed = (
            "0, because a barrier has no data" if operation == "barrier" else "bytes, such as --size 64KiB"
        )
        raise InputError(f"--size is {size_bytes} bytes for {operation}; give {allowed}")


def read_method(text: str) -> str:
    """`pipeline:8KiB` as it appears in samples, `pipeline:8192`."""
    name, colon, segment = text.partition(":")
    return f"{name}:{parse_bytes(segment, '--algorithm')}" if colon else name


def _to_json(one: AlgorithmPrediction, held_out_error: float | None) -> dict[str, Any]:
    value = vars(one) | {"held_out_error": held_out_error}
    value = {name: item for name, item in value.items() if item is not None}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}


def _csv_row(one: Mapping[str, Any]) -> list[Any]:
    low, high = one.get("time_interval_s") or (None, None)
    row = {**one, "time_low_s": low, "time_high_s": high, "extrapolated": " ".join(one["extrapolated"])}
    return [row.get(name) for name in _COLUMNS]


def _left_out_error(forms: Sequence[CollectiveForm], one: AlgorithmPrediction) -> float | None:
    """Error of the form at rank counts left out of the fit, as `fit` prints it; None for an interpolated
    time."""
    if one.form == "interpolated":
        return None
    return next(form.extra.get("held_out_error") for form in forms if form.algorithm == one.algorithm)


def _cells(one: Mapping[str, Any]) -> list[str]:
    interval, error = one.get("time_interval_s"), one.get("held_out_error")
    return [
        one["algorithm"],
        format_bytes(one["segment_bytes"]) if one.get("segment_bytes") else "",
        format_seconds(one["time_s"]),
        " .. ".join(map(format_seconds, interval)) if interval else "",
        f"{one['form']}, {one['tree']}" if "tree" in one else one["form"],
        "" if error is None else f"{100 * error:.1f} %",
        ", ".join(one["extrapolated"]),
    ]


def _reference_cells(one: Reference) -> list[str]:
    return [
        one.algorithm,
        "",
        format_seconds(one.time_s),
        "",
        f"Insaghi (paper), {one.form}, table {one.table}",
        "",
        "two nodes of 128 cores",
    ]
