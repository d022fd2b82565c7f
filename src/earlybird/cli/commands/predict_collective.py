"""`earlybird predict collective`: the time of every algorithm of a collective operation."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT
from earlybird.cli.options.shared import CollectiveOptions, call_bytes, load_profiles
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.method_predictions import COLLECTIVE_SCHEMA, collective_prediction_from_json
from earlybird.data.units import parse_bytes
from earlybird.predict.collective import AlgorithmPrediction, forms_of, place_ranks, predict_collective
from earlybird.present.render.data import Format
from earlybird.present.subjects.collectives.terminal import print_collective_prediction


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
    prediction = collective_prediction_from_json(value)
    print_collective_prediction(prediction, format, with_published=reference)


def read_method(text: str) -> str:
    """`pipeline:8KiB` as it appears in samples, `pipeline:8192`."""
    name, colon, segment = text.partition(":")
    return f"{name}:{parse_bytes(segment, '--algorithm')}" if colon else name


def _to_json(one: AlgorithmPrediction, held_out_error: float | None) -> dict[str, Any]:
    value = vars(one) | {"held_out_error": held_out_error}
    value = {name: item for name, item in value.items() if item is not None}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}


def _left_out_error(forms: Sequence[CollectiveForm], one: AlgorithmPrediction) -> float | None:
    """Error of the form at rank counts left out of the fit, as `fit` prints it; None for an interpolated
    time."""
    if one.form == "interpolated":
        return None
    return next(form.extra.get("held_out_error") for form in forms if form.algorithm == one.algorithm)
