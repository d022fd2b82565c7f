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

# Less than for an MPI that is to be used: nobody waits for the slowest of all.
ANSWER_LIMIT_S = 5.0
_AT_A_TIME = 16

# A compiler of an MPI that cannot be used, and why.
Unusable = namedtuple("Unusable", "mpicc cause")


def find_mpis(known: list[Flavour]) -> tuple[list[Flavour], list[Unusable]]:
    """Return the MPIs of this machine that are not in `known`, each once, and the compilers of unusable
    ones."""
    from concurrent.futures import ThreadPoolExecutor

    seen = {_identity(flavour) for flavour in known}
    compilers: dict[str, Path] = {}
    for path in _compilers():
        compilers.setdefault(os.path.realpath(path), path)
    for flavour in known:
        compilers.pop(os.path.realpath(flavour.mpicc), None)
    flavours, unusable = [], []
    # They wait for the programs that they start.
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        results = list(pool.map(_described, compilers.values()))
    for result in results:
        if isinstance(result, Unusable):
            unusable.append(result)
        elif _identity(result) not in seen:
            seen.add(_identity(result))
            flavours.append(result)
    return flavours, unusable


def _described(mpicc: Path) -> Flavour | Unusable:
    try:
        return find_flavour(str(mpicc), ANSWER_LIMIT_S)
    except InputError as error:
        return Unusable(mpicc, str(error))


def same_mpi(first: Flavour, second: Flavour) -> bool:
    """Return whether both are compilers of one MPI."""
    return _identity(first) == _identity(second)


def _identity(flavour: Flavour) -> tuple[str, ...]:
    """Return what two compilers of one MPI share, such as Intel's mpicc and mpiicx."""
    is_sites = flavour.mpiexec.name in SITE_LAUNCHERS
    own = flavour.mpicc.parent if is_sites else flavour.mpiexec
    return flavour.family, flavour.version, os.path.realpath(own)


def _compilers() -> list[Path]:
    """Return the C compilers in every folder that may have one: first those with their own names, because the
    target of a link of the alternatives system may change."""
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
