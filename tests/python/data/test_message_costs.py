"""EARLYBIRD_COSTS: what of a profile goes in, and that it comes out again digit by digit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.message_costs import MessageCosts, ProtocolCost, costs_of_profile
from earlybird.data.profile import profile_from_json


def profile(**levels):
    return profile_from_json({"schema": "earlybird.profile/1", "levels": levels})


def level(*protocols):
    return {
        "protocols": [
            {"min_bytes": start, "latency_s": latency, "bandwidth_bytes_per_s": table}
            for start, latency, table in protocols
        ]
    }


SHORT, LONG = (0, 1e-6, {"1": 2e9, "2": 3e9}), (4096, 3e-6, {"1": 1e10})


def test_every_protocol_of_a_level_is_an_entry_with_the_bandwidth_of_one_pair():
    costs = costs_of_profile(
        profile(intra_socket=level(SHORT, LONG), inter_node=level((0, 5e-5, {"1": 1e8})))
    )
    assert costs.to_text() == (
        "intra_node_protocols=0:1e-06:1e-06:2e+09,4096:3e-06:3e-06:1e+10 "
        "inter_node_protocols=0:5e-05:5e-05:100000000"
    )
    assert "inter-node of inter_node" in costs.describe()


def test_inside_a_node_the_dearer_level_counts():
    dear = level((0, 2e-6, {"1": 1e9}))
    assert costs_of_profile(profile(intra_socket=level(SHORT, LONG), inter_socket=dear)).levels == {
        "intra_node": "inter_socket"
    }
    assert costs_of_profile(profile(intra_socket=dear, inter_socket=level(SHORT, LONG))).levels == {
        "intra_node": "intra_socket"
    }


def test_a_table_without_a_single_pair_gives_each_its_share():
    (only,) = costs_of_profile(profile(inter_node=level((0, 1e-6, {"4": 4e9, "8": 5e9})))).networks[
        "inter_node"
    ]
    assert only.bandwidth_bytes_per_s == 1e9


def test_a_protocol_divided_by_its_senders_alone_is_one_entry():
    divided = profile(intra_socket=level(SHORT, (1024, *SHORT[1:]), LONG))
    assert (
        costs_of_profile(divided).to_text()
        == costs_of_profile(profile(intra_socket=level(SHORT, LONG))).to_text()
    )


times = st.floats(0, 10, allow_subnormal=False)
protocols = st.lists(
    st.tuples(st.integers(1, 2**62), times, times, st.floats(1, 1e15)),
    min_size=1,
    max_size=4,
    unique_by=lambda p: p[0],
).map(lambda rows: tuple(ProtocolCost(k and row[0], *row[1:]) for k, row in enumerate(sorted(rows))))


@given(st.dictionaries(st.sampled_from(["intra_node", "inter_node"]), protocols, min_size=1))
def test_what_is_written_has_nine_digits(networks):
    written = dict(entry.split("=") for entry in MessageCosts(networks, {}).to_text().split())
    assert written.keys() == {f"{network}_protocols" for network in networks}
    for network, costs in networks.items():
        for text, cost in zip(written[f"{network}_protocols"].split(","), costs, strict=True):
            assert [float(number) for number in text.split(":")] == pytest.approx(
                [cost.min_bytes, cost.latency_s, cost.overhead_s, cost.bandwidth_bytes_per_s], rel=1e-8, abs=0
            )


def test_more_protocols_than_the_library_holds_are_refused():
    rows = [(k, (k + 1) * 1e-6, {"1": 1e9}) for k in range(17)]
    with pytest.raises(InputError, match="17 protocols"):
        costs_of_profile(profile(intra_socket=level(*rows)))
    assert len(costs_of_profile(profile(intra_socket=level(*rows[:16]))).networks["intra_node"]) == 16
