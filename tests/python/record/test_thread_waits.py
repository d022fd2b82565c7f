"""Recorded programs whose threads create, join and meet each other, simulated as recorded and changed."""

import numpy as np
import pytest

from earlybird.analysis.waits import traced, waits_of
from earlybird.data.layout import parse_layout
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL, THREAD, load_traces
from earlybird.data.recording import load_recording
from earlybird.data.simulated_program import COMPUTING, ENDED, WAITING
from earlybird.interop.chrome_trace import chrome_trace
from earlybird.record import simulation
from earlybird.record.conditions import conditions_as_recorded
from earlybird.record.operations import operations_of
from earlybird.record.window import parse_window
from tests import recordings
from tests.recordings import (
    ALLREDUCE,
    BARRIER_WAIT,
    CREATE,
    EXIT,
    FINALIZE,
    INIT,
    IRECV,
    ISEND,
    JOIN,
    WAITALL,
)

# Messages take SIZE / BANDWIDTH, and their sender waits for that.
SIZE, BANDWIDTH = 10**6, 1e9
MESSAGE_S = SIZE / BANDWIDTH
PROFILE = Profile(
    {
        "intra_socket": Level("intra_socket", (
            Protocol(name="rendezvous", min_bytes=0, latency_s=0.0, sender_waits=True,
                     bandwidth_bytes_per_s={1: BANDWIDTH, 2: 2 * BANDWIDTH}),
        ))
    }, "p",
)  # fmt: skip
LAYOUT = parse_layout("1x1x2", "core")
# Of a step: rank 0 creates its threads, which compute for so long, send, and compute again.
WORKS_S, AFTER_S, GAP_S, STEPS = (0.010, 0.030), 0.002, 0.001, 10
CREATING_S = 1e-4
OPENMP = {CREATE: recordings.OMP_PARALLEL, EXIT: recordings.OMP_ARRIVE, JOIN: recordings.OMP_JOIN}


def _row(begin_s, end_s, call, thread=0, role=CALL, of=0, peer=-1, tag=-1, kind=ONE_CALL, size=0, request=0):
    return (begin_s, end_s, call, role, of, peer, tag, kind, size, request, None, thread)


def _of_thread(begin_s, end_s, call, thread, identity, begins=False, meeting=-1):
    role = RECEIVED if begins else CALL
    return _row(begin_s, end_s, call, thread, role, tag=meeting, kind=THREAD, size=identity)


def _worker(thread, serial, begin_s, work_s, meet_s=None, num_before=0):
    """The rows of a thread, and when it ends."""
    rows = [_of_thread(begin_s, begin_s, CREATE, thread, serial, begins=True)]
    ready_s = begin_s + work_s
    if meet_s is not None:
        rows.append(_of_thread(ready_s, meet_s, BARRIER_WAIT, thread, 1, meeting=2))
        ready_s = meet_s
    # Messages of a pair follow each other.
    sent_s = ready_s + (num_before + 1) * MESSAGE_S
    tag = 5 + thread
    rows += [
        _row(ready_s, ready_s, ISEND, thread, SENT, 1, 1, tag, size=SIZE, request=serial),
        _row(ready_s, sent_s, WAITALL, thread),
        _row(ready_s, sent_s, ISEND, thread, SENT, 1, 1, tag, COMPLETION, SIZE, serial),
    ]
    ended_s = sent_s + AFTER_S
    rows.append(_of_thread(ended_s, ended_s, EXIT, thread, serial))
    return rows, ended_s, sent_s


def _record(
    folder, works_s=WORKS_S, meets=False, steps=STEPS, level="multiple", slots=(1, 2), capacity=10**4,
    is_openmp=False,
):  # fmt: skip
    """A recording of both ranks: rank 1 receives what the threads of rank 0 send."""
    rows = [[_row(-1.0, 0.0, INIT)], [_row(-1.0, 0.0, INIT)]]
    now_s, serial = 0.0, 0
    for step in range(steps):
        now_s += GAP_S
        ended_s, sent_s, meet_s = [], [], None
        begins_s = [now_s + CREATING_S * (k + 0.5) for k in range(2)]
        if meets:
            meet_s = 1e-6 + max(begin_s + work_s for begin_s, work_s in zip(begins_s, works_s, strict=True))
        creates, joins, posts = [], [], []
        for k, work_s in enumerate(works_s):
            creates.append(_of_thread(now_s + CREATING_S * k, now_s + CREATING_S * (k + 1), CREATE, 0,
                                      serial + k + 1))  # fmt: skip
            of_worker, end_s, done_s = _worker(
                slots[k], serial + k + 1, begins_s[k], work_s, meet_s, k * meets
            )
            rows[0] += of_worker
            ended_s.append(end_s)
            sent_s.append(done_s)
        begin_s = now_s + 2 * CREATING_S
        for k in range(2):
            end_s = max(begin_s, ended_s[k])
            joins.append(_of_thread(begin_s, end_s, JOIN, 0, serial + k + 1))
            begin_s = end_s
        rows[0] += creates + joins
        for k in range(2):
            at_s = now_s - GAP_S / 2 + 1e-6 * k
            posts.append(_row(at_s, at_s, IRECV, of=1, peer=0, request=2 * step + k + 1))
        posts.append(_row(now_s, max(sent_s), WAITALL))
        posts += [
            _row(now_s, max(sent_s), IRECV, 0, RECEIVED, 1, 0, 5 + slots[k], MESSAGE, SIZE, 2 * step + k + 1)
            for k in range(2)
        ]
        rows[1] += posts
        now_s = begin_s
        for rank in range(2):
            rows[rank].append(_row(now_s if rank == 0 else max(sent_s) + 1e-5, now_s + 1e-5, ALLREDUCE, of=1,
                                   size=8))  # fmt: skip
        now_s += 1e-5
        serial += 2
    for rank in range(2):
        rows[rank].append(_row(now_s, now_s + 1e-3, FINALIZE))
    recordings.on_disk(folder, 2, [(0, 1, 2 * steps, SIZE)])
    calls = recordings.CALLS + recordings.THREAD_CALLS
    for rank in range(2):
        entries = recordings.entries(rank, [(0, 1, 2 * steps, SIZE)], 0.2)
        (folder / f"rank-{rank}.ebr").write_bytes(
            recordings.rank_file(rank, 2, entries, calls=calls, thread_level=level)
        )
        ordered = sorted(rows[rank], key=lambda row: row[1])
        if is_openmp:
            ordered = [(*row[:2], OPENMP.get(row[2], row[2]), *row[3:]) for row in ordered]
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(ordered, capacity))
    return load_recording(folder), now_s


def _step_s(works_s, message_s=MESSAGE_S):
    """How long a step takes, after the second thread has been created."""
    return max(CREATING_S * (k + 0.5) + work_s for k, work_s in enumerate(works_s)) + message_s + AFTER_S


def _predicted(recording, *changes, profile=PROFILE):
    operations = operations_of(recording)
    as_recorded = conditions_as_recorded(operations, profile, LAYOUT)
    return simulation.predict_program(operations, as_recorded, [change(operations) for change in changes])


def _computing(name, factor):
    return lambda operations: simulation.computing_change(operations, name, factor)


def _settings(*texts):
    return lambda operations: simulation.settings_change(texts)


@pytest.mark.parametrize(("meets", "is_openmp"), [(False, False), (True, False), (False, True)])
def test_threads_are_simulated_as_recorded(tmp_path, meets, is_openmp):
    recording, end_s = _record(tmp_path / "rec", meets=meets, is_openmp=is_openmp)
    found = _predicted(recording)
    assert found.recorded_s == pytest.approx(end_s)
    assert found.as_recorded_s == pytest.approx(end_s, rel=1e-3)
    waits = {row.call: row.waiting_s for row in found.phases}
    messages_s = MESSAGE_S * (1 + meets)
    assert waits["omp_join" if is_openmp else "pthread_join"] == pytest.approx(
        STEPS * _step_s(WORKS_S, messages_s), rel=0.02
    )
    if meets:
        assert waits["pthread_barrier_wait"] == pytest.approx(STEPS * (WORKS_S[1] - WORKS_S[0]), rel=0.02)
    # The path goes from the join to the thread that it waits for.
    most = found.critical_path[0]
    assert most.rank == 0 and most.computing_s == pytest.approx(STEPS * WORKS_S[1], rel=0.02)


@pytest.mark.parametrize(
    ("changes", "works_s", "message_s"),
    [
        ((_settings("intra_socket.bandwidth=2x"),), WORKS_S, MESSAGE_S / 2),
        ((_settings("intra_socket.bandwidth=0.1x"),), WORKS_S, 10 * MESSAGE_S),
        ((_computing("MPI_Isend", 0.5),), [work_s / 2 for work_s in WORKS_S], MESSAGE_S),
        ((_computing("MPI_Isend", 3),), [3 * work_s for work_s in WORKS_S], MESSAGE_S),
        (
            (_computing("MPI_Isend", 0.5), _settings("intra_socket.bandwidth=0.1x")),
            [work_s / 2 for work_s in WORKS_S],
            10 * MESSAGE_S,
        ),
    ],
    ids=["faster messages", "slower messages", "half the computing", "more computing", "both"],
)
def test_what_changes_in_threads_moves_the_thread_that_joins_them(tmp_path, changes, works_s, message_s):
    recording, end_s = _record(tmp_path / "rec")
    # Rank 1 completes both messages, of which the later one has left.
    found = _predicted(recording, *changes)
    expected_s = end_s + STEPS * (_step_s(works_s, message_s) - _step_s(WORKS_S))
    assert found.simulated_s == pytest.approx(expected_s, rel=2e-3)


def test_a_thread_that_computes_less_is_limited_by_the_other(tmp_path):
    """The first thread becomes the faster one of two that meet, which gains nothing."""
    recording, end_s = _record(tmp_path / "rec", works_s=(0.030, 0.029), slots=(1, 2))
    operations = operations_of(recording)
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    is_first = np.repeat(operations.thread_slot == 1, np.diff(operations.first)) & (operations.rank == 0)
    half_s = np.where(is_first & (operations.own_s > 0.02), operations.own_s / 2, operations.own_s)
    change = simulation.Change("half", lambda of: type(of)(**{**of.__dict__, "compute_s": half_s}))
    found = simulation.predict_program(operations, given, [change])
    expected_s = end_s + STEPS * (_step_s((0.015, 0.029)) - _step_s((0.030, 0.029)))
    assert found.simulated_s == pytest.approx(expected_s, rel=2e-3)


def test_threads_that_follow_each_other_have_their_own_time(tmp_path):
    """A number that a new thread takes over says nothing about waiting for the former one."""
    recording, _ = _record(tmp_path / "rec")
    operations = operations_of(recording)
    assert len(operations.thread_rank) == 2 + 2 * STEPS
    assert operations.row.max() == 3
    found = _predicted(recording)
    rows = {(one.rank, one.thread): one for one in found.timelines[1].threads}
    assert set(rows) == {(0, 0), (0, 1), (0, 2), (1, 0)}
    assert WAITING in rows[0, 0].state and COMPUTING in rows[0, 2].state
    # The first thread has ended while the other one computes.
    assert ENDED in rows[0, 1].state[:-1]
    recorded = {(one.rank, one.thread): one for one in found.timelines[0].threads}
    for one in (rows, recorded):
        assert one[0, 1].state.count(COMPUTING) == STEPS
        assert WAITING in one[0, 0].state and WAITING not in one[0, 1].state


def test_calls_of_threads_are_no_calls_of_the_mpi(tmp_path):
    recording, _ = _record(tmp_path / "rec")
    joined = traced(recording)
    assert not any(joined.events.is_call(frozenset(recordings.THREAD_CALLS)))
    assert len(joined.threads) == STEPS * 2 * 4
    assert load_traces(recording)[0].is_whole
    assert waits_of(recording, joined).is_whole
    operations = operations_of(recording)
    assert operations.num_calls == int((joined.events.calls > 0).sum()) - 2  # without MPI_Init
    assert operations.kept_s == {}
    lines = "".join(chrome_trace(joined.all_events, joined.matches, recording))
    assert lines.count('"cat":"thread"') == len(joined.threads)
    assert '"name":"pthread_join"' in lines


def test_threads_that_take_turns_in_the_mpi_are_one(tmp_path):
    """Their order in the MPI is kept by locks that are not in the recording."""
    recording, _ = _record(tmp_path / "rec", level="serialized")
    entries = recording.ranks[0].entries
    entries = np.concatenate([entries, entries[:1]])
    entries["thread"][-1] = 1
    object.__setattr__(recording.ranks[0], "entries", entries)
    operations = operations_of(recording)
    assert len(operations.thread_rank) == 2


def test_a_recorder_of_one_thread_knows_what_others_compute(tmp_path):
    """At MPI_THREAD_FUNNELED only the first thread is in the MPI."""
    recording, _ = _record(tmp_path / "rec", level="funneled")
    assert len(operations_of(recording).thread_rank) == 2 + 2 * STEPS
    assert len(operations_of(recording, with_threads=False).thread_rank) == 2


@pytest.mark.parametrize("window", ["0.05s..0.15s", "MPI_Allreduce:3..7"])
def test_a_window_has_the_threads_in_it(tmp_path, window):
    recording, _ = _record(tmp_path / "rec", meets=True)
    operations = operations_of(recording, parse_window(window))
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    found = simulation.predict_program(operations, given)
    assert found.as_recorded_s == pytest.approx(found.recorded_s, rel=0.05)


def test_older_events_that_were_overwritten_leave_a_part_of_the_run(tmp_path):
    recording, _ = _record(tmp_path / "rec", capacity=60)
    found = _predicted(recording)
    assert "the last" in found.window
    assert found.as_recorded_s == pytest.approx(found.recorded_s, rel=0.05)


def test_joins_of_threads_whose_end_is_not_known_keep_their_time(tmp_path):
    recording, end_s = _record(tmp_path / "rec")
    path = recording.path / "rank-0.trace"
    data = bytearray(path.read_bytes())
    rows = np.frombuffer(data, recordings.TRACED, offset=recordings.TRACE_HEAD_BYTES)
    rows["bytes"][(rows["call"] == EXIT) & (rows["what"] >> 28 == THREAD)] += 1000
    path.write_bytes(data)
    found = _predicted(load_recording(recording.path))
    assert found.as_recorded_s == pytest.approx(end_s, rel=0.02)
    assert any("pthread_join" in note for note in found.notes)


def test_joined_time_is_no_unknown_sleep(tmp_path):
    folder = tmp_path / "rec"
    _record(folder)
    for joined_s, slept_s in ((0.0, 1.4), (1.2, 0.2)):
        path = folder / "rank-0.ebr"
        data = path.read_bytes()
        marker = data.rindex(b'{"kind": "end"') - 24
        path.write_bytes(
            data[:marker]
            + recordings.text(kind="end", how="finalize", run_s=2.0, ran_s=0.3, core_wait_s=0.0,
                              joined_s=joined_s)
        )  # fmt: skip
        own = load_recording(folder).ranks[0]
        in_calls_s = 1e-9 * float(own.entries["time_ns"][own.entries["role"] == CALL].sum()) - 5
        assert own.slept_s == pytest.approx(max(slept_s + 0.3 - in_calls_s, 0.0), abs=1e-6)
