"""Samples drawn from known times, without MPI: every command runs in seconds, for tests and for trials."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data.kernels import KERNELS, LATE_DELIVERIES, PIPELINE
from earlybird.data.layout import Layout
from earlybird.data.run import Sample
from earlybird.launch.launcher import Heard, Launched, Request

# Seconds of every rank for one point of a kernel: (kernel, arguments of the point and `method` if there
# are several, request) -> array, one entry per rank.
ExpectedTimes = Callable[[str, Mapping[str, Any], Request], np.ndarray]
# The members of a sample with the moments of partitions, and `in_flight_s`: (arguments of the point and
# `method`, request, rounds, how many times slower than expected the link is in each round) -> arrays, one row
# per round.
ExpectedMoments = Callable[[Mapping[str, Any], Request, np.ndarray, np.ndarray], Mapping[str, np.ndarray]]

# A simulated send that does not wait completes after this share of the delivery, the copy of its data.
COPY_SHARE = 0.2
# The shortest pause of a late receiver, as in native/kernels/completion.cpp.
MIN_PAUSE_S = 5e-3


def completion_times(delivery_s: float, sender_waits: bool, receiver: str) -> np.ndarray:
    """Return an array (2,) of seconds until a send is complete and until its message, awaited by a `prompt`
    or `late` receiver, has arrived."""
    pause_s = max(MIN_PAUSE_S, LATE_DELIVERIES * delivery_s) if receiver == "late" else 0.0
    received_s = pause_s + delivery_s
    return np.array([received_s if sender_waits else COPY_SHARE * delivery_s, received_s])


@dataclass(frozen=True)
class SyntheticLauncher:
    """A launcher that draws log-normal times around `expected_times`, with one factor per launch: a launch is
    itself random.

    Attributes
    ----------
    noise : relative standard deviation of one iteration; `launch_noise` that of a whole launch. For the
        kernel `partitioned` they change the link, not the computation.
    """

    expected_times: ExpectedTimes
    seed: int = 0
    expected_moments: Mapping[str, ExpectedMoments] = field(default_factory=dict)
    noise: float = 0.02
    launch_noise: float = 0.01
    iterations: int = 40
    name: str = "synthetic"
    flavour: str = "synthetic"

    def check(self, layout: Layout) -> None:
        """Accept every layout."""

    def shares_cores(self, layout: Layout) -> bool:
        return False

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        # Seeded by the launch too: a resumed run must not draw again what it drew before.
        random = np.random.default_rng([self.seed, *request.id.encode()])
        factor = random.lognormal(0.0, self.launch_noise)
        samples = []
        for count, point in enumerate(request.points, start=1):
            for method in request.methods or (None,):
                samples.append(self._sample(request, point, method, factor, random))
            progress(count, samples[-1])
        layout = request.layout
        record = {
            "id": request.id,
            "kernel": request.kernel,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "flavour": "synthetic",
            "version": "1",
            "library_version": "none: drawn from a profile",
            "launcher": self.name,
            "layout": layout.text,
            "binding": "none",
            "environment": {},
            "command_line": [],
            "thread_level": "none",
            "control_variables": {},
            "transport": "synthetic",
            "exit": 0,
            "duration_s": 0.0,
            "oversubscribed": False,
            "placement": [
                {
                    "rank": r,
                    "host": f"node{node}",
                    "node": int(node),
                    "socket": int(socket),
                    "sockets": [int(socket)],
                    "cpus": [],
                }
                for r, (node, socket) in enumerate(zip(layout.node, layout.socket, strict=True))
            ],
        }
        return Launched(record, samples)

    def _sample(
        self,
        request: Request,
        point: Mapping[str, Any],
        method: str | None,
        factor: float,
        random: np.random.Generator,
    ) -> Sample:
        arguments = dict(point) if method is None else dict(point) | {"method": method}
        if request.kernel in self.expected_moments:
            slower = factor * random.lognormal(0.0, self.noise, size=self.iterations)
            return self._sample_of_moments(request, point, arguments, slower)
        expected_s = self.expected_times(request.kernel, arguments, request)
        noise = random.lognormal(0.0, self.noise, size=(self.iterations, len(expected_s)))
        rank_times_s = np.maximum(expected_s * factor, 1e-12) * noise
        kernel = KERNELS[request.kernel]
        return Sample(
            kernel=request.kernel,
            quantity=kernel.quantity,
            config=dict(point),
            launch=request.id,
            times_s=rank_times_s.max(axis=1) if kernel.timed_rank == "slowest" else rank_times_s[:, -1],
            rank_times_s=rank_times_s if kernel.timed_rank else None,
            method=method,
            rounds=None if method is None else np.arange(self.iterations),
            extra=_delays(point, self.iterations) if kernel == PIPELINE else {},
        )

    def _sample_of_moments(
        self, request: Request, point: Mapping[str, Any], arguments: Mapping[str, Any], slower: np.ndarray
    ) -> Sample:
        rounds = np.arange(self.iterations)
        members = dict(self.expected_moments[request.kernel](arguments, request, rounds, slower))
        return Sample(
            kernel=request.kernel,
            quantity=KERNELS[request.kernel].quantity,
            config=dict(point),
            launch=request.id,
            times_s=members.pop("in_flight_s"),
            method=arguments["method"],
            rounds=rounds,
            extra={name: values.tolist() for name, values in members.items()}
            | {"clock": "one", "seed": request.seed},
        )


def _delays(point: Mapping[str, Any], iterations: int) -> dict[str, Any]:
    """Return the delays of a pipeline sample, which its times exclude; here they are exact."""
    partition_bytes = point["size_bytes"] // point["partitions"]
    if "compute_s_per_byte" in point:
        delay_s = point["compute_s_per_byte"] * partition_bytes * point["partitions"]
    else:
        delay_s = point["gamma_s_per_byte"] * partition_bytes
    return {"delay_s": delay_s, "delays_s": [delay_s] * iterations, "clock": "one"}
