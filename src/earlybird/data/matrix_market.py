"""Reads Matrix Market, a sparse or dense matrix in text; sizes that it declares take no memory themselves."""

import io
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from earlybird.data.errors import InputError

_FIELDS: dict[str, list[type]] = {
    "real": [np.float64],
    "double": [np.float64],
    "complex": [np.float64, np.float64],
    "integer": [np.int64],
    "unsigned-integer": [np.int64],
    "pattern": [],
}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_SIZE = re.compile(r"[0-9]{1,18}")
_OTHER_CHARACTER = re.compile(r"[^0-9A-Za-z+\-. \t\n]")
_FORTRAN_EXPONENTS = str.maketrans("dD", "ee")
_PLAIN_INTEGERS = re.compile(r"(?:[0-9]{1,18} [0-9]{1,18}(?: -?[0-9]{1,18})?\n)*+")


@dataclass(frozen=True)
class Matrix:
    """The entries of a matrix, those that its symmetry implies after those of the file.

    Attributes
    ----------
    row, column : (E,) int64, counted from 0.
    value : (E,) int64, float64 or complex128; None of a matrix of the field pattern.
    line_of : the line in the file of entry k; None if entries do not have their own.
    """

    num_rows: int
    num_columns: int
    row: np.ndarray
    column: np.ndarray
    value: np.ndarray | None
    line_of: Callable[[int], int] | None


def parse_matrix_market(text: str, what: str) -> Matrix:
    """The matrix in `text`, which `what` names in errors; raises InputError naming the line of a bad row.

    Its time and memory depend on the length of the text, not on the sizes that it declares.
    """
    try:
        return _parse(text)
    except ValueError as error:
        raise InputError(f"{what} is not a Matrix Market file ({error}); write it again") from None


def _parse(text: str) -> Matrix:
    """Raise ValueError with what is wrong."""
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
        """The line of entry k of those that follow, from 0; empty lines have none."""
        following = enumerate(self.text[self.position :].split("\n"), start=self.number + 1)
        return next(itertools.islice((number for number, line in following if line.strip()), k, None))


def _header(line: str) -> tuple[str, str, str]:
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
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
    """The columns of `num_entries` lines, which `num_before` lines precede."""
    if num_entries > body.count("\n") + 1:
        raise ValueError(f"it declares {num_entries} entries, but has {body.count(chr(10))} lines of them")
    if other := _OTHER_CHARACTER.search(body):
        line = num_before + body.count("\n", 0, other.start()) + 1
        raise ValueError(f"line {line} has {other[0]!r}")
    if all(kind is np.int64 for kind in types) and _PLAIN_INTEGERS.fullmatch(body):
        width = len(body.partition("\n")[0].split()) if body else len(types)
        numbers = np.fromstring(body, dtype=np.int64, sep=" ")
        if width == len(types) and len(numbers) == num_entries * width == body.count("\n") * width:
            return list(numbers.reshape(-1, width).T)
    if np.float64 in types:
        body = body.translate(_FORTRAN_EXPONENTS)
    if not body.strip():
        rows = np.empty(0, [("", kind) for kind in types])
    else:
        try:
            rows = np.loadtxt(io.StringIO(body), [("", kind) for kind in types], comments=None, ndmin=1)
        except ValueError:
            raise ValueError(_bad_line(body, types, num_before)) from None
    if len(rows) != num_entries:
        raise ValueError(f"it declares {num_entries} entries, but has {len(rows)} lines of them")
    return [rows[name] for name in rows.dtype.names or ()]


def _bad_line(body: str, types: list[type], num_before: int) -> str:
    for number, line in enumerate(body.split("\n"), start=num_before + 1):
        words = line.split()
        try:
            for word, kind in zip(words, types, strict=bool(words)):
                kind(word)
        except (ValueError, OverflowError):
            whole = "" if np.float64 in types else "whole "
            return f"line {number} is {line[:60]!r}, not {len(types)} {whole}numbers"
    return "its entries are not numbers"


def _values(columns: list[np.ndarray]) -> np.ndarray | None:
    if len(columns) == 2:
        return columns[0] + 1j * columns[1]
    return columns[0] if columns else None


def _dense_places(num_rows: int, num_columns: int, symmetry: str) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each value: column by column, of symmetric matrices from the diagonal on."""
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
        other = {"symmetric": other, "skew-symmetric": -other, "hermitian": np.conj(other)}[symmetry]
        value = np.concatenate([value, other])
    return np.concatenate([row, column[apart]]), np.concatenate([column, row[apart]]), value
