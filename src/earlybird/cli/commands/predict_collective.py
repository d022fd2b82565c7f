"""`earlybird predict collective`: the time of every algorithm of a collective operation."""

from typing import Annotated

import typer

from earlybird.cli.options.command import FORMAT
from earlybird.cli.options.shared import CollectiveOptions, check_size, load_profiles
from earlybird.cli.options.values import SIZE, Parsed
from earlybird.data.errors import InputError
from earlybird.data.method_predictions import COLLECTIVE_SCHEMA, collective_prediction_from_json
from earlybird.data.units import parse_bytes
from earlybird.predict.collective import forms_of, place_ranks, predict_collective
from earlybird.present.render.data import Format
from earlybird.present.subjects.collectives.terminal import print_collective_prediction


def read_method(text: str, option: str) -> str:
    """Return `pipeline:8KiB` as it appears in samples, `pipeline:8192`."""
    name, colon, segment = text.partition(":")
    return f"{name}:{parse_bytes(segment, option)}" if colon else name


def collective(
    call: CollectiveOptions,
    size: Annotated[
        int | None,
        typer.Option(
            help="Size of the buffer; for (all)gather, scatter, alltoall the block per pair of ranks."
        ),
        SIZE,
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(help="Only this algorithm, such as linear or pipeline:8192."),
        Parsed(read_method),
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
    if size is not None:
        check_size(size, [call.op])
    forms = forms_of(joined, call.op)
    if size is None and call.op != "barrier":
        raise InputError(f"{call.op} needs a size; add --size, such as --size 64KiB")
    placed, notes = place_ranks(forms, call.ranks, call.layout, call.map_by, call.root)
    predicted = predict_collective(forms, placed, size or 0, algorithm)
    value = {
        "schema": COLLECTIVE_SCHEMA,
        "operation": call.op,
        "ranks": placed.ranks,
        "size_bytes": size or 0,
        "root": call.root,
        "layout": placed.layout.text,
        "map_by": placed.map_by,
        "mpi": forms[0].mpi,
        "algorithms": [prediction.to_json(forms) for prediction in predicted.predictions],
        "references": [vars(reference) for reference in predicted.references],
        "profile_id": joined.id,
        "notes": [*notes, *predicted.notes],
    }
    prediction = collective_prediction_from_json(value)
    print_collective_prediction(prediction, format, with_published=reference)
