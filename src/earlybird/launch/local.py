"""Start a kernel's ranks with an MPI's own mpiexec, on this machine or on a list of hosts."""

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from earlybird.data.errors import InputError, cause_of
from earlybird.data.layout import Layout
from earlybird.data.shell_commands import command_text
from earlybird.launch import mpiexec, placement
from earlybird.launch.job import Job, refuse_conflicts_ahead, run_kernel
from earlybird.launch.launcher import Heard, Launched, Request
from earlybird.launch.mpiexec import Invocation, RemoteHosts
from earlybird.machine import hardware
from earlybird.machine.compilers import SITE_LAUNCHERS
from earlybird.machine.flavours import Flavour

# What every MPI takes for this machine, without reaching for it.
_OWN_NAMES = ("localhost", "127.0.0.1")
# Time limits after a failed launch for the answer of one host, and of all hosts.
_ANSWER_LIMIT_S, _REACH_LIMIT_S = 10.0, 30.0


@dataclass(frozen=True)
class MpiexecLauncher:
    """A launcher of ranks by mpiexec: on this machine, or rank by rank on the node of `hosts` that the layout
    names.

    `agent` is the ssh-like command that reaches the hosts, None for ssh; each rank gets a core for every one
    of its `threads`.
    """

    mpi: Flavour
    hosts: tuple[str, ...] = ()
    agent: str | None = None
    threads: int = 1

    @property
    def name(self) -> str:
        return "hosts" if self.hosts else "local"

    @property
    def flavour(self) -> str:
        return self.mpi.label

    def check(self, layout: Layout) -> None:
        # Not a command line: hydra takes the path of one program.
        if self.agent is not None and shutil.which(self.agent) is None:
            raise InputError(
                f"--agent is {self.agent!r}, which is not a program on PATH; give the name or path of one, "
                "without options: what needs some goes into a script of its own"
            )
        if self.mpi.mpiexec.name in SITE_LAUNCHERS:
            raise InputError(
                f"{self.mpi.name} has no mpiexec here: its programs are started by {self.mpi.mpiexec}, which "
                "takes other arguments; give --launcher srun inside a Slurm job, or an MPI with its mpiexec"
            )
        self._binding(layout)
        refuse_conflicts_ahead(self.mpi, self.invocation, layout)

    def shares_cores(self, layout: Layout) -> bool:
        return placement.is_oversubscribed(layout, hardware.cores_by_socket(), self.threads)

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        if request.threads not in (None, self.threads):
            return replace(self, threads=request.threads).launch(request, scratch, progress)
        layout = request.layout
        invocation = self.invocation(layout, scratch)
        binding = self._binding(layout).name
        job = Job(self.name, self.mpi, binding, self.threads, is_one_machine=all(map(_is_own, self.hosts)))
        launched = run_kernel(job, invocation, request, scratch, progress)
        if launched.cause is None or launched.interrupted or launched.record["placement"] or not self.hosts:
            return launched
        used = dict.fromkeys(self.hosts[node] for node in layout.node)
        cause = self._unreachable(tuple(used)) or launched.cause
        return replace(launched, record=launched.record | {"cause": cause}, cause=cause)

    def invocation(self, layout: Layout, folder: Path) -> Invocation:
        """Return the arguments before a program that runs as the ranks of `layout`, and the variables to set.

        `folder` is for files that the ranks read.
        """
        return mpiexec.invocation(
            self.mpi,
            layout.num_ranks,
            self._binding(layout),
            folder,
            oversubscribed=self.shares_cores(layout),
            remote=RemoteHosts(tuple(self.hosts[node] for node in layout.node), self.agent)
            if self.hosts
            else None,
            threads=self.threads,
        )

    def _unreachable(self, hosts: tuple[str, ...]) -> str | None:
        """Return a sentence naming the first of `hosts` that cannot be reached; None if all can, or if Slurm
        reaches them."""
        if self.agent is None and "SLURM_JOB_ID" in os.environ:
            return None
        agent = [self.agent] if self.agent else ["ssh", "-o", "BatchMode=yes"]
        give_up_s = time.monotonic() + _REACH_LIMIT_S
        for host in hosts:
            if _is_own(host) or time.monotonic() > give_up_s:
                continue
            try:
                tried = subprocess.run(
                    [*agent, host, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                    errors="replace", timeout=_ANSWER_LIMIT_S,
                )  # fmt: skip
            except (OSError, subprocess.TimeoutExpired) as error:
                why = cause_of(error) if isinstance(error, OSError) else f"no answer in {_ANSWER_LIMIT_S:g} s"
            else:
                if tried.returncode == 0:
                    continue
                why = (tried.stderr.strip().splitlines() or [f"status {tried.returncode}"])[-1].strip()
            return (
                f"the host {host} cannot be reached by {agent[0]} ({why}); check that "
                f"`{command_text([agent[0], host, 'true'])}` works and asks for no password"
            )
        return None

    def _binding(self, layout: Layout) -> placement.Binding:
        if not self.hosts:
            return placement.bind_local(layout, hardware.cores_by_socket(), self.threads)
        if layout.num_nodes > len(self.hosts):
            raise InputError(
                f"the layout {layout.text} asks for {layout.num_nodes} nodes and --hosts has "
                f"{len(self.hosts)}; give as many hosts as the layout has nodes"
            )
        # The cores of other hosts are unknown: the MPI binds core by core, and the placement is verified.
        return placement.Binding("core, by the MPI", None)


def _is_own(host: str) -> bool:
    return host in _OWN_NAMES or host == socket.gethostname()
