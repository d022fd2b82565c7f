"""What libearlybird's calls cost: Pready, messages of several threads, other MPI calls with it preloaded.

Launches with and without it alternate; a figure is the median over launches of their medians.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench import mpi_comparison
from bench.commands import built_mpis, say
from bench.partitioned_grid import BULK, EACH, OURS, OWN, run_launch
from earlybird.data.layout import parse_layout
from earlybird.data.run import Sample
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine import flavours, hardware
from earlybird.models.statistics import median_interval
from earlybird.present.render.terminal import print_rows

NAME = "partitioned-calls"
LAUNCHES, QUICK_LAUNCHES = 5, 1
RULES = Rules(budget_s=0.3, min_iterations=30)
MIB = 1 << 20
LIVE = (1, 100)
MANY_THREADS = (4, 8)
PARTITIONS_PER_THREAD, SMALL_BYTES = 8, 64


@dataclass
class Medians:
    """Of one MPI: the median of every launch, by what was measured, with and without libearlybird."""

    values: dict[tuple, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: tuple, sample: Sample) -> None:
        self.values[key].append(sample.median_s())

    def of(self, key: tuple) -> float:
        return float(np.median(self.values[key]))

    def differences(self, key: tuple, other: tuple) -> np.ndarray:
        """Launch by launch."""
        return np.array(self.values[key]) - np.array(self.values[other])

    def ratios(self, key: tuple, other: tuple) -> np.ndarray:
        return np.array(self.values[key]) / np.array(self.values[other])


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and print one table for each MPI."""
    parser = mpi_comparison.make_parser(NAME, __doc__, LAUNCHES, "of each kind")
    mpi_comparison.add_quick(parser)
    options = parser.parse_args(list(arguments))

    def work() -> None:
        kept: list[dict[str, Any]] = []
        for mpi in options.mpi or built_mpis():
            launches = options.launches or (QUICK_LAUNCHES if options.quick else LAUNCHES)
            _report(mpi, _measure(mpi, launches, options.quick, kept), launches)
        if options.json is not None:
            opened = gzip.open if options.json.suffix == ".gz" else open
            with opened(options.json, "wt") as stream:
                json.dump(kept, stream)

    return mpi_comparison.run(NAME, options, work)


def _measure(mpi: str, launches: int, quick: bool, kept: list[dict[str, Any]]) -> Medians:
    medians = Medians()
    for launch in range(launches):
        for preload in (True, False) if launch % 2 == 0 else (False, True):
            for request, threads in _requests(mpi, preload, quick):
                record, samples = run_launch(
                    MpiexecLauncher(flavours.find_flavour(mpi), threads=threads), request
                )
                kept.append({"record": record, "samples": [sample.to_json() for sample in samples]})
                for sample in samples:
                    medians.add(_key(sample, preload, threads), sample)
        say(f"launch {launch + 1} of {launches}, {mpi}")
    return medians


def _key(sample: Sample, preload: bool, threads: int) -> tuple:
    config = sample.config
    if sample.kernel == "calls":
        return (config["call"], preload, threads, config.get("workers", config.get("live")))
    return (sample.kernel, preload, threads, sample.method)


def _requests(mpi: str, preload: bool, quick: bool) -> list[tuple[Request, int]]:
    """One launch of each kind, with the threads of a rank."""
    iterations = 100 if quick else 1000
    alone, pair = parse_layout("1x1x1"), parse_layout("1x1x2")
    rules = Rules(budget_s=0.05, min_iterations=10) if quick else RULES

    def calls(layout, points, threads=1, environment=None):
        request = Request(
            "0", "calls", [{"mpi": mpi} | point for point in points], layout, rules, preload=preload,
            environment=environment or {},
        )  # fmt: skip
        return request, threads

    def pipeline(partitions, partition_bytes, gamma, methods, threads=1):
        point = {"mpi": mpi, "level": "intra_socket", "size_bytes": partitions * partition_bytes,
                 "partitions": partitions, "gamma_s_per_byte": gamma}  # fmt: skip
        return Request("0", "pipeline", [point], pair, rules, methods=methods, preload=preload), threads

    # 1e8 calls a launch.
    null = {"call": "test_null", "count": 10**6, "iterations": 10 if quick else 100}
    beside = {"call": "testall", "requests": 64, "count": 10**4, "iterations": 10 if quick else 100}
    found = [calls(alone, [null, beside | {"live": 0}])]
    points = [{"mpi": mpi, "level": "intra_socket", "size_bytes": 8, "buffers": "reuse"}]
    found.append((Request("0", "pingpong", points, pair, rules, preload=preload), 1))
    found.append(pipeline(4, 4 * MIB, 1000e-12, (BULK, EACH, OURS if preload else OWN)))
    for threads in MANY_THREADS:
        found.append(
            pipeline(
                threads * PARTITIONS_PER_THREAD, SMALL_BYTES, 0.0, (BULK, OURS if preload else OWN), threads
            )
        )
    if preload:
        found.append(calls(alone, [beside | {"live": live} for live in LIVE]))
        pready = {"call": "pready", "partitions": 512, "iterations": iterations}
        found.append(calls(alone, [pready | {"workers": 1}]))
        found.append(calls(alone, [pready | {"workers": workers} for workers in (1, 2)], 2))
        segments = {"call": "segments", "partitions": 32, "iterations": iterations}
        # By the environment of both ranks: an info key has no effect on buffers as small as these.
        each = {"EARLYBIRD_SEGMENTS": "partition"}
        found.append(calls(pair, [segments | {"workers": workers} for workers in (1, 2)], 2, each))
    return found


def _report(mpi: str, medians: Medians, launches: int) -> None:
    rows: list[list[str]] = []

    def nanoseconds(what: str, found: float | np.ndarray, target: float | None) -> None:
        value = float(np.median(found)) * 1e9
        rows.append([what, f"{value:.1f} ns", *_judged(value, target, f"{target:g} ns" if target else "")])

    def ratio(what: str, found: np.ndarray, target: float | None, at_least: bool = False) -> None:
        value = float(np.median(found))
        if target is None:
            rows.append([what, f"{value:.2f}", "", ""])
            return
        text = f"{'at least ' if at_least else ''}{target:g}"
        rows.append(
            [
                what,
                f"{value:.2f}",
                *_judged(-value if at_least else value, -target if at_least else target, text),
            ]
        )

    nanoseconds("Pready, one thread", medians.of(("pready", True, 1, 1)), 12)
    nanoseconds("Pready, one thread of two (MPI_THREAD_MULTIPLE)", medians.of(("pready", True, 2, 1)), None)
    nanoseconds("Pready, two threads on one segment", medians.of(("pready", True, 2, 2)), 60)
    nanoseconds("message of 64 B, one thread", medians.of(("segments", True, 2, 1)), None)
    nanoseconds("message of 64 B, two threads", medians.of(("segments", True, 2, 2)), None)
    # With fewer cores than threads the threads of a rank share one core, for which no target is meant.
    ratio(
        "two threads to one, per message",
        medians.ratios(("segments", True, 2, 2), ("segments", True, 2, 1)),
        1.5 if _num_cores() >= 4 else None,
    )
    bare, preloaded = ("test_null", False, 1, None), ("test_null", True, 1, None)
    nanoseconds("MPI_Test of no request, bare", medians.of(bare), None)
    nanoseconds("the same preloaded, more", medians.differences(preloaded, bare), 3)
    bare = ("testall", False, 1, 0)
    for live in (0, *LIVE):
        more = medians.differences(("testall", True, 1, live), bare)
        nanoseconds(f"MPI_Testall per request, {live} partitioned live, more", more, 5 if live else 3)
    trips = medians.ratios(("pingpong", True, 1, None), ("pingpong", False, 1, None))
    low, high = median_interval(trips)
    rows.append(["ping-pong of 8 B, preloaded to bare", f"{low:.3f} .. {high:.3f}", "contains 1",
                 "met" if low <= 1 <= high else "missed"])  # fmt: skip
    ours, own = ("pipeline", True, 1, OURS), ("pipeline", False, 1, OWN)
    target = 4.0 if mpi == "mpich" else 1.0
    ratio(
        "4 partitions of 4 MiB, 1000 us/MB: the MPI's own to ours",
        medians.ratios(own, ours),
        target,
        at_least=True,
    )
    print(f"\n{mpi}: calls around partitioned communication, medians over {launches} launches")
    print_rows(["what", "found", "target", ""], rows)
    _report_threads(mpi, medians)


def _report_threads(mpi: str, medians: Medians) -> None:
    rows = []
    for threads in MANY_THREADS:
        bulk, ours = ("pipeline", True, threads, BULK), ("pipeline", True, threads, OURS)
        bulk_bare, own = ("pipeline", False, threads, BULK), ("pipeline", False, threads, OWN)
        rows.append([
            threads, f"{medians.of(bulk) * 1e6:.2f} us", f"{medians.of(ours) * 1e6:.2f} us",
            f"{np.median(medians.ratios(ours, bulk)):.2f}", f"{medians.of(own) * 1e6:.2f} us",
            f"{np.median(medians.ratios(own, bulk_bare)):.2f}",
        ])  # fmt: skip
    print(
        f"\n{mpi}: {PARTITIONS_PER_THREAD} partitions of {SMALL_BYTES} B per thread; "
        "bulk is sent after a thread barrier"
    )
    print_rows(["threads", "bulk", "ours", "ratio", "MPI's own", "ratio"], rows)
    cores = _num_cores()
    if cores < 2 * max(MANY_THREADS):
        print(f"{cores} cores for two ranks of these threads: the trend alone, the scheduler is measured too")


def _num_cores() -> int:
    return sum(len(socket) for socket in hardware.cores_by_socket())


def _judged(value: float, target: float | None, text: str) -> tuple[str, str]:
    return ("", "") if target is None else (text, "met" if value <= target else "missed")
