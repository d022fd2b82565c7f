"""Places are the program's own, also behind the MPI's Fortran bindings and mpi4py, with lines of source."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, library_path

pytestmark = pytest.mark.mpi

EPOCHS = 10  # of tests/native/programs/record_places.c
LINES = {"meet_first": 16, "meet_second": 20}
# A module of Python that calls the MPI as mpi4py does: while it does so, other threads may run.
MODULE = r"""
#include <Python.h>
#include <mpi.h>
static PyObject *barrier(PyObject *self, PyObject *none) {
  Py_BEGIN_ALLOW_THREADS MPI_Barrier(MPI_COMM_WORLD);
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}
static PyObject *initialise(PyObject *self, PyObject *none) {
  MPI_Init(NULL, NULL);
  Py_RETURN_NONE;
}
static PyObject *finalise(PyObject *self, PyObject *none) {
  MPI_Finalize();
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {
    {"barrier", barrier, METH_NOARGS, ""}, {"initialise", initialise, METH_NOARGS, ""},
    {"finalise", finalise, METH_NOARGS, ""}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "calls", "", -1, methods};
PyMODINIT_FUNC PyInit_calls(void) { return PyModule_Create(&module); }
"""
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import calls
def meet_first():
    calls.barrier()
class Solver:
    def meet(self):
        calls.barrier()
        calls.barrier()
calls.initialise()
for _ in range(10):
    meet_first()
    Solver().meet()
calls.finalise()
"""


@pytest.fixture
def recorded(own_process, tmp_path):
    """recorded(mpi, *program): the recording of two ranks."""

    def run(mpi, *program, options=()):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        launch = ["mpiexec", "-n", 2, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
        own_process("record", "-o", "rec", "--mpi", mpi, *options, "--", *launch, *program, timeout=120)
        return load_recording(tmp_path / "rec")

    return run


def places_of(recording):
    """Epochs by function and line of the phases that have one place."""
    return {
        (phase.steps[0].function, phase.steps[0].line): phase.epochs
        for one in recording.ranks.values()
        for phase in one.phases.values()
        if phase.steps[0].call == "MPI_Barrier"
    }


def test_places_have_the_line_of_the_source(any_mpi, recorded, compiled):
    flavour = find_flavour(any_mpi)
    recording = recorded(any_mpi, compiled(flavour, "record_places", ["-g"]))
    assert places_of(recording) == {place: EPOCHS for place in LINES.items()}
    (step,) = {one.steps[0] for one in recording.ranks[0].phases.values() if one.steps[0].call == "MPI_Init"}
    assert step.function == "main"


def test_a_place_behind_a_fortran_binding_is_that_of_the_program(mpi, recorded, compiled):
    flavour = find_flavour(mpi)
    libraries = sorted((flavour.mpicc.parents[1] / "lib").glob("libmpifort.so")) + sorted(
        (flavour.mpicc.parents[1] / "lib").glob("libmpi_mpifh.so")
    )
    if not libraries:
        pytest.skip("the MPI has no Fortran bindings")
    options = ["-g", "-DBINDING", libraries[0], f"-Wl,-rpath,{libraries[0].parent}"]
    recording = recorded(mpi, compiled(flavour, "record_places", options))
    assert places_of(recording) == {place: EPOCHS for place in LINES.items()}


def test_a_place_behind_a_binding_whose_frame_grows_is_that_of_the_program(any_mpi, recorded, compiled):
    """A frame that looked as if it had a fixed size is not read beyond the end of the stack."""
    flavour = find_flavour(any_mpi)
    binding = compiled(flavour, "record_frames", ["-DBINDING", "-shared", "-fPIC"])
    recording = recorded(any_mpi, compiled(flavour, "record_frames", ["-g", "-Wl,--no-as-needed", binding]))
    functions = {
        step.function
        for one in recording.ranks.values()
        for phase in one.phases.values()
        for step in phase.steps
        if step.call == "MPI_Waitall"
    }
    assert functions == {"wait_for_many", "wait_for_few"}


def test_a_place_behind_mpi4py_is_a_line_of_python(any_mpi, recorded, tmp_path):
    flavour = find_flavour(any_mpi)
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").exists():
        pytest.skip("Python's headers are not installed")
    folder = tmp_path / "mpi4py"
    folder.mkdir()
    (folder / "calls.c").write_text(MODULE)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [flavour.mpicc, "-shared", "-fPIC", "-w", f"-I{include}", folder / "calls.c"]
    command += ["-o", folder / "calls.so"]
    subprocess.run(command, check=True, timeout=60, env=flavour.environment())
    recording = recorded(any_mpi, sys.executable, tmp_path / "script.py", folder)
    qualified = "Solver.meet" if sys.version_info >= (3, 11) else "meet"
    assert places_of(recording) == {
        ("meet_first", 6): EPOCHS,
        (qualified, 9): EPOCHS,
        (qualified, 10): EPOCHS,
    }
    files = {step.file for phase in recording.ranks[0].phases.values() for step in phase.steps if step.line}
    assert files == {str(tmp_path / "script.py")}
