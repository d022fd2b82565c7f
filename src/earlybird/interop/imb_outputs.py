"""Read what the Intel MPI Benchmarks printed, as points of the kernels that measure the same quantity."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from earlybird.data.benchmark_parameters import (
    CONTIG_TYPE,
    IMB_BARRIER,
    MAP,
    MSG_PAUSE,
    OFF_CACHE,
    ROOT_SHIFT,
    SYNC,
    THREAD_LEVEL,
    WARM_UP,
)
from earlybird.data.collective_algorithms import OPERATIONS, ROOTED
from earlybird.data.errors import InputError
from earlybird.data.kernels import MSGRATE
from earlybird.data.labels import listed
from earlybird.data.statistics import MEAN
from earlybird.data.units import format_bytes
from earlybird.interop.imported import (
    DAMAGED,
    GPU,
    MEANS_ONLY,
    ONE_BUFFER,
    Imported,
    ImportedPoint,
    collective,
    collective_config,
    date_in,
    only_title,
    pingpong,
    refuse_repeated_points,
    rounding,
    single,
    values_text,
    window_of_messages,
)
from earlybird.interop.line_prefixes import prefix_of

# Messages in a window of Uniband and Biband by default: from 2021.2 on, and before, when it was first a
# constant (MAX_WIN_SIZE) and in 2021.1 the default of -window_size.
WINDOW, EARLIER_WINDOW = 256, 64
_LARGER_WINDOW_SINCE = (2021, 2)
_VERSIONS = (2018, 2019, 2021)
_PART = "MPI-1 part"
_TITLE = re.compile(
    r"^#\s*Intel ?\(R\) MPI Benchmarks ([^,\n]*?)(?:, *([^\n#]*?))?(?:[^\S\n]*|#.*)$", re.MULTILINE
)
_TABLE = re.compile("# Benchmarking ")
_LAST_LINE = "# All processes entering MPI_Finalize"
_BANDS = {"uniband": (MSGRATE.name, 1), "biband": ("imb-biband", 2)}
_EXCHANGES = ("pingping", "sendrecv", "exchange")
_COLLECTIVES = ", ".join(OPERATIONS)
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
# Rows of sizes that IMB itself gave up (IMB_output.c), after the number of the group of -multi.
_FAILED_ROW = re.compile(r"\s*(?:[0-9]+\s+)?([0-9]{1,18})\s+(out-of-mem|time-out|int-overflow)\b")
_MULTI = "multi-"
_MAX_RANKS = 16  # that are listed in the order of -map
_REMARKS = re.compile(r"^#[^\S\n]?(.*)$")
_AFTER_CALL = re.compile(r"(?:Minimum|Maximum|Message lengths|MPI_|List of)")
# Options with one value that change only which sizes are measured, how often, and by which processes.
_HARMLESS = frozenset((
    "npmin", "iter", "iter_policy", "time", "mem", "msglen", "msgsize", "msglog", "zero_size", "include",
    "exclude", "input", "multi", "data_type", "red_data_type", "window_size", "dump",
))  # fmt: skip
_SWITCHES = {"on": True, "off": False, "1": True, "0": False, "yes": True, "no": False,
             "true": True, "false": False, "enable": True, "disable": False}  # fmt: skip
# The switches that are not as they are by default, by that default.
_DEFAULTS = {ROOT_SHIFT: False, SYNC: True, IMB_BARRIER: False, WARM_UP: True, MSG_PAUSE: False}
_OF_COLLECTIVES = (SYNC, IMB_BARRIER)  # they synchronize the iterations of collectives, not of a barrier


@dataclass
class _Table:
    """The text of one benchmark with one number of processes."""

    name: str
    ranks: int
    points: list[ImportedPoint] = field(default_factory=list)
    failed: dict[str, list[int]] = field(default_factory=dict)  # reason -> bytes


@dataclass(frozen=True)
class _Call:
    """The arguments that IMB repeats in its text; none if `is_known` is false."""

    is_known: bool
    parameters: Mapping[str, str]
    window: int | None


def read_imb(text: str, where: str, window: int | None = None) -> Imported:
    """Read all tables of one output of IMB-MPI1 of the Intel MPI Benchmarks 2018 to 2021, as printed.

    Parameters
    ----------
    window : messages in a window of Uniband and Biband, if the text does not state it; None for the default.

    Raises
    ------
    InputError for a text that is not such an output, is incomplete, or has no table with a known quantity,
    and for unknown options.
    """
    title = only_title(
        _TITLE,
        text,
        where,
        "'# Intel(R) MPI Benchmarks 2021.11, MPI-1 part'; give the whole output of IMB-MPI1",
    )
    version = _version(title, where)
    call = _call(text, where)
    if level := _thread_level(text, call):
        call = replace(call, parameters={**call.parameters, THREAD_LEVEL: level})
    if "IMB_OPTIONAL mode" in text:
        raise InputError(
            f"{where} is of an IMB with other settings than the standard ones (IMB_OPTIONAL), which it does "
            "not print; give an output without them"
        )
    in_window = _window(where, window, call, version)
    tables: list[_Table] = []
    skipped: dict[str, None] = {}
    for block in re.split(r"^# Benchmarking ", text, flags=re.MULTILINE)[1:]:
        name = (block.split(maxsplit=1) or [""])[0].lower()
        table = None if name.startswith(_MULTI) else _table(name, block, where, in_window, call)
        if table and (table.points or table.failed):
            tables.append(table)
        else:
            skipped[name] = None
    if not skipped and not tables and (prefix := prefix_of(_TABLE, text)):
        raise InputError(
            f"{where} has {prefix!r} before the titles of its tables; remove it from every line, and give "
            "only what the benchmark printed"
        )
    if _LAST_LINE not in text:
        raise InputError(f"{where} has no {_LAST_LINE!r}; it was cut off: give the whole output")
    points = [point for table in tables for point in table.points]
    if not points:
        raise InputError(
            f"{where} has no table with a quantity here{': ' + ', '.join(skipped) if skipped else ''}"
            f"{_failures(tables)}; give PingPong, PingPing, Sendrecv, Exchange, Uniband, Biband or a "
            f"collective of IMB-MPI1 ({_COLLECTIVES})"
        )
    refuse_repeated_points(points, where)
    hidden = values_text(points)
    has_windows = any("window" in point.config for point in points)
    if has_windows and not call.is_known:
        hidden += f"; {in_window} messages in a window are assumed"
    if has_windows:
        hidden += ONE_BUFFER.format("an offset")
    if not call.is_known:
        hidden += "; the text does not repeat its arguments: default options are assumed"
    hidden += _failures(tables)
    if skipped:
        hidden += f"; left out, without a quantity here: {', '.join(skipped)}"
    datatype = ", ".join(
        f"{found[2]}{found[1].replace('for', 'of')}"
        for found in re.finditer(r"^# MPI_Datatype( for reductions|) +: +(\w+) *$", text, re.MULTILINE)
    )
    started = date_in(r"^# Date +: ", text)
    return Imported("Intel MPI Benchmarks", title[1], tuple(points), hidden + MEANS_ONLY, started, datatype)


def _version(title: re.Match[str], where: str) -> tuple[int, int]:
    """Find year and number, such as (2021, 11), in a title of IMB-MPI1 that is known; raise InputError
    otherwise."""
    part = title[2] or "no part"
    if "GPU" in part:
        raise InputError(f"{where} is of {part!r} of IMB: of {GPU}")
    if part != _PART:
        raise InputError(
            f"{where} is of {part!r} of IMB, which has no quantity here, also where a table has the name of "
            f"another part; give an output of IMB-MPI1 ({_PART!r})"
        )
    found = re.fullmatch(r"([0-9]{4})(?:\.([0-9]{1,4})(?:\.[0-9]+)*)?(?: Update [0-9]+)?", title[1].strip())
    if not found or int(found[1]) not in _VERSIONS:
        raise InputError(
            f"{where} is of version {title[1]!r} of IMB, which is not known; give one of 2018, 2019 or 2021"
        )
    return int(found[1]), int(found[2] or 0)


def _window(where: str, given: int | None, call: _Call, version: tuple[int, int]) -> int:
    """Return the messages in a window; raise InputError if the option contradicts the calling sequence."""
    default = WINDOW if version >= _LARGER_WINDOW_SINCE else EARLIER_WINDOW
    in_text = call.window or default
    if given is not None and call.is_known and given != in_text:
        raise InputError(
            f"--window is {given}, and {where} has windows of {in_text} by its calling sequence; omit "
            "--window"
        )
    return given or in_text


def _call(text: str, where: str) -> _Call:
    """Read the arguments after `Calling sequence was:`; raise InputError for unknown options."""
    arguments = _arguments(text)
    if not arguments:
        return _Call(False, {}, None)
    if "GPU" in arguments[0].rsplit("/", 1)[-1]:
        raise InputError(f"{where} is of {arguments[0]!r}: of {GPU}")
    options = list(_options(arguments[1:]))
    parameters: dict[str, str] = {}
    window = None
    for name, value in options:
        if name in _DEFAULTS:
            switch = _SWITCHES.get(value.lower())
            if switch is None:
                raise _unknown(where, name, value)
            parameters.pop(name, None)
            parameters |= {name: "on" if switch else "off"} if switch != _DEFAULTS[name] else {}
        elif name == "off_cache":
            parameters |= _off_cache(where, value)
        elif name == "map":
            parameters |= _map(where, value)
        elif name == "window_size":
            if not re.fullmatch(r"[1-9][0-9]{0,8}", value):
                raise _unknown(where, name, value)
            window = int(value)
        elif name == "thread_level":
            parameters |= {THREAD_LEVEL: value} if value != "single" else {}
        elif name == "contig_type":
            parameters |= {CONTIG_TYPE: value} if value != "base" else {}
        elif name == "mem_alloc_type":
            if value != "cpu":
                raise InputError(f"{where} has -mem_alloc_type {value}: it is of {GPU}")
        elif name not in _HARMLESS:
            raise _unknown(where, name, value)
    return _Call(True, parameters, window)


def _thread_level(text: str, call: _Call) -> str:
    """Find the level of builds that initialize threads; "" by default, and if the calling sequence states
    it."""
    found = re.search(r"^# MPI Thread Environment: +MPI_THREAD_(\w+)", text, re.MULTILINE)
    level = found[1].lower() if found else "single"
    return "" if level == "single" or THREAD_LEVEL in call.parameters else level


def _arguments(text: str) -> list[str]:
    """List the program and its arguments, which IMB 2018 breaks into lines."""
    _, found, rest = text.partition("Calling sequence was:")
    words: list[str] = []
    for line in rest.splitlines()[1:] if found else ():
        remark = _REMARKS.match(line)
        content = remark[1].strip() if remark else line.strip()
        if not remark and content:
            break
        if _AFTER_CALL.match(content) or (words and not content):
            break
        words += content.split()
    return words


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option with its value; omit names of benchmarks."""
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("-") and not re.match(r"-[0-9.]", argument):
            yield argument.lstrip("-"), next(rest, "")


def _unknown(where: str, name: str, value: str) -> InputError:
    return InputError(
        f"{where} was measured with {f'-{name} {value}'.strip()!r}, and what that changes is not known; "
        "give an output without it"
    )


def _off_cache(where: str, value: str) -> dict[str, str]:
    """Read -off_cache: another part of a buffer is sent in each repetition, unless the size of the cache is 0
    or, with that of a line, negative."""
    found = re.fullmatch(r"(-?[0-9.]+)(,-?[0-9.]+)?", value)
    try:
        cache_mib = float(found[1]) if found else 0.0
    except ValueError:
        found = None
    if not found:
        raise _unknown(where, OFF_CACHE, value)
    if cache_mib < 0 and not found[2]:
        return {OFF_CACHE: "default"}
    return {OFF_CACHE: value} if cache_mib > 0 else {}


def _map(where: str, value: str) -> dict[str, str]:
    """Read -map: the order of ranks changes only in a grid of several rows and columns."""
    found = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", value)
    if not found:
        raise _unknown(where, MAP, value)
    return {MAP: value} if min(int(found[1]), int(found[2])) > 1 else {}


def _table(name: str, block: str, where: str, window: int, call: _Call) -> _Table | None:
    """Read the rows of one table; return None if the benchmark has no known quantity."""
    processes = re.search(r"#processes = ([0-9]{1,9})", block)
    header = re.search(r"^[^\S\n]*(?:Group\s+)?(?:#bytes\s+)?#repetitions[^\S\n]+.*$", block, re.MULTILINE)
    if name not in ("pingpong", *_EXCHANGES, *_BANDS, *OPERATIONS):
        return None
    if not processes or not header:
        raise InputError(f"{where}: the table of {name} has no header; it was cut off: give the whole output")
    columns = header[0].split()
    if "defects" in columns:
        raise InputError(
            f"{where}: the table of {name} has defects: IMB was built to check messages while it measures; "
            "give an output of a build without CHECK"
        )
    table = _Table(name, int(processes[1]))
    parameters = dict(call.parameters) | _order(block[: header.start()], call.parameters.get(MAP, ""))
    for line in block[header.end() :].splitlines():
        if line.startswith("#"):
            break
        if failed := _FAILED_ROW.match(line):
            table.failed.setdefault(failed[2], []).append(int(failed[1]))
            continue
        values = line.split()
        if not values:
            continue
        if len(values) != len(columns) or not all(map(_NUMBER.fullmatch, values)):
            raise InputError(
                f"{where}: the table of {name} has the line {line.strip()[:60]!r} and the columns "
                f"{', '.join(columns)}; {DAMAGED}"
            )
        row = dict(zip(columns, map(float, values), strict=True))
        points = list(_row(name, row, table.ranks, window))
        if not points:
            return None
        table.points += [_with(point, parameters) for point in points]
    if not table.points and not table.failed:
        raise InputError(f"{where}: the table of {name} has no rows; it was cut off: give the whole output")
    return table


def _order(head: str, grid: str) -> dict[str, str]:
    """Find the order of ranks by -map, which is printed above a table: the grid, and the ranks unless they
    are many."""
    _, found, rest = head.partition("rank order (rowwise)")
    ranks = re.findall(r"[0-9]+", rest.partition("(")[0])
    if not found or not ranks:
        return {}
    shown = [grid] if grid else []
    return {MAP: ": ".join([*shown, " ".join(ranks)] if len(ranks) <= _MAX_RANKS or not grid else shown)}


def _row(name: str, row: Mapping[str, float], ranks: int, window: int) -> Iterator[ImportedPoint]:
    size_bytes = int(row.get("#bytes", 0))
    time_us = row.get("t[usec]", row.get("t_max[usec]"))
    if name == "pingpong" and time_us is not None:
        yield _half_round_trip(size_bytes, time_us, row.get("Mbytes/sec", 0.0))
    elif name in _EXCHANGES and time_us is not None:
        config = {"size_bytes": size_bytes, "ranks": ranks}
        yield ImportedPoint(
            f"imb-{name}", "time_per_repeat", single(time_us * 1e-6), config, statistic=MEAN,
            rounding=rounding(time_us),
        )  # fmt: skip
    elif name in _BANDS and "Msg/sec" in row:
        kernel, directions = _BANDS[name]
        pairs = ranks // 2
        yield window_of_messages(
            kernel, size_bytes, window, pairs, directions * pairs * window, row["Msg/sec"],
            rounding(row["Msg/sec"], unit=1),
        )  # fmt: skip
    elif name in OPERATIONS and time_us is not None and "t_avg[usec]" in row:
        yield from collective(collective_config(name, size_bytes, ranks), row["t_avg[usec]"], time_us)


def _half_round_trip(size_bytes: int, time_us: float, rate: float) -> ImportedPoint:
    """Return a ping-pong of time or bandwidth, both with two decimals: for small messages the bandwidth has
    more digits. It is used only if it agrees with the time."""
    by_rate_us = size_bytes / rate if rate > time_us else time_us
    off_by_rounding_us = 0.0051 + by_rate_us * 0.0051 / rate if rate else 0.0
    if rate > time_us and abs(by_rate_us - time_us) <= off_by_rounding_us:
        return pingpong(size_bytes, by_rate_us, rate)
    return pingpong(size_bytes, time_us, time_us)


def _with(point: ImportedPoint, parameters: Mapping[str, str]) -> ImportedPoint:
    """Return the point with the parameters of the calling sequence that change it."""
    operation = point.config.get("operation")
    kept = {
        name: value
        for name, value in parameters.items()
        if not (name in _OF_COLLECTIVES and (operation is None or operation == "barrier"))
        and not (name == ROOT_SHIFT and operation not in ROOTED)
    }
    config = dict(point.config)
    if OFF_CACHE in kept and "buffers" in config:
        config["buffers"] = "off-cache"
    if ROOT_SHIFT in kept:
        config.pop("root", None)  # every rank in turn
    return replace(point, config=config | kept)


def _failures(tables: Sequence[_Table]) -> str:
    """Return a text that names the sizes that IMB gave up, for each table."""
    given_up = [
        f"{table.name} of {table.ranks} ranks at {listed([format_bytes(size) for size in sizes])} ({reason})"
        for table in tables
        for reason, sizes in table.failed.items()
    ]
    return f"; given up by IMB itself: {', '.join(given_up)}" if given_up else ""
