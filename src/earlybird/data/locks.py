"""Locks of open files and folders, which the kernel takes back when the processes that have them end."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator

# What file systems without locks, and NFS for a file that is open for reading alone, answer to flock.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EBADF, errno.ENOSYS, errno.EINVAL)


class Locked(Exception):
    """An error: another process has the lock."""


def take(descriptor: int, *, waits: bool) -> None:
    """Lock an open file or folder until it is closed; raise Locked if another process has it, or wait.

    Where the file system has no locks, nothing is locked.
    """
    _lock(descriptor, fcntl.LOCK_EX, waits)


def is_taken(descriptor: int) -> bool:
    """Return whether another process has the lock of an open file or folder."""
    try:
        _lock(descriptor, fcntl.LOCK_SH, waits=False)  # shared: two that ask must not see each other
    except Locked:
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


@contextlib.contextmanager
def held(open_file: Callable[[], int], *, waits: bool) -> Iterator[None]:
    """Hold the lock of the file that `open_file` opens or creates, for the block.

    The previous holder of the lock may have removed the file: then another file is opened if `waits`, and
    Locked is raised otherwise.
    """
    while True:
        descriptor = open_file()
        try:
            take(descriptor, waits=waits)
            if os.fstat(descriptor).st_nlink > 0:
                yield
                return
            if not waits:
                raise Locked
        finally:
            os.close(descriptor)


def _lock(descriptor: int, kind: int, waits: bool) -> None:
    try:
        fcntl.flock(descriptor, kind if waits else kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Locked from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
