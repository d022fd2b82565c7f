"""Remove the shared memory that a killed job leaves in /dev/shm, where it would stay until a reboot."""

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from earlybird.data import locks
from earlybird.machine.private_folder import open_folder

FOLDER = Path("/dev/shm")
# Seen after ranks of MPICH 5.0.2 (its own and UCX's), Intel MPI 2021.18 and Open MPI 5.0 were killed.
PREFIXES = (
    *("mpich_shm_", "mpich_vci_", "mpich_shar_tmp", "ucx_shm_posix_"),
    *("Intel_MPI_", "sm_segment.", "vader_segment."),
)
_REPORTS, _MIN_AGE_S = "earlybird-shared-", 60.0


def remove_left(since_s: float, folder: Path = FOLDER, *, only: Collection[str]) -> bool:
    """Delete those of the segments `only` that were made since `since_s` (seconds of time.time) and that no
    process has mapped; return whether some are left.

    `folder` is a virtual node's /dev/shm as seen from outside; its processes call it FOLDER, and the segments
    by paths below that.
    """
    is_left = False
    with contextlib.suppress(OSError), open_folder(folder) as descriptor:
        made = {str(FOLDER / name): name for name in _made_since(since_s, descriptor)}
        candidates = [path for path in made if path in only]
        mapped = mapped_files() if candidates else set()
        is_left = not mapped.isdisjoint(candidates)
        for path in candidates:
            if path not in mapped:
                with contextlib.suppress(OSError):
                    os.unlink(made[path], dir_fd=descriptor)
    return is_left


@contextlib.contextmanager
def reports() -> Iterator[Path | None]:
    """Yield a file for the block, to which processes of this machine append the paths of what they have
    mapped, one to a line: see native/recorder/recording/shared_memory.h. None if no file can be made."""
    made = None
    with contextlib.suppress(OSError):
        made = tempfile.mkstemp(prefix=_REPORTS)
    if made is None:
        yield None
        return
    descriptor, path = made[0], Path(made[1])
    try:
        # Held until this process ends, however that is.
        with contextlib.suppress(OSError, locks.Locked):
            locks.take(descriptor, waits=False)
            _remove_left_reports(path.parent)
        yield path
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            path.unlink()


def _remove_left_reports(folder: Path) -> None:
    """Remove this user's files of `reports` that no process holds: one that is killed leaves its own."""
    with contextlib.suppress(OSError), open_folder(folder) as descriptor:
        for name in os.listdir(descriptor):
            if name.startswith(_REPORTS):
                with contextlib.suppress(OSError):
                    _remove_unless_held(name, descriptor)


def _remove_unless_held(name: str, folder: int) -> None:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(file)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        # Another process may have made it just now and not hold it yet.
        if is_ours and time.time() - status.st_mtime > _MIN_AGE_S and not locks.is_taken(file):
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(file)


def reported_in(path: Path) -> set[str]:
    """Return the paths that processes have appended to a file."""
    try:
        return set(path.read_text(errors="replace").splitlines())
    except OSError:
        return set()


def names_made_since(since_s: float, folder: Path = FOLDER) -> set[str]:
    """Return the names of this user's segments that were made since `since_s`, by any job."""
    with contextlib.suppress(OSError), open_folder(folder) as descriptor:
        return set(_made_since(since_s, descriptor))
    return set()


def _made_since(since_s: float, descriptor: int) -> Iterator[str]:
    for name in os.listdir(descriptor):
        if not name.startswith(PREFIXES):
            continue
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            if ours and status.st_ctime >= since_s:
                yield name


def mapped_files() -> set[str]:
    """Return the files below FOLDER that some process has mapped."""
    return {path for process in psutil.process_iter() for path in mapped_by(process.pid)}


def mapped_by(pid: int) -> set[str]:
    """Return the files below FOLDER that a process has mapped; empty if it has ended."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return set()
    last_words = (line.split(maxsplit=5)[-1] for line in text.splitlines())
    return {word for word in last_words if word.startswith(f"{FOLDER}/")}
