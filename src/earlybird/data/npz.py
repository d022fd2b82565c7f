"""Reads integer arrays of an `.npz` archive, whose sizes are checked before they take memory."""

import math
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.threads import in_threads
from earlybird.data.units import format_bytes

# Arrays of messages are compressed to a tenth; equal numbers alone to a thousandth.
_MAX_RATIO, _SMALL_BYTES = 100, 256 << 20
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
            lengths = {_length(archive, name) for name in names}
            if len(lengths) > 1 or None in lengths:
                raise InputError(
                    f"the arrays of {path} differ in length or are not integers; give arrays of integers, as "
                    "many in each"
                )
            require_length(next(int(length or 0) for length in lengths))
            _require_ratio(archive, names, path)
            return in_threads(lambda name: _integers(archive, name, path), names)
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


def _length(archive: zipfile.ZipFile, name: str) -> int | None:
    """Return the length of a one-dimensional array of integers, None for another array; raise ValueError if
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
        return shape[0]


def _integers(archive: zipfile.ZipFile, name: str, path: str | Path) -> np.ndarray:
    with archive.open(f"{name}.npy") as stream:
        array = npy_format.read_array(stream, allow_pickle=False)
    if array.max(initial=0) > np.iinfo(np.int64).max:
        raise InputError(f"the array {name} of {path} has {array.max()}, beyond 63 bits; give smaller ones")
    return array.astype(np.int64, copy=False)
