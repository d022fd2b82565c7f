"""Programs of tests/native/programs, compiled for an MPI with or without libearlybird, and libraries to
preload."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.toolchain.build import library_path

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """compiled(flavour, name, options=(), linked=False): the path of a program, compiled once.

    `options` are the compiler's; a `linked` program is linked to libearlybird.
    """
    folder = tmp_path_factory.mktemp("programs")
    programs: dict[tuple[object, ...], Path] = {}

    def compile_once(flavour: Flavour, name: str, options: Sequence[str] = (), linked: bool = False) -> Path:
        key = (flavour.name, name, *options, linked)
        if key not in programs:
            program = folder / f"{name}-{len(programs)}"
            command = [flavour.mpicc, "-O1", "-w", *options, PROGRAMS / f"{name}.c", "-o", program, "-ldl"]
            if linked:
                lib = library_path(flavour).parent
                command += [f"-L{lib}", "-Wl,--no-as-needed", "-learlybird", f"-Wl,-rpath,{lib}"]
            subprocess.run(command, check=True, timeout=60, env=flavour.environment())
            programs[key] = program
        return programs[key]

    return compile_once


@pytest.fixture
def preload_source(tmp_path, monkeypatch):
    """preload_source(mpi, source) compiles `source` and puts it before the MPI library of every launch."""

    def put(mpi, source):
        flavour = find_flavour(mpi)
        (tmp_path / "shim.c").write_text(source)
        command = [flavour.mpicc, "-shared", "-fPIC", tmp_path / "shim.c", "-o", tmp_path / "shim.so"]
        subprocess.run(command, check=True, env=flavour.environment())
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "shim.so"))

    return put
