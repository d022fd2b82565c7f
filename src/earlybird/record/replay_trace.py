"""Writes the operations of a recorded run as a time-independent trace, which `smpirun -replay` of SimGrid
repeats."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.data import files, folders
from earlybird.data.errors import InputError
from earlybird.models.program import Operation, Semantics
from earlybird.record.operations import NEVER, Operations

INDEX = "trace.txt"
# Of a core of the platforms that are exported: computing is written as so many operations.
FLOPS_PER_S = 1e9
# The collectives that have an action of the same meaning, and whether it names the root.
_ACTIONS = {
    "MPI_Barrier": "barrier", "MPI_Allreduce": "allreduce {size} 0", "MPI_Bcast": "bcast {size} {root}",
    "MPI_Reduce": "reduce {size} 0 {root}", "MPI_Alltoall": "alltoall {size} {size}",
}  # fmt: skip


@dataclass(frozen=True)
class ReplayTrace:
    """The number of actions written, and of collectives that have their recorded cost, since no action is as
    they are."""

    num_actions: int
    num_kept: int


def write_replay_trace(operations: Operations, folder: Path) -> ReplayTrace:
    """Write a file for each rank, and one that lists them, into a new folder.

    Computing takes the recorded time. A call that posts a send takes what the simulator charges for one.
    Raises InputError for ranks with several threads.
    """
    if len(operations.thread_rank) > operations.size:
        raise InputError(
            "threads of a rank were in the MPI at once, and a replayed rank has one thread; give a recording "
            "with at most MPI_THREAD_SERIALIZED"
        )
    if folder.exists():
        raise InputError(f"{folder} exists already; choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    writer = _Writer(operations)
    num_actions = 0
    with folders.create_whole(folder) as temporary:
        for rank in range(operations.size):
            lines = list(writer.lines(rank))
            num_actions += len(lines)
            files.write_text(temporary / f"rank-{rank}.txt", "".join(f"{line}\n" for line in lines))
        names = (folder.resolve() / f"rank-{rank}.txt" for rank in range(operations.size))
        files.write_text(temporary / INDEX, "".join(f"{name}\n" for name in names))
    return ReplayTrace(num_actions, int((~writer.has_action).sum()))


class _Writer:
    def __init__(self, operations: Operations):
        self.operations = operations
        self.tag = _places(operations.src * operations.size + operations.dst)
        enters = operations.argument[operations.operation == Operation.ENTER]
        of_all = np.bincount(enters, minlength=len(operations.root)) == operations.size
        self.has_action = of_all & np.array([name in _ACTIONS for name in operations.collective], bool)
        self.meets = of_all & (operations.semantics == Semantics.ALL_WAIT)
        posting = operations.send_wait[operations.send_wait >= 0]
        self.own_s = np.array(operations.own_s, float)
        self.own_s[posting] = 0.0

    def lines(self, rank: int) -> Iterator[str]:
        of = self.operations
        thread = int(np.searchsorted(of.thread_rank, rank))
        yield f"{rank} init"
        for k in range(int(of.first[thread]), int(of.first[thread + 1])):
            kind, about = int(of.operation[k]), int(of.argument[k])
            if kind == Operation.SEND:
                yield f"{rank} isend {of.dst[about]} {self.tag[about]} {of.bytes[about]}"
            elif kind == Operation.RECEIVE:
                yield f"{rank} irecv {of.src[about]} {self.tag[about]} {of.bytes[about]}"
            elif kind == Operation.ENTER:
                if not of.is_immediate[about]:
                    yield from self._collective(rank, k, about)
            else:
                if kind != Operation.COMPUTE:
                    yield from self._waits(rank, about)
                yield from self._compute(rank, self.own_s[k])
        yield f"{rank} finalize"

    def _compute(self, rank: int, seconds: float) -> Iterator[str]:
        if seconds > 0:
            yield f"{rank} compute {seconds * FLOPS_PER_S:.12g}"

    def _waits(self, rank: int, number: int) -> Iterator[str]:
        of = self.operations
        for request in of.set_requests[of.set_first[number] : of.set_first[number + 1]].tolist():
            kind, about = int(of.operation[request]), int(of.argument[request])
            if kind == Operation.ENTER:
                if of.is_immediate[about]:
                    yield from self._collective(rank, request, about)
            elif kind == Operation.RECEIVE or of.sender[about] != NEVER:
                yield f"{rank} wait {of.src[about]} {of.dst[about]} {self.tag[about]}"

    def _collective(self, rank: int, k: int, number: int) -> Iterator[str]:
        of = self.operations
        if self.has_action[number]:
            action = _ACTIONS[of.collective[number]]
            size = int(of.collective_bytes[number])
            yield f"{rank} {action.format(size=size, root=int(of.root[number]))}"
            return
        if self.meets[number]:
            yield f"{rank} barrier"
        yield from self._compute(rank, float(of.own_s[k]))


def _places(keys: np.ndarray) -> np.ndarray:
    """Return for each message how many of the same key precede it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
    places = np.empty(len(keys), np.int64)
    places[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    return places
