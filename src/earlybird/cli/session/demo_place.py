"""Selects where `demo` runs its ranks: on cores of their own, on a virtual cluster, or as many as cores."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from earlybird.data.errors import EarlybirdError
from earlybird.data.kernels import PINGPONG
from earlybird.data.layout import parse_layout
from earlybird.data.measure_commands import DEMO_CLUSTER
from earlybird.launch.cluster import control
from earlybird.launch.launcher import Request, Rules
from earlybird.machine import hardware
from earlybird.measure.launchers import make_launcher
from earlybird.present.render.notes import note

# From this many cores on, ranks with a core each show contention.
ENOUGH_CORES = 4
# Links so slow that they and not the cores are the limit, even if all ranks share two cores; two ranks on a
# node, so that they compete for its link.
NODES, RANKS, RATE_BYTES_PER_S = 4, 8, 200e6 / 8


@contextlib.contextmanager
def chosen_place(mpi: str | None) -> Iterator[tuple[str, int]]:
    """Select the launcher and the number of ranks that suit this machine; a note on stderr says which and
    why."""
    cores = max(len(socket) for socket in hardware.cores_by_socket())
    if cores >= ENOUGH_CORES:
        ranks = cores - cores % 2
        note(f"{ranks} ranks, one per core: a socket of this machine has {cores} cores")
        yield "local", ranks
        return
    counted = f"{cores} core{'' if cores == 1 else 's'}"
    with contextlib.ExitStack() as stack:
        try:
            name = stack.enter_context(_cluster(mpi))
        except EarlybirdError as error:
            ranks = max(cores, 2)
            note(f"{ranks} ranks: this machine has {counted}, and no virtual cluster was started: {error}")
            yield "local", ranks
            return
        note(
            f"{RANKS} ranks on a virtual cluster of {NODES} nodes, links of {8 * RATE_BYTES_PER_S / 1e6:g} "
            f"Mbit/s: this machine has {counted}, and no model describes the wait of ranks for a core that "
            "they share; --launcher local measures it nevertheless"
        )
        yield f"cluster:{name}", RANKS


@contextlib.contextmanager
def _cluster(mpi: str | None) -> Iterator[str]:
    """Start a cluster, and yield its name, on which a ping-pong was possible; it ends with the block."""
    name = f"{DEMO_CLUSTER}{os.getpid()}"
    control.up(name, NODES, RATE_BYTES_PER_S)
    try:
        _require_launch(name, mpi)
        yield name
    finally:
        control.down(name)


def _require_launch(name: str, mpi: str | None) -> None:
    """Raise EarlybirdError if this MPI cannot start ranks on the cluster with files in the current folder."""
    launcher, _ = make_launcher({"launcher": f"cluster:{name}", "mpi": mpi}, note=note)
    point = {"mpi": launcher.flavour, "level": "inter_node", "size_bytes": 8, "buffers": "vary"}
    request = Request(
        "trial", PINGPONG.name, [point], parse_layout("2x1x1"), Rules(budget_s=0.01), time_limit_s=20.0
    )
    with tempfile.TemporaryDirectory(prefix=".earlybird-", dir=Path.cwd()) as folder:
        launched = launcher.launch(request, Path(folder), lambda done, last: None)
    if launched.interrupted:
        raise KeyboardInterrupt
    if launched.cause is not None:
        raise EarlybirdError(f"its ranks do not start: {launched.cause}")
