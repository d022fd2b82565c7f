"""Prints advice on any operation: warnings first, then JSON, CSV or tables of alternatives and sizes."""

from collections.abc import Callable
from typing import Any

from earlybird.cli.output.notes import note
from earlybird.cli.output.printing import (
    Column,
    interval_text,
    print_data,
    print_table,
    ratio_text,
    table,
)
from earlybird.data import labels
from earlybird.data.advice import Advice, Alternative, SizeRange
from earlybird.data.results import Estimate
from earlybird.data.units import format_bytes, format_seconds

# The keys of an operation's own values, and their column heads.
_EXTRA = {
    "pipeline": {"partitions": "partitions", "messages": "messages", "message_bytes": "largest"},
    "collective": {"form": "form"},
}
# CSV columns of every alternative, after those of the operation.
_VALUES = ("time_s", "speed_up", "basis", "measured_speed_up", "measured_state", "predicted_speed_up",
           "action")  # fmt: skip


def print_advice(advice: Advice, format: str) -> None:
    for reservation in advice.notes:
        note(f"warning: {reservation}")
    extra = _EXTRA["collective" if advice.operation == "collective" else "pipeline"]
    records = [one.to_json() for one in advice.ranked]
    if print_data(format, advice.to_json(), records, ("method", *extra, *_VALUES)):
        return
    own = [Column(head, _extra_cell(key)) for key, head in extra.items()]
    ranked = [*enumerate(advice.ranked, start=1)]
    header, rows = table([_METHOD, *own, *_columns(advice.baseline)], advice.ranked)
    print_table(["", *header], [[rank, *row] for (rank, _), row in zip(ranked, rows, strict=True)])
    print()
    for rank, one in ranked:
        print(f"{rank}. {one.action}")
    print()
    print_table(*table([*_RANGE, *own, Column("", _outside)], advice.size_ranges))


def _columns(baseline: str) -> list[Column]:
    """Time and speed-up of an alternative; the reference has no speed-up."""

    def of_compared(text: Callable[[Alternative], str]) -> Callable[[Alternative], str]:
        return lambda one: "" if one.method == baseline or one.speed_up is None else text(one)

    def measured(one: Alternative) -> str:
        if one.method == baseline or one.speed_up is None:
            return format_seconds(one.measured_time_s.value) if one.measured_time_s else ""
        return _spread(one.measured_speed_up)

    return [
        Column("time", lambda one: format_seconds(one.time_s.value)),
        Column(
            f"speed-up over {baseline}" if baseline else "speed-up",
            of_compared(lambda one: ratio_text(one.speed_up.value)),
        ),
        Column("95 %", of_compared(lambda one: interval_text(one.speed_up, ratio_text))),
        Column("measured", measured),
        Column("model", of_compared(lambda one: _ratio(one.predicted_speed_up))),
        Column("basis", lambda one: one.basis),
    ]


def _ratio(estimate: Estimate | None) -> str:
    return "" if estimate is None else ratio_text(estimate.value)


def _spread(estimate: Estimate | None) -> str:
    interval = interval_text(estimate, ratio_text)
    return _ratio(estimate) + (f" ({interval})" if interval else "")


def _outside(one: SizeRange) -> str:
    outside = one.extra.get("extrapolated")
    return f"extrapolated: {', '.join(outside)}" if outside else ""


def _extra_cell(key: str) -> Callable[[Alternative | SizeRange], Any]:
    def cell(one: Alternative | SizeRange) -> Any:
        value = one.extra.get(key)
        if value is None:
            return ""
        return format_bytes(value) if key.endswith("_bytes") else value

    return cell


def _name(one: Alternative | SizeRange) -> str:
    """Display name of a method such as `pipeline:8192`, with the contexts that it requests."""
    name, colon, bound = one.method.partition(":")
    is_segmented = colon and "algorithm" in one.extra
    text = f"{name}, segments of {format_bytes(int(bound))}" if is_segmented else one.method
    return text + (f", {labels.counted(one.extra['vcis'], 'context')}" if "vcis" in one.extra else "")


_METHOD = Column("method", _name)
_RANGE = (
    Column("from", lambda one: format_bytes(one.from_bytes)),
    Column("to", lambda one: format_bytes(one.to_bytes)),
    Column("best", _name),
)
