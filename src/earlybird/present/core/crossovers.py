"""Rows of crossovers: the best method of small sizes, and each size at which it changes."""

from collections.abc import Mapping, Sequence

from earlybird.compare.ranking import Crossover
from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.present.core.table import Table, text_table

BETWEEN = "observed between"
Setting = Mapping[str, str]  # column title -> text


def crossovers_table(
    caption: str, rows: Sequence[tuple[Setting, Sequence[int], str, Sequence[Crossover]]]
) -> Table:
    """Return a row for each change; for a setting without one, its best method at every one of its sizes."""
    cells = []
    for setting, sizes, first, changes in rows:
        if not changes:
            low, high = format_bytes(sizes[0]), format_bytes(sizes[-1])
            cells.append([*setting.values(), labels.method(first), "", "", f"{low} to {high}"])
        for change in changes:
            low, high = map(format_bytes, change.between)
            ends = [labels.method(change.before), _about(change.size_bytes), labels.method(change.after)]
            cells.append([*setting.values(), *ends, f"{low} to {high}"])
    names = list(rows[0][0]) if rows else []
    return text_table(caption, [*names, "best", "until", "then", BETWEEN], cells)


def _about(size_bytes: float) -> str:
    """Return a size with two digits, the precision of an interpolated size."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit:
            return f"{float(f'{size_bytes / unit:.2g}'):g} {name}"
    return f"{float(f'{size_bytes:.2g}'):g} B"
