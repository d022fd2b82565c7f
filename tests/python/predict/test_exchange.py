"""Exchanges predicted from small profiles: who competes, who waits, what adds up, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile, profile_from_json
from earlybird.predict import MODELS, Exchange, predict_exchange

TABLE = {"1": 10e9, "2": 16e9, "4": 20e9}


def _protocol(name="rendezvous", min_bytes=0, latency_s=2e-6, table=TABLE, **extra):
    return {
        "name": name,
        "min_bytes": min_bytes,
        "latency_s": latency_s,
        "bandwidth_bytes_per_s": table,
    } | extra


def _level(*protocols):
    return {"protocols": list(protocols or [_protocol()])}


def _profile(replicates=(), **levels):
    return profile_from_json(
        {"schema": "earlybird.profile/1", "id": "p", "levels": levels, "replicates": list(replicates)}
    )


def _pattern(*messages):
    return Pattern(*np.array(messages, dtype=np.int64).reshape(-1, 3).T)


def test_one_equal_message_each_is_n_times_s_over_bandwidth_plus_tau():
    ring = _pattern(*[(rank, (rank + 1) % 4, 50_000) for rank in range(4)])
    prediction = predict_exchange(ring, parse_layout("1x1x4"), _profile(intra_socket=_level()))
    assert prediction.time_s == pytest.approx(np.full(4, 2e-6 + 4 * 50_000 / 20e9), rel=1e-12)
    assert prediction.receive_s == pytest.approx(np.full(4, 4 * 50_000 / 20e9), rel=1e-12)
    assert prediction.inter_node_s.tolist() == [0] * 4


def test_groups_are_the_receivers_socket_inside_a_node_and_its_node_outside():
    intra = _pattern((0, 1, 1000), (2, 3, 1000))
    by_socket = predict_exchange(intra, parse_layout("1x2x2"), _profile(intra_socket=_level()))
    assert by_socket.receive_s == pytest.approx([0, 1000 / 10e9, 0, 1000 / 10e9])
    across = _pattern((0, 2, 1000), (1, 3, 1000))
    inter_socket = predict_exchange(across, parse_layout("1x2x2"), _profile(inter_socket=_level()))
    assert inter_socket.receive_s == pytest.approx([0, 0, 2000 / 16e9, 2000 / 16e9])
    between = _pattern((0, 4, 1000), (1, 6, 1000))
    inter_node = predict_exchange(between, parse_layout("2x2x2"), _profile(inter_node=_level()))
    assert inter_node.receive_s == pytest.approx([0, 0, 0, 0, 2000 / 16e9, 0, 2000 / 16e9, 0])
    assert inter_node.intra_node_s.tolist() == [0] * 8


@pytest.mark.parametrize("model", MODELS)
def test_levels_add_with_the_maximum_taken_inside_each(model):
    intra, inter = (0, 1, 30_000), (2, 1, 70_000)
    layout, profile = parse_layout("2x1x2"), _profile(intra_socket=_level(), inter_node=_level())
    both = predict_exchange(_pattern(intra, inter), layout, profile, model)
    alone = [predict_exchange(_pattern(message), layout, profile, model) for message in (intra, inter)]
    assert both.time_s == pytest.approx(alone[0].time_s + alone[1].time_s, rel=1e-12)
    assert both.intra_node_s == pytest.approx(alone[0].time_s, rel=1e-12)
    assert both.inter_node_s == pytest.approx(alone[1].time_s, rel=1e-12)


def test_an_empty_message_costs_its_latency_and_does_not_compete():
    profile = _profile(intra_socket=_level())
    with_empty = predict_exchange(_pattern((0, 1, 1000), (1, 2, 0)), parse_layout("1x1x4"), profile)
    assert with_empty.receive_s == pytest.approx([0, 1000 / 10e9, 0, 0])
    assert with_empty.time_s == pytest.approx([1000 / 10e9, 2e-6 + 1000 / 10e9, 2e-6, 0])


def test_a_sender_waits_only_where_its_protocol_says_so():
    pattern, layout = _pattern((0, 1, 1000)), parse_layout("1x1x2")
    waits = predict_exchange(pattern, layout, _profile(intra_socket=_level()))
    free = predict_exchange(pattern, layout, _profile(intra_socket=_level(_protocol(sender_waits=False))))
    eager = predict_exchange(pattern, layout, _profile(intra_socket=_level(_protocol("eager"))))
    assert waits.time_s[0] == pytest.approx(1000 / 10e9)
    assert free.time_s[0] == eager.time_s[0] == 0
    assert free.time_s[1] == waits.time_s[1]


def test_a_sender_waits_for_its_message_and_not_for_larger_ones_to_the_same_rank():
    # Rank 2 receives 10 kB and 30 kB in 4 us; the smaller is complete after half of that (9).
    pattern = _pattern((0, 2, 10_000), (1, 2, 30_000))
    prediction = predict_exchange(pattern, parse_layout("1x1x4"), _profile(intra_socket=_level()))
    assert prediction.time_s == pytest.approx([2e-6, 4e-6, 8e-6, 0], rel=1e-12)


def test_each_message_uses_the_latency_and_bandwidth_of_its_protocol():
    level = _level(
        _protocol("short", 0, 1e-6, {"1": 1e9}),
        _protocol("eager", 100, 2e-6, {"1": 2e9}),
        _protocol("rendezvous", 1000, 5e-6, {"1": 4e9}),
    )
    pattern = _pattern((0, 1, 99), (2, 1, 100), (3, 1, 1000))
    profile, layout = _profile(intra_socket=level), parse_layout("1x1x4")
    postal = predict_exchange(pattern, layout, profile, "postal")
    assert postal.time_s[1] == pytest.approx(8e-6 + 99 / 1e9 + 100 / 2e9 + 1000 / 4e9, rel=1e-12)
    staircase = predict_exchange(pattern, layout, profile)
    rate = (99 * 1e9 + 100 * 2e9 + 1000 * 4e9) / 1199
    assert staircase.time_s[1] == pytest.approx(8e-6 + 1199 / rate, rel=1e-12)


def test_max_rate_is_equation_10():
    pattern = _pattern((0, 1, 1000), (0, 2, 4000), (0, 3, 3000), (1, 3, 6000))
    prediction = predict_exchange(pattern, parse_layout("1x1x4"), _profile(intra_socket=_level()), "max-rate")
    expected = [
        0,
        2e-6 + max(min(14_000, 3 * 1000) / 20e9, 1000 / 10e9),
        2e-6 + max(min(14_000, 3 * 4000) / 20e9, 4000 / 10e9),
        4e-6 + max(min(14_000, 3 * 9000) / 20e9, 9000 / 10e9),
    ]
    assert prediction.time_s == pytest.approx(expected, rel=1e-12)


_MESSAGE = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 10**6)).filter(
    lambda m: m[0] != m[1]
)
_TWO_PROTOCOLS = _level(
    _protocol("eager", 0, 1e-6, {"1": 5e9, "3": 7e9}), _protocol("rendezvous", 10_000, 3e-6, TABLE)
)


@settings(deadline=None)
@given(st.lists(_MESSAGE, min_size=1, max_size=30), st.permutations(range(8)), st.sampled_from(MODELS))
def test_renaming_the_ranks_renames_the_prediction(messages, permutation, model):
    new = np.array(permutation)
    pattern, layout = _pattern(*messages), parse_layout("2x1x4")
    node, socket = np.empty(8, dtype=np.int64), np.zeros(8, dtype=np.int64)
    node[new] = layout.node
    profile = _profile(intra_socket=_TWO_PROTOCOLS, inter_node=_TWO_PROTOCOLS)
    before = predict_exchange(pattern, layout, profile, model)
    renamed = Pattern(new[pattern.src], new[pattern.dst], pattern.bytes)
    after = predict_exchange(renamed, Layout(node, socket, "renamed"), profile, model)
    assert after.time_s[new] == pytest.approx(before.time_s, rel=1e-9)


@settings(deadline=None)
@given(st.lists(_MESSAGE, min_size=1, max_size=30), st.sampled_from(MODELS))
def test_ten_times_the_bytes_take_ten_times_as_long_apart_from_latency(messages, model):
    pattern, layout, profile = _pattern(*messages), parse_layout("1x1x8"), _profile(intra_socket=_level())
    larger = Pattern(pattern.src, pattern.dst, pattern.bytes * 10)
    latency_s = 2e-6 * np.bincount(pattern.dst, minlength=8)
    small, large = (predict_exchange(item, layout, profile, model).time_s for item in (pattern, larger))
    assert large - latency_s == pytest.approx(10 * (small - latency_s), rel=1e-9, abs=1e-15)


def test_an_exchange_prepared_once_predicts_for_several_profiles():
    pattern, layout = _pattern((0, 1, 500), (1, 2, 90_000), (2, 0, 20_000)), parse_layout("1x1x3")
    exchange = Exchange(pattern, layout)
    for profile in (_profile(intra_socket=_level()), _profile(intra_socket=_TWO_PROTOCOLS)):
        fresh = predict_exchange(pattern, layout, profile)
        assert exchange.predict(profile).time_s.tolist() == fresh.time_s.tolist()


def test_interval_holds_the_percentiles_of_the_replicates():
    replicates = [{"levels": {"intra_socket": _level(_protocol(latency_s=k * 1e-8))}} for k in range(101)]
    profile = _profile(replicates, intra_socket=_level(_protocol(latency_s=5e-7)))
    prediction = predict_exchange(_pattern((0, 1, 1000)), parse_layout("1x1x2"), profile)
    assert prediction.time_interval_s[1] == pytest.approx([1e-7 + 2.5e-8, 1e-7 + 97.5e-8])
    assert prediction.time_interval_s.shape == (2, 2)


def test_replicates_may_differ_in_where_a_protocol_begins():
    early, late = (
        _level(_protocol("eager", 0, 1e-6), _protocol("rendezvous", start, 4e-6)) for start in (100, 2000)
    )
    profile = _profile([{"levels": {"intra_socket": item}} for item in (early, late)], intra_socket=early)
    prediction = predict_exchange(_pattern((0, 1, 1000)), parse_layout("1x1x2"), profile)
    low, high = 1e-7 + 1e-6, 1e-7 + 4e-6
    assert prediction.time_interval_s[1] == pytest.approx(
        [low + 0.025 * (high - low), low + 0.975 * (high - low)]
    )


def test_no_replicates_no_interval():
    prediction = predict_exchange(_pattern((0, 1, 8)), parse_layout("1x1x2"), _profile(intra_socket=_level()))
    assert prediction.time_interval_s is None


def test_a_layout_of_many_ranks_and_messages_agrees_with_itself_cut_to_one_node():
    rng = np.random.default_rng(5)
    per_node, nodes, count = 32, 32, 100_000
    src = rng.integers(0, per_node, count)
    dst = (src + 1 + rng.integers(0, per_node - 1, count)) % per_node
    node, size = rng.integers(0, nodes, count), rng.integers(0, 50_000, count)
    profile = _profile(intra_socket=_TWO_PROTOCOLS)
    whole = Pattern(src + node * per_node, dst + node * per_node, size)
    everything = predict_exchange(whole, parse_layout(f"{nodes}x1x{per_node}"), profile)
    third = node == 3
    one = predict_exchange(
        Pattern(src[third], dst[third], size[third]), parse_layout(f"1x1x{per_node}"), profile
    )
    assert everything.time_s.reshape(nodes, per_node)[3] == pytest.approx(one.time_s, rel=1e-9)


def test_sizes_near_the_64_bit_limit_stay_exact():
    huge = 2**60
    prediction = predict_exchange(
        _pattern((0, 1, huge), (2, 1, huge), (1, 2, huge)),
        parse_layout("1x1x3"),
        _profile(intra_socket=_level()),
    )
    assert prediction.receive_s == pytest.approx(
        [0, 2 * huge / 16e9 + huge / 10e9, 2 * huge / 16e9], rel=1e-12
    )


def test_intra_and_inter_socket_together_are_refused_for_the_staircase_alone():
    pattern, layout = _pattern((0, 1, 8), (0, 2, 8)), parse_layout("1x2x2")
    profile = _profile(intra_socket=_level(), inter_socket=_level())
    with pytest.raises(
        InputError, match=r"mixes intra_socket and inter_socket.*not built yet.*max-rate or postal"
    ):
        predict_exchange(pattern, layout, profile)
    for model in ("max-rate", "postal"):
        assert predict_exchange(pattern, layout, profile, model).time_s[2] > 0


def test_an_absent_level_matters_only_when_a_message_needs_it():
    layout, profile = parse_layout("2x1x2"), _profile(intra_socket=_level())
    assert predict_exchange(_pattern((0, 1, 8)), layout, profile).slowest_rank == 1
    with pytest.raises(InputError, match="no level inter_node"):
        predict_exchange(_pattern((0, 2, 8)), layout, profile)


@pytest.mark.parametrize(("model", "says"), [("fair", "not built yet"), ("logp", "'logp'; choose one of")])
def test_models_that_are_not_there_are_named(model, says):
    with pytest.raises(InputError, match=says):
        predict_exchange(_pattern((0, 1, 8)), parse_layout("1x1x2"), _profile(intra_socket=_level()), model)


def test_a_table_without_a_single_pair_is_refused():
    profile = _profile(intra_socket=_level(_protocol(table={"2": 1e9})))
    with pytest.raises(InputError, match="begins at N = 2"):
        predict_exchange(_pattern((0, 1, 8)), parse_layout("1x1x2"), profile)


def test_a_rank_outside_the_layout_is_refused():
    with pytest.raises(InputError, match="rank 5"):
        predict_exchange(_pattern((0, 5, 8)), parse_layout("1x1x2"), _profile(intra_socket=_level()))


@pytest.mark.parametrize("model", MODELS)
def test_no_messages_take_no_time(model):
    prediction = predict_exchange(_pattern(), parse_layout("1x1x2"), _profile(intra_socket=_level()), model)
    assert prediction.time_s.tolist() == [0, 0]


def _one_protocol(counts, **more) -> Profile:
    table = {str(n): 1e10 for n in counts}
    level = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": table}]}
    return profile_from_json({"schema": "earlybird.profile/1", "levels": {"intra_socket": level}} | more)


def test_a_prediction_beyond_what_was_measured_says_so():
    ring = Pattern(np.arange(4), (np.arange(4) + 1) % 4, np.full(4, 1000))
    layout = parse_layout("1x1x4")
    (said,) = predict_exchange(ring, layout, _one_protocol([1, 2])).extra["notes"]
    assert "4 processes receive at once" in said and "N up to 2" in said
    assert "notes" not in predict_exchange(ring, layout, _one_protocol([1, 2, 4])).extra
    (said,) = predict_exchange(ring, layout, _one_protocol([1, 4], machine={"cores": 2})).extra["notes"]
    assert "4 ranks on a node" in said and "2 cores" in said
