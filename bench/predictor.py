"""How long predictions of large exchanges take, what memory they need, and what changes of an exchange cost.

Exchanges between near ranks, up to the density of the largest of Thune et al. 2023 (8192 ranks, 2.74 million
messages, 3.4 KB in the mean), on nodes of 2 x 64 ranks, by an assumed profile. A command is `earlybird
predict FILE.npz --json`, without replicates in the profile and with 200. About four minutes.
"""

import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.commands import say, watched
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.data.profile import Profile, profile_from_json
from earlybird.data.units import format_bytes, format_seconds
from earlybird.patterns.halo import halo_exchange
from earlybird.patterns.near_exchange import near_exchange
from earlybird.predict import Predictor, solvers
from earlybird.present.render.terminal import print_rows

PER_RANK, MEAN_SIZE_BYTES, UNEVENNESS = 335, 3418, 7.5
RANKS = (1024, 2048, 4096, 8192)
RANKS_OF_A_NODE = 128
REPLICATES, SPREAD = 200, 0.03
ROUNDS = 3
SWAPS = 5000
FINER = 5  # parts of the usual step of `fair`


def main(arguments: Sequence[str] = ()) -> int:
    """Print a table of commands and one of swaps."""
    if arguments:
        say("predictor: takes no arguments")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        _commands(Path(folder))
    _steps()
    _swaps()
    return 0


def assumed_profile(num_replicates: int) -> dict:
    """Costs of an invented machine; replicates differ by SPREAD."""
    drawn = np.random.default_rng(0)

    def levels() -> dict:
        return {
            "intra_socket": level(1e-6, 3e-6, 8e9, 5e10), "inter_socket": level(2e-6, 5e-6, 5e9, 3e10),
            "inter_node": level(2e-6, 8e-6, 1e10, 2.2e10),
        }  # fmt: skip

    def level(eager_s: float, rendezvous_s: float, one: float, most: float) -> dict:
        by = np.exp(drawn.normal(0, SPREAD, 4)).tolist()
        table = {
            str(n): (most - (most - one) * 0.88 ** (n - 1)) * by[0] for n in (1, 2, 4, 8, 16, 32, 64, 128)
        }
        slower = {n: 0.6 * rate * by[1] for n, rate in table.items()}
        return {"protocols": [
            {"name": "eager", "latency_s": eager_s * by[2], "bandwidth_bytes_per_s": slower},
            {"name": "rendezvous", "min_bytes": 16384, "latency_s": rendezvous_s * by[3],
             "bandwidth_bytes_per_s": table},
        ]}  # fmt: skip

    profile = {"schema": "earlybird.profile/1", "id": "assumed", "levels": levels()}
    replicates = [{"levels": levels()} for _ in range(num_replicates)]
    return profile | ({"replicates": replicates} if replicates else {})


def _commands(folder: Path) -> None:
    for name, replicates in (("alone", 0), ("intervals", REPLICATES)):
        (folder / f"{name}.json").write_text(json.dumps(assumed_profile(replicates)))
    profile = profile_from_json(assumed_profile(0))
    print(f"medians of {ROUNDS}; prepared: a Predictor and its first prediction; again: another prediction")
    rows = []
    for ranks in RANKS:
        pattern = near_exchange(
            ranks, PER_RANK, mean_size_bytes=MEAN_SIZE_BYTES, unevenness=UNEVENNESS, seed=1
        )
        path, layout = folder / "exchange.npz", f"{ranks // RANKS_OF_A_NODE}x2x{RANKS_OF_A_NODE // 2}"
        save_pattern(pattern, path)
        for model in ("staircase", "fair", "queue"):
            row = [ranks, f"{pattern.num_messages / 1e6:.2f} M", model]
            for name in ("alone", "intervals"):
                found = [_run(path, folder / f"{name}.json", layout, model) for _ in range(ROUNDS)]
                took_s, memory_bytes = np.median(np.array(found), axis=0).tolist()
                row += [format_seconds(took_s), format_bytes(memory_bytes)]
            rows.append([*row, *map(format_seconds, _prepared_and_again_s(pattern, layout, profile, model))])
        say(f"{ranks} ranks: done")
    print_rows(
        ["ranks", "messages", "model", "command", "memory", "with intervals", "memory", "prepared", "again"],
        rows, left=["model"],
    )  # fmt: skip


def _run(pattern: Path, profile: Path, layout: str, model: str) -> tuple[float, float]:
    """Seconds and the largest memory in bytes of the command."""
    took = watched("predict", pattern, "--profile", profile, "--layout", layout, "--model", model, "--json")
    return took.elapsed_s, took.memory_bytes


def _prepared_and_again_s(pattern: Pattern, layout: str, profile: Profile, model: str) -> tuple[float, float]:
    found = []
    for _ in range(ROUNDS):
        times_s = [time.perf_counter()]
        predictor = Predictor(pattern, parse_layout(layout))
        for _ in range(2):
            predictor.predict(profile, model)
            times_s.append(time.perf_counter())
        found.append(np.diff(times_s))
    prepared_s, again_s = np.median(found, axis=0).tolist()
    return prepared_s, again_s


def _steps() -> None:
    """What it changes that `fair` takes completions together, against a fifth of the step."""
    pattern = near_exchange(RANKS[-1], PER_RANK, mean_size_bytes=MEAN_SIZE_BYTES, unevenness=UNEVENNESS)
    profile, rows = profile_from_json(assumed_profile(0)), []
    default = solvers.FAIR_BATCH_FRACTION
    for text in ("64x2x64", "256x2x16", "1024x2x4", "8192x1x1"):
        predictor = Predictor(pattern, parse_layout(text))
        predictor.predict(profile, "fair")
        begin_s = time.perf_counter()
        times_s = predictor.predict(profile, "fair").inter_node_s
        took_s = time.perf_counter() - begin_s
        between_nodes = predictor._part(("inter_node",)).classes((profile.level("inter_node"),))
        step = solvers.batch_fraction(between_nodes, "message")
        solvers.FAIR_BATCH_FRACTION = default / FINER
        finer_s = predictor.predict(profile, "fair").inter_node_s
        solvers.FAIR_BATCH_FRACTION = default
        apart_s = np.abs(times_s - finer_s)
        rows.append([
            text, f"{step:.2%}", format_seconds(took_s), f"{apart_s.sum() / finer_s.sum():.2%}",
            f"{apart_s.max() / finer_s.max():.2%}",
        ])  # fmt: skip
    print(
        f"\nfair for {RANKS[-1]} ranks: completions within a part of the elapsed time, against a fifth of it"
    )
    print_rows(
        ["layout", "part", "again", "difference of all ranks", "largest, of the slowest rank's time"], rows
    )


def _swaps() -> None:
    """Random swaps of two ranks, each evaluated, by the staircase."""
    profile, rows = profile_from_json(assumed_profile(0)), []
    for grid, text in (((16, 8, 8), "16x2x32"), ((16, 8, 8), "8x2x64"), ((32, 16, 16), "64x2x64")):
        layout = parse_layout(text)
        pattern = halo_exchange(grid, (32, 32, 32), neighbours=26)
        predictor = Predictor(pattern, layout)
        predictor.slowest_now_s(profile)
        places = list(zip(layout.node.tolist(), layout.socket.tolist(), strict=True))
        chosen = random.Random(0)
        pairs = [chosen.sample(range(layout.num_ranks), 2) for _ in range(SWAPS)]
        begin_s = time.perf_counter()
        for a, b in pairs:
            predictor.update({a: places[b], b: places[a]})
            predictor.slowest_now_s(profile)
            places[a], places[b] = places[b], places[a]
        rate = SWAPS / (time.perf_counter() - begin_s)
        rows.append([layout.num_ranks, text, pattern.num_messages, f"{rate:,.0f}"])
    print(
        f"\nmessages to 26 neighbours of a grid, {SWAPS} swaps of two ranks, each evaluated by the staircase"
    )
    print_rows(["ranks", "layout", "messages", "swaps per second"], rows)
