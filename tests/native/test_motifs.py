"""The kernels halo3d, sweep3d and comb under mpiexec: every style computes what one process computes, and
sends as many bytes."""

from math import prod

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.units import parse_triple
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour
from earlybird.measure.motif_shapes import largest_face_bytes, largest_halo_bytes

pytestmark = pytest.mark.mpi

SHORT = Rules(budget_s=0.01, min_iterations=4)
MAIN_THREAD = ("funnelled", "persistent")
OWN, OURS = (*MAIN_THREAD, "multiple", "partitioned"), (*MAIN_THREAD, "multiple", "earlybird")
QUIET = {"compute_s": 0.0, "noise": "none", "noise_share": 0.0}


def halo(cells, grid, threads=1, partitions=4, **more):
    shape = {"process_grid": grid, "cells": cells, "variables": 1, "stencil": 7, "periodic": "no"}
    return shape | {"buffers": "packed", "threads": threads, "partitions": partitions} | QUIET | more


def sweep(cells, grid, threads=1, partitions=4, **more):
    shape = {"process_grid": grid, "cells": cells, "variables": 5, "planes_per_block": 3}
    return shape | {"threads": threads, "partitions": partitions} | QUIET | more


def launch(mpi, tmp_path, kernel, points, ranks, methods=OWN, threads=1):
    request = Request(
        "0", kernel, points, parse_layout(f"1x1x{ranks}"), SHORT, None, 300, 60, methods,
        preload="earlybird" in methods, threads=threads,
    )  # fmt: skip
    return MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)


def assert_complete(launched, points, methods):
    assert launched.cause is None, launched.cause
    assert [(sample.config, sample.method) for sample in launched.samples] == [
        (point, method) for point in points for method in methods
    ]
    for sample in launched.samples:
        assert sample.validated, (sample.method, sample.config)
        split_s = np.array(sample.extra["split_s"])
        assert split_s.shape == (*sample.rank_times_s.shape, 3) and (split_s > -1e-9).all()


def methods_of(mpi, preload):
    # Open MPI 5.0.11's own partitioned calls fail with several neighbours and with derived datatypes.
    return OURS if preload else OWN if mpi != "openmpi" else OWN[:3]


@pytest.mark.parametrize("preload", [False, True])
def test_every_style_of_a_halo_exchange_computes_what_one_process_does(mpi, tmp_path, preload):
    points = [
        halo("8x6x8", "2x1x1"),
        halo("9x7x11", "2x1x1", partitions=3, stencil=27, periodic="yes", variables=2),
        halo("5x3x2", "1x1x2", partitions=1, stencil=27),
        halo("2x1x4", "2x1x1", partitions=1, periodic="yes"),
    ]
    methods = methods_of(mpi, preload)
    assert_complete(launch(mpi, tmp_path, "halo3d", points, 2, methods), points, methods)


@pytest.mark.one_mpi
def test_messages_of_different_numbers_of_chunks_between_two_ranks_match(mpi, tmp_path):
    """In a small periodic grid two ranks are neighbours in many directions, in some with a single chunk."""
    points = [
        halo("9x7x11", "2x1x1", 2, partitions=partitions, stencil=27, periodic="yes")
        for partitions in (2, 4, 6, 8)
    ]
    assert_complete(launch(mpi, tmp_path, "halo3d", points, 2, OURS, 2), points, OURS)


def test_threads_share_partitions_of_a_halo_exchange(mpi, tmp_path):
    """With more threads than planes, too: then some have no cells."""
    points = [
        halo("8x6x9", "2x1x1", 4, partitions=2, stencil=27, periodic="yes", variables=2),
        halo("6x5x4", "1x1x2", 4, partitions=1, buffers="derived"),
        halo("6x5x4", "1x1x2", 4, partitions=2),
    ]
    assert_complete(launch(mpi, tmp_path, "halo3d", points, 2, OURS, 4), points, OURS)


def test_threads_of_four_ranks_exchange_halos(mpi, tmp_path):
    points = [
        halo("7x5x13", "2x1x2", 2, stencil=27, variables=3),
        halo("8x8x8", "2x2x1", 2, periodic="yes", buffers="derived"),
    ]
    assert_complete(launch(mpi, tmp_path, "halo3d", points, 4, OURS, 2), points, OURS)


@pytest.mark.parametrize("preload", [False, True])
def test_derived_datatypes_send_from_the_cells(mpi, tmp_path, preload):
    points = [
        halo("6x5x8", "1x1x2", partitions=2, stencil=27, variables=3, periodic="yes", buffers=buffers)
        for buffers in ("derived", "packed")
    ]
    methods = methods_of(mpi, preload)
    launched = launch(mpi, tmp_path, "comb", points, 2, methods)
    assert_complete(launched, points, methods)
    assert len({sample.extra["sent_bytes"] for sample in launched.samples}) == 1


def test_every_style_sweeps_as_one_process_does(mpi, tmp_path):
    points = [sweep("7x5x8", "2x1x1"), sweep("4x4x3", "1x2x1", partitions=1, planes_per_block=1)]
    assert_complete(launch(mpi, tmp_path, "sweep3d", points, 2, OWN), points, OWN)


@pytest.mark.thorough
def test_threads_of_four_ranks_sweep(mpi, tmp_path):
    points = [sweep("7x5x8", "2x2x1", 2), sweep("8x3x7", "4x1x1", 2, partitions=2)]
    assert_complete(launch(mpi, tmp_path, "sweep3d", points, 4, OURS, 2), points, OURS)


def test_one_rank_has_no_messages(any_mpi, tmp_path):
    for kernel, point in (("halo3d", halo("4x4x4", "1x1x1")), ("sweep3d", sweep("4x4x4", "1x1x1"))):
        scratch = tmp_path / kernel
        scratch.mkdir()
        launched = launch(any_mpi, scratch, kernel, [point], 1)
        assert_complete(launched, [point], OWN)
        assert {sample.extra["sent_bytes"] for sample in launched.samples} == {0}


def test_bytes_and_messages_are_those_of_the_shape(any_mpi, tmp_path):
    """Two ranks exchange one face; a sweep in four blocks of planes sends one in each from every corner."""
    point = halo("8x6x10", "2x1x1", partitions=4, variables=2)
    triples = [parse_triple(point[key], key, "") for key in ("cells", "process_grid")]
    face = largest_halo_bytes(*triples, 2, 7, False, 4)
    assert face == 2 * 6 * 12 * 8  # 10 planes in 4 partitions of 3
    for sample in launch(any_mpi, tmp_path, "halo3d", [point], 2).samples:
        counts = {"multiple": (8, None), "partitioned": (2, 8)}.get(sample.method, (2, None))
        assert (sample.extra["messages"], sample.extra.get("partitions_sent")) == counts
        assert sample.extra["sent_bytes"] == 2 * face
    point = sweep("8x6x10", "2x1x1", partitions=4)
    face = largest_face_bytes(*triples, 5, 3, 4)
    assert face == 8 * 3 * 6 * 8  # 5 angles in 4 partitions of 2
    scratch = tmp_path / "sweep"
    scratch.mkdir()
    for sample in launch(any_mpi, scratch, "sweep3d", [point], 2).samples:
        assert sample.extra["sent_bytes"] == 4 * 4 * face
        assert sample.extra["messages"] == 16 * (4 if sample.method == "multiple" else 1)


def test_the_parts_of_the_time_are_its_parts(any_mpi, tmp_path, counted_clock):
    """Each thread computes for 2 ms, and a sweep waits for the ranks before it."""
    counted_clock(any_mpi)
    point = sweep("6x6x6", "2x1x1", planes_per_block=6) | {"compute_s": 2e-3}
    for sample in launch(any_mpi, tmp_path, "sweep3d", [point], 2).samples:
        split_s = np.array(sample.extra["split_s"])
        assert np.allclose(split_s.sum(axis=2), np.array(sample.rank_times_s), rtol=2e-3, atol=2e-4)
        assert (split_s[:, :, 0] >= 4 * 2e-3 * (1 - 1e-3)).all()
        # A rank of a sweep from the other side waits for a block of the other rank.
        assert np.median(split_s[:, :, 2].min(axis=1)) > 1e-3


SHIM = """
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
/* Changes what is sent by FLIPPED: a bit of every message of BYTES bytes (isend), of persistent messages
   (start), of partitions (pready); or sends what the message before had (stale). */
static int is(const char *what) { return strcmp(getenv("FLIPPED"), what) == 0; }
static struct { MPI_Request request; char *data; int bytes; } made[64];
static int num_made;
static void keep(MPI_Request request, const void *data, int bytes) {
  made[num_made].request = request;
  made[num_made].data = (char *)data;
  made[num_made++].bytes = bytes;
}
static void flip(MPI_Request request, int partition) {
  for (int k = 0; k < num_made; k++)
    if (made[k].request == request) made[k].data[partition * made[k].bytes + 5] ^= 4;
}
int MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
  static char before[1 << 16], now[1 << 16];
  if (count == atoi(getenv("BYTES"))) {
    if (is("isend")) ((char *)data)[5] ^= 4;
    if (is("stale")) {
      memcpy(now, before, count);
      memcpy(before, data, count);
      data = now;
    }
  }
  return PMPI_Isend(data, count, type, target, tag, comm, request);
}
int MPI_Send_init(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                  MPI_Request *request) {
  int rc = PMPI_Send_init(data, count, type, target, tag, comm, request);
  if (is("start")) keep(*request, data, count);
  return rc;
}
int MPI_Startall(int count, MPI_Request *requests) {
  for (int k = 0; k < count && is("start"); k++) flip(requests[k], 0);
  return PMPI_Startall(count, requests);
}
int MPI_Psend_init(const void *data, int partitions, MPI_Count count, MPI_Datatype type, int target, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  int rc = PMPI_Psend_init(data, partitions, count, type, target, tag, comm, info, request);
  if (is("pready")) keep(*request, data, count);
  return rc;
}
int MPI_Pready(int partition, MPI_Request request) {
  if (is("pready") && partition == 1) flip(request, partition);
  return PMPI_Pready(partition, request);
}
"""


@pytest.mark.parametrize(
    ("flipped", "num_chunks", "method"),
    [
        ("isend", 4, "funnelled"),
        ("stale", 4, "funnelled"),
        ("start", 4, "persistent"),
        ("stale", 1, "multiple"),
        ("pready", 1, "partitioned"),
    ],
)
@pytest.mark.parametrize("kernel", ["halo3d", "sweep3d"])
def test_wrong_data_are_noticed_of_the_style_they_came_by(
    any_mpi, tmp_path, preload_source, monkeypatch, kernel, flipped, num_chunks, method
):
    point = halo("4x4x8", "2x1x1") if kernel == "halo3d" else sweep("4x4x6", "2x1x1", variables=8)
    chunk_bytes = prod((2, 4, 8)) if kernel == "halo3d" else prod((2, 3, 4, 8))
    preload_source(any_mpi, SHIM)
    monkeypatch.setenv("FLIPPED", flipped)
    monkeypatch.setenv("BYTES", str(num_chunks * chunk_bytes))
    launched = launch(any_mpi, tmp_path, kernel, [point], 2)
    assert launched.cause is None, launched.cause
    assert {sample.method for sample in launched.samples if not sample.validated} == {method}


@pytest.mark.parametrize(
    ("kernel", "point", "methods", "expected"),
    [
        ("halo3d", halo("8x8x8", "3x1x1"), OWN, "process_grid=3x1x1 and there are 2 ranks"),
        ("halo3d", halo("8x8", "2x1x1"), OWN, "cells=8x8; give three numbers"),
        ("halo3d", halo("8x8x8x", "2x1x1"), OWN, "cells=8x8x8x; give three numbers"),
        ("halo3d", halo("8x8x100000000", "2x1x1"), OWN, "give three numbers from 1 to 99999999"),
        ("halo3d", halo("8x-8x8", "2x1x1"), OWN, "cells=8x-8x8; give three numbers"),
        ("halo3d", halo("1x8x8", "2x1x1"), OWN, "at least one cell per rank"),
        ("halo3d", halo("8x8x2", "2x1x1"), OWN, "partitions=4 and a rank has 2 planes"),
        ("halo3d", halo("8x8x8", "2x1x1", stencil=9), OWN, "stencil=9; give 7 or 27"),
        ("halo3d", halo("8x8x8", "2x1x1", periodic="maybe"), OWN, "periodic=maybe; give yes or no"),
        ("comb", halo("8x8x9", "2x1x1", buffers="derived"), OWN, "multiple of ranks times partitions"),
        ("halo3d", halo("8x8x8", "2x1x1", threads=2), OWN, "threads=2 and its options threads=1"),
        ("halo3d", halo("8x8x8", "2x1x1", noise="pink"), OWN, "noise=pink"),
        ("sweep3d", sweep("8x8x8", "1x1x2"), OWN, "one rank along z"),
        ("sweep3d", sweep("8x8x8", "2x1x1", planes_per_block=9), OWN, "planes_per_block=9; give 1 to 8"),
        ("sweep3d", sweep("8x8x8", "2x1x1", variables=3), OWN, "partitions=4 and a rank has 3 variables"),
        ("sweep3d", sweep("8x8x8", "2x1x1"), ("funnelled", "pigeon"), "no style pigeon"),
        ("sweep3d", sweep("8x8x8", "2x1x1"), (), "needs methods"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, kernel, point, methods, expected):
    launched = launch(any_mpi, tmp_path, kernel, [point], 2, methods)
    assert expected in launched.cause and launched.samples == []


def test_a_sample_is_never_of_another_library_than_its_style_says(any_mpi, tmp_path):
    both = ("funnelled", "partitioned", "earlybird")
    launched = launch(any_mpi, tmp_path, "halo3d", [halo("8x8x8", "2x1x1")], 2, both)
    assert "the style partitioned needs the partitioned communication of the MPI" in launched.cause


def test_threads_share_partitions_evenly(any_mpi, tmp_path):
    launched = launch(any_mpi, tmp_path, "halo3d", [halo("8x8x8", "2x1x1", 2, 3)], 2, threads=2)
    assert "partitions=3 and there are 2 threads" in launched.cause and launched.samples == []


@pytest.mark.parametrize(("methods", "level"), [(OWN[:3], "multiple"), (MAIN_THREAD, "single")])
def test_the_style_multiple_has_its_thread_level_with_one_thread_too(any_mpi, tmp_path, methods, level):
    for kernel, point in (("halo3d", halo("4x4x4", "2x1x1")), ("sweep3d", sweep("4x4x4", "2x1x1"))):
        scratch = tmp_path / kernel
        scratch.mkdir()
        launched = launch(any_mpi, scratch, kernel, [point], 2, methods)
        assert_complete(launched, [point], methods)
        assert launched.record["thread_level"] == level
