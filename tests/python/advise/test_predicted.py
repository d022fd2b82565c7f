"""Ranked predictions: alternatives with different numbers of replicates, and times of nothing."""

import numpy as np
import pytest

from earlybird.advise.predicted import ranked


def rank(drawn):
    names = list(drawn)
    return ranked(
        drawn, names[0], dict.fromkeys(names, "do it"), {name: (k,) for k, name in enumerate(names)}
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
