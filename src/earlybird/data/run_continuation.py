"""What continues a run: the command, with the options that a run folder does not choose."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data.mpi_settings import options_of, split_settings
from earlybird.data.run import Run
from earlybird.data.shell_commands import command_text, no_option

# Options by which programs and hosts are chosen: the command line states them again, as a run folder may come
# from others. So it does with MPIs by paths and with variables that are not tuning alone.
STATED_AGAIN = ("hosts", "agent", "srun")

# Settings that can only change how messages are sent: whole numbers of an MPI's own parameters. A number
# names neither a program nor a library, unless it were a file of such a name; as many threads as a machine
# can have.
_TUNING = re.compile(
    r"(MPIR_CVAR_\w+|OMPI_MCA_(btl|coll|osc|pml)_\w+|I_MPI_ADJUST_\w+|UCX_\w+_THRESH)=[0-9]{1,9}"
    r"|OMP_NUM_THREADS=[0-9]{1,4}"
)
# Parameters that name files and programs, or that stop or end a job.
_OF_FILES = re.compile(
    r"FILE|PATH|DIR|LIB|TOOL|EXEC|AGENT|CMD|COMMAND|PROVIDER|DEBUG|HOOK|ABORT|NOLOCAL", re.IGNORECASE
)


def is_tuning(setting: str) -> bool:
    """Tell whether `NAME=VALUE` can only change how messages are sent."""
    return bool(_TUNING.fullmatch(setting)) and not _OF_FILES.search(setting)


def resume_command(run: Run) -> str:
    """Return the command that continues `run`, with all that its folder does not choose."""
    settings = run.header.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    command = "measure" if "suites" in settings else "replay"
    stated = stated_again(settings, has_env=command == "measure")
    return command_text(["earlybird", command, "--resume", *stated, "-o", no_option(run.path)])


def stated_again(settings: Mapping[str, Any], *, has_env: bool = True) -> list[str]:
    """Return the arguments that state what a run with these settings does not choose."""
    mpi = settings.get("mpi")
    mpis: Sequence[str] = [mpi] if isinstance(mpi, str) else mpi if isinstance(mpi, list) else []
    stated = options_of(mpis, has_env=has_env) if any(map(_is_stated_again, mpis)) else []
    for name in STATED_AGAIN:
        if settings.get(name) is not None:
            stated += [f"--{name}", str(settings[name])]
    return stated


def _is_stated_again(mpi: str) -> bool:
    name, settings = split_settings(mpi)
    return os.sep in name or not all(is_tuning(f"{key}={value}") for key, value in settings.items())
