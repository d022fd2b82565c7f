"""A tool whose MPI_Init or MPI_Finalize is called in place of the recorder's is named, not guessed about."""

import subprocess

import pytest

from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, library_path

pytestmark = pytest.mark.mpi

PROGRAM = """#include <mpi.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""
TOOLS = {
    "MPI_Init": "int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }",
    "MPI_Finalize": "int MPI_Finalize(void) { return PMPI_Finalize(); }",
    "MPI_Barrier": "int MPI_Barrier(MPI_Comm comm) { return PMPI_Barrier(comm); }",
}


@pytest.fixture
def build(any_mpi, tmp_path):
    """build(name, source, *options): the path of what was compiled."""
    flavour = find_flavour(any_mpi)
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {any_mpi}")

    def compile_one(name, source, *options):
        (tmp_path / f"{name}.c").write_text(f"#include <mpi.h>\n{source}\n")
        command = [flavour.mpicc, "-w", *options, tmp_path / f"{name}.c", "-o", tmp_path / name]
        subprocess.run(command, check=True, timeout=60, env=flavour.environment())
        return tmp_path / name

    return compile_one


def record(own_process, mpi, program):
    launch = ["mpiexec", "-n", 2, *(["--oversubscribe"] * (find_flavour(mpi).family == "openmpi"))]
    return own_process("record", "-o", "rec", "--mpi", mpi, "--", *launch, program, timeout=120)


@pytest.mark.parametrize(
    "call", ["MPI_Init", "MPI_Finalize", pytest.param("MPI_Barrier", marks=pytest.mark.thorough)]
)
def test_a_preloaded_tool_is_named(any_mpi, build, own_process, tmp_path, monkeypatch, call):
    tool = build("libtool.so", TOOLS[call], "-shared", "-fPIC")
    program = build("program", PROGRAM)
    monkeypatch.setenv("LD_PRELOAD", str(tool))
    result = record(own_process, any_mpi, program)
    said = f"{call} of {tool} precedes the recorder's"
    assert result.stderr.count(said) == 2  # by a rank, and by the command
    assert "no rank called MPI_Init" not in result.stderr and "without MPI_Finalize" not in result.stderr
    recording = load_recording(tmp_path / "rec")
    assert recording.hidden == (call, str(tool))
    assert bool(recording.ranks) == (call != "MPI_Init")


def test_a_tool_inside_the_program_is_named(any_mpi, build, own_process, tmp_path):
    program = build("program", f"{TOOLS['MPI_Init']}\n{PROGRAM}")
    result = record(own_process, any_mpi, program)
    assert f"MPI_Init of {program} precedes the recorder's" in result.stderr
    assert "no rank called MPI_Init" not in result.stderr


def test_a_preloaded_library_that_calls_no_mpi_is_none(any_mpi, build, own_process, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(build("libother.so", "int other;", "-shared", "-fPIC")))
    result = record(own_process, any_mpi, build("program", PROGRAM))
    assert "precedes" not in result.stderr and load_recording(tmp_path / "rec").hidden is None
