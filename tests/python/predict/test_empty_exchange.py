"""Predictions over a measured exchange of empty messages."""

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.predict import Predictor, over_empty_exchange

PATTERN = Pattern([0, 1, 2, 3, 0], [1, 0, 3, 2, 2], [4000, 9000, 20000, 100, 70000])


def _level(name, rate):
    bandwidth = {1: rate, 2: 1.5 * rate}
    return Level(name, (Protocol(name="eager", latency_s=3e-6, bandwidth_bytes_per_s=bandwidth),))


PROFILE = Profile({"intra_socket": _level("intra_socket", 5e9), "inter_node": _level("inter_node", 1e8)})


def _over(layout, empty_s, model="staircase"):
    predictor = Predictor(PATTERN, parse_layout(layout))
    return over_empty_exchange(predictor, PROFILE, [model], "message", np.array(empty_s))[model]


def test_where_only_latencies_are_left_without_data_it_is_the_model_itself():
    predictor = Predictor(PATTERN, parse_layout("1x1x4"))
    latencies_s = Predictor(PATTERN.without_data(), parse_layout("1x1x4")).predict(PROFILE).time_s
    assert latencies_s.min() == 3e-6
    assert _over("1x1x4", latencies_s) == pytest.approx(predictor.predict(PROFILE).time_s)


def test_the_wait_for_a_core_adds_to_copies_and_hides_behind_links():
    plain = Predictor(PATTERN, parse_layout("2x1x2")).predict(PROFILE, "staircase")
    nothing, long_s = _over("2x1x2", np.zeros(4)), _over("2x1x2", np.full(4, 1.0))
    assert plain.inter_node_s.max() < 1
    assert nothing == pytest.approx(plain.time_s - [3e-6, 3e-6, 3e-6, 3e-6])
    assert long_s == pytest.approx(1 + plain.intra_node_s - 3e-6)


def test_the_models_with_both_ends_are_taken_over_it_too():
    assert (_over("2x1x2", np.full(4, 1e-3), "queue") >= 1e-3).all()
