"""At how many points of the motifs is libearlybird slower than the best other style?

In shared memory (2 ranks with a thread per core) and on 4 virtual nodes at 1 Gbit/s (a rank each) every MPI
measures halo3d, sweep3d and comb in all styles. A point counts as slower if the style `earlybird` takes more
than 5 % longer than the best other style, and clearly so if the whole interval says it. The best of several
styles is partly the luckiest: the last table counts the same for every style. About 25 minutes for three
MPIs, with --quick 5 minutes.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commands import built_mpis, earlybird, say, virtual_cluster
from earlybird.compare.motifs import OverBest, over_best
from earlybird.data import labels
from earlybird.data.files import write_json
from earlybird.data.kernels import MOTIFS
from earlybird.data.methods import EARLYBIRD, STYLES
from earlybird.data.run import Run
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.render.terminal import print_table

NODES, RATE = 4, "1gbit"
MEMORY, CLUSTER = "shared memory", f"{NODES} nodes, {RATE}"
PLACES = {"memory": MEMORY, "cluster": CLUSTER}
CELLS, QUICK_CELLS = "16x16x16,64x64x64", "16x16x16"
COMPUTATION = ("--compute", "0,1ms", "--noise", "single", "--noise-percent", "4")
BUFFERS, STENCILS = "packed,derived", "7,27"
LAUNCHES, QUICK_LAUNCHES = 5, 3
# Seconds for one motif of one MPI at one place.
BUDGET_S, QUICK_BUDGET_S = 120, 20
MAX_THREADS = 16  # the planes of the smaller cells
ALLOWED_SHARE = 0.10


@dataclass(frozen=True)
class Found:
    """One point of one MPI at one place."""

    place: str
    mpi: str
    over: OverBest

    def to_json(self) -> dict[str, Any]:
        speed_up = self.over.speed_up
        return {
            **self.over.config, "place": self.place, "mpi": self.mpi, "motif": self.over.kernel,
            "style": self.over.style, "best_other": self.over.other, "speed_up": speed_up.value,
            "speed_up_low": speed_up.low, "speed_up_high": speed_up.high, "coverage": speed_up.coverage,
            "launches": speed_up.launches, "slower": self.over.is_slower,
            "clearly_slower": self.over.is_clearly_slower,
        }  # fmt: skip


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print a table and the slower points; 1 if an MPI has more of them than allowed."""
    options = _parser().parse_args(list(arguments))
    found: list[Found] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for place in options.place or PLACES:
                found += _measure(place, options, Path(folder))
        finally:
            # Also what was measured before a launch died or Ctrl-C.
            if options.json is not None and found:
                write_json(options.json, {"points": [one.to_json() for one in found]})
    _print([one for one in found if one.over.style == EARLYBIRD])
    _print_styles(found)
    return _verdict([one for one in found if one.over.style == EARLYBIRD])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench motif-styles", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--place", action="append", choices=PLACES, help="default both")
    parser.add_argument("--motif", action="append", choices=MOTIFS, help="repeat for several; default all")
    parser.add_argument("--quick", action="store_true", help="small cells only, and fewer launches")
    parser.add_argument(
        "--launches", type=int, help=f"of every point; default {LAUNCHES}, quick {QUICK_LAUNCHES}"
    )
    parser.add_argument(
        "--budget", type=int, help="seconds for one motif of one MPI at one place; default "
        f"{BUDGET_S}, quick {QUICK_BUDGET_S}"
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="write every point here")
    return parser


def _measure(place: str, options: argparse.Namespace, folder: Path) -> Iterator[Found]:
    """The points at one place, MPI by MPI."""
    if place == "cluster":
        with virtual_cluster(NODES, RATE) as name:
            where = ("--launcher", f"cluster:{name}", "--ranks", NODES, "--map-by", "node", "--threads", 1)
            yield from _measure_mpis(place, where, options, folder)
    else:
        yield from _measure_mpis(place, ("--ranks", 2, "--threads", threads_of(2)), options, folder)


def threads_of(ranks: int) -> int:
    """A thread per core of a rank, as many as share the planes of cells evenly."""
    cores = len(os.sched_getaffinity(0)) // ranks
    return max(k for k in (1, 2, 4, 8, MAX_THREADS) if k <= max(cores, 1))


def _measure_mpis(
    place: str, where: Sequence[Any], options: argparse.Namespace, folder: Path
) -> Iterator[Found]:
    launches = options.launches or (QUICK_LAUNCHES if options.quick else LAUNCHES)
    budget_s = options.budget or (QUICK_BUDGET_S if options.quick else BUDGET_S)
    effort = ("--launches", launches, "--budget", f"{budget_s}s", "--quiet")
    for mpi in options.mpi or built_mpis():
        for motif in options.motif or MOTIFS:
            say(f"{mpi}, {PLACES[place]}: {motif}")
            run = folder / f"{place}-{mpi}-{motif}"
            cells = ("--cells", QUICK_CELLS if options.quick else CELLS)
            shape = () if motif == "sweep3d" else ("--stencil", STENCILS, "--buffers", BUFFERS)
            point = (*cells, *shape, *COMPUTATION)
            earlybird("measure", motif, "--mpi", mpi, *where, *point, *effort, "-o", run)
            samples = list(Run.open(run).samples())
            for style in STYLES:
                yield from (Found(PLACES[place], mpi, over) for over in over_best(samples, style))


def clearly_slower_shares(found: Sequence[Found]) -> dict[str, float]:
    """The share of the clearly slower points of each MPI."""
    shares = {}
    for mpi in dict.fromkeys(one.mpi for one in found):
        of_mpi = [one.over.is_clearly_slower for one in found if one.mpi == mpi]
        shares[mpi] = sum(of_mpi) / len(of_mpi)
    return shares


def _print(found: Sequence[Found]) -> None:
    header = ["place", "MPI", "motif", "points", "slower", "share", "clearly", "share"]
    keys = dict.fromkeys((one.place, one.mpi, one.over.kernel) for one in found)
    groups = [(key, [one for one in found if (one.place, one.mpi, one.over.kernel) == key]) for key in keys]
    rows = [[*key, *_counts(group)] for key, group in groups]
    rows += [
        ["all", mpi, "all", *_counts([one for one in found if one.mpi == mpi])]
        for mpi in dict.fromkeys(one.mpi for one in found)
    ]
    print("\nPoints at which libearlybird is more than 5 % slower than the best other style")
    print_table(header, rows, left=header[:3])
    print("clearly: the whole interval of the ratio is")
    slower = sorted((one for one in found if one.over.is_slower), key=lambda one: one.over.speed_up.value)
    if slower:
        print("\nSlower points; speed-up: time of the best other style / time of libearlybird")
        header = ["place", "MPI", "motif", "cells", "stencil", "buffers", "compute", "noise", "best other",
                  "speed-up", "interval", "clearly"]  # fmt: skip
        print_table(header, [_row(one) for one in slower], left=(*header[:3], "best other"))


def _print_styles(found: Sequence[Found]) -> None:
    """How often each style is slower than the best of the others."""
    rows = []
    for mpi in dict.fromkeys(one.mpi for one in found):
        of_mpi = [one for one in found if one.mpi == mpi]
        for style in dict.fromkeys(one.over.style for one in of_mpi):
            rows.append([mpi, style, *_counts([one for one in of_mpi if one.over.style == style])])
    print("\nPoints at which each style is more than 5 % slower than the best of the others")
    header = ["MPI", "style", "points", "slower", "share", "clearly", "share"]
    print_table(header, rows, left=header[:2])


def _verdict(found: Sequence[Found]) -> int:
    """The exit status: 1 if an MPI has more clearly slower points than allowed."""
    worst = max(clearly_slower_shares(found).items(), key=lambda pair: pair[1], default=None)
    if worst is None:
        return 0
    is_met = worst[1] <= ALLOWED_SHARE
    allowed, share = labels.percent(ALLOWED_SHARE), labels.percent(worst[1])
    verdict = "met" if is_met else "missed"
    print(f"\nclearly slower at most at {allowed} of the points of each MPI: {verdict} ({worst[0]} {share})")
    return int(not is_met)


def _counts(group: Sequence[Found]) -> list[str]:
    slower = sum(one.over.is_slower for one in group)
    clearly = sum(one.over.is_clearly_slower for one in group)
    num = len(group)
    return [str(num), str(slower), labels.percent(slower / num), str(clearly), labels.percent(clearly / num)]


def _row(one: Found) -> list[str]:
    config, speed_up = one.over.config, one.over.speed_up
    return [
        one.place, one.mpi, one.over.kernel, config["cells"], str(config.get("stencil", "")),
        config.get("buffers", ""), format_seconds(config["compute_s"]),
        labels.noise(config["noise"], config["noise_share"]), one.over.other, ratio_text(speed_up.value),
        interval_text(speed_up.estimate, ratio_text), "yes" if one.over.is_clearly_slower else "",
    ]  # fmt: skip
