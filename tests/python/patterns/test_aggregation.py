"""Aggregation through leaders: every byte arrives, and each two nodes exchange one message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.patterns.aggregation import aggregated

LAYOUT = parse_layout("3x1x3")


def rows(pattern):
    return sorted(map(tuple, pattern.triples().tolist()))


def test_messages_of_two_nodes_become_one_through_their_leaders():
    # Ranks 1 and 2 of node 0 send to ranks 4 and 5 of node 1; rank 3 is the leader there, rank 0 here.
    pattern = Pattern(np.array([1, 1, 2, 1]), np.array([4, 5, 5, 2]), np.array([10, 20, 30, 7]))
    stages = aggregated(pattern, LAYOUT)
    assert rows(stages.collect) == [(1, 0, 30), (1, 2, 7), (2, 0, 30)]
    assert rows(stages.between) == [(0, 3, 60)]
    assert rows(stages.distribute) == [(3, 4, 10), (3, 5, 50)]


def test_several_leaders_share_the_other_nodes_and_need_no_message_to_themselves():
    pattern = Pattern(np.array([0, 0]), np.array([3, 6]), np.array([10, 20]))
    stages = aggregated(pattern, LAYOUT, 2)
    # Node 1 belongs to rank 0 of node 0, node 2 to rank 1; node 0 to the first rank of either.
    assert rows(stages.collect) == [(0, 1, 20)]
    assert rows(stages.between) == [(0, 3, 10), (1, 6, 20)]
    assert rows(stages.distribute) == []


@pytest.mark.parametrize(("num_nodes", "leaders"), [(3, 2), (4, 2), (4, 3), (5, 2), (5, 4)])
def test_the_leaders_of_a_node_share_the_other_nodes_evenly(num_nodes, leaders):
    src, dst = np.nonzero(~np.eye(4 * num_nodes, dtype=bool))
    stages = aggregated(Pattern(src, dst, np.ones_like(src)), parse_layout(f"{num_nodes}x1x4"), leaders)
    for end in (stages.between.src, stages.between.dst):
        of_leader = np.bincount(end, minlength=4 * num_nodes).reshape(num_nodes, 4)
        assert not of_leader[:, leaders:].any()
        assert (np.ptp(of_leader[:, :leaders], axis=1) <= 1).all()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(0, 1000)), min_size=1, max_size=20),
    st.integers(1, 5),
)
def test_every_byte_passes_every_stage(messages, leaders):
    src, step, size = np.array(messages).T
    pattern = Pattern(src, (src + step) % 9, size)
    stages = aggregated(pattern, LAYOUT, leaders)
    out = LAYOUT.node[pattern.src] != LAYOUT.node[pattern.dst]
    assert stages.between.total_bytes == pattern.bytes[out].sum()
    pairs = LAYOUT.node[stages.between.src] * 3 + LAYOUT.node[stages.between.dst]
    assert len(set(pairs.tolist())) == stages.between.num_messages
    for stage in (stages.collect, stages.distribute):
        assert (LAYOUT.node[stage.src] == LAYOUT.node[stage.dst]).all()
    for rank in range(9):
        direct = pattern.bytes[out & (pattern.dst == rank)].sum()
        kept = stages.between.bytes[stages.between.dst == rank].sum()
        sent_on = stages.distribute.bytes[stages.distribute.src == rank].sum()
        received = stages.distribute.bytes[stages.distribute.dst == rank].sum()
        assert received + kept - sent_on == direct


def test_no_leader_is_refused():
    with pytest.raises(InputError, match="leaders per node is 0"):
        aggregated(Pattern(np.array([0]), np.array([3]), np.array([1])), LAYOUT, 0)
