"""The trace of a rank in a recording: its calls and messages one by one, with their times."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.rank_file import AGAIN, read_whole, require_events
from earlybird.data.recorded_rank import RECEIVED
from earlybird.data.recording import Recording
from earlybird.data.units import MAX_S

# The format: see native/recorder/recording/trace.h.
_HEAD = struct.Struct("=QQQdQQQQ")
_MAGIC, _FORMER_MAGIC = 0x3245434152544245, 0x3145434152544245
_HEAD_BYTES = 4096  # before the records; in the former version _HEAD alone
_NUM_CLOCKS = struct.Struct("=Q")  # after _HEAD, and then pairs
_MAX_CLOCKS = 64
_IS_CUT, _IS_CUT_AT = struct.Struct("=Q"), _HEAD.size + 8 + 16 * _MAX_CLOCKS
_RECORD = np.dtype(
    [
        ("turn", "u4"), ("request", "u4"), ("begin_ticks", "u8"), ("ticks", "u8"), ("bytes", "u8"),
        ("site", "u8"), ("posted_ticks", "u8"), ("what", "u4"), ("peer", "i4"), ("tag", "i4"),
        ("thread", "u2"), ("call", "u2"),
    ]
)  # fmt: skip
_FORMER_RECORD = np.dtype(
    [
        ("number", "u8"), ("begin_ticks", "u8"), ("ticks", "u8"), ("bytes", "u8"), ("site", "u8"),
        ("communicator", "u4"), ("peer", "i4"), ("tag", "i4"), ("posted", "u4"), ("thread", "u4"),
        ("call", "u2"), ("role", "u1"), ("kind", "u1"),
    ]
)  # fmt: skip
# What both versions have in common.
_COMMON = np.dtype(
    [
        ("number", "u8"), ("begin_ticks", "u8"), ("ticks", "u8"), ("bytes", "u8"), ("site", "u8"),
        ("communicator", "u4"), ("peer", "i4"), ("tag", "i4"), ("order", "u4"), ("thread", "u4"),
        ("call", "u2"), ("role", "u1"), ("kind", "u1"),
    ]
)  # fmt: skip
# The clocks are compared over the run, unless that is too short for it.
_MIN_COMPARED_NS = 10**8
_BLOCK = 1 << 15  # records that are read at once
NO_TAG = -1
MESSAGE, ONE_CALL, POLLS, COMPLETION, THREAD = range(5)  # kinds of records
# What a record of a thread is of: see native/recorder/threads/events.h.
CREATES, BEGINS, ENDS, JOINS, MEETS = THREAD_EVENTS = range(5)
_THREAD_CALLS = {
    "pthread_create": CREATES, "pthread_exit": ENDS, "pthread_join": JOINS, "pthread_barrier_wait": MEETS,
    "omp_parallel": CREATES, "omp_arrive": ENDS, "omp_join": JOINS,
}  # fmt: skip
# Of these, those that wait for no other thread.
LOCAL_THREAD_CALLS = frozenset(name for name, event in _THREAD_CALLS.items() if event in (CREATES, ENDS))


@dataclass(frozen=True, eq=False)
class RankThreads:
    """What the threads of a rank do with each other outside the MPI, the oldest record first: arrays (N,).

    Attributes
    ----------
    event : one of THREAD_EVENTS: a thread creates another one, begins, ends, joins another one that has
        ended, meets others at a barrier. In each parallel region of OpenMP, threads are new ones.
    number, thread, call, site : as in the records of `RankTrace`.
    identity : the serial number of the thread that is created, begins, ends or is joined, from 1, which no
        other thread of the process has; or the number of the barrier.
    num_meeting : how many threads meet at the barrier; -1 for others.
    begin_s, end_s : by the clock of the trace.
    is_of_region : whether it is of a parallel region, whose records are all made at its end.
    """

    event: np.ndarray
    number: np.ndarray
    thread: np.ndarray
    call: np.ndarray
    site: np.ndarray
    identity: np.ndarray
    num_meeting: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray
    is_of_region: np.ndarray

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True, eq=False)
class RankTrace:
    """The latest records of a rank, the oldest first.

    Attributes
    ----------
    records : structured array (N,) with `call`, an index of the calls of the rank's recording; `role`,
        `communicator` and `peer` as in its entries; `tag` of a message, else NO_TAG; `order`, which grows in
        the order in which the MPI matches receives, of a received message; `thread`; `kind`; `site`, the
        address in the program that called. A COMPLETION belongs to a request that the call with the same
        thread and begin completed without receiving a message: a send, a collective, or a cancelled request.
    calls : (N,) 1 for a call, more for consecutive polls, 0 for a record that belongs to another record.
    bytes : (N,) size of the message, the collective or the completed request.
    begin_s, end_s : (N,) begin and end of the calls, by CLOCK_MONOTONIC of the host.
    num : number of records that the rank has made; these are the latest.
    request : (N,) int64, the serial number, from 1, of the request that the record posts or completes; 0 for
        none or unknown, as in traces of the first version.
    posted_s : (N,) when the request of a received message or a COMPLETION was posted or started; nan without
        a request, or if that is unknown.
    is_cut : whether the file could no longer be written, as on a full disk: the trace ends before the run.
    num_left_out : number of records that are in the file and not here; the first and the last one are here.
    threads : the records that are no calls of the MPI, which are not in the other columns.
    clocks_s : (K, 2) moments of the run by the tick counter, from the first one on, and by CLOCK_MONOTONIC,
        which show the drift between the two.
    """

    records: np.ndarray
    calls: np.ndarray
    bytes: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray
    num: int
    request: np.ndarray
    posted_s: np.ndarray
    clocks_s: np.ndarray
    threads: RankThreads
    is_cut: bool = False
    num_left_out: int = 0

    @property
    def is_whole(self) -> bool:
        """True if no record has been dropped."""
        return len(self.records) + len(self.threads) + self.num_left_out == self.num

    @property
    def until_s(self) -> float:
        """The end of the last record, since the first moment of the run."""
        last_s = max(self.end_s.max(initial=-np.inf), self.threads.end_s.max(initial=-np.inf))
        return max(float(last_s - self.clocks_s[0, 1]), 0.0)

    @cached_property
    def whole_from_s(self) -> float:
        """The time from which no record has been dropped, by CLOCK_MONOTONIC; -inf if none has been
        dropped."""
        if self.is_whole:
            return -np.inf
        # A record is made at the end of its call: calls of other threads may have begun before.
        of_mpi, of_threads = self.records["number"], self.threads.number
        if not len(of_threads) or (len(of_mpi) and of_mpi[0] < of_threads[0]):
            return float(self.end_s[0]) if len(of_mpi) else np.inf
        # Of a parallel region some may have been dropped; the last one that waits in it waits until its end.
        is_leading = self.threads.is_of_region & (of_threads < of_mpi[0] if len(of_mpi) else True)
        num = max(int(np.argmin(np.append(is_leading, False))), 1)
        return float(self.threads.end_s[:num].max())


def load_traces(recording: Recording) -> Mapping[int, RankTrace]:
    """Read the traces of a recording, by rank; ranks that wrote none are absent.

    Raise InputError for a file that is damaged.
    """
    traces = {}
    for rank, one in recording.ranks.items():
        path = recording.path / f"rank-{rank}.trace"
        if path.is_file() and (trace := load_trace(path, one.calls, one.size)) is not None:
            traces[rank] = trace
    return traces


def whole_from_s(traces: Mapping[int, RankTrace], ahead_s: Mapping[int, float]) -> float:
    """Return the time from which the traces of all ranks are whole, by the clock to which `ahead_s` of each
    rank refers; -inf if they are whole from the beginning."""
    return max(
        (trace.whole_from_s - ahead_s.get(rank, 0.0) for rank, trace in traces.items()), default=-np.inf
    )


def load_trace(path: Path, calls: Sequence[str], num_ranks: int) -> RankTrace | None:
    """Read the trace at `path`; return None if the process ended before it had written one.

    `calls` are the names of calls in the recording of the rank; `num_ranks` is the number of ranks of its
    job. If records are missing because they were being written when the process ended, the
    records before them are left out.
    """
    data = np.frombuffer(read_whole(path), np.uint8)
    head = _parse_head(path, data[:_HEAD_BYTES].tobytes(), len(data), calls, num_ranks)
    if head is None:
        return None
    whole = head.num_in_file
    rows = np.frombuffer(data, head.layout, whole, head.head_bytes) if whole else np.empty(0, head.layout)
    number = head.numbers(rows, 0)
    is_latest = (number > max(head.num - head.capacity, 0)) & (number <= head.num)
    is_latest &= (number - np.uint64(1)) % np.uint64(head.capacity) == np.arange(len(rows), dtype=np.uint64)
    chosen = np.flatnonzero(is_latest)
    chosen = chosen[np.argsort(number[chosen])]
    gaps = np.flatnonzero(np.diff(number[chosen]) != 1)
    chosen = chosen[gaps[-1] + 1 if len(gaps) else 0 :]
    return head.trace(rows[chosen], number[chosen])


@dataclass(frozen=True, eq=False)
class _Head:
    """What the file of a trace begins with, and what is known of it; `num_in_file` counts whole records."""

    path: Path
    calls: Sequence[str]
    num_ranks: int
    layout: np.dtype
    head_bytes: int
    capacity: int
    num: int
    num_in_file: int
    clocks: np.ndarray
    tick_s: float
    is_cut: bool

    @property
    def is_former(self) -> bool:
        return self.layout == _FORMER_RECORD

    def numbers(self, rows: np.ndarray, place: int) -> np.ndarray:
        """Return the numbers of records in the file from `place` on; 0 for those that are not whole."""
        return rows["number"] if self.is_former else _numbers(rows["turn"], self.capacity, place)

    def trace(self, rows: np.ndarray, number: np.ndarray, num_left_out: int = 0) -> RankTrace:
        """Return the trace of these records; `num_left_out` others are in the file."""
        self.require_calls(rows)
        posted_ticks = np.zeros(len(rows), np.uint64)
        request = np.zeros(len(rows), np.int64)
        if not self.is_former:
            posted_ticks, request = rows["posted_ticks"], rows["request"].astype(np.int64)
        times = _Times(self.clocks, self.tick_s)
        rows = _common(rows, number)
        begin_s = times.seconds(rows["begin_ticks"])
        are_polls = rows["kind"] == POLLS
        calls = np.where(are_polls, rows["bytes"], rows["kind"] == ONE_CALL).astype(np.int64)
        size = np.where(are_polls, 0, rows["bytes"]).astype(np.int64)
        posted_s = np.where(posted_ticks > 0, times.seconds(posted_ticks), np.nan)
        end_s = times.seconds(rows["begin_ticks"] + rows["ticks"])
        posted_or_begin_s = np.where(np.isnan(posted_s), begin_s, posted_s)
        try:
            require_events(rows, self.num_ranks)
            if np.any(end_s < begin_s) or any(
                np.any(np.abs(moments - times.clocks_s[0, 1]) > MAX_S)
                for moments in (begin_s, end_s, posted_or_begin_s)
            ):
                raise ValueError("a call begins or ends at a time of no run")
        except ValueError as error:
            raise InputError(f"{self.path} is damaged ({error}); {AGAIN}, or remove this file") from error
        is_thread = rows["kind"] == THREAD
        threads = self._threads(rows[is_thread], begin_s[is_thread], end_s[is_thread])
        if len(threads):
            rows, calls, size, begin_s, end_s, request, posted_s = (
                column[~is_thread] for column in (rows, calls, size, begin_s, end_s, request, posted_s)
            )
        return RankTrace(
            rows, calls, size, begin_s, end_s, self.num, request, posted_s, times.clocks_s, threads,
            self.is_cut, num_left_out,
        )  # fmt: skip

    def _threads(self, rows: np.ndarray, begin_s: np.ndarray, end_s: np.ndarray) -> RankThreads:
        events = np.array([_THREAD_CALLS.get(name, -1) for name in self.calls], np.int64)[rows["call"]]
        if (events < 0).any():
            raise InputError(
                f"{self.path} has records of threads of another version; {AGAIN}, or remove this file"
            )
        events[(events == CREATES) & (rows["role"] == RECEIVED)] = BEGINS
        return RankThreads(
            events, rows["number"], rows["thread"].astype(np.int64), rows["call"].astype(np.int64),
            rows["site"], rows["bytes"].astype(np.int64), rows["tag"].astype(np.int64), begin_s, end_s,
            np.array([name.startswith("omp_") for name in self.calls], bool)[rows["call"]],
        )  # fmt: skip

    def require_calls(self, rows: np.ndarray) -> None:
        if len(rows) and rows["call"].max() >= len(self.calls):
            raise InputError(
                f"{self.path} names a call that the recording does not have; {AGAIN}, or remove this file"
            )


def _parse_head(
    path: Path, data: bytes, num_bytes: int, calls: Sequence[str], num_ranks: int
) -> _Head | None:
    """Read the head of a trace from the beginning of its file; None if the file ends within it."""
    if num_bytes < _HEAD.size:
        return None
    magic, capacity, num, tick_s, begin_ticks, begin_ns, last_ticks, last_ns = _HEAD.unpack_from(data)
    is_former = magic == _FORMER_MAGIC
    layout, head_bytes = (_FORMER_RECORD, _HEAD.size) if is_former else (_RECORD, _HEAD_BYTES)
    whole = max((num_bytes - head_bytes) // layout.itemsize, 0)
    if magic not in (_MAGIC, _FORMER_MAGIC) or not capacity or whole > capacity or not 0 < tick_s < 1:
        raise InputError(f"{path} is damaged or of another version; {AGAIN}, or remove this file")
    clocks = np.array([[begin_ticks, begin_ns], [last_ticks, last_ns]], np.uint64)
    is_cut = False
    if not is_former and num_bytes >= _IS_CUT_AT + _IS_CUT.size:
        clocks = _clocks(data, clocks)
        is_cut = bool(_IS_CUT.unpack_from(data, _IS_CUT_AT)[0])
    return _Head(
        path, calls, num_ranks, layout, head_bytes, capacity, num, whole, clocks, tick_s, is_cut
    )  # fmt: skip


def role_and_kind(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both of the records of a `TraceFile`."""
    return rows["what"] >> 24 & 0xF, rows["what"] >> 28


def _numbers(turns: np.ndarray, capacity: int, place: int) -> np.ndarray:
    """Return the numbers of the records from `place` on from their turns of the ring; 0 for records that are
    not whole."""
    numbers = (turns.astype(np.uint64) - np.uint64(1)) * np.uint64(capacity)
    places = np.arange(place + 1, place + len(turns) + 1, dtype=np.uint64)
    return np.where(turns > 0, numbers + places, np.uint64(0))


def _common(rows: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return the records of either version with the same columns."""
    common = np.empty(len(rows), _COMMON)
    common["number"] = number
    for name in ("begin_ticks", "ticks", "bytes", "site", "peer", "tag", "thread", "call"):
        common[name] = rows[name]
    if rows.dtype == _FORMER_RECORD:
        common["order"] = rows["posted"]
        for name in ("communicator", "role", "kind"):
            common[name] = rows[name]
    else:
        common["order"] = rows["request"]
        common["communicator"] = rows["what"] & 0xFFFFFF
        common["role"], common["kind"] = role_and_kind(rows)
    return common


def _clocks(data: bytes, ends: np.ndarray) -> np.ndarray:
    """Return the moments in the head, with the beginning before and the last writing after them: rows of
    ticks and nanoseconds that both grow."""
    (num,) = _NUM_CLOCKS.unpack_from(data, _HEAD.size)
    at = _HEAD.size + _NUM_CLOCKS.size
    pairs = np.frombuffer(data, np.uint64, 2 * min(num, _MAX_CLOCKS), at).reshape(-1, 2)
    pairs = np.concatenate([ends[:1], pairs, ends[1:]])
    grows = np.ones(len(pairs), bool)
    for column in pairs.T:
        grows &= column > np.concatenate([[0], np.maximum.accumulate(column)[:-1]])
    grows[0] = True
    return pairs[grows]


class TraceFile:
    """The file of a trace of this version, which may be larger than the memory: its records are read in
    blocks, the oldest first."""

    def __init__(self, head: _Head):
        self._head = head

    def __len__(self) -> int:
        """Return the number of records that the file has, or would have without holes."""
        return min(self._head.num_in_file, self._head.num)

    @property
    def has_dropped(self) -> bool:
        """True if older records were overwritten."""
        return self._head.num > self._head.capacity

    @property
    def is_cut(self) -> bool:
        """True if later events were left out, as on a full disk."""
        return self._head.is_cut

    @property
    def no_records(self) -> np.ndarray:
        """An array of none of its records."""
        return np.empty(0, self._head.layout)

    @property
    def num(self) -> int:
        """The number of records that the rank has made."""
        return self._head.num

    @property
    def tick_s(self) -> float:
        return self._head.tick_s

    @property
    def duration_s(self) -> float:
        """The time from the creation of the file until it was written the last time."""
        return 1e-9 * (int(self._head.clocks[-1, 1]) - int(self._head.clocks[0, 1]))

    def ticks(self, seconds: float) -> int:
        """Return the ticks at a moment by CLOCK_MONOTONIC, to some nanoseconds; not less than 0."""
        return _Times(self._head.clocks, self._head.tick_s).ticks(seconds)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield records and their numbers, in order. Raises InputError if one is missing in between."""
        head = self._head
        number = max(head.num - head.capacity, 0) + 1
        last = -1
        with self._opened() as file:
            while number <= head.num:
                place = (number - 1) % head.capacity
                most = min(_BLOCK, head.num - number + 1, head.capacity - place)
                file.seek(head.head_bytes + place * head.layout.itemsize)
                data = file.read(max(min(most, head.num_in_file - place), 0) * head.layout.itemsize)
                rows = np.frombuffer(data, head.layout)
                numbers = head.numbers(rows, place)
                is_it = numbers == np.arange(number, number + len(rows), dtype=np.uint64)
                number += most
                if not is_it.all():
                    rows, numbers = rows[is_it], numbers[is_it]
                if not len(rows):
                    continue
                before = np.uint64(last) if last >= 0 else numbers[0] - np.uint64(1)
                if (np.diff(numbers, prepend=before) != 1).any():
                    raise InputError(
                        f"{head.path} lacks events between others, and no window can be simulated; {AGAIN}"
                    )
                last = int(numbers[-1])
                head.require_calls(rows)
                yield rows, numbers

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        return files.open_seekable(self._head.path, "recording")

    def trace(self, rows: np.ndarray, numbers: np.ndarray, num_left_out: int) -> RankTrace:
        """Return the trace of records that `blocks` has yielded, when `num_left_out` others are in the
        file."""
        return self._head.trace(rows, numbers, num_left_out)


def open_traces(recording: Recording) -> dict[int, TraceFile] | None:
    """Return the files of the traces of a recording, by rank; None if one is of the former version."""
    opened = {}
    for rank, one in sorted(recording.ranks.items()):
        path = recording.path / f"rank-{rank}.trace"
        if not path.is_file():
            continue
        with files.open_seekable(path, "recording") as stream:
            data = stream.read(_HEAD_BYTES)
        head = _parse_head(path, data, path.stat().st_size, one.calls, one.size)
        if head is not None:
            if head.is_former:
                return None
            opened[rank] = TraceFile(head)
    return opened


class _Times:
    """A conversion of ticks to seconds of CLOCK_MONOTONIC: interpolated between two moments by both clocks,
    and extrapolated from the nearest two.

    Moments that are too close together determine the length of a tick less precisely than its nominal value.
    """

    def __init__(self, clocks: np.ndarray, tick_s: float):
        kept = [0]
        for k in range(1, len(clocks)):
            if int(clocks[k, 1]) - int(clocks[kept[-1], 1]) >= _MIN_COMPARED_NS:
                kept.append(k)
        # The last interval ends with the last moment.
        if len(kept) > 1 and kept[-1] != len(clocks) - 1:
            kept[-1] = len(clocks) - 1
        self._ticks, self._ns = clocks[kept, 0], clocks[kept, 1]
        slopes = [
            1e-9 * (int(ns) - int(self._ns[k])) / max(int(ticks) - int(self._ticks[k]), 1)
            for k, (ticks, ns) in enumerate(zip(self._ticks[1:], self._ns[1:], strict=True))
        ]
        self._slopes = np.array(slopes or [tick_s])
        since = (clocks[:, 0] - clocks[0, 0]).astype(np.int64)
        self.clocks_s = np.column_stack([since * tick_s, 1e-9 * clocks[:, 1].astype(float)])

    def ticks(self, seconds: float) -> int:
        place = int(np.clip(np.searchsorted(1e-9 * self._ns, seconds) - 1, 0, len(self._slopes) - 1))
        since = (seconds - 1e-9 * float(self._ns[place])) / float(self._slopes[place])
        return max(int(self._ticks[place]) + round(since), 0)

    def seconds(self, ticks: np.ndarray) -> np.ndarray:
        place = np.clip(
            np.searchsorted(self._ticks, ticks, side="right") - 1, 0, len(self._slopes) - 1
        )  # fmt: skip
        # Differences first: a counter of ticks may exceed the digits of a float.
        since = (ticks - self._ticks[place]).astype(np.int64)
        return 1e-9 * self._ns[place].astype(float) + since * self._slopes[place]
