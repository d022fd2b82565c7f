"""Reads the messages of a trace in the Open Trace Format 2, as Score-P and EZTrace write it."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.recording import PairTotals
from earlybird.data.units import MAX_BYTES

ANCHOR = "traces.otf2"
_GIVE = f"give the anchor file of a trace, such as {ANCHOR}, or the folder that contains it"


@dataclass(frozen=True, eq=False)
class Traced:
    """The sums by sender, receiver and exact size; `totals` may have several rows of one size class."""

    totals: PairTotals
    num_ranks: int


def load_trace(path: Path) -> Traced:
    """Count the point-to-point messages of a trace, as their senders wrote them.

    Ranks are those of MPI_COMM_WORLD, whatever the communicator. Raises InputError if the package otf2 is not
    installed or `path` is no trace of an MPI program.
    """
    try:
        import _otf2
    except ImportError as error:
        raise InputError(
            "reading OTF2 needs the Python package otf2, which is not installed; install it with `pip "
            "install otf2` in the environment of earlybird"
        ) from error
    if path.is_dir():
        # Score-P's is ANCHOR, EZTrace's eztrace_log.otf2.
        anchors = list(path.glob("*.otf2"))
        path = anchors[0] if len(anchors) == 1 else path / ANCHOR
    if not path.is_file():
        raise InputError(f"the trace {path} does not exist; {_GIVE}")
    if b"OTF2" not in next(files.read_blocks(path, "trace"), b"")[:16]:
        raise InputError(f"{path} is no anchor file of OTF2; {_GIVE}")
    try:
        trace = _read(path, _otf2)
        return _messages(trace, path)
    except InputError:
        raise
    except Exception as error:  # the package raises many kinds for a damaged trace
        raise InputError(f"the trace {path} cannot be read ({error}); write it again") from error


@dataclass(eq=False)
class _Trace:
    """The data that the callbacks of the reader collect. They only store: the package prints errors inside
    them.

    The package's own objects (`otf2.reader`) refuse inter-communicators, and traces of EZTrace 2.0, whose
    groups share the number 0; hence the callbacks.
    """

    process_of_location: dict[int, int] = field(default_factory=dict)
    locations_by_rank: Sequence[int] = ()
    """The location that stands for each rank of MPI_COMM_WORLD."""
    groups: dict[int, Sequence[int] | None] = field(default_factory=dict)
    """Ranks of MPI_COMM_WORLD by rank of the group; None is the group of each process alone."""
    comms: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The group of a communicator, or the two of an inter-communicator."""
    sends: Counter[tuple[int, int, int, int]] = field(default_factory=Counter)
    """Messages by location of the sender, communicator, rank of the receiver therein, size in bytes."""


def _read(path: Path, api: Any) -> _Trace:
    trace = _Trace()
    with ExitStack() as cleanup:
        reader = api.Reader_Open(str(path))
        cleanup.callback(api.Reader_Close, reader)
        api.Reader_SetSerialCollectiveCallbacks(reader)
        _read_definitions(reader, trace, api)
        _read_sends(reader, trace, api)
    return trace


def _read_definitions(reader: Any, trace: _Trace, api: Any) -> None:
    def location(_: Any, number: int, *about: Any) -> None:
        trace.process_of_location[number] = about[-1]

    def group(_: Any, number: int, name: int, kind: Any, paradigm: Any, *about: Any) -> None:
        *_, members = about
        if paradigm != api.PARADIGM_MPI:
            return
        if kind == api.GROUP_TYPE_COMM_LOCATIONS:
            trace.locations_by_rank = members
        elif kind == api.GROUP_TYPE_COMM_GROUP:
            trace.groups[number] = members
        elif kind == api.GROUP_TYPE_COMM_SELF:
            trace.groups[number] = None

    def comm(_: Any, number: int, name: int, members: int, *about: Any) -> None:
        trace.comms[number] = (members,)

    def inter_comm(_: Any, number: int, name: int, first: int, second: int, *about: Any) -> None:
        trace.comms[number] = (first, second)

    callbacks = api.GlobalDefReaderCallbacks_New()
    api.GlobalDefReaderCallbacks_SetLocationCallback(callbacks, location)
    api.GlobalDefReaderCallbacks_SetGroupCallback(callbacks, group)
    api.GlobalDefReaderCallbacks_SetCommCallback(callbacks, comm)
    api.GlobalDefReaderCallbacks_SetInterCommCallback(callbacks, inter_comm)
    definitions = api.Reader_GetGlobalDefReader(reader)
    api.Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, None)
    api.GlobalDefReaderCallbacks_Delete(callbacks)
    api.Reader_ReadAllGlobalDefinitions(reader, definitions)
    api.Reader_CloseGlobalDefReader(reader, definitions)


def _read_sends(reader: Any, trace: _Trace, api: Any) -> None:
    # Two functions, because the package keeps one callback per function.
    def send(location: int, time: int, _: Any, attributes: Any, *about: int) -> None:
        receiver, comm, _tag, size = about
        trace.sends[location, comm, receiver, size] += 1

    def isend(location: int, time: int, _: Any, attributes: Any, *about: int) -> None:
        receiver, comm, _tag, size, _request = about
        trace.sends[location, comm, receiver, size] += 1

    for location in trace.process_of_location:
        api.Reader_SelectLocation(reader, location)
    _read_local_definitions(reader, trace, api)
    api.Reader_OpenEvtFiles(reader)
    for location in trace.process_of_location:
        api.Reader_GetEvtReader(reader, location)
    callbacks = api.GlobalEvtReaderCallbacks_New()
    api.GlobalEvtReaderCallbacks_SetMpiSendCallback(callbacks, send)
    api.GlobalEvtReaderCallbacks_SetMpiIsendCallback(callbacks, isend)
    events = api.Reader_GetGlobalEvtReader(reader)
    api.GlobalEvtReader_SetCallbacks(events, callbacks, None)
    api.GlobalEvtReaderCallbacks_Delete(callbacks)
    api.Reader_ReadAllGlobalEvents(reader, events)
    api.Reader_CloseGlobalEvtReader(reader, events)
    api.Reader_CloseEvtFiles(reader)


def _read_local_definitions(reader: Any, trace: _Trace, api: Any) -> None:
    """Let the reader map the numbers that each process has chosen to those of the whole trace."""
    try:
        api.Reader_OpenDefFiles(reader)
    except api.Error:  # a trace need not have them
        return
    for location in trace.process_of_location:
        definitions = api.Reader_GetDefReader(reader, location)
        if definitions:
            api.Reader_ReadAllLocalDefinitions(reader, definitions)
            api.Reader_CloseDefReader(reader, definitions)
    api.Reader_CloseDefFiles(reader)


def _messages(trace: _Trace, path: Path) -> Traced:
    if not trace.locations_by_rank:
        raise InputError(f"{path} has no ranks of MPI; give the trace of an MPI program")
    # Threads of a process have its rank.
    rank_of_process = {
        trace.process_of_location[location]: rank for rank, location in enumerate(trace.locations_by_rank)
    }
    counts: Counter[tuple[int, int, int]] = Counter()
    for (location, comm, receiver, size), count in trace.sends.items():
        sender = rank_of_process[trace.process_of_location[location]]
        counts[sender, _rank_of_receiver(trace, comm, sender, receiver), size] += count
    rows = [(src, dst, size.bit_length(), count, count * size) for (src, dst, size), count in counts.items()]
    if sum(row[4] for row in rows) > MAX_BYTES:
        raise InputError(f"the messages of {path} add up to more than {MAX_BYTES} bytes; write it again")
    return Traced(
        PairTotals(*np.array(rows, dtype=np.int64).reshape(-1, 5).T), 1 + max(rank_of_process.values())
    )


def _rank_of_receiver(trace: _Trace, comm: int, sender: int, receiver: int) -> int:
    """Return the rank in MPI_COMM_WORLD; over an inter-communicator, `receiver` is a rank of the other
    group."""
    first, *second = (trace.groups[group] for group in trace.comms[comm])
    if first is None:
        return sender
    receivers = second[0] if second and sender in first else first
    if receivers is None:
        raise ValueError(f"communicator {comm} has a group of one process")
    return receivers[receiver]
