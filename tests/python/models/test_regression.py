"""Lines through times: closed forms, the quadrant, missing points, many at once."""

import numpy as np
import pytest
from scipy.optimize import nnls

from earlybird.models.regression import fit_line, fit_slope, least_squares

SIZES = np.array([0, 64, 4096, 65536, 1 << 20])


def test_exact_lines_come_back():
    intercept, slope = fit_line(SIZES, 3e-6 + 2e-10 * SIZES)
    assert intercept == pytest.approx(3e-6, rel=1e-9) and slope == pytest.approx(2e-10, rel=1e-9, abs=0)


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_line_of_the_quadrant_is_found(relative, seed):
    generator = np.random.default_rng(seed)
    times = 1e-6 * generator.uniform(0.1, 5, len(SIZES)) + 1e-11 * SIZES * generator.uniform(-1, 2)
    times = np.maximum(times, 1e-8)
    weight = 1 / times if relative else np.ones(len(SIZES))
    scale = np.array([1.0, 1e6])
    design = weight[:, None] * np.stack([np.ones(len(SIZES)), SIZES], axis=1) / scale
    expected = nnls(design, weight * times)[0] / scale
    assert np.array(fit_line(SIZES, times, relative=relative)) == pytest.approx(expected, rel=1e-6, abs=1e-18)


def test_missing_points_do_not_count():
    times = 3e-6 + 2e-10 * SIZES
    times[2] = np.nan
    assert fit_line(SIZES, times)[0] == pytest.approx(3e-6)


def test_one_size_makes_no_line():
    times = np.full(len(SIZES), np.nan)
    times[2] = 1e-6
    assert np.isnan(fit_line(SIZES, times)).all()


def test_a_slope_alone_is_fitted_to_a_given_intercept():
    times = 3e-6 + 2e-10 * SIZES
    assert fit_slope(SIZES, times, np.array(3e-6)) == pytest.approx(2e-10, rel=1e-9, abs=0)
    assert fit_slope(SIZES, times, np.array(1.0)) == 0
    assert np.isnan(fit_slope(SIZES[:1], times[:1], np.array(0.0)))


def test_many_lines_at_once_equal_one_by_one():
    times = np.random.default_rng(3).uniform(1e-6, 9e-6, (2, 3, len(SIZES)))
    intercepts, slopes = fit_line(SIZES, times)
    for index in np.ndindex(2, 3):
        alone = np.array(fit_line(SIZES, times[index]))
        assert np.array([intercepts[index], slopes[index]]) == pytest.approx(alone, rel=1e-9, abs=0)


@pytest.mark.parametrize("relative", [True, False])
def test_a_line_that_would_begin_below_zero_goes_through_the_origin(relative):
    sizes = np.array([64, 4096, 65536])
    times = 1e-10 * sizes - 2e-9
    weight = 1 / times if relative else np.ones(len(sizes))
    expected = (weight**2 * sizes * times).sum() / (weight**2 * sizes**2).sum()
    intercept, slope = fit_line(sizes, times, relative=relative)
    assert intercept == 0 and slope == pytest.approx(expected, rel=1e-9, abs=0)


def test_two_sizes_make_a_line():
    intercept, slope = fit_line(np.array([0, 1]), np.array([3e-6, 5e-6]))
    assert intercept == pytest.approx(3e-6) and slope == pytest.approx(2e-6)


def test_errors_and_probabilities_of_least_squares_are_those_of_the_closed_form():
    """y = (0, 1, 2, 4) at x = (0, 1, 2, 3): 1.3 x - 0.2 with residuals whose squares add up to 0.3."""
    x = np.arange(4.0)
    fitted = least_squares(np.array([np.ones(4), x]).T, np.array([0.0, 1, 2, 4]))
    assert fitted.coefficients == pytest.approx([-0.2, 1.3])
    assert fitted.residuals == pytest.approx([0.2, -0.1, -0.4, 0.3])
    assert fitted.standard_errors == pytest.approx([np.sqrt(0.15 * 0.7), np.sqrt(0.15 / 5)])
    # Student's t with 2 degrees of freedom: P(|T| > t) = 1 - t/sqrt(t^2 + 2).
    t = 1.3 / np.sqrt(0.15 / 5)
    assert (fitted.t[1], fitted.p[1]) == (pytest.approx(t), pytest.approx(1 - t / np.sqrt(t**2 + 2)))
