"""Which MPI a command without `--mpi`, or with it, is about."""

import os

from earlybird.data.errors import InputError
from earlybird.launch import interpose
from earlybird.machine import flavours
from earlybird.toolchain.build import is_built


def simulated_flavour(name: str | None) -> flavours.Flavour:
    """SimGrid, or the flavour called `name`, which must be one; InputError where none is here."""
    flavour = flavours.find_flavour(name or flavours.SIMULATED)
    if flavour.family != flavours.SIMULATED:
        raise InputError(
            f"--mpi is {name} and the launcher simgrid simulates SimGrid's MPI; leave --mpi out, or give the "
            "path of a smpicc"
        )
    return flavour


def choose_flavour(name: str | None) -> flavours.Flavour:
    """The flavour called `name`, or the one of an `exec` around this, or the first one that is built."""
    name = name or os.environ.get(interpose.FLAVOUR)
    if name is not None:
        flavour = flavours.find_flavour(name)
        if flavour.family == flavours.SIMULATED:
            raise InputError(
                f"the MPI flavour {name} has simulated ranks alone; give --launcher simgrid:2x2x64, say, to "
                "measure these, or another --mpi"
            )
        return flavour
    for flavour in flavours.present_flavours():
        if is_built(flavour):
            return flavour
    raise InputError(
        "no MPI is built yet; run `earlybird build --mpi mpich` (or openmpi, intel, system) first, or name "
        "one that was built by its path with --mpi /path/to/mpicc"
    )
