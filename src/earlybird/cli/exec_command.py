"""`earlybird exec`: run a command in an MPI flavour's environment; its exit status is ours."""

import os
import shutil
from typing import Annotated

import typer

from earlybird.cli.common import make_command, note
from earlybird.cli.launchers import choose_flavour
from earlybird.cli.options import MpiOption
from earlybird.data.errors import InputError


def exec_(
    words: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="What to run, after --.")],
    mpi: MpiOption = None,
    no_interpose: Annotated[
        bool, typer.Option("--no-interpose", help="The MPI alone, and no word about it.")
    ] = False,
) -> None:
    """Run a command where mpicc, mpiexec and the environment are one MPI's.

    This version runs the MPI alone: the partitioned layer that will be put between is not part of it yet.
    """
    flavour = choose_flavour(mpi)
    environment = flavour.environment()
    program = shutil.which(words[0], path=environment["PATH"])
    if program is None:
        raise InputError(f"the command {words[0]!r} is neither on PATH nor a file; check its name")
    if not no_interpose:
        note(f"earlybird: {flavour.name} {flavour.version} alone; nothing is interposed in this version")
    try:
        os.execve(program, words, environment)
    except OSError as error:
        raise InputError(
            f"{program} cannot be run ({error.strerror}); a script needs a first line such as #!/bin/sh"
        ) from error


command = make_command(exec_, name="exec", example="earlybird exec --mpi mpich -- mpicc hello.c -o hello")
