"""The layout that `earlybird advise layout` recommends against the usual one, replayed on a virtual cluster
or a simulated machine.

Exchanges of 8 ranks on 4 nodes of 2, whose ranks are numbered so that the usual layout is good for some and
bad for others. Both layouts are replayed by turns; the ratio is that of the slowest ranks. About five minutes
for an MPI.
"""

from collections.abc import Sequence

import numpy as np

from bench.commands import earlybird, say
from bench.exchange_comparison import Place, describe_ratios, on_places, replayed_by_turns
from earlybird.data import labels
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.patterns.halo import halo_exchange
from earlybird.patterns.near_exchange import near_exchange
from earlybird.patterns.random_exchange import random_exchange
from earlybird.present.render.terminal import print_rows

NODES, RANKS, RATE = 4, 8, "100mbit"
LAYOUT = f"{NODES}x1x{RANKS // NODES}"
ROUNDS = 3
SIZE_BYTES = 200_000


def main(arguments: Sequence[str] = ()) -> int:
    """Advise, replay both layouts by turns, and print a table for each MPI or simulated machine."""
    return on_places("layout-advice", __doc__, arguments, LAYOUT, RATE, ROUNDS, _compare)


def exchanges() -> dict[str, Pattern]:
    """By name; `shuffled` ones have their ranks renumbered at random."""
    pairs = np.arange(RANKS)
    far = Pattern(pairs, (pairs + RANKS // 2) % RANKS, np.full(RANKS, SIZE_BYTES))
    ring = Pattern(pairs, (pairs + 1) % RANKS, np.full(RANKS, SIZE_BYTES))
    halo = halo_exchange((2, 2, 2), (100, 100, 100))
    near = near_exchange(RANKS, 3, mean_size_bytes=SIZE_BYTES)
    random = random_exchange(RANKS, 16, min_size_bytes=40_000, max_size_bytes=900_000, distribution="uniform")
    found = {"pairs far apart": far, "ring": ring, "halo": halo, "near": near, "random": random}
    order = np.random.default_rng(2).permutation(RANKS)
    for name in ("ring", "halo", "near"):
        one = found[name]
        found[f"{name}, shuffled"] = Pattern(order[one.src], order[one.dst], one.bytes)
    return found


def _compare(place: Place) -> None:
    rows = []
    for what, pattern in exchanges().items():
        say(f"{place.description}: {what}")
        path, advised = place.folder / "exchange.csv", place.folder / "advised.csv"
        save_pattern(pattern, path)
        advice = earlybird(
            "advise", "layout", path, "--profile", place.profile, "--layout", LAYOUT, "-o", advised
        )
        best = advice["ranked"][0]
        turns = {layout: [path, "--layout", layout] for layout in (LAYOUT, str(advised))}
        slowest_s = replayed_by_turns(
            turns, place.rounds, place.options, place.folder / f"replay-{len(rows)}"
        )
        ratios = slowest_s[LAYOUT] / slowest_s[str(advised)]
        rows.append([what, best["method"], f"{best['speed_up']:.2f}", *describe_ratios(ratios)])
    print(f"\n{place.description}, {labels.counted(place.rounds, 'round')}")
    print_rows(["exchange", "advised", "predicted", "replayed", "rounds"], rows, left=["exchange", "advised"])
