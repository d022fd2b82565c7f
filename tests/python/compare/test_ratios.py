"""Methods that were measured interleaved are compared round by round, then launch by launch."""

import numpy as np
import pytest

from earlybird.compare.ratios import chained_ratio, paired_ratio
from earlybird.data.run import Sample


def sample(times_s, launch="0", warmup=0, rounds=None):
    times_s = np.array(times_s, dtype=float)
    rounds = np.arange(len(times_s)) if rounds is None else np.array(rounds)
    return Sample("pipeline", "time_to_solution", {}, launch, times_s, warmup=warmup, rounds=rounds)


def test_times_of_one_round_are_compared_whatever_drifts():
    drift = np.linspace(1, 3, 40)
    noise = np.random.default_rng(1).permutation(np.linspace(0.9, 1.1, 40))
    ratio = paired_ratio([sample(2 * drift * noise)], [sample(drift)])
    assert ratio.value == pytest.approx(2, rel=0.02)
    # The times drift by a factor of three, their ratios by a tenth.
    assert 1.9 < ratio.low < ratio.value < ratio.high < 2.1


def test_launches_weigh_the_same_and_make_the_interval():
    singles = [sample([2] * 30, "a"), sample([3] * 3, "b"), sample([5] * 3, "c")]
    manies = [sample([1] * size, launch) for launch, size in (("c", 3), ("a", 30), ("b", 3))]
    ratio = paired_ratio(singles, manies)
    assert (ratio.value, ratio.low, ratio.high, ratio.launches) == (3, 2, 5, 3)
    # All three are on one side of the median in 1 of 4 cases.
    assert ratio.coverage == pytest.approx(0.75)


def test_warm_up_of_either_and_rounds_of_one_alone_are_left_out():
    a = sample([90, 2, 2, 2], warmup=1)
    b = sample([1, 1, 90, 1, 1], warmup=3, rounds=[7, 0, 1, 2, 3])
    ratio = paired_ratio([a], [b])
    assert (ratio.value, ratio.low, ratio.high) == (2, 2, 2)


def test_nothing_to_pair_is_no_ratio():
    assert paired_ratio([sample([1, 2], "a")], [sample([1, 2], "b")]) is None
    assert paired_ratio([sample([1], rounds=[0])], [sample([1], rounds=[1])]) is None
    without_rounds = Sample("pipeline", "time_to_solution", {}, "0", np.ones(3))
    assert paired_ratio([without_rounds], [without_rounds]) is None
    assert paired_ratio([], []) is None


def test_a_time_of_zero_divides_nothing():
    assert paired_ratio([sample([2, 2])], [sample([0, 1])]).value == 2


def test_methods_without_a_common_launch_are_compared_through_a_third():
    forced, default = [sample([6] * 9, "a")], [sample([3] * 9, "b")]
    common = [sample([2] * 9, "a"), sample([4] * 9, "b")]  # launch b was twice as slow
    ratio = chained_ratio(forced, common, default)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((4, 4, 4))
    assert chained_ratio(forced, common[:1], default) is None
