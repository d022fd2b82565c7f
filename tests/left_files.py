"""Files that jobs of tests leave in /dev/shm and /tmp, where those of killed and aborted ranks stay."""

import contextlib
import fcntl
import os
import signal
from pathlib import Path

from earlybird.launch import shared_memory, temporary_files


def remove_left(since_s: float, folder: Path = shared_memory.FOLDER) -> list[str]:
    """Remove what was left since `since_s` (seconds of time.time), and return the names of shared memory.

    Which job a segment is of cannot be known after it; but what no process has is of no use to any. Folders
    of daemons stay: a live one may have no /proc/PID here, where containers share /tmp.
    """
    left = sorted(
        name for name in shared_memory.names_made_since(since_s, folder) if _is_unused(folder / name)
    )
    for name in left:
        (folder / name).unlink(missing_ok=True)
    temporary_files.remove_left(since_s, pids=())
    return left


def _is_unused(path: Path) -> bool:
    """Return whether no process has the file open or mapped, in this namespace of processes or another: Linux
    grants a lease for writing only then."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        # By default SIGIO ends this process: it comes if another one opens the file meanwhile.
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return True
        finally:
            signal.signal(signal.SIGIO, before)
            os.close(descriptor)
    return False
