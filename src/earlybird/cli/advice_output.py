"""Prints advice on any operation: warnings first, then JSON, CSV or tables of alternatives and sizes."""

from collections.abc import Mapping
from typing import Any

from earlybird.cli.common import Format, note, print_csv, print_json, print_table
from earlybird.cli.result_tables import interval_text, ratio_text
from earlybird.data import labels
from earlybird.data.advice import Advice, Alternative, SizeRange
from earlybird.data.results import Estimate
from earlybird.data.units import format_bytes, format_seconds

# CSV columns of every alternative, after those of the operation.
_VALUES = (
    "time_s",
    "speed_up",
    "basis",
    "measured_speed_up",
    "measured_state",
    "predicted_speed_up",
    "action",
)


def show_advice(advice: Advice, format: Format, extra: Mapping[str, str]) -> None:
    """Print advice. `extra` maps the keys of an operation's own values to their column heads."""
    for reservation in advice.notes:
        note(f"warning: {reservation}")
    if format is Format.json:
        print_json(advice.to_json())
    elif format is Format.csv:
        columns = ("method", *extra, *_VALUES)
        rows = [one.to_json() for one in advice.ranked]
        print_csv(columns, [[row.get(name) for name in columns] for row in rows])
    else:
        _print_tables(advice, extra)


def _print_tables(advice: Advice, extra: Mapping[str, str]) -> None:
    reference = f" over {advice.baseline}" if advice.baseline else ""
    header = [
        "",
        "method",
        *extra.values(),
        "time",
        f"speed-up{reference}",
        "95 %",
        "measured",
        "model",
        "basis",
    ]
    print_table(
        header, [_row(k, one, extra, advice.baseline) for k, one in enumerate(advice.ranked, start=1)]
    )
    print()
    for k, one in enumerate(advice.ranked, start=1):
        print(f"{k}. {one.action}")
    print()
    print_table(
        ["from", "to", "best", *extra.values(), ""], [_size_row(one, extra) for one in advice.size_ranges]
    )


def _row(rank: int, one: Alternative, extra: Mapping[str, str], baseline: str) -> list[Any]:
    row = [
        rank,
        name_of(one.method, one.extra),
        *(_cell(key, one.extra.get(key)) for key in extra),
        format_seconds(one.time_s.value),
    ]
    if one.method == baseline or one.speed_up is None:
        measured = format_seconds(one.measured_time_s.value) if one.measured_time_s else ""
        return [*row, "", "", measured, "", one.basis]
    predicted = ratio_text(one.predicted_speed_up.value) if one.predicted_speed_up else ""
    interval = interval_text(one.speed_up, ratio_text)
    return [
        *row, ratio_text(one.speed_up.value), interval, _spread(one.measured_speed_up), predicted, one.basis
    ]  # fmt: skip


def _spread(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    interval = interval_text(estimate, ratio_text)
    return ratio_text(estimate.value) + (f" ({interval})" if interval else "")


def _size_row(one: SizeRange, extra: Mapping[str, str]) -> list[Any]:
    outside = one.extra.get("extrapolated")
    return [
        format_bytes(one.from_bytes),
        format_bytes(one.to_bytes),
        name_of(one.method, one.extra),
        *(_cell(key, one.extra.get(key)) for key in extra),
        f"extrapolated: {', '.join(outside)}" if outside else "",
    ]


def _cell(key: str, value: Any) -> Any:
    if value is None:
        return ""
    return format_bytes(value) if key.endswith("_bytes") else value


def name_of(method: str, extra: Mapping[str, Any]) -> str:
    """Display name of a method such as `pipeline:8192`, with the contexts that it requests."""
    name, colon, bound = method.partition(":")
    text = f"{name}, segments of {format_bytes(int(bound))}" if colon and "algorithm" in extra else method
    return text + (f", {labels.counted(extra['vcis'], 'context')}" if "vcis" in extra else "")
