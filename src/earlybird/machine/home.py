"""Where installed MPI flavours and native builds are kept."""

import os
import stat
import sys
from pathlib import Path

from earlybird.data.errors import InputError


def home() -> Path:
    """`$EARLYBIRD_HOME`; else inside the active virtual environment, so that deleting it deletes everything;
    else the user's data folder."""
    given = os.environ.get("EARLYBIRD_HOME")
    if given:
        path = Path(given).expanduser().resolve()
        _refuse_of_others(path)
        return path
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "share" / "earlybird"
    return Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "earlybird"


def _refuse_of_others(path: Path) -> None:
    """Raise InputError if anyone can have put programs into `path`, a folder that is given."""
    try:
        status, parent = path.stat(), path.parent.stat()
    except OSError:  # it is made later
        return
    if status.st_mode & stat.S_IWOTH:
        raise InputError(
            f"EARLYBIRD_HOME is {path}, in which every user may put programs; run chmod o-w on it, or give "
            "another folder"
        )
    if parent.st_mode & stat.S_IWOTH and status.st_uid not in (os.geteuid(), 0):
        raise InputError(
            f"EARLYBIRD_HOME is {path}, which another user has made where everyone may; give a folder of "
            "your own"
        )
