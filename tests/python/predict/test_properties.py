"""What must hold for any exchange: more bytes take no less time, and simple cases reduce to simple models."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.data.exchange_models import MODELS
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.predict import predict_exchange

TAU_S = 2e-6
# BW(N) with holes, and constant beyond the last N; bytes per second and process never rise.
TABLE = {1: 1e10, 2: 1.6e10, 4: 1.8e10}
LINE = Protocol(name="rendezvous", latency_s=TAU_S, bandwidth_bytes_per_s=TABLE)
PROFILE = Profile({name: Level(name, (LINE,)) for name in LEVELS})
# Not `fair` and `queue`, where more bytes of one message can leave capacity to another one. And not the time
# of a rank that waits for its sends: (9) assumes a constant rate of the receiver, so that a message which
# shares it with a longer one can complete earlier.
MONOTONE = ("staircase", "max-rate", "postal")

_messages = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 10**6)), min_size=1, max_size=10
)


def _pattern(messages):
    src, step, size = np.array(messages).T
    return Pattern(src, (src + step) % 6, size)


@settings(max_examples=25, deadline=None)
@given(_messages, st.data())
def test_more_bytes_never_let_a_rank_receive_earlier(messages, data):
    pattern = _pattern(messages)
    size = pattern.bytes.copy()
    size[data.draw(st.integers(0, len(size) - 1))] += data.draw(st.integers(1, 10**6))
    for layout in ("1x1x6", "3x1x2"):
        for model in MONOTONE:
            before, after = (
                predict_exchange(one, parse_layout(layout), PROFILE, model).receive_s
                for one in (pattern, Pattern(pattern.src, pattern.dst, size))
            )
            assert (after >= before * (1 - 1e-9)).all(), (layout, model)


@settings(max_examples=25, deadline=None)
@given(_messages, st.sampled_from(list(MODELS)))
def test_an_overlap_takes_from_the_longer_part_to_the_sum(messages, model):
    """Also with empty messages, ranks without any, and nodes of different numbers of ranks."""
    uneven = Layout(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 0, 0, 0]), "uneven")
    for layout in (uneven, parse_layout("3x1x2")):
        added = predict_exchange(_pattern(messages), layout, PROFILE, model)
        together = predict_exchange(_pattern(messages), layout, PROFILE, model, combine="overlap")
        longer_s = np.maximum(added.intra_node_s, added.inter_node_s)
        assert (together.time_s >= longer_s * (1 - 1e-9)).all()
        assert (together.time_s <= added.time_s * (1 + 1e-9)).all()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layout", ["1x1x2", "1x2x1", "2x1x1"])
def test_one_pair_is_the_postal_model(model, layout):
    pattern = Pattern(np.array([0]), np.array([1]), np.array([10**6]))
    time_s = predict_exchange(pattern, parse_layout(layout), PROFILE, model).time_s
    assert time_s[1] == pytest.approx(TAU_S + 1e6 / TABLE[1])


@pytest.mark.parametrize(("model", "within"), [("staircase", 0.01), ("fair", 0.01), ("queue", 0.03)])
def test_equal_sizes_are_the_max_rate_model(model, within):
    """Equation (2): pairs between two nodes, all of one size. In `queue` the last windows are not shared."""
    ranks = np.arange(4)
    pattern = Pattern(ranks, ranks + 4, np.full(4, 10**6))
    time_s = predict_exchange(pattern, parse_layout("2x1x4"), PROFILE, model).time_s
    assert time_s[4:].max() == pytest.approx(TAU_S + 4e6 / TABLE[4], rel=within)


@pytest.mark.parametrize("model", MODELS)
def test_a_table_that_falls_and_processes_beyond_it_give_finite_times(model):
    falling = dataclasses.replace(LINE, bandwidth_bytes_per_s={1: 2e10, 3: 1e10})
    profile = Profile({"inter_node": Level("inter_node", (falling,))})
    ranks = np.arange(8)
    pattern = Pattern(ranks, ranks + 8, np.full(8, 10**5))
    time_s = predict_exchange(pattern, parse_layout("2x1x8"), profile, model).time_s
    assert np.isfinite(time_s).all() and time_s[8:].min() >= TAU_S + 1e5 / 2e10
    # Only `queue` takes what a link carries for one process for what it carries for several.
    if model in ("staircase", "queue"):
        assert time_s[8:].max() == pytest.approx(TAU_S + 8e5 / (2e10 if model == "queue" else 1e10), rel=0.02)
