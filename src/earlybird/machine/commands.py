"""Where on PATH a command is, as shutil.which for POSIX without what else shutil brings along, and in which
folders others may put commands."""

import os
import stat
from pathlib import Path


def find_command(name: str, path: str | None = None) -> str | None:
    """Return the path of the command `name` as a shell would find it on `path` (default: $PATH), or None."""
    if os.sep in name:
        return name if is_executable(name) else None
    candidates = (os.path.join(folder, name) for folder in path_folders(path))
    return next(filter(is_executable, candidates), None) if name else None


def path_folders(path: str | None = None) -> list[str]:
    """Return the folders of `path` (default: $PATH)."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return [folder or os.curdir for folder in folders]


def is_executable(path: str) -> bool:
    """Return whether `path` is a file that this user may start."""
    return os.access(path, os.X_OK) and os.path.isfile(path)


def is_writable_by_all(folder: Path) -> bool:
    """Return whether every user may put programs into `folder`."""
    return bool(folder.stat().st_mode & stat.S_IWOTH)


def is_closable(folder: Path) -> bool:
    """Return whether this user can reasonably keep others from writing to `folder`: it is the user's own and
    not sticky, as folders are that all users share, such as /tmp."""
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX


def is_made_by_another(folder: Path) -> bool:
    """Return whether another user has made `folder` where everyone may make one, such as in /tmp."""
    return is_writable_by_all(folder.parent) and folder.stat().st_uid not in (os.geteuid(), 0)
