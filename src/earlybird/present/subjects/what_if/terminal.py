"""Prints what changed parameters and other numbers of nodes mean for an exchange."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.layout import LEVELS
from earlybird.data.node_counts import NodeCount, NodeCounts
from earlybird.data.tolerance import Sensitivity, Tolerance, growth_text
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import interval_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table


def print_sensitivities(
    rows: Sequence[Sensitivity], model: str, format: str, options: Mapping[str, Any]
) -> None:
    """Print how much each parameter matters; as CSV, a row for each, as JSON with the `options` given."""
    records = [vars(row) | {"value": row.value} for row in rows]
    if print_data(format, {"model": model, **options, "sensitivities": records}, records):
        return
    columns = [
        Column("level", lambda row: row.level, common=True, left=True),
        Column("protocol", lambda row: row.protocol, common=True, left=True),
        Column("parameter", lambda row: row.parameter, left=True),
        Column("slowest rank", lambda row: f"{row.value:+.2f} %"),
    ]
    print_table(Table("", columns, rows))
    print_line(f"slowest rank: longer by {model} if the parameter makes communication 1 % slower")


def print_tolerance(found: Tolerance, format: str) -> None:
    """Print how much of each parameter an exchange tolerates; as CSV, its time against them."""
    points = [
        {"level": curve.level, "parameter": curve.parameter, "factor": factor, "value": factor * curve.value,
         "time_s": time_s}
        for curve in found.curves
        for factor, time_s in zip(curve.factors, curve.time_s, strict=True)
    ]  # fmt: skip
    if print_data(format, found.to_json(), points):
        return
    columns = [
        Column("level", lambda curve: labels.level(curve.level), common=True, left=True),
        Column("parameter", lambda curve: curve.parameter, left=True),
        Column("now", lambda curve: curve.value_text()),
        *(_tolerated_column(growth) for growth in found.growths),
    ]
    print_table(Table("", columns, found.curves))
    print_line(f"slowest rank: {format_seconds(found.time_s)} by {found.model}")


def _tolerated_column(growth: float) -> Column:
    return Column(f"{growth_text(growth)} longer at", lambda curve: curve.tolerated_text(growth))


def print_node_counts(found: NodeCounts, format: str) -> None:
    """Print the slowest rank's time and the volume of each level for every number of nodes."""
    for sentence in found.notes:
        note(f"warning: {sentence}")
    rows = [
        {"nodes": one.nodes, "layout": one.layout, "time_s": one.time_s.value, "time_low_s": one.time_s.low,
         "time_high_s": one.time_s.high, "slowest_rank": one.slowest_rank,
         "intra_node_s": one.intra_node_s, "inter_node_s": one.inter_node_s,
         **({} if one.overlap_s is None else {"overlap_s": one.overlap_s}),
         **{f"{level}_bytes": one.level_bytes.get(level, 0) for level in LEVELS}}
        for one in found.counts
    ]  # fmt: skip
    if print_data(format, found.to_json(), rows):
        return

    def share_column(level: str) -> Column:
        return Column(labels.level(level), lambda one: f"{100 * one.share(level):.1f} %")

    columns: list[Column] = [
        Column("nodes", lambda one: one.nodes),
        Column("ranks each", lambda one: found.ranks // one.nodes),
        Column("time", lambda one: format_seconds(one.time_s.value)),
        Column("interval", lambda one: interval_text(one.time_s, format_seconds), optional=True),
        Column("slowest rank", lambda one: one.slowest_rank),
        *map(share_column, LEVELS),
        Column("volume between nodes", _between_nodes),
    ]
    print_table(Table("", columns, found.counts))
    note(f"{found.model}: the time of the slowest of {found.ranks} ranks; shares are of the volume")


def _between_nodes(one: NodeCount) -> str:
    return format_bytes(one.inter_node_bytes)
