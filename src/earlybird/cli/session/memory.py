"""Whether the messages of an exchange fit into memory, before they are read."""

import zipfile
from pathlib import Path

from numpy.lib import format as npy_format

from earlybird.data import memory, units
from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern, load_pattern

# Reading, preparing and predicting an exchange takes at most about this much for each message; the largest of
# `python -m bench predictor` takes 130 to 350.
BYTES_PER_MESSAGE = 400
_BLOCK_BYTES = 1 << 20


def load_fitting_pattern(path: str | Path) -> Pattern:
    """`load_pattern`; InputError instead if its messages need more memory than there is."""
    num_messages = _count_messages(Path(path))
    needed, free = num_messages * BYTES_PER_MESSAGE, memory.available_memory_bytes()
    if needed > free:
        raise InputError(
            f"{path} has {num_messages} messages, which take about {units.format_bytes(needed)} of memory, "
            f"and {units.format_bytes(free)} are available; give fewer messages, such as those of one epoch "
            "or of some of the ranks, or use a machine with more memory"
        )
    return load_pattern(path)


def _count_messages(path: Path) -> int:
    """Without reading them; 0 if that is not known, as for a file that is not there, or a pipe."""
    if not path.is_file():
        return 0
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive, archive.open("src.npy") as stream:
                version = npy_format.read_magic(stream)
                shape, *_ = npy_format.read_array_header_1_0(stream) if version == (1, 0) else ((0,),)
                return shape[0] if shape else 0
        with path.open("rb") as stream:
            return sum(block.count(b"\n") for block in iter(lambda: stream.read(_BLOCK_BYTES), b""))
    except Exception:  # whatever is wrong with the file, reading it says so
        return 0
