"""Forms of collectives: closed forms where hops are alike, hop types of placements, published figures."""

import numpy as np
import pytest

from earlybird.data.insaghi import load_insaghi
from earlybird.data.layout import parse_layout
from earlybird.models.collective import (
    EMPIRICAL,
    CollectiveCosts,
    by_node_us,
    by_socket_us,
    collective_time_s,
    count_hops,
    make_calls,
    size_grid_us,
    term_names,
)

ALPHA_S, BETA, GAMMA = 3e-6, 2e-9, 5e-10


def time_s(structure, ranks, size, segment=0, *, gamma=0.0, first=(0.0, 0.0), layout=None, **more):
    layout = layout or parse_layout(f"1x1x{ranks}")
    shape = (1, len(term_names(structure)), 3)
    alpha, beta = np.zeros(shape), np.zeros(shape)
    alpha[0, 0], beta[0, 0] = more.pop("alpha", ALPHA_S), more.pop("beta", BETA)
    if shape[1] == 2:
        alpha[0, 1], beta[0, 1] = first
    costs = CollectiveCosts(np.array([0]), alpha, beta, gamma, **more)
    hops = count_hops(structure, layout.node[:ranks], layout.socket[:ranks])
    return float(collective_time_s(make_calls([hops], [size], [segment]), costs)[0])


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 100])
def test_alike_hops_give_the_closed_forms_of_broadcast_and_reduction(ranks):
    m, segment = 1 << 16, 1 << 12
    n, k = m // segment, (ranks - 1).bit_length()
    h, hop = ALPHA_S + BETA * segment, ALPHA_S + BETA * m
    assert time_s("linear", ranks, m) == pytest.approx((ranks - 1) * hop)
    assert time_s("linear", ranks, m, gamma=GAMMA) == pytest.approx((ranks - 1) * (hop + GAMMA * m))
    assert time_s("chain", ranks, m, segment) == pytest.approx((ranks + n - 2) * h)
    assert time_s("chain", ranks, m, segment, gamma=GAMMA) == pytest.approx(
        (ranks + n - 2) * (h + GAMMA * segment)
    )
    for tree in ("binomial-doubling", "binomial-halving"):
        assert time_s(tree, ranks, m, segment) == pytest.approx(k * n * h)
        assert time_s(tree, ranks, m, segment, gamma=GAMMA) == pytest.approx(k * n * (h + GAMMA * segment))


@pytest.mark.parametrize("ranks", [2, 5, 64])
def test_gamma_of_linear_is_between_one_and_all_but_the_root(ranks):
    """Gamma(P) = 1 + share*(P-2) where each further message costs a share of the first."""
    share = 0.25
    rest = (ALPHA_S * (1 - share), BETA * (1 - share))
    found = time_s("linear", ranks, 1000, alpha=ALPHA_S * share, beta=BETA * share, first=rest)
    assert found == pytest.approx((1 + share * (ranks - 2)) * (ALPHA_S + BETA * 1000))


def test_a_last_segment_counts_its_own_bytes():
    assert time_s("chain", 3, 1000, 300) == pytest.approx((2 + 3) * ALPHA_S + BETA * (2 * 300 + 700))
    assert time_s("chain", 3, 1000, 4096) == time_s("chain", 3, 1000)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("linear", 1 + 2 * 10 + 4 * 100),
        ("chain", 4 * 1 + 2 * 10 + 100),
        # Rounds to 1 on the socket, 2 on the other one, 4 on the other node.
        ("binomial-doubling", 1 + 10 + 100),
    ],
)
def test_hops_are_of_the_type_the_placement_makes(tree, expected):
    layout = parse_layout("2x2x2")
    assert time_s(tree, 8, 0, layout=layout, alpha=[1.0, 10.0, 100.0], beta=0.0) == expected


def test_a_full_chain_goes_as_fast_as_its_slowest_hop():
    layout = parse_layout("2x1x4")
    found = time_s("chain", 8, 1000, 100, layout=layout, alpha=[1.0, 0, 50.0], beta=0.0)
    assert found == 6 * 1 + 50 + 9 * 50


def test_messages_that_use_a_link_at_once_share_it():
    beta = [0.0, 0.0, 1.0]
    by_core, by_node = (parse_layout("2x1x4", map_by) for map_by in ("core", "node"))
    call = {"alpha": 0.0, "beta": beta, "shared": "links"}
    # The last round of doubling crosses between nodes with four messages; by node only the first with one.
    assert time_s("binomial-doubling", 8, 10, layout=by_core, **call) == 4 * 10
    assert time_s("binomial-doubling", 8, 10, layout=by_node, **call) == 10
    # A chain by node goes out of each node four times at a time, once per rank, when it is full.
    assert time_s("chain", 8, 100, 10, layout=by_node, **call) == 7 * 10 + 4 * 90
    assert time_s("chain", 8, 100, 10, layout=by_core, **call) == 10 + 90


def test_sends_to_all_children_at_once_end_together():
    """At eight ranks the root's three messages end after three, its first child's two after five."""
    call = {"alpha": 0.0, "beta": 1.0, "shared": "sends"}
    assert time_s("binomial-doubling", 8, 1, **call) == 3 + 2 + 1
    assert time_s("binomial-doubling", 8, 4, 1, **call) == 6 + 3 * 3


def test_the_busiest_link_and_shared_cores_are_waited_for_where_they_take_longer():
    layout = parse_layout("4x1x2", "node")
    call = {"layout": layout, "alpha": 1.0, "beta": 0.0}
    # Each node of a chain by node sends out once for each of its ranks.
    assert time_s("chain", 8, 100, link_s_per_byte=1.0, **call) == 2 * 100
    assert time_s("chain", 8, 1, link_s_per_byte=1.0, **call) == 7
    # The root's node sends in two of the three rounds.
    assert time_s("binomial-doubling", 8, 100, link_s_per_byte=1.0, **call) == 200
    work = {"work_alpha_s": 3.0, "work_beta_s_per_byte": 0.1, "work_from_ranks": 5}
    assert time_s("chain", 8, 100, **call, **work) == 7 * (3 + 10)
    assert time_s("chain", 4, 100, **call, **work) == 3


def test_an_idle_link_carries_its_first_bytes_at_once():
    """Of a chain's first segment; what follows, and the busiest link, go at the link's rate."""
    layout = parse_layout("8x1x1")
    call = {"layout": layout, "alpha": 1.0, "beta": 0.1, "burst_bytes": 60.0}
    assert time_s("chain", 8, 100, **call) == pytest.approx(7 * (1 + 0.1 * 40))
    assert time_s("chain", 8, 500, 100, **call) == pytest.approx(7 * (1 + 0.1 * 40) + 4 * (1 + 0.1 * 100))
    # A segment that the bucket holds costs a hop's latency, but its link is no faster for it.
    assert time_s("chain", 8, 50, **call) == 7
    assert time_s("chain", 3, 50, **call) == 0.1 * 50
    # By node the chain leaves the first of two nodes twice; hops inside a node have no such link.
    twice = call | {"layout": parse_layout("2x1x2", "node")}
    assert time_s("chain", 4, 100, **twice) == pytest.approx(0.1 * 2 * 100)
    inside = call | {"layout": None}
    assert time_s("chain", 8, 100, **inside) == pytest.approx(7 * (1 + 0.1 * 100))


def bucket_chain_s(node, size, swift, alpha, beta, calls=6):
    """The last of several calls: a segment goes from rank to rank over links with token buckets."""
    held, since, now = dict.fromkeys(node, swift), dict.fromkeys(node, 0.0), 0.0
    for _ in range(calls):
        begin = now
        for sender in node[:-1]:
            tokens = min(swift, held[sender] + (now - since[sender]) / beta)
            wait = max(0.0, size - tokens) * beta
            held[sender], since[sender] = tokens + wait / beta - size, now + wait
            now += wait + alpha
    return now - begin


@pytest.mark.parametrize("size", [256, 1024, 4096, 8192, 1 << 16])
@pytest.mark.parametrize("shape", ["8x1x1", "2x1x4", "4x1x4"])
def test_buckets_of_nodes_that_the_chain_passes_again_have_filled_meanwhile(shape, size):
    layout, swift, alpha, beta = parse_layout(shape, "node"), 3000, 4e-5, 1.6e-7
    node = layout.node.tolist()
    found = time_s("chain", len(node), size, layout=layout, alpha=alpha, beta=beta, burst_bytes=swift)
    assert found == pytest.approx(bucket_chain_s(node, size, swift, alpha, beta), rel=0.2)


def test_without_a_known_tree_there_are_terms_in_the_number_of_ranks():
    layout = parse_layout("2x2x2")
    hops = count_hops(EMPIRICAL, layout.node, layout.socket)
    assert hops.once[:, 2].tolist() == [1, 3, 7, 7 / 8]
    assert not hops.once[:, :2].any()
    on_socket, on_node = (parse_layout(text) for text in ("1x1x4", "1x2x2"))
    assert count_hops(EMPIRICAL, on_socket.node, on_socket.socket).once[0].tolist() == [1, 0, 0]
    assert count_hops(EMPIRICAL, on_node.node, on_node.socket).once[0].tolist() == [0, 1, 0]
    calls = make_calls([hops], [80], [0])
    assert calls.alpha[0, 3].tolist() == [0, 0, 0] and calls.beta[0, 3].tolist() == [0, 0, 70]


def published(operation, algorithm, map_by, form):
    (found,) = [
        one
        for one in load_insaghi().regressions
        if (one.operation, one.algorithm, one.map_by, one.form) == (operation, algorithm, map_by, form)
    ]
    return found


def test_the_published_forms_give_the_published_figures():
    linear = published("bcast", "linear", "node", 2)
    assert by_node_us(256, linear.estimates, logarithm=False) == pytest.approx(61, abs=0.5)
    on_grid = published("bcast", "linear", "node", 3)
    assert size_grid_us(256, 1, *on_grid.estimates) == pytest.approx(93, abs=1)
    # Base e would give 696.
    assert np.exp(on_grid.estimates[0] * np.log2(256)) == pytest.approx(696, abs=1)
    binomial = published("bcast", "binomial", "node", 2)
    assert 1e22 < by_node_us(8192, binomial.estimates, logarithm=True) < 1e24


def test_the_published_break_is_where_the_second_node_begins():
    linear = published("bcast", "linear", "socket", 1)
    at, beyond = by_socket_us([128, 129], load_insaghi().break_ranks, linear.estimates, logarithm=False)
    assert at == pytest.approx(0.1572 * 128 - 0.0617)
    assert beyond == pytest.approx((0.1572 + 0.0781) * 129 + 4.1839)
    # Linear reduction is said to get faster on the second node.
    reduction = published("reduce", "linear", "socket", 1)
    low, high = by_socket_us([129, 256], 128, reduction.estimates, logarithm=False)
    assert high < low


def test_all_tables_of_the_report_are_there():
    found = load_insaghi().regressions
    assert len(found) == 24
    assert {one.table for one in found} == {*(f"{k}{part}" for k in range(1, 7) for part in "ab"), "7", "8"}
    for one in found:
        assert len(one.terms) == len(one.estimates) == len(one.std_errors)


def test_a_constant_is_paid_once_per_call():
    assert time_s("chain", 4, 1000, constant_s=1e-3) == pytest.approx(time_s("chain", 4, 1000) + 1e-3)


def test_the_grid_of_the_report_doubles_with_ranks_and_bytes():
    assert size_grid_us(8, 100, 0.5, 0.03) == pytest.approx(2 ** (0.5 * 3 + 0.03 * 100))


@pytest.mark.parametrize(("segment", "num_segments"), [(0, 1), (1000, 1), (300, 4)])
def test_every_segment_of_every_edge_is_a_message(segment, num_segments):
    layout = parse_layout("1x1x5")
    hops = count_hops("chain", layout.node, layout.socket)
    assert make_calls([hops], [1000], [segment]).messages.tolist() == [4 * num_segments]


def test_without_a_known_tree_messages_cross_sockets_where_there_are_several():
    one, several = (parse_layout(text) for text in ("1x1x4", "1x2x2"))
    assert count_hops(EMPIRICAL, one.node, one.socket).once[0].tolist() == [1, 0, 0]
    assert count_hops(EMPIRICAL, several.node, several.socket).once[0].tolist() == [0, 1, 0]
