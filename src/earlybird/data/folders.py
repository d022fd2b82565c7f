"""Folders that several processes may want: they appear whole or not at all, and one process at a time has
their lock."""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from earlybird.data import locks
from earlybird.data.errors import EarlybirdError


def temporary_path(path: Path) -> Path:
    """Return a new name next to `path` for a file or folder that becomes `path` once it is complete."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


@contextlib.contextmanager
def create_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `path`, rename it to `path` when the block succeeds, and remove it
    otherwise.

    Raise FileExistsError if `path` exists, even if it was created meanwhile, and OSError if the folder cannot
    be created.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = temporary_path(path)
    # As any new folder: the umask, and a setgid bit and ACLs of the folder around it, apply.
    temporary.mkdir()
    try:
        yield temporary
        try:
            temporary.rename(path)  # replaces nothing but an empty folder
        except OSError as error:
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
            raise
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, EarlybirdError):  # it names a file by the path that nobody gave
            error.args = (str(error).replace(str(temporary), str(path)),)
        raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of the file `path`, which ends with the process at the latest; raise Locked if another
    process has it or has removed the file meanwhile.

    Where the file system has no locks, nothing is locked.
    """
    with locks.held(lambda: _open_to_lock(path), waits=False):
        yield


def _open_to_lock(path: Path) -> int:
    try:
        # NFS locks a file exclusively only if it is open for writing.
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
