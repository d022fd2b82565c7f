"""Reads integer arrays of an `.npz` archive, whose sizes are checked before they take memory."""

import math
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.threads import in_threads
from earlybird.data.units import format_bytes

# Arrays of messages are compressed to a tenth; equal numbers alone to a thousandth.
_MAX_RATIO, _SMALL_BYTES = 100, 256 << 20
_BLOCK = 1 << 20  # bytes that are read at once
# Version 3 differs from 2 only in the names of fields of structures, which integers do not have.
_HEADER_READERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
    (3, 0): npy_format.read_array_header_2_0,
}


def read_integer_columns(
    path: str | Path, what: str, names: Sequence[str], require_length: Callable[[int], None]
) -> list[np.ndarray]:
    """Return the arrays `names`, integers of one dimension and of the same length, as int64.

    `require_length` raises an error for a length that is too large, before any array is read. Raise
    InputError for an archive that has no such arrays; `what` names the file in it.
    """
    try:
        with files.open_seekable(path, what) as stream, zipfile.ZipFile(stream) as archive:
            headers = {name: _header(archive, name) for name in names}
            lengths = {None if one is None else one.length for one in headers.values()}
            if len(lengths) > 1 or None in lengths:
                raise InputError(
                    f"the arrays of {path} differ in length or are not integers; give arrays of integers, as "
                    "many in each"
                )
            require_length(next(int(length or 0) for length in lengths))
            _require_ratio(archive, names, path)
            columns = [(name, one) for name, one in headers.items() if one is not None]
            # What takes longest first, so that the threads end together.
            columns.sort(key=lambda item: -archive.getinfo(f"{item[0]}.npy").compress_size)
            arrays = in_threads(lambda item: _integers(archive, *item, path), columns)
            by_name = {name: array for (name, _), array in zip(columns, arrays, strict=True)}
            return [by_name[name] for name in names]
    except KeyError as error:
        raise InputError(
            f"the {what} {path} lacks an array; it must hold {', '.join(names[:-1])} and {names[-1]}"
        ) from error
    except InputError:
        raise
    except Exception as error:  # numpy and zipfile raise many kinds for a damaged archive
        raise InputError(f"the {what} {path} is not a readable .npz file; write it again") from error


def _require_ratio(archive: zipfile.ZipFile, names: Sequence[str], path: str | Path) -> None:
    """Raise InputError if a small archive expands to large arrays, which arrays of messages never do."""
    members = [archive.getinfo(f"{name}.npy") for name in names]
    num_bytes, compressed = (
        sum(sizes) for sizes in ([one.file_size for one in members], [one.compress_size for one in members])
    )
    if num_bytes > max(_SMALL_BYTES, _MAX_RATIO * compressed):
        raise InputError(
            f"the arrays of {path} have {format_bytes(num_bytes)}, {num_bytes // max(compressed, 1)} times "
            f"what the archive has; above {format_bytes(_SMALL_BYTES)} give arrays that are not compressed, "
            "or less"
        )


@dataclass(frozen=True)
class _Header:
    """What the member of an array says of it, in its first bytes."""

    num_bytes: int
    length: int
    kind: np.dtype


def _header(archive: zipfile.ZipFile, name: str) -> _Header | None:
    """Return the header of a one-dimensional array of integers, None for another array; raise ValueError if
    its size differs from its header, or its version is not known."""
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as stream:
        version = npy_format.read_magic(stream)
        if (read_header := _HEADER_READERS.get(version)) is None:
            raise ValueError(f"{name} is of the version {version[0]}.{version[1]}")
        shape, _, kind = read_header(stream)
        if len(shape) != 1 or kind.kind not in "iu":
            return None
        if member.file_size != stream.tell() + math.prod(shape) * kind.itemsize:
            raise ValueError(f"{name} is of {member.file_size} bytes")
        return _Header(stream.tell(), shape[0], kind)


def _integers(archive: zipfile.ZipFile, name: str, header: _Header, path: str | Path) -> np.ndarray:
    """Read an array without its header, which CPython before 3.13 cannot parse in several threads at once."""
    array, filled = np.empty(header.length, header.kind), 0
    with archive.open(f"{name}.npy") as stream:
        stream.read(header.num_bytes)
        while filled < header.length:
            part = np.frombuffer(
                stream.read(_BLOCK // header.kind.itemsize * header.kind.itemsize), header.kind
            )
            if not len(part):
                raise ValueError(f"{name} ends early")
            array[filled : filled + len(part)] = part
            filled += len(part)
    if header.kind.kind == "u" and array.max(initial=0) > np.iinfo(np.int64).max:
        raise InputError(f"the array {name} of {path} has {array.max()}, beyond 63 bits; give smaller ones")
    return array.astype(np.int64, copy=False)
