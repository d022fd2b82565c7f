"""Reads the messages of a trace in the Open Trace Format 2, as Score-P writes it."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.recording import PairTotals
from earlybird.data.units import MAX_BYTES

ANCHOR = "traces.otf2"
_GIVE = f"give the anchor file of a trace, such as {ANCHOR}, or the folder that contains it"


@dataclass(frozen=True, eq=False)
class Traced:
    """Sums by sender, receiver and exact size; `totals` may have several rows of one size class."""

    totals: PairTotals
    num_ranks: int


def load_trace(path: Path) -> Traced:
    """Count the point-to-point messages of a trace, as their senders wrote them.

    Ranks are those of MPI_COMM_WORLD, whatever the communicator. Raises InputError if the package otf2 is not
    installed or `path` is no trace of an MPI program.
    """
    try:
        import otf2
    except ImportError as error:
        raise InputError(
            "reading OTF2 needs the Python package otf2, which is not installed; install it with `pip "
            "install otf2` in the environment of earlybird"
        ) from error
    if path.is_dir():
        path = path / ANCHOR
    if not path.is_file():
        raise InputError(f"the trace {path} does not exist; {_GIVE}")
    if b"OTF2" not in path.read_bytes()[:16]:
        raise InputError(f"{path} is no anchor file of OTF2; {_GIVE}")
    try:
        with otf2.reader.open(str(path)) as trace:
            return _messages(trace, otf2, path)
    except InputError:
        raise
    except Exception as error:  # the package raises many kinds for a damaged trace
        raise InputError(f"the trace {path} cannot be read ({error}); write it again") from error


def _messages(trace: Any, otf2: Any, path: Path) -> Traced:
    ranks = _ranks(trace.definitions, otf2)
    if not ranks:
        raise InputError(f"{path} has no ranks of MPI; give the trace of an MPI program")
    sends = (otf2.events.MpiSend, otf2.events.MpiIsend)
    counts: Counter[tuple[int, int, int]] = Counter()
    for location, event in trace.events:
        if isinstance(event, sends):
            receiver = _receiver(event, location, otf2)
            counts[ranks[location.group], ranks[receiver.group], event.msg_length] += 1
    rows = [(src, dst, size.bit_length(), count, count * size) for (src, dst, size), count in counts.items()]
    if sum(row[4] for row in rows) > MAX_BYTES:
        raise InputError(f"the messages of {path} add up to more than {MAX_BYTES} bytes; write it again")
    return Traced(PairTotals(*np.array(rows, dtype=np.int64).reshape(-1, 5).T), 1 + max(ranks.values()))


def _ranks(definitions: Any, otf2: Any) -> dict[Any, int]:
    """The rank of each process; threads of a process have its rank."""
    for group in definitions.groups:
        if (group.group_type, group.paradigm) == (otf2.GroupType.COMM_LOCATIONS, otf2.Paradigm.MPI):
            return {location.group: rank for rank, location in enumerate(group.members)}
    return {}


def _receiver(event: Any, sender: Any, otf2: Any) -> Any:
    """The location that a rank of a communicator stands for. (otf2 3.2 reads no inter-communicators.)"""
    group = event.communicator.group
    return sender if group.group_type == otf2.GroupType.COMM_SELF else group.members[event.receiver]
