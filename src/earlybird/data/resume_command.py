"""The command that continues a run, with what a run folder, which may come from others, does not choose."""

import os
import re
from collections.abc import Mapping
from typing import Any

from earlybird.data.mpi_settings import listed_mpis, options_of, split_settings
from earlybird.data.run import Run
from earlybird.data.shell_commands import command_text, no_option

# Settings that a run does not choose, which are options of the same names; paths of MPIs and most of their
# variables are others.
NOT_CHOSEN = ("hosts", "agent", "srun")

# Variables that can only change how messages are sent: whole numbers of an MPI's own parameters. A number
# names neither a program nor a library, unless it were a file of such a name.
_TUNING = re.compile(
    r"(MPIR_CVAR_\w+|OMPI_MCA_(btl|coll|osc|pml)_\w+|I_MPI_ADJUST_\w+|UCX_\w+_THRESH)=[0-9]{1,9}"
    r"|OMP_NUM_THREADS=[0-9]{1,4}"
)
_OTHER = re.compile(
    r"FILE|PATH|DIR|LIB|TOOL|EXEC|AGENT|CMD|COMMAND|PROVIDER"  # what such a number might name
    r"|DEBUG|HOLD|HOOK|ABORT|NOLOCAL",  # what keeps a job from running, or moves it
    re.IGNORECASE,
)


def untrusted_variables(mpi: str) -> set[str]:
    """Return the variables of an MPI, `NAME=VALUE` each, that a run does not choose."""
    variables = (f"{name}={value}" for name, value in split_settings(mpi)[1].items())
    return {text for text in variables if not _TUNING.fullmatch(text) or _OTHER.search(text)}


def stated_again(settings: Mapping[str, Any]) -> list[str]:
    """Return the options with which a run with these settings is continued, besides --resume and -o."""
    mpis = listed_mpis(settings.get("mpi"))
    options: list[str] = []
    if any(os.sep in mpi or untrusted_variables(mpi) for mpi in mpis):
        options += options_of(mpis, has_env=_is_measured(settings))
    for name in NOT_CHOSEN:
        if settings.get(name) is not None:
            options += [f"--{name}", str(settings[name])]
    return options


def resume_command(run: Run) -> str:
    """Return the command line that continues `run`."""
    settings = run.header.get("settings") or {}
    command = "measure" if _is_measured(settings) else "replay"
    return command_text(
        ["earlybird", command, "--resume", *stated_again(settings), "-o", no_option(run.path)]
    )


def _is_measured(settings: Mapping[str, Any]) -> bool:
    return "suites" in settings
