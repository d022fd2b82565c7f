"""Prints a prediction of the methods of a pipeline."""

from collections.abc import Mapping
from typing import Any

from earlybird.data import labels
from earlybird.data.method_predictions import PipelinePrediction
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import range_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_table

_CSV = ("method", "vcis", "time_s", "time_low_s", "time_high_s", "speed_up", "speed_up_low", "speed_up_high",
        "messages", "message_bytes", "source")  # fmt: skip
_COLUMNS = (
    Column("method", lambda one: one["method"] + (f", {one['vcis']} contexts" if "vcis" in one else "")),
    Column("time", lambda one: format_seconds(one["time_s"])),
    Column("95 %", lambda one: range_text(one.get("time_interval_s"), format_seconds)),
    Column("speed-up over single", lambda one: f"{one['speed_up']:.2f}" if one.get("speed_up") else ""),
    Column("95 %", lambda one: range_text(one.get("speed_up_interval"), "{:.2f}".format)),
    Column("messages", lambda one: one["messages"]),
    Column("largest", lambda one: format_bytes(one["message_bytes"])),
    Column("source", lambda one: one["source"]),
)


def print_pipeline_prediction(prediction: PipelinePrediction, format: str) -> None:
    """Print the time of every method; notes on stderr."""
    value = prediction.to_json()
    for reservation in prediction.notes:
        note(f"warning: {reservation}")
    methods = value["methods"]
    if not print_data(format, value, [_flat(method) for method in methods], _CSV):
        print_table(Table("", _COLUMNS, methods))
        note(
            f"{labels.level(prediction.level)}: {format_bytes(prediction.size_bytes)} in "
            f"{prediction.partitions} partitions, {labels.counted(prediction.threads, 'thread')}, the last "
            f"partition {format_seconds(prediction.delay_s)} late"
        )


def _flat(method: Mapping[str, Any]) -> dict[str, Any]:
    times = method.get("time_interval_s", (None, None))
    speed_ups = method.get("speed_up_interval", (None, None))
    return {
        **method,
        **dict(zip(("time_low_s", "time_high_s"), times, strict=True)),
        **dict(zip(("speed_up_low", "speed_up_high"), speed_ups, strict=True)),
    }
