"""The results of `measure collective`: completion, mean and root, speed-ups, trees, and OSU's columns."""

import json

import numpy as np
import pytest

from earlybird.compare.results import ordered, results
from earlybird.compare.trees import verify, with_trees
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.run import Run, Sample
from earlybird.interop.osu_format import check_one_column
from earlybird.measure.groups import Group
from earlybird.present.core.table import Table
from earlybird.present.subjects.measured.columns import columns_of
from earlybird.present.subjects.measured.remarks import remarks
from earlybird.present.subjects.measured.terminal import print_osu, print_samples

POINT = {
    "mpi": "mpich", "operation": "reduce", "ranks": 4, "layout": "1x1x4", "map_by": "core", "size_bytes": 8,
    "root": 1, "datatype": "double",
}  # fmt: skip
RANK_TIMES_S = np.array([1.0, 4.0, 2.0, 1.0]) * 1e-6  # the root 1 takes longest; the mean is 2 us


def times(method, factor=1.0, launch="l", config=POINT, rounds=6):
    of_ranks = np.tile(RANK_TIMES_S[: config["ranks"]] * factor, (rounds, 1))
    return Sample(
        "collective", "completion", config, launch, of_ranks.max(axis=1), method=method,
        rank_times_s=of_ranks,
        rounds=np.arange(rounds),
    )  # fmt: skip


def verification(method, late_of, config=POINT):
    """`late_of` maps every delayed rank to the other late ranks."""
    late = np.full((4, 4), 1e-5)
    for delayed, ranks in late_of.items():
        late[delayed, [delayed, *ranks]] = 0.1
    return Sample(
        "collective", "delayed_completion", config | {"delay_s": 0.1}, "l", late.max(axis=1), method=method,
        rank_times_s=late, extra={"delayed_ranks": [0, 1, 2, 3]},
    )  # fmt: skip


@pytest.fixture
def run(tmp_path):
    run = Run.create(tmp_path / "run", machine={}, command=[], seed=1)
    run.append_launch({"id": "l", "library_version": "MPICH Version: 5.0.2"})
    run.append_launch({"id": "k", "library_version": "MPICH Version: 5.0.2"})
    return run


def rows(run, samples):
    return ordered(with_trees(results(samples), verify(samples, run.launches())))


def cells(found):
    """The text of every column by algorithm, then head."""
    table = Table("", columns_of(found), found)
    return {
        row[table.header.index("algorithm")]: dict(zip(table.header, row, strict=True))
        for row in table.sparse_rows
    }


def test_completion_mean_over_ranks_and_root_are_separate_columns(run):
    found = rows(run, [times("default")])
    text = cells(found)["default"]
    assert (text["operation"], text["P"], text["size"]) == ("reduce", "4", "8 B")
    assert (text["completion"], text["mean"], text["root"]) == ("4 us", "2 us", "4 us")
    assert text["state"] == "converged" and json.dumps(found[0].row())


def test_algorithms_are_compared_with_the_default_in_their_launch(run):
    found = rows(run, [times("linear", 3), times("default"), times("own-linear", 2)])
    assert [result.method for result in found] == ["default", "linear", "own-linear"]
    assert [line["speed-up over default"] for line in cells(found).values()] == ["", "0.33", "0.50"]
    assert any("alternately in one launch" in remark for remark in remarks(run, found))


def test_an_algorithm_in_a_launch_of_its_own_is_compared_through_one_of_ours(run):
    apart = [
        times("linear", 6, "k"),
        times("own-binomial", 2, "k"),
        times("own-binomial"),
        times("default", 2),
    ]
    found = rows(run, apart)
    assert cells(found)["linear"]["speed-up over default"] == "0.67"
    assert any("through own-binomial" in remark for remark in remarks(run, found))


LINEAR = {0: [1], 1: [], 2: [1], 3: [1]}  # to the root 1
CHAIN = {0: [1, 2, 3], 1: [], 2: [1], 3: [1, 2]}  # 0 -> 3 -> 2 -> 1


def test_the_tree_of_each_algorithm_is_reported(run, capsys):
    samples = [times("linear"), times("pipeline"), times("default"), verification("linear", LINEAR)]
    wrong = [*samples, verification("pipeline", LINEAR)]
    trees = {method: line["tree"] for method, line in cells(rows(run, wrong)).items()}
    assert trees == {"default": "", "linear": "linear, confirmed", "pipeline": "chain contradicted: linear"}
    print_samples(run, wrong, "json")
    warnings = capsys.readouterr().err
    assert warnings.count("warning") == 1 and "pipeline of reduce among 4 ranks is not what ran" in warnings
    print_samples(run, [*samples, verification("pipeline", CHAIN)], "csv")
    assert capsys.readouterr().err == ""


def test_a_tree_confirmed_for_more_ranks_is_referenced(run):
    fewer = times("linear", config=POINT | {"ranks": 3})
    found = rows(run, [fewer, times("linear"), verification("linear", LINEAR)])
    table = Table("", columns_of(found), found)
    assert table.rows[0][table.header.index("tree")] == "linear, confirmed at P=4"


def test_local_reduction_has_a_separate_row(run):
    local = Sample(
        "collective", "reduce_local", POINT | {"operation": "reduce_local", "root": 0}, "l",
        np.full(6, 1e-8), rank_times_s=np.full((6, 4), 1e-8),
    )  # fmt: skip
    found = cells(rows(run, [local, times("default")]))
    assert list(found) == ["default", "MPI_Reduce_local"]
    assert (
        found["MPI_Reduce_local"]["root"] == found["MPI_Reduce_local"].get("speed-up over default", "") == ""
    )


def test_osu_columns_are_of_the_requested_algorithm(capsys):
    print_osu([times("default"), times("linear", 3)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "# OSU MPI Reduce Latency Test"
    assert printed[-1].split() == [
        "8",
        "6.0000",
        "3.0000",
        "12.0000",
        "6.0000",
    ]  # of ranks: mean, minimum, maximum

    print_osu([times("default")])
    assert capsys.readouterr().out.split()[-4:-1] == ["2.0000", "1.0000", "4.0000"]


def test_osu_columns_are_for_one_algorithm_of_one_operation():
    def group(methods, **more):
        return Group("collective", parse_layout("1x1x4"), (POINT | more,), methods=methods)

    check_one_column([group(("default", "linear"))])
    for groups in (
        [group(("default", "linear", "binomial"))],
        [group(("default",)), group(("default",), ranks=3)],
    ):
        with pytest.raises(InputError, match=r"--format osu prints one column.*export RUN --to osu"):
            check_one_column(groups)
    counts = {"operation": "alltoallv", "skew": 1}
    check_one_column([group(("persistent",), **counts)])
    with pytest.raises(InputError, match=r"no table of this alltoallv.*--skew 1"):
        check_one_column([group(("default",), **counts | {"skew": 4})])


def test_a_kernel_without_columns_of_its_own_is_printed(run, capsys):
    config = {"mpi": "mpich", "size_bytes": 8}
    print_samples(run, [Sample("new-kernel", "time", config, "l", np.full(6, 2e-6))], "table")
    printed = capsys.readouterr().out
    assert "new-kernel" in printed and "2 us" in printed and "8 B" in printed
    group = Group("contention", parse_layout("1x1x1"), (config,))
    with pytest.raises(InputError, match="--format osu has no table for contention"):
        check_one_column([group])
