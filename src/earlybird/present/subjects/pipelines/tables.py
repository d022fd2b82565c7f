"""Tables of pipelines: times, speed-ups, and the sizes at which the best method changes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from earlybird.data import labels
from earlybird.data.methods import SINGLE
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import crossovers
from earlybird.present.core import points as views
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.parts import few
from earlybird.present.core.points import Point
from earlybird.present.core.table import Table, more_text, table_of
from earlybird.present.core.text import star
from earlybird.present.subjects.pipelines.view import Pipeline

BRIEF_SIZES = 4  # per pipeline in the terminal, from the smallest to the largest
BRIEF_SETTINGS, BRIEF_CHANGES = 6, 12

_CAPTION = "Pipelines: time of a buffer in partitions, and speed-up over a single message"
_Row = tuple[Pipeline, Point, str]  # one method at one point

# Columns with the setting of a row; a column with the same text for every pipeline may be omitted.
_SETTING: dict[str, Callable[[Pipeline], str]] = {
    "MPI": lambda pipeline: pipeline.label,
    "level": lambda pipeline: labels.level(pipeline.setting.level),
    "threads": lambda pipeline: str(pipeline.setting.threads) + " *" * pipeline.oversubscribed,
    "contexts": lambda pipeline: pipeline.setting.contexts(),
    "partitions": lambda pipeline: str(pipeline.setting.partitions),
    "delay rate": lambda pipeline: pipeline.setting.late(),
}


def pipelines_table(measured: Sequence[Pipeline]) -> Table:
    """One row per size and method: time, speed-up over a single message, ideal speed-up and fitted model."""
    rows = [
        (pipeline, point, method)
        for pipeline in measured
        for point in pipeline.points
        for method in pipeline.methods()
        if method in point.results
    ]
    columns = _setting_columns(_varying(measured, always=("MPI", "level", "partitions", "delay rate"))) | {
        "size": lambda row: format_bytes(row[1].size_bytes),
        "method": lambda row: labels.method(row[2]),
        "time": lambda row: with_interval(row[1].time_s[row[2]], format_seconds),
        "speed-up": lambda row: with_interval(row[1].speed_up.get(row[2]), ratio_text),
        "ideal speed-up": lambda row: _theory(row[1]) if row[2] in row[1].speed_up else "-",
    }
    if any(point.fitted_s for _, point, _ in rows):
        columns["fitted model"] = _fitted
    return table_of(_CAPTION + star_of(measured), rows, columns)


def brief_pipelines_table(measured: Sequence[Pipeline]) -> Table:
    """A few sizes of the first pipelines: the time of a single message and of the best method."""
    rows = [
        (pipeline, pipeline.points[k], pipeline.best_methods()[k])
        for pipeline in measured[:BRIEF_SETTINGS]
        for k in few(len(pipeline.points), BRIEF_SIZES)
    ]
    columns = _setting_columns(_varying(measured)) | {
        "size": lambda row: format_bytes(row[1].size_bytes),
        "single": lambda row: _median(row[1].time_s.get(SINGLE), format_seconds),
        "best": lambda row: labels.method(row[2]) if row[2] else "-",
        "time": lambda row: _median(row[1].time_s.get(row[2]), format_seconds),
        "speed-up": lambda row: _median(row[1].speed_up.get(row[2]), ratio_text),
        "ideal": lambda row: _theory(row[1]),
    }
    more = more_text(len(measured) - BRIEF_SETTINGS, "setting")
    return table_of(_CAPTION + star_of(measured) + more, rows, columns)


def _varying(measured: Sequence[Pipeline], always: Sequence[str] = ()) -> list[str]:
    return [
        name
        for name, text in _SETTING.items()
        if name in always or len({text(pipeline) for pipeline in measured}) > 1
    ]


def _setting_columns(names: Sequence[str]) -> dict[str, Callable[[_Row], str]]:
    return {name: lambda row, text=_SETTING[name]: text(row[0]) for name in names}


def _median(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    return text(estimate.value) if estimate else "-"


def _theory(point: Point) -> str:
    return ratio_text(point.ideal_speed_up) if point.ideal_speed_up is not None else "-"


def _fitted(row: _Row) -> str:
    _, point, method = row
    error = point.fitted_error(method)
    return (
        "-" if error is None else f"{format_seconds(point.fitted_s[method])} ({labels.signed_percent(error)})"
    )


def crossovers_table(measured: Sequence[Pipeline]) -> Table:
    """For every pipeline, the best method of small buffers and a row for each size at which it changes."""
    rows = [
        (
            {name: _SETTING[name](pipeline) for name in _varying(measured)},
            [point.size_bytes for point in pipeline.points],
            pipeline.best_methods()[0],
            views.crossovers(pipeline.points, SINGLE),
        )
        for pipeline in measured
        if len(pipeline.points) > 1 and len(pipeline.methods()) > 1
    ]
    table = crossovers.crossovers_table(f"Crossovers between methods{star_of(measured)}", rows)
    return replace(table, wide=True)


def brief_crossovers_table(measured: Sequence[Pipeline]) -> Table:
    """The first rows, without the sizes between which each change was observed."""
    table = crossovers_table(measured)
    return table.only(lambda column: column.head != crossovers.BETWEEN).first(BRIEF_CHANGES)


def star_of(measured: Sequence[Pipeline]) -> str:
    return star(any(pipeline.oversubscribed for pipeline in measured))
