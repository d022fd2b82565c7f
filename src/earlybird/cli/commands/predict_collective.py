"""`earlybird predict collective`: the time of every algorithm of a collective operation."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT
from earlybird.cli.options.shared import CollectiveOptions, call_bytes, load_profiles
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.method_predictions import COLLECTIVE_SCHEMA
from earlybird.data.units import format_bytes, format_seconds, parse_bytes
from earlybird.predict.collective import AlgorithmPrediction, forms_of, place_ranks, predict_collective
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import (
    Column,
    Format,
    percent_text,
    print_data,
    print_table,
    range_text,
    table,
)

_CSV = ("method", "algorithm", "segment_bytes", "time_s", "time_low_s", "time_high_s", "form", "tree",
        "extrapolated")  # fmt: skip
_COLUMNS = (
    Column("algorithm", lambda one: one["algorithm"]),
    Column("segments", lambda one: format_bytes(one["segment_bytes"]) if one.get("segment_bytes") else ""),
    Column("time", lambda one: format_seconds(one["time_s"])),
    Column("95 %", lambda one: range_text(one.get("time_interval_s"), format_seconds)),
    Column("form", lambda one: f"{one['form']}, {one['tree']}" if "tree" in one else one["form"]),
    Column("held-out ranks", lambda one: percent_text(one.get("held_out_error"))),
    Column("extrapolated", lambda one: ", ".join(one["extrapolated"])),
)


def collective(
    call: CollectiveOptions,
    size: Annotated[
        str | None,
        typer.Option(
            help="Size of the buffer; for (all)gather, scatter, alltoall the block per pair of ranks."
        ),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="Only this algorithm, such as linear or pipeline:8192.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Also print the published regressions of Insaghi (paper).")
    ] = False,
    format: Format = FORMAT,
) -> None:
    """Predict the time of every algorithm of a collective.

    Times run from the start of the call until the last rank is done. Uses the forms of
    docs/collective-models.md, fitted to `measure collective`: the hops of an algorithm's tree are counted for
    the placement of its ranks. Without --layout, ranks are placed on the machine measured, with further nodes
    of the same kind if needed.
    """
    joined = load_profiles(call.profile)
    size_bytes = 0 if size is None else call_bytes(size, [call.op])
    forms = forms_of(joined, call.op)
    if size is None and call.op != "barrier":
        raise InputError(f"{call.op} needs a size; add --size, such as --size 64KiB")
    placed, notes = place_ranks(forms, call.ranks, call.layout, call.map_by, call.root)
    answer = predict_collective(
        forms, placed, size_bytes, None if algorithm is None else read_method(algorithm)
    )
    value = {
        "schema": COLLECTIVE_SCHEMA,
        "operation": call.op,
        "ranks": placed.ranks,
        "size_bytes": size_bytes,
        "root": call.root,
        "layout": placed.layout.text,
        "map_by": placed.map_by,
        "mpi": forms[0].mpi,
        "algorithms": [_to_json(one, _left_out_error(forms, one)) for one in answer.predictions],
        "references": [vars(one) for one in answer.references],
        "profile_id": joined.id,
        "notes": [*notes, *answer.notes],
    }
    print_algorithms(value, format, reference)


def print_algorithms(value: Mapping[str, Any], format: str, reference: bool = False) -> None:
    """Print a prediction of collectives from its JSON object; `reference` adds published regressions."""
    for reservation in value.get("notes", ()):
        note(f"warning: {reservation}")
    if not print_data(format, value, [_flat(one) for one in value["algorithms"]], _CSV):
        shown = sorted(value["algorithms"], key=lambda one: one["time_s"])
        published = [_published(one) for one in value["references"] if reference]
        print_table(*table(_COLUMNS, [*shown, *published]))
        note(
            f"{value['operation']} of {format_bytes(value['size_bytes'])} among {value['ranks']} ranks on "
            f"{value['layout']}, until the last rank is done"
        )


def read_method(text: str) -> str:
    """`pipeline:8KiB` as it appears in samples, `pipeline:8192`."""
    name, colon, segment = text.partition(":")
    return f"{name}:{parse_bytes(segment, '--algorithm')}" if colon else name


def _to_json(one: AlgorithmPrediction, held_out_error: float | None) -> dict[str, Any]:
    value = vars(one) | {"held_out_error": held_out_error}
    value = {name: item for name, item in value.items() if item is not None}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}


def _flat(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = one.get("time_interval_s") or (None, None)
    return {**one, "time_low_s": low, "time_high_s": high}


def _left_out_error(forms: Sequence[CollectiveForm], one: AlgorithmPrediction) -> float | None:
    """Error of the form at rank counts left out of the fit, as `fit` prints it; None for an interpolated
    time."""
    if one.form == "interpolated":
        return None
    return next(form.extra.get("held_out_error") for form in forms if form.algorithm == one.algorithm)


def _published(one: Mapping[str, Any]) -> dict[str, Any]:
    """A published regression as an algorithm."""
    form = f"Insaghi (paper), {one['form']}, table {one['table']}"
    return {**one, "form": form, "extrapolated": ["two nodes of 128 cores"]}
