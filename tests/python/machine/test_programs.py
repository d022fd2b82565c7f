"""Whose program it is that needs a library: names of MPIs as sites have them."""

from pathlib import Path

import pytest

from earlybird.machine.programs import Program, abi_of_library, is_libmpi

# The soname in the field, what it is of, and the ABI of programs that need it.
SONAMES = [
    ("libmpi.so.12", "MPICH 3.1 to 5, Intel MPI 5 and later, MVAPICH, ParaStation MPI", "mpich"),
    ("libmpi.so.12.5.2", "the same, linked by its full name", "mpich"),
    ("libmpich.so.12", "MPICH of Debian and Ubuntu", "mpich"),
    ("libmpich.so.10", "MPICH 3.0", "mpich"),
    ("libmpich.so.3", "MPICH2", "mpich"),
    ("libmpi.so.4", "Intel MPI 4", "mpich"),
    ("libmpi_mt.so.4", "Intel MPI 4 with threads", "mpich"),
    ("libmpi_cray.so.12", "Cray MPICH 8 for CCE", "mpich"),
    ("libmpi_gnu_82.so.12", "Cray MPICH 8 for GCC 8", "mpich"),
    ("libmpi_gnu_91.so.12", "Cray MPICH 8 for GCC 9 to 11", "mpich"),
    ("libmpi_gnu_123.so.12", "Cray MPICH 8 for GCC 12", "mpich"),
    ("libmpi_intel.so.12", "Cray MPICH 8 for Intel's compilers", "mpich"),
    ("libmpi_amd.so.12", "Cray MPICH 8 for AMD's compilers", "mpich"),
    ("libmpi_nvidia.so.12", "Cray MPICH 8 for NVIDIA's compilers", "mpich"),
    ("libmpi_aocc.so.12", "Cray MPICH 8 for AOCC", "mpich"),
    ("libmpich_gnu_51.so.3", "Cray MPICH 7 for GCC", "mpich"),
    ("libmpich_cray.so.3", "Cray MPICH 7 for CCE", "mpich"),
    ("libmpi.so.40", "Open MPI 3 to 5, HPC-X", "openmpi"),
    ("libmpi.so.20", "Open MPI 2", "openmpi"),
    ("libmpi.so.1", "Open MPI 1.6, bullx MPI", "openmpi"),
    ("libmpi.so.0", "Fujitsu MPI", "openmpi"),
    ("libmpi_ibm.so.3", "IBM Spectrum MPI", "openmpi"),
    ("libmpi_abi.so.0", "the MPI standard's ABI", "standard"),
    ("libmpi.so", "HPE MPT: of an ABI that its name does not tell", None),
]  # fmt: skip
# Libraries with such names that are no MPI.
OTHERS = [
    "libmpiP.so", "libmpitrace.so", "libmpi_trace.so", "libmpiwrap-amd64-linux.so", "libmpfr.so.6",
    "libmpi4py.so", "libmpicalls.so.12", "libmpi.so-old", "libmpi_gnu_91.so.12.debug",
]  # fmt: skip


def needing(soname: str) -> Program:
    return Program(Path("app"), False, soname, False)


@pytest.mark.parametrize(("soname", "whose", "abi"), SONAMES, ids=[row[0] for row in SONAMES])
def test_the_abi_follows_from_the_name(soname, whose, abi):
    assert is_libmpi(soname), whose
    assert abi_of_library(soname) == abi, whose
    program = needing(soname)
    if abi is None:
        assert program.built_against is None
        assert all(map(program.suits, ("mpich", "intel", "openmpi")))
    else:
        assert program.built_against
        assert program.suits("mpich") == program.suits("intel") == (abi == "mpich")
        assert program.suits("mpich", serves_standard=True) == (abi in ("mpich", "standard"))


@pytest.mark.parametrize("name", OTHERS)
def test_other_libraries_are_no_mpi(name):
    assert not is_libmpi(name) and abi_of_library(name) is None


def test_open_mpi_2_is_not_open_mpi_5():
    assert needing("libmpi.so.40").suits("openmpi")
    assert not needing("libmpi.so.20").suits("openmpi")
    # Fujitsu's and IBM's programs under their own Open MPI.
    assert needing("libmpi.so.0").suits("openmpi") and needing("libmpi_ibm.so.3").suits("openmpi")


def test_a_program_of_cray_is_called_so():
    assert needing("libmpi_gnu_123.so.12").built_against == "Cray MPICH"
    assert needing("libmpi.so.12").built_against == "MPICH or Intel MPI"
