"""The plan of a check: every pair once, within the budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.check.plan import make_plan
from earlybird.check.tournament import num_rounds, opponent, pairs_of, round_of
from earlybird.data.errors import InputError


@given(st.integers(2, 70))
def test_every_pair_meets_once_in_rounds_of_disjoint_pairs(players):
    met = []
    for round_ in range(num_rounds(players)):
        pairs = pairs_of(round_, players)
        assert len({player for pair in pairs for player in pair}) == 2 * len(pairs) == players // 2 * 2
        met += pairs
    assert sorted(met) == [(one, other) for one in range(players) for other in range(one + 1, players)]
    assert all(opponent(*pair[:1], round_of(*pair, players), players) == pair[1] for pair in met[:50])


@given(
    st.integers(2, 300),
    st.sampled_from([30.0, 120.0, 600.0]),
    st.sampled_from([None, 2e6, 25e6, 1e9, 2.5e10]),
    st.booleans(),
)
def test_both_launches_fit_the_budget_or_are_refused(nodes, budget_s, bandwidth, shared):
    try:
        plan = make_plan(nodes, budget_s, bandwidth_bytes_per_s=bandwidth, shared_machine=shared)
    except InputError:
        assert nodes > 8 or bandwidth == 2e6
        return
    assert 2 * plan.total_s() <= budget_s * (1 + 1e-9)
    assert 1 << 14 <= plan.size_bytes <= 1 << 20


@pytest.mark.parametrize("bandwidth", [None, 1.25e9, 2.5e10])
def test_256_nodes_take_at_most_two_minutes_with_both_launches(bandwidth):
    plan = make_plan(256, bandwidth_bytes_per_s=bandwidth)
    assert 2 * plan.total_s() <= 120
    assert len(plan.points("mpich")) == 255 + 512 + 1


@pytest.mark.parametrize(
    ("nodes", "budget_s"), [(500, 120), (501, 120), (1000, 120), (2000, 120), (4000, 300)]
)
def test_of_many_nodes_a_sample_is_measured_within_the_budget(nodes, budget_s):
    plan = make_plan(nodes, budget_s)
    assert 2 * plan.total_s() <= budget_s
    points = plan.points("mpich")
    rounds = [one["round"] for one in points if one["part"] == "pairs"]
    assert len(set(rounds)) == len(rounds) == 24 and max(rounds) > 24
    assert {one["part"] for one in points} == {"pairs", "incast", "nodes"}
    assert "24 of" in plan.sentence() and plan.to_json()["longest_s"] <= budget_s
    # Of those that are left after some nodes were left out, as many are measured as can be.
    assert plan.of_fewer(100).rounds == 99 and plan.of_fewer(100).points("mpich")[-2]["part"] == "outcast"


def test_a_faster_network_gets_larger_messages():
    slow, fast = (make_plan(256, bandwidth_bytes_per_s=rate) for rate in (1.25e8, 2.5e10))
    assert slow.size_bytes < fast.size_bytes == 1 << 20


def test_what_is_measured_again_fits_the_time_of_a_first_launch():
    plan = make_plan(64, bandwidth_bytes_per_s=1e9)
    point_s, _ = plan.again(63 + 128)
    assert plan.start_s() + point_s * (63 + 128) <= plan.total_s()
    assert plan.again(2) == (3 * plan.point_s, 12)


@pytest.mark.parametrize(
    ("nodes", "options", "message"),
    [
        (1, {}, "this job has 1 node; give at least two"),
        (256, {"budget_s": 5.0}, "--budget is 5 s; give more time, or fewer nodes"),
        (8, {"size_bytes": 1 << 29}, "with messages of 512 MiB"),
        (8, {"size_bytes": 1 << 30}, "--size is 1 GiB; give 1B to 512 MiB"),
        (8, {"size_bytes": 0}, "--size is 0 B"),
    ],
)
def test_what_cannot_be_planned_is_refused(nodes, options, message):
    with pytest.raises(InputError, match=message):
        make_plan(nodes, **options)
