"""Errors at left-out sizes: what they count, what they forgive."""

import numpy as np

from earlybird.fit.observations import LevelTimes
from earlybird.fit.protocols import held_out_size_errors, kept_switches_error
from earlybird.fit.switches import segmentations

SIZES = 2 ** np.arange(8, 20)


def level_of(time_s, sizes=SIZES):
    """One launch of N = 2 as a level."""
    return LevelTimes("intra_socket", np.array([2]), sizes, np.reshape(time_s, (1, 1, -1)), np.array([False]))


def divided(level, num_segments, thresholds=None):
    return segmentations(level.size_bytes, level.median_s(), thresholds)[num_segments - 1]


def test_the_error_of_an_exact_line_is_none():
    level = level_of(1e-6 + SIZES / 1e10)
    (error,) = held_out_size_errors(level, [divided(level, 1)])
    assert error < 1e-9 and kept_switches_error(level, (0,)) < 1e-9


def test_refitted_switches_show_the_error_of_switches_due_to_noise():
    kept, refitted = [], []
    for seed in range(20):
        noise = 1 + 0.2 * np.random.default_rng(seed).standard_normal(len(SIZES))
        level = level_of((1e-6 + SIZES / 1e10) * noise)
        division = divided(level, 3)
        kept.append(kept_switches_error(level, division.starts))
        refitted += held_out_size_errors(level, [division])
    assert np.mean(refitted) > 1.1 * np.mean(kept)


def test_too_few_sizes_leave_nothing_out():
    level = level_of([1e-6, 2e-6], SIZES[:2])
    assert held_out_size_errors(level, [divided(level, 1)]) == [None]


def test_where_the_rest_is_too_short_for_as_many_segments_the_switches_stay():
    sizes = SIZES[:6]
    level = level_of(np.where(sizes < 2048, 1e-6, 9e-6), sizes)
    division = divided(level, 2)
    assert division.min_bytes == (0, 2048)
    assert held_out_size_errors(level, [division])[0] < 0.02
