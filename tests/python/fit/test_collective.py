"""Collectives give back the coefficients they were drawn from, and say which form to believe."""

import json
from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.collective_form import collective_forms
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.profile import load_profile, save_profile
from earlybird.data.run import Run
from earlybird.fit import collective as fitting
from earlybird.fit import collective_search
from earlybird.fit.collective_comparison import ALL_SIZES, MEAN, compare, verdict
from earlybird.fit.collective_search import Structure, fit
from earlybird.fit.observations import read_runs
from earlybird.fit.profile import fit_profile
from earlybird.models.collective import CollectiveCosts, collective_time_s, count_hops, make_calls
from tests.collective_runs import (
    ALPHA_S,
    BETA_S_PER_BYTE,
    FIRST_ALPHA_S,
    FIRST_BETA_S_PER_BYTE,
    SIZES,
    planted_s,
    write_run,
)

INTRA, INTER = 0, 2


def forms_of(*paths):
    return {form.algorithm: form for form in collective_forms(fit_profile(read_runs(paths)))}


def rows_of(form, points):
    rows = [row for row in form.extra["alternatives"] if row["points"] == points]
    ours, theirs = (row for row in rows if "fitted_to" not in row)
    assert ours["form"] == "alpha-beta" and theirs["form"].startswith("report-")
    return ours, theirs


def predicted_s(form, node, socket, size_bytes, segment_bytes=0):
    calls = make_calls([count_hops(form.structure, node, socket)], [size_bytes], [segment_bytes])
    return float(collective_time_s(calls, CollectiveCosts(**form.parameters.columns()))[0])


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Forms of 2..8 ranks on 4 nodes of 2 cores, by node and by core."""
    path = write_run(
        tmp_path_factory.mktemp("planted") / "run",
        planted_s,
        ways=("linear", "pipeline:8192", "pipeline:65536", "binomial"),
        map_by=("node", "core"),
        shape="4x1x2",
    )
    return forms_of(path)


@pytest.mark.parametrize("algorithm", ["linear", "pipeline", "binomial"])
def test_planted_coefficients_come_back(planted, algorithm):
    parameters = planted[algorithm].parameters
    assert parameters.min_bytes == (0,)
    for level in (INTRA, INTER):
        rel = 0.25 if algorithm == "linear" and level == INTRA else 0.06
        assert parameters.alpha_s[0, 0, level] == pytest.approx(ALPHA_S[level], rel=rel)
        if not (algorithm == "linear" and level == INTRA):
            assert parameters.beta_s_per_byte[0, 0, level] == pytest.approx(BETA_S_PER_BYTE[level], rel=0.06)
    if algorithm == "linear":
        assert parameters.alpha_s[0, 1, INTER] == pytest.approx(FIRST_ALPHA_S[INTER], rel=0.1)
        assert parameters.beta_s_per_byte[0, 1, INTER] == pytest.approx(FIRST_BETA_S_PER_BYTE[INTER], rel=0.3)


@pytest.mark.parametrize("algorithm", ["linear", "pipeline", "binomial"])
def test_the_physical_form_extrapolates_where_the_reports_do_not(planted, algorithm):
    ours, theirs = rows_of(planted[algorithm], ALL_SIZES)
    assert ours["extrapolation_error"] < 0.05 < 0.5 < theirs["extrapolation_error"]
    assert ours["held_out_error"] < 0.03 and ours["held_out_error_sizes"] < 0.03
    assert ours["aicc"] + 100 < theirs["aicc"]
    said = verdict("bcast", algorithm, planted[algorithm].extra["alternatives"])
    assert "believe alpha-beta" in said and "report-3 grows exponentially in the size" in said


def test_every_tree_is_named_and_tells_where_it_holds(planted):
    assert {name: form.tree for name, form in planted.items()} == {
        "linear": "linear",
        "pipeline": "chain",
        "binomial": "binomial-doubling",
    }
    form = planted["pipeline"]
    assert form.segments_bytes == (8192, 65536)
    assert form.range == {"ranks": (2, 8), "size_bytes": (1, 4**9)}
    placement = parse_layout("4x1x2", "node")
    exact_s = planted_s("bcast", "pipeline:8192", placement.node[:5], placement.socket[:5], 4**9)
    assert form.measured[5, 4**9, 8192, "node"] == pytest.approx(exact_s, rel=0.1)
    assert form.map_by == ("node", "core")
    assert form.machine == {"nodes": 4, "sockets": 1, "cores": 2}
    assert len(form.replicates) == fitting.NUM_REPLICATES
    drawn = [one.alpha_s[0, 0, INTER] for one in form.replicates]
    assert min(drawn) < form.parameters.alpha_s[0, 0, INTER] < max(drawn)


def test_a_form_of_one_size_is_fitted_to_all_mappings(tmp_path):
    path = write_run(
        tmp_path / "run", planted_s, sizes=(1,), map_by=("node", "core"), shape="4x1x2", launches=1
    )
    others = forms_of(path)["binomial"].extra["alternatives"]
    assert {row["fitted_to"] for row in others if "fitted_to" in row} == {"all mappings"}


def test_a_form_of_the_report_that_is_true_is_believed(tmp_path):
    """ln T = a + k*P, the report's form 2, at one size: no logarithm of P describes it."""

    def exponential_s(operation, way, node, socket, size):
        return 1e-6 * np.exp(1.2472 + 0.3 * len(node))

    form = forms_of(write_run(tmp_path / "run", exponential_s, sizes=(1,)))["binomial"]
    ours, theirs = rows_of(form, "1 B by node")
    assert theirs["form"] == "report-2" and theirs["aicc"] + 10 < ours["aicc"]
    assert "believe report-2" in verdict("bcast", "binomial", [ours, theirs])


def test_the_size_grid_of_the_report_is_believed_where_it_is_true(tmp_path):
    def grid_s(operation, way, node, socket, size):
        return 1e-6 * 2 ** (0.644 * np.log2(len(node)) + 8.131e-6 * size)

    path = write_run(
        tmp_path / "run", grid_s, sizes=(1, 1 << 10, 1 << 16, 1 << 18, 1 << 19, 1 << 20, 3 << 19)
    )
    ours, theirs = rows_of(forms_of(path)["binomial"], ALL_SIZES)
    assert theirs["form"] == "report-3" and theirs["aicc"] + 10 < ours["aicc"]


def test_a_protocol_of_large_messages_is_found(tmp_path):
    def switched_s(operation, way, node, socket, size):
        return planted_s(operation, way, node, socket, size) * (1 if size < 4096 else 3)

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

    def crowded_s(operation, way, node, socket, size):
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
def test_what_the_last_rank_waits_for_beside_the_tree_is_found(tmp_path, bound):
    """Links that store messages, and cores that ranks share, bound the times instead of adding to them."""
    way_alpha, more = np.array([[[0.0, 0.0, 2e-5]]]), {"link_s_per_byte": 4e-8}
    if bound == "work":
        more = {"work_alpha_s": 1e-4, "work_beta_s_per_byte": 1e-8, "work_from_ranks": 3}

    def bounded_s(operation, way, node, socket, size):
        calls = make_calls([count_hops("binomial-halving", node, socket)], [size], [0])
        costs = CollectiveCosts(np.array([0]), way_alpha, 1e-4 * way_alpha, **more)
        return float(collective_time_s(calls, costs)[0])

    path = write_run(
        tmp_path / "run", bounded_s, mpi="mpich", oversubscribed=lambda ranks: bound == "work" and ranks > 2
    )
    form = forms_of(path)["binomial"]
    for name, value in more.items():
        assert getattr(form.parameters, name) == pytest.approx(value, rel=0.1)
    assert form.extra["error"] < 0.03 and form.extra["extrapolation_error"] < 0.05


def test_what_an_idle_link_carries_at_once_is_found(tmp_path):
    """A pipeline over links with a token bucket, of whose rate its smallest size alone tells nothing."""
    swift, segment = 3000, 8192

    def shaped_s(operation, way, node, socket, size):
        calls = make_calls([count_hops("chain", node, socket)], [size], [segment])
        costs = CollectiveCosts(
            np.array([0]), np.array([[[0, 0, 4e-5]]]), np.array([[[0, 0, 1.6e-7]]]), swift_bytes=swift
        )
        return float(collective_time_s(calls, costs)[0])

    sizes = (1 << 10, 1 << 12, 1 << 14, 1 << 16)
    path = write_run(tmp_path / "run", shaped_s, ways=(f"pipeline:{segment}",), sizes=sizes)
    form = forms_of(path)["pipeline"]
    assert form.parameters.swift_bytes == pytest.approx(swift, rel=0.1)
    assert form.parameters.alpha_s[0, 0, INTER] == pytest.approx(4e-5, rel=0.1)
    assert form.parameters.beta_s_per_byte[0, 0, INTER] == pytest.approx(1.6e-7, rel=0.05)
    assert form.extra["extrapolation_error"] < 0.05 and form.extra["held_out_error"] < 0.05
    (whole,) = (row for row in form.extra["alternatives"] if "fitted_to" in row)
    alone, theirs = rows_of(form, "1 KiB by node")
    assert whole["extrapolation_error"] < 0.5 * alone["extrapolation_error"]
    assert whole["extrapolation_error"] < theirs["extrapolation_error"] and "aicc" not in whole
    said = verdict("bcast", "pipeline", form.extra["alternatives"])
    assert "alpha-beta fitted to all sizes errs by" in said
    assert json.loads(json.dumps(form.to_json()))["parameters"]["swift_bytes"] == form.parameters.swift_bytes


def test_what_an_idle_link_carries_is_found_between_the_sizes_tried_first(tmp_path):
    swift = 5000

    def shaped_s(operation, way, node, socket, size):
        calls = make_calls([count_hops("chain", node, socket)], [size], [8192])
        costs = CollectiveCosts(
            np.array([0]), np.array([[[0, 0, 4e-5]]]), np.array([[[0, 0, 1.6e-7]]]), swift_bytes=swift
        )
        return float(collective_time_s(calls, costs)[0])

    sizes = (1 << 10, 1 << 12, 1 << 14, 1 << 16)
    path = write_run(tmp_path / "run", shaped_s, ways=("pipeline:8192",), sizes=sizes)
    assert forms_of(path)["pipeline"].parameters.swift_bytes == pytest.approx(swift, rel=0.06)


def test_messages_that_idle_links_carry_at_once_still_wait_for_the_busiest_link(tmp_path):
    """Four nodes whose ranks pass 2 KiB on, in a protocol of their own that the hops tell no rate of."""

    def shaped_s(operation, way, node, socket, size):
        costs = CollectiveCosts(
            np.array([0, 4096]),
            np.array([[[0, 0, 4e-5]], [[0, 0, 8e-5]]]),
            np.array([[[0, 0, 1.6e-7]]] * 2),
            swift_bytes=2867,
        )
        calls = make_calls([count_hops("chain", node, socket)], [size], [8192])
        return float(collective_time_s(calls, costs)[0])

    path = write_run(
        tmp_path / "run",
        shaped_s,
        ways=("pipeline:8192",),
        ranks=(2, 4, 6, 8, 12, 16),
        sizes=(512, 1024, 2048, 4096, 8192, 32768),
        shape="4x1x8",
    )
    parameters = forms_of(path)["pipeline"].parameters
    # Where 2 KiB waits for the link at every number of ranks, either protocol may have it.
    assert parameters.min_bytes in ((0, 2048), (0, 4096))
    assert parameters.beta_s_per_byte[:, 0, INTER] == pytest.approx(1.6e-7, rel=0.06)
    # Latency and what is carried at once stand for each other: 150 bytes are 24 us.
    assert parameters.alpha_s[:, 0, INTER] == pytest.approx([4e-5, 8e-5], abs=2.5e-5)
    assert parameters.swift_bytes == pytest.approx(2867, abs=150)


def test_a_structure_is_tried_once_in_a_step_and_what_adds_nothing_stays_out(tmp_path, monkeypatch):
    """Sizes that double have shares in common, half of one byte is none, and rounding is no reason."""
    collectives = read_runs([write_run(tmp_path / "run", planted_s, ways=("pipeline",), sizes=(1, 2, 4, 8))])
    points = fitting.PointReader(collectives.collectives, "chain").points(collectives.collectives.table)
    tried = []

    def noted(points, structure, terms):
        tried.append(structure)
        # As likely as what there is to begin with, but for rounding.
        return replace(fit(points, Structure(), terms), structure=structure, aicc=-1e-9 * len(tried))

    monkeypatch.setattr(collective_search, "fit", noted)
    assert collective_search.search(points, "chain").structure == Structure()
    assert len(tried) == len(set(tried)) > 4


def test_hops_that_always_come_together_are_taken_for_alike(tmp_path):
    """Of odd numbers of ranks by socket, linear has as many hops on a socket as across."""

    def alike_s(operation, way, node, socket, size):
        return (len(node) - 1) * (2e-6 + 1e-10 * size)

    parameters = forms_of(
        write_run(
            tmp_path / "run", alike_s, ways=("linear",), ranks=(3, 5, 7), map_by=("socket",), shape="1x2x4"
        )
    )["linear"].parameters
    on_socket, across = parameters.alpha_s[0, 0, :INTER]
    assert on_socket == pytest.approx(across, rel=0.2)
    assert on_socket + across == pytest.approx(4e-6, rel=0.1)


def test_an_algorithm_without_a_known_tree_is_interpolated(tmp_path):
    def ring_s(operation, way, node, socket, size):
        return (len(node) - 1) * (1e-5 + size * 1e-9)

    path = write_run(tmp_path / "run", ring_s, ways=("ring", "default"), operations=("allgather",))
    for form in forms_of(path).values():
        assert form.tree is None
        assert form.to_json()["form"] == "empirical"
        assert form.extra["held_out_error"] < 0.05
        node = np.arange(7)
        assert predicted_s(form, node, 0 * node, 1 << 14) == pytest.approx(
            6 * (1e-5 + 1e-9 * 2**14), rel=0.05
        )


def test_placement_observed_counts_before_the_one_asked_for(tmp_path):
    """Without a record of it the layout is believed; both give the same here."""
    told = forms_of(write_run(tmp_path / "told", planted_s, ways=("pipeline",)))
    asked = forms_of(write_run(tmp_path / "asked", planted_s, ways=("pipeline",), placement=False))
    assert told["pipeline"].to_json()["parameters"] == asked["pipeline"].to_json()["parameters"]


def test_a_profile_of_collectives_alone_loads_again(tmp_path):
    profile = fit_profile(read_runs([write_run(tmp_path / "run", planted_s)]))
    assert not profile.levels
    assert profile.context["flavour"] == "openmpi"
    save_profile(profile, tmp_path / "profile.json")
    again = load_profile(tmp_path / "profile.json")
    assert [form.to_json() for form in collective_forms(again)] == list(profile.forms)


def test_runs_with_ping_pongs_besides_have_both(make_run, tmp_path):
    path = make_run("both", kernel="pingpong", ns=(1,), launch={"flavour": "openmpi", "version": "1.0"})
    profile = fit_profile(read_runs([path, write_run(tmp_path / "collectives", planted_s)]))
    assert list(profile.levels) == ["intra_socket"]
    assert [form.algorithm for form in collective_forms(profile)] == ["binomial"]


def test_one_launch_has_no_intervals_and_few_points_no_form(tmp_path):
    path = write_run(tmp_path / "run", planted_s, ranks=(2,), sizes=(1, 2, 4, 8, 1 << 16), launches=1)
    profile = fit_profile(read_runs([path]))
    (form,) = collective_forms(profile)
    assert form.replicates == ()
    warnings = " ".join(profile.extra["warnings"])
    assert "one launch of every point" in warnings and "one process count" in warnings
    few = write_run(tmp_path / "few", planted_s, operations=("reduce",), ranks=(2,), sizes=(1, 64))
    both = fit_profile(read_runs([path, few]))
    assert [form.operation for form in collective_forms(both)] == ["bcast"]
    assert "reduce: binomial has fewer than 4 points" in " ".join(both.extra["warnings"])
    with pytest.raises(InputError, match="fewer than 4 points"):
        fit_profile(read_runs([few]))


def test_as_few_points_as_parameters_have_no_criterion_and_make_a_profile_all_the_same(tmp_path):
    profile = fit_profile(
        read_runs([write_run(tmp_path / "run", planted_s, ranks=(2, 4), sizes=(1024, 1 << 16))])
    )
    save_profile(profile, tmp_path / "profile.json")
    (form,) = collective_forms(load_profile(tmp_path / "profile.json"))
    assert form.extra["points"] == 4 and "aicc" not in form.extra


def test_launches_of_different_points_are_not_drawn_again_for_intervals(tmp_path):
    paths = [
        write_run(tmp_path / f"of-{ranks}", planted_s, ranks=(ranks,), sizes=(1, 64, 1 << 16), launches=1)
        for ranks in (2, 4)
    ]
    (form,) = collective_forms(fit_profile(read_runs(paths)))
    assert form.replicates == ()


def test_points_of_a_single_launch_leave_their_algorithm_without_intervals(tmp_path):
    """Drawn again those points are the same: an interval would be too narrow."""
    more = {"sizes": (1, 64, 1 << 16)}
    paths = [
        write_run(tmp_path / "often", planted_s, ranks=(2, 4), **more),
        write_run(tmp_path / "once", planted_s, ranks=(8,), launches=1, **more),
        write_run(tmp_path / "other", planted_s, ranks=(2, 4), ways=("linear",), **more),
    ]
    profile = fit_profile(read_runs(paths))
    found = {form.algorithm: form for form in collective_forms(profile)}
    assert found["binomial"].replicates == () and found["linear"].replicates
    assert "bcast: binomial has points of a single launch, so no intervals" in " ".join(
        profile.extra["warnings"]
    )


def test_points_that_an_interrupted_launch_did_not_reach_leave_no_intervals(tmp_path):
    path = write_run(tmp_path / "run", planted_s, ranks=(2, 4), sizes=(1, 64, 1 << 16), launches=2)
    samples = (path / "samples.ndjson").read_text().splitlines()
    (path / "samples.ndjson").write_text("\n".join(samples[:-1]) + "\n")
    profile = fit_profile(read_runs([path]))
    (form,) = collective_forms(profile)
    assert form.replicates == () and "single launch" in " ".join(profile.extra["warnings"])


def test_a_launch_beside_those_that_measured_the_same_takes_no_intervals_away(tmp_path):
    more = {"sizes": (1, 64, 1 << 16), "ranks": (2, 4)}
    both = write_run(tmp_path / "both", planted_s, ways=("binomial", "linear"), **more)
    again = write_run(tmp_path / "again", planted_s, launches=1, **more)
    profile = fit_profile(read_runs([both, again]))
    assert all(form.replicates for form in collective_forms(profile))
    assert "single launch" not in " ".join(profile.extra["warnings"])


def test_times_of_ranks_that_sat_otherwise_are_not_those_of_the_machine(tmp_path):
    """The machine is the largest measured; on fewer cores its first ranks were spread over more nodes."""
    more = {"map_by": ("core",), "sizes": (1, 64, 1 << 16), "launches": 1}
    paths = [
        write_run(tmp_path / "narrow", planted_s, ranks=(2, 4), shape="2x1x2", **more),
        write_run(tmp_path / "wide", planted_s, ranks=(8,), shape="2x1x4", **more),
    ]
    (form,) = collective_forms(fit_profile(read_runs(paths)))
    assert form.machine["cores"] == 4
    assert {ranks for ranks, *_ in form.measured} == {2, 8}


def test_a_form_is_called_good_only_where_it_predicts():
    ours = {"points": ALL_SIZES, "form": "alpha-beta", "aicc": 1.0, "held_out_error": 0.7}
    theirs = ours | {"form": "report-3", "aicc": 50.0, "held_out_error": 0.9}
    assert "neither is good" in verdict("bcast", "linear", [ours, theirs])
    assert "neither" not in verdict("bcast", "linear", [ours | {"held_out_error": 0.1}, theirs])


def test_ranks_that_share_cores_of_a_node_are_left_out_where_others_tell(tmp_path):
    def shared_s(operation, way, node, socket, size):
        return planted_s(operation, way, node, socket, size) * (1000 if len(node) > 4 else 1)

    more = {"shape": "1x1x8", "map_by": ("core",), "oversubscribed": lambda ranks: ranks > 4}
    profile = fit_profile(read_runs([write_run(tmp_path / "inside", shared_s, **more)]))
    (form,) = collective_forms(profile)
    assert form.parameters.alpha_s[0, 0, INTRA] == pytest.approx(ALPHA_S[INTRA], rel=0.05)
    assert form.range["ranks"] == (2, 4)
    assert (
        "bcast: at 5, 6, 7, 8 ranks there were more of them than cores, which is left out"
        in (profile.extra["warnings"])
    )
    # Nodes on one machine share its cores too, where the link is the limit.
    between = write_run(tmp_path / "between", planted_s, oversubscribed=lambda ranks: ranks > 2)
    assert forms_of(between)["binomial"].range["ranks"] == (2, 8)


def test_a_disturbed_launch_does_not_bend_the_form(tmp_path):
    def disturbed_s(operation, way, node, socket, size):
        return planted_s(operation, way, node, socket, size) * (20 if len(node) == 5 and size < 4096 else 1)

    form = forms_of(write_run(tmp_path / "run", disturbed_s, launches=1, shape="8x1x1"))["binomial"]
    assert form.parameters.alpha_s[0, 0, INTER] == pytest.approx(ALPHA_S[INTER], rel=0.05)
    assert form.extra["held_out_error"] < 0.1


def test_the_mean_over_ranks_is_compared_where_asked(tmp_path):
    collectives = read_runs([write_run(tmp_path / "run", planted_s)]).collectives
    # The drawn ranks are done after 0.7 of the time of the last one.
    assert (collectives.table.mean_s < collectives.table.time_s).all()
    ours, theirs, *_ = compare(collectives, "bcast", "binomial", "openmpi", MEAN)
    assert ours["times"] == theirs["times"] == MEAN


def test_a_mean_over_ranks_whose_times_were_not_kept_is_asked_for_in_vain(tmp_path):
    collectives = read_runs([write_run(tmp_path / "run", planted_s, launches=1)]).collectives
    lost = replace(collectives, table=collectives.table.assign(mean_s=np.nan))
    with pytest.raises(InputError, match="bcast binomial: no sample has the times of every rank"):
        compare(lost, "bcast", "binomial", "openmpi", MEAN)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ranks": 1}, "ranks=1"),
        ({"root": 9}, "root=9"),
        ({"operation": "scan"}, "operation=scan"),
        ({"map_by": "moon"}, "map_by=moon"),
    ],
)
def test_samples_that_make_no_sense_are_refused_with_what_they_say(tmp_path, change, words):
    path = write_run(tmp_path / "run", planted_s, ranks=(2,), sizes=(1,), launches=1)
    text = (path / "samples.ndjson").read_text()
    for key, value in change.items():
        old = {"ranks": '"ranks": 2', "root": '"root": 0', "operation": '"bcast"', "map_by": '"node"'}[key]
        new = f'"{key}": {value}' if isinstance(value, int) else f'"{value}"'
        text = text.replace(old, new)
    (path / "samples.ndjson").write_text(text)
    with pytest.raises(InputError, match=words):
        read_runs([path])


def test_a_run_of_wrong_results_is_no_profile(tmp_path):
    path = write_run(tmp_path / "run", planted_s, ranks=(2,), sizes=(1,), launches=1, validated=False)
    with pytest.raises(Exception, match="wrong data"):
        read_runs([path])


def test_structures_are_those_the_mpis_use():
    assert fitting.structure_of("openmpi", "bcast", "binomial") == "binomial-doubling"
    assert fitting.structure_of("openmpi", "reduce", "binomial") == "binomial-halving"
    assert fitting.structure_of("mpich", "bcast", "binomial") == "binomial-halving"
    assert fitting.structure_of("mpich", "reduce", "own-binomial") == "binomial-doubling"
    assert fitting.structure_of("openmpi", "gather", "own-linear") == "linear"
    for operation, algorithm in (("gather", "binomial"), ("bcast", "default"), ("allgather", "linear")):
        assert fitting.structure_of("openmpi", operation, algorithm) == "empirical"


def test_an_mpi_of_any_name_is_known_by_what_its_library_says(tmp_path):
    path = write_run(
        tmp_path / "run", planted_s, mpi="system", library_version="Open MPI v5.0.11, package", launches=1
    )
    form = forms_of(path)["binomial"]
    assert form.tree == "binomial-doubling" and form.extra["family"] == "openmpi"
    unknown = write_run(tmp_path / "unknown", planted_s, mpi="system", launches=1)
    assert forms_of(unknown)["binomial"].tree is None


def test_an_algorithm_that_a_person_forced_is_not_mixed_with_the_mpis_choice(tmp_path):
    runs = []
    for name, forced in (("free", {}), ("told", {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"})):
        runs.append(write_run(tmp_path / name, planted_s, ranks=(2,), sizes=SIZES[:4], launches=1))
        path = runs[-1] / "launches.ndjson"
        launch = json.loads(path.read_text()) | {"environment": forced, "set_by_launcher": []}
        path.write_text(json.dumps(launch) + "\n")
        assert forms_of(runs[-1])
    with pytest.raises(InputError, match="OMPI_MCA_coll_tuned_use_dynamic_rules"):
        forms_of(*runs)


def test_samples_are_read_one_by_one(tmp_path):
    run = Run.open(write_run(tmp_path / "run", planted_s, ranks=(2,), sizes=(1, 2), launches=1))
    assert next(run.each_sample()).config["size_bytes"] == 1
    assert len(list(run.each_sample())) == len(run.samples()) == 2
