"""`earlybird exec`: run a command in the environment of an MPI, with libearlybird in its ranks."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.options.shared import MpiOption
from earlybird.cli.options.watching import StopOption, StuckOption, SynchronousOption
from earlybird.data.errors import InputError
from earlybird.launch.execution import Request, start
from earlybird.present.render.notes import note


def exec_(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND", help="Command to run, after the options of exec; -- may precede it."
        ),
    ] = None,
    mpi: MpiOption = None,
    no_interpose: Annotated[
        bool, typer.Option("--no-interpose", help="Do not preload libearlybird.")
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="Fitted profile from which libearlybird takes message costs."),
    ] = None,
    lanes: Annotated[
        int | None,
        typer.Option(
            "--lanes",
            metavar="N",
            help="Number of communicators on which the threads of a rank send partitions at the same time, 1 "
            "to 16; MPICH only.",
        ),
    ] = None,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="First remove what libearlybird has kept for this MPI on this machine; needs no COMMAND.",
        ),
    ] = False,
    stuck: StuckOption = None,
    stop: StopOption = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Folder that --stuck needs, for `earlybird where`; kept if the ranks were stuck.",
            metavar="REC",
        ),
    ] = None,
    synchronous: SynchronousOption = False,
) -> int | None:
    """Run a command with mpicc, mpiexec and the environment of one MPI, and with libearlybird in its ranks.

    The library is preloaded in the processes that mpiexec, srun or another launcher starts on any node, and
    in an MPI program started without a launcher, but not in launchers, their daemons or shells. A static
    program, or one linked to another MPI, is started without the library if it is among the arguments, and a
    message says so.

    With --stuck this process stays as the parent of the command, whose exit status is its own.
    """
    if not command and not forget:
        raise InputError("exec has no command; give one, such as `mpiexec -n 2 ./app`, or --forget")
    request = Request(command or [], mpi, no_interpose, profile, lanes=lanes, forgets=forget)
    if stuck is None and (stop or output is not None):
        option, example = ("--stop", "--stuck 60s --stop -o rec") if stop else ("-o", "--stuck 60s -o rec")
        raise InputError(f"{option} is for --stuck; give both, such as {example}")
    if stuck is None and not synchronous:
        start(request, note)
    if not command:
        raise InputError("--stuck and --synchronous need a command, such as `mpiexec -n 2 ./app`")
    from earlybird.cli.session.watched import run_synchronous, run_watched

    if stuck is None:
        run_synchronous(request)
    if output is None:
        raise InputError("--stuck needs a folder, as in: exec --stuck 60s -o rec -- mpiexec -n 8 ./app")
    return run_watched(request, output, stuck, may_stop=stop, is_synchronous=synchronous)


command = make_command(exec_, name="exec", example="earlybird exec --mpi mpich -- mpiexec -n 2 ./app")
command.allow_interspersed_args = False  # what follows the first argument belongs to the command
