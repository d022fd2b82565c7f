"""Builds the fuzz targets of native/fuzz and runs them.

With Clang the targets are libFuzzer programs, otherwise programs of native/fuzz/driver.cpp.
"""

import os
import shutil
import subprocess
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import json_header, native_sources
from tools.configured import environment_of

CORPUS = native_sources() / "fuzz" / "corpus"


def target_names() -> list[str]:
    """The targets: each has a corpus."""
    return sorted(folder.name for folder in CORPUS.iterdir())


def has_clang() -> bool:
    return bool(shutil.which("clang") and shutil.which("clang++"))


def build(folder: Path) -> None:
    """Compile all targets in `folder`, against the headers of MPICH."""
    environment = environment_of("mpich")
    if has_clang():
        environment |= {"CC": "clang", "CXX": "clang++"}
    include = find_flavour("mpich").mpicc.parent.parent / "include"
    cmake = shutil.which("cmake", path=environment["PATH"]) or "cmake"
    options = ["-G", "Ninja", f"-DEARLYBIRD_MPI_INCLUDE={include}", *json_header()]
    for command in (
        [cmake, "-S", native_sources() / "fuzz", "-B", folder, *options],
        [cmake, "--build", folder],
    ):
        made = subprocess.run(command, env=environment, capture_output=True, text=True)
        if made.returncode != 0:
            raise InputError(f"the fuzz targets do not compile:\n{made.stdout}{made.stderr}")


def run(folder: Path, name: str, seconds: float, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Run a target on its corpus and then on mutations for some seconds; `scratch` gets a failing input."""
    scratch.mkdir(parents=True, exist_ok=True)
    arguments = [str(CORPUS / name), str(seconds)]
    if has_clang():
        # New inputs go into the first folder. A time of 0 would have no limit.
        found = scratch / "corpus"
        found.mkdir(exist_ok=True)
        arguments = [f"-max_total_time={max(1, round(seconds))}", "-max_len=4096", str(found), arguments[0]]
    options = {"UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=1"}
    return subprocess.run(
        [str(folder / name), *arguments],
        env=dict(os.environ) | options, cwd=scratch, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
