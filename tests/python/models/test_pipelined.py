"""The pipelined model against the figures that Gillis et al. 2023 print (they are truncated)."""

import numpy as np
import pytest

from earlybird.models import pipelined

US_PER_MB = 1e-12
# Neither appears in the paper: 3.5 GHz is what its delay rates need, 50 GB/s what the gains of A.2.2 need.
FREQUENCY_HZ = 3.5e9
STENCIL_BANDWIDTH = 50e9
BANDWIDTH = 25e9


@pytest.mark.parametrize(
    ("threads", "theta", "gamma_us_per_mb", "eta"),
    [(8, 1, 1, 1.003), (8, 1, 10, 1.032), (8, 8, 1000, 1.641), (4, 1, 100, 2.6667)],
)
def test_gains_of_the_text_and_of_figure_8(threads, theta, gamma_us_per_mb, eta):
    gain = pipelined.large_message_gain(threads, theta, gamma_us_per_mb * US_PER_MB, BANDWIDTH)
    assert gain == pytest.approx(eta, rel=3e-4)  # three digits are printed


@pytest.mark.parametrize(
    ("theta", "gamma_us_per_mb", "eta"), [(1, 7.1428, 1.0228), (2, 187.1936, 1.4134), (8, 1263.67, 1.9748)]
)
def test_fourier_transform_of_a_2_1(theta, gamma_us_per_mb, eta):
    mu = pipelined.compute_rate_s_per_byte(5, 1, FREQUENCY_HZ)
    gamma = pipelined.delay_rate_s_per_byte(mu, theta, 0.04, 0)
    assert gamma == pytest.approx(gamma_us_per_mb * US_PER_MB, rel=1e-4)
    assert pipelined.large_message_gain(8, theta, gamma, BANDWIDTH) == pytest.approx(eta, rel=1e-4)


@pytest.mark.parametrize(
    ("theta", "gamma_us_per_mb", "printed_eta", "eta_at_25"),
    [(1, 15.3398, 1.1060, 1.0504), (2, 46.92385411, 1.1718, 1.0791), (8, 228.21310932, 1.2169, 1.0979)],
)
def test_stencil_of_a_2_2_needs_twice_the_bandwidth(theta, gamma_us_per_mb, printed_eta, eta_at_25):
    mu = pipelined.compute_rate_s_per_byte(1 / 13, (66 / 64) ** 3 - 1, FREQUENCY_HZ)
    gamma = pipelined.delay_rate_s_per_byte(mu, theta, 0.04, 0.5)
    assert gamma == pytest.approx(gamma_us_per_mb * US_PER_MB, rel=1e-4)
    assert pipelined.large_message_gain(8, theta, gamma, STENCIL_BANDWIDTH) == pytest.approx(
        printed_eta, rel=1e-4
    )
    assert pipelined.large_message_gain(8, theta, gamma, BANDWIDTH) == pytest.approx(eta_at_25, rel=1e-4)


@pytest.mark.parametrize("gamma", [0, 1e-10, 1e-9, 1e-8])
def test_gain_is_the_ratio_of_the_two_times(gamma):
    bulk_s = pipelined.bulk_time_s(16, 1e6, BANDWIDTH)
    pipelined_s = pipelined.pipelined_time_s(16, 1e6, BANDWIDTH, gamma * 1e6)
    assert pipelined.large_message_gain(8, 2, gamma, BANDWIDTH) == pytest.approx(bulk_s / pipelined_s)


def test_small_messages_lose_by_the_number_of_partitions():
    assert pipelined.small_message_gain(8, 4) == 1 / 32


def test_partition_compute_times_have_the_stated_mean_and_spread():
    times_s = pipelined.partition_compute_times_s(np.random.default_rng(1), 40_000, 1e6, 2e-10, 0.04, 0.5)
    assert times_s.mean() == pytest.approx(2e-4, rel=0.01)
    assert times_s.std() == pytest.approx(2e-4 * 0.27, rel=0.03)
