"""Prints predictions of pipelines: the time of every method, and the ideal speed-up of early sending."""

from collections.abc import Callable, Mapping
from typing import Any

from earlybird.data import labels
from earlybird.data.method_predictions import PipelinePrediction
from earlybird.data.units import format_bytes, format_delay_rate, format_seconds
from earlybird.present.core.notation import range_text, ratio_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_table

_CSV = ("method", "vcis", "time_s", "time_low_s", "time_high_s", "speed_up", "speed_up_low", "speed_up_high",
        "messages", "message_bytes", "source")  # fmt: skip


def _value(head: str, key: str, text: Callable[[float], str]) -> Column:
    return Column(head, lambda row: text(row[key]) if row.get(key) is not None else "", optional=True)


def _interval(key: str, text: Callable[[float], str]) -> Column:
    return Column("95 %", lambda row: range_text(row.get(key), text), optional=True)


_METHODS = (
    Column("method", lambda row: row["method"], left=True), _value("contexts", "vcis", str),
    _value("time", "time_s", format_seconds), _interval("time_interval_s", format_seconds),
    _value("speed-up over single", "speed_up", ratio_text), _interval("speed_up_interval", ratio_text),
    _value("messages", "messages", str), _value("largest", "message_bytes", format_bytes),
    Column("source", lambda row: row["source"], left=True),
)  # fmt: skip
_IDEAL = (
    _value("delay rate", "gamma_s_per_byte", format_delay_rate),
    _value("ideal speed-up", "eta", "{:.4f}".format),
    _value("at most", "eta_max", "{:.0f}".format),
    _value("small messages", "eta_small", "{:.4g}".format),
    _value("single message", "bulk_s", format_seconds),
    _value("early sending", "pipelined_s", format_seconds),
)


def print_pipeline_prediction(prediction: PipelinePrediction, format: str) -> None:
    """Print the time of every method; notes on stderr."""
    value = prediction.to_json()
    for reservation in prediction.notes:
        note(f"warning: {reservation}")
    methods = value["methods"]
    if not print_data(format, value, map(_with_ends, methods), _CSV):
        print_table(Table("", _METHODS, methods))
        note(
            f"{labels.level(prediction.level)}: {format_bytes(prediction.size_bytes)} in "
            f"{prediction.partitions} partitions, {labels.counted(prediction.threads, 'thread')}, the last "
            f"partition {format_seconds(prediction.delay_s)} late"
        )


def _with_ends(method: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method with the ends of its intervals, for CSV."""
    low_s, high_s = method.get("time_interval_s", (None, None))
    low, high = method.get("speed_up_interval", (None, None))
    ends = {"time_low_s": low_s, "time_high_s": high_s, "speed_up_low": low, "speed_up_high": high}
    return {**method, **ends}


def print_ideal(value: Mapping[str, float], format: str) -> None:
    """Print the ideal speed-up over a single message, and the times if the size is known."""
    if not print_data(format, value, [value]):
        print_table(Table("", _IDEAL, [value]))
        note(
            "ideal speed-up: time of a single message / time with early sending, for large messages, without "
            "latency and cost per message (equation 4 of Gillis et al. 2023); at most: however late the last "
            "partition is; small messages: where only latency counts (equation 5)"
        )
