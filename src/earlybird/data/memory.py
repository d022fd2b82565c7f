"""The memory that a process may still take."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
# By the version of cgroups: the files of the limit and of what is in use.
_CGROUP_FILES = {2: ("memory.max", "memory.current"), 1: ("memory.limit_in_bytes", "memory.usage_in_bytes")}


def available_memory_bytes() -> int:
    """Return the memory that a new process could use without swapping, within the limits of its cgroups: a
    batch job or a container is ended if it exceeds them, regardless of the memory of the machine."""
    match = re.search(r"^MemAvailable:\s+([0-9]+) kB", _text(Path("/proc/meminfo")), re.MULTILINE)
    free = int(match[1]) * 1024 if match else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(free, *_left_in_cgroups(_text(Path("/proc/self/cgroup")), _CGROUPS), free)


def _left_in_cgroups(memberships: str, root: Path) -> Iterator[int]:
    """Yield the memory that the limit of each cgroup leaves; `memberships` is the text of
    /proc/self/cgroup."""
    for line in memberships.splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        version, top = (1, root / "memory") if controllers else (2, root)
        folder = top / place.lstrip("/")
        # A container may see only its own cgroup, at the top.
        for at in {top, *(parent for parent in (folder, *folder.parents) if parent.is_relative_to(top))}:
            limit, used = (_text(at / name).strip() for name in _CGROUP_FILES[version])
            if limit.isdigit() and used.isdigit():
                yield max(int(limit) - int(used) + _reclaimable(_text(at / "memory.stat")), 0)


def _reclaimable(statistics: str) -> int:
    """Return the bytes of files that count as used but are dropped when memory is needed."""
    lines = dict(line.split(" ", 1) for line in statistics.splitlines() if " " in line)
    size = lines.get("total_inactive_file", lines.get("inactive_file", "0"))
    return int(size) if size.isdigit() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
