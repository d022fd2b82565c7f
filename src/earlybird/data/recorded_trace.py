"""The trace of a rank in a recording: its latest calls and messages one by one, with their times."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.recorded_rank import AGAIN
from earlybird.data.recording import Recording

# The format: see native/recorder/recording/trace.h.
_HEAD = struct.Struct("=QQQdQQQQ")
_MAGIC = 0x3145434152544245
_RECORD = np.dtype(
    [
        ("number", "u8"), ("begin_ticks", "u8"), ("ticks", "u8"), ("bytes", "u8"), ("site", "u8"),
        ("communicator", "u4"), ("peer", "i4"), ("tag", "i4"), ("posted", "u4"), ("thread", "u4"),
        ("call", "u2"), ("role", "u1"), ("kind", "u1"),
    ]
)  # fmt: skip
# The clocks are compared over the run, unless that is too short for it.
_LEAST_COMPARED_NS = 10**8
NO_TAG = -1
MESSAGE, ONE_CALL, POLLS = range(3)  # kinds of records


@dataclass(frozen=True, eq=False)
class RankTrace:
    """The latest records of a rank, the oldest first.

    Attributes
    ----------
    records : structured array (N,) with `call`, an index of the calls of the rank's recording; `role`,
        `communicator` and `peer` as in its entries; `tag` of a message, else NO_TAG; `posted`: of a message
        received, grows in the order in which the MPI matches receives; `thread`; `kind`; `site`: the address
        in the program that called.
    calls : (N,) 1 of a call, more of polls one after another, 0 of a message that belongs to another record.
    bytes : (N,) of the message or the collective.
    begin_s, end_s : (N,) of the calls, by CLOCK_MONOTONIC of the host.
    num : records that the rank has made, of which these are the latest.
    """

    records: np.ndarray
    calls: np.ndarray
    bytes: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray
    num: int

    @property
    def is_whole(self) -> bool:
        """No record has been dropped."""
        return len(self.records) == self.num


def load_traces(recording: Recording) -> Mapping[int, RankTrace]:
    """The traces of a recording by rank; those of ranks that kept none are absent.

    Raises InputError for a file that is damaged.
    """
    traces = {}
    for rank, one in recording.ranks.items():
        path = recording.path / f"rank-{rank}.trace"
        if path.is_file() and (trace := load_trace(path, len(one.calls))) is not None:
            traces[rank] = trace
    return traces


def load_trace(path: Path, num_calls: int) -> RankTrace | None:
    """The trace at `path`; None if the process ended before it had written one.

    `num_calls`: that the recording of the rank names. Where records lack because they were being written when
    the process ended, those before are left out.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the trace {path} cannot be read: {error.strerror}; check its permissions"
        ) from error
    if len(data) < _HEAD.size:
        return None
    head = _HEAD.unpack_from(data)
    magic, capacity, num, tick_s, begin_ticks, begin_ns, last_ticks, last_ns = head
    whole = (len(data) - _HEAD.size) // _RECORD.itemsize
    rows = np.frombuffer(data, _RECORD, whole, _HEAD.size)
    if magic != _MAGIC or not capacity or whole > capacity:
        raise InputError(f"{path} is damaged or of another version; {AGAIN}, or remove this file")
    place = np.arange(whole, dtype=np.uint64)
    is_latest = (rows["number"] > max(num - capacity, 0)) & (rows["number"] <= num)
    is_latest &= (rows["number"] - np.uint64(1)) % np.uint64(capacity) == place
    rows = rows[is_latest]
    if len(rows) and rows["call"].max() >= num_calls:
        raise InputError(
            f"{path} names a call that the recording does not have; {AGAIN}, or remove this file"
        )
    rows = rows[np.argsort(rows["number"])]
    gaps = np.flatnonzero(np.diff(rows["number"]) != 1)
    rows = rows[gaps[-1] + 1 if len(gaps) else 0 :]
    compared_ns, compared_ticks = last_ns - begin_ns, last_ticks - begin_ticks
    if compared_ns >= _LEAST_COMPARED_NS and compared_ticks > 0:
        tick_s = 1e-9 * compared_ns / compared_ticks
    # Differences first: a counter of ticks may exceed the digits of a float.
    since = (rows["begin_ticks"] - np.uint64(begin_ticks)).astype(np.int64)
    begin_s = 1e-9 * begin_ns + since * tick_s
    are_polls = rows["kind"] == POLLS
    calls = np.where(are_polls, rows["bytes"], rows["kind"] == ONE_CALL).astype(np.int64)
    size = np.where(are_polls, 0, rows["bytes"]).astype(np.int64)
    return RankTrace(rows, calls, size, begin_s, begin_s + rows["ticks"].astype(float) * tick_s, num)
