"""Traces of ranks: both versions load, with requests, clocks, and the moment from which they are whole."""

import numpy as np
import pytest

from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import (
    COMPLETION,
    MESSAGE,
    ONE_CALL,
    POLLS,
    THREAD,
    load_trace,
    whole_from_s,
)
from tests.recordings import (
    CALLS,
    IRECV,
    ISEND,
    OMP_ARRIVE,
    OMP_JOIN,
    OMP_PARALLEL,
    THREAD_CALLS,
    WAITALL,
    former_trace_file,
    trace_file,
)

WORLD = 1
# A receive and a send are posted, and MPI_Waitall completes both.
EXCHANGE = [
    (0.0, 0.1, IRECV, CALL, WORLD, 1, -1, ONE_CALL, 0, 1),
    (0.1, 0.2, ISEND, SENT, WORLD, 1, 5, ONE_CALL, 800, 2),
    (0.3, 0.9, WAITALL, CALL, 0, -1, -1, ONE_CALL, 0, 0),
    (0.3, 0.9, IRECV, RECEIVED, WORLD, 1, 5, MESSAGE, 400, 1, 0.0),
    (0.3, 0.9, ISEND, SENT, WORLD, 1, 5, COMPLETION, 800, 2, 0.1),
]


@pytest.fixture
def loaded(tmp_path):
    """loaded(data) is the trace of a file with these bytes."""

    def load(data):
        path = tmp_path / "rank-0.trace"
        path.write_bytes(data)
        return load_trace(path, CALLS, 100)

    return load


def test_requests_are_those_that_records_post_and_complete(loaded):
    trace = loaded(trace_file(EXCHANGE, 10))
    assert trace.request.tolist() == [1, 2, 0, 1, 2]
    assert trace.posted_s - 1000 == pytest.approx([np.nan, np.nan, np.nan, 0.0, 0.1], nan_ok=True)
    assert trace.records["kind"].tolist() == [ONE_CALL] * 3 + [MESSAGE, COMPLETION]
    assert trace.records["role"].tolist() == [CALL, SENT, CALL, RECEIVED, SENT]
    assert trace.records["communicator"].tolist() == [WORLD, WORLD, 0, WORLD, WORLD]
    assert trace.records["order"].tolist() == trace.request.tolist()
    assert (trace.calls.tolist(), trace.bytes.tolist()) == ([1, 1, 1, 0, 0], [0, 800, 0, 400, 800])
    assert trace.begin_s - 1000 == pytest.approx([0.0, 0.1, 0.3, 0.3, 0.3])
    assert trace.end_s - 1000 == pytest.approx([0.1, 0.2, 0.9, 0.9, 0.9])
    assert trace.is_whole and trace.whole_from_s == -np.inf


def test_traces_of_the_first_version_have_the_order_of_receives_and_no_requests(loaded):
    rows = [row[:9] for row in EXCHANGE[:3]] + [(*EXCHANGE[3][:9], 7)]
    trace = loaded(former_trace_file(rows, 10))
    assert trace.request.tolist() == [0] * 4 and np.isnan(trace.posted_s).all()
    assert trace.records["order"][-1] == 7
    assert trace.bytes.tolist() == [0, 800, 0, 400] and trace.is_whole
    assert trace.end_s - 1000 == pytest.approx([0.1, 0.2, 0.9, 0.9])


@pytest.mark.parametrize("write", [trace_file, former_trace_file])
def test_of_a_full_ring_the_latest_records_count(loaded, write):
    rows = [(k, k + 0.5, WAITALL, CALL, 0, -1, -1, POLLS, 3) for k in range(25)]
    trace = loaded(write(rows, 10))
    assert trace.records["number"].tolist() == list(range(16, 26)) and trace.num == 25
    assert trace.begin_s - 1000 == pytest.approx(np.arange(15, 25))
    assert (trace.calls == 3).all() and not trace.is_whole
    assert trace.whole_from_s - 1000 == pytest.approx(15.5)
    whole = loaded(write(rows[:5], 10))
    assert whole_from_s({0: trace, 1: whole}, {0: 500.0, 1: 0.0}) == pytest.approx(515.5)
    assert whole_from_s({1: whole}, {}) == -np.inf


def test_a_parallel_region_of_which_records_were_overwritten_is_not_whole(tmp_path):
    """Its records are made at its end, with the times at which its threads began and arrived."""
    rows = []
    for region, begin_s in enumerate((1.0, 3.0)):
        for k in (1, 2):
            serial, end_s = 2 * region + k, begin_s + 0.5 * k
            rows += [
                (at_s, at_s, call, CALL, 0, -1, -1, THREAD, serial)
                for at_s, call in ((begin_s, OMP_PARALLEL), (end_s, OMP_ARRIVE), (end_s, OMP_JOIN))
            ]
        rows.append((begin_s + 1.5, begin_s + 1.6, WAITALL, CALL, 0, -1, -1, ONE_CALL, 0))
    # The oldest that is kept: a join of the first region, the begin of a thread in it, the wait after it.
    for capacity, from_s in ((12, 2.0), (11, 2.0), (8, 2.6), (7, 4.0)):
        path = tmp_path / "rank-0.trace"
        path.write_bytes(trace_file(rows, capacity))
        trace = load_trace(path, CALLS + THREAD_CALLS, 1)
        assert trace.whole_from_s - 1000 == pytest.approx(from_s)


def test_times_follow_the_clock_between_the_moments_at_which_it_was_read(loaded):
    rows = [(k, k + 0.25, WAITALL, CALL, 0, -1, -1, ONE_CALL, 0) for k in range(4)]
    # The clock is 10 ms slow in the second second, and then as fast as the ticks again.
    trace = loaded(trace_file(rows, 10, clocks=[(0.5, 0.5), (1.0, 1.0), (2.0, 1.99)]))
    assert trace.begin_s - 1000 == pytest.approx([0.0, 1.0, 1.99, 3.0], abs=1.1e-2)
    assert trace.begin_s[2] - 1000 == pytest.approx(1.99, abs=1e-6)
    assert trace.clocks_s[:4, 0] == pytest.approx([0.0, 0.5, 1.0, 2.0])
    assert trace.clocks_s[:4, 1] - 1000 == pytest.approx([0.0, 0.5, 1.0, 1.99])


def test_a_trace_that_ends_before_the_run_says_so(loaded):
    data = bytearray(trace_file(EXCHANGE, 10))
    assert not loaded(bytes(data)).is_cut
    data[64 + 8 + 64 * 16] = 1
    assert loaded(bytes(data)).is_cut and len(loaded(bytes(data)).records) == len(EXCHANGE)


def test_a_head_that_is_cut_is_a_trace_without_records(loaded):
    assert len(loaded(trace_file(EXCHANGE, 10)[:100]).records) == 0
