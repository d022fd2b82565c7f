"""Tables of the motifs: the columns of each kernel, where libearlybird is slower, and how times scale."""

from collections.abc import Iterable, Sequence
from typing import Any

from earlybird.compare.motifs import SLOWER, Scaling, cells_text, mapping_of, over_best, scaling
from earlybird.data import labels, units
from earlybird.data.methods import NOISE_MODELS, STYLES
from earlybird.data.parameters import sort_key
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.terminal import print_line, print_table

_SHAPE = (
    "scaling", "ranks", "layout", "process_grid", "size_bytes", "cells", "planes_per_block", "stencil",
    "periodic", "buffers", "variables", "threads", "partitions", "compute_s",
)  # fmt: skip


def by_shape(result: Result) -> tuple:
    """By point, then the styles in their order."""
    config, method = result.config, result.method
    return (
        sort_key(config, *_SHAPE), NOISE_MODELS.index(config["noise"]), config["noise_share"],
        STYLES.index(method) if method in STYLES else len(STYLES),
    )  # fmt: skip


def _of(name: str) -> Any:
    return lambda result: result.config.get(name, "")


def _seconds(name: str) -> Any:
    def text(result: Result) -> str:
        value = result.figures.get(name)
        return "" if value is None else units.format_seconds(value)

    return text


def _throughput(result: Result) -> str:
    rate = result.figures.get("throughput_bytes_per_s")
    return units.format_bandwidth(rate) if rate else ""


def noise(result: Result) -> str:
    return labels.noise(result.config["noise"], result.config["noise_share"])


_MAPPING = Column("mapped by", lambda one: mapping_of(one.config), common=True, varying=True)
_VARIABLES = Column(
    "variables",
    lambda one: "" if one.config["variables"] == 1 else one.config["variables"],
    True,
    True,
    default="1",
)
_STENCIL = Column("stencil", _of("stencil"), common=True, optional=True)
_PERIODIC = Column(
    "periodic", lambda one: "yes" if one.config.get("periodic") == "yes" else "", True, True, default="no"
)
_BUFFERS = Column(
    "buffers",
    lambda one: "derived" if one.config.get("buffers") == "derived" else "",
    True,
    True,
    default="packed",
)
_PLANES = Column("planes per block", _of("planes_per_block"), common=True, varying=True)
_PARTITIONS = Column("partitions", _of("partitions"), common=True)
_NOISE = Column(
    "noise", lambda one: noise(one) if one.config["noise_share"] else "", True, True, default="none"
)
SHAPE = (
    Column(
        "scaling", lambda result: "weak" if result.config["scaling"] == "weak" else "", True, True, left=True
    ),
    Column("P", _of("ranks"), common=True),
    _MAPPING,
    Column("grid", _of("process_grid"), common=True),
    Column("cells", _of("cells"), common=True),
    _VARIABLES,
    _STENCIL,
    _PERIODIC,
    _BUFFERS,
    _PLANES,
    Column("threads", _of("threads"), common=True),
    _PARTITIONS,
    Column("compute", lambda one: units.format_seconds(one.config["compute_s"]), common=True),
    _NOISE,
)
SPLIT = (
    Column("sent", _throughput),
    Column("computing", _seconds("computing_s"), optional=True),
    Column("communicating", _seconds("communicating_s"), optional=True),
    Column("waiting", _seconds("waiting_s"), optional=True),
)


def _if_varying(column: Column) -> Column:
    """A column of results, for their scaling."""
    return Column(
        column.head, lambda one: column.text(one.result), common=True, varying=True, default=column.default
    )


_SCALING = (
    Column("scaling", lambda one: one.result.config["scaling"], common=True, left=True),
    _if_varying(_MAPPING),
    Column("cells", lambda one: f"{cells_text(one.result.config)}{' each' * one.is_weak}", common=True),
    *map(_if_varying, (_VARIABLES, _STENCIL, _PERIODIC, _BUFFERS, _PLANES)),
    Column("compute", lambda one: units.format_seconds(one.result.config["compute_s"]), common=True),
    _if_varying(_NOISE),
    Column("threads", lambda one: one.result.config["threads"], common=True),
    _if_varying(_PARTITIONS),
    Column("method", lambda one: one.result.method, common=True, left=True),
    Column("P", lambda one: one.result.config["ranks"]),
    Column("time", lambda one: units.format_seconds(one.result.time_s.value)),
    Column("speed-up", lambda one: ratio_text(one.speed_up) if one.speed_up else ""),
    Column("efficiency", lambda one: labels.percent(one.efficiency) if one.efficiency else ""),
    Column("state", lambda one: one.result.state),
)


def slower_text(samples: Iterable[Sample]) -> str:
    """At how many points libearlybird is slower than the best other style; "" without its style."""
    points = over_best(samples)
    if not points:
        return ""
    slower = [one for one in points if one.is_slower]
    clearly = sum(one.is_clearly_slower for one in slower)
    whole = f", clearly (the whole interval) at {clearly} of them" if slower else ""
    return (
        f"libearlybird is more than {100 * (SLOWER - 1):.0f} % slower than the best other style "
        f"at {len(slower)} of {labels.counted(len(points), 'point')}{whole}"
    )


def print_scaling(results: Sequence[Result]) -> None:
    """Print how the times of motifs scale, if they were measured with several numbers of ranks."""
    rows: list[Scaling] = scaling(results)
    if not rows:
        return
    fewest = ", ".join(map(str, sorted({one.fewest.config["ranks"] for one in rows})))
    print_line()
    print_line(
        f"scaling, over P={fewest}: ratios of medians, because launches of different ranks are not paired"
    )
    print_table(Table("", scaling_columns(rows), rows))


def scaling_columns(rows: Sequence[Scaling]) -> list[Column]:
    """The columns of a table of scaling; with the process grids if there are several of the same ranks."""
    grids = {(one.result.config["ranks"], one.result.config["process_grid"]) for one in rows}
    columns = list(_SCALING)
    if len(grids) > len({ranks for ranks, _ in grids}):
        position = [column.head for column in columns].index("P") + 1
        columns.insert(position, Column("grid", lambda one: one.result.config["process_grid"]))
    return columns
