"""Launchers that print what they were called with, and programs that need the library of some MPI."""

import functools
import shutil
import subprocess
from pathlib import Path

import pytest

from earlybird.launch import command_programs, interpose
from earlybird.launch.interpose import PREFIX

LIBRARY = "/opt/earlybird/lib/libearlybird.so"
# One word a line, then what the launcher itself would preload.
PRINTS = """#!/bin/sh
[ "$1" = --version ] && { echo "$BANNER"; exit 0; }
printf '%s\\n' "$@" "own=${LD_PRELOAD-}" "path=$PATH"
"""


@pytest.fixture
def call(tmp_path):
    """Call a launcher through its shim; returns its arguments, what it preloads itself, and its PATH."""
    shims, real = tmp_path / "shims", tmp_path / "real"
    shims.mkdir()
    real.mkdir()
    shutil.copytree(interpose._SHIMS / "launchers", shims / interpose._SPOKEN)
    for name in command_programs.LAUNCHERS:
        shutil.copy2(interpose._SHIMS / "launcher.sh", shims / name)
        (real / name).write_text(PRINTS)
        (real / name).chmod(0o755)

    def run(name, *arguments, family="mpich", program=None, **variables):
        environment = {"PATH": f"{shims}:{real}:/usr/bin:/bin", f"{PREFIX}LIBRARY": LIBRARY}
        environment |= {f"{PREFIX}FAMILY": family, f"{PREFIX}BIN": str(real)} | variables
        result = subprocess.run(
            [program or shims / name, *arguments], env=environment, capture_output=True, text=True, timeout=60
        )
        assert result.returncode == 0, result.stderr
        *got, own, path = result.stdout.splitlines()
        return got, own.removeprefix("own="), path.removeprefix("path=")

    run.shims, run.real = shims, real
    return run


def compile_program(
    folder: Path, name: str, *arguments: str, source: str = "int main(void) { return 0; }"
) -> str:
    """Compile `source` with some arguments in `folder`; returns the program's path."""
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["cc", folder / f"{name}.c", "-o", folder / name, *arguments], check=True, cwd=folder)
    return str(folder / name)


def make_libmpi(folder: Path, soname: str) -> list[str]:
    """A shared library with the soname of some MPI; returns the arguments that link it."""
    arguments = ("-shared", "-fPIC", f"-Wl,-soname,{soname}")
    path = compile_program(folder, soname, *arguments, source="int MPI_Init;")
    return ["-Wl,--no-as-needed", f"-Wl,-rpath,{folder}", path]


@pytest.fixture
def compiled(tmp_path):
    """`compile_program` in the test's folder."""
    return functools.partial(compile_program, tmp_path)


@pytest.fixture
def libmpi(tmp_path):
    """`make_libmpi` in the test's folder."""
    return functools.partial(make_libmpi, tmp_path)


@pytest.fixture(scope="module")
def some_programs(tmp_path_factory) -> Path:
    """A folder with app and other (MPICH's ABI), foreign (Open MPI's), plain, unnumbered, inside, script."""
    folder = tmp_path_factory.mktemp("programs")
    mpich = make_libmpi(folder, "libmpi.so.12")
    for name in ("app", "other"):
        compile_program(folder, name, *mpich)
    compile_program(folder, "foreign", *make_libmpi(folder, "libmpi.so.40"))
    compile_program(folder, "unnumbered", *make_libmpi(folder, "libmpi.so"))
    compile_program(folder, "plain")
    has_mpi = "int MPI_Init(void) { return 0; } int main(void) { return MPI_Init(); }"
    compile_program(folder, "inside", source=has_mpi)
    (folder / "script").write_text("#!/bin/sh\n./app\n")
    (folder / "script").chmod(0o755)
    return folder
