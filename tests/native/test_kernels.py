"""The kernels under mpiexec: they deliver what they send, notice what is wrong, and record where they ran."""

import itertools
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.methods import PACKINGS
from earlybird.data.pattern import Pattern
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour
from earlybird.measure.replays import REPLAY_PACKERS
from earlybird.measure.suites import exchange_group, staged_group
from earlybird.toolchain.build import kernel_path

pytestmark = pytest.mark.mpi
RULES = Rules(budget_s=0.02)


def launch(mpi, tmp_path, kernel, points, layout, pattern=None, rules=RULES):
    request = Request("0", kernel, points, parse_layout(layout), rules, pattern, 300, 120)
    launched = MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)
    assert launched.cause is None, launched.record
    return launched


@pytest.mark.parametrize("buffers", ["vary", "reuse"])
def test_pingpong_delivers_every_size(mpi, tmp_path, buffers):
    points = [
        {"mpi": mpi, "level": "intra_socket", "size_bytes": size, "buffers": buffers}
        for size in (0, 1, 7, 8, 4097, 1 << 20)
    ]
    launched = launch(mpi, tmp_path, "pingpong", points, "1x1x2")
    assert [sample.config for sample in launched.samples] == points
    assert all(sample.validated for sample in launched.samples)
    assert all(len(sample.times_s) >= 30 and (sample.times_s > 0).all() for sample in launched.samples)


CONTENTS = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
/* How many different messages of 100 bytes rank 0 sends. */
static unsigned seen[10000];
static int count;
static void look(const void *data, int size) {
  unsigned sum = 0;
  if (size != 100) return;
  for (int k = 0; k < 100; k++) sum = 31 * sum + ((const unsigned char *)data)[k];
  for (int k = 0; k < count; k++)
    if (seen[k] == sum) return;
  if (count < 10000) seen[count++] = sum;
}
int MPI_Send(const void *data, int size, MPI_Datatype type, int target, int tag, MPI_Comm comm) {
  look(data, size);
  return PMPI_Send(data, size, type, target, tag, comm);
}
int MPI_Isend(const void *data, int size, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
  look(data, size);
  return PMPI_Isend(data, size, type, target, tag, comm, request);
}
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fprintf(fopen(getenv("CONTENTS"), "w"), "%d", count);
  return PMPI_Finalize();
}
"""


@pytest.mark.parametrize(
    ("kernel", "config", "methods", "messages"),
    [("pingpong", {}, (), 1), ("msgrate", {"window": 5, "threads": 1}, ("processes",), 5)],
)
def test_contents_are_new_in_every_iteration_or_always_the_same(
    any_mpi, tmp_path, monkeypatch, preload_source, kernel, config, methods, messages
):
    preload_source(any_mpi, CONTENTS)
    monkeypatch.setenv("CONTENTS", str(tmp_path / "contents"))
    found = {}
    for buffers in ("vary", "reuse"):
        point = {"mpi": any_mpi, "level": "intra_socket", "size_bytes": 100, "buffers": buffers} | config
        request = Request("0", kernel, [point], parse_layout("1x1x2"), RULES, methods=methods)
        (scratch := tmp_path / buffers).mkdir()
        (sample,) = MpiexecLauncher(find_flavour(any_mpi)).launch(request, scratch, lambda *_: None).samples
        assert sample.validated
        found[buffers] = int((tmp_path / "contents").read_text())
        iterations = len(sample.times_s)
        # Besides, what is in the buffers while a batch is chosen, and in msgrate a last window to check.
        if buffers == "reuse":
            assert found[buffers] <= 3 * messages
        else:
            assert found[buffers] >= iterations * messages > 3 * messages


@pytest.mark.parametrize("competitors", [1, 2, 4])
def test_contention_delivers_every_repeat(mpi, tmp_path, competitors):
    points = [
        {
            "mpi": mpi,
            "level": "intra_socket",
            "competitors": competitors,
            "directions": 1 if competitors == 1 else 2,
            "size_bytes": size,
            "repeats": repeats,
        }
        for size, repeats in ((1, 64), (1000, 3), (65536, 5))
    ]
    launched = launch(mpi, tmp_path, "contention", points, f"1x1x{max(2, competitors)}")
    assert all(sample.validated for sample in launched.samples)
    assert [sample.batch for sample in launched.samples] == [64, 3, 5]


def test_a_packed_exchange_delivers_every_double(any_mpi, tmp_path):
    pattern = Pattern(np.array([0, 1, 1, 0]), np.array([1, 0, 0, 1]), np.array([8, 80008, 13, 0]))
    points = [
        staged_group(
            [pattern, pattern], parse_layout("1x1x2"), any_mpi, packing={"packing": layout, "packing_by": by}
        ).points[0]
        for layout, by in itertools.product(PACKINGS, REPLAY_PACKERS)
    ]
    samples = launch(any_mpi, tmp_path, "exchange", points, "1x1x2", Pattern.joined([pattern] * 2)).samples
    assert [sample.config for sample in samples] == points
    assert all(sample.validated for sample in samples)


UNPACKS = """
#include <mpi.h>
/* Flips a bit of what it unpacked. */
int MPI_Unpack(const void *in, int size, int *position, void *out, int count, MPI_Datatype type,
               MPI_Comm comm) {
  int rc = PMPI_Unpack(in, size, position, out, count, type, comm);
  ((char *)out)[3] ^= 4;
  return rc;
}
"""


def test_a_double_that_is_unpacked_wrongly_is_noticed(any_mpi, tmp_path, preload_source):
    preload_source(any_mpi, UNPACKS)
    pattern = Pattern(np.array([0]), np.array([1]), np.array([800]))
    points = [
        exchange_group(
            pattern, parse_layout("1x1x2"), any_mpi, packing={"packing": "strided", "packing_by": by}
        ).points[0]
        for by in ("mpi", "loop", "datatype")
    ]
    samples = launch(any_mpi, tmp_path, "exchange", points, "1x1x2", pattern).samples
    assert [sample.validated for sample in samples] == [False, True, True]


@pytest.mark.parametrize("num_ranks", [1, 2, 4])
def test_exchange_keeps_every_ranks_time(mpi, tmp_path, num_ranks):
    pairs = [(a, b) for a, b in itertools.product(range(num_ranks), repeat=2) if a != b]
    # Uneven sizes, an empty message, and two messages of one pair, the smaller one second.
    rows = (
        [(a, b, 1000 * a + 17 * b) for a, b in pairs]
        + [(a, b, 5) for a, b in pairs[:1]]
        + [(a, b, 0) for a, b in pairs]
    )
    pattern = Pattern(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)
    group = exchange_group(pattern, parse_layout(f"1x1x{num_ranks}"), mpi)
    (sample,) = launch(mpi, tmp_path, "exchange", group.points, f"1x1x{num_ranks}", pattern).samples
    assert sample.validated
    assert sample.rank_times_s.shape == (len(sample.times_s), num_ranks)
    assert np.allclose(sample.rank_times_s.max(axis=1), sample.times_s)


LATE = """
#include <mpi.h>
#include <unistd.h>
/* Rank 1 leaves every barrier, which alone waits for two at once, 60 ms late, as if it waited for a core. */
int MPI_Testall(int count, MPI_Request *requests, int *done, MPI_Status *statuses) {
  int rank, result = PMPI_Testall(count, requests, done, statuses);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1 && count == 2 && *done) usleep(60000);
  return result;
}
"""


@pytest.mark.one_mpi
def test_where_ranks_share_a_core_a_late_one_is_not_taken_for_a_fast_one(mpi, tmp_path, monkeypatch):
    flavour = find_flavour(mpi)
    (tmp_path / "shim.c").write_text(LATE)
    command = [flavour.mpicc, "-shared", "-fPIC", tmp_path / "shim.c", "-o", tmp_path / "shim.so"]
    subprocess.run(command, check=True, env=flavour.environment())
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "shim.so"))
    pattern = Pattern(*np.array([(0, 1, 8)], dtype=np.int64).T)
    group = exchange_group(pattern, parse_layout("1x1x2"), mpi)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        few = Rules(budget_s=0.02, min_iterations=7)
        (sample,) = launch(mpi, tmp_path, "exchange", group.points, "1x1x2", pattern, few).samples
    finally:
        os.sched_setaffinity(0, allowed)
    assert sample.oversubscribed and sample.extra["clock"] == "one"
    assert (sample.rank_times_s >= 0).all()
    # Its message was there when it came. Rank 0 may be late, too, on a busy machine.
    assert np.median(sample.rank_times_s[:, 1]) > 1e-3


def test_completion_keeps_both_times_and_a_late_receiver_is_late(mpi, tmp_path):
    points = [
        {"mpi": mpi, "level": "intra_socket", "size_bytes": size, "receiver": receiver}
        for size in (0, 1, 4097, 4 << 20)
        for receiver in ("prompt", "late")
    ]
    launched = launch(mpi, tmp_path, "completion", points, "1x1x2")
    for sample in launched.samples:
        assert sample.validated
        assert sample.rank_times_s.shape == (len(sample.times_s), 2)
        assert np.allclose(sample.rank_times_s[:, 1], sample.times_s)
        late = sample.config["receiver"] == "late"
        # A late receiver costs its pause every time: the stop rule does not ask for more.
        assert 3 <= len(sample.times_s) <= 9 if late else len(sample.times_s) >= 30
        # 5 ms after it left the barrier; on a busy machine the sender, whose clock begins, may leave later.
        assert not late or sample.times_s.max() >= 2e-4


@pytest.mark.one_mpi
def test_completion_of_several_pairs_keeps_the_times_of_all(mpi, tmp_path):
    points = [{"mpi": mpi, "level": "intra_socket", "size_bytes": 1 << 20, "receiver": "prompt", "pairs": 2}]
    (sample,) = launch(mpi, tmp_path, "completion", points, "1x1x4").samples
    assert sample.validated and sample.rank_times_s.shape == (len(sample.times_s), 4)
    assert np.allclose(sample.rank_times_s[:, 2], sample.times_s)


def test_a_small_send_is_complete_before_a_late_receiver_comes_and_a_large_one_is_not(mpi, tmp_path):
    points = [
        {"mpi": mpi, "level": "intra_socket", "size_bytes": size, "receiver": "late"} for size in (1, 4 << 20)
    ]
    launched = launch(mpi, tmp_path, "completion", points, "1x1x2")
    small, large = (sample.rank_times_s[:, 0] / sample.rank_times_s[:, 1] for sample in launched.samples)
    # A busy machine may keep the sender from reporting, or from beginning, in some iterations.
    assert small.min() < 0.5
    assert large.max() > 0.5


@pytest.mark.parametrize(
    ("layout", "receiver", "expected"),
    [("1x1x3", "late", "even number of ranks"), ("1x1x2", "never", "receiver=never")],
)
def test_completion_refuses_what_it_cannot_measure(any_mpi, tmp_path, layout, receiver, expected):
    points = [{"level": "intra_socket", "size_bytes": 8, "receiver": receiver}]
    request = Request("0", "completion", points, parse_layout(layout), RULES, None, 300, 120)
    launched = MpiexecLauncher(find_flavour(any_mpi)).launch(request, tmp_path, lambda *_: None)
    assert expected in launched.cause and launched.samples == []


def test_values_of_a_point_are_read_back_unchanged(any_mpi, tmp_path):
    """A point that came back changed would never be recognised as measured."""
    values = {"rate": 1e-10, "half": 0.5, "whole": -3, "large": 1e22}
    values |= {
        "padded": "007",
        "hex": "0x10",
        "open": "1.",
        "beyond": "1e999",
        "word": "nan",
        "blank": 'a "b" \u2028',
    }
    points = [{"mpi": any_mpi, "level": "intra_socket", "size_bytes": 8, "buffers": "vary"} | values]
    (sample,) = launch(any_mpi, tmp_path, "pingpong", points, "1x1x2").samples
    assert sample.config == points[0]


def test_launch_record_contains_library_clock_and_cores(mpi, tmp_path):
    points = [{"mpi": mpi, "level": "intra_socket", "size_bytes": 8, "buffers": "vary"}]
    record = launch(mpi, tmp_path, "pingpong", points, "1x1x2").record
    assert find_flavour(mpi).version in record["library_version"]
    assert 0 < record["clock"]["resolution_s"] < 1e-3
    assert [entry["rank"] for entry in record["placement"]] == [0, 1]
    assert all(len(entry["cpus"]) == 1 for entry in record["placement"])
    assert record["transport"] == "intra-node"
    assert record["clock"]["residual_s"] == 0


def test_paper_mode_takes_150_iterations_after_one_warmup(any_mpi, tmp_path):
    points = [{"mpi": any_mpi, "level": "intra_socket", "size_bytes": 8, "buffers": "vary"}]
    rules = Rules(mode="paper", paper_retries=5)
    (sample,) = launch(any_mpi, tmp_path, "pingpong", points, "1x1x2", rules=rules).samples
    assert len(sample.steady_times_s()) == 150
    assert len(sample.times_s) % 151 == 0
    # Not converged only when all retries were used.
    assert sample.converged or len(sample.times_s) == 6 * 151


def test_a_point_that_takes_long_ends_with_fewer_iterations(any_mpi, tmp_path):
    points = [{"mpi": any_mpi, "level": "intra_socket", "size_bytes": 8, "buffers": "vary"}]
    rules = Rules(budget_s=10.0, min_iterations=100, target=1e-9, most_s=1e-7)
    (sample,) = launch(any_mpi, tmp_path, "pingpong", points, "1x1x2", rules=rules).samples
    assert len(sample.times_s) == 1 and not sample.converged


SHIM = """
#include <mpi.h>
/* Flips one bit of every message of 100 bytes, received by MPI_Recv or sent by MPI_Isend. */
int MPI_Recv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status) {
  int result = PMPI_Recv(data, count, type, source, tag, comm, status);
  if (count == 100) ((char *)data)[57] ^= 4;
  return result;
}
int MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
  if (count == 100) ((char *)data)[57] ^= 4;
  return PMPI_Isend(data, count, type, target, tag, comm, request);
}
"""


@pytest.mark.parametrize(
    ("kernel", "extra"), [("pingpong", {"buffers": "vary"}), ("completion", {"receiver": "late"})]
)
@pytest.mark.one_mpi
def test_a_flipped_bit_is_noticed(mpi, tmp_path, monkeypatch, kernel, extra):
    flavour = find_flavour(mpi)
    (tmp_path / "shim.c").write_text(SHIM)
    subprocess.run(
        [flavour.mpicc, "-shared", "-fPIC", tmp_path / "shim.c", "-o", tmp_path / "shim.so"],
        check=True,
        env=flavour.environment(),
    )
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "shim.so"))
    points = [{"mpi": mpi, "level": "intra_socket", "size_bytes": size} | extra for size in (99, 100)]
    launched = launch(mpi, tmp_path, kernel, points, "1x1x2")
    assert [sample.validated for sample in launched.samples] == [True, False]


def test_a_launch_that_is_refused_leaves_no_shared_memory(mpi, tmp_path):
    """Its ranks end without MPI_Finalize, before anybody has looked at them."""
    points = [{"mpi": mpi, "level": "intra_socket", "size_bytes": 8, "buffers": "new"}]
    request = Request("0", "pingpong", points, parse_layout("1x1x2"), RULES, None, 300, 120)
    launched = MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)
    assert "give vary or reuse" in launched.cause
    reported = (tmp_path / "samples.ndjson.shared").read_text().split()
    assert reported or mpi == "intel"  # which leaves no name
    assert all(path.startswith("/dev/shm/") for path in reported)
    assert [path for path in reported if Path(path).exists()] == []


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 1, 8, 1, 0], "message 1 of the pattern is cut off"),
        ([0, 2, 8], "message 0 of the pattern goes from rank 0 to rank 2; start more than 2 ranks"),
        ([0, 1, 8, -1, 0, 8], "message 1 of the pattern goes from rank -1 to rank 0"),
        ([0, 1, -8], "message 0 of the pattern has -8 bytes"),
        ([0, 1, 1 << 31], "message 0 of the pattern has 2147483648 bytes"),
    ],
)
def test_patterns_that_the_exchange_cannot_send_are_refused(any_mpi, tmp_path, numbers, expected):
    flavour = find_flavour(any_mpi)
    request = {"options": {"out": "out", "pattern": "pattern"}, "points": [{"note": "pattern"}]}
    (tmp_path / "request.json").write_text(json.dumps(request))
    np.array(numbers, dtype=np.int64).tofile(tmp_path / "pattern")
    command = [
        flavour.mpiexec, "-n", "2", kernel_path(flavour, "exchange"), "request.json",
    ]  # fmt: skip
    result = subprocess.run(
        command, env=flavour.environment(), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert result.returncode != 0
    assert expected in result.stderr


def test_a_rank_begins_a_stage_when_its_messages_of_the_one_before_are_complete(mpi, tmp_path):
    # Rank 1 sends a byte to rank 2 when it has received a megabyte, so rank 2 takes about as long.
    stages = [Pattern([0], [1], [1 << 20]), Pattern([1, 0], [2, 3], [1, 0]), Pattern([0], [1], [0])]
    group = staged_group(stages, parse_layout("1x1x4"), mpi)
    (sample,) = launch(mpi, tmp_path, "exchange", group.points, "1x1x4", group.pattern).samples
    assert sample.validated and sample.config["stages"] == "1+2+1"
    _, receiver_s, next_s, _ = np.median(sample.rank_times_s, axis=0)
    assert next_s > receiver_s / 3


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ("1", "more messages than the stages"),
        ("1+2", "have 3 messages and the pattern has 2"),
        ("1+x", "such as 12+5"),
    ],
)
@pytest.mark.one_mpi
def test_stages_that_do_not_fit_the_pattern_are_refused(mpi, tmp_path, stages, says):
    pattern, layout = Pattern([0, 1], [1, 0], [1, 1]), parse_layout("1x1x2")
    points = [{"mpi": mpi, "stages": stages}]
    request = Request("0", "exchange", points, layout, RULES, pattern, 300, 120)
    launched = MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)
    assert says in launched.cause
