"""Reads cores, sockets, caches, memory and the settings that change measurements from the Linux kernel."""

import os
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CPU_FOLDER = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Core:
    """A physical core that this process may use; `cpu` is its first hardware thread."""

    cpu: int
    socket: int


def usable_cores(cpu_folder: Path = CPU_FOLDER) -> list[Core]:
    """Return the physical cores on which this process may run, by socket, then by number; one hardware thread
    of each."""
    seen: dict[tuple[int, int], Core] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        socket = _number(cpu_folder / f"cpu{cpu}" / "topology" / "physical_package_id", 0)
        core = _number(cpu_folder / f"cpu{cpu}" / "topology" / "core_id", cpu)
        seen.setdefault((socket, core), Core(cpu, max(socket, 0)))
    return sorted(seen.values(), key=lambda core: (core.socket, core.cpu))


def cores_by_socket(cpu_folder: Path = CPU_FOLDER) -> list[list[int]]:
    """Return the CPU numbers of the usable cores, a list per socket; sockets are renumbered from 0 without
    gaps."""
    cores = usable_cores(cpu_folder)
    sockets = sorted({core.socket for core in cores})
    return [[core.cpu for core in cores if core.socket == socket] for socket in sockets]


def describe() -> dict[str, Any]:
    """Return the description of the machine in a run's provenance."""
    cores = cores_by_socket()
    return {
        "host": platform.node(),
        "cpu_model": _cpu_model(),
        "architecture": platform.machine(),
        "cores": sum(len(socket) for socket in cores),
        "cores_per_socket": [len(socket) for socket in cores],
        "sockets": len(cores),
        "hardware_threads": len(os.sched_getaffinity(0)),
        "caches": _caches(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "governor": _text(CPU_FOLDER / "cpu0" / "cpufreq" / "scaling_governor") or "unknown",
        "virtualized": "hypervisor" in _cpu_flags(),
        "load": round(os.getloadavg()[0], 2),
    }


def runnable(seconds: float = 0.1, readings: int = 10) -> float:
    """Return how many processes and threads of others run or wait for a core: the mean over `seconds`, in
    which this process sleeps. 0 if the kernel does not report it."""
    counts = []
    for _ in range(readings):
        time.sleep(seconds / readings)
        lines = (_text(Path("/proc/stat")) or "").splitlines()
        counts += [int(line.split()[1]) - 1 for line in lines if line.startswith("procs_running ")]
    return max(sum(counts) / len(counts), 0.0) if counts else 0.0


def cpu_quota(cgroup_folder: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Return the number of cores whose time this control group may use, a container's CPU limit; None without
    a limit."""
    values = _text(cgroup_folder / "cpu.max").split()
    if len(values) == 2 and values[0].isdigit():
        return int(values[0]) / int(values[1])
    quota_us = _number(cgroup_folder / "cpu" / "cpu.cfs_quota_us", -1)
    period_us = _number(cgroup_folder / "cpu" / "cpu.cfs_period_us", 0)
    return quota_us / period_us if quota_us > 0 and period_us > 0 else None


def _cpu_model() -> str:
    match = re.search(
        r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE
    )
    return match[1].strip() if match else platform.processor() or platform.machine()


def _cpu_flags() -> list[str]:
    match = re.search(r"^flags\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return match[1].split() if match else []


def cache_bytes() -> int:
    """Return what the data caches of a core hold: its largest of its own and the largest that it shares; 0 if
    the kernel does not describe them."""
    sizes = sorted(cache["size_bytes"] for cache in _caches())
    return sum(sizes[-2:])


def _caches() -> list[dict[str, Any]]:
    caches = []
    for folder in sorted((CPU_FOLDER / "cpu0" / "cache").glob("index*")):
        kind = _text(folder / "type")
        if kind == "Instruction":
            continue
        size = _text(folder / "size")
        shared = _text(folder / "shared_cpu_list")
        factor = {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 1)
        if size:
            level = _number(folder / "level", 0)
            caches.append(
                {"level": level, "size_bytes": int(size.rstrip("KM")) * factor, "shared_by_cpus": shared}
            )
    return caches


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path, default: int) -> int:
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else default
