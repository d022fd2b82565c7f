"""The metrics of partitioned communication (Temucin et al. 2022) of one method at one point."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.compare.intervals import over_launches
from earlybird.data.partition_moments import PartitionMoments
from earlybird.data.run import Sample
from earlybird.data.schema import estimate_keys
from earlybird.data.statistics import MEDIAN, Statistic
from earlybird.models import partitioned_metrics as metrics

OVERHEAD, BANDWIDTH, AVAILABILITY = "overhead", "perceived_bandwidth_bytes_per_s", "availability"
EARLY_BIRD, DELIVERED = "early_bird_share", "delivered_share"


def partitioned_metrics(
    samples: Sequence[Sample], singles: Sequence[Sample], statistic: Statistic = MEDIAN
) -> dict[str, Any]:
    """Compute the metrics of the method of `samples`, each with the ends of its interval.

    Overhead and availability compare with a single message of the same round; they are None if there is none.
    """
    single_of_launch = {single.launch: single for single in singles}
    of_launches: dict[str, list[np.ndarray]] = {}
    for sample in samples:
        for name, values in _of_launch(sample, single_of_launch.get(sample.launch)).items():
            if len(values):
                of_launches.setdefault(name, []).append(values)
    found: dict[str, Any] = {}
    for name in (OVERHEAD, BANDWIDTH, AVAILABILITY, EARLY_BIRD, DELIVERED):
        estimate = (
            over_launches(of_launches[name], statistic)[0] if name in of_launches else (None, None, None)
        )
        found |= dict(zip(estimate_keys(name), estimate, strict=True))
    return found


def _of_launch(sample: Sample, single: Sample | None) -> dict[str, np.ndarray]:
    """Compute (I,) values of every metric, or of the rounds in which the single message was measured too."""
    moments = PartitionMoments.of(sample)
    ready_s, arrived_s, joined_s = moments.ready_s, moments.arrived_s, moments.joined_s
    found = {
        BANDWIDTH: metrics.perceived_bandwidth_bytes_per_s(
            sample.config["size_bytes"], ready_s, moments.completed_s
        ),
        EARLY_BIRD: metrics.early_bird_share(ready_s, arrived_s, joined_s),
        DELIVERED: metrics.delivered_share(arrived_s, joined_s),
    }
    if single is None or single is sample or sample.rounds is None or single.rounds is None:
        return found
    _, here, there = np.intersect1d(
        sample.rounds[sample.warmup :], single.rounds[single.warmup :], return_indices=True
    )
    single_s = np.maximum(single.steady_times_s()[there], 1e-12)
    after_s = metrics.length_after_s(ready_s, arrived_s, joined_s)[here]
    return found | {
        OVERHEAD: metrics.overhead(sample.steady_times_s()[here], single_s),
        AVAILABILITY: metrics.application_availability(after_s, single_s),
    }
