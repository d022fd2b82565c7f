"""What a text of another benchmark holds: points of the kernels that measure the same quantity here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate
from typing import Any

import numpy as np

from earlybird.data.collective_algorithms import (
    COMPLETION,
    DEFAULT,
    MEAN_OVER_RANKS,
    ROOTED,
    WITH_COUNTS,
)
from earlybird.data.errors import InputError
from earlybird.data.kernels import COLLECTIVE, PINGPONG
from earlybird.data.levels import UNKNOWN_MAPPING
from earlybird.data.statistics import MEAN, SLOWEST_RANK_MEAN, Statistic, statistics_text
from earlybird.data.units import format_bytes
from earlybird.interop.line_prefixes import prefix_of

# What to do about a line that has not the columns of its table.
DAMAGED = (
    "give the whole output if it was cut off or changed, and remove lines that the benchmark did not print"
)
ONE_BUFFER = (
    "; without {}, all messages of a window are sent from one buffer, in `measure msgrate` each has its own"
)
MEANS_ONLY = "; intervals then describe launches alone"
GPU = "buffers in a GPU, which have no quantity here; give one of host memory"


@dataclass(frozen=True, eq=False)
class ImportedPoint:
    """A point of a text.

    Attributes
    ----------
    times_s : (I,) seconds of each iteration; one value if the text has only a statistic.
    config : what identifies the point, except for level and MPI.
    rank_times_s : (I, P) seconds of each rank, or None.
    statistic : what the one value is; None if `times_s` are iterations.
    rounding : the relative error of the printed value that has only one digit; 0 with more digits.
    """

    kernel: str
    quantity: str
    times_s: np.ndarray
    config: Mapping[str, Any]
    method: str | None = None
    rank_times_s: np.ndarray | None = None
    statistic: Statistic | None = None
    rounding: float = 0.0


@dataclass(frozen=True)
class Imported:
    """The content of one text.

    Attributes
    ----------
    tool, version : name and version of the benchmark program, as it printed them.
    points : points without level and MPI, which the texts do not state.
    hidden : a sentence on the part of the measurement that the text does not show.
    started : when it began, on the clock of its machine; None if the text does not state it.
    datatype : datatype of its messages, as it printed it; empty if the text does not state it.
    """

    tool: str
    version: str
    points: tuple[ImportedPoint, ...]
    hidden: str
    started: datetime | None = None
    datatype: str = ""


def date_in(pattern: str, text: str) -> datetime | None:
    """Find the date after `pattern` in `text`, as asctime writes it (Thu Nov 26 23:05:57 2026)."""
    found = re.search(pattern + r"(.*)$", text, re.MULTILINE)
    parts = parsedate(found[1]) if found else None
    try:
        return datetime(*parts[:6]) if parts else None
    except (ValueError, OverflowError):
        return None


def only_title(pattern: re.Pattern[str], text: str, where: str, such_as: str) -> re.Match[str]:
    """Find the single title in `text`; raise InputError if there is none or several.

    `pattern` matches a title at the beginning of a line; if one stands elsewhere, the error names the text
    before it.
    """
    titles = list(pattern.finditer(text))
    if len(titles) > 1:
        raise InputError(f"{where} holds {len(titles)} outputs; each is a launch: give a file for each")
    if titles:
        return titles[0]
    if prefix := prefix_of(pattern, text):
        raise InputError(
            f"{where} has {prefix!r} before its title, and not the like before every line; remove what a "
            "launcher or log wrote before the lines, and give only those of the benchmark"
        )
    raise InputError(f"{where} has no line such as {such_as}")


def refuse_repeated_points(points: Iterable[ImportedPoint], where: str) -> None:
    """Raise InputError if a text has a point twice."""
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


def rounding(printed: float, unit: float = 0.01) -> float:
    """Return the relative error of a value printed as a multiple of `unit`, if it has one digit; otherwise
    0."""
    return unit / 2 / printed if 0 < printed < 9.5 * unit else 0.0


def pingpong(size_bytes: int, time_us: float, printed: float, statistic: Statistic = MEAN) -> ImportedPoint:
    """Return half a round trip of OSU or IMB, which send the same buffers repeatedly by default.

    `printed` is the number that the time was computed from.
    """
    config = {"size_bytes": size_bytes, "buffers": "reuse"}
    return ImportedPoint(
        PINGPONG.name, PINGPONG.quantity, single(time_us * 1e-6), config, statistic=statistic,
        rounding=rounding(printed),
    )  # fmt: skip


def window_of_messages(
    kernel: str,
    size_bytes: int,
    window: int,
    pairs: int,
    amount_per_window: float,
    per_second: float,
    rounding: float,
    statistic: Statistic = MEAN,
) -> ImportedPoint:
    """Return the time of a window of messages, for all pairs at once: pairs of processes, not of threads. All
    windows have the same contents.

    Parameters
    ----------
    amount_per_window, per_second : amount and rate in bytes or messages; the time is their ratio, or 0 for a
        rate of 0.
    rounding : relative error of the printed number that the rate was computed from.
    """
    time_s = amount_per_window / per_second if per_second else 0.0
    config = {"size_bytes": size_bytes, "window": window, "threads": pairs, "buffers": "reuse"}
    return ImportedPoint(
        kernel, "time_per_window", single(time_s), config, "processes", statistic=statistic,
        rounding=rounding,
    )  # fmt: skip


def collective(
    config: Mapping[str, Any],
    mean_us: float,
    slowest_us: float | None,
    method: str = DEFAULT,
    statistic: Statistic = MEAN,
) -> Iterable[ImportedPoint]:
    """Yield the mean over ranks, and the mean of the slowest rank if it is printed: as completion, which it
    approaches from below. `statistic` is that of the mean over ranks."""
    yield ImportedPoint(
        COLLECTIVE.name, MEAN_OVER_RANKS, single(mean_us * 1e-6), config, method, statistic=statistic,
        rounding=rounding(mean_us),
    )  # fmt: skip
    if slowest_us is not None:
        yield ImportedPoint(
            COLLECTIVE.name, COMPLETION, single(slowest_us * 1e-6), config, method,
            statistic=SLOWEST_RANK_MEAN, rounding=rounding(slowest_us),
        )  # fmt: skip


def values_text(points: Iterable[ImportedPoint]) -> str:
    """Return a text that describes the values of a text."""
    return f"values: {statistics_text((one.quantity, one.statistic) for one in points)}"


def collective_config(
    operation: str, size_bytes: int, ranks: int, root: int = 0, topology: str | None = None
) -> dict[str, Any]:
    """Return what identifies a collective; the texts do not state how its ranks were mapped. Counts are equal
    in all of these benchmarks."""
    config: dict[str, Any] = {"operation": operation, "size_bytes": size_bytes, "ranks": ranks}
    config |= {"map_by": UNKNOWN_MAPPING} | ({"root": root} if operation in ROOTED else {})
    config |= {"skew": 1} if operation in WITH_COUNTS else {}
    return config | ({"topology": topology} if topology else {})


def single(time_s: float) -> np.ndarray:
    """Return the times of a point with one value."""
    return np.array([time_s])


def positive(points: Iterable[ImportedPoint]) -> Sequence[ImportedPoint]:
    """Return the points without those whose time or rate was printed as 0."""
    return [point for point in points if np.median(point.times_s) > 0]
