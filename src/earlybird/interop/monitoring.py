"""Reads the files that Open MPI's monitoring component writes: what each rank sent to each other."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.recording import PairTotals
from earlybird.data.units import MAX_BYTES

# E: messages of the program, I: those inside of collectives, each with the sums of one pair. Other lines are
# about one-sided communication and the arguments of collectives. The first line of a pair ends in the number
# of all of its messages, E and I, by size class: 0 for 0 bytes, else as in a recording.
_PAIR = re.compile(
    r"([EI])\t([0-9]{1,9})\t([0-9]{1,9})\t([0-9]{1,19}) bytes\t([0-9]{1,19}) msgs sent(?:\t([0-9,]{0,4000}))?"
)
_FILE = re.compile(r"(.*)\.([0-9]{1,9})\.prof")
_SECTION = "# POINT TO POINT"
_GIVE = "give the PREFIX of pml_monitoring_filename, or files PREFIX.RANK.prof that Open MPI wrote"
_NO_CLASS = -1


@dataclass(frozen=True, eq=False)
class Monitored:
    """The sums by pair and size class, from the files of the ranks in `found`, which are some of `num_ranks`.

    The size class is -1 if a file does not state the sizes of the program's own messages.
    """

    totals: PairTotals
    num_ranks: int
    found: frozenset[int]

    def remarks(self) -> list[str]:
        """Return a sentence if files of ranks are missing that others sent to."""
        missing = sorted(set(range(self.num_ranks)) - self.found)
        if not missing:
            return []
        names = ", ".join(map(str, missing[:8])) + (" ..." if len(missing) > 8 else "")
        return [f"there is no file of rank {names}, so what was sent from there is not counted"]


@dataclass
class _Pair:
    """The sums of the lines for a pair of ranks in one file."""

    messages: int = 0
    bytes: int = 0
    histogram: Sequence[int] = ()

    def by_class(self) -> list[tuple[int, int, int]]:
        """Return (size class, messages, bytes) in whole numbers that add up to those of the pair.

        The bytes between the minimum and the maximum of the classes are distributed over them evenly.
        """
        counts = [(k, count) for k, count in enumerate(self.histogram) if count]
        least = [count << k - 1 if k else 0 for k, count in counts]
        most = [((1 << k) - 1) * count for k, count in counts]
        if sum(count for _, count in counts) != self.messages or not sum(least) <= self.bytes <= sum(most):
            return [(_NO_CLASS, self.messages, self.bytes)]
        extra, width = self.bytes - sum(least), max(sum(most) - sum(least), 1)
        found, before = [], 0
        for (k, count), low, high in zip(counts, least, most, strict=True):
            upto = before + high - low
            found.append((k, count, low + extra * upto // width - extra * before // width))
            before = upto
        return found


def load_monitoring(sources: Sequence[Path], *, internal: bool = False) -> Monitored:
    """Add up the files of all prefixes; `internal`: include the messages that Open MPI sent for collectives.

    Raises InputError if a prefix has no files, or, naming the line, if a line is not as Open MPI writes it.
    """
    paths = list(dict.fromkeys(path for source in sources for path in _files(Path(source))))
    found = frozenset(_rank(path) for path in paths)
    rows = [
        (_rank(path), dst, *part)
        for path in paths
        for dst, pair in _pairs(path, "EI" if internal else "E").items()
        for part in pair.by_class()
    ]
    if any(sum(row[column] for row in rows) > MAX_BYTES for column in (3, 4)):
        raise InputError(f"{paths[0]} and the other files count more than {MAX_BYTES} bytes; {_GIVE}")
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    return Monitored(PairTotals(*table.T), 1 + max([*found, *(row[1] for row in rows)]), found)


def _files(source: Path) -> list[Path]:
    """Return the file itself, or those of a prefix, in the order of ranks."""
    if _FILE.fullmatch(source.name) and source.is_file():
        return [source]
    folder = source.parent
    named = [(_FILE.fullmatch(path.name), path) for path in folder.iterdir()] if folder.is_dir() else []
    own = [(int(match[2]), path) for match, path in named if match and match[1] == source.name]
    if not own:
        raise InputError(f"there is no file {source}.RANK.prof; {_GIVE}")
    return [path for _, path in sorted(own)]


def _rank(path: Path) -> int:
    match = _FILE.fullmatch(path.name)
    assert match  # `_files` chose it
    return int(match[2])


def _pairs(path: Path, kinds: Iterable[str]) -> dict[int, _Pair]:
    """Return the messages that the rank of the file sent, by receiver."""
    lines = files.read_text(path, "monitoring file").split("\n")
    if lines[0].rstrip() != _SECTION:
        raise InputError(f"{path} line 1 is {lines[0][:60]!r}, not {_SECTION!r}; {_GIVE}")
    pairs: dict[int, _Pair] = {}
    for number, line in enumerate(lines, start=1):
        if line[:2] not in ("E\t", "I\t"):
            continue
        match = _PAIR.fullmatch(line.rstrip())
        if match is None or int(match[2]) != _rank(path):
            raise InputError(
                f"{path} line {number} is {line[:60]!r}, not what rank {_rank(path)} sent to another; {_GIVE}"
            )
        pair = pairs.setdefault(int(match[3]), _Pair())
        if match[6]:
            pair.histogram = [int(count) for count in match[6].split(",") if count]
        if match[1] in kinds:
            pair.bytes += int(match[4])
            pair.messages += int(match[5])
    return {dst: pair for dst, pair in pairs.items() if pair.messages}
