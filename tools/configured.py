"""Configures the native sources with CMake for the tools that need to know how a file is compiled."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import json_header, native_sources

ROOT = Path(__file__).parents[1]


def environment_of(mpi: str) -> dict[str, str]:
    """The environment of commands that compile for this MPI with the programs of this Python environment."""
    environment = find_flavour(mpi).environment()
    environment["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{environment['PATH']}"
    return environment


def configure(folder: Path, mpi: str, *options: str) -> Path:
    """Configure `native/` for an MPI in `folder`; return `folder`, which then has compile_commands.json."""
    environment = environment_of(mpi)
    cmake = shutil.which("cmake", path=environment["PATH"])
    command = [
        cmake or "cmake", "-S", native_sources(), "-B", folder, "-G", "Ninja",
        f"-DMPI_C_COMPILER={find_flavour(mpi).mpicc}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        *json_header(), *options,
    ]  # fmt: skip
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return folder
