"""Start a kernel's ranks with Slurm's srun."""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.kernels import CHECK
from earlybird.data.layout import Layout
from earlybird.launch import mpiexec, placement
from earlybird.launch.job import Job, run_kernel
from earlybird.launch.launcher import Heard, Launched, Request
from earlybird.launch.mpiexec import Invocation
from earlybird.launch.srun_arguments import NO_ARGUMENTS, SrunArguments
from earlybird.launch.variables import refuse_conflicts
from earlybird.machine import hardware
from earlybird.machine.flavours import Flavour
from earlybird.machine.programs import is_cray_mpich, loaded_libraries
from earlybird.toolchain.build import kernel_path

# Variables by which srun would place the ranks otherwise, or send their output elsewhere, where no argument
# of a launch replaces them. Those of an allocation are of who asked for its nodes, and know nothing of
# layouts: with a number of CPUs per task, for one, a step is confined to as many CPUs of Slurm's choice.
_MISLEADING = (
    "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_GPU", "SLURM_EXACT", "SLURM_EXCLUSIVE",
    "SLURM_GPUS_PER_TASK", "SLURM_HINT", "SLURM_HOSTFILE", "SLURM_LABELIO", "SLURM_MEM_BIND",
    "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_TRES",
    "SLURM_OVERCOMMIT", "SLURM_OVERLAP", "SLURM_REMOTE_CWD", "SLURM_STDERRMODE", "SLURM_STDINMODE",
    "SLURM_STDOUTMODE", "SLURM_THREADS_PER_CORE", "SLURM_TRES_PER_TASK", "SLURM_WORKING_DIR",
)  # fmt: skip

# Names for srun's --mpi.
PMIX, PMI2 = "pmix", "pmi2"
# Names the variable in which a rank finds the name of its node.
NODE_NAME_IN = "EARLYBIRD_NODE_NAME_IN"

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
    """A launcher of ranks by Slurm's srun, inside an allocation or requesting one; with `threads` cores for
    each rank.

    `nodelist` : the nodes to use; empty if Slurm chooses. `srun` : further arguments of the user.
    """

    mpi: Flavour
    threads: int = 1
    name: str = "srun"
    nodelist: tuple[str, ...] = ()
    srun: SrunArguments = NO_ARGUMENTS

    @property
    def flavour(self) -> str:
        return self.mpi.label

    def check(self, layout: Layout) -> None:
        if shutil.which("srun") is None:
            raise InputError("srun is not on PATH; run this where Slurm is, or use --launcher local")
        _distribution(layout)
        allocated = num_allocated_nodes(self.srun.component)
        if allocated is not None and layout.num_nodes > allocated:
            of_job = "component of a heterogeneous job" if "SLURM_HET_SIZE" in os.environ else "allocation"
            raise InputError(
                f"the layout {layout.text} asks for {layout.num_nodes} nodes and this {of_job} has "
                f"{allocated}; ask sbatch or salloc for --nodes={layout.num_nodes}, or give a smaller layout"
            )
        if self._plugin() is None:
            raise InputError(self._without_plugin())
        refuse_conflicts(self.mpi.settings, self._needed())

    def shares_cores(self, layout: Layout) -> bool:
        # As for hosts, nodes are taken to be like this one.
        return placement.is_oversubscribed(layout, hardware.cores_by_socket(), self.threads)

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        if request.threads not in (None, self.threads):
            return replace(self, threads=request.threads).launch(request, scratch, progress)
        layout = request.layout
        shared = self.shares_cores(layout)
        plugin = self._plugin() or self._plugins()[0]
        arguments = [
            *_without(_MISLEADING, os.environ),
            "srun",
            *self.srun.arguments,
            "-n",
            str(layout.num_ranks),
            "-N",
            str(layout.num_nodes),
            *([f"--nodelist={','.join(self.nodelist)}"] if self.nodelist else []),
            # Without it `block` fills a node before it begins the next.
            f"--ntasks-per-node={layout.num_ranks // layout.num_nodes}",
            f"--distribution={_distribution(layout)}",
            f"--mpi={plugin}",
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
        binding = "core, shared by several ranks" if shared else "core"
        extra = {"srun": self.srun.text} if self.srun.text else {}
        job = Job(self.name, self.mpi, binding, self.threads, extra=extra, is_one_machine=False)
        launched = run_kernel(job, invocation, request, scratch, progress)
        return _as_queued(launched, request.stall_limit_s)

    def _needed(self) -> dict[str, str]:
        # Slurm may know a node by another name than the node has itself, and takes no other.
        needed = {NODE_NAME_IN: "SLURMD_NODENAME"}
        # It would bind once more.
        return needed | ({"I_MPI_PIN": "0"} if self.mpi.family == "intel" else {})

    def _plugins(self) -> tuple[str, ...]:
        """Return the plugins that can connect the ranks, the preferred one first."""
        return (self.srun.mpi,) if self.srun.mpi else _spoken_by(self.mpi)

    def _plugin(self) -> str | None:
        """Return the first plugin of `_plugins` that this Slurm loads; None if it loads none."""
        return _first_loaded(self._plugins(), os.environ.get("SLURM_MPI_TYPE"))

    def _without_plugin(self) -> str:
        if self.srun.mpi:
            return (
                f"--srun has --mpi={self.srun.mpi}, which this Slurm cannot load; `srun --mpi=list` prints "
                "what it has, and without --mpi Earlybird chooses"
            )
        name = {"openmpi": "Open MPI", "intel": "Intel MPI", "mpich": "MPICH"}[self.mpi.family]
        plugins = self._plugins()
        needed = "PMIx, its plugin or the library libpmix" if plugins[0] == PMIX else " or ".join(plugins)
        return (
            f"{name} under srun needs {needed}, which this Slurm has not (srun --mpi=list); use the MPI's "
            'mpiexec inside the allocation: --hosts "$(scontrol show hostnames | paste -sd,)"'
        )


def num_allocated_nodes(component: int = 0) -> int | None:
    """Return the number of nodes of this job, or of the `component` of a heterogeneous job; None outside of a
    job.

    Raises InputError if the job has no such component, and for a text that is not a number.
    """
    size = _number_in("SLURM_HET_SIZE")
    if component >= (size or 1):
        components = f"components 0 to {size - 1}" if size else "no components"
        raise InputError(f"--srun has --het-group={component}, but this job has {components}")
    # Within a step, SLURM_NNODES are the nodes of the step.
    names = (f"SLURM_JOB_NUM_NODES_HET_GROUP_{component}", "SLURM_JOB_NUM_NODES", "SLURM_NNODES")
    return next((number for name in names if (number := _number_in(name)) is not None), None)


def _number_in(variable: str) -> int | None:
    text = os.environ.get(variable)
    if text is not None and not re.fullmatch(r"[0-9]{1,9}", text):
        raise InputError(f"the variable {variable} is {text!r}, not a number as Slurm sets it; unset it")
    return None if text is None else int(text)


def allocated_hosts(component: int = 0) -> tuple[str, ...]:
    """Return the names of the nodes of this allocation, or of a component of it; empty outside of an
    allocation, or if Slurm does not answer."""
    names = (f"SLURM_JOB_NODELIST_HET_GROUP_{component}", "SLURM_JOB_NODELIST")
    nodes = next((os.environ[name] for name in names if name in os.environ), None)
    return tuple(_scontrol("show", "hostnames", nodes).split()) if nodes else ()


def node_expression(hosts: Sequence[str]) -> str:
    """Return `n[1-3,7]`, as Slurm writes hosts together; a list with commas if Slurm does not answer."""
    return _scontrol("show", "hostlistsorted", ",".join(hosts)).strip() or ",".join(hosts)


def _scontrol(*arguments: str) -> str:
    try:
        shown = subprocess.run(
            ["scontrol", *arguments], capture_output=True, text=True, timeout=_ANSWER_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return shown.stdout if shown.returncode == 0 else ""


def _as_queued(launched: Launched, stall_limit_s: float) -> Launched:
    """Return `launched` with a corrected cause if its ranks never started: outside an allocation, they wait
    for one."""
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
    """Return srun's distribution of the ranks over nodes; raise InputError if srun cannot place `layout`."""
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


def _spoken_by(mpi: Flavour) -> tuple[str, ...]:
    """Return the Slurm plugins that can connect the ranks of an MPI of this family with these
    libraries."""
    libraries = _libraries(mpi)
    pmix = any(name.startswith("libpmix.so") for name in libraries)
    if mpi.family == "openmpi":
        # Open MPI 5 has no other; earlier ones may be built with Slurm's libraries.
        pmi = any(name.startswith(("libpmi.so", "libpmi2.so")) for name in libraries)
        return (PMIX, PMI2) if pmi else (PMIX,)
    if mpi.family == "intel":
        return (PMI2, PMIX)  # it loads libpmix.so itself
    if any(map(is_cray_mpich, libraries)):
        return ("cray_shasta", PMI2)
    return (PMIX, PMI2) if pmix else (PMI2,)


def _libraries(mpi: Flavour) -> list[str]:
    return loaded_libraries(kernel_path(mpi, CHECK.name), mpi.environment())


@functools.cache
def _first_loaded(plugins: tuple[str, ...], preferred: str | None) -> str | None:
    """Return the first of `plugins` that this Slurm loads, with that of the site or the user (`preferred`)
    before the others; for PMIx also a version of it, as `pmix_v4`."""
    offered = _offered()
    versions = sorted((name for name in offered if name.startswith(f"{PMIX}_")), reverse=True)
    every = [name for plugin in plugins for name in (plugin, *(versions if plugin == PMIX else ()))]
    first = [preferred] if preferred in every else []
    candidates = dict.fromkeys([*first, *every])
    return next((name for name in candidates if (not offered or name in offered) and _loads(name)), None)


def _offered() -> set[str]:
    """Return the plugins that `srun --mpi=list` prints; empty if it prints none, as without Slurm."""
    printed = _answer_of_srun("--mpi=list")
    # Up to Slurm 21.08, every line on stderr begins with `srun:`.
    lines = [line.removeprefix("srun:").strip() for line in printed.splitlines()]
    versions = [
        part.strip() for line in lines if "available:" in line for part in line.split(":")[-1].split(",")
    ]
    return {line for line in [*lines, *versions] if re.fullmatch(r"[A-Za-z0-9_/]+", line)}


def _loads(plugin: str) -> bool:
    """Return whether this Slurm can load `plugin`: it also lists plugins that lack a library."""
    said = _answer_of_srun(f"--mpi={plugin}", "--test-only", "-n", "1", "true")
    return not re.search(r"Invalid MPI type|^srun: error: MPI: ", said, re.MULTILINE)


def _answer_of_srun(*arguments: str) -> str:
    try:
        answer = subprocess.run(
            [*_without(_MISLEADING, os.environ), "srun", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_ANSWER_LIMIT_S,
        )
    except OSError:
        return ""
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"srun {' '.join(arguments[:2])} did not answer within {_ANSWER_LIMIT_S:g} s: Slurm's controller "
            "is down or overloaded (check with scontrol ping); try again when it answers, or use --launcher "
            "local"
        ) from error
    return answer.stdout + answer.stderr
