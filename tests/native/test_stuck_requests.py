"""What pages alone know of requests that are easily miscounted: no message is taken for one that nobody
receives, and nothing for a request that is open."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from earlybird.launch.running_ranks import look
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, library_path
from tests.conftest import EARLYBIRD

pytestmark = pytest.mark.mpi

NATIVE = Path(__file__).parents[2] / "native"


@pytest.mark.one_mpi
def test_places_of_requests(mpi, compiled):
    program = compiled(find_flavour(mpi), "awaited_table", ["-pthread", f"-I{NATIVE}"])
    ended = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stdout


@contextlib.contextmanager
def watched(mpi, compiled, folder, mode):
    """A program on two ranks below `exec --stuck`."""
    flavour = find_flavour(mpi)
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {mpi}")
    program = compiled(flavour, "stuck_requests", ["-g"])
    oversubscribe = ["--oversubscribe"] * (flavour.family == "openmpi")
    job = subprocess.Popen(
        [EARLYBIRD, "exec", "--mpi", mpi, "--stuck", "8s", "-o", "rec", "--", "mpiexec", "-n", "2",
         *oversubscribe, program, mode],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(job.pid, signal.SIGTERM)
        job.wait(timeout=30)


def states_at_the_end(recording):
    """The states of the ranks when both are in their last MPI_Recv."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        states = look(recording) if recording.exists() else {}
        waiting = [
            awaited for one in states.values() for each in one.threads for awaited in each.awaited
            if each.call == "MPI_Recv" and awaited.tag == 42
        ]  # fmt: skip
        if len(states) == len(waiting) == 2:
            return states
        time.sleep(0.05)
    raise AssertionError("the ranks do not come to their end")


@pytest.mark.thorough
def test_requests_are_counted_once(mpi, compiled, tmp_path):
    with watched(mpi, compiled, tmp_path, "all"):
        for state in states_at_the_end(tmp_path / "rec").values():
            assert state.counts_all, "a message was not counted"
            assert not state.requests
            # Of messages that were all received nothing is kept.
            assert not any(num for num, _ in state.sent.values()) and not any(state.received.values())


@pytest.mark.thorough
@pytest.mark.one_mpi
def test_of_too_many_requests_nothing_is_concluded(mpi, compiled, tmp_path):
    with watched(mpi, compiled, tmp_path, "many"):
        for state in states_at_the_end(tmp_path / "rec").values():
            assert not state.counts_all and not state.requests


@pytest.mark.parametrize("mode", ["watched", "recorded"])
def test_the_error_of_a_program_is_that_of_its_own_call(mpi, compiled, tmp_path, mode):
    """What is no request is not shown to the MPI before MPI_Request_free is."""
    flavour = find_flavour(mpi)
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {mpi}")
    command = ["exec", "--stuck", "60s"] if mode == "watched" else ["record"]
    ended = subprocess.run(
        [EARLYBIRD, *command, "--mpi", mpi, "-o", "rec", "--",
         "mpiexec", "-n", "1", compiled(flavour, "free_no_request", ["-g"])],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    output = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert "Request_free" in output and "Request_get_status" not in output, output
