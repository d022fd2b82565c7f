"""The msgrate kernel under mpiexec: every method delivers every message, and the times of threads are
kept."""

import subprocess

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour

pytestmark = pytest.mark.mpi
BESIDE = ("shared", "per-thread")
CONTEXTS = ("per-thread-contexts",)


def point(threads, size_bytes=8, window=64):
    return {"mpi": "here", "level": "intra_socket", "size_bytes": size_bytes, "window": window,
            "threads": threads}  # fmt: skip


def launch(mpi, tmp_path, points, methods=BESIDE, layout="1x1x2", threads=1, vcis=None):
    rules = Rules(budget_s=0.01, min_iterations=3)
    request = Request(
        "0",
        "msgrate",
        points,
        parse_layout(layout),
        rules,
        None,
        300,
        120,
        methods,
        threads=threads,
        vcis=vcis,
    )
    return MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_deliver_every_message_and_each_has_its_time(mpi, tmp_path, threads):
    points = [point(threads), point(threads, 3, 5), point(threads, 0, 1)]
    points.append(point(threads, 3, 5) | {"buffers": "reuse"})
    launched = launch(mpi, tmp_path, points, threads=threads)
    assert launched.cause is None
    assert [(s.config, s.method) for s in launched.samples] == [
        (p, method) for p in points for method in BESIDE
    ]
    # What a communicator for several threads costs is asked of one thread, too.
    assert launched.record["thread_level"] == "multiple"
    for sample in launched.samples:
        assert sample.validated and sample.quantity == "time_per_window"
        times_s = np.array(sample.extra["thread_times_s"])
        assert times_s.shape == (len(sample.times_s), threads)
        # Each from its own first message; together they begin before and end after that.
        assert (times_s > 0).all() and (times_s.max(axis=1) <= sample.times_s * (1 + 1e-6)).all()


def test_processes_deliver_without_threads(mpi, tmp_path):
    launched = launch(mpi, tmp_path, [point(2)], ("processes",), "1x1x4")
    (sample,) = launched.samples
    assert sample.validated and launched.record["thread_level"] == "single"
    assert np.array(sample.extra["thread_times_s"]).shape == (len(sample.times_s), 2)


@pytest.mark.parametrize("method", ["funneled", "serialized"])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_of_lower_levels_deliver_and_the_mpi_is_asked_for_that_level(mpi, tmp_path, method, threads):
    points = [point(threads, 100, 5), point(threads) | {"buffers": "reuse"}]
    launched = launch(mpi, tmp_path, points, (method,), threads=threads)
    assert launched.cause is None and len(launched.samples) == 2
    # An MPI may provide a higher level than was required.
    assert launched.record["thread_level"] in (
        (method,) if mpi == "mpich" else (method, "serialized", "multiple")
    )
    for sample in launched.samples:
        assert sample.validated
        assert np.array(sample.extra["thread_times_s"]).shape == (len(sample.times_s), threads)


@pytest.mark.parametrize(
    ("mpi", "methods"), [("mpich", ("shared", *CONTEXTS)), ("intel", CONTEXTS)], indirect=["mpi"]
)
def test_threads_with_contexts_of_the_mpi_deliver(mpi, tmp_path, methods):
    launched = launch(mpi, tmp_path, [point(2), point(2, 100, 3)], methods, threads=2, vcis=2)
    assert launched.cause is None and len(launched.samples) == 2 * len(methods)
    assert all(sample.validated for sample in launched.samples)


@pytest.mark.parametrize(
    ("config", "methods", "layout", "expected"),
    [
        (point(1) | {"buffers": "new"}, BESIDE, "1x1x2", "buffers=new; give vary or reuse"),
        (point(1, window=0), BESIDE, "1x1x2", "window=0"),
        (point(1, -1), BESIDE, "1x1x2", "size_bytes=-1"),
        (point(2), BESIDE, "1x1x2", "threads=2 and the launch has 1 sending threads"),
        (point(2), ("processes",), "1x1x2", "threads=2 and the launch has 1 single-threaded"),
        (point(1), ("pigeon",), "1x1x2", "no method pigeon"),
        (point(1), (), "1x1x2", "needs methods"),
        (point(1), ("shared", "funneled"), "1x1x2", "in launches of its own thread level"),
        (point(1), BESIDE, "1x1x3", "even number"),
        (point(1), BESIDE, "1x1x4", "exactly 2 ranks"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, config, methods, layout, expected):
    launched = launch(any_mpi, tmp_path, [config], methods, layout)
    assert expected in launched.cause and launched.samples == []


SHIM = """
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
/* Of windows of 5 messages, the second is sent with the contents of the first, or with a bit flipped. */
static const char *first;
static int number;
int MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
  static char changed[100];
  if (count == 100 && number++ % 5 == 0) first = data;
  if (count == 100 && number % 5 == 2) {
    memcpy(changed, strcmp(getenv("FAULT"), "twice") == 0 ? first : data, 100);
    if (strcmp(getenv("FAULT"), "bit") == 0) changed[57] ^= 4;
    data = changed;
  }
  return PMPI_Isend(data, count, type, target, tag, comm, request);
}
"""


@pytest.mark.parametrize("fault", ["twice", "bit"])
def test_a_message_that_comes_twice_or_changed_is_noticed(any_mpi, tmp_path, monkeypatch, fault):
    flavour = find_flavour(any_mpi)
    (tmp_path / "shim.c").write_text(SHIM)
    command = [flavour.mpicc, "-shared", "-fPIC", tmp_path / "shim.c", "-o", tmp_path / "shim.so"]
    subprocess.run(command, check=True, env=flavour.environment())
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "shim.so"))
    monkeypatch.setenv("FAULT", fault)
    samples = launch(any_mpi, tmp_path, [point(1, 100, 5)]).samples
    assert [sample.validated for sample in samples] == [False, False]
