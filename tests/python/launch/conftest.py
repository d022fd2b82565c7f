"""Launchers that print what they were called with, and programs that need the library of some MPI."""

import shutil
import subprocess
from pathlib import Path

import pytest

from earlybird.launch import interpose, reach
from earlybird.launch.interpose import PREFIX

LIBRARY = "/opt/earlybird/lib/libearlybird.so"
# One word a line, then what the launcher itself would preload.
PRINTS = """#!/bin/sh
[ "$1" = --version ] && { echo "$BANNER"; exit 0; }
printf '%s\\n' "$@" "own=${LD_PRELOAD-}" "path=$PATH"
"""


@pytest.fixture
def call(tmp_path):
    """Call a launcher through its shim; returns (words it got, what it has preloaded itself, its PATH)."""
    shims, real = tmp_path / "shims", tmp_path / "real"
    shims.mkdir()
    real.mkdir()
    shutil.copytree(interpose._SHIMS / "launchers", shims / interpose._SPOKEN)
    for name in reach.LAUNCHERS:
        shutil.copy2(interpose._SHIMS / "launcher.sh", shims / name)
        (real / name).write_text(PRINTS)
        (real / name).chmod(0o755)

    def run(name, *words, family="mpich", program=None, **variables):
        environment = {"PATH": f"{shims}:{real}:/usr/bin:/bin", f"{PREFIX}LIBRARY": LIBRARY}
        environment |= {f"{PREFIX}FAMILY": family, f"{PREFIX}BIN": str(real)} | variables
        result = subprocess.run(
            [program or shims / name, *words], env=environment, capture_output=True, text=True, timeout=20
        )
        assert result.returncode == 0, result.stderr
        *got, own, path = result.stdout.splitlines()
        return got, own.removeprefix("own="), path.removeprefix("path=")

    run.shims, run.real = shims, real
    return run


@pytest.fixture
def compiled(tmp_path):
    """Compile `int main` with some words; returns the program's path."""

    def compile_(name, *words, source="int main(void) { return 0; }"):
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(
            ["cc", tmp_path / f"{name}.c", "-o", tmp_path / name, *words], check=True, cwd=tmp_path
        )
        return str(tmp_path / name)

    return compile_


@pytest.fixture
def libmpi(compiled):
    """A shared library with the soname of some MPI; returns the words that link it."""

    def make(soname):
        path = Path(compiled(soname, "-shared", "-fPIC", f"-Wl,-soname,{soname}", source="int MPI_Init;"))
        return ["-Wl,--no-as-needed", f"-Wl,-rpath,{path.parent}", str(path)]

    return make
