"""Faults of nodes of a virtual cluster, planted as they occur on real ones, for a check to find."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from earlybird.launch.cluster import network
from earlybird.launch.cluster.state import Cluster

CPU_SHARE = 0.3
CLOCK_OFFSET_S = 2.0

# In a node: a new limit of what it sends, for all nodes or for those with the address `to`.
_SLOW_NODE = """
from pyroute2 import IPRoute
with IPRoute() as route:
    index = route.link_lookup(ifname={device!r})[0]
    route.tc("change", "tbf", index=index, handle="1:", rate="{rate}bit", burst={burst}, limit=1 << 20)
"""
_SLOW_LINK = """
import socket
from pyroute2 import IPRoute
with IPRoute() as route:
    index = route.link_lookup(ifname={device!r})[0]
    route.tc("del", index=index, handle="1:", parent=0xffffffff)
    route.tc("add", "htb", index=index, handle="1:", default=0x10)
    # Together they send at the full rate: a node with twice the routes would be faster than others.
    for number, parent, rate, ceil in (
        (0x10001, 0x10000, {full}, {full}), (0x10010, 0x10001, {full} - {rate}, {full}),
        (0x10020, 0x10001, {rate}, {rate}),
    ):
        route.tc("add-class", "htb", index=index, handle=number, parent=parent, rate=f"{{rate}}bit",
                 ceil=f"{{ceil}}bit", burst={burst}, cburst={burst})
    key = "0x" + socket.inet_aton({to!r}).hex() + "/0xffffffff+16"
    route.tc("add-filter", "u32", index=index, parent="1:", protocol=0x0800, prio=1, target=0x10020,
             keys=[key])
"""
# In a node: a program of the kernel that drops a share of the frames that arrive. Its instructions:
# r0 = get_prandom_u32(); r1 = r0; r0 = SHOT; if r1 < share skip one; r0 = OK; exit
_LOSS = """
import ctypes, struct
from pyroute2 import IPRoute
def instruction(code, dst=0, src=0, off=0, imm=0):
    return struct.pack("<BBhI", code, src << 4 | dst, off, imm)
program = b"".join([
    instruction(0x85, imm=7), instruction(0xbc, dst=1), instruction(0xb7, dst=0, imm=2),
    instruction(0xa5, dst=1, off=1, imm={threshold}), instruction(0xb7, dst=0, imm=0), instruction(0x95),
])
code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
asked = struct.pack("<IIQQIIQII", 3, len(program) // 8, ctypes.addressof(code), ctypes.addressof(licence),
                    0, 0, 0, 0, 0) + bytes(80)
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(321, 5, asked, len(asked))
if fd < 0:
    raise SystemExit(f"bpf: errno {{ctypes.get_errno()}}")
with IPRoute() as route:
    index = route.link_lookup(ifname={device!r})[0]
    route.tc("add", "clsact", index=index)
    route.tc("add-filter", "bpf", index=index, parent=0xfffffff2, prio=1, protocol=3, fd=fd, name="loss",
             classid=1, flags=1)
"""
# Before the agent of a node: process_vm_readv and process_vm_writev fail with EPERM, as in some containers.
_NO_SINGLE_COPY = """
import ctypes, os, struct, sys
rules = [(0x20, 0, 0, 0), (0x15, 1, 0, 310), (0x15, 0, 1, 311)]
rules += [(0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *rule) for rule in rules))
filter = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, filter, 0, 0):
    raise SystemExit("seccomp is not allowed")
os.execv(sys.argv[1], sys.argv[1:])
"""
_OTHER_VERSION = """
#include <string.h>
int MPI_Get_library_version(char *text, int *length) {
  strcpy(text, "MPICH Version:      4.1.2");
  *length = (int)strlen(text);
  return 0;
}
"""


@dataclass(frozen=True)
class Fault:
    """A fault of node1, or of the link from node1 to node2.

    `hosts` and `measure` of the finding that names it; `plant(cluster, folder)` plants it, and `before` is a
    line of a shell that runs on node1 before whatever MPI starts there; `environment` is for all nodes.
    """

    name: str
    hosts: tuple[str, ...]
    measure: str
    plant: Callable[[Cluster, Path], None] | None = None
    before: Callable[[Path], str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def _on_node(cluster: Cluster, node: int, *command: str) -> None:
    ran = subprocess.run(
        [*cluster.node_arguments(cluster.nodes[node]), *command], capture_output=True, text=True
    )
    if ran.returncode:
        raise OSError(f"{command[0]} on node{node}: {(ran.stderr.strip() or ran.stdout).splitlines()[-1]}")


def _python_on_node(cluster: Cluster, node: int, script: str, **values: object) -> None:
    _on_node(cluster, node, sys.executable, "-c", script.format(device=network.NODE_DEVICE, **values))


def _bits(cluster: Cluster) -> tuple[int, int]:
    """The rate of a link in bit/s, and the burst of wires.py in bytes."""
    rate = cluster.rate_bytes_per_s
    return round(8 * rate), max(2 * network.FRAME_BYTES, round(rate * 200e-6))


def slow_node(cluster: Cluster, node: int) -> None:
    """Let a node send at half the rate."""
    bits, burst = _bits(cluster)
    _python_on_node(cluster, node, _SLOW_NODE, rate=bits // 2, burst=burst)


def slow_link(cluster: Cluster, folder: Path) -> None:
    """node1 sends to node2 at half the rate."""
    bits, burst = _bits(cluster)
    to = cluster.nodes[2].address
    _python_on_node(cluster, 1, _SLOW_LINK, full=bits, rate=bits // 2, burst=burst, to=to)


def lossy_node(cluster: Cluster, folder: Path) -> None:
    """1 % of the frames that arrive at node1 are lost."""
    _python_on_node(cluster, 1, _LOSS, threshold=2**32 // 100)


def small_shared_memory(cluster: Cluster, folder: Path) -> None:
    """/dev/shm of node1 has 64 MiB, as in a container without --shm-size."""
    _on_node(cluster, 1, "mount", "-o", "remount,size=64m", "/dev/shm")


def _control_group() -> tuple[Path, bool]:
    """That of the limit, and whether it is of version 2."""
    root = Path("/sys/fs/cgroup")
    unified = (root / "cgroup.controllers").exists()
    return (root if unified else root / "cpu") / f"earlybird-{os.getpid()}", unified


def cpu_limit(folder: Path, share: float = CPU_SHARE) -> str:
    """Whatever starts on node1 has this share of a core."""
    group, unified = _control_group()
    group.mkdir(exist_ok=True)
    period_us = max(4_000, round(1_000 / share))  # the least quota is 1 ms
    if unified:
        (group / "cpu.max").write_text(f"{round(share * period_us)} {period_us}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(period_us))
        (group / "cpu.cfs_quota_us").write_text(str(round(share * period_us)))
    return f"echo $$ > {group}/cgroup.procs"


def _no_single_copy(folder: Path) -> str:
    script = folder / "seccomp.py"
    script.write_text(_NO_SINGLE_COPY)
    return f'exec {sys.executable} {script} "$agent" "$@"'


def _other_version(folder: Path) -> str:
    source, library = folder / "version.c", folder / "version.so"
    source.write_text(_OTHER_VERSION)
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return f"export LD_PRELOAD={library}"


NODE, LINK = ("node1",), ("node1", "node2")
FAULTS = {
    one.name: one
    for one in (
        Fault("slow-node", NODE, "sending bandwidth", lambda cluster, folder: slow_node(cluster, 1)),
        Fault("slow-link", LINK, "bandwidth", slow_link),
        Fault("loss", NODE, "receiving lost segments", lossy_node),
        Fault("stolen-cpu", NODE, "computation", before=cpu_limit),
        Fault("small-shm", NODE, "/dev/shm", small_shared_memory),
        Fault("no-single-copy", NODE, "single copy between processes", before=_no_single_copy),
        Fault("mpi-version", NODE, "MPI library", before=_other_version),
        Fault("mpi-setting", NODE, "UCX_RNDV_THRESH", before=lambda folder: "export UCX_RNDV_THRESH=1024"),
        Fault("clock", NODE, "clock offset"),
    )
}


def clocks(nodes: int) -> dict[str, str]:
    """The variable that sets the clock of node1 wrong: Linux has no namespace of the time of day."""
    offsets = [CLOCK_OFFSET_S if node == 1 else 0.0 for node in range(nodes)]
    return {"EARLYBIRD_TEST_CLOCK": ",".join(f"{offset:g}:0" for offset in offsets)}


@contextlib.contextmanager
def planted(fault: Fault, cluster: Cluster, folder: Path) -> Iterator[dict[str, str]]:
    """The environment for the check. Faults of network and memory stay until the cluster ends; raises OSError
    where a fault cannot be planted."""
    if fault.plant is not None:
        fault.plant(cluster, folder)
    environment = clocks(len(cluster.nodes)) if fault.name == "clock" else {}
    if fault.before is None:
        yield environment
        return
    agent = cluster.agent
    real = agent.with_name(f"agent-before-{fault.name}")  # faults may be planted together
    before = fault.before(folder)
    agent.rename(real)
    try:
        agent.write_text(
            f"#!/bin/sh\nagent={real}\n"
            'for argument in "$@"; do case $argument in -*) ;; *) node=$argument; break ;; esac; done\n'
            f'if [ "$node" = node1 ]; then\n{before}\nfi\nexec "$agent" "$@"\n'
        )
        agent.chmod(0o700)
        yield environment
    finally:
        real.rename(agent)
        if fault.name == "stolen-cpu":
            with contextlib.suppress(OSError):  # a process has not ended yet
                _control_group()[0].rmdir()
