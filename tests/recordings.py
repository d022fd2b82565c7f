"""Recordings for tests: their files as the recorder writes them, and recordings in memory."""

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data.recorded_rank import (
    CALL,
    RECEIVED,
    SENT,
    Communicator,
    EpochSamples,
    RankPhase,
    RankRecording,
    Step,
)
from earlybird.data.recording import Recording, recording_into

CALLS = ("MPI_Init", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce", "MPI_Finalize", "MPI_Bcast")
INIT, ISEND, IRECV, WAITALL, ALLREDUCE, FINALIZE, BCAST = range(len(CALLS))
# Calls of threads, after those.
THREAD_CALLS = (
    "pthread_create", "pthread_exit", "pthread_join", "pthread_barrier_wait", "omp_parallel", "omp_arrive",
    "omp_join",
)  # fmt: skip
CREATE, EXIT, JOIN, BARRIER_WAIT, OMP_PARALLEL, OMP_ARRIVE, OMP_JOIN = range(
    len(CALLS), len(CALLS) + len(THREAD_CALLS)
)
# As in the files; see docs/files.
ENTRY = np.dtype(
    [
        ("call", "u2"), ("role", "u1"), ("size_class", "u1"), ("communicator", "u4"), ("peer", "i4"),
        ("thread", "u4"), ("phase", "u4"), ("reserved", "u4"), ("calls", "u8"), ("messages", "u8"),
        ("bytes", "u8"), ("time_ns", "u8"),
    ]
)  # fmt: skip
RUN_S = 2.0
# The exchange and the sum of every rank, by turns.
STEPS = {1: (ISEND, IRECV, WAITALL), 2: (ALLREDUCE,)}
FUNCTIONS, EPOCHS = {1: "exchange", 2: "sum"}, 1
PHASE_TIMES_S = {1: 0.5, 2: 0.1}


def chunk(kind: int, payload: bytes) -> bytes:
    return struct.pack("=IIQII", 0x43524245, kind, len(payload), zlib.crc32(payload), 0) + payload


def text(**value) -> bytes:
    return chunk(1, json.dumps(value).encode())


def rank_file(
    rank: int, size: int, rows: np.ndarray, host: str = "n0", end: str | None = "finalize", calls=CALLS,
    boot: str = "", thread_level: str = "single",
) -> bytes:  # fmt: skip
    """The file of a rank with one communicator, MPI_COMM_WORLD, and these entries. Ranks of the same `boot`
    have the same clock."""
    parts = [
        text(kind="header", schema="earlybird.recording/1", rank=rank, size=size, host=host,
             mpi="An MPI 1.0", thread_level=thread_level, calls=calls, boot=boot),
        text(kind="communicator", number=1, rank=rank, name="MPI_COMM_WORLD", topology="none",
             members={"first": 0, "stride": 1, "num": size}),
        *(
            text(kind="phase", number=number, region=1,
                 steps=[{"call": call, "module": "/bin/app", "offset": 100 * number + call,
                         "function": FUNCTIONS[number]} for call in calls])
            for number, calls in STEPS.items()
        ),
        chunk(2, struct.pack("=Q", round(1e9 * RUN_S)) + rows.tobytes()),
        chunk(3, b"".join(
            struct.pack("=II4Q", number, 0, EPOCHS, round(1e9 * PHASE_TIMES_S[number]), 10**8, 2 * 10**9)
            for number in STEPS
        )),
    ]  # fmt: skip
    return b"".join([*parts, *([text(kind="end", how=end, run_s=RUN_S)] if end else [])])


def size_class(num_bytes: int) -> int:
    return num_bytes.bit_length()


def entries(rank: int, messages, waiting_s: float) -> np.ndarray:
    """The entries of a rank for `messages`, rows (src, dst, count, bytes of each), with 1 us for each send
    and receive, `waiting_s` in MPI_Waitall, 0.1 s in MPI_Allreduce of 8 bytes, and 5 s in MPI_Init."""
    sums: dict[tuple, list[int]] = {}
    for src, dst, count, each in messages:
        for call, role, own, peer in ((ISEND, SENT, src, dst), (IRECV, RECEIVED, dst, src)):
            if own == rank:
                total = sums.setdefault((call, role, size_class(each), 1, peer, 0, 1, 0), [0, 0, 0, 0])
                for k, value in enumerate((count, count, count * each, 1000 * count)):
                    total[k] += value
    sums[WAITALL, CALL, 0, 0, -1, 0, 1, 0] = [1, 0, 0, round(1e9 * waiting_s)]
    sums[ALLREDUCE, CALL, 4, 1, -1, 0, 2, 0] = [1, 0, 8, 10**8]
    sums[INIT, CALL, 0, 0, -1, 0, 0, 0] = [1, 0, 0, 5 * 10**9]
    return np.array([(*key, *total) for key, total in sums.items()], ENTRY)


def world(rank: int, size: int) -> Communicator:
    return Communicator("MPI_COMM_WORLD", rank, range(size))


PHASES = {
    number: RankPhase(
        1, tuple(Step(CALLS[call], "/bin/app", 100 * number + call, FUNCTIONS[number]) for call in calls),
        EPOCHS, PHASE_TIMES_S[number], 0.1, 2.0,
    )
    for number, calls in STEPS.items()
}  # fmt: skip


def in_memory(
    size: int, messages, waiting_s=lambda rank: 0.2, host=lambda rank: "n0", end=lambda rank: "finalize",
    absent=(), communicators=None, thread_level="single",
) -> Recording:  # fmt: skip
    """A recording of `size` ranks that exchange `messages`; without the files of the ranks in `absent`."""
    own: dict[int, list] = {}
    for message in messages:
        for rank in {message[0], message[1]}:
            own.setdefault(rank, []).append(message)
    ranks = {
        rank: RankRecording(
            rank, size, host(rank), "An MPI 1.0", thread_level, CALLS,
            entries(rank, own.get(rank, ()), waiting_s(rank)),
            communicators(rank) if communicators else {1: world(rank, size)}, end(rank), RUN_S, False,
            PHASES,
        )
        for rank in range(size) if rank not in absent
    }  # fmt: skip
    return Recording(Path("rec"), ("mpiexec", "-n", str(size), "./app"), ranks)


def start_recording(folder: Path, facts: Mapping[str, Any]) -> None:
    """Create the folder of a recording, for ranks that are written or started elsewhere."""
    with recording_into(folder, facts):
        pass


def on_disk(
    folder: Path, size: int, messages, waiting_s=lambda rank: 0.2, host=lambda rank: "n0", boot: str = ""
) -> Path:
    """The folder of a recording as the recorder leaves it."""
    start_recording(folder, {"command": ["mpiexec", "-n", str(size), "./app"]})
    for rank in range(size):
        rows = entries(rank, messages, waiting_s(rank))
        (folder / f"rank-{rank}.ebr").write_bytes(rank_file(rank, size, rows, host(rank), boot=boot))
    return folder


_EPOCH_EVENT = np.dtype(
    [(name, "i8") for name in ("call", "role", "peer", "communicator", "messages", "bytes")]
)  # fmt: skip


def of_epochs(size: int, epochs, kept=None, own_epochs=lambda rank: range(2**30), **others) -> Recording:
    """A recording whose exchange phase has these `epochs`, each a list of messages as of `in_memory`.

    `kept`: indices of those whose content is recorded, all by default. `own_epochs`: which of them a rank
    goes through.
    """
    recording = in_memory(size, [message for one in epochs for message in one], **others)
    ranks = {}
    for rank, one in recording.ranks.items():
        own = [messages for k, messages in enumerate(epochs) if k in own_epochs(rank)]
        variants: dict[tuple, int] = {}
        sampled = []
        for j, messages in enumerate(own):
            rows = [
                (call, role, peer, 1, count, count * each)
                for src, dst, count, each in messages
                for call, role, owner, peer in ((ISEND, SENT, src, dst), (IRECV, RECEIVED, dst, src))
                if owner == rank
            ]
            if kept is None or j in kept:
                sampled.append((j, variants.setdefault(tuple(rows), len(variants))))
        samples = EpochSamples(
            *np.array(sampled, np.int64).reshape(-1, 2).T,
            tuple(np.array(list(rows), _EPOCH_EVENT) for rows in variants),
        )
        phases = {**one.phases, 1: replace(one.phases[1], epochs=len(own))}
        ranks[rank] = replace(one, phases=phases, epoch_samples={(1, 0): samples})
    return replace(recording, ranks=ranks)


def ring(size: int, count: int = 3, each: int = 1000) -> list[tuple[int, int, int, int]]:
    """`count` messages from each rank to the next."""
    return [(rank, (rank + 1) % size, count, each) for rank in range(size)]


def halo(side: int, each: int = 4096) -> list[tuple[int, int, int, int]]:
    """Each rank of a periodic side x side x side grid sends to its six neighbours."""
    rank = np.arange(side**3).reshape(side, side, side)
    found = []
    for axis in range(3):
        for shift in (1, -1):
            pairs = zip(rank.ravel().tolist(), np.roll(rank, shift, axis).ravel().tolist(), strict=True)
            found += [(src, dst, 10 + axis, each << axis) for src, dst in pairs]
    return found


# A record of a trace as in the files; see native/recorder/recording/trace.h.
TRACED = np.dtype(
    [
        ("turn", "u4"), ("request", "u4"), ("begin_ticks", "u8"), ("ticks", "u8"), ("bytes", "u8"),
        ("site", "u8"), ("posted_ticks", "u8"), ("what", "u4"), ("peer", "i4"), ("tag", "i4"),
        ("thread", "u2"), ("call", "u2"),
    ]
)  # fmt: skip
TRACE_HEAD_BYTES = 4096
# The same in the first version.
FORMER_TRACED = np.dtype(
    [
        ("number", "u8"), ("begin_ticks", "u8"), ("ticks", "u8"), ("bytes", "u8"), ("site", "u8"),
        ("communicator", "u4"), ("peer", "i4"), ("tag", "i4"), ("posted", "u4"), ("thread", "u4"),
        ("call", "u2"), ("role", "u1"), ("kind", "u1"),
    ]
)  # fmt: skip
TICKS_PER_S = 2 * 10**9
_TRACE_MAGIC = 0x3245434152544245
ZERO_TICKS = 10**12


def _ticks(seconds: float) -> int:
    return ZERO_TICKS + round(seconds * TICKS_PER_S)


def trace_file(
    records, capacity: int, begin_s: float = 1000.0, ahead_s: float = 0.0, clocks=(), thread: int = 0,
    site: int = 0,
) -> bytes:  # fmt: skip
    """The file of a trace whose rank has made all `records`: rows (begin_s, end_s, call, role, communicator,
    peer, tag, kind, bytes, request, posted_s, thread), with times since `begin_s` of a clock that is ahead by
    `ahead_s`. Without a request, that of a message received is the number of the row, and others have none;
    without posted_s, that is not known, and without a thread it is `thread`. `clocks`: pairs of seconds by
    ticks and by the clock."""
    rows = []
    for k, record in enumerate(records):
        begin, end, call, role, communicator, peer, tag, kind, size, *more = record
        request = more[0] if more else (k + 1) * (role == RECEIVED)
        posted = _ticks(more[1]) if len(more) > 1 and more[1] is not None else 0
        what = communicator | role << 24 | kind << 28
        ticks = round((end - begin) * TICKS_PER_S)
        of_thread = more[2] if len(more) > 2 else thread
        rows.append((k // capacity + 1, request, _ticks(begin), ticks, size, site, posted, what, peer, tag,
                     of_thread, call))  # fmt: skip
    head = _trace_head(_TRACE_MAGIC, records, capacity, begin_s + ahead_s)
    head += struct.pack("=Q", len(clocks))
    for by_ticks, by_clock in clocks:
        head += struct.pack("=QQ", _ticks(by_ticks), round(1e9 * (begin_s + ahead_s + by_clock)))
    return head.ljust(TRACE_HEAD_BYTES, b"\0") + _ring(rows, capacity, TRACED)


def former_trace_file(records, capacity: int, begin_s: float = 1000.0) -> bytes:
    """The same in the first version, in which `request` says in which order receives were posted."""
    rows = [
        (k + 1, _ticks(begin), round((end - begin) * TICKS_PER_S), size, 0, communicator, peer, tag,
         more[0] if more else k + 1, 0, call, role, kind)
        for k, (begin, end, call, role, communicator, peer, tag, kind, size, *more) in enumerate(records)
    ]  # fmt: skip
    return _trace_head(0x3145434152544245, records, capacity, begin_s) + _ring(rows, capacity, FORMER_TRACED)


def _trace_head(magic: int, records, capacity: int, begin_s: float) -> bytes:
    last_s = max((end for _, end, *_ in records), default=0.0)
    return _head_until(magic, len(records), capacity, begin_s, last_s)


def _head_until(magic: int, num: int, capacity: int, begin_s: float, last_s: float) -> bytes:
    return struct.pack(
        "=QQQdQQQQ", magic, capacity, num, 1 / TICKS_PER_S, ZERO_TICKS, round(1e9 * begin_s),
        _ticks(last_s), round(1e9 * (begin_s + last_s)),
    )  # fmt: skip


def trace_head(num: int, capacity: int, last_s: float) -> bytes:
    """The head of a trace of `num` records that ends after `last_s`."""
    return _head_until(_TRACE_MAGIC, num, capacity, 1000.0, last_s).ljust(TRACE_HEAD_BYTES, b"\0")


def _ring(rows, capacity: int, layout: np.dtype) -> bytes:
    ring = np.zeros(min(len(rows), capacity), layout)
    for k, row in enumerate(rows):
        ring[k % capacity] = row
    return ring.tobytes()


def open_call_file(*calls) -> bytes:
    """The file of the calls in which threads are: rows of the begin in seconds since MPI_Init, or None, call,
    communicator, peer and tag."""
    head = struct.pack("=QIIdQ", 0x314E45504F4245, len(calls), 64, 1 / TICKS_PER_S, ZERO_TICKS).ljust(
        64, b"\0"
    )
    return head + b"".join(
        struct.pack("=QQIIii32x", 0 if begin is None else _ticks(begin), 0, call, communicator, peer, tag)
        for begin, call, communicator, peer, tag in calls
    )


def cut_trace(path: Path) -> None:
    """Say in the head of a trace that it could not be written any more."""
    data = bytearray(path.read_bytes())
    struct.pack_into("=Q", data, 64 + 8 + 64 * 16, 1)
    path.write_bytes(data)


def add_traces(folder: Path, size: int, late: int = 1, steps: int = 3) -> None:
    """Traces for a recording of a ring in `folder`: in each step of a second every rank sends to the next,
    and `late` does so 0.2 s after the others have begun to wait for it."""
    for rank in range(size):
        rows, before = [], (rank - 1) % size
        for step in range(steps):
            begin = step + 0.3 * (rank == late)
            end = step + 0.31 if late in (rank, before) else step + 0.11
            rows += [
                (begin, begin + 0.1, ISEND, SENT, 1, (rank + 1) % size, 5, 1, 1000),
                (begin + 0.1, max(end, begin + 0.11), WAITALL, CALL, 0, -1, -1, 1, 0),
                (begin + 0.1, max(end, begin + 0.11), IRECV, RECEIVED, 1, before, 5, 0, 1000),
            ]  # fmt: skip
        (folder / f"rank-{rank}.trace").write_bytes(trace_file(rows, 1000))
