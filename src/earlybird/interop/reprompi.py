"""Times that ReproMPI (mpibenchmark) printed, as points of the collectives that are measured here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from earlybird.data.benchmark_parameters import CLOCK, CLOCKSYNC, PROCSYNC, RUNTIME_TYPE
from earlybird.data.collective_algorithms import COMPLETION, DEFAULT, OPERATIONS
from earlybird.data.errors import InputError
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.labels import counted
from earlybird.data.units import number_in, whole_number
from earlybird.interop.imported import DAMAGED, Imported, ImportedPoint, collective_config, date_in

_SETTING = re.compile(r"^#@([^=\n]+)=(.*)$", re.MULTILINE)
_HEADER = re.compile(r"^ *(?:process +)?test .*$", re.MULTILINE)
_OPERATIONS = {f"MPI_{name.capitalize()}": name for name in OPERATIONS}
_WHOLE = "give the whole output"
_DEFAULTS = {PROCSYNC: "MPI_Barrier", RUNTIME_TYPE: "local", CLOCK: "MPI_Wtime", CLOCKSYNC: "None"}
# How ranks begin where they read synchronized clocks for it.
_BY_CLOCK = ("window", "roundtime")
# What a text says besides parameters of its points: how often and how closely clocks were synchronized does
# not change what is measured. `--params` of mpibenchmark adds others.
_KNOWN = frozenset((
    *_DEFAULTS, "nprocs", "nrep", "root_proc", "job_shuffling_enabled", "reproMPIcommitSHA1", "datatype",
    "datatype_extent_bytes", "datatype_size_bytes", "operation", "clock_tick", "frequency_hz", "window_s",
    "wait_time_s", "sync_duration", "hcasynctype", "fitpoints", "exchanges", "min_pingpongs", "max_pingpongs",
    "pingpong_ranks", "bcast_nrep", "bcast_runtime_s", "barrier_switch_count",
))  # fmt: skip


@dataclass
class _Iterations:
    """The rows of one operation and size: for each process the begins, ends and whether it kept its window;
    in a table without processes the begins are 0 and the ends are the times."""

    begins_s: dict[int, list[float]] = field(default_factory=dict)
    ends_s: dict[int, list[float]] = field(default_factory=dict)
    valid: dict[int, list[bool]] = field(default_factory=dict)


def read_repro(text: str, where: str) -> Imported:
    """Return all iterations of every collective in one output of ReproMPI, also with -v (times of each
    process).

    Raises
    ------
    InputError for a text that is not such an output, is incomplete, has only summaries, or no collective of
    `OPERATIONS`, and for unknown settings.
    """
    settings = {name.strip(): value.strip() for name, value in _SETTING.findall(text)}
    headers = list(_HEADER.finditer(text))
    if not headers or "nprocs" not in settings:
        raise InputError(
            f"{where} has no '#@nprocs=' and header such as 'test nrep count runtime_sec'; {_WHOLE}"
        )
    if len(headers) > 1:
        raise InputError(f"{where} holds {len(headers)} outputs; each is a launch: give a file for each")
    if unknown := [f"#@{name}={value}" for name, value in settings.items() if name not in _KNOWN]:
        raise InputError(
            f"{where} has {unknown[0]!r}, and what that changes is not known; give an output without it, or "
            "remove the line if it is a note of your own (--params)"
        )
    columns = headers[0][0].split()
    if not {"runtime_sec", "loc_tstart_sec"} & set(columns):
        raise InputError(
            f"{where} has summaries alone ({', '.join(columns)}); run mpibenchmark without --summary, or "
            "give the file of its --output-file"
        )
    is_global = settings.get("runtime_type") == "global" and "gl_tend_sec" in columns
    _check_columns(columns, is_global, where)
    rows = _rows(text[headers[0].end() :], columns, where)
    ranks = _count(settings, "nprocs", where)
    _check_complete(rows, settings, ranks, where)
    root = _root(settings, ranks, where)
    points, dropped = [], 0
    for (name, size_bytes), iterations in _by_point(rows, settings, is_global, where).items():
        config = collective_config(name, size_bytes, ranks, root) | _parameters(settings)
        point, invalid = _point(iterations, config, is_global, where)
        points += [point] if point else []
        dropped += invalid
    left_out = sorted({str(row["test"]) for row in rows} - set(_OPERATIONS))
    if not points:
        named = f" (it has {', '.join(left_out)})" if left_out else ""
        raise InputError(
            f"{where} has no valid times of {', '.join(_OPERATIONS)}{named}; give an output with one"
        )
    return Imported(
        "ReproMPI",
        settings.get("reproMPIcommitSHA1", ""),
        tuple(points),
        _hidden(settings, dropped, left_out),
        date_in(r"^# Benchmark started at ", text),
        _datatype(settings),
    )


def _parameters(settings: Mapping[str, str]) -> dict[str, str]:
    """Return how ranks began and by which clock they were timed, unless by default; how clocks were
    synchronized only if times or begins depend on it."""
    given = {name: settings.get(name, default) for name, default in _DEFAULTS.items()}
    if given[RUNTIME_TYPE] != "global" and given[PROCSYNC] not in _BY_CLOCK:
        del given[CLOCKSYNC]
    return {name: value for name, value in given.items() if value != _DEFAULTS[name]}


def _root(settings: Mapping[str, str], ranks: int, where: str) -> int:
    value = settings.get("root_proc", "0")
    if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) >= ranks:
        raise InputError(f"{where} has '#@root_proc={value}' of {ranks} ranks; it was changed: {_WHOLE}")
    return int(value)


def _datatype(settings: Mapping[str, str]) -> str:
    of_reductions = f"{settings['operation']} of reductions" if "operation" in settings else ""
    return ", ".join(filter(None, [settings.get("datatype", ""), of_reductions]))


def _check_columns(columns: Sequence[str], is_global: bool, where: str) -> None:
    size = "msize_bytes" if "msize_bytes" in columns else "count"
    times = ("runtime_sec",) if "runtime_sec" in columns else _moments(is_global)
    if missing := [name for name in ("nrep", size, *times) if name not in columns]:
        raise InputError(
            f"{where} has the columns {', '.join(columns)}, and no {', '.join(missing)}; it was changed: "
            f"{_WHOLE}"
        )


def _moments(is_global: bool) -> tuple[str, str]:
    """Return the columns of begin and end, by one clock or by that of each process."""
    clock = "gl" if is_global else "loc"
    return f"{clock}_tstart_sec", f"{clock}_tend_sec"


def _rows(text: str, columns: Sequence[str], where: str) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    for line in text.splitlines():
        values = line.split()
        if not values or line.startswith("#"):
            continue
        if len(values) != len(columns):
            raise InputError(
                f"{where} has the line {line.strip()[:60]!r} and {len(columns)} columns "
                f"({', '.join(columns)}); {DAMAGED}"
            )
        row = dict(zip(columns, values, strict=True))
        try:
            numbers = {name: number_in(value) for name, value in row.items() if name != "test"}
        except ValueError as error:
            raise InputError(
                f"{where} has the line {line.strip()[:60]!r}, in which something is no number; {_WHOLE}"
            ) from error
        if not np.isfinite(list(numbers.values())).all() or numbers.get("count", 0.0) < 0:
            raise InputError(
                f"{where} has the line {line.strip()[:60]!r} with an impossible number; {_WHOLE}"
            )
        rows.append(row | numbers)
    if not rows:
        raise InputError(f"{where} has no rows after its header; it was cut off: {_WHOLE}")
    return rows


def _check_complete(rows: Sequence[Mapping], settings: Mapping[str, str], ranks: int, where: str) -> None:
    """Raise InputError for a table that was cut off. Jobs are printed one after another, with -v the
    processes of each: only the last may be cut off."""
    last = rows[-1]
    repetitions = whole_number(settings.get("nrep", "")) or 0
    if last["nrep"] + 1 < repetitions or last.get("process", ranks - 1) != ranks - 1:
        raise InputError(
            f"{where} ends at repetition {int(last['nrep']) + 1} of {last['test']}, of {repetitions}; it was "
            f"cut off: {_WHOLE}"
        )


def _by_point(
    rows: Sequence[Mapping], settings: Mapping[str, str], is_global: bool, where: str
) -> dict[tuple[str, int], _Iterations]:
    """Return the iterations of each operation and size in bytes, in the order of their first rows."""
    found: dict[tuple[str, int], _Iterations] = {}
    begin, end = _moments(is_global)
    for row in rows:
        if row["test"] not in _OPERATIONS:
            continue
        operation = _OPERATIONS[row["test"]]
        if "msize_bytes" in row:
            size_bytes = int(row["msize_bytes"])
        else:
            size_bytes = int(row["count"]) * _count(settings, "datatype_size_bytes", where)
        of_point = found.setdefault((operation, 0 if operation == "barrier" else size_bytes), _Iterations())
        process = int(row.get("process", 0))
        of_point.begins_s.setdefault(process, []).append(row.get(begin, 0.0))
        of_point.ends_s.setdefault(process, []).append(row.get(end, row.get("runtime_sec")))
        of_point.valid.setdefault(process, []).append(row.get("errorcode", 0) == 0)
    return found


def _point(
    iterations: _Iterations, config: Mapping, is_global: bool, where: str
) -> tuple[ImportedPoint | None, int]:
    """Return the point, None without a valid iteration, and how many iterations were invalid: they missed
    their window."""
    if len({len(of_process) for of_process in iterations.ends_s.values()}) > 1:
        raise InputError(
            f"{where}: processes of {config['operation']} have different numbers of repetitions; it was cut "
            f"off: {_WHOLE}"
        )
    begins_s, ends_s, valid = (
        np.array([values[process] for process in sorted(values)]).T
        for values in (iterations.begins_s, iterations.ends_s, iterations.valid)
    )
    if is_global:
        begins_s = begins_s.min(axis=1, keepdims=True)
    rank_times_s = ends_s - begins_s
    kept = valid.all(axis=1) & (rank_times_s.max(axis=1) > 0)
    dropped = int((~kept).sum())
    if not kept.any():
        return None, dropped
    rank_times_s = rank_times_s[kept]
    of_ranks = rank_times_s if rank_times_s.shape[1] == config["ranks"] else None
    return (
        ImportedPoint(COLLECTIVE.name, COMPLETION, rank_times_s.max(axis=1), config, DEFAULT, of_ranks),
        dropped,
    )


def _hidden(settings: Mapping[str, str], dropped: int, left_out: Sequence[str]) -> str:
    clock = "by one clock" if settings.get("runtime_type") == "global" else "each by its own clock"
    text = f"all iterations are kept, without a warm-up; completion is the slowest rank's time, {clock}"
    if dropped:
        text += f"; left out: {counted(dropped, 'iteration')} that missed the window or took no time"
    return text + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _count(settings: Mapping[str, str], name: str, where: str) -> int:
    value = settings.get(name, "")
    if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < 1:
        raise InputError(f"{where} has {f'#@{name}={value}' if value else f'no #@{name}='}; {_WHOLE}")
    return int(value)
