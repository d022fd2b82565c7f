"""What libearlybird adds to the run time of a whole MPI command that makes no partitioned call.

The command runs alone, with the library preloaded and under `earlybird exec`, in turn and in a new order
in every round; differences and ratios are taken round by round. Without a command it is one that initialises
and finalises MPI, on two ranks.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.commands import EARLYBIRD, chosen_flavours, say
from earlybird.data.units import format_seconds
from earlybird.machine.flavours import Flavour
from earlybird.models.statistics import median_interval
from earlybird.present.render.terminal import print_rows
from earlybird.toolchain.build import native_prefix

ROUNDS = 20
ALONE, PRELOADED, EXEC = "alone", "preloaded", "exec"
INITIALISE = """#include <mpi.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  return MPI_Finalize();
}
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Run the command so many rounds and print a table for each MPI."""
    parser = argparse.ArgumentParser(prog="python -m bench command-times", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("command", nargs="*", help="after --: mpiexec and its arguments, for one --mpi")
    options = parser.parse_args(list(arguments))
    if options.rounds < 1:
        say(f"command-times: --rounds is {options.rounds}; give 1 or more")
        return 2
    if options.command and len(options.mpi or ()) != 1:
        say("command-times: a command is compiled for one MPI; say which by one --mpi")
        return 2
    flavours = chosen_flavours(options.mpi)
    for flavour in flavours:
        with tempfile.TemporaryDirectory() as folder:
            command = options.command or ["mpiexec", "-n", "2", str(_initialise(flavour, Path(folder)))]
            _report(flavour.name, command, _measure(flavour, command, options.rounds))
    return 0


def _initialise(flavour: Flavour, folder: Path) -> Path:
    source, program = folder / "initialise.c", folder / "initialise"
    source.write_text(INITIALISE)
    subprocess.run([flavour.mpicc, source, "-o", program], env=flavour.environment(), check=True)
    return program


def _measure(flavour: Flavour, command: list[str], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every round by method; the first round of all is not counted."""
    library = native_prefix(flavour) / "lib" / "libearlybird.so"
    alone = flavour.environment()
    methods = {
        ALONE: (command, alone),
        PRELOADED: (command, alone | {"LD_PRELOAD": str(library)}),
        EXEC: ([str(EARLYBIRD), "exec", "--mpi", flavour.name, "--", *command], dict(os.environ)),
    }
    times_s: dict[str, list[float]] = {method: [] for method in methods}
    order = random.Random(0)
    for _ in range(rounds + 1):
        for method in order.sample(list(methods), len(methods)):
            arguments, env = methods[method]
            begin_s = time.perf_counter()
            ended = subprocess.run(arguments, env=env, capture_output=True, text=True)
            times_s[method].append(time.perf_counter() - begin_s)
            if ended.returncode != 0:
                say(ended.stderr)
                sys.exit(
                    f"command-times: {' '.join(map(str, arguments))} ended with status {ended.returncode}"
                )
    return {method: np.array(found[1:]) for method, found in times_s.items()}


def _report(mpi: str, command: Sequence[str], times_s: dict[str, np.ndarray]) -> None:
    rounds = len(times_s[ALONE])
    names = " ".join(Path(word).name for word in command)
    print(f"\n{mpi}: {names}, medians of {rounds} rounds")
    rows = []
    for method, found in times_s.items():
        longer_s, ratio = found - times_s[ALONE], found / times_s[ALONE]
        low_s, high_s = median_interval(longer_s)
        compared = [
            f"{np.median(longer_s) * 1e3:+.0f} ms",
            f"{low_s * 1e3:+.0f} .. {high_s * 1e3:+.0f}",
            f"{np.median(ratio):.3f}",
        ]
        rows.append(
            [
                method,
                format_seconds(float(np.median(found))),
                *(compared if method != ALONE else ["", "", ""]),
            ]
        )
    print_rows(["method", "time", "longer than alone", "from .. to", "ratio"], rows)
