"""Pattern: the messages of an exchange, as CSV (`src,dst,bytes`), `.npz` or Matrix Market."""

import hashlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from earlybird.data import files, memory
from earlybird.data.errors import InputError
from earlybird.data.kinds import require_path
from earlybird.data.layout import MAX_RANKS
from earlybird.data.matrix_market import most_entries, parse_matrix_market
from earlybird.data.npz import read_integer_columns
from earlybird.data.shell_commands import path_argument
from earlybird.data.units import MAX_BYTES, format_bytes

HEADER = "src,dst,bytes"
MAX_MESSAGES = 50_000_000  # of a generator; reading is limited by memory alone
# Making, reading or writing a pattern takes 80 to 100 for each message.
BYTES_PER_MESSAGE = 110
# Reading, preparing and predicting an exchange takes at most about this much for each message; the largest of
# `python -m bench predictor` takes 130 to 350.
_BYTES_PER_PREDICTED_MESSAGE = 400
MATRIX_MARKET_SUFFIXES = (".mtx", ".mm")
_AT_ONCE = 1 << 16  # messages
_PLAIN_ROWS = re.compile(r"(?:-?[0-9]{1,18},-?[0-9]{1,18},-?[0-9]{1,18}\n)*+")


@dataclass(frozen=True, eq=False)
class Pattern:
    """Messages in the order in which they are posted: message k goes from `src[k]` to `dst[k]` and has
    `bytes[k]` bytes.

    Attributes
    ----------
    src, dst, bytes : read-only int64 arrays of shape (M,). Equal (src, dst) rows are separate messages;
        0 bytes is a message.
    """

    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray

    def __post_init__(self) -> None:
        for name in ("src", "dst", "bytes"):
            array = np.array(getattr(self, name), dtype=np.int64)  # a copy: the caller's array stays writable
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        _check(self.src, self.dst, self.bytes, lambda k: f"message {k}")

    @classmethod
    def _of(
        cls, src: np.ndarray, dst: np.ndarray, size_bytes: np.ndarray, where: Callable[[int], str]
    ) -> "Pattern":
        """Return the pattern of int64 arrays that nobody else has, without copying them; an error names
        `where(k)` of the invalid message in its file."""
        _check(src, dst, size_bytes, where)
        pattern = object.__new__(cls)
        for name, array in (("src", src), ("dst", dst), ("bytes", size_bytes)):
            array.flags.writeable = False
            object.__setattr__(pattern, name, array)
        return pattern

    @classmethod
    def load(cls, path: str | Path) -> "Pattern":
        """Read `.csv`, `.npz` or Matrix Market; raise InputError naming the line of the first bad row."""
        require_path(path, "the pattern to load")
        return load_pattern(path)

    @classmethod
    def from_arrays(cls, src: ArrayLike, dst: ArrayLike, size_bytes: ArrayLike) -> "Pattern":
        """Build a pattern from three sequences of whole numbers of the same length; raise InputError if they
        are invalid."""
        columns = [_whole_numbers(values) for values in (src, dst, size_bytes)]
        return cls(*columns)

    @classmethod
    def from_scipy(cls, matrix: Any) -> "Pattern":
        """Build a pattern with a message for each stored entry of a square sparse matrix of bytes: the row
        sends to the column.

        Entries on the diagonal need no communication and are left out. Raise InputError if the matrix is
        invalid.
        """
        entries = matrix.tocoo() if hasattr(matrix, "tocoo") else None
        if entries is None or len(entries.shape) != 2:
            raise InputError(
                f"the matrix is of the type {type(matrix).__name__}; give a sparse matrix of SciPy with rows "
                "and columns, such as a csr_array"
            )
        if entries.shape[0] != entries.shape[1]:
            raise InputError(
                f"the matrix has {entries.shape[0]} rows and {entries.shape[1]} columns; both count ranks, "
                "give as many"
            )
        kept = entries.row != entries.col
        return cls.from_arrays(entries.row[kept], entries.col[kept], entries.data[kept])

    def save(self, path: str | Path) -> None:
        """Write `.csv`, `.npz` or Matrix Market (`.mtx`), see `save_pattern`."""
        require_path(path, "the file to write")
        save_pattern(self, path)

    @property
    def num_messages(self) -> int:
        return len(self.src)

    @cached_property
    def num_ranks_named(self) -> int:
        """One more than the highest rank named; the number of ranks itself comes from a Layout."""
        return 1 + int(max(self.src.max(initial=-1), self.dst.max(initial=-1)))

    @cached_property
    def total_bytes(self) -> int:
        return int(self.bytes.sum())

    def triples(self) -> np.ndarray:
        """Return an (M, 3) int64 array of src, dst, bytes: the flat form that a kernel reads."""
        return np.column_stack([self.src, self.dst, self.bytes])

    def sha256(self) -> str:
        """Return the digest of the messages in order, the same for every file format."""
        digest = hashlib.sha256()
        rows = np.empty((min(_AT_ONCE, self.num_messages), 3), dtype="<i8")
        for begin in range(0, self.num_messages, _AT_ONCE):
            part = rows[: min(_AT_ONCE, self.num_messages - begin)]
            for column, values in enumerate((self.src, self.dst, self.bytes)):
                part[:, column] = values[begin : begin + _AT_ONCE]
            digest.update(part.data)
        return digest.hexdigest()

    @classmethod
    def joined(cls, stages: Sequence["Pattern"]) -> "Pattern":
        """Return the messages of all `stages`, in this order."""
        return cls(
            *(np.concatenate([getattr(one, name) for one in stages]) for name in ("src", "dst", "bytes"))
        )

    def divided(self, num_messages: Sequence[int]) -> list["Pattern"]:
        """Return the stages that `joined` joined, by the number of messages of each."""
        ends = np.cumsum(num_messages)[:-1]
        columns = (np.split(values, ends) for values in (self.src, self.dst, self.bytes))
        return [Pattern(*stage) for stage in zip(*columns, strict=True)]

    def without_data(self) -> "Pattern":
        """Return the same messages, all of 0 bytes."""
        return replace(self, bytes=np.zeros_like(self.bytes))

    def check_ranks(self, num_ranks: int) -> None:
        """Raise InputError if a rank is outside 0..num_ranks-1."""
        if self.num_ranks_named > num_ranks:
            outside = (self.src >= num_ranks) | (self.dst >= num_ranks)
            k = int(np.flatnonzero(outside)[0])
            rank = max(int(self.src[k]), int(self.dst[k]))
            raise InputError(
                f"the pattern contains rank {rank} (message {k}), but the layout has {num_ranks} ranks "
                f"(0..{num_ranks - 1}); give a layout with at least {self.num_ranks_named} ranks"
            )


def _whole_numbers(values: ArrayLike) -> np.ndarray:
    try:
        numbers = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise InputError("a pattern needs arrays of one dimension, but one is of several lists") from error
    if numbers.dtype.kind not in "iu" and (numbers.dtype.kind != "f" or (numbers != np.rint(numbers)).any()):
        raise InputError(
            f"ranks and sizes are whole numbers, but the array is of {numbers.dtype}; give integers"
        )
    if numbers.ndim != 1:
        raise InputError(f"a pattern needs arrays of one dimension, but one has the shape {numbers.shape}")
    beyond = numbers[np.abs(numbers) > MAX_BYTES]
    if len(beyond):
        raise InputError(f"an array contains {beyond[0]}; give ranks and sizes in bytes, 0 to {MAX_BYTES}")
    return numbers.astype(np.int64)


def load_pattern(path: str | Path, bytes_per_message: int = BYTES_PER_MESSAGE) -> Pattern:
    """Read `.csv`, `.npz` or `.mtx`; raise InputError naming the line of the first bad row.

    More messages than fit into memory are refused before the file is decoded; `bytes_per_message` is the
    memory that each takes, including the caller's data about it.
    """
    path = Path(path)
    if (path / "recording.json").exists():
        raise InputError(
            f"{path} is a recording; write one exchange of it with `earlybird pattern recording "
            f"{path_argument(path)} -o exchange.csv` and give that file"
        )
    suffix = files.suffix_of(path)
    if suffix == ".npz":
        return _load_npz(path, bytes_per_message)
    if suffix in MATRIX_MARKET_SUFFIXES:
        return _make(*_read_matrix_market(path, bytes_per_message))
    return _load_csv(path, bytes_per_message)


def load_fitting_pattern(path: str | Path) -> Pattern:
    """Read a pattern as `load_pattern` does; raise InputError if predicting or replaying it needs more memory
    than there is."""
    return load_pattern(path, _BYTES_PER_PREDICTED_MESSAGE)


def load_without_diagonal(path: str | Path) -> tuple[Pattern, int]:
    """Read a pattern as `load_pattern` does, without the entries on the diagonal of a matrix, which are
    messages from a rank to itself; also return the number of these."""
    path = Path(path)
    if files.suffix_of(path) not in MATRIX_MARKET_SUFFIXES:
        return load_pattern(path), 0
    table, where = _read_matrix_market(path, BYTES_PER_MESSAGE)
    kept = np.flatnonzero(table[:, 0] != table[:, 1])
    return _make(table[kept], lambda k: where(int(kept[k]))), len(table) - len(kept)


def check_suffix(path: Path) -> None:
    """Raise InputError if the suffix of a pattern to write is of another format."""
    if path.suffix not in ("", ".csv", ".npz", *MATRIX_MARKET_SUFFIXES):
        raise InputError(
            f"a pattern cannot be written as {path}; give a name that ends in .csv, .npz, .mtx or .mm"
        )


def save_pattern(pattern: Pattern, path: str | Path) -> None:
    """Write CSV (`.csv` or a name without a suffix), `.npz` or Matrix Market (`.mtx`, `.mm`), atomically.

    In Matrix Market, too, messages with equal src and dst stay separate; other readers may add them up. Raise
    InputError for another suffix.
    """
    path = Path(path)
    check_suffix(path)
    if path.suffix == ".npz":
        archive = io.BytesIO()
        np.savez_compressed(archive, src=pattern.src, dst=pattern.dst, bytes=pattern.bytes)
        with files.replace_when_complete(path) as temporary:
            temporary.write_bytes(archive.getvalue())
        return
    stream = io.StringIO()
    if path.suffix in MATRIX_MARKET_SUFFIXES:
        num_ranks = pattern.num_ranks_named
        stream.write("%%MatrixMarket matrix coordinate integer general\n% row sends to column, bytes\n")
        stream.write(f"{num_ranks} {num_ranks} {pattern.num_messages}\n")
        np.savetxt(stream, pattern.triples() + np.array([1, 1, 0]), fmt="%d")
    else:
        stream.write(HEADER + "\n")
        np.savetxt(stream, pattern.triples(), fmt="%d", delimiter=",")
    files.write_text(path, stream.getvalue())


def _load_csv(path: Path, bytes_per_message: int) -> Pattern:
    text = files.read_text(path, "pattern", most_bytes=None)
    header, _, rows = text.partition("\n")
    _require_messages(rows.count("\n"), path, bytes_per_message)
    if header == HEADER and _PLAIN_ROWS.fullmatch(rows):
        # As `save_pattern` writes it. Millions of messages read ten times as fast this way.
        numbers = np.fromstring(rows.replace("\n", ","), dtype=np.int64, sep=",")
        return _make(numbers, lambda k: f"{path} line {k + 2}")
    numbered = list(files.integer_rows(text, path, "pattern", HEADER))
    return _make([row for _, row in numbered], lambda k: f"{path} line {numbered[k][0]}")


def _load_npz(path: Path, bytes_per_message: int) -> Pattern:
    src, dst, size = read_integer_columns(
        path,
        "pattern",
        ("src", "dst", "bytes"),
        lambda count: _require_messages(count, path, bytes_per_message),
    )
    return Pattern._of(src, dst, size, lambda k: f"{path} message {k}")


def _require_messages(count: int, path: Path, bytes_per_message: int) -> None:
    """Raise InputError if the messages of a file take more memory than there is."""
    needed, free = count * bytes_per_message, memory.available_memory_bytes()
    if needed > free:
        raise InputError(
            f"{path} has {count} messages, which take about {format_bytes(needed)} of memory, and "
            f"{format_bytes(free)} are available; give fewer messages, such as those of one epoch or of some "
            "of the ranks, or use a machine with more memory"
        )


def _read_matrix_market(path: Path, bytes_per_message: int) -> tuple[np.ndarray, Callable[[int], str]]:
    """Return the entries as rows src, dst, bytes, and the name of entry k for error messages."""
    text = files.read_text(path, "pattern", most_bytes=None)
    _require_messages(most_entries(text), path, bytes_per_message)
    matrix = parse_matrix_market(text, f"the pattern {path}")
    if matrix.value is None:
        raise InputError(
            f"{path} is a Matrix Market file without values (field pattern), so messages have no sizes; "
            "give an integer matrix of bytes, or partition it with `earlybird pattern mesh "
            f"{path_argument(path)}`"
        )
    if matrix.num_rows != matrix.num_columns:
        raise InputError(
            f"{path} has {matrix.num_rows} rows and {matrix.num_columns} columns; both count ranks, give as "
            "many"
        )

    def where(k: int) -> str:
        return f"{path} {'entry' if matrix.line_of is None else f'line {matrix.line_of(k)}'}"

    size = matrix.value
    whole = (size == np.rint(size.real)) & (abs(size) <= MAX_BYTES)
    if not whole.all():
        k = int(np.flatnonzero(~whole)[0])
        raise InputError(
            f"{where(k)} (row {matrix.row[k] + 1}, column {matrix.column[k] + 1}) has the size "
            f"{size[k]}; give whole bytes, at most {MAX_BYTES}"
        )
    return np.column_stack([matrix.row, matrix.column, size.real.astype(np.int64)]), where


def _make(rows: np.ndarray | Sequence[Sequence[int]], where: Callable[[int], str]) -> Pattern:
    """Build a Pattern; an error names `where(k)` of the invalid message in its file."""
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    src, dst, size = (table[:, column].copy() for column in range(3))
    return Pattern._of(src, dst, size, where)


def _check(src: np.ndarray, dst: np.ndarray, size: np.ndarray, where: Callable[[int], str]) -> None:
    if not len(src) == len(dst) == len(size):
        raise InputError("a pattern needs src, dst and bytes of equal length")
    total_bytes = 0.0
    for begin in range(0, len(src), _AT_ONCE):  # in the caches of a core
        here = slice(begin, begin + _AT_ONCE)
        if not _is_valid(src[here], dst[here], size[here]):
            _complain(src, dst, size, where)
        total_bytes += float(size[here].sum(dtype=np.float64))
    if total_bytes > MAX_BYTES:
        raise InputError(f"the pattern's sizes add up to more than {MAX_BYTES} bytes; sizes are in bytes")


def _is_valid(src: np.ndarray, dst: np.ndarray, size: np.ndarray) -> bool:
    """Return whether all messages are possible; negative numbers are large ones without a sign."""
    ends = np.maximum(src.view(np.uint64), dst.view(np.uint64))
    most_bytes = size.view(np.uint64).max(initial=0)
    return bool(ends.max(initial=0) < MAX_RANKS and most_bytes <= MAX_BYTES and not (src == dst).any())


def _complain(src: np.ndarray, dst: np.ndarray, size: np.ndarray, where: Callable[[int], str]) -> None:
    """Raise InputError for the first message of the first kind of mistake."""
    for bad, says in (
        ((src < 0) | (dst < 0), "a rank is negative; ranks count from 0"),
        ((src >= MAX_RANKS) | (dst >= MAX_RANKS), f"ranks are 0 to {MAX_RANKS - 1}; give one of these"),
        (src == dst, "a message goes from a rank to itself; leave it out, it needs no communication"),
        (size < 0, "the size is negative; sizes are in bytes, 0 or more"),
        (size > MAX_BYTES, f"the size is beyond {MAX_BYTES} bytes; sizes are in bytes"),
    ):
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise InputError(f"{where(k)} ({src[k]},{dst[k]},{size[k]}): {says}")
