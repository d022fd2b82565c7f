"""Prints advice on an operation or several: warnings first, then JSON, CSV or tables of alternatives and
sizes."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from earlybird.data import labels
from earlybird.data.advice import Advice, Alternative, CollectivesAdvice, SizeRange
from earlybird.data.exchange_models import with_reason
from earlybird.data.projection import is_bound, speed_up_text, time_text
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.table import text_table
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table

# The keys of an operation's own values, and their column heads.
_EXTRA = {
    "pipeline": {"partitions": "partitions", "messages": "messages", "message_bytes": "largest"},
    "collective": {"form": "form"},
    "layout": {},
    "aggregate": {"messages_between_nodes": "messages between nodes"},
    "partition": {"largest_part": "largest part", "edge_cut": "cut edges"},
    "program": {"kind": "change", "phase": "phase", "functions": "in"},
}
# CSV columns of every alternative, after those of the operation.
_VALUES = ("time_s", "speed_up", "basis", "measured_speed_up", "measured_state", "predicted_speed_up",
           "action")  # fmt: skip
_SIZES_HEADER = ("from", "to", "advised")


def print_advice(advice: Advice, format: str, *, with_sizes: bool = True) -> None:
    """`with_sizes`: with the table of sizes at which the advised alternative changes."""
    for reservation in advice.notes:
        note(f"warning: {reservation}")
    extra = _EXTRA.get(advice.operation, _EXTRA["pipeline"])
    records = [one.to_json() for one in advice.ranked]
    if print_data(format, advice.to_json(), records, ("method", *extra, *_VALUES)):
        return
    header = _header(extra, advice.baseline)
    _print_without_empty_columns(
        ["", *header],
        [[rank, *_row(one, extra, advice.baseline)] for rank, one in enumerate(advice.ranked, start=1)],
    )
    if rule := advice.extra.get("rule"):
        print_line(rule)
    print_line()
    for rank, one in enumerate(advice.ranked, start=1):
        print_line(f"{rank}. {one.action}")
    if model := advice.asked.get("model"):
        note(f"predicted by {with_reason(model, advice.extra.get('model_reason'))}")
    if advice.size_ranges and with_sizes:
        print_line()
        _print_without_empty_columns(
            [*_SIZES_HEADER, *extra.values(), "basis"],
            [_size_row(one, extra) for one in advice.size_ranges],
        )


def print_collectives_advice(several: CollectivesAdvice, format: str, *, with_sizes: bool = True) -> None:
    """A row for each operation with what is advised at its size, and all sizes with their settings."""
    for reservation in _notes(several.advice):
        note(f"warning: {reservation}")
    extra = _EXTRA["collective"]
    asked = ("operation", "size_bytes")
    records = [
        {key: piece.asked.get(key) for key in asked} | one.to_json()
        for piece in several.advice
        for one in piece.ranked
    ]
    if print_data(format, several.to_json(), records, (*asked, "method", *extra, *_VALUES)):
        return
    baselines = dict.fromkeys(piece.baseline for piece in several.advice if piece.baseline)
    header = _header(extra, " or ".join(baselines))
    _print_without_empty_columns(
        ["operation", "size", *header],
        [[_operation(one), _size(one), *_row(one.ranked[0], extra, one.baseline)] for one in several.advice],
    )
    if not with_sizes:
        return
    print_line()
    _print_without_empty_columns(
        ["operation", *_SIZES_HEADER, *extra.values(), "basis", "setting"],
        [
            [_operation(piece), *_size_row(one, extra), one.action]
            for piece in several.advice
            for one in piece.size_ranges
        ],
        left=["setting"],
    )


def _operation(piece: Advice) -> str:
    return str(piece.asked.get("operation", piece.operation))


def _size(piece: Advice) -> str:
    size_bytes = piece.asked.get("size_bytes")
    return format_bytes(size_bytes) if isinstance(size_bytes, int) else ""


def _notes(pieces: Sequence[Advice]) -> list[str]:
    """Each note once, after the operations that it is about if these are not all."""
    operations_of: dict[str, list[str]] = {}
    for piece in pieces:
        for text in piece.notes:
            operations_of.setdefault(text, []).append(_operation(piece))
    return [
        text if len(operations) == len(pieces) else f"{', '.join(operations)}: {text}"
        for text, operations in operations_of.items()
    ]


def _header(extra: Mapping[str, str], baseline: str) -> list[str]:
    reference = f" over {baseline}" if baseline else ""
    columns = ["method", *extra.values(), "time", f"speed-up{reference}", "95 %"]
    return [*columns, "measured speed-up", "model speed-up", "basis"]


def _print_without_empty_columns(header: list[str], rows: list[list], left: Collection[str] = ()) -> None:
    kept = [k for k in range(len(header)) if any(row[k] != "" for row in rows)]
    print_table(text_table("", [header[k] for k in kept], [[row[k] for k in kept] for row in rows], left))


def _row(one: Alternative, extra: Iterable[str], baseline: str) -> list[str]:
    name = [_name(one), *_extra_cells(one, extra)]
    if one.method == baseline or one.speed_up is None:
        return [*name, format_seconds(one.time_s.value), "", "", "", "", one.basis]
    time, speed_up = (
        format_seconds(one.time_s.value),
        (_ratio(one.speed_up), interval_text(one.speed_up, ratio_text)),
    )
    if "kind" in extra and is_bound(one.speed_up):  # a projected change of which only a bound is known
        time, speed_up = time_text(one.time_s, one.speed_up), (speed_up_text(one.speed_up, ratio_text), "")
    return [*name, time, *speed_up, _spread(one.measured_speed_up), _ratio(one.predicted_speed_up), one.basis]


def _size_row(one: SizeRange, extra: Iterable[str]) -> list[str]:
    outside = one.extra.get("extrapolated")
    if isinstance(outside, list):
        remark = f"extrapolated: {', '.join(outside)}" if outside else ""
    else:  # files of earlier versions only say whether
        remark = "extrapolated" if outside else ""
    sizes = format_bytes(one.from_bytes), format_bytes(one.to_bytes)
    return [*sizes, _name(one), *_extra_cells(one, extra), remark]


def _ratio(estimate: Estimate | None) -> str:
    return "" if estimate is None else ratio_text(estimate.value)


def _spread(estimate: Estimate | None) -> str:
    interval = interval_text(estimate, ratio_text)
    return _ratio(estimate) + (f" ({interval})" if interval else "")


def _extra_cells(one: Alternative | SizeRange, extra: Iterable[str]) -> list[str]:
    values = {key: one.extra.get(key) for key in extra}
    return [
        "" if value is None else format_bytes(value) if key.endswith("_bytes") else str(value)
        for key, value in values.items()
    ]


def _name(one: Alternative | SizeRange) -> str:
    """Display name of a method such as `pipeline:8192`, with the contexts that it requests."""
    name, _, bound = one.method.partition(":")
    is_segmented = bound.isdecimal() and "algorithm" in one.extra
    text = f"{name}, segments of {format_bytes(int(bound))}" if is_segmented else one.method
    return text + (f", {labels.counted(one.extra['vcis'], 'context')}" if "vcis" in one.extra else "")
