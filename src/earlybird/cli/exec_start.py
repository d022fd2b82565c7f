"""What `earlybird exec` does, and how it reads its options, with as few imports as that takes.

Every job pays for the start of `exec`, so it does not wait for the parser of all commands.
"""

import os
from collections import namedtuple
from pathlib import Path

from earlybird.cli.chosen_mpi import choose_flavour
from earlybird.cli.notes import note
from earlybird.data.errors import InputError
from earlybird.launch import interpose, reach
from earlybird.machine.commands import find_command
from earlybird.machine.flavours import Flavour
from earlybird.toolchain.build import ABI_LIBRARY, library_path

# What was asked of `exec`: the words of a command, the name of an MPI or None, whether to leave libearlybird
# out, the path of a profile or None.
Request = namedtuple("Request", "words mpi no_interpose profile", defaults=[None, False, None])


def parse(arguments: list[str]) -> Request | None:
    """The request in the arguments of `exec`; None for whatever needs the parser of all commands to answer,
    such as --help or a mistake."""
    mpi, no_interpose, profile = None, False, None
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--" and not equals:
            break
        if name == "--no-interpose" and not equals:
            no_interpose = True
            continue
        if name not in ("--mpi", "--profile") or not (equals or rest):
            return None
        value = value if equals else rest.pop(0)
        if name == "--mpi":
            mpi = value
        else:
            profile = Path(value)
    return Request(rest, mpi, no_interpose, profile) if rest else None


def start(request: Request) -> None:
    """Become the command of `request`; returns only by an error, which is InputError."""
    words = request.words
    flavour = choose_flavour(request.mpi)
    environment = interpose.without(flavour.environment())
    program = find_command(words[0], environment["PATH"])
    if program is None:
        raise InputError(f"the command {words[0]!r} is neither on PATH nor a file; check its name")
    if request.profile is not None:
        if request.no_interpose:
            raise InputError(
                "--profile is for libearlybird, which --no-interpose leaves out; give one of them"
            )
        environment["EARLYBIRD_COSTS"] = _costs(request.profile, flavour)
    if not request.no_interpose:
        program, words, environment = _interposed(program, words, flavour, environment)
    try:
        os.execve(program, words, environment)
    except OSError as error:
        raise InputError(
            f"{program} cannot be run ({error.strerror}); a script needs a first line such as #!/bin/sh"
        ) from error


def _interposed(
    program: str, words: list[str], flavour: Flavour, environment: dict[str, str]
) -> tuple[str, list[str], dict[str, str]]:
    """What to start instead so that ranks get the library; says why they do not, or where it is of no use."""
    library = library_path(flavour)
    if not library.exists():
        note(
            f"earlybird: libearlybird is not built for {flavour.name}, which runs alone; run "
            f"`earlybird build --mpi {flavour.name}`"
        )
        return program, words, environment
    found = reach.look(words, flavour, environment, library.with_name(ABI_LIBRARY).exists())
    for sentence in found.sentences:
        note(f"earlybird: {sentence}")
    if found.alone:
        return program, words, environment
    (program, *rest), environment = interpose.wrap(
        [program, *words[1:]], flavour, environment, found, library
    )
    return program, [words[0], *rest], environment


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
