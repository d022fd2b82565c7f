"""Tags of the domain's communicators, and ids of channels: no two active transfers share one."""

import itertools
from ctypes import byref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core_library import CONTROLS, Ids, compile_core

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    return compile_core(tmp_path_factory.mktemp("core"))


def canonical_tags(core, tags, comm, user_tag, order):
    base = core.eb_tags_canonical_base(byref(tags), comm, user_tag, order)
    yield from range(base, base + core.eb_tags_max_segments(byref(tags)))
    yield core.eb_tags_segmentation(byref(tags), base, 1)


def channel_tags(core, tags, first_id, num_segments):
    base, num_ids = (
        core.eb_tags_channel_base(byref(tags), first_id),
        core.eb_tags_ids_needed(byref(tags), num_segments),
    )
    yield from (core.eb_tags_segment(byref(tags), base, segment) for segment in range(num_segments))
    # Each of the ids alone may be another transfer's, of which a report may come from the same rank.
    for first in range(first_id, first_id + num_ids):
        yield core.eb_tags_segmentation(byref(tags), core.eb_tags_channel_base(byref(tags), first), 1)
        yield core.eb_tags_feedback(byref(tags), core.eb_tags_channel_base(byref(tags), first), 1)


def canonical_places(core, tags):
    num_comms, num_tags, num_orders = (1 << n for n in (tags.comm_bits, tags.user_bits, tags.order_bits))
    for place in itertools.product(range(num_comms), range(num_tags), range(num_orders)):
        assert core.eb_tags_is_canonical(byref(tags), *place)
        yield place
    for beyond in ((num_comms, 0, 0), (-1, 0, 0), (0, num_tags, 0), (0, 0, num_orders)):
        assert not core.eb_tags_is_canonical(byref(tags), *beyond)


def test_all_tags_of_the_smallest_space_are_distinct(core):
    tags = core.eb_tags_layout((1 << 15) - 1)
    used = [core.eb_tags_control(byref(tags), what) for what in CONTROLS]
    for place in canonical_places(core, tags):
        used.extend(canonical_tags(core, tags, *place))
    first_id, most = 1, core.eb_tags_max_segments(byref(tags))
    for num_segments in itertools.cycle([1, most, most + 1, 3 * most, 5]):
        needed = core.eb_tags_ids_needed(byref(tags), num_segments)
        if first_id + needed > core.eb_tags_num_ids(byref(tags)):
            break
        used.extend(channel_tags(core, tags, first_id, num_segments))
        first_id += needed
    assert len(used) == len(set(used))
    assert min(used) >= 0
    assert max(used) <= (1 << 15) - 1


@pytest.mark.parametrize("bits", [19, 29, 30, 31])
def test_tags_of_larger_spaces_are_distinct(core, bits):
    tags = core.eb_tags_layout((1 << bits) - 1)
    assert tags.bits == bits
    assert core.eb_tags_layout((1 << bits) - 2).bits == bits - 1
    random = np.random.default_rng(bits)
    comms, users, orders = (1 << n for n in (tags.comm_bits, tags.user_bits, tags.order_bits))
    num_ids = core.eb_tags_num_ids(byref(tags))
    assert comms == (2 if bits == 19 else 8)
    places = {tuple(int(random.integers(0, most)) for most in (comms, users, orders)) for _ in range(60)}
    places |= set(itertools.product((0, comms - 1), (0, 1, users - 1), (0, 1, orders - 1)))
    used = [core.eb_tags_control(byref(tags), what) for what in CONTROLS]
    for place in places:
        used.extend(canonical_tags(core, tags, *place))
    most = core.eb_tags_max_segments(byref(tags))
    long = 2 * most + 1
    assert core.eb_tags_ids_needed(byref(tags), long) == 3
    for first_id in {1, 2, num_ids - 1, *random.integers(3, num_ids // 2, 60).tolist()}:
        used.extend(channel_tags(core, tags, first_id, most))
    used.extend(channel_tags(core, tags, num_ids - 5, long))
    assert len(used) == len(set(used))
    assert min(used) >= 0
    assert max(used) <= (1 << bits) - 1


@QUICK
@given(
    begin=st.integers(1, 9),
    end=st.integers(9, 40),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 12), st.integers(0, 50)), max_size=80),
)
def test_ids_are_free_only_after_both_holders_have_released_them(core, begin, end, steps):
    ids = Ids()
    core.eb_ids_begin(byref(ids), begin, end)
    held = {}  # first: [num, holders]
    for takes, num, which in steps:
        if takes:
            busy = {i for first, (n, _) in held.items() for i in range(first, first + n)}
            gaps = (
                [f for f in range(begin, end - num + 1) if not busy & set(range(f, f + num))] if num else []
            )
            owner = 1000 + len(gaps)
            first = core.eb_ids_take(byref(ids), num, owner)
            assert (first in gaps) if gaps else (first == -1)
            if gaps:
                held[first] = [num, 2]
                assert core.eb_ids_owner(byref(ids), first) == owner
        elif held and which < 45:
            first = sorted(held)[which % len(held)]
            (core.eb_ids_disown if which % 2 else core.eb_ids_release)(byref(ids), first)
            assert which % 2 == 0 or core.eb_ids_owner(byref(ids), first) is None
            held[first][1] -= 1
            if held[first][1] == 0:
                del held[first]
        else:
            core.eb_ids_release(byref(ids), max(held, default=0) + 13)  # unknown: ignored
        ranges = [(r.first, r.num, r.holders) for r in ids.ranges[: ids.num_ranges]]
        assert ranges == sorted((first, num, holders) for first, (num, holders) in held.items())
    core.eb_ids_end(byref(ids))
