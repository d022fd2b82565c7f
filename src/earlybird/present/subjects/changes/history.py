"""Prints a history of runs: its changes as a table, all values as CSV for other tools."""

from typing import Any

from earlybird.data.history import History, Series, SeriesChange
from earlybird.data.labels import counted, signed_percent
from earlybird.data.points import texts_by_id
from earlybird.present.core.table import text_table
from earlybird.present.render.data import print_csv, print_json
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.changes.terminal import difference_text

_MOST_DIFFERENCES = 5


def print_history(history: History, format: str) -> None:
    """In one of the formats of `earlybird history`."""
    if format == "json":
        print_json(history.to_json())
    elif format == "csv":
        print_csv([_row(history, one, change) for one, change in history.changes()], _HEADER)
    elif format == "otava":
        print_csv(_otava_rows(history))
    else:
        _print_table(history)


_HEADER = ("kernel", "quantity", "method", "config", "kind", "first", "last", "ratio", "p_value")


def _row(history: History, one: Series, change: SeriesChange) -> dict[str, Any]:
    return change.to_json() | {
        "kernel": one.kernel,
        "quantity": one.quantity,
        "method": one.method,
        "config": " ".join(f"{name}={value}" for name, value in one.config.items()),
        "first": history.runs[change.first].started,
        "last": history.runs[change.last].started,
    }


def _otava_rows(history: History) -> list[dict[str, Any]]:
    """A row for each run, a column for each point, in seconds."""
    names = texts_by_id(history.series)
    return [
        {"time": run.started, "run": run.name}
        | {name: one.time_s[k] or None for name, one in zip(names.values(), history.series, strict=True)}
        for k, run in enumerate(history.runs)
    ]


def _print_table(history: History) -> None:
    found, names = history.changes(), texts_by_id(history.series)
    runs = history.runs
    print_line(
        f"{counted(len(runs), 'run')} from {_day(runs[0].started)} to {_day(runs[-1].started)}, "
        f"{counted(len(history.series), 'point')}: {counted(len(found), 'change')}"
    )
    if not found:
        return
    print_line()
    rows = [
        [
            _day(runs[change.first].started),
            _day(runs[change.last].started) if change.last != change.first else "",
            change.kind, signed_percent(change.ratio - 1), names[id(one)], runs[change.first].name,
        ]
        for one, change in found
    ]  # fmt: skip
    header = ["from", "until", "kind", "change", "point", "run"]
    print_table(text_table("", header, rows, left=["kind", "point", "run"]))
    for first in sorted({change.first for _, change in found}):
        different = history.differences.get(str(first), ())
        for one in different[:_MOST_DIFFERENCES]:
            print_line(f"differs   from {_day(runs[first].started)}: {difference_text(one)}")
        if (more := len(different) - _MOST_DIFFERENCES) > 0:
            print_line(f"differs   in {counted(more, 'other thing')}; --json lists all")


def _day(started: str) -> str:
    return started[:16].replace("T", " ")
