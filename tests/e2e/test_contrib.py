"""Module files and the Spack package of contrib/ do what they say, as far as that shows without the tools."""

import contextlib
import glob
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import types
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "contrib" / "modulefiles"
PACKAGE = ROOT / "contrib" / "spack" / "packages" / "earlybird" / "package.py"
EXPECTED = [
    "setenv LIBEARLYBIRD /opt/earlybird/lib/libearlybird.so",
    "prepend-path PKG_CONFIG_PATH /opt/earlybird/lib/pkgconfig",
    "prepend-path CMAKE_PREFIX_PATH /opt/earlybird",
]
TCL = """
foreach command {setenv prepend-path append-path module-whatis} {
    proc $command args "puts \\"$command \\$args\\""
}
source [lindex $argv 0]
ModulesHelp
"""
LUA = """
function pathJoin(...) return table.concat({...}, "/") end
function setenv(...) print("setenv", ...) end
function prepend_path(...) print("prepend-path", ...) end
function append_path(...) print("append-path", ...) end
function help(text) io.stderr:write(text) end
function whatis(text) end
dofile(arg[1])
"""


def loaded(interpreter: str, stand_in: str, module: str, tmp_path: Path) -> tuple[list[str], str]:
    """What loading a module sets, and its help."""
    if shutil.which(interpreter) is None:
        pytest.skip(f"no {interpreter} is on PATH")
    (tmp_path / "stand_in").write_text(stand_in)
    result = subprocess.run(
        [interpreter, tmp_path / "stand_in", MODULES / module], capture_output=True, text=True, timeout=20
    )
    assert result.returncode == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    return [line for line in lines if not line.startswith("module-whatis")], result.stderr


@pytest.mark.parametrize(
    ("interpreter", "stand_in", "module"),
    [("tclsh", TCL, "earlybird.tcl"), ("lua", LUA, "earlybird.lua"), ("luajit", LUA, "earlybird.lua")],
)
def test_a_module_names_the_library_and_preloads_it_nowhere(interpreter, stand_in, module, tmp_path):
    said, help_text = loaded(interpreter, stand_in, module, tmp_path)
    assert said == EXPECTED
    assert "EARLYBIRD_OFF=1" in help_text


def test_both_modules_set_the_same_and_say_the_same():
    lua, tcl = ((MODULES / name).read_text() for name in ("earlybird.lua", "earlybird.tcl"))
    assert re.search(r"help\(\[\[\n(.*?)\n\]\]\)", lua, re.DOTALL)[1] in tcl
    for variable in re.findall(r'(?:setenv|prepend_path)\("(\w+)"', lua):
        assert re.search(rf"^(setenv|prepend-path) {variable} ", tcl, re.MULTILINE)
    assert lua.count("LD_PRELOAD=") == tcl.count("LD_PRELOAD=") == 2  # in the help alone


class FakeCMakePackage:
    """What the package uses of Spack's CMakePackage."""

    def define(self, name, value):
        return f"-D{name}={value}"


class FakePrefix(str):
    def __getattr__(self, name):
        return FakePrefix(f"{self}/{name}")


@contextlib.contextmanager
def working_dir(folder):
    with contextlib.chdir(folder):
        yield


def install(source, folder):
    found = glob.glob(source)
    assert found, f"{source} is not built"
    for path in found:
        shutil.copy2(path, folder, follow_symlinks=False)


@pytest.fixture
def package(monkeypatch):
    """The package, as if Spack had loaded it, and what it depends on."""
    needs = []
    spack = types.ModuleType("spack.package")
    spack.CMakePackage = FakeCMakePackage
    spack.license = spack.version = lambda *_, **__: None
    spack.depends_on = lambda name, **_: needs.append(name)
    spack.mkdirp = lambda folder: Path(folder).mkdir(parents=True, exist_ok=True)
    spack.working_dir, spack.install, spack.join_path = working_dir, install, lambda *parts: "/".join(parts)
    monkeypatch.setitem(sys.modules, "spack", types.ModuleType("spack"))
    monkeypatch.setitem(sys.modules, "spack.package", spack)
    return runpy.run_path(str(PACKAGE))["Earlybird"](), needs


SOON = ("-DCMAKE_BUILD_TYPE=Debug",)  # the compiler takes less than half the time


@pytest.mark.mpi
def test_the_spack_package_builds_the_library_alone(package, any_mpi, tmp_path):
    earlybird, needs = package
    assert {"c", "mpi@3.1:", "cmake@3.25:"} <= set(needs)
    assert Path(earlybird.git.removeprefix("file://")) == ROOT
    flavour = find_flavour(any_mpi)
    mpi = types.SimpleNamespace(mpicc=flavour.mpicc, name=flavour.family, version=flavour.version)

    class Spec(dict):
        version = "main"

    earlybird.spec, earlybird.build_directory = Spec(mpi=mpi), str(tmp_path / "build")
    earlybird.stage, earlybird.prefix = (
        types.SimpleNamespace(source_path=str(ROOT)),
        FakePrefix(tmp_path / "to"),
    )
    cmake = shutil.which("cmake", path=sysconfig.get_path("scripts")) or shutil.which("cmake")
    sources = ROOT / earlybird.root_cmakelists_dir
    for arguments in (
        [cmake, "-S", sources, "-B", tmp_path / "build", *earlybird.cmake_args(), *SOON],
        [cmake, "--build", tmp_path / "build", "--target", *earlybird.build_targets],
    ):
        result = subprocess.run(
            [str(word) for word in arguments],
            env=flavour.environment(),
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert result.returncode == 0, result.stderr
        # CMake warns of a variable that nothing reads: one with a wrong name.
        assert "not used by the project" not in result.stderr
    earlybird.install(earlybird.spec, earlybird.prefix)
    found = {
        str(path.relative_to(tmp_path / "to")) for path in (tmp_path / "to").rglob("*") if path.is_file()
    }
    assert {"lib/libearlybird.so", "lib/pkgconfig/earlybird.pc", "include/earlybird.h"} <= found
    assert "lib/cmake/Earlybird/EarlybirdConfig.cmake" in found
    assert not (tmp_path / "to" / "bin").exists()

    set_by_it = {}
    earlybird.setup_run_environment(types.SimpleNamespace(set=set_by_it.__setitem__))
    assert set_by_it == {"LIBEARLYBIRD": f"{tmp_path / 'to'}/lib/libearlybird.so"}
