"""Start a kernel's ranks with Slurm's srun."""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.launch import mpiexec, placement
from earlybird.launch.job import Job, run_kernel
from earlybird.launch.launcher import Heard, Launched, Request
from earlybird.launch.mpiexec import Invocation
from earlybird.launch.variables import refuse_conflicts
from earlybird.machine import hardware
from earlybird.machine.flavours import Flavour

# What srun reads of the allocation it is called in, which asked for the nodes and knows nothing of layouts:
# with a number of CPUs per task, for one, a step is confined to as many CPUs of Slurm's choice.
_MISLEADING = (
    "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXACT", "SLURM_HINT", "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_SOCKET", "SLURM_THREADS_PER_CORE",
)  # fmt: skip

# How long a Slurm controller may take to answer; srun itself would ask a dead one again and again.
_ANSWER_LIMIT_S = 30.0

# Each rank binds itself: srun's own options fill a socket before they begin the next, whatever the layout
# says, and its numbers of CPUs are the kernel's only where whole nodes are allocated. Sockets and cores are
# counted as `hardware.cores_by_socket` does, on the node itself. Few processes: thousands of ranks may start
# at once.
_BIND = """\
case $SLURM_PROCID in
{places}
*) echo "earlybird kernel: SLURM_PROCID is '$SLURM_PROCID', which is not a rank of this launch, so it cannot \
be bound; check that srun is Slurm's own" >&2; exit 2 ;;
esac
while read -r name list; do
  [ "$name" = Cpus_allowed_list: ] && break
done < /proc/self/status
cores= sockets=
for range in $(IFS=,; echo $list); do
  cpu=${{range%-*}}
  while [ "$cpu" -le "${{range#*-}}" ]; do
    topology=/sys/devices/system/cpu/cpu$cpu/topology
    read -r package < $topology/physical_package_id
    read -r core < $topology/core_id
    case " $cores" in *" $package/$core/"*) ;; *) cores="$cores$package/$core/$cpu " ;; esac
    case " $sockets" in *" $package "*) ;; *) sockets="$sockets$package " ;; esac
    cpu=$((cpu + 1))
  done
done
package=$(printf '%s\\n' $sockets | sort -n | sed -n "$((socket + 1))p")
if [ -z "$package" ]; then
  echo "earlybird kernel: the layout names socket $socket, which $(uname -n) has not" >&2
  exit 2
fi
own= count=0
for core in $cores; do
  case $core in "$package"/*) own="$own ${{core##*/}}" count=$((count + 1)) ;; esac
done
cpus= k=0
while [ $k -lt {threads} ]; do
  index=0
  for cpu in $own; do
    [ $index -eq $(((first + k) % count)) ] && cpus=$cpus,$cpu
    index=$((index + 1))
  done
  k=$((k + 1))
done
exec taskset --cpu-list "${{cpus#,}}" "$@"
"""


@dataclass(frozen=True)
class SrunLauncher:
    """Ranks by Slurm's srun, inside an allocation or asking for one; `threads` cores for each."""

    mpi: Flavour
    threads: int = 1
    name: str = "srun"

    @property
    def flavour(self) -> str:
        return self.mpi.label

    def check(self, layout: Layout) -> None:
        if shutil.which("srun") is None:
            raise InputError("srun is not on PATH; run this where Slurm is, or use --launcher local")
        _distribution(layout)
        allocated = os.environ.get("SLURM_NNODES")
        if allocated is not None and layout.num_nodes > int(allocated):
            raise InputError(
                f"the layout {layout.text} asks for {layout.num_nodes} nodes and this allocation has "
                f"{allocated}; ask sbatch or salloc for --nodes={layout.num_nodes}, or give a smaller layout"
            )
        _require_plugin(self.mpi.family, self._plugin())
        refuse_conflicts(self.mpi.settings, self._needed())

    def shares_cores(self, layout: Layout) -> bool:
        # As for hosts, nodes are taken to be like this one.
        return placement.is_oversubscribed(layout, hardware.cores_by_socket(), self.threads)

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        if request.threads not in (None, self.threads):
            return replace(self, threads=request.threads).launch(request, scratch, progress)
        layout = request.layout
        shared = self.shares_cores(layout)
        arguments = [
            *_without(_MISLEADING, os.environ),
            "srun",
            "-n",
            str(layout.num_ranks),
            "-N",
            str(layout.num_nodes),
            # Without it `block` fills a node before it begins the next.
            f"--ntasks-per-node={layout.num_ranks // layout.num_nodes}",
            f"--distribution={_distribution(layout)}",
            f"--mpi={self._plugin()}",
            "--cpu-bind=none",
            "--export=ALL",  # also where the allocation was asked for with another: ranks carry our variables
            "--kill-on-bad-exit=1",
            *(["--overcommit"] if shared else []),
            # Inside a step, such as `srun --pty bash`, another would wait for the first to end.
            "--overlap" if "SLURM_JOB_ID" in os.environ else "--exclusive",
            "/bin/sh",
            str(_bind_script(layout, self.threads, scratch)),
        ]
        preferred = mpiexec.yielding(self.mpi.family) if shared else {}
        invocation = Invocation(
            tuple(arguments), self._needed(), preferred=preferred | mpiexec.of_threads(self.threads)
        )
        job = Job(self.name, self.mpi, "core, shared by several ranks" if shared else "core", self.threads)
        launched = run_kernel(job, invocation, request, scratch, progress)
        return _as_queued(launched, request.stall_limit_s)

    def _needed(self) -> dict[str, str]:
        # It would bind once more.
        return {"I_MPI_PIN": "0"} if self.mpi.family == "intel" else {}

    def _plugin(self) -> str:
        return "pmix" if self.mpi.family == "openmpi" else "pmi2"


def _as_queued(launched: Launched, stall_limit_s: float) -> Launched:
    """`launched` with a corrected cause if its ranks never started: outside an allocation, they wait for
    one."""
    record = launched.record
    waited = "SLURM_JOB_ID" not in os.environ and not record["placement"]
    if launched.cause is None or launched.interrupted or not waited or record["duration_s"] < stall_limit_s:
        return launched
    cause = (
        f"its ranks had not started after {stall_limit_s:g} s, perhaps because Slurm's queue is long "
        "(squeue --me --start); give a longer --stall-limit, or run this inside an allocation (salloc)"
    )
    return replace(launched, record=record | {"cause": cause}, cause=cause)


def _without(names: tuple[str, ...], environment: Mapping[str, str]) -> list[str]:
    present = [name for name in names if name in environment]
    return ["env", *(argument for name in present for argument in ("-u", name))] if present else []


def _distribution(layout: Layout) -> str:
    """srun's distribution of the ranks over nodes; InputError if srun cannot place `layout`."""
    ranks = np.arange(layout.num_ranks)
    per_node = layout.num_ranks // layout.num_nodes
    if layout.num_ranks % layout.num_nodes == 0:
        if np.array_equal(layout.node, ranks // per_node):
            return "block"
        if np.array_equal(layout.node, ranks % layout.num_nodes):
            return "cyclic"
    raise InputError(
        f"srun cannot place the layout {layout.text}: give every node as many ranks, numbered node by node "
        "or dealt out in turn, as NODESxSOCKETSxRANKS mapped by core, socket or node does"
    )


def _bind_script(layout: Layout, threads: int, folder: Path) -> Path:
    taken: dict[tuple[int, int], int] = {}
    places = []
    for rank, where in enumerate(zip(layout.node.tolist(), layout.socket.tolist(), strict=True)):
        first = taken.get(where, 0)
        taken[where] = first + threads
        places.append(f"{rank}) socket={where[1]} first={first} ;;")
    path = folder / "bind.sh"
    path.write_text(_BIND.format(places="\n".join(places), threads=threads))
    return path


@functools.cache
def _require_plugin(family: str, plugin: str) -> None:
    """Raise InputError if this Slurm cannot load `plugin`, which connects the ranks.

    It is tested, because --mpi=list also lists plugins whose library is missing.
    """
    try:
        output = subprocess.run(
            ["srun", f"--mpi={plugin}", "--test-only", "-n", "1", "true"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_LIMIT_S,
        ).stderr
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"srun --test-only did not answer within {_ANSWER_LIMIT_S:g} s: Slurm's controller is down or "
            "overloaded (check with scontrol ping); try again when it answers, or use --launcher local"
        ) from error
    if not re.search(r"Invalid MPI type|^srun: error: MPI: ", output, re.MULTILINE):
        return
    name = {"openmpi": "Open MPI", "intel": "Intel MPI", "mpich": "MPICH"}[family]
    library = "PMIx, its plugin or the library libpmix" if plugin == "pmix" else plugin
    raise InputError(
        f"{name} under srun needs {library}, which this Slurm has not (srun --mpi=list); use the MPI's "
        'mpiexec inside the allocation: --hosts "$(scontrol show hostnames | paste -sd,)"'
    )
