"""Tables of pipelines: times, speed-ups, and the sizes at which the fastest method changes."""

from collections.abc import Callable, Sequence

from earlybird.data import labels
from earlybird.data.methods import SINGLE
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report.parts import Table, few
from earlybird.report.pipelines import Pipeline, PipelinePoint

BRIEF_SIZES = 4  # per pipeline in the terminal, from the smallest to the largest
BRIEF_SETTINGS, BRIEF_CHANGES = 6, 12

_CAPTION = "Pipelines: time of a buffer in partitions, and speed-up over a single message"

# Columns with the setting of a row; a column with the same value in every row is omitted.
_SETTING: dict[str, Callable[[Pipeline], str]] = {
    "MPI": lambda pipeline: pipeline.label,
    "level": lambda pipeline: labels.level(pipeline.setting.level),
    "threads": lambda pipeline: str(pipeline.setting.threads) + (" *" if pipeline.oversubscribed else ""),
    "contexts": lambda pipeline: pipeline.setting.contexts(),
    "partitions": lambda pipeline: str(pipeline.setting.partitions),
    "delay": lambda pipeline: pipeline.setting.late(),
}
_ALWAYS = ("MPI", "level", "partitions", "delay")


def pipelines_table(measured: Sequence[Pipeline]) -> Table:
    """One row per size and method: time, speed-up over a single message, and equation (4)."""
    names = _varying(measured, _ALWAYS)
    modelled = any(point.fitted_s for pipeline in measured for point in pipeline.points)
    rows = []
    for pipeline in measured:
        setting = [_SETTING[name](pipeline) for name in names]
        for point in pipeline.points:
            for method in [method for method in pipeline.methods() if method in point.time_s]:
                rows.append(
                    [*setting, *_cells(point, method), *([_fitted(point, method)] if modelled else [])]
                )
    header = [
        *names,
        "size",
        "method",
        "time",
        "launches",
        "speed-up",
        "speed-up of launches",
        "equation (4)",
    ]
    return Table(_CAPTION + _star(measured), header + (["fitted model"] if modelled else []), rows)


def brief_pipelines_table(measured: Sequence[Pipeline]) -> Table:
    """A few sizes of the first pipelines: the time of a single message and of the best method."""
    names = _varying(measured, ())
    rows = []
    for pipeline in measured[:BRIEF_SETTINGS]:
        setting, best = [_SETTING[name](pipeline) for name in names], pipeline.best_methods()
        rows += [
            [*setting, *_brief_cells(pipeline.points[k], best[k])]
            for k in few(len(pipeline.points), BRIEF_SIZES)
        ]
    caption = _CAPTION + _star(measured) + _more(len(measured) - BRIEF_SETTINGS, "more setting")
    return Table(caption, [*names, "size", "single", "fastest", "time", "speed-up", "eq. (4)"], rows)


def _brief_cells(point: PipelinePoint, method: str) -> list[str]:
    gain, theory = point.speed_up.get(method), point.ideal_speed_up
    return [
        format_bytes(point.size_bytes),
        format_seconds(point.time_s[SINGLE][0]) if SINGLE in point.time_s else "-",
        labels.method(method) if method else "-",
        format_seconds(point.time_s[method][0]) if method in point.time_s else "-",
        f"{gain[0]:.2f}" if gain else "-",
        f"{theory:.2f}" if theory is not None else "-",
    ]


def _cells(point: PipelinePoint, method: str) -> list[str]:
    time_s, low_s, high_s = point.time_s[method]
    gain = point.speed_up.get(method)
    return [
        format_bytes(point.size_bytes),
        labels.method(method),
        format_seconds(time_s),
        f"{format_seconds(low_s)} to {format_seconds(high_s)}",
        f"{gain[0]:.2f}" if gain else "-",
        f"{gain[1]:.2f} to {gain[2]:.2f}" if gain else "-",
        f"{point.ideal_speed_up:.2f}" if gain and point.ideal_speed_up is not None else "-",
    ]


def _fitted(point: PipelinePoint, method: str) -> str:
    if method not in point.fitted_s:
        return "-"
    fitted_s = point.fitted_s[method]
    return f"{format_seconds(fitted_s)} ({labels.signed_percent(fitted_s / point.time_s[method][0] - 1)})"


def crossovers_table(measured: Sequence[Pipeline]) -> Table:
    """For every pipeline, the best method of small buffers and a row for each size at which it changes."""
    names = _varying(measured, ())
    rows = []
    for pipeline in measured:
        if len(pipeline.points) < 2 or len(pipeline.methods()) < 2:
            continue
        setting = [_SETTING[name](pipeline) for name in names]
        smallest, largest = (format_bytes(pipeline.points[k].size_bytes) for k in (0, -1))
        changes = pipeline.crossovers()
        if not changes:
            rows.append(
                [
                    *setting,
                    labels.method(pipeline.best_methods()[0]),
                    "at every size",
                    f"{smallest} to {largest}",
                ]
            )
        for change in changes:
            low, high = map(format_bytes, change.between)
            after = f"{about(change.size_bytes)}: {labels.method(change.after)}"
            rows.append([*setting, labels.method(change.before), after, f"{low} to {high}"])
    return Table(
        f"Crossovers between methods{_star(measured)}",
        [*names, "fastest", "until", "observed between"],
        rows,
        wide=True,
    )


def brief_crossovers_table(measured: Sequence[Pipeline]) -> Table:
    """The first rows of `crossovers_table`."""
    table = crossovers_table(measured)
    left = len(table.rows) - BRIEF_CHANGES
    return Table(table.caption + _more(left, "more row"), table.header, table.rows[:BRIEF_CHANGES])


def _star(measured: Sequence[Pipeline]) -> str:
    return " (*: more threads than cores)" if any(pipeline.oversubscribed for pipeline in measured) else ""


def _more(num_left: int, noun: str) -> str:
    return f"; {labels.counted(num_left, noun)} on the page" if num_left > 0 else ""


def about(size_bytes: float) -> str:
    """A size with two digits, the precision of an interpolated size."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit:
            return f"{float(f'{size_bytes / unit:.2g}'):g} {name}"
    return f"{float(f'{size_bytes:.2g}'):g} B"


def _varying(measured: Sequence[Pipeline], always: Sequence[str]) -> list[str]:
    """The columns in which pipelines differ, and the columns in `always`."""
    return [
        name
        for name, value in _SETTING.items()
        if name in always or len({value(pipeline) for pipeline in measured}) > 1
    ]
