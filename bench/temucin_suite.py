"""The metrics of `earlybird measure partitioned` compared with those of the paper's authors' own programs.

Both measure two virtual nodes, interleaved launch by launch. You build their programs outside this project
(SUITE) and name the folder. They print means over iterations, so ours are taken as means over steady
iterations as well.

Where both are right, and what differs on purpose:

- Theirs ends at the sender when an answer of the receiver has arrived there: one byte, or for overhead and
  availability a partitioned message. Ours ends when the receiver has everything. On a link of 100 Mbit/s
  512 KiB take 44 ms, an answer about 0.1 ms.
- Theirs begins when MPI_Pready has returned, ours when it is called. A point is not compared if the calls
  take more than 3 % of the time; at 1 Gbit/s those of libearlybird take 11 to 26 % of that of 1 MiB.
- Theirs takes one join of the threads, the mean of another series. It holds without noise and with `single`.
- Availability is compared as 1 - availability, which is not close to zero.
- Their threads spin in all waits: overhead and availability with two threads on each node need four cores.
- Not compared: shared memory (theirs sends a buffer that was never written, which is one page of zeros),
  sizes that the partitions do not divide (theirs counts bytes that it does not send), cold caches (theirs
  reads 8 MiB on one thread), early-bird share (theirs divides the intervals of availability).
"""

import argparse
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.commands import EARLYBIRD, earlybird, say, virtual_cluster
from earlybird.data import labels
from earlybird.data.files import write_json
from earlybird.data.methods import EARLYBIRD as OURS
from earlybird.data.methods import OWN_CALLS, SINGLE
from earlybird.data.partition_moments import PartitionMoments
from earlybird.data.run import Run, Sample
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.models import partitioned_metrics
from earlybird.models.statistics import median_coverage, median_ratio_interval
from earlybird.present.render.terminal import print_rows

SUITE = "github.com/Yiltan/MPI-Partitioned-Microbenchmarks, branch mpi-native"
RATE = "100mbit"
SIZES = (1 << 19, 1 << 20)
LAUNCHES = 6  # the fewest of which lowest and highest hold the median in 95 % of all cases
ITERATIONS = 8
ALLOWED = 0.05
ALLOWED_CALLS = 0.03
DIFFERS = "differs"
CORES_FOR_ALL = 4

PERCEIVED, OVERHEAD, AFTER = "perceived", "overhead", "1 - availability"
PROGRAMS = {PERCEIVED: "perceived_bandwidth", OVERHEAD: "overhead", AFTER: "availability"}


@dataclass(frozen=True)
class Setting:
    """What one launch of each of their programs, and one of ours, measures."""

    method: str
    threads: int  # as many as partitions
    noise_percent: int  # by how much the thread of the noise `single` is late
    sizes: tuple[int, ...]
    metrics: tuple[str, ...]
    compute_ms: int = 4
    warmup: int = 2  # iterations that their programs leave out

    def __str__(self) -> str:
        noise = f", one {self.noise_percent} % late" if self.noise_percent else ""
        return f"{self.method}, {labels.counted(self.threads, 'thread')}{noise}"


def settings_of(cores: int) -> list[Setting]:
    everything = (PERCEIVED, OVERHEAD, AFTER)
    with_late_thread = everything if cores >= CORES_FOR_ALL else (PERCEIVED,)
    return [
        Setting(OWN_CALLS, 1, 0, SIZES, everything),
        Setting(OWN_CALLS, 2, 100, SIZES[:1], with_late_thread, compute_ms=30),
        Setting(OURS, 1, 0, SIZES[:1], (PERCEIVED,)),
        # While the late thread computes, the other's 256 KiB leave (22 ms), also if the two share a core. In
        # its first starts libearlybird tries segmentations.
        Setting(OURS, 2, 100, SIZES[:1], (PERCEIVED,), compute_ms=30, warmup=70),
    ]


def main(arguments: Sequence[str] = ()) -> int:
    """Compare and print a table; 1 if a whole interval is further from 1 than allowed."""
    options = _parser().parse_args(list(arguments))
    if not options.programs:
        say(
            f"temucin-suite skipped: build the programs of {SUITE}, with an MPI's mpicc and give their "
            "folder, such as --programs mpich=DIR"
        )
        return 0
    settings = settings_of(len(os.sched_getaffinity(0)))
    rows, kept, differs = [], [], False
    with tempfile.TemporaryDirectory() as folder, virtual_cluster(2, RATE) as cluster:
        for mpi, programs in options.programs:
            found = _launches(mpi, programs, cluster, settings, options.launches, Path(folder))
            for (setting, metric, size), values in found.items():
                theirs, ours, from_return = np.array(values).T
                ratio, low, high = median_ratio_interval(ours, theirs)
                calls = 1 - np.minimum(from_return / ours, ours / from_return)
                verdict = verdict_of(low, high, float(np.median(calls)))
                differs = differs or verdict == DIFFERS
                place = [mpi, str(setting), metric, format_bytes(size)]
                texts = [_text(metric, float(np.median(one))) for one in (theirs, ours)]
                rows.append([*place, *texts, f"{ratio:.3f}", f"{low:.3f} .. {high:.3f}", verdict])
                point = {"mpi": mpi, "method": str(setting), "metric": metric, "size_bytes": size}
                kept.append(point | {"theirs_ours_from_return": values})
    if options.json is not None:
        write_json(options.json, {"points": kept})
    _print(rows, settings, options.launches)
    return int(differs)


def verdict_of(low: float, high: float, calls: float) -> str:
    """By the interval of the ratio, and the share of the time that the calls of MPI_Pready take."""
    if calls > ALLOWED_CALLS:
        return f"not compared: calls take {labels.percent(calls)}"
    if low > 1 + ALLOWED or high < 1 - ALLOWED:
        return DIFFERS
    return "agrees" if low >= 1 - ALLOWED and high <= 1 + ALLOWED else "unclear"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench temucin-suite",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--programs", action="append", type=_programs, metavar="MPI=DIR", default=[],
        help=f"folder with {', '.join(PROGRAMS.values())}, built with this MPI; repeat for several",
    )  # fmt: skip
    parser.add_argument("--launches", type=int, default=LAUNCHES, help=f"default {LAUNCHES}")
    parser.add_argument("--json", type=Path, help="write the values of every launch here")
    return parser


def _programs(text: str) -> tuple[str, Path]:
    mpi, equals, folder = text.partition("=")
    missing = [name for name in PROGRAMS.values() if not (Path(folder) / name).is_file()]
    if not equals or missing:
        raise argparse.ArgumentTypeError(f"{text!r} is not MPI=DIR with {', '.join(missing)} in DIR")
    return mpi, Path(folder).resolve()


# Of a setting, metric and size: theirs, ours, and ours from the return of MPI_Pready, of each launch.
Values = dict[tuple[Setting, str, int], list[tuple[float, float, float]]]


def _launches(
    mpi: str, programs: Path, cluster: str, settings: Sequence[Setting], launches: int, folder: Path
) -> Values:
    found: Values = {}
    for launch in range(launches):
        for k, setting in enumerate(settings):
            run = folder / f"{mpi}-{launch}-{k}"
            theirs: dict[str, Mapping[int, float]] = {}
            # Which goes first alternates, so that neither always meets what the other left.
            for turn in (0, 1):
                if (launch + turn) % 2:
                    theirs = {m: _theirs(mpi, programs, cluster, setting, m) for m in setting.metrics}
                else:
                    _measure_ours(mpi, cluster, setting, run)
            for size in setting.sizes:
                for metric, ours, from_return in ours_of(Run.open(run).samples(), setting.method, size):
                    if metric in setting.metrics:
                        values = (theirs[metric][size], ours, from_return)
                        found.setdefault((setting, metric, size), []).append(values)
        say(f"{mpi}: launch {launch + 1} of {launches}")
    return dict(sorted(found.items(), key=lambda item: settings.index(item[0][0])))


def _measure_ours(mpi: str, cluster: str, setting: Setting, run: Path) -> None:
    place = ("--mpi", mpi, "--launcher", f"cluster:{cluster}", "--levels", "inter_node")
    noise = ("single", "--noise-percent", setting.noise_percent) if setting.noise_percent else ("none",)
    point = ("--sizes", ",".join(map(str, setting.sizes)), "--partitions", setting.threads, "--noise", *noise)
    computation = ("--methods", setting.method, "--compute", f"{setting.compute_ms}ms")
    effort = ("--launches", 1, "--budget", "2s", "--quiet", "-o", run)
    earlybird("measure", "partitioned", *place, *point, *computation, *effort)


def ours_of(samples: Sequence[Sample], method: str, size: int) -> Iterator[tuple[str, float, float]]:
    """Each metric of a method, as defined and with intervals that begin when MPI_Pready has returned."""
    of_size = {s.method: PartitionMoments.of(s) for s in samples if s.config["size_bytes"] == size}
    parts, single = of_size[method], of_size[SINGLE]
    single_s = np.mean(single.completed_s - single.ready_s[:, 0])
    both = []
    for begin_s in (parts.ready_s, parts.returned_s):
        after_s = partitioned_metrics.length_after_s(begin_s, parts.arrived_s, parts.joined_s)
        both.append({
            PERCEIVED: size / np.mean(parts.completed_s - begin_s.max(axis=1)),
            OVERHEAD: np.mean(partitioned_metrics.union_length_s(begin_s, parts.arrived_s)) / single_s,
            AFTER: np.mean(after_s) / single_s,
        })  # fmt: skip
    for metric in PROGRAMS:
        yield metric, float(both[0][metric]), float(both[1][metric])


def _theirs(mpi: str, programs: Path, cluster: str, setting: Setting, metric: str) -> dict[int, float]:
    own = ("--no-interpose",) if setting.method == OWN_CALLS else ()
    threads = str(setting.threads)
    command = [
        str(EARLYBIRD), "exec", "--mpi", mpi, *own, "--", str(EARLYBIRD), "cluster", "mpiexec", "--mpi", mpi,
        "--name", cluster, "--layout", "2x1x1", "--threads", threads, "--",
        str(programs / PROGRAMS[metric]), "--threads", threads,
        "--message-size", f"{setting.sizes[0]}:{setting.sizes[-1]}",
        "--compute-time", str(setting.compute_ms),
        "--percent-noise", str(setting.noise_percent), "--noise-type", "Single",
        "--iterations", str(ITERATIONS), "--warmup", str(setting.warmup),
    ]  # fmt: skip
    # Threads that have computed would otherwise spin next to the one that waits.
    env = os.environ | {"OMP_WAIT_POLICY": "passive"}
    finished = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    found = printed_values(finished.stdout, metric)
    if finished.returncode != 0 or set(found) != set(setting.sizes):
        raise SystemExit(
            f"{PROGRAMS[metric]} of {mpi} ({setting}) ended with status {finished.returncode}:\n"
            + (finished.stdout + finished.stderr)[-2000:]
        )
    return found


def printed_values(output: str, metric: str) -> dict[int, float]:
    """By size in bytes: bytes per second, overhead, or the share of a single message's time after the join.

    Their programs print a size and MB/s of 1e6 bytes, a ratio, or percent in each line.
    """
    lines = re.findall(r"^(\d+)\s+(-?[\d.]+)\s*$", output, re.MULTILINE)
    to_ours = {
        PERCEIVED: lambda value: value * 1e6,
        OVERHEAD: lambda value: value,
        AFTER: lambda value: 1 - value / 100,
    }
    return {int(size): to_ours[metric](float(value)) for size, value in lines}


def _text(metric: str, value: float) -> str:
    return format_bandwidth(value) if metric == PERCEIVED else f"{value:.3f}"


def _print(rows: Sequence[Sequence[str]], settings: Sequence[Setting], launches: int) -> None:
    print(
        f"\nprograms of Temuçin et al. and earlybird, two nodes at 100 Mbit/s, launches of each: {launches}"
    )
    header = ["MPI", "method", "metric", "size", "theirs", "ours", "ratio", "interval", "verdict"]
    print_rows(header, rows, left=(*header[:3], "verdict"))
    print("ratio: ours / theirs; differs: the whole interval is more than 5 % from 1")
    print(f"the interval contains the median in {labels.percent(median_coverage(launches))} of all cases")
    if all(len(setting.metrics) == 1 for setting in settings if setting.threads > 1):
        print(f"not compared with two threads: {OVERHEAD}, {AFTER}; their spinning threads need four cores")
