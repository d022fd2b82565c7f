"""Samples drawn from known times, without any MPI: the whole spine in seconds, for tests and for trying
things out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data.layout import Layout
from earlybird.data.run import Sample
from earlybird.launch.launcher import Heard, Launched, Request

# Seconds of every rank for one point of a kernel: (kernel, words of the point, request) -> array, one entry
# per rank.
ExpectedTimes = Callable[[str, Mapping[str, Any], Request], np.ndarray]

QUANTITIES = {"pingpong": "half_round_trip", "contention": "time_per_repeat", "exchange": "exchange"}


@dataclass(frozen=True)
class SyntheticLauncher:
    """Draws log-normal times around `expected_times`, with one factor per launch: a launch is itself random.

    Attributes
    ----------
    noise : relative standard deviation of one iteration; `launch_noise` that of a whole launch.
    """

    expected_times: ExpectedTimes
    seed: int = 0
    noise: float = 0.02
    launch_noise: float = 0.01
    iterations: int = 40
    name: str = "synthetic"
    flavour: str = "synthetic"

    def check(self, layout: Layout) -> None:
        """Any layout can be pretended."""

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        # Seeded by the launch too: a resumed run must not draw again what it drew before.
        random = np.random.default_rng([self.seed, *request.id.encode()])
        factor = random.lognormal(0.0, self.launch_noise)
        samples = []
        for count, point in enumerate(request.points, start=1):
            samples.append(self._sample(request, point, factor, random))
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
        self, request: Request, point: Mapping[str, Any], factor: float, random: np.random.Generator
    ) -> Sample:
        expected_s = self.expected_times(request.kernel, point, request)
        noise = random.lognormal(0.0, self.noise, size=(self.iterations, len(expected_s)))
        rank_times_s = np.maximum(expected_s * factor, 1e-12) * noise
        return Sample(
            kernel=request.kernel,
            quantity=QUANTITIES[request.kernel],
            config=dict(point),
            launch=request.id,
            times_s=rank_times_s.max(axis=1) if request.kernel == "exchange" else rank_times_s[:, 0],
            rank_times_s=rank_times_s if request.kernel == "exchange" else None,
        )
