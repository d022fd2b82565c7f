"""The cost of one message against a hand-written case and against the postal model."""

import numpy as np

from earlybird.models.message_cost import message_cost_s
from earlybird.models.postal import postal_time_s

MIN_BYTES = np.array([0, 1000, 8000])
LATENCY_S = np.array([1e-6, 2e-6, 5e-6])
BANDWIDTH = np.array([1e9, 2e9, 1e10])


def test_each_size_costs_by_the_protocol_that_carries_it():
    sizes = np.array([0, 999, 1000, 7999, 8000, 1_000_000])
    expected = [1e-6, 1e-6 + 999e-9, 2.5e-6, 2e-6 + 7999 / 2e9, 5.8e-6, 105e-6]
    assert np.allclose(message_cost_s(sizes, MIN_BYTES, LATENCY_S, BANDWIDTH), expected, rtol=1e-12, atol=0)


def test_a_single_protocol_is_the_postal_model_in_any_shape():
    sizes = np.arange(12).reshape(3, 4) * 5000
    cost_s = message_cost_s(sizes, MIN_BYTES[:1], LATENCY_S[:1], BANDWIDTH[:1])
    assert np.array_equal(cost_s, postal_time_s(sizes, 1e-6, 1e9))
    assert message_cost_s(8000, MIN_BYTES, LATENCY_S, BANDWIDTH) == 5.8e-6
