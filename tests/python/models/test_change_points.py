"""Steps and drifts are found where they are, and none where nothing changed."""

import math

import numpy as np
import pytest

from earlybird.models.change_points import DRIFT, STEP, find_changes, least_distance, without_outliers

NIGHTS, NOISE, LEVEL = 60, 0.01, 0.005


def nights(seed: int, *, step_at: int | None = None, drift_from: int | None = None) -> np.ndarray:
    """(NIGHTS,) logarithms of times: noise of 1 %, one bad night in 30, a step of 5 %, a drift of 8 %."""
    random = np.random.default_rng(seed)
    values = NOISE * random.standard_normal(NIGHTS) + 0.08 * (random.random(NIGHTS) < 1 / 30)
    if step_at is not None:
        values[step_at:] += np.log(1.05)
    if drift_from is not None:
        values += np.log(1.08) * np.clip((np.arange(NIGHTS) - drift_from) / (NIGHTS - drift_from), 0, 1)
    return values


def found(values: np.ndarray, level: float = LEVEL):
    return find_changes(values, level=level, random=np.random.default_rng(1))


def large(changes):
    return [one for one in changes if abs(one.height) > np.log(1.03)]


def test_hardly_ever_a_change_where_there_is_none():
    assert sum(bool(found(nights(seed), level=0.01)) for seed in range(200)) <= 6


@pytest.mark.parametrize("night", [8, 30, 52])
def test_a_step_is_dated_to_the_night(night):
    """In one of ten series noise may hide the first night, or make a short drift of it."""
    dated = []
    for seed in range(20):
        (one,) = large(found(nights(seed, step_at=night)))
        assert one.height == pytest.approx(np.log(1.05), abs=0.03)
        assert one.p_value <= LEVEL
        dated.append((one.kind, one.first) == (STEP, night))
    assert np.mean(dated) >= 0.9


@pytest.mark.parametrize("seed", range(5))
def test_a_drift_is_dated_to_the_week(seed):
    (one,) = found(nights(seed, drift_from=25))
    assert one.kind == DRIFT
    assert abs(one.first - 25) <= 7
    assert one.height == pytest.approx(np.log(1.08), abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_and_a_drift_in_one_series(seed):
    step, drift = found(nights(seed, step_at=12, drift_from=30))
    assert (step.kind, step.first, drift.kind) == (STEP, 12, DRIFT)
    assert abs(drift.first - 30) <= 7


def test_a_step_up_and_down_again():
    values = nights(3, step_at=20)
    values[40:] -= np.log(1.05)
    up, down = found(values)
    assert (up.first, down.first) == (20, 40)
    assert up.height > 0 > down.height


def test_a_single_bad_night_is_moved_to_its_neighbours():
    values = nights(1)
    bad = values.copy()
    bad[20] += 1.0
    assert np.abs(without_outliers(bad)[20] - values[20]) < 5 * NOISE
    assert found(bad) == []


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_values_have_no_changes(count):
    assert found(np.zeros(count)) == []


@pytest.mark.parametrize("count", [8, 12, 14, 20])
def test_steps_are_found_from_their_least_distance_on(count):
    """Clearly above and below it: the p-value itself is drawn."""
    for k in range(3, count // 2 + 1):
        step = np.repeat([0.0, 1.0], [count - k, k]) + 1e-3 * np.random.default_rng(k).standard_normal(count)
        distance = least_distance(count, LEVEL)
        if distance is None or math.comb(count, k) * LEVEL < 0.6:
            assert not found(step)
        elif math.comb(count, k) * LEVEL > 12:
            assert k >= distance
            assert found(step)


def test_least_distances():
    assert [least_distance(n, 0.01) for n in (6, 9, 10, 12)] == [None, None, 4, 3]
    assert [least_distance(n, 0.01 / 45) for n in (15, 16, 60)] == [None, 7, 3]


def test_a_small_level_needs_little_memory_and_time_where_nothing_changed():
    """1e9 permutations would take minutes and gigabytes."""
    assert found(nights(4), level=2e-9) == []


def test_values_without_noise():
    assert found(np.zeros(20)) == []
    (one,) = found(np.repeat([0.0, 1.0], 10))
    assert (one.first, one.height) == (10, pytest.approx(1.0))


def test_a_year_takes_a_few_seconds_at_most():
    """Its drifts begin and end on a grid: otherwise there are 60000 of them, and pairs without number."""
    random = np.random.default_rng(1)
    values = NOISE * random.standard_normal(365)
    values[200:] += 0.05
    (one,) = found(values)
    assert (one.kind, one.first) == (STEP, 200)
