"""Finds the MPIs of a machine: on PATH, where distributions and vendors put them, and of loaded modules."""

import glob
import os
import re
from collections import namedtuple
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.machine.commands import is_executable, path_folders
from earlybird.machine.compilers import SITE_LAUNCHERS, is_compiler_name
from earlybird.machine.flavours import Flavour, find_flavour

# Where MPIs are that are not on PATH before a module is loaded.
PLACES = (
    "/usr/bin",
    "/usr/local/bin",
    "/usr/lib*/*mpi*/bin",  # Fedora: /usr/lib64/openmpi/bin
    "/usr/lib*/mvapich*/bin",
    "/usr/lib/*/*mpi*/bin",
    "/usr/lib*/mpi/gcc/*/bin",  # openSUSE
    "/usr/local/*mpi*/bin",
    "/opt/*mpi*/bin",
    "/opt/*mpi*/*/bin",
    "/opt/mvapich*/bin",
    "/opt/intel/oneapi/mpi/*/bin",
    "/opt/hpcx*/ompi/bin",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/mpi/bin",
    "/opt/cray/pe/mpich/*/*/*/*/bin",
)
# What modules call the folder of an MPI: MPI_HOME, I_MPI_ROOT, OPENMPI_DIR, CRAY_MPICH_DIR, EBROOTOPENMPI.
_VARIABLE = re.compile(
    r"(?:\w*_)?\w*(?:MPI|MPICH|MVAPICH2?)_(?:HOME|ROOT|DIR|PREFIX|PATH|BIN)|EBROOT\w*MPI\w*"
)
_BELOW = ("", "bin", "intel64/bin")

# A compiler of an MPI that cannot be used, and why.
Unusable = namedtuple("Unusable", "mpicc cause")


def find_mpis(known: list[Flavour]) -> tuple[list[Flavour], list[Unusable]]:
    """The MPIs of this machine that are none of `known`, each once, and the compilers of unusable ones."""
    seen = {_identity(flavour) for flavour in known}
    compilers = {os.path.realpath(flavour.mpicc) for flavour in known}
    flavours, unusable = [], []
    for path in _compilers():
        if os.path.realpath(path) in compilers:
            continue
        compilers.add(os.path.realpath(path))
        try:
            flavour = find_flavour(str(path))
        except InputError as error:
            unusable.append(Unusable(path, str(error)))
            continue
        if _identity(flavour) not in seen:
            seen.add(_identity(flavour))
            flavours.append(flavour)
    return flavours, unusable


def same_mpi(first: Flavour, second: Flavour) -> bool:
    """Whether both are compilers of one MPI."""
    return _identity(first) == _identity(second)


def _identity(flavour: Flavour) -> tuple[str, ...]:
    """What two compilers of one MPI share, such as Intel's mpicc and mpiicx."""
    is_sites = flavour.mpiexec.name in SITE_LAUNCHERS
    own = flavour.mpicc.parent if is_sites else flavour.mpiexec
    return flavour.family, flavour.version, os.path.realpath(own)


def _compilers() -> list[Path]:
    """The compilers of C in every folder that may have one: first those of their own names, because what a
    link of the alternatives system means may change."""
    folders = [*path_folders(), *(folder for place in PLACES for folder in sorted(glob.glob(place)))]
    for name, value in sorted(os.environ.items()):
        if _VARIABLE.fullmatch(name) and os.path.isabs(value):
            folders += [os.path.join(value, below) for below in _BELOW]
    paths = []
    for folder in dict.fromkeys(folders):
        try:
            names = filter(is_compiler_name, os.listdir(folder))
        except OSError:
            continue
        paths += [Path(folder, name).absolute() for name in sorted(names, key=lambda name: (len(name), name))]
    usable = [path for path in dict.fromkeys(paths) if is_executable(str(path))]
    return sorted(usable, key=lambda path: path.is_symlink() and "alternatives" in os.readlink(path))
