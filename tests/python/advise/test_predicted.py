"""Ranked predictions: alternatives with different numbers of replicates, and times of nothing."""

import numpy as np
import pytest

from earlybird.advise.predicted import SlowestRank, ranked, uncertain_gains


def rank(drawn):
    """Of (time, replicates) without messages inside nodes: nothing is added."""
    names = list(drawn)
    return ranked(
        {name: SlowestRank(time_s, replicates_s, time_s) for name, (time_s, replicates_s) in drawn.items()},
        names[0],
        dict.fromkeys(names, "do it"),
        {name: (k,) for k, name in enumerate(names)},
    )


def test_replicates_that_all_alternatives_have_decide_the_intervals():
    now, other = rank({"now": (4.0, np.array([4.0, 4.4, 99.0])), "other": (2.0, np.array([2.0, 2.2]))})[::-1]
    assert (now.method, other.method) == ("now", "other")
    assert other.speed_up.value == other.speed_up.low == other.speed_up.high == pytest.approx(2)
    assert now.time_s.high < 5


def test_an_exchange_of_no_time_is_faster_than_any_and_as_fast_as_another_one():
    nothing = np.zeros(0)
    best, reference = rank({"now": (1e-3, nothing), "none": (0.0, nothing)})
    assert best.method == "none" and np.isfinite(best.speed_up.value) and reference.speed_up.value == 1
    assert [one.speed_up.value for one in rank({"now": (0.0, nothing), "none": (0.0, nothing)})] == [1, 1]


@pytest.mark.parametrize(
    ("at_once_s", "speed_up", "notes"), [(1.0, 2.0, 0), (1.5, 2.0, 0), (2.5, 1.2, 0), (6.0, 0.5, 1)]
)
def test_the_smaller_speed_up_counts(at_once_s, speed_up, notes):
    """By (18) twice as fast: 2 s instead of 4 s, where 3 s or `at_once_s` are the longer parts."""
    drawn = {
        "now": SlowestRank(4.0, np.array([4.0, 5.0]), 3.0),
        "other": SlowestRank(2.0, np.array([2.0, 2.5]), at_once_s),
    }
    found = ranked(drawn, "now", dict.fromkeys(drawn, "do it"), {"now": (0,), "other": (1,)})
    other = next(one for one in found if one.method == "other")
    assert (other.speed_up.low, other.speed_up.value, other.speed_up.high) == (speed_up,) * 3
    assert (found[0].method == "other") is (speed_up > 1)
    assert len(uncertain_gains(drawn, "now")) == notes


def test_exchanges_after_each_other_take_the_sum_of_common_replicates():
    parts = [SlowestRank(1.0, np.array([1.0, 2.0]), 0.5), SlowestRank(3.0, np.array([3.0]), 3.0)]
    whole = SlowestRank.after_each_other(parts)
    assert (whole.time_s, whole.at_once_s) == (4.0, 3.5) and whole.replicates_s.tolist() == [4.0]
