"""Tables of results: the values and texts of the columns that kernels declare."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.compare.motifs import mapping_of
from earlybird.compare.results import ordered
from earlybird.compare.trees import TREE_VERDICTS
from earlybird.data import benchmark_parameters, kernels, labels, units
from earlybird.data.collective_algorithms import MEAN_OVER_RANKS
from earlybird.data.results import Result
from earlybird.data.schema import Estimate, estimate_keys
from earlybird.present.core.notation import interval_text, millions, range_text, ratio_text
from earlybird.present.core.points import Measured
from earlybird.present.core.table import Column, Table

LOCAL_METHOD = "MPI_Reduce_local"
_MPI = kernels.Column("mpi", "MPI", "MPI", common=True)
_MAX_LISTED = 4  # threads whose rates are listed individually


def _size(result: Result) -> int | None:
    is_without = result.config.get("operation") == "barrier"
    return None if is_without else result.config.get("size_bytes")


def _completion(result: Result) -> Estimate | None:
    if result.quantity != MEAN_OVER_RANKS:
        return result.time_s
    names = estimate_keys("completion_s")  # of a measured mean
    return Estimate(*(result.figures[name] for name in names)) if names[0] in result.figures else None


def _mean(result: Result) -> Estimate | float | None:
    return result.time_s if result.quantity == MEAN_OVER_RANKS else result.figures.get("mean_s")


def _tree(result: Result) -> str | None:
    """Describe the requested tree and whether it was observed, here or with another number of ranks."""
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
    return f"seen: {seen}" if seen else None


def _fitted(result: Result) -> str | None:
    """Return the time that a fitted model predicts, and its error: `1.2 ms (+3.0 %)`."""
    if result.fitted_s is None or result.fitted_error is None:
        return None
    return f"{units.format_seconds(result.fitted_s)} ({labels.signed_percent(result.fitted_error)})"


# Values that are no key of the configuration or of the figures.
_VALUES: Mapping[str, Callable[[Result], Any]] = {
    "time_s": lambda result: result.time_s,
    "speed_up": lambda result: result.speed_up,
    "method": lambda result: result.method,
    "launches": lambda result: result.launches,
    "state": lambda result: result.state,
    "competitors": lambda result: result.config["competitors"],
    "size_bytes": _size,
    "noise": lambda result: labels.noise(result.config["noise"], result.config["noise_share"]),
    "mapping": lambda result: mapping_of(result.config),
    "algorithm": lambda result: result.method or LOCAL_METHOD,
    "completion_s": _completion,
    "mean_s": _mean,
    "tree": _tree,
    "fitted": _fitted,
}


def _millions_of_each(rates_per_s: Sequence[float]) -> str:
    if len(rates_per_s) == 1:
        return ""
    if len(rates_per_s) <= _MAX_LISTED:
        return " ".join(map(millions, rates_per_s))
    return range_text((min(rates_per_s), max(rates_per_s)), millions)


TEXTS: Mapping[kernels.Kind, Callable[[Any], str]] = {
    "text": str,
    "name": str,
    "level": labels.level,
    "MPI": labels.flavour,
    "bytes": units.format_bytes,
    "seconds": units.format_seconds,
    "bytes per second": lambda rate: units.format_bandwidth(rate) if rate else "",
    "ratio": ratio_text,
    "fraction": "{:.2f}".format,
    "percent": labels.percent,
    "number": "{:g}".format,
    "delay rate": units.format_delay_rate,
    "millions": millions,
    "millions of each": _millions_of_each,
}


def value_of(result: Result, key: str) -> Any:
    """Return a value of a result; None if it has none."""
    if key in _VALUES:
        return _VALUES[key](result)
    return result.config.get(key, result.figures.get(key))


def _estimate_of(result: Result, key: str) -> Estimate | None:
    value = value_of(result, key)
    if value is None or isinstance(value, Estimate):
        return value
    low, high = (result.figures.get(name) for name in estimate_keys(key)[1:])
    return None if low is None or high is None else Estimate(value, low, high)


def column_of(column: kernels.Column) -> Column:
    """Return a column of results as a kernel declares it."""
    text_of = TEXTS[column.kind]

    def text(result: Result) -> str:
        if column.interval:
            return interval_text(_estimate_of(result, column.key), text_of)
        value = value_of(result, column.key)
        if value is None or value == column.usual:
            return ""
        return text_of(value.value if isinstance(value, Estimate) else value)

    return Column(
        column.head,
        text,
        common=column.common,
        optional=column.optional,
        varying=column.varying,
        default=column.default,
        left=column.kind == "name",
        detail=column.detail,
    )


def compares_mpis(kernel: str) -> bool:
    """Return whether the table of a kernel has the results of several MPIs next to each other."""
    return any(column.key == "mpi" for column in kernels.kernel_of(kernel).columns)


def columns_of(results: Sequence[Result], on_page: bool = False) -> list[Column]:
    """Return the columns of a table of results of one kernel; that of the MPI only if there are several."""
    several = len({result.config.get("mpi") for result in results}) > 1
    kernel = kernels.kernel_of(results[0].kernel)
    declared = kernel.columns if compares_mpis(kernel.name) else (_MPI, *kernel.columns)
    keys = [column.key for column in declared]
    after_size = keys.index("size_bytes") + 1 if "size_bytes" in keys else 1
    columns = [*declared[:after_size], *_parameters(results, keys), *declared[after_size:]]
    return [
        column_of(column)
        for column in columns
        if (several or column.key != "mpi") and (on_page or not column.page_only)
    ]


def results_table(caption: str, results: Sequence[Result], on_page: bool = False) -> Table:
    """Return the table of results of one kernel. On the page, the settings that all of them share are in the
    caption; brief, a table has no details, such as intervals."""
    table = Table(caption, columns_of(results, on_page), results)
    if not on_page:
        return table
    same, table = table.split()
    return replace(table, caption=f"{caption}: {same}" if same else caption)


def labelled_results(measured: Iterable[Measured[Any]]) -> list[Result]:
    """Return all results in the order of their kernel, by MPI if it does not compare these."""
    rows = [
        labelled(result, series.label)
        for series in measured
        for point in series.points
        for result in point.results.values()
    ]
    return sorted(
        ordered(rows), key=lambda result: "" if compares_mpis(result.kernel) else result.config["mpi"]
    )


def labelled(result: Result, label: str) -> Result:
    """Return a result with a label as its MPI, which names the run too if several measured the same."""
    return replace(result, config={**result.config, "mpi": label})


def _parameters(results: Sequence[Result], keys: Sequence[str]) -> list[kernels.Column]:
    """Return how another benchmark measured; the window of messages only where there are several."""
    names = list(benchmark_parameters.PARAMETERS)
    if results[0].kernel.startswith("osu-"):
        names = [benchmark_parameters.THREADS, benchmark_parameters.PROCESSES, *names]
    if len({result.config.get("window") for result in results}) > 1:
        names.append("window")
    return [
        kernels.Column(name, name.replace("_", " "), common=True, optional=True)
        for name in names
        if name not in keys and any(name in result.config for result in results)
    ]
