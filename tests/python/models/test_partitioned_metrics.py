"""The metrics of partitioned communication against brute force, known intervals and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.models import partitioned_metrics as metrics

MOMENTS = st.integers(0, 40)
INTERVALS = st.lists(st.tuples(MOMENTS, MOMENTS), min_size=1, max_size=8)


def covered(intervals, low=0, high=40):
    """Of the unit cells between `low` and `high`, how many an interval covers."""
    return sum(any(a <= cell and cell + 1 <= b for a, b in intervals) for cell in range(low, high))


def arrays(intervals):
    begin, end = np.array(intervals, dtype=float).T
    return begin[np.newaxis], end[np.newaxis]


@given(INTERVALS, MOMENTS)
def test_union_counts_every_moment_once(intervals, join):
    begin, end = arrays(intervals)
    joined = np.array([float(join)])
    assert metrics.union_length_s(begin, end) == [covered(intervals)]
    assert metrics.length_before_s(begin, end, joined) == [covered(intervals, high=join)]
    assert metrics.length_after_s(begin, end, joined) == [covered(intervals, low=join)]


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        ([(0, 10), (2, 3), (4, 5)], 10),  # nested: the end of the last one is not that of the union
        ([(0, 4), (3, 6), (8, 9)], 7),
        ([(5, 3)], 0),
        ([(5, 3), (2, 4)], 2),
    ],
)
def test_union_of_known_intervals(intervals, length):
    assert metrics.union_length_s(*arrays(intervals)) == [length]


# m = 8 MB in n = 4 partitions on one thread that computes for c = 8 ms; tau = 0.1 ms, beta = 8 GB/s.
C, N, SIZE, TAU, BETA = 8e-3, 4, 8e6, 1e-4, 8e9
READY = np.array([[2e-3, 4e-3, 6e-3, 8e-3]])
JOIN = np.array([C])
SINGLE = np.array([TAU + SIZE / BETA])


def test_closed_form_of_an_mpi_that_sends_all_at_the_last_pready():
    arrived = metrics.arrivals_together(READY, SIZE / N, TAU, BETA)
    in_flight = metrics.union_length_s(READY, arrived)
    hidden = C - C / N
    assert metrics.overhead(in_flight, SINGLE) == pytest.approx((hidden + SINGLE) / SINGLE)
    assert metrics.perceived_bandwidth_bytes_per_s(SIZE, READY, arrived.max(axis=1)) == pytest.approx(
        SIZE / SINGLE
    )
    after = metrics.length_after_s(READY, arrived, JOIN)
    assert metrics.application_availability(after, SINGLE) == pytest.approx(0, abs=1e-12)
    assert metrics.early_bird_share(READY, arrived, JOIN) == pytest.approx(hidden / (hidden + SINGLE))
    assert metrics.delivered_share(arrived, JOIN) == [0]


def test_closed_form_of_an_mpi_that_sends_each_partition():
    arrived = metrics.arrivals_when_ready(READY, SIZE / N, TAU, BETA)
    one = TAU + SIZE / N / BETA
    assert metrics.overhead(metrics.union_length_s(READY, arrived), SINGLE) == pytest.approx(N * one / SINGLE)
    assert metrics.perceived_bandwidth_bytes_per_s(SIZE, READY, arrived.max(axis=1)) == pytest.approx(
        [SIZE / one]
    )
    after = metrics.length_after_s(READY, arrived, JOIN)
    assert metrics.application_availability(after, SINGLE) == pytest.approx(1 - one / SINGLE)
    assert metrics.early_bird_share(READY, arrived, JOIN) == pytest.approx([(N - 1) / N])
    assert metrics.delivered_share(arrived, JOIN) == [(N - 1) / N]


def test_a_link_carries_one_partition_at_a_time():
    ready = np.zeros((1, N))
    arrived = metrics.arrivals_when_ready(ready, SIZE / N, TAU, BETA)
    assert arrived[0] == pytest.approx(TAU + np.arange(1, N + 1) * SIZE / N / BETA)
