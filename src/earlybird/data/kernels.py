"""The measurement kernels: the properties of each one, wherever it is measured, fitted, compared or shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from earlybird.data import collective_algorithms, labels
from earlybird.data.collective_algorithms import (
    DEFAULT,
    OPERATIONS,
    PER_PAIR,
    REDUCE_LOCAL,
    ROOTED,
    UNMODELLED,
    parse_method,
)
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.methods import (
    CACHES,
    FUNNELLED,
    MSGRATE_METHODS,
    NOISE_MODELS,
    ONE_RECEIVES,
    PACKING_METHODS,
    PACKINGS,
    PROCESSES,
    SHARED,
    SINGLE,
)
from earlybird.data.pattern import Pattern
from earlybird.data.schema import Estimate
from earlybird.data.topologies import num_neighbours

Point = Mapping[str, Any]
# How a value is written: of the units below or as it is.
Kind = Literal[
    "text", "name", "MPI", "level", "bytes", "seconds", "bytes per second", "ratio", "fraction", "percent",
    "number", "delay rate", "millions", "millions of each",
]  # fmt: skip
# How late a late receiver of `completion` is, in deliveries; see native/kernels/completion.cpp.
LATE_DELIVERIES = 3
_SWEEP_CORNERS = 4  # from which sweeps start
# Keys whose values have an order of their own.
_ORDERS: Mapping[str, Sequence[Any]] = {
    "level": LEVELS, "noise": NOISE_MODELS, "cache": CACHES, "operation": OPERATIONS,
    "packing": PACKINGS,
}  # fmt: skip


class Ordered(Protocol):
    """A result with the values by which results are ordered."""

    @property
    def method(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def figures(self) -> Mapping[str, Any]: ...
    @property
    def speed_up(self) -> Estimate | None: ...


@dataclass(frozen=True)
class Column:
    """A column of a table of results in the output of commands, on the page, and in the report in the
    terminal.

    Attributes
    ----------
    key : key of the configuration or of the figures of a result, or an attribute of it.
    interval : whether the interval of that value is shown instead of the value.
    common : printed only where the value changes; optional: shown only if a result has the value; varying:
        only if two results differ.
    usual : a value that is left out; `default` is shown instead of it if the column is shown.
    detail : not in the report in the terminal; page_only: not in the tables of commands either.
    meaning : text printed below the table, if the head does not explain the value.
    """

    key: str
    head: str
    kind: Kind = "text"
    interval: bool = False
    common: bool = False
    optional: bool = False
    varying: bool = False
    usual: Any = None
    default: str = ""
    detail: bool = False
    page_only: bool = False
    meaning: str = ""


def _with_interval(column: Column, page_only: bool = False) -> tuple[Column, Column]:
    """Return the columns of a value and of its interval, which may be `page_only`."""
    interval = Column(
        column.key, "interval", column.kind, True, optional=True, detail=True, page_only=page_only
    )
    return column, interval


_TIME = _with_interval(Column("time_s", "time", "seconds"))
_METHOD = Column("method", "method", "name")
_LAST = (Column("launches", "launches", detail=True), Column("state", "state"))
_LEVEL, _COMMON_LEVEL = Column("level", "level", "level"), Column("level", "level", "level", common=True)
_SIZE, _COMMON_SIZE = (
    Column("size_bytes", "size", "bytes"),
    Column("size_bytes", "size", "bytes", common=True),
)
_THREADS = Column("threads", "threads", common=True)
_PARTITIONS = Column("partitions", "partitions", common=True)
_COMPUTE = Column("compute_s", "compute", "seconds", common=True)
_GENERAL = (
    Column("level", "level", "level", optional=True), _COMMON_SIZE,
    Column("method", "method", "name", optional=True), *_TIME, *_LAST,
)  # fmt: skip


def _speed_up(reference: str) -> tuple[Column, Column]:
    return _with_interval(Column("speed_up", f"speed-up over {reference}", "ratio", optional=True))


def _size_bytes(point: Point, *_: Any) -> float:
    return point["size_bytes"]


@dataclass(frozen=True)
class Kernel:
    """A kernel and its properties. Its suite (`measure/suites.py`) defines at which points it is measured;
    figures (`compare/results.py`), synthetic times (`measure/synthetic_times.py`) and remarks on results
    (`present/subjects/measured/remarks.py`) are functions that these files list by its name.

    Attributes
    ----------
    title : name in texts.
    quantity : the quantity that its samples measure; one of several.
    link_bytes(point, layout, pattern) : bytes that one method sends over the busiest link in an iteration.
    reference : the method over which the speed-ups of others are.
    requires : keys that the configuration of every sample has; defaults: values that other keys have if they
        are absent.
    timed_rank : the rank whose time is the time of an iteration, if samples have the times of all ranks.
    fit : the value that `fit` takes from its samples; profile: the file that a fit of such a run alone
        writes.
    is_fitted : whether `fit` can make a profile from these points alone.
    is_advised : whether advice is compared with its results.
    osu : the program of the OSU benchmarks, and the name of the test in its title.
    osu_export : the part that `earlybird export` writes as such a table, if that is not one column for all.
    workers : the workers that share cores if there are too many.
    columns : columns of a table of its results.
    order : keys by which results are ordered, and functions of a result.
    """

    name: str
    title: str
    quantity: str
    link_bytes: Callable[[Point, Layout, Pattern | None], float]
    reference: str = ""
    requires: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    timed_rank: Literal["", "slowest", "last"] = ""
    fit: Literal["", "levels", "completions", "pipelines", "collectives", "packings"] = ""
    profile: str = "profile.json"
    is_fitted: Callable[[Sequence[Point]], bool] = lambda points: False
    is_advised: bool = False
    osu: tuple[str, str] | None = None
    osu_export: str = ""
    workers: Literal["ranks", "threads", "ranks or threads"] = "ranks"
    columns: tuple[Column, ...] = _GENERAL
    order: tuple[str | Callable[[Ordered], Any], ...] = ("level", "competitors", "size_bytes", "receiver")

    def column(self, key: str) -> Column:
        """Return the column of a value."""
        return next(column for column in self.columns if column.key == key)

    def sort_key(self, result: Ordered) -> tuple[Any, ...]:
        """Return the key by which the results of this kernel are ordered."""
        return tuple(_rank(key, result) if isinstance(key, str) else key(result) for key in self.order)


def _rank(key: str, result: Ordered) -> tuple[Any, ...]:
    """Return a sort key: missing values first, numbers before texts, and known values as they are listed."""
    try:
        value = (result.figures if key in result.figures else result.config)[key]
    except InputError:  # there is none
        value = None
    known = _ORDERS.get(key)
    if known is not None:
        value = known.index(value) if value in known else len(known)
    return (False,) if value is None else (True, isinstance(value, str), value)


def _by_method(result: Ordered) -> Any:
    """Return a sort key: the reference first, then the other methods as their labels."""
    return result.method != result.reference, labels.method_order(result.method)


def sweep_steps(point: Point) -> int:
    """Return the number of computations of a thread in an iteration; messages follow each of them. In a
    sweep, they are the blocks of planes from each of the four corners."""
    return _SWEEP_CORNERS * sweep_blocks(point) if "planes_per_block" in point else 1


def sweep_blocks(point: Point) -> int:
    """Return the number of blocks of planes in one sweep."""
    return -(-int(point["cells"].split("x")[2]) // point["planes_per_block"])


def _deliveries(point: Point) -> int:
    """Count the deliveries of an iteration, in each of which a late receiver pauses too."""
    return 1 + LATE_DELIVERIES if point.get("receiver") == "late" else 1


def _collective_messages(point: Point, layout: Layout) -> int:
    """Count whole messages over the link of the busiest node: the root's node if all others are its children,
    else the largest node."""
    on_node = np.bincount(layout.node)
    if point["operation"] in ROOTED:
        return layout.num_ranks - int(on_node[layout.node[point["root"]]])
    largest = int(on_node.max())
    if "topology" in point:
        degree = num_neighbours(point["topology"], layout.num_ranks)
        return largest * min(degree, layout.num_ranks - largest)
    if point["operation"] in PER_PAIR:
        return largest * (layout.num_ranks - largest)
    moves = layout.num_nodes > 1 and point["operation"] != REDUCE_LOCAL
    return 2 * largest if moves else 0


def _exchange_bytes(point: Point, layout: Layout, pattern: Pattern | None) -> float:
    """Return the largest number of bytes that a node sends to, or receives from, other nodes."""
    assert pattern is not None, "an exchange has a pattern"
    src, dst = layout.node[pattern.src], layout.node[pattern.dst]
    across = src != dst
    ends = [np.bincount(end[across], pattern.bytes[across], minlength=1) for end in (src, dst)]
    return float(max(end.max() for end in ends))


def _has_several_sizes(points: Sequence[Point]) -> bool:
    """Return whether pipelines without noise were measured at several sizes of a level."""
    sizes = {(point["level"], point["size_bytes"]) for point in points if "gamma_s_per_byte" in point}
    return len(sizes) > len({level for level, _ in sizes})


def _has_model(points: Sequence[Point]) -> bool:
    return any(point["operation"] not in UNMODELLED for point in points)


def _by_algorithm(result: Ordered) -> Any:
    """Return a sort key: the MPI's choice first, then forced algorithms, persistent operations, other
    methods."""
    method = parse_method(result.method) if result.method else None
    if method is None:
        return 3, "", 0
    kind = 0 if method.name == DEFAULT else 2 if method.is_persistent else 1 if method.is_forced else 3
    return kind, method.name, method.segment_bytes


def _by_speed_up(result: Ordered) -> Any:
    """Return a sort key: the reference first, then the other methods, the fastest first."""
    return result.method != result.reference, -(result.speed_up.value if result.speed_up else 0.0)


def _is_of_processes(result: Ordered) -> Any:
    return result.method == PROCESSES


def _by_packing_method(result: Ordered) -> Any:
    return PACKING_METHODS.index(result.method) if result.method in PACKING_METHODS else len(PACKING_METHODS)


def _by_sharing(result: Ordered) -> Any:
    known = MSGRATE_METHODS
    return known.index(result.method) if result.method in known else len(known)


_RECEIVED = (
    _LEVEL, Column("competitors", "N"), _SIZE, *_TIME,
    Column("bandwidth_bytes_per_s", "received", "bytes per second"), *_LAST,
)  # fmt: skip

PINGPONG = Kernel(
    "pingpong", "ping-pong", "half_round_trip", lambda point, *_: 2 * point["size_bytes"],
    requires=("size_bytes",), fit="levels", is_fitted=bool, osu=("osu_latency", "Latency"), columns=_RECEIVED,
)  # fmt: skip

CONTENTION = Kernel(
    "contention", "contention", "time_per_repeat",
    lambda point, *_: point["size_bytes"] * point["competitors"] * point["repeats"],
    requires=("size_bytes",), fit="levels", is_fitted=bool, columns=_RECEIVED,
)  # fmt: skip

COMPLETION = Kernel(
    "completion", "completion of sends", "completion",
    lambda point, *_: point["size_bytes"] * point.get("pairs", 1) * _deliveries(point),
    timed_rank="last", fit="completions",
    columns=(
        _LEVEL, _SIZE, Column("receiver", "receiver"), Column("pairs", "pairs", optional=True),
        Column("send_complete_s", "send complete after", "seconds"),
        Column("received_s", "received after", "seconds"), Column("fraction", "fraction", "fraction"), *_LAST,
    ),
)  # fmt: skip

PIPELINE = Kernel(
    "pipeline", "buffers in partitions", "time_to_solution", _size_bytes, SINGLE, ("size_bytes",),
    {"threads": 1}, fit="pipelines", is_fitted=_has_several_sizes, is_advised=True, workers="threads",
    columns=(
        _COMMON_LEVEL, _COMMON_SIZE,
        Column("threads", "threads", common=True, optional=True, usual=1, default="1"),
        Column("vcis", "contexts", common=True, optional=True, usual=0, default="default"),
        Column(
            "receivers", "receivers", common=True, optional=True, usual=ONE_RECEIVES, default=ONE_RECEIVES
        ),
        _PARTITIONS,
        Column("compute_s_per_byte", "computing", "delay rate", common=True, optional=True),
        Column("epsilon", "epsilon", "number", common=True, optional=True),
        Column("delta", "delta", "number", common=True, optional=True),
        Column("delay_rate_s_per_byte", "delay rate", "delay rate", common=True),
        Column("ideal_speed_up", "ideal speed-up", "ratio", common=True), _METHOD, *_TIME,
        *_speed_up(SINGLE), Column("fitted", "fitted model", optional=True, detail=True, page_only=True),
        *_LAST,
    ),
    order=(
        "level", "size_bytes", "threads", "vcis", "receivers", "partitions", "delay_rate_s_per_byte",
        _by_speed_up,
    ),
)  # fmt: skip

PARTITIONED = Kernel(
    "partitioned", "partitioned communication", "in_flight", _size_bytes, SINGLE, ("size_bytes",),
    workers="threads",
    columns=(
        _COMMON_LEVEL, _COMMON_SIZE, _PARTITIONS, _THREADS, _COMPUTE,
        Column("noise", "noise", common=True), Column("cache", "cache", common=True), _METHOD,
        Column("mpi", "MPI", "MPI"),
        *_with_interval(Column(
            "overhead", "overhead", "ratio",
            meaning="time during which a partition is in flight, from MPI_Pready to arrival, divided by the "
                    "time of a single message",
        )),
        *_with_interval(Column(
            "perceived_bandwidth_bytes_per_s", "perceived", "bytes per second",
            meaning="size divided by the time from the last MPI_Pready until the receive is complete; of "
                    "single messages, the bandwidth of the hardware",
        ), page_only=True),
        *_with_interval(Column(
            "availability", "availability", "percent",
            meaning="share of a single message's time that is not spent after the threads have joined; 100 % "
                    "if nothing is in flight then",
        ), page_only=True),
        *_with_interval(Column(
            "early_bird_share", "early-bird", "percent", detail=True,
            meaning="share of the time in flight before the threads join; partitions that wait inside the "
                    "MPI count",
        ), page_only=True),
        *_with_interval(Column(
            "delivered_share", "delivered", "percent",
            meaning="share of the partitions that have arrived when the threads join",
        ), page_only=True), *_LAST,
    ),
    order=(
        "level", "size_bytes", "partitions", "threads", "compute_s", "noise", "noise_share", "cache",
        _by_method, "mpi",
    ),
)  # fmt: skip

_MOTIF: Mapping[str, Any] = {
    "quantity": "step", "link_bytes": lambda point, *_: point["size_bytes"] * sweep_steps(point),
    "reference": FUNNELLED, "workers": "ranks or threads",
    "columns": (
        Column("scaling", "scaling", common=True, optional=True, usual="strong"),
        Column("ranks", "P", common=True), Column("mapping", "mapped by", common=True, varying=True),
        Column("process_grid", "grid", common=True), Column("cells", "cells", common=True),
        Column("variables", "variables", common=True, optional=True, usual=1, default="1"),
        Column("stencil", "stencil", common=True, optional=True),
        Column("periodic", "periodic", common=True, optional=True, usual="no", default="no"),
        Column("buffers", "buffers", common=True, optional=True, usual="packed", default="packed"),
        Column("planes_per_block", "planes per block", common=True, varying=True), _THREADS, _PARTITIONS,
        _COMPUTE, Column("noise", "noise", common=True, optional=True, usual="none", default="none"),
        _METHOD, *_TIME, *_speed_up(FUNNELLED),
        Column("throughput_bytes_per_s", "sent", "bytes per second"),
        Column("computing_s", "computing", "seconds", optional=True),
        Column("communicating_s", "communicating", "seconds", optional=True),
        Column("waiting_s", "waiting", "seconds", optional=True), *_LAST,
    ),
    "order": (
        "scaling", "ranks", "layout", "process_grid", "size_bytes", "cells", "planes_per_block", "stencil",
        "periodic", "buffers", "variables", "threads", "partitions", "compute_s", "noise", "noise_share",
        _by_method,
    ),
}  # fmt: skip
HALO3D = Kernel("halo3d", "halo exchanges", **_MOTIF)
SWEEP3D = Kernel("sweep3d", "sweeps", **_MOTIF)
COMB = Kernel("comb", "halo exchanges of many variables", **_MOTIF)
MOTIFS = (HALO3D.name, SWEEP3D.name, COMB.name)

MSGRATE = Kernel(
    "msgrate", "message rate", "time_per_window",
    lambda point, *_: point["size_bytes"] * point["window"] * point["threads"], SHARED, ("size_bytes",),
    is_advised=True, osu=("osu_mbw_mr", "Multiple Bandwidth / Message Rate"),
    osu_export="tables of processes", workers="threads",
    columns=(
        _COMMON_LEVEL, _COMMON_SIZE, _THREADS, Column("buffers", "buffers", common=True, optional=True),
        _METHOD, Column("vcis", "contexts", optional=True),
        *_with_interval(Column(
            "rate_per_s", "Mmsg/s", "millions",
            meaning="messages of all threads divided by the time until the last one is received",
        )),
        Column(
            "thread_rates_per_s", "per thread", "millions of each", optional=True,
            meaning="messages of one thread divided by the time of that thread",
        ), *_speed_up(SHARED), *_LAST,
    ),
    order=(
        "level", "size_bytes", "window", "threads", "buffers", _is_of_processes, "vcis", _by_sharing,
    ),
)  # fmt: skip

COLLECTIVE = Kernel(
    "collective", "collectives", collective_algorithms.COMPLETION,
    # The largest blocks of a skewed exchange may all pass one link.
    lambda point, layout, _: (
        point["size_bytes"] * _collective_messages(point, layout) * point.get("skew", 1)
    ),
    DEFAULT, ("size_bytes", "operation"),
    fit="collectives", profile="collective.json", is_fitted=_has_model, is_advised=True,
    columns=(
        Column("operation", "operation", common=True), Column("map_by", "mapped by", common=True),
        Column("ranks", "P", common=True), Column("topology", "topology", common=True, optional=True),
        Column("skew", "skew", "number", common=True, optional=True), _COMMON_SIZE,
        Column("algorithm", "algorithm", "name"),
        *_with_interval(Column(
            "completion_s", "completion", "seconds", optional=True, meaning="until the last rank is done",
        )),
        *_with_interval(Column(
            "mean_s", "mean", "seconds", optional=True, meaning="over ranks, as the OSU benchmarks report",
        )),
        Column("root_s", "root", "seconds", optional=True, meaning="until the root is done"),
        *_speed_up(DEFAULT),
        Column("tree", "tree", "name", optional=True), *_LAST,
    ),
    order=("operation", "map_by", "ranks", "topology", "skew", "size_bytes", _by_algorithm),
)  # fmt: skip

PACKING = Kernel(
    "packing", "packing of irregular data", "time_per_step", lambda *_: 0.0,
    requires=("size_bytes", "packing", "cache"), fit="packings",
    columns=(
        Column(
            "packing", "packing", common=True,
            meaning="of doubles: contiguous, one in each cache line (strided), or as many at irregular "
            "distances",
        ),
        Column("cache", "cache", common=True), _COMMON_SIZE, _METHOD, *_TIME,
        *_with_interval(Column(
            "s_per_byte", "time per byte", "delay rate", meaning="time / packed bytes",
        )), *_LAST,
    ),
    order=("packing", "cache", "size_bytes", _by_packing_method),
)  # fmt: skip

EXCHANGE = Kernel("exchange", "exchange", "exchange", _exchange_bytes, timed_rank="slowest")

# Its quantities are `nodes`, `pairs`, `incast` and `outcast`.
CHECK = Kernel("check", "check of nodes and links", "pairs", _size_bytes)

KERNELS = {
    kernel.name: kernel
    for kernel in (
        PINGPONG, CONTENTION, COMPLETION, PIPELINE, PARTITIONED, HALO3D, SWEEP3D, COMB, MSGRATE, COLLECTIVE,
        PACKING, EXCHANGE, CHECK,
    )
}  # fmt: skip
# A profile of messages is fitted to these.
OF_MESSAGES = tuple(name for name, kernel in KERNELS.items() if kernel.fit in ("levels", "completions"))


def kernel_of(name: str) -> Kernel:
    """Return the kernel of a sample that was read; describe the test of another benchmark, which an import
    may have, in general terms."""
    return KERNELS.get(name) or Kernel(name, name, "", _size_bytes)
