"""Recording: what each rank of a program sent, received and called, from the folder of `earlybird record`."""

import json
import re
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError

SCHEMA = "earlybird.recording/1"
SUMMARY = "recording.json"
_FUNCTIONS = "functions.json"
# A file that a process creates when it finds that the program uses MPI sessions.
SESSIONS = "sessions"
# The roles of entries: see native/recorder/recording/table.h.
CALL, SENT, RECEIVED, PUT, GOT, STARTED = range(6)
# Peers that are no ranks.
NO_PEER, NULL_PEER, ANY_PEER, OUTSIDE_PEER = -1, -2, -3, -4

# The format: see native/recorder/recording/file.h.
_HEAD = struct.Struct("=IIQII")
_MAGIC, _JSON, _ENTRIES, _PHASES = 0x43524245, 1, 2, 3
_FILE = re.compile(r"rank-(\d{1,9})(?:\.job-(\d{1,9}))?\.ebr")
_ENTRY = np.dtype(
    [
        ("call", "u2"), ("role", "u1"), ("size_class", "u1"), ("communicator", "u4"), ("peer", "i4"),
        ("thread", "u4"), ("phase", "u4"), ("reserved", "u4"), ("calls", "u8"), ("messages", "u8"),
        ("bytes", "u8"), ("time_ns", "u8"),
    ]
)  # fmt: skip
_KEY = ["call", "role", "size_class", "communicator", "peer", "thread", "phase"]
_PHASE = np.dtype(
    [
        ("phase", "u4"), ("thread", "u4"), ("epochs", "u8"), ("time_ns", "u8"), ("first_ns", "u8"),
        ("last_ns", "u8"),
    ]
)  # fmt: skip
_AGAIN = "record the program again"
# A damaged number of ranks must not fill the memory.
_MOST_RANKS = 10**8


# The numbers of phases in each rank's file, by rank.
Phases = Mapping[int, Collection[int]]


@dataclass(frozen=True)
class Communicator:
    """A communicator as one rank knows it.

    Attributes
    ----------
    rank : of the process in it.
    members, remote_members : ranks of MPI_COMM_WORLD, in order; the latter of an inter-communicator only.
        Evenly spaced ones are a range: 10,000 ranks know a communicator of 10,000.
    topology : "none", "cart", "graph" or "dist_graph"; `dims` and `periods` of a Cartesian one.
    sources, destinations : neighbours in the order of the collectives, as ranks of MPI_COMM_WORLD.
    """

    name: str
    rank: int
    members: Sequence[int]
    remote_members: Sequence[int] = ()
    topology: str = "none"
    dims: tuple[int, ...] = ()
    periods: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    destinations: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """A place in the program that calls the MPI.

    Attributes
    ----------
    module, offset : file of the program or library, and the distance of the place from where that is loaded.
    function : of the place, if the module names it.
    """

    call: str
    module: str
    offset: int
    function: str = ""


@dataclass(frozen=True)
class RankPhase:
    """Epochs of a rank with the same steps: see native/recorder/recording/epoch.h.

    Attributes
    ----------
    region : the level of MPI_Pcontrol meanwhile; 1 without it.
    steps : in the order of the first epoch.
    epochs : how many there were, on all threads.
    time_s : from the first to the last call of each epoch, summed.
    first_s, last_s : beginning of the first epoch and end of the last one, since MPI_Init.
    """

    region: int
    steps: tuple[Step, ...]
    epochs: int
    time_s: float
    first_s: float
    last_s: float


@dataclass(frozen=True, eq=False)
class RankRecording:
    """The file of a rank.

    Attributes
    ----------
    entries : structured array with a row for every distinct thread, phase, call, role, communicator, peer and
        size class; `call` is an index of `calls`, size class k > 0 holds sizes from 2**(k-1) to 2**k - 1
        bytes, phase 0 is none.
    phases : by the numbers in the entries.
    communicators : by the numbers in the entries; 0 is none.
    end : "finalize", "exit", "abort", or None if the file does not say: the process was killed.
    run_s : time from MPI_Init to the last chunk.
    is_cut : the last chunk is incomplete or damaged and not counted.
    """

    rank: int
    size: int
    host: str
    mpi: str
    thread_level: str
    calls: tuple[str, ...]
    entries: np.ndarray
    communicators: Mapping[int, Communicator]
    end: str | None
    run_s: float
    is_cut: bool
    phases: Mapping[int, RankPhase] = field(default_factory=dict)


@dataclass(frozen=True)
class CallTotal:
    """All calls of one function on all ranks.

    `bytes` are those of its messages, else of its collectives or files; `starts` of the persistent
    collectives that it created.
    """

    name: str
    calls: int
    starts: int
    messages: int
    bytes: int
    time_s: float


@dataclass(frozen=True, eq=False)
class PairTotals:
    """Messages by sender, receiver and size class, in this order: int64 arrays of the same length."""

    src: np.ndarray
    dst: np.ndarray
    size_class: np.ndarray
    messages: np.ndarray
    bytes: np.ndarray

    def by_pair(self) -> "PairTotals":
        """The sums over size classes, which are -1 then."""
        return _totals(self.src, self.dst, np.full_like(self.src, -1), self.messages, self.bytes)

    def joined(self, other: "PairTotals") -> "PairTotals":
        """The sums of both."""
        columns = [
            np.concatenate([getattr(self, column.name), getattr(other, column.name)])
            for column in fields(self)
        ]
        return _totals(*columns)


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded job.

    Attributes
    ----------
    path : the folder.
    command : as given to `earlybird record`.
    ranks : by rank of MPI_COMM_WORLD; those that left no file are absent.
    num_other : files of further jobs in the folder: spawned ranks, or a second job of the same command.
    uses_sessions : the program uses MPI sessions, of which only what is between MPI_Init and MPI_Finalize is
        recorded.
    """

    path: Path
    command: tuple[str, ...]
    ranks: Mapping[int, RankRecording]
    num_other: int = 0
    uses_sessions: bool = False

    @property
    def size(self) -> int:
        """The number of ranks of the job; 0 without a file."""
        return max((one.size for one in self.ranks.values()), default=0)

    @property
    def missing(self) -> list[int]:
        """Ranks that left no file."""
        return sorted(set(range(self.size)) - set(self.ranks))

    @property
    def ended_early(self) -> list[int]:
        """Ranks that did not reach the end of MPI_Finalize."""
        return sorted(rank for rank, one in self.ranks.items() if one.end != "finalize")

    @property
    def run_s(self) -> float:
        """The longest time from MPI_Init to the end of a rank."""
        return max((one.run_s for one in self.ranks.values()), default=0.0)

    def call_totals(self) -> list[CallTotal]:
        """Sums over all ranks for each function, the longest time first."""
        sums: dict[str, np.ndarray] = {}
        for one in self.ranks.values():
            for call in np.unique(one.entries["call"]).tolist():
                name, total = one.calls[call], _call_sums(one.entries[one.entries["call"] == call])
                sums[name] = sums[name] + total if name in sums else total
        totals = []
        for name, total in sums.items():
            calls, starts, messages, size, time_ns = total.tolist()
            totals.append(CallTotal(name, calls, starts, messages, size, 1e-9 * time_ns))
        return sorted(totals, key=lambda total: (-total.time_s, total.name))

    def sent(self, phases: Phases | None = None) -> PairTotals:
        """Messages as their senders recorded them; where a sender left no file, as the receivers did.

        `phases`: only of these.
        """
        received = self._from_peers(RECEIVED, phases)
        is_missing = np.isin(received.src, self.missing)
        columns = (getattr(received, column.name)[is_missing] for column in fields(received))
        return self._to_peers(SENT, phases).joined(PairTotals(*columns))

    def received(self) -> PairTotals:
        """Messages as their receivers recorded them."""
        return self._from_peers(RECEIVED)

    def one_sided(self, phases: Phases | None = None) -> PairTotals:
        """Data that MPI_Put, MPI_Get and the like moved, as the calling ranks recorded it.

        `src` is the process whose memory is read, `dst` the one whose memory is written. No message of
        `sent` or `received` is among them, for only one of the two processes calls the MPI. `phases`: only of
        these.
        """
        return self._to_peers(PUT, phases).joined(self._from_peers(GOT, phases))

    def _to_peers(self, role: int, phases: Phases | None = None) -> PairTotals:
        rows = [(rank, _peers(one, role, phases)) for rank, one in self.ranks.items()]
        return _join([_columns(np.full(len(part), rank), part["peer"], part) for rank, part in rows])

    def _from_peers(self, role: int, phases: Phases | None = None) -> PairTotals:
        rows = [(rank, _peers(one, role, phases)) for rank, one in self.ranks.items()]
        return _join([_columns(part["peer"], np.full(len(part), rank), part) for rank, part in rows])


def start_recording(path: Path, facts: Mapping[str, Any]) -> None:
    """Create the folder of a recording that ranks write to; `facts` say what is recorded, such as "command".

    Raises InputError if there is something already, or if it cannot be created.
    """
    try:
        path.mkdir()
    except FileExistsError as error:
        raise InputError(f"{path} exists already; give -o another name, or remove it") from error
    except OSError as error:
        raise InputError(
            f"cannot create the folder {path}: {error.strerror}; give -o a place you may write to"
        ) from error
    files.write_json(path / SUMMARY, {"schema": SCHEMA, **facts})


def save_functions(path: Path, functions: Mapping[str, Mapping[int, str]]) -> None:
    """Keep names of functions by module and offset for `load_recording`: the modules may change later."""
    files.write_json(path / _FUNCTIONS, {"schema": SCHEMA, "functions": functions})


def load_recording(path: str | Path) -> Recording:
    """Read the folder of a recording; raises InputError if it is none or a file has another schema.

    A file that is cut, as that of a killed rank may be, counts up to the last chunk that is whole.
    """
    path = Path(path)
    facts = files.read_json(path / SUMMARY, "recording", SCHEMA)
    functions = _load_functions(path)
    ranks, num_other = {}, 0
    for file in sorted(path.iterdir()):
        named = _FILE.fullmatch(file.name)
        if named is None:
            continue
        if named[2] is not None:
            num_other += 1
        elif (one := _load_rank(file, functions)) is not None:
            ranks[one.rank] = one
    command = facts.get("command")
    arguments = tuple(map(str, command)) if isinstance(command, list) else ()
    uses_sessions = (path / SESSIONS).exists()
    return Recording(path, arguments, dict(sorted(ranks.items())), num_other, uses_sessions)


def _load_functions(path: Path) -> Mapping[str, Mapping[str, str]]:
    """Names by module and offset, as text; empty without the file."""
    if not (path / _FUNCTIONS).exists():
        return {}
    functions = files.read_json(path / _FUNCTIONS, "recording", SCHEMA).get("functions", {})
    if not isinstance(functions, dict) or not all(isinstance(one, dict) for one in functions.values()):
        raise InputError(f"{path / _FUNCTIONS} is damaged; remove it, or {_AGAIN}")
    return functions


def _load_rank(path: Path, functions: Mapping[str, Mapping[str, str]]) -> RankRecording | None:
    """None if the process ended before it had written its header."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the recording {path} cannot be read: {error.strerror}; check its permissions"
        ) from error
    header: dict[str, Any] | None = None
    communicators: dict[int, Communicator] = {}
    blocks, phase_blocks, named_phases, end, run_ns = [], [], [], None, 0
    chunks = _Chunks(data)
    try:
        for kind, payload in chunks:
            if kind == _ENTRIES:
                run_ns = max(run_ns, int.from_bytes(payload[:8], "little"))
                blocks.append(np.frombuffer(payload, _ENTRY, offset=8))
            elif kind == _PHASES:
                phase_blocks.append(np.frombuffer(payload, _PHASE))
            elif kind == _JSON:
                value = json.loads(payload)
                match value["kind"]:
                    case "header":
                        header = value
                        _check_schema(path, header)
                    case "communicator":
                        communicators[value["number"]] = _communicator(value)
                    case "phase":
                        named_phases.append(value)
                    case "end":
                        end, run_ns = str(value["how"]), max(run_ns, round(1e9 * value["run_s"]))
        if header is None:
            if data and not chunks.is_cut:
                raise InputError(f"{path} has no header, so it is no recording of a rank; {_AGAIN}")
            return None
        if not 0 <= int(header["rank"]) < int(header["size"]) <= _MOST_RANKS:
            raise ValueError(f"rank {header['rank']} of {header['size']}")
        entries = _latest(blocks, _ENTRY, _KEY)
        calls = tuple(map(str, header["calls"]))
        if len(entries) and entries["call"].max() >= len(calls):
            raise ValueError("an entry names a call that the header does not have")
        return RankRecording(
            rank=int(header["rank"]), size=int(header["size"]), host=str(header["host"]),
            mpi=str(header["mpi"]), thread_level=str(header["thread_level"]), calls=calls, entries=entries,
            communicators=communicators, end=end, run_s=1e-9 * run_ns, is_cut=chunks.is_cut,
            phases=_rank_phases(
                named_phases, _latest(phase_blocks, _PHASE, ["phase", "thread"]), calls, functions
            ),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error!r}); {_AGAIN}") from error


class _Chunks:
    """The chunks of a file that are whole; `is_cut` afterwards: more followed."""

    def __init__(self, data: bytes):
        self._data = data
        self.is_cut = False

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at < len(self._data):
            if len(self._data) - at < _HEAD.size:
                break
            magic, kind, length, crc, _ = _HEAD.unpack_from(self._data, at)
            payload = self._data[at + _HEAD.size : at + _HEAD.size + length]
            if magic != _MAGIC or len(payload) != length or zlib.crc32(payload) != crc:
                break
            yield kind, payload
            at += _HEAD.size + length
        self.is_cut = at < len(self._data)


def _check_schema(path: Path, header: Mapping[str, Any]) -> None:
    schema = header.get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"{path} has the schema {schema!r}, this version reads {SCHEMA!r}; {_AGAIN} with this version"
        )


def _communicator(value: Mapping[str, Any]) -> Communicator:
    return Communicator(
        name=str(value["name"]),
        rank=int(value["rank"]),
        members=_members(value["members"]),
        remote_members=_members(value.get("remote_members", [])),
        topology=str(value["topology"]),
        **{key: tuple(value.get(key, ())) for key in ("dims", "periods", "sources", "destinations")},
    )


def _members(value: Any) -> Sequence[int]:
    if isinstance(value, list):
        return tuple(map(int, value))
    first, stride, num = (int(value[key]) for key in ("first", "stride", "num"))
    if not 0 <= num <= _MOST_RANKS:
        raise ValueError(f"a group of {num} ranks")
    return range(first, first + stride * num, stride) if stride else (first,) * num


def _rank_phases(
    named: list[dict[str, Any]],
    totals: np.ndarray,
    calls: tuple[str, ...],
    functions: Mapping[str, Mapping[str, str]],
) -> dict[int, RankPhase]:
    """Phases by number; those without an epoch that was written are left out."""
    phases = {}
    for value in named:
        rows = totals[totals["phase"] == int(value["number"])]
        if not len(rows):
            continue
        steps = tuple(_step(step, calls, functions) for step in value["steps"])
        phases[int(value["number"])] = RankPhase(
            region=int(value["region"]), steps=steps, epochs=int(rows["epochs"].sum()),
            time_s=1e-9 * int(rows["time_ns"].sum()), first_s=1e-9 * int(rows["first_ns"].min()),
            last_s=1e-9 * int(rows["last_ns"].max()),
        )  # fmt: skip
    return phases


def _step(
    value: Mapping[str, Any], calls: tuple[str, ...], functions: Mapping[str, Mapping[str, str]]
) -> Step:
    module, offset = str(value["module"]), int(value["offset"])
    function = functions.get(module, {}).get(str(offset), value["function"])
    return Step(calls[value["call"]], module, offset, str(function))


def _latest(blocks: list[np.ndarray], dtype: np.dtype, key: list[str]) -> np.ndarray:
    """Of the rows with the same key, the last one: rows are totals since the start."""
    if not blocks:
        return np.empty(0, dtype)
    rows = np.concatenate(blocks)[::-1]
    _, first = np.unique(rows[key], return_index=True)
    return rows[np.sort(first)][::-1]


def _call_sums(rows: np.ndarray) -> np.ndarray:
    """Calls, starts, messages, bytes and nanoseconds of the entries of one function."""
    is_start, is_message = rows["role"] == STARTED, rows["messages"] > 0
    part = rows[is_message] if is_message.any() else rows
    return np.array(
        [
            rows["calls"][~is_start].sum(), rows["calls"][is_start].sum(), rows["messages"].sum(),
            part["bytes"].sum(), rows["time_ns"].sum(),
        ],
        dtype=np.uint64,
    )  # fmt: skip


def _peers(one: RankRecording, role: int, phases: Phases | None) -> np.ndarray:
    """The entries of a role whose peer is a rank; with `phases`, only of these."""
    rows = one.entries[(one.entries["role"] == role) & (one.entries["peer"] >= 0)]
    return rows if phases is None else rows[np.isin(rows["phase"], list(phases.get(one.rank, ())))]


def _columns(src: np.ndarray, dst: np.ndarray, rows: np.ndarray) -> np.ndarray:
    names = ("size_class", "messages", "bytes")
    return np.column_stack([src, dst, *(rows[name] for name in names)]).astype(np.int64)


def _join(parts: list[np.ndarray]) -> PairTotals:
    table = np.concatenate([np.empty((0, 5), np.int64), *parts])
    return _totals(*table.T)


def _totals(
    src: np.ndarray,
    dst: np.ndarray,
    size_class: np.ndarray,
    messages: np.ndarray,
    num_bytes: np.ndarray,
) -> PairTotals:
    """The sums for each distinct (src, dst, size class), in this order."""
    keys, place = np.unique(np.column_stack([src, dst, size_class]), axis=0, return_inverse=True)
    sums = []
    for values in (messages, num_bytes):
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, place.reshape(-1), values)  # exact, unlike bincount with weights
        sums.append(total)
    return PairTotals(*keys.T, *sums)
