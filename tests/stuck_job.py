"""The folder of a job that hangs, as its ranks and the agents of its nodes keep it, without any MPI, and what
ends a program that hangs."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from earlybird.data import node_pages, recorded_page
from tests.recordings import entries, rank_file, start_recording

CALLS = ("MPI_Recv", "MPI_Allreduce")
_NEIGHBOURS = (-4, -3, -2, -1, 1, 2, 3, 4)
_TAG, _BLOCK = 3, 64
# $0: the verdict; $1: a text; the rest: the command, whose own status is kept if it ends by itself.
# The signal of `timeout` reaches all ranks, and those that are stopped go on.
_UNTIL_SAID = """
text=$1
shift
timeout 80 "$@" &
until grep -qsF "\\"$0\\"" rec*/where.json && grep -qsF "$text" rec*/where.json; do
  kill -0 $! 2> /dev/null || { wait $!; exit; }
  sleep 0.1
done
kill $!
wait $!
exit 124
"""


def pages_of_a_job(
    num_ranks: int, awaited: Mapping[int, int], num_channels: int = len(_NEIGHBOURS), pid: int = 0
) -> Iterator[bytes]:
    """Yield the pages of ranks in an MPI_Allreduce, or in an MPI_Recv from the rank that they await; each has
    received all messages of `num_channels` combinations of peer and tag. `pid`: of a process of this node
    that counts as theirs."""
    data = np.zeros(1, recorded_page._PAGE)
    data["open"]["magic"], data["head"]["magic"] = recorded_page._OPEN_MAGIC, recorded_page._MAGIC
    head, call, more = data["head"][0:1], data["calls"][0, :1], data["more"][0, :1]
    known, channels = data["communicators"][0, :1], data["channels"][0, :num_channels]
    head["tick_s"], head["size"], head["num_communicators"] = 1e-9, num_ranks, 1
    head["pid"] = pid
    if pid:
        head["started"] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        head["pid_namespace"] = os.stat("/proc/self/ns/pid").st_ino
        head["begin_ns"] = time.monotonic_ns() - 60 * 10**9
    known["identity"], known["number"], known["size"], known["stride"] = 7, 1, num_ranks, 1
    known["name"], known["entered"]["call"] = b"MPI_COMM_WORLD", 1
    known["entered"]["root"] = more["root"] = more["send_peer"] = -1
    call["begin_ticks"], call["communicator"], call["tag"] = 5, 1, _TAG
    channels["is_used"], channels["communicator"] = 2, 1
    channels["tag"] = 9 + np.arange(num_channels) // len(_NEIGHBOURS)
    channels["sent"] = channels["received"] = 100
    steps = np.resize(_NEIGHBOURS, num_channels)
    for rank in range(num_ranks):
        head["rank"] = rank
        call["peer"], call["call"] = awaited.get(rank, -1), rank not in awaited
        known["num_entered"] = more["number"] = rank not in awaited
        channels["peer"] = (rank + steps) % num_ranks
        yield data.tobytes()


def until_said(verdict: str, text: str, command: Sequence[str | Path]) -> list[str]:
    """Return a command that runs `command`, which does not end, until an answer that is kept in a recording
    here has the verdict and the text, and that ends with status 124, as `timeout` does: any time would be too
    short on a busy machine, and too long on another one."""
    return ["sh", "-c", _UNTIL_SAID, verdict, text, *map(str, command)]


def write_ranks(folder: Path, num_ranks: int, host: str = "n0") -> None:
    """Write the recording of ranks that have not ended, without their pages."""
    start_recording(folder, {"command": ["mpiexec", "-n", str(num_ranks), "./app"]})
    for rank in range(num_ranks):
        data = rank_file(rank, num_ranks, entries(rank, [], 0.0)[:0], host, end=None, calls=CALLS)
        (folder / f"rank-{rank}.ebr").write_bytes(data)


def write_pages(folder: Path, pages: Sequence[bytes]) -> None:
    """Write the pages as ranks of this node have them."""
    for rank, data in enumerate(pages):
        (folder / f"rank-{rank}.open").write_bytes(data)


class Agents:
    """Files of agents of nodes with `each` ranks; `write` writes all again, as the agents do every second."""

    def __init__(self, folder: Path, pages: Sequence[bytes], each: int):
        self._serial = 0
        self._nodes = {
            folder / f"rank-{first}.pages": b"".join(
                _bundled(f"rank-{rank}.open", pages[rank])
                for rank in range(first, min(first + each, len(pages)))
            )
            for first in range(0, len(pages), each)
        }
        self._num = {
            folder / f"rank-{first}.pages": min(each, len(pages) - first)
            for first in range(0, len(pages), each)
        }

    def write(self) -> None:
        self._serial += 1
        head = np.zeros(1, node_pages._HEAD)
        head["magic"], head["serial"], head["period_ms"] = node_pages._MAGIC, self._serial, 1000
        head["monotonic_ns"] = time.monotonic_ns()
        for path, data in self._nodes.items():
            head["num_pages"] = self._num[path]
            whole = path.with_name(f"{path.name}.new")
            whole.write_bytes(head.tobytes() + data)
            whole.replace(path)


def _bundled(name: str, page: bytes) -> bytes:
    """Return a page as a file of an agent has it: the blocks that are not empty."""
    blocks = np.frombuffer(_in_blocks(page), np.uint8).reshape(-1, _BLOCK)
    is_kept = blocks.any(axis=1)
    bitmap = _in_blocks(np.packbits(is_kept, bitorder="little").tobytes())
    about = np.zeros(1, node_pages._PAGE)
    about["name"], about["num_threads"] = name.encode(), 1
    about["bytes"], about["num_blocks"] = len(blocks) * _BLOCK, int(is_kept.sum())
    return about.tobytes() + bitmap + blocks[is_kept].tobytes()


def _in_blocks(data: bytes) -> bytes:
    return data.ljust(-(-len(data) // _BLOCK) * _BLOCK, b"\0")
