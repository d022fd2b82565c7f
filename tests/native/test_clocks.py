"""Clock synchronisation between nodes: one-way times are correct although the clocks differ."""

import os
import subprocess

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.launch.launcher import Launched, Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour
from earlybird.measure.suites import exchange_group
from tests.partitioned import run_ranks, suite_program

CLOCKS = "EARLYBIRD_TEST_CLOCK"


def fit_lines(mpi: str, rows: list[np.ndarray]) -> list[list[float]]:
    """(at, offset, drift, own reading of the shortest exchange, mean round trip) that the harness finds."""
    text = "".join(" ".join(map(repr, row.ravel().tolist())) + "\n" for row in rows)
    program = suite_program(find_flavour(mpi), "clock_line_check")
    output = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout
    return [[float(word) for word in line.split()] for line in output.splitlines()]


def test_the_line_is_that_of_weighted_least_squares(any_mpi):
    random = np.random.default_rng(5)
    rows = []
    for _ in range(20):
        count = random.integers(2, 40)
        own_s = random.uniform(0, 10, count)
        other_s = own_s + random.normal(0, 1e-3, count) + random.uniform(-1, 1)
        rows.append(np.stack([own_s, other_s, random.uniform(1e-6, 1e-4, count)], axis=1))
    for row, found in zip(rows, fit_lines(any_mpi, rows), strict=True):
        at_s, offset_s, drift, shortest_s, mean_s = found
        own_s, other_s, round_trip_s = row.T
        slope, intercept = np.polyfit(own_s, other_s - own_s, 1, w=1 / round_trip_s)
        assert drift == pytest.approx(slope, rel=1e-6, abs=1e-9)
        assert offset_s - drift * at_s == pytest.approx(intercept, rel=1e-6, abs=1e-9)
        assert shortest_s == own_s[round_trip_s.argmin()]
        assert mean_s == pytest.approx(np.average(round_trip_s, weights=round_trip_s**-2.0))


def test_offset_and_drift_are_found_in_readings_of_clocks_that_started_months_apart(any_mpi):
    own_s = 4.0e6 + np.linspace(0, 1, 30)
    other_s = own_s - 3.9e6 + 2e-5 * (own_s - 4.0e6)
    round_trip_s = np.full(30, 1e-5)
    # What took long may be off by half of what it took, all to one side.
    other_s[::3] += 5e-3
    round_trip_s[::3] = 1e-2
    alone = np.array([[7.0, 9.0, 1e-6]])
    same = np.array([[7.0, 9.0, 0.0], [7.0, 9.5, 0.0]])
    found = fit_lines(any_mpi, [np.stack([own_s, other_s, round_trip_s], axis=1), alone, same])
    at_s, offset_s, drift, *_ = found[0]
    assert drift == pytest.approx(2e-5, abs=1e-8)
    assert offset_s + drift * (4.0e6 - at_s) == pytest.approx(-3.9e6, abs=1e-8)
    assert found[1][:3] == [7.0, 2.0, 0.0]
    assert found[2][:3] == [7.0, 2.25, 0.0]


@pytest.mark.mpi
@pytest.mark.parametrize(
    "clocks", [((0, 0), (1000, 5e-3)), ((3, 1e-3), (-700, -5e-3), (1e6, 2e-3), (0, 4e-3))]
)
def test_readings_of_every_rank_come_to_one_scale(any_mpi, counted_clock, clocks):
    """Five ranks are dealt out to the nodes; the scale is that of rank 0's node."""
    counted_clock(any_mpi)
    num_ranks = 5
    flavour = find_flavour(any_mpi)
    text = ",".join(f"{offset_s!r}:{drift!r}" for offset_s, drift in clocks)
    status, output = run_ranks(
        flavour, num_ranks, [suite_program(flavour, "clock_sync_check"), "3", "0.05"], {CLOCKS: text}, 60
    )
    assert status == 0, output
    rows = np.array([[float(word) for word in line.split()] for line in output.splitlines()])
    assert len(rows) == 3 * num_ranks * 2
    for rank, stamp_s, reference_s, residual_s, round_trip_s in rows:
        offset_s, drift = clocks[int(rank) % len(clocks)]
        true_s = (stamp_s - offset_s) / (1 + drift)
        # Two exchanges at most lead to rank 0, each off by half its round trip at most.
        assert abs(reference_s - (clocks[0][0] + (1 + clocks[0][1]) * true_s)) <= round_trip_s + 1e-8
        # Readings are whole nanoseconds, so a check may agree exactly.
        assert residual_s >= 0
    # A check that waited for its core may be off by more.
    assert np.max(rows[:, 3]) > 0 and np.median(rows[:, 3]) <= np.median(rows[:, 4])


def launch(mpi, tmp_path, kernel, points, pattern=None, methods=()) -> Launched:
    request = Request(
        "0", kernel, points, parse_layout("1x1x2"), Rules(budget_s=0.02), pattern, 300, 120, methods
    )
    return MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)


def pipeline_point(gamma_s_per_byte):
    return {
        "mpi": "here", "level": "intra_socket", "size_bytes": 300, "partitions": 3,
        "gamma_s_per_byte": gamma_s_per_byte,
    }  # fmt: skip


@pytest.mark.mpi
@pytest.mark.one_mpi
def test_a_delivery_between_nodes_is_timed_by_one_scale(mpi, tmp_path, monkeypatch, counted_clock):
    counted_clock(mpi)
    monkeypatch.setenv(CLOCKS, "0:0,1000:1e-3")
    points = [pipeline_point(0.0), pipeline_point(3e-5)]
    launched = launch(mpi, tmp_path, "pipeline", points, methods=("single", "many"))
    assert launched.cause is None and len(launched.samples) == 4
    for sample in launched.samples:
        apart_s = sample.extra["clock_residual_s"] + sample.extra["clock_round_trip_s"] / 2
        assert sample.extra["clock"] == "synchronised"
        assert 0 <= sample.extra["clock_residual_s"] <= launched.record["clock"]["residual_s"]
        # No message comes before it was sent, and without its delay of 3 ms it comes within few readings.
        assert -apart_s <= sample.times_s.min() < 1.5e-3 + apart_s
    residuals_s = [sample.extra["clock_residual_s"] for sample in launched.samples]
    assert launched.record["clock"]["residual_s"] == max(residuals_s)


@pytest.mark.mpi
def test_limits_and_pauses_go_by_the_true_clock(any_mpi, tmp_path, monkeypatch):
    monkeypatch.setenv(CLOCKS, "1e6:0,-1e6:0")
    points = [{"mpi": "here", "level": "intra_socket", "size_bytes": 8, "receiver": "late"}]
    launched = launch(any_mpi, tmp_path, "completion", points)
    (sample,) = launched.samples
    # The pause of a late receiver is 5 ms; the budget allows few of them.
    assert 3 <= len(sample.times_s) <= 9
    # Less where the sender, whose clock begins, leaves the barrier later; by another clock it would be 1e6 s.
    assert 2e-4 <= sample.times_s.max() < 1e3 and launched.record["duration_s"] < 300


@pytest.mark.mpi
@pytest.mark.parametrize("shared", [False, True])
def test_ranks_that_share_cores_on_several_nodes_count_from_the_first(any_mpi, tmp_path, monkeypatch, shared):
    monkeypatch.setenv(CLOCKS, "0:0,1000:0")
    pattern = Pattern(*np.array([(0, 1, 8), (1, 0, 8)], dtype=np.int64).T)
    points = exchange_group(pattern, parse_layout("1x1x2"), any_mpi).points
    allowed = os.sched_getaffinity(0)
    if not shared and len(allowed) < 2:
        pytest.skip("two ranks share the one core there is")
    os.sched_setaffinity(0, {min(allowed)} if shared else allowed)
    try:
        launched = launch(any_mpi, tmp_path, "exchange", points, pattern)
    finally:
        os.sched_setaffinity(0, allowed)
    (sample,) = launched.samples
    assert sample.extra["clock"] == ("synchronised" if shared else "each rank's own")
    # Nothing is compared where every time is a difference of one clock.
    assert ("clock_residual_s" in sample.extra) is shared
    assert np.abs(sample.rank_times_s).max() < 500  # the clocks are 1000 s apart


@pytest.mark.mpi
@pytest.mark.parametrize("clocks", ["0", "0:0,1:0:0"])
def test_clocks_that_cannot_be_read_are_refused(any_mpi, tmp_path, monkeypatch, clocks):
    monkeypatch.setenv(CLOCKS, clocks)
    launched = launch(any_mpi, tmp_path, "completion", [{"size_bytes": 8, "receiver": "late"}])
    assert CLOCKS in launched.cause and launched.samples == []
