"""Tables of partitioned communication: every metric of every method and MPI."""

from collections.abc import Callable, Sequence

from earlybird.compare.partitioned import AVAILABILITY, BANDWIDTH, DELIVERED, EARLY_BIRD, OVERHEAD
from earlybird.data import labels
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.points import Point, rows_of
from earlybird.present.core.table import Table, table_of
from earlybird.present.core.text import star
from earlybird.present.subjects.partitioned.view import Metrics, metric

_Row = tuple[Metrics, Point, str]
_BRIEF = (
    "MPI",
    "size",
    "partitions",
    "noise",
    "method",
    "overhead",
    "perceived",
    "availability",
    "delivered",
)
_MAX_ROWS, _MAX_BRIEF = 96, 24


def partitioned_table(measured: Sequence[Metrics]) -> Table:
    """With more rows, the page would be larger than 2 MB."""
    whole = table_of(_caption(measured), _rows(measured), _COLUMNS)
    return whole.first(_MAX_ROWS, where="in `earlybird show RUN`")


def brief_partitioned_table(measured: Sequence[Metrics]) -> Table:
    """Without intervals, with the methods as options name them."""
    return table_of(_caption(measured), _rows(measured), _BRIEF_COLUMNS).first(_MAX_BRIEF)


def _caption(measured: Sequence[Metrics]) -> str:
    return f"Metrics of partitioned communication{star(any(one.oversubscribed for one in measured))}"


def _rows(measured: Sequence[Metrics]) -> list[_Row]:
    """By setting and size, then method, then MPI: the MPIs of one method are next to each other."""

    def order(row: _Row) -> tuple:
        one, point, method = row
        return *vars(one.setting).values(), point.size_bytes, labels.method_order(method), one.label

    return sorted(rows_of(measured), key=order)


def _of(name: str, text: Callable[[float], str]) -> Callable[[_Row], str]:
    return lambda row: with_interval(metric(row[1].results[row[2]], name), text)


def _value(name: str, text: Callable[[float], str]) -> Callable[[_Row], str]:
    def cell(row: _Row) -> str:
        estimate = metric(row[1].results[row[2]], name)
        return "-" if estimate is None else text(estimate.value)

    return cell


_COLUMNS: dict[str, Callable[[_Row], str]] = {
    "MPI": lambda row: row[0].label,
    "level": lambda row: labels.level(row[0].setting.level),
    "size": lambda row: format_bytes(row[1].size_bytes),
    "partitions": lambda row: str(row[0].setting.partitions),
    "threads": lambda row: str(row[0].setting.threads) + "*" * row[1].results[row[2]].oversubscribed,
    "computation": lambda row: format_seconds(row[0].setting.compute_s),
    "noise": lambda row: row[0].setting.noise_text(),
    "cache": lambda row: row[0].setting.cache,
    "method": lambda row: labels.method(row[2]),
    "overhead": _of(OVERHEAD, ratio_text),
    "perceived": _of(BANDWIDTH, format_bandwidth),
    "availability": _of(AVAILABILITY, labels.percent),
    "early-bird": _of(EARLY_BIRD, labels.percent),
    "delivered": _of(DELIVERED, labels.percent),
    "launches": lambda row: str(row[1].results[row[2]].launches),
}
_BRIEF_COLUMNS: dict[str, Callable[[_Row], str]] = {
    "MPI": _COLUMNS["MPI"],
    "size": lambda row: f"{format_bytes(row[1].size_bytes)} in {row[0].setting.partitions}",
    "noise": _COLUMNS["noise"],
    "method": lambda row: row[2] + "*" * row[1].results[row[2]].oversubscribed,
    "overhead": _value(OVERHEAD, ratio_text),
    "perceived": _value(BANDWIDTH, format_bandwidth),
    "availability": _value(AVAILABILITY, labels.percent),
    "delivered": _value(DELIVERED, labels.percent),
}
