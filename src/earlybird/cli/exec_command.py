"""`earlybird exec`: run a command in an MPI flavour's environment, with libearlybird in its ranks."""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.chosen_mpi import choose_flavour
from earlybird.cli.common import make_command, note
from earlybird.cli.options import MpiOption
from earlybird.data.errors import InputError
from earlybird.launch import interpose
from earlybird.machine.flavours import Flavour
from earlybird.toolchain.build import has_library


def exec_(
    words: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="What to run, after our own options; -- may stand before it."),
    ],
    mpi: MpiOption = None,
    no_interpose: Annotated[
        bool, typer.Option("--no-interpose", help="The MPI alone, and no word about it.")
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="A fitted profile: libearlybird takes its message costs from it."),
    ] = None,
) -> None:
    """Run a command where mpicc, mpiexec and the environment are one MPI's, with libearlybird in the ranks.

    The library is preloaded in the processes that mpiexec or srun start on any node, and in an MPI
    program started without them: not in launchers, their daemons or shells. A static program, or one
    of another MPI, runs on the MPI alone, and a sentence says so.
    """
    flavour = choose_flavour(mpi)
    environment = interpose.without(flavour.environment())
    program = shutil.which(words[0], path=environment["PATH"])
    if program is None:
        raise InputError(f"the command {words[0]!r} is neither on PATH nor a file; check its name")
    if profile is not None:
        if no_interpose:
            raise InputError(
                "--profile is for libearlybird, which --no-interpose leaves out; give one of them"
            )
        environment["EARLYBIRD_COSTS"] = _costs(profile, flavour)
    if not no_interpose and _can_interpose(words, flavour, environment):
        (program, *rest), environment = interpose.wrap([program, *words[1:]], flavour, environment)
        words = [words[0], *rest]
    try:
        os.execve(program, words, environment)
    except OSError as error:
        raise InputError(
            f"{program} cannot be run ({error.strerror}); a script needs a first line such as #!/bin/sh"
        ) from error


def _can_interpose(words: list[str], flavour: Flavour, environment: dict[str, str]) -> bool:
    """Whether the ranks are to get the library; says why not, or where it will be of no use."""
    if not has_library(flavour):
        note(
            f"earlybird: libearlybird is not built for {flavour.name}, which runs alone; run "
            f"`earlybird build --mpi {flavour.name}`"
        )
        return False
    remark = interpose.remark(words, flavour, environment)
    if remark is not None:
        note(f"earlybird: {remark.sentence}")
    return remark is None or not remark.alone


def _costs(path: Path, flavour: Flavour) -> str:
    """The value of EARLYBIRD_COSTS; says what was taken for a message's overhead."""
    from earlybird.data.message_costs import costs_of_profile
    from earlybird.data.profile import load_profile

    fitted = load_profile(path)
    whose = fitted.context.get("flavour", flavour.name)
    if whose != flavour.name:
        note(
            f"warning: the profile {path} is of {whose} and this is {flavour.name}; its costs are used anyway"
        )
    costs = costs_of_profile(fitted)
    note(f"earlybird: message costs of {path}: {costs.describe()}")
    return costs.to_text()


command = make_command(exec_, name="exec", example="earlybird exec --mpi mpich -- mpiexec -n 2 ./app")
command.allow_interspersed_args = False  # what follows the first word is the command's own
