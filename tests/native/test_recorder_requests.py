"""Requests that fail, that other threads complete, and that are of no message are recorded, on every MPI."""

import pytest

from earlybird.data.phases import find_phases
from earlybird.data.recorded_rank import SENT
from earlybird.data.recorded_trace import COMPLETION, load_traces
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from tests.recorded_traffic import pairs_of

pytestmark = pytest.mark.mpi

STEPS, SENDS = 20, 200  # of tests/native/programs/record_requests.c


@pytest.fixture
def record_requests(own_process, compiled, tmp_path):
    """record_requests(mpi, way): the recording of the two ranks."""

    def run(mpi, way, *options):
        flavour = find_flavour(mpi)
        program = compiled(flavour, "record_requests", ["-pthread"])
        launch = ["mpiexec", "-n", 2, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
        own_process("record", "-o", "rec", "--mpi", mpi, *options, "--", *launch, program, way, timeout=120)
        return load_recording(tmp_path / "rec")

    return run


def phases_with(recording, call):
    return [phase for phase in find_phases(recording) if call in phase.calls]


@pytest.mark.parametrize("way", ["failed_any", "failed_some", "failed_all", "failed_persistent"])
def test_a_failed_completion_leaves_nothing_that_a_later_request_is_taken_for(any_mpi, record_requests, way):
    """Of two receives one fails. Whether the MPI says that the other one is good depends on the MPI."""
    recording = record_requests(any_mpi, way)
    assert pairs_of(recording.sent()) == {(0, 1): (2, 72), (1, 0): (10, 320)}
    received = pairs_of(recording.received())
    assert received.pop((1, 0)) == (10, 320)
    assert received in ({}, {(0, 1): (1, 8)})
    # The requests have ended: what follows is in phases of its own.
    calls = {call for phase in phases_with(recording, "MPI_Issend") for call in phase.calls}
    assert calls == {"MPI_Issend", "MPI_Wait", "MPI_Recv"}


def test_a_generalized_request_is_a_request_of_its_epoch(any_mpi, record_requests):
    recording = record_requests(any_mpi, "generalized")
    (phase,) = phases_with(recording, "MPI_Irecv")
    assert phase.epochs == STEPS
    assert {"MPI_Grequest_start", "MPI_Isend", "MPI_Waitall"} <= set(phase.calls)


def test_requests_that_another_thread_completes_end_the_epoch_of_the_first(any_mpi, record_requests):
    recording = record_requests(any_mpi, "helper")
    (sends,) = phases_with(recording, "MPI_Isend")
    assert sends.epochs == STEPS and set(sends.calls) == {"MPI_Irecv", "MPI_Isend"}
    (sums,) = phases_with(recording, "MPI_Allreduce")
    assert sums.epochs == STEPS and set(sums.calls) == {"MPI_Allreduce"}
    (waits,) = phases_with(recording, "MPI_Waitall")
    assert waits.epochs == STEPS


def test_a_cancelled_receive_is_no_message(any_mpi, record_requests):
    recording = record_requests(any_mpi, "cancelled")
    assert pairs_of(recording.received()) == {(1, 0): (10, 320)}


def test_a_communicator_is_known_by_its_latest_name(any_mpi, record_requests):
    recording = record_requests(any_mpi, "named")
    for one in recording.ranks.values():
        names = {number: communicator.name for number, communicator in one.communicators.items()}
        assert "named late" in names.values(), names


def requests_of_sends(trace, tag):
    """Those of the sends with the tag, and those of them that are completed, in the order of the records."""
    rows = trace.records
    is_send = (rows["role"] == SENT) & (rows["tag"] == tag)
    is_completion = is_send & (rows["kind"] == COMPLETION)
    return trace.request[is_send & ~is_completion].tolist(), trace.request[is_completion].tolist()


def test_the_completion_of_a_send_is_known_after_another_one_is_freed(any_mpi, record_requests):
    """In MPICH sends that are complete when they return share their handle."""
    for trace in load_traces(record_requests(any_mpi, "freed", "--events", "10000")).values():
        posted, completed = requests_of_sends(trace, 5)
        assert len(posted) == 2 * STEPS and set(posted[1::2]) <= set(completed)
        assert len(set(completed)) == len(completed)


def test_no_epochs_are_kept_of_a_phase_of_which_one_was_cut(any_mpi, record_requests):
    recording = record_requests(any_mpi, "long")
    for rank, one in recording.ranks.items():
        complete = {
            tuple(step.call for step in one.phases[number].steps): samples.is_complete
            for (number, _), samples in one.epoch_samples.items()
        }
        assert complete[("MPI_Recv",) if rank else ("MPI_Send",)] is False
        assert complete["MPI_Irecv", "MPI_Isend", "MPI_Waitall"] is True


def test_sends_of_several_threads_that_one_completes_are_completed_once(any_mpi, record_requests):
    """In MPICH all of them have the same handle."""
    for trace in load_traces(record_requests(any_mpi, "shared", "--events", "10000")).values():
        posted, completed = requests_of_sends(trace, 7)
        assert len(posted) == 3 * SENDS and sorted(completed) == sorted(posted)
