"""Reads Matrix Market, a sparse or dense matrix in text; sizes that it declares take no memory themselves."""

import io
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.units import number_in, require_plain_digits

_FIELDS: dict[str, list[type]] = {
    "real": [np.float64],
    "double": [np.float64],
    "complex": [np.float64, np.float64],
    "integer": [np.int64],
    "unsigned-integer": [np.uint64],
    "pattern": [],
}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_SIZE = re.compile(r"[0-9]{1,18}")
_OTHER_CHARACTER = re.compile(r"[^0-9A-Za-z+\-. \t\n]")
_FORTRAN_EXPONENTS = str.maketrans("dD", "ee")
_BANNER = re.compile(r"%%?MatrixMarket(?=\s)", re.IGNORECASE)
_PLAIN_INTEGERS: dict[type, str] = {np.int64: r"-?[0-9]{1,18}", np.uint64: r"[0-9]{1,18}"}
# Up to here floating point holds every whole number.
_EXACT = 2**53


@dataclass(frozen=True)
class Matrix:
    """The entries of a matrix; the entries that its symmetry implies follow the entries of the file.

    Attributes
    ----------
    row, column : (E,) int64, counted from 0.
    value : (E,) int64, uint64, float64 or complex128; None if the field of the matrix is pattern.
    line_of : the line in the file of entry k; None if entries do not have their own.
    """

    num_rows: int
    num_columns: int
    row: np.ndarray
    column: np.ndarray
    value: np.ndarray | None
    line_of: Callable[[int], int] | None


def is_matrix_market(text: str) -> bool:
    """Return whether the first line is the header of a Matrix Market file."""
    return _BANNER.match(text) is not None


def most_entries(text: str) -> int:
    """Return the largest number of entries that the matrix in `text` can have, without reading it."""
    is_symmetric = not text.partition("\n")[0].lower().rstrip().endswith("general")
    return (text.count("\n") - text.count("\n%") + 1) * (1 + is_symmetric)


def parse_matrix_market(text: str, what: str) -> Matrix:
    """Return the matrix in `text`, which `what` names in errors; raise InputError naming the line of a bad
    row.

    Its time and memory depend on the length of the text, not on the sizes that it declares.
    """
    try:
        return _parse(text)
    except ValueError as error:
        raise InputError(f"{what} is not a Matrix Market file ({error}); write it again") from None


def _parse(text: str) -> Matrix:
    """Return the matrix in `text`; raise ValueError with the problem."""
    lines = _Lines(text)
    layout, field, symmetry = _header(next(lines, ""))
    size_line = next((line for line in lines if line.strip() and not line.startswith("%")), "")
    sizes = [int(size) for size in size_line.split() if _SIZE.fullmatch(size)]
    if len(sizes) != (3 if layout == "coordinate" else 2) or len(sizes) != len(size_line.split()):
        names = "rows, columns and entries" if layout == "coordinate" else "rows and columns"
        raise ValueError(f"line {lines.number} is {size_line[:60]!r}, not its numbers of {names}")
    num_rows, num_columns = sizes[:2]
    if symmetry != "general" and num_rows != num_columns:
        raise ValueError(f"it is {symmetry}, but has {num_rows} rows and {num_columns} columns")
    num_indices = 2 if layout == "coordinate" else 0
    types = [np.int64] * num_indices + _FIELDS[field]
    num_entries = sizes[2] if layout == "coordinate" else _num_dense(num_rows, num_columns, symmetry)
    columns = _columns(text[lines.position :], types, num_entries, lines.number)
    value = _values(columns[num_indices:])
    if layout == "coordinate":
        row, column = columns[0] - 1, columns[1] - 1
        outside = (row < 0) | (row >= num_rows) | (column < 0) | (column >= num_columns)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"line {lines.of_entry(k)} has row {columns[0][k]} and column {columns[1][k]}, outside "
                f"{num_rows} rows and {num_columns} columns"
            )
    else:
        row, column = _dense_places(num_rows, num_columns, symmetry)
    if symmetry != "general":
        row, column, value = _mirrored(row, column, value, symmetry)
    if layout == "array" and value is not None:
        # Row by row, and what is 0 is no entry, as in sparse matrices made of dense ones.
        order = np.lexsort((column, row))
        order = order[value[order] != 0]
        row, column, value = row[order], column[order], value[order]
    has_own_lines = (layout, symmetry) == ("coordinate", "general")
    return Matrix(num_rows, num_columns, row, column, value, lines.of_entry if has_own_lines else None)


class _Lines(Iterator[str]):
    """The lines of a text, the number of the last one and where the next one begins."""

    def __init__(self, text: str):
        self.text, self.position, self.number = text, 0, 0

    def __next__(self) -> str:
        if self.position >= len(self.text):
            raise StopIteration
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        line = self.text[self.position : end]
        self.position, self.number = end + 1, self.number + 1
        return line

    def of_entry(self, k: int) -> int:
        """Return the line of entry k of the following entries, from 0; skip empty lines."""
        following = enumerate(self.text[self.position :].split("\n"), start=self.number + 1)
        return next(itertools.islice((number for number, line in following if line.strip()), k, None))


def _header(line: str) -> tuple[str, str, str]:
    words = line.lower().split()
    if len(words) != 5 or not _BANNER.match(line) or words[1] != "matrix":
        raise ValueError("it does not begin with %%MatrixMarket matrix and three words")
    layout, field, symmetry = words[2:]
    for word, allowed in ((layout, ("coordinate", "array")), (field, _FIELDS), (symmetry, _SYMMETRIES)):
        if word not in allowed:
            raise ValueError(f"line 1 has {word[:60]!r}, not one of {', '.join(allowed)}")
    if (layout, field) == ("array", "pattern"):
        raise ValueError("an array of the field pattern has no values")
    return layout, field, symmetry


def _num_dense(num_rows: int, num_columns: int, symmetry: str) -> int:
    if symmetry == "general":
        return num_rows * num_columns
    return num_rows * (num_rows - (symmetry == "skew-symmetric") * 2 + 1) // 2


def _columns(body: str, types: list[type], num_entries: int, num_before: int) -> list[np.ndarray]:
    """Return the columns of `num_entries` lines, which follow `num_before` lines."""
    if num_entries > body.count("\n") + 1:
        raise ValueError(f"it declares {num_entries} entries, but has {body.count(chr(10))} lines of them")
    if other := _OTHER_CHARACTER.search(body):
        line = num_before + body.count("\n", 0, other.start()) + 1
        raise ValueError(f"line {line} has {other[0]!r}")
    if np.float64 not in types and (columns := _plain_columns(body, types, num_entries)) is not None:
        return columns
    if np.float64 in types:
        body = body.translate(_FORTRAN_EXPONENTS)
    rows = _rows(body, types, num_before)
    if len(rows) != num_entries:
        raise ValueError(f"it declares {num_entries} entries, but has {len(rows)} lines of them")
    return [rows[name] for name in rows.dtype.names or ()]


def _plain_columns(body: str, types: list[type], num_entries: int) -> list[np.ndarray] | None:
    """Return the columns of text in which every line has its whole numbers and nothing else, several times
    faster than for other text, for which None is returned."""
    numbers = "[ \\t]++".join(_PLAIN_INTEGERS[kind] for kind in types)
    if not re.fullmatch(rf"(?:[ \t]*+{numbers}[ \t]*+\n)*+", body):
        return None
    table = np.fromstring(body, dtype=np.int64, sep=" ").reshape(-1, len(types)).T
    if len(table[0]) != num_entries:
        return None
    return [column.astype(kind, copy=False) for kind, column in zip(types, table, strict=True)]


def _rows(body: str, types: list[type], num_before: int) -> np.ndarray:
    """Return a structured array of the lines that are not empty."""
    if not body.strip():
        return np.empty(0, [("", kind) for kind in types])

    def rows_of(kinds: list[type]) -> np.ndarray:
        return np.loadtxt(io.StringIO(body), [("", kind) for kind in kinds], comments=None, ndmin=1)

    try:
        return rows_of(types)
    except ValueError:
        if np.float64 in types or len(types) == 2:
            raise ValueError(_bad_line(body, types, num_before)) from None
    # Some programs write whole numbers as 8.0.
    try:
        rows = rows_of([*types[:-1], np.float64])
    except ValueError:
        raise ValueError(_bad_line(body, types, num_before)) from None
    value = rows[rows.dtype.names[-1]]  # type: ignore[index]  # it has names
    least = 0 if types[-1] is np.uint64 else -_EXACT
    if not ((least <= value) & (value <= _EXACT) & (value == np.rint(value))).all():
        raise ValueError(_bad_line(body, types, num_before))
    return rows


def _bad_line(body: str, types: list[type], num_before: int) -> str:
    """Return the problem of the first line that does not have the numbers of `types`."""
    for number, line in enumerate(body.split("\n"), start=num_before + 1):
        words = line.split()
        # Only the value of an entry may be written as 8.0, not its row and column.
        decimal_at = 2 if len(types) == 3 else 0 if len(types) == 1 else None
        is_good = [
            _is_number(word, kind, k == decimal_at)
            for k, (word, kind) in enumerate(zip(words, types, strict=False))
        ]
        if words and (len(words) != len(types) or not all(is_good)):
            whole = "" if np.float64 in types else "whole "
            return f"line {number} is {line[:60]!r}, not {len(types)} {whole}numbers"
    return "its entries are not numbers"


def _is_number(word: str, kind: type, may_be_decimal: bool) -> bool:
    try:
        if kind is np.float64:
            number_in(word)
            return True
        if may_be_decimal and not re.fullmatch(r"[+-]?[0-9]+", word):
            return number_in(word).is_integer() and abs(float(word)) <= _EXACT
        limits = np.iinfo(kind)
        return limits.min <= int(require_plain_digits(word)) <= limits.max
    except ValueError:
        return False


def _values(columns: list[np.ndarray]) -> np.ndarray | None:
    if len(columns) == 2:
        return columns[0] + 1j * columns[1]
    return columns[0] if columns else None


def _dense_places(num_rows: int, num_columns: int, symmetry: str) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column of each value: column by column, in symmetric matrices from the diagonal on."""
    if symmetry == "general":
        column, row = np.divmod(np.arange(num_rows * num_columns), max(num_rows, 1))
    else:
        column, row = np.triu_indices(num_rows, 1 if symmetry == "skew-symmetric" else 0)
    return row, column


def _mirrored(
    row: np.ndarray, column: np.ndarray, value: np.ndarray | None, symmetry: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    apart = row != column
    if value is not None:
        other = value[apart]
        negative = -other.astype(float) if other.dtype == np.uint64 else -other
        other = {"symmetric": other, "skew-symmetric": negative, "hermitian": np.conj(other)}[symmetry]
        value = np.concatenate([value, other])
    return np.concatenate([row, column[apart]]), np.concatenate([column, row[apart]]), value
