"""Selects the MPI of a command, with or without `--mpi`."""

import os
from collections.abc import Iterator

from earlybird.data.errors import InputError
from earlybird.launch import interpose
from earlybird.machine import flavours
from earlybird.toolchain.build import is_built


def simulated_flavour(name: str | None) -> flavours.Flavour:
    """SimGrid, or the flavour `name`, which must be a SimGrid; InputError if there is none."""
    flavour = flavours.find_flavour(name or flavours.SIMULATED)
    if flavour.family != flavours.SIMULATED:
        raise InputError(
            f"--mpi is {name}, but the launcher simgrid runs SimGrid's MPI; omit --mpi, or give the path "
            "of a smpicc"
        )
    return flavour


def built_flavours() -> Iterator[flavours.Flavour]:
    """The MPIs for which the native code is built: the named ones, then the others of this machine."""
    present = flavours.present_flavours()
    yield from filter(is_built, present)
    # Only where none of the named ones is taken: finding all takes as long as starting each.
    from earlybird.machine.discovery import find_mpis

    yield from filter(is_built, find_mpis(present)[0])


def choose_flavour(name: str | None) -> flavours.Flavour:
    """The flavour `name`, else the flavour of an enclosing `exec`, else the first one that is built."""
    name = name or os.environ.get(interpose.FLAVOUR)
    if name is not None:
        flavour = flavours.find_flavour(name)
        if flavour.family == flavours.SIMULATED:
            raise InputError(
                f"the MPI flavour {name} runs simulated ranks only; give --launcher simgrid:2x2x64, for "
                "example, or another --mpi"
            )
        return flavour
    flavour = next(built_flavours(), None)
    if flavour is not None:
        return flavour
    raise InputError(
        "no MPI is built yet; run `earlybird build --mpi mpich` (or openmpi, intel, system) first, or give "
        "the path of one that is built with --mpi /path/to/mpicc"
    )
