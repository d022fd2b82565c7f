"""The command that continues a run, with the options that a run folder does not determine."""

import re
from collections.abc import Mapping
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
    """Return whether `NAME=VALUE` can only change how messages are sent."""
    return bool(_TUNING.fullmatch(setting)) and not _OF_FILES.search(setting)


def resume_command(run: Run) -> str:
    """Return the command that continues `run`, with all options that its folder does not determine."""
    command, folder = ["measure" if _is_measured(run) else "replay"], run.path
    if paper := _settings(run).get("reproduce"):
        # Of a paper's folder, which has one for each MPI, with those of the steps.
        command, folder = ["reproduce", str(paper)], run.path.parent.parent
    return command_text(["earlybird", *command, "--resume", *stated_again(run), "-o", no_option(folder)])


def stated_again(run: Run) -> list[str]:
    """Return the arguments that state the options that the folder of `run` does not determine."""
    settings = _settings(run)
    mpi = settings.get("mpi")
    mpis = [name for name in (mpi if isinstance(mpi, list) else [mpi]) if isinstance(name, str)]
    stated = options_of(mpis, has_env=_is_measured(run)) if any(map(_is_stated_again, mpis)) else []
    for name in STATED_AGAIN:
        if settings.get(name) is not None:
            stated += [f"--{name}", str(settings[name])]
    return stated


def _is_measured(run: Run) -> bool:
    return not _settings(run).keys().isdisjoint(("suites", "reproduce"))


def _settings(run: Run) -> Mapping[str, Any]:
    settings = run.header.get("settings")
    return settings if isinstance(settings, dict) else {}


def _is_stated_again(mpi: str) -> bool:
    name, settings = split_settings(mpi)
    return not name.isalpha() or not all(is_tuning(f"{key}={value}") for key, value in settings.items())
