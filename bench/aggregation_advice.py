"""Messages through the leaders of nodes, as `earlybird advise aggregate` predicts and as replayed.

Exchanges of 8 ranks on 4 virtual or simulated nodes of 2, from many short messages to few long ones. The
direct exchange and the three through each number of leaders (`replay --then`) are replayed by turns; a ratio
is the slowest rank's time of the direct one over that through the leaders. About five minutes for an MPI.
"""

from collections.abc import Sequence
from pathlib import Path

from bench.commands import earlybird, say
from bench.exchange_comparison import Place, describe_ratios, on_places, replayed_by_turns
from earlybird.data import labels
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.patterns.aggregation import aggregated
from earlybird.patterns.random_exchange import random_exchange
from earlybird.present.render.terminal import print_rows

NODES, RANKS, RATE = 4, 8, "200mbit"
LAYOUT = f"{NODES}x1x{RANKS // NODES}"
ROUNDS = 3
# Messages of all ranks, and bytes of each.
CASES = ((960, 200), (240, 200), (960, 2000), (240, 20_000), (56, 100_000))


def main(arguments: Sequence[str] = ()) -> int:
    """Advise, replay by turns, and print a table for each MPI or simulated machine."""
    return on_places("aggregation-advice", __doc__, arguments, LAYOUT, RATE, ROUNDS, _compare)


def _compare(place: Place) -> None:
    rows = []
    for count, size_bytes in CASES:
        what = f"{count} x {size_bytes} B"
        say(f"{place.description}: {what}")
        pattern = random_exchange(RANKS, count, min_size_bytes=size_bytes, max_size_bytes=size_bytes)
        advice = _advised(pattern, place.profile, place.folder)
        turns = {"direct": [place.folder / "exchange.csv"]}
        turns |= {name: _stages(pattern, name, place.folder) for name in advice if name != "direct"}
        on = {name: [*paths, "--layout", LAYOUT] for name, paths in turns.items()}
        slowest_s = replayed_by_turns(on, place.rounds, place.options, place.folder / f"replay-{len(rows)}")
        for name in advice:
            if name != "direct":
                ratios = slowest_s["direct"] / slowest_s[name]
                rows.append([what, name, f"{advice[name]:.2f}", *describe_ratios(ratios)])
    print(f"\n{place.description}, {labels.counted(place.rounds, 'round')}")
    print_rows(["exchange", "through", "predicted", "replayed", "rounds"], rows, left=["exchange", "through"])


def _advised(pattern: Pattern, profile: Path, folder: Path) -> dict[str, float]:
    """The predicted speed-up of every alternative."""
    path = folder / "exchange.csv"
    save_pattern(pattern, path)
    advice = earlybird("advise", "aggregate", path, "--profile", profile, "--layout", LAYOUT)
    return {one["method"]: one["speed_up"] for one in advice["ranked"]}


def _stages(pattern: Pattern, name: str, folder: Path) -> list[str]:
    """The arguments of `replay` for the three exchanges through `name`, such as 2 leaders."""
    arguments = []
    for stage, one in aggregated(pattern, parse_layout(LAYOUT), int(name.split()[0])).all().items():
        path = folder / f"{stage}-{name.split()[0]}.csv"
        save_pattern(one, path)
        arguments += ["--then", str(path)]
    return arguments[1:]
