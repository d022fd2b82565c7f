"""What libearlybird's policy would do with recorded start times: no MPI runs, so that a change of its
constants is judged in seconds.

The file has the times of every start with each fixed number of segments, as `partitioned-learning --segments`
records them. Each cell is played several times with predictions that are wrong by a random factor. The ratio
of a block is that of its total time to the better of one message and one message per partition.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from ctypes import CDLL
from pathlib import Path

import numpy as np

from bench.commands import say
from bench.partitioned_grid import geometric_mean
from earlybird.data.units import format_bytes
from earlybird.present.render.terminal import print_rows

RECORDED = Path(__file__).parents[1] / "tests" / "recorded" / "start-times.txt"
TICK_S = 1e-8
SINGLE, MANY = "single", "many"
EARLY, PLAYED = slice(1, 63), 1024
PLAYS = 10
# Predictions are wrong by a factor whose logarithm has this standard deviation.
WRONG_BY = 0.3
# From this size on costs are extrapolated; below it what is not predicted to gain this much is not proposed.
EXTRAPOLATED_BYTES, PROPOSED_GAIN = 128 << 10, 0.1
# From this size on what is predicted to gain much is used without a trial.
LONG_BYTES = 4 << 20
# From this start on a recording shows the steady state.
SETTLED = 24
# Before it a request with a fixed number of segments has those that it has without: see the file's top.
FIXED, SMALL_FIXED, SMALL_BYTES = 3, 17, 512

Cell = tuple[str, int, int, int]  # MPI, bytes, partitions, delay of the last one in ns


def main(arguments: Sequence[str] = ()) -> int:
    """Play the recorded start times, and print a table for each MPI."""
    parser = argparse.ArgumentParser(prog="python -m bench partitioned-policy", description=__doc__)
    parser.add_argument("--from", dest="read", type=Path, default=RECORDED, help="recorded start times")
    parser.add_argument("--wrong-by", type=float, default=WRONG_BY, help="of predictions, as a logarithm")
    options = parser.parse_args(list(arguments))
    if not options.read.is_file():
        say(
            f"partitioned-policy: there is no file {options.read}; record one with "
            "`python -m bench partitioned-learning --segments FILE`"
        )
        return 2
    from tests.core_library import compile_core

    with tempfile.TemporaryDirectory(prefix="earlybird-") as folder:
        core = compile_core(Path(folder))
        cells = read_recorded(options.read)
        for mpi in dict.fromkeys(cell[0] for cell in cells):
            _report(
                mpi,
                {cell: play(core, cell, cells[cell], options.wrong_by) for cell in cells if cell[0] == mpi},
            )
    return 0


def read_recorded(path: Path) -> dict[Cell, dict[str, np.ndarray]]:
    """The times of the starts in seconds by cell and way: of each start the least of all launches."""
    launches: dict[Cell, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            mpi, size, partitions, delay, way, _, *times = line.split()
            launches[mpi, int(size), int(partitions), int(delay)][way].append(TICK_S * np.array(times, float))
    return {
        cell: {way: np.minimum.reduce(times_s) for way, times_s in ways.items()}
        for cell, ways in launches.items()
    }


def play(core: CDLL, cell: Cell, ways: dict[str, np.ndarray], wrong_by: float) -> tuple[float, float, float]:
    """The ratios of starts 2 to 63 and of the steady state, and the part of starts with a message."""
    from tests.policy_channel import Channel, Taken, policy_of

    _, size, _, delay_ns = cell
    typical_s = {
        int(way): float(np.median(times_s[SETTLED:])) for way, times_s in ways.items() if way.isdigit()
    }
    early, steady, messages = [], [], []
    for seed in range(PLAYS):
        random = np.random.default_rng(seed)
        predicted = [(num, time_s * np.exp(wrong_by * random.normal())) for num, time_s in typical_s.items()]
        predicted.sort(key=lambda cut: cut[1])
        one = next(cut for cut in predicted if cut[0] == 1)
        if size < EXTRAPOLATED_BYTES and predicted[0][1] > (1 - PROPOSED_GAIN) * one[1]:
            predicted = [one]

        def take(num: int, start: int, random: np.random.Generator = random) -> Taken:
            times_s = ways[str(num)]
            first = SMALL_FIXED if size <= SMALL_BYTES else FIXED
            at = max(start, first) - 1 if start <= SETTLED else int(random.integers(SETTLED, len(times_s)))
            return Taken(float(times_s[at]))

        policy = policy_of(core, predicted[:6], one, spread_s=1e-9 * delay_ns, is_long=size >= LONG_BYTES)
        channel = Channel(core, policy, take, 1).run(PLAYED)
        better = min((SINGLE, MANY), key=lambda way: float(np.sum(ways[way][EARLY])))
        early.append(sum(channel.taken_s[EARLY]) / float(np.sum(ways[better][EARLY])))
        steady_s = min(float(np.mean(ways[way][SETTLED:])) for way in (SINGLE, MANY))
        steady.append(float(np.mean(channel.taken_s[256:])) / steady_s)
        messages.append(len(channel.messages) / PLAYED)
    return float(np.mean(early)), float(np.mean(steady)), float(np.mean(messages))


def _report(mpi: str, played: dict[Cell, tuple[float, float, float]]) -> None:
    print(f"\n{mpi}: ratios to the better of one message and one per partition")
    print_rows(
        ["size", "partitions", "late", "starts 2 to 63", "steady", "starts with a message"],
        [
            [
                format_bytes(cell[1]),
                cell[2],
                f"{cell[3] / 1000:.0f} us",
                f"{a:.2f}",
                f"{b:.2f}",
                f"{100 * c:.1f} %",
            ]
            for cell, (a, b, c) in sorted(played.items())
        ],
    )
    for place, name in enumerate(("starts 2 to 63", "steady")):
        print(f"geometric mean, {name}: {geometric_mean([ratios[place] for ratios in played.values()]):.3f}")


if __name__ == "__main__":
    raise SystemExit(main())
