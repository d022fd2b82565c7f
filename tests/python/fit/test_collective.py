"""Runs of collectives become forms: what is read, what they hold, and when there are intervals."""

import json

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.profile import load_profile, save_profile
from earlybird.data.run import Run
from earlybird.fit import collective as fitting
from earlybird.fit.collective_comparison import ALL_SIZES, verdict
from earlybird.fit.observations import read_runs
from earlybird.fit.profile import fit_profile
from earlybird.fit.resampling import NUM_REPLICATES
from earlybird.models.collective import CollectiveCosts, collective_time_s, count_hops, make_calls
from tests.collective_runs import (
    ALPHA_S,
    BETA_S_PER_BYTE,
    FIRST_ALPHA_S,
    FIRST_BETA_S_PER_BYTE,
    SIZES,
    forms_of,
    planted_s,
    rows_of,
    write_run,
)

INTRA, INTER = 0, 2


def predicted_s(form, node, socket, size_bytes, segment_bytes=0):
    calls = make_calls([count_hops(form.structure, node, socket)], [size_bytes], [segment_bytes])
    return float(collective_time_s(calls, CollectiveCosts(**form.parameters.columns()))[0])


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Forms of 2..8 ranks on 4 nodes of 2 cores, by node and by core."""
    path = write_run(
        tmp_path_factory.mktemp("planted") / "run",
        planted_s,
        methods=("linear", "pipeline:8192", "pipeline:65536", "binomial"),
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
    assert "trust alpha-beta" in said and "insaghi-3 grows exponentially in the size" in said


def test_every_tree_is_named_and_tells_where_it_holds(planted):
    assert {name: form.tree for name, form in planted.items()} == {
        "linear": "linear",
        "pipeline": "chain",
        "binomial": "binomial-doubling",
    }
    form = planted["pipeline"]
    assert form.range == {"ranks": (2, 8), "size_bytes": (1, 4**9), "segments_bytes": (8192, 65536)}
    placement = parse_layout("4x1x2", "node")
    exact_s = planted_s("bcast", "pipeline:8192", placement.node[:5], placement.socket[:5], 4**9)
    measured_s = {tuple(point): time_s for *point, time_s in form.measured}
    assert measured_s[5, 4**9, 8192, "node"] == pytest.approx(exact_s, rel=0.1)
    assert form.map_by == ("node", "core")
    assert form.machine == {"nodes": 4, "sockets": 1, "cores": 2}
    assert len(form.replicates) == NUM_REPLICATES
    drawn = [one.alpha_s[0, 0, INTER] for one in form.replicates]
    assert min(drawn) < form.parameters.alpha_s[0, 0, INTER] < max(drawn)


def test_an_algorithm_without_a_known_tree_is_interpolated(tmp_path):
    def ring_s(operation, method, node, socket, size):
        return (len(node) - 1) * (1e-5 + size * 1e-9)

    path = write_run(tmp_path / "run", ring_s, methods=("ring", "default"), operations=("allgather",))
    for form in forms_of(path).values():
        assert form.tree is None
        assert form.to_json()["form"] == "empirical"
        assert form.extra["held_out_error"] < 0.05
        node = np.arange(7)
        assert predicted_s(form, node, 0 * node, 1 << 14) == pytest.approx(
            6 * (1e-5 + 1e-9 * 2**14), rel=0.05
        )


def test_placement_observed_counts_before_the_one_asked_for(tmp_path):
    """Without a recorded placement the layout counts; both give the same here."""
    few = {"methods": ("pipeline",), "ranks": (2, 4, 8), "sizes": (1, 64, 1 << 16)}
    observed = forms_of(write_run(tmp_path / "observed", planted_s, **few))
    asked = forms_of(write_run(tmp_path / "asked", planted_s, placement=False, **few))
    assert observed["pipeline"].to_json()["parameters"] == asked["pipeline"].to_json()["parameters"]


def test_a_profile_of_collectives_alone_loads_again(tmp_path):
    profile = fit_profile(read_runs([write_run(tmp_path / "run", planted_s)]))
    assert not profile.levels
    assert profile.context["flavour"] == "openmpi"
    save_profile(profile, tmp_path / "profile.json")
    again = load_profile(tmp_path / "profile.json")
    assert not any(form.doubt for form in again.collectives)
    assert [form.to_json() for form in again.collectives] == profile.to_json()["forms"]


def test_a_form_that_does_not_describe_its_points_says_so(tmp_path):
    def wild_s(operation, method, node, socket, size):
        return 1e-5 * 1000 ** ((size.bit_length() + len(node)) % 2)

    profile = fit_profile(read_runs([write_run(tmp_path / "run", wild_s)]))
    (form,) = profile.collectives
    assert form.doubt.startswith("the form of binomial is off by ")
    assert any(one == f"bcast: {form.doubt}" for one in profile.extra["warnings"])


def test_runs_that_also_have_ping_pongs_give_both(make_run, tmp_path):
    path = make_run("both", kernel="pingpong", ns=(1,), launch={"flavour": "openmpi", "version": "1.0"})
    profile = fit_profile(read_runs([path, write_run(tmp_path / "collectives", planted_s)]))
    assert list(profile.levels) == ["intra_socket"]
    assert [form.algorithm for form in profile.collectives] == ["binomial"]


def test_one_launch_has_no_intervals_and_few_points_no_form(tmp_path):
    path = write_run(tmp_path / "run", planted_s, ranks=(2,), sizes=(1, 2, 4, 8, 1 << 16), launches=1)
    profile = fit_profile(read_runs([path]))
    (form,) = profile.collectives
    assert form.replicates == ()
    warnings = " ".join(profile.extra["warnings"])
    assert "one launch of every point" in warnings and "one process count" in warnings
    few = write_run(tmp_path / "few", planted_s, operations=("reduce",), ranks=(2,), sizes=(1, 64))
    both = fit_profile(read_runs([path, few]))
    assert [form.operation for form in both.collectives] == ["bcast"]
    assert "reduce: binomial has fewer than 4 points" in " ".join(both.extra["warnings"])
    with pytest.raises(InputError, match="fewer than 4 points"):
        fit_profile(read_runs([few]))


def test_as_few_points_as_parameters_have_no_criterion_and_make_a_profile_all_the_same(tmp_path):
    profile = fit_profile(
        read_runs([write_run(tmp_path / "run", planted_s, ranks=(2, 4), sizes=(1024, 1 << 16))])
    )
    save_profile(profile, tmp_path / "profile.json")
    (form,) = load_profile(tmp_path / "profile.json").collectives
    assert form.extra["points"] == 4 and "aicc" not in form.extra


def test_launches_of_different_points_are_not_drawn_again_for_intervals(tmp_path):
    paths = [
        write_run(tmp_path / f"of-{ranks}", planted_s, ranks=(ranks,), sizes=(1, 64, 1 << 16), launches=1)
        for ranks in (2, 4)
    ]
    (form,) = fit_profile(read_runs(paths)).collectives
    assert form.replicates == ()


def test_points_of_a_single_launch_leave_their_algorithm_without_intervals(tmp_path):
    """Drawn again those points are the same: an interval would be too narrow."""
    more = {"sizes": (1, 64, 1 << 16)}
    paths = [
        write_run(tmp_path / "often", planted_s, ranks=(2, 4), **more),
        write_run(tmp_path / "once", planted_s, ranks=(8,), launches=1, **more),
        write_run(tmp_path / "other", planted_s, ranks=(2, 4), methods=("linear",), **more),
    ]
    profile = fit_profile(read_runs(paths))
    found = {form.algorithm: form for form in profile.collectives}
    assert found["binomial"].replicates == () and found["linear"].replicates
    assert "bcast: binomial has points of a single launch, so no intervals" in " ".join(
        profile.extra["warnings"]
    )


def test_points_that_an_interrupted_launch_did_not_reach_leave_no_intervals(tmp_path):
    path = write_run(tmp_path / "run", planted_s, ranks=(2, 4), sizes=(1, 64, 1 << 16), launches=2)
    samples = (path / "samples.ndjson").read_text().splitlines()
    (path / "samples.ndjson").write_text("\n".join(samples[:-1]) + "\n")
    profile = fit_profile(read_runs([path]))
    (form,) = profile.collectives
    assert form.replicates == () and "single launch" in " ".join(profile.extra["warnings"])


def test_a_launch_with_other_points_does_not_remove_intervals(tmp_path):
    more = {"sizes": (1, 64, 1 << 16), "ranks": (2, 4)}
    both = write_run(tmp_path / "both", planted_s, methods=("binomial", "linear"), **more)
    again = write_run(tmp_path / "again", planted_s, launches=1, **more)
    profile = fit_profile(read_runs([both, again]))
    assert all(form.replicates for form in profile.collectives)
    assert "single launch" not in " ".join(profile.extra["warnings"])


def test_times_of_ranks_that_sat_otherwise_are_not_those_of_the_machine(tmp_path):
    """The machine is the largest measured; on fewer cores its first ranks were spread over more nodes."""
    more = {"map_by": ("core",), "sizes": (1, 64, 1 << 16), "launches": 1}
    paths = [
        write_run(tmp_path / "narrow", planted_s, ranks=(2, 4), shape="2x1x2", **more),
        write_run(tmp_path / "wide", planted_s, ranks=(8,), shape="2x1x4", **more),
    ]
    (form,) = fit_profile(read_runs(paths)).collectives
    assert form.machine["cores"] == 4
    assert {ranks for ranks, *_ in form.measured} == {2, 8}


def test_ranks_that_share_cores_of_a_node_are_left_out_where_others_tell(tmp_path):
    def shared_s(operation, method, node, socket, size):
        return planted_s(operation, method, node, socket, size) * (1000 if len(node) > 4 else 1)

    more = {"shape": "1x1x8", "map_by": ("core",), "oversubscribed": lambda ranks: ranks > 4}
    profile = fit_profile(read_runs([write_run(tmp_path / "inside", shared_s, **more)]))
    (form,) = profile.collectives
    assert form.parameters.alpha_s[0, 0, INTRA] == pytest.approx(ALPHA_S[INTRA], rel=0.05)
    assert form.range["ranks"] == (2, 4)
    assert (
        "bcast: at 5, 6, 7, 8 ranks there were more ranks than cores; these points are left out"
        in (profile.extra["warnings"])
    )
    # Nodes on one machine share its cores too, where the link is the limit.
    between = write_run(tmp_path / "between", planted_s, oversubscribed=lambda ranks: ranks > 2)
    assert forms_of(between)["binomial"].range["ranks"] == (2, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": 1}, "give one for each of 1 ranks"),
        ({"root": 9}, "config.root is 9; give one of 2 ranks"),
        ({"operation": "scan"}, "operation=scan"),
        ({"map_by": "moon"}, "map_by=moon"),
    ],
)
def test_samples_that_make_no_sense_are_refused_with_what_they_say(tmp_path, change, message):
    path = write_run(tmp_path / "run", planted_s, ranks=(2,), sizes=(1,), launches=1)
    text = (path / "samples.ndjson").read_text()
    for key, value in change.items():
        old = {"ranks": '"ranks": 2', "root": '"root": 0', "operation": '"bcast"', "map_by": '"node"'}[key]
        new = f'"{key}": {value}' if isinstance(value, int) else f'"{value}"'
        text = text.replace(old, new)
    (path / "samples.ndjson").write_text(text)
    with pytest.raises(InputError, match=message):
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
    for name, forced in (("free", {}), ("forced", {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"})):
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
