"""Predictions and comparisons: what is written reads back, and broken files are refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.comparison import Comparison, EmptyExchange, comparison_from_json, load_comparison
from earlybird.data.errors import InputError
from earlybird.data.prediction import Prediction, load_prediction, prediction_from_json

SECONDS = st.floats(0, 1e3)


@given(rows=st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=1, max_size=8), interval=st.booleans())
def test_written_prediction_reads_back(tmp_path_factory, rows, interval):
    receive_s, intra_s, inter_s = np.array(rows).T
    bounds = np.column_stack([intra_s, intra_s + inter_s]) if interval else None
    prediction = Prediction("fair", receive_s, intra_s, inter_s, "id", "ab", bounds, {"x_key": [1]})
    path = tmp_path_factory.mktemp("prediction") / "prediction.json"
    path.write_text(json.dumps(prediction.to_json()))
    again = load_prediction(path)
    assert again.to_json() == prediction.to_json()
    assert np.array_equal(again.time_s, intra_s + inter_s)


def test_slowest_rank_is_the_lowest_of_equals():
    times = np.array([1.0, 3.0, 3.0])
    assert Prediction("postal", times, times, np.zeros(3)).slowest_rank == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"receive_s": [1.0]}, "different lengths"),
        ({"receive_s": [[1.0, 2.0]]}, "different lengths"),
        ({"intra_node_s": ["fast", 1]}, "intra_node_s: give a JSON list of numbers"),
        ({"intra_node_s": [None, 1]}, "intra_node_s: give a JSON list of numbers"),
        ({"time_interval_s": [[1, 2]]}, r"one \[low, high\] per rank"),
        ({"time_interval_s": "wide"}, "time_interval_s: give a JSON list"),
    ],
)
def test_broken_prediction_is_refused(change, says):
    times = np.array([1.0, 2.0])
    value = Prediction("postal", times, times, times).to_json() | change
    with pytest.raises(InputError, match=says):
        prediction_from_json(value)


def test_prediction_without_a_part_is_refused():
    with pytest.raises(InputError, match=r"has no 'receive_s'.*make it again with"):
        prediction_from_json({"schema": "earlybird.prediction/1", "model": "postal"})


COMPARISON = Comparison(
    np.array([1.0, 2.0]),
    {"staircase": np.array([1.0, 1.5])},
    {"staircase": 0.1},
    {"staircase": -0.25},
    {"x": "kept"},
)


def test_written_comparison_reads_back(tmp_path):
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(COMPARISON.to_json()))
    again = load_comparison(path)
    assert again.to_json() == COMPARISON.to_json()
    assert again.extra == {"x": "kept"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"measured_s": [1.0]}, "different lengths"),
        ({"measured_s": [float("inf"), 1.0]}, "measured_s: give a JSON list of numbers"),
        ({"error": {}}, "different models"),
        ({"predicted_s": [1.0, 2.0]}, "predicted_s is .*; give a JSON object; make it again"),
    ],
)
def test_broken_comparison_is_refused(change, says):
    with pytest.raises(InputError, match=says):
        comparison_from_json(COMPARISON.to_json() | change)


def test_other_schema_number_is_refused(tmp_path):
    path = tmp_path / "later.json"
    path.write_text(json.dumps(COMPARISON.to_json() | {"schema": "earlybird.comparison/2"}))
    with pytest.raises(
        InputError, match=r"'earlybird.comparison/2'; this version reads 'earlybird.comparison/1'"
    ):
        load_comparison(path)


def test_a_comparison_with_an_empty_exchange_reads_back(tmp_path):
    one, errors = np.array([1.0, 2.0]), {"staircase": 0.1}
    empty = EmptyExchange(one / 2, {"staircase": one}, errors, errors)
    comparison = Comparison(one, {"staircase": one}, errors, errors, empty=empty)
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(comparison.to_json()))
    assert load_comparison(path).to_json() == comparison.to_json()
    value = comparison.to_json()
    value["empty"]["measured_s"] = [1.0]
    with pytest.raises(InputError, match="different lengths"):
        comparison_from_json(value)
