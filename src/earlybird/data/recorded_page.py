"""The page in which the recorder keeps where the threads of a rank are: see
native/recorder/recording/awaited.h."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from earlybird.data.mpi_calls import POLLS, base_name
from earlybird.data.rank_states import (
    ANY_TAG,
    COLLECTIVE,
    LOCK,
    NOTHING,
    PARTITIONED_SEND,
    RECEIVE,
    SEND,
    Awaited,
    CommunicatorState,
    Entered,
    RankState,
    ThreadState,
)
from earlybird.data.recorded_rank import ANY_PEER, NO_PEER

_MAGIC, _OPEN_MAGIC = 0x3454494157424245, 0x314E45504F4245
_UNKNOWN = _TAKEN = 2**64 - 1
_NUM_CALLS, _NUM_COMMUNICATORS, _NUM_MEMBERS, _NUM_REQUESTS, _NUM_CHANNELS = 63, 256, 8192, 1024, 1024
_NUM_ENTERED, _NAME_BYTES, _NUM_PARTITIONS = 4, 64, 512
_CALL = np.dtype(
    [
        ("begin_ticks", "u8"), ("site", "u8"), ("call", "u4"), ("communicator", "u4"), ("peer", "i4"),
        ("tag", "i4"), ("bytes", "u8"), ("turn", "u4"), ("progress", "u4"), ("ended_ticks", "u8"),
        ("polling_ticks", "u8"),
    ]
)  # fmt: skip
_OPEN_HEAD = np.dtype([("magic", "u8"), ("others", "u8", 7)])
_HEAD = np.dtype(
    [
        ("magic", "u8"), ("bytes", "u4"), ("pid", "i4"), ("started", "u8"), ("pid_namespace", "u8"),
        ("begin_ns", "u8"), ("begin_ticks", "u8"), ("tick_s", "f8"), ("rank", "i4"), ("size", "i4"),
        ("num_communicators", "u4"), ("num_members", "u4"), ("requests_left_out", "u4"),
        ("channels_left_out", "u4"), ("communicators_left_out", "u4"), ("is_concurrent", "u4"),
        ("num_objects", "u4"), ("objects_left_out", "u4"), ("now_ns", "u8"), ("objects_forgotten", "u8"),
        ("reserved", "u8", 2),
    ]
)  # fmt: skip
_MORE = np.dtype(
    [
        ("serial", "u4"), ("num", "u4"), ("num_left_out", "u4"), ("send_peer", "i4"), ("send_tag", "i4"),
        ("root", "i4"), ("send_bytes", "u8"), ("number", "u8"), ("task", "u8"), ("reserved", "u8", 2),
    ]
)  # fmt: skip
_ENTERED = np.dtype([("call", "u4"), ("root", "i4"), ("bytes", "u8"), ("site", "u8")])
_COMMUNICATOR = np.dtype(
    [
        ("identity", "u8"), ("num_entered", "u8"), ("number", "u4"), ("size", "u4"), ("rank", "i4"),
        ("is_inter", "u4"), ("first", "i4"), ("stride", "i4"), ("members_at", "u4"), ("num_listed", "u4"),
        ("is_unlisted", "u4"), ("reserved", "u4"), ("entered", _ENTERED, _NUM_ENTERED),
        ("name", "S", _NAME_BYTES),
    ]
)  # fmt: skip
_REQUEST = np.dtype(
    [
        ("posted_ticks", "u8"), ("bytes", "u8"), ("number", "u8"), ("site", "u8"), ("call", "u4"),
        ("communicator", "u4"), ("peer", "i4"), ("tag", "i4"), ("kind", "u2"), ("thread", "u2"),
        ("serial", "u4"), ("partitions", "u4"), ("num_ready", "u4"),
    ]
)  # fmt: skip
_CHANNEL = np.dtype(
    [
        ("is_used", "u4"), ("communicator", "u4"), ("peer", "i4"), ("tag", "i4"), ("sent", "u8"),
        ("received", "u8"), ("sent_bytes", "u8"),
    ]
)  # fmt: skip
_PAGE = np.dtype(
    [
        ("open", _OPEN_HEAD), ("calls", _CALL, _NUM_CALLS), ("head", _HEAD), ("more", _MORE, _NUM_CALLS + 1),
        ("communicators", _COMMUNICATOR, _NUM_COMMUNICATORS), ("members", "i4", _NUM_MEMBERS),
        ("keys", "u8", _NUM_REQUESTS), ("requests", _REQUEST, _NUM_REQUESTS),
        ("channels", _CHANNEL, _NUM_CHANNELS), ("ready", "u8", (_NUM_REQUESTS, _NUM_PARTITIONS // 64)),
    ]
)  # fmt: skip
PAGE_BYTES = _PAGE.itemsize
CALLS_BYTES = _OPEN_HEAD.itemsize + _NUM_CALLS * _CALL.itemsize
# Of an earlier copy no more is needed than whether threads have got on, and whose page it is.
BEGIN_BYTES = CALLS_BYTES + _HEAD.itemsize
_BEGIN = np.dtype([(name, _PAGE[name]) for name in ("open", "calls", "head")])
assert _HEAD.fields is not None and _PAGE.fields is not None
_TABLES: Mapping[str, Any] = _PAGE.fields
_NOW_AT: int = CALLS_BYTES + _HEAD.fields["now_ns"][1]
# Calls that send a message and return when its buffer may be used again.
_SENDS = frozenset({"MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend"})
_RECEIVES = frozenset({"MPI_Recv", "MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Probe", "MPI_Mprobe"})
_PROBES = frozenset({"MPI_Probe", "MPI_Mprobe"})
_WAITS = frozenset({"MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"})
# Calls that wait for other ranks to call MPI_Win_post or MPI_Win_complete.
_EPOCHS = frozenset({"MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait"})
# Calls in which a rank may wait for the end of another one's lock.
_LOCKED = frozenset(
    {f"MPI_Win_{name}{of}" for name in ("lock", "unlock", "flush", "flush_local") for of in ("", "_all")}
)
# Bits of the numbers of windows, and of these, persistent collectives and files.
_WINDOW, _OBJECT = 0x80000000, 0xE0000000
Copy = bytes | bytearray | memoryview


@dataclass(frozen=True)
class PageOwner:
    """The process that has a page: its id in its own namespace, and when it began (see proc_pid_stat(5))."""

    pid: int
    started: int
    pid_namespace: int
    rank: int
    size: int
    is_concurrent: bool = False  # several threads may call the MPI


def owner_in(begin: Copy) -> PageOwner:
    """Return the process of a page, of which only BEGIN_BYTES are needed; raise ValueError if it is none of
    this version."""
    if len(begin) < BEGIN_BYTES:
        raise ValueError("the page is too short")
    head = np.frombuffer(begin, _HEAD, 1, CALLS_BYTES)[0]
    if int.from_bytes(begin[:8], "little") != _OPEN_MAGIC or int(head["magic"]) != _MAGIC:
        raise ValueError("it is no page of this version")
    pid, started, namespace, rank, size = (
        int(head[name]) for name in ("pid", "started", "pid_namespace", "rank", "size")
    )
    return PageOwner(pid, started, namespace, rank, size, bool(head["is_concurrent"]))


def read_page(path: Path) -> bytearray:
    """Return a page without the parts of its tables that are not in use, which are most of it."""
    page = bytearray(PAGE_BYTES)
    whole = memoryview(page)
    with path.open("rb", buffering=0) as stream:

        def read(name: str, num: int | None = None) -> None:
            table, begin = _TABLES[name][:2]
            size = table.itemsize if num is None else num * table.base.itemsize
            stream.seek(begin)
            stream.readinto(whole[begin : begin + size])

        stream.readinto(whole[: _TABLES["communicators"][1]])
        head = np.frombuffer(page, _HEAD, 1, CALLS_BYTES)[0]
        num = min(int(head["num_communicators"]), _NUM_COMMUNICATORS)
        read("communicators", num)
        if np.frombuffer(page, _COMMUNICATOR, num, _TABLES["communicators"][1])["num_listed"].any():
            read("members")
        read("keys")
        begin, end = _TABLES["keys"][1], _TABLES["requests"][1]
        if page.count(0, begin, end) < end - begin:
            read("requests")
            rows = np.frombuffer(page, _REQUEST, _NUM_REQUESTS, _TABLES["requests"][1])
            if (rows["kind"] == PARTITIONED_SEND).any():
                read("ready")
        read("channels")
    return page


def progress_in(begin: bytes) -> int | None:
    """Return a number that grows as any thread of a rank gets on, from the first CALLS_BYTES of its page;
    None if these are none."""
    if len(begin) < CALLS_BYTES or int.from_bytes(begin[:8], "little") != _OPEN_MAGIC:
        return None
    return int(np.frombuffer(begin, _CALL, _NUM_CALLS + 1)["progress"][1:].sum(dtype=np.int64))


def note_time(page: BinaryIO, now_ns: int) -> None:
    """Set the time of CLOCK_MONOTONIC in a page on this machine: ranks of which nothing is counted take it
    from there, instead of reading a clock in every call."""
    page.seek(_NOW_AT)
    page.write(now_ns.to_bytes(8, "little"))


class Page:
    """A copy of the page of a rank.

    Attributes
    ----------
    is_concurrent : whether several threads may call the MPI.
    num_threads : number of threads that have a place in it.
    tasks : these threads, as in /proc/PID/task.
    tasks_inside : those of them that are in a call.
    began_s : when it was made, at the end of MPI_Init, by CLOCK_MONOTONIC of its node.

    `again` is a second copy of the same page, made later: a thread whose place has changed in between is not
    steady; then BEGIN_BYTES of the first are enough. ValueError if it is of another process.
    """

    def __init__(self, data: Copy, again: Copy | None = None):
        again = data if again is None else again
        if len(again) < PAGE_BYTES:
            raise ValueError("the page is too short")
        self.owner = owner_in(data)
        self._page = np.frombuffer(data, _BEGIN, 1)[0]
        self._again = np.frombuffer(again, _PAGE, 1)[0]
        head = self._page["head"]
        if any(self._again["head"][name] != head[name] for name in ("pid", "started")):
            raise ValueError("another process has made a page of this name")
        self.is_concurrent = self.owner.is_concurrent
        calls = self._again["calls"]
        used = (calls["begin_ticks"] != 0) | (calls["ended_ticks"] != 0)
        self.num_threads = int(used.sum())
        tasks = self._again["more"]["task"][:-1]
        self.tasks = frozenset(tasks[used].tolist())
        self.tasks_inside = frozenset(tasks[calls["begin_ticks"] != 0].tolist())
        self.began_s = 1e-9 * int(head["begin_ns"])

    def state(
        self,
        now_s: float,
        calls: Sequence[str],
        place_of: Callable[[int, str], str],
        idle_tasks: Collection[int] = (),
        channels: np.ndarray | None = None,
        **others: Any,
    ) -> RankState:
        """Return the state of the rank.

        `now_s` is the time of CLOCK_MONOTONIC; `calls` has names of functions by number; `place_of` returns
        the text of a place from its address and the function that was called there; `idle_tasks` are
        threads, as in /proc/PID/task, that wait for others of their process; `channels` are those of the
        page that matter, by default all; `others` are further attributes of the state.
        """
        page, head = self._again, self._again["head"]
        names = [base_name(name) for name in calls]
        tick_s, zero_s = float(head["tick_s"]), 1e-9 * int(head["begin_ns"])

        def seconds(ticks: Any) -> float:
            return zero_s + (int(ticks) - int(head["begin_ticks"])) * tick_s

        def name_of(call: Any) -> str:
            return names[call] if call < len(names) else "an MPI call"

        keys, communicators = self._communicators(name_of)
        requests: list[Awaited] = []
        locks: list[Awaited] = []
        by_thread: dict[tuple[int, int], list[Awaited]] = {}
        used = (page["keys"] != 0) & (page["keys"] != _TAKEN) & (page["requests"]["kind"] != NOTHING)
        for row, ready in zip(page["requests"][used], page["ready"][used], strict=True):
            awaited = Awaited(
                int(row["kind"]), name_of(row["call"]), int(row["peer"]), int(row["tag"]),
                keys.get(int(row["communicator"])), _size(row["bytes"]), int(row["number"]),
                seconds(row["posted_ticks"]), int(row["partitions"]), int(row["num_ready"]),
                site=int(row["site"]), unready=_unready(row, ready),
            )  # fmt: skip
            if awaited.kind == LOCK:
                locks.append(replace(awaited, number=awaited.tag, tag=ANY_TAG))
                continue
            requests.append(awaited)
            by_thread.setdefault((int(row["thread"]), int(row["serial"])), []).append(awaited)
        threads = []
        slots = page["calls"]
        for number in np.flatnonzero((slots["begin_ticks"] != 0) | (slots["ended_ticks"] != 0)).tolist():
            slot, more = slots[number], page["more"][number]
            call = name_of(slot["call"])
            before = self._page["calls"][number]
            # Between two polls a thread is in none; it polls if it has polled between the two copies.
            is_polling = (
                call in POLLS
                and bool(slot["polling_ticks"])
                and bool(slot["begin_ticks"] or slot["turn"] != before["turn"])
            )
            is_inside = bool(slot["begin_ticks"]) or is_polling
            since = (
                slot["polling_ticks"] if is_polling else slot["begin_ticks" if is_inside else "ended_ticks"]
            )
            begin_s = seconds(since)
            of_call = by_thread.get((number, int(more["serial"])), [])
            threads.append(
                ThreadState(
                    number, call, is_inside, max(now_s - begin_s, 0.0), place_of(int(slot["site"]), call),
                    _awaited(call, slot, more, keys, of_call, begin_s) if is_inside else (),
                    int(more["num_left_out"]) if call in _WAITS else 0, is_polling, int(slot["progress"]),
                    slot["progress"] == before["progress"]
                    and (is_polling or (slot["turn"] % 2 == 0 and slot["turn"] == before["turn"])),
                    is_idle=not is_inside and int(more["task"]) in idle_tasks,
                )
            )  # fmt: skip
        sent: dict[tuple[int, Hashable, int], tuple[int, int]] = {}
        received: dict[tuple[int, Hashable, int], int] = {}
        rows = self.channels() if channels is None else channels
        for _, number, peer, tag, num_sent, num_received, num_bytes in rows.tolist():
            channel = (peer, keys.get(number), tag)
            if num_sent:
                num, _ = sent.get(channel, (0, 0))
                sent[channel] = (num + num_sent, num_bytes)
            if num_received:
                received[channel] = received.get(channel, 0) + num_received
        knows_communicators = not head["communicators_left_out"] and None not in keys.values()
        return RankState(
            rank=self.owner.rank, threads=tuple(threads), communicators=communicators,
            requests=tuple(requests), locks=tuple(locks), sent=sent, received=received,
            counts_all=knows_communicators and not (head["channels_left_out"] or head["requests_left_out"]),
            knows_communicators=knows_communicators,
            knows_objects=not (head["objects_left_out"] or head["objects_forgotten"]),
            place_of=place_of, **others,
        )  # fmt: skip

    def channels(self) -> np.ndarray:
        """Return the rows of messages by peer, communicator and tag: see `unsettled_channels`."""
        channels = self._again["channels"]
        return channels[channels["is_used"] == 2]

    def communicators_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return identities that are the same on all ranks of communicators by their numbers; 0: unknown."""
        known = self._again["communicators"][: int(self._again["head"]["num_communicators"])]
        known = known[known["number"] != 0]
        if not len(known):
            return np.zeros(len(numbers), np.uint64)
        order = np.argsort(known["number"], kind="stable")
        of_known = known["number"][order]
        at = np.minimum(np.searchsorted(of_known, numbers, "right") - 1, len(order) - 1)
        return np.where(of_known[at] == numbers, known["identity"][order][at], 0)

    def open_sends(self) -> np.ndarray:
        """Return the rows of requests that send and are not complete."""
        keys, requests = self._again["keys"], self._again["requests"]
        return requests[(keys != 0) & (keys != _TAKEN) & (requests["kind"] == SEND)]

    def _communicators(
        self, name_of: Callable[[Any], str]
    ) -> tuple[dict[int, Hashable], Mapping[Hashable, CommunicatorState]]:
        """Return the keys of communicators by their numbers on this rank, and the communicators by key."""
        page = self._again
        keys: dict[int, Hashable] = {}
        communicators = {}
        for row in page["communicators"][: int(page["head"]["num_communicators"])]:
            number, size = int(row["number"]), int(row["size"])
            if not number:
                continue
            members: Sequence[int] | None
            first, stride, at = int(row["first"]), int(row["stride"]), int(row["members_at"])
            if row["is_unlisted"]:
                members = None
            elif row["num_listed"]:
                members = tuple(page["members"][at : at + size].tolist())
            else:
                members = range(first, first + stride * size, stride) if stride else (first,) * size
            name = bytes(row["name"]).decode(errors="replace")
            last = int(row["num_entered"])
            entered = {
                number_of: Entered(
                    name_of(each["call"]), int(each["root"]), _size(each["bytes"]), int(each["site"])
                )
                for number_of in range(max(last - _NUM_ENTERED + 1, 1), last + 1)
                for each in (row["entered"][number_of % _NUM_ENTERED],)
            }
            # Several communicators may be recorded as one that has no identity: on another rank, others.
            key: Hashable = int(row["identity"]) or None
            keys[number] = key
            if key is not None:
                communicators[key] = CommunicatorState(
                    name,
                    members,
                    last,
                    entered,
                    bool(row["is_inter"]),
                    bool(number & _WINDOW),
                    bool(number & _OBJECT),
                )
        return keys, communicators


def _size(num_bytes: Any) -> int | None:
    return None if int(num_bytes) == _UNKNOWN else int(num_bytes)


def _unready(row: Any, ready: np.ndarray) -> tuple[int, ...]:
    """Return the partitions of a partitioned send that are not ready, of those of which it is kept."""
    if row["kind"] != PARTITIONED_SEND or row["num_ready"] >= row["partitions"]:
        return ()
    bits = np.unpackbits(
        ready.view(np.uint8), bitorder="little", count=min(int(row["partitions"]), _NUM_PARTITIONS)
    )
    return tuple(np.flatnonzero(bits == 0).tolist())


def _awaited(
    call: str, slot: Any, more: Any, keys: Mapping[int, Hashable], of_call: list[Awaited], begin_s: float
) -> tuple[Awaited, ...]:
    """Return what the present call of a thread waits for."""
    communicator = keys.get(int(slot["communicator"]))
    peer, tag, size = int(slot["peer"]), int(slot["tag"]), _size(slot["bytes"])
    if call in _WAITS | _EPOCHS:
        return tuple(sorted(of_call, key=lambda awaited: awaited.posted_s))
    if call in _SENDS:
        return (Awaited(SEND, call, peer, tag, communicator, size, posted_s=begin_s),) if peer >= 0 else ()
    if call in _RECEIVES:
        if peer < 0 and peer != ANY_PEER:
            receives = []
        else:
            receives = [
                Awaited(
                    RECEIVE, call, peer, tag, communicator, size, posted_s=begin_s,
                    consumes=call not in _PROBES,
                )
            ]  # fmt: skip
        to = int(more["send_peer"])
        if to >= 0:
            sent = Awaited(
                SEND, call, to, int(more["send_tag"]), communicator, _size(more["send_bytes"]),
                posted_s=begin_s,
            )  # fmt: skip
            receives.append(sent)
        return tuple(receives)
    if call in _LOCKED:
        if communicator is None or (peer < 0 and peer != ANY_PEER):
            return ()
        return (Awaited(LOCK, call, peer, ANY_TAG, communicator, None, max(tag, 0), begin_s),)
    if more["number"] and call not in POLLS:
        root = int(more["root"])
        return (
            Awaited(
                COLLECTIVE, call, root if root >= 0 else NO_PEER, ANY_TAG, communicator, size,
                int(more["number"]), begin_s,
            ),
        )  # fmt: skip
    return ()
