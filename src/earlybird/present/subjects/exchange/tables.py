"""Tables of exchanges: the times of ranks, the errors of models, and where the volume of a pattern goes."""

from collections.abc import Iterable, Sequence

import numpy as np

from earlybird.data import labels
from earlybird.data.levels import LEVELS
from earlybird.data.prediction import Prediction
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import percent_text
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.exchange.view import Exchange, ModelError

MAX_NODES = 100  # rows in the tables of volumes
MAX_RANKS = 500  # rows in the table of times on the page; the slowest ranks are kept

_ERROR_COLUMNS = (
    Column("model", lambda error: error.model, left=True),
    Column("relative error", lambda error: percent_text(error.relative)),
    Column("error of slowest rank", lambda error: _signed(error.of_slowest)),
    Column("time of slowest rank", lambda error: format_seconds(error.slowest_s)),
)


def ranks_table(exchange: Exchange, limit: int = MAX_RANKS) -> Table:
    """Return the measured and predicted times of ranks; of more than `limit`, the slowest ones."""
    reference_s = exchange.reference()[1]
    ranks, which = slowest_ranks(reference_s, limit)
    columns = {**exchange.series(with_empty=True), **exchange.packing_s}
    columns["idle"] = reference_s.max() - reference_s
    return Table(
        f"Time of each rank, and idle time until the slowest ends{which}: {exchange.name or exchange.title}",
        [_RANK, *(_time_column(name, times_s) for name, times_s in columns.items())],
        ranks,
    )


def parts_table(prediction: Prediction, ranks: Sequence[int]) -> Table:
    """Return the predicted time of each of `ranks`, and its parts."""
    columns = [
        _time_column(name.removesuffix("_s").replace("_", "-"), times_s)
        for name, times_s in prediction.columns().items()
    ]
    return Table("", [_RANK, *columns], ranks)


def slowest_ranks(times_s: np.ndarray, limit: int) -> tuple[list[int], str]:
    """Return all ranks, or the slowest `limit` of them and `, the 8 slowest of 300`."""
    if len(times_s) <= limit:
        return list(range(len(times_s))), ""
    slowest = np.argsort(-times_s, kind="stable")[:limit].tolist()
    return slowest, f", the {limit} slowest of {len(times_s)}"


def errors_table(errors: Iterable[ModelError], name: str = "") -> Table:
    """Return the error of each model, and the time of the slowest rank, also as measured."""
    caption = "Relative error of each model, best first" + (f": {name}" if name else "")
    return Table(caption, _ERROR_COLUMNS, list(errors))


def traffic_table(exchanges: Sequence[Exchange]) -> Table:
    """Return the columns of Tables III and IV of Thune et al. 2023 that do not need a measurement."""
    columns = [
        Column("exchange", lambda exchange: exchange.name, left=True, optional=True),
        Column("layout", lambda exchange: exchange.layout, left=True),
        Column("ranks", lambda exchange: exchange.num_ranks),
        Column("messages", lambda exchange: exchange.pattern.num_messages),
        Column("most messages of a rank", lambda item: int(item.traffic.rank_messages.max()), detail=True),
        Column("volume", lambda exchange: format_bytes(exchange.traffic.total_bytes)),
        Column(
            "most volume of a rank",
            lambda item: format_bytes(int(item.traffic.rank_bytes.max())),
            detail=True,
        ),
        *(_share_column(level) for level in LEVELS),
    ]
    caption = "Messages and volume received, and the share of the volume at each level"
    return Table(caption, columns, exchanges, wide=True)


def levels_table(exchange: Exchange) -> Table:
    """Return the messages and the volume at each level."""
    traffic = exchange.traffic
    columns = [
        Column("level", labels.level, left=True),
        Column("messages", lambda level: traffic.messages[level]),
        Column("volume", lambda level: format_bytes(traffic.bytes[level])),
        Column("share", lambda level: percent_text(traffic.share(level))),
    ]
    return Table(f"Messages and volume at each level{_of(exchange)}", columns, LEVELS)


def rank_volumes_table(exchange: Exchange, limit: int = MAX_NODES) -> Table:
    """Return what each rank receives, the largest volume first."""
    traffic = exchange.traffic
    ranks = np.argsort(-traffic.rank_bytes, kind="stable")[:limit].tolist()
    which = (
        f", the {limit} with most of {exchange.num_ranks}"
        if exchange.num_ranks > limit
        else ", largest first"
    )
    columns = [
        _RANK,
        Column("node", lambda rank: traffic.nodes[traffic.node_index[rank]]),
        Column("messages", lambda rank: traffic.rank_messages[rank]),
        Column("volume", lambda rank: format_bytes(int(traffic.rank_bytes[rank]))),
        *_level_columns(traffic.rank_level_bytes),
    ]
    return Table(f"Volume that each rank receives{which}{_of(exchange)}", columns, ranks)


def node_volumes_table(exchange: Exchange, limit: int = MAX_NODES) -> Table:
    """Return what the ranks of each node receive."""
    nodes = exchange.traffic.nodes
    which = f", the first {limit} of {len(nodes)}" if len(nodes) > limit else ""
    columns = [Column("node", lambda k: nodes[k]), *_level_columns(exchange.traffic.node_bytes)]
    return Table(f"Volume that each node receives{which}{_of(exchange)}", columns, range(len(nodes))[:limit])


_RANK = Column("rank", lambda rank: rank)


def _time_column(name: str, times_s: np.ndarray) -> Column:
    return Column(name, lambda rank: format_seconds(times_s[rank]))


def _share_column(level: str) -> Column:
    return Column(labels.level(level), lambda exchange: percent_text(exchange.traffic.share(level)))


def _level_columns(volumes: np.ndarray) -> list[Column]:
    def level_column(k: int) -> Column:
        return Column(labels.level(LEVELS[k]), lambda row: format_bytes(int(volumes[row, k])))

    return [level_column(k) for k in range(len(LEVELS))]


def _signed(error: float | None) -> str:
    return percent_text(error) if error is None or error <= 0 else f"+{percent_text(error)}"


def _of(exchange: Exchange) -> str:
    return f": {exchange.name}" if exchange.name else ""
