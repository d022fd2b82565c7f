"""SimGrid is unpacked from Debian's packages where apt is, and else it is said how to get it."""

import os
import shutil

import pytest

from earlybird.data.errors import InputError, WorkError
from earlybird.machine import flavours
from earlybird.machine.abilities import abilities
from earlybird.toolchain import install
from earlybird.toolchain.unpack import unpack_simgrid

APT = """#!/bin/sh
case $1 in
install) echo "Inst libsimgrid3.32 (3.32)"; echo "Inst libsimgrid-dev (3.32)" ;;
download) shift; for package; do touch "$package.deb"; done ;;
esac
"""
# Unpacks one wrapper, whatever the package.
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin" "$3/usr/lib/simgrid"
printf '#!/bin/sh\\nCC=/usr/bin/cc\\nARGS="-I/usr/include -L/usr/lib/x"\\necho SimGrid version 3.32\\n' \\
  > "$3/usr/bin/smpicc"
chmod +x "$3/usr/bin/smpicc"
touch "$3/usr/lib/simgrid/smpimain"
"""


@pytest.fixture
def machine(tmp_path, monkeypatch, nothing_installed):
    """An empty home and a PATH with the programs given alone."""
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    for name in install.JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "mkdir", "printf", "chmod", "touch"):
        os.symlink(shutil.which(name), programs / name)
    monkeypatch.setenv("PATH", str(programs))

    def have(**scripts: str):
        for name, text in scripts.items():
            path = programs / name.replace("_", "-")
            path.write_text(text)
            path.chmod(0o755)

    return have


def silent(text: str) -> None:
    pass


def test_packages_are_unpacked_once_and_the_wrapper_looks_into_their_folder(machine):
    machine(apt_get=APT, dpkg_deb=DPKG)
    said = []
    unpack_simgrid(said.append)
    unpack_simgrid(said.append)
    assert len(said) == 1 and "libsimgrid-dev" in said[0]
    folder = flavours.simgrid_folder()
    text = (folder / "usr" / "bin" / "smpicc").read_text()
    assert f"-I{folder}/usr/include" in text and f"-L{folder}/usr/lib" in text and "CC=/usr/bin/cc" in text
    found = flavours.find_flavour("simgrid")
    assert (found.family, found.version) == ("simgrid", "3.32")
    assert str(folder) in found.environment()["LD_LIBRARY_PATH"]
    assert abilities()["simulation"].can


def test_a_simulation_is_never_the_mpi_that_is_taken_unasked(machine):
    machine(apt_get=APT, dpkg_deb=DPKG)
    unpack_simgrid(silent)
    assert "simgrid" not in [flavour.name for flavour in flavours.present_flavours()]


def test_what_apt_says_is_passed_on_and_nothing_is_left(machine):
    machine(apt_get="#!/bin/sh\necho 'E: Unable to locate package' >&2\nexit 100\n", dpkg_deb=DPKG)
    with pytest.raises(WorkError, match=r"Unable to locate package.*apt-get update"):
        unpack_simgrid(silent)
    assert not flavours.simgrid_folder().exists()


def test_without_apt_it_is_said_what_to_install(machine):
    with pytest.raises(InputError, match="install SimGrid"):
        unpack_simgrid(silent)
    ability = abilities()["simulation"]
    assert not ability.can and ability.cause and "smpicc" in ability.remedy


def test_a_smpicc_without_its_simulator_is_refused(machine, tmp_path):
    smpicc = tmp_path / "smpicc"
    smpicc.write_text("#!/bin/sh\n")
    smpicc.chmod(0o755)
    with pytest.raises(InputError, match="smpimain"):
        flavours.find_flavour(str(smpicc))
