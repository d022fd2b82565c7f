"""How far libearlybird's own choice of segments is from the best fixed number of segments.

Every cell of the grid is measured in launches that interleave one message (`single`), one message per
partition (`many`), libearlybird by itself and libearlybird with 1, 2, 4, 8, 16 and 32 segments given by an
info key. The regret of a cell is the time of libearlybird by itself over that of the fixed number that was
fastest in all launches.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench import mpi_comparison
from bench.commands import built_mpis, say
from bench.partitioned_grid import (
    BULK,
    COUNTED_S,
    EACH,
    HUGE_BYTES,
    OURS,
    geometric_mean,
    grid,
    read_samples,
    run_launch,
    write_samples,
)
from earlybird.compare.ratios import Ratio, paired_ratio
from earlybird.data.layout import parse_layout
from earlybird.data.run import Sample, median_of_launches
from earlybird.data.units import format_bytes, format_seconds
from earlybird.launch.launcher import Request, Rules
from earlybird.measure.launchers import make_launcher
from earlybird.present.render.terminal import print_rows

NAME = "partitioned-regret"
PREFIX = "earlybird-segments:"
FIXED = tuple(f"{PREFIX}{num}" for num in (1, 2, 4, 8, 16, 32))
LAUNCHES = 3
RULES = Rules(budget_s=0.3, min_iterations=20)
# What is asked of the geometric mean of the regrets.
TARGET = 1.05


@dataclass(frozen=True)
class Cell:
    """A cell of one MPI; the ratios are medians over launches of ratios taken round by round."""

    size_bytes: int
    partitions: int
    gamma_s_per_byte: float
    better: str  # of one message and one per partition
    better_s: float
    best: str  # of the fixed numbers of segments
    regret: Ratio  # ours over the best fixed number
    ours: Ratio  # ours over the better of one and many
    floor: Ratio  # the best fixed number over the same


def cells_of(samples: Iterable[Sample]) -> list[Cell]:
    """The cells of one MPI in order; the fastest fixed number of a cell is the same for all its launches."""
    by_point: dict[tuple, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        config = sample.config
        point = (config["size_bytes"], config["partitions"], config["gamma_s_per_byte"])
        by_point[point][sample.method].append(sample)
    return [_cell(point, methods) for point, methods in sorted(by_point.items())]


def _cell(point: tuple, methods: dict[str, list[Sample]]) -> Cell:
    medians = {method: median_of_launches(found) for method, found in methods.items()}
    better = min((BULK, EACH), key=medians.get)
    # More segments than partitions are as many as partitions.
    best = min((method for method in FIXED if number_of(method) <= max(point[1], 1)), key=medians.get)
    return Cell(
        *point,
        better=better,
        better_s=medians[better],
        best=best,
        regret=paired_ratio(methods[OURS], methods[best]),
        ours=paired_ratio(methods[OURS], methods[better]),
        floor=paired_ratio(methods[best], methods[better]),
    )


def number_of(method: str) -> int:
    """The number of segments that a method's name gives."""
    return int(method.removeprefix(PREFIX))


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, or read what was measured, and print a table and the means for each MPI."""
    parser = mpi_comparison.make_parser(NAME, __doc__, LAUNCHES, "of each MPI")
    parser.set_defaults(launches=LAUNCHES)
    parser.add_argument("--largest", type=int, default=HUGE_BYTES, help="leave out cells of more bytes")
    mpi_comparison.add_from(parser)
    options = parser.parse_args(list(arguments))

    def work() -> None:
        samples = read_samples(options.read) if options.read else _measure(options)
        mpi_comparison.report_on_each(samples, _report)

    return mpi_comparison.run(NAME, options, work)


def _measure(options: argparse.Namespace) -> list[Sample]:
    records, samples = [], []
    mpis = options.mpi or built_mpis()
    launchers = {mpi: make_launcher({"launcher": "local", "mpi": mpi})[0] for mpi in mpis}
    try:
        for launch in range(options.launches):
            for mpi, launcher in launchers.items():
                points = grid(mpi, "intra_socket", options.largest)
                random.Random(launch).shuffle(points)
                request = Request(
                    f"{mpi}-{launch}-with", "pipeline", points, parse_layout("1x1x2"), RULES,
                    methods=(BULK, EACH, OURS, *FIXED), preload=True,
                )  # fmt: skip
                record, found = run_launch(launcher, request)
                records.append(record)
                samples += found
                say(f"launch {launch + 1} of {options.launches}, {mpi}: {record['duration_s']:.0f} s")
    finally:
        # Also the samples before a launch died or Ctrl-C.
        if options.json is not None and samples:
            write_samples(options.json, records, samples)
    return samples


def _report(mpi: str, samples: Sequence[Sample]) -> None:
    cells = cells_of(samples)
    launches = len({sample.launch for sample in samples})
    print(f"\n{mpi}: ratios of times, medians over {launches} launches")
    print_rows(
        ["size", "partitions", "us/MB", "better", "time", "best number", "it/better", "ours/better",
         "regret", "from .. to"],
        [_row(cell) for cell in cells],
    )  # fmt: skip
    counted = [cell for cell in cells if cell.better_s >= COUNTED_S]
    if not counted:
        return
    regret, ours, floor = (
        geometric_mean([getattr(cell, name).value for cell in counted])
        for name in ("regret", "ours", "floor")
    )
    judged = f"target {TARGET}, {'met' if regret <= TARGET else 'missed'}"
    print(f"geometric mean of {len(counted)} cells of 1 us or more: regret {regret:.3f} ({judged})")
    print(f"over the better of single and many: libearlybird {ours:.3f}, the best fixed number {floor:.3f}")


def _row(cell: Cell) -> list[object]:
    return [
        format_bytes(cell.size_bytes), cell.partitions, f"{cell.gamma_s_per_byte * 1e12:.0f}", cell.better,
        format_seconds(cell.better_s), number_of(cell.best), f"{cell.floor.value:.2f}",
        f"{cell.ours.value:.2f}", f"{cell.regret.value:.2f}",
        f"{cell.regret.low:.2f} .. {cell.regret.high:.2f}",
    ]  # fmt: skip
