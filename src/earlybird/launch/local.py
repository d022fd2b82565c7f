"""Start a kernel's ranks with an MPI's own mpiexec, on this machine or on a list of hosts, or through Slurm's
srun."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.run import Sample, sample_from_json
from earlybird.launch import mpiexec, placement
from earlybird.launch.launcher import Heard, Launched, Request
from earlybird.launch.process import Ended, Limits, run_tree
from earlybird.machine import hardware
from earlybird.machine.flavours import Flavour
from earlybird.toolchain.build import kernel_path

_RECORDED = re.compile(r"^(MPIR_|MPICH_|OMPI_|PMIX_|PRTE_|I_MPI_|UCX_|FI_|HYDRA_|SLURM_|OMP_|EARLYBIRD_)")


@dataclass(frozen=True)
class MpiexecLauncher:
    """Ranks by mpiexec: on this machine, or rank by rank on the node of `hosts` that the layout names."""

    mpi: Flavour
    hosts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "hosts" if self.hosts else "local"

    @property
    def flavour(self) -> str:
        return self.mpi.name

    def check(self, layout: Layout) -> None:
        self._binding(layout)

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        layout = request.layout
        binding = self._binding(layout)
        invocation = mpiexec.invocation(
            self.mpi,
            layout.num_ranks,
            binding,
            scratch,
            oversubscribed=placement.is_oversubscribed(layout, hardware.cores_by_socket()),
            hosts=[self.hosts[node] for node in layout.node] if self.hosts else (),
        )
        return _launch(self, self.mpi, request, invocation, binding.name, scratch, progress)

    def _binding(self, layout: Layout) -> placement.Binding:
        if not self.hosts:
            return placement.bind_local(layout, hardware.cores_by_socket())
        if layout.num_nodes > len(self.hosts):
            raise InputError(
                f"the layout {layout.text} asks for {layout.num_nodes} nodes and --hosts names "
                f"{len(self.hosts)}; name as many hosts as the layout has nodes"
            )
        # The cores of other hosts are not known here: their MPI binds core by core, and where ranks landed is
        # checked.
        return placement.Binding("core, by the MPI", None)


@dataclass(frozen=True)
class SrunLauncher:
    """Ranks by Slurm's srun, inside an allocation or asking for one."""

    mpi: Flavour
    name: str = "srun"

    @property
    def flavour(self) -> str:
        return self.mpi.name

    def check(self, layout: Layout) -> None:
        if shutil.which("srun") is None:
            raise InputError("srun is not on PATH; run this where Slurm is, or use --launcher local")
        self._distribution(layout)

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        layout = request.layout
        plugin = "pmix" if self.mpi.family == "openmpi" else "pmi2"
        words = [
            "srun",
            "-n",
            str(layout.num_ranks),
            "-N",
            str(layout.num_nodes),
            f"--mpi={plugin}",
            "--cpu-bind=cores",
            f"--distribution={self._distribution(layout)}",
        ]
        return _launch(
            self, self.mpi, request, mpiexec.Invocation(tuple(words)), "core, by Slurm", scratch, progress
        )

    def _distribution(self, layout: Layout) -> str:
        ranks = np.arange(layout.num_ranks)
        per_node = layout.num_ranks // layout.num_nodes
        if np.array_equal(layout.node, ranks // per_node):
            socket = layout.socket[:per_node]
            num_sockets = int(socket.max()) + 1
            in_turn = num_sockets > 1 and np.array_equal(socket, ranks[:per_node] % num_sockets)
            return "block:cyclic" if in_turn else "block:block"
        if np.array_equal(layout.node, ranks % layout.num_nodes):
            return "cyclic:block"
        raise InputError(
            f"srun cannot place the layout {layout.text}; give NODESxSOCKETSxRANKS mapped by core, socket "
            "or node"
        )


def _launch(
    launcher, mpi: Flavour, request: Request, invocation, binding: str, scratch: Path, progress
) -> Launched:
    """Write the plan, run the tree, read what the kernel left."""
    plan, out = scratch / "plan.txt", scratch / "samples.ndjson"
    plan.write_text("".join(_plan_line(point) for point in request.points))
    words = [*invocation.words, str(kernel_path(mpi, request.kernel)), "--plan", str(plan), "--out", str(out)]
    if request.pattern is not None:
        pattern = scratch / "pattern.bin"
        pattern.write_bytes(request.pattern.triples().tobytes())
        words += ["--pattern", str(pattern)]
    words += request.rules.words()
    environment = mpi.environment() | invocation.env
    started = datetime.now(UTC).isoformat(timespec="seconds")
    begin_s = time.monotonic()

    lines = _GrowingLines(out)

    def count_points() -> int | None:
        new = lines.read_new()
        if lines.count == 0:
            return None  # the first line, the launch record, comes when every rank has started
        if new and lines.count == len(new):
            record = json.loads(new[0])["launch_record"]
            placement.require_placed(request.layout, placement.observed_layout(record["placement"]))
        if new:
            last = json.loads(new[-1]) | {"launch": request.id}
            progress(lines.count - 1, sample_from_json(last) if lines.count > 1 else None)
        return lines.count - 1

    record: dict[str, Any] = {
        "id": request.id,
        "kernel": request.kernel,
        "started": started,
        "flavour": mpi.name,
        "version": mpi.version,
        "launcher": launcher.name,
        "layout": request.layout.text,
        "binding": binding,
        "environment": {name: value for name, value in sorted(environment.items()) if _RECORDED.match(name)},
        "set_by_launcher": sorted(invocation.env),
        "command_line": words,
    }
    try:
        ended = run_tree(
            words,
            environment=environment,
            limits=Limits(request.time_limit_s, request.stall_limit_s),
            progress=count_points,
        )
    except KeyboardInterrupt:
        ended = Ended(130, "it was interrupted", time.monotonic() - begin_s)
        return replace(_collect(request, record, out, ended), interrupted=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"{words[0]} cannot be started ({error}); run `earlybird doctor`") from error
    return _collect(request, record, out, ended)


def _collect(request: Request, record: dict[str, Any], out: Path, ended: Ended) -> Launched:
    told, samples = _read_scratch(out, request.id)
    observed = placement.observed_layout(told.pop("placement", []))
    num_hosts = len({entry["host"] for entry in observed})
    if "clock" in told:
        # Ranks of one host read one clock. Of several, each rank's times are differences of its own clock's.
        told["clock"]["residual_s"] = 0.0 if num_hosts == 1 else None
    record |= told | {
        "placement": observed,
        # Which way messages went inside a node or between nodes is the library's secret.
        "transport": {0: "unknown", 1: "intra-node"}.get(num_hosts, "inter-node"),
        "exit": ended.exit_status,
        "duration_s": round(ended.duration_s, 3),
    }
    cause = ended.cause
    if cause is None and len(samples) < len(request.points):
        cause = f"it ended after {len(samples)} of {len(request.points)} points without saying why"
    if cause is not None:
        record["cause"] = cause
    return Launched(record, samples, cause)


def _plan_line(point) -> str:
    return " ".join(f"{key}={value}" for key, value in point.items()) + "\n"


class _GrowingLines:
    """The complete lines of a growing file, each read once."""

    def __init__(self, path: Path):
        self._path, self._offset, self.count = path, 0, 0

    def read_new(self) -> list[bytes]:
        try:
            with open(self._path, "rb") as stream:
                stream.seek(self._offset)
                new = stream.read()
        except OSError:
            return []  # not made yet
        new = new[: new.rfind(b"\n") + 1]
        self._offset += len(new)
        self.count += new.count(b"\n")
        return new.splitlines()


def _read_scratch(path: Path, launch_id: str) -> tuple[dict[str, Any], list[Sample]]:
    """The launch record and the complete samples of a scratch file; a line cut short by a death is left
    out."""
    if not path.exists():
        return {}, []
    text = path.read_text()
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    if not lines:
        return {}, []
    samples = [sample_from_json(line | {"launch": launch_id}, f"{path}") for line in lines[1:]]
    return lines[0]["launch_record"], samples


def parse_hosts(text: str) -> tuple[str, ...]:
    """`a,b,c` or the path of a file with a host per line -> host names; InputError when there are none."""
    if os.path.sep in text or os.path.isfile(text):
        try:
            words = [line.split("#")[0].split() for line in Path(text).read_text().splitlines()]
        except OSError as error:
            raise InputError(
                f"the host file {text} cannot be read: {error.strerror}; check the path"
            ) from error
        hosts: Sequence[str] = [line[0].split(":")[0] for line in words if line]
    else:
        hosts = [word.strip() for word in text.split(",") if word.strip()]
    if not hosts or any(not re.fullmatch(r"[A-Za-z0-9._-]+", host) or host.startswith("-") for host in hosts):
        raise InputError(
            f"--hosts is {text!r}; give host names such as node1,node2, or a file with one per line"
        )
    return tuple(hosts)
