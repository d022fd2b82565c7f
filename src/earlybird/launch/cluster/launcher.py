"""Start a kernel's ranks on the nodes of a virtual cluster."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.launch import mpiexec, placement, shared_memory
from earlybird.launch.cluster import network
from earlybird.launch.cluster.node import TEMPORARY
from earlybird.launch.cluster.state import Cluster
from earlybird.launch.job import Job, refuse_conflicts_ahead, run_kernel
from earlybird.launch.launcher import Heard, Launched, Request
from earlybird.launch.mpiexec import Invocation, RemoteHosts
from earlybird.launch.process import Places
from earlybird.machine import hardware
from earlybird.machine.flavours import Flavour
from earlybird.toolchain.build import kernel_path

# Tells the kernels that hosts share this machine's cores, so that they count ranks per core over all of them.
ONE_MACHINE = "EARLYBIRD_ONE_MACHINE"
# In a user namespace every user is root, and Open MPI does not run as root without these.
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# The next cluster may have other links, and libearlybird would not notice; on a slow link a thorough
# measurement of message costs takes long.
_KEEP_NOTHING = {"EARLYBIRD_CACHE": "off"}


@dataclass(frozen=True)
class ClusterLauncher:
    """A launcher of ranks by mpiexec on the nodes of `cluster`, each with a core for every one of its
    `threads`.

    `link` is the network performance that was measured before this session, see `link.py`. Nodes that are
    `left_out` may have died.
    """

    mpi: Flavour
    cluster: Cluster
    link: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    name: str = "cluster"
    left_out: frozenset[str] = frozenset()

    @property
    def flavour(self) -> str:
        return self.mpi.label

    @property
    def network(self) -> str:
        return self.cluster.describe()

    def check(self, layout: Layout) -> None:
        if layout.num_nodes > len(self.cluster.nodes):
            raise InputError(
                f"the layout {layout.text} asks for {layout.num_nodes} nodes and the cluster "
                f"{self.cluster.name} has {len(self.cluster.nodes)}; give a smaller layout or start a larger "
                "cluster"
            )
        self._binding(layout)
        refuse_conflicts_ahead(self.mpi, self.invocation, layout)

    def shares_cores(self, layout: Layout) -> bool:
        cores = hardware.cores_by_socket()
        return placement.is_oversubscribed(layout, cores, self.threads, one_machine=True)

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        if request.threads not in (None, self.threads):
            return replace(self, threads=request.threads).launch(request, scratch, progress)
        self.cluster.require_whole(self.left_out)
        for path in (scratch, kernel_path(self.mpi, request.kernel)):
            _require_visible(path)
        invocation = self.invocation(request.layout, scratch)
        binding = self._binding(request.layout)
        extra = {"network": self.network, "link": self.link, "link_at_start": self.cluster.link}
        watch = partial(self.cluster.trouble, self.left_out)
        nodes = [_places(Path(f"/proc/{node.pid}/root")) for node in self.cluster.nodes]
        job = Job(self.name, self.mpi, binding.name, self.threads, watch, extra, one_clock=True, nodes=nodes)
        before = self.cluster.received_bytes()
        launched = run_kernel(job, invocation, request, scratch, progress)
        # Verification that messages took the network and not the memory of the one machine.
        after = self.cluster.received_bytes()
        launched.record["node_received_bytes"] = [
            None if first is None or last is None else last - first
            for first, last in zip(before, after, strict=True)
        ]
        return launched

    def invocation(self, layout: Layout, folder: Path) -> Invocation:
        """Return the arguments before a program that runs as the ranks of `layout`, and the variables to set.

        `folder` is for files that the ranks read.
        """
        made = mpiexec.invocation(
            self.mpi,
            layout.num_ranks,
            self._binding(layout),
            folder,
            oversubscribed=self.shares_cores(layout),
            remote=RemoteHosts(
                tuple(self.cluster.nodes[node].name for node in layout.node),
                str(self.cluster.agent),
                network.subnet(),
                network.BRIDGE,
                network.NODE_DEVICE,
            ),
            threads=self.threads,
        )
        preferred = made.preferred | _KEEP_NOTHING | (_AS_ROOT if self.cluster.user_namespace else {})
        arguments = (*self.cluster.head_arguments(), *made.before_program)
        return replace(made, before_program=arguments, env=made.env | {ONE_MACHINE: "1"}, preferred=preferred)

    def _binding(self, layout: Layout) -> placement.Binding:
        return placement.bind_virtual(layout, hardware.cores_by_socket(), self.threads)


def _places(root: Path) -> Places:
    return Places(root / "dev/shm", root / TEMPORARY.lstrip("/"), root / "proc")


def _require_visible(path: Path) -> None:
    """Raise InputError for a path that the nodes cannot see: each node has its own /dev/shm."""
    if path.resolve().is_relative_to(shared_memory.FOLDER):
        raise InputError(
            f"{path} is below {shared_memory.FOLDER}, of which every node of a cluster has its own; "
            "use a folder elsewhere"
        )
