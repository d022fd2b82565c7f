"""Prints comparisons of runs, histories and baselines, for people and for other tools."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from earlybird.data.baseline import Baseline
from earlybird.data.history import History, Series, SeriesChange
from earlybird.data.labels import counted, listed_briefly
from earlybird.data.plain_text import markdown_text
from earlybird.data.points import texts_by_id
from earlybird.data.run_comparison import SAME, Difference, Point, RunComparison
from earlybird.interop.junit import junit_xml
from earlybird.present.render.data import Format, print_csv, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import markdown_table, print_line, print_table, print_text
from earlybird.present.subjects.changes.answer import (
    difference_text,
    history_summary,
    point_names,
    start_of,
    summary,
)
from earlybird.present.subjects.changes.tables import baseline_table, changes_table, history_table

# Differences that are printed: between two runs, and from the run before a change.
_MAX_DIFFERENCES, _MAX_OF_CHANGE = 12, 5
_HISTORY_COLUMNS = ("kernel", "quantity", "method", "config", "kind", "first", "last", "ratio", "p_value")


def print_run_comparisons(comparisons: Sequence[RunComparison], format: str, *, strict: bool = False) -> None:
    """Print comparisons in one of the formats of `earlybird compare`; as JSON a list if there are several."""
    values = [comparison.to_json() for comparison in comparisons]
    rows = (
        {"before": comparison.before, "after": comparison.after} | change.row()
        for comparison in comparisons
        for change in comparison.changes
    )
    if format == "junit":
        print_text(junit_xml(comparisons, strict=strict))
    elif format == "markdown":
        print_text("\n\n".join(map(_markdown, comparisons)))
    elif not print_data(format, values[0] if len(values) == 1 else values, rows):
        for number, comparison in enumerate(comparisons):
            if number:
                print_line()
            _print_comparison(comparison)
    for text in dict.fromkeys(text for comparison in comparisons for text in comparison.notes):
        note(f"warning: {text}")


def print_run_comparison(comparison: RunComparison, format: str) -> None:
    """Print a comparison of a file."""
    print_run_comparisons([comparison], format)


def print_history(history: History, format: str) -> None:
    """Print a history in one of the formats of `earlybird history`."""
    if format == "otava":
        print_csv(_otava_rows(history))
        return
    rows = (_history_row(history, *pair) for pair in history.changes())
    if print_data(format, history.to_json(), rows, _HISTORY_COLUMNS):
        return
    print_line(history_summary(history))
    if not history.changes():
        return
    print_line()
    print_table(history_table(history).brief())
    for first in sorted({change.first for _, change in history.changes()}):
        different = history.differences.get(str(first), ())
        _print_differences(different, _MAX_OF_CHANGE, f"from {start_of(history, first)}: ")


def print_baseline(baseline: Baseline, format: Format) -> None:
    """Print the median over launches at every point, and the circumstances."""
    rows = [
        {
            "kernel": point.kernel, "quantity": point.quantity, "method": point.method, **point.config,
            "time_s": float(np.median(point.launch_medians_s)), "launches": len(point.launch_medians_s),
        }
        for point in baseline.points
    ]  # fmt: skip
    if print_data(format, baseline.to_json(), rows):
        return
    print_table(baseline_table(baseline))
    lines = {"run": f"{baseline.run_id}, {baseline.started}"} | baseline.circumstances
    width = max(map(len, lines)) + 2
    print_line()
    for name, text in lines.items():
        print_line(f"{name:<{width}}{text}".rstrip())


def _print_comparison(comparison: RunComparison) -> None:
    names = point_names(comparison)
    print_table(changes_table(comparison))
    print_line()
    print_line(f"before    {comparison.before}")
    print_line(f"after     {comparison.after}")
    print_line(f"result    {summary(comparison)}")
    for side, points in _missing(comparison).items():
        print_line(f"only {side:<6} {listed_briefly([names[id(point)] for point in points])}")
    _print_differences(comparison.differences, _MAX_DIFFERENCES)


def _print_differences(differences: Sequence[Difference], most: int, where: str = "") -> None:
    for difference in differences[:most]:
        print_line(f"differs   {where}{difference_text(difference)}")
    if (more := len(differences) - most) > 0:
        print_line(f"differs   in {counted(more, 'other thing')}; --json lists all")


def _missing(comparison: RunComparison) -> Mapping[str, Sequence[Point]]:
    """Return the points that only one side has, by side."""
    sides = {"before": comparison.only_before, "after": comparison.only_after}
    return {side: points for side, points in sides.items() if points}


def _markdown(comparison: RunComparison) -> str:
    """Return the changed and the inconclusive points as a table; the others only in the summary."""
    changes = [change for change in comparison.slower_first() if change.verdict != SAME]
    sides = markdown_text(f"{comparison.before} -> {comparison.after}")
    lines = [f"**{sides}**: {summary(comparison)}", ""]
    if changes:
        lines += [*markdown_table(changes_table(comparison, changes)), ""]
    lines += [f"- differs: {markdown_text(difference_text(item))}" for item in comparison.differences]
    lines += [
        f"- {counted(len(points), 'point')} only {side}" for side, points in _missing(comparison).items()
    ]
    return "\n".join(lines).rstrip()


def _history_row(history: History, series: Series, change: SeriesChange) -> dict[str, Any]:
    return change.to_json() | {
        "kernel": series.kernel,
        "quantity": series.quantity,
        "method": series.method,
        "config": " ".join(f"{name}={value}" for name, value in series.config.items()),
        "first": history.runs[change.first].started,
        "last": history.runs[change.last].started,
    }


def _otava_rows(history: History) -> list[dict[str, Any]]:
    """Return a row for each run with a column for each point, in seconds."""
    names = texts_by_id(history.series)
    return [
        {"time": run.started, "run": run.name}
        | {names[id(series)]: series.time_s[k] or None for series in history.series}
        for k, run in enumerate(history.runs)
    ]
