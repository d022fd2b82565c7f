"""What a side of a comparison holds: one sample per launch, and the circumstances."""

import json
import re

import numpy as np
import pytest

from earlybird.compare.runs import compare_sides
from earlybird.compare.sides import baseline_of, differences, side_of, side_of_baseline
from earlybird.data.errors import InputError
from earlybird.data.run import Run, Sample


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
        run.append_samples(
            [Sample("pingpong", "t", {"mpi": "m", "level": "near", **config}, "l", np.ones(1))]
        )
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


def test_means_of_iterations_differ_from_medians(written):
    imported = side_of(written("a", [[1.0]], {"launcher": "import", "statistic": "mean"}))
    measured = side_of(written("b", [[1.0]], {"launcher": "import"}))
    (found,) = differences(imported, measured)
    assert (found.what, found.before) == ("value of a launch", "mean of its iterations")
    assert found.after == "median of its iterations"
    medians = side_of(written("c", [[1.0]], {"launcher": "import", "statistic": "median"}))
    assert not differences(medians, measured)


def test_the_launches_that_were_asked_for_are_known(tmp_path):
    for name, settings, asked in [
        ("a", {"effort": {"launches": 7}}, 7),
        ("b", {"imported": True}, None),
        ("c", {}, None),
    ]:
        run = Run.create(tmp_path / name, machine={}, command=[], seed=1, settings=settings)
        run.append_samples([Sample("pingpong", "t", {"mpi": "m", "size_bytes": 8}, "l", np.ones(1))])
        assert side_of(run).launches_asked == asked


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
