"""Irregular exchanges on machines of 2 to 64 nodes that SimGrid simulates, predicted and replayed.

Nodes on one switch, on fat trees and on a dragonfly. The profile of each machine is measured on it, between
its first two nodes; no model was fitted to a pattern. The model `links` has the description of the machine
instead, with the links between switches, which no profile contains. About twenty minutes.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.commands import say
from bench.exchange_comparison import (
    LINK_LIMITS_BYTES_PER_S,
    add_prediction,
    link_limited_machine,
    measured_profile,
    replayed,
    report,
    save_patterns,
)
from bench.exchange_patterns import exchanges
from earlybird.data.exchange_models import MODELS
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import load_profile
from earlybird.data.schema import decode
from earlybird.data.simulated_machine import SimulatedMachine
from earlybird.data.simulated_network import Dragonfly, FatTree
from earlybird.predict import Predictor
from earlybird.predict.on_machine import MODEL, predict_on_machine

RANKS_PER_NODE = 2
CORES_LIMIT = 12.5e9  # of the NICs: the default of a simulated machine, which two cores do not fill


class Machine(NamedTuple):
    """A machine to simulate, and which patterns to replay on it: each `every`-th that is not too large."""

    name: str
    nodes: int
    network: FatTree | Dragonfly | None = None
    nic_bytes_per_s: float = LINK_LIMITS_BYTES_PER_S
    every: int = 1
    most_messages: int = 10_000

    def described(self) -> SimulatedMachine:
        return replace(
            link_limited_machine(self.nodes, RANKS_PER_NODE, self.nic_bytes_per_s),
            fat_tree=self.network if isinstance(self.network, FatTree) else None,
            dragonfly=self.network if isinstance(self.network, Dragonfly) else None,
        )

    def patterns(self) -> dict[str, Pattern]:
        made = _exchanges(self.nodes * RANKS_PER_NODE)
        small = [one for one in made.items() if len(one[1].src) <= self.most_messages]
        return dict(small[:: self.every])


# SimGrid takes minutes for thousands of messages that are under way at once.
MACHINES = (
    Machine("2 nodes, crossbar", 2),
    Machine("8 nodes, crossbar", 8),
    Machine("8 nodes, crossbar, 100 Gbit/s", 8, nic_bytes_per_s=CORES_LIMIT, every=3),
    Machine("8 nodes, fat tree", 8, FatTree(4, 4), every=3),
    Machine("8 nodes, fat tree tapered 2:1", 8, FatTree(4, 2), every=3),
    Machine("8 nodes, dragonfly", 8, Dragonfly(2, 2, 2, 2), every=3),
    Machine("64 nodes, crossbar", 64, every=3, most_messages=400),
    Machine("64 nodes, fat tree", 64, FatTree(8, 8), every=3, most_messages=400),
    Machine("64 nodes, fat tree tapered 2:1", 64, FatTree(8, 4), every=3, most_messages=400),
    Machine("64 nodes, dragonfly", 64, Dragonfly(4, 4, 4, 8), every=3, most_messages=400),
)


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, predict and replay on each machine; print the errors and keep them in a file."""
    parser = argparse.ArgumentParser(prog="python -m bench simgrid-exchanges", description=__doc__)
    parser.add_argument(
        "--nodes", type=int, action="append", help="only machines of so many; repeat for several"
    )
    parser.add_argument(
        "--json", type=Path, default=Path("bench-simgrid-exchanges.json"), help="file to write"
    )
    parser.add_argument("--from", dest="earlier", type=Path, help="print the tables of an earlier --json")
    options = parser.parse_args(list(arguments))
    if options.earlier:
        for name, one in json.loads(options.earlier.read_text()).items():
            _add_links(name, one)
            _report(name, one)
        return 0
    known = sorted({machine.nodes for machine in MACHINES})
    if unknown := set(options.nodes or ()) - set(known):
        parser.error(f"there are no machines of {min(unknown)} nodes; there are {', '.join(map(str, known))}")
    found: dict[str, Any] = {}
    for machine in MACHINES:
        if machine.nodes not in (options.nodes or known):
            continue
        with tempfile.TemporaryDirectory() as folder:
            compared = _compare(machine, Path(folder))
        found[machine.name] = {"machine": machine.described().to_json(), "patterns": compared}
        _add_links(machine.name, found[machine.name])
        options.json.write_text(json.dumps(found, indent=1))
        _report(machine.name, found[machine.name])
    return 0


def _compare(machine: Machine, folder: Path) -> dict[str, Any]:
    say(f"{machine.name}: measuring")
    described = folder / "machine.json"
    described.write_text(json.dumps(machine.described().to_json()))
    where = ["--launches", 1, "--launcher", f"simgrid:{described}", "--quiet"]
    profile = measured_profile(where, folder / "measured", {"contention": "60s", "completion": "30s"})
    patterns, layout = machine.patterns(), _layout(machine.nodes)
    compared = replayed(machine.name, save_patterns(patterns, folder), profile, layout, where, folder)
    for what, one in compared.items():
        predictor = Predictor(patterns[what], parse_layout(layout), combine="overlap")
        for model in (name for name, record in MODELS.items() if record.is_joint):
            times_s = predictor.predict(load_profile(profile), model).time_s
            add_prediction(one, f"{model}, overlap", times_s)
    return compared


def _report(name: str, found: dict[str, Any]) -> None:
    ranks = found["machine"]["nodes"] * RANKS_PER_NODE
    print(f"\n{name}: {len(found['patterns'])} patterns of {ranks} ranks")
    report(found["patterns"])


def _add_links(name: str, found: dict[str, Any]) -> None:
    """Add the predictions of the model that has the description of the machine."""
    machine = decode(found["machine"], SimulatedMachine, name)
    made = _exchanges(machine.nodes * RANKS_PER_NODE)
    for what, compared in found["patterns"].items():
        prediction = predict_on_machine(made[what], parse_layout(_layout(machine.nodes)), machine)
        add_prediction(compared, MODEL, prediction.time_s)


@cache
def _exchanges(ranks: int) -> dict[str, Pattern]:
    """Once for all machines: meshes for 128 ranks take a minute."""
    return exchanges(ranks)


def _layout(nodes: int) -> str:
    return f"{nodes}x1x{RANKS_PER_NODE}"
