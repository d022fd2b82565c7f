"""The collective kernel under mpiexec: every method of every operation gives the right result along the tree
that its name says, and control variables force the MPI's."""

import subprocess

import numpy as np
import pytest

from earlybird.data.collective_algorithms import Forcing
from earlybird.machine.flavours import find_flavour
from earlybird.models.trees import reaches
from tests.collective_kernel import late_ranks, launch, launch_until, point

pytestmark = pytest.mark.mpi

OWN = (
    "own-linear",
    "own-pipeline",
    "own-pipeline:8",
    "own-pipeline:1048576",
    "own-binomial:0",
    "own-binomial:24",
)
REST = ("allreduce", "allgather", "alltoall", "gather", "scatter")
SIZES = (0, 1, 24, 1001, 10000)  # segments of 8 and 24 bytes do not divide all of them


@pytest.mark.parametrize(
    "ranks", [pytest.param(2, marks=pytest.mark.thorough), 3, pytest.param(5, marks=pytest.mark.thorough)]
)
def test_every_method_gives_every_rank_the_right_result(mpi, tmp_path, ranks):
    roots = [k % ranks for k in range(len(SIZES))]
    points = [
        point(operation, size, root, ranks=ranks)
        for operation in ("bcast", "reduce")
        for size, root in zip(SIZES, roots, strict=True)
    ]
    launched = launch(mpi, tmp_path / "trees", ranks, points, (*OWN, "default"))
    assert launched.cause is None
    of_reduction = [{"datatype": "byte" if size % 8 else "double"} for size in SIZES]
    expected = points[: len(SIZES)] + [a | b for a, b in zip(points[len(SIZES) :], of_reduction, strict=True)]
    found = [(sample.config, sample.method) for sample in launched.samples]
    assert found == [(config, method) for config in expected for method in (*OWN, "default")]
    for sample in launched.samples:
        assert sample.validated and sample.quantity == "completion"
        assert len(sample.times_s) >= 4 and (sample.times_s > 0).all()
        assert np.array(sample.rank_times_s).shape == (len(sample.times_s), ranks)
        assert np.array(sample.rank_times_s).max(axis=1) == pytest.approx(sample.times_s)
        assert sample.rounds.tolist() == list(range(len(sample.times_s)))

    points = [
        point(operation, size, ranks - 1 if operation in ("gather", "scatter") else 0)
        for operation in REST
        for size in (0, 24, 1001)
    ]
    points += [point("barrier", 0), point("reduce_local", 13), point("reduce_local", 4096)]
    launched = launch(mpi, tmp_path / "others", ranks, points)
    assert launched.cause is None and len(launched.samples) == len(points)
    assert all(sample.validated for sample in launched.samples)
    assert [(s.quantity, s.method, s.config["datatype"]) for s in launched.samples[-2:]] == [
        ("reduce_local", None, "byte"),
        ("reduce_local", None, "double"),
    ]


def test_the_mean_over_ranks_may_be_the_time_and_the_trees_are_verified_as_ever(any_mpi, tmp_path):
    points = [point("reduce", 64, verify=1), point("reduce_local", 64)]
    launched = launch(any_mpi, tmp_path, 4, points, ("own-linear",), mean_over_ranks=True)
    assert launched.cause is None and all(sample.validated for sample in launched.samples)
    verified, measured, local = launched.samples
    assert (verified.quantity, local.quantity) == ("delayed_completion", "reduce_local")
    assert measured.quantity == "mean_over_ranks"
    assert measured.times_s == pytest.approx(np.array(measured.rank_times_s).mean(axis=1))


@pytest.mark.parametrize(("ranks", "root"), [pytest.param(5, 0, marks=pytest.mark.thorough), (4, 3)])
def test_own_algorithms_run_along_their_trees(any_mpi, tmp_path, ranks, root):
    trees = {"own-linear": "linear", "own-pipeline:8": "chain", "own-binomial": "binomial-doubling"}
    points = [point(operation, 16, root, verify=1) for operation in ("bcast", "reduce")]

    def check(launched):
        assert launched.cause is None and len(launched.samples) == 12
        assert all("verify" not in sample.config for sample in launched.samples)
        verifications = [sample for sample in launched.samples if sample.quantity == "delayed_completion"]
        for sample, tree in zip(verifications, 2 * list(trees.values()), strict=True):
            below = reaches(tree, ranks, root)
            assert (late_ranks(sample) == (below if sample.config["operation"] == "bcast" else below.T)).all()

    launch_until(check, tmp_path, lambda scratch: launch(any_mpi, scratch, ranks, points, tuple(trees)))


def test_own_gather_and_scatter_are_linear(any_mpi, tmp_path):
    points = [point(operation, size, 1, verify=1) for operation in ("gather", "scatter") for size in (0, 7)]
    below = reaches("linear", 3, 1)

    def check(launched):
        assert launched.cause is None and all(sample.validated for sample in launched.samples)
        for sample in launched.samples[::2]:
            assert (
                late_ranks(sample) == (below.T if sample.config["operation"] == "gather" else below)
            ).all()

    launch_until(check, tmp_path, lambda scratch: launch(any_mpi, scratch, 3, points, ("own-linear",)))


def test_barriers_wait_for_whoever_comes_late(mpi, tmp_path):
    def check(launched):
        verification, timed = launched.samples
        assert late_ranks(verification).all() and timed.validated

    points = [point("barrier", 0, verify=1)]
    launch_until(check, tmp_path, lambda scratch: launch(mpi, scratch, 3, points))


FORCED = {
    "openmpi": (
        {"OMPI_MCA_coll": "^han"},
        "communicator",
        {
            "linear": {"bcast_algorithm": 1, "reduce_algorithm": 1},
            "pipeline:8": {"bcast_algorithm": 3, "reduce_algorithm": 3, "bcast_algorithm_segmentsize": 8},
        },
        "coll_tuned_",
        {"use_dynamic_rules": 1},
    ),
    "mpich": (
        {
            "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
            "MPIR_CVAR_BCAST_TREE_TYPE": "kary",
            "MPIR_CVAR_IREDUCE_TREE_TYPE": "kary",
        },
        "call",
        {
            "linear": {"BCAST_INTRA_ALGORITHM": 7, "BCAST_TREE_KVAL": 3, "IREDUCE_TREE_KVAL": 3},
            "pipeline:8": {"BCAST_INTRA_ALGORITHM": 6, "BCAST_TREE_KVAL": 1, "IREDUCE_TREE_KVAL": 1},
        },
        "MPIR_CVAR_",
        {"REDUCE_INTRA_ALGORITHM": 2, "IREDUCE_INTRA_ALGORITHM": 5},
    ),
}


@pytest.mark.parametrize("mpi", FORCED, indirect=True)
def test_control_variables_force_the_mpis_algorithms(mpi, tmp_path, monkeypatch):
    """Methods without control variables between the others keep the MPI's choice."""
    environment, when, methods, prefix, common = FORCED[mpi]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    forcing = {
        method: Forcing(**{when: {prefix + name: str(value) for name, value in (common | own).items()}})
        for method, own in methods.items()
    }
    points = [point(operation, 64, verify=1) for operation in ("bcast", "reduce")]

    def check(launched):
        assert launched.cause is None and all(sample.validated for sample in launched.samples)
        for operation in ("bcast", "reduce"):
            late = {
                sample.method: late_ranks(sample) if operation == "bcast" else late_ranks(sample).T
                for sample in launched.samples
                if sample.quantity == "delayed_completion" and sample.config["operation"] == operation
            }
            assert (late["linear"] == reaches("linear", 4)).all()
            assert (late["pipeline:8"] == reaches("chain", 4)).all()
            assert (late["own-pipeline"] == reaches("chain", 4)).all()
            for other in ("linear", "chain"):
                assert (late["default"] != reaches(other, 4)).any()

    methods = ("linear", "own-pipeline", "default", "pipeline:8")
    launch_until(check, tmp_path, lambda scratch: launch(mpi, scratch, 4, points, methods, forcing))


WRONG = """
#include <mpi.h>
#include <stdlib.h>
/* Each is wrong now and then: a bit that differs on the last rank, nothing added, nobody waited for. */
static int calls;
int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int rc = PMPI_Bcast(data, count, type, root, comm), rank;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 2 && ++calls % 3 == 0) ((char *)data)[count - 1] ^= 4;
  return rc;
}
int MPI_Reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op) {
  return ++calls % 3 == 0 ? MPI_SUCCESS : PMPI_Reduce_local(in, inout, count, type, op);
}
int MPI_Barrier(MPI_Comm comm) { return MPI_SUCCESS; }
"""


def test_wrong_results_are_noticed(any_mpi, tmp_path, monkeypatch):
    flavour = find_flavour(any_mpi)
    (tmp_path / "wrong.c").write_text(WRONG)
    command = [flavour.mpicc, "-shared", "-fPIC", tmp_path / "wrong.c", "-o", tmp_path / "wrong.so"]
    subprocess.run(command, check=True, env=flavour.environment())
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "wrong.so"))
    points = [point("bcast", 1001), point("reduce", 1001), point("reduce", 1000), point("reduce_local", 16)]
    launched = launch(any_mpi, tmp_path / "trees", 3, points, ("own-binomial", "default"))
    expected = [("bcast", True), ("bcast", False), *2 * [("reduce", False), ("reduce", True)]]
    found = [(sample.config["operation"], sample.validated) for sample in launched.samples]
    assert found == [*expected, ("reduce_local", False)]
    assert not launch(any_mpi, tmp_path / "barrier", 3, [point("barrier", 0)]).samples[0].validated


@pytest.mark.parametrize(
    ("config", "methods", "expected"),
    [
        (point("broadcast", 8), ("default",), "operation=broadcast; give one of allgather"),
        (point("bcast", 8, 2), ("default",), "root=2 on 2 ranks; give 0 to 1"),
        (point("bcast", 8, -1), ("default",), "root=-1"),
        (point("bcast", -8), ("default",), "size_bytes=-8"),
        (point("bcast", 1 << 31), ("default",), "size_bytes=2147483648; give 0 to 2147483647"),
        (point("allreduce", 8, 1), ("default",), "give 0 for an operation without a root"),
        (point("barrier", 8), ("default",), "a barrier has no data"),
        (point("bcast", 8, ranks=3), ("default",), "ranks=3 and the launch has 2"),
        (point("reduce", 9, datatype="double"), ("default",), "reduced as datatype=byte"),
        (point("bcast", 8), (), "needs methods"),
        (point("bcast", 8), ("own-tree",), "no algorithm own-tree for bcast; give some of own-binomial"),
        (point("alltoall", 8), ("own-linear",), "for alltoall; give algorithms of the MPI or default"),
        (point("bcast", 8), ("own-linear:4",), "own-linear has no segments"),
        (point("bcast", 8), ("own-pipeline:4KiB",), "own-pipeline:8192"),
        (point("reduce", 64), ("own-pipeline:12",), "splits doubles"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, config, methods, expected):
    launched = launch(any_mpi, tmp_path, 2, [config], methods)
    assert expected in launched.cause and launched.samples == []


@pytest.mark.parametrize(
    ("method", "name", "expected"),
    [
        ("pipeline:8", "a", "the method pipeline:8, which is not in methods"),
        ("default", "EARLYBIRD_NOTHING", "no control variable EARLYBIRD_NOTHING"),
    ],
)
def test_control_variables_that_force_nothing_are_refused(any_mpi, tmp_path, method, name, expected):
    forcing = {method: Forcing(communicator={name: "1"})}
    launched = launch(any_mpi, tmp_path, 2, [point("bcast", 8)], ("default",), forcing)
    assert expected in launched.cause and launched.samples == []


@pytest.mark.parametrize(
    ("mpi", "setting", "expected"),
    [
        ("openmpi", "coll_tuned_bcast_algorithm=many", "give an integer"),
        ("openmpi", "coll_tuned_use_dynamic_rules=256", "give an integer"),
        ("openmpi", "coll_tuned_bcast_algorithm_count=1", "cannot be written"),
        ("mpich", "MPIR_CVAR_BCAST_TREE_KVAL=4294967296", "give an integer"),
    ],
    indirect=["mpi"],
)
def test_values_that_a_control_variable_does_not_take_are_refused(mpi, tmp_path, setting, expected):
    name, value = setting.split("=")
    forcing = {"default": Forcing(communicator={name: value})}
    launched = launch(mpi, tmp_path, 2, [point("bcast", 8)], ("default",), forcing)
    assert expected in launched.cause and name in launched.cause and launched.samples == []


def test_more_than_one_thread_and_a_single_rank_are_refused(any_mpi, tmp_path):
    launched = launch(any_mpi, tmp_path / "threads", 2, [point("bcast", 8)], threads=2)
    assert "threads=1" in launched.cause
    assert "at least 2 ranks" in launch(any_mpi, tmp_path / "one", 1, [point("bcast", 8)]).cause
