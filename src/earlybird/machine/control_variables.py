"""The names of an MPI's control variables, which are in its library, so that no program has to be started."""

import functools
import re
from pathlib import Path

from earlybird.data import files
from earlybird.machine.flavours import Flavour

# As a user sets them; those of Intel MPI, which is made of MPICH, are of both kinds.
PREFIX = "MPIR_CVAR_"
_NAME = re.compile(rb"(?<=\0)MPIR_CVAR_[A-Z0-9_]+(?=\0)")
_LIBRARIES = ("lib*/libmpi.so*", "lib*/release/libmpi.so*", "lib*/libmpich.so*")


def control_variables(mpi: Flavour) -> frozenset[str] | None:
    """Return the names of the variables MPIR_CVAR_ that the MPI knows, none for Open MPI; None if its library
    is not in the installation of its compiler."""
    if mpi.family == "openmpi":
        return frozenset()
    return _names_in(mpi.mpicc.resolve().parent.parent)


@functools.cache
def _names_in(folder: Path) -> frozenset[str] | None:
    libraries = {path.resolve() for pattern in _LIBRARIES for path in folder.glob(pattern) if path.is_file()}
    for library in sorted(libraries):
        names = _NAME.findall(files.read_bytes(library, "library", memory_per_byte=1))
        if names:
            return frozenset(name.decode() for name in names)
    return None
