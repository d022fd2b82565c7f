"""What `make install` leaves serves other projects: pkg-config, CMake, C, C++, also when moved."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import ABI_LIBRARY, LIBRARY, has_library
from earlybird.toolchain.export import export_library, main
from tests.partitioned import STANDARD_ABI

pytestmark = pytest.mark.mpi

LINKED = Path(__file__).parent / "programs" / "linked.c"

# The MPI named first, as projects do: the library must come before it all the same.
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(app C)
find_package(MPI REQUIRED COMPONENTS C)
find_package(Earlybird REQUIRED)
add_executable(app app.c)
target_link_libraries(app PRIVATE MPI::MPI_C Earlybird::earlybird)
"""


@pytest.fixture
def installed(mpi, tmp_path):
    """The library of each MPI, installed and then moved elsewhere."""
    flavour = find_flavour(mpi)
    if not has_library(flavour):
        pytest.skip(f"libearlybird is not built for {mpi}")
    export_library(flavour, tmp_path / "first")
    (tmp_path / "first").rename(tmp_path / "moved")
    return flavour, tmp_path / "moved"


def run(flavour, *arguments, cwd, **variables) -> str:
    environment = flavour.environment() | variables
    environment["PATH"] += os.pathsep + sysconfig.get_path("scripts")
    result = subprocess.run(
        [*map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def assert_works(flavour, app: Path) -> None:
    output = run(flavour, flavour.mpiexec, "-n", "2", app, cwd=app.parent)
    assert output.splitlines() == ["wrong=0 from=libearlybird.so"] * 2


def test_a_program_built_with_pkg_config_uses_the_library(installed, tmp_path):
    flavour, prefix = installed
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    found = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run(flavour, "pkg-config", "--cflags", "--libs", "earlybird", cwd=tmp_path, **found).split()
    folder = run(flavour, "pkg-config", "--variable=libdir", "earlybird", cwd=tmp_path, **found).strip()
    run(flavour, flavour.mpicc, LINKED, "-o", "app", *flags, f"-Wl,-rpath,{folder}", "-ldl", cwd=tmp_path)
    assert_works(flavour, tmp_path / "app")


def test_a_cmake_project_uses_the_library(installed, tmp_path):
    flavour, prefix = installed
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    shutil.copy(LINKED, tmp_path / "app.c")
    found = f"-DCMAKE_PREFIX_PATH={prefix}"
    run(flavour, "cmake", "-B", "build", f"-DMPI_C_COMPILER={flavour.mpicc}", found, cwd=tmp_path)
    run(flavour, "cmake", "--build", "build", cwd=tmp_path)
    assert_works(flavour, tmp_path / "build" / "app")


def test_a_cmake_project_of_cpp_alone_finds_the_library(installed, tmp_path):
    flavour, prefix = installed
    compiler = flavour.mpicc.with_name("mpicxx")
    if not compiler.exists():
        pytest.skip(f"{flavour.name} has no mpicxx")
    (tmp_path / "CMakeLists.txt").write_text(
        PROJECT.replace("MPI_C ", "MPI_CXX ").replace(" C)", " CXX)").replace("app.c)", "app.cpp)")
    )
    (tmp_path / "app.cpp").touch()
    found = (f"-DMPI_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(flavour, "cmake", "-B", "build", *found, cwd=tmp_path)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_compiles_alone(installed, tmp_path, language):
    flavour, prefix = installed
    # Called as C: a mangled C++ name would not link.
    source = "#include <earlybird.h>\nvoid *call(void) { return (void *)&MPI_Psend_init; }\n"
    (tmp_path / "header.src").write_text(source)
    arguments = [
        "-x",
        language,
        "-std=c11" if language == "c" else "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    arguments += ["-c", "header.src", "-o", "header.o", f"-I{prefix}/include"]
    run(flavour, flavour.mpicc, *arguments, "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX", cwd=tmp_path)
    assert " U MPI_Psend_init\n" in run(flavour, "nm", "header.o", cwd=tmp_path)


@pytest.mark.parametrize("name", [LIBRARY, ABI_LIBRARY])
def test_the_library_exports_mpi_names_and_loads_where_no_mpi_is(installed, name):
    flavour, prefix = installed
    if name == ABI_LIBRARY and flavour.name not in STANDARD_ABI:
        pytest.skip(f"{flavour.name} has no standard ABI")
    with open(prefix / "lib" / name, "rb") as stream:
        elf = ELFFile(stream)
        symbols = [
            (symbol.name, symbol.entry.st_shndx, symbol.entry.st_info.bind)
            for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
            if symbol.name
        ]
        needs = [tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
    exported = [name for name, section, _ in symbols if section != "SHN_UNDEF"]
    # PMIx_Init lets other ranks know of us (partitioned/domain/registry.c).
    assert exported and {name for name in exported if not name.startswith("MPI_")} <= {"PMIx_Init"}
    # A shell that preloads it has none of the MPI's symbols, and must start all the same.
    strong = {name for name, section, bind in symbols if section == "SHN_UNDEF" and bind != "STB_WEAK"}
    assert not [name for name in strong if re.match(r"P?MPI|ompi|OMPI|MPL|mpi", name)]
    assert not [name for name in needs if "mpi" in name or "stdc++" in name]


def test_an_installation_replaces_an_older_one_and_holds_nothing_else(installed, tmp_path):
    flavour, prefix = installed
    names = sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file())
    assert names == [
        "include/earlybird.h",
        "include/earlybird_f08.f90",
        "lib/cmake/Earlybird/EarlybirdConfig.cmake",
        "lib/cmake/Earlybird/EarlybirdConfigVersion.cmake",
        "lib/libearlybird.so",
        *(["lib/libearlybird_abi.so"] if flavour.name in STANDARD_ABI else []),
        "lib/pkgconfig/earlybird.pc",
    ]
    (prefix / "include" / "earlybird.h").write_text("old")
    assert main(flavour.name, str(prefix)) == 0
    assert (prefix / "include" / "earlybird.h").read_text() != "old"


def test_a_prefix_with_the_library_of_another_mpi_is_refused(installed, capsys):
    flavour, prefix = installed
    description = prefix / "lib" / "pkgconfig" / "earlybird.pc"
    other = description.read_text().replace(f"on top of {flavour.name} ", "on top of another-mpi ")
    description.write_text(other)
    assert main(flavour.name, str(prefix)) == 2
    assert f"has libearlybird for another-mpi, not for {flavour.name}" in capsys.readouterr().err
    assert description.read_text() == other


def test_an_installation_of_an_mpi_that_is_not_here_is_refused(tmp_path, capsys):
    assert main("no-such-mpi", str(tmp_path / "p")) == 2
    assert capsys.readouterr().err.startswith("earlybird: ")
    assert not (tmp_path / "p").exists()
