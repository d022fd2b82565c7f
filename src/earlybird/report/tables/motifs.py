"""Tables of motifs: time, speed-up, throughput and parts of the time of every style, and scaling."""

from collections.abc import Callable, Sequence

from earlybird.compare.motifs import PARTS, Scaling
from earlybird.data import labels
from earlybird.data.methods import FUNNELLED
from earlybird.data.units import format_bandwidth, format_seconds
from earlybird.report.parts import Columns, Table, table_of
from earlybird.report.texts import ratio, star, value_and_spread
from earlybird.report.views.motifs import Motif, ScalingOf, scalings
from earlybird.report.views.points import Point, rows_of

_Row = tuple[Motif, Point, str]
_MAX_ROWS, _MAX_BRIEF = 60, 24
_WHERE = "in `earlybird show RUN`"


def motifs_table(measured: Sequence[Motif]) -> Table:
    """Without settings that are the same in all rows. With more rows, the page would be larger than 2 MB."""
    rows = rows_of(measured)
    columns = _varying(_SETTING, rows) | _RESULTS
    return table_of(_caption(measured), rows, columns).first(_MAX_ROWS, where=_WHERE)


def brief_motifs_table(measured: Sequence[Motif]) -> Table:
    """Without intervals; the settings that differ between rows, apart from ranks and cells, in one column. If
    there are many rows, those of the largest grids come first."""
    rows = rows_of(measured)
    if len(rows) > _MAX_BRIEF:
        rows.sort(key=lambda row: row[1] is not row[0].points[-1])
    others = _varying(_OTHERS, rows)
    columns = dict(_BRIEF_SETTING)
    if len({one.label for one in measured}) > 1:
        columns |= {"MPI": _SETTING["MPI"]}
    if others:
        columns |= {"setting": lambda row: ", ".join(filter(None, (text(row) for text in others.values())))}
    return table_of(_caption(measured), rows, columns | _BRIEF_RESULTS).first(_MAX_BRIEF)


def _varying(columns: dict[str, Callable[[_Row], str]], rows: Sequence[_Row]) -> dict[str, Callable]:
    return {
        name: text
        for name, text in columns.items()
        if name in _ALWAYS or len({text(row) for row in rows}) > 1
    }


def scaling_tables(measured: Sequence[Motif]) -> list[Table]:
    """How times scale with the ranks, if several numbers were measured."""
    return _scaling_tables(measured, _SCALING, _MAX_ROWS, _WHERE)


def brief_scaling_tables(measured: Sequence[Motif]) -> list[Table]:
    names = ("motif", "MPI", "cells", "computation", "threads", "method", "ranks", "time", "efficiency")
    return _scaling_tables(measured, {name: _SCALING[name] for name in names}, _MAX_BRIEF, "on the page")


def _scaling_tables(measured: Sequence[Motif], columns: Columns, count: int, where: str) -> list[Table]:
    rows = [
        (one, scaled) for one in scalings(measured) for method in one.methods() for scaled in one.of(method)
    ]
    caption = "Scaling: ratios of medians, because launches of different ranks are not paired"
    caption += star(any(scaled.result.oversubscribed for _, scaled in rows))
    return [table_of(caption, rows, columns).first(count, where=where)] if rows else []


def _caption(measured: Sequence[Motif]) -> str:
    crowded = star(any(one.oversubscribed for one in measured))
    return f"Motifs: time of an iteration, and speed-up over {labels.method(FUNNELLED)}{crowded}"


def _crowded(row: _Row) -> str:
    return "*" * row[1].results[row[2]].oversubscribed


def _part(name: str) -> Callable[[_Row], str]:
    def cell(row: _Row) -> str:
        value = row[1].results[row[2]].figures.get(name)
        return "-" if value is None else format_seconds(value)

    return cell


def _sent(row: _Row) -> str:
    rate = row[1].results[row[2]].figures.get("throughput_bytes_per_s")
    return format_bandwidth(rate) if rate else "-"


def _speed_up(row: _Row) -> str:
    gain = row[1].speed_up.get(row[2])
    return ratio(gain.value) if gain else "-"


_SETTING: dict[str, Callable[[_Row], str]] = {
    "motif": lambda row: row[0].name,
    "MPI": lambda row: row[0].label,
    "scaling": lambda row: row[0].setting.scaling,
    "ranks": lambda row: str(row[0].setting.ranks),
    "mapped by": lambda row: row[0].setting.map_by,
    "grid": lambda row: row[1].config["process_grid"],
    "cells": lambda row: row[1].config["cells"],
    "variables": lambda row: str(row[0].setting.variables),
    "stencil": lambda row: str(row[0].setting.stencil or "-"),
    "periodic": lambda row: row[0].setting.periodic or "-",
    "buffers": lambda row: row[0].setting.buffers or "-",
    "threads": lambda row: str(row[0].setting.threads) + _crowded(row),
    "partitions": lambda row: str(row[1].config["partitions"]),
    "computation": lambda row: format_seconds(row[0].setting.compute_s),
    "noise": lambda row: row[0].setting.noise_text(),
}
_ALWAYS = ("motif", "MPI", "ranks", "cells", "threads")
_RESULTS: dict[str, Callable[[_Row], str]] = {
    "method": lambda row: labels.method(row[2]),
    "time": lambda row: value_and_spread(row[1].time_s[row[2]], format_seconds),
    "speed-up": lambda row: value_and_spread(row[1].speed_up.get(row[2]), ratio),
    "sent": _sent,
    "computing": _part(PARTS[0]),
    "communicating": _part(PARTS[1]),
    "waiting": _part(PARTS[2]),
    "launches": lambda row: str(row[1].results[row[2]].launches),
}
_BRIEF_SETTING: dict[str, Callable[[_Row], str]] = {
    "motif": _SETTING["motif"],
    "ranks": lambda row: f"{row[0].setting.ranks} x {row[0].setting.threads}{_crowded(row)}",
    "cells": _SETTING["cells"],
}
_OTHERS: dict[str, Callable[[_Row], str]] = {
    "scaling": _SETTING["scaling"],
    "mapped by": _SETTING["mapped by"],
    "stencil": lambda row: f"{row[0].setting.stencil} points" if row[0].setting.stencil else "",
    "periodic": lambda row: "periodic" if row[0].setting.periodic == "yes" else "",
    "buffers": lambda row: "derived" if row[0].setting.buffers == "derived" else "",
    "computation": _SETTING["computation"],
    "noise": lambda row: row[0].setting.noise_text() if row[0].setting.noise_share else "",
}
_BRIEF_RESULTS: dict[str, Callable[[_Row], str]] = {
    "method": lambda row: row[2],
    "time": lambda row: format_seconds(row[1].time_s[row[2]].value),
    "speed-up": _speed_up,
    "waiting": _part(PARTS[2]),
}

_ScalingRow = tuple[ScalingOf, Scaling]
_SCALING: dict[str, Callable[[_ScalingRow], str]] = {
    "motif": lambda row: row[0].first.name,
    "MPI": lambda row: row[0].first.label,
    "scaling": lambda row: row[0].first.setting.scaling,
    "cells": lambda row: row[0].cells_text().replace(" cells", ""),
    "computation": lambda row: format_seconds(row[0].first.setting.compute_s),
    "threads": lambda row: str(row[0].first.setting.threads) + "*" * row[1].result.oversubscribed,
    "method": lambda row: row[1].result.method,
    "ranks": lambda row: str(row[1].result.config["ranks"]),
    "time": lambda row: format_seconds(row[1].result.time_s.value),
    "speed-up": lambda row: "-" if row[1].speed_up is None else ratio(row[1].speed_up),
    "efficiency": lambda row: "-" if row[1].efficiency is None else labels.percent(row[1].efficiency),
}
