"""Tables of motifs: time, speed-up, throughput and parts of the time of every style, and scaling."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.compare.motifs import PARTS, Scaling
from earlybird.data import labels
from earlybird.data.methods import FUNNELLED
from earlybird.data.units import format_bandwidth, format_seconds
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.parts import grouped
from earlybird.present.core.points import Point, rows_of
from earlybird.present.core.table import Columns, Table, table_of
from earlybird.present.core.text import star
from earlybird.present.subjects.motifs.view import WEAK, Motif, ScalingOf, Setting, scalings

_Row = tuple[Motif, Point, str]
_Text = Callable[[Setting, Mapping[str, Any]], str]
_MAX_ROWS, _MAX_BRIEF = 60, 24
_WHERE = "in `earlybird show RUN`"


def motifs_table(measured: Sequence[Motif]) -> Table:
    """Without settings that are the same in all rows. With more rows, the page would be larger than 2 MB."""
    rows = rows_of(measured)
    always = {name: _SETTING[name] for name in _ALWAYS}
    shown = always | _varying(_SETTING, rows)
    columns = {name: text for name, text in _SETTING.items() if name in shown} | _RESULTS
    return table_of(_caption(measured), rows, columns).first(_MAX_ROWS, where=_WHERE)


def brief_motifs_table(measured: Sequence[Motif]) -> Table:
    """Without intervals; the settings that differ between rows, apart from ranks and cells, in one column. If
    there are many rows, those of the largest grids come first."""
    rows = rows_of(measured)
    if len(rows) > _MAX_BRIEF:
        rows.sort(key=lambda row: row[1] is not row[0].points[-1])
    columns = dict(_BRIEF_SETTING)
    if len({one.label for one in measured}) > 1:
        columns |= {"MPI": _SETTING["MPI"]}
    columns |= _in_one(_needed(_BRIEF_TEXTS, rows, _point_of))
    return table_of(_caption(measured), rows, columns | _BRIEF_RESULTS).first(_MAX_BRIEF)


def _varying(columns: Columns, rows: Sequence[Any]) -> dict[str, Callable[[Any], str]]:
    return {name: text for name, text in columns.items() if len({text(row) for row in rows}) > 1}


def _needed(
    texts: Mapping[str, _Text], rows: Sequence[Any], place: Callable[[Any], tuple[Setting, Mapping[str, Any]]]
) -> dict[str, Callable[[Any], str]]:
    """As `_varying`, without what always follows from the motif, its ranks and its threads."""

    def on_its_own(row: Any) -> tuple:
        setting, _ = place(row)
        return setting.motif, setting.ranks, setting.threads

    columns = {name: lambda row, text=text: text(*place(row)) for name, text in texts.items()}
    found = _varying(columns, rows)
    for name in _FOLLOWING & found.keys():
        if all(len({found[name](row) for row in same}) == 1 for same in grouped(rows, on_its_own).values()):
            del found[name]
    return found


def _in_one(columns: Columns) -> dict[str, Callable[[Any], str]]:
    """One column of the texts of all, if there are any."""
    if not columns:
        return {}
    return {"setting": lambda row: ", ".join(filter(None, (text(row) for text in columns.values())))}


def scaling_tables(measured: Sequence[Motif]) -> list[Table]:
    """How times scale with the ranks, if several numbers were measured."""
    rows = _scaling_rows(measured)
    columns = {name: _SCALING[name] for name in ("motif", "MPI", "scaling", "cells")}
    columns |= _needed(_without(_TEXTS, _SCALING), rows, _scaled_of) | _SCALING
    return _scaling_tables(rows, columns, _MAX_ROWS, _WHERE)


def brief_scaling_tables(measured: Sequence[Motif]) -> list[Table]:
    """With the other settings that differ between rows in one column."""
    rows = _scaling_rows(measured)
    columns = {name: _SCALING[name] for name in ("motif", "MPI", "cells", "computation", "threads")}
    columns |= _in_one(_needed(_without(_BRIEF_TEXTS, _SCALING), rows, _scaled_of))
    columns |= {name: _SCALING[name] for name in ("method", "ranks", "time", "efficiency")}
    return _scaling_tables(rows, columns, _MAX_BRIEF, "on the page")


def _scaling_rows(measured: Sequence[Motif]) -> list["_ScalingRow"]:
    return [
        (one, scaled) for one in scalings(measured) for method in one.methods() for scaled in one.of(method)
    ]


def _scaling_tables(rows: Sequence["_ScalingRow"], columns: Columns, count: int, where: str) -> list[Table]:
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
    return ratio_text(gain.value) if gain else "-"


def _point_of(row: _Row) -> tuple[Setting, Mapping[str, Any]]:
    return row[0].setting, row[1].config


def _scaled_of(row: "_ScalingRow") -> tuple[Setting, Mapping[str, Any]]:
    """With the ranks of the row, not the fewest."""
    config = row[1].result.config
    return replace(row[0].first.setting, ranks=config["ranks"]), config


def _of_point(text: _Text) -> Callable[[_Row], str]:
    return lambda row: text(*_point_of(row))


def _without(texts: Mapping[str, _Text], others: Columns) -> dict[str, _Text]:
    return {name: text for name, text in texts.items() if name not in others}


# What may differ between points, in columns of their own, and as parts of a text.
_TEXTS: dict[str, _Text] = {
    "scaling": lambda setting, _: setting.scaling,
    "mapped by": lambda setting, _: setting.map_by,
    "grid": lambda _, config: config["process_grid"],
    "variables": lambda setting, _: str(setting.variables),
    "stencil": lambda setting, _: str(setting.stencil or "-"),
    "periodic": lambda setting, _: setting.periodic or "-",
    "buffers": lambda setting, _: setting.buffers or "-",
    "planes per block": lambda _, config: str(config.get("planes_per_block", "-")),
    "partitions": lambda _, config: str(config["partitions"]),
    "computation": lambda setting, _: format_seconds(setting.compute_s),
    "noise": lambda setting, _: setting.noise_text(),
}
# Often others for other motifs, ranks or threads.
_FOLLOWING = {"grid", "variables", "planes per block", "partitions"}
_BRIEF_TEXTS: dict[str, _Text] = _TEXTS | {
    "grid": lambda _, config: f"grid {config['process_grid']}",
    "variables": lambda setting, _: labels.counted(setting.variables, "variable"),
    "stencil": lambda setting, _: f"{setting.stencil} points" if setting.stencil else "",
    "periodic": lambda setting, _: "periodic" if setting.periodic == "yes" else "",
    "buffers": lambda setting, _: "derived" if setting.buffers == "derived" else "",
    "planes per block": lambda _, config: _planes(config),
    "partitions": lambda _, config: labels.counted(config["partitions"], "partition"),
    "noise": lambda setting, _: setting.noise_text() if setting.noise_share else "",
}


def _planes(config: Mapping[str, Any]) -> str:
    planes = config.get("planes_per_block")
    return f"{labels.counted(planes, 'plane')} per block" if planes else ""


_SETTING: dict[str, Callable[[_Row], str]] = {
    "motif": lambda row: row[0].name,
    "MPI": lambda row: row[0].label,
    "scaling": _of_point(_TEXTS["scaling"]),
    "ranks": lambda row: str(row[0].setting.ranks),
    "mapped by": _of_point(_TEXTS["mapped by"]),
    "grid": _of_point(_TEXTS["grid"]),
    "cells": lambda row: row[1].config["cells"],
    "threads": lambda row: str(row[0].setting.threads) + _crowded(row),
    **{
        name: _of_point(text) for name, text in _TEXTS.items() if name not in ("scaling", "mapped by", "grid")
    },
}
_ALWAYS = ("motif", "MPI", "ranks", "cells", "threads")
_RESULTS: dict[str, Callable[[_Row], str]] = {
    "method": lambda row: labels.method(row[2]),
    "time": lambda row: with_interval(row[1].time_s[row[2]], format_seconds),
    "speed-up": lambda row: with_interval(row[1].speed_up.get(row[2]), ratio_text),
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
    "cells": lambda row: row[0].cells + " each" * (row[0].first.setting.scaling == WEAK),
    "computation": lambda row: format_seconds(row[0].first.setting.compute_s),
    "threads": lambda row: str(row[0].first.setting.threads) + "*" * row[1].result.oversubscribed,
    "method": lambda row: row[1].result.method,
    "ranks": lambda row: str(row[1].result.config["ranks"]),
    "time": lambda row: format_seconds(row[1].result.time_s.value),
    "speed-up": lambda row: "-" if row[1].speed_up is None else ratio_text(row[1].speed_up),
    "efficiency": lambda row: "-" if row[1].efficiency is None else labels.percent(row[1].efficiency),
}
