"""The comparison with the model of a link: exact for partitions that leave one by one, far for others."""

import numpy as np
import pytest

from bench.partitioned_link import PARTITIONS, SIZES, compare, link_of
from earlybird.data.run import sample_from_json
from earlybird.models import partitioned_metrics as metrics

LATENCY_S, BANDWIDTH = 50e-6, 1e8
READY_S = [3e-3, 6e-3, 9e-3, 12e-3]


def sample(method, size_bytes, ready_s, arrived_s):
    num = len(ready_s)
    return sample_from_json({
        "kernel": "partitioned", "quantity": "in_flight", "method": method, "launch": "0",
        "config": {"mpi": "mpich", "size_bytes": size_bytes, "partitions": num, "threads": 1},
        "times_s": [max(arrived_s) - min(ready_s)] * 2, "rounds": [0, 1],
        "ready_s": [ready_s] * 2, "returned_s": [ready_s] * 2, "arrived_s": [arrived_s] * 2,
        "compute_s": [[12e-3]] * 2, "joined_s": [12e-3] * 2, "completed_s": [max(arrived_s)] * 2,
    })  # fmt: skip


def of_model(size_bytes):
    ready_s = np.array([READY_S])
    arrived_s = metrics.arrivals_when_ready(ready_s, size_bytes / PARTITIONS, LATENCY_S, BANDWIDTH)
    return sample("earlybird", size_bytes, READY_S, arrived_s[0].tolist())


def test_latency_and_bandwidth_are_those_of_the_single_messages():
    singles = [
        sample("single", size, [12e-3], [12e-3 + LATENCY_S + size / BANDWIDTH])
        for size in SIZES
        for _ in range(3)
    ]
    assert link_of(singles) == (pytest.approx(LATENCY_S), pytest.approx(BANDWIDTH))


@pytest.mark.parametrize("size_bytes", SIZES)
def test_partitions_that_leave_when_ready_are_the_model(size_bytes):
    row, is_far = compare([of_model(size_bytes)] * 3, LATENCY_S, BANDWIDTH)
    assert not is_far and row[2] == "1.000" and row[5] == "+0.000"


def test_partitions_that_leave_together_are_far_from_it():
    together = sample("many", SIZES[1], READY_S, [12e-3 + LATENCY_S + SIZES[1] / BANDWIDTH] * 4)
    row, is_far = compare([together] * 3, LATENCY_S, BANDWIDTH)
    assert is_far and float(row[2]) < 0.5
