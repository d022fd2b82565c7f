"""What both sides of a partitioned transfer compute alike: segments, schedules and plans."""

import itertools
import math
from ctypes import byref, c_double, c_int, c_int64

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core_library import (
    KEEP,
    PLAN_RECORDS,
    SEGMENT_MAX_BYTES,
    USE_BEST,
    USE_ONE,
    Observation,
    Proposal,
    Segments,
    Trial,
    canonical,
    choose,
    compile_core,
    cost_of,
    from_ends,
    predict_s,
    uniform,
)

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
NAN = math.nan
# Shared memory of an MPI as fitted: eager up to 8 KiB, rendezvous from there.
EVERYDAY = [(0, 0.6e-6, 0.2e-6, 8e9), (8192, 2.6e-6, 0.6e-6, 10e9)]
DEAR = [(0, 50e-6, 40e-6, 10e9)]


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    return compile_core(tmp_path_factory.mktemp("core"))


sizes = st.one_of(
    st.integers(0, 1 << 20),
    st.integers(0, 1 << 36),
    st.integers(1, 20).flatmap(
        lambda pieces: st.integers(pieces * SEGMENT_MAX_BYTES - 70, pieces * SEGMENT_MAX_BYTES + 70)
    ),
)


def assert_sound(first_byte, total_bytes):
    assert first_byte[0] == 0
    assert first_byte[-1] == total_bytes
    lengths = np.diff(first_byte)
    assert lengths.max() <= SEGMENT_MAX_BYTES
    assert (lengths > 0).all() or (total_bytes == 0 and len(lengths) == 1)


@QUICK
@given(total_bytes=sizes)
def test_canonical_segments_are_the_rule_without_gap_or_overlap(core, total_bytes):
    first_byte = canonical(core, total_bytes)
    assert_sound(first_byte, total_bytes)
    num = min(max(total_bytes // 65536, 1), 4)
    if total_bytes <= num * (SEGMENT_MAX_BYTES - 128):
        assert first_byte[:-1] == [total_bytes // num * s // 64 * 64 for s in range(num)]


def test_the_last_canonical_segment_stays_short_enough_where_alignment_adds_to_it(core):
    for total_bytes in range(4 * SEGMENT_MAX_BYTES - 300, 4 * SEGMENT_MAX_BYTES + 3):
        assert_sound(canonical(core, total_bytes), total_bytes)


@QUICK
@given(total_bytes=sizes, step_bytes=st.one_of(st.integers(1 << 20, 1 << 34), st.just(SEGMENT_MAX_BYTES)))
def test_uniform_segments_are_steps_cut_at_the_longest_message(core, total_bytes, step_bytes):
    first_byte = uniform(core, total_bytes, step_bytes)
    assert_sound(first_byte, total_bytes)
    step_bytes = min(step_bytes, SEGMENT_MAX_BYTES)
    assert first_byte[:-1] == list(range(0, total_bytes, step_bytes)) or total_bytes == 0


@QUICK
@given(lengths=st.lists(st.integers(1, 3 * SEGMENT_MAX_BYTES), min_size=1, max_size=12))
def test_segments_of_a_plan_end_where_it_says_and_are_cut_at_the_longest_message(core, lengths):
    ends = list(itertools.accumulate(lengths))
    expected = [0]
    for end in ends:
        while end - expected[-1] > SEGMENT_MAX_BYTES:
            expected.append(expected[-1] + SEGMENT_MAX_BYTES)
        expected.append(end)
    assert from_ends(core, ends) == expected
    assert_sound(expected, ends[-1])


@QUICK
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=10),
    ranges=st.lists(st.tuples(st.integers(0, 420), st.integers(0, 420)), min_size=1, max_size=20),
)
def test_find_and_cover_agree_with_counting_bytes(core, lengths, ranges):
    ends = list(itertools.accumulate(lengths))
    segment_of = [s for s, length in enumerate(lengths) for _ in range(length)]
    segments, first, last = Segments(), c_int(), c_int()
    assert core.eb_segments_from_ends(len(ends), (c_int64 * len(ends))(*ends), byref(segments)) == 0
    for a, b in ranges:
        begin, end = min(a, b), min(max(a, b), ends[-1])
        expected = segment_of[begin] if begin < ends[-1] else len(lengths) - 1
        assert core.eb_segments_find(byref(segments), begin) == expected
        core.eb_segments_cover(byref(segments), begin, end, byref(first), byref(last))
        covered = segment_of[begin:end] or [expected]
        assert (first.value, last.value) == (covered[0], covered[-1])
    core.eb_segments_free(byref(segments))


# The schedule -----------------------------------------------------------------------------------------------


def test_records_of_a_plan_are_those_reported_before_it(core):
    due = [start for start in range(1, 3000) if core.eb_plan_is_due(start)]
    assert due[:7] == [2, 8, 14, 32, 128, 134, 256]
    assert set(np.diff(due[6:])) == {256}
    written = {}
    reported = None
    for start in range(1, 3000):
        if core.eb_plan_is_due(start):
            num = core.eb_plan_num_records(start)
            places = range(PLAN_RECORDS - num, PLAN_RECORDS)
            expected = [start - 4, start - 3, start - 2] if start > 2 else [1]
            assert [written[place] for place in places] == expected
            # The only plan without a report is the first; every other one's was sent two starts before, when
            # the last record had been written.
            assert reported == (start - 2 if start > 2 else None)
        record = core.eb_plan_record(start)
        assert -1 <= record < PLAN_RECORDS
        if record >= 0:
            written[record] = start
        if core.eb_plan_is_reported(start):
            assert sorted(written.values()) == [start - 2, start - 1, start]
            assert not core.eb_plan_is_due(start)
            reported = start


@QUICK
@given(records=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3))
def test_the_typical_time_is_the_median_or_the_only_one(core, records):
    array = (c_double * PLAN_RECORDS)(*records)
    assert core.eb_plan_typical_s(array, PLAN_RECORDS) == sorted(records)[1]
    assert core.eb_plan_typical_s(array, 1) == records[-1]


# The prediction and the choice ------------------------------------------------------------------------------

protocols = st.builds(
    lambda latency_s, busy, bandwidth, steps: [
        (0 if p == 0 else 64 << (4 * p), latency_s * 2**p, latency_s * busy * 1.5**p, bandwidth)
        for p in range(steps)
    ],
    st.floats(5e-8, 2e-5),
    st.floats(0.05, 1),
    st.floats(1e9, 2e10),
    st.integers(1, 3),
)
readiness = st.lists(st.floats(0, 1e-3), min_size=1, max_size=8)


def protocol_of(lines, num_bytes):
    return [line for line in lines if line[0] <= num_bytes][-1]


def naive_timeline_s(lines, ready_s, num_bytes):
    """Segments leave in the order of readiness, one after another; see plan.h."""
    free = done = 0.0
    for ready, size in sorted(zip(ready_s, num_bytes, strict=True), key=lambda pair: pair[0]):
        _, latency_s, overhead_s, bandwidth = protocol_of(lines, size)
        busy_s = 1.2 * overhead_s + size / lines[-1][3]
        free = max(free, ready) + busy_s
        done = max(done, free + max(0, latency_s + size / bandwidth - busy_s))
    return done - max(ready_s)


@QUICK
@given(
    lines=protocols,
    segments=st.lists(st.tuples(st.floats(0, 1e-3), st.integers(0, 1 << 24)), min_size=1, max_size=9),
)
def test_the_prediction_is_the_timeline(core, lines, segments):
    ready_s, num_bytes = [list(column) for column in zip(*segments, strict=True)]
    expected = naive_timeline_s(lines, ready_s, num_bytes)
    assert predict_s(core, cost_of(lines), ready_s, num_bytes) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def priced(lines, ready_s, partition_bytes, ends):
    """The time of a grouping given by its ends in bytes."""
    cuts = [0, *(end // partition_bytes for end in ends)]
    groups = list(itertools.pairwise(cuts))
    return naive_timeline_s(
        lines, [max(ready_s[a:b]) for a, b in groups], [(b - a) * partition_bytes for a, b in groups]
    )


def exhaustive_s(lines, ready_s, partition_bytes, max_segments):
    """(one segment's time, the best time) of all contiguous groupings."""
    num = len(ready_s)
    times = [
        priced(lines, ready_s, partition_bytes, [cut * partition_bytes for cut in (*cuts, num)])
        for count in range(min(num, max_segments))
        for cuts in itertools.combinations(range(1, num), count)
    ]
    return times[0], min(times)


def wanted_s(one_s, best_s):
    """What is to be had when small gains are left alone."""
    return best_s if one_s - best_s >= 0.15 * one_s and one_s - best_s >= 0.3e-6 else one_s


@QUICK
@given(
    lines=protocols,
    ready_s=readiness,
    partition_bytes=st.integers(1, 1 << 20),
    max_segments=st.integers(1, 9),
)
def test_a_choice_is_what_it_says_and_never_predicted_worse_than_one_segment(
    core, lines, ready_s, partition_bytes, max_segments
):
    ends, best_s = choose(core, cost_of(lines), ready_s, partition_bytes, max_segments)
    total_bytes = len(ready_s) * partition_bytes
    assert ends[-1] == total_bytes
    assert ends == sorted(set(ends))
    assert all(end % partition_bytes == 0 for end in ends)
    assert len(ends) <= max_segments
    assert best_s == pytest.approx(priced(lines, ready_s, partition_bytes, ends), rel=1e-9, abs=1e-15)
    one_s = naive_timeline_s(lines, [max(ready_s)], [total_bytes])
    assert best_s <= one_s * (1 + 1e-9)
    if len(ends) > 1:
        assert one_s - best_s >= 0.3e-6 * (1 - 1e-9)
        assert one_s - best_s >= 0.15 * one_s * (1 - 1e-9)


@pytest.mark.parametrize("descending", [False, True])
def test_the_choice_is_the_best_of_all_groupings_where_readiness_goes_one_way(core, descending):
    random = np.random.default_rng(4 + descending)
    worse = []
    num_cases = 150
    for _ in range(num_cases):
        num = int(random.integers(2, 9))
        ready_s = sorted(
            random.uniform(0, num * 10 ** random.uniform(-8, -4), num).tolist(), reverse=descending
        )
        partition_bytes = int(10 ** random.uniform(2, 6.5))
        max_segments = int(random.integers(1, num + 2))
        lines = EVERYDAY if random.random() < 0.7 else [(0, 2e-6, float(random.uniform(0.1e-6, 2e-6)), 5e9)]
        _, best_s = choose(core, cost_of(lines), ready_s, partition_bytes, max_segments)
        expected_s = wanted_s(*exhaustive_s(lines, ready_s, partition_bytes, max_segments))
        assert best_s >= expected_s * (1 - 1e-9)
        if best_s > expected_s * (1 + 1e-9):
            worse.append(best_s / expected_s)
    # The programming keeps one timeline for each end: seldom another one would have ended sooner.
    assert len(worse) <= 0.03 * num_cases
    assert max(worse, default=1) < 1.5


@pytest.mark.parametrize("late", [0, 7, 15])
def test_one_late_partition_waits_alone(core, late):
    partition_bytes = 1 << 18
    ready_s = [0.0] * 16
    ready_s[late] = 2e-3
    ends, best_s = choose(core, cost_of(EVERYDAY), ready_s, partition_bytes, 126)
    bounds = [0, *ends]
    assert late * partition_bytes in bounds
    assert (late + 1) * partition_bytes in bounds
    lone_s = naive_timeline_s(EVERYDAY, [0.0], [partition_bytes])
    assert best_s == pytest.approx(lone_s, rel=0.1)


@pytest.mark.parametrize("num_partitions", [2, 8, 64, 200])
def test_equal_readiness_and_dear_messages_keep_one_segment(core, num_partitions):
    ends, _ = choose(core, cost_of(DEAR), [1e-4] * num_partitions, 4096, 126)
    assert ends == [num_partitions * 4096]


def test_unknown_costs_keep_one_segment(core):
    ends, _ = choose(core, cost_of([]), [0.0, 1.0], 1 << 20, 126)
    assert ends == [2 << 20]


@pytest.mark.parametrize("num_partitions", [65, 100, 128, 1000])
@pytest.mark.parametrize("max_segments", [1, 2, 14, 126])
def test_many_partitions_are_joined_and_the_late_one_still_leaves_alone(core, num_partitions, max_segments):
    late = num_partitions - 1
    ready_s = [p * 1e-9 for p in range(num_partitions)]
    ready_s[late] = 5e-3
    partition_bytes = 1 << 12
    ends, best_s = choose(core, cost_of(EVERYDAY), ready_s, partition_bytes, max_segments)
    assert len(ends) <= max_segments
    assert ends[-1] == num_partitions * partition_bytes
    if max_segments > 1:
        assert ends[-2] == late * partition_bytes
    assert best_s == pytest.approx(priced(EVERYDAY, ready_s, partition_bytes, ends))


def test_few_segments_go_where_they_gain_most(core):
    """Partitions a millisecond apart, two segments: the last partition alone, all others before it."""
    ready_s = [p * 1e-3 for p in range(8)]
    ends, _ = choose(core, cost_of(EVERYDAY), ready_s, 1 << 20, 2)
    assert ends == [7 << 20, 8 << 20]


# The trial of a plan against one segment --------------------------------------------------------------------

# Each step: start, is one segment in use, observed (or that, the last readiness and our sends before
# it), predicted now, best and one, what is decided.
SCENARIOS = {
    "the first plan is the predicted best": [(2, True, NAN, 9, 5, 9, USE_BEST)],
    "a slower plan is dropped": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, 6, 5, 5, 9, USE_ONE),  # seen with the plan; now one segment is tried
        (14, True, 4, 9, 5, 9, KEEP),
        (32, True, 4, 9, 5, 9, KEEP),
    ],
    "a faster plan is kept": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, 4, 5, 5, 9, USE_ONE),
        (14, True, 6, 9, 5, 9, USE_BEST),
        (32, False, 4, 5, 5, 9, KEEP),
        (128, False, 4, 5, 4.9, 9, KEEP),
        (256, False, 4, 5, 3, 9, USE_BEST),  # a clearly better plan replaces it
    ],
    "a plan that became slower later is dropped": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, 4, 5, 5, 9, USE_ONE),
        (14, True, 6, 9, 5, 9, USE_BEST),
        (32, False, 7, 5, 5, 9, USE_ONE),
        (128, True, 6, 9, 5, 9, USE_BEST),  # once more, for the MPI may have been slow at first
        (134, False, 7, 5, 5, 9, USE_ONE),
        (256, True, 6, 9, 5, 9, KEEP),
    ],
    "a plan that lost while the MPI was slow wins when it is tried again": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, 70, 5, 5, 9, USE_ONE),
        (14, True, 9, 9, 5, 9, KEEP),
        (32, True, 9, 9, 5, 9, KEEP),
        (128, True, 9, 9, 5, 9, USE_BEST),
        (134, False, 5, 5, 5, 9, KEEP),
        (256, False, 5, 5, 5, 9, KEEP),
    ],
    "sends that held the program up are part of what a plan takes": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, (1, 10, 8), 5, 5, 9, USE_ONE),
        (14, True, (6, 2, 0), 9, 5, 9, KEEP),
    ],
    "sends while the program waited are not": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, (4, 10, 8), 5, 5, 9, USE_ONE),
        (14, True, (6, 10, 0), 9, 5, 9, USE_BEST),
    ],
    "a program that was later for reasons of its own is charged for our sends at most": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, (4, 100, 1), 5, 5, 9, USE_ONE),
        (14, True, (6, 10, 0), 9, 5, 9, USE_BEST),
    ],
    "no observation at all changes nothing": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, NAN, 5, 5, 9, KEEP),
        (14, False, NAN, 5, 5, 9, KEEP),
        (32, False, NAN, 5, 5, 9, KEEP),
    ],
    "an unknown time of one segment brings the plan back": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, 6, 5, 5, 9, USE_ONE),
        (14, True, NAN, 9, 5, 9, USE_BEST),
    ],
    "a refused plan comes back when the promise is far larger, and not before": [
        (2, True, NAN, 9, 6, 9, USE_BEST),
        (8, False, 6, 6, 6, 9, USE_ONE),
        (14, True, 4, 9, 6, 9, KEEP),
        (32, True, 4, 9, 5.5, 9, KEEP),
        (128, True, 4, 9, 5.5, 9, USE_BEST),  # tried again as a matter of course
        (134, False, 6, 5.5, 5.5, 9, USE_ONE),
        (256, True, 4, 9, 5.5, 9, KEEP),
        (512, True, 4, 9, 2, 9, USE_BEST),
    ],
    "where one segment is predicted best it is used": [
        (2, True, NAN, 9, 5, 9, USE_BEST),
        (8, False, NAN, 12, 9, 9, USE_ONE),
    ],
    "one segment stays where nothing better is predicted": [
        (2, True, NAN, 9, 9, 9, USE_BEST),
        (8, True, 5, 9, 9, 9, KEEP),
        (32, True, NAN, 9, 9, 9, KEEP),
        (128, True, 5, 9, 4, 9, USE_BEST),
    ],
}


@pytest.mark.parametrize("ahead_s", [0, 1000, -1000], ids="clocks {} apart".format)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_trials(core, scenario, ahead_s):
    trial = Trial()
    core.eb_trial_begin(byref(trial))
    for start, is_one, observed, now, best, one, expected in SCENARIOS[scenario]:
        seen = bytes(trial.one), bytes(trial.many)
        after, ready, own = observed if isinstance(observed, tuple) else (observed, 0, 0)
        observation = Observation(after_s=after + ahead_s, ready_s=ready, own_s=own)
        proposal = Proposal(num=2, best_s=best, one_s=one, now_s=now)
        decided = core.eb_trial_decide(byref(trial), start, is_one, byref(observation), byref(proposal))
        assert decided == expected, f"at start {start}"
        if math.isnan(after) and start != 128:
            assert seen == (bytes(trial.one), bytes(trial.many))
