"""The stop rule: shared vectors, hand-computed cases, properties."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.models import statistics

VECTORS = json.loads((Path(__file__).parents[2] / "native" / "stop_rule_vectors.json").read_text())["cases"]


def _number(value):
    return math.inf if value is None else value


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_python_agrees_with_the_shared_vectors(case):
    times = np.array(case["times_s"])
    steady = times[statistics.warmup_count(times) :]
    assert statistics.warmup_count(times) == case["warmup"]
    assert statistics.median_interval(steady) == (case["low_s"], case["high_s"])
    assert statistics.relative_half_width(steady) == pytest.approx(
        _number(case["relative_half_width"]), rel=1e-12
    )
    student = statistics.student_t_half_width(times, case["t_quantile"])
    assert student == pytest.approx(_number(case["student_t_relative_half_width"]), rel=1e-12)
    assert statistics.stop_median(times, case["target"]) == case["stop_median"]
    assert statistics.stop_paper(times, case["t_quantile"], case["target"]) == case["stop_paper"]


@pytest.mark.parametrize(
    ("n", "low", "high"),
    # By hand: n=5 (5-4.383)/2 = 0.31, clamped to 1; n=10 (10-6.198)/2 = 1.90 -> 1 and 1+8.099 -> 10;
    # n=100 40.2 -> 40 and 1+59.8 -> 61; n=150 62.998 -> 62 and 1+87.002 -> 89.
    [(1, 1, 1), (5, 1, 5), (10, 1, 10), (100, 40, 61), (150, 62, 89)],
)
def test_interval_takes_the_order_statistics_worked_out_by_hand(n, low, high):
    values = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    assert statistics.median_interval(values) == (low, high)


@pytest.mark.parametrize(("n", "coverage"), [(1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375), (6, 0.96875)])
def test_the_extremes_of_few_values_hold_the_median_less_often_than_asked(n, coverage):
    assert statistics.median_coverage(n) == pytest.approx(coverage, abs=1e-12)


def test_intervals_hold_the_median_as_often_as_their_coverage_says():
    random = np.random.default_rng(1)
    for n in (4, 13, 40):
        intervals = np.array([statistics.median_interval(row) for row in random.normal(size=(4000, n))])
        held = (intervals[:, 0] <= 0) & (intervals[:, 1] >= 0)
        assert held.mean() == pytest.approx(statistics.median_coverage(n), abs=0.02)
        assert n < 6 or statistics.median_coverage(n) >= 0.95


def test_wider_confidence_gives_a_wider_interval():
    values = np.arange(1.0, 1001)
    assert statistics.median_interval(values, 0.99)[0] < statistics.median_interval(values, 0.9)[0]


def test_warmup_is_the_leading_run_above_the_fence_alone():
    # Second half 1,2,1,2 has quartiles 1 and 2, fence 3.5; the 9 that follows a settled entry is an outlier.
    assert statistics.warmup_count(np.array([8.0, 4, 3.5, 9, 1, 2, 1, 2])) == 2
    assert statistics.warmup_count(np.array([8.0, 8, 8, 8, 1, 2, 1, 2])) == 4
    assert statistics.warmup_count(np.array([8.0, 4, 3, 1, 1, 1, 1])) == 0


def test_student_half_width_is_the_textbook_one():
    # 1, 2, 3: mean 2, sd 1, so t*1/sqrt(3)/2.
    assert statistics.student_t_half_width(np.array([1.0, 2, 3]), 2.92) == pytest.approx(
        2.92 / math.sqrt(3) / 2
    )


def test_ratio_of_a_series_to_itself_is_one_without_width():
    values = np.array([1.0, 2, 3, 4])
    assert statistics.median_ratio_interval(2 * values, values) == (2, 2, 2)


@settings(deadline=None)
@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=60))
def test_the_median_lies_in_its_interval_and_warmup_leaves_half(values):
    times = np.array(values)
    low, high = statistics.median_interval(times)
    assert low <= np.median(times) <= high
    assert 0 <= statistics.warmup_count(times) <= len(times) // 2


def test_the_quartiles_of_the_fence_are_interpolated():
    # Second half 1, 2, 3, 5: quartiles 1.75 and 3.5, fence 6.125.
    assert statistics.warmup_count(np.array([6.125, 1, 1, 1, 1, 2, 3, 5])) == 0
    assert statistics.warmup_count(np.array([6.126, 1, 1, 1, 1, 2, 3, 5])) == 1


def test_a_half_width_of_exactly_the_target_is_enough():
    times = np.array([1.0, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2])
    assert statistics.stop_median(times, statistics.relative_half_width(times))
    assert statistics.stop_paper(times, 1.8, statistics.student_t_half_width(times, 1.8))


def test_the_target_of_the_paper_is_5_per_cent():
    times = np.array([1.0, 1.1])  # half-width 0.05 * t, mean 1.05
    assert statistics.stop_paper(times, 1.04) and not statistics.stop_paper(times, 1.06)
