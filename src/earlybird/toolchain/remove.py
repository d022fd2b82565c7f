"""Removes what `earlybird build` has made in the home of this user, and nothing else."""

import os
import re
import shutil
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path

from earlybird.data.errors import WorkError
from earlybird.machine import flavours
from earlybird.machine.home import BUILDS, CONTENTS, KEYS, MPIS, home
from earlybird.toolchain.build import COMPLETE, label
from earlybird.toolchain.install import locked

# A file or folder, and the size of what is in it.
Removed = namedtuple("Removed", "path size_bytes")


def remove_builds(names: Sequence[str] = ()) -> tuple[list[Removed], list[Path]]:
    """Remove the MPIs and builds of `names`, or everything; return what was removed, and what is another
    user's and stays.

    A folder that several users write to has builds of all of them: a user removes own ones only, root all.
    Raises WorkError if something cannot be removed.
    """
    own_home = home()
    paths = [path for name in names for path in _made_for(own_home, name)] if names else _made(own_home)
    removed, kept = [], []
    for path in dict.fromkeys(paths):
        if os.geteuid() not in (0, path.lstat().st_uid):
            kept.append(path)
            continue
        size_bytes = _size_bytes(path)
        _remove(path)
        removed.append(Removed(path, size_bytes))
    if not names:
        _remove_if_empty([own_home / name for name in (*CONTENTS, "")])
    return removed, kept


def _made(folder: Path) -> list[Path]:
    """Everything below the home `folder`, MPI by MPI and build by build."""
    paths = [path for name in (MPIS, BUILDS) for path in _entries(folder / name)]
    return paths + [
        folder / name for name in CONTENTS if name not in (MPIS, BUILDS) and (folder / name).exists()
    ]


def _made_for(folder: Path, name: str) -> list[Path]:
    """What is below the home `folder` for one MPI, of every version."""
    flavours.check_name(name)
    name = flavours.full_name(name)
    build = re.compile(rf"{re.escape(label(name))}-[0-9a-f]{{12}}")
    paths = [path for path in _entries(folder / BUILDS) if build.fullmatch(path.name)]
    if name in (*flavours.WHEELS, flavours.SIMULATED):
        mpi = re.compile(rf"{name}(-[0-9][\w.]*)?")
        paths += [path for path in _entries(folder / MPIS) if mpi.fullmatch(path.name)]
    key = folder / KEYS / label(name)
    return [*paths, key] if key.exists() else paths


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _size_bytes(path: Path) -> int:
    """What the file or folder takes on the disk; a link takes nothing."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_blocks * 512
    sizes = (os.lstat(os.path.join(above, name)) for above, _, names in os.walk(path) for name in names)
    return sum(status.st_blocks * 512 for status in sizes)


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder: first what says that an MPI or a build is complete."""
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        elif path.parent.name in (MPIS, BUILDS):
            is_mpi = path.parent.name == MPIS
            # Nobody may be installing or building it at the moment.
            with locked(f"install-{path.name.partition('-')[0]}" if is_mpi else f"build-{path.name}"):
                (path / (flavours.INSTALLED if is_mpi else COMPLETE)).unlink(missing_ok=True)
                shutil.rmtree(path)
        else:
            shutil.rmtree(path)
    except OSError as error:
        raise WorkError(
            f"cannot remove {error.filename or path}: {error.strerror}; what was removed before it is gone, "
            "so correct the permissions and repeat the command"
        ) from error


def _remove_if_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        try:
            folder.unlink() if folder.is_symlink() else folder.rmdir()
        except OSError:
            continue  # not there, or something of the user's is in it
