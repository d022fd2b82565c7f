"""What partitioned transfers are cut into: segments, and the planner's proposals."""

import itertools
from ctypes import byref, c_double, c_int, c_int64, c_ubyte

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.core_library import (
    CUT_MAX_SEGMENTS,
    PLAN_FIRST_PLACES,
    PLAN_MAX_CUTS,
    SEGMENT_MAX_BYTES,
    Proposal,
    Segments,
    Spread,
    canonical,
    compile_core,
    cost_of,
    from_ends,
    plan_input,
    predict_s,
    propose,
    select,
    send_early,
    uniform,
)

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
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
@given(total_bytes=sizes, wanted_num=st.integers(1, 4))
def test_canonical_segments_are_the_rule_without_gap_or_overlap(core, total_bytes, wanted_num):
    first_byte = canonical(core, total_bytes, wanted_num)
    assert_sound(first_byte, total_bytes)
    num = next(n for n in range(wanted_num, 0, -1) if n == 1 or total_bytes // n >= 64 * (n + 1))
    if total_bytes <= num * (SEGMENT_MAX_BYTES - 64 * (num + 2)):
        rule = [total_bytes // num * s // 64 * 64 for s in range(num)]
        assert first_byte[:-1] == rule[:1] + [first - 64 * num for first in rule[1:2]] + rule[2:]


@QUICK
@given(
    piece_bytes=st.integers(64 * 5, 1 << 26),
    nums=st.permutations((1, 2, 3, 4)).map(lambda nums: nums[:2]),
)
def test_totals_in_proportion_to_their_numbers_of_canonical_segments_have_other_first_ones(
    core, piece_bytes, nums
):
    """Otherwise a receiver of the larger total would wait for segments that its sender does not have."""
    first, second = (canonical(core, num * piece_bytes, num) for num in nums)
    assert [len(first) - 1, len(second) - 1] == list(nums)
    assert first[1] != second[1]


def test_the_last_canonical_segment_stays_short_enough_where_alignment_adds_to_it(core):
    for total_bytes in range(4 * SEGMENT_MAX_BYTES - 300, 4 * SEGMENT_MAX_BYTES + 3):
        assert_sound(canonical(core, total_bytes, 4), total_bytes)


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
    lengths=st.lists(st.integers(1, 1000), min_size=1, max_size=12),
    num_lanes=st.integers(1, 16),
    spread=st.tuples(st.integers(0, 20), st.integers(0, 3000)),
)
@example(lengths=[10] * 8, num_lanes=4, spread=(0, 0))
@example(lengths=[10] * 8, num_lanes=3, spread=(2, 20))
def test_the_lane_of_a_segment_follows_from_its_first_byte(core, lengths, num_lanes, spread):
    """Neighbouring blocks go to lanes in turn; without keys each lane has an equal part of the bytes."""
    ends = list(itertools.accumulate(lengths))
    segments = Segments()
    assert core.eb_segments_from_ends(len(ends), (c_int64 * len(ends))(*ends), byref(segments)) == 0
    segments.spread = Spread(*spread)
    used = min(spread[0] or num_lanes, num_lanes)
    block_bytes = spread[1] or -(-ends[-1] // used)
    lanes = [core.eb_segments_lane(byref(segments), s, num_lanes) for s in range(len(ends))]
    assert lanes == [first // block_bytes % used for first in [0, *ends[:-1]]]
    if not spread[1]:
        assert lanes == sorted(lanes)


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


@QUICK
@given(values=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=3))
def test_the_typical_time_is_the_median_of_three_or_the_least_of_fewer(core, values):
    array = (c_double * len(values))(*values)
    expected = sorted(values)[1] if len(values) == 3 else min(values)
    assert core.eb_planner_typical_s(array, len(values)) == expected


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
        alone_s, bytes_s = latency_s + size / bandwidth, size / lines[-1][3]
        busy_s = 1.2 * overhead_s + (min(bytes_s, alone_s) if alone_s > 0 else bytes_s)
        begin = max(free, ready)
        free = begin + busy_s
        done = max(done, begin + alone_s)
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
    """The time of segments given by their ends in bytes."""
    bounds = list(itertools.pairwise([0, *ends]))
    ready = [
        max(
            time
            for p, time in enumerate(ready_s)
            if p * partition_bytes < b and (p + 1) * partition_bytes > a
        )
        for a, b in bounds
    ]
    return naive_timeline_s(lines, ready, [b - a for a, b in bounds])


def exhaustive_s(lines, ready_s, partition_bytes, max_segments):
    """The best time of all groups of neighbouring partitions."""
    num = len(ready_s)
    return min(
        priced(lines, ready_s, partition_bytes, [cut * partition_bytes for cut in (*cuts, num)])
        for count in range(min(num, max_segments))
        for cuts in itertools.combinations(range(1, num), count)
    )


@QUICK
@given(
    lines=protocols,
    ready_s=readiness,
    partition_bytes=st.integers(1, 1 << 20),
    max_segments=st.integers(1, 40),
)
def test_proposals_are_whole_priced_and_in_order_and_one_segment_is_among_them(
    core, lines, ready_s, partition_bytes, max_segments
):
    proposals = propose(core, cost_of(lines), ready_s, partition_bytes, max_segments)
    total_bytes = len(ready_s) * partition_bytes
    cuts = [tuple(ends) for ends, _ in proposals]
    times = [predicted_s for _, predicted_s in proposals]
    assert 1 <= len(cuts) == len(set(cuts)) <= PLAN_MAX_CUTS
    assert (total_bytes,) in cuts
    assert times == sorted(times)
    for ends, predicted_s in proposals:
        assert ends[-1] == total_bytes
        assert ends == sorted(set(ends))
        assert len(ends) <= max_segments
        assert predicted_s == pytest.approx(
            priced(lines, ready_s, partition_bytes, ends), rel=1e-9, abs=1e-15
        )
        is_power_of_two = len(ends) & (len(ends) - 1) == 0
        is_coarser = is_power_of_two and len(cuts[0]) / 8 < len(ends) <= len(cuts[0]) / 2
        assert len(ends) == 1 or is_coarser or predicted_s <= 1.6 * times[0] + 0.5e-6 + 1e-15
        # Pieces of a partition are no small messages.
        assert all(end % partition_bytes == 0 for end in ends) or min(np.diff([0, *ends])) >= 1 << 11


def test_fewer_segments_than_the_predicted_best_are_tried_too(core):
    """An idle link hides what short messages cost: half the segments seem to take twice as long."""
    lines = [(0, 1e-6, 1e-8, 8e9), (8 << 10, 1e-5, 1e-5, 0.12e9)]
    ready_s = [1e-4 * p for p in range(4)]
    predicted = {len(ends): time_s for ends, time_s in propose(core, cost_of(lines), ready_s, 12 << 10, 126)}
    assert min(predicted, key=predicted.get) == 8
    assert predicted[4] > 1.6 * predicted[8] + 0.5e-6
    assert {1, 2, 4, 8} <= set(predicted)


@pytest.mark.parametrize("seed", range(20))
def test_coarser_segments_are_tried_whatever_else_is_near_the_best(core, seed):
    """32 pieces of partitions that are ready in any order: more candidates than places."""
    lines = [(0, 1e-6, 1e-8, 8e9), (5 << 10, 2e-5, 1e-5, 0.12e9)]
    ready_s = np.random.default_rng(seed).uniform(0, 2e-3, 4).tolist()
    proposals = propose(core, cost_of(lines), ready_s, 16 << 10, 126)
    best = len(proposals[0][0])
    coarser = {num for num in (2, 4, 8, 16) if best / 8 < num <= best / 2}
    assert coarser and coarser | {1} <= {len(ends) for ends, _ in proposals}
    assert len(proposals) <= PLAN_MAX_CUTS


@pytest.mark.parametrize("descending", [False, True])
def test_the_first_proposal_is_the_best_of_all_groupings_where_readiness_goes_one_method(core, descending):
    random = np.random.default_rng(4 + descending)
    worse = []
    num_cases = 150
    for _ in range(num_cases):
        num = int(random.integers(2, 9))
        ready_s = sorted(
            random.uniform(0, num * 10 ** random.uniform(-8, -4), num).tolist(), reverse=descending
        )
        partition_bytes = int(10 ** random.uniform(2, 3.6))
        max_segments = int(random.integers(1, num + 2))
        lines = EVERYDAY if random.random() < 0.7 else [(0, 2e-6, float(random.uniform(0.1e-6, 2e-6)), 5e9)]
        _, best_s = propose(core, cost_of(lines), ready_s, partition_bytes, max_segments)[0]
        expected_s = exhaustive_s(lines, ready_s, partition_bytes, max_segments)
        assert best_s >= expected_s * (1 - 1e-9)
        if best_s > expected_s * (1 + 1e-9):
            worse.append(best_s / expected_s)
    # The programming keeps one timeline for each end: seldom another one would have ended sooner.
    assert len(worse) <= 0.04 * num_cases
    assert max(worse, default=1) < 1.5


@pytest.mark.parametrize("late", [0, 7, 15])
def test_one_late_partition_waits_alone(core, late):
    partition_bytes = 1 << 16
    ready_s = [0.0] * 16
    ready_s[late] = 2e-3
    ends, best_s = propose(core, cost_of(EVERYDAY), ready_s, partition_bytes, 126)[0]
    bounds = [0, *ends]
    assert late * partition_bytes in bounds
    assert (late + 1) * partition_bytes in bounds
    lone_s = naive_timeline_s(EVERYDAY, [0.0], [partition_bytes])
    assert best_s == pytest.approx(lone_s, rel=0.1)


@pytest.mark.parametrize("num_partitions", [2, 8, 64, 200])
def test_equal_readiness_and_dear_messages_propose_one_segment_first(core, num_partitions):
    ends, _ = propose(core, cost_of(DEAR), [1e-4] * num_partitions, 4096, 126)[0]
    assert ends == [num_partitions * 4096]


def test_where_costs_are_unknown_equal_segments_are_tried(core):
    proposals = propose(core, cost_of([]), [0.0, 1.0], 1 << 20, 126)
    assert [len(ends) for ends, _ in proposals] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("num_partitions", [65, 100, 128, 1000])
@pytest.mark.parametrize("max_segments", [1, 2, 14, 126])
def test_many_partitions_are_joined_and_the_late_one_still_leaves_alone(core, num_partitions, max_segments):
    late = num_partitions - 1
    ready_s = [p * 1e-9 for p in range(num_partitions)]
    ready_s[late] = 5e-3
    partition_bytes = 1 << 12
    ends, best_s = propose(core, cost_of(EVERYDAY), ready_s, partition_bytes, max_segments)[0]
    assert len(ends) <= max_segments
    assert ends[-1] == num_partitions * partition_bytes
    if max_segments > 1:
        assert ends[-2] == late * partition_bytes
    assert best_s == pytest.approx(priced(EVERYDAY, ready_s, partition_bytes, ends))


def test_few_segments_go_where_they_gain_most(core):
    """Partitions a millisecond apart, two segments: the last partition alone, all others before it."""
    ready_s = [p * 1e-3 for p in range(8)]
    ends, _ = propose(core, cost_of(EVERYDAY), ready_s, 1 << 16, 2)[0]
    assert ends == [7 << 16, 8 << 16]


@pytest.mark.parametrize("pieces", [2, 4, 8, 16])
def test_large_partitions_may_be_cut_into_pieces(core, pieces):
    cuts = [len(ends) for ends, _ in propose(core, cost_of(EVERYDAY), [0.0], pieces << 16, 126)]
    assert pieces in cuts


def test_a_lone_partition_is_cut_where_two_eager_messages_are_faster_than_one(core):
    ends, _ = propose(core, cost_of(EVERYDAY), [0.0], 8192, 126)[0]
    assert len(ends) > 1


def test_every_size_has_a_place_and_larger_sizes_later_ones(core):
    places = [core.eb_planner_first_place(size) for size in range(300_000)]
    assert places == sorted(places)
    assert set(places) == set(range(PLAN_FIRST_PLACES))
    assert core.eb_planner_first_place(1 << 60) == PLAN_FIRST_PLACES - 1


def test_first_segments_are_more_than_one_where_that_is_clearly_faster(core):
    numbers = (c_ubyte * PLAN_FIRST_PLACES)()

    def first_number(size):
        return numbers[core.eb_planner_first_place(size)]

    core.eb_planner_first_numbers(byref(cost_of(EVERYDAY)), numbers)
    assert [first_number(size) for size in (0, 512, 4096)] == [1, 1, 1]
    assert first_number(8192) > 1
    for size in (8192, 9000, 12000):
        num = first_number(size)
        one_s, cut_s = (predict_s(core, cost_of(EVERYDAY), [0.0] * n, [size // n] * n) for n in (1, num))
        assert cut_s <= one_s
    for lines in (DEAR, []):
        core.eb_planner_first_numbers(byref(cost_of(lines)), numbers)
        assert set(numbers) == {1}


def first_numbers_by_rule(lines):
    """The number of segments at each place: twice as many where they save 15 % and 0.2 us, at most 4."""
    found = []
    for place in range(PLAN_FIRST_PLACES):
        size, number = ((5 + place % 4) << (4 + place // 4)) - 1, 1
        best_s = naive_timeline_s(lines, [0.0], [size])
        for num in (2, 4):
            taken_s = naive_timeline_s(lines, [0.0] * num, [size // num] * num)
            if best_s - taken_s >= max(0.15 * best_s, 0.2e-6):
                best_s, number = taken_s, num
        found.append(number)
    return found


@QUICK
@given(lines=protocols)
@example(lines=[(0, 1e-6, 0.1e-6, 1e10), (2048, 50e-6, 1e-6, 1e10)])
def test_the_first_number_of_segments_of_every_size_is_the_rule(core, lines):
    numbers = (c_ubyte * PLAN_FIRST_PLACES)()
    core.eb_planner_first_numbers(byref(cost_of(lines)), numbers)
    assert list(numbers) == first_numbers_by_rule(lines)


# Two eager messages are much faster than one that is not.
EAGER_TO_2_KIB = [(0, 1e-6, 0.1e-6, 1e10), (2049, 50e-6, 0.1e-6, 1e10)]


def test_a_partition_of_two_of_the_least_pieces_is_cut(core):
    cost = cost_of(EAGER_TO_2_KIB)
    assert core.eb_planner_can_gain(byref(cost), 4096, 4096)
    assert not core.eb_planner_can_gain(byref(cost), 4095, 4095)
    assert propose(core, cost, [0.0], 4096, 126)[0][0] == [2048, 4096]


def test_each_of_as_many_partitions_as_the_planner_distinguishes_can_end_a_segment(core):
    ready_s = [0.0] * 15 + [1e-3] * (CUT_MAX_SEGMENTS - 15)
    ready_s[24] = 1.01e-3  # the latest one can end a segment in any case
    best, _ = propose(core, cost_of(EVERYDAY), ready_s, 1 << 16, 126)[0]
    assert 15 << 16 in best


def test_of_more_partitions_the_latest_one_can_still_be_a_segment(core):
    ready_s = [0.0] * 1000
    ready_s[501] = 1e-2  # after all others have been sent
    best, _ = propose(core, cost_of(EVERYDAY), ready_s, 1 << 14, 126)[0]
    assert {501 << 14, 502 << 14} <= set(best)


# Is it worth while to look at the clock? --------------------------------------------------------------------


def test_what_no_cut_can_shorten_is_known_beforehand(core):
    random = np.random.default_rng(1)
    cost = cost_of(EVERYDAY)
    for _ in range(300):
        partitions, partition_bytes = int(random.integers(1, 129)), int(2 ** random.uniform(0, 16))
        ready_s = np.cumsum(random.exponential(1e-8, partitions)).tolist()
        ready_s[int(random.integers(partitions))] += float(random.choice([0.0, 1e-6, 1e-4]))
        proposals = propose(core, cost, ready_s, partition_bytes, 126)
        one_s = next(predicted_s for ends, predicted_s in proposals if len(ends) == 1)
        if not core.eb_planner_can_gain(byref(cost), partitions * partition_bytes, partition_bytes):
            assert one_s - proposals[0][1] < max(0.2e-6, 0.05 * one_s)


@pytest.mark.parametrize("partitions", [1, 4, 32, 128])
def test_small_transfers_cannot_gain_and_large_ones_might(core, partitions):
    cost = cost_of(EVERYDAY)
    assert not core.eb_planner_can_gain(byref(cost), 512, 512 // partitions)
    assert core.eb_planner_can_gain(byref(cost), 1 << 20, (1 << 20) // partitions)


def test_the_least_planned_size_is_the_first_that_can_gain(core):
    cost = cost_of(EVERYDAY)
    least_bytes = core.eb_planner_least_bytes(byref(cost))
    assert core.eb_planner_can_gain(byref(cost), least_bytes, 1)
    assert not core.eb_planner_can_gain(byref(cost), least_bytes // 2, 1)
    assert least_bytes.bit_count() == 1
    assert core.eb_planner_least_bytes(byref(cost_of([]))) == 0


# The other paths -------------------------------------------------------------------------------------------

RING, DIRECT = 1, 2
QUICK_RING = [(0, 0.2e-6, 1e-7, 2e10)]


def test_both_paths_are_proposed_each_with_its_own_costs(core):
    cost, ring_cost = cost_of(EVERYDAY), cost_of(QUICK_RING)
    ready_s = [0.0, 0.0, 0.0, 1e-3]
    made = (Proposal * PLAN_MAX_CUTS)()
    asked = plan_input(cost, ready_s, 1 << 18, ring_cost)
    proposals = made[: core.eb_planner_propose(byref(asked), CUT_MAX_SEGMENTS, made)]
    assert proposals[0].cut.path == RING
    assert {one.cut.path for one in proposals if one.cut.num > 1} == {0, RING}
    assert any((one.cut.path, one.cut.num) == (0, 1) for one in proposals)
    for one in proposals:
        ends = one.cut.ends()
        lengths = [end - begin for begin, end in itertools.pairwise([0, *ends])]
        last_s = [ready_s[min((end - 1) >> 18, 3)] for end in ends]
        costs = ring_cost if one.cut.path == RING else cost
        assert one.predicted_s == pytest.approx(predict_s(core, costs, last_s, lengths))
        assert core.eb_planner_price_s(byref(asked), byref(one.cut)) == pytest.approx(one.predicted_s)


@QUICK
@given(
    lines=protocols,
    ring_lines=protocols,
    ready_s=readiness,
    partition_bytes=st.integers(1, 1 << 20),
    max_segments=st.integers(1, 40),
)
def test_proposals_of_both_paths_are_bounded_and_the_best_of_each_is_among_them(
    core, lines, ring_lines, ready_s, partition_bytes, max_segments
):
    made = (Proposal * (PLAN_MAX_CUTS + 4))()
    cost, ring_cost = cost_of(lines), cost_of(ring_lines)
    best_s = {}
    for path, asked in (
        (0, plan_input(cost, ready_s, partition_bytes)),
        (RING, plan_input(ring_cost, ready_s, partition_bytes)),
    ):
        core.eb_planner_propose(byref(asked), max_segments, made)
        best_s[path] = made[0].predicted_s
    asked = plan_input(cost, ready_s, partition_bytes, ring_cost)
    num = core.eb_planner_propose(byref(asked), max_segments, made)
    proposals = made[:num]
    assert num <= PLAN_MAX_CUTS
    assert any((one.cut.path, one.cut.num) == (0, 1) for one in proposals)
    for path, expected_s in best_s.items():
        assert min(one.predicted_s for one in proposals if one.cut.path == path) == expected_s
    times = [one.predicted_s for one in proposals]
    assert times == sorted(times)


def test_the_best_of_each_of_three_paths_is_proposed_the_quickest_first(core):
    made = (Proposal * PLAN_MAX_CUTS)()
    costs = {0: cost_of(EVERYDAY), RING: cost_of([(0, 1e-6, 1e-6, 1e9)]), DIRECT: cost_of(QUICK_RING)}
    for first, second in ((RING, DIRECT), (DIRECT, RING)):
        asked = plan_input(costs[0], [0.0, 0.0, 1e-4, 1e-3], 1 << 18, costs[first], costs[second])
        num = core.eb_planner_propose(byref(asked), CUT_MAX_SEGMENTS, made)
        assert made[0].cut.path == (RING if first == DIRECT else DIRECT)
        assert {one.cut.path for one in made[:num]} == {0, RING, DIRECT}


def test_without_costs_of_another_path_it_is_not_proposed(core):
    made = (Proposal * PLAN_MAX_CUTS)()
    for unknown in (None, cost_of([])):
        asked = plan_input(cost_of(EVERYDAY), [0.0] * 4, 1 << 18, unknown, unknown)
        num = core.eb_planner_propose(byref(asked), CUT_MAX_SEGMENTS, made)
        assert {one.cut.path for one in made[:num]} == {0}


# Is it worth while to try? ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition_bytes", "last_s", "tried"),
    [
        (256, 0.0, False),  # ready at once: further messages only cost
        (256, 1e-5, False),  # 0.1 us at most
        (8192, 1e-3, True),  # the last one takes much less than all
        (1 << 15, 0.0, True),  # costs of 128 KiB and more are extrapolated: only a trial decides
    ],
)
def test_only_what_promises_a_gain_is_tried(core, partition_bytes, last_s, tried):
    found = select(core, cost_of(EVERYDAY), [0.0] * 3 + [last_s], partition_bytes)
    assert (len(found) > 1) == tried
    if not tried:
        assert [ends for ends, _ in found] == [[4 * partition_bytes]]


@QUICK
@given(
    lines=protocols,
    gaps_s=st.lists(st.floats(0, 1e-3), min_size=2, max_size=40),
    partition_bytes=st.integers(1, 4096),
    max_segments=st.integers(1, 32),
    further_s=st.floats(0, 1e-3),
)
def test_sending_early_costs_a_small_part_of_the_time_between_partitions(
    core, lines, gaps_s, partition_bytes, max_segments, further_s
):
    ready_s, cost = np.cumsum(gaps_s).tolist(), cost_of(lines)
    ends = send_early(core, cost, ready_s, partition_bytes, max_segments=max_segments, further_s=further_s)
    if len(ready_s) * partition_bytes >= 128 * 1024:
        assert ends is None
    if ends is None:
        return
    message_s = 1.2 * core.eb_cost_core_s(byref(cost), partition_bytes) + further_s
    assert (len(ends) - 1) * message_s <= 0.02 * (ready_s[-1] - ready_s[0]) * (1 + 1e-9)
    assert 2 <= len(ends) <= max_segments
    assert ends[-1] == len(ready_s) * partition_bytes
    assert all(end % partition_bytes == 0 for end in ends)


def test_every_partition_is_sent_early_if_it_costs_little(core):
    cost, ready_s = cost_of(EVERYDAY), [0.0, 2.5e-4, 5e-4, 7.5e-4]
    assert send_early(core, cost, ready_s, 64) == [64, 128, 192, 256]
    assert send_early(core, cost, ready_s, 64, max_segments=3) == [64, 128, 256]
    # As many sends of other transfers meanwhile would be cut, too.
    assert send_early(core, cost, ready_s, 64, further_s=1e-5) == [128, 256]
    assert send_early(core, cost, ready_s, 64, further_s=1e-4) is None
    assert send_early(core, cost, ready_s, 64, num_together=1000) is None
    assert send_early(core, cost, [0.0] * 4, 64) is None
    assert send_early(core, cost_of([]), ready_s, 64) is None  # no costs are known


def test_what_is_sent_early_by_the_ring_can_go_back_to_messages(core):
    made = (Proposal * PLAN_MAX_CUTS)()
    asked = plan_input(cost_of(EVERYDAY), [0.0, 2.5e-4, 5e-4, 7.5e-4], 64, cost_of(QUICK_RING))
    assert core.eb_candidates_send_early(byref(asked), CUT_MAX_SEGMENTS, 0.0, 1, made) == 2
    assert [(one.cut.path, one.cut.ends()) for one in made[:2]] == [
        (path, [64, 128, 192, 256]) for path in (1, 0)
    ]


def test_transfers_below_128_KiB_are_short(core):
    assert [core.eb_planner_is_short(size) for size in (0, (1 << 17) - 1, 1 << 17)] == [True, True, False]


def test_one_segment_by_the_ring_comes_before_further_ones_that_hardly_gain(core):
    made = (Proposal * PLAN_MAX_CUTS)()
    ready_s = [1e-9 * p for p in range(32)]
    asked = plan_input(cost_of(EVERYDAY), ready_s, 256, cost_of(QUICK_RING))
    num = core.eb_candidates_select(
        byref(asked), core.eb_planner_propose(byref(asked), CUT_MAX_SEGMENTS, made), made
    )
    assert num <= PLAN_MAX_CUTS and (made[0].cut.path, made[0].cut.num) == (1, 1)
    assert any((one.cut.path, one.cut.num) == (0, 1) for one in made[:num])


def test_a_ring_that_is_not_predicted_to_gain_is_left_to_a_late_trial(core):
    made = (Proposal * PLAN_MAX_CUTS)()
    for slower, paths in ((1.0, [0, 1]), (3.0, [0])):
        ring = cost_of([(0, slower * 1.2e-6, 0.4e-6, 10e9)])
        asked = plan_input(cost_of([(0, 1.2e-6, 0.4e-6, 10e9)]), [0.0] * 4, 64, ring)
        num = core.eb_candidates_select(
            byref(asked), core.eb_planner_propose(byref(asked), CUT_MAX_SEGMENTS, made), made
        )
        assert [one.cut.path for one in made[:num]] == paths
