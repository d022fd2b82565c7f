"""Where installed MPIs and native builds are kept: in the user's home, or next to the installation."""

import os
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from earlybird.data.errors import InputError, cause_of
from earlybird.machine.commands import is_closable, is_made_by_another, is_writable_by_all

HOME_VARIABLE = "EARLYBIRD_HOME"
# What Earlybird makes in a home; all else there is somebody's own.
MPIS, BUILDS, KEYS, LOCKS = "mpi", "native", "keys", "locks"
LAUNCHERS, TOOLS = "launchers", "tools"
SCRIPTS = (LAUNCHERS, TOOLS)
CONTENTS = (MPIS, BUILDS, KEYS, *SCRIPTS, LOCKS)


def home() -> Path:
    """Return the folder that this user's builds are written to.

    It is `$EARLYBIRD_HOME`; otherwise a folder inside the active virtual environment, so that deleting it
    deletes everything; otherwise the user's data folder. A folder that exists and that this user may not
    write to is skipped.
    """
    given = given_home()
    if given and not _is_read_only(given):
        return given
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        shared = _next_to(sys.prefix)
        if not _is_read_only(shared):
            return shared
    data = os.environ.get("XDG_DATA_HOME") or os.path.join("~", ".local", "share")
    return _resolved(os.path.join(data, "earlybird"))


def clearable_home() -> Path:
    """Return the folder in which this user may remove builds: only `$EARLYBIRD_HOME` if it is set.

    Raises InputError if that is read-only: another folder was not meant.
    """
    given = given_home()
    if given and _is_read_only(given):
        raise InputError(
            f"EARLYBIRD_HOME is {given}, in which you may not remove anything; unset it to remove the builds "
            "of your own home"
        )
    return given or home()


def homes() -> list[Path]:
    """Return the folders in which MPIs and builds are looked up, in this order: `home()`; `$EARLYBIRD_HOME`;
    folders that an administrator has filled next to the installation."""
    given = given_home()
    return list(dict.fromkeys([home(), *([given] if given else []), *installation_homes()]))


def installation_homes() -> list[Path]:
    """Return the folders next to the active environment and next to this package, which differ where an
    environment uses the packages of another."""
    package = Path(__file__).parents[1]
    # PREFIX/lib/python3.12/site-packages/earlybird; a checkout is in no prefix.
    is_installed = package.parent.name in ("site-packages", "dist-packages")
    prefixes = [Path(sys.prefix), *([package.parents[3]] if is_installed else [])]
    return list(dict.fromkeys(map(_next_to, prefixes)))


def in_homes(name: str, is_complete: Callable[[Path], bool] = os.path.exists) -> Path:
    """Return the first folder of this name below a home that `is_complete`; the folder below `home()` if
    there is none."""
    folders = [folder / name for folder in homes()]
    return next(filter(is_complete, folders), folders[0])


def scripts_folder(kind: str, files: Mapping[str, bytes], executable: Callable[[str], bool]) -> Path:
    """Return a folder with `files` (path in it -> content) below a home, made in `home()` unless it exists.

    `kind` is one of SCRIPTS; `executable` returns which files are scripts. Raises InputError if it cannot be
    made.
    """
    key = zlib.crc32(b"\0".join(part for name, text in files.items() for part in (os.fsencode(name), text)))
    name = f"{kind}/{key:08x}"
    folder = in_homes(name, os.path.isdir)
    if os.path.isdir(folder):
        return folder
    from earlybird.data.folders import create_whole

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with create_whole(folder) as new_folder:
            for path, text in files.items():
                (new_folder / path).parent.mkdir(exist_ok=True)
                (new_folder / path).write_bytes(text)
                if executable(path):
                    (new_folder / path).chmod(0o755)
            new_folder.chmod(0o755)
    except FileExistsError:  # another process made it first
        return folder
    except OSError as error:
        remedy = ", or give --no-interpose" if kind == LAUNCHERS else ""
        raise InputError(
            f"cannot write in {folder.parent}: {cause_of(error)}; set EARLYBIRD_HOME to a folder you may "
            f"write to{remedy}"
        ) from error
    return folder


def given_home() -> Path | None:
    """Return the folder that EARLYBIRD_HOME names; raise InputError if it is a file, or if others can have
    put programs into it."""
    given = os.environ.get(HOME_VARIABLE)
    if not given:
        return None
    folder = _resolved(given)
    _require_folder(folder)
    _refuse_of_others(folder)
    return folder


def _next_to(prefix: str | Path) -> Path:
    return Path(os.path.realpath(Path(prefix, "share", "earlybird")))


def _is_read_only(folder: Path) -> bool:
    return os.path.isdir(folder) and not os.access(folder, os.W_OK)


def _resolved(folder: str) -> Path:
    expanded = os.path.expanduser(folder)
    if expanded.startswith("~"):
        raise InputError(
            f"the home directory of {folder} is unknown; set EARLYBIRD_HOME to a folder you may write to"
        )
    return Path(os.path.realpath(expanded))


def _require_folder(path: Path) -> None:
    """Raise InputError if `path` exists and is a file or a device."""
    if path.exists() and not path.is_dir():
        raise InputError(f"EARLYBIRD_HOME is {path}, which is not a folder; give another folder")


def _refuse_of_others(path: Path) -> None:
    """Raise InputError if anyone can have put programs into `path`, a given folder."""
    try:
        is_open, is_foreign = is_writable_by_all(path), is_made_by_another(path)
    except OSError:  # it is made later
        return
    if is_open:
        remedy = "give another folder"
        if is_closable(path):
            remedy = f"run chmod o-w on it, or {remedy}"
        raise InputError(f"EARLYBIRD_HOME is {path}, in which every user may put programs; {remedy}")
    if is_foreign:
        raise InputError(
            f"EARLYBIRD_HOME is {path}, which another user has made in {path.parent}, where everyone may; "
            f"give a folder of your own, or, if you trust the owner of {path}, one inside of it, such as "
            f"{path / 'earlybird'}"
        )
