"""An exchange that changes step by step has the times of one that is prepared again."""

import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile, profile_from_json
from earlybird.patterns.halo import halo_exchange
from earlybird.predict import Predictor
from earlybird.predict.changing import changing_exchange

RANKS, NODES, SOCKETS = 9, 3, 2


def _level(factor, *, waits=True):
    table = {"1": 1e9 * factor, "2": 1.6e9 * factor, "4": 2e9 * factor}
    eager = {"name": "eager", "latency_s": 1e-6 / factor, "bandwidth_bytes_per_s": table}
    rendezvous = eager | {"name": "rendezvous", "min_bytes": 5000, "latency_s": 3e-6, "sender_waits": waits}
    return {"protocols": [eager, rendezvous]}


def _profile(**levels):
    return profile_from_json({"schema": "earlybird.profile/1", "levels": levels})


PROFILE = _profile(intra_socket=_level(4), inter_socket=_level(2, waits=False), inter_node=_level(1))

_SIZES = st.one_of(st.just(0), st.integers(1, 20_000))
_PLACES = st.tuples(st.integers(0, NODES - 1), st.integers(0, SOCKETS - 1))
_MESSAGES = st.lists(
    st.tuples(st.integers(0, RANKS - 1), st.integers(0, RANKS - 1), _SIZES).filter(lambda m: m[0] != m[1]),
    min_size=1,
    max_size=40,
)
_CHANGES = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, RANKS - 1), _PLACES, max_size=4),
        st.dictionaries(st.integers(0, 39), _SIZES, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=60)
@given(_MESSAGES, st.lists(_PLACES, min_size=RANKS, max_size=RANKS), _CHANGES)
def test_every_change_gives_the_times_of_a_new_predictor(messages, places, changes):
    node, socket = np.array(places).T
    predictor = Predictor(Pattern(*np.array(messages).T), Layout(node, socket, "given"))
    predictor.slowest_now_s(PROFILE)
    for moved, resized in changes:
        resized = {message: size for message, size in resized.items() if message < len(messages)}
        predictor.update(moved, resized)
        now_s = predictor.slowest_now_s(PROFILE)
        expected = Predictor(predictor.pattern, predictor.layout).predict(PROFILE, "staircase")
        assert now_s == pytest.approx(expected.time_s.max(), rel=1e-9)
        # Also by the other methods, which prepare it again.
        assert predictor.predict(PROFILE, "staircase").time_s == pytest.approx(expected.time_s, rel=1e-12)
        assert predictor.slowest_now_s(PROFILE) == pytest.approx(now_s, rel=1e-12)


def test_changes_before_the_first_prediction_and_to_new_nodes_count():
    pattern = Pattern(np.array([0, 1]), np.array([1, 0]), np.array([9000, 100]))
    predictor = Predictor(pattern, parse_layout("1x1x2"))
    predictor.update({1: (1, 0)})
    apart_s = Predictor(pattern, parse_layout("2x1x1")).predict(PROFILE, "staircase").time_s.max()
    assert predictor.slowest_now_s(PROFILE) == pytest.approx(apart_s, rel=1e-12)
    predictor.update({1: (7, 3)})
    assert predictor.slowest_now_s(PROFILE) == pytest.approx(apart_s, rel=1e-12)
    assert predictor.layout.node.tolist() == [0, 7] and predictor.layout.text == "1x1x2, changed"


def test_another_profile_is_another_exchange():
    predictor = Predictor(halo_exchange((2, 2, 2), (8, 8, 8)), parse_layout("2x1x4"))
    slow = _profile(intra_socket=_level(0.4), inter_node=_level(0.1))
    times_s = [predictor.slowest_now_s(profile) for profile in (PROFILE, slow, PROFILE)]
    assert times_s[0] == times_s[2] < times_s[1]


@pytest.mark.parametrize(
    ("moved", "resized", "sentence"),
    [
        ({2: (0, 0)}, {}, "ranks are 0 to 1"),
        ({0: (-1, 0)}, {}, "count from 0"),
        ({}, {1: 5}, "messages are 0 to 0"),
        ({}, {0: -1}, "sizes 0 to"),
        ({0: (0.9, 0)}, {}, "rank 0 is moved to node 0.9, socket 0; give whole numbers"),
        ({0: (10**30, 0)}, {}, "count from 0"),
        ({}, {0: 3.7}, "message 0 is given 3.7 bytes; give whole numbers"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(moved, resized, sentence):
    predictor = Predictor(Pattern(np.array([0]), np.array([1]), np.array([9000])), parse_layout("1x1x2"))
    before_s = predictor.slowest_now_s(PROFILE)
    with pytest.raises(InputError, match=sentence):
        predictor.update({1: (0, 1)} | moved, resized)
    assert predictor.slowest_now_s(PROFILE) == before_s and predictor.layout.text == "1x1x2"


def test_sizes_that_add_up_to_too_many_bytes_are_refused():
    predictor = Predictor(Pattern([0, 0], [1, 1], [5, 6]), parse_layout("1x1x2"))
    predictor.update(resized={0: 2**61})
    for resized in ({1: 2**62}, {0: 2**62, 1: 1}):
        with pytest.raises(InputError, match="add up to more than"):
            predictor.update(resized=resized)
    predictor.update(resized={1: 2**61})
    predictor.update(resized={0: 1})
    predictor.update(resized={1: 2**62 - 1})
    assert predictor.pattern.bytes.tolist() == [1, 2**62 - 1]


def test_a_moved_layout_stays_one_when_messages_change_afterwards():
    predictor = Predictor(Pattern([0], [1], [5]), parse_layout("2x1x2"))
    predictor.update({0: (1, 0)})
    assert predictor.layout.text == "2x1x2, changed"
    predictor.update(resized={0: 6})
    assert predictor.layout.text == "2x1x2, changed"
    predictor.update({0: (0, 0)})
    assert predictor.layout.text == "2x1x2, changed"


def test_times_of_every_rank_are_kept():
    pattern, layout = halo_exchange((2, 2, 2), (8, 8, 8)), parse_layout("2x2x2")
    changing = changing_exchange(pattern, layout, PROFILE, "per-level")
    prediction = Predictor(pattern, layout).predict(PROFILE, "staircase")
    for of_kept, expected in zip(
        changing.times_s(), (prediction.intra_node_s, prediction.inter_node_s), strict=True
    ):
        assert of_kept == pytest.approx(expected, rel=1e-12)


def test_an_interrupt_is_an_interrupt_wherever_a_change_is():
    """ctypes would make an ArgumentError of one that comes while it converts an argument in Python."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    pattern, layout = halo_exchange((2, 2, 2), (8, 8, 8)), parse_layout("2x1x4")
    changing = changing_exchange(pattern, layout, PROFILE, "per-level")
    ranks, nodes, sockets = np.array([0, 4]), np.array([1, 0]), np.array([0, 0])
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(200):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 5e-4)
                for _ in range(10**5):  # much longer, if the interrupt is lost
                    changing.move(ranks, nodes, sockets)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_level_without_costs_is_refused_when_a_message_comes_to_it():
    profile = _profile(intra_socket=_level(4), inter_node=_level(1))
    layout = Layout(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0]), "given")
    predictor = Predictor(Pattern([0], [1], [9000]), layout)
    before_s = predictor.slowest_now_s(profile)
    predictor.update({1: (0, 1)})
    with pytest.raises(InputError, match="no level inter_socket"):
        predictor.slowest_now_s(profile)
    predictor.update({1: (0, 0)})
    assert predictor.slowest_now_s(profile) == before_s
    with pytest.raises(InputError, match="the profile has no levels"):
        Predictor(Pattern([], [], []), layout).slowest_now_s(Profile({}))


def test_what_cannot_be_kept_is_refused():
    pattern, layout = Pattern(np.array([0]), np.array([1]), np.array([9000])), parse_layout("1x1x2")
    with pytest.raises(InputError, match="has 'union' and 2"):
        Predictor(pattern, layout, mixed="union").slowest_now_s(PROFILE)
    with pytest.raises(InputError, match="no level intra_socket"):
        Predictor(pattern, layout).slowest_now_s(_profile(inter_node=_level(1)))
    far = Layout(np.array([0, 10**9]), np.array([0, 0]), "far")
    with pytest.raises(InputError, match="nodes up to 1000000000"):
        Predictor(pattern, far).slowest_now_s(PROFILE)
