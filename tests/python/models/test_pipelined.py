"""The pipelined models: the figures that Gillis et al. 2023 print (they are truncated), and that the joined
model is the closed forms at either end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.models import pipelined
from earlybird.models.pipelined import (
    PipelineCosts,
    Trains,
    joined_time_s,
    pipeline_time_s,
    possible_messages,
    stacked,
)

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


def costs(latency_s=0.0, overhead_s=0.0, bandwidth=BANDWIDTH, min_bytes=(0,), **more):
    ones = np.ones(len(min_bytes))
    return PipelineCosts(
        np.array(min_bytes), latency_s * ones, overhead_s * ones, 1 / (bandwidth * ones), **more
    )


DELAYS_S = (0.0, 1e-6, 30e-6, 1e-3)


@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_the_joined_model_of_large_messages_is_bulk_and_pipelined_time_and_their_ratio(delay_s):
    partitions, partition_bytes = 16, 1e6
    one = pipeline_time_s("one", partitions, partition_bytes, delay_s, costs())
    each = pipeline_time_s("each", partitions, partition_bytes, delay_s, costs())
    assert one == pytest.approx(pipelined.bulk_time_s(partitions, partition_bytes, BANDWIDTH))
    assert each == pytest.approx(
        pipelined.pipelined_time_s(partitions, partition_bytes, BANDWIDTH, delay_s), rel=1e-9
    )
    gain = pipelined.large_message_gain(8, 2, delay_s / partition_bytes, BANDWIDTH)
    assert one / each == pytest.approx(gain)


def test_the_joined_model_of_small_messages_loses_by_their_number():
    small = costs(overhead_s=1e-6)
    one, each = (pipeline_time_s(messages, 32, 1.0, 0.0, small) for messages in ("one", "each"))
    assert one / each == pytest.approx(pipelined.small_message_gain(8, 4), rel=2e-3)


def by_definition(ready_s, size_bytes, model):
    """T = max over i of (r_i + sum over j >= i of (o_j + s_j/beta_j)) + tau - r_last, message by message."""
    order = np.argsort(ready_s, kind="stable")
    ready_s, size_bytes = np.array(ready_s)[order], np.array(size_bytes)[order]
    protocol = [max(c for c, start in enumerate(model.min_bytes) if start <= s) for s in size_bytes]
    busy_s = [
        model.overhead_s[c] + s * model.s_per_byte[c] for c, s in zip(protocol, size_bytes, strict=True)
    ]
    return (
        max(ready_s[i] + sum(busy_s[i:]) for i in range(len(busy_s)))
        + model.latency_s[protocol[-1]]
        - ready_s[-1]
    )


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0, 1e-3), st.integers(0, 1 << 20)), min_size=1, max_size=12
    )
)  # fmt: skip
def test_any_messages_ready_at_any_times_take_what_the_definition_says(messages):
    ready_s, size_bytes = zip(*messages, strict=True)
    model = PipelineCosts(
        np.array([0, 4096, 65536]),
        np.array([1e-6, 2e-6, 5e-6]),
        np.array([2e-7, 1e-6, 3e-6]),
        np.array([1e-9, 5e-10, 1e-10]),
    )
    found = joined_time_s(
        Trains(np.array(ready_s), np.array(size_bytes), np.ones(len(messages))), len(messages), model
    )
    assert found == pytest.approx(by_definition(ready_s, size_bytes, model), rel=1e-9, abs=1e-15)


def test_a_train_is_its_messages_one_by_one():
    model = costs(latency_s=2e-6, overhead_s=1e-6)
    train = Trains(np.array([0.0, 5e-6]), np.array([1000.0, 3000.0]), np.array([7.0, 1.0]))
    alone = Trains(np.array([0.0] * 7 + [5e-6]), np.array([1000.0] * 7 + [3000.0]), np.ones(8))
    assert joined_time_s(train, 8, model) == pytest.approx(joined_time_s(alone, 8, model))


def test_without_overlap_a_head_start_is_of_no_use():
    late, prompt = (pipeline_time_s("each", 4, 1e6, delay_s, costs(overlap=0.0)) for delay_s in (1e-3, 0.0))
    assert late == prompt == pytest.approx(4e6 / BANDWIDTH)


def test_calls_and_bytes_beyond_the_swift_ones_are_added():
    model = costs(per_partition_s=1e-8, burst_bytes=1e6, post_burst_s_per_byte=1e-10)
    assert pipeline_time_s("one", 4, 1e6, 0.0, model) == pytest.approx(4e6 / BANDWIDTH + 4e-8 + 3e6 * 1e-10)
    assert pipeline_time_s("one", 4, 2e5, 0.0, model) == pytest.approx(8e5 / BANDWIDTH + 4e-8)


def test_stacked_costs_give_what_each_gives_alone():
    ones = [
        costs(
            latency_s=1e-6 * n,
            overhead_s=1e-7 * n,
            bandwidth=BANDWIDTH / n,
            min_bytes=(0, 4096),
            per_partition_s=1e-9 * n,
            overlap=1 / n,
            burst_bytes=1e5 * n,
            post_burst_s_per_byte=1e-11 * n,
        )
        for n in (1, 2, 5)
    ]
    for messages, partition_bytes in (("one", 1e6), ("each", 1e5), ("each", 100.0), (3, 3000.0)):
        together, alone = (
            [pipeline_time_s(messages, 8, partition_bytes, 30e-6, one) for one in several]
            for several in ([stacked(ones)], ones)
        )
        assert together[0] == pytest.approx(alone)
        assert len(set(alone)) == 3


def test_costs_whose_protocols_begin_elsewhere_do_not_stack():
    assert stacked([costs(min_bytes=(0, 4096)), costs(min_bytes=(0, 8192))]) is None
    assert stacked([costs(min_bytes=(0, 4096)), costs()]) is None


@pytest.mark.parametrize("messages", ["one", "each", "planned", 1, 100, 1000, 10**9])
@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 32, 100])
def test_whatever_is_sent_every_byte_is_sent_once(messages, partitions):
    for trains in possible_messages(messages, partitions, 21.0, 1e-6):
        assert (trains.count * trains.size_bytes).sum() == pytest.approx(21 * partitions)
        assert trains.count[-1] == 1 and (trains.count >= 0).all()


def test_aggregation_takes_whole_partitions_up_to_its_bytes():
    (trains,) = possible_messages(100, 10, 30.0, 0.0)
    assert trains.count.tolist() == [3, 1] and trains.size_bytes.tolist() == [90, 30]
    (trains,) = possible_messages(10, 4, 30.0, 0.0)
    assert trains.count.tolist() == [3, 1] and trains.size_bytes.tolist() == [30, 30]


def test_a_plan_is_no_slower_than_one_message_or_one_for_each():
    model = costs(latency_s=1e-6, overhead_s=5e-7)
    for delay_s in DELAYS_S:
        for partition_bytes in (1.0, 1e4, 1e6):
            planned, *others = (
                pipeline_time_s(messages, 16, partition_bytes, delay_s, model)
                for messages in ("planned", "one", "each")
            )
            assert planned <= min(others) * (1 + 1e-12)
