"""Partitioned communication by libearlybird and by the MPI, compared with bulk and one message per partition.

Cells are sizes x partitions x delays of the last partition. In launches with libearlybird one process pair
measures bulk (`single`), one persistent send per partition (`many`), ours in requests that live (`earlybird`)
and in requests created again every second start (`earlybird-fresh`: no plan applies yet), all interleaved.
Launches without it, in turn with those, measure the MPI's own (`partitioned`) next to the same two.
"""

import argparse
import gzip
import json
import math
import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import mpi_comparison
from bench.commands import built_mpis, say, virtual_cluster
from earlybird.compare.ratios import paired_ratio
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.run import Sample, median_of_launches, sample_from_json
from earlybird.data.units import format_bytes, format_seconds
from earlybird.launch.launcher import Launcher, Request, Rules
from earlybird.measure.launchers import make_launcher
from earlybird.present.render.terminal import print_rows

SIZES_BYTES = (512, 8 << 10, 128 << 10, 1 << 20, 16 << 20)
PARTITIONS = (1, 4, 32, 128)
GAMMAS_S_PER_BYTE = (0.0, 100e-12, 1000e-12)  # 0, 100 and 1000 us/MB
HUGE_BYTES = 16 << 20
LAUNCHES, QUICK_LAUNCHES = 5, 1
RULES = Rules(budget_s=0.15, min_iterations=20)
QUICK_RULES = Rules(budget_s=0.05, min_iterations=10)

BULK, EACH, OURS, FRESH, OWN = "single", "many", "earlybird", "earlybird-fresh", "partitioned"
# The four methods that one launch interleaves with libearlybird preloaded, and the three without.
METHODS = {True: (BULK, EACH, OURS, FRESH), False: (BULK, EACH, OWN)}

# Below them ratios say more of the clock and of single calls than of the method.
COUNTED_S, JUDGED_S = 1e-6, 5e-6


@dataclass(frozen=True)
class Targets:
    """Ratios to the better of bulk and one message per partition: of all counted cells, of the worst."""

    mean: float
    worst: float
    fresh_mean: float
    fresh_worst: float


TARGETS = Targets(mean=0.90, worst=1.10, fresh_mean=1.10, fresh_worst=1.60)


@dataclass(frozen=True)
class Cell:
    """One cell of the grid on one MPI: medians over launches of seconds, and of ratios taken round by
    round."""

    mpi: str
    size_bytes: int
    partitions: int
    gamma_s_per_byte: float
    better: str
    better_s: float
    ours_s: float | None = None
    ours: float | None = None
    ours_low: float | None = None
    ours_high: float | None = None
    fresh: float | None = None
    own_s: float | None = None
    own: float | None = None

    def describe(self) -> str:
        return (
            f"{format_bytes(self.size_bytes)} in {self.partitions}, {self.gamma_s_per_byte * 1e12:.0f} us/MB"
        )


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, or read what was measured, and print a table and the verdicts for each MPI."""
    return run_with("partitioned-grid", __doc__, arguments, _report)


def run_with(
    name: str, description: str | None, arguments: Sequence[str], report: Callable[[str, list[Sample]], None]
) -> int:
    """Measure the grid, or read it, as `arguments` say, and `report` on each MPI; the exit status."""
    options = _parser(name, description).parse_args(list(arguments))
    return mpi_comparison.run(name, options, lambda: mpi_comparison.report_on_each(_take(options), report))


def _take(options: argparse.Namespace) -> list[Sample]:
    if options.read is not None:
        return read_samples(options.read)
    mpis = options.mpi or built_mpis()
    launches = options.launches or (QUICK_LAUNCHES if options.quick else LAUNCHES)
    rules = QUICK_RULES if options.quick else RULES
    records: list[dict[str, Any]] = []
    samples: list[Sample] = []
    try:
        measure(mpis, options.launcher, launches, rules, options.largest, records, samples, options.threads)
    finally:
        # Also the samples before a launch died or Ctrl-C.
        if options.json is not None and samples:
            write_samples(options.json, records, samples)
    return samples


def main_on_cluster(arguments: Sequence[str] = ()) -> int:
    """The grid between two virtual nodes at 1 Gbit/s."""
    with virtual_cluster(2, "1gbit") as name:
        return main([*arguments, "--launcher", f"cluster:{name}"])


def _parser(name: str, description: str | None) -> argparse.ArgumentParser:
    parser = mpi_comparison.make_parser(name, description, LAUNCHES, "of each kind and MPI")
    parser.add_argument("--launcher", default="local", help="local or cluster:NAME (without 16 MiB cells)")
    parser.add_argument("--largest", type=int, help="leave out cells of more bytes")
    parser.add_argument("--threads", type=int, default=1, help="of every rank; default 1")
    mpi_comparison.add_quick(parser)
    mpi_comparison.add_from(parser)
    return parser


def grid(mpi: str, level: str, largest_bytes: int, threads: int = 1) -> list[dict[str, Any]]:
    """Its points, those alone whose partitions `threads` share evenly."""
    return [
        {
            "mpi": mpi, "level": level, "size_bytes": size, "partitions": partitions, "threads": threads,
            "gamma_s_per_byte": gamma,
        }
        for size in SIZES_BYTES
        if size <= largest_bytes
        for partitions in PARTITIONS
        if partitions % threads == 0
        for gamma in GAMMAS_S_PER_BYTE
    ]  # fmt: skip


def measure(
    mpis: Sequence[str],
    where: str,
    launches: int,
    rules: Rules,
    largest_bytes: int | None,
    records: list[dict[str, Any]],
    samples: list[Sample],
    threads: int = 1,
) -> None:
    """Launches of every MPI in turn, with and without libearlybird in turn, added to `records` and `samples`
    as they end; WorkError when one dies."""
    across = where != "local"
    layout, level = (
        (parse_layout("2x1x1"), "inter_node") if across else (parse_layout("1x1x2"), "intra_socket")
    )
    largest_bytes = largest_bytes or (1 << 20 if across else HUGE_BYTES)
    launchers = {mpi: make_launcher({"launcher": where, "mpi": mpi})[0] for mpi in mpis}
    for launch in range(launches):
        for mpi, launcher in launchers.items():
            # Which goes first alternates, so that neither always meets what the other left.
            for preload in (True, False) if launch % 2 == 0 else (False, True):
                points = grid(mpi, level, largest_bytes, threads)
                random.Random(launch).shuffle(points)
                request = Request(
                    f"{mpi}-{launch}-{'with' if preload else 'without'}", "pipeline", points, layout, rules,
                    methods=METHODS[preload], preload=preload, threads=threads,
                )  # fmt: skip
                record, found = run_launch(launcher, request)
                records.append(record)
                samples += found
                say(f"launch {launch + 1} of {launches}, {mpi}, {request.id}: {record['duration_s']:.0f} s")


def run_launch(launcher: Launcher, request: Request) -> tuple[dict[str, Any], list[Sample]]:
    """The record and the samples of one launch; ends the program when it dies or data were wrong."""
    with tempfile.TemporaryDirectory(prefix="earlybird-") as folder:
        launched = launcher.launch(request, Path(folder), lambda *output: None)
    if launched.interrupted:
        raise KeyboardInterrupt
    if launched.cause is not None:
        raise SystemExit(f"{request.kernel} on {launcher.flavour} died: {launched.cause}")
    for sample in launched.samples:
        if not sample.validated:
            raise SystemExit(
                f"{request.kernel} on {launcher.flavour} got wrong data: {sample.method} {sample.config}"
            )
    return launched.record, launched.samples


def write_samples(
    path: Path, records: list[dict[str, Any]], samples: Iterable[Sample], cells: Sequence[Cell] | None = None
) -> None:
    """Everything that was measured, to a tenth of a nanosecond, and the cells (default: of the grid)."""
    cells = _all_cells(samples) if cells is None else cells
    kept = [_rounded(sample).to_json() for sample in samples]
    with gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w") as stream:
        json.dump({"launches": records, "samples": kept, "cells": [asdict(cell) for cell in cells]}, stream)


def _rounded(sample: Sample) -> Sample:
    of_ranks = sample.rank_times_s
    return replace(
        sample,
        times_s=np.round(sample.times_s, 10),
        rank_times_s=None if of_ranks is None else np.round(of_ranks, 10),
    )


def read_samples(path: Path) -> list[Sample]:
    """What `write_samples` wrote; InputError when it is not that."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as stream:
            return [sample_from_json(value, str(path)) for value in json.load(stream)["samples"]]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read ({error!r}); give a file that --json wrote") from error


def _all_cells(samples: Iterable[Sample]) -> list[Cell]:
    by_mpi = defaultdict(list)
    for sample in samples:
        by_mpi[sample.config["mpi"]].append(sample)
    return [cell for of_mpi in by_mpi.values() for cell in cells_of(of_mpi)]


def cells_of(samples: Iterable[Sample]) -> list[Cell]:
    """The grid of one MPI in order. A cell's better method is the same for all launches: choosing by launch
    would favour the luckier one."""
    by_point: dict[tuple, dict[tuple, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        config = sample.config
        point = (config["mpi"], config["size_bytes"], config["partitions"], config["gamma_s_per_byte"])
        by_point[point][sample.launch.endswith("-with"), sample.method].append(sample)
    return [_cell(point, methods) for point, methods in sorted(by_point.items())]


def _cell(point: tuple, methods: dict[tuple, list[Sample]]) -> Cell:
    medians = {
        method: median_of_launches([*methods[True, method], *methods[False, method]])
        for method in (BULK, EACH)
    }
    better = min(medians, key=medians.get)
    own = paired_ratio(methods[False, OWN], methods[False, better])
    # Beside libearlybird in the same launches, where there were any.
    base = methods[True, better] or methods[False, better]
    ours, fresh = (paired_ratio(methods[True, method], methods[True, better]) for method in (OURS, FRESH))
    return Cell(
        *point,
        better=better,
        better_s=median_of_launches(base),
        ours_s=median_of_launches(methods[True, OURS]) if ours else None,
        ours=ours and ours.value,
        ours_low=ours and ours.low,
        ours_high=ours and ours.high,
        fresh=fresh and fresh.value,
        own_s=median_of_launches(methods[False, OWN]) if own else None,
        own=own and own.value,
    )


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values)))) if values else math.nan


def verdicts(cells: Sequence[Cell]) -> list[str]:
    """What the cells say of each criterion, a line each."""
    lines = []
    for label, name, mean, worst in (
        ("libearlybird", "ours", TARGETS.mean, TARGETS.worst),
        ("libearlybird, first iterations", "fresh", TARGETS.fresh_mean, TARGETS.fresh_worst),
        ("the MPI's own", "own", None, None),
    ):
        lines += _ratio_lines(label, name, cells, mean, worst)
    return lines + _small_lines(cells)


def _ratio_lines(
    label: str, name: str, cells: Sequence[Cell], mean: float | None, worst: float | None
) -> list[str]:
    having = [cell for cell in cells if getattr(cell, name) is not None]
    taking = [cell for cell in having if cell.better_s >= COUNTED_S]
    judged = [cell for cell in having if cell.better_s >= JUDGED_S]
    if not taking:
        return []
    found = geometric_mean([getattr(cell, name) for cell in taking])
    lines = [
        f"{label}: geometric mean of {len(taking)} cells of 1 us or more {found:.3f}{_judged(found, mean)}"
    ]
    if judged:
        last = max(judged, key=lambda cell: getattr(cell, name))
        found = getattr(last, name)
        lines.append(
            f"{label}: worst of {len(judged)} cells of 5 us or more {found:.2f}{_judged(found, worst)}, "
            f"{last.describe()}"
        )
    return lines


def _small_lines(cells: Sequence[Cell]) -> list[str]:
    small = [cell for cell in cells if cell.ours_s is not None and cell.better_s < JUDGED_S]
    if not small:
        return []
    over_s = {cell: cell.ours_s - cell.better_s - allowed_s(cell.partitions) for cell in small}
    last = max(small, key=over_s.get)
    missed = sum(value > 0 for value in over_s.values())
    return [
        f"libearlybird: {len(small) - missed} of {len(small)} cells below 5 us are at most 0.2 us + 10 ns "
        f"per partition above the better method ({'met' if not missed else 'missed'}); nearest to that or "
        f"farthest beyond: {last.describe()}, {(last.ours_s - last.better_s) * 1e6:+.2f} us of "
        f"{allowed_s(last.partitions) * 1e6:.2f}"
    ]


def allowed_s(partitions: int) -> float:
    """What a small transfer may take longer than the better method: the calls themselves cost something."""
    return 0.2e-6 + 10e-9 * partitions


def _judged(found: float, target: float | None) -> str:
    return "" if target is None else f" (target {target:.2f}, {'met' if found <= target else 'missed'})"


def _report(mpi: str, samples: Sequence[Sample]) -> None:
    cells = cells_of(samples)
    launches = len({sample.launch for sample in samples if sample.method == OURS})
    print(
        f"\n{mpi}: time-to-solution less the delay, medians over {launches} launches; ratios to the better "
        "of single and many"
    )
    print_rows(
        ["size", "partitions", "us/MB", "better", "time", "ours", "ratio", "from .. to", "first two",
         "MPI's own"],
        [_row(cell) for cell in cells],
    )  # fmt: skip
    for line in verdicts(cells):
        print(line)
    if any(sample.oversubscribed for sample in samples):
        print("ranks shared cores: these figures tell of the scheduler too")
    for cell in cells:
        where = (cell.size_bytes, cell.partitions, cell.gamma_s_per_byte)
        if where == (HUGE_BYTES, 4, 1000e-12) and cell.own_s and cell.ours_s:
            times = f"{cell.own_s / cell.ours_s:.2f} times faster than the MPI's own"
            print(f"4 partitions of 4 MiB, 1000 us/MB: {times}")


def _row(cell: Cell) -> list[Any]:
    def ratio(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    return [
        format_bytes(cell.size_bytes), cell.partitions, f"{cell.gamma_s_per_byte * 1e12:.0f}", cell.better,
        format_seconds(cell.better_s), "" if cell.ours_s is None else format_seconds(cell.ours_s),
        ratio(cell.ours), "" if cell.ours is None else f"{cell.ours_low:.2f} .. {cell.ours_high:.2f}",
        ratio(cell.fresh), ratio(cell.own),
    ]  # fmt: skip
