"""An installed MPI is completed where its wheels leave something out."""

import zipfile

import pytest

from earlybird.data.errors import WorkError
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


def test_another_wheel_under_the_same_name_is_refused(tmp_path, monkeypatch, nothing_installed):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    for name in install.JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    pinned = flavours.WHEELS["mpich"][0].replace("==", "-")
    with zipfile.ZipFile(tmp_path / f"{pinned}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{pinned}.dist-info/METADATA", "Metadata-Version: 2.1\nName: mpich\nVersion: 5.0.2\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(WorkError, match=r"Got.*not the one that Earlybird knows.*--mpi /path") as error:
        install.install_flavour("mpich", print)
    assert not flavours.is_installed("mpich") and "network" not in str(error.value)
