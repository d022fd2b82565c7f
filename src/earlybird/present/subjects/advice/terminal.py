"""Prints advice on an operation, or on several collective operations of a job."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data.advice import Advice, CollectivesAdvice
from earlybird.data.exchange_models import with_reason
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.advice import view
from earlybird.present.subjects.advice.tables import alternatives_table, operations_table, sizes_table

# The keys of an operation's own values, in CSV.
_EXTRA = {
    "pipeline": ("partitions", "messages", "message_bytes"),
    "collective": ("form",),
    "layout": (),
    "aggregate": ("messages_between_nodes",),
    "partition": ("largest_part", "edge_cut"),
    "program": ("kind", "phase", "functions"),
}
# CSV columns of every alternative, after those of the operation.
_VALUES = ("time_s", "speed_up", "basis", "measured_speed_up", "measured_state", "predicted_speed_up",
           "action")  # fmt: skip


def print_advice(advice: Advice, format: str, *, with_sizes: bool = True) -> None:
    """Print advice on one operation, `with_sizes` also the sizes at which the advised alternative changes."""
    extra = _EXTRA.get(advice.operation, _EXTRA["pipeline"])
    records = [alternative.to_json() for alternative in advice.ranked]
    if _print_notes_and_data([advice], format, advice.to_json(), records, ("method", *extra, *_VALUES)):
        return
    alternatives = alternatives_table(advice)
    print_line(alternatives.caption)
    print_table(alternatives.brief())
    if rule := advice.extra.get("rule"):
        print_line(rule)
    print_line()
    for rank, alternative in enumerate(advice.ranked, start=1):
        print_line(f"{rank}. {alternative.action}")
    if model := advice.asked.get("model"):
        note(f"predicted by {with_reason(model, advice.extra)}")
    if advice.size_ranges and with_sizes:
        print_line()
        print_table(sizes_table([advice]).brief())


def print_collectives_advice(several: CollectivesAdvice, format: str, *, with_sizes: bool = True) -> None:
    """Print the advised algorithm for each operation at its size, and all sizes with their settings."""
    asked = ("operation", "size_bytes")
    records = [
        {key: advice.asked.get(key) for key in asked} | alternative.to_json()
        for advice in several.advice
        for alternative in advice.ranked
    ]
    columns = (*asked, "method", *_EXTRA["collective"], *_VALUES)
    if _print_notes_and_data(several.advice, format, several.to_json(), records, columns):
        return
    advised = operations_table(several.advice)
    print_line(advised.caption)
    print_table(advised.brief())
    if with_sizes:
        print_line()
        print_table(sizes_table(several.advice).brief())


def _print_notes_and_data(
    pieces: Sequence[Advice],
    format: str,
    value: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
) -> bool:
    for text in view.notes(pieces, view.operation):
        note(f"warning: {text}")
    return print_data(format, value, records, columns)
