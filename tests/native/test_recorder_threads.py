"""The arrivals of threads at the ends of parallel regions, as the OpenMP runtime reports them."""

import numpy as np
import pytest

from earlybird.data.phases import arrivals_before, find_phases
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.machine.openmp import find_runtime
from earlybird.toolchain.build import RECORDER, library_path

pytestmark = pytest.mark.mpi

RANKS, THREADS, STEPS, DELAY_MS = 2, 4, 12, 30


def test_arrivals_of_threads_before_the_sends_are_those_of_the_program(
    any_mpi, own_process, compiled, tmp_path
):
    """GCC compiles the program; LLVM's or Intel's runtime runs it."""
    runtime = find_runtime()
    if runtime is None:
        pytest.skip("no OpenMP runtime with OMPT is installed (libomp5 of Debian, intel-openmp of PyPI)")
    flavour = find_flavour(any_mpi)
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {any_mpi}")
    program = compiled(flavour, "omp_arrivals", ["-fopenmp"])
    launch = ["mpiexec", "-n", RANKS, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    result = own_process(
        "record", "-o", "rec", "--mpi", any_mpi, "--openmp", runtime, "--",
        *launch, program, DELAY_MS, timeout=120,
    )  # fmt: skip
    recording = load_recording(tmp_path / "rec")
    found = {tuple(phase.calls): arrivals_before(recording, phase) for phase in find_phases(recording)}
    (arrivals,) = found.pop(("MPI_Irecv", "MPI_Isend", "MPI_Waitall"))
    assert not any(found.values())  # MPI_Barrier sends no message
    assert (arrivals.function, arrivals.threads, arrivals.regions) == ("delayed", THREADS, RANKS * STEPS)
    of_ranks = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("lead_ns")]
    assert len(of_ranks) == RANKS
    own_s = 1e-9 * np.array(of_ranks, dtype=float).mean(axis=0)
    assert np.all(np.diff(own_s) < 0)
    # Between its own clock and the runtime's report a thread may wait for its core.
    assert np.median(np.abs(arrivals.lead_s[:-1] / own_s[:-1] - 1)) <= 0.2
    assert arrivals.classes.sum() == RANKS * STEPS * THREADS
    assert "before the last" in result.stdout
