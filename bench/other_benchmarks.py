"""The same machine measured by Earlybird and by the OSU and the Intel MPI Benchmarks.

Launches of both by turns, with two ranks on the same cores; then both texts are imported and the two runs
compared. OSU's medians over iterations are compared (-z 50), with ours as `earlybird export --to osu` writes
them; IMB prints means, so ours are means as well. IMB-MPI1 comes with Intel MPI and runs on it; build OSU's
programs yourself.
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import EARLYBIRD
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.run import Run, Sample
from earlybird.data.units import format_bytes, format_seconds
from earlybird.launch import mpiexec, placement
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.launch.variables import variables_to_set
from earlybird.machine import flavours, hardware
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_rows

LAYOUT = parse_layout("1x1x2")
LOG2_LARGEST = 20
SIZES_BYTES = [1 << k for k in range(LOG2_LARGEST + 1)]
MIN_EFFECT = 0.03
TIME_LIMIT_S = 120.0
BUDGET_S = 0.02  # of each size, for ours
COLLECTIVES = ("allreduce", "bcast", "alltoall")


@dataclass(frozen=True)
class Case:
    """One benchmark of theirs and the points of ours that measure the same.

    Attributes
    ----------
    program, options : theirs.
    config : of our points, without `mpi` and the size.
    """

    name: str
    tool: str
    program: str
    options: Sequence[str]
    kernel: str
    config: dict[str, Any]
    methods: tuple[str, ...] = ()
    sizes_bytes: Sequence[int] = tuple(SIZES_BYTES)


def _cases() -> list[Case]:
    pair = {"level": "intra_socket"}
    reuse = pair | {"buffers": "reuse"}
    window = reuse | {"window": 64, "threads": 1}
    # Short launches, as what differs most is their luck: which pages they got, what else ran.
    # OSU ignores what follows "-z 50".
    sizes, medians = ("-i", "200", "-m", f"1:{SIZES_BYTES[-1]}"), ("-z", "50")
    cases = [
        Case("latency", "osu", "osu_latency", (*sizes, *medians), "pingpong", reuse),
        # A buffer for each message of a window, as ours; with one for all, large ones stay in the cache.
        Case(
            "bandwidth",
            "osu",
            "osu_bw",
            (*sizes, "-b", "multiple", *medians),
            "msgrate",
            window,
            ("processes",),
        ),
        Case(
            "imb-pingpong", "imb", "IMB-MPI1", ("-msglog", f"0:{LOG2_LARGEST}", "PingPong"), "pingpong", reuse
        ),
    ]
    for operation in COLLECTIVES:
        config = {"operation": operation, "ranks": 2, "layout": "1x1x2", "map_by": "core"}
        options, sizes_bytes = (*sizes, "-f", *medians), SIZES_BYTES
        if operation == "bcast":
            config["root"] = 0
        if operation == "allreduce":  # ours are sums of doubles
            config["datatype"] = "double"
            options, sizes_bytes = (*sizes, "-f", "-T", "mpi_float", *medians), SIZES_BYTES[3:]
        program = f"osu_{operation}"
        cases.append(
            Case(operation, "osu", program, options, "collective", config, ("default",), sizes_bytes)
        )
    return cases


def main(arguments: Sequence[str] = ()) -> int:
    """Compare and print the tables."""
    parser = argparse.ArgumentParser(prog="bench other-benchmarks", description=__doc__)
    parser.add_argument(
        "--osu", type=Path, metavar="FOLDER", help="folder in which OSU's programs are, built with --mpi"
    )
    parser.add_argument("--mpi", default="mpich", help="the MPI of OSU's programs [default: %(default)s]")
    parser.add_argument(
        "--imb",
        type=Path,
        metavar="PATH",
        help="IMB-MPI1 [default: the one of Intel MPI, if it is installed]",
    )
    parser.add_argument("--launches", type=int, default=10, help="of each side [default: %(default)s]")
    parser.add_argument("--cases", help=f"some of {','.join(one.name for one in _cases())} [default: all]")
    chosen = parser.parse_args(arguments)
    if chosen.launches < 5:
        raise InputError(f"--launches is {chosen.launches}; give at least 5, of which `compare` can decide")
    ratios = {}
    for case in _chosen(chosen.cases):
        starter = _starter(case, chosen)
        if starter is not None:
            with tempfile.TemporaryDirectory() as folder:
                ratios[case.name] = _compare(case, *starter, chosen.launches, Path(folder))
    if not ratios:
        note("other-benchmarks skipped: give --osu FOLDER, or `earlybird build --mpi intel` for IMB-MPI1")
        return 0
    print()
    rows = [[name, f"{np.median(of_sizes):.3f}"] for name, of_sizes in ratios.items()]
    print_rows(["benchmark", "median of ours / theirs over sizes"], rows, left=["benchmark"])
    return 0


def _chosen(names: str | None) -> list[Case]:
    cases = {one.name: one for one in _cases()}
    unknown = [name for name in (names or "").split(",") if name and name not in cases]
    if unknown:
        raise InputError(f"--cases has {unknown[0]!r}; choose of {', '.join(cases)}")
    return [cases[name] for name in (names.split(",") if names else cases)]


def _starter(case: Case, chosen: argparse.Namespace) -> tuple[flavours.Flavour, Path] | None:
    """The MPI and the program of theirs; None, with a note, if there is none."""
    if case.tool == "osu":
        if chosen.osu is None:
            return None
        program = next(iter(sorted(chosen.osu.rglob(case.program))), None)
        if program is None:
            raise InputError(
                f"--osu is {chosen.osu}, in which there is no {case.program}; give the folder of a build"
            )
        return flavours.find_flavour(chosen.mpi), program
    try:
        flavour = flavours.find_flavour("intel")
    except InputError as error:
        note(f"{case.name} skipped: {error}")
        return None
    return flavour, chosen.imb or flavour.mpicc.parent / "IMB-MPI1"


def _compare(case: Case, flavour: flavours.Flavour, program: Path, launches: int, folder: Path) -> np.ndarray:
    """(S,) our time over theirs, by size."""
    launcher = MpiexecLauncher(flavour)
    launcher.check(LAYOUT)
    run = Run.create(folder / "ours", machine={"host": "imported"}, command=[], seed=1)
    (folder / "theirs").mkdir()
    sides: list[Callable[[int], None]] = [
        partial(_measure, case, launcher, run, folder),
        partial(_run_theirs, case, flavour, program, folder / "theirs"),
    ]
    for launch in range(launches):
        # Which goes first alternates, so that neither always meets what the other left.
        for side in sides if launch % 2 else reversed(sides):
            side(launch)
        note(f"{case.name}: launch {launch + 1} of {launches}")
    ours = run.path
    if case.tool == "osu":
        _earlybird("export", run.path, "--to", "osu", "-o", folder / "texts")
        ours = _imported("osu", folder / "texts", flavour.name, folder / "our-run")
    theirs = _imported(case.tool, folder / "theirs", flavour.name, folder / "their-run")
    found = _compared(theirs, ours)
    # Of collectives, both sides have the mean over ranks and the slowest rank.
    changes = [one for one in found["changes"] if one["quantity"] != "completion"]
    changes.sort(key=lambda one: one["config"]["size_bytes"])
    print(
        f"\n{case.name}: Earlybird and {case.program}, {flavour.name} {flavour.version}, "
        f"{launches} launches of each"
    )
    print_rows(
        ["size", "theirs", "ours", "ours / theirs", "interval", "verdict"],
        [
            [
                format_bytes(one["config"]["size_bytes"]), format_seconds(one["before_s"]),
                format_seconds(one["after_s"]), f"{one['ratio']:.3f}",
                f"{one['ratio_low']:.3f} .. {one['ratio_high']:.3f}", one["verdict"],
            ]
            for one in changes
        ],
    )  # fmt: skip
    return np.array([one["ratio"] for one in changes])


def _measure(case: Case, launcher: MpiexecLauncher, run: Run, folder: Path, launch: int) -> None:
    points = [{"mpi": launcher.flavour} | case.config | {"size_bytes": size} for size in case.sizes_bytes]
    request = Request(
        str(launch), case.kernel, points, LAYOUT, Rules(budget_s=BUDGET_S), methods=case.methods
    )
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        launched = launcher.launch(request, Path(scratch), lambda *output: None)
    if launched.cause is not None:
        raise SystemExit(f"our launch died: {launched.cause}")
    run.append_launch(launched.record | {"id": str(launch)})
    run.append_samples([_kept(sample, case, str(launch)) for sample in launched.samples])


def _kept(sample: Sample, case: Case, launch: str) -> Sample:
    """IMB prints means."""
    if case.tool != "imb":
        return replace(sample, launch=launch)
    return replace(
        sample, launch=launch, times_s=sample.steady_times_s().mean(keepdims=True), warmup=0, rounds=None
    )


def _run_theirs(case: Case, flavour: flavours.Flavour, program: Path, folder: Path, launch: int) -> None:
    binding = placement.bind_local(LAYOUT, hardware.cores_by_socket())
    with tempfile.TemporaryDirectory() as scratch:
        start = mpiexec.invocation(flavour, 2, binding, Path(scratch), oversubscribed=False)
    finished = subprocess.run(
        [*start.before_program, str(program), *case.options],
        env=flavour.environment() | variables_to_set(flavour, start.env, start.preferred),
        capture_output=True, text=True, timeout=TIME_LIMIT_S,
    )  # fmt: skip
    if finished.returncode:
        raise SystemExit(
            f"{program} ended with status {finished.returncode}: {finished.stderr.strip()[-300:]}"
        )
    (folder / f"{launch:02}.txt").write_text(finished.stdout)


def _imported(tool: str, texts: Path, mpi: str, output: Path) -> Path:
    ranks = ("--ranks", 2) if tool == "osu" else ()
    sources = sorted(texts.iterdir(), key=lambda path: int(re.findall(r"\d+", path.stem)[-1]))
    _earlybird("import", tool, *sources, "--mpi", mpi, "--level", "intra_socket", *ranks, "-o", output)
    return output


def _earlybird(*arguments: Any) -> None:
    command = [str(EARLYBIRD), *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode:
        raise SystemExit(
            f"{' '.join(command[1:4])} ended with status {finished.returncode}: {finished.stderr.strip()}"
        )


def _compared(theirs: Path, ours: Path) -> dict[str, Any]:
    """What `earlybird compare` prints; its status 1 says that a point of ours is slower."""
    command = [
        str(EARLYBIRD),
        "compare",
        str(theirs),
        str(ours),
        "--min-effect",
        f"{MIN_EFFECT:.0%}",
        "--json",
    ]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode not in (0, 1):
        raise SystemExit(f"compare ended with status {finished.returncode}: {finished.stderr.strip()}")
    return json.loads(finished.stdout)
