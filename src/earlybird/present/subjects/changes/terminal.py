"""Prints a comparison of runs: as a table, and as markdown for a merge request."""

from collections.abc import Mapping, Sequence

import numpy as np

from earlybird.data import units
from earlybird.data.baseline import Baseline
from earlybird.data.labels import counted, listed_briefly, signed_percent
from earlybird.data.plain_text import markdown_text
from earlybird.data.points import point_texts, texts_by_id
from earlybird.data.run_comparison import (
    FASTER,
    INCONCLUSIVE,
    SAME,
    SLOWER,
    VERDICTS,
    Change,
    Difference,
    RunComparison,
)
from earlybird.data.schema import Estimate
from earlybird.interop.junit import junit_xml
from earlybird.present.core.notation import interval_text
from earlybird.present.core.table import Column, Table, text_table
from earlybird.present.render.data import Format, print_csv, print_data, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import markdown_table, print_line, print_table, print_text

_ORDER = (SLOWER, INCONCLUSIVE, FASTER, SAME)
_MOST_DIFFERENCES = 12


def print_run_comparisons(comparisons: Sequence[RunComparison], format: str, *, strict: bool = False) -> None:
    """In one of the formats of `earlybird compare`; as JSON a list if there are several."""
    if format == "json":
        values = [one.to_json() for one in comparisons]
        print_json(values[0] if len(values) == 1 else values)
    elif format == "csv":
        rows = [
            {"before": one.before, "after": one.after} | change.row()
            for one in comparisons
            for change in one.changes
        ]
        print_csv(rows)
    elif format == "junit":
        print_text(junit_xml(comparisons, strict=strict))
    elif format == "markdown":
        print_text("\n\n".join(map(_markdown, comparisons)))
    else:
        for number, one in enumerate(comparisons):
            if number:
                print_line()
            _print_table(one)
    for text in dict.fromkeys(text for one in comparisons for text in one.notes):
        note(f"warning: {text}")


def print_run_comparison(comparison: RunComparison, format: str) -> None:
    """One of a file."""
    print_run_comparisons([comparison], format)


def print_baseline(baseline: Baseline, format: Format) -> None:
    """The median over launches at every point, and the circumstances."""
    rows = [
        {
            "kernel": one.kernel, "quantity": one.quantity, "method": one.method, **one.config,
            "time_s": float(np.median(one.launch_medians_s)), "launches": len(one.launch_medians_s),
        }
        for one in baseline.points
    ]  # fmt: skip
    if print_data(format, baseline.to_json(), rows):
        return
    texts = point_texts(baseline.points)
    cells = [
        [text, units.format_seconds(row["time_s"]), row["launches"]]
        for text, row in zip(texts, rows, strict=True)
    ]
    print_table(text_table("", ["point", "time", "launches"], cells, left=["point"]))
    lines = {"run": f"{baseline.run_id}, {baseline.started}"} | baseline.circumstances
    width = max(map(len, lines)) + 2
    print_line()
    for name, text in lines.items():
        print_line(f"{name:<{width}}{text}".rstrip())


def summary(comparison: RunComparison) -> str:
    """`3 slower, 0 faster, 40 same, 2 inconclusive of 45 points; geometric mean of the ratios 1.021`."""
    counts = ", ".join(f"{comparison.count(verdict)} {verdict}" for verdict in VERDICTS)
    number = counted(len(comparison.changes), "point")
    return f"{counts} of {number}; geometric mean of the ratios {comparison.geometric_mean:.3f}"


def _ordered(comparison: RunComparison) -> list[Change]:
    """The slower points first, the largest change first."""
    return sorted(
        comparison.changes, key=lambda one: (_ORDER.index(one.verdict), -_size_of_change(one.ratio))
    )


def _size_of_change(ratio: Estimate) -> float:
    return max(ratio.value, 1 / ratio.value if ratio.value else 0.0)


def _texts(comparison: RunComparison) -> dict[int, str]:
    """By the id of each point: texts of some points alone would lack what these have in common."""
    return texts_by_id([*comparison.changes, *comparison.only_before, *comparison.only_after])


def _columns(texts: Mapping[int, str]) -> list[Column]:
    return [
        Column("point", lambda one: texts[id(one)], left=True),
        Column("before", lambda one: units.format_seconds(one.before_s)),
        Column("after", lambda one: units.format_seconds(one.after_s)),
        Column("change", lambda one: signed_percent(one.ratio.value - 1)),
        Column("interval", lambda one: interval_text(one.ratio, lambda end: signed_percent(end - 1))),
        Column("adjusted p", lambda one: _p_text(one.adjusted_p_value), optional=True),
        Column("launches", lambda one: f"{one.launches_before}, {one.launches_after}"),
        Column("verdict", lambda one: one.verdict, left=True),
    ]


def _p_text(p: float | None) -> str:
    return "" if p is None else f"{p:.2g}"


def _print_table(comparison: RunComparison) -> None:
    changes, texts = _ordered(comparison), _texts(comparison)
    print_table(Table("", _columns(texts), changes))
    print_line()
    print_line(f"before    {comparison.before}")
    print_line(f"after     {comparison.after}")
    print_line(f"result    {summary(comparison)}")
    for what, points in (("before", comparison.only_before), ("after", comparison.only_after)):
        if points:
            print_line(f"only {what:<6} {listed_briefly([texts[id(one)] for one in points])}")
    for one in comparison.differences[:_MOST_DIFFERENCES]:
        print_line(f"differs   {difference_text(one)}")
    if (more := len(comparison.differences) - _MOST_DIFFERENCES) > 0:
        print_line(f"differs   in {counted(more, 'other thing')}; --json lists all")


def difference_text(one: Difference) -> str:
    """`version: 5.0.1 -> 5.0.2`."""
    return "{}: {} -> {}".format(one.what, *one.shortened())


def _markdown(comparison: RunComparison) -> str:
    """The changed and the inconclusive points as a table; the others only in the summary."""
    changes = [one for one in _ordered(comparison) if one.verdict != SAME]
    sides = markdown_text(f"{comparison.before} -> {comparison.after}")
    lines = [f"**{sides}**: {summary(comparison)}", ""]
    if changes:
        lines += [*markdown_table(Table("", _columns(_texts(comparison)), changes)), ""]
    lines += [f"- differs: {markdown_text(difference_text(one))}" for one in comparison.differences]
    for what, points in (("before", comparison.only_before), ("after", comparison.only_after)):
        if points:
            lines.append(f"- {counted(len(points), 'point')} only {what}")
    return "\n".join(lines).rstrip()
