"""Removes what `earlybird build` has made in the home of this user, and nothing else."""

import os
import re
import shutil
from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from earlybird.data import folders, locks
from earlybird.data.errors import WorkError, cause_of
from earlybird.machine import flavours
from earlybird.machine.commands import find_command
from earlybird.machine.home import BUILDS, CONTENTS, KEYS, LOCKS, MPIS, SCRIPTS, clearable_home
from earlybird.toolchain.build import (
    COMPILED_WITH,
    COMPLETE,
    FAILED_BUILD,
    built_by,
    is_key_file,
    label,
    label_of_build,
    name_of_build,
)

# A file or folder, and the size of what is in it.
Removed = namedtuple("Removed", "path size_bytes")

# Why something stays.
NOT_MADE, OTHER_USERS, IN_USE = (
    "Earlybird did not make them", "they are other users'", "another process installs or builds them",
)  # fmt: skip

# The names of what `earlybird build` makes, and the files by one of which it is recognized: an installation
# or a build that was interrupted has the second.
_MPI = re.compile(rf"(?:{'|'.join(flavours.WHEELS)})-[0-9][\w.]*")
_MPI_MARKS = (flavours.INSTALLED, "pyvenv.cfg")
_SIMGRID_MARK = "usr/bin/smpicc"
_BUILD = re.compile(r"[A-Za-z0-9.-]+-[0-9a-f]{12}")
_BUILD_MARKS = (COMPLETE, COMPILED_WITH)
_SCRIPTS = re.compile(r"[0-9a-f]{8}")
_LOCK = re.compile(r"(?:install|build)-[A-Za-z0-9.-]+")
_REMOVED = ".removed-"
# What a process that was killed leaves in each folder.
_UNFINISHED = {
    MPIS: re.compile(rf"\.new-\w{{8}}|{re.escape(_REMOVED)}.+"),
    BUILDS: re.compile(rf"\.build-\w{{8}}|{re.escape(_REMOVED)}.+"),
    **dict.fromkeys(SCRIPTS, re.compile(r"\.[0-9a-f]{8}\.\w{8}")),
}


def remove_builds(names: Sequence[str] = ()) -> tuple[list[Removed], dict[Path, str]]:
    """Remove the MPIs and builds of `names`, or everything; return the removed items, and the remaining ones
    with the cause (NOT_MADE, OTHER_USERS, IN_USE).

    A folder that several users write to has builds of all of them: a user removes own ones only, root all.
    Raises InputError if this user's home is read-only, WorkError if something cannot be removed.
    """
    home = clearable_home()
    removed: list[Removed] = []
    kept: dict[Path, str] = {}
    # Listed before the locks are taken: the process that writes to one of them has its lock already.
    unfinished = [] if names else list(_unfinished(home))
    with ExitStack() as stack:
        locks = _Locks(home / LOCKS, stack)
        if names:
            paths = [path for name in names for path in _made_for(home, name)]
        else:
            locks.take_all()
            paths, others = _made(home)
            paths += [] if locks.busy else unfinished
            kept |= dict.fromkeys(others, NOT_MADE)
        for path in dict.fromkeys(paths):
            if not _is_own(path):
                kept[path] = OTHER_USERS
            elif not locks.take(_lock_of(path)):
                kept[path] = IN_USE
            else:
                removed.append(Removed(path, _size_bytes(path)))
                _remove(path)
        if not names:
            kept |= dict.fromkeys(locks.remove(), IN_USE)
    if removed:
        _remove_if_empty([*dict.fromkeys(path.parent for path, _ in removed), home / LOCKS, home])
    return removed if names else _by_folder(removed), kept


class _Locks:
    """The locks of MPIs and builds that this process could take; locks of other processes are `busy`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._taken: set[str] = set()
        self.busy: set[str] = set()

    def take_all(self) -> None:
        """Take every existing lock."""
        for path in _entries(self._folder):
            if _LOCK.fullmatch(path.name) and _is_own(path):
                self.take(path.name)

    def take(self, name: str | None) -> bool:
        """Take the lock `name` if it exists; return False if another process has it."""
        path = self._folder / (name or "")
        if name is None or name in self._taken:
            return True
        if name in self.busy:
            return False
        try:
            self._folder.mkdir(exist_ok=True)
            if not path.exists():
                path.touch()
            self._stack.enter_context(folders.locked(path))
        except locks.Locked:
            self.busy.add(name)
            return False
        except OSError as error:
            raise _not_removable(error, path) from error
        self._taken.add(name)
        return True

    def remove(self) -> list[Path]:
        """Remove the files of the taken locks; return the files of the busy ones.

        A process that waits for one of them sees that its file is gone, and makes another.
        """
        for name in self._taken:
            path = self._folder / name
            if _is_own(path) and path.stat().st_size == 0:
                path.unlink()
        return [self._folder / name for name in sorted(self.busy)]


def _unfinished(home: Path) -> Iterator[Path]:
    for name, pattern in _UNFINISHED.items():
        for path in _entries(home / name):
            if pattern.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                yield path


def _made(home: Path) -> tuple[list[Path], list[Path]]:
    """Return the files that Earlybird has made below `home`, MPI by MPI and build by build, and the other
    files in its folders."""
    made, others = [], []
    for name in CONTENTS:
        if (home / name).is_symlink():
            others.append(home / name)
        for path in _entries(home / name):
            if _is_made(path):
                made.append(path)
            elif not _is_expected(path):
                others.append(path)
    return made, others


def _is_expected(path: Path) -> bool:
    """Return whether the file is a lock, or was left by a process that was killed."""
    if path.parent.name == LOCKS:
        return _LOCK.fullmatch(path.name) is not None and _is_empty_file(path)
    pattern = _UNFINISHED.get(path.parent.name)
    return pattern is not None and pattern.fullmatch(path.name) is not None


def _is_made(path: Path) -> bool:
    """Return whether Earlybird has made a file or folder of its home, judged by its name and its content."""
    kind = path.parent.name
    if path.is_symlink():
        return False
    if not path.is_dir():
        return (kind == KEYS and is_key_file(path)) or (kind == BUILDS and path.name == FAILED_BUILD)
    if kind == MPIS and path.name == flavours.SIMULATED:
        return (path / _SIMGRID_MARK).exists()
    if kind == MPIS:
        return _MPI.fullmatch(path.name) is not None and _has_one(path, _MPI_MARKS)
    if kind == BUILDS:
        return _BUILD.fullmatch(path.name) is not None and _has_one(path, _BUILD_MARKS)
    return kind in SCRIPTS and _SCRIPTS.fullmatch(path.name) is not None


def _has_one(folder: Path, names: Sequence[str]) -> bool:
    return any((folder / name).is_file() for name in names)


def _is_empty_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size == 0


def _made_for(home: Path, name: str) -> list[Path]:
    """Return the files below `home` for one MPI, of every version."""
    flavours.check_name(name)
    name = flavours.full_name(name)
    mpicc = Path((find_command("mpicc") or name) if name == "system" else name)
    stated, _ = built_by(name, mpicc)
    # The second is what earlier versions called them. Two folders may have one label.
    labels = "|".join(re.escape(text) for text in (label_of_build(name, mpicc), label(name)))
    build = re.compile(rf"(?:{labels})-[0-9a-f]{{12}}")
    paths = [
        path
        for path in _entries(home / BUILDS)
        if build.fullmatch(path.name) and _is_one_mpi(name_of_build(path) or name, (name, stated))
    ]
    mpi = re.compile(rf"{re.escape(name)}(-[0-9][\w.]*)?")
    paths += [path for path in _entries(home / MPIS) if mpi.fullmatch(path.name)]
    return [path for path in [*paths, home / KEYS / label(name)] if path.exists() and _is_made(path)]


def _is_one_mpi(built: str, names: tuple[str, str]) -> bool:
    return built in names or (os.sep in built and os.path.realpath(built) == os.path.realpath(names[1]))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _is_own(path: Path) -> bool:
    return os.geteuid() in (0, path.lstat().st_uid)


def _lock_of(path: Path) -> str | None:
    """Return the name of the lock that a process has while it makes `path`."""
    if path.name.startswith(".") or not path.is_dir():
        return None
    if path.parent.name == MPIS:
        return f"install-{path.name.partition('-')[0]}"
    return f"build-{path.name}" if path.parent.name == BUILDS else None


def _size_bytes(path: Path) -> int:
    """Return the bytes that the file or folder takes on the disk."""
    if not path.is_dir():
        return path.lstat().st_blocks * 512
    sizes = (os.lstat(os.path.join(above, name)) for above, _, names in os.walk(path) for name in names)
    return sum(status.st_blocks * 512 for status in sizes)


def _remove(path: Path) -> None:
    """Remove a file or a folder, so that no process sees an MPI or a build that is partly removed."""
    try:
        if not path.is_dir():
            path.unlink()
            return
        if path.parent.name in (MPIS, BUILDS) and not path.name.startswith("."):
            renamed = path.with_name(f"{_REMOVED}{os.getpid()}-{path.name}")
            path.rename(renamed)
            path = renamed
        shutil.rmtree(path)
    except OSError as error:
        raise _not_removable(error, path) from error


def _not_removable(error: OSError, path: Path) -> WorkError:
    return WorkError(
        f"cannot remove {error.filename or path}: {cause_of(error)}; what was removed before it is gone, "
        "so correct the permissions and repeat the command"
    )


def _by_folder(removed: list[Removed]) -> list[Removed]:
    """Return MPIs and builds one by one, and all other files as the folder that contained them: keys and
    scripts are many and small."""
    sizes: dict[Path, int] = {}
    for path, size_bytes in removed:
        path = path if path.parent.name in (MPIS, BUILDS) else path.parent
        sizes[path] = sizes.get(path, 0) + size_bytes
    return [Removed(*item) for item in sizes.items()]


def _remove_if_empty(paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            path.rmdir()
        except OSError:
            continue  # not there, or something else is in it
