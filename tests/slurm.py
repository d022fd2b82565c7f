"""A real Slurm of one's own: nodes that are namespaces here, ended with all that runs in it."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc", "scancel", "sinfo", "unshare")
NODES = ("n1", "n2")
# Follows the name that Slurm has for a node in the name that the node has itself.
DOMAIN = "-ib.site.example"
_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_UP_S = 90.0

# In a process namespace of its own, whose first process this script is: when that dies, the kernel kills
# daemons, steps and ranks alike. Each node has its own host name and shared memory, so that an MPI takes
# ranks of two nodes for what they are.
_DAEMONS = """\
cd {folder}
munged --foreground --force --key-file={folder}/key --socket={folder}/munge --pid-file={folder}/munged.pid \\
  --log-file={folder}/munged.log --seed-file={folder}/seed > munged.out 2>&1 &
while ! [ -S munge ]; do sleep 0.05; done
slurmctld -D > slurmctld.out 2>&1 &
for node in {nodes}; do
  unshare --uts --ipc --mount sh -c \\
    "hostname $node{domain} && mount -t tmpfs none /dev/shm && exec slurmd -D -N $node" \\
    > slurmd-$node.out 2>&1 &
done
wait
"""

_CONFIGURATION = """\
ClusterName=earlybird
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


# PMIx makes a folder for each job, of a name that nodes on one machine have in common.
_PMIX = "PMIxCliTmpDirBase=/dev/shm\n"


class Unavailable(Exception):
    """No Slurm can be started here, and why."""


@dataclass(frozen=True)
class Slurm:
    """A Slurm that is up. `environment` makes its commands find it."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *arguments: str, timeout: float = 120, **more) -> subprocess.CompletedProcess:
        """Run one of its commands to its end."""
        return subprocess.run(
            [*map(str, arguments)],
            env=dict(os.environ) | self.environment | more.pop("env", {}),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **more,
        )

    def jobs(self) -> list[str]:
        """Numbers of the jobs and steps that are not over."""
        both = self.run("squeue", "-h", "-o", "%i").stdout + self.run("squeue", "-h", "-s", "-o", "%i").stdout
        return both.split()

    def log(self) -> str:
        """What the daemons said last."""
        return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in self.folder.glob("*.out"))


def start(nodes: Sequence[str] = NODES, domain: str = "") -> tuple[Slurm, subprocess.Popen]:
    """Start one and wait until its nodes are idle; raises Unavailable where it cannot be.

    `domain` follows the name of a node in its host name. Whoever calls this ends the process with `stop`. A
    calling process that dies takes all of it along.
    """
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise Unavailable(f"{', '.join(missing)} not on PATH (Debian: slurm-wlm, munge)")
    if os.geteuid() != 0:
        raise Unavailable("a Slurm of one's own needs root: its daemons start others' jobs")
    folder = Path(tempfile.mkdtemp(prefix="earlybird-slurm-"))
    folder.chmod(0o755)
    (folder / "state").mkdir()
    for node in nodes:
        (folder / f"spool-{node}").mkdir()
    (folder / "key").touch(0o400)
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "slurm.conf").write_text(_configuration(folder, nodes))
    (folder / "mpi.conf").write_text(_PMIX)
    process = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "sh", "-c",
         _DAEMONS.format(folder=folder, nodes=" ".join(nodes), domain=domain)],
        env=dict(os.environ) | {"SLURM_CONF": str(folder / "slurm.conf")},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True, preexec_fn=_die_with_parent,
    )  # fmt: skip
    slurm = Slurm(folder)
    try:
        _wait_until_idle(slurm, process, len(nodes))
    except BaseException:
        stop(slurm, process)
        raise
    return slurm, process


@contextmanager
def running(nodes: Sequence[str] = NODES, domain: str = "") -> Iterator[Slurm]:
    """Keep one for the block; raises Unavailable, see `start`."""
    slurm, process = start(nodes, domain)
    try:
        yield slurm
    finally:
        stop(slurm, process)


def stop(slurm: Slurm, process: subprocess.Popen) -> None:
    """End every daemon, step and rank, and remove the folder."""
    process.kill()
    process.communicate()
    shutil.rmtree(slurm.folder, ignore_errors=True)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _configuration(folder: Path, nodes: Sequence[str]) -> str:
    detected = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, check=True).stdout.split()
    shape = " ".join(word for word in detected if word.split("=")[0] in _SHAPE)
    controller_port, *ports = _free_ports(1 + len(nodes))
    host = socket.gethostname().split(".")[0]
    lines = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {shape} State=UNKNOWN"
        for node, port in zip(nodes, ports, strict=True)
    )
    return _CONFIGURATION.format(folder=folder, host=host, controller_port=controller_port, nodes=lines)


_SHAPE = ("CPUs", "Boards", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _wait_until_idle(slurm: Slurm, process: subprocess.Popen, num_nodes: int) -> None:
    deadline = time.monotonic() + _UP_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            output = process.stderr.read().decode().strip()
            raise Unavailable(f"a process namespace of one's own is not permitted here: {output}")
        states = slurm.run("sinfo", "-h", "-N", "-o", "%T").stdout.split()
        if states == ["idle"] * num_nodes:
            return
        time.sleep(0.1)
    raise AssertionError(f"Slurm's nodes are not idle after {_UP_S:g} s\n{slurm.log()}")


if __name__ == "__main__":  # to look at one by hand: python tests/slurm.py, then Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with running() as started:
            print(f"export SLURM_CONF={started.folder}/slurm.conf", flush=True)
            signal.pause()
    except Unavailable as error:
        sys.exit(f"no Slurm can be started: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
