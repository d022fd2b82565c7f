"""Prints what changed parameters and other numbers of nodes mean for an exchange."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data.exchange_models import with_reason
from earlybird.data.levels import LEVELS
from earlybird.data.node_counts import NodeCount, NodeCounts
from earlybird.data.tolerance import Sensitivity, Tolerance
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.what_if.answer import node_counts_sentence, tolerance_sentence
from earlybird.present.subjects.what_if.tables import node_counts_table, sensitivities_table, tolerance_table


def print_sensitivities(
    rows: Sequence[Sensitivity], model: str, format: str, options: Mapping[str, Any]
) -> None:
    """Print how much each parameter matters; as CSV, a row for each, as JSON with the `options` given."""
    records = [vars(row) for row in rows]
    if not print_data(format, {"model": model, **options, "sensitivities": records}, records):
        print_table(sensitivities_table(rows))
        named = with_reason(model, options)
        print_line(f"slowest rank: longer by {named} if the parameter makes communication 1 % slower")


def print_tolerance(tolerance: Tolerance, format: str) -> None:
    """Print how much of each parameter an exchange tolerates; as CSV, its time against them."""
    points = [
        {"level": curve.level, "parameter": curve.parameter, "factor": factor, "value": factor * curve.value,
         "time_s": time_s}
        for curve in tolerance.curves
        for factor, time_s in zip(curve.factors, curve.time_s, strict=True)
    ]  # fmt: skip
    if not print_data(format, tolerance.to_json(), points):
        print_table(tolerance_table(tolerance))
        print_line(tolerance_sentence(tolerance))


def print_node_counts(counts: NodeCounts, format: str) -> None:
    """Print the slowest rank's time and the volume of each level for every number of nodes."""
    for sentence in counts.notes:
        note(f"warning: {sentence}")
    if not print_data(format, counts.to_json(), map(_row, counts.counts)):
        print_table(node_counts_table(counts))
        print_line(node_counts_sentence(counts))
        note("shares of levels are of the volume")


def _row(count: NodeCount) -> dict[str, Any]:
    overlap = {} if count.overlap_s is None else {"overlap_s": count.overlap_s}
    return {
        "nodes": count.nodes, "layout": count.layout, "time_s": count.time_s.value,
        "time_low_s": count.time_s.low, "time_high_s": count.time_s.high,
        "slowest_rank": count.slowest_rank, "intra_node_s": count.intra_node_s,
        "inter_node_s": count.inter_node_s, **overlap,
        **{f"{level}_bytes": count.level_bytes.get(level, 0) for level in LEVELS},
    }  # fmt: skip
