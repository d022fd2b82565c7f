"""Results that other benchmarks printed, as points of the kernels that measure the same quantity here."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate
from typing import Any, Literal

import numpy as np

from earlybird.data.collective_algorithms import (
    COMPLETION,
    DEFAULT,
    MEAN_OVER_RANKS,
    OPERATIONS,
    PERSISTENT,
    ROOTED,
    WITH_COUNTS,
    WITH_TOPOLOGY,
)
from earlybird.data.errors import InputError
from earlybird.data.labels import listed
from earlybird.data.topologies import GRID_9, RING, rows_and_columns
from earlybird.data.units import format_bytes

# Messages in a window of the bandwidth tests by default, which the programs do not print: OSU's option -W,
# IMB's -window_size.
OSU_WINDOW, IMB_WINDOW = 64, 256
Statistic = Literal["mean", "median"]
# Earlybird's own line in a text that it writes like OSU's, where contents were new in every timed region.
VARY = "# Written by Earlybird, buffers vary."
_ONE_BUFFER = (
    "; without {}, all messages of a window are sent from one buffer, in `measure msgrate` each has its own"
)
# What to do about a line that has not the columns of its table.
DAMAGED = (
    "give the whole output if it was cut off or changed, and remove lines that the benchmark did not print"
)
_MEANS_ONLY = "; intervals then describe launches alone"
_OPERATIONS = {
    "allgather": "allgather", "allreduce": "allreduce", "all-to-all personalized exchange": "alltoall",
    "alltoall": "alltoall", "barrier": "barrier", "broadcast": "bcast", "bcast": "bcast", "gather": "gather",
    "reduce": "reduce", "scatter": "scatter", "allgatherv": "allgatherv", "alltoallv": "alltoallv",
    "all-to-allv personalized exchange": "alltoallv", "neighborhood allgather": "neighbor_allgather",
    "neighborhood alltoall": "neighbor_alltoall", "neighborhood all-to-allv": "neighbor_alltoallv",
}  # fmt: skip
_LATENCY, _PERSISTENT = " latency", " persistent"
_DIMENSIONS = re.compile(r"^Dimensions size =((?: [0-9]{1,6})+) *$", re.MULTILINE)
_TOPOLOGIES = {1: RING, 2: GRID_9}  # by the number of dimensions
_MULTI_LATENCY = "multi latency"
MULTI_LATENCY, BIDIRECTIONAL = "osu-multi-latency", "osu-bi-directional-bandwidth"
_OTHER_LATENCIES = (_MULTI_LATENCY, "multi-threaded latency", "multi-process latency")
# The kernel, and of how many directions the bandwidth or message rate is the sum.
_BANDWIDTHS = {"bandwidth": ("msgrate", 1), "bi-directional bandwidth": (BIDIRECTIONAL, 2)}
_IMB_BANDS = {"uniband": ("msgrate", 1), "biband": ("imb-biband", 2)}
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
# Where a name fills its column, one space follows it.
_BETWEEN_COLUMNS = re.compile(r"\s{2,}|(?<=\))\s(?=[A-Z])|(?<=/s)\s(?=[A-Z])|(?<=Validation)\s(?=[A-Z])")
_VALIDATION = "Validation"
MEDIAN_LATENCY, MEDIAN_BANDWIDTH = "P50 Tail Lat(us)", "P50 Tail BW(MB/s)"  # with -z 50
_OSU_TITLE = re.compile(r"^# OSU MPI(?:-\S+)? (.+?) Test(?: v(\S+))?\s*$", re.MULTILINE)
_COLLECTIVES = ", ".join(OPERATIONS)
_IMB_LAST_LINE = "# All processes entering MPI_Finalize"
_IMB_TITLE = re.compile(r"Intel\(R\) MPI Benchmarks ([0-9.]+)")


@dataclass(frozen=True, eq=False)
class ImportedPoint:
    """One point of a text.

    Attributes
    ----------
    times_s : (I,) seconds of each iteration; one value where the text has only a mean.
    config : what identifies the point, except for level and MPI.
    rank_times_s : (I, P) seconds of each rank, or None.
    """

    kernel: str
    quantity: str
    times_s: np.ndarray
    config: Mapping[str, Any]
    method: str | None = None
    rank_times_s: np.ndarray | None = None


@dataclass(frozen=True)
class Imported:
    """What one text holds.

    Attributes
    ----------
    tool, version : of the benchmark program, as it printed them.
    points : without level and MPI, which the texts do not say.
    hidden : what of the measurement the text does not show, in a sentence.
    started : when it began, on the clock of its machine; None if it does not say so.
    statistic : of the iterations, that each value is where the text has one value per point.
    datatype : of its messages, as it printed it; empty if it does not say so.
    """

    tool: str
    version: str
    points: tuple[ImportedPoint, ...]
    hidden: str
    started: datetime | None = None
    statistic: Statistic = "median"
    datatype: str = ""


def date_in(pattern: str, text: str) -> datetime | None:
    """The date after `pattern` in `text`, as asctime writes it (Thu Nov 26 23:05:57 2026); None without."""
    found = re.search(pattern + r"(.*)$", text, re.MULTILINE)
    parts = parsedate(found[1]) if found else None
    try:
        return datetime(*parts[:6]) if parts else None
    except ValueError:
        return None


def read_osu(text: str, where: str, ranks: int | None, window: int = OSU_WINDOW) -> Imported:
    """The table of one of the OSU Micro-Benchmarks 4 to 7, as printed, also with -f (minimum and maximum) and
    with -z 50: then the median over iterations is taken, not the mean.

    Parameters
    ----------
    ranks : of a collective or of pairs, which OSU does not print.

    Raises
    ------
    InputError for a text that is none, is incomplete, or belongs to a benchmark without a quantity here.
    """
    title = _only_title(_OSU_TITLE, text, where, "'# OSU MPI Latency Test v7.4'; give the whole output")
    if re.search(r"Buffer on (DEVICE|MANAGED)", text):
        raise InputError(
            f"{where} is of buffers in a GPU, which have no quantity here; give one of host memory"
        )
    name, version = title[1].lower(), title[2] or ""
    datatypes = dict.fromkeys(re.findall(r"^# Datatype: (\S+?)\.?$", text, re.MULTILINE))
    if len(datatypes) > 1:
        raise InputError(
            f"{where} has tables of {listed(list(datatypes))}, which would be launches of one; give a "
            "text of one datatype (-T)"
        )
    columns, rows = _osu_table(text[title.end() :], where)
    if not rows:
        raise InputError(f"{where} has no rows after its header; it was cut off: give the whole output")
    pairs = re.search(r"\[ pairs: ([0-9]+) \] \[ window size: ([0-9]+) \]", text)
    grid = _grid(text, where, ranks) if _operation(name)[0] in WITH_TOPOLOGY else ()
    ranks = math.prod(grid) if grid else ranks
    points = [
        point
        for row in rows
        for point in _osu_points(
            name, dict(zip(columns, row, strict=True)), where, ranks, pairs, window, grid
        )
    ]
    value: Statistic = "median" if {MEDIAN_LATENCY, MEDIAN_BANDWIDTH} & set(columns) else "mean"
    hidden = f"each value is the {value} over all iterations, of the mean over ranks where a test has several"
    if "bandwidth" in name and not pairs:
        hidden += _assumed(window)
    if grid and min(grid) >= 5:  # with fewer, OSU refuses any other radius
        hidden += "; neighbours at a distance of 1 (-N) are assumed"
    _refuse_repeated_points(points, where)
    if VARY in text:
        points = [_with_new_contents(point) for point in points]
    elif "bandwidth" in name:
        hidden += _ONE_BUFFER.format("-b multiple")
    return Imported(
        "OSU Micro-Benchmarks", version, tuple(points), hidden + _MEANS_ONLY, statistic=value,
        datatype="".join(datatypes),
    )  # fmt: skip


def _with_new_contents(point: ImportedPoint) -> ImportedPoint:
    """As Earlybird measured it; for message rates that is what a point without the key has."""
    config = {name: value for name, value in point.config.items() if name != "buffers"}
    if point.kernel == "pingpong":
        config["buffers"] = "vary"
    return replace(point, config=config)


def _operation(name: str) -> tuple[str | None, str]:
    """Operation, or None, and method of a test of OSU such as `broadcast persistent latency`."""
    call = name.removesuffix(_LATENCY)
    return _OPERATIONS.get(call.removesuffix(_PERSISTENT)), PERSISTENT if _PERSISTENT in call else DEFAULT


def _grid(text: str, where: str, ranks: int | None) -> tuple[int, ...]:
    """Dimensions of the periodic grid of a neighbourhood collective, whose corners are neighbours too.

    InputError unless a topology of `measure collective` is that grid.
    """
    found = _DIMENSIONS.search(text)
    grid = tuple(map(int, found[1].split())) if found else ()
    is_known = len(grid) in _TOPOLOGIES and min(grid) >= 3
    if not is_known or (len(grid) == 2 and tuple(sorted(grid)) != rows_and_columns(math.prod(grid))):
        shape = f"in a grid of {' x '.join(map(str, grid))}" if found else "from a file"
        raise InputError(
            f"{where} has neighbours {shape}, and `measure collective` has none such; give an output of "
            f"-N cart:1:1 ({RING}) or -N cart:2:1 ({GRID_9})"
        )
    if ranks not in (None, math.prod(grid)):
        raise InputError(f"--ranks is {ranks} and {where} is of {math.prod(grid)} ranks; omit --ranks")
    return grid


def _only_title(pattern: re.Pattern[str], text: str, where: str, such_as: str) -> re.Match[str]:
    titles = list(pattern.finditer(text))
    if not titles:
        raise InputError(f"{where} has no line such as {such_as}")
    if len(titles) > 1:
        raise InputError(f"{where} holds {len(titles)} outputs; each is a launch: give a file for each")
    return titles[0]


def _osu_table(text: str, where: str) -> tuple[list[str], list[list[float]]]:
    """Names of the columns, such as `Size` and `Avg Latency(us)`, and the numbers of the rows."""
    columns: list[str] = []
    rows = []
    validation: int | None = None  # its column, of -c
    for line in text.splitlines():
        if not columns and line.startswith("#"):
            found = _BETWEEN_COLUMNS.split(line.removeprefix("#").strip())
            if re.search(r"\((us|MB/s)\)|MB/s", line):
                columns = [re.sub(r"\s*\(", "(", name) for name in found]
                if "Transmit Size" in columns:
                    raise InputError(
                        f"{where} is of a derived datatype (-D), which has no quantity here; give one "
                        "without -D"
                    )
                if _VALIDATION in columns:
                    validation = columns.index(_VALIDATION)
                    columns.pop(validation)
        elif line.strip() and not line.startswith("#"):
            values = line.split()
            outcome = values[validation : validation + 1] if validation is not None else []
            if outcome == ["Fail"]:
                raise InputError(f"{where} has wrong data at {values[0]} bytes: the validation of OSU failed")
            if outcome == ["Pass"]:
                values.remove("Pass")
            if len(values) != len(columns) or not all(map(_NUMBER.fullmatch, values)):
                has = f"{len(columns)} columns ({', '.join(columns)})" if columns else "no header above it"
                raise InputError(f"{where} has the line {line.strip()[:60]!r}, and {has}; {DAMAGED}")
            rows.append([float(value) for value in values])
    return columns, rows


def _osu_points(
    name: str,
    row: Mapping[str, float],
    where: str,
    ranks: int | None,
    pairs: re.Match[str] | None,
    window: int,
    grid: Sequence[int],
) -> Iterator[ImportedPoint]:
    size_bytes = int(row.get("Size", 0))
    operation, method = _operation(name)
    latency_us = row.get(MEDIAN_LATENCY, row.get("Latency(us)", row.get("Avg Latency(us)")))
    rate = row.get(MEDIAN_BANDWIDTH, row.get("Bandwidth(MB/s)", row.get("MB/s")))
    if name == "latency" and latency_us is not None:
        yield _pingpong(size_bytes, latency_us)
    elif name in _OTHER_LATENCIES and latency_us is not None:
        count = {"ranks": _required(ranks, where)} if name == _MULTI_LATENCY else {}
        kernel = f"osu-{name.replace(' ', '-')}"
        config = {"size_bytes": size_bytes} | count
        yield ImportedPoint(kernel, "half_round_trip", _mean(latency_us * 1e-6), config)
    elif name in _BANDWIDTHS and rate is not None:
        kernel, directions = _BANDWIDTHS[name]
        time_s = _at_rate(directions * window * size_bytes, rate * 1e6)
        yield _window(kernel, size_bytes, window, time_s, 1)
    elif name.startswith("multiple bandwidth") and pairs and "Messages/s" in row:
        threads, of_window = int(pairs[1]), int(pairs[2])
        messages_per_s = row["Messages/s"]
        if size_bytes and row.get(MEDIAN_BANDWIDTH):
            messages_per_s = row[MEDIAN_BANDWIDTH] * 1e6 / size_bytes
        time_s = _at_rate(threads * of_window, messages_per_s)
        yield _window("msgrate", size_bytes, of_window, time_s, threads)
    elif operation is not None and latency_us is not None:
        topology = _TOPOLOGIES.get(len(grid))
        config = collective_config(operation, size_bytes, _required(ranks, where), topology=topology)
        yield from _collective(config, latency_us, row.get("Max Latency(us)"), method)
    else:
        raise InputError(
            f"{where} is of the test {name!r} with the columns {', '.join(row)}, which has no quantity here; "
            "give osu_latency, osu_bw, osu_bibw, osu_mbw_mr, osu_multi_lat, osu_latency_mt, osu_latency_mp, "
            f"or the blocking or persistent test of a collective ({_COLLECTIVES})"
        )


def read_imb(text: str, where: str, window: int = IMB_WINDOW) -> Imported:
    """All tables of one output of the Intel MPI Benchmarks 2018 to 2021 (IMB-MPI1), as printed.

    Raises InputError for a text that is none, is incomplete, or has no table with a quantity here.
    """
    title = _only_title(
        _IMB_TITLE, text, where, "'Intel(R) MPI Benchmarks 2021.11'; give the whole output of IMB-MPI1"
    )
    points: list[ImportedPoint] = []
    skipped: list[str] = []
    blocks = re.split(r"^# Benchmarking ", text, flags=re.MULTILINE)[1:]
    for block in blocks:
        name = block.split(maxsplit=1)[0].lower()
        found = list(_imb_points(name, block, where, window))
        points += found
        if not found:
            skipped.append(name)
    if _IMB_LAST_LINE not in text:
        raise InputError(f"{where} has no {_IMB_LAST_LINE!r}; it was cut off: give the whole output")
    if not points:
        raise InputError(
            f"{where} has no table with a quantity here{': ' + ', '.join(skipped) if skipped else ''}; give "
            "PingPong, PingPing, Sendrecv, Exchange, Uniband, Biband or a collective of IMB-MPI1 "
            f"({_COLLECTIVES})"
        )
    _refuse_repeated_points(points, where)
    hidden = "each value is the mean over all repetitions; of collectives, the slowest rank's mean is taken"
    if any("window" in point.config for point in points):
        hidden += _assumed(window) + _ONE_BUFFER.format("an offset")
    if skipped:
        hidden += f"; left out, without a quantity here: {', '.join(skipped)}"
    started = date_in(r"^# Date +: ", text)
    datatype = ", ".join(
        f"{found[2]}{found[1].replace('for', 'of')}"
        for found in re.finditer(r"^# MPI_Datatype( for reductions|) +: +(\w+) *$", text, re.MULTILINE)
    )
    return Imported(
        "Intel MPI Benchmarks", title[1], tuple(points), hidden + _MEANS_ONLY, started, "mean", datatype
    )


def _refuse_repeated_points(points: Iterable[ImportedPoint], where: str) -> None:
    seen: set[tuple[str, str, frozenset]] = set()
    for point in points:
        key = (point.kernel, point.quantity, frozenset(point.config.items()))
        if key in seen:
            name = point.config.get("operation", point.kernel)
            raise InputError(
                f"{where} has {name} of {format_bytes(point.config['size_bytes'])} twice; each output is a "
                "launch: give a file for each"
            )
        seen.add(key)


def _assumed(window: int) -> str:
    return f"; {window} messages in a window are assumed"


def _imb_points(name: str, block: str, where: str, window: int) -> Iterator[ImportedPoint]:
    processes = re.search(r"#processes = ([0-9]+)", block)
    header = re.search(r"^\s*(?:#bytes\s+)?#repetitions\s+.*$", block, re.MULTILINE)
    if not processes or not header:
        raise InputError(f"{where}: the table of {name} has no header; it was cut off: give the whole output")
    columns = header[0].split()
    count = 0
    for line in block[header.end() :].splitlines():
        if line.startswith("#"):
            break
        values = line.split()
        if not values:
            continue
        if len(values) != len(columns) or not all(map(_NUMBER.fullmatch, values)):
            raise InputError(
                f"{where}: the table of {name} has the line {line.strip()[:60]!r} and the columns "
                f"{', '.join(columns)}; {DAMAGED}"
            )
        count += 1
        row = dict(zip(columns, map(float, values), strict=True))
        yield from _imb_row(name, row, int(processes[1]), window)
    if not count:
        raise InputError(f"{where}: the table of {name} has no rows; it was cut off: give the whole output")


def _imb_row(name: str, row: Mapping[str, float], ranks: int, window: int) -> Iterator[ImportedPoint]:
    size_bytes = int(row.get("#bytes", 0))
    time_us = row.get("t[usec]", row.get("t_max[usec]"))
    if name == "pingpong" and time_us is not None:
        # Both have two decimals: of small messages the bandwidth has more digits.
        rate = row.get("Mbytes/sec", 0.0)
        yield _pingpong(size_bytes, size_bytes / rate if rate > time_us else time_us)
    elif name in ("pingping", "sendrecv", "exchange") and time_us is not None:
        config = {"size_bytes": size_bytes, "ranks": ranks}
        yield ImportedPoint(f"imb-{name}", "time_per_repeat", _mean(time_us * 1e-6), config)
    elif name in _IMB_BANDS and "Msg/sec" in row:
        kernel, directions = _IMB_BANDS[name]
        pairs = ranks // 2
        time_s = _at_rate(directions * pairs * window, row["Msg/sec"])
        yield _window(kernel, size_bytes, window, time_s, pairs)
    elif name in _OPERATIONS and time_us is not None and "t_avg[usec]" in row:
        config = collective_config(_OPERATIONS[name], size_bytes, ranks)
        yield from _collective(config, row["t_avg[usec]"], time_us)


def _pingpong(size_bytes: int, time_us: float) -> ImportedPoint:
    """Both benchmarks send the same buffers again and again by default."""
    return ImportedPoint(
        "pingpong", "half_round_trip", _mean(time_us * 1e-6), {"size_bytes": size_bytes, "buffers": "reuse"}
    )


def _window(kernel: str, size_bytes: int, window: int, time_s: float, pairs: int) -> ImportedPoint:
    """The time of a window of messages, of all pairs at once: those of processes, not of threads. All windows
    have the same contents."""
    config = {"size_bytes": size_bytes, "window": window, "threads": pairs, "buffers": "reuse"}
    return ImportedPoint(kernel, "time_per_window", _mean(time_s), config, "processes")


def _collective(
    config: Mapping[str, Any], mean_us: float, slowest_us: float | None, method: str = DEFAULT
) -> Iterator[ImportedPoint]:
    """The mean over ranks, and the mean of the slowest rank if it is printed: as completion, which it
    approaches from below."""
    yield ImportedPoint("collective", MEAN_OVER_RANKS, _mean(mean_us * 1e-6), config, method)
    if slowest_us is not None:
        yield ImportedPoint("collective", COMPLETION, _mean(slowest_us * 1e-6), config, method)


def collective_config(
    operation: str, size_bytes: int, ranks: int, root: int = 0, topology: str | None = None
) -> dict[str, Any]:
    """What identifies a collective; the texts do not say how its ranks were mapped. Counts are equal in all
    of these benchmarks."""
    config: dict[str, Any] = {"operation": operation, "size_bytes": size_bytes, "ranks": ranks}
    config |= {"map_by": "unknown"} | ({"root": root} if operation in ROOTED else {})
    config |= {"skew": 1} if operation in WITH_COUNTS else {}
    return config | ({"topology": topology} if topology else {})


def _at_rate(amount: float, per_second: float) -> float:
    """0 if the rate was printed as 0."""
    return amount / per_second if per_second else 0.0


def _mean(time_s: float) -> np.ndarray:
    return np.array([time_s])


def _required(ranks: int | None, where: str) -> int:
    if ranks is None:
        raise InputError(f"{where} does not say among how many ranks it was measured; give --ranks")
    return ranks


def positive(points: Iterable[ImportedPoint]) -> Sequence[ImportedPoint]:
    """Without points whose time or rate was printed as 0."""
    return [point for point in points if np.median(point.times_s) > 0]
