"""Tables of changes: the points of two runs, what else differs, the changes of a history, a baseline."""

from collections.abc import Sequence

import numpy as np

from earlybird.data.baseline import Baseline
from earlybird.data.history import History
from earlybird.data.labels import listed_briefly
from earlybird.data.points import point_texts, texts_by_id
from earlybird.data.run_comparison import Change, RunComparison
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import change_text, interval_text
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.changes.answer import (
    difference_text,
    point_names,
    runs_text,
    sides_text,
    start_of,
)


def changes_table(comparison: RunComparison, changes: Sequence[Change] | None = None) -> Table:
    """Return a row for each of `changes`, by default of all, the slower points first."""
    names = point_names(comparison)
    columns = [
        Column("point", lambda change: names[id(change)], left=True),
        Column("before", lambda change: format_seconds(change.before_s)),
        Column("after", lambda change: format_seconds(change.after_s)),
        Column("change", lambda change: change_text(change.ratio.value)),
        Column("interval", lambda change: interval_text(change.ratio, change_text), detail=True),
        Column("adjusted p", _adjusted_p, optional=True, detail=True),
        Column("launches", lambda change: f"{change.launches_before}, {change.launches_after}", detail=True),
        Column("verdict", lambda change: change.verdict, left=True),
    ]
    rows = comparison.slower_first() if changes is None else changes
    return Table(f"All points: {sides_text(comparison)}", columns, rows)


def _adjusted_p(change: Change) -> str:
    return "" if change.adjusted_p_value is None else f"{change.adjusted_p_value:.2g}"


def differences_table(comparison: RunComparison) -> Table:
    """Return a row for everything but times that differs."""
    columns = [
        Column("what", lambda item: item.what, left=True),
        Column("before", lambda item: item.before, default="(none)"),
        Column("after", lambda item: item.after, default="(none)"),
    ]
    return Table(f"What else differs: {sides_text(comparison)}", columns, comparison.differences, wide=True)


def history_table(history: History) -> Table:
    """Return a row for each change, the first one first."""
    names = texts_by_id(history.series)
    columns = [
        Column("from", lambda pair: start_of(history, pair[1].first)),
        Column(
            "until",
            lambda pair: start_of(history, pair[1].last) if pair[1].last != pair[1].first else "",
            optional=True,
        ),
        Column("kind", lambda pair: pair[1].kind, left=True),
        Column("change", lambda pair: change_text(pair[1].ratio)),
        Column("point", lambda pair: names[id(pair[0])], left=True),
        Column("run", lambda pair: history.runs[pair[1].first].name, left=True),
        Column(
            "differs from the run before",
            lambda pair: listed_briefly(
                [difference_text(item) for item in history.differences.get(str(pair[1].first), ())]
            ),
            left=True,
            detail=True,
        ),
    ]
    return Table(f"Changes: {runs_text(history)}", columns, history.changes(), wide=True)


def baseline_table(baseline: Baseline) -> Table:
    """Return the median over launches at every point."""
    columns = [
        Column("point", lambda row: row[0], left=True),
        Column("time", lambda row: format_seconds(float(np.median(row[1].launch_medians_s)))),
        Column("launches", lambda row: len(row[1].launch_medians_s)),
    ]
    return Table("", columns, list(zip(point_texts(baseline.points), baseline.points, strict=True)))
