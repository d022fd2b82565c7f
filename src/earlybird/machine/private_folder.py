"""Private folders below a shared one, such as /tmp, where other users make files, links and folders of any
name.

A check of a path says nothing about the next use of the path. Each folder is opened once, checked as it is
open, and everything in it is reached through the open folder, without following links.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from earlybird.data import files
from earlybird.data.errors import InputError

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_BYTES = 64 << 20  # of a file that is read
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class PrivateFolder:
    """An open folder that belongs to this user and that no other user may write to.

    Attributes
    ----------
    path : its path for others, for messages and for programs that are started.
    descriptor : descriptor of the folder; it is closed by `opened` or `folder`.
    """

    def __init__(self, path: Path, descriptor: int):
        self.path, self.descriptor = path, descriptor
        _require_private(path, os.fstat(descriptor))

    def names(self) -> list[str]:
        """Return the names of the entries of the folder, sorted."""
        return sorted(os.listdir(self.descriptor))

    def exists(self, name: str) -> bool:
        """Return whether there is an entry of this name."""
        return name in os.listdir(self.descriptor)

    def make_folder(self, name: str) -> None:
        """Make a folder in this one; raise FileExistsError if there is an entry of this name."""
        os.mkdir(_plain(name), 0o700, dir_fd=self.descriptor)

    @contextlib.contextmanager
    def folder(self, name: str) -> Iterator["PrivateFolder"]:
        """Open a folder in this one, for the block; raise the errors of `opened`."""
        with _open_private(self.path / _plain(name), name, self.descriptor) as folder:
            yield folder

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Return a descriptor of a file in this folder, which the caller closes.

        Raises InputError for anything but a file of this user alone, and OSError as os.open does.
        """
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(_plain(name), flags, mode, dir_fd=self.descriptor)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR):
                raise _no_file(self.path / name) from error
            raise
        try:
            status = os.fstat(descriptor)
            _require_private(self.path / name, status)
            if not stat.S_ISREG(status.st_mode):
                raise _no_file(self.path / name)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def read_text(self, name: str) -> str:
        """Return the text of a file; raise InputError for a file that is too large or not text."""
        descriptor = self.open(name, os.O_RDONLY)
        try:
            return files.read_open(descriptor, self.path / name, "file", _MAX_BYTES).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path / name} is not text; remove it") from error
        finally:
            os.close(descriptor)

    def write_text(self, name: str, text: str, mode: int = 0o600) -> None:
        """Write a file atomically."""
        new = f".{name}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new, dir_fd=self.descriptor)
        descriptor = self.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            os.fchmod(descriptor, mode)  # whatever the umask is
            stream.write(text)
        os.rename(new, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a folder with its content, or another entry of that name, if possible; follow no link."""
        with contextlib.suppress(OSError):
            os.unlink(_plain(name), dir_fd=self.descriptor)  # not of a folder
        with contextlib.suppress(OSError):
            shutil.rmtree(name, dir_fd=self.descriptor)


@contextlib.contextmanager
def opened(path: Path, *, make: bool = False) -> Iterator[PrivateFolder]:
    """Open a folder for the block, after making it if it is missing and is to be made.

    Raises FileNotFoundError if it is missing, and InputError if it is a link or no folder, if it belongs to
    another user or may be written by one, or if it is in a folder in which others can replace it.
    """
    with open_folder(path.parent) as parent:
        status = os.fstat(parent)
        if status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
            raise InputError(
                f"others can replace {path}, because {path.parent} is writable and not sticky; have it made "
                f"so with chmod +t {path.parent}"
            )
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.name, 0o700, dir_fd=parent)
        with _open_private(path, path.name, parent) as folder:
            yield folder


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Yield the descriptor of a folder, which may be shared; raise OSError as os.open does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove_if_empty(path: Path) -> None:
    """Remove a folder if it is empty; remove nothing else, and no link."""
    with contextlib.suppress(OSError):
        os.rmdir(path)


@contextlib.contextmanager
def _open_private(path: Path, name: str, parent: int) -> Iterator[PrivateFolder]:
    try:
        descriptor = os.open(name, _OPEN_FOLDER, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:  # a link, a file, or a folder of others
        raise _not_ours(path) from error
    try:
        yield PrivateFolder(path, descriptor)
    finally:
        os.close(descriptor)


def _require_private(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise _not_ours(path)
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise InputError(f"{path} may be written by other users, so what is in it is not used; remove it")


def _not_ours(path: Path) -> InputError:
    return InputError(f"{path} is not a folder of your own; have it removed")


def _no_file(path: Path) -> InputError:
    return InputError(f"{path} is not a file; remove it")


def _plain(name: str) -> str:
    assert name not in ("", ".", "..") and "/" not in name, name
    return name
