"""Pattern: the messages of an exchange, as CSV (`src,dst,bytes`), `.npz` or Matrix Market."""

import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError

HEADER = "src,dst,bytes"
MAX_BYTES = 2**62  # sums of a whole pattern must stay inside 64-bit integers


@dataclass(frozen=True)
class Pattern:
    """Messages in the order they are posted: message k goes from `src[k]` to `dst[k]` and has `bytes[k]` bytes.

    Attributes
    ----------
    src, dst, bytes : int64 arrays of shape (M,). Equal (src, dst) rows are separate messages; 0 bytes is a message.
    """

    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray

    def __post_init__(self):
        for name in ("src", "dst", "bytes"):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.int64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        _check(self, lambda k: f"message {k}")

    @property
    def num_messages(self) -> int:
        return len(self.src)

    @property
    def num_ranks_named(self) -> int:
        """One more than the highest rank named; the number of ranks itself comes from a Layout."""
        return 1 + int(max(self.src.max(initial=-1), self.dst.max(initial=-1)))

    @property
    def total_bytes(self) -> int:
        return int(self.bytes.sum())

    def triples(self) -> np.ndarray:
        """(M, 3) int64 array of src, dst, bytes: the flat form a kernel reads."""
        return np.column_stack([self.src, self.dst, self.bytes])

    def sha256(self) -> str:
        """Digest of the messages in order, the same for every file format."""
        return hashlib.sha256(self.triples().astype("<i8").tobytes()).hexdigest()

    def check_ranks(self, num_ranks: int) -> None:
        """Refuse a pattern that names a rank outside 0..num_ranks-1."""
        if self.num_ranks_named > num_ranks:
            outside = (self.src >= num_ranks) | (self.dst >= num_ranks)
            k = int(np.flatnonzero(outside)[0])
            rank = max(int(self.src[k]), int(self.dst[k]))
            raise InputError(
                f"the pattern names rank {rank} (message {k}), but the layout has {num_ranks} ranks "
                f"(0..{num_ranks - 1}); give a layout with at least {self.num_ranks_named} ranks"
            )


def load_pattern(path: str | Path) -> Pattern:
    """Read `.csv`, `.npz` or `.mtx`; raises InputError naming the line of the first bad row."""
    path = Path(path)
    if path.suffix == ".npz":
        return _load_npz(path)
    if path.suffix in (".mtx", ".mm"):
        return _load_matrix_market(path)
    return _load_csv(path)


def save_pattern(pattern: Pattern, path: str | Path) -> None:
    """Write `.npz` or, for any other name, CSV; the file appears whole or not at all."""
    path = Path(path)
    if path.suffix == ".npz":
        stream = io.BytesIO()
        np.savez_compressed(stream, src=pattern.src, dst=pattern.dst, bytes=pattern.bytes)
        with files.replace_when_complete(path) as temporary:
            temporary.write_bytes(stream.getvalue())
        return
    if path.suffix in (".mtx", ".mm"):
        raise InputError(f"cannot write {path}: patterns are written as .csv or .npz; choose one of these names")
    stream = io.StringIO()
    stream.write(HEADER + "\n")
    np.savetxt(stream, pattern.triples(), fmt="%d", delimiter=",")
    files.write_text(path, stream.getvalue())


def _load_csv(path: Path) -> Pattern:
    lines = files.read_text(path, "pattern").splitlines()
    header = lines[0].strip().lstrip("\ufeff") if lines else ""
    if [word.strip() for word in header.split(",")] != HEADER.split(","):
        raise InputError(f"{path} line 1 is {header!r}; a pattern begins with the header {HEADER!r}")
    rows: list[tuple[int, int, int]] = []
    line_of: list[int] = []
    for number, row in enumerate(csv.reader(lines[1:]), start=2):
        if not row:
            continue
        if len(row) != 3:
            raise InputError(f"{path} line {number} has {len(row)} columns; each row is {HEADER}")
        try:
            rows.append((int(row[0]), int(row[1]), int(row[2])))
        except ValueError:
            bad = next(word for word in row if not _is_integer(word))
            raise InputError(f"{path} line {number}: {bad!r} is not a whole number; each row is {HEADER}") from None
        line_of.append(number)
    return _make(path, rows, lambda k: f"{path} line {line_of[k]}")


def _is_integer(word: str) -> bool:
    try:
        int(word)
    except ValueError:
        return False
    return True


def _load_npz(path: Path) -> Pattern:
    try:
        with np.load(path, allow_pickle=False) as archive:
            columns = [archive[name] for name in ("src", "dst", "bytes")]
    except FileNotFoundError as error:
        raise InputError(f"the pattern {path} does not exist; check the path") from error
    except KeyError as error:
        raise InputError(f"the pattern {path} lacks an array; it must hold src, dst and bytes") from error
    except Exception as error:  # numpy and zipfile raise many kinds for a damaged archive
        raise InputError(f"the pattern {path} is not a readable .npz file; write it again") from error
    if any(c.ndim != 1 or c.dtype.kind not in "iu" or len(c) != len(columns[0]) for c in columns):
        raise InputError(f"the arrays of {path} differ in length or are not integers; give three equal integer arrays")
    return _make(path, np.column_stack(columns) if len(columns[0]) else [], lambda k: f"{path} message {k}")


def _load_matrix_market(path: Path) -> Pattern:
    import scipy.io

    files.read_text(path, "pattern")
    try:
        matrix = scipy.io.mmread(path)
        matrix = matrix.tocoo() if hasattr(matrix, "tocoo") else scipy.sparse.coo_array(matrix)
    except Exception as error:  # the reader raises several kinds for malformed text
        raise InputError(f"the pattern {path} is not a Matrix Market file: {error}; check its first lines") from error
    values = np.asarray(matrix.data)
    if not np.array_equal(values, np.rint(values.real)):
        raise InputError(f"{path} holds sizes that are not whole bytes; give an integer matrix")
    rows = np.column_stack([matrix.row, matrix.col, values.real.astype(np.int64)]) if len(values) else []
    return _make(path, rows, lambda k: f"{path} entry {k + 1}")


def _make(path: Path, rows, where) -> Pattern:
    try:
        table = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    except OverflowError as error:
        raise InputError(f"{path} holds a number beyond 64-bit integers; sizes are in bytes") from error
    pattern = object.__new__(Pattern)
    for column, name in enumerate(("src", "dst", "bytes")):
        object.__setattr__(pattern, name, table[:, column])
    _check(pattern, where)
    return Pattern(*table.T)


def _check(pattern: Pattern, where) -> None:
    src, dst, size = pattern.src, pattern.dst, pattern.bytes
    if not len(src) == len(dst) == len(size):
        raise InputError("a pattern needs src, dst and bytes of equal length")
    for bad, says in (
        ((src < 0) | (dst < 0), "a rank is negative; ranks count from 0"),
        (src == dst, "a message goes from a rank to itself; leave it out, it needs no communication"),
        (size < 0, "the size is negative; sizes are in bytes, 0 or more"),
        (size > MAX_BYTES, f"the size is beyond {MAX_BYTES} bytes; sizes are in bytes"),
    ):
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise InputError(f"{where(k)} ({src[k]},{dst[k]},{size[k]}): {says}")
    if float(size.sum(dtype=np.float64)) > MAX_BYTES:
        raise InputError(f"the pattern's sizes add up to more than {MAX_BYTES} bytes; sizes are in bytes")
