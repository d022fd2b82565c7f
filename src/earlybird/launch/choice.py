"""Selects the MPI of a command, with or without `--mpi`."""

import contextlib
import os
from collections.abc import Callable, Iterator

from earlybird.data.errors import InputError
from earlybird.launch import interpose
from earlybird.machine import flavours
from earlybird.toolchain.build import is_built, names_of_builds


def simulated_flavour(name: str | None) -> flavours.Flavour:
    """Return SimGrid, or the flavour `name`, which must be a SimGrid; raise InputError if there is none."""
    flavour = flavours.find_flavour(name or flavours.SIMULATED)
    if flavour.family != flavours.SIMULATED:
        raise InputError(
            f"--mpi is {name}, but the launcher simgrid runs SimGrid's MPI; omit --mpi, or give the path "
            "of a smpicc"
        )
    return flavour


def built_flavours() -> Iterator[flavours.Flavour]:
    """Yield the MPIs for which the native code is built: named ones, then the others in the order of PATH."""
    yield from filter(is_built, flavours.present_flavours())
    # The builds say of which MPIs they are: a search of the machine takes too long at the start of each job.
    for name in names_of_builds():
        if os.sep in name:
            with contextlib.suppress(InputError):  # such as one that is no longer installed
                flavour = flavours.find_flavour(name)
                if flavour.family != flavours.SIMULATED and is_built(flavour):
                    yield flavour


def choose_flavour(name: str | None, note: Callable[[str], None] | None = None) -> flavours.Flavour:
    """Return the flavour `name`, otherwise the flavour of an enclosing `exec`, otherwise the first flavour
    that is built.

    `note` gets a warning on the installation.
    """
    name = name or os.environ.get(interpose.FLAVOUR)
    flavour = next(built_flavours(), None) if name is None else flavours.find_flavour(name)
    if flavour is not None and flavour.family == flavours.SIMULATED:
        raise InputError(
            f"the MPI flavour {name} runs simulated ranks only; give --launcher simgrid:2x2x64, for "
            "example, or another --mpi"
        )
    if flavour is not None:
        if note is not None and flavour.warning is not None:
            note(f"warning: {flavour.warning}")
        return flavour
    raise InputError(
        "no MPI is built yet; run `earlybird build --mpi mpich` (or openmpi, intel, system) first, or give "
        "the path of one that is built with --mpi /path/to/mpicc"
    )
