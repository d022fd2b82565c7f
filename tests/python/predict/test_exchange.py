"""Exchanges predicted from small profiles: competition, waiting senders, sums of times, rejected input."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.exchange_models import MODELS
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import prediction_from_json
from earlybird.data.profile import Profile, profile_from_json
from earlybird.predict import MIXED, SHARES, Predictor, predict_exchange

WORKED = Path(__file__).parents[3] / "examples" / "worked"

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


@pytest.mark.parametrize(
    ("model", "reason"),
    [("staircase", "do not wait for delivery"), ("postal", "postal counts what a rank receives")],
)
def test_a_rank_that_only_sends_without_waiting_gets_a_note_on_its_zero_time(model, reason):
    """Ranks 0 and 2 send; rank 2 also receives."""
    sends = _pattern((0, 1, 1000), (2, 1, 1000), (1, 2, 1000))
    eager = _profile(intra_socket=_level(_protocol(sender_waits=False)))
    (note,) = predict_exchange(sends, parse_layout("1x1x3"), eager, model).extra["notes"]
    assert note.startswith("rank 0 only sends and is predicted to take 0 s: ") and reason in note
    waits = predict_exchange(sends, parse_layout("1x1x3"), _profile(intra_socket=_level()))
    assert "notes" not in waits.extra and waits.time_s[0] > 0


def test_of_many_ranks_that_only_send_a_few_are_named():
    fan_in = _pattern(*((rank, 0, 1000) for rank in range(1, 20)))
    eager = _profile(intra_socket=_level(_protocol(sender_waits=False, table={"1": 1e9, "20": 1e9})))
    (note,) = predict_exchange(fan_in, parse_layout("1x1x20"), eager).extra["notes"]
    assert note.startswith("ranks 1, 2, 3, 4, 5, 6, 7, 8, ... only send and are")


def test_groups_are_the_receivers_socket_inside_a_node_and_its_node_outside():
    intra = _pattern((0, 1, 1000), (2, 3, 1000))
    by_socket = predict_exchange(intra, parse_layout("1x2x2"), _profile(intra_socket=_level()))
    assert by_socket.receive_s == pytest.approx([0, 1000 / 10e9, 0, 1000 / 10e9])
    across = _pattern((0, 2, 1000), (1, 3, 1000))
    inter_socket = predict_exchange(across, parse_layout("1x2x2"), _profile(inter_socket=_level()))
    assert inter_socket.receive_s == pytest.approx([0, 0, 2000 / 16e9, 2000 / 16e9])
    between = _pattern((0, 4, 1000), (1, 6, 1000))
    inter_node = predict_exchange(between, parse_layout("2x2x2"), _profile(inter_node=_level()), "staircase")
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
@given(st.lists(_MESSAGE, min_size=1, max_size=30), st.permutations(range(8)), st.sampled_from(list(MODELS)))
def test_renaming_the_ranks_renames_the_prediction(messages, permutation, model):
    new = np.array(permutation)
    pattern, layout = _pattern(*messages), parse_layout("2x2x2")
    node, socket = np.empty(8, dtype=np.int64), np.empty(8, dtype=np.int64)
    node[new], socket[new] = layout.node, layout.socket
    profile = _profile(intra_socket=_TWO_PROTOCOLS, inter_socket=_level(), inter_node=_TWO_PROTOCOLS)
    before = predict_exchange(pattern, layout, profile, model)
    renamed = Pattern(new[pattern.src], new[pattern.dst], pattern.bytes)
    after = predict_exchange(renamed, Layout(node, socket, "renamed"), profile, model)
    assert after.time_s[new] == pytest.approx(before.time_s, rel=1e-9)


@settings(deadline=None)
@given(st.lists(_MESSAGE, min_size=1, max_size=30), st.sampled_from(list(MODELS)))
def test_ten_times_the_bytes_take_ten_times_as_long_apart_from_latency(messages, model):
    pattern, layout, profile = _pattern(*messages), parse_layout("1x1x8"), _profile(intra_socket=_level())
    larger = Pattern(pattern.src, pattern.dst, pattern.bytes * 10)
    latency_s = 2e-6 * np.bincount(pattern.dst, minlength=8)
    small, large = (predict_exchange(item, layout, profile, model).time_s for item in (pattern, larger))
    assert large - latency_s == pytest.approx(10 * (small - latency_s), rel=1e-9, abs=1e-15)


def test_an_exchange_prepared_once_predicts_for_several_profiles():
    pattern, layout = _pattern((0, 1, 500), (1, 2, 90_000), (2, 0, 20_000)), parse_layout("1x1x3")
    exchange = Predictor(pattern, layout)
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


ON = {"1": 10e9, "2": 16e9}
OFF = {"1": 5e9, "2": 8e9}


def _mixed_profile(on=ON, off=OFF, **extra):
    return _profile(
        intra_socket=_level(_protocol(table=on, latency_s=1e-6, **extra)),
        inter_socket=_level(_protocol(table=off, latency_s=3e-6, **extra)),
    )


def test_on_and_off_socket_messages_compete_as_in_equations_12_to_17():
    # Rank 0 receives 30 kB on and 10 kB off its socket, rank 1 40 kB off: (3/4 16 + 1/4 8)/2 = 7 GB/s and
    # 4 GB/s. Rank 0 ends after 40/7 us, rank 1 then has 120/7 kB to go at 5 GB/s: 24/7 us more.
    pattern, layout = _pattern((1, 0, 30_000), (2, 0, 10_000), (3, 1, 40_000)), parse_layout("1x2x2")
    prediction = predict_exchange(pattern, layout, _mixed_profile(), "staircase")
    assert prediction.receive_s == pytest.approx(np.array([40, 64, 0, 0]) / 7e6, rel=1e-12)
    # Latencies: 1 + 3 us on rank 0, 3 us on rank 1; ranks 2 and 3 wait for their sends.
    assert prediction.time_s == pytest.approx(np.array([68, 85, 40, 64]) / 7e6, rel=1e-12)
    assert prediction.extra == {"mixed": "per-level"}
    # In the union of rank 0's messages the smaller one, from rank 2, is complete at half of the time.
    union = predict_exchange(pattern, layout, _mixed_profile(), "staircase", mixed="union")
    assert union.time_s == pytest.approx(np.array([68, 85, 20, 64]) / 7e6, rel=1e-12)
    assert union.extra == {"mixed": "union"}


def test_on_and_off_socket_messages_of_equal_cost_are_one_level():
    # All receivers on one socket: the same group, and with the union the same order, as all on one socket.
    pattern = _pattern((1, 0, 3000), (2, 0, 5000), (3, 0, 4000), (0, 1, 7000), (2, 1, 2000), (3, 1, 9000))
    profile = _profile(intra_socket=_TWO_PROTOCOLS, inter_socket=_TWO_PROTOCOLS)
    mixed = predict_exchange(pattern, parse_layout("1x2x2"), profile, mixed="union")
    alone = predict_exchange(pattern, parse_layout("1x1x4"), profile)
    assert mixed.time_s == pytest.approx(alone.time_s, rel=1e-12)


@pytest.mark.parametrize(("messages", "level"), [(((0, 1), (2, 3)), "intra"), (((0, 2), (1, 3)), "inter")])
@pytest.mark.parametrize("mixed", MIXED)
def test_with_one_of_the_two_levels_the_mixture_is_its_staircase(messages, level, mixed):
    pattern = _pattern(*[(src, dst, 1000 * (dst + 1)) for src, dst in messages])
    layout, both = parse_layout("1x2x2"), _mixed_profile()
    one = _profile(**{f"{level}_socket": _level(_protocol(table=ON if level == "intra" else OFF))})
    prediction = predict_exchange(pattern, layout, both, "staircase", mixed=mixed)
    alone = predict_exchange(pattern, layout, one)
    assert prediction.receive_s == pytest.approx(alone.receive_s, rel=1e-12)
    assert prediction.extra == {}
    assert predict_exchange(pattern, layout, one, "fair").time_s.tolist() == alone.time_s.tolist()


def test_off_socket_ranks_of_the_papers_thunderx2_end_after_on_socket_ones():
    # Figure 5 (a), (b) of Thune et al. 2023: 24 ranks on each of two sockets, 16 in on-socket pairs, 8 paired
    # with the other socket, one size; tables of their Table I. The model "correctly predicts that the
    # off-socket processes complete after the on-socket processes".
    on = {"1": 7.5e9, "2": 14.6e9, "4": 25.5e9, "8": 32.5e9, "16": 45.0e9, "32": 54.0e9}
    off = {"1": 6.5e9, "2": 13.7e9, "4": 17.8e9, "8": 18.3e9, "16": 19.7e9, "32": 22.7e9}
    size, messages = 500_000, []
    for rank in range(48):
        place = rank % 24
        messages.append((rank, rank ^ 1 if place < 16 else (rank + 24) % 48, size))
    prediction = predict_exchange(_pattern(*messages), parse_layout("1x2x24"), _mixed_profile(on, off))
    first_s = 24 * size / 49.5e9
    left_bytes = size - first_s * 21.2e9 / 24
    expected = [first_s] * 16 + [first_s + 8 * left_bytes / 18.3e9] * 8
    assert prediction.receive_s == pytest.approx(expected * 2, rel=1e-12)
    assert prediction.time_s.reshape(2, 24)[:, :16].max() < prediction.time_s.reshape(2, 24)[:, 16:].min()


def test_levels_that_max_rate_and_postal_add_they_still_add():
    pattern, layout = _pattern((0, 1, 1000), (2, 1, 4000)), parse_layout("1x2x2")
    for model in ("max-rate", "postal"):
        times_s = predict_exchange(pattern, layout, _mixed_profile(), model).time_s
        assert times_s[1] == pytest.approx(4e-6 + 1000 / 10e9 + 4000 / 5e9, rel=1e-12)


def test_beyond_the_measured_n_of_either_level_a_mixture_says_so():
    profile = _mixed_profile(off={"1": 5e9})
    pattern = _pattern((1, 0, 100), (2, 0, 100), (0, 1, 100))
    (said,) = predict_exchange(pattern, parse_layout("1x2x2"), profile).extra["notes"]
    assert said.startswith("inter_socket: 2 processes receive at once, but the profile has N up to 1")


def test_fair_limits_the_sending_node_too():
    pattern, layout = _pattern((0, 1, 100_000), (0, 2, 300_000)), parse_layout("3x1x1")
    profile = _profile(inter_node=_level(_protocol(table={"1": 10e9})))
    staircase = predict_exchange(pattern, layout, profile, "staircase")
    assert staircase.receive_s == pytest.approx([0, 10e-6, 30e-6])
    fair = predict_exchange(pattern, layout, profile, "fair")
    assert fair.receive_s == pytest.approx([0, 20e-6, 40e-6])
    # The sender waits for the last of its sends and pays no latency of the receivers.
    assert fair.time_s == pytest.approx([40e-6, 22e-6, 42e-6])
    assert fair.inter_node_s.tolist() == fair.time_s.tolist()
    assert fair.extra == {"share": "message"}


def test_fair_lets_only_those_senders_wait_whose_protocol_says_so():
    # Two protocols of one name and one line, apart in where they begin and whether their senders wait.
    level = _level(
        _protocol("eager", 0, table=ON, sender_waits=False),
        _protocol("eager", 50_000, table=ON, sender_waits=True),
    )
    one_line = _level(_protocol("eager", 0, table=ON, sender_waits=True))
    pattern, layout = _pattern((0, 1, 40_000), (0, 2, 60_000), (3, 0, 40_000)), parse_layout("4x1x1")
    for model in ("fair", "staircase"):
        split, whole = (
            predict_exchange(pattern, layout, _profile(inter_node=item), model) for item in (level, one_line)
        )
        assert split.receive_s == pytest.approx(whole.receive_s, rel=1e-12)
        assert split.time_s[3] == 0 < whole.time_s[3]
        assert split.time_s[0] == pytest.approx(2e-6 + max(split.receive_s[0], split.receive_s[2]), rel=1e-12)


def test_fair_shares_by_process_on_request():
    pattern = _pattern((0, 3, 40_000), (1, 3, 40_000), (2, 4, 40_000))
    layout = Layout(np.array([0, 1, 2, 3, 3]), np.zeros(5, dtype=np.int64), "by hand")
    profile = _profile(inter_node=_level(_protocol(table={"1": 12e9})))
    by_message, by_process = (
        predict_exchange(pattern, layout, profile, "fair", share=share) for share in SHARES
    )
    assert by_message.receive_s[3:] == pytest.approx([10e-6, 10e-6])
    assert by_process.receive_s[3:] == pytest.approx([10e-6, 20e-6 / 3])
    staircase = predict_exchange(pattern, layout, profile, "staircase")
    assert by_process.receive_s == pytest.approx(staircase.receive_s)
    assert by_process.extra["share"] == "process"


def test_fair_without_messages_between_nodes_is_the_staircase_and_says_so():
    pattern, layout, profile = _pattern((0, 1, 500)), parse_layout("1x1x2"), _profile(intra_socket=_level())
    fair = predict_exchange(pattern, layout, profile, "fair")
    assert fair.time_s.tolist() == predict_exchange(pattern, layout, profile).time_s.tolist()
    (said,) = fair.extra["notes"]
    assert "no message goes between nodes" in said


def test_fair_says_where_more_processes_send_than_were_measured():
    pattern = _pattern((0, 4, 100), (1, 4, 100), (2, 4, 100))
    profile = _profile(inter_node=_level(_protocol(table=ON)))
    assert "notes" not in predict_exchange(pattern, parse_layout("2x1x4"), profile, "staircase").extra
    (said,) = predict_exchange(pattern, parse_layout("2x1x4"), profile, "fair").extra["notes"]
    assert said.startswith("inter_node: 3 processes send at once, but the profile has N up to 2")


def test_intervals_of_fair_come_from_fewer_replicates_of_large_exchanges(monkeypatch):
    random = np.random.default_rng(4)
    # One bundle of messages, with a step for each: the work of each is the number of messages.
    src, dst = random.integers(0, 4, 3000), 4 + random.integers(0, 4, 3000)
    pattern, layout = Pattern(src, dst, random.integers(1, 5000, 3000)), parse_layout("2x1x4")
    monkeypatch.setattr("earlybird.predict.exchange._REPLICATES_WORK", 6 * 4 * 3000)
    replicates = [{"levels": {"inter_node": _level(_protocol(latency_s=k * 1e-6))}} for k in range(41)]
    profile = _profile(replicates, inter_node=_level())
    narrow = predict_exchange(pattern, layout, profile, "fair")
    wide = predict_exchange(pattern, layout, profile, "staircase")
    # The latency of replicate k is k us: the first 6 reach an eighth as far as all 41.
    assert np.diff(narrow.time_interval_s)[4:] == pytest.approx(
        np.diff(wide.time_interval_s)[4:] / 8, rel=1e-6
    )
    assert "with 6 replicates: its intervals cover about 68 % of" in narrow.extra["notes"][-1]
    assert not any("replicates" in note for note in wide.extra.get("notes", []))


def test_fair_takes_completions_of_large_exchanges_together_and_moves_by_little(monkeypatch):
    random = np.random.default_rng(5)
    src, dst = random.integers(0, 8, 2400), 8 + random.integers(0, 8, 2400)
    pattern, layout = Pattern(src, dst, random.integers(1, 50_000, 2400)), parse_layout("8x1x2")
    profile = _profile(inter_node=_level(_protocol(table=ON)))
    exact = predict_exchange(pattern, layout, profile, "fair").receive_s
    monkeypatch.setattr("earlybird.predict.solvers.FAIR_EXACT_WORK", 0)
    together = predict_exchange(pattern, layout, profile, "fair").receive_s
    assert (together != exact).any()
    assert together == pytest.approx(exact, rel=0.01)
    monkeypatch.setattr("earlybird.predict.solvers.FAIR_BATCHED_WORK", 1)  # steps that cost more are larger
    in_larger_steps = predict_exchange(pattern, layout, profile, "fair").receive_s
    apart = [np.abs(times_s - exact).sum() / exact.sum() for times_s in (together, in_larger_steps)]
    assert apart[0] < apart[1] < 0.05


@pytest.mark.parametrize("model", MODELS)
def test_transfers_inside_nodes_and_between_them_overlap_and_latencies_add(model):
    pattern, layout = _pattern((0, 1, 40_000), (2, 1, 100_000), (3, 2, 500)), parse_layout("2x1x2")
    inside, between = _level(_protocol(latency_s=1e-6)), _level(_protocol(latency_s=3e-6))
    profile = _profile([{"levels": {"intra_socket": inside, "inter_node": between}}] * 40,
                       intra_socket=inside, inter_node=between)  # fmt: skip
    added = predict_exchange(pattern, layout, profile, model)
    together = predict_exchange(pattern, layout, profile, model, combine="overlap")
    assert added.overlap_s is None and "combine" not in added.extra
    assert together.extra["combine"] == "overlap"
    one, other = added.intra_node_s[1] - 1e-6, added.inter_node_s[1] - 3e-6
    assert together.time_s[1] == pytest.approx(1e-6 + 3e-6 + max(one, other), rel=1e-12)
    assert together.receive_s[1] == pytest.approx(max(40_000, 100_000) / 10e9, rel=0.05)
    assert together.time_s[3] == added.time_s[3]  # it has messages inside its node only
    assert together.time_interval_s[:, 0] == pytest.approx(together.time_s, rel=1e-9)
    assert prediction_from_json(together.to_json()).time_s.tolist() == together.time_s.tolist()
    assert Predictor(pattern, layout, combine="overlap").slowest_s(profile, model)[0] == together.time_s.max()


def test_what_is_kept_while_ranks_move_adds_times():
    predictor = Predictor(_pattern((0, 1, 8)), parse_layout("1x1x2"), combine="overlap")
    with pytest.raises(InputError, match="slowest_now_s needs combine 'sum'; this one has 'overlap'"):
        predictor.slowest_now_s(_profile(intra_socket=_level()))


def test_an_absent_level_matters_only_when_a_message_needs_it():
    layout, profile = parse_layout("2x1x2"), _profile(intra_socket=_level())
    assert predict_exchange(_pattern((0, 1, 8)), layout, profile).slowest_rank == 1
    with pytest.raises(InputError, match="no level inter_node"):
        predict_exchange(_pattern((0, 2, 8)), layout, profile)


@pytest.mark.parametrize("option", ["model", "share", "mixed", "combine"])
def test_choices_that_are_not_there_are_named(option):
    arguments = _pattern((0, 1, 8)), parse_layout("1x1x2"), _profile(intra_socket=_level())
    with pytest.raises(InputError, match=f"the {option} is 'logp'; choose one of"):
        predict_exchange(*arguments, **{option: "logp"})


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
