"""Remove the shared memory that a killed job leaves in /dev/shm, where it would stay until a reboot."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil

from earlybird.machine.private_folder import open_folder

FOLDER = Path("/dev/shm")
# Seen after ranks of MPICH 5.0.2 (its own and UCX's), Intel MPI 2021.18 and Open MPI 5.0 were killed.
PREFIXES = ("mpich_shm_", "ucx_shm_posix_", "Intel_MPI_", "sm_segment.", "vader_segment.")


def remove_left(since_s: float, folder: Path = FOLDER) -> None:
    """Delete this user's segments made since `since_s` (seconds of time.time) that no process has mapped.

    `folder` is a virtual node's /dev/shm as it is seen from outside; its processes call it FOLDER.
    """
    with contextlib.suppress(OSError), open_folder(folder) as descriptor:
        candidates = list(_made_since(since_s, descriptor))
        mapped = mapped_files() if candidates else set()
        for name in candidates:
            if str(FOLDER / name) not in mapped:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=descriptor)


def _made_since(since_s: float, descriptor: int) -> Iterator[str]:
    for name in os.listdir(descriptor):
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            ours = (
                name.startswith(PREFIXES) and stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            )
            if ours and status.st_ctime >= since_s:
                yield name


def mapped_files() -> set[str]:
    """Files below FOLDER that some process has mapped."""
    mapped: set[str] = set()
    for process in psutil.process_iter():
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{process.pid}/maps").read_text(errors="replace")
            last_words = (line.split(maxsplit=5)[-1] for line in text.splitlines())
            mapped |= {word for word in last_words if word.startswith(str(FOLDER))}
    return mapped
