"""Programs of tests/native/programs, compiled for an MPI with or without libearlybird."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from earlybird.machine.flavours import Flavour
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
