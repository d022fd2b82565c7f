"""State of a cluster: its folder, its file, its keeper, and the process that measures on it."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from earlybird.data import json_text, locks
from earlybird.data.errors import InputError, WorkError
from earlybird.data.shell_commands import command_text
from earlybird.data.units import format_bytes
from earlybird.launch.cluster import network
from earlybird.machine import private_folder
from earlybird.machine.namespaces import Mode
from earlybird.machine.private_folder import PrivateFolder

SCHEMA = "earlybird.cluster/1"
# In the folder of a cluster: what it is, the process that measures on it, how MPI reaches its nodes. In the
# folder of all: their lock.
_FILE, _JOB, AGENT, _LOCK = "cluster.json", "job", "agent", ".lock"
NODE_NAMESPACES = ("net", "uts", "ipc", "pid", "mount")
_SENT_BYTES = 8  # a column of /proc/net/dev: what the bridge's end of a link has sent, the node has received
# What `Cluster.describe` says. Without TCP's settings, nodes used those of the machine.
LINKS = re.compile(r"virtual links of (\S+) Mbit/s each way(?:, TCP .+ with buffers of (.+) and .+)?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Process:
    """A process of the machine; its start time distinguishes it from a later process with the same id."""

    pid: int
    began_ticks: int

    @classmethod
    def of(cls, pid: int) -> "Process":
        return cls(pid, int(_stat(pid)[_BEGAN]))

    def runs(self) -> bool:
        """Return whether the process exists and is not about to end: the first process of a node takes a
        second to end."""
        stat = _stat(self.pid)
        return not self._ended(stat) and not int(stat[_FLAGS]) & _EXITING

    def ended(self) -> bool:
        """Return whether the process is a zombie."""
        return self._ended(_stat(self.pid))

    def _ended(self, stat: list[str]) -> bool:
        return not stat or stat[_STATE] == "Z" or int(stat[_BEGAN]) != self.began_ticks


# Positions in what follows the name in /proc/PID/stat, and the flag of a process that is ending (PF_EXITING).
_STATE, _FLAGS, _BEGAN = 0, 6, 19
_EXITING = 0x4


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@dataclass(frozen=True)
class Node:
    """A node and its first process, with which the node ends."""

    name: str
    address: str
    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid


@dataclass(frozen=True)
class Cluster:
    """A cluster that was started. `link` is the measurement of its network at that time, see `link.py`."""

    name: str
    rate_bytes_per_s: float
    send_buffer_bytes: int
    keeper: Process
    user_namespace: bool
    nodes: tuple[Node, ...]
    link: dict[str, Any] = field(default_factory=dict)

    @property
    def mode(self) -> Mode:
        return Mode(self.user_namespace)

    @property
    def agent(self) -> Path:
        """The ssh-like command that runs a command on a node; raises InputError if it may be another
        user's."""
        with opened(self.name) as folder:
            os.close(folder.open(AGENT, os.O_RDONLY))
            return folder.path / AGENT

    def head_arguments(self) -> list[str]:
        """Return the arguments before a command that uses the cluster's network, such as mpiexec."""
        # Entering a user namespace clears what ties a process to its parent: tie it again.
        return [*self.mode.enter(self.keeper.pid, "net"), "setpriv", "--pdeathsig", "TERM", "--"]

    def node_arguments(self, node: Node) -> list[str]:
        """Return the arguments before a command that runs on `node` and ends with the process that started
        it."""
        # nsenter stays outside the node and its child would outlive it.
        return [*self.mode.enter(node.pid, *NODE_NAMESPACES), "setpriv", "--pdeathsig", "KILL", "--"]

    def require_whole(self, left_out: Collection[str] = ()) -> None:
        """Raise WorkError if a part of the cluster has died, other than the nodes that are left out."""
        if (cause := self.trouble(left_out)) is not None:
            raise WorkError(cause)

    def trouble(self, left_out: Collection[str] = ()) -> str | None:
        """Return a sentence on which part of the cluster has died and what to do; None while all of it
        exists, except for the nodes that are left out."""
        if not self.keeper.runs():
            return _died(self.name)
        devices = self._network_devices()
        ports = [network.port_name(k) for k, node in enumerate(self.nodes) if node.name not in left_out]
        wanted = [network.BRIDGE, *ports]
        lost = [name for name in self.lost_nodes() if name not in left_out]
        lost = lost or [name for name in wanted if name not in devices]
        if not lost:
            return None
        return (
            f"{lost[0]} of the cluster {self.name} no longer exists; end the cluster with "
            f"`earlybird cluster down --name {self.name}` and start it again"
        )

    def lost_nodes(self) -> list[str]:
        """Return the names of the nodes that have died."""
        return [node.name for node in self.nodes if not node.process.runs()]

    def received_bytes(self) -> list[int | None]:
        """Return the bytes that each node has received over its link since the cluster started; None if the
        link no longer exists."""
        devices = self._network_devices()
        counters = [devices.get(network.port_name(k)) for k in range(len(self.nodes))]
        return [counter and counter[_SENT_BYTES] for counter in counters]

    def describe(self) -> str:
        """Return a description of the network, identical for identical clusters."""
        return (
            f"virtual links of {8 * self.rate_bytes_per_s / 1e6:.10g} Mbit/s each way, TCP "
            f"{network.CONGESTION_CONTROL} with buffers of {format_bytes(self.send_buffer_bytes)} and "
            f"{format_bytes(network.RECEIVE_BUFFER_BYTES)}"
        )

    def _network_devices(self) -> dict[str, list[int]]:
        """Return the counters of every device at the cluster's head, as /proc/net/dev lists them."""
        try:
            lines = Path(f"/proc/{self.keeper.pid}/net/dev").read_text().splitlines()[2:]
        except OSError:
            return {}
        pairs = (line.split(":", 1) for line in lines)
        return {name.strip(): [int(counter) for counter in counters.split()] for name, counters in pairs}

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the cluster's name is {name!r}; give 1 to 32 letters, digits, - or _, beginning with a letter "
            "or digit"
        )


def folder_of(name: str) -> Path:
    """Return the folder of a cluster, for messages and programs; its content is accessed by `opened`."""
    check_name(name)
    return _folder_of_all() / name


@contextlib.contextmanager
def opened(name: str) -> Iterator[PrivateFolder]:
    """Yield the folder of the cluster `name`, open for the block; raise WorkError if it no longer exists."""
    with contextlib.ExitStack() as stack:
        try:
            clusters = stack.enter_context(private_folder.opened(_folder_of_all()))
            folder = stack.enter_context(clusters.folder(name))
        except FileNotFoundError as error:
            raise WorkError(_died(name)) from error
        yield folder


def _died(name: str) -> str:
    return f"the cluster {name} has died; start it again with `earlybird cluster up`"


def find(name: str) -> Cluster:
    """Return the running cluster `name`, or the only cluster if `name` is empty; raise InputError, naming the
    running clusters, if there is none."""
    running = {cluster.name: cluster for cluster in all_running()}
    if not name and len(running) == 1:
        return next(iter(running.values()))
    if name in running:
        return running[name]
    if not running:
        what = f"no cluster {name} is running" if name else "no cluster is running"
        raise InputError(f"{what}; start one with `earlybird cluster up --nodes 4 --rate 200mbit`")
    what = f"no cluster {name} is running" if name else f"{len(running)} clusters are running"
    raise InputError(
        f"{what}; name one that is, {', '.join(running)}, or start one with `earlybird cluster up`"
    )


def all_running() -> list[Cluster]:
    """Return every running cluster of this user, by name; remove what a crash or a reboot left of others."""
    running = []
    with _registry() as registry:
        for name in filter(_NAME.fullmatch, registry.names()):
            if not _is_locked(registry, name):
                registry.remove(name)
                continue
            with registry.folder(name) as folder:
                if folder.exists(_FILE):  # there is none while it is being built
                    running.append(_load(folder))
    return running


def load(name: str) -> Cluster:
    with opened(name) as folder:
        return _load(folder)


def save(cluster: Cluster) -> None:
    with opened(cluster.name) as folder:
        folder.write_text(_FILE, json.dumps(cluster.to_json(), indent=1, allow_nan=False) + "\n")


def claim(name: str) -> int:
    """Make the folder of a new cluster and return its lock, held: the cluster lives as long as some process
    holds it.

    Raises InputError if a cluster of this name is running.
    """
    check_name(name)
    with _registry() as registry:
        if _is_locked(registry, name):
            raise InputError(
                f"a cluster {name} is running already; choose another --name or end it with "
                f"`earlybird cluster down --name {name}`"
            )
        registry.remove(name)
        registry.make_folder(name)
        with registry.folder(name) as folder:
            # The folder itself: what cleans /tmp of old files leaves locked folders alone.
            lock = os.dup(folder.descriptor)
        locks.take(lock, waits=True)
    return lock


# By their clusters the identities of the job files of these, since a cluster may come again under its name.
_jobs_of_this_process: dict[str, int] = {}


def begin_job(cluster: Cluster) -> None:
    """Keep other measurements off `cluster` until this process ends, by a lock that the kernel releases.

    A process that holds it may call this again. Raises InputError, naming the other process, if one already
    measures on it.
    """
    with _registry(), opened(cluster.name) as folder:
        if (other := _job_in(folder)) is not None:
            if _identity_of_job(folder) == _jobs_of_this_process.get(cluster.name):
                return
            raise InputError(
                f"{other} is measuring on the cluster {cluster.name}, and each would disturb the other; wait "
                "for it or end it, or start another cluster with `earlybird cluster up --name NAME`"
            )
        # Never closed here, and programs started from here do not inherit it.
        lock = folder.open(_JOB, os.O_RDWR | os.O_CREAT)
        locks.take(lock, waits=True)
        os.ftruncate(lock, 0)
        os.write(
            lock,
            f"process {os.getpid()} ({command_text(['earlybird', *sys.argv[1:]])})".encode(errors="replace"),
        )
        _jobs_of_this_process[cluster.name] = _identity_of_job(folder)


def job_on(cluster: Cluster) -> str | None:
    """Return a description of the process that measures on `cluster`, None if there is none."""
    with _registry(), opened(cluster.name) as folder:
        return _job_in(folder)


def _identity_of_job(folder: PrivateFolder) -> int:
    return os.stat(_JOB, dir_fd=folder.descriptor, follow_symlinks=False).st_ino


def _job_in(folder: PrivateFolder) -> str | None:
    return folder.read_text(_JOB) if _is_locked(folder, _JOB) else None


def _load(folder: PrivateFolder) -> Cluster:
    try:
        return _cluster_of(json_text.parse_json(folder.read_text(_FILE)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{folder.path / _FILE} is not the state of a cluster ({type(error).__name__}); remove "
            f"{folder.path}"
        ) from error


def _cluster_of(value: dict[str, Any]) -> Cluster:
    if value["schema"] != SCHEMA:
        raise InputError(
            f"the cluster {value['name']} was started by another version of earlybird, {value['schema']}; "
            f"end it with that version, or process {value['keeper']['pid']}"
        )
    return Cluster(
        name=value["name"],
        rate_bytes_per_s=value["rate_bytes_per_s"],
        send_buffer_bytes=value.get("send_buffer_bytes", network.SEND_BUFFER_BYTES),  # not in earlier files
        keeper=Process(**value["keeper"]),
        user_namespace=value["user_namespace"],
        nodes=tuple(
            Node(node["name"], node["address"], Process(**node["process"])) for node in value["nodes"]
        ),
        link=value["link"],
    )


def _is_locked(folder: PrivateFolder, name: str) -> bool:
    """Return whether some process holds the lock of a cluster, by its name in the folder of all, or of a
    file."""
    try:
        lock = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.descriptor)
    except OSError:
        return False
    try:
        return locks.is_taken(lock)
    finally:
        os.close(lock)


@contextlib.contextmanager
def _registry() -> Iterator[PrivateFolder]:
    """Yield the folder of all clusters, locked against concurrent changes; remove it if it is empty."""
    path, folder = _folder_of_all(), None
    with contextlib.ExitStack() as held:
        while folder is None:
            with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as attempt:
                opened = attempt.enter_context(private_folder.opened(path, make=True))
                # Whoever had the lock before may have removed the folder, in which no file can be made then.
                attempt.enter_context(
                    locks.held(partial(opened.open, _LOCK, os.O_RDWR | os.O_CREAT), waits=True)
                )
                folder = opened
                held.push(attempt.pop_all())
        yield folder
        if folder.names() == [_LOCK]:
            os.unlink(_LOCK, dir_fd=folder.descriptor)
            private_folder.remove_if_empty(path)


def _folder_of_all() -> Path:
    """Return the folder of this user's clusters, independent of the environment; it may not exist.

    It is neither the user's runtime folder, which ends with the last login, nor the home, which other
    machines share.
    """
    return Path(f"/tmp/earlybird-clusters-{_real_user()}")


def _real_user() -> int:
    """Return the id of this user on the machine, also for root of a user namespace."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= os.geteuid() < inside + count:
            return outside + os.geteuid() - inside
    return os.geteuid()
