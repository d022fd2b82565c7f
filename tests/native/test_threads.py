"""The kernels with several threads in every rank: what they deliver, where threads run, what is refused."""

import itertools
import os
from collections import Counter

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour
from earlybird.measure.suites import exchange_group

pytestmark = pytest.mark.mpi


def exchange(mpi, tmp_path, rows, num_ranks, threads):
    """Launch the messages `rows` on one socket."""
    pattern = Pattern(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)
    layout = parse_layout(f"1x1x{num_ranks}")
    points = exchange_group(pattern, layout, mpi).points
    request = Request("0", "exchange", points, layout, Rules(budget_s=0.02), pattern, 300, 120)
    return MpiexecLauncher(find_flavour(mpi), threads=threads).launch(request, tmp_path, lambda *_: None)


@pytest.fixture
def only_core(monkeypatch):
    """Leave one CPU to this process and what it starts; gives its number."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield min(allowed)
    os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(("num_ranks", "threads"), [(1, 2), (2, 2), (2, 3), (4, 3)])
def test_threads_deliver_every_message(mpi, tmp_path, num_ranks, threads):
    pairs = [(a, b) for a, b in itertools.product(range(num_ranks), repeat=2) if a != b]
    # Several messages of every pair, of one size and of uneven ones, and empty ones.
    rows = [(a, b, size) for size in (0, 100, 100, 100, 70000, 0) for a, b in pairs]
    rows += [(a, b, 1000 * a + 17 * b) for a, b in pairs[1:]]
    launched = exchange(mpi, tmp_path, rows, num_ranks, threads)
    assert launched.cause is None
    (sample,) = launched.samples
    assert sample.validated and len(sample.times_s) >= 30
    assert sample.rank_times_s.shape == (len(sample.times_s), num_ranks)
    assert np.allclose(sample.rank_times_s.max(axis=1), sample.times_s)
    assert launched.record["thread_level"] == "multiple"
    assert launched.record["threads_per_rank"] == threads
    assert [len(entry["threads"]) for entry in launched.record["placement"]] == [threads] * num_ranks


def test_one_thread_needs_no_thread_level(mpi, tmp_path):
    record = exchange(mpi, tmp_path, [(0, 1, 8), (1, 0, 8), (0, 1, 8)], 2, 1).record
    assert record["thread_level"] == "single" and "--threads" not in record["command_line"]
    assert not any("threads" in entry for entry in record["placement"])


COUNTED = """
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
/* Writes down the thread and the tag of every message of rank 0 that is not empty. */
int MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && count > 0 && getenv("SENT")) {
    FILE *file = fopen(getenv("SENT"), "a");
    fprintf(file, "%ld %d\\n", (long)syscall(SYS_gettid), tag);
    fclose(file);
  }
  return PMPI_Isend(data, count, type, target, tag, comm, request);
}
"""


@pytest.mark.one_mpi
def test_messages_are_dealt_out_in_turn_each_of_a_pair_with_a_tag_of_its_own(
    mpi, tmp_path, preload_source, monkeypatch
):
    preload_source(mpi, COUNTED)
    monkeypatch.setenv("SENT", str(tmp_path / "sent"))
    (sample,) = exchange(mpi, tmp_path, [(0, 1, 8), (1, 0, 8)] * 6, 2, 3).samples
    sent = [line.split() for line in (tmp_path / "sent").read_text().splitlines()]
    iterations = len(sample.times_s)
    assert sorted(Counter(thread for thread, _ in sent).values()) == [2 * iterations] * 3
    assert list(Counter(tag for _, tag in sent).values()) == [iterations] * 6


FEW_TAGS = """
#include <mpi.h>
#include <stdlib.h>
/* Promises tags up to 15 and ends the job when a larger one is used. */
static int largest = 15;
int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *found) {
  if (key != MPI_TAG_UB) return PMPI_Comm_get_attr(comm, key, value, found);
  *(int **)value = &largest;
  *found = 1;
  return MPI_SUCCESS;
}
int MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
  if (tag > largest) abort();
  return PMPI_Isend(data, count, type, target, tag, comm, request);
}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.one_mpi
def test_where_tags_run_out_messages_still_match(mpi, tmp_path, preload_source, threads):
    preload_source(mpi, FEW_TAGS)
    # Three tags for two threads: dealt out in turn, messages of one tag would be on both.
    launched = exchange(mpi, tmp_path, [(0, 1, 500), (1, 0, 500)] * 40, 2, threads)
    assert launched.cause is None
    assert launched.samples[0].validated


FLIP = """
#include <mpi.h>
/* Flips one bit of every message of 100 bytes. */
int MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
  if (count == 100) ((char *)data)[57] ^= 4;
  return PMPI_Isend(data, count, type, target, tag, comm, request);
}
"""


@pytest.mark.parametrize(("size_bytes", "validated"), [(99, True), (100, False)])
def test_a_flipped_bit_of_any_thread_is_noticed(any_mpi, tmp_path, preload_source, size_bytes, validated):
    preload_source(any_mpi, FLIP)
    rows = [(0, 1, 8), (0, 1, size_bytes), (1, 0, 8)]
    (sample,) = exchange(any_mpi, tmp_path, rows, 2, 2).samples
    assert sample.validated is validated


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two threads need two cores")
def test_every_thread_has_a_core_of_its_own(mpi, tmp_path):
    launched = exchange(mpi, tmp_path, [], 1, 2)
    (rank,) = launched.record["placement"]
    first, second = rank["threads"]
    assert first and second and not set(first) & set(second)
    assert rank["cpus"] == sorted(first + second)
    assert not launched.record["oversubscribed"] and not launched.samples[0].oversubscribed


@pytest.mark.one_mpi
def test_more_threads_than_cores_are_marked(mpi, tmp_path, only_core):
    launched = exchange(mpi, tmp_path, [], 1, 2)
    (rank,) = launched.record["placement"]
    assert rank["threads"] == [[only_core]] * 2 and rank["cpus"] == [only_core]
    assert launched.record["oversubscribed"] and launched.samples[0].oversubscribed


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two threads need two cores")
def test_threads_of_all_ranks_count(any_mpi, tmp_path):
    """Two ranks share cores that each could fill alone."""
    num_ranks = len(os.sched_getaffinity(0))
    assert exchange(any_mpi, tmp_path, [], num_ranks, 2).record["oversubscribed"]


@pytest.mark.parametrize(
    ("kernel", "config"),
    [
        ("pingpong", {"buffers": "vary"}),
        ("contention", {"competitors": 2, "directions": 2, "repeats": 3}),
        ("completion", {"receiver": "prompt"}),
    ],
)
def test_kernels_of_single_messages_change_their_thread_level_alone(any_mpi, tmp_path, kernel, config):
    points = ({"mpi": any_mpi, "level": "intra_socket", "size_bytes": 4096} | config,)
    request = Request("0", kernel, points, parse_layout("1x1x2"), Rules(budget_s=0.02), None, 300, 120)
    launcher = MpiexecLauncher(find_flavour(any_mpi), threads=2)
    launched = launcher.launch(request, tmp_path, lambda *_: None)
    assert launched.cause is None and launched.samples[0].validated
    assert launched.record["thread_level"] == "multiple"


SERIALIZED = """
#include <mpi.h>
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int status = PMPI_Init_thread(argc, argv, required, provided);
  *provided = MPI_THREAD_SERIALIZED;
  return status;
}
"""


def test_a_library_without_threads_is_refused_where_they_are_asked_for(any_mpi, tmp_path, preload_source):
    preload_source(any_mpi, SERIALIZED)
    launched = exchange(any_mpi, tmp_path, [], 1, 2)
    assert launched.samples == [] and "--threads is 2" in launched.cause and "serialized" in launched.cause
    assert exchange(any_mpi, tmp_path, [], 1, 1).cause is None
