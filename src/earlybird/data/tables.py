"""Published tables: fitted parameters (Thune et al. 2023, Table I) and ping-pong times recorded elsewhere."""

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.kernels import PINGPONG
from earlybird.data.layout import MAX_RANKS
from earlybird.data.levels import LEVELS
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.units import MAX_BYTES, MAX_BYTES_PER_S, MAX_S, MIN_S, number_in

if TYPE_CHECKING:
    import pandas

THUNE_HEADER = ["cpu", "level", "latency_us", "bw_sp_gbs", "bw_mp_2_gbs", "bw_mp_4_gbs", "bw_mp_8_gbs",
                "bw_mp_16_gbs", "bw_max_gbs"]  # fmt: skip
Row = dict[str, str]

PINGPONG_HEADER = ["level", "placement", "pairs", "bytes", "time_s"]

# BW_max was measured with every core of a socket receiving (Thune et al. 2023, section II-C).
_CORES_PER_SOCKET = {"ThunderX2": 32, "Kunpeng": 64, "Xeon Gold": 26, "Epyc Rome": 64}


def load_thune_table(path: str | Path) -> dict[str, Profile]:
    """Read a table laid out as Table I of Thune et al. 2023 (us and GB/s); return a Profile by CPU name.

    BW_max is in the bandwidth table at N = cores per socket if the CPU is one of the paper's, otherwise in
    the protocol's `extra["bandwidth_max_bytes_per_s"]`. Raise InputError naming a line that cannot be read.
    """
    levels: dict[str, dict[str, Level]] = {}
    for number, row in _rows(path, THUNE_HEADER):
        name = _level(row, path, number)
        latency_us = _positive(row, THUNE_HEADER[2], path, number, most=1e6 * MAX_S)
        *bandwidths_gbs, largest_gbs = (
            _positive(row, column, path, number, most=1e-9 * MAX_BYTES_PER_S) for column in THUNE_HEADER[3:]
        )
        bandwidth = {n: gbs * 1e9 for n, gbs in zip((1, 2, 4, 8, 16), bandwidths_gbs, strict=True)}
        cores = next((count for cpu, count in _CORES_PER_SOCKET.items() if cpu in row["cpu"]), None)
        extra = {}
        if cores is None:
            extra["bandwidth_max_bytes_per_s"] = largest_gbs * 1e9
        else:
            bandwidth[cores] = largest_gbs * 1e9
        protocol = Protocol(latency_s=latency_us * 1e-6, bandwidth_bytes_per_s=bandwidth, extra=extra)
        levels.setdefault(row["cpu"], {})[name] = Level(name, (protocol,))
    return {
        cpu: Profile(
            levels=levels_of_cpu,
            id=cpu,
            machine={"cpu_model": cpu},
            context={"source": "Thune et al. 2023, Table I"},
        )
        for cpu, levels_of_cpu in levels.items()
    }


def load_pingpong_table(path: str | Path) -> "pandas.DataFrame":
    """Read ping-pong times with several pairs at once as a pandas table of observations, one row per line.

    The file has the header `level,placement,pairs,bytes,time_s`; time_s is half a round trip.

    Returns
    -------
    DataFrame with the columns source ("pingpong"), level, n (pairs receiving at once), size_bytes, launch
    (the placement: what varies from one repetition to the next), time_s, oversubscribed (False), converged
    (True).
    """
    import pandas

    rows = [
        {
            "source": PINGPONG.name,
            "level": _level(row, path, number),
            "n": int(_positive(row, "pairs", path, number, most=MAX_RANKS, whole=True)),
            "size_bytes": int(_positive(row, "bytes", path, number, most=MAX_BYTES, whole=True, zero=True)),
            "launch": f"placement {row['placement']}",
            "time_s": _positive(row, "time_s", path, number, least=MIN_S, most=MAX_S),
            "oversubscribed": False,
            "converged": True,
        }
        for number, row in _rows(path, PINGPONG_HEADER)
    ]
    return pandas.DataFrame(rows)


def _rows(path: str | Path, header: list[str]) -> list[tuple[int, Row]]:
    text = files.read_text(path, "table")
    reader = csv.DictReader(io.StringIO(text))
    found = text.partition("\n")[0].strip()
    if found.split(",") != header:
        raise InputError(f"the table {path} has the header {found[:60]!r}; it must be {','.join(header)!r}")
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise InputError(
                    f"the table {path}, line {reader.line_num}: give {len(header)} values, one per column"
                )
            rows.append((reader.line_num, row))
    except csv.Error as error:  # such as a cell of more than 131072 characters
        raise InputError(
            f"the table {path}, line {reader.line_num + 1}, is not CSV ({error}); give {len(header)} values"
        ) from error
    if not rows:
        raise InputError(f"the table {path} has a header and no rows; give at least one")
    return rows


def _level(row: Row, path: str | Path, number: int) -> str:
    if row["level"] not in LEVELS:
        raise InputError(
            f"the table {path}, line {number}: the level is {row['level'][:60]!r}; "
            f"the levels are {', '.join(LEVELS)}"
        )
    return row["level"]


def _positive(
    row: Row,
    column: str,
    path: str | Path,
    number: int,
    *,
    most: float,
    least: float = 0.0,
    whole: bool = False,
    zero: bool = False,
) -> float:
    try:
        value = number_in(row[column])
    except ValueError:
        value = math.nan
    least_is_met = value >= 0 if zero else value > 0
    if not least_is_met or not least <= value <= most or (whole and value != round(value)):
        kind = "a whole number" if whole else "a number"
        raise InputError(
            f"the table {path}, line {number}: {column} is {row[column][:60]!r}; "
            f"give {kind} {'of 0 or more' if zero else 'above 0'}, at most {most:g}"
            f"{f' and at least {least:g}' if least else ''}"
        )
    return value
