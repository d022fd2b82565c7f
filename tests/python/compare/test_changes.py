"""What `compare` calls changed: hardly anything where nothing changed, and what theory says where it did."""

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from earlybird.compare import changes, guidelines
from earlybird.compare.runs import LEVEL, verdict
from earlybird.data.baseline import load_baseline
from earlybird.data.guidelines import UNDECIDED, VIOLATED
from earlybird.data.run_comparison import FASTER, INCONCLUSIVE, SAME, SLOWER
from earlybird.data.schema import Estimate

RECORDED = Path(__file__).parents[2] / "recorded" / "pingpong-20-launches.json"
POINTS, CHANGED, NOISE = 100, 20, 0.01


def called(pairs: int, launches: int, slowdown: np.ndarray, seed: int) -> np.ndarray:
    """(pairs, POINTS) which points of simulated pairs of runs are significant; the medians of launches are
    log-normal with a standard deviation of NOISE, and the second side takes longer by `slowdown`."""
    sides = np.exp(NOISE * np.random.default_rng(seed).standard_normal((2, pairs, POINTS, launches)))
    sides[1] *= (1 + slowdown)[:, None]
    p = changes.p_values(*sides.reshape(2, pairs * POINTS, launches)).reshape(pairs, POINTS)
    return np.array([changes.adjusted(row) for row in p]) <= LEVEL


def power_of_separation(launches: int, shift: float) -> float:
    """The probability that all of one side's normal values lie above all of the other's, whose mean is
    smaller by `shift` standard deviations: the only outcome of 5 against 5 launches with p < 0.01."""
    n = launches
    return integrate.quad(
        lambda x: n * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1) * stats.norm.sf(x - shift) ** n, -9, 9
    )[0]


@pytest.mark.parametrize("launches", [5, 10])
def test_at_most_one_percent_of_points_is_called_changed_if_nothing_changed(launches):
    assert called(1000, launches, np.zeros(POINTS), seed=1).mean() <= 0.01


@pytest.mark.parametrize("launches", [5, 10])
def test_launches_of_one_recorded_run_hardly_ever_differ(launches):
    """A thousand pairs of disjoint draws from 20 launches of ping-pongs, with the effect that counts."""
    points = load_baseline(RECORDED).points
    times_s = np.array([one.launch_medians_s for one in points])
    random = np.random.default_rng(1)
    drawn = np.array([random.permutation(times_s.shape[1])[: 2 * launches] for _ in range(1000)])
    before_s, after_s = np.split(times_s[:, drawn], 2, axis=2)  # (points, pairs, launches) each
    p = changes.p_values(before_s.reshape(-1, launches), after_s.reshape(-1, launches))
    is_significant = np.array([changes.adjusted(row) for row in p.reshape(len(points), -1).T]) <= LEVEL
    ratio = (np.median(after_s, axis=2) / np.median(before_s, axis=2)).T
    assert (is_significant & (np.abs(np.log(ratio)) > np.log(1.05))).mean() <= 0.01


@pytest.mark.parametrize("slowdown", [0.03, 0.05, 0.10, 0.20])
@pytest.mark.parametrize("launches", [5, 10])
def test_planted_slowdowns_are_found_with_the_power_of_theory(launches, slowdown):
    planted = np.where(np.arange(POINTS) < CHANGED, slowdown, 0.0)
    found = called(100, launches, planted, seed=2)
    assert found[:, CHANGED:].sum() / max(found.sum(), 1) <= LEVEL + 0.02
    separated = power_of_separation(5, np.log1p(slowdown) / NOISE)
    # With 5 launches only as many separated points as the adjustment requires are found.
    fewest = changes.fewest_changes(launches, launches, POINTS, LEVEL)
    enough = stats.binom.sf(fewest - 1, CHANGED, separated)
    assert found[:, :CHANGED].mean() >= separated * enough - 0.05


def test_p_values_are_those_of_the_exact_test():
    found = changes.p_values(np.array([[1.0, 2, 3, 4, 5]]), np.array([[6.0, 7, 8, 9, 10]]))
    assert found[0] == pytest.approx(2 / 252)
    assert changes.smallest_p(5, 5) == pytest.approx(2 / 252)
    assert changes.smallest_p(3, 3) == pytest.approx(0.1)


def test_ties_do_not_make_a_point_significant():
    assert changes.p_values(np.ones((1, 5)), np.ones((1, 5)))[0] > 0.9


def test_launches_for_a_single_change():
    assert changes.fewest_changes(5, 5, 100, LEVEL) == 27
    assert changes.fewest_changes(10, 10, 100, LEVEL) == 1
    n = changes.launches_for(100, LEVEL)
    assert changes.smallest_p(n, n) * 100 <= LEVEL < changes.smallest_p(n - 1, n - 1) * 100


def test_the_interval_of_a_ratio_contains_it_as_often_as_it_says():
    random = np.random.default_rng(3)
    inside = 0
    for _ in range(200):
        sides = [
            [
                launch * np.exp(0.01 * random.standard_normal(20))
                for launch in np.exp(0.02 * random.standard_normal(10))
            ]
            for _ in range(2)
        ]
        estimate = changes.ratio(*sides, random)
        inside += estimate.low <= 1 <= estimate.high
    assert inside / 200 >= 0.88


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (Estimate(1.18, 0.967, 1.25), INCONCLUSIVE),
        (Estimate(1.18, 1.02, 1.25), SLOWER),
        (Estimate(0.85, 0.80, 1.01), INCONCLUSIVE),
        (Estimate(0.85, 0.80, 0.97), FASTER),
        (Estimate(1.02, 0.98, 1.04), SAME),
    ],
)
def test_a_significant_point_whose_interval_includes_no_change_is_inconclusive(estimate, expected):
    assert verdict(estimate, 0.001, LEVEL, 0.05) == expected


def test_a_guideline_is_not_violated_if_the_interval_includes_no_change():
    assert guidelines.outcome(Estimate(1.18, 0.967, 1.25), 0.001, LEVEL, 0.05) == UNDECIDED
    assert guidelines.outcome(Estimate(1.18, 1.02, 1.25), 0.001, LEVEL, 0.05) == VIOLATED
