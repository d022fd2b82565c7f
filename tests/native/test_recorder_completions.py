"""What a recording says of single requests and epochs, and what a rank that hangs leaves, on every MPI."""

import os
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from earlybird.analysis.waits import join_traces, waits_of
from earlybird.data.recorded_rank import RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL, POLLS, load_traces
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, library_path
from tests.conftest import EARLYBIRD
from tests.recordings import TRACE_HEAD_BYTES, TRACED

pytestmark = pytest.mark.mpi

# Of tests/native/programs/record_completions.c.
NUM, ROUNDS, STARTS, THREAD_MESSAGES = 6, 5, 4, 600


@pytest.fixture
def command(compiled):
    """command(mpi, *arguments): that of the program on two ranks."""

    def make(mpi, *arguments):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        program = compiled(flavour, "record_completions", ["-pthread", "-rdynamic"])
        return [
            "mpiexec",
            "-n",
            "2",
            *(["--oversubscribe"] * (flavour.family == "openmpi")),
            program,
            *arguments,
        ]

    return make


def traces_of(own_process, tmp_path, command, mpi, *options):
    own_process("record", "-o", "rec", "--mpi", mpi, *options, "--", *command, timeout=120)
    recording = load_recording(tmp_path / "rec")
    return recording, load_traces(recording)


def check_requests(trace):
    """Every request is completed once, by a call of the same thread, and says when it was posted."""
    rows = trace.records
    completes = (rows["kind"] == COMPLETION) | (
        (rows["kind"] == MESSAGE)
        & (rows["role"] == RECEIVED)
        & (trace.request > 0)
        & ~np.isnan(trace.posted_s)
    )
    is_call = (rows["kind"] == ONE_CALL) | (rows["kind"] == POLLS)
    posts = (trace.request > 0) & ~completes & ~(is_call & (rows["role"] == RECEIVED))
    posted = dict(zip(trace.request[posts].tolist(), trace.begin_s[posts].tolist(), strict=True))
    completed = Counter(trace.request[completes].tolist())
    assert set(completed.values()) == {1}
    # A receive of MPI_Sendrecv has no call that posts it but itself.
    assert set(posted) <= set(completed)
    for k in np.flatnonzero(completes).tolist():
        request = int(trace.request[k])
        if request in posted:
            assert trace.posted_s[k] == pytest.approx(posted[request], abs=1e-9)
    ends = {(int(rows["thread"][k]), float(trace.begin_s[k])) for k in np.flatnonzero(is_call).tolist()}
    polls = [k for k in np.flatnonzero(rows["kind"] == POLLS).tolist()]
    for k in np.flatnonzero(completes).tolist():
        is_known = (int(rows["thread"][k]), float(trace.begin_s[k])) in ends
        assert is_known or any(trace.begin_s[poll] <= trace.begin_s[k] <= trace.end_s[poll] for poll in polls)
    return completes


@pytest.mark.parametrize("end", ["kill", pytest.param("exit", marks=pytest.mark.thorough)])
def test_what_a_hung_thread_has_counted_is_kept_while_another_one_polls(
    any_mpi, own_process, compiled, tmp_path, end
):
    program = compiled(find_flavour(any_mpi), "record_hung_thread", ["-pthread"])
    command = ["mpiexec", "-n", "1", program, end]
    own_process("record", "-o", "rec", "--mpi", any_mpi, "--", *command, check=False, timeout=60)
    (one,) = load_recording(tmp_path / "rec").ranks.values()
    sent = one.entries[one.entries["role"] == SENT]
    assert sent["messages"].sum() == 500
    assert one.end == (None if end == "kill" else end)


def test_every_request_is_completed_once_and_says_when_it_was_posted(mpi, own_process, tmp_path, command):
    recording, traces = traces_of(own_process, tmp_path, command(mpi), mpi, "--events", "10000")
    for rank, trace in traces.items():
        rows, calls = trace.records, recording.ranks[rank].calls
        completes = check_requests(trace)
        names = Counter(calls[call] for call in rows["call"][completes].tolist())
        assert names["MPI_Isend"] == ROUNDS * NUM + 1  # one to MPI_PROC_NULL
        assert names["MPI_Irecv"] == ROUNDS * NUM + 2  # and one that is cancelled
        assert (names["MPI_Send_init"], names["MPI_Recv_init"]) == (STARTS, STARTS)
        assert (names["MPI_Iallreduce"], names["MPI_Ibarrier"]) == (1, 1)
        sends = completes & (rows["kind"] == COMPLETION) & (rows["role"] == SENT) & (rows["peer"] >= 0)
        assert set(rows["peer"][sends].tolist()) == {1 - rank}
        sizes = Counter(trace.bytes[sends].tolist())
        assert sizes == {8: ROUNDS * NUM // 2 + STARTS, 1 << 17: ROUNDS * NUM // 2}
        # What a wait for one request completes is that request: its tag follows the order of the program.
        waits = [k for k, call in enumerate(rows["call"].tolist()) if calls[call] == "MPI_Wait"][: 2 * NUM]
        tags = [
            int(rows["tag"][k])
            for wait in waits
            for k in np.flatnonzero(completes & (trace.begin_s == trace.begin_s[wait])).tolist()
        ]
        assert tags == [10 + k for k in range(NUM)] * 2
        received = completes & (rows["role"] == RECEIVED) & (rows["kind"] == MESSAGE)
        order = np.argsort(rows["order"][received])
        by_posting = rows["tag"][received][order].tolist()
        assert by_posting[: 3 * NUM] == [10 * k // 1 + j for k in range(3) for j in range(NUM)]


def test_requests_of_threads_are_completed_once(any_mpi, own_process, tmp_path, command):
    _, traces = traces_of(own_process, tmp_path, command(any_mpi, "threads"), any_mpi, "--events", "20000")
    for trace in traces.values():
        assert trace.is_whole
        completes = check_requests(trace)
        assert completes.sum() > 2 * THREAD_MESSAGES


def test_all_events_are_kept_as_far_as_the_size_suffices(any_mpi, own_process, tmp_path, command):
    options = ("--events", "all", "--events-size", "1MiB")
    recording, traces = traces_of(own_process, tmp_path, command(any_mpi, "threads"), any_mpi, *options)
    for rank, trace in traces.items():
        counted = {total.name: total.calls for total in load_of(recording, rank).call_totals()}
        assert trace.is_whole and trace.calls.sum() == sum(counted.values())
        assert (tmp_path / "rec" / f"rank-{rank}.trace").stat().st_size <= 4096 + (1 << 19)


def load_of(recording, rank):
    return replace(recording, ranks={rank: recording.ranks[rank]})


def test_a_full_disk_ends_the_trace_and_nothing_else(any_mpi, own_process, tmp_path, command):
    """A limit of the size of files is to a writer what a full disk is."""
    job = ("--mpi", any_mpi, "--events", "100000", "--", *command(any_mpi, "full"))
    result = own_process("record", "-o", "rec", *job, timeout=120)
    assert "the events of this rank end here" in result.stderr
    recording = load_recording(tmp_path / "rec")
    assert recording.ended_early == [] and recording.sent().messages.sum() > 2 * THREAD_MESSAGES
    traces = load_traces(recording)
    assert {rank: trace.is_cut for rank, trace in traces.items()} == {0: True, 1: True}
    for trace in traces.values():
        numbers = sorted([*trace.records["number"].tolist(), *trace.threads.number.tolist()])
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) == ((100 << 10) - TRACE_HEAD_BYTES) // TRACED.itemsize


def test_communicators_have_one_identity_on_all_ranks_and_duplicates_another(
    mpi, own_process, tmp_path, command
):
    recording, traces = traces_of(own_process, tmp_path, command(mpi), mpi, "--events", "10000")
    by_size = []
    for rank, trace in traces.items():
        rows, communicators = trace.records, recording.ranks[rank].communicators
        known = [one.identity for one in communicators.values()]
        assert None not in known and len(set(known)) == len(known)
        last = (rows["role"] == (SENT, RECEIVED)[rank]) & (rows["kind"] == ONE_CALL) & (rows["tag"] == 0)
        numbers = dict(zip(trace.bytes[last].tolist(), rows["communicator"][last].tolist(), strict=True))
        by_size.append({size: communicators[number].identity for size, number in numbers.items()})
        assert len(set(by_size[-1].values())) == 2
    assert by_size[0] == by_size[1]
    parts = [
        {one.identity for one in recording.ranks[rank].communicators.values() if len(one.members) == 1}
        for rank in range(2)
    ]
    assert not parts[0] & parts[1]
    grids = [
        {one.identity for one in recording.ranks[rank].communicators.values() if one.topology == "cart"}
        for rank in range(2)
    ]
    assert len(grids[0]) == 1 and grids[0] == grids[1]


@pytest.mark.parametrize("way", ["dup", "idup", "split"])
def test_messages_on_communicators_that_are_created_and_freed_in_a_loop_are_matched(
    any_mpi, own_process, tmp_path, compiled, way
):
    """Each rank has used other ones of them."""
    flavour = find_flavour(any_mpi)
    launch = ["mpiexec", "-n", 3, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    program = compiled(flavour, "record_duplicates")
    recording, traces = traces_of(
        own_process, tmp_path, [*launch, program, way], any_mpi, "--events", "10000"
    )
    found = waits_of(recording, join_traces(recording, traces))
    assert found.num_matched == found.num_received == 20  # ROUNDS of record_duplicates.c


def wait_until(is_so, seconds=60):
    end_s = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_a_hung_rank_leaves_what_it_had_counted_and_its_call(mpi, tmp_path, command):
    """Both ranks are interrupted in a call and outside of one, soon after MPI_Init."""
    hangs = map(str, command(mpi, "hang"))
    job = subprocess.Popen(
        [EARLYBIRD, "record", "-o", "rec", "--mpi", mpi, "--events", "10000", "--", *hangs],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
    try:

        def is_hung():
            if not (tmp_path / "rec" / "rank-1.open").exists():
                return False
            call = load_recording(tmp_path / "rec").ranks[1].open_call
            return call is not None and (call.call, call.tag) == ("MPI_Recv", 99)

        wait_until(is_hung)
        os.killpg(job.pid, signal.SIGTERM)
        out, err = job.communicate(timeout=60)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    recording = load_recording(tmp_path / "rec")
    opened = recording.ranks[1].open_call
    assert (opened.peer, opened.communicator > 0) == (0, True)
    assert opened.site.function == "hang" and opened.since_s > 0
    assert recording.ranks[0].open_call is None
    # The kernel may have ended a write in the middle, but nothing of it is old.
    sent = recording.sent().by_pair()
    assert sent.messages.sum() > 0.8 * 2 * ROUNDS * NUM
    assert "No call waits for another rank" not in out
    assert "MPI_Recv" in err and "hang" in err


def test_epochs_are_kept_one_by_one_and_the_same_ones_on_all_ranks(any_mpi, own_process, tmp_path, compiled):
    flavour, size, steps = find_flavour(any_mpi), 4, 600
    launch = ["mpiexec", "-n", size, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    program = compiled(flavour, "record_rotation")
    own_process("record", "-o", "rec", "--mpi", any_mpi, "--", *launch, program, timeout=120)
    recording = load_recording(tmp_path / "rec")
    kept = {}
    for rank, one in recording.ranks.items():
        ((key, samples),) = (
            (key, samples) for key, samples in one.epoch_samples.items() if one.phases[key[0]].epochs == steps
        )
        assert samples.is_complete and key[1] == 0
        kept[rank] = samples.epochs.tolist()
        assert len(samples.variants) == size - 1
        for epoch, variant in zip(samples.epochs.tolist(), samples.variant.tolist(), strict=True):
            rows = samples.variants[variant]
            shift = 1 + epoch % (size - 1)
            assert rows["peer"][rows["role"] == SENT].tolist() == [(rank + shift) % size]
            assert rows["peer"][rows["role"] == RECEIVED].tolist() == [(rank - shift) % size]
            assert set(rows["bytes"].tolist()) == {64}
    assert kept[0] == kept[1] == kept[2] == kept[3]
    assert kept[0][:8] == list(range(8)) and 64 < len(kept[0]) <= 256 and max(kept[0]) > steps / 2


def test_settings_and_conditions_are_those_of_the_ranks(mpi, own_process, tmp_path, command, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("UCX_LOG_LEVEL", "error")
    monkeypatch.setenv("NO_SETTING", "1")
    recording, traces = traces_of(own_process, tmp_path, command(mpi), mpi)
    assert not traces
    # What the launcher tells its ranks is no setting.
    set_here = {name for name in os.environ if name.startswith(("I_MPI_", "OMPI_", "PRTE_", "PMIX_"))}
    assert not {name for name in recording.settings if name.startswith(("I_MPI_", "OMPI_"))} - set_here
    both = {"3": (0, 1)}
    assert recording.settings["OMP_NUM_THREADS"] == both
    assert set(recording.settings["UCX_LOG_LEVEL"]) == {"error"}
    assert not [name for name in recording.settings if name.startswith(("NO_", "EARLYBIRD_RECORD"))]
    for one in recording.ranks.values():
        assert set(one.binding) <= os.sched_getaffinity(0) and one.binding
        assert len(one.load) == 3 and abs(one.begin_s - time.time()) < 300
    assert recording.facts["versions"]["earlybird"] and recording.facts["host"]["cores"] >= 1
