"""Collectives with counts, among neighbours, and persistent ones, in the kernel under mpiexec."""

import re
import subprocess

import numpy as np
import pytest

from earlybird.data.collective_algorithms import Method, forcing
from earlybird.data.collective_configuration import Region, selection_configuration
from earlybird.data.mpi_algorithms import FAULTY_PERSISTENT
from earlybird.data.mpich_selection import find_selection
from earlybird.data.topologies import num_neighbours
from earlybird.machine.flavours import find_flavour
from earlybird.models.trees import reaches
from tests.collective_kernel import late_ranks, launch, launch_until, point
from tests.conftest import require_mpi

pytestmark = pytest.mark.mpi

METHODS = ("default", "own-linear", "persistent")
TOPOLOGIES = ("ring", "grid-5", "grid-9", "random-2")
COUNTED = [{"skew": 1}, {"skew": 2.5}]
VARIANTS = {
    "allgatherv": COUNTED,
    "alltoallv": [*COUNTED, {"skew": 4}],  # all bytes in one block of each rank
    "neighbor_allgather": [{"topology": name} for name in TOPOLOGIES],
    "neighbor_alltoall": [{"topology": name} for name in TOPOLOGIES],
    "neighbor_alltoallv": [{"topology": name, "skew": 1.5} for name in TOPOLOGIES],
}


def test_every_method_delivers_every_block(mpi, tmp_path):
    points = [
        point(operation, size, **variant)
        for operation, variants in VARIANTS.items()
        for variant in variants
        for size in (0, 1001)
    ]
    launched = launch(mpi, tmp_path, 4, points, METHODS)
    assert launched.cause is None
    found = [(sample.config, sample.method) for sample in launched.samples]
    assert found == [(config, method) for config in points for method in METHODS]
    assert all(sample.validated for sample in launched.samples)


def test_persistent_operations_give_the_right_result(mpi, tmp_path):
    operations = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter", "barrier")
    points = [
        point(operation, 0 if operation == "barrier" else 1000)
        for operation in operations
        if operation not in FAULTY_PERSISTENT.get(mpi, ())
    ]
    launched = launch(mpi, tmp_path, 3, points, ("persistent", "default"))
    assert launched.cause is None and len(launched.samples) == 2 * len(points)
    assert all(sample.validated for sample in launched.samples)


COUNTS = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
/* Adds what this rank sends and receives to a file. */
int MPI_Alltoallv(const void *in, const int sends[], const int sdispls[], MPI_Datatype stype, void *out,
                  const int receives[], const int rdispls[], MPI_Datatype rtype, MPI_Comm comm) {
  int rank, size;
  char name[4096];
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  snprintf(name, sizeof name, "%s/%d", getenv("COUNTS"), rank);
  FILE *file = fopen(name, "w");
  for (int r = 0; r < size; ++r) fprintf(file, "%d %d\\n", sends[r], receives[r]);
  fclose(file);
  return PMPI_Alltoallv(in, sends, sdispls, stype, out, receives, rdispls, rtype, comm);
}
"""
# Every rank sends a byte less to the last one.
SHORT = """
#include <mpi.h>
static int *shortened(const int counts[], int count, int receiver) {
  static int fewer[64];
  for (int r = 0; r < count; ++r) fewer[r] = counts[r] - (r == receiver);
  return fewer;
}
int MPI_Alltoallv(const void *in, const int sends[], const int sdispls[], MPI_Datatype stype, void *out,
                  const int receives[], const int rdispls[], MPI_Datatype rtype, MPI_Comm comm) {
  int size;
  PMPI_Comm_size(comm, &size);
  return PMPI_Alltoallv(in, shortened(sends, size, size - 1), sdispls, stype, out, receives, rdispls, rtype,
                        comm);
}
int MPI_Neighbor_alltoallv_init(const void *in, const int sends[], const int sdispls[], MPI_Datatype stype,
                                void *out, const int receives[], const int rdispls[], MPI_Datatype rtype,
                                MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  return PMPI_Neighbor_alltoallv_init(in, shortened(sends, 2, 1), sdispls, stype, out, receives, rdispls,
                                      rtype, comm, info, request);
}
"""
# Rank 1 expects less than it is sent, and writes the MPI's message of that to a file.
TRUNCATED = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int MPI_Allgatherv(const void *in, int count, MPI_Datatype itype, void *out, const int counts[],
                   const int displs[], MPI_Datatype otype, MPI_Comm comm) {
  int rank, size, fewer[64];
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  for (int r = 0; r < size; ++r) fewer[r] = rank == 1 ? counts[r] / 2 : counts[r];
  if (rank == 1) freopen(getenv("ERROR_STACK"), "w", stderr);
  return PMPI_Allgatherv(in, count, itype, out, fewer, displs, otype, comm);
}
"""


# The second rank gives half of 8 elements.
TRUNCATED_ALLREDUCE = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  int rank;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 1 && count == 8) freopen(getenv("ERROR_STACK"), "w", stderr);
  return PMPI_Allreduce(in, out, rank == 1 && count == 8 ? 4 : count, type, op, comm);
}
"""


@pytest.fixture
def preload(tmp_path, monkeypatch):
    """Compile a source for an MPI, and load it before the MPI."""

    def load(mpi, source):
        flavour = find_flavour(mpi)
        (tmp_path / "preloaded.c").write_text(source)
        command = [
            flavour.mpicc,
            "-shared",
            "-fPIC",
            tmp_path / "preloaded.c",
            "-o",
            tmp_path / "preloaded.so",
        ]
        subprocess.run(command, check=True, env=flavour.environment())
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "preloaded.so"))

    return load


@pytest.mark.parametrize("skew", [1, 1.5, 4])
def test_counts_have_the_stated_mean_and_largest_block(any_mpi, tmp_path, monkeypatch, preload, skew):
    preload(any_mpi, COUNTS)
    (tmp_path / "counts").mkdir()
    monkeypatch.setenv("COUNTS", str(tmp_path / "counts"))
    launched = launch(any_mpi, tmp_path / "run", 4, [point("alltoallv", 1000, skew=skew)])
    assert launched.cause is None
    # [rank, peer, sent or received]
    counts = np.array([np.loadtxt(tmp_path / "counts" / str(rank), dtype=int) for rank in range(4)])
    sent, received = counts[:, :, 0], counts[:, :, 1]
    assert (sent == received.T).all()
    assert (sent.sum(axis=1) == 4000).all()
    assert sent.max(axis=1) == pytest.approx(np.full(4, 1000 * skew), abs=1)
    if (
        skew == 1.5
    ):  # each block is smaller than the next larger one, and ranks differ in which one is largest
        assert (np.diff(np.sort(sent, axis=1)) > 0).all()
        assert len(set(sent.argmax(axis=1))) > 1


def test_a_wrong_count_is_noticed(any_mpi, tmp_path, preload):
    preload(any_mpi, SHORT)
    points = [point("alltoallv", 1001, skew=1), point("neighbor_alltoallv", 1001, topology="ring", skew=1)]
    launched = launch(any_mpi, tmp_path / "run", 3, points, ("default", "persistent", "own-linear"))
    assert launched.cause is None
    expected = [False, True, True, True, False, True]
    assert [sample.validated for sample in launched.samples] == expected


@pytest.mark.parametrize("topology", ["ring", "grid-5", "random-2"])
def test_only_neighbours_wait_for_a_late_rank(any_mpi, tmp_path, topology):
    points = [point("neighbor_alltoall", 8, topology=topology, verify=1)]

    def check(launched):
        late = late_ranks(launched.samples[0])
        waiting = late & ~np.eye(5, dtype=bool)
        assert late.diagonal().all() and (waiting.sum(axis=1) == num_neighbours(topology, 5)).all()
        if topology != "random-2":  # five ranks are no grid: one row, which is a ring
            distance = (np.arange(5)[None, :] - np.arange(5)[:, None]) % 5
            assert (waiting == np.isin(distance, (1, 4))).all()

    launch_until(check, tmp_path, lambda scratch: launch(any_mpi, scratch, 5, points, ("own-linear",)))


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"], indirect=True)
def test_control_variables_force_the_algorithm_of_a_persistent_operation(mpi, tmp_path):
    trees = {"persistent-linear": "linear", "persistent-pipeline": "chain"}
    methods = ("persistent", *trees)  # its free choice may be one of them
    forced = {name: forcing(mpi, "bcast", Method(name), 4) for name in trees}
    points = [point("bcast", 64, verify=1)]

    def check(launched):
        assert launched.cause is None and all(sample.validated for sample in launched.samples)
        late = {
            sample.method: late_ranks(sample)
            for sample in launched.samples
            if sample.quantity != "completion"
        }
        for method, tree in trees.items():
            assert (late[method] == reaches(tree, 4)).all()

    launch_until(check, tmp_path, lambda scratch: launch(mpi, scratch, 4, points, methods, forced))


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
@pytest.mark.parametrize(
    ("algorithm", "function"),
    [("bruck", "brucks"), ("recursive-doubling", "recursive_doubling"), ("ring", "ring")],
)
def test_mpich_runs_the_forced_allgatherv(mpi, tmp_path, preload, monkeypatch, algorithm, function):
    """Its error stack names the function in which a message was truncated."""
    preload(mpi, TRUNCATED)
    made = forcing(mpi, "allgatherv", Method(algorithm), 4)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ERROR_STACK", str(tmp_path / "stack"))
    launch(mpi, tmp_path / "run", 4, [point("allgatherv", 64, skew=1)], (algorithm,), {algorithm: made})
    assert f"MPIR_Allgatherv_intra_{function}(" in (tmp_path / "stack").read_text()


def test_mpich_selects_from_one_file_what_it_contains_for_several_operations(tmp_path, preload, monkeypatch):
    """As the error stack names it; the default of these calls is another one. That rules of bcast are in
    force next to rules of allreduce shows tests/e2e/test_collective.py."""
    require_mpi("mpich")
    selection = find_selection(find_flavour("mpich").mpicc.resolve().parents[1])
    regions = [Region("bcast", "linear", 4, 8), Region("allreduce", "recursive-doubling", 4, 8, 1024)]
    made = selection_configuration(selection, regions, 1)
    for suffix, text in made.files.items():
        (tmp_path / f"rules{suffix}").write_text(text)
    preload("mpich", TRUNCATED_ALLREDUCE)
    monkeypatch.setenv("ERROR_STACK", str(tmp_path / "stack"))

    def stack(run):
        launch("mpich", tmp_path / run, 4, [point("allreduce", 64)], ("default",))
        return (tmp_path / "stack").read_text()

    selected = "MPIR_Allreduce_intra_recursive_doubling("
    assert "MPI_Allreduce" in (usual := stack("usual")) and selected not in usual
    for name, suffix in re.findall(r'(\w+)="FILE([^"]+)"', made.text):
        monkeypatch.setenv(name, str(tmp_path / f"rules{suffix}"))
    assert selected in stack("run")


@pytest.mark.parametrize(
    ("config", "methods", "expected"),
    [
        (point("alltoallv", 8), ("default",), "a point of the request has no skew"),
        (point("alltoallv", 8, skew=2.5), ("default",), "skew=2.5 and a rank has 2 blocks; give 1 to 2"),
        (point("alltoallv", 8, skew=0.5), ("default",), "skew=0.5"),
        (point("neighbor_alltoallv", 8, topology="ring", skew=2), ("default",), "has 1 block; give 1 to 1"),
        (point("bcast", 8, skew=1), ("default",), "skew for operation=bcast, whose blocks are all equal"),
        (point("alltoall", 8, topology="ring"), ("default",), "in which all ranks take part"),
        (point("neighbor_alltoall", 8), ("default",), "a point of the request has no topology"),
        (point("neighbor_alltoall", 8, topology="torus"), ("default",), "topology=torus; give ring, grid-5"),
        (point("neighbor_alltoall", 8, topology="random-2"), ("default",), "on 2 ranks; start more than 2"),
        (point("alltoallv", (1 << 31) - 1, skew=1), ("default",), "give a smaller size_bytes"),
        (point("alltoallv", 8, skew=1), ("own-binomial",), "give some of own-linear or default"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, config, methods, expected):
    launched = launch(any_mpi, tmp_path, 2, [config], methods)
    assert expected in launched.cause and launched.samples == []
