"""Computes the times of each kernel that a profile describes, which the launcher synthetic draws."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from earlybird.compare.results import delay_rate
from earlybird.data import kernels
from earlybird.data.methods import SINGLE
from earlybird.data.profile import Profile, Protocol
from earlybird.launch.launcher import Request
from earlybird.launch.synthetic import SyntheticLauncher, completion_times

Point = Mapping[str, Any]
# Methods of `partitioned` that send each partition when it is ready.
SENDS_EACH = ("many", "earlybird")


def synthetic_launcher(profile: Profile, seed: int) -> SyntheticLauncher:
    """Make the launcher that draws the times of messages as in `profile`."""

    def times_s(kernel: str, point: Point, request: Request) -> np.ndarray:
        return TIMES[kernel](profile, point, request)

    def moments_s(point: Point, request: Request, rounds: np.ndarray, slower: np.ndarray):
        protocol = _protocol(profile, point)
        bandwidth = float(protocol.bandwidth_table()[1][0])
        return partitioned_moments(
            point, request.seed, rounds, protocol.latency_s * slower, bandwidth / slower
        )

    return SyntheticLauncher(times_s, seed, {kernels.PARTITIONED.name: moments_s})


def is_drawn(kernel: str) -> bool:
    """Return whether the launcher synthetic draws times of this kernel."""
    return kernel in TIMES or kernel == kernels.PARTITIONED.name


def _protocol(profile: Profile, point: Point) -> Protocol:
    level = profile.level(point["level"])
    return level.protocols[int(level.protocol_index(np.array([point["size_bytes"]]))[0])]


def _message_s(profile: Profile, point: Point) -> float:
    protocol, competitors = _protocol(profile, point), point.get("competitors", 1)
    shared = float(np.interp(competitors, *protocol.bandwidth_table()))
    return protocol.latency_s + competitors * point["size_bytes"] / shared


def _message_times(profile: Profile, point: Point, request: Request) -> np.ndarray:
    return np.array([_message_s(profile, point)])


def _completion_times(profile: Profile, point: Point, request: Request) -> np.ndarray:
    waits = _protocol(profile, point).sender_waits
    return completion_times(_message_s(profile, point), waits, point["receiver"])


def _pipeline_times(profile: Profile, point: Point, request: Request) -> np.ndarray:
    from earlybird.predict.pipelined import method_models

    delay_s = delay_rate(point) * (point["size_bytes"] // point["partitions"])
    models = method_models(profile, point["level"], point.get("threads", 1))
    model = next(model for model in models if model.method == point["method"])
    return np.array([float(model.time_s(point["size_bytes"], point["partitions"], delay_s))])


def _exchange_times(profile: Profile, point: Point, request: Request) -> np.ndarray:
    from earlybird.predict.exchange import predict_exchange
    from earlybird.predict.stages import one_after_the_other

    counts = [int(count) for count in str(point.get("stages", "")).split("+") if count]
    stages = request.pattern.divided(counts or [request.pattern.num_messages])
    every = [predict_exchange(stage, request.layout, profile) for stage in stages]
    return one_after_the_other(every).time_s


# Kernel -> the expected time of every rank at a point.
TIMES: Mapping[str, Callable[[Profile, Point, Request], np.ndarray]] = {
    kernels.PINGPONG.name: _message_times,
    kernels.CONTENTION.name: _message_times,
    kernels.COMPLETION.name: _completion_times,
    kernels.PIPELINE.name: _pipeline_times,
    kernels.EXCHANGE.name: _exchange_times,
}


def partitioned_moments(
    point: Mapping[str, Any],
    seed: int,
    rounds: np.ndarray,
    latency_s: np.ndarray,
    bandwidth_bytes_per_s: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return the moments of I iterations of `partitioned`, by the name of their member in a sample, and the
    time `in_flight_s`; `latency_s` and `bandwidth_bytes_per_s` have shape (I,).

    The modelled MPI sends everything at the last MPI_Pready with its own partitioned calls, and each
    partition when it is ready with libearlybird. Threads compute for the time that follows from the noise of
    the point and the seed.
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
