"""The regressions of Insaghi's report as forms to compare with the same criteria as other forms."""

import numpy as np
import pytest

from earlybird.fit.insaghi_forms import Grid, fit_insaghi_form

RANKS = np.arange(2, 22)


def grid(time_us):
    same = np.full(len(RANKS), "linear", dtype=object), np.full(len(RANKS), "node", dtype=object)
    return Grid(RANKS, np.ones(len(RANKS)), *same, time_us, break_ranks=128)


def test_a_disturbed_time_bends_a_form_of_insaghi_no_more_than_ours():
    random = np.random.default_rng(1)
    time_us = 3.0 * RANKS + random.normal(0, 0.1, len(RANKS))
    quiet = fit_insaghi_form(grid(time_us), 2, "linear")
    time_us[-1] *= 10
    disturbed = fit_insaghi_form(grid(time_us), 2, "linear")
    assert quiet.estimates["MPI_Processes"] == pytest.approx(3, rel=0.01)
    assert disturbed.estimates["MPI_Processes"] == pytest.approx(3, rel=0.01)
    # Least squares have a slope of more than 6 here.
    assert np.sum(RANKS * time_us) / np.sum(RANKS**2) > 6


@pytest.mark.parametrize(
    ("form", "algorithm"), [(1, "linear"), (2, "linear"), (2, "binomial"), (3, "linear")]
)
def test_exact_times_are_given_back(form, algorithm):
    time_us = {"linear": 2.0 * RANKS, "binomial": np.exp(1 + 0.1 * RANKS)}[algorithm]
    time_us = 2.0 ** (2 * np.log2(RANKS)) if form == 3 else time_us
    fitted = fit_insaghi_form(grid(time_us), form, algorithm)
    assert fitted.predict_us(grid(time_us)) == pytest.approx(time_us)
