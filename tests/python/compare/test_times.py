"""Measured compared with predicted times."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.compare import compare_times, exchange_samples, measured_times
from earlybird.data.errors import InputError
from earlybird.data.prediction import Prediction
from earlybird.data.run import Sample


def _prediction(*times_s):
    zeros = np.zeros(len(times_s))
    return Prediction("staircase", zeros, np.array(times_s, dtype=float), zeros)


def _sample(rank_times_s, warmup=0):
    table = None if rank_times_s is None else np.array(rank_times_s, dtype=float)
    times_s = np.zeros(3) if table is None else table.max(axis=1)
    return Sample("exchange", "time", {}, "launch", times_s, warmup=warmup, rank_times_s=table)


def test_error_is_equation_11_and_the_slowest_rank_keeps_its_sign():
    measured = np.array([1.0, 2.0, 5.0])
    predictions = {"staircase": _prediction(2, 2, 4), "postal": _prediction(1, 2, 6)}
    comparison = compare_times(measured, predictions)
    assert comparison.error == pytest.approx({"staircase": 2 / 8, "postal": 1 / 8})
    assert comparison.slowest_error == pytest.approx({"staircase": -0.2, "postal": 0.2})
    assert comparison.predicted_s["postal"].tolist() == [1, 2, 6]


def test_errors_over_the_empty_exchange_are_beside_those_of_the_models():
    measured = np.array([2.0, 4.0])
    predictions = {"staircase": _prediction(1, 2)}
    comparison = compare_times(measured, predictions, (np.array([1.0, 1.0]), {"staircase": np.array([2, 3])}))
    assert comparison.error == {"staircase": 0.5}
    assert comparison.empty.error == pytest.approx({"staircase": 1 / 6})
    assert comparison.empty.slowest_error == {"staircase": -0.25}
    assert "takes 25% of its time" in comparison.describe_empty()


def test_the_launches_of_the_empty_exchange_are_kept_apart():
    whole, empty = _sample([[1, 2]]), replace(_sample([[3, 4]]), config={"empty": "yes"})
    other = replace(whole, kernel="pingpong")
    assert exchange_samples([whole, empty, other]) == [whole]
    assert exchange_samples([whole, empty, other], empty=True) == [empty]


def test_measured_times_are_medians_over_steady_iterations_then_launches():
    launches = [
        _sample([[90, 90], [1, 5], [2, 6], [9, 7]], warmup=1),
        _sample([[4, 4], [4, 4]]),
        _sample([[3, 100]]),
    ]
    assert measured_times(launches).tolist() == [3, 6]


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([], "no samples"),
        ([_sample(None)], "no rank_times_s"),
        ([_sample([[1, 2]]), _sample([[1, 2, 3]])], "differ in their number of ranks"),
    ],
)
def test_samples_that_cannot_be_compared_are_refused(samples, says):
    with pytest.raises(InputError, match=says):
        measured_times(samples)


def test_a_prediction_of_other_ranks_or_an_empty_measurement_is_refused():
    with pytest.raises(InputError, match="3 ranks and the measurement 2"):
        compare_times(np.ones(2), {"postal": _prediction(1, 1, 1)})
    with pytest.raises(InputError, match="every measured time is 0"):
        compare_times(np.zeros(2), {"postal": _prediction(1, 1)})
