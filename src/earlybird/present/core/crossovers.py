"""Rows of crossovers: the best method of small sizes, and each size at which it changes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from earlybird.compare.ranking import Crossover
from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.present.core.notation import range_text
from earlybird.present.core.points import Point, best_methods, crossovers
from earlybird.present.core.table import Column, Table


class _Row(NamedTuple):
    """The best method from the first of the sizes on, and the next change (None if there is none)."""

    setting: Mapping[str, str]  # column title -> text
    best: str
    sizes: tuple[int, int]
    change: Crossover | None


def crossovers_table(
    caption: str, of_settings: Sequence[tuple[Mapping[str, str], Sequence[Point]]], reference: str
) -> Table:
    """Return a row per change of the best method with the size; for a setting without one, its best method at
    every one of its sizes. The best is `reference` until another method is clearly faster. Sizes of which the
    clock resolved no method are left out, and settings of which it resolved at most one."""
    rows: list[_Row] = []
    for setting, points in of_settings:
        timed = [point for point in points if point.speeds()]
        if len(timed) > 1:
            changes = crossovers(timed, reference)
            sizes = timed[0].size_bytes, timed[-1].size_bytes
            without = _Row(setting, best_methods(timed, reference)[0], sizes, None)
            rows += [_Row(setting, change.before, change.between, change) for change in changes] or [without]
    names = of_settings[0][0] if of_settings else ()
    return Table(caption, [*map(_setting_column, names), *_COLUMNS], rows, wide=True)


def _setting_column(name: str) -> Column:
    return Column(name, lambda row: row.setting[name], common=True)


def _about(size_bytes: float) -> str:
    """Return a size with two digits, the precision of an interpolated size."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit:
            return f"{float(f'{size_bytes / unit:.2g}'):g} {name}"
    return f"{float(f'{size_bytes:.2g}'):g} B"


_COLUMNS = (
    Column("best", lambda row: labels.method(row.best)),
    Column("until", lambda row: row.change and _about(row.change.size_bytes)),
    Column("then", lambda row: row.change and labels.method(row.change.after)),
    Column("observed between", lambda row: range_text(row.sizes, format_bytes), detail=True),
)
