"""Programs of tests/native/programs, compiled for an MPI with or without libearlybird, and libraries to
preload."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from earlybird.data.recording import load_recording
from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.toolchain.build import RECORDER, features, library_path
from tests.recorded_traffic import RANKS

PROGRAMS = Path(__file__).parent / "programs"
# Features that programs to record are compiled for.
MACROS = ("has_large_count", "has_persistent_collectives", "has_sessions")


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


@pytest.fixture
def counted_clock(tmp_path, monkeypatch, compiled):
    """The clock of kernels that are launched counts its readings, by all ranks, as microseconds, and pauses
    pass at once: what they measure does not depend on what else the machine does."""
    (tmp_path / "counted_clock.ns").write_bytes((1000 * 10**9).to_bytes(8, "little"))
    monkeypatch.setenv("COUNTED_CLOCK", str(tmp_path / "counted_clock.ns"))

    def put(mpi):
        clock = compiled(find_flavour(mpi), "counted_clock", ["-shared", "-fPIC", "-pthread"])
        monkeypatch.setenv("LD_PRELOAD", str(clock))

    return put


@pytest.fixture
def record(own_process, compiled, tmp_path):
    """record(mpi, {style: messages}, *options) runs a program that exchanges one style after another."""

    def run(mpi, styles, *options, check=True, rec="rec", program="record_traffic"):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        has = features(flavour)
        macros = ["-pthread", "-DHAS_ISENDRECV"]
        macros += [f"-D{name.upper()}" for name in MACROS if has[name]]
        arguments = [tmp_path]
        for style, messages in styles.items():
            path = tmp_path / f"{style}.messages"
            path.write_text("".join(f"{src} {dst} {size}\n" for src, dst, size in messages))
            arguments += [style, path]
        launch = ["mpiexec", "-n", RANKS, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
        result = own_process(
            "record", "-o", rec, "--mpi", mpi, *options, "--",
            *launch, compiled(flavour, program, macros), *arguments,
            check=check, timeout=120,
        )  # fmt: skip
        return result, load_recording(tmp_path / rec)

    return run
