"""The trace of the latest calls: who waited for whom in a program of known waits, on every MPI."""

import numpy as np
import pytest

from earlybird.analysis.waits import join_traces, traced, waits_of
from earlybird.data.recorded_rank import CALL, SENT
from earlybird.data.recorded_trace import load_traces
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, library_path
from tests.recorded_traffic import RANKS, pairs_of

pytestmark = pytest.mark.mpi

ROUNDS, ROUNDS_BEYOND_THE_RING = 3, 7
# What record_waits.c says: by call and function, seconds of waiting in a round of all ranks, and for whom.
WAITS = {
    ("MPI_Recv", "receive_late"): (80e-3, 1),
    ("MPI_Waitall", "wait_for_the_last"): (64e-3, 2),
    ("MPI_Wait", "send_to_late"): (72e-3, 2),
    ("MPI_Waitany", "start_to_late"): (36e-3, 1),
    ("MPI_Barrier", "meet"): (3 * 48e-3, 3),
    ("MPI_Bcast", "hear"): (3 * 40e-3, 2),
    ("MPI_Reduce", "collect"): (32e-3, 1),
}


@pytest.fixture
def record_waits(own_process, compiled, tmp_path):
    """record_waits(mpi, events, *options): the recording of that many events of each rank."""

    def run(mpi, events, *options, rounds=ROUNDS):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        launch = ["mpiexec", "-n", RANKS, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
        own_process(
            "record", "-o", "rec", "--mpi", mpi, "--events", events, *options, "--",
            *launch, compiled(flavour, "record_waits", ["-rdynamic"]), rounds,
            timeout=120,
        )  # fmt: skip
        return load_recording(tmp_path / "rec")

    return run


def check_waits(waits, rounds):
    """Each wait is for the rank that comes last, and about as long as the program's: a rank that another
    process keeps from its call waits less, in some rounds."""
    found = {(place.call, place.function): place for place in waits.places}
    for place, (per_round_s, late) in WAITS.items():
        assert found[place].waiting_s >= 0.5 * rounds * per_round_s, place
        assert found[place].late == late, place
        assert found[place].waiting_s <= found[place].time_s
    assert found["MPI_Recv", "receive_late"].late_collective_s == 0
    assert found["MPI_Barrier", "meet"].late_sender_s == 0
    for place in (("MPI_Wait", "send_to_late"), ("MPI_Waitany", "start_to_late")):
        assert found[place].late_receiver_s >= 0.8 * found[place].waiting_s > 0 == found[place].late_sender_s
    # How long this one waits depends on the MPI, which may move the message without the other side.
    of_progress = found["MPI_Waitall", "wait_for_progress"]
    if of_progress.time_s > 0.5 * rounds * 56e-3:
        # The time for which the ranks waited for a core is in it, too.
        assert of_progress.waiting_s >= min(0.5 * of_progress.time_s, 0.5 * rounds * 56e-3)
        assert of_progress.late == 3


@pytest.mark.measures_time("a rank that waits for its core comes later than the program lets it")
def test_waits_are_those_of_the_program(mpi, record_waits):
    recording = record_waits(mpi, 10000)
    joined = traced(recording)
    waits = waits_of(recording, joined)
    assert waits.is_whole and waits.clock_uncertainty_s == 0
    assert waits.num_matched == waits.num_received == 8 * ROUNDS
    check_waits(waits, ROUNDS)
    # Creating and freeing communicators may wait for others.
    assert all(name.startswith("MPI_Comm_") for name in waits.unexamined)
    events = joined.events
    # The calls of the trace are those that were counted, and they do not overlap.
    counted = {total.name: total.calls for total in recording.call_totals() if total.calls}
    kept = {name: int(events.calls[events.call == k].sum()) for k, name in enumerate(events.names)}
    assert {name: calls for name, calls in kept.items() if calls} == counted
    for rank in range(RANKS):
        is_call = (events.rank == rank) & (events.calls > 0)
        assert (np.diff(events.begin_s[is_call]) >= 0).all()
        assert (events.begin_s[is_call][1:] >= events.end_s[is_call][:-1] - 1e-6).all()
        assert events.end_s[is_call][-1] - events.end_s[is_call][0] == pytest.approx(
            recording.ranks[rank].run_s, rel=0.25, abs=5e-3
        )
    sent = events.role == SENT
    pairs = {(int(src), int(dst)) for src, dst in zip(events.rank[sent], events.peer[sent], strict=True)}
    assert pairs == set(pairs_of(recording.sent()))


@pytest.mark.thorough
@pytest.mark.measures_time("a rank that waits for its core comes later than the program lets it")
def test_a_small_ring_keeps_the_latest_calls(any_mpi, record_waits):
    recording = record_waits(any_mpi, 80, rounds=ROUNDS_BEYOND_THE_RING)
    traces = load_traces(recording)
    assert {len(trace.records) for trace in traces.values()} == {80}
    for rank, trace in traces.items():
        assert not trace.is_whole
        calls = recording.ranks[rank].calls
        assert calls[trace.records["call"][-1]] == "MPI_Finalize"
    waits = waits_of(recording, join_traces(recording, traces))
    assert waits.num_matched > 0
    check_waits(waits, 2)


@pytest.mark.measures_time("a rank that waits for its core comes later than the program lets it")
def test_above_libearlybird_the_calls_of_the_program_are_kept(any_mpi, record_waits):
    recording = record_waits(any_mpi, 1000, "--interpose")
    check_waits(waits_of(recording, traced(recording)), ROUNDS)


def test_polls_are_one_record(any_mpi, record):
    """The style polls with MPI_Test, MPI_Testall and the like until its messages have come."""
    messages = [(0, 1, 100), (1, 2, 5000), (2, 3, 60000), (3, 0, 8)]
    _, recording = record(any_mpi, {"completion": messages}, "--events", "5000")
    events = traced(recording).events
    tests = [k for k, name in enumerate(events.names) if name.startswith("MPI_Test")]
    is_poll = np.isin(events.call, tests) & (events.role == CALL)
    counted = {total.name: total.calls for total in recording.call_totals()}
    assert events.calls[is_poll].sum() == sum(counted.get(events.names[k], 0) for k in tests)
    assert (events.calls[is_poll] > 1).any()  # of ranks that wait for each other on shared cores
    counted_s = {total.name: total.time_s for total in recording.call_totals()}
    polled_s = float((events.end_s - events.begin_s)[is_poll].sum())
    # With the pauses of at most 0.5 us between polls of one record.
    least_s = sum(counted_s.get(events.names[k], 0.0) for k in tests)
    assert least_s - 1e-3 <= polled_s <= least_s + 0.6e-6 * events.calls[is_poll].sum() + 1e-3


def test_without_events_there_is_no_trace(any_mpi, record):
    _, recording = record(any_mpi, {"send": [(0, 1, 4)]})
    assert load_traces(recording) == {} and traced(recording) is None
    assert not list(recording.path.glob("*.trace"))
