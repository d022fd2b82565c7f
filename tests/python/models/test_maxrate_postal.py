"""Postal and max-rate models against their printed equations."""

import numpy as np
import pytest

from earlybird.models import maxrate, postal


def test_postal_is_latency_plus_size_over_bandwidth():
    assert postal.postal_time_s(np.array([0, 10_000]), 1e-6, 1e10) == pytest.approx([1e-6, 2e-6])


def test_postal_volumes_of_several_protocols_add():
    volume = np.array([[1000, 2000], [0, 0]])
    assert postal.uncontended_time_s(volume, np.array([[1e9, 2e9]])) == pytest.approx(np.array([[2e-6, 0]]))


def test_maxrate_bandwidth_grows_with_the_pairs_up_to_the_limit():
    assert maxrate.maxrate_bandwidth(np.array([1, 2, 3]), 4e9, 10e9).tolist() == [4e9, 8e9, 10e9]


def test_maxrate_time_shares_the_bandwidth_equally():
    assert maxrate.maxrate_time_s(4, 1000, 1e-6, 8e9) == pytest.approx(1.5e-6)


def test_extended_model_equals_equation_4_for_the_slowest_process():
    volumes = np.array([[1000], [4000], [9000]])
    single, largest = np.array([2e9]), np.array([3e9])
    times_s = maxrate.extended_time_s(volumes, single, largest)
    assert times_s.max() == pytest.approx(maxrate.slowest_time_s(0, 14_000, 9000, 5e-6, 2e9, 3e9))


def test_extended_model_by_hand():
    # V_total = 14000, N = 3: 3*1000/3e9 = 1 us > 0.5 us; 3*4000/3e9 = 4 us; 14000/3e9 = 4.67 us > 4.5 us.
    times_s = maxrate.extended_time_s(np.array([[1000], [4000], [9000]]), np.array([2e9]), np.array([3e9]))
    assert times_s == pytest.approx([1e-6, 4e-6, 14 / 3 * 1e-6])


def test_extended_model_is_the_same_however_equal_protocols_are_split():
    one = maxrate.extended_time_s(np.array([[3000], [5000]]), np.array([2e9]), np.array([3e9]))
    two = maxrate.extended_time_s(
        np.array([[1000, 2000], [5000, 0]]), np.array([2e9, 2e9]), np.array([3e9, 3e9])
    )
    assert two == pytest.approx(one)


def test_every_message_of_the_slowest_process_costs_its_latency():
    assert maxrate.slowest_time_s(3, 14_000, 9000, 5e-6, 2e9, 3e9) == pytest.approx(15e-6 + 14 / 3 * 1e-6)
