"""Tables of exchanges: the seconds of each rank, and the error of each model."""

from collections.abc import Sequence

import numpy as np

from earlybird.data import labels
from earlybird.data.layout import LEVELS
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.table import Table, table_of
from earlybird.present.subjects.exchange.view import Exchange

MAX_VOLUMES = 100  # rows in the tables of volumes
MAX_ROWS = 500  # ranks in the table on the page; the slowest ranks are kept


def ranks_table(item: Exchange, limit: int = MAX_ROWS) -> Table:
    _, times = item.reference()
    order = np.arange(len(times)) if len(times) <= limit else np.argsort(-times, kind="stable")[:limit]
    which = f", the {limit} slowest of {len(times)}" if len(times) > limit else ""
    columns = {"rank": str}
    for name, values in [*item.series().items(), ("idle", times.max() - times)]:
        columns[name] = lambda rank, values=values: format_seconds(values[rank])
    return table_of(
        f"Time of each rank, and idle time until the slowest ends{which}: {item.name or item.title}",
        order.tolist(),
        columns,
    )


def error_table(item: Exchange) -> Table:
    caption = "Relative error of each model, best first" + (f": {item.name}" if item.name else "")
    return table_of(
        caption,
        [*item.best_first(), "measured"],
        {
            "model": str,
            "relative error": lambda name: labels.percent(item.error[name]) if name in item.error else "",
            "error of slowest rank": lambda name: (
                labels.signed_percent(item.slowest_error[name]) if name in item.error else ""
            ),
            "time of slowest rank": lambda name: format_seconds(float(item.series()[name].max())),
        },
    )


def traffic_table(items: Sequence[Exchange]) -> Table:
    """The columns of Tables III and IV of Thune et al. 2023 that do not need a measurement."""
    several = len(items) > 1
    columns = {"exchange": lambda item: item.name} if several else {}
    columns |= {
        "layout": lambda item: item.layout,
        "ranks": lambda item: str(item.num_ranks),
        "messages": lambda item: str(item.pattern.num_messages),
        "most messages of a rank": lambda item: str(int(item.traffic.rank_messages.max())),
        "volume": lambda item: format_bytes(item.traffic.total_bytes),
        "most volume of a rank": lambda item: format_bytes(int(item.traffic.rank_bytes.max())),
    }
    for level in LEVELS:
        columns[labels.level(level)] = lambda item, level=level: labels.percent(item.traffic.share(level))
    caption = "Messages and volume received, and the share of the volume at each level"
    return table_of(caption, items, columns, wide=True)


def brief_traffic(table: Table) -> Table:
    """The columns of `traffic_table` that fit the terminal."""
    return table.only(lambda column: not column.head.startswith("most "))


def rank_volumes_table(item: Exchange, limit: int = MAX_VOLUMES) -> Table:
    found = item.traffic
    order = np.argsort(-found.rank_bytes, kind="stable")[:limit]
    which = f", the {limit} with most of {item.num_ranks}" if item.num_ranks > limit else ", largest first"
    columns = {
        "rank": str,
        "node": lambda rank: str(found.nodes[found.node_index[rank]]),
        "messages": lambda rank: str(found.rank_messages[rank]),
        "volume": lambda rank: format_bytes(int(found.rank_bytes[rank])),
    } | _level_columns(found.rank_level_bytes)
    return table_of(f"Volume that each rank receives{which}{_of(item)}", order.tolist(), columns)


def node_volumes_table(item: Exchange, limit: int = MAX_VOLUMES) -> Table:
    found = item.traffic
    rows = range(len(found.nodes))[:limit]
    columns = {"node": lambda k: str(found.nodes[k])} | _level_columns(found.node_bytes)
    which = f", the first {limit} of {len(found.nodes)}" if len(found.nodes) > limit else ""
    return table_of(f"Volume that each node receives{which}{_of(item)}", rows, columns)


def _level_columns(volumes: np.ndarray) -> dict:
    return {
        labels.level(level): lambda k, column=column: format_bytes(int(volumes[k, column]))
        for column, level in enumerate(LEVELS)
    }


def _of(item: Exchange) -> str:
    return f": {item.name}" if item.name else ""
