"""Remove the files and folders that killed jobs leave in /tmp."""

import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from earlybird.machine.private_folder import open_folder

FOLDER = Path("/tmp")
# hydra's description of the machine for the ranks, in MPICH 5.0.2 and Intel MPI 2021.18. The path is fixed in
# hydra_pmi_proxy, which removes the file when it ends normally; TMPDIR does not move it.
TOPOLOGY = "hydra_hwloc_xmlfile_"
_PROXY = "hydra_pmi_proxy"
# By how much the kernel's time of a process's beginning may be off against a file's.
_SLACK_S = 2.0
# The folder of a daemon of Open MPI 5.0.11, named after its process.
_SESSION = re.compile(r"ompi\.([0-9]+)")


def remove_left(
    since_s: float,
    folder: Path = FOLDER,
    processes: Path = Path("/proc"),
    *,
    pids: Collection[int],
) -> None:
    """Delete what jobs of this user made in `folder` since `since_s` (seconds of time.time) and whose creator
    has ended.

    `folder` and `processes` are those of a virtual node as seen from outside. `pids` are the processes whose
    folders may be deleted.
    """
    with contextlib.suppress(OSError), open_folder(folder) as descriptor:
        topologies = {}
        for name, made_s in _made_since(since_s, descriptor):
            if name.startswith(TOPOLOGY):
                topologies[name] = made_s
            elif (
                (session := _SESSION.fullmatch(name))
                and int(session[1]) in pids
                and _has_ended(processes / session[1])
            ):
                with contextlib.suppress(OSError):
                    shutil.rmtree(name, dir_fd=descriptor)
        # The proxy that made a file is unknown: any live one that is older than the file may have.
        oldest_s = min(_beginnings(), default=float("inf")) - _SLACK_S if topologies else 0.0
        for name, made_s in topologies.items():
            if made_s < oldest_s:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=descriptor)


def _has_ended(process: Path) -> bool:
    """Return whether a process, by its folder in /proc, has ended or waits to be reaped by its parent."""
    try:
        return (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return not process.exists()


def _made_since(since_s: float, descriptor: int) -> Iterator[tuple[str, float]]:
    """Yield this user's files and folders in a folder, and when each was made or last changed."""
    for name in os.listdir(descriptor):
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if status.st_uid == os.geteuid() and status.st_ctime >= since_s:
                yield name, status.st_ctime


def _beginnings() -> list[float]:
    """Return the start time of every running proxy process."""
    begun = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name() == _PROXY and process.status() != psutil.STATUS_ZOMBIE:
                begun.append(process.create_time())
    return begun
