"""Prints a prediction of the algorithms of a collective."""

from collections.abc import Mapping
from typing import Any

from earlybird.data.method_predictions import CollectivePrediction
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import percent_text, range_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_table

_CSV = ("method", "algorithm", "segment_bytes", "time_s", "time_low_s", "time_high_s", "form", "tree",
        "extrapolated")  # fmt: skip
_COLUMNS = (
    Column("algorithm", lambda item: item["algorithm"]),
    Column("segments", lambda item: format_bytes(item["segment_bytes"]) if item.get("segment_bytes") else ""),
    Column("time", lambda item: format_seconds(item["time_s"])),
    Column("95 %", lambda item: range_text(item.get("time_interval_s"), format_seconds)),
    Column("form", lambda item: f"{item['form']}, {item['tree']}" if "tree" in item else item["form"]),
    Column("held-out ranks", lambda item: percent_text(item.get("held_out_error"))),
    Column("extrapolated", lambda item: ", ".join(item["extrapolated"])),
)


def print_collective_prediction(
    prediction: CollectivePrediction, format: str, *, with_published: bool = False
) -> None:
    """Print the time of every algorithm, and of published regressions; notes on stderr."""
    value = prediction.to_json()
    for reservation in prediction.notes:
        note(f"warning: {reservation}")
    if not print_data(format, value, [_flat(item) for item in value["algorithms"]], _CSV):
        shown = sorted(value["algorithms"], key=lambda item: item["time_s"])
        published = [_published(item) for item in value["references"] if with_published]
        print_table(Table("", _COLUMNS, [*shown, *published]))
        note(
            f"{prediction.operation} of {format_bytes(prediction.size_bytes)} among {prediction.ranks} ranks "
            f"on {prediction.layout}, until the last rank is done"
        )


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    low, high = item.get("time_interval_s") or (None, None)
    return {**item, "time_low_s": low, "time_high_s": high}


def _published(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a published regression as an algorithm."""
    form = f"Insaghi (paper), {item['form']}, table {item['table']}"
    return {**item, "form": form, "extrapolated": ["two nodes of 128 cores"]}
