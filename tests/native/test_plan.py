"""libearlybird's planner: where no segments can gain it says so without times, and keeps one."""

import ctypes
import subprocess

import numpy as np
import pytest

from earlybird.toolchain.build import native_sources

# Eager and rendezvous: 0.6 us and 2.6 us of latency, 0.1 us and 0.5 us of it the sender's.
COSTS = b"0:6e-7:1e-7:6e9,8192:2.6e-6:5e-7:1.1e10"


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """The sources that plan; they know no MPI."""
    library = tmp_path_factory.mktemp("plan") / "plan.so"
    sources = native_sources()
    files = [sources / "partitioned" / name for name in ("plan.c", "cost.c", "segment.c")]
    words = ["cc", "-std=c11", "-shared", "-fPIC", f"-I{sources}", *files, "-o", library, "-lm"]
    subprocess.run(words, check=True, timeout=60)
    loaded = ctypes.CDLL(str(library))
    loaded.eb_plan_can_gain.restype = ctypes.c_bool
    return loaded


@pytest.fixture
def cost(native):
    made = ctypes.create_string_buffer(1 << 14)  # larger than any eb_cost
    assert native.eb_cost_parse(COSTS, len(COSTS), made)
    return made


def choose(native, cost, partition_bytes, ready_s):
    ready = np.array(ready_s, dtype=np.float64)
    ends, best_s = (ctypes.c_int64 * 128)(), ctypes.c_double()
    count = native.eb_plan_choose(
        cost, len(ready), ctypes.c_int64(partition_bytes), ready.ctypes.data_as(ctypes.c_void_p), 127,
        ends, ctypes.byref(best_s),
    )  # fmt: skip
    return list(ends[:count])


def can_gain(native, cost, total_bytes, partition_bytes):
    return native.eb_plan_can_gain(cost, ctypes.c_int64(total_bytes), ctypes.c_int64(partition_bytes))


def test_a_plan_that_leaves_one_segment_for_more_was_thought_possible(native, cost):
    random = np.random.default_rng(1)
    for _ in range(300):
        partitions, partition_bytes = int(random.integers(1, 129)), int(2 ** random.uniform(0, 20))
        ready_s = np.cumsum(random.exponential(1e-8, partitions))
        ready_s[int(random.integers(partitions))] += random.choice([0.0, 1e-6, 1e-4])
        ends = choose(native, cost, partition_bytes, ready_s)
        assert ends[-1] == partitions * partition_bytes and ends == sorted(set(ends))
        if not can_gain(native, cost, partitions * partition_bytes, partition_bytes):
            assert len(ends) == 1


@pytest.mark.parametrize("partitions", [1, 4, 32, 128])
def test_small_transfers_and_lone_partitions_cannot_gain(native, cost, partitions):
    assert not can_gain(native, cost, 512, 512 // partitions)
    assert not can_gain(native, cost, 1 << 24, 1 << 24)
    late_s = [0.0] * (partitions - 1) + [1.0]
    assert len(choose(native, cost, 512 // partitions, late_s)) == 1


@pytest.mark.parametrize("partitions", [4, 32, 128])
def test_the_late_end_of_a_large_transfer_leaves_alone(native, cost, partitions):
    size_bytes = (1 << 20) // partitions
    assert can_gain(native, cost, 1 << 20, size_bytes)
    ends = choose(native, cost, size_bytes, [0.0] * (partitions - 1) + [1.0])
    assert ends[-2] >= (partitions - 1) * size_bytes - size_bytes and len(ends) > 1
