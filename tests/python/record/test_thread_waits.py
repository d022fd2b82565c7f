"""Recorded programs whose threads create, join and meet each other, simulated as recorded and changed."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.analysis.waits import traced, waits_of
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL, THREAD, load_traces
from earlybird.data.recording import load_recording
from earlybird.data.simulated_program import COMPUTING, ENDED, WAITING
from earlybird.interop.chrome_trace import chrome_trace
from earlybird.interop.message_exports import write_chrome_trace
from earlybird.models.program import Deadlock, Operation, simulate
from earlybird.record import conditions, simulation
from earlybird.record.conditions import conditions_as_recorded, simulate_run
from earlybird.record.network import network_of
from earlybird.record.operations import NO_SITE, operations_of
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
    exported = write_chrome_trace(recording.path, tmp_path / "trace.json")
    assert f" {len(joined.all_events)} events" in exported.text
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


RECEIVED_S, COMPUTED_S = 0.001, 0.060


def _detached(folder, *extra, capacity=100):
    """A recording in which rank 0 creates a thread that nobody joins, posts a receive and computes until it
    waits for the message, which rank 1 has sent meanwhile; and `extra` rows of rank 0. Of rank 1, `capacity`
    records are kept."""
    size = 2 * SIZE
    rows = [
        [
            _row(-1.0, 0.0, INIT),
            _of_thread(5e-4, 6e-4, CREATE, 0, 1),
            _of_thread(6e-4, 6e-4, CREATE, 1, 1, begins=True),
            _row(RECEIVED_S, RECEIVED_S, IRECV, of=1, peer=1, request=1),
            _of_thread(0.005, 0.005, EXIT, 1, 1),
            _row(COMPUTED_S, COMPUTED_S + 2 * MESSAGE_S, WAITALL),
            _row(COMPUTED_S, COMPUTED_S + 2 * MESSAGE_S, IRECV, 0, RECEIVED, 1, 1, 5, MESSAGE, size, 1),
            _row(0.1, 0.101, FINALIZE),
            *extra,
        ],
        [
            _row(-1.0, 0.0, INIT),
            _row(0.002, 0.002, ISEND, 0, SENT, 1, 0, 5, size=size, request=1),
            _row(0.002, COMPUTED_S + 2 * MESSAGE_S, WAITALL),
            _row(0.002, COMPUTED_S + 2 * MESSAGE_S, ISEND, 0, SENT, 1, 0, 5, COMPLETION, size, 1),
            _row(0.1, 0.101, FINALIZE),
        ],
    ]
    recordings.on_disk(folder, 2, [(1, 0, 1, size)])
    calls = recordings.CALLS + recordings.THREAD_CALLS
    for rank in range(2):
        entries = recordings.entries(rank, [(1, 0, 1, size)], 0.06)
        (folder / f"rank-{rank}.ebr").write_bytes(
            recordings.rank_file(rank, 2, entries, calls=calls, thread_level="multiple")
        )
        ordered = sorted(rows[rank], key=lambda row: row[1])
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(ordered, (100, capacity)[rank]))
    return load_recording(folder)


def _begun_inside_s(recording):
    """When the message begins if its receiver has to be in the MPI."""
    operations = operations_of(recording)
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    program, _ = simulate_run(operations, given)
    network = network_of(operations, given)[0]
    inside = np.ones_like(network.starts_inside)
    (begun_s,) = simulate(program, replace(network, starts_inside=inside)).begun_s
    return operations, begun_s


def test_a_thread_that_nobody_joins_is_outside_the_mpi(tmp_path):
    """Nothing brings the message on while the first thread computes."""
    operations, begun_s = _begun_inside_s(_detached(tmp_path / "rec"))
    assert len(operations.thread_rank) == 3
    assert begun_s == pytest.approx(COMPUTED_S)


@pytest.mark.parametrize(
    "extra",
    [
        (_of_thread(0.006, 0.05, JOIN, 0, 7),),
        (_of_thread(0.006, 0.05, BARRIER_WAIT, 0, 7, meeting=2),),
        (_of_thread(0.006, 0.05, CREATE, 0, 7),),
        (_of_thread(0.006, 0.006, CREATE, 2, 8, begins=True), _of_thread(0.01, 0.01, EXIT, 2, 8)),
    ],
    ids=["join", "barrier", "create", "begin"],
)
def test_waits_of_threads_for_what_is_not_known_are_outside_the_mpi(tmp_path, extra):
    operations, begun_s = _begun_inside_s(_detached(tmp_path / "rec", *extra))
    assert begun_s == pytest.approx(COMPUTED_S)
    # They keep their time, and a thread begins when it began.
    assert simulation.predict_program(
        operations, conditions_as_recorded(operations, PROFILE, LAYOUT)
    ).as_recorded_s == pytest.approx(0.1, rel=1e-3)
    if len(extra) > 1:
        begins_s = operations.own_s[operations.first[:-1]]
        assert begins_s[operations.thread_slot == 2] == pytest.approx(0.006)


def test_threads_without_a_call_in_what_is_simulated_are_left_out(tmp_path):
    """Older events of rank 1 were overwritten."""
    operations = operations_of(_detached(tmp_path / "rec", capacity=2))
    assert "the last" in operations.window
    assert operations.thread_rank.tolist() == [0, 1]


def test_a_rank_without_calls_in_the_window_keeps_a_thread(tmp_path):
    recording = _detached(tmp_path / "rec", _row(0.07, 0.08, ALLREDUCE))
    operations = operations_of(recording, parse_window("0.065s..0.09s"))
    assert operations.thread_rank.tolist() == [0, 1]


def test_a_wait_for_ever_names_what_a_thread_waits_for(tmp_path, monkeypatch):
    recording, _ = _record(tmp_path / "rec")
    operations = operations_of(recording)
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    is_wait = operations.operation == Operation.WAIT_ALL
    names = np.array([*(call for call, _ in operations.sites), ""])[operations.site]

    def text_of(waiting):
        def stuck(*_):
            raise Deadlock(waiting)

        monkeypatch.setattr(conditions, "simulate", stuck)
        with pytest.raises(InputError) as error:
            simulate_run(operations, given)
        return str(error.value)

    begins = text_of(int(np.flatnonzero(is_wait & (operations.site == NO_SITE))[0]))
    assert "a thread of rank 0 waits for ever for the thread that creates it" in begins
    joins = text_of(int(np.flatnonzero(is_wait & (names == "pthread_join"))[0]))
    assert "rank 0 waits for ever in pthread_join" in joins
    assert all("events of its threads are damaged" in text for text in (begins, joins))
    of_mpi = text_of(int(np.flatnonzero(is_wait & (names == "MPI_Waitall"))[0]))
    assert "damaged" not in of_mpi
