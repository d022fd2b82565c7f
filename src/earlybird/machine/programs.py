"""What an executable file is to an MPI: which libmpi it needs, or that it is static."""

import os
from collections import namedtuple
from collections.abc import Iterable, Mapping
from pathlib import Path

from earlybird.machine.elf import defines, read_elf

_ANSWER_LIMIT_S = 20.0
# The library that programs of each family need. MPICH's and Intel's are one ABI.
SONAMES = {"mpich": "libmpi.so.12", "intel": "libmpi.so.12", "openmpi": "libmpi.so.40"}
ABI = {"mpich": "mpich", "intel": "mpich", "openmpi": "openmpi"}
# Cray names its libraries after a compiler and the version of that: libmpi_gnu_91.so.12.
_CRAY_COMPILERS = ("amd", "aocc", "cray", "crayclang", "gnu", "intel", "nvidia", "pgi")
# Whose soname libmpi.so.NUMBER is. 0 and 1 are Open MPI's first ones, which Fujitsu and Bull go on using; 4
# was Intel's before all MPICHs agreed on 12.
_NUMBERS = {"0": "openmpi", "1": "openmpi", "4": "mpich", "12": "mpich"} | dict.fromkeys(
    ("20", "40", "80"), "openmpi"
)
# What C and C++ programs are linked with anyway, and shells: none of it brings an MPI along.
_SYSTEM = ("c", "m", "dl", "rt", "pthread", "util", "gcc_s", "stdc++", "z", "tinfo", "selinux")
_NAMES = {"mpich": "MPICH or Intel MPI", "openmpi": "Open MPI", "standard": "the MPI standard's own ABI"}


class Program(namedtuple("Program", "path static libmpi has_mpi")):
    """An ELF executable.

    Attributes
    ----------
    static : it has no dynamic loader, so nothing can be preloaded.
    libmpi : the soname of the MPI library it needs, itself or through another library; None without any.
    has_mpi : MPI_Init is part of it, that is, an MPI was linked in statically.
    """

    @property
    def abi(self) -> str | None:
        """The ABI: `mpich` (also of Intel, Cray and MVAPICH), `openmpi` or `standard`; None if unknown from
        the name."""
        return abi_of_library(self.libmpi or "")

    @property
    def built_against(self) -> str | None:
        """The display name of the MPI of `libmpi`; None for an unknown name."""
        if is_cray_mpich(self.libmpi or ""):
            return "Cray MPICH"
        return _NAMES.get(self.abi or "")

    def suits(self, family: str, serves_standard: bool = False) -> bool:
        """Return whether it may be of the MPI `family`; a name that does not identify an MPI suits all. A
        program of the MPI standard's own ABI suits an MPI that `serves_standard`.

        Open MPI 2 (20) is known to differ from 3 to 5 (40). For other numbers of one ABI, libearlybird itself
        checks when the program starts.
        """
        if self.abi is None:
            return True
        if self.abi == "standard":
            return serves_standard
        if self.libmpi in ("libmpi.so.20", "libmpi.so.80"):
            return self.libmpi == SONAMES[family]
        return self.abi == ABI[family]


def _parts(soname: str) -> tuple[str, str, str]:
    """Return libmpi, gnu, 12 for libmpi_gnu_91.so.12.5; empty texts for a name that is not an MPI
    library's."""
    stem, _, numbers = soname.partition(".so")
    name, _, vendor = stem.partition("_")
    vendor, *version = vendor.split("_")
    dot, *numbers = numbers.split(".")
    if (
        name not in ("libmpi", "libmpich")
        or vendor not in ("", "abi", "ibm", "mt", *_CRAY_COMPILERS)
        or dot
        or not all(part.isdigit() for part in (*version, *numbers))
    ):
        return "", "", ""  # libmpiP, libmpitrace and libmpi_trace are profilers
    return name, vendor, numbers[0] if numbers else ""


def abi_of_library(soname: str) -> str | None:
    """Return the ABI whose handles programs that need `soname` have: `mpich`, `openmpi`, `standard`, or
    None."""
    name, vendor, number = _parts(soname)
    if vendor in ("abi", "ibm"):
        return {"abi": "standard", "ibm": "openmpi"}[vendor]
    if name == "libmpich" or vendor in _CRAY_COMPILERS:
        return "mpich"
    return _NUMBERS.get(number)


def is_libmpi(soname: str) -> bool:
    """Return whether a library of that name is an MPI's."""
    return _parts(soname)[0] != ""


def is_cray_mpich(soname: str) -> bool:
    """Return whether a library of that name is Cray MPICH's."""
    return _parts(soname)[1] in _CRAY_COMPILERS


def _is_system(soname: str) -> bool:
    name = soname.partition(".so")[0]
    return name.removeprefix("lib") in _SYSTEM or name.startswith("ld-linux")


def read_program(path: Path, environment: Mapping[str, str]) -> Program | None:
    """Return the properties of `path` as the dynamic loader would see it in `environment`; None for anything
    but an ELF executable, such as a script or a shared library."""
    elf = read_elf(path)
    if elf is None:
        return None
    libmpi = _libmpi_of(elf.needs)
    if libmpi is None and elf.interpreter is not None and not all(map(_is_system, elf.needs)):
        libmpi = _libmpi_of(_all_needs(elf.interpreter, path, environment))
    # Most programs are not read as a whole: one that needs an MPI has none inside.
    has_mpi = libmpi is None and defines(path, "MPI_Init")
    return Program(path, elf.interpreter is None, libmpi, has_mpi)


def loaded_libraries(path: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the names of all libraries that an executable loads, itself and through others; empty for
    anything else."""
    elf = read_elf(path)
    return [] if elf is None or elf.interpreter is None else _all_needs(elf.interpreter, path, environment)


def _libmpi_of(names: Iterable[str]) -> str | None:
    return next(filter(is_libmpi, names), None)


def _all_needs(interpreter: str, path: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the sonames that loading `path` loads: a program may use MPI only through another library."""
    import subprocess

    try:
        output = subprocess.run(
            [interpreter, "--list", os.path.abspath(path)],
            env={name: value for name, value in environment.items() if name != "LD_PRELOAD"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_LIMIT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.split()[0] for line in output.splitlines() if line.split()]
