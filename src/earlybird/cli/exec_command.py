"""`earlybird exec`: run a command in an MPI flavour's environment, with libearlybird in its ranks."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.common import make_command
from earlybird.cli.exec_start import Request, start
from earlybird.cli.options import MpiOption


def exec_(
    words: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="What to run, after our own options; -- may stand before it."),
    ],
    mpi: MpiOption = None,
    no_interpose: Annotated[
        bool, typer.Option("--no-interpose", help="Do not preload libearlybird.")
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="A fitted profile: libearlybird takes its message costs from it."),
    ] = None,
) -> None:
    """Run a command where mpicc, mpiexec and the environment are one MPI's, with libearlybird in the ranks.

    The library is preloaded in the processes that mpiexec, srun or another launcher start on any node, and
    in an MPI program started without them: not in launchers, their daemons or shells. A static program, or
    one of another MPI, runs on the MPI alone, and a sentence says so.
    """
    start(Request(words, mpi, no_interpose, profile))


command = make_command(exec_, name="exec", example="earlybird exec --mpi mpich -- mpiexec -n 2 ./app")
command.allow_interspersed_args = False  # what follows the first word is the command's own
