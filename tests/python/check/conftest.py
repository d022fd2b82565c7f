"""Synthetic tournaments: what a launch of the kernel leaves of nodes that are alike, with faults to plant."""

from collections.abc import Callable

import numpy as np
import pytest

from earlybird.check.plan import CheckPlan, make_plan
from earlybird.check.tournament import opponent
from earlybird.data.run import Sample

LATENCY_S, SEND_S, BOTH_S, CAST_S, COMPUTE_S = 2e-6, 100e-6, 120e-6, 300e-6, 10e-3
ITERATIONS = 8

Change = Callable[[str, int, int, float], float]  # measure, sender, receiver, time -> time


class Machine:
    """Nodes whose times vary as on a real network: 2 % log-normal, and one message in twenty three times as
    long. `change` alters a time, `lost` is the share of segments that a link loses, `facts` those of single
    nodes."""

    def __init__(self, nodes: int, seed: int = 1):
        self.nodes = nodes
        self.random = np.random.default_rng(seed)
        self.change: Change = lambda measure, one, other, time_s: time_s
        self.lost: dict[tuple[int, int], float] = {}
        self.facts: dict[int, dict] = {}
        self.offsets_s = self.random.normal(0, 50e-6, nodes)
        self.drifts = self.random.normal(0, 1e-6, nodes)
        self.round_trip_s = 4e-6
        self.segments = 3000
        self.plan: CheckPlan = make_plan(nodes)

    def _times_s(self, measure: str, one: int, other: int, usual_s: float) -> np.ndarray:
        spread = self.random.lognormal(0, 0.02, ITERATIONS)
        spread *= np.where(self.random.random(ITERATIONS) < 0.05, 3.0, 1.0)
        return self.change(measure, one, other, usual_s) * spread

    def samples(self) -> list[Sample]:
        return [self._sample(point) for point in self.plan.points("mpich")]

    def _sample(self, point: dict) -> Sample:
        make = {"pairs": self._pairs, "nodes": self._nodes}.get(point["part"], self._cast)
        times_s, extra = make(point)
        return Sample("check", point["part"], point, "check-0", times_s, extra=extra)

    def _pairs(self, point):
        times_s = np.zeros((ITERATIONS, self.nodes, 3))
        segments = np.zeros((self.nodes, 2))
        for one in range(self.nodes):
            other = opponent(one, point["round"], self.nodes)
            if other == one:
                continue
            times_s[:, one, 0] = self._times_s("latency", one, other, LATENCY_S)
            times_s[:, one, 1] = self._times_s("send", one, other, SEND_S)
            times_s[:, one, 2] = self._times_s("both", other, one, BOTH_S)
            lost = self.random.poisson(self.segments * self.lost.get((one, other), 1e-4))
            segments[one] = self.segments, lost
        extra = {"pair_times_s": times_s.reshape(ITERATIONS, -1).tolist(), "segments": segments.tolist()}
        return times_s.sum(axis=2).max(axis=1), extra

    def _cast(self, point):
        root = point["root"]
        times_s = self._times_s(point["part"], root, root, CAST_S)
        return times_s, {"root_times_s": times_s.tolist()}

    def _nodes(self, point):
        facts = []
        for node in range(self.nodes):
            compute_s = [
                float(np.quantile(self._times_s("compute", node, core, COMPUTE_S), 0.25)) for core in (0, 1)
            ]
            usual = {
                "cores": 2, "cpus": [0, 1], "compute_s": compute_s, "compute_cpu_s": [COMPUTE_S, COMPUTE_S],
                "shm_bytes": 1 << 33, "mpi_version": "MPICH 5.0.2", "single_copy": True, "stolen_share": 0.0,
                "settings": {"UCX_TLS": "all"}, "device_bytes": {"ib0": 10.0 + node, "lo": 1e9},
                "device_bytes_before": {"ib0": 5.0, "lo": 0.0},
            }  # fmt: skip
            facts.append(usual | self.facts.get(node, {}))
        extra = {
            "facts": facts, "clock_offsets_s": self.offsets_s.tolist(), "clock_drifts": self.drifts.tolist(),
            "clock_round_trip_s": self.round_trip_s,
        }  # fmt: skip
        return np.full(ITERATIONS, COMPUTE_S), extra


@pytest.fixture
def machine():
    return Machine
