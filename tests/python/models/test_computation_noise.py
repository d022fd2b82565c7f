"""Computation times have the distribution of their noise model, and the seed determines them."""

import numpy as np
import pytest

from earlybird.models.computation_noise import thread_times_s

C, SHARE, ROUNDS = 1e-3, 0.2, np.arange(2000)


def times_s(model, share=SHARE, seed=1, threads=2, rounds=ROUNDS):
    return thread_times_s(model, share, C, seed, threads, rounds)


def test_without_noise_every_thread_computes_as_long_as_asked():
    assert (times_s("none") == C).all() and (times_s("uniform", share=0.0) == C).all()


def test_single_delays_one_thread_of_each_round_and_every_thread_at_times():
    late = times_s("single", threads=4) > C
    assert (late.sum(axis=1) == 1).all()
    assert late.mean(axis=0) == pytest.approx([0.25] * 4, abs=0.05)
    assert times_s("single").max() == pytest.approx(C * (1 + SHARE))


def test_uniform_adds_up_to_the_share():
    found = times_s("uniform")
    assert found.min() >= C and found.max() < C * (1 + SHARE)
    assert found.mean() == pytest.approx(C * (1 + SHARE / 2), rel=0.01)
    assert found.std() == pytest.approx(C * SHARE / np.sqrt(12), rel=0.05)


def test_gaussian_has_the_share_as_standard_deviation_and_no_negative_times():
    found = times_s("gaussian")
    assert (found.mean(), found.std()) == (pytest.approx(C, rel=0.01), pytest.approx(C * SHARE, rel=0.05))
    assert times_s("gaussian", share=2.0).min() == 0


@pytest.mark.parametrize("model", ["single", "uniform", "gaussian"])
def test_seed_thread_and_round_determine_a_time(model):
    few = np.arange(50)
    found = times_s(model, rounds=few)
    assert np.array_equal(found, times_s(model, rounds=few))
    assert np.array_equal(found[20:], times_s(model, rounds=few[20:]))
    assert not np.array_equal(found, times_s(model, rounds=few, seed=2))
    if model != "single":
        assert np.array_equal(found, times_s(model, rounds=few, threads=5)[:, :2])
