"""The pipeline kernel under mpiexec: every way delivers, in rounds of changing order, and tells its delay."""

import os
import subprocess

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour
from earlybird.measure.pipeline import PIPELINE_WAYS

pytestmark = pytest.mark.mpi


def point(size_bytes, partitions, gamma_s_per_byte=0.0):
    return {
        "mpi": "here",
        "level": "intra_socket",
        "size_bytes": size_bytes,
        "partitions": partitions,
        "gamma_s_per_byte": gamma_s_per_byte,
    }


def launch(mpi, tmp_path, points, ways=PIPELINE_WAYS, layout="1x1x2", preload=False, threads=1):
    request = Request(
        "0", "pipeline", points, parse_layout(layout), Rules(budget_s=0.02), None, 300, 120, ways, preload
    )
    heard = []
    launcher = MpiexecLauncher(find_flavour(mpi), threads=threads)
    launched = launcher.launch(request, tmp_path, lambda *told: heard.append(told))
    assert not heard or heard[-1][0] <= len(points)
    return launched


def test_every_way_delivers_every_size(mpi, tmp_path):
    points = [point(21, 3), point(7, 1), point(0, 2), point(4096, 4, 1e-9), point(3 << 20, 3, 1e-10)]
    launched = launch(mpi, tmp_path, points)
    assert launched.cause is None
    found = [(sample.config, sample.way) for sample in launched.samples]
    assert found == [(config, way) for config in points for way in PIPELINE_WAYS]
    for sample in launched.samples:
        assert sample.validated and len(sample.times_s) >= 30
        assert sample.rounds.tolist() == list(range(len(sample.times_s)))
        assert sample.extra["clock"] == "one"
    for single, many in zip(launched.samples[::2], launched.samples[1::2], strict=True):
        assert len(single.times_s) == len(many.times_s)


def test_the_delay_is_waited_told_and_no_part_of_the_time(mpi, tmp_path):
    launched = launch(mpi, tmp_path, [point(300, 3, 3e-5)])
    for sample in launched.samples:
        assert sample.extra["delay_s"] == pytest.approx(3e-3)
        assert len(sample.extra["delays_s"]) == len(sample.times_s)
        assert (np.array(sample.extra["delays_s"]) >= 3e-3 * (1 - 1e-6)).all()
        # A few hundred bytes are there long before the delay would have passed again, at least while nobody
        # else has the cores.
        assert (sample.times_s > 0).all() and sample.times_s.min() < 1.5e-3


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


def test_partitioned_ways_deliver_and_say_whose_they_are(mpi, tmp_path):
    points = [point(21, 3), point(0, 2), point(3 << 20, 3, 1e-10)]
    for preload, ways in ((False, ("single", "partitioned")), (True, OURS)):
        scratch = tmp_path / f"{preload}"
        scratch.mkdir()
        launched = launch(mpi, scratch, points, ways, preload=preload)
        assert launched.cause is None
        assert [(s.config, s.way) for s in launched.samples] == [(p, way) for p in points for way in ways]
        assert all(sample.validated for sample in launched.samples)
        names = [os.path.basename(path) for path in launched.record["preloaded"]]
        assert names == (["libearlybird.so"] if preload else [])


def test_libearlybird_plans_before_its_times_count(any_mpi, tmp_path):
    samples = launch(any_mpi, tmp_path, [point(4096, 4)], OURS, preload=True).samples
    ours = next(sample for sample in samples if sample.way == "earlybird")
    assert ours.warmup >= 40 and len(ours.steady_times_s()) >= 30


@pytest.mark.parametrize(
    ("way", "preload", "words"), [("earlybird", False, "not loaded"), ("partitioned", True, "is loaded")]
)
def test_a_sample_is_never_of_another_library_than_its_way_says(any_mpi, tmp_path, way, preload, words):
    launched = launch(any_mpi, tmp_path, [point(21, 3)], ("single", way), preload=preload)
    assert words in launched.cause and launched.samples == []


@pytest.mark.parametrize(("preload", "way"), [(False, "partitioned"), (True, "earlybird")])
def test_threads_share_the_partitions(any_mpi, tmp_path, preload, way):
    ways = ("single", "many", way)
    launched = launch(any_mpi, tmp_path, [point(56, 8), point(21, 3, 1e-6)], ways, preload=preload, threads=2)
    assert launched.cause is None and len(launched.samples) == 6
    assert all(sample.validated for sample in launched.samples)


@pytest.mark.parametrize(
    ("config", "ways", "layout", "words"),
    [
        (point(8, 0), PIPELINE_WAYS, "1x1x2", "partitions=0"),
        (point(7, 2), PIPELINE_WAYS, "1x1x2", "size_bytes=7 partitions=2"),
        (point(8, 2, -1e-9), PIPELINE_WAYS, "1x1x2", "gamma_s_per_byte=-1e-09"),
        (point(8, 2, "often"), PIPELINE_WAYS, "1x1x2", "gamma_s_per_byte=often"),
        (point(8, 2), ("single", "pigeon"), "1x1x2", "no way pigeon"),
        (point(8, 2), (), "1x1x2", "--ways"),
        (point(8, 2), PIPELINE_WAYS, "1x1x3", "exactly 2 ranks"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, config, ways, layout, words):
    launched = launch(any_mpi, tmp_path, [config], ways, layout)
    assert words in launched.cause and launched.samples == []


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
def shimmed(tmp_path, monkeypatch):
    """Launch with the shim before the MPI library; returns the samples and the sizes sent, in order."""

    def start(mpi, config, flipped):
        flavour = find_flavour(mpi)
        (tmp_path / "shim.c").write_text(SHIM)
        command = [flavour.mpicc, "-shared", "-fPIC", tmp_path / "shim.c", "-o", tmp_path / "shim.so"]
        subprocess.run(command, check=True, env=flavour.environment())
        sent = tmp_path / f"sent-{flipped}"
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "shim.so"))
        monkeypatch.setenv("SENT", str(sent))
        monkeypatch.setenv("FLIPPED", str(flipped))
        scratch = tmp_path / f"launch-{flipped}"
        scratch.mkdir()
        samples = launch(mpi, scratch, [config]).samples
        return samples, [int(line) for line in sent.read_text().split()]

    return start


def test_ways_take_turns_and_send_what_their_names_say(mpi, shimmed):
    samples, sent = shimmed(mpi, point(300, 3), flipped=-1)
    single, many = [300], [100, 100, 100]
    rounds = [[*single, *many], [*many, *single]]
    expected = [size for k in range(len(samples[0].times_s)) for size in rounds[k % 2]]
    assert sent == expected


def test_a_flipped_bit_is_noticed_of_the_way_it_came(any_mpi, shimmed):
    for flipped, validated in ((300, [False, True]), (100, [True, False])):
        samples, _ = shimmed(any_mpi, point(300, 3), flipped)
        assert [sample.validated for sample in samples] == validated
