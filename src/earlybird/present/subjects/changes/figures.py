"""Figures of changes: the points of two runs with intervals, against message size, and over many runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.data.history import History, Series
from earlybird.data.points import point_texts
from earlybird.data.run_comparison import FASTER, INCONCLUSIVE, SAME, SLOWER, Change, Point, RunComparison
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import line, whiskers
from earlybird.present.core.notation import change_text
from earlybird.present.core.parts import Figure, grouped, more_in_table
from earlybird.present.subjects.changes.answer import named_changes, sides_text

_MAX_ROWS, _MAX_LINES = 16, 8
# The looks of verdicts.
_LOOKS = {SLOWER: "many", FASTER: "mpich", INCONCLUSIVE: "other", SAME: "single"}
# What differs between messages of two sizes.
_OF_SIZE = ("size_bytes", "repeats")


def change_figure(comparison: RunComparison, id: str) -> Figure:
    """Draw a point with whiskers for each point of both runs, the largest changes only, by their ratio."""
    rows = sorted(named_changes(comparison), key=lambda row: -row[0].distance)[:_MAX_ROWS]
    rows.sort(key=lambda row: row[0].ratio.value)
    ends = [end - 1 for change, _ in rows for end in (change.ratio.low, change.ratio.high)]
    return Figure(
        id,
        f"Change of each point: {sides_text(comparison)}",
        "Time after against time before, whiskers: 95 %. Right of 0: slower."
        + more_in_table(len(comparison.changes) - len(rows), "point"),
        [
            whiskers(
                verdict,
                _LOOKS[verdict],
                [change.ratio for change, _ in group],
                [name for _, name in group],
                [_hover(change, name) for change, name in group],
                less=1.0,
            )
            for verdict, group in grouped(rows, lambda row: row[0].verdict).items()
        ],
        axes.layout(
            axes.percent_axis(ends, "change"),
            {
                "categoryorder": "array",
                "categoryarray": [axes.label(name) for _, name in rows],
                "showgrid": False,
            },
            height=axes.height_of_rows(len(rows)),
        ),
        wide=True,
    )


def size_figure(comparison: RunComparison, id: str) -> list[Figure]:
    """Draw the change against message size, a line for each group of points that differ in size alone; return
    no figure if no group has two sizes."""
    sized = [change for change in comparison.changes if isinstance(change.config.get("size_bytes"), int)]
    groups = [
        sorted(group, key=lambda change: change.config["size_bytes"])
        for group in grouped(sized, lambda change: str(_without_size(change))).values()
        if len(group) > 1
    ]
    if not groups:
        return []
    names = point_texts([_without_size(group[0]) for group in groups])
    drawn = list(zip(groups, names, strict=True))[:_MAX_LINES]
    changes = [change for group, _ in drawn for change in group]
    return [
        Figure(
            id,
            f"Change by message size: {sides_text(comparison)}",
            "Time after against time before; above 0: slower."
            + more_in_table(len(groups) - len(drawn), "line"),
            [_size_line(group, name, k) for k, (group, name) in enumerate(drawn)],
            axes.layout(
                axes.size_axis([change.config["size_bytes"] for change in changes]),
                axes.percent_axis([change.ratio.value - 1 for change in changes], "change"),
            ),
            wide=True,
        )
    ]


def history_figure(history: History, id: str) -> Figure:
    """Draw each point that changed, over all runs, relative to its median before the first change."""
    names = zip(history.series, point_texts(history.series), strict=True)
    changed = sorted(
        ((series, name) for series, name in names if series.changes),
        key=lambda pair: -max(abs(np.log(change.ratio)) for change in pair[0].changes),
    )
    drawn = changed[:_MAX_LINES]
    started = [axes.label(run.started) for run in history.runs]
    relative = [_relative(series) for series, _ in drawn]
    return Figure(
        id,
        "Points that changed, over all runs",
        "Time against the median before the first change; above 0: slower."
        + more_in_table(len(changed) - len(drawn), "point"),
        [
            _history_line(values, series, name, started, k)
            for k, ((series, name), values) in enumerate(zip(drawn, relative, strict=True))
        ],
        axes.layout(
            {"type": "date", "title": axes.titled("start of the run")},
            axes.percent_axis(
                [value for values in relative for value in values if value is not None], "change"
            ),
        ),
        wide=True,
    )


def _hover(change: Change, name: str) -> str:
    return (
        f"{axes.label(name)}<br><b>{change_text(change.ratio.value)}</b>, {change.verdict}<br>"
        f"{format_seconds(change.before_s)} before, {format_seconds(change.after_s)} after"
    )


def _without_size(change: Change) -> Point:
    config = {name: value for name, value in change.config.items() if name not in _OF_SIZE}
    return Point(change.kernel, change.quantity, change.method, config)


def _size_line(group: Sequence[Change], name: str, k: int) -> dict[str, Any]:
    return line(
        axes.label(name),
        [change.config["size_bytes"] or axes.ZERO_BYTES_AT for change in group],
        [change.ratio.value - 1 for change in group],
        [_hover(change, name) for change in group],
        axes.color(axes.series(k)),
        symbol=[axes.symbol(_LOOKS[change.verdict]) for change in group],
    )


def _relative(series: Series) -> list[float | None]:
    """Return the change of each run against the median before the first change; None where a run lacks the
    point."""
    first = min(change.first for change in series.changes)
    before = [time_s for time_s in series.time_s[: max(first, 1)] if time_s > 0]
    usual_s = float(np.median(before or series.time_s[series.time_s > 0]))
    return [time_s / usual_s - 1 if time_s > 0 else None for time_s in series.time_s.tolist()]


def _history_line(
    values: Sequence[float | None], series: Series, name: str, started: Sequence[str], k: int
) -> dict[str, Any]:
    look = axes.series(k)
    texts = [
        f"{axes.label(name)}<br>{day}: <b>{format_seconds(time_s)}</b>" if time_s else ""
        for day, time_s in zip(started, series.time_s.tolist(), strict=True)
    ]
    return line(axes.label(name), started, values, texts, axes.color(look), symbol=axes.symbol(look))
