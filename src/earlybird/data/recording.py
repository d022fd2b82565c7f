"""Recording: what each rank of a program sent, received and called, from the folder of `earlybird record`."""

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files, folders, locks
from earlybird.data.errors import InputError, write_error
from earlybird.data.kept_where import KeptWhere, load_where
from earlybird.data.rank_file import AGAIN, SCHEMA, PlaceNames, load_rank
from earlybird.data.recorded_rank import GOT, PUT, RECEIVED, SENT, STARTED, RankRecording
from earlybird.data.run_keys import check_summary

SUMMARY = "recording.json"
_FUNCTIONS = "functions.json"
_FILE = re.compile(r"rank-(0|[1-9][0-9]{0,8})(?:\.job-([0-9]{1,9}))?\.ebr")
# A file that a process creates when it finds that the program uses MPI sessions.
SESSIONS = "sessions"
# The same where another library's calls of the MPI precede the recorder's: a call, and the library.
HIDDEN = "hidden"
# The numbers of phases in each rank's file, by rank.
Phases = Mapping[int, Collection[int]]


@dataclass(frozen=True)
class CallTotal:
    """The totals of all calls of one function on all ranks.

    `messages` is the number of sent messages, else of received ones. `bytes` are the bytes of these messages,
    else of its collectives or files; `starts` counts the starts of the persistent collectives that it
    created.
    """

    name: str
    calls: int
    starts: int
    messages: int
    bytes: int
    time_s: float


@dataclass(frozen=True, eq=False)
class PairTotals:
    """The messages by sender, receiver and size class, in this order: int64 arrays of the same length."""

    src: np.ndarray
    dst: np.ndarray
    size_class: np.ndarray
    messages: np.ndarray
    bytes: np.ndarray

    def by_pair(self) -> "PairTotals":
        """Return the sums over size classes, which are -1 then."""
        return _totals(self.src, self.dst, np.full_like(self.src, -1), self.messages, self.bytes)

    def joined(self, other: "PairTotals") -> "PairTotals":
        """Return the sums of both."""
        columns = [
            np.concatenate([getattr(self, column.name), getattr(other, column.name)])
            for column in fields(self)
        ]
        return _totals(*columns)


# Of a run: less is what the other processes of a quiet node take.
MIN_CORE_WAIT = 0.05
# The share from which the sleep of main threads between calls is reported.
MIN_SLEPT = 0.05


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded job.

    Attributes
    ----------
    path : folder of the recording.
    command : the command, as given to `earlybird record`.
    ranks : recordings by rank of MPI_COMM_WORLD; ranks that left no file are absent.
    num_other : number of files of further jobs in the folder: spawned ranks, or a second job of the same
        command.
    uses_sessions : whether the program uses MPI sessions; only calls between MPI_Init and MPI_Finalize are
        recorded then.
    empty : ranks whose file has no complete chunk, as on a full disk; they are also `missing`.
    hidden : a function of the MPI, and the path of the program or library whose own function is called in
        place of the recorder's, for example a tool; None if there is none.
    facts : facts about the run that `earlybird record` stored: "versions" of earlybird and the MPI,
        "started", and "host", facts of the node on which it was started. Empty in recordings of former
        versions.
    where : who waited for whom when the ranks were stuck or were ended; None if that is not known.
    """

    path: Path
    command: tuple[str, ...]
    ranks: Mapping[int, RankRecording]
    num_other: int = 0
    uses_sessions: bool = False
    empty: tuple[int, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    hidden: tuple[str, str] | None = None
    where: KeptWhere | None = None

    @property
    def settings(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Variables of the environment that concern the MPI, by name and value: the ranks that had it."""
        values: dict[str, dict[str, list[int]]] = {}
        for rank, one in self.ranks.items():
            for name, value in one.settings.items():
                values.setdefault(name, {}).setdefault(value, []).append(rank)
        return {
            name: {value: tuple(ranks) for value, ranks in of_name.items()}
            for name, of_name in sorted(values.items())
        }

    @property
    def is_watched(self) -> bool:
        """Whether `earlybird exec --stuck` wrote it: nothing was counted, only `where` is known."""
        return self.facts.get("watched") is True

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

    @property
    def core_wait_share(self) -> float | None:
        """The share of the run in which the main thread of a rank was ready to run without a core, mean over
        the ranks that recorded it; None if none did."""
        shares = [
            min(one.core_wait_s / one.run_s, 1.0)
            for one in self.ranks.values()
            if one.core_wait_s is not None and one.run_s > 0
        ]
        return sum(shares) / len(shares) if shares else None

    @property
    def slept_share(self) -> float | None:
        """The least share of the run in which the main thread of a rank slept between its calls and recorded
        waits for other threads, mean over the ranks that recorded it; None if none did."""
        slept = [(one.slept_s, one.run_s) for one in self.ranks.values() if one.run_s > 0]
        shares = [min(slept_s / run_s, 1.0) for slept_s, run_s in slept if slept_s is not None]
        return sum(shares) / len(shares) if shares else None

    def call_totals(self) -> list[CallTotal]:
        """Return the sums over all ranks for each function, the longest time first."""
        sums: dict[str, np.ndarray] = {}
        for one in self.ranks.values():
            rows = one.entries[~self.is_counted_by_sender(one)]
            for call in np.unique(rows["call"]).tolist():
                name, total = one.calls[call], _call_sums(rows[rows["call"] == call])
                sums[name] = sums[name] + total if name in sums else total
            for name, (num, time_s) in one.open_time.items():
                total = np.array([num, 0, 0, 0, round(1e9 * time_s)], np.uint64)
                sums[name] = sums[name] + total if name in sums else total
        totals = []
        for name, total in sums.items():
            calls, starts, messages, size, time_ns = total.tolist()
            totals.append(CallTotal(name, calls, starts, messages, size, 1e-9 * time_ns))
        return sorted(totals, key=lambda total: (-total.time_s, total.name))

    @cached_property
    def _sending(self) -> frozenset[str]:
        """The functions that send messages."""
        return frozenset(
            one.calls[call]
            for one in self.ranks.values()
            for call in np.unique(one.entries["call"][one.entries["role"] == SENT]).tolist()
        )

    def is_counted_by_sender(self, one: RankRecording) -> np.ndarray:
        """Return for the entries (N,) of a rank whether they are messages that it received in a function that
        also sends messages, such as MPI_Alltoallv."""
        sends = np.array([name in self._sending for name in one.calls], bool)
        return (one.entries["role"] == RECEIVED) & sends[one.entries["call"]]

    def sent(self, phases: Phases | None = None) -> PairTotals:
        """Return the messages as their senders recorded them; if a sender left no file, as the receivers did.

        With `phases`, return only messages of these phases.
        """
        return self._to_peers(SENT, phases).joined(self._from_missing(phases))

    def received(self, phases: Phases | None = None) -> PairTotals:
        """Return the messages as their receivers recorded them; with `phases`, only messages of these
        phases."""
        return self._from_peers(RECEIVED, phases)

    def one_sided(self, phases: Phases | None = None) -> PairTotals:
        """Return the data that MPI_Put, MPI_Get and similar functions moved, as the calling ranks recorded
        it.

        `src` is the process whose memory is read, `dst` the process whose memory is written. No message of
        `sent` or `received` is among them, because only one of the two processes calls the MPI. With
        `phases`, return only data of these phases.
        """
        return self._to_peers(PUT, phases).joined(self._from_peers(GOT, phases))

    def by_recording_rank(
        self, phases: Phases, *, one_sided: bool = False
    ) -> list[tuple[PairTotals, np.ndarray]]:
        """Return `sent` in parts, each with the rank that recorded it: the sender, unless it left no file.

        With `one_sided`, also return parts of the data that MPI_Put, MPI_Get and similar functions moved,
        recorded by the calling rank.
        """
        sent, missing = self._to_peers(SENT, phases), self._from_missing(phases)
        parts = [(sent, sent.src), (missing, missing.dst)]
        if one_sided:
            put, got = self._to_peers(PUT, phases), self._from_peers(GOT, phases)
            parts += [(put, put.src), (got, got.dst)]
        return parts

    def _from_missing(self, phases: Phases | None) -> PairTotals:
        """Return the messages of senders that left no file, as the receivers recorded them."""
        received = self._from_peers(RECEIVED, phases)
        is_missing = np.isin(received.src, self.missing)
        return PairTotals(*(getattr(received, column.name)[is_missing] for column in fields(received)))

    def _to_peers(self, role: int, phases: Phases | None = None) -> PairTotals:
        rows = [(rank, _peers(one, role, phases)) for rank, one in self.ranks.items()]
        return _join([_columns(np.full(len(part), rank), part["peer"], part) for rank, part in rows])

    def _from_peers(self, role: int, phases: Phases | None = None) -> PairTotals:
        rows = [(rank, _peers(one, role, phases)) for rank, one in self.ranks.items()]
        return _join([_columns(part["peer"], np.full(len(part), rank), part) for rank, part in rows])


@contextlib.contextmanager
def recording_into(path: Path, facts: Mapping[str, Any]) -> Iterator[None]:
    """Create the folder of a recording that ranks write to, and exclude other processes from it until the
    block ends; `facts` describe the recording, for example its "command".

    A folder to which no rank has written is replaced. Raise InputError if something else exists there, if
    another process records into it, or if the folder cannot be created.
    """
    with contextlib.ExitStack() as stack:
        try:
            if _is_recording(path):
                with folders.locked(path / SUMMARY):
                    discard_if_empty(path)
            with folders.create_whole(path) as folder:
                files.write_json(folder / SUMMARY, {"schema": SCHEMA, **facts})
                stack.enter_context(folders.locked(folder / SUMMARY))
        except locks.Locked as error:
            raise InputError(
                f"another earlybird is recording into {path}; give -o another name, or wait for it"
            ) from error
        except FileExistsError as error:
            raise InputError(f"{path} exists already; give -o another name") from error
        except OSError as error:
            raise write_error(f"create the folder {path}", error) from error
        yield


def is_being_recorded(path: Path) -> bool:
    """Return whether a command is writing the recording in the folder `path`, as far as its lock says.

    Raise InputError if the folder is no recording.
    """
    files.read_json(path / SUMMARY, "recording", SCHEMA)
    descriptor = os.open(path / SUMMARY, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return locks.is_taken(descriptor)
    finally:
        os.close(descriptor)


def _is_recording(path: Path) -> bool:
    try:
        files.read_json(path / SUMMARY, "recording", SCHEMA)
    except InputError:
        return False
    return True


def discard_if_empty(path: Path) -> bool:
    """Remove the folder of a recording to which no rank has written; return whether it was such a folder."""
    if any(entry.name != SUMMARY for entry in path.iterdir()):
        return False
    facts = (path / SUMMARY).read_bytes()
    (path / SUMMARY).unlink()
    try:
        path.rmdir()
    except OSError:  # a rank has written meanwhile
        (path / SUMMARY).write_bytes(facts)
        return False
    return True


def save_functions(
    path: Path,
    functions: Mapping[str, Mapping[int, str]],
    lines: Mapping[str, Mapping[int, tuple[str, int]]] | None = None,
) -> None:
    """Save names of functions, and files and lines, by module and offset for `load_recording`, because the
    modules may change later."""
    named = {"schema": SCHEMA, "functions": functions, "lines": lines or {}}
    files.write_json(path / _FUNCTIONS, named, follows_link=False)


def load_recording(path: str | Path) -> Recording:
    """Read the folder of a recording; raise InputError if it is not one or a file has another schema.

    A file that is cut, for example the file of a killed rank, counts up to the last whole chunk.
    """
    path = Path(path)
    if path.is_file():
        raise InputError(f"{path} is a file; give the folder that `earlybird record` wrote")
    if path.is_dir() and not (path / SUMMARY).exists():
        is_run = (path / "run.json").exists()
        what = "a run of `measure`, not a recording" if is_run else f"no recording (no {SUMMARY} in it)"
        raise InputError(f"{path} is {what}; give a folder that `earlybird record` wrote")
    facts = files.read_json(path / SUMMARY, "recording", SCHEMA)
    check_summary(facts, f"the recording {path / SUMMARY}")
    names = _load_names(path)
    ranks: dict[int, RankRecording] = {}
    num_other, empty, size = 0, [], None
    found = [(named, file) for file in path.iterdir() if (named := _FILE.fullmatch(file.name))]
    for named, file in sorted(found, key=lambda one: int(one[0][1])):
        if named[2] is not None:
            num_other += 1
        elif (one := load_rank(file, names)) is None:
            empty.append(int(named[1]))
        else:
            size = one.size if size is None else size
            # A second, larger job finds the names free that the first one did not need.
            if one.rank != int(named[1]):
                raise InputError(f"{file} is that of rank {one.rank}; put the right one there, or {AGAIN}")
            if one.size == size:
                ranks[one.rank] = one
            else:
                num_other += 1
    arguments = tuple(facts.get("command") or ())
    where = load_where(path)
    if where is not None:
        ranks = {rank: _with_open_time(one, where) for rank, one in ranks.items()}
    uses_sessions = (path / SESSIONS).exists()
    return Recording(
        path, arguments, dict(sorted(ranks.items())), num_other, uses_sessions, tuple(empty),
        {name: value for name, value in facts.items() if name not in ("schema", "command")}, _hidden(path),
        where,
    )  # fmt: skip


def load_counted(path: str | Path) -> Recording:
    """Read the folder of a recording, as `load_recording`; also raise InputError if nothing was counted."""
    recording = load_recording(path)
    if recording.is_watched:
        raise InputError(
            f"{path} is of `earlybird exec --stuck`, which counts no calls and messages; record the program "
            "with `earlybird record`"
        )
    return recording


def _with_open_time(one: RankRecording, where: KeptWhere) -> RankRecording:
    """Return the recording of a rank with the time for which its open calls had been open."""
    known = where.open_s(one.rank)
    open_calls = tuple(
        replace(opened, open_s=known[opened.thread][1])
        if known.get(opened.thread, ("", 0.0))[0] == opened.call
        else opened
        for opened in one.open_calls
    )
    ends_s = [opened.since_s + opened.open_s for opened in open_calls if opened.open_s is not None]
    return replace(one, open_calls=open_calls, run_s=max(one.run_s, *ends_s)) if ends_s else one


def _hidden(path: Path) -> tuple[str, str] | None:
    if not (path / HIDDEN).is_file():
        return None
    call, _, library = files.read_text(path / HIDDEN, "recording", "surrogateescape").partition("\n")
    return (call, library.partition("\n")[0]) if library else None


def _load_names(path: Path) -> PlaceNames:
    """Return the saved names of places; an empty PlaceNames without the file."""
    if not (path / _FUNCTIONS).exists():
        return PlaceNames()
    kept = files.read_json(path / _FUNCTIONS, "recording", SCHEMA)
    functions, lines = kept.get("functions", {}), kept.get("lines", {})
    is_whole = all(
        isinstance(of_kind, dict) and all(isinstance(one, dict) for one in of_kind.values())
        for of_kind in (functions, lines)
    ) and all(
        isinstance(place, list) and len(place) == 2 and isinstance(place[1], int)
        for one in lines.values() for place in one.values()
    )  # fmt: skip
    if not is_whole:
        raise InputError(f"{path / _FUNCTIONS} is damaged; remove it, or {AGAIN}")
    return PlaceNames(functions, lines)


def _call_sums(rows: np.ndarray) -> np.ndarray:
    """Return calls, starts, messages, bytes and nanoseconds of the entries of one function."""
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
    """Return the entries of a role whose peer is a rank; with `phases`, only entries of these."""
    rows = one.entries if phases is None else one.entries_of(phases.get(one.rank, ()))
    return rows[(rows["role"] == role) & (rows["peer"] >= 0)]


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
    """Return the sums for each distinct (src, dst, size class), in this order."""
    keys, place = np.unique(np.column_stack([src, dst, size_class]), axis=0, return_inverse=True)
    sums = []
    for values in (messages, num_bytes):
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, place.reshape(-1), values)  # exact, unlike bincount with weights
        sums.append(total)
    return PairTotals(*keys.T, *sums)
