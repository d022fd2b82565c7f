"""Tables of advice: its alternatives, what is advised by size, and what is advised for several operations."""

from collections.abc import Callable, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.advice import Advice, Alternative, SizeRange
from earlybird.data.units import format_bytes
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.advice import view

# Values of an alternative that are part of its name, or only for other programs.
_NO_COLUMN = ("vcis", "algorithm", "segment_bytes", "source")
# Heads that differ from the keys in the file.
_HEADS = {"message_bytes": "largest", "edge_cut": "cut edges", "functions": "in"}


def alternatives_table(advice: Advice) -> Table:
    """Return the alternatives, the advised one first."""
    ranks = {id(alternative): rank for rank, alternative in enumerate(advice.ranked, start=1)}
    keys = dict.fromkeys(key for alternative in advice.ranked for key in alternative.extra)
    columns = [
        Column("", lambda alternative: ranks[id(alternative)]),
        Column(view.noun(advice), lambda alternative: view.name(advice, alternative), left=True, folded=True),
        *(_extra_column(key) for key in keys if key not in _NO_COLUMN),
        *_result_columns(lambda alternative: alternative),
        Column("what to do", lambda alternative: view.action(advice, alternative), left=True, detail=True),
    ]
    reference = f"; speed-up over {view.reference(advice)}" if advice.baseline else ""
    return Table(labels.capital(view.title(advice)) + reference, columns, advice.ranked, wide=True)


def operations_table(pieces: Sequence[Advice]) -> Table:
    """Return the advised algorithm for each operation at the requested size."""
    references = dict.fromkeys(view.reference(advice) for advice in pieces if advice.baseline)
    over = f"; speed-up over {' or '.join(references)}" if references else ""
    columns = [
        Column("operation", view.operation, left=True),
        Column("size", lambda advice: _size(advice.asked.get("size_bytes")), optional=True),
        Column("algorithm", lambda advice: view.name(advice, advice.ranked[0]), left=True),
        Column("form", lambda advice: advice.ranked[0].extra.get("form"), optional=True),
        *_result_columns(lambda advice: advice.ranked[0]),
    ]
    return Table(f"Advised{over}", columns, pieces)


def sizes_table(pieces: Sequence[Advice]) -> Table:
    """Return the sizes at which the advised method changes, for each piece of advice."""
    rows = [(advice, size_range) for advice in pieces for size_range in advice.distinct_ranges()]
    columns = [
        Column("operation", lambda row: view.operation(row[0]), common=True, varying=True, left=True),
        Column("from", lambda row: format_bytes(row[1].from_bytes)),
        Column("to", lambda row: format_bytes(row[1].to_bytes)),
        Column("advised", lambda row: view.name(*row), left=True),
        *(_extra_column(key, lambda row: row[1]) for key in ("partitions", "messages", "message_bytes")),
        Column("extrapolated", lambda row: view.extrapolated(row[1].extra), optional=True, left=True),
        Column("what to do", lambda row: view.action(*row), left=True, detail=len(pieces) == 1),
    ]
    names = "; ".join(view.title(advice, without="size_bytes") for advice in pieces)
    return Table(f"What to do by size: {names}", columns, rows)


def _result_columns(alternative_of: Callable[[Any], Alternative]) -> list[Column]:
    def speed_up(item: Any) -> str:
        return view.format_speed_up(alternative_of(item))

    def measured(item: Any) -> str:
        return with_interval(alternative_of(item).measured_speed_up, ratio_text)

    def predicted(item: Any) -> str:
        return with_interval(alternative_of(item).predicted_speed_up, ratio_text)

    return [
        Column("time", lambda item: view.format_time(alternative_of(item))),
        Column("speed-up (95 %)", speed_up, optional=True),
        Column("measured", measured, optional=True, detail=True),
        Column("by the model alone", predicted, optional=True, detail=True),
        Column("basis", lambda item: alternative_of(item).basis, left=True),
    ]


def _extra_column(
    key: str, of: Callable[[Any], Alternative | SizeRange] = lambda alternative: alternative
) -> Column:
    head = _HEADS.get(key, key.removesuffix("_bytes").removesuffix("_s").replace("_", " "))
    return Column(
        head,
        lambda item: view.format_extra(key, of(item).extra.get(key)),
        optional=True,
        detail=key == "messages",  # follows from the partitions and the largest message
    )


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else format_bytes(size_bytes)
