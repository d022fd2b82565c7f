"""What a side of a comparison holds: one sample per launch, and the circumstances."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.compare.runs import compare_sides
from earlybird.compare.sides import baseline_of, differences, side_of, side_of_baseline
from earlybird.data.baseline import load_baseline, save_baseline
from earlybird.data.errors import InputError
from earlybird.data.run import Run, Sample
from earlybird.data.statistics import statistic_of


@pytest.fixture
def written(tmp_path):
    """Write a run with these times of each launch of one point; `changed` are fields of all samples."""

    def write(name: str, times_s, launch=None, **changed) -> Run:
        run = Run.create(tmp_path / name, machine={"host": "a"}, command=[], seed=1)
        config = {"mpi": "mpich", "size_bytes": 8}
        for number, launch_times_s in enumerate(times_s):
            run.append_launch({"id": f"l{number}", "layout": "1x1x2"} | (launch or {}))
            fields = {"kernel": "pingpong", "quantity": "half_round_trip", "config": config} | changed
            run.append_samples([Sample(launch=f"l{number}", times_s=np.array(launch_times_s), **fields)])
        return run

    return write


def test_samples_of_one_launch_are_one_launch(written):
    run = written("a", [[1.0, 1.1]])
    run.append_samples(run.samples())
    (launches,) = side_of(run).times_s.values()
    assert [launch.tolist() for launch in launches] == [[1.0, 1.1, 1.0, 1.1]]


@pytest.mark.parametrize("times_s", [[1e-6, -1e-9, -1e-9], [-0.5, 1e-6, 1e-6]])
def test_a_baseline_of_a_time_below_0_is_refused_with_the_clocks_as_the_reason(written, times_s):
    run = written("a", [[1e-6], times_s])
    with pytest.raises(InputError, match="of pingpong, below 0: the clocks of the nodes differ"):
        baseline_of(side_of(run), "a", run)


def test_wrong_data_is_refused(written):
    with pytest.raises(InputError, match="wrong data"):
        side_of(written("a", [[1.0]], validated=False))


def test_long_values_that_differ_late_differ(written):
    long = "x" * 200
    sides = [
        side_of(written(name, [[1.0]], {"environment": {"PATH_OF_IT": f"{long}{name}{long}"}}))
        for name in "ab"
    ]
    (found,) = differences(*sides)
    assert found.what == "environment.PATH_OF_IT"
    before, after = found.shortened()
    assert "a" in before and "b" in after and len(after) < 120


def test_a_variable_that_changed_within_a_run_has_all_its_values(written):
    ours = {"set_by_launcher": ["MPIR_CVAR_CH4_NUM_VCIS"]}
    mixed, alone = written("a", [[1.0]] * 2, ours), written("b", [[1.0]], ours | {"environment": {}})
    environment = {"UCX_TLS": "self", "MPIR_CVAR_CH4_NUM_VCIS": "2", "SLURM_JOB_ID": "7"}
    launches = [ours | {"id": "l0", "environment": environment}, ours | {"id": "l1", "environment": {}}]
    (mixed.path / "launches.ndjson").write_text("".join(json.dumps(one) + "\n" for one in launches))
    found = {one.what: one.before for one in differences(side_of(mixed), side_of(alone))}
    assert found["environment.UCX_TLS"] == "self and (none)"
    assert found["environment.MPIR_CVAR_CH4_NUM_VCIS"] == "2"


@pytest.mark.parametrize(
    ("environment", "text"), [({"A": "9"}, "9"), ({"A": None}, "(none)"), ({}, "(not recorded)")]
)
def test_a_variable_of_one_side_has_the_value_of_the_other(written, environment, text):
    """Only variables that --env names are recorded, with the shell's value or as not set."""
    sides = [
        side_of(written(name, [[1.0]], {"environment": of_side}))
        for name, of_side in (("a", environment), ("b", {"A": "2"}))
    ]
    (found,) = differences(*sides)
    assert (found.what, found.shortened()) == ("environment.A", (text, "2"))


def test_ranks_on_other_hosts_are_another_placement(written):
    sides = []
    for name in "ab":
        placement = [{"host": "n0", "cpus": [0]}, {"host": f"n{name}", "cpus": [0]}]
        sides.append(side_of(written(name, [[1.0]], {"placement": placement})))
    assert sides[0].circumstances["placement of 1x1x2"] == "n0: 0 na: 0"
    with pytest.raises(InputError, match=r"placement of 1x1x2 .*--anyway"):
        compare_sides(*sides)


def test_the_preferred_mpi_of_several(written):
    run = written("a", [[1.0]])
    with open(run.path / "samples.ndjson", "a") as stream:
        line = json.loads((run.path / "samples.ndjson").read_text())
        stream.write(json.dumps(line | {"config": {"mpi": "openmpi", "size_bytes": 8}}) + "\n")
    with pytest.raises(InputError, match="--mpi"):
        side_of(run)
    assert side_of(run, preferred="openmpi").mpi == "openmpi"
    assert side_of(written("b", [[1.0]]), preferred="openmpi").mpi == "mpich"


def test_medians_of_a_side_decide_alike(written):
    before, after = side_of(written("a", [[1.0, 1.1, 1.0]] * 5)), side_of(written("b", [[2.0]] * 5))
    (whole,), (short,) = (
        compare_sides(one, after).changes for one in (before, before.medians())
    )  # fmt: skip
    assert (whole.before_s, whole.p_value, whole.verdict) == (short.before_s, short.p_value, short.verdict)


def test_times_of_zero_are_left_out_and_counted(written):
    before = written("a", [[1.0]] * 4 + [[0.0]])
    before.append_samples(
        Sample(
            "pingpong", "half_round_trip", {"size_bytes": 16, "mpi": "mpich"}, f"l{k}", np.array([0.0, 1, 1])
        )
        for k in range(5)
    )
    found = compare_sides(side_of(before), side_of(before))
    assert [one.config["size_bytes"] for one in found.changes] == [16]
    assert np.isfinite(found.changes[0].ratio).all()
    assert "1 point left out" in found.notes[0]
    with pytest.raises(InputError, match="times of 0"):
        compare_sides(*[side_of(written(name, [[0.0]] * 5)) for name in "bc"])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kernel": "contention"}, "they first differ in kernel (A has pingpong; B has contention)"),
        ({"quantity": "latency"}, "the points of pingpong first differ in quantity (A has half_round_trip;"),
        (
            {"config": {"mpi": "mpich", "size_bytes": 16}},
            "the points of pingpong first differ in size_bytes (A has 8; B has 16)",
        ),
        (
            {"config": {"mpi": "mpich", "size_bytes": 16, "buffers": "reuse"}},
            "the points of pingpong first differ in buffers (A has none; B has reuse)",
        ),
    ],
)
def test_runs_without_a_common_point_differ_first_in(written, changed, sentence):
    sides = [side_of(written("a", [[1.0]]), name="A"), side_of(written("b", [[1.0]], **changed), name="B")]
    with pytest.raises(InputError, match=re.escape(sentence)):
        compare_sides(*sides)


def test_a_key_without_a_value_differs_from_an_absent_key(written):
    def side(name, config):
        run = written(name, [])
        run.append_launch({"id": "l"})
        config = {"mpi": "m", "level": "near", "size_bytes": 8, **config}
        run.append_samples([Sample("pingpong", "t", config, "l", np.ones(1))])
        return side_of(run, name=name)

    with pytest.raises(InputError, match=re.escape("first differ in buffers (A has None; B has none)")):
        compare_sides(side("A", {"buffers": None}), side("B", {}))


def test_points_that_agree_in_every_value_but_in_no_whole_point(written):
    """Level and size each have common values; the sentence is about those of one level."""

    def side(name, points):
        run = written(name, [])
        run.append_launch({"id": "l"})
        run.append_samples(
            Sample("pingpong", "t", {"mpi": "m", "level": level, "size_bytes": size}, "l", np.ones(1))
            for level, size in points
        )
        return side_of(run, name=name)

    sides = side("A", [("near", 8), ("far", 16)]), side("B", [("near", 16), ("far", 8)])
    with pytest.raises(InputError, match=re.escape("first differ in size_bytes (A has 8; B has 16)")):
        compare_sides(*sides)


SKEWED = [1.0, 1.0, 1.0, 5.0]  # with a median of 1 and a mean of 2


def test_a_mean_is_compared_with_the_mean_of_iterations(written):
    imported = side_of(written("a", [[2.0]] * 5, {"launcher": "import"}, statistic="mean"), name="A")
    measured = side_of(written("b", [SKEWED] * 5), name="B")
    for sides, means in (((imported, measured), (2, 2)), ((measured, imported), (2, 2))):
        found = compare_sides(*sides)
        (change,) = found.changes
        assert (change.before_s, change.after_s, change.statistic) == (*means, "mean")
        assert [one.what for one in found.differences] == ["launcher"]
        assert any("compared by the mean over iterations" in note for note in found.notes)
    (medians,) = compare_sides(measured, measured).changes
    assert (medians.before_s, medians.statistic) == (1, "median")


def test_a_median_is_compared_with_the_median_of_iterations(written):
    imported = side_of(written("a", [[1.0]] * 5, {"launcher": "import"}, statistic="median"))
    (change,) = compare_sides(imported, side_of(written("b", [SKEWED] * 5))).changes
    assert (change.before_s, change.after_s, change.statistic) == (1, 1, "median")


def test_a_mean_and_a_median_are_never_decided(written):
    sides = [
        side_of(written(name, [[time_s + k / 1000] for k in range(5)], statistic=name))
        for name, time_s in (("mean", 1.0), ("median", 2.0))
    ]
    found = compare_sides(*sides)
    assert found.changes[0].adjusted_p_value < 0.03
    assert (found.changes[0].verdict, found.changes[0].statistic) == ("inconclusive", None)
    (differs,) = found.differences
    assert (differs.what, differs.before) == ("value of pingpong half_round_trip", "mean over iterations")
    assert any("1 point not decided" in note for note in found.notes)


def test_the_slowest_ranks_mean_is_compared_with_that_of_measured_ranks(written):
    """Not with the mean of completions, which is larger where ranks are slow in turn."""
    of_ranks = np.array([[1.0, 3.0], [3.0, 1.0]])
    measured = written("a", [])
    measured.append_launch({"id": "l0"})
    config = {"mpi": "mpich", "size_bytes": 8, "operation": "bcast", "map_by": "core", "ranks": 2}
    measured.append_samples([
        Sample("collective", "completion", config, "l0", of_ranks.max(axis=1), rank_times_s=of_ranks)
    ])  # fmt: skip
    slowest = {
        "kernel": "collective", "quantity": "completion", "statistic": "slowest_rank_mean", "config": config
    }  # fmt: skip
    imported = written("b", [[2.0]], **slowest)
    (change,) = compare_sides(side_of(measured), side_of(imported)).changes
    assert (change.before_s, change.after_s, change.statistic) == (2, 2, "slowest_rank_mean")


def test_a_baseline_keeps_the_means_too(written, tmp_path):
    run = written("a", [SKEWED] * 5)
    saved = baseline_of(side_of(run), "kept", run)
    save_baseline(saved, tmp_path / "kept.json")
    kept = side_of_baseline(load_baseline(tmp_path / "kept.json"))
    imported = side_of(written("b", [[2.0]] * 5, {"launcher": "import"}, statistic="mean"))
    (change,) = compare_sides(kept, imported).changes
    assert (change.before_s, change.after_s, change.statistic) == (2, 2, "mean")
    (change,) = compare_sides(kept, side_of(run)).changes
    assert (change.before_s, change.after_s, change.statistic) == (1, 1, "median")


def test_a_baseline_of_an_earlier_version_says_means_among_its_circumstances(written):
    run = written("a", [[2.0]] * 5, {"launcher": "import"})
    saved = baseline_of(side_of(run), "kept", run)
    means = {"value of a launch": "mean of its iterations"}
    kept = side_of_baseline(replace(saved, circumstances={**saved.circumstances, **means}))
    assert [set(known) for known in kept.statistics.values()] == [{"mean"}]
    assert "value of a launch" not in kept.circumstances
    (change,) = compare_sides(kept, side_of(written("b", [SKEWED] * 5))).changes
    assert (change.after_s, change.statistic) == (2, "mean")


def test_runs_that_an_earlier_version_imported_have_the_statistic_of_their_launch():
    """Which was the median for completions too, though OSU prints no median of the slowest rank."""
    side = side_of(Run.open(Path(__file__).parents[2] / "recorded" / "golden" / "imported-run-1"))
    assert {(key[1], *known) for key, known in side.statistics.items()} == {
        ("mean_over_ranks", "median"), ("completion", "slowest_rank_mean"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("launch", "iterations", "statistic"),
    [
        ({"statistic": "mean", "tool": "OSU Micro-Benchmarks 7.4"}, 1, "mean"),
        ({"statistic": "median", "tool": "ReproMPI 1"}, 1, None),
        ({"statistic": "median", "tool": "table"}, 1, None),
        ({"statistic": "median", "tool": "ReproMPI 1"}, 20, None),
        ({}, 1, None),
    ],
)
def test_the_statistic_of_a_launch_is_that_of_single_values(launch, iterations, statistic):
    assert statistic_of(None, iterations, "half_round_trip", launch) == statistic
    if iterations == 1:
        assert statistic_of("median", 1, "half_round_trip", launch) == "median"


def test_what_rounding_explains_is_no_change(written):
    """0.01 and 0.02 MB/s may both be 0.0149."""
    times = [[[time_s * (1 + k / 1000)] for k in range(5)] for time_s in (1.0, 2.0)]
    before, after = (
        side_of(written(name, of_side, statistic="mean", rounding=share))
        for name, of_side, share in (("a", times[0], 0.25), ("b", times[1], 0.5))
    )
    found = compare_sides(before, after)
    (change,) = found.changes
    assert change.adjusted_p_value < 0.03 and change.verdict == "inconclusive"
    assert change.ratio.low < 2 * 0.5 and change.ratio.high > 2 / 0.5
    assert any("rounded by up to 50 %" in note for note in found.notes)
    exact = [
        side_of(written(name, of_side, statistic="mean")) for name, of_side in zip("cd", times, strict=True)
    ]
    assert compare_sides(*exact).changes[0].verdict == "slower"


def test_arguments_for_srun_are_a_difference(written):
    of_srun = {"launcher": "srun", "environment": {"SLURM_NETWORK": "job_vni"}}
    sides = [
        side_of(written(name, [[1.0]] * 5, of_srun | more))
        for name, more in (("a", {}), ("b", {"srun": "--network=single_node_vni"}))
    ]
    (found,) = differences(*sides)
    assert (found.what, found.before, found.after) == ("srun", "", "--network=single_node_vni")


def test_what_an_imported_text_does_not_say_is_no_difference(written):
    known = {"launcher": "local", "version": "5.0.2", "binding": "core"}
    sides = [
        side_of(written(name, [[1.0]], launch))
        for name, launch in (("a", known), ("b", {"launcher": "import", "datatype": "MPI_INT"}))
    ]
    assert [one.what for one in differences(*sides)] == ["launcher", "datatype"]
    with pytest.raises(InputError, match="differ in network"):
        compare_sides(side_of(written("c", [[1.0]], {"network": "2 nodes"})), sides[1])


def test_parameters_of_benchmarks_without_a_common_value_are_named(written):
    sides = []
    for name, window in (("a", 64), ("b", 256)):
        run = written(name, [[1.0]])
        config = {"mpi": "mpich", "size_bytes": 8, "window": window}
        run.append_samples([Sample("imb-biband", "time_per_window", config, "l0", np.ones(1))])
        sides.append(side_of(run))
    (found,) = compare_sides(*sides).differences
    assert (found.what, found.before, found.after) == ("window of imb-biband", "64", "256")


def test_the_launches_that_were_asked_for_are_known(tmp_path):
    for name, settings, asked in [
        ("a", {"effort": {"launches": 7}}, 7),
        ("b", {"imported": True}, None),
        ("c", {}, None),
    ]:
        run = Run.create(tmp_path / name, machine={}, command=[], seed=1, settings=settings)
        run.append_samples([Sample("pingpong", "t", {"mpi": "m", "size_bytes": 8}, "l", np.ones(1))])
        assert side_of(run).launches_asked == asked


def test_the_options_that_continue_a_run_are_those_that_it_does_not_choose(tmp_path):
    settings = {
        "suites": ["pingpong"],
        "mpi": "/opt/{a}/mpicc",
        "hosts": "a,b",
        "agent": "ssh -x",
        "srun": None,
    }
    run = Run.create(tmp_path / "a", machine={}, command=[], seed=1, settings=settings)
    run.append_samples([Sample("pingpong", "t", {"mpi": "m", "size_bytes": 8}, "l", np.ones(1))])
    (note,) = compare_sides(*[side_of(run, name="A")] * 2).notes
    options = "--resume --mpi '/opt/{a}/mpicc' --hosts a,b --agent 'ssh -x'"
    assert f"continue both with {options} and more --launches" in note


def test_what_adds_launches(written):
    run = side_of(written("a", [[1.0]], {"launcher": "local"}), name="A")
    imported = side_of(written("b", [[1.0]], {"launcher": "import"}), name="B")
    kept = side_of_baseline(baseline_of(run, "kept", written("c", [[1.0]])))
    enough = side_of(written("d", [[1.0]] * 5, {"launcher": "local"}))
    for sides, advice in [
        ((run, run), "continue both with --resume and more --launches"),
        ((imported, imported), "import both again with more outputs, each of another launch"),
        ((run, imported), "continue A with --resume and more --launches and import B again"),
        ((kept, run), "save kept again from a run of more launches and continue A with --resume"),
        ((enough, imported), "import B again with more outputs"),
    ]:
        (note,) = compare_sides(*sides).notes
        assert f"(1; at least 5 on each side): {advice}" in note
        assert ("resume" in note) == ("continue" in advice)
