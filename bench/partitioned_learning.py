"""What libearlybird's learning costs and gains: every start of a request from the first one on, next to one
message and one message per partition in the same starts.

In launches with libearlybird one process pair measures one message (`single`), one persistent send per
partition (`many`) and ours (`earlybird`), interleaved start by start. Launches without it, in turn with
those, measure the MPI's own (`partitioned`) next to the same two. The time of a start lasts from rank 0's
start until rank 1 has every partition, less the delay of the last partition. libearlybird begins with an
empty cache, as in the first run of a user; with --second-run it finds the cache that a first run of the same
cells has written. With --starts N requests of all cells of partitioned-grid are started N times, as in a
short program.
"""

import argparse
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import mpi_comparison
from bench.commands import built_mpis, say
from bench.partitioned_grid import (
    BULK,
    COUNTED_S,
    EACH,
    GAMMAS_S_PER_BYTE,
    JUDGED_S,
    OURS,
    OWN,
    PARTITIONS,
    SIZES_BYTES,
    geometric_mean,
    read_samples,
    run_launch,
    write_samples,
)
from earlybird.compare.intervals import over_launches
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.launch.launcher import Launcher, Request, Rules
from earlybird.machine import hardware
from earlybird.measure.launchers import make_launcher
from earlybird.present.render.terminal import print_rows

NAME = "partitioned-learning"
KIB, MIB = 1 << 10, 1 << 20
LATE_S_PER_BYTE = 1000e-12  # 1000 us/MB
# Sizes, partitions, delays of the last partition per byte of it.
CELLS = (
    *((512, partitions, 0.0) for partitions in (32, 128)),
    *((8 * KIB, partitions, 0.0) for partitions in (4, 32, 128)),
    *((128 * KIB, partitions, 0.0) for partitions in (1, 4, 32)),
    *((1 * MIB, partitions, 0.0) for partitions in (1, 4, 32)),
    (16 * MIB, 32, 0.0),
    (8 * KIB, 4, LATE_S_PER_BYTE),
    *((128 * KIB, partitions, LATE_S_PER_BYTE) for partitions in (4, 128)),
    *((1 * MIB, partitions, LATE_S_PER_BYTE) for partitions in (4, 32)),
    (16 * MIB, 4, LATE_S_PER_BYTE),
)
GRID = tuple(
    (size, partitions, gamma)
    for size in SIZES_BYTES
    for partitions in PARTITIONS
    for gamma in GAMMAS_S_PER_BYTE
)
METHODS = {True: (BULK, EACH, OURS), False: (BULK, EACH, OWN)}
LAUNCHES, QUICK_LAUNCHES = 7, 1
# Starts of each method; of cells of 16 MiB and with --quick.
STARTS, HUGE_STARTS, QUICK_STARTS = 384, 192, 96
CACHE = "EARLYBIRD_CACHE"
SEGMENTS = tuple(f"earlybird-segments:{num}" for num in (1, 2, 4, 8, 16, 32))
SEGMENTS_STARTS, SEGMENTS_LAUNCHES = 64, 2
SEGMENTS_HEAD = """\
# Times of the starts of requests with a fixed number of segments, between two ranks in shared memory, with
# one message (single) and one persistent message per partition (many) in the same starts. Made by
# `python -m bench partitioned-learning --segments FILE`. A line is one cell in one launch:
#   MPI BYTES PARTITIONS DELAY_NS SEGMENTS LAUNCH T1 T2 .. in units of 10 ns, in the order of the starts
# with DELAY_NS: the last partition is ready so long after the others, and the times are without it. A fixed
# number of segments is in use from the third start on, of 512 B from the 17th. More segments than partitions
# are left out.
"""


@dataclass(frozen=True)
class Block:
    """Some starts of a request: of those numbered from `first` to `last`, from 1 on, or the last `count`."""

    name: str
    first: int = 0
    last: int = 0
    count: int = 0

    def of(self, times_s: np.ndarray) -> np.ndarray:
        return times_s[-self.count :] if self.count else times_s[self.first - 1 : self.last]


STEADY = Block("steady", count=128)
EARLY = Block("starts 2 to 63", 2, 63)
PROGRAM = Block("50 steps", 1, 50)


@dataclass(frozen=True)
class Targets:
    """Of the ratios to the better of one message and one per partition: of the geometric mean, of the worst
    cell of 5 us or more."""

    mean: float
    worst: float | None = None


TARGETS = {
    (STEADY.name, False): Targets(0.97, 1.05),
    (STEADY.name, True): Targets(0.97, 1.05),
    (EARLY.name, False): Targets(1.05, 1.15),
    (EARLY.name, True): Targets(1.00),
}
SHORT_TARGETS = Targets(0.97)
# A start that an interrupt or another process held up says nothing of a method, and would outweigh all other
# starts of a block of short ones.
LONGEST_OF_MEDIAN = 10.0


@dataclass(frozen=True)
class Cell:
    """A block of a cell's starts: medians over launches of seconds per start, and of ratios of the block's
    total times.

    `median_ratio` compares the median starts instead of the totals.
    """

    size_bytes: int
    partitions: int
    gamma_s_per_byte: float
    better: str
    better_s: float
    method_s: float
    ratio: Estimate
    median_ratio: float
    over_one: float
    over_each: float
    over_s: float  # the method less the better one, per start

    def describe(self) -> str:
        return describe_point(self.size_bytes, self.partitions, self.gamma_s_per_byte)


def describe_point(size_bytes: int, partitions: int, gamma_s_per_byte: float) -> str:
    late = f", {gamma_s_per_byte * 1e12:.0f} us/MB" if gamma_s_per_byte else ""
    return f"{format_bytes(size_bytes)} in {partitions}{late}"


def total_s(times_s: np.ndarray, typical_s: float) -> float:
    """The time of the starts together, each counted as at most LONGEST_OF_MEDIAN times a typical one."""
    return float(np.minimum(times_s, LONGEST_OF_MEDIAN * typical_s).sum())


def cells_of(samples: Iterable[Sample], block: Block, method: str) -> list[Cell]:
    """The cells of one MPI, in the order of CELLS or GRID.

    The better one of the two other ways is the same for all launches: choosing by launch would favour the
    luckier one.
    """
    by_point: dict[tuple, dict[str, dict[str, np.ndarray]]] = defaultdict(lambda: defaultdict(dict))
    for sample in samples:
        by_point[_point_key(sample)][sample.launch][sample.method] = sample.times_s
    cells = []
    order = CELLS if set(by_point) <= set(CELLS) else GRID
    for point, launches in sorted(by_point.items(), key=lambda item: order.index(item[0])):
        compared = [by_method for by_method in launches.values() if method in by_method]
        if compared:
            cells.append(_cell(point, compared, block, method))
    return cells


def _point_key(sample: Sample) -> tuple[int, int, float]:
    config = sample.config
    return config["size_bytes"], config["partitions"], config["gamma_s_per_byte"]


def _cell(point: tuple, launches: Sequence[dict[str, np.ndarray]], block: Block, method: str) -> Cell:
    totals_s: dict[str, list[float]] = defaultdict(list)
    medians_s: dict[str, list[float]] = defaultdict(list)
    for by_method in launches:
        starts = {name: block.of(by_method[name]) for name in (BULK, EACH, method)}
        for name, times_s in starts.items():
            # A method whose starts are all slow is slow: each has a typical start of its own.
            totals_s[name].append(total_s(times_s, float(np.median(times_s))))
            medians_s[name].append(float(np.median(times_s)))
    num = len(block.of(launches[0][method]))
    better = min((BULK, EACH), key=lambda name: float(np.median(totals_s[name])))
    ratios = np.array(totals_s[method]) / np.array(totals_s[better])
    return Cell(
        *point,
        better=better,
        better_s=float(np.median(totals_s[better])) / num,
        method_s=float(np.median(totals_s[method])) / num,
        ratio=over_launches([np.array([ratio]) for ratio in ratios])[0],
        median_ratio=float(np.median(np.array(medians_s[method]) / np.array(medians_s[better]))),
        over_one=float(np.median(np.array(totals_s[method]) / np.array(totals_s[BULK]))),
        over_each=float(np.median(np.array(totals_s[method]) / np.array(totals_s[EACH]))),
        over_s=float(np.median(np.array(totals_s[method]) - np.array(totals_s[better]))) / num,
    )


def allowed_s(partitions: int) -> float:
    """What a small transfer may take longer than the better way: the calls themselves cost something."""
    return 0.2e-6 + 7e-9 * partitions


def summary(cells: Sequence[Cell], targets: Targets | None = None) -> list[str]:
    """What the cells say together, a line each."""
    counted = [cell for cell in cells if cell.better_s >= COUNTED_S]
    judged = [cell for cell in cells if cell.better_s >= JUDGED_S]
    lines = []
    if counted:
        mean, median = (
            geometric_mean(values)
            for values in ([c.ratio.value for c in counted], [c.median_ratio for c in counted])
        )
        line = f"geometric mean of {len(counted)} cells of 1 us or more: {mean:.3f}"
        lines.append(
            f"{line}{_judged(mean, targets.mean if targets else None)}; of median starts {median:.3f}"
        )
    if judged:
        last = max(judged, key=lambda cell: cell.ratio.value)
        line = f"worst of {len(judged)} cells of 5 us or more: {last.ratio.value:.2f}"
        lines.append(
            f"{line}{_judged(last.ratio.value, targets.worst if targets else None)}, {last.describe()}"
        )
    return lines


def small_lines(cells: Sequence[Cell]) -> list[str]:
    """Of each cell below 5 us, how much longer a start takes than by the better way."""
    small = [cell for cell in cells if cell.better_s < JUDGED_S]
    met = sum(cell.over_s <= allowed_s(cell.partitions) for cell in small)
    if not small:
        return []
    return [
        f"{met} of {len(small)} cells below 5 us are at most 0.2 us + 7 ns per partition above the better",
        *(
            f"  {cell.describe()}: {cell.over_s * 1e6:+.2f} us of {allowed_s(cell.partitions) * 1e6:.2f}, "
            f"{cell.over_s * 1e9 / cell.partitions:+.1f} ns per partition"
            for cell in small
        ),
    ]


def _judged(value: float, target: float | None) -> str:
    return "" if target is None else f" (target {target:.2f}, {'met' if value <= target else 'missed'})"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, or read what was measured, and print the tables of each MPI."""
    options = _parser().parse_args(list(arguments))
    known = [describe_point(*cell) for cell in (GRID if options.starts else CELLS)]

    def work() -> None:
        if unknown := [name for name in options.cell or () if name not in known]:
            raise InputError(f"there is no cell {unknown[0]!r}; the cells are: {'; '.join(known)}")
        if options.starts is not None and options.starts < 1:
            raise InputError(f"--starts is {options.starts}; give 1 or more")
        if options.segments is not None:
            _record_segments(options)
            return
        samples = read_samples(options.read) if options.read else _take(options)
        mpi_comparison.report_on_each(samples, _report)

    return mpi_comparison.run(NAME, options, work)


def _parser() -> argparse.ArgumentParser:
    parser = mpi_comparison.make_parser(NAME, __doc__, LAUNCHES, "of each kind and MPI")
    mpi_comparison.add_quick(parser)
    parser.add_argument(
        "--cell", action="append", help="only this one, such as '8 KiB in 4, 1000 us/MB'; repeat for several"
    )
    parser.add_argument("--starts", type=int, help="instead, so many starts of each cell of partitioned-grid")
    parser.add_argument("--second-run", action="store_true", help="with the cache that a first run wrote")
    parser.add_argument(
        "--segments", type=Path, help="instead, add to this text file starts with fixed numbers of segments"
    )
    mpi_comparison.add_from(parser)
    return parser


def _take(options: argparse.Namespace) -> list[Sample]:
    launches = options.launches or (QUICK_LAUNCHES if options.quick else LAUNCHES)
    records: list[dict[str, Any]] = []
    samples: list[Sample] = []
    launchers = {
        mpi: make_launcher({"launcher": "local", "mpi": mpi})[0] for mpi in options.mpi or built_mpis()
    }
    try:
        for mpi, launcher in launchers.items():
            with _caches(mpi, launcher, options) as cache:
                for launch in range(launches):
                    # Which goes first alternates, so that neither always meets what the other left.
                    for preload in (True, False) if launch % 2 == 0 else (False, True):
                        name = f"{mpi}-{launch}-{'with' if preload else 'without'}"
                        request = _request(name, mpi, launch, preload, options)
                        request = replace(request, environment={CACHE: cache(launch)})
                        record, found = run_launch(launcher, request)
                        record["second_run"] = options.second_run
                        records.append(record)
                        samples += [_kept(sample, record, options.second_run) for sample in found]
                        say(f"launch {launch + 1} of {launches}, {name}: {record['duration_s']:.0f} s")
    finally:
        # Also the samples before a launch died or Ctrl-C.
        if options.json is not None and samples:
            write_samples(options.json, records, samples, cells=[])
    return samples


@contextmanager
def _caches(mpi: str, launcher: Launcher, options: argparse.Namespace) -> Iterator[Any]:
    """Yield a function that names the cache for a launch: a copy of an empty one, or of that of a first run,
    because launches add to it."""
    with tempfile.TemporaryDirectory(prefix="earlybird-") as folder:
        first = Path(folder) / "first"
        first.mkdir()
        if options.second_run:
            request = _request(f"{mpi}-first-with", mpi, LAUNCHES, True, options)
            run_launch(launcher, replace(request, environment={CACHE: str(first)}))
            if not any(first.iterdir()):
                say(f"the first run on {mpi} wrote no cache")

        def copy(launch: int) -> str:
            return str(shutil.copytree(first, Path(folder) / str(launch), dirs_exist_ok=True))

        yield copy


def _request(name: str, mpi: str, seed: int, preload: bool, options: argparse.Namespace) -> Request:
    cells = GRID if options.starts else CELLS
    points = [
        _point_of(mpi, cell, options.starts or starts_of(cell[0], options.quick))
        for cell in cells
        if not options.cell or describe_point(*cell) in options.cell
    ]
    random.Random(seed).shuffle(points)
    layout = parse_layout("1x1x2")
    return Request(name, "pipeline", points, layout, Rules(), methods=METHODS[preload], preload=preload)


def _point_of(mpi: str, cell: tuple[int, int, float], starts: int) -> dict[str, Any]:
    size, partitions, gamma = cell
    return {
        "mpi": mpi, "level": "intra_socket", "size_bytes": size, "partitions": partitions,
        "gamma_s_per_byte": gamma, "starts": starts,
    }  # fmt: skip


def _record_segments(options: argparse.Namespace) -> None:
    """Measure every cell with each fixed number of segments, and append the times to the file."""
    for mpi in options.mpi or built_mpis():
        launcher = make_launcher({"launcher": "local", "mpi": mpi})[0]
        for launch in range(options.launches or SEGMENTS_LAUNCHES):
            points = [_point_of(mpi, cell, SEGMENTS_STARTS) for cell in CELLS]
            request = Request(
                f"{mpi}-{launch}-with", "pipeline", points, parse_layout("1x1x2"), Rules(),
                methods=(BULK, EACH, *SEGMENTS), preload=True, environment={CACHE: "off"},
            )  # fmt: skip
            _, samples = run_launch(launcher, request)
            is_new = not options.segments.exists()
            with open(options.segments, "a") as stream:
                stream.write(SEGMENTS_HEAD if is_new else "")
                for sample in samples:
                    stream.write(_segments_line(sample, launch))


def _segments_line(sample: Sample, launch: int) -> str:
    config, method = sample.config, str(sample.method).rpartition(":")[2]
    partitions = config["partitions"]
    if method.isdigit() and int(method) > partitions:
        return ""
    delay_s = config["gamma_s_per_byte"] * config["size_bytes"] / partitions
    times = " ".join(str(max(round(time_s * 1e8), 1)) for time_s in sample.times_s)
    where = f"{config['mpi']} {config['size_bytes']} {partitions} {delay_s * 1e9:.0f}"
    return f"{where} {method} {launch} {times}\n"


def starts_of(size_bytes: int, is_quick: bool) -> int:
    if is_quick:
        return QUICK_STARTS
    return HUGE_STARTS if size_bytes >= 16 * MIB else STARTS


def _kept(sample: Sample, record: dict[str, Any], second_run: bool) -> Sample:
    """What is kept of a sample: the times, without the delays, and where it was taken."""
    extra = {key: value for key, value in sample.extra.items() if key != "delays_s"}
    machine = hardware.describe()
    extra |= {
        "second_run": second_run,
        "machine": f"{machine['cpu_model']}, {machine['cores']} cores",
        "library": record["library_version"].strip().splitlines()[0].strip(),
    }
    return replace(sample, rounds=None, extra=extra)


def _report(mpi: str, samples: Sequence[Sample]) -> None:
    taken = samples[0].extra
    is_second = bool(taken["second_run"])
    launches = len({sample.launch for sample in samples if sample.method == OURS})
    run = ", second run" if is_second else ""
    print(f"\n{taken['library']} on {taken['machine']}{run}: medians over {launches} launches")
    starts = len(samples[0].times_s)
    if starts < QUICK_STARTS:
        _report_block(mpi, samples, Block(f"all {starts} starts", 1, starts), SHORT_TARGETS)
    else:
        for block in (STEADY, EARLY):
            _report_block(mpi, samples, block, TARGETS[block.name, is_second])
        _report_program(mpi, samples)
    if any(sample.oversubscribed for sample in samples):
        print("ranks shared cores: these figures tell of the scheduler too")


def _report_block(mpi: str, samples: Sequence[Sample], block: Block, targets: Targets) -> None:
    ours, own = (cells_of(samples, block, method) for method in (OURS, OWN))
    print(f"\n{mpi}, {block.name}: time of a start; ratios of the times of all these starts")
    owns = {cell.describe(): cell for cell in own}
    print_rows(
        ["size", "partitions", "us/MB", "better", "time", "ours", "ratio", "from .. to", "median start",
         "MPI's own"],
        [_row(cell, owns.get(cell.describe())) for cell in ours],
    )  # fmt: skip
    for line in summary(ours, targets):
        print(f"libearlybird, {line}")
    for line in summary(own):
        print(f"the MPI's own, {line}")
    for line in small_lines(ours):
        print(line)


def _report_program(mpi: str, samples: Sequence[Sample]) -> None:
    ours = cells_of(samples, PROGRAM, OURS)
    print(f"\n{mpi}, a program of 50 steps: time of all starts over that of each other way")
    print_rows(
        ["size", "partitions", "us/MB", "ours", "/ one message", "/ one per partition", "/ the better"],
        [
            [
                *_point(cell), format_seconds(cell.method_s * PROGRAM.last), f"{cell.over_one:.2f}",
                f"{cell.over_each:.2f}", f"{cell.ratio.value:.2f}",
            ]
            for cell in ours
        ],
    )  # fmt: skip
    ways = {"one message": "over_one", "one per partition": "over_each"}
    for way, name in ways.items():
        mean = geometric_mean([getattr(cell, name) for cell in ours])
        print(f"over {way}, geometric mean of {len(ours)} cells: {mean:.3f}")


def _point(cell: Cell) -> list[Any]:
    return [format_bytes(cell.size_bytes), cell.partitions, f"{cell.gamma_s_per_byte * 1e12:.0f}"]


def _row(cell: Cell, own: Cell | None) -> list[Any]:
    return [
        *_point(cell), cell.better, format_seconds(cell.better_s), format_seconds(cell.method_s),
        f"{cell.ratio.value:.2f}", f"{cell.ratio.low:.2f} .. {cell.ratio.high:.2f}",
        f"{cell.median_ratio:.2f}", "" if own is None else f"{own.ratio.value:.2f}",
    ]  # fmt: skip
