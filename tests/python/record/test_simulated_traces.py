"""Programs that are simulated, written as traces, and simulated again take the same time."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earlybird.analysis.waits import traced
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL
from earlybird.data.recording import load_recording
from earlybird.models.program import Semantics, simulate
from earlybird.record import partial_traces, simulation
from earlybird.record.conditions import conditions_as_recorded
from earlybird.record.operations import Operations, _Builder, operations_of
from earlybird.record.window import Window
from tests import recordings
from tests.python.models.program_texts import Written, network
from tests.python.record.test_simulation import BANDWIDTH, OVERHEAD_S, PROFILE, SMALL, WORLD
from tests.recordings import ALLREDUCE, BCAST, FINALIZE, INIT, IRECV, ISEND, WAITALL

RANKS = 3
# As PROFILE says for ranks of one socket: eager messages, and those whose sender waits.
NETWORK = network(
    [0] * RANKS, np.outer([1, 2, 2], [BANDWIDTH] * 2), OVERHEAD_S, OVERHEAD_S, between=False,
    waits=[False, True], inside=[False, True],
)  # fmt: skip


def _compute_briefly(written, rank, rng):
    """A record belongs to the call that begins when it does, and ties may be decided either way: no two calls
    of a rank begin at once, and those of two ranks hardly."""
    written.add(rank, "compute", float(rng.uniform(1e-7, 1e-6)))


def random_program(rng):
    """Non-blocking messages, waits for some of them, allreduces, broadcasts, and computing."""
    written = Written(range(RANKS))
    still_open = [[] for _ in range(RANKS)]
    for _ in range(int(rng.integers(5, 40))):
        rank, action = int(rng.integers(RANKS)), rng.random()
        if action < 0.5:
            other = int((rank + rng.integers(1, RANKS)) % RANKS)
            size = int(rng.choice([0, 8, 5000, 50_000, 10**6]))
            m = written.message(size, int(size >= SMALL))
            still_open[rank].append(written.add(rank, "send", m, OVERHEAD_S))
            still_open[other].append(written.add(other, "receive", m, 0.0))
        elif action < 0.7:
            written.add(rank, "compute", float(rng.uniform(0, 1e-3)))
        elif action < 0.8:
            meaning = Semantics.ALL_WAIT if action < 0.75 else Semantics.WAIT_FOR_ROOT
            k = written.collective(meaning, rank)
            for member in range(RANKS):
                _compute_briefly(written, member, rng)
                entered = written.add(member, "enter", k, float(rng.uniform(0, 1e-5)))
                written.add(member, "wait", [entered], 0.0)
        elif still_open[rank]:
            chosen = rng.permutation(still_open[rank])[: rng.integers(1, 4)].tolist()
            _compute_briefly(written, rank, rng)
            written.add(rank, "wait", chosen, 0.0)
            still_open[rank] = [k for k in still_open[rank] if k not in chosen]
    for rank, requests in enumerate(still_open):
        if requests:
            _compute_briefly(written, rank, rng)
            written.add(rank, "wait", requests, 0.0)
    return written


def _traces(written):
    """The rows of each rank's trace, and the end of the run."""
    program = written.program()
    run = simulate(program, NETWORK)
    ends = {}
    for rank, operations in enumerate(written.threads):
        for kind, what, *_ in operations:
            if kind in ("send", "receive"):
                ends[kind, what] = rank
        ends[rank] = run.end_s[program.first[rank] : program.first[rank + 1]]
    traces, last_s = [], 0.0
    for rank, operations in enumerate(written.threads):
        rows, before_s = [(-1.0, 0.0, INIT, CALL, 0, -1, -1, ONE_CALL, 0, 0)], 0.0
        for k, (kind, what, *_) in enumerate(operations):
            end_s = float(ends[rank][k])
            if kind == "send":
                rows.append((before_s, end_s, ISEND, SENT, WORLD, ends["receive", what], what, ONE_CALL,
                             written.messages[what][0], k + 1))  # fmt: skip
            elif kind == "receive":
                rows.append((before_s, end_s, IRECV, CALL, WORLD, ends["send", what], -1, ONE_CALL, 0, k + 1))
            elif kind == "wait" and operations[what[0]][0] == "enter":
                semantics, root = written.collectives[operations[what[0]][1]]
                call, root = (ALLREDUCE, -1) if semantics == Semantics.ALL_WAIT else (BCAST, root)
                rows.append((before_s, end_s, call, CALL, WORLD, root, -1, ONE_CALL, 8, 0))
            elif kind == "wait":
                rows.append((before_s, end_s, WAITALL, CALL, 0, -1, -1, ONE_CALL, 0, 0))
                for request in what:
                    of, m, _ = operations[request]
                    posted_s = float(ends[rank][request - 1]) if request else 0.0
                    peer = ends["receive" if of == "send" else "send", m]
                    call, role, record = (
                        (ISEND, SENT, COMPLETION) if of == "send" else (IRECV, RECEIVED, MESSAGE)
                    )
                    rows.append((before_s, end_s, call, role, WORLD, peer, m, record,
                                 written.messages[m][0], request + 1, posted_s))  # fmt: skip
            before_s = end_s
        last_s = max(last_s, before_s)
        rows.append((before_s, before_s + 1e-3, FINALIZE, CALL, 0, -1, -1, ONE_CALL, 0, 0))
        traces.append(rows)
    return traces, last_s


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1))
def test_traces_of_a_simulation_are_simulated_as_recorded(tmp_path_factory, seed):
    written = random_program(np.random.default_rng(seed))
    traces, last_s = _traces(written)
    folder = recordings.on_disk(tmp_path_factory.mktemp("traced") / "rec", RANKS, [])
    for rank, rows in enumerate(traces):
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, 1000, begin_s=1000.0))
    operations = operations_of(load_recording(folder))
    given_as = conditions_as_recorded(operations, PROFILE, parse_layout(f"1x1x{RANKS}", "core"))
    found = simulation.predict_program(operations, given_as)
    assert found.num_messages == len(written.messages)
    # Times in traces are multiples of a tick, half a nanosecond.
    assert found.recorded_s == pytest.approx(last_s, abs=1e-8)
    assert found.as_recorded_s == pytest.approx(last_s, abs=1e-7)
    path_s = sum(part.computing_s + part.communicating_s for part in found.critical_path)
    assert path_s == pytest.approx(found.simulated_s, rel=1e-9)
    waited_s = sum(row.total_s for row in found.phases)
    assert waited_s <= RANKS * found.simulated_s * (1 + 1e-9)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.floats(0, 0.9), st.floats(0.05, 1))
def test_any_window_of_a_run_can_be_simulated(tmp_path_factory, seed, begin, length):
    written = random_program(np.random.default_rng(seed))
    traces, last_s = _traces(written)
    folder = recordings.on_disk(tmp_path_factory.mktemp("windowed") / "rec", RANKS, [])
    for rank, rows in enumerate(traces):
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, 1000, begin_s=1000.0))
    if last_s < 1e-6:
        return
    from_s, until_s = begin * last_s, (begin + length) * last_s
    operations = operations_of(load_recording(folder), Window("part", from_s, until_s))
    given_as = conditions_as_recorded(operations, PROFILE, parse_layout(f"1x1x{RANKS}", "core"))
    found = simulation.predict_program(operations, given_as)
    assert found.recorded_s == pytest.approx(min(until_s, last_s) - from_s, abs=1e-8)
    assert 0 < found.as_recorded_s <= last_s + found.recorded_s


def _equal(found, expected):
    """Whether operations are the same, except for the positions of their events."""
    for name in Operations.__dataclass_fields__:
        one, other = getattr(found, name), getattr(expected, name)
        if name == "kept_s" or name == "in_calls_s":
            assert one == pytest.approx(other, abs=1e-9)
        elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, atol=1e-9, err_msg=name)
        elif isinstance(one, np.ndarray) and name != "event":
            np.testing.assert_array_equal(one, other, err_msg=name)
        elif not isinstance(one, np.ndarray):
            assert one == other, name


def _recorded(folder, traces, capacity):
    """A recording whose trace of each rank keeps its last `capacity` records, with the number of all its
    allreduces."""
    folder.mkdir(exist_ok=True)
    folder = recordings.on_disk(folder / "rec", RANKS, [])
    for rank, rows in enumerate(traces):
        counted = recordings.entries(rank, [], 0.0)
        counted["calls"][counted["call"] == ALLREDUCE] = sum(row[2] == ALLREDUCE for row in rows)
        (folder / f"rank-{rank}.ebr").write_bytes(recordings.rank_file(rank, RANKS, counted))
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, capacity, begin_s=1000.0))
    return load_recording(folder)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32 - 1), st.floats(0, 0.9), st.floats(0.05, 1), st.sampled_from([1000, 13, 29]),
    st.booleans(),
)  # fmt: skip
def test_windows_that_are_read_in_parts_are_those_of_the_whole_trace(
    tmp_path_factory, seed, begin, length, capacity, is_of_calls
):
    written = random_program(np.random.default_rng(seed))
    traces, last_s = _traces(written)
    recording = _recorded(tmp_path_factory.mktemp("parts"), traces, capacity)
    window = Window("part", begin * last_s, (begin + length) * last_s)
    if is_of_calls:
        num = sum(row[2] == ALLREDUCE for row in traces[0])
        lost = num - min(sum(row[2] == ALLREDUCE for row in rows[-capacity:]) for rows in traces)
        first = 1 + lost + int(begin * (num - lost))
        last = first + max(int(length * (num - first)), 0)
        window = Window("part", call="MPI_Allreduce", first=first, last=last)
    try:
        expected = _Builder(recording, traced(recording), window).build()
    except InputError:  # perhaps for another of several reasons
        with pytest.raises(InputError):
            operations_of(recording, window)
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partial_traces, "_MARGIN_S", 2e-9)
        patched.setattr("earlybird.data.recorded_trace._BLOCK", 7)
        found = operations_of(recording, window)
    assert max(found.event) <= max(expected.event)
    _equal(found, expected)


def _traces_of_allreduces(num):
    written = Written(range(RANKS))
    for _ in range(num):
        k = written.collective(Semantics.ALL_WAIT)
        for rank in range(RANKS):
            written.add(rank, "wait", [written.add(rank, "enter", k, 1e-6)], 0.0)
    return _traces(written)[0]


def test_calls_of_windows_are_counted_from_init_on_where_older_events_were_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(partial_traces, "_MARGIN_S", 2e-9)
    traces = _traces_of_allreduces(20)
    assert [row[2] for row in traces[0][-15:]] == [ALLREDUCE] * 14 + [FINALIZE]
    recording = _recorded(tmp_path, traces, 15)
    for first, last in ((8, 16), (12, 16), (20, 20)):
        window = Window("part", call="MPI_Allreduce", first=first, last=last)
        found = operations_of(recording, window)
        _equal(found, _Builder(recording, traced(recording), window).build())
        begins = [row[0] for row in traces[0] if row[2] == ALLREDUCE]
        ends = [row[1] for row in traces[0] if row[2] == ALLREDUCE]
        assert found.recorded_s == pytest.approx(ends[last - 1] - begins[first - 1], abs=1e-8)
    with pytest.raises(InputError, match="rank 0 the events of the first 6 calls of MPI_Allreduce were over"):
        operations_of(recording, Window("early", call="MPI_Allreduce", first=6, last=16))
    with pytest.raises(InputError, match="rank 0 has made 20 calls of MPI_Allreduce"):
        operations_of(recording, Window("late", call="MPI_Allreduce", first=12, last=21))


def test_a_window_of_a_rank_without_events_is_refused(tmp_path):
    traces, _ = _traces(random_program(np.random.default_rng(1)))
    folder = recordings.on_disk(tmp_path / "rec", RANKS, [])
    for rank, rows in enumerate(traces):
        (folder / f"rank-{rank}.trace").write_bytes(
            recordings.trace_file(rows if rank else [], 1000, begin_s=1000.0)
        )
    with pytest.raises(InputError, match="rank 0"):
        operations_of(load_recording(folder), Window("part", 0.0, 1.0))


def test_a_broadcast_whose_root_left_before_the_window_is_under_way_at_its_edge(tmp_path, monkeypatch):
    monkeypatch.setattr(partial_traces, "_MARGIN_S", 2e-9)
    written = Written(range(RANKS))
    k = written.collective(Semantics.WAIT_FOR_ROOT)
    for rank in range(RANKS):
        written.add(rank, "compute", 1e-3 * rank)
        written.add(rank, "wait", [written.add(rank, "enter", k, 1e-5)], 0.0)
        written.add(rank, "compute", 5e-3)
    recording = _recorded(tmp_path, _traces(written)[0], 1000)
    window = Window("part", 0.5e-3, 4e-3)
    found = operations_of(recording, window)
    assert found.num_under_way == 1
    _equal(found, _Builder(recording, traced(recording), window).build())


def test_a_broadcast_of_which_the_call_of_the_root_was_overwritten_is_under_way_at_the_edge(tmp_path):
    written = Written(range(RANKS))
    k = written.collective(Semantics.WAIT_FOR_ROOT)
    written.add(2, "compute", 50e-3)
    for rank in range(RANKS):
        written.add(rank, "wait", [written.add(rank, "enter", k, 1e-5)], 0.0)
    for _ in range(20):
        m = written.message(8, 0)
        for rank, kind, own_s in ((0, "send", OVERHEAD_S), (1, "receive", 0.0)):
            posted = written.add(rank, kind, m, own_s)
            written.add(rank, "compute", 1e-6)
            written.add(rank, "wait", [posted], 0.0)
    for rank in range(RANKS):
        written.add(rank, "compute", 100e-3)
    traces, _ = _traces(written)
    assert operations_of(_recorded(tmp_path / "whole", traces, 1000)).num_under_way == 0
    rest = operations_of(_recorded(tmp_path / "rest", traces, 30))
    assert rest.num_under_way == 2  # with the oldest message, whose send was overwritten, too


def test_a_window_of_calls_of_a_rank_without_a_trace_says_so(tmp_path):
    traces = _traces_of_allreduces(20)
    recording = _recorded(tmp_path, traces, 15)
    (recording.path / "rank-2.trace").unlink()
    with pytest.raises(InputError, match=r"rank 2 of the recording .* left no events"):
        operations_of(recording, Window("part", call="MPI_Allreduce", first=8, last=9))
