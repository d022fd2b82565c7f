"""Reads the files that Open MPI's monitoring component writes: what each rank sent to each other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.recording import PairTotals
from earlybird.data.units import MAX_BYTES

# E: messages of the program, I: those inside of collectives, each with the sums of one pair. Other lines are
# about one-sided communication and the arguments of collectives.
_PAIR = re.compile(r"([EI])\t(\d{1,9})\t(\d{1,9})\t(\d{1,19}) bytes\t(\d{1,19}) msgs sent(?:\t.*)?")
_FILE = re.compile(r"(.*)\.(\d{1,9})\.prof")
_SECTION = "# POINT TO POINT"
_GIVE = "give the PREFIX of pml_monitoring_filename, or files PREFIX.RANK.prof that Open MPI wrote"


@dataclass(frozen=True, eq=False)
class Monitored:
    """Sums by pair, of the files of the ranks in `found`, some of `num_ranks`."""

    totals: PairTotals
    num_ranks: int
    found: frozenset[int]

    def remarks(self) -> list[str]:
        """A sentence if files of ranks are missing that others sent to."""
        missing = sorted(set(range(self.num_ranks)) - self.found)
        if not missing:
            return []
        names = ", ".join(map(str, missing[:8])) + (" ..." if len(missing) > 8 else "")
        return [f"there is no file of rank {names}, so what was sent from there is not counted"]


def load_monitoring(sources: Sequence[Path], *, internal: bool = False) -> Monitored:
    """Add up the files of all prefixes; `internal`: also the messages that Open MPI sent for collectives.

    Raises InputError if a prefix has no files, or naming the line that is not as Open MPI writes it.
    """
    paths = list(dict.fromkeys(path for source in sources for path in _files(Path(source))))
    rows = [row for path in paths for row in _rows(path, "EI" if internal else "E")]
    found = frozenset(_rank(path) for path in paths)
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    src, dst, num_bytes, messages = table.T
    if float(num_bytes.sum(dtype=np.float64)) > MAX_BYTES:
        raise InputError(f"{paths[0]} and the other files have more than {MAX_BYTES} bytes; {_GIVE}")
    totals = PairTotals(src, dst, np.full_like(src, -1), messages, num_bytes).by_pair()
    return Monitored(totals, 1 + int(max([*found, *src, *dst])), found)


def _files(source: Path) -> list[Path]:
    """The file itself, or those of a prefix, in the order of ranks."""
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


def _rows(path: Path, kinds: str) -> Iterator[tuple[int, int, int, int]]:
    """(src, dst, bytes, messages) of each pair."""
    lines = files.read_text(path, "monitoring file").split("\n")
    if lines[0].rstrip() != _SECTION:
        raise InputError(f"{path} line 1 is {lines[0][:60]!r}, not {_SECTION!r}; {_GIVE}")
    for number, line in enumerate(lines, start=1):
        if line[:2] not in ("E\t", "I\t"):
            continue
        match = _PAIR.fullmatch(line.rstrip())
        if match is None or int(match[2]) != _rank(path):
            raise InputError(
                f"{path} line {number} is {line[:60]!r}, not what rank {_rank(path)} sent to another; {_GIVE}"
            )
        row = int(match[2]), int(match[3]), int(match[4]), int(match[5])
        if max(row) > MAX_BYTES:
            raise InputError(f"{path} line {number} has a number beyond {MAX_BYTES}; {_GIVE}")
        if match[1] in kinds and row[3]:
            yield row
