"""Samples as the tables that the OSU Micro-Benchmarks print; `osu_outputs.read_osu` reads them again."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import kernels
from earlybird.data.benchmark_parameters import PARAMETERS, VALIDATION
from earlybird.data.collective_algorithms import (
    COMPLETION,
    DEFAULT,
    MEAN_OVER_RANKS,
    WITH_TOPOLOGY,
    parse_method,
)
from earlybird.data.methods import PROCESSES
from earlybird.data.run import Sample
from earlybird.data.statistics import MEDIAN
from earlybird.data.topologies import GRID_9, RING, rows_and_columns
from earlybird.interop.osu_outputs import (
    BIDIRECTIONAL,
    COUNT_LINES,
    MEDIAN_BANDWIDTH,
    MEDIAN_LATENCY,
    MULTI_LATENCY,
    PROCESS_LATENCY,
    THREADED_LATENCY,
    VARY,
)

# By kernel and method or operation: the program, and the name of the test in its title.
_PROGRAMS = {
    **{name: kernel.osu for name, kernel in kernels.KERNELS.items() if kernel.osu},
    MULTI_LATENCY: ("osu_multi_lat", "Multi Latency"),
    THREADED_LATENCY: ("osu_latency_mt", "Multi-threaded Latency"),
    BIDIRECTIONAL: ("osu_bibw", "Bi-Directional Bandwidth"),
    PROCESS_LATENCY: ("osu_latency_mp", "Multi-process Latency"),
}
_COLLECTIVES = {
    "allgather": "Allgather", "allreduce": "Allreduce", "alltoall": "All-to-All Personalized Exchange",
    "barrier": "Barrier", "bcast": "Broadcast", "gather": "Gather", "reduce": "Reduce", "scatter": "Scatter",
    "allgatherv": "Allgatherv", "alltoallv": "All-to-Allv Personalized Exchange",
    "neighbor_allgather": "Neighborhood Allgather", "neighbor_alltoall": "Neighborhood Alltoall",
    "neighbor_alltoallv": "Neighborhood All-to-Allv",
}  # fmt: skip
# Kernels of which each table has one column of times.
ONE_COLUMN = tuple(
    name
    for name, kernel in kernels.KERNELS.items()
    if (kernel.osu and not kernel.osu_export) or kernel == kernels.COLLECTIVE
)
# What differs between the rows of a table.
_OF_ROWS = ("size_bytes", "repeats", "datatype")
_MEAN, _FASTEST, _SLOWEST = "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)"
_BANDWIDTH, _MEGABYTES, _MESSAGES = "Bandwidth (MB/s)", "MB/s", "Messages/s"
_MEANS = (_MEAN, _BANDWIDTH, _MEGABYTES, _MESSAGES)


@dataclass(frozen=True)
class OsuTable:
    """A table as a program of OSU prints it.

    Attributes
    ----------
    program : the program that prints such tables, such as `osu_latency`.
    config : what all of its rows have in common, with the method, if the kernel has several.
    text : the lines, the last of which ends with a newline.
    """

    program: str
    config: Mapping[str, Any]
    text: str


# What its table says of a benchmark's points besides sizes and times.
_NEEDED = {kernels.MSGRATE.name: ("threads", "window"), BIDIRECTIONAL: ("window",)}


def osu_tables(samples: Iterable[Sample]) -> list[OsuTable]:
    """Return a table for each benchmark and configuration; for several launches, each value is their median.

    The value of one launch is OSU's, as with -f and -z 50: the mean over the steady iterations; for
    collectives the mean, the minimum and the maximum over ranks of such means; and the median over
    iterations. Samples for which OSU has no table are omitted, see `is_osu`.
    """
    tables: dict[tuple[Any, ...], list[Sample]] = {}
    for sample in filter(is_osu, samples):
        shared = tuple(sorted((name, value) for name, value in sample.config.items() if name not in _OF_ROWS))
        # A collective has several quantities in one table.
        statistic = None if sample.kernel == kernels.COLLECTIVE.name else sample.statistic
        tables.setdefault((sample.kernel, sample.method, shared, statistic), []).append(sample)
    return [_table(of_table) for of_table in tables.values()]


def osu_files(samples: Iterable[Sample]) -> dict[str, str]:
    """Return the text of each file by its name: each launch has its own table of each benchmark and
    configuration.

    A name has the program, what differs between its tables, and the number of the launch among those with
    such a table: `osu_latency-intra_socket-1.txt`.
    """
    launches: dict[str, list[Sample]] = {}
    for sample in samples:
        launches.setdefault(sample.launch, []).append(sample)
    tables = [table for of_launch in launches.values() for table in osu_tables(of_launch)]
    varying = {program: _varying([one for one in tables if one.program == program])
               for program in {one.program for one in tables}}  # fmt: skip
    texts: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for table in tables:
        values = [str(table.config[name]) for name in varying[table.program] if name in table.config]
        stem = re.sub(r"[^\w.:-]", "_", "-".join([table.program, *values]))
        counts[stem] += 1
        texts[f"{stem}-{counts[stem]}.txt"] = table.text
    return texts


def _varying(tables: Sequence[OsuTable]) -> list[str]:
    names = dict.fromkeys(name for one in tables for name in one.config)
    return [name for name in names if len({one.config.get(name) for one in tables}) > 1]


def is_osu(sample: Sample) -> bool:
    """Return whether one of OSU's programs measures this quantity in the same way."""
    if sample.config.keys() & (set(PARAMETERS) - {VALIDATION}):
        return False
    if sample.kernel == kernels.COLLECTIVE.name:
        is_whole = sample.quantity in (COMPLETION, MEAN_OVER_RANKS)
        return is_whole and is_osu_collective(sample.config, sample.method)
    if not all(name in sample.config for name in _NEEDED.get(sample.kernel, ())):
        return False
    if sample.kernel == kernels.MSGRATE.name:
        return sample.method == PROCESSES
    return sample.kernel in _PROGRAMS


def is_osu_collective(config: Mapping[str, Any], method: str | None) -> bool:
    """Return whether OSU measures such a collective: its counts are equal, its neighbours are those in a
    grid, without a persistent test of them."""
    operation = config.get("operation")
    if operation in WITH_TOPOLOGY and (_is_persistent(method) or min(_grid(config), default=0) < 3):
        return False
    return operation in _COLLECTIVES and config.get("skew", 1) == 1


def _is_persistent(method: str | None) -> bool:
    return parse_method(method or DEFAULT).is_persistent


def _grid(config: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the dimensions of the grid; none without a topology, and for a topology that OSU lacks."""
    if "ranks" not in config:
        return ()
    ranks, topology = config["ranks"], config.get("topology", "")
    return {RING: (ranks,), GRID_9: rows_and_columns(ranks)}.get(topology, ())


def _table(samples: Sequence[Sample]) -> OsuTable:
    first = samples[0]
    sizes: dict[int, list[Sample]] = {}
    for sample in samples:
        sizes.setdefault(int(sample.config["size_bytes"]), []).append(sample)
    columns = _COLUMNS.get(first.kernel, _latency)
    rows = {size: columns(of_size) for size, of_size in sorted(sizes.items())}
    names = [name for name in next(iter(rows.values())) if all(name in row for row in rows.values())]
    names = [name for name in names if name not in _unknown(samples)]
    program, test, below = _title(first)
    has_sizes = first.config.get("operation") != "barrier"
    lines = _above_title(first)
    lines += [f"# OSU MPI {test} Test", VARY if _varies(first) else "# Written by Earlybird.", *below]
    is_validated = VALIDATION in first.config
    head = [
        f"{'Size':<8}" * has_sizes,
        *(f"{name:>20}" for name in names),
        f"{'Validation':>20}" * is_validated,
    ]
    lines += ["# " + "".join(head).lstrip()]
    lines += [
        "".join([
            f"{size:<10d}" * has_sizes, *(f"{row[name]:>20.4f}" for name in names),
            f"{'Pass':>20}" * is_validated,
        ])
        for size, row in rows.items()
    ]  # fmt: skip
    config = {name: value for name, value in first.config.items() if name not in _OF_ROWS}
    config |= {"method": first.method} if first.method not in (None, PROCESSES) else {}
    return OsuTable(program, config, "\n".join(lines) + "\n")


def _unknown(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return the columns whose statistic imported samples do not have."""
    medians = (MEDIAN_LATENCY, MEDIAN_BANDWIDTH)
    if any(sample.statistic == MEDIAN for sample in samples):
        return _MEANS
    return medians if all(sample.times_s.size == 1 for sample in samples) else ()


def _varies(sample: Sample) -> bool:
    """Return whether contents can be reused by the kernel and were not reused in the sample."""
    return (
        sample.kernel in (kernels.PINGPONG.name, kernels.MSGRATE.name)
        and sample.config.get("buffers", "vary") == "vary"
    )


def _above_title(sample: Sample) -> list[str]:
    if sample.kernel in COUNT_LINES:
        name, *lines = COUNT_LINES[sample.kernel]
        counts = str(sample.config[name]).split(":") if name in sample.config else []
        return [line.format(count) for line, count in zip(lines, counts, strict=False)]
    if sample.config.get("operation") not in WITH_TOPOLOGY:
        return []
    return [f"Dimensions size = {' '.join(map(str, _grid(sample.config)))}"]


def _title(sample: Sample) -> tuple[str, str, list[str]]:
    """Return the program, its test, and the lines between the title and the header."""
    if sample.kernel == kernels.COLLECTIVE.name:
        operation = sample.config["operation"]
        program, test = f"osu_{operation}", _COLLECTIVES[operation]
        if _is_persistent(sample.method):
            return f"{program}_persistent", f"{test} Persistent Latency", []
        return program, f"{test} Latency", []
    pairs = sample.config["threads"] if sample.kernel == kernels.MSGRATE.name else 1
    has_window = sample.kernel in (kernels.MSGRATE.name, BIDIRECTIONAL)  # of which OSU prints only the former
    below = [f"# [ pairs: {pairs} ] [ window size: {sample.config['window']} ]"] if has_window else []
    return *_PROGRAMS[sample.kernel], below


def _latency(samples: Sequence[Sample]) -> dict[str, float]:
    return {_MEAN: 1e6 * _over_launches(samples, np.mean), MEDIAN_LATENCY: 1e6 * _over_launches(samples)}


def _message_rate(samples: Sequence[Sample]) -> dict[str, float]:
    config = samples[0].config
    messages = config["threads"] * config["window"]
    mean_per_s, median_per_s = (_per_second(messages, samples, over) for over in (np.mean, np.median))
    megabytes = config["size_bytes"] / 1e6
    return {
        _MEGABYTES: megabytes * mean_per_s, _MESSAGES: mean_per_s, MEDIAN_BANDWIDTH: megabytes * median_per_s,
    }  # fmt: skip


def _both_directions(samples: Sequence[Sample]) -> dict[str, float]:
    config = samples[0].config
    megabytes = 2 * config["window"] * config["size_bytes"] / 1e6
    return {
        _BANDWIDTH: _per_second(megabytes, samples, np.mean),
        MEDIAN_BANDWIDTH: _per_second(megabytes, samples),
    }


def _collective(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the columns of imported runs without times of ranks: the mean, and that of the slowest rank if
    they have it."""
    of_ranks = [one.rank_times_s[one.warmup :] for one in samples if one.rank_times_s is not None]
    if of_ranks:
        means_s = [times_s.mean(axis=0) for times_s in of_ranks]
        medians_s = [np.median(times_s.mean(axis=1)) for times_s in of_ranks]
        columns = {name: [over(one) for one in means_s] for name, over in _OVER_RANKS.items()}
        columns |= {MEDIAN_LATENCY: medians_s}
        return {name: 1e6 * float(np.median(of_launches)) for name, of_launches in columns.items()}
    is_median = any(sample.statistic == MEDIAN for sample in samples)
    by_quantity = {MEAN_OVER_RANKS: MEDIAN_LATENCY if is_median else _MEAN, COMPLETION: _SLOWEST}
    return {
        name: 1e6 * _over_launches(of_quantity)
        for quantity, name in by_quantity.items()
        if (of_quantity := [sample for sample in samples if sample.quantity == quantity])
    }


_OVER_RANKS: Mapping[str, Callable[[np.ndarray], float]] = {
    _MEAN: np.mean,
    _FASTEST: np.min,
    _SLOWEST: np.max,
}
_COLUMNS: Mapping[str, Callable[[Sequence[Sample]], dict[str, float]]] = {
    kernels.MSGRATE.name: _message_rate,
    BIDIRECTIONAL: _both_directions,
    kernels.COLLECTIVE.name: _collective,
}


def _over_launches(samples: Sequence[Sample], over_iterations: Callable = np.median) -> float:
    return float(np.median([over_iterations(sample.steady_times_s()) for sample in samples]))


def _per_second(amount: float, samples: Sequence[Sample], over_iterations: Callable = np.median) -> float:
    """Return the rate; 0 if the clock was too coarse for the time: `read_osu` omits rates of 0."""
    time_s = _over_launches(samples, over_iterations)
    return amount / time_s if time_s > 0 else 0.0
