"""An installed MPI is completed where its wheels leave something out."""

import pytest

from earlybird.machine import flavours
from earlybird.toolchain import install


@pytest.fixture
def intel(tmp_path, monkeypatch, nothing_installed):
    """The folder of an installation of Intel MPI by an earlier version, with its modules for gfortran."""
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path))
    folder = flavours.wheel_folder("intel")
    (folder / "include" / "mpi" / "gfortran" / "12.4.0").mkdir(parents=True)
    (folder / "include" / "mpi" / "gfortran" / "12.4.0" / "mpi.mod").write_text("a module")
    (flavours.wheel_folder("intel") / "installed").write_text("")
    return folder


def test_modules_of_gfortran_are_where_intels_mpif90_looks_for_them(intel):
    for _ in range(2):
        install.install_flavour("intel", print)
        assert (intel / "include" / "gfortran" / "12.4.0" / "mpi.mod").read_text() == "a module"
    assert not (intel / "include" / "ilp64").exists()


def test_modules_that_are_there_stay(intel):
    (intel / "include" / "gfortran").mkdir()
    install.install_flavour("intel", print)
    assert not (intel / "include" / "gfortran").is_symlink()
