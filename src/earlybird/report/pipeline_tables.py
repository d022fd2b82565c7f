"""The numbers behind the figures of pipelines, and the sizes at which the best method changes, as text."""

from collections.abc import Callable, Sequence

from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import words
from earlybird.report.parts import Table
from earlybird.report.pipelines import BULK, Pipeline, PipelinePoint

BRIEF_SIZES = 4  # per pipeline in the terminal: from the smallest to the largest
BRIEF_SETTINGS, BRIEF_CHANGES = 6, 12

_CAPTION = "Pipelines: time of a buffer in partitions, and the gain over one message"

# Columns that tell what a row was measured with; those that say the same in every row are left out.
_SETTING: dict[str, Callable[[Pipeline], str]] = {
    "MPI": lambda one: one.label,
    "where": lambda one: words.level(one.setting.level),
    "threads": lambda one: str(one.setting.threads) + (" *" if one.oversubscribed else ""),
    "contexts": lambda one: one.setting.contexts(),
    "partitions": lambda one: str(one.setting.partitions),
    "delay": lambda one: one.setting.late(),
}
_ALWAYS = ("MPI", "where", "partitions", "delay")


def pipelines_table(found: Sequence[Pipeline]) -> Table:
    """A row per size and method; the gain over one message and what equation (4) says."""
    names = _telling(found, _ALWAYS)
    modelled = any(point.fitted_s for one in found for point in one.points)
    rows = []
    for one in found:
        setting = [_SETTING[name](one) for name in names]
        for point in one.points:
            for method in [method for method in one.methods() if method in point.time_s]:
                rows.append(
                    [*setting, *_cells(point, method), *([_fitted(point, method)] if modelled else [])]
                )
    header = [*names, "size", "sent as", "time", "launches", "gain", "gain of launches", "equation (4)"]
    return Table(_CAPTION + _star(found), header + (["fitted model"] if modelled else []), rows)


def brief_pipelines_table(found: Sequence[Pipeline]) -> Table:
    """Of few sizes of the first pipelines, one message and the best method."""
    names = _telling(found, ())
    rows = []
    for one in found[:BRIEF_SETTINGS]:
        setting, best = [_SETTING[name](one) for name in names], one.best_methods()
        rows += [[*setting, *_brief_cells(one.points[k], best[k])] for k in _few(len(one.points))]
    caption = _CAPTION + _star(found) + _more(len(found) - BRIEF_SETTINGS, "more setting")
    return Table(caption, [*names, "size", "in one", "fastest", "time", "gain", "eq. (4)"], rows)


def _brief_cells(point: PipelinePoint, method: str) -> list[str]:
    gain, theory = point.gain.get(method), point.gain_theory
    return [
        format_bytes(point.size_bytes),
        format_seconds(point.time_s[BULK][0]) if BULK in point.time_s else "-",
        words.method(method) if method else "-",
        format_seconds(point.time_s[method][0]) if method in point.time_s else "-",
        f"{gain[0]:.2f}" if gain else "-",
        f"{theory:.2f}" if theory is not None else "-",
    ]


def _few(count: int) -> list[int]:
    """Of `count` sizes, from the first to the last."""
    return sorted({round((count - 1) * j / (BRIEF_SIZES - 1)) for j in range(BRIEF_SIZES)})


def _cells(point: PipelinePoint, method: str) -> list[str]:
    time_s, low_s, high_s = point.time_s[method]
    gain = point.gain.get(method)
    return [
        format_bytes(point.size_bytes),
        words.method(method),
        format_seconds(time_s),
        f"{format_seconds(low_s)} to {format_seconds(high_s)}",
        f"{gain[0]:.2f}" if gain else "-",
        f"{gain[1]:.2f} to {gain[2]:.2f}" if gain else "-",
        f"{point.gain_theory:.2f}" if gain and point.gain_theory is not None else "-",
    ]


def _fitted(point: PipelinePoint, method: str) -> str:
    if method not in point.fitted_s:
        return "-"
    fitted_s = point.fitted_s[method]
    return f"{format_seconds(fitted_s)} ({words.signed_percent(fitted_s / point.time_s[method][0] - 1)})"


def crossovers_table(found: Sequence[Pipeline]) -> Table:
    """The best method of small buffers of every pipeline, and a row for each size at which it changes."""
    names = _telling(found, ())
    rows = []
    for one in found:
        if len(one.points) < 2 or len(one.methods()) < 2:
            continue
        setting = [_SETTING[name](one) for name in names]
        smallest, largest = (format_bytes(one.points[k].size_bytes) for k in (0, -1))
        changes = one.crossovers()
        if not changes:
            rows.append(
                [*setting, words.method(one.best_methods()[0]), "at every size", f"{smallest} to {largest}"]
            )
        for change in changes:
            low, high = map(format_bytes, change.between)
            after = f"{about(change.size_bytes)}: {words.method(change.after)}"
            rows.append([*setting, words.method(change.before), after, f"{low} to {high}"])
    return Table(
        f"Where the fastest method changes{_star(found)}",
        [*names, "fastest", "until", "seen between"],
        rows,
        wide=True,
    )


def brief_crossovers_table(found: Sequence[Pipeline]) -> Table:
    """The first rows."""
    table = crossovers_table(found)
    left = len(table.rows) - BRIEF_CHANGES
    return Table(table.caption + _more(left, "more row"), table.header, table.rows[:BRIEF_CHANGES])


def _star(found: Sequence[Pipeline]) -> str:
    return " (*: more threads than cores)" if any(one.oversubscribed for one in found) else ""


def _more(left: int, noun: str) -> str:
    return f"; {words.counted(left, noun)} on the page" if left > 0 else ""


def about(size_bytes: float) -> str:
    """Two digits: an interpolated size is no better known."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit:
            return f"{float(f'{size_bytes / unit:.2g}'):g} {name}"
    return f"{float(f'{size_bytes:.2g}'):g} B"


def _telling(found: Sequence[Pipeline], always: Sequence[str]) -> list[str]:
    """The columns in which pipelines differ, and those shown `always`."""
    return [
        name for name, value in _SETTING.items() if name in always or len({value(one) for one in found}) > 1
    ]
