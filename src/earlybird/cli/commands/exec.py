"""`earlybird exec`: run a command in the environment of an MPI, with libearlybird in its ranks."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.options.shared import MpiOption
from earlybird.launch.execution import Request, start
from earlybird.present.render.notes import note


def exec_(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND", help="Command to run, after the options of exec; -- may precede it."
        ),
    ],
    mpi: MpiOption = None,
    no_interpose: Annotated[
        bool, typer.Option("--no-interpose", help="Do not preload libearlybird.")
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="Fitted profile from which libearlybird takes message costs."),
    ] = None,
) -> None:
    """Run a command with mpicc, mpiexec and the environment of one MPI, and with libearlybird in its ranks.

    The library is preloaded in the processes that mpiexec, srun or another launcher starts on any node, and
    in an MPI program started without a launcher, but not in launchers, their daemons or shells. A static
    program, or one linked to another MPI, is started without the library if it is among the arguments, and a
    message says so.
    """
    start(Request(command, mpi, no_interpose, profile), note)


command = make_command(exec_, name="exec", example="earlybird exec --mpi mpich -- mpiexec -n 2 ./app")
command.allow_interspersed_args = False  # what follows the first argument belongs to the command
