"""`measure partitioned` with the launcher synthetic: the metrics of its known MPI."""

import json
from pathlib import Path

import numpy as np
import pytest

from earlybird.models.computation_noise import thread_times_s

PROFILE = {
    "schema": "earlybird.profile/1", "id": "known", "machine": {}, "context": {}, "runs": [],
    "levels": {"intra_socket": {"protocols": [
        {"name": "all", "min_bytes": 0, "latency_s": 1e-4, "bandwidth_bytes_per_s": {"1": 1e9, "2": 1e9}},
    ]}},
}  # fmt: skip
SIZE, C, N = 400_000, 1e-3, 4
SINGLE_S, PART_S = 1e-4 + SIZE / 1e9, 1e-4 + SIZE / N / 1e9
GIVEN = ("--sizes", SIZE, "--partitions", N, "--threads", 1, "--compute", "1ms", "--noise", "none")


@pytest.fixture
def measured(run_main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "known.json").write_text(json.dumps(PROFILE))

    def run(*arguments):
        status, out, err = run_main(
            "measure", "partitioned", *GIVEN, "--launcher", "synthetic:known.json", *arguments
        )
        assert status == 0, err
        return out

    return run


def test_metrics_are_those_of_the_known_mpi(measured):
    rows = {row["method"]: row for row in json.loads(measured("--json", "-o", "run"))["points"]}
    assert set(rows) == {"single", "many", "partitioned", "earlybird"}
    early = rows["earlybird"]
    assert early["overhead"] == pytest.approx(N * PART_S / SINGLE_S, rel=0.03)
    assert early["availability"] == pytest.approx(1 - PART_S / SINGLE_S, rel=0.03)
    assert early["early_bird_share"] == pytest.approx((N - 1) / N, rel=0.01)
    assert early["delivered_share"] == (N - 1) / N
    assert early["perceived_bandwidth_bytes_per_s"] == pytest.approx(SIZE / PART_S, rel=0.03)
    assert early["perceived_bandwidth_low_bytes_per_s"] <= early["perceived_bandwidth_bytes_per_s"]
    own, hidden_s = rows["partitioned"], C - C / N
    assert own["overhead"] == pytest.approx((hidden_s + SINGLE_S) / SINGLE_S, rel=0.03)
    assert own["availability"] == pytest.approx(0, abs=0.03)
    assert own["early_bird_share"] == pytest.approx(hidden_s / (hidden_s + SINGLE_S), rel=0.01)
    assert own["delivered_share"] == 0
    assert rows["single"]["overhead"] is None


def test_table_has_the_metrics_and_says_what_they_are(measured):
    out = measured("-o", "run")
    header = next(line for line in out.splitlines() if "overhead" in line)
    assert header.split()[-2:] == ["launches", "state"]
    for name in ("perceived", "availability", "early-bird", "delivered"):
        assert name in header and f"{name}: " in out


def test_a_run_is_resumed_and_shown(measured, run_main):
    measured("-o", "run", "--launches", "2")
    status, _, err = run_main("measure", "--resume", "-o", "run", "--launches", "3")
    assert status == 0, err
    status, out, _ = run_main("show", "run", "--json")
    launches = {row["method"]: row["launches"] for row in json.loads(out)["points"]}
    # Launches with and without libearlybird both measure the first two.
    assert status == 0 and launches == {"single": 6, "many": 6, "partitioned": 3, "earlybird": 3}


def test_a_sample_without_its_moments_is_refused(measured, run_main, tmp_path):
    measured("-o", "run", "--launches", "1")
    path = tmp_path / "run" / "samples.ndjson"
    path.write_text(path.read_text().replace('"arrived_s"', '"gone_s"'))
    status, _, err = run_main("show", "run")
    assert status == 2 and "has no valid arrived_s" in err


@pytest.mark.parametrize("noise", ["single", "uniform", "gaussian"])
def test_metrics_with_noise_are_those_of_the_recorded_computation_times(measured, noise):
    """Two threads with a partition each, which compute longer than the other one is in flight: what is in
    flight follows from the times that the sample records."""
    given = ("--partitions", 2, "--threads", 2, "--noise", noise, "--noise-percent", 40, "--compute", "100ms")
    out = measured(*given, "--json", "-o", "run")
    rows = {row["method"]: row for row in json.loads(out)["points"]}
    samples = [json.loads(line) for line in Path("run/samples.ndjson").read_text().splitlines()]
    apart_s = []  # of each launch: by how much the last thread is later than the first, per iteration
    for sample in samples:
        compute_s = thread_times_s(noise, 0.4, 0.1, sample["seed"], 2, np.arange(40))
        assert np.array_equal(sample["compute_s"], compute_s)
        assert sample["joined_s"] == compute_s.max(axis=1).tolist()
        if sample["method"] == "partitioned":
            apart_s.append(np.ptp(compute_s, axis=1))
        if sample["method"] != "single":
            assert np.array_equal(sample["ready_s"], compute_s)
    own, early = rows["partitioned"], rows["earlybird"]
    # All is sent at the last MPI_Pready.
    overheads = [np.median(1 + apart / SINGLE_S) for apart in apart_s]
    assert own["overhead"] == pytest.approx(np.median(overheads), rel=0.03)
    shares = [np.median(apart / (apart + SINGLE_S)) for apart in apart_s]
    assert own["early_bird_share"] == pytest.approx(np.median(shares), rel=0.01)
    # The first partition has arrived when the second is ready, unless both are at about the same time.
    half_s = 1e-4 + SIZE / 2 / 1e9
    assert early["overhead"] == pytest.approx(2 * half_s / SINGLE_S, rel=0.03)
    assert early["availability"] == pytest.approx(1 - half_s / SINGLE_S, rel=0.03)
    assert (early["delivered_share"], early["early_bird_share"]) == (0.5, pytest.approx(0.5, rel=0.01))
