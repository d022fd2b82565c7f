"""Determines what can be measured on this machine; otherwise the cause and the remedy."""

import ctypes
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from earlybird.data.errors import InputError
from earlybird.machine import flavours, hardware, namespaces

_PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
_SHARED_MEMORY = Path("/dev/shm")
# What container runtimes give by default, and MPIs fill with a few ranks.
_SMALL_SHARED_BYTES = 64 << 20


@dataclass(frozen=True)
class Ability:
    """The ability to measure a quantity here; `cause` and `remedy` are empty if it can be measured without
    restrictions."""

    can: bool
    cause: str = ""
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def abilities() -> dict[str, Ability]:
    """Return the Ability of each kind of measurement, by its name."""
    cores = hardware.cores_by_socket()
    return {
        "intra_socket": _intra_socket(cores),
        "inter_socket": _inter_socket(cores),
        "inter_node": _inter_node(),
        "virtual_cluster": _virtual_cluster(),
        "simulation": _simulation(),
        "undisturbed_cores": _undisturbed(cores),
        "single_copy": _single_copy(),
        "shared_memory": _shared_memory(),
    }


def _intra_socket(cores: list[list[int]]) -> Ability:
    most = max(len(socket) for socket in cores)
    if most >= 4:
        return Ability(True)
    return Ability(
        most >= 2,
        f"a socket has {most} usable cores: more than {most} ranks share cores, and the figures show the "
        f"scheduler too",
        "run on a machine with more cores, or allow this process more of them (taskset, container limits)",
    )


def _inter_socket(cores: list[list[int]]) -> Ability:
    if len(cores) > 1:
        return Ability(True)
    return Ability(
        False, "one socket is usable here", "measure on a machine with two sockets; predict takes any layout"
    )


def _inter_node() -> Ability:
    if shutil.which("srun"):
        return Ability(True, "", "use --launcher srun inside an allocation of two nodes")
    return Ability(
        False,
        "no other node is known and srun is not on PATH",
        "name nodes with --hosts, run where Slurm is, or start virtual ones with `earlybird cluster up`",
    )


def _virtual_cluster() -> Ability:
    mode = namespaces.find_mode()
    if isinstance(mode, namespaces.Refusal):
        return Ability(False, mode.cause, mode.remedy)
    return Ability(True)


def _simulation() -> Ability:
    try:
        flavours.find_flavour(flavours.SIMULATED)
    except InputError:
        return Ability(False, "SimGrid is not installed", flavours.simgrid_remedy())
    return Ability(True)


def _undisturbed(cores: list[list[int]]) -> Ability:
    machine = hardware.describe()
    num_cores = sum(len(socket) for socket in cores)
    quota = hardware.cpu_quota()
    if quota is not None and quota < num_cores:
        return Ability(
            False,
            f"a CPU limit grants the time of {quota:g} of {num_cores} cores, so ranks are paused at times",
            "raise the container's CPU limit, or use no more ranks than it grants",
        )
    if machine["load"] > 0.5 * num_cores:
        return Ability(
            False, f"the load is {machine['load']} on {num_cores} cores", "wait until other work is done"
        )
    if machine["governor"] not in ("performance", "unknown"):
        return Ability(
            False,
            f"the frequency governor is {machine['governor']}",
            "set it: cpupower frequency-set -g performance",
        )
    if machine["virtualized"]:
        return Ability(
            True, "a virtual machine: its neighbours can disturb, unseen", "repeat launches, judge medians"
        )
    return Ability(True)


def _single_copy() -> Ability:
    """Return the ability of one rank to copy from another's memory by the kernel, which large messages inside
    a node, and libearlybird's direct path, rely on."""
    try:
        scope = int(_PTRACE_SCOPE.read_text())
    except (OSError, ValueError):
        scope = 0
    if scope != 0:
        return Ability(
            False,
            f"kernel.yama.ptrace_scope is {scope}: large messages may be copied twice",
            "sysctl kernel.yama.ptrace_scope=0",
        )
    error = _error_of_single_copy()
    if error is None:
        return Ability(True)
    return Ability(
        False,
        f"process_vm_readv fails ({error}): large messages may be copied twice",
        "a container: allow SYS_PTRACE, or process_vm_readv and process_vm_writev in its seccomp profile",
    )


class _Part(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _error_of_single_copy() -> str | None:
    """Read a byte of another process; return why that fails, or None."""
    byte = ctypes.create_string_buffer(1)
    try:
        read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as other:
            address = int(Path(f"/proc/{other.pid}/maps").read_text().split("-")[0], 16)
            ours, theirs = _Part(ctypes.addressof(byte), 1), _Part(address, 1)
            num_read = read(other.pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
            error = ctypes.get_errno()
    except (OSError, AttributeError, ValueError) as failed:
        return getattr(failed, "strerror", None) or "not provided here"
    return None if num_read == 1 else os.strerror(error)


def _shared_memory() -> Ability:
    """Return the ability of the ranks of a node to share memory: the MPIs' in /dev/shm, libearlybird's in an
    anonymous file."""
    try:
        os.close(os.memfd_create("earlybird", os.MFD_CLOEXEC))
        overcommit = _OVERCOMMIT.read_text().strip()
        shared = os.statvfs(_SHARED_MEMORY)
    except (OSError, AttributeError) as error:
        return Ability(
            False,
            f"ranks may not be able to share memory: {error}",
            "a container: mount a tmpfs on /dev/shm, and allow memfd_create in its seccomp profile",
        )
    if overcommit == "2":
        return Ability(
            False,
            "vm.overcommit_memory is 2: with libearlybird ranks of a node use messages, not shared memory",
            "sysctl vm.overcommit_memory=0",
        )
    size = shared.f_blocks * shared.f_frsize
    if size > _SMALL_SHARED_BYTES:
        return Ability(True)
    return Ability(
        True,
        f"/dev/shm has {size >> 20} MiB, which MPIs may fill with a few ranks",
        "mount it larger (a container: --shm-size)",
    )
