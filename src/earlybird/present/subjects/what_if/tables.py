"""Tables of what matters to an exchange, what it tolerates, and what it takes on other numbers of nodes."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.levels import LEVELS
from earlybird.data.node_counts import NodeCounts
from earlybird.data.tolerance import Sensitivity, Tolerance, growth_text
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import interval_text, percent_text
from earlybird.present.core.table import Column, Table

_LEVEL = Column("level", lambda row: labels.level(row.level), common=True, left=True)
_PARAMETER = Column("parameter", lambda row: row.parameter, left=True)
_SENSITIVITY_COLUMNS = (
    _LEVEL,
    Column("protocol", lambda row: row.protocol, common=True, left=True),
    _PARAMETER,
    Column("slowest rank", lambda row: f"{row.value:+z.2f} %"),
)


def sensitivities_table(rows: Sequence[Sensitivity]) -> Table:
    """Return how much longer the slowest rank takes if a parameter makes communication 1 % slower."""
    return Table("", _SENSITIVITY_COLUMNS, rows)


def tolerance_table(tolerance: Tolerance, name: str = "") -> Table:
    """Return the present value of each parameter, and the value at which the exchange takes longer by each
    growth."""

    def limit_column(growth: float) -> Column:
        return Column(f"{growth_text(growth)} longer at", lambda curve: curve.tolerated_text(growth))

    now = Column("now", lambda curve: curve.value_text())
    columns = [_LEVEL, _PARAMETER, now, *map(limit_column, tolerance.growths)]
    caption = "Latency and bandwidth that the exchange tolerates" + (f": {name}" if name else "")
    return Table(caption, columns, tolerance.curves, wide=True)


def node_counts_table(counts: NodeCounts, name: str = "") -> Table:
    """Return the slowest rank's time on each number of nodes, and the share of the volume at each level."""

    def share_column(level: str) -> Column:
        return Column(labels.level(level), lambda count: percent_text(count.share(level)))

    columns = [
        Column("nodes", lambda count: count.nodes),
        Column("ranks each", lambda count: counts.ranks // count.nodes),
        Column("time", lambda count: format_seconds(count.time_s.value)),
        Column("interval", lambda count: interval_text(count.time_s, format_seconds), optional=True),
        Column("slowest rank", lambda count: count.slowest_rank),
        *map(share_column, LEVELS),
        Column("off-node volume", lambda count: format_bytes(count.inter_node_bytes)),
    ]
    caption = f"The exchange on other numbers of nodes, by the {counts.model} model"
    return Table(caption + (f": {name}" if name else ""), columns, counts.counts, wide=True)
