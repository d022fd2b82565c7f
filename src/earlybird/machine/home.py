"""Where installed MPI flavours and native builds are kept."""

import os
import sys
from pathlib import Path


def home() -> Path:
    """`$EARLYBIRD_HOME`; else inside the active virtual environment, so that deleting it deletes everything;
    else the user's data folder."""
    given = os.environ.get("EARLYBIRD_HOME")
    if given:
        return Path(given).expanduser().resolve()
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "share" / "earlybird"
    return Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "earlybird"
