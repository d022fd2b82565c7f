"""The moments of partitions that the launcher synthetic draws, from latency and bandwidth of a profile."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from earlybird.data.methods import SINGLE
from earlybird.data.profile import Profile
from earlybird.launch.launcher import Request
from earlybird.launch.synthetic import ExpectedMoments

# Methods of `partitioned` that send each partition when it is ready.
SENDS_EACH = ("many", "earlybird")


def expected_moments(profile: Profile) -> ExpectedMoments:
    """The function that gives the moments of one point of `partitioned`, of a link as in `profile`."""

    def moments_s(
        point: Mapping[str, Any], request: Request, rounds: np.ndarray, slower: np.ndarray
    ) -> dict[str, np.ndarray]:
        level = profile.level(point["level"])
        protocol = level.protocols[int(level.protocol_index(np.array([point["size_bytes"]]))[0])]
        bandwidth = float(protocol.bandwidth_table()[1][0])
        return partitioned_moments(
            point, request.seed, rounds, protocol.latency_s * slower, bandwidth / slower
        )

    return moments_s


def partitioned_moments(
    point: Mapping[str, Any],
    seed: int,
    rounds: np.ndarray,
    latency_s: np.ndarray,
    bandwidth_bytes_per_s: np.ndarray,
) -> dict[str, np.ndarray]:
    """The moments of I iterations of `partitioned`, by the name of their member in a sample, and the time
    `in_flight_s`; `latency_s` and `bandwidth_bytes_per_s` have shape (I,).

    The MPI for which it stands sends everything at the last MPI_Pready with its own partitioned calls, and
    each partition when it is ready with libearlybird. Threads compute as long as the noise of the point and
    the seed say.
    """
    from earlybird.models import partitioned_metrics as metrics
    from earlybird.models.computation_noise import thread_times_s

    partitions, threads, method = point["partitions"], point["threads"], point["method"]
    compute_s = thread_times_s(
        point["noise"], point["noise_share"], point["compute_s"], seed, threads, rounds
    )
    first = np.arange(threads + 1) * partitions // threads
    thread = np.searchsorted(first, np.arange(partitions), side="right") - 1
    share = (np.arange(partitions) - first[thread] + 1) / np.maximum(np.diff(first), 1)[thread]
    joined_s = compute_s.max(axis=1)
    ready_s = compute_s[:, thread] * share
    if method == SINGLE:
        ready_s[:] = joined_s[:, np.newaxis]
    behaviour = metrics.arrivals_when_ready if method in SENDS_EACH else metrics.arrivals_together
    arrived_s = behaviour(ready_s, point["size_bytes"] / partitions, latency_s, bandwidth_bytes_per_s)
    return {
        "ready_s": ready_s,
        "returned_s": ready_s,
        "arrived_s": arrived_s,
        "joined_s": joined_s,
        "completed_s": arrived_s.max(axis=1),
        "compute_s": compute_s,
        "in_flight_s": metrics.union_length_s(ready_s, arrived_s),
    }
