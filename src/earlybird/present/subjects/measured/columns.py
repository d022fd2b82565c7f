"""Tables of results in the terminal: the columns of each kernel, in which order, and what they mean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.compare.trees import TREE_VERDICTS
from earlybird.data import benchmark_parameters, labels, units
from earlybird.data.collective_algorithms import (
    COMPLETION,
    DEFAULT,
    MEAN_OVER_RANKS,
    OPERATIONS,
    parse_method,
)
from earlybird.data.methods import FUNNELLED, MOTIFS, MSGRATE_METHODS, NOISE_MODELS, PROCESSES, SINGLE
from earlybird.data.parameters import sort_key
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.present.core.notation import interval_text, range_text, ratio_text
from earlybird.present.core.table import Column
from earlybird.present.subjects.motifs import terminal as motifs

_DELAY = "delay_rate_s_per_byte"
LOCAL_METHOD = "MPI_Reduce_local"
MPI_COLUMN = "MPI"  # printed if the table has results of several
_MAX_LISTED = 4  # threads whose rates are listed individually


def ordered(results: Sequence[Result]) -> list[Result]:
    """By kernel in the order of `results`; by point; then the reference, and the other methods."""
    kernels = list(dict.fromkeys(result.kernel for result in results))
    return sorted(
        results,
        key=lambda result: (kernels.index(result.kernel), *_ORDERS.get(result.kernel, _by_size)(result)),
    )


def merge_means(results: Sequence[Result]) -> list[Result]:
    """One result for each collective: an import has the mean over ranks as a quantity of its own, which
    becomes a figure of the completion, as measured ones have it. Without a completion it stays."""
    means_s = {_call(one): one.time_s.value for one in results if one.quantity == MEAN_OVER_RANKS}
    completed = {_call(one) for one in results if one.quantity == COMPLETION}
    return [
        replace(one, figures={"mean_s": means_s[_call(one)], **one.figures})
        if one.quantity == COMPLETION and _call(one) in means_s
        else one
        for one in results
        if one.quantity != MEAN_OVER_RANKS or _call(one) not in completed
    ]


def _call(result: Result) -> tuple[str, frozenset]:
    return result.method, frozenset(result.config.items())


def _by_size(result: Result) -> tuple:
    level = labels.level_order(result.config["level"]) if "level" in result.config else 0
    return level, sort_key(result.config, "competitors", "size_bytes", "receiver")


def _by_speed_up(result: Result) -> tuple:
    """By point, then the single message, then the other methods, the fastest first."""
    return (
        labels.level_order(result.config["level"]),
        sort_key(result.config, "size_bytes", "threads", "vcis", "partitions"),
        sort_key(result.figures, _DELAY),
        result.method != SINGLE,
        -(result.speed_up.value if result.speed_up else 0.0),
    )


def _by_metrics(result: Result) -> tuple:
    """By point, then the methods in their order, and the MPIs of each."""
    config = result.config
    return (
        labels.level_order(config["level"]),
        sort_key(config, "size_bytes", "partitions", "threads", "compute_s"),
        NOISE_MODELS.index(config["noise"]), config["noise_share"], config["cache"] == "cold",
        result.method != SINGLE, labels.method_order(result.method), sort_key(config, "mpi"),
    )  # fmt: skip


def _by_threads(result: Result) -> tuple:
    """By point; methods with contexts after those without, processes last."""
    method = result.method
    known = MSGRATE_METHODS.index(method) if method in MSGRATE_METHODS else len(MSGRATE_METHODS)
    return (
        labels.level_order(result.config["level"]),
        sort_key(result.config, "size_bytes", "window", "threads", "buffers"),
        method == PROCESSES, sort_key(result.config, "vcis"), known,
    )  # fmt: skip


def _by_operation(result: Result) -> tuple:
    config = result.config
    names = (*OPERATIONS, config["operation"])
    method = parse_method(result.method or LOCAL_METHOD)
    kinds = (
        method.name == DEFAULT,
        method.is_forced and not method.is_persistent,
        method.is_persistent,
        True,
    )
    kind = kinds.index(True)
    return (
        names.index(config["operation"]),
        sort_key(config, "map_by", "ranks", "topology", "skew", "size_bytes"),
        kind, method.name, method.segment_bytes,
    )  # fmt: skip


_ORDERS: Mapping[str, Callable[[Result], tuple]] = {
    "pipeline": _by_speed_up,
    "partitioned": _by_metrics,
    "msgrate": _by_threads,
    "collective": _by_operation,
    **dict.fromkeys(MOTIFS, motifs.by_shape),
}


def _of(name: str, text: Callable[[Any], Any] = str) -> Callable[[Result], Any]:
    """The text of a value of the configuration or of the figures; "" if it has none."""

    def cell(result: Result) -> Any:
        value = result.config.get(name, result.figures.get(name))
        return "" if value is None else text(value)

    return cell


def _delay(result: Result) -> float:
    return result.figures[_DELAY]


def _time(name: str) -> tuple[Column, Column]:
    return (
        Column(name, lambda result: units.format_seconds(result.time_s.value)),
        Column("interval", lambda result: interval_text(result.time_s, units.format_seconds), optional=True),
    )


def _speed_up(reference: str) -> tuple[Column, Column]:
    return (
        Column(
            f"speed-up over {reference}",
            lambda result: ratio_text(result.speed_up.value) if result.speed_up else "",
            optional=True,
        ),
        Column("interval", lambda result: interval_text(result.speed_up, ratio_text), optional=True),
    )


def _figure_interval(result: Result, name: str, text: Callable[[float], str]) -> str:
    low, high = result.figures.get(f"{name}_low"), result.figures.get(f"{name}_high")
    return "" if low is None or high is None or low == high else range_text((low, high), text)


def _millions(rate_per_s: float) -> str:
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"


def _rates(result: Result) -> Estimate:
    names = ("rate_per_s", "rate_low_per_s", "rate_high_per_s")
    return Estimate(*(result.figures[name] for name in names))


def _of_threads(rates_per_s: Sequence[float]) -> str:
    if len(rates_per_s) == 1:
        return ""
    if len(rates_per_s) <= _MAX_LISTED:
        return " ".join(map(_millions, rates_per_s))
    return f"{_millions(min(rates_per_s))} .. {_millions(max(rates_per_s))}"


def _size(result: Result) -> str:
    size_bytes = result.config.get("size_bytes")
    is_without = size_bytes is None or result.config.get("operation") == "barrier"
    return "" if is_without else units.format_bytes(size_bytes)


def _completion(result: Result) -> Estimate | None:
    return None if result.quantity == MEAN_OVER_RANKS else result.time_s


def _mean(result: Result) -> str:
    mean_s = result.figures.get("mean_s") if _completion(result) else result.time_s.value
    return "" if mean_s is None else units.format_seconds(mean_s)


def _tree(result: Result) -> str:
    """The requested tree and whether it was observed, here or with another number of ranks."""
    figures = result.figures
    verdict, asked, seen = (figures.get(name) for name in ("verification", "tree_asked", "tree_seen"))
    if verdict == "contradicted":
        return f"{asked} contradicted: {seen or 'another tree'}"
    if verdict in TREE_VERDICTS:
        return f"{asked}, {verdict}"
    if figures.get("verification_there") in TREE_VERDICTS:
        return f"{asked}, {figures['verification_there']} at P={figures['verification_ranks']}"
    if asked:
        return f"{asked}, not verified"
    return f"seen: {seen}" if seen else ""


_LEVEL = Column("level", _of("level", labels.level), common=True)
_SIZE = Column("size", _size, common=True)
_LAST = (Column("launches", lambda result: result.launches), Column("state", lambda result: result.state))
_CONTEXTS = Column("contexts", _of("vcis"), common=True, optional=True)
_RECEIVED = (
    Column("level", _of("level", labels.level)),
    Column("N", lambda result: result.config["competitors"]),
    Column("size", _size),
    *_time("time"),
    Column(
        "received", _of("bandwidth_bytes_per_s", lambda rate: units.format_bandwidth(rate) if rate else "")
    ),
    *_LAST,
)

_MOTIF = (
    *motifs.SHAPE,
    Column("method", lambda result: result.method, left=True),
    *_time("time"),
    *_speed_up(FUNNELLED),
    *motifs.SPLIT,
    *_LAST,
)
# Of a kernel without columns of its own.
GENERAL = (
    Column("level", _of("level", labels.level), optional=True),
    _SIZE,
    Column("method", lambda result: result.method, optional=True, left=True),
    *_time("time"),
    *_LAST,
)
COLUMNS: Mapping[str, Sequence[Column]] = {
    "pingpong": _RECEIVED,
    "contention": _RECEIVED,
    "completion": (
        Column("level", _of("level", labels.level)),
        Column("size", _size),
        Column("receiver", _of("receiver")),
        Column("pairs", lambda result: result.config.get("pairs", ""), optional=True),
        Column("send complete after", _of("send_complete_s", units.format_seconds)),
        Column("received after", _of("received_s", units.format_seconds)),
        Column("fraction", _of("fraction", "{:.2f}".format)),
        *_LAST,
    ),
    "pipeline": (
        _LEVEL,
        _SIZE,
        Column(
            "threads",
            lambda result: threads if (threads := result.config["threads"]) > 1 else "",
            common=True,
            optional=True,
        ),
        _CONTEXTS,
        Column("partitions", _of("partitions"), common=True),
        Column("delay", lambda result: f"{_delay(result) * 1e12:.6g} us/MB", common=True),
        Column("eq. (4)", _of("ideal_speed_up", "{:.2f}".format), common=True),
        Column("method", lambda result: result.method, left=True),
        *_time("time"),
        *_speed_up("single"),
        *_LAST,
    ),
    "partitioned": (
        _LEVEL,
        _SIZE,
        Column("partitions", _of("partitions"), common=True),
        Column("threads", _of("threads"), common=True),
        Column("compute", _of("compute_s", units.format_seconds), common=True),
        Column("noise", motifs.noise, common=True),
        Column("cache", _of("cache"), common=True),
        Column("method", lambda result: result.method, left=True),
        Column(MPI_COLUMN, _of("mpi")),
        Column("overhead", _of("overhead", ratio_text)),
        Column("interval", lambda result: _figure_interval(result, "overhead", ratio_text), optional=True),
        Column("perceived", _of("perceived_bandwidth_bytes_per_s", units.format_bandwidth)),
        Column("availability", _of("availability", labels.percent)),
        Column("early-bird", _of("early_bird_share", labels.percent)),
        Column("delivered", _of("delivered_share", labels.percent)),
        *_LAST,
    ),
    **dict.fromkeys(MOTIFS, _MOTIF),
    "msgrate": (
        _LEVEL,
        _SIZE,
        Column("threads", _of("threads"), common=True),
        Column("buffers", _of("buffers"), common=True, optional=True),
        Column("method", lambda result: result.method, left=True),
        Column("contexts", _of("vcis"), optional=True),
        Column("Mmsg/s", lambda result: _millions(_rates(result).value)),
        Column("interval", lambda result: interval_text(_rates(result), _millions), optional=True),
        Column("per thread", _of("thread_rates_per_s", _of_threads), optional=True),
        *_speed_up("shared"),
        *_LAST,
    ),
    "collective": (
        Column("operation", _of("operation"), common=True),
        Column("mapped by", _of("map_by"), common=True),
        Column("P", _of("ranks"), common=True),
        Column("topology", _of("topology"), common=True, optional=True),
        Column("skew", _of("skew", "{:g}".format), common=True, optional=True),
        _SIZE,
        Column("algorithm", lambda result: result.method or LOCAL_METHOD, left=True),
        Column(
            "completion",
            lambda result: units.format_seconds(time_s.value) if (time_s := _completion(result)) else "",
            optional=True,
        ),
        Column(
            "interval",
            lambda result: interval_text(_completion(result), units.format_seconds),
            optional=True,
        ),
        Column("mean", _mean, optional=True),
        Column(
            "interval",
            lambda result: "" if _completion(result) else interval_text(result.time_s, units.format_seconds),
            optional=True,
        ),
        Column("root", _of("root_s", units.format_seconds), optional=True),
        *_speed_up("default"),
        Column("tree", _tree, optional=True, left=True),
        *_LAST,
    ),
}


def compares_mpis(kernel: str) -> bool:
    """Whether the table of a kernel has the results of several MPIs next to each other."""
    return any(column.head == MPI_COLUMN for column in COLUMNS.get(kernel, GENERAL))


def columns_of(results: Sequence[Result]) -> list[Column]:
    """The columns of a table of results of one kernel; that of the MPI only if there are several."""
    several = len({result.config.get("mpi") for result in results}) > 1
    columns = [one for one in COLUMNS.get(results[0].kernel, GENERAL) if several or one.head != MPI_COLUMN]
    after_size = max(
        number for number, one in enumerate(columns, start=1) if one.head == "size" or number == 1
    )
    return [*columns[:after_size], *_parameters(results, columns), *columns[after_size:]]


def _parameters(results: Sequence[Result], columns: Sequence[Column]) -> list[Column]:
    """How another benchmark measured; the window of messages only where there are several."""
    heads = {column.head for column in columns}
    names = list(benchmark_parameters.PARAMETERS)
    if results[0].kernel.startswith("osu-"):
        names = [benchmark_parameters.THREADS, benchmark_parameters.PROCESSES, *names]
    if len({result.config.get("window") for result in results}) > 1:
        names.append("window")
    return [
        Column(name.replace("_", " "), _of(name), common=True, optional=True)
        for name in names
        if name not in heads and any(name in result.config for result in results)
    ]
