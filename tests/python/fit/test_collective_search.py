"""The elements that times were drawn with are found, and no others."""

import json
from dataclasses import replace

import numpy as np
import pytest

from earlybird.fit import collective as fitting
from earlybird.fit import collective_search
from earlybird.fit.collective_comparison import verdict
from earlybird.fit.collective_search import Structure, fit
from earlybird.fit.observations import read_runs
from earlybird.models.collective import CollectiveCosts, collective_time_s, count_hops, make_calls
from tests.collective_runs import (
    ALPHA_S,
    BETA_S_PER_BYTE,
    forms_of,
    planted_s,
    rows_of,
    write_run,
)

INTER = 2


def test_a_protocol_of_large_messages_is_found(tmp_path):
    def switched_s(operation, method, node, socket, size):
        return planted_s(operation, method, node, socket, size) * (1 if size < 4096 else 3)

    parameters = forms_of(write_run(tmp_path / "run", switched_s))["binomial"].parameters
    assert parameters.min_bytes == (0, 4096)
    assert parameters.alpha_s[1, 0, INTER] == pytest.approx(3 * ALPHA_S[INTER], rel=0.1)


def test_what_a_local_reduction_costs_is_taken_from_its_own_measurement(tmp_path):
    gamma = 2e-9
    path = write_run(
        tmp_path / "run",
        lambda *what: planted_s(*what, gamma_r_s_per_byte=gamma),
        operations=("reduce",),
        reduce_local_s=lambda size: 1e-7 + gamma * size,
    )
    form = forms_of(path)["binomial"]
    assert form.tree == "binomial-halving"
    assert form.parameters.gamma_r_s_per_byte == pytest.approx(gamma, rel=0.01)
    assert form.parameters.beta_s_per_byte[0, 0, INTER] == pytest.approx(BETA_S_PER_BYTE[INTER], rel=0.05)


def test_links_that_messages_share_are_found(tmp_path):
    """Two nodes, ranks in turn: the last round of a doubling tree crosses with all messages at once."""

    def crowded_s(operation, method, node, socket, size):
        calls = make_calls([count_hops("binomial-doubling", node, socket)], [size], [0])
        costs = CollectiveCosts(
            np.array([0]), np.array([[ALPHA_S]]), np.array([[BETA_S_PER_BYTE]]), shared="links"
        )
        return float(collective_time_s(calls, costs)[0])

    path = write_run(
        tmp_path / "run", crowded_s, ranks=(2, 4, 8, 12, 16), map_by=("core", "node"), shape="2x1x8"
    )
    form = forms_of(path)["binomial"]
    assert form.parameters.shared == "links"
    assert form.parameters.beta_s_per_byte[0, 0, INTER] == pytest.approx(BETA_S_PER_BYTE[INTER], rel=0.05)


@pytest.mark.parametrize("bound", ["link", "work"])
def test_bounds_other_than_the_tree_are_found(tmp_path, bound):
    """Links that store messages, and cores that ranks share, bound the times instead of adding to them."""
    method_alpha, more = np.array([[[0.0, 0.0, 2e-5]]]), {"link_s_per_byte": 4e-8}
    if bound == "work":
        more = {"work_alpha_s": 1e-4, "work_beta_s_per_byte": 1e-8, "work_from_ranks": 3}

    def bounded_s(operation, method, node, socket, size):
        calls = make_calls([count_hops("binomial-halving", node, socket)], [size], [0])
        costs = CollectiveCosts(np.array([0]), method_alpha, 1e-4 * method_alpha, **more)
        return float(collective_time_s(calls, costs)[0])

    path = write_run(
        tmp_path / "run", bounded_s, mpi="mpich", oversubscribed=lambda ranks: bound == "work" and ranks > 2
    )
    form = forms_of(path)["binomial"]
    for name, value in more.items():
        assert getattr(form.parameters, name) == pytest.approx(value, rel=0.1)
    assert form.extra["error"] < 0.03 and form.extra["extrapolation_error"] < 0.05


def test_what_an_idle_link_carries_at_once_is_found(tmp_path):
    """A pipeline over links with a token bucket; its smallest size alone does not show their rate."""
    burst_bytes, segment = 3000, 8192

    def shaped_s(operation, method, node, socket, size):
        calls = make_calls([count_hops("chain", node, socket)], [size], [segment])
        costs = CollectiveCosts(
            np.array([0]), np.array([[[0, 0, 4e-5]]]), np.array([[[0, 0, 1.6e-7]]]), burst_bytes=burst_bytes
        )
        return float(collective_time_s(calls, costs)[0])

    sizes = (1 << 10, 1 << 12, 1 << 14, 1 << 16)
    path = write_run(tmp_path / "run", shaped_s, methods=(f"pipeline:{segment}",), sizes=sizes)
    form = forms_of(path)["pipeline"]
    assert form.parameters.burst_bytes == pytest.approx(burst_bytes, rel=0.1)
    assert form.parameters.alpha_s[0, 0, INTER] == pytest.approx(4e-5, rel=0.1)
    assert form.parameters.beta_s_per_byte[0, 0, INTER] == pytest.approx(1.6e-7, rel=0.05)
    assert form.extra["extrapolation_error"] < 0.05 and form.extra["held_out_error"] < 0.05
    (whole,) = (row for row in form.extra["alternatives"] if "fitted_to" in row)
    alone, theirs = rows_of(form, "1 KiB by node")
    assert whole["extrapolation_error"] < 0.5 * alone["extrapolation_error"]
    assert whole["extrapolation_error"] < theirs["extrapolation_error"] and "aicc" not in whole
    said = verdict("bcast", "pipeline", form.extra["alternatives"])
    assert "alpha-beta fitted to all sizes has an error of" in said
    assert json.loads(json.dumps(form.to_json()))["parameters"]["burst_bytes"] == form.parameters.burst_bytes


def test_what_an_idle_link_carries_is_found_between_the_sizes_tried_first(tmp_path):
    burst_bytes = 5000

    def shaped_s(operation, method, node, socket, size):
        calls = make_calls([count_hops("chain", node, socket)], [size], [8192])
        costs = CollectiveCosts(
            np.array([0]), np.array([[[0, 0, 4e-5]]]), np.array([[[0, 0, 1.6e-7]]]), burst_bytes=burst_bytes
        )
        return float(collective_time_s(calls, costs)[0])

    sizes = (1 << 10, 1 << 12, 1 << 14, 1 << 16)
    path = write_run(tmp_path / "run", shaped_s, methods=("pipeline:8192",), sizes=sizes)
    assert forms_of(path)["pipeline"].parameters.burst_bytes == pytest.approx(burst_bytes, rel=0.06)


def test_messages_that_idle_links_carry_at_once_still_wait_for_the_busiest_link(tmp_path):
    """Four nodes whose ranks pass 2 KiB on, in a separate protocol whose hops do not show its rate."""

    def shaped_s(operation, method, node, socket, size):
        costs = CollectiveCosts(
            np.array([0, 4096]),
            np.array([[[0, 0, 4e-5]], [[0, 0, 8e-5]]]),
            np.array([[[0, 0, 1.6e-7]]] * 2),
            burst_bytes=2867,
        )
        calls = make_calls([count_hops("chain", node, socket)], [size], [8192])
        return float(collective_time_s(calls, costs)[0])

    path = write_run(
        tmp_path / "run",
        shaped_s,
        methods=("pipeline:8192",),
        ranks=(2, 4, 6, 8, 12, 16),
        sizes=(512, 1024, 2048, 4096, 8192, 32768),
        shape="4x1x8",
    )
    parameters = forms_of(path)["pipeline"].parameters
    # Where 2 KiB waits for the link at every number of ranks, either protocol may have it.
    assert parameters.min_bytes in ((0, 2048), (0, 4096))
    assert parameters.beta_s_per_byte[:, 0, INTER] == pytest.approx(1.6e-7, rel=0.06)
    # Latency and burst are interchangeable: 150 bytes are 24 us.
    assert parameters.alpha_s[:, 0, INTER] == pytest.approx([4e-5, 8e-5], abs=2.5e-5)
    assert parameters.burst_bytes == pytest.approx(2867, abs=150)


def test_a_structure_is_tried_once_in_a_step_and_what_adds_nothing_stays_out(tmp_path, monkeypatch):
    """Sizes that double have shares in common, half of one byte is none, and rounding is no reason."""
    collectives = read_runs(
        [write_run(tmp_path / "run", planted_s, methods=("pipeline",), sizes=(1, 2, 4, 8))]
    )
    points = fitting.PointReader(collectives.collectives, "chain").points(collectives.collectives.table)
    tried = []

    def noted(points, structure, terms):
        tried.append(structure)
        # As likely as the initial structure, except for rounding.
        return replace(fit(points, Structure(), terms), structure=structure, criterion=-1e-9 * len(tried))

    monkeypatch.setattr(collective_search, "fit", noted)
    assert collective_search.search(points, "chain").structure == Structure()
    assert len(tried) == len(set(tried)) > 4


def test_hops_that_always_come_together_are_taken_for_alike(tmp_path):
    """Of odd numbers of ranks by socket, linear has as many hops on a socket as across."""

    def alike_s(operation, method, node, socket, size):
        return (len(node) - 1) * (2e-6 + 1e-10 * size)

    parameters = forms_of(
        write_run(
            tmp_path / "run", alike_s, methods=("linear",), ranks=(3, 5, 7), map_by=("socket",), shape="1x2x4"
        )
    )["linear"].parameters
    on_socket, across = parameters.alpha_s[0, 0, :INTER]
    assert on_socket == pytest.approx(across, rel=0.2)
    assert on_socket + across == pytest.approx(4e-6, rel=0.1)


def test_a_disturbed_launch_does_not_bend_the_form(tmp_path):
    def disturbed_s(operation, method, node, socket, size):
        return planted_s(operation, method, node, socket, size) * (
            20 if len(node) == 5 and size < 4096 else 1
        )

    form = forms_of(write_run(tmp_path / "run", disturbed_s, launches=1, shape="8x1x1"))["binomial"]
    assert form.parameters.alpha_s[0, 0, INTER] == pytest.approx(ALPHA_S[INTER], rel=0.05)
    assert form.extra["held_out_error"] < 0.1
