"""The control variables of an MPI are found in its library."""

from pathlib import Path

import pytest

from earlybird.machine.control_variables import control_variables
from earlybird.machine.flavours import Flavour
from earlybird.measure import launchers


def mpi(folder: Path, family="mpich", name="bin/mpicc") -> Flavour:
    return Flavour("my", family, "5.0", folder / name, folder / "bin" / "mpiexec")


@pytest.fixture
def mpich(tmp_path):
    """The library of an MPI, with the names that its texts contain."""
    (tmp_path / "lib").mkdir()
    texts = (b"\x7fELF", b"MPIR_CVAR_FIRST_NAME", b"MPIR_CVAR_SECOND", b"see MPIR_CVAR_TEXT for more", b"")
    (tmp_path / "lib" / "libmpi.so.12").write_bytes(b"\0".join(texts))
    (tmp_path / "lib" / "libmpi.so").symlink_to("libmpi.so.12")
    return mpi(tmp_path)


def test_the_names_are_those_of_whole_texts(mpich, tmp_path):
    assert control_variables(mpich) == {"MPIR_CVAR_FIRST_NAME", "MPIR_CVAR_SECOND"}
    assert control_variables(mpi(tmp_path, "openmpi")) == set()
    assert control_variables(mpi(tmp_path / "lib")) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("MPIR_CVAR_SECOND", ""),
        ("UCX_TLS", ""),
        (
            "MPIR_CVAR_SECONDS",
            "changes nothing; the nearest that it has is MPIR_CVAR_SECOND",
        ),
        ("MPIR_CVAR_X_Y_Z_0_1", "my 5.0 has no variable MPIR_CVAR_X_Y_Z_0_1"),
    ],
)
def test_a_variable_that_the_mpi_does_not_know_is_remarked_upon(mpich, name, said):
    remarks = []
    launchers._note_if_unknown(name, mpich, remarks.append)
    assert len(remarks) == bool(said)
    assert all(remark.startswith("warning: ") and said in remark for remark in remarks)
