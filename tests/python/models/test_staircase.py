"""The staircase formulas against closed forms, published equations and a simulation written the slow way."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.models import staircase

BANDWIDTH = np.array([10e9, 16e9, 18e9, 20e9])


def _simulate(volumes, bandwidth):
    """Serve every process alone, one finisher after the other; (12)-(17) word by word."""
    received = [0.0] * len(volumes)
    finished = [0.0] * len(volumes)
    unfinished = set(range(len(volumes)))
    now = 0.0
    while unfinished:
        n = len(unfinished)
        rate, left = {}, {}
        for i in unfinished:
            total = sum(volumes[i])
            rate[i] = sum(part / total * bandwidth[n - 1][c] / n for c, part in enumerate(volumes[i]))
            left[i] = total - received[i]
        following = min(unfinished, key=lambda i: (left[i] / rate[i], i))
        step = max(left[following] / rate[following], 0.0)
        now += step
        for i in unfinished:
            received[i] += step * rate[i]
        finished[following] = now
        unfinished.remove(following)
    return finished


def _one_class(volume, bandwidth):
    return staircase.receive_times_s(volume[:, None], bandwidth[:, None])


def test_worked_example_of_one_group_of_four():
    times_s = _one_class(np.array([100_000, 200_000, 400_000, 400_000]), BANDWIDTH)
    assert times_s == pytest.approx(np.array([20, 110 / 3, 185 / 3, 185 / 3]) * 1e-6, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_equal_messages_take_n_times_s_over_bandwidth(n):
    times_s = _one_class(np.full(n, 12345), BANDWIDTH[:n])
    assert times_s == pytest.approx(np.full(n, n * 12345 / BANDWIDTH[n - 1]), rel=1e-12)


def test_bandwidth_is_linear_between_nodes_and_constant_beyond():
    counts, rates = np.array([1, 2, 4]), np.array([10e9, 25e9, 15e9])
    got = staircase.bandwidth_at(np.array([1, 2, 3, 4, 9]), counts, rates)
    assert got.tolist() == [10e9, 25e9, 20e9, 15e9, 15e9]


_VOLUMES = st.integers(1, 3).flatmap(
    lambda classes: st.lists(
        st.lists(st.integers(0, 10**7), min_size=classes, max_size=classes).filter(any),
        min_size=1,
        max_size=8,
    )
)


@settings(deadline=None)
@given(_VOLUMES, st.data())
def test_finishing_times_equal_a_step_by_step_simulation(volumes, data):
    shape = (len(volumes), len(volumes[0]))
    rates = st.lists(st.floats(1e8, 1e11), min_size=shape[1], max_size=shape[1])
    bandwidth = np.array(data.draw(st.lists(rates, min_size=shape[0], max_size=shape[0])))
    got = staircase.receive_times_s(np.array(volumes), bandwidth)
    assert got == pytest.approx(_simulate(volumes, bandwidth), rel=1e-9)


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=12), st.data())
def test_the_mixed_steps_reduce_to_equation_7_with_one_class(volumes, data):
    """Half of each volume in either of two classes that are the same is mixed, but not in its times."""
    rates = st.lists(st.floats(1e8, 1e11), min_size=len(volumes), max_size=len(volumes))
    bandwidth, volume = np.array(data.draw(rates)), np.array(volumes) * 2
    halves = staircase.receive_times_s(
        np.column_stack([volume, volume]) // 2, np.column_stack([bandwidth, bandwidth])
    )
    assert halves == pytest.approx(_one_class(volume, bandwidth), rel=1e-9)
    # (7): t_0 = N V_0/BW(N), t_i = t_(i-1) + (N-i)(V_i - V_(i-1))/BW(N-i).
    left = np.arange(len(volume), 0, -1)
    equation_7 = np.cumsum(left * np.diff(np.sort(volume), prepend=0) / bandwidth[left - 1])
    assert np.sort(_one_class(volume, bandwidth)) == pytest.approx(equation_7, rel=1e-9)


def test_groups_together_give_what_each_gives_alone():
    rng = np.random.default_rng(2)
    first = np.array([0, 3, 3, 4, 9])
    volume, bandwidth = rng.integers(0, 10**6, (9, 2)) + 1, rng.uniform(1e9, 9e9, (2, 5, 2))
    volume[3:, 1] = 0
    together = staircase.group_times_s(first, volume, bandwidth)
    for begin, end in itertools.pairwise(first):
        if end > begin:
            alone = staircase.receive_times_s(volume[begin:end], bandwidth[:, : end - begin])
            assert together[:, begin:end] == pytest.approx(alone, rel=1e-12)


def test_parameter_sets_in_a_batch_give_what_each_gives_alone():
    volumes = np.array([[5, 0], [3, 4], [0, 9]]) * 1000
    bandwidth = np.random.default_rng(3).uniform(1e9, 9e9, (4, 3, 2))
    together = staircase.receive_times_s(volumes, bandwidth)
    assert together.shape == (4, 3)
    for row, alone in zip(together, bandwidth, strict=True):
        assert row == pytest.approx(staircase.receive_times_s(volumes, alone), rel=1e-12)


def test_two_protocols_share_by_volume():
    # Alone with half of its bytes at 2 GB/s and half at 4 GB/s a process receives at 3 GB/s.
    times_s = staircase.receive_times_s(np.array([[3000, 3000]]), np.array([[2e9, 4e9]]))
    assert times_s == pytest.approx([2e-6], rel=1e-12)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 10**9), min_size=2, max_size=8),
    st.integers(0, 7),
    st.integers(1, 10**9),
    st.data(),
)
def test_more_bytes_never_make_anybody_receive_sooner(volumes, which, more, data):
    # True where a process's share BW(n)/n does not grow with n, which a measured table may break.
    shares = sorted(
        data.draw(st.lists(st.floats(1e8, 1e10), min_size=len(volumes), max_size=len(volumes))), reverse=True
    )
    bandwidth = np.array(shares) * np.arange(1, len(volumes) + 1)
    volume = np.array(volumes)
    larger = volume.copy()
    larger[which % len(volume)] += more
    before, after = (_one_class(v, bandwidth) for v in (volume, larger))
    assert (after >= before * (1 - 1e-12)).all()


def _recursion_9(sizes):
    """Equation (9) as printed, for t_recv = 1."""
    volume, times = sum(sizes), []
    for j, size in enumerate(sizes):
        step = len(sizes) * size if j == 0 else (len(sizes) - j) * (size - sizes[j - 1])
        times.append((times[-1] if times else 0.0) + step / volume)
    return times


def fractions_of(receiver, size_bytes):
    """The fraction of each message, in the order given."""
    messages, fractions = staircase.completion_fractions(receiver, size_bytes)
    return fractions[np.argsort(messages)]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), min_size=1, max_size=99), st.integers(0, 100)
)
def test_completion_fractions_of_large_messages_are_those_that_they_have_among_all(messages, least_bytes):
    receiver, size = np.array(messages, dtype=np.int64).T
    large, fractions = staircase.completion_fractions(receiver, size, least_bytes)
    assert sorted(large.tolist()) == np.flatnonzero(size >= least_bytes).tolist()
    assert fractions.tolist() == fractions_of(receiver, size)[large].tolist()


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=12).map(sorted))
def test_completion_fractions_are_equation_9(sizes):
    fractions = fractions_of(np.zeros(len(sizes), dtype=int), np.array(sizes))
    assert fractions == pytest.approx(_recursion_9(sizes), rel=1e-9)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**58)), min_size=1, max_size=12), st.randoms())
def test_completion_fractions_go_with_the_message_not_its_place(messages, random):
    def fractions(rows):
        receiver, size = np.array(rows, dtype=np.int64).T
        return dict(zip(rows, fractions_of(receiver, size).tolist(), strict=True))

    shuffled = random.sample(messages, len(messages))
    assert fractions(messages) == fractions(shuffled)
    assert all(0 <= value <= 1 for value in fractions(messages).values())


def test_the_largest_message_completes_with_its_receiver_and_an_empty_one_at_once():
    receiver = np.array([7, 7, 2, 7])
    fractions = fractions_of(receiver, np.array([10, 30, 5, 0]))
    assert fractions.tolist() == [0.5, 1.0, 1.0, 0.0]
