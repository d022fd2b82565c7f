"""Synthetic material for the report: two MPI flavours, with data for every chapter."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from earlybird.data import files
from earlybird.data.advice import Advice, Alternative, SizeRange
from earlybird.data.comparison import Comparison
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import profile_from_json, save_profile
from earlybird.data.run import Run, Sample
from earlybird.data.schema import Estimate

SIZES = [0] + [1 << k for k in range(0, 23)]
PROTOCOLS = ((0, 0.35e-6, 2.0e9), (512, 0.6e-6, 4.5e9), (8192, 1.6e-6, 9.5e9))
NAMES = ("short", "eager", "rendezvous")
BANDWIDTH = {
    "mpich": {1: 9.5e9, 2: 15.6e9, 3: 16.8e9, 4: 17.1e9},
    "openmpi": {1: 8.4e9, 2: 16.1e9, 4: 15.0e9},
}
SLOWER = {"mpich": 1.0, "openmpi": 1.35}


def machine(host: str = "node7") -> dict:
    return {
        "host": host,
        "cpu_model": "Example 9000 at 2.4 GHz",
        "cores": 2,
        "sockets": 1,
        "caches": [{"level": 3, "size_bytes": 33554432, "shared_by": 2}],
        "memory_bytes": 16 << 30,
        "kernel": "6.1.0",
        "governor": "powersave",
        "load": [1.4, 1.0, 0.7],
    }


def _launch(mpi: str) -> dict:
    return {
        "id": f"{mpi}-1",
        "kernel": "pingpong",
        "flavour": mpi,
        "version": "4.3.0" if mpi == "mpich" else "5.0.8",
        "transport": "shm",
        "launcher": "local",
        "thread_level": "single",
        "control_variables": {"A_VARIABLE": "1"},
        "placement": [{"rank": r, "host": "node7", "node": 0, "socket": 0, "cpus": [r]} for r in range(2)],
        "binding": "core",
        "exit": 0,
        "clock": {"resolution_s": 2.1e-8},
    }


def _one_way_s(size_bytes: int) -> float:
    _, tau, rate = [row for row in PROTOCOLS if row[0] <= size_bytes][-1]
    return tau + size_bytes / rate


def _noisy(random: np.random.Generator, time_s: float, count: int = 30) -> np.ndarray:
    return time_s * (1 + 0.06 * random.gamma(1.0, 1.0, count))


def measured_run(path: Path, flavours=("mpich", "openmpi"), host: str = "node7") -> Path:
    """A run folder with ping-pong and contention of each flavour; the largest message stays noisy."""
    random = np.random.default_rng(1)
    run = Run.create(path, machine=machine(host), command=["measure", "pingpong", "contention"], seed=1)
    for mpi in flavours:
        run.append_launch(_launch(mpi))
        config = {"mpi": mpi, "level": "intra_socket"}
        run.append_samples(
            Sample(
                "pingpong",
                "half_round_trip",
                config | {"size_bytes": size, "buffers": "vary"},
                f"{mpi}-1",
                SLOWER[mpi] * _noisy(random, _one_way_s(size)),
                warmup=2,
                converged=size < SIZES[-1],
            )
            for size in SIZES
        )
        run.append_samples(
            Sample(
                "contention",
                "time_per_repeat",
                config | {"competitors": n, "size_bytes": 1 << 20, "repeats": 8},
                f"{mpi}-1",
                _noisy(random, n * (1 << 20) / rate),
                oversubscribed=n > 2,
            )
            for n, rate in BANDWIDTH[mpi].items()
        )
    return path


def pipeline_run(path: Path, settings: list[tuple[int, int, float]]) -> Path:
    """A run of pipelines with these threads, partitions and delay rates: two sizes, two methods; the first
    setting has the largest speed-up."""
    run = Run.create(path, machine=machine(), command=["measure", "pipeline"], seed=1)
    run.append_launch(_launch("mpich"))
    for k, (threads, partitions, gamma) in enumerate(settings):
        config = {"mpi": "mpich", "level": "intra_socket", "threads": threads, "partitions": partitions}
        run.append_samples(
            Sample("pipeline", "time_to_solution", config | {"gamma_s_per_byte": gamma, "size_bytes": size},
                   "mpich-1", np.full(5, size / gain * 1e-9), method=method, rounds=np.arange(5))
            for size in (1 << 12, 1 << 20)
            for method, gain in (("single", 1.0), ("many", 3.0 - 0.1 * k))
        )  # fmt: skip
    return path


def collective_run(path: Path, operations=("bcast", "reduce"), mappings=("socket", "node")) -> Path:
    """A run of collectives: three numbers of ranks, three sizes, two methods; those mapped by node take
    twice as long."""
    run = Run.create(path, machine=machine(), command=["measure", "collective"], seed=1)
    run.append_launch(_launch("mpich"))
    for operation in operations:
        for slower, map_by in enumerate(mappings, start=1):
            config = {"mpi": "mpich", "operation": operation, "map_by": map_by, "layout": "4x2x1", "root": 0}
            run.append_samples(
                Sample("collective", "completion", config | {"ranks": ranks, "size_bytes": size}, "mpich-1",
                       np.full(5, slower * ranks * (1e-5 + size * seconds)), method=method,
                       rounds=np.arange(5))
                for ranks in (2, 4, 8)
                for size in (1, 1 << 10, 1 << 20)
                for method, seconds in (("default", 1e-8), ("own-linear", 1e-9))
            )  # fmt: skip
    return path


def profile_json(mpi: str) -> dict:
    slower = SLOWER[mpi]
    protocols = [
        {
            "name": name,
            "min_bytes": start,
            "latency_s": slower * tau,
            "bandwidth_bytes_per_s": {str(n): b * rate / 9.5e9 for n, b in BANDWIDTH[mpi].items()},
            "oversubscribed_n": [n for n in BANDWIDTH[mpi] if n > 2],
        }
        for name, (start, tau, rate) in zip(NAMES, PROTOCOLS, strict=True)
    ]
    interval = {str(n): [0.94 * b, 1.05 * b] for n, b in BANDWIDTH[mpi].items()}
    return {
        "schema": "earlybird.profile/1",
        "id": f"profile-{mpi}",
        "machine": machine(),
        "context": {"flavour": mpi, "version": "1"},
        "levels": {"intra_socket": {"protocols": protocols, "held_out_error": 0.061}},
        "intervals": {
            "intra_socket": {
                "rendezvous": {"latency_s": [1.5e-6, 1.8e-6], "bandwidth_bytes_per_s": interval},
            }
        },
        "forms": [
            {
                "what": {"operation": "pingpong", "level": "intra_socket"},
                "form": "piecewise_postal",
                "parameters": {
                    "protocols": [
                        {
                            "name": name,
                            "min_bytes": start,
                            "latency_s": slower * tau,
                            "bandwidth_bytes_per_s": rate / slower,
                        }
                        for name, (start, tau, rate) in zip(NAMES, PROTOCOLS, strict=True)
                    ]
                },
                "held_out_error": 0.043,
            }
        ],
        "warnings": ["N = 4 had more ranks than cores; its bandwidth holds the scheduler's switches"],
    }


def pattern(num_ranks: int = 4) -> Pattern:
    """Every rank sends to its two neighbours on a ring and, for even ranks, across it."""
    random = np.random.default_rng(2)
    pairs = [(r, (r + step) % num_ranks) for r in range(num_ranks) for step in (1, num_ranks - 1)]
    pairs += [(r, (r + num_ranks // 2) % num_ranks) for r in range(0, num_ranks, 2)]
    table = np.array(pairs)
    return Pattern(table[:, 0], table[:, 1], (10 ** random.uniform(3, 6, len(table))).astype(int))


def comparison(exchange: Pattern, num_ranks: int = 4, **extra) -> Comparison:
    measured = np.random.default_rng(3).uniform(0.6e-3, 1.2e-3, num_ranks)
    predicted = {"postal": 0.6 * measured, "staircase": 0.93 * measured, "max-rate": 1.3 * measured}
    provenance = {
        "pattern_sha256": exchange.sha256(),
        "layout": "1x1x4",
        "run_id": "",
        "oversubscribed": True,
    }
    return Comparison(
        measured,
        predicted,
        {"postal": 0.4, "staircase": 0.07, "max-rate": 0.3},
        {"postal": -0.4, "staircase": -0.07, "max-rate": 0.3},
        provenance | extra,
    )


def replay_run(path: Path, exchange: Pattern, num_ranks: int = 4) -> Path:
    """A replay's run folder: samples, the pattern and the comparison."""
    random = np.random.default_rng(4)
    run = Run.create(path, machine=machine(), command=["replay", "mesh.csv"], seed=1)
    run.append_launch(_launch("mpich"))
    measured = comparison(exchange, num_ranks, run_id=run.header["id"], notes=["medians of 3 launches"])
    rank_times_s = measured.measured_s * (1 + 0.05 * random.random((20, num_ranks)))
    config = {
        "mpi": "mpich",
        "layout": "1x1x4",
        "pattern_sha256": exchange.sha256(),
        "ranks": num_ranks,
        "messages": exchange.num_messages,
    }
    times_s = rank_times_s.max(axis=1)
    run.append_samples(
        [
            Sample(
                "exchange",
                "exchange",
                config,
                "mpich-1",
                times_s,
                oversubscribed=True,
                rank_times_s=rank_times_s,
            )
        ]
    )
    save_pattern(exchange, path / "pattern.npz")
    files.write_json(path / "comparison.json", measured.to_json())
    return path


def prediction(exchange: Pattern, model: str = "staircase", num_ranks: int = 4) -> Prediction:
    times = np.linspace(1e-3, 2e-3, num_ranks)
    return Prediction(model, times, times, np.zeros(num_ranks), "profile-mpich", exchange.sha256())


def advice(gain: float = 1.4, operation: str = "pipeline", asked: dict | None = None, **more) -> Advice:
    """Advice to send one message per partition, which is the best method from 100 KiB."""
    asked = {"level": "intra_socket", "threads": 8, "size_bytes": 1 << 26} if asked is None else asked
    best = Alternative(
        "many",
        Estimate(6e-3, 5.8e-3, 6.2e-3),
        Estimate(gain, gain - 0.1, gain + 0.1),
        "set A=1",
        extra={"vcis": 16},
    )
    rest = Alternative("single", Estimate.exact(6e-3 * gain), Estimate.exact(1.0), "leave it")
    size_ranges = (
        SizeRange(512, 100 << 10, "single", "leave it"),
        SizeRange(100 << 10, 1 << 30, "many", "set A=1", {"extrapolated": True}),
    )
    return Advice(operation, asked, "single", (best, rest), size_ranges, "profile", **more)


def write_json(path: Path, value) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def make():
    """This module, for tests that build their own material."""
    return importlib.import_module(__name__)


@pytest.fixture
def everything(tmp_path) -> list[Path]:
    """Paths of a run of two flavours, their profiles and a replay: data for every chapter."""
    profiles = []
    for mpi in ("mpich", "openmpi"):
        profiles.append(tmp_path / f"{mpi}.json")
        save_profile(profile_from_json(profile_json(mpi)), profiles[-1])
    return [measured_run(tmp_path / "run"), *profiles, replay_run(tmp_path / "replay", pattern())]
