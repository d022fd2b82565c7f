"""Tables of exchanges: the seconds of each rank, and the error of each model."""

import numpy as np

from earlybird.data import labels
from earlybird.data.units import format_seconds
from earlybird.report.parts import Table, table_of
from earlybird.report.views.exchanges import Exchange

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
