"""Which MPI a command without `--mpi`, or with it, is about."""

import os

from earlybird.data.errors import InputError
from earlybird.launch import interpose
from earlybird.machine import flavours
from earlybird.toolchain.build import is_built


def choose_flavour(name: str | None) -> flavours.Flavour:
    """The flavour called `name`, or the one of an `exec` around this, or the first one that is built."""
    name = name or os.environ.get(interpose.FLAVOUR)
    if name is not None:
        return flavours.find_flavour(name)
    for flavour in flavours.present_flavours():
        if is_built(flavour):
            return flavour
    raise InputError(
        "no MPI is built yet; run `earlybird build --mpi mpich` (or openmpi, intel, system) first, or name "
        "one that was built by its path with --mpi /path/to/mpicc"
    )
