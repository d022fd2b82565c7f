"""What an executable file is to an MPI: which libmpi it needs, or that it is static."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LIBMPI = re.compile(r"libmpi(?:ch|_cray|_intel)?\.so(?:\.(\d+))?$|libmpi_abi\.so")
_ANSWER_LIMIT_S = 20.0
_DF_1_PIE = 0x08000000
# The library that programs of each family need. MPICH's and Intel's are one ABI.
SONAMES = {"mpich": "libmpi.so.12", "intel": "libmpi.so.12", "openmpi": "libmpi.so.40"}


@dataclass(frozen=True)
class Program:
    """An ELF executable.

    Attributes
    ----------
    static : it has no dynamic loader, hence nothing can be preloaded.
    libmpi : the soname of the MPI library it needs, itself or through another library; None without any.
    has_mpi : MPI_Init is part of it, that is, an MPI was linked in statically.
    """

    path: Path
    static: bool
    libmpi: str | None
    has_mpi: bool

    @property
    def built_against(self) -> str | None:
        """Whose `libmpi` is, in words; None for a number that no MPI known here has."""
        if self.libmpi is None:
            return None
        if self.libmpi.startswith("libmpi_abi"):
            return "the MPI standard's own ABI"
        number = re.search(r"(\d+)$", self.libmpi)
        families = {"12": "MPICH or Intel MPI", "20": "Open MPI", "40": "Open MPI", "80": "Open MPI"}
        return families.get(number[1]) if number else None

    def suits(self, family: str) -> bool:
        """Whether it may be of the MPI `family`; what cannot be told from the name suits all."""
        number = SONAMES[family].rpartition(".")[2]
        return self.built_against is None or self.libmpi.endswith(f".so.{number}")


def read_program(path: Path, environment: Mapping[str, str]) -> Program | None:
    """What `path` is, as the dynamic loader would see it in `environment`; None for anything but an ELF
    executable, such as a script or a shared library."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with open(path, "rb") as stream:
            elf = ELFFile(stream)
            if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
                return None
            interpreter = next((part.get_interp_name() for part in elf.iter_segments("PT_INTERP")), None)
            tags = [tag for part in elf.iter_segments("PT_DYNAMIC") for tag in part.iter_tags()]
            if interpreter is None and elf["e_type"] == "ET_DYN" and not any(map(_is_program, tags)):
                return None
            needs = [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
            has_mpi = any(
                symbol.entry.st_shndx != "SHN_UNDEF"
                for section in map(elf.get_section_by_name, (".symtab", ".dynsym"))
                if section is not None
                for symbol in section.get_symbol_by_name("MPI_Init") or ()
            )
    except (ELFError, OSError):
        return None
    libmpi = _libmpi_of(needs)
    if libmpi is None and interpreter is not None:
        libmpi = _libmpi_of(_all_needs(interpreter, path, environment))
    return Program(path, interpreter is None, libmpi, has_mpi)


def _is_program(tag: Any) -> bool:
    """Whether an entry of PT_DYNAMIC tells a static program that may be loaded anywhere from a library."""
    return tag.entry.d_tag == "DT_FLAGS_1" and bool(tag.entry.d_val & _DF_1_PIE)


def _libmpi_of(names: list[str]) -> str | None:
    return next((name for name in names if _LIBMPI.match(name)), None)


def _all_needs(interpreter: str, path: Path, environment: Mapping[str, str]) -> list[str]:
    """The sonames that loading `path` brings along: a program may use MPI through another library alone."""
    try:
        told = subprocess.run(
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
    return [line.split()[0] for line in told.splitlines() if line.split()]
