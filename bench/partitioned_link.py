"""Metrics of partitioned communication between two virtual nodes at 1 Gbit/s against the model of the link.

The model sends each partition when it is ready, one at a time over the link. Latency and bandwidth are those
of the single messages of the same run; the ready times are the measured ones.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.commands import built_mpis, earlybird, say, virtual_cluster
from earlybird.data.partition_moments import PartitionMoments
from earlybird.data.run import Run, Sample
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.models import partitioned_metrics as metrics
from earlybird.present.render.terminal import print_rows

SIZES = (1 << 19, 1 << 20)
PARTITIONS = 4
COMPUTE = "12ms"  # a partition of the larger size leaves the link before the next one is ready
SENDS_EACH = ("many", "earlybird")
ALLOWED = 0.05


def main() -> int:
    """Print how far every MPI is from the model; 1 if `many` or `earlybird` is further than allowed."""
    rows, is_far = [], False
    with tempfile.TemporaryDirectory() as folder, virtual_cluster(2, "1gbit") as name:
        for mpi in built_mpis():
            say(f"{mpi} at 1 Gbit/s")
            run = Path(folder) / mpi
            sizes = ",".join(map(str, SIZES))
            place = ("--levels", "inter_node", "--mpi", mpi, "--launcher", f"cluster:{name}")
            noise = ("--threads", 1, "--compute", COMPUTE, "--noise", "none")
            effort = ("--launches", 5, "--budget", "60s", "--quiet", "-o", run)
            given = ("--sizes", sizes, "--partitions", PARTITIONS)
            earlybird("measure", "partitioned", *given, *noise, *place, *effort)
            samples = Run.open(run).samples()
            latency_s, bandwidth = link_of(samples)
            for size_bytes in SIZES:
                for method in SENDS_EACH:
                    of_method = [
                        s for s in samples if (s.method, s.config["size_bytes"]) == (method, size_bytes)
                    ]
                    row, far = compare(of_method, latency_s, bandwidth)
                    rows.append([mpi, method, format_bytes(size_bytes), *row])
                    is_far = is_far or far
    print(f"\n{PARTITIONS} partitions of one thread that computes for {COMPUTE}, two nodes at 1 Gbit/s")
    print_rows(
        [
            "MPI",
            "method",
            "size",
            "perceived",
            "model",
            "measured / model",
            "early-bird",
            "model",
            "difference",
        ],
        rows,
    )
    return int(is_far)


def link_of(samples: Sequence[Sample]) -> tuple[float, float]:
    """Latency and bandwidth of the single messages of the two sizes."""
    times_s = [
        np.median([s.median_s() for s in samples if (s.method, s.config["size_bytes"]) == ("single", size)])
        for size in SIZES
    ]
    bandwidth = (SIZES[1] - SIZES[0]) / (times_s[1] - times_s[0])
    return float(times_s[0] - SIZES[0] / bandwidth), float(bandwidth)


def compare(samples: Sequence[Sample], latency_s: float, bandwidth: float) -> tuple[list[str], bool]:
    """The metrics of a method, measured and by the model; and whether one of them is further than allowed."""
    found = []
    for sample in samples:
        moments, size_bytes = PartitionMoments.of(sample), sample.config["size_bytes"]
        model_s = metrics.arrivals_when_ready(moments.ready_s, size_bytes / PARTITIONS, latency_s, bandwidth)
        both = ((moments.arrived_s, moments.completed_s), (model_s, model_s.max(axis=1)))
        found.append([
            np.median(values)
            for arrived_s, completed_s in both
            for values in (
                metrics.perceived_bandwidth_bytes_per_s(size_bytes, moments.ready_s, completed_s),
                metrics.early_bird_share(moments.ready_s, arrived_s, moments.joined_s),
            )
        ])  # fmt: skip
    perceived, share, perceived_model, share_model = np.median(found, axis=0)
    ratio, difference = perceived / perceived_model, share - share_model
    row = [
        format_bandwidth(perceived), format_bandwidth(perceived_model), f"{ratio:.3f}",
        f"{share:.3f}", f"{share_model:.3f}", f"{difference:+.3f}",
    ]  # fmt: skip
    return row, abs(ratio - 1) > ALLOWED or abs(difference) > ALLOWED
