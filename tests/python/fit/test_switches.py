"""Protocol switches: known ones are recovered, straight lines get none, reported thresholds are used."""

import numpy as np
import pytest

from earlybird.fit.switches import choose, protocol_names, segmentations

SIZES = 2 ** np.arange(3, 23)
SHORT, EAGER, RENDEZVOUS = (4e-7, 1e-10), (1.5e-6, 3e-10), (6e-6, 1e-10)


def planted(*pieces, noise=0.02, num_n=3, seed=7):
    """(K, S) times of lines (from_bytes, (intercept, slope)) with relative noise."""
    generator = np.random.default_rng(seed)
    rows = []
    for k in range(num_n):
        row = np.empty(len(SIZES))
        for start, (intercept, slope) in pieces:
            part = start <= SIZES
            row[part] = intercept + slope * (1 + 0.5 * k) * SIZES[part]
        rows.append(row)
    return np.array(rows) * (1 + noise * generator.standard_normal((num_n, len(SIZES))))


def found(times, thresholds=None):
    candidates = segmentations(SIZES, times, thresholds)
    return choose(candidates, [None] * len(candidates))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_a_straight_line_gets_no_switch(noise, seed):
    assert found(planted((0, EAGER), noise=noise, seed=seed)).min_bytes == (0,)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("switch", [256, 8192, 65536])
def test_a_planted_switch_is_found_where_it_is(switch, seed):
    assert found(planted((0, SHORT), (switch, RENDEZVOUS), seed=seed)).min_bytes == (0, switch)


def test_two_planted_switches_are_found_where_they_are():
    times = planted((0, SHORT), (1024, EAGER), (16384, RENDEZVOUS))
    assert found(times).min_bytes == (0, 1024, 16384)


def test_a_switch_seen_by_some_n_only_is_shared_by_all():
    times = planted((0, SHORT), (8192, RENDEZVOUS))
    times[0, SIZES > 65536] = np.nan
    assert found(times).min_bytes == (0, 8192)


def test_no_segment_is_shorter_than_three_sizes():
    for segmentation in segmentations(SIZES, planted((0, SHORT), (16, RENDEZVOUS))):
        assert min(np.diff([*segmentation.starts, len(SIZES)])) >= 3


def test_few_sizes_allow_fewer_segments():
    times = planted((0, SHORT))
    assert [s.num_segments for s in segmentations(SIZES[:5], times[:, :5])] == [1]
    assert [s.num_segments for s in segmentations(SIZES[:6], times[:, :6])] == [1, 2]


def test_the_librarys_threshold_places_the_switch_between_two_sizes():
    times = planted((0, SHORT), (8192, RENDEZVOUS))
    assert found(times, {"limit": 5000}).min_bytes == (0, 5000)


def test_a_threshold_still_sent_with_the_old_protocol_begins_one_byte_later():
    times = planted((0, SHORT), (8192, RENDEZVOUS))
    assert found(times, {"limit": 4096}).min_bytes == (0, 4097)
    assert found(times, {"limit": 8192}).min_bytes == (0, 8192)


def test_a_threshold_without_effect_on_times_makes_no_switch():
    assert found(planted((0, EAGER)), {"limit": 4096, "other": 65536}).min_bytes == (0,)


def test_a_switch_reported_by_the_library_costs_no_parameter():
    times = planted((0, SHORT), (8192, RENDEZVOUS))
    free, reported = segmentations(SIZES, times)[1], segmentations(SIZES, times, {"limit": 8000})[1]
    assert free.num_parameters == reported.num_parameters + 1


def test_a_switch_that_predicts_worse_is_not_made():
    candidates = segmentations(SIZES, planted((0, SHORT), (8192, RENDEZVOUS)))
    assert choose(candidates, [0.1, 0.05, 0.05]).num_segments == 2
    assert choose(candidates, [0.1, 0.11, 0.12]).num_segments == 1


def test_the_variable_that_placed_a_switch_is_named():
    times = planted((0, SHORT), (1024, EAGER), (16384, RENDEZVOUS))
    assert found(times, {"far": 1 << 20, "limit": 9000}).reported_by == (None, None, "limit")


def test_names_end_with_rendezvous():
    assert [protocol_names(k) for k in (1, 2, 3)] == [
        ("rendezvous",),
        ("eager", "rendezvous"),
        ("short", "eager", "rendezvous"),
    ]
