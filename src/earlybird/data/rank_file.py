"""Reads the file of a rank in a recording."""

import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files, json_text
from earlybird.data.errors import InputError
from earlybird.data.mpi_calls import base_name
from earlybird.data.recorded_rank import (
    CALL,
    CONCURRENT,
    OUTSIDE_PEER,
    STARTED,
    Arrivals,
    Communicator,
    EpochSamples,
    OpenCall,
    RankPhase,
    RankRecording,
    Step,
)
from earlybird.data.units import MAX_S

SCHEMA = "earlybird.recording/1"
# The format: see native/recorder/recording/file.h.
_HEAD = struct.Struct("=IIQII")
_MAGIC, _JSON, _ENTRIES, _PHASES, _PENDING = 0x43524245, 1, 2, 3, 4
_MAGIC_BYTES = struct.pack("=I", _MAGIC)
_MAX_BEGINNINGS = 8  # of chunks that are looked at behind a damaged one
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
# The calls in which threads are: see native/recorder/recording/open_calls.h.
_OPEN_HEAD = struct.Struct("=QIIdQQ")
_OPEN_MAGIC = 0x314E45504F4245
_OPEN_CALL = np.dtype(
    [
        ("begin_ticks", "u8"), ("site", "u8"), ("call", "u4"), ("communicator", "u4"), ("peer", "i4"),
        ("tag", "i4"), ("bytes", "u8"), ("reserved", "u8", 3),
    ]
)  # fmt: skip
# What a rank can have counted in a run, and the last second of the year 9999.
_MAX, _END_OF_CALENDAR_S = 2**62, 253_402_300_799
_MAX_SIZE_CLASS = 64
_SUMMED = frozenset(("calls", "messages", "bytes", "time_ns", "epochs"))
_SHOWN = 60  # characters of a wrong value
_EPOCH_EVENT = np.dtype(
    [
        ("call", "i8"), ("role", "i8"), ("peer", "i8"), ("communicator", "i8"), ("messages", "i8"),
        ("bytes", "i8"),
    ]
)  # fmt: skip
# Variables that launchers and `earlybird record` set for their ranks, by what they begin with: no settings
# of a user, and some differ between runs that are alike. The recorder writes them.
OF_LAUNCHERS = (
    "I_MPI_INFO_", "I_MPI_INTERNAL_", "I_MPI_PIN_INFO", "I_MPI_PIN_MAPPING", "I_MPI_HYDRA_UUID",
    "I_MPI_HYDRA_TOPOLIB", "I_MPI_BIND_WIN_ALLOCATE", "I_MPI_RETURN_WIN_MEM_NUMA", "I_MPI_ROOT",
    "FI_PROVIDER_PATH", "OMPI_MCA_PREFIXES", "OMPI_MCA_num_procs", "OMPI_MCA_initial_wdir",
    "OMPI_MCA_cpu_type", "OMPI_MCA_ess_", "OMPI_MCA_orte_", "PRTE_MCA_ess_", "PRTE_MCA_prte_",
    "PMIX_MCA_mca_base_", "EARLYBIRD_RECORD", "EARLYBIRD_EXEC_", "EARLYBIRD_HOME",
)  # fmt: skip
# What is preloaded to record, by what the names of the libraries begin with.
_TO_RECORD = ("libearlybird", "libmpi.so", "libmpich.so", "libmpi_abi.so")
AGAIN = "record the program again"
# A damaged number of ranks must not fill the memory.
_MAX_RANKS = 10**8


def _of_user(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables without the variables of launchers, and with LD_PRELOAD as the user has set it."""
    kept = {str(name): str(value) for name, value in settings.items() if not name.startswith(OF_LAUNCHERS)}
    entries = kept.pop("LD_PRELOAD", "").replace(":", " ").split()
    preloaded = ":".join(entry for entry in entries if not Path(entry).name.startswith(_TO_RECORD))
    return kept | ({"LD_PRELOAD": preloaded} if preloaded else {})


def _number(value: Mapping[str, Any], name: str, least: int = 0, most: int = _MAX) -> int:
    """Return a whole number of a JSON object; raise ValueError unless it is in range."""
    number = value[name]
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise ValueError(f"{name} is {str(number)[:_SHOWN]}")
    return number


def _seconds(value: Mapping[str, Any], name: str, most: float = MAX_S) -> float:
    """Return a time, or another number that is not negative; raise ValueError unless it is in range."""
    number = value[name]
    if not isinstance(number, int | float) or not 0 <= number <= most:
        raise ValueError(f"{name} is {str(number)[:_SHOWN]}")
    return float(number)


def require_events(rows: np.ndarray, num_ranks: int) -> None:
    """Raise ValueError unless the columns of entries, of events of epochs or of records of a trace have
    values that can occur: results computed from them take memory for every rank, and sums."""
    limits = {
        "role": (CALL, STARTED),
        "peer": (OUTSIDE_PEER, num_ranks - 1),
        "size_class": (0, _MAX_SIZE_CLASS),
    } | dict.fromkeys(("calls", "messages", "bytes", "time_ns", "epochs", "first_ns", "last_ns"), (0, _MAX))
    for name in set(rows.dtype.names or ()) & set(limits) if len(rows) else ():
        (least, most), column = limits[name], rows[name]
        if not least <= int(column.min()) <= int(column.max()) <= most:
            raise ValueError(f"{name} is {column.min()} to {column.max()}")
        if name in _SUMMED and column.sum(dtype=float) > _MAX:
            raise ValueError(f"{name} is {column.sum(dtype=float):g} altogether")


def _require_members(communicator: Communicator, num_ranks: int) -> None:
    for members in (communicator.members, communicator.remote_members):
        if len(members) and not OUTSIDE_PEER <= min(members) <= max(members) < num_ranks:
            raise ValueError(f"{communicator.name} has the ranks {min(members)} to {max(members)}")


@dataclass(frozen=True)
class PlaceNames:
    """The names that the modules of a recording have for places, by module and offset, as text.

    Attributes
    ----------
    functions : names of functions.
    lines : file and line of the source.
    """

    functions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lines: Mapping[str, Mapping[str, tuple[str, int]]] = field(default_factory=dict)


def read_whole(path: Path) -> bytes:
    """Return the content of a file of a recording, of any size that fits into memory with its entries."""
    return files.read_bytes(path, "recording", most_bytes=None, memory_per_byte=3)


def load_rank(path: Path, names: PlaceNames) -> RankRecording | None:
    """Read the file at `path`; return None if the process ended before it had written its header.

    `names` are names of places. A file that is cut counts up to the last whole chunk. Raise InputError for a
    damaged file, and for a file of another schema.
    """
    data = read_whole(path)
    header: dict[str, Any] | None = None
    communicators: dict[int, Communicator] = {}
    blocks, phase_blocks, named_phases, end, run_ns = [], [], [], None, 0
    core_wait_s = ran_s = None
    joined_s = 0.0
    arrivals: dict[tuple[Any, ...], Arrivals] = {}
    epochs: dict[tuple[int, int], EpochSamples] = {}
    modules: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    pending = np.empty(0, _ENTRY)
    chunks = _Chunks(data)
    try:
        for kind, payload in chunks:
            # Whatever follows them contains what they say.
            pending = pending[:0]
            if kind in (_ENTRIES, _PENDING):
                run_ns = max(run_ns, int.from_bytes(payload[:8], "little"))
                rows = np.frombuffer(payload, _ENTRY, offset=8)
                if kind == _PENDING:
                    pending = rows
                else:
                    blocks.append(rows)
            elif kind == _PHASES:
                phase_blocks.append(np.frombuffer(payload, _PHASE))
            elif kind == _JSON:
                value = json_text.parse_json(bytes(payload))
                match value["kind"]:
                    case "header":
                        header = value
                        _check_schema(path, header)
                    case "communicator":
                        communicators[_number(value, "number")] = _communicator(value)
                    case "phase":
                        named_phases.append(value)
                    case "arrivals":
                        # Totals since MPI_Init: the last one of a key counts.
                        key = tuple(value[name] for name in ("thread", "phase", "module", "offset"))
                        arrivals[key] = _arrivals(value, names)
                    case "epochs":
                        epochs[_number(value, "phase"), _number(value, "thread")] = _epoch_samples(value)
                    case "modules":
                        modules = value["modules"]
                    case "place":
                        places.append(value)
                    case "end":
                        end = str(value["how"])
                        run_ns = max(run_ns, round(1e9 * _seconds(value, "run_s")))
                        core_wait_s = _seconds(value, "core_wait_s") if "core_wait_s" in value else None
                        ran_s = _seconds(value, "ran_s") if "ran_s" in value else None
                        joined_s = _seconds(value, "joined_s") if "joined_s" in value else 0.0
        if header is None:
            if not chunks.is_damaged and (chunks.is_cut or not data):
                return None
            if chunks.is_damaged and not any(data):  # of a disk that failed before the file was on it
                return None
            if chunks.is_damaged:
                raise InputError(f"{path} is damaged at its beginning; {AGAIN}")
            raise InputError(f"{path} has no header, so it is no recording of a rank; {AGAIN}")
        size = _number(header, "size", 1, _MAX_RANKS)
        rank = _number(header, "rank", 0, size - 1)
        if run_ns > MAX_S * 10**9:
            raise ValueError(f"the run took {run_ns} ns")
        # Rows that later ones replace are not looked at.
        entries, phase_totals = (
            _latest(blocks, _ENTRY, _KEY),
            _latest(phase_blocks, _PHASE, ["phase", "thread"]),
        )
        for rows in (entries, phase_totals, pending):
            require_events(rows, size)
        for communicator in communicators.values():
            _require_members(communicator, size)
        for samples in epochs.values():
            for rows in samples.variants:
                require_events(rows, size)
        entries = _with_pending(entries, pending)
        calls = tuple(base_name(str(name)) for name in header["calls"])
        if len(entries) and entries["call"].max() >= len(calls):
            raise ValueError("an entry names a call that the header does not have")
        sites = {int(value["address"]): _site("", value, names) for value in places} | {
            int(step["address"]): _step(step, calls, names)
            for value in named_phases for step in value["steps"] if "address" in step
        }  # fmt: skip
        open_calls = () if end else _open_calls(path, calls, size, sites, modules, names)
        return RankRecording(
            rank=rank, size=size, host=str(header["host"]),
            mpi=str(header["mpi"]), thread_level=str(header["thread_level"]), calls=calls, entries=entries,
            communicators=communicators, end=end, run_s=1e-9 * run_ns, is_cut=chunks.is_cut,
            is_damaged=chunks.is_damaged and end is None,
            phases=_rank_phases(
                named_phases, phase_totals, calls, names,
                np.max if header["thread_level"] == CONCURRENT else np.sum,
            ),
            arrivals=tuple(arrivals.values()),
            boot=str(header.get("boot", "")),
            sites=sites,
            core_wait_s=core_wait_s,
            ran_s=ran_s,
            joined_s=joined_s,
            settings=_of_user(header.get("settings", {})),
            binding=tuple(_number({"binding": core}, "binding") for core in header.get("binding", ())),
            load=tuple(_seconds({"load": mean}, "load") for mean in header.get("load", ())),
            begin_s=_seconds(header, "begin_s", _END_OF_CALENDAR_S) if "begin_s" in header else 0.0,
            epoch_samples=epochs,
            open_calls=open_calls,
        )  # fmt: skip
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error!r}); {AGAIN}") from error


@dataclass(frozen=True)
class RankOutline:
    """What the file of a rank says of the rank itself.

    Attributes
    ----------
    boot : boot id of its machine.
    pid : id of its process in its own namespace; 0 if it is unknown.
    calls : names of functions by number.
    modules : modules of the process with their addresses; `places` are those of a Python program.
    end : how the rank has ended, None if the file does not say.
    """

    host: str
    boot: str
    pid: int
    calls: tuple[str, ...]
    modules: tuple[Mapping[str, Any], ...]
    places: tuple[Mapping[str, Any], ...]
    end: str | None

    def step_at(self, address: int, call: str, names: PlaceNames) -> Step | None:
        """Return the place at an address of the process; None if it is unknown."""
        for value in self.places:
            if int(value["address"]) == address:
                return _site(call, value, names)
        return _place(address, call, self.modules, names)


def load_outline(path: Path) -> RankOutline | None:
    """Read the outline of a file that may be growing, without its entries; return None if it has no header
    yet or cannot be read."""
    header, modules, places, end = None, (), [], None
    try:
        with open(path, "rb") as stream:
            while len(head := stream.read(_HEAD.size)) == _HEAD.size:
                magic, kind, length, crc, _ = _HEAD.unpack(head)
                if magic != _MAGIC:
                    break
                if kind != _JSON:
                    stream.seek(length, 1)
                    continue
                payload = stream.read(length)
                if zlib.crc32(payload) != crc:
                    break
                value = json_text.parse_json(payload)
                match value["kind"]:
                    case "header":
                        header = value
                    case "modules":
                        modules = tuple(value["modules"])
                    case "place":
                        places.append(value)
                    case "end":
                        end = str(value["how"])
        if header is None:
            return None
        return RankOutline(
            str(header["host"]), str(header.get("boot", "")), int(header.get("pid", 0)),
            tuple(map(str, header["calls"])), modules, tuple(places), end,
        )  # fmt: skip
    except (OSError, LookupError, TypeError, ValueError, RecursionError):
        return None


def _with_pending(entries: np.ndarray, pending: np.ndarray) -> np.ndarray:
    """Return the entries with the counts of epochs that had not ended, which adds to the totals."""
    if not len(pending):
        return entries
    rows = np.concatenate([entries, pending])
    _, first, place = np.unique(rows[_KEY], return_index=True, return_inverse=True)
    summed = rows[first].copy()
    for name in ("calls", "messages", "bytes", "time_ns"):
        summed[name] = 0
        np.add.at(summed[name], place.reshape(-1), rows[name])
    return summed


def _epoch_samples(value: Mapping[str, Any]) -> EpochSamples:
    variants = tuple(
        np.array([tuple(row) for row in content], _EPOCH_EVENT) for content in value["variants"]
    )  # fmt: skip
    sampled = np.array(value["sampled"], np.int64).reshape(-1, 2)
    epochs, variant = sampled.T
    if np.any((variant < 0) | (variant >= len(variants))) or np.any(epochs < 0):
        raise ValueError("an epoch has a content that is not there")
    return EpochSamples(epochs, variant, variants, bool(value.get("complete", True)))


def _open_calls(
    path: Path,
    calls: tuple[str, ...],
    num_ranks: int,
    sites: Mapping[int, Step],
    modules: Sequence[Mapping[str, Any]],
    names: PlaceNames,
) -> tuple[OpenCall, ...]:
    """Return the calls in which the threads of a rank were when it ended, from the file next to its own at
    `path`."""
    opened_at = path.with_suffix(".open")
    # It is readable by its user only, unlike the recording.
    data = read_whole(opened_at) if os.access(opened_at, os.R_OK) and opened_at.is_file() else b""
    if len(data) < _OPEN_CALL.itemsize:
        return ()
    magic, num, slot_bytes, tick_s, zero, written = _OPEN_HEAD.unpack_from(data)
    if magic != _OPEN_MAGIC or slot_bytes != _OPEN_CALL.itemsize or not 0 < tick_s < 1:
        return ()
    num = max(min(num, len(data) // slot_bytes - 1), 0)
    seen_s = (written - zero) * tick_s if written else None
    if seen_s is not None and abs(seen_s) > MAX_S:
        return ()
    opened = []
    # The slots follow each other, and the first one is the head's.
    for thread, slot in enumerate(np.frombuffer(data, _OPEN_CALL, num + 1)[1:]):
        since_s = (int(slot["begin_ticks"]) - zero) * tick_s
        is_known = slot["call"] < len(calls) and OUTSIDE_PEER <= slot["peer"] < num_ranks
        if slot["begin_ticks"] == 0 or not is_known or abs(since_s) > MAX_S:
            continue
        site = int(slot["site"])
        call = calls[slot["call"]]
        step = sites[site] if site in sites else _place(site, call, modules, names)
        opened.append(
            OpenCall(
                call, thread, step, since_s, int(slot["peer"]), int(slot["tag"]), int(slot["communicator"]),
                seen_s,
            )
        )  # fmt: skip
    return tuple(opened)


def _place(address: int, call: str, modules: Sequence[Mapping[str, Any]], names: PlaceNames) -> Step | None:
    """Return the place at an address, by the addresses of the modules of the process; None if it is in none
    of them."""
    for module in modules:
        if int(module["begin"]) <= address < int(module["end"]):
            value = {"module": module["module"], "offset": address - int(module["begin"]), "function": ""}
            return _site(call, value, names)
    return None


class _Chunks:
    """The whole chunks of a file. After iteration, `is_cut` says that more data followed, and `is_damaged`
    that this data is not the beginning of a chunk."""

    def __init__(self, data: bytes):
        self._data = memoryview(data)
        self.is_cut = self.is_damaged = False

    def __iter__(self) -> Iterator[tuple[int, memoryview]]:
        at = 0
        while (chunk := self._whole(at)) is not None:
            yield chunk
            at += _HEAD.size + len(chunk[1])
        self.is_cut = at < len(self._data)
        self.is_damaged = self.is_cut and not self._is_beginning(at)

    def _whole(self, at: int) -> tuple[int, memoryview] | None:
        """Return the kind and the payload of the chunk at `at`, None unless it is whole."""
        if len(self._data) - at < _HEAD.size:
            return None
        magic, kind, length, crc, _ = _HEAD.unpack_from(self._data, at)
        payload = self._data[at + _HEAD.size : at + _HEAD.size + length]
        is_whole = magic == _MAGIC and len(payload) == length and zlib.crc32(payload) == crc
        return (kind, payload) if is_whole else None

    def _is_beginning(self, at: int) -> bool:
        """Return whether the data from `at` on may be the beginning of a chunk whose rest is missing."""
        rest = bytes(self._data[at:])
        begin = _MAGIC_BYTES[: len(rest)]
        if not rest.startswith(begin):
            return False
        if len(rest) >= _HEAD.size and _HEAD.unpack_from(rest)[2] <= len(rest) - _HEAD.size:
            return False
        # A length that was changed: another chunk follows.
        following = 0
        for _ in range(_MAX_BEGINNINGS):
            following = rest.find(_MAGIC_BYTES, following + 1)
            if following < 0:
                break
            if self._whole(at + following) is not None:
                return False
        return True


def _check_schema(path: Path, header: Mapping[str, Any]) -> None:
    schema = header.get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"{path} has the schema {schema!r}, this version reads {SCHEMA!r}; {AGAIN} with this version"
        )


def _communicator(value: Mapping[str, Any]) -> Communicator:
    return Communicator(
        name=str(value["name"]),
        rank=_number(value, "rank", OUTSIDE_PEER),
        members=_members(value["members"]),
        remote_members=_members(value.get("remote_members", [])),
        topology=str(value["topology"]),
        **{key: tuple(value.get(key, ())) for key in ("dims", "periods", "sources", "destinations")},
        identity=_number(value, "identity", most=2**64 - 1) if "identity" in value else None,
    )


def _members(value: Any) -> Sequence[int]:
    if isinstance(value, list):
        return tuple(_number({"member": member}, "member", OUTSIDE_PEER) for member in value)
    first, stride = (_number(value, key, -_MAX_RANKS, _MAX_RANKS) for key in ("first", "stride"))
    num = _number(value, "num", 0, _MAX_RANKS)
    return range(first, first + stride * num, stride) if stride else (first,) * num


def _rank_phases(
    named: list[dict[str, Any]],
    totals: np.ndarray,
    calls: tuple[str, ...],
    names: PlaceNames,
    over_threads: Callable[[np.ndarray], Any],
) -> dict[int, RankPhase]:
    """Return the phases by number, without phases that have no written epoch.

    `over_threads` joins the epochs and times of threads.
    """
    phases = {}
    for value in named:
        rows = totals[totals["phase"] == _number(value, "number")]
        if not len(rows):
            continue
        steps = tuple(_step(step, calls, names) for step in value["steps"])
        phases[value["number"]] = RankPhase(
            region=_number(value, "region", -_MAX), steps=steps, epochs=int(over_threads(rows["epochs"])),
            time_s=1e-9 * int(over_threads(rows["time_ns"])), first_s=1e-9 * int(rows["first_ns"].min()),
            last_s=1e-9 * int(rows["last_ns"].max()),
        )  # fmt: skip
    return phases


def _step(value: Mapping[str, Any], calls: tuple[str, ...], names: PlaceNames) -> Step:
    return _site(calls[_number(value, "call")], value, names)


def _site(call: str, value: Mapping[str, Any], names: PlaceNames) -> Step:
    module, offset = str(value["module"]), _number(value, "offset", most=2**64 - 1)
    function = names.functions.get(module, {}).get(str(offset), value["function"])
    file, line = names.lines.get(module, {}).get(str(offset), (value.get("file", ""), value.get("line", 0)))
    return Step(call, module, offset, str(function), str(file), int(line))


def _arrivals(value: Mapping[str, Any], names: PlaceNames) -> Arrivals:
    regions = _number(value, "regions")
    lead_ns, classes = (np.array(value[name], dtype=np.int64) for name in ("lead_ns", "classes"))
    for name, numbers in (("lead_ns", lead_ns), ("classes", classes)):
        if numbers.ndim != 1 or np.any(numbers < 0) or numbers.sum(dtype=float) > _MAX:
            raise ValueError(f"{name} of arrivals is no list of numbers that can be")
    site, lead_s = _site("", value, names), 1e-9 * lead_ns / max(regions, 1)
    return Arrivals(_number(value, "phase"), site, regions, lead_s, classes)


def _latest(blocks: list[np.ndarray], dtype: np.dtype, key: list[str]) -> np.ndarray:
    """Return the last of the rows with the same key: rows are totals since the start."""
    if not blocks:
        return np.empty(0, dtype)
    rows = np.concatenate(blocks)[::-1]
    _, first = np.unique(rows[key], return_index=True)
    return rows[np.sort(first)][::-1]
