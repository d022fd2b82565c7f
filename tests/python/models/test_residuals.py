"""Predictions corrected by residuals go through the measured points; the bound covers points left out."""

import math

import numpy as np
import pytest

from earlybird.models.residuals import Residuals, prediction_bound


def test_the_correction_at_a_measured_point_is_its_residual():
    residuals = Residuals(np.array([[10.0, 2.0], [12.0, 2.0]]), np.array([0.3, -0.1]))
    assert residuals.correction(np.array([10.0, 2.0])) == 0.3
    assert residuals.correction(np.array([12.0, 2.0])) == -0.1


def test_between_points_the_correction_lies_between_and_far_away_it_fades():
    residuals = Residuals(np.array([[10.0], [12.0]]), np.array([0.3, 0.3]))
    # Two neighbours at 1 octave, against a correction of 0 at twice their spacing: 2*0.3/(2 + 1/16).
    assert residuals.correction(np.array([11.0])) == pytest.approx(0.6 / (2 + 1 / 16))
    assert abs(residuals.correction(np.array([100.0]))) < 0.01


def test_errors_left_out_use_the_other_points_only():
    residuals = Residuals(np.array([[0.0], [1.0]]), np.array([0.4, 0.0]))
    assert residuals.left_out_errors() == pytest.approx([0.4, -0.4 * 4 / 5])
    assert Residuals(np.array([[0.0]]), np.array([0.4])).left_out_errors() == pytest.approx([0.4])


def test_the_bound_of_many_errors_is_the_conformal_quantile():
    errors = np.arange(1, 40) / 100  # k = ceil(40*0.95) = 38
    assert prediction_bound(errors) == pytest.approx(0.38)


def test_the_bound_of_few_errors_is_wider_than_the_largest():
    assert prediction_bound([0.1]) == pytest.approx(
        0.1 * 12.706, rel=1e-3
    )  # Student's t, 1 degree of freedom
    assert prediction_bound([0.1, -0.1, 0.1]) > 0.3 and prediction_bound([]) == math.inf


@pytest.mark.parametrize("count", [5, 20, 200])
def test_the_bound_covers_further_errors(count):
    random = np.random.default_rng(7)
    covered = []
    for _ in range(400):
        errors = random.normal(0, 0.2, count + 1)
        covered.append(abs(errors[-1]) <= prediction_bound(errors[:-1]))
    assert np.mean(covered) > 0.92
