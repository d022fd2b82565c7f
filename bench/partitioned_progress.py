"""Do segments that are sent early also arrive early, while the sender computes and calls no MPI?

Each MPI and transport runs examples/late-partition with one message per partition; the trace shows when
segments were sent and seen. A segment counts as early when it arrived before the last partition was ready.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.commands import EARLYBIRD, built_mpis, say, virtual_cluster
from earlybird.present.render.terminal import print_rows

SOURCE = Path(__file__).parent.parent / "examples" / "late-partition" / "late_partition.c"
SIZES_BYTES = (4096, 65536, 1 << 20)
PARTITIONS, STARTS = 4, 20
# Above the time that any of the sizes needs over the link.
LATE_MS = {"shared memory": 5, "tcp, 1 Gbit/s": 60}


def main() -> int:
    """Measure all of it and print one table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, virtual_cluster(2, "1gbit") as cluster:
        for mpi in built_mpis():
            program = Path(folder) / f"late-{mpi}"
            _run([EARLYBIRD, "exec", "--mpi", mpi, "--", "mpicc", "-O2", SOURCE, "-o", program])
            for transport in LATE_MS:
                for thread in ("0", "1"):
                    say(f"{mpi}, {transport}, progress thread {thread}")
                    rows += _rows(mpi, transport, thread, program, cluster, Path(folder))
    print("\nOf the segments sent before the last partition was ready, how many arrived before it was")
    print_rows(["MPI", "transport", "progress thread", "segment", "early"], rows)
    return 0


def _rows(mpi: str, transport: str, thread: str, program: Path, cluster: str, folder: Path) -> Iterator[list]:
    for size_bytes in SIZES_BYTES:
        trace = folder / "trace.json"
        arguments = [program, PARTITIONS, size_bytes, LATE_MS[transport], STARTS]
        if transport == "shared memory":
            command = [EARLYBIRD, "exec", "--mpi", mpi, "--", "mpiexec", "-n", 2, *arguments]
        else:
            command = [EARLYBIRD, "exec", "--mpi", mpi, "--", EARLYBIRD, "cluster", "mpiexec"]
            command += ["--name", cluster, "--mpi", mpi, "--layout", "2x1x1", "--", *arguments]
        env = {"EARLYBIRD_TRACE": str(trace), "EARLYBIRD_SEGMENTS": "partition"}
        _run(command, env | {"EARLYBIRD_PROGRESS_THREAD": thread})
        share = early_share(json.loads(trace.read_text())["traceEvents"])
        yield [mpi, transport, "yes" if thread == "1" else "no", f"{size_bytes >> 10} KiB", f"{share:.0%}"]
        trace.unlink()


def early_share(events: list[dict]) -> float:
    """The share of all but the last partition's segments that arrived before the last MPI_Pready of their
    start."""
    last_ready, arrivals = {}, []
    for event in events:
        start = event["args"].get("start")  # None: an event that names a process
        if event["name"] == "pready":
            last_ready[start] = max(event["ts"], last_ready.get(start, 0))
        elif event["name"] == "segment arrival" and event["args"]["segment"] < PARTITIONS - 1:
            arrivals.append((start, event["ts"]))
    # The first start of a request sends copies and opens connections.
    seen = [ts < last_ready[start] for start, ts in arrivals if start > 1]
    return sum(seen) / len(seen)


def _run(command: list, env: dict[str, str] | None = None) -> None:
    result = subprocess.run(
        [str(word) for word in command], env=os.environ | (env or {}), stdin=subprocess.DEVNULL, timeout=300
    )
    if result.returncode != 0:
        raise SystemExit(f"{command[-5:]} ended with status {result.returncode}")
