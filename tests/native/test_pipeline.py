"""The pipeline kernel under mpiexec: every method delivers, in rounds of changing order, and tells its
delay."""

import os
from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import features

pytestmark = pytest.mark.mpi

TWO = ("single", "many")
RMA = ("rma-single-passive", "rma-many-passive", "rma-single-active", "rma-many-active", "rma-fence")


RULES = Rules(budget_s=0.02)
SHORT = Rules(budget_s=0.01, min_iterations=6)


def point(size_bytes, partitions, gamma_s_per_byte=0.0):
    return {
        "mpi": "here",
        "level": "intra_socket",
        "size_bytes": size_bytes,
        "partitions": partitions,
        "gamma_s_per_byte": gamma_s_per_byte,
    }


def launch(
    mpi, tmp_path, points, methods=TWO, layout="1x1x2", preload=False, threads=1, rules=RULES, streams=0
):
    request = Request(
        "0", "pipeline", points, parse_layout(layout), rules, None, 300, 120, methods, preload, threads,
        streams=streams,
    )  # fmt: skip
    heard = []
    launcher = MpiexecLauncher(find_flavour(mpi))
    launched = launcher.launch(request, tmp_path, lambda *progress: heard.append(progress))
    assert not heard or heard[-1][0] <= len(points)
    return launched


def methods_of_one_launch(mpi, preload):
    """All that a launch with or without libearlybird can hold, streams included; and for how many streams the
    MPI must have room."""
    streams = int(features(find_flavour(mpi))["has_streams"])
    ours = ("earlybird", "earlybird:14", "earlybird-partition", "earlybird-segments:2", "earlybird-fresh")
    own = ours if preload else ("partitioned",)
    return (*TWO, *RMA, *own, *(("stream",) if streams else ())), streams


def test_every_method_delivers_every_size(mpi, tmp_path):
    points = [point(21, 3), point(7, 1), point(0, 2), point(4096, 4, 1e-9), point(3 << 20, 3, 1e-10)]
    methods, streams = methods_of_one_launch(mpi, preload=False)
    launched = launch(mpi, tmp_path, points, methods, rules=SHORT, streams=streams)
    assert launched.cause is None
    found = [(sample.config, sample.method) for sample in launched.samples]
    assert found == [(config, method) for config in points for method in methods]
    for sample in launched.samples:
        assert sample.validated and len(sample.times_s) >= 6
        assert sample.rounds.tolist() == list(range(len(sample.times_s)))
        assert sample.extra["clock"] == "one"
    for k in range(0, len(launched.samples), len(methods)):
        assert len({len(sample.times_s) for sample in launched.samples[k : k + len(methods)]}) == 1


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_every_method_delivers_from_several_threads(mpi, tmp_path, threads):
    partitions = threads if threads > 2 else 2 * threads
    methods, streams = methods_of_one_launch(mpi, preload=True)
    config = point(7 * partitions, partitions) | {"threads": threads}
    configs = [config, config | {"receivers": "threads"}]
    launched = launch(
        mpi,
        tmp_path,
        configs,
        methods,
        preload=True,
        threads=threads,
        rules=SHORT,
        streams=streams * threads,
    )
    assert launched.cause is None and launched.record["thread_level"] == "multiple"
    found = [(sample.config, sample.method) for sample in launched.samples]
    assert found == [(config, method) for config in configs for method in methods]
    assert all(sample.validated for sample in launched.samples)


@pytest.mark.one_mpi
def test_the_delay_is_waited_recorded_and_not_part_of_the_time(mpi, tmp_path, counted_clock):
    counted_clock(mpi)
    launched = launch(mpi, tmp_path, [point(300, 3, 3e-5)])
    for sample in launched.samples:
        assert sample.extra["delay_s"] == pytest.approx(3e-3)
        assert len(sample.extra["delays_s"]) == len(sample.times_s)
        assert (np.array(sample.extra["delays_s"]) >= 3e-3 * (1 - 1e-6)).all()
        # Nobody reads the clock for as long as the delay once that has passed.
        assert (sample.times_s > 0).all() and sample.times_s.max() < 1.5e-3


def test_without_a_delay_nothing_is_subtracted(any_mpi, tmp_path):
    for sample in launch(any_mpi, tmp_path, [point(4096, 4, 0.0)]).samples:
        assert sample.extra["delay_s"] == 0
        assert set(sample.extra["delays_s"]) == {0}
        assert (sample.times_s > 0).all()


def test_ranks_that_share_a_core_deliver_too(any_mpi, tmp_path):
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        launched = launch(any_mpi, tmp_path, [point(300, 3, 1e-5)])
    finally:
        os.sched_setaffinity(0, allowed)
    assert launched.cause is None and len(launched.samples) == 2
    for sample in launched.samples:
        assert sample.validated and sample.oversubscribed
        assert min(sample.extra["delays_s"]) >= 1e-3 * (1 - 1e-6)


OURS = ("single", "earlybird", "earlybird-fresh")


def test_partitioned_methods_deliver_and_say_whose_they_are(mpi, tmp_path):
    points = [point(21, 3), point(0, 2), point(3 << 20, 3, 1e-10)]
    for preload, methods in ((False, ("single", "partitioned")), (True, OURS)):
        scratch = tmp_path / f"{preload}"
        scratch.mkdir()
        launched = launch(mpi, scratch, points, methods, preload=preload, rules=SHORT)
        assert launched.cause is None
        assert [(s.config, s.method) for s in launched.samples] == [
            (p, method) for p in points for method in methods
        ]
        assert all(sample.validated for sample in launched.samples)
        names = [os.path.basename(path) for path in launched.record["preloaded"]]
        assert names == (["libearlybird.so"] if preload else [])


def test_libearlybird_plans_before_its_times_count(any_mpi, tmp_path):
    samples = launch(any_mpi, tmp_path, [point(4096, 4)], OURS, preload=True).samples
    ours = next(sample for sample in samples if sample.method == "earlybird")
    assert ours.warmup >= 40 and len(ours.steady_times_s()) >= 30


def test_starts_of_all_methods_are_interleaved_from_the_first_on(any_mpi, tmp_path):
    config = point(4096, 4, 1e-8) | {"starts": 20}
    for sample in launch(any_mpi, tmp_path, [config], OURS, preload=True).samples:
        assert sample.validated and sample.rounds.tolist() == list(range(20))
        assert sample.rank_times_s.shape == (20, 2)
        assert (sample.rank_times_s[:, 1] == sample.times_s).all()


@pytest.mark.parametrize(
    ("method", "preload", "expected"),
    [("earlybird", False, "not loaded"), ("partitioned", True, "is loaded")],
)
def test_a_sample_is_never_of_another_library_than_its_method_says(
    any_mpi, tmp_path, method, preload, expected
):
    launched = launch(any_mpi, tmp_path, [point(21, 3)], ("single", method), preload=preload)
    assert expected in launched.cause and launched.samples == []


def test_the_mpis_own_partitioned_calls_take_several_threads(mpi, tmp_path):
    points = [point(21, 3), point(42, 6, 1e-6), point(42, 6) | {"receivers": "threads"}]
    launched = launch(mpi, tmp_path, points, ("single", "partitioned"), threads=3, rules=SHORT)
    assert launched.cause is None and len(launched.samples) == 6
    assert all(sample.validated for sample in launched.samples)


@pytest.mark.parametrize("threads", [1, 2])
def test_noisy_computations_are_alike_in_a_round_and_no_part_of_the_time(
    any_mpi, tmp_path, counted_clock, threads
):
    """Each thread computes 3 partitions for 1 ms each, give or take 30 %: the slowest thread counts."""
    counted_clock(any_mpi)
    noise = {"compute_s_per_byte": 1e-6, "epsilon": 0.2, "delta": 0.4}
    config = point(3000 * threads, 3 * threads) | noise
    del config["gamma_s_per_byte"]
    launched = launch(any_mpi, tmp_path, [config], threads=threads, rules=replace(SHORT, min_iterations=20))
    delays = [np.array(sample.extra["delays_s"]) for sample in launched.samples]
    for sample, delays_s in zip(launched.samples, delays, strict=True):
        assert sample.validated and sample.extra["delay_s"] == pytest.approx(3e-3)
        assert np.median(delays_s) > 2.5e-3 and np.ptp(delays_s) > 3e-4
        assert (sample.times_s > 0).all()
    if threads == 1:  # a pause of one thread takes the clock of all on
        single, many = delays
        assert np.median(abs(single - many)) < np.std(single)


@pytest.mark.parametrize(
    ("config", "methods", "layout", "expected"),
    [
        (point(8, 0), TWO, "1x1x2", "partitions=0"),
        (point(7, 2), TWO, "1x1x2", "size_bytes=7 partitions=2"),
        (point(8, 2, -1e-9), TWO, "1x1x2", "gamma_s_per_byte=-1e-09"),
        (point(8, 2, "often"), TWO, "1x1x2", "gamma_s_per_byte=often"),
        (point(8, 2) | {"compute_s_per_byte": 0}, TWO, "1x1x2", "give one"),
        (point(8, 2) | {"threads": 2}, TWO, "1x1x2", "threads=2 and its options threads=1"),
        (point(8, 2), ("single", "earlybird:many"), "1x1x2", "no method earlybird:many"),
        (point(8, 2), ("single", "pigeon"), "1x1x2", "no method pigeon"),
        (point(8, 2) | {"starts": 0}, TWO, "1x1x2", "starts=0"),
        (point(8, 2) | {"receivers": "all"}, TWO, "1x1x2", "receivers=all; give one or threads"),
        (point(8, 2), (), "1x1x2", "needs methods"),
        (point(8, 2), TWO, "1x1x3", "exactly 2 ranks"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, config, methods, layout, expected):
    launched = launch(any_mpi, tmp_path, [config], methods, layout)
    assert expected in launched.cause and launched.samples == []


def test_threads_have_as_many_partitions_each(any_mpi, tmp_path):
    launched = launch(any_mpi, tmp_path, [point(21, 3)], threads=2)
    assert "partitions=3 and there are 2 threads" in launched.cause and launched.samples == []


def test_streams_that_the_mpi_does_not_have_are_reported(any_mpi, tmp_path):
    """MPICH makes as many as it was asked to keep contexts for, and others know none."""
    launched = launch(any_mpi, tmp_path, [point(21, 3)], ("single", "stream"))
    why = "no stream for every thread" if features(find_flavour(any_mpi))["has_streams"] else "no streams"
    assert why in launched.cause and "the method stream" in launched.cause and launched.samples == []


NO_WINDOWS = """
#include <mpi.h>
/* An MPI without remote memory access here: windows cannot be made. */
int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win) {
  return MPI_ERR_OTHER;
}
"""


def test_an_mpi_that_cannot_create_windows_is_reported(any_mpi, tmp_path, preload_source):
    preload_source(any_mpi, NO_WINDOWS)
    launched = launch(any_mpi, tmp_path, [point(21, 3)], ("single", "rma-fence"))
    assert "cannot create a window" in launched.cause and "the method rma-fence" in launched.cause


WINDOWS = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
/* Writes down where each window of rank 1 begins and how many bytes it has. */
int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win) {
  int rank;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 1) {
    FILE *file = fopen(getenv("MADE"), "a");
    fprintf(file, "%ld %ld\\n", (long)base, (long)size);
    fclose(file);
  }
  return PMPI_Win_create(base, size, unit, info, comm, win);
}
"""


@pytest.mark.parametrize("method", ["rma-many-passive", "rma-many-active"])
def test_windows_of_threads_do_not_overlap(any_mpi, tmp_path, preload_source, monkeypatch, method):
    """Threads that put into overlapping windows at once have no defined result (MPI 4.1 section 12.2.1)."""
    preload_source(any_mpi, WINDOWS)
    monkeypatch.setenv("MADE", str(tmp_path / "made"))
    launched = launch(any_mpi, tmp_path, [point(42, 6)], ("single", method), threads=3, rules=SHORT)
    assert launched.cause is None and all(sample.validated for sample in launched.samples)
    made = [tuple(map(int, line.split())) for line in (tmp_path / "made").read_text().splitlines()]
    begin = made[0][0]
    assert made == [(begin + 14 * thread, 14) for thread in range(3)]


COMMUNICATORS = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
/* Writes down the size and the communicator of every persistent message. */
int MPI_Send_init(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                  MPI_Request *request) {
  FILE *file = fopen(getenv("SENT"), "a");
  fprintf(file, "%d %d\\n", count, MPI_Comm_c2f(comm));
  fclose(file);
  return PMPI_Send_init(data, count, type, target, tag, comm, request);
}
"""


def test_many_has_a_communicator_per_thread(any_mpi, tmp_path, preload_source, monkeypatch):
    preload_source(any_mpi, COMMUNICATORS)
    monkeypatch.setenv("SENT", str(tmp_path / "sent"))
    assert launch(any_mpi, tmp_path, [point(42, 6)], threads=3, rules=SHORT).cause is None
    sent = [tuple(line.split()) for line in (tmp_path / "sent").read_text().splitlines()]
    single, *many = [comm for _, comm in sent]
    assert [size for size, _ in sent] == ["42"] + ["7"] * 6
    assert many[0::2] == many[1::2] and len({single, *many}) == 4


SHIM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
/* Writes down the size of every persistent message started; flips one bit of those of FLIPPED bytes. */
static struct { MPI_Request request; char *data; int count; } made[64];
static int num_made;
int MPI_Send_init(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                  MPI_Request *request) {
  int rc = PMPI_Send_init(data, count, type, target, tag, comm, request);
  made[num_made].request = *request;
  made[num_made].data = (char *)data;
  made[num_made++].count = count;
  return rc;
}
int MPI_Start(MPI_Request *request) {
  for (int k = 0; k < num_made; k++) {
    if (made[k].request != *request) continue;
    FILE *file = fopen(getenv("SENT"), "a");
    fprintf(file, "%d\\n", made[k].count);
    fclose(file);
    if (made[k].count == atoi(getenv("FLIPPED"))) made[k].data[57] ^= 4;
  }
  return PMPI_Start(request);
}
"""


@pytest.fixture
def shimmed(tmp_path, monkeypatch, preload_source):
    """Launch with the shim before the MPI library; returns the samples and the sizes sent, in order."""

    def start(mpi, config, flipped):
        preload_source(mpi, SHIM)
        sent = tmp_path / f"sent-{flipped}"
        monkeypatch.setenv("SENT", str(sent))
        monkeypatch.setenv("FLIPPED", str(flipped))
        scratch = tmp_path / f"launch-{flipped}"
        scratch.mkdir()
        samples = launch(mpi, scratch, [config]).samples
        return samples, [int(line) for line in sent.read_text().split()]

    return start


def test_methods_take_turns_and_send_what_their_names_say(mpi, shimmed):
    samples, sent = shimmed(mpi, point(300, 3), flipped=-1)
    single, many = [300], [100, 100, 100]
    rounds = [[*single, *many], [*many, *single]]
    expected = [size for k in range(len(samples[0].times_s)) for size in rounds[k % 2]]
    assert sent == expected


def test_a_flipped_bit_is_noticed_of_the_method_it_came(any_mpi, shimmed):
    for flipped, validated in ((300, [False, True]), (100, [True, False])):
        samples, _ = shimmed(any_mpi, point(300, 3), flipped)
        assert [sample.validated for sample in samples] == validated


RECEIVING = """
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
/* Writes down which thread of rank 1 calls what. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void note(const char *call) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 1) return;
  pthread_mutex_lock(&lock);
  FILE *file = fopen(getenv("CALLED"), "a");
  fprintf(file, "%s %lu\\n", call, (unsigned long)pthread_self());
  fclose(file);
  pthread_mutex_unlock(&lock);
}
int MPI_Startall(int count, MPI_Request requests[]) {
  note("MPI_Startall");
  return PMPI_Startall(count, requests);
}
int MPI_Parrived(MPI_Request request, int partition, int *flag) {
  note("MPI_Parrived");
  return PMPI_Parrived(request, partition, flag);
}
"""


def test_receiving_threads_wait_for_their_own_messages_and_partitions(
    any_mpi, tmp_path, preload_source, monkeypatch
):
    preload_source(any_mpi, RECEIVING)
    callers = {}
    for receivers in ("one", "threads"):
        called = tmp_path / receivers
        monkeypatch.setenv("CALLED", str(called))
        scratch = tmp_path / f"launch-{receivers}"
        scratch.mkdir()
        points = [point(42, 6) | {"receivers": receivers}]
        methods = ("single", "many", "partitioned")
        launched = launch(any_mpi, scratch, points, methods, threads=3, rules=SHORT)
        assert launched.cause is None and all(sample.validated for sample in launched.samples)
        lines = {tuple(line.split()) for line in called.read_text().splitlines()}
        callers[receivers] = [
            sum(call == name for call, _ in lines) for name in ("MPI_Startall", "MPI_Parrived")
        ]
    assert callers == {"one": [1, 0], "threads": [3, 3]}
