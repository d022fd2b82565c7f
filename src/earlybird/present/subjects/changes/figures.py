"""Figures of changes: the points of two runs with intervals, against message size, and over many runs."""

from collections.abc import Sequence

import numpy as np

from earlybird.data import labels
from earlybird.data.history import History
from earlybird.data.points import point_texts
from earlybird.data.run_comparison import FASTER, INCONCLUSIVE, SAME, SLOWER, Change, Point, RunComparison
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import line, whiskers
from earlybird.present.core.parts import Figure, grouped

_MOST_ROWS, _MOST_LINES = 16, 8
_ROW_HEIGHT, _AROUND_ROWS = 28, 90  # pixels
# The looks of verdicts, and of lines without a look of their own.
_LOOKS = {SLOWER: "many", FASTER: "mpich", INCONCLUSIVE: "other", SAME: "single"}
# What differs between messages of two sizes.
_OF_SIZE = ("size_bytes", "repeats")
_LINES = ("staircase", "max-rate", "queue", "postal", "fair", "openmpi", "stream", "system")


def change_figure(one: RunComparison, names: Sequence[str], id: str) -> Figure:
    """A point with whiskers for each point of both runs, the largest changes first."""
    rows = sorted(zip(one.changes, names, strict=True), key=lambda row: -_distance(row[0]))[:_MOST_ROWS]
    rows.sort(key=lambda row: row[0].ratio.value)
    left = len(one.changes) - len(rows)
    more = f" {labels.counted(left, 'point')} with smaller changes are in the table." if left else ""
    traces = []
    for verdict, items in grouped(rows, lambda row: row[0].verdict).items():
        traces.append(_whiskers(verdict, items))
    ends = [end - 1 for change, _ in rows for end in (change.ratio.low, change.ratio.high)]
    return Figure(
        id,
        f"Change of each point: {one.after} against {one.before}",
        f"Time after against time before, whiskers: 95 %. Right of 0: slower.{more}",
        traces,
        axes.layout(
            axes.percent_axis(ends, "change"),
            {
                "categoryorder": "array",
                "categoryarray": [axes.label(name) for _, name in rows],
                "showgrid": False,
            },
            height=_AROUND_ROWS + _ROW_HEIGHT * max(len(rows), 4),
        ),
        wide=True,
    )


def _distance(change: Change) -> float:
    """Return how far a change is from none: of a time that became 0, further than any other."""
    ratio = change.ratio.value
    return abs(float(np.log(ratio))) if ratio > 0 else float("inf")


def _whiskers(verdict: str, rows: Sequence[tuple[Change, str]]) -> dict:
    changes = [change.ratio for change, _ in rows]
    texts = [_hover(change, name) for change, name in rows]
    return whiskers(verdict, _LOOKS[verdict], changes, [name for _, name in rows], texts, less=1.0)


def _hover(change: Change, name: str) -> str:
    return (
        f"{axes.label(name)}<br><b>{labels.signed_percent(change.ratio.value - 1)}</b>, {change.verdict}<br>"
        f"{format_seconds(change.before_s)} before, {format_seconds(change.after_s)} after"
    )


def size_figure(one: RunComparison, id: str) -> list[Figure]:
    """The change against message size, a line for each group of points that differ in size alone; none if no
    group has two sizes."""
    sized = [change for change in one.changes if isinstance(change.config.get("size_bytes"), int)]
    groups = [
        sorted(group, key=lambda change: change.config["size_bytes"])
        for group in grouped(sized, lambda change: str(_without_size(change))).values()
        if len(group) > 1
    ]
    if not groups:
        return []
    names = point_texts([_without_size(group[0]) for group in groups])
    drawn = list(zip(groups, names, strict=True))[:_MOST_LINES]
    traces = [_size_line(group, name, k) for k, (group, name) in enumerate(drawn)]
    left = len(groups) - len(drawn)
    more = f" {labels.counted(left, 'other line')} only in the table." if left > 0 else ""
    changes = [change for group, _ in drawn for change in group]
    return [
        Figure(
            id,
            f"Change by message size: {one.after} against {one.before}",
            f"Time after against time before; above 0: slower.{more}",
            traces,
            axes.layout(
                axes.size_axis([change.config["size_bytes"] for change in changes]),
                axes.percent_axis([change.ratio.value - 1 for change in changes], "change"),
            ),
            wide=True,
        )
    ]


def _without_size(change: Change) -> Point:
    config = {name: value for name, value in change.config.items() if name not in _OF_SIZE}
    return Point(change.kernel, change.quantity, change.method, config)


def _size_line(group: Sequence[Change], name: str, k: int) -> dict:
    look = _LINES[k % len(_LINES)]
    return line(
        axes.label(name),
        [change.config["size_bytes"] or axes.ZERO_BYTES_AT for change in group],
        [change.ratio.value - 1 for change in group],
        [_hover(change, name) for change in group],
        axes.color(look),
        symbol=[axes.symbol(_LOOKS[change.verdict]) for change in group],
    )


def history_figure(one: History, id: str) -> Figure:
    """Each point that changed, over all runs, relative to its median before the first change."""
    texts = point_texts(one.series)
    changed = [(series, text) for series, text in zip(one.series, texts, strict=True) if series.changes]
    changed.sort(key=lambda pair: -max(abs(np.log(change.ratio)) for change in pair[0].changes))
    drawn = changed[:_MOST_LINES]
    started = [axes.label(run.started) for run in one.runs]
    traces, shown = [], []
    for k, (series, text) in enumerate(drawn):
        first = min(change.first for change in series.changes)
        before = [time_s for time_s in series.time_s[: max(first, 1)] if time_s > 0]
        usual_s = float(np.median(before or series.time_s[series.time_s > 0]))
        values = [time_s / usual_s - 1 if time_s > 0 else None for time_s in series.time_s.tolist()]
        shown += [value for value in values if value is not None]
        traces.append(_history_line(values, series, text, started, k))
    left = len(changed) - len(drawn)
    more = f" {labels.counted(left, 'other point')} only in the table." if left > 0 else ""
    return Figure(
        id,
        "Points that changed, over all runs",
        f"Time against the median before the first change; above 0: slower.{more}",
        traces,
        axes.layout(
            {"type": "date", "title": axes.titled("start of the run")}, axes.percent_axis(shown, "change")
        ),
        wide=True,
    )


def _history_line(values, series, text: str, started: Sequence[str], k: int) -> dict:
    look = _LINES[k % len(_LINES)]
    texts = [
        f"{axes.label(text)}<br>{day}: <b>{format_seconds(time_s)}</b>" if time_s else ""
        for day, time_s in zip(started, series.time_s.tolist(), strict=True)
    ]
    return line(axes.label(text), started, values, texts, axes.color(look), symbol=axes.symbol(look))
