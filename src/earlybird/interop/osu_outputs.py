"""Read what the OSU Micro-Benchmarks printed, as points of the kernels that measure the same quantity."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earlybird.data.benchmark_parameters import PROCESSES, THREADS, VALIDATION
from earlybird.data.collective_algorithms import DEFAULT, OPERATIONS, PERSISTENT, ROOTED, WITH_TOPOLOGY
from earlybird.data.errors import InputError
from earlybird.data.kernels import MSGRATE, PINGPONG
from earlybird.data.labels import listed
from earlybird.data.statistics import MEAN, MEDIAN, Statistic
from earlybird.data.topologies import GRID_9, RING, rows_and_columns
from earlybird.interop.imported import (
    DAMAGED,
    GPU,
    MEANS_ONLY,
    ONE_BUFFER,
    Imported,
    ImportedPoint,
    collective,
    collective_config,
    only_title,
    pingpong,
    refuse_repeated_points,
    rounding,
    single,
    values_text,
    window_of_messages,
)

# Messages in a window of osu_bw and osu_bibw by default (-W), which they do not print.
WINDOW = 64
# Earlybird's own line in a text that it writes like OSU's, where contents were new in every timed region.
VARY = "# Written by Earlybird, buffers vary."
MULTI_LATENCY, BIDIRECTIONAL = "osu-multi-latency", "osu-bi-directional-bandwidth"
THREADED_LATENCY, PROCESS_LATENCY = "osu-multi-threaded-latency", "osu-multi-process-latency"
MEDIAN_LATENCY, MEDIAN_BANDWIDTH = "P50 Tail Lat(us)", "P50 Tail BW(MB/s)"  # with -z 50
# The lines that count threads and processes, of the sender and of the receiver.
COUNT_LINES = {
    THREADED_LATENCY: (THREADS, "# Number of Sender threads: {}", "# Number of Receiver threads: {}"),
    PROCESS_LATENCY: (
        PROCESSES,
        "# Number of forked processes in sender: {}",
        "# Number of forked processes in receiver: {}",
    ),
}
_OPERATIONS = {
    "allgather": "allgather", "allreduce": "allreduce", "all-to-all personalized exchange": "alltoall",
    "barrier": "barrier", "broadcast": "bcast", "gather": "gather",
    "reduce": "reduce", "scatter": "scatter", "allgatherv": "allgatherv",
    "all-to-allv personalized exchange": "alltoallv",
    "neighborhood allgather": "neighbor_allgather",
    "neighborhood alltoall": "neighbor_alltoall", "neighborhood all-to-allv": "neighbor_alltoallv",
}  # fmt: skip
_LATENCY, _PERSISTENT = " latency", " persistent"
_LATENCY_KERNELS = {
    "multi latency": MULTI_LATENCY, "multi-threaded latency": THREADED_LATENCY,
    "multi-process latency": PROCESS_LATENCY,
}  # fmt: skip
_MULTIPLE_BANDWIDTH = "multiple bandwidth / message rate"
_PROGRAMS = {
    "latency": "osu_latency", "multi latency": "osu_multi_lat", "multi-threaded latency": "osu_latency_mt",
    "multi-process latency": "osu_latency_mp", "bandwidth": "osu_bw", "bi-directional bandwidth": "osu_bibw",
    _MULTIPLE_BANDWIDTH: "osu_mbw_mr",
}  # fmt: skip
# The kernel, and of how many directions the bandwidth or message rate is the sum.
_BANDWIDTHS = {"bandwidth": (MSGRATE.name, 1), "bi-directional bandwidth": (BIDIRECTIONAL, 2)}
_TITLE = re.compile(
    r"^# (OSU|OMB\S*) (\S.*?) Test(?: \(?(?:v|Version )?([^\s()]+)\)?)?[^\S\n]*$", re.MULTILINE
)
_VERSIONS = range(3, 8)
_FAN_SINCE = (7, 4)  # osu_bw_fan_in and osu_bw_fan_out, whose text is that of osu_bw
_DEVICES = ("CUDA", "ROCM", "OPENACC", "MANAGED")
_BUFFER = re.compile(r"\b(?:Buffer|Memory) on (\S+)")
# A command line that is in the text, and what of it chooses a GPU.
_COMMAND = re.compile(r"\b(osu_\w+)((?:[^\S\n]+\S+)*)")
_CHOOSES_GPU = re.compile(r"(?:^|\s)(?:-d[^\S\n]*\w+|--accelerator\b.*|[DM]\s+[DHM]|[DHM]\s+[DM])(?:\s|$)")
_WINDOW_OPTION = re.compile(r"(?:^|\s)(?:-W|--window-size)[\s=]*([0-9]{1,9})(?:\s|$)")
# Of rooted collectives, never printed: `fixed:3` or `rotate`. OSU's README calls the option -r.
_ROOT_OPTION = re.compile(r"(?:^|\s)(?:-[kr]|--root-rank)[\s=]*(\S+)")
_FIXED_ROOT = re.compile(r"fixed:([0-9]{1,9})", re.IGNORECASE)
_ROOT_SINCE = (7, 2)
_IN_PLACE = re.compile(r"(?:^|\s)(?:-l|--in-place)(?:\s|$)")
_PAIRS = re.compile(r"\[ pairs: ([0-9]{1,9}) \] \[ window size: ([0-9]{1,9}|varied) \]")
_DIMENSIONS = re.compile(r"^Dimensions size =((?: [0-9]{1,6})+) *$", re.MULTILINE)
_TOPOLOGIES = {1: RING, 2: GRID_9}  # by the number of dimensions
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
# Where a name fills its column, one space follows it.
_BETWEEN_COLUMNS = re.compile(r"\s{2,}|(?<=\))\s(?=[A-Z])|(?<=/s)\s(?=[A-Z])|(?<=Validation)\s(?=[A-Z])")
_VALIDATION = "Validation"
_COLLECTIVES = ", ".join(OPERATIONS)
_ALLOWED = (
    "give osu_latency, osu_bw, osu_bibw, osu_mbw_mr, osu_multi_lat, osu_latency_mt, osu_latency_mp, or the "
    f"blocking or persistent test of a collective ({_COLLECTIVES})"
)


@dataclass(frozen=True)
class _Setup:
    """The properties that hold for all rows of a table."""

    where: str
    test: str  # of the title, in lower case, such as `multi latency`
    ranks: int | None
    pairs: int | None
    window: int
    grid: tuple[int, ...]
    counts: Mapping[str, str]  # of threads or processes, as parameters of points
    root: int | None  # of a command line; None where 0 is assumed


def read_osu(text: str, where: str, ranks: int | None, window: int | None = None) -> Imported:
    """Read the table of one of the OSU Micro-Benchmarks 3 to 7, as printed, also with -f (minimum and
    maximum) and with -z 50, where the median over iterations is used instead of the mean.

    Parameters
    ----------
    ranks : number of ranks of a collective or of pairs, which OSU does not print.
    window : messages in a window (-W), where it is not printed; None for the default.

    Raises
    ------
    InputError for a text that is not such a table, is incomplete, or belongs to a benchmark without a known
    quantity.
    """
    title = only_title(_TITLE, text, where, "'# OSU MPI Latency Test v7.4'; give the whole output")
    test, version = _test(title, text, where), title[3] or ""
    programs = _refuse_other_programs(text[: title.start()], where)
    arguments = _arguments(text[: title.start()], test)
    if _operation(test)[0] is not None and _IN_PLACE.search(arguments):
        raise InputError(
            f"{where} was measured with MPI_IN_PLACE (-l), which has no quantity here; give one without -l"
        )
    datatypes = dict.fromkeys(re.findall(r"^# Datatype: (\S+?)\.?$", text, re.MULTILINE))
    if len(datatypes) > 1:
        raise InputError(
            f"{where} has tables of {listed(list(datatypes))}, which would be launches of one; give a "
            "text of one datatype (-T)"
        )
    columns, rows, is_validated = _table(text[title.end() :], where)
    if not rows:
        raise InputError(f"{where} has no rows after its header; it was cut off: give the whole output")
    printed_pairs, printed_window = _pairs(text, where)
    stated = _one_window(where, window, printed_window or _window_of(arguments))
    grid = _grid(text, where, ranks) if _operation(test)[0] in WITH_TOPOLOGY else ()
    setup = _Setup(
        where, test, math.prod(grid) if grid else ranks, printed_pairs, stated or WINDOW, grid,
        _counts(test, text), _root_of(arguments, test, ranks, where),
    )  # fmt: skip
    points = [point for row in rows for point in _points(setup, dict(zip(columns, row, strict=True)))]
    if is_validated:
        points = [_with_new_contents(one, {VALIDATION: "each iteration"}) for one in points]
    refuse_repeated_points(points, where)
    if VARY in text:
        points = [_with_new_contents(one) for one in points]
    hidden = _hidden(setup, points, version, stated is None, programs)
    if "bandwidth" in test and VARY not in text:
        hidden += ONE_BUFFER.format("-b multiple")
    return Imported(
        "OSU Micro-Benchmarks", version, tuple(points), hidden + MEANS_ONLY, datatype="".join(datatypes)
    )


def _test(title: re.Match[str], text: str, where: str) -> str:
    """Return the test in the title, in lower case; raise InputError unless it is a test of MPI in C, of host
    memory and of a known version."""
    suite, named, version = title[1], title[2], title[3] or ""
    layer, _, test = named.partition(" ")
    is_mpi, _, device = layer.partition("-")
    if (suite, is_mpi) != ("OSU", "MPI"):
        raise InputError(
            f"{where} is of {f'{suite} {named}'!r}, which is not one of OSU's tests of MPI in C that have a "
            f"quantity here; {_ALLOWED}"
        )
    buffers = _BUFFER.findall(text)
    if any(one != "HOST" for one in buffers) or (device and not buffers):
        raise InputError(f"{where} is of {GPU}")
    if device and device not in _DEVICES:
        raise InputError(
            f"{where} is of {named!r}, and what MPI-{device} stands for is not known; give one of host memory"
        )
    major = re.match(r"[0-9]{1,4}", version)
    if version and not (major and int(major[0]) in _VERSIONS):
        raise InputError(
            f"{where} is of version {version} of the OSU Micro-Benchmarks, which is not known; give one of "
            f"{_VERSIONS[0]} to {_VERSIONS[-1]}"
        )
    return test.lower()


def _refuse_other_programs(before: str, where: str) -> list[str]:
    """Return the programs of the command lines in the text before the title; raise InputError for programs
    that have the title of another one, and for GPUs."""
    programs = []
    for command in _COMMAND.finditer(before):
        if "_fan_" in command[1] or "xccl" in command[1]:
            raise InputError(
                f"{where} is of {command[1]}, which has no quantity here, whatever its title; {_ALLOWED}"
            )
        if _CHOOSES_GPU.search(command[2]):
            raise InputError(f"{where} is of {GPU}")
        programs.append(command[1])
    return programs


def _arguments(before: str, test: str) -> str:
    """Return the arguments of the last command line of the program of this test in the text before the title;
    other programs and earlier command lines belong to other texts, such as that of a failure."""
    of_program = [command[2] for command in _COMMAND.finditer(before) if command[1] == _program(test)]
    return of_program[-1] if of_program else ""


def _program(test: str) -> str:
    """Return the program that prints this test in its title."""
    operation, method = _operation(test)
    if operation is None:
        return _PROGRAMS.get(test, "")
    return f"osu_{operation}{'_persistent' if method == PERSISTENT else ''}"


def _window_of(arguments: str) -> int | None:
    option = _WINDOW_OPTION.search(arguments)
    return int(option[1]) if option else None


def _root_of(arguments: str, test: str, ranks: int | None, where: str) -> int | None:
    """Return the root that a command line chooses; raise InputError for a root that changes or is no rank."""
    option = _ROOT_OPTION.search(arguments)
    if option is None or _operation(test)[0] not in ROOTED:
        return None
    fixed = _FIXED_ROOT.fullmatch(option[1])
    if fixed is None:
        raise InputError(
            f"{where} was measured with {option[0].strip()!r}: a root that is not the same in all iterations "
            "has no quantity here; give one with a fixed root, such as -k fixed:0"
        )
    if ranks is not None and int(fixed[1]) >= ranks:
        raise InputError(
            f"{where} was measured with {option[0].strip()!r}, and --ranks is {ranks}; give the number of "
            "ranks with which it was measured"
        )
    return int(fixed[1])


def _pairs(text: str, where: str) -> tuple[int | None, int | None]:
    """Return the pairs and the window of osu_mbw_mr."""
    found = _PAIRS.search(text)
    if found and found[2] == "varied":
        raise InputError(
            f"{where} is of varied windows (-V), which have no quantity here; give one without -V"
        )
    if found and 0 in (int(found[1]), int(found[2])):
        raise InputError(f"{where} has {found[0]!r}; it was changed: give the whole output")
    return (int(found[1]), int(found[2])) if found else (None, None)


def _one_window(where: str, given: int | None, in_text: int | None) -> int | None:
    """Return the window that the option or the text states; raise InputError if they differ."""
    if None not in (given, in_text) and given != in_text:
        raise InputError(f"--window is {given} and {where} has a window of {in_text}; omit --window")
    return in_text or given


def _counts(test: str, text: str) -> dict[str, str]:
    """Return threads or processes of the sender and of the receiver, as `1:2`; none if they are not
    printed."""
    if (kernel := _LATENCY_KERNELS.get(test, "")) not in COUNT_LINES:
        return {}
    name, *lines = COUNT_LINES[kernel]
    found = [
        re.search("^" + re.escape(line).replace(r"\{\}", "([0-9]{1,9})") + " *$", text, re.MULTILINE)
        for line in lines
    ]
    return {name: ":".join(str(int(one[1])) for one in found if one)} if all(found) else {}


def _hidden(
    setup: _Setup, points: Sequence[ImportedPoint], version: str, is_assumed: bool, programs: Sequence[str]
) -> str:
    """Return what the text does not show, without the parts that hold for all texts."""
    numbers = tuple(int(one) for one in re.findall(r"[0-9]{1,4}", version)[:2])
    hidden = values_text(points)
    if setup.test in _BANDWIDTHS and is_assumed:
        hidden += f"; {setup.window} messages in a window are assumed"
    if _operation(setup.test)[0] in ROOTED and setup.root is None and (not numbers or numbers >= _ROOT_SINCE):
        hidden += "; root 0 is assumed (-k)"
    if setup.grid and min(setup.grid) >= 5:  # with fewer, OSU refuses any other radius
        hidden += "; neighbours at a distance of 1 (-N) are assumed"
    if setup.test == "bandwidth" and numbers >= _FAN_SINCE and not programs:
        hidden += "; osu_bw_fan_in and osu_bw_fan_out print the same text, which is taken for one of osu_bw"
    if setup.test in (_MULTIPLE_BANDWIDTH, "multi latency"):
        hidden += "; whether buffers were in a GPU is not printed: host memory is assumed"
    return hidden


def _with_new_contents(point: ImportedPoint, parameters: Mapping[str, str] | None = None) -> ImportedPoint:
    """Return the point with contents that are new in every timed region instead of reused ones; for message
    rates a point without the key has such contents."""
    config = {name: value for name, value in point.config.items() if name != "buffers"}
    if point.kernel == PINGPONG.name:
        config["buffers"] = "vary"
    return replace(point, config=config | dict(parameters or {}))


def _operation(test: str) -> tuple[str | None, str]:
    """Return the operation, or None, and the method of a test of OSU such as `broadcast persistent
    latency`."""
    if not test.endswith(_LATENCY):
        return None, DEFAULT
    call = test.removesuffix(_LATENCY)
    return _OPERATIONS.get(call.removesuffix(_PERSISTENT)), PERSISTENT if _PERSISTENT in call else DEFAULT


def _grid(text: str, where: str, ranks: int | None) -> tuple[int, ...]:
    """Return the periodic grid of a neighbourhood collective, whose corners are neighbours too.

    Raises InputError unless a topology of `measure collective` is that grid.
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


def _table(text: str, where: str) -> tuple[list[str], list[list[float]], bool]:
    """Return the names of the columns, such as `Size` and `Avg Latency(us)`, the numbers of the rows, and
    whether OSU validated them (-c)."""
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
    return columns, rows, validation is not None


def _points(setup: _Setup, row: Mapping[str, float]) -> Iterator[ImportedPoint]:
    size_bytes, test = int(row.get("Size", 0)), setup.test
    operation, method = _operation(test)
    latency_us = row.get(MEDIAN_LATENCY, row.get("Latency(us)", row.get("Avg Latency(us)")))
    rate = row.get(MEDIAN_BANDWIDTH, row.get("Bandwidth(MB/s)", row.get("MB/s")))
    is_median = MEDIAN_LATENCY in row or MEDIAN_BANDWIDTH in row
    statistic: Statistic = MEDIAN if is_median else MEAN
    if test == "latency" and latency_us is not None:
        yield pingpong(size_bytes, latency_us, latency_us, statistic)
    elif test in _LATENCY_KERNELS and latency_us is not None:
        kernel = _LATENCY_KERNELS[test]
        config = {"size_bytes": size_bytes} | dict(setup.counts)
        config |= {"ranks": _required(setup)} if kernel == MULTI_LATENCY else {}
        yield ImportedPoint(
            kernel, "half_round_trip", single(latency_us * 1e-6), config, statistic=statistic,
            rounding=rounding(latency_us),
        )  # fmt: skip
    elif test in _BANDWIDTHS and rate is not None:
        kernel, directions = _BANDWIDTHS[test]
        yield window_of_messages(
            kernel, size_bytes, setup.window, 1, directions * setup.window * size_bytes, rate * 1e6,
            rounding(rate), statistic,
        )  # fmt: skip
    elif test == _MULTIPLE_BANDWIDTH and setup.pairs and row.keys() & {"MB/s", MEDIAN_BANDWIDTH}:
        yield _message_rate(setup, size_bytes, row)
    elif operation is not None and latency_us is not None:
        topology = _TOPOLOGIES.get(len(setup.grid))
        config = collective_config(operation, size_bytes, _required(setup), setup.root or 0, topology)
        yield from collective(config, latency_us, row.get("Max Latency(us)"), method, statistic)
    else:
        raise InputError(
            f"{setup.where} is of the test {test!r} with the columns {', '.join(row)}, which has no quantity "
            f"here; {_ALLOWED}"
        )


def _message_rate(setup: _Setup, size_bytes: int, row: Mapping[str, float]) -> ImportedPoint:
    """Return a point of osu_mbw_mr: of the median bandwidth, otherwise of the message rate, which has the
    most digits and which -R 0 omits."""
    is_median = MEDIAN_BANDWIDTH in row
    if "Messages/s" in row and not is_median:
        printed = messages_per_s = row["Messages/s"]
    else:
        printed = row[MEDIAN_BANDWIDTH if is_median else "MB/s"]
        messages_per_s = printed * 1e6 / size_bytes if size_bytes else 0.0
    pairs = setup.pairs or 1
    return window_of_messages(
        MSGRATE.name, size_bytes, setup.window, pairs, pairs * setup.window, messages_per_s,
        rounding(printed), MEDIAN if is_median else MEAN,
    )  # fmt: skip


def _required(setup: _Setup) -> int:
    if setup.ranks is None:
        raise InputError(f"{setup.where} does not say among how many ranks it was measured; give --ranks")
    return setup.ranks
