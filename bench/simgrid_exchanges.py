"""Irregular exchanges on machines of 2 to 64 nodes that SimGrid simulates, predicted and replayed.

Nodes on one switch, on fat trees and on a dragonfly. The profile of each machine is measured on it, between
its first two nodes; no model was fitted to a pattern. About ten minutes.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from bench.commands import say
from bench.exchange_comparison import measured_profile, replayed, report, save_patterns
from bench.exchange_patterns import exchanges
from earlybird.data.pattern import Pattern
from earlybird.data.simulated_machine import SCHEMA

RANKS_PER_NODE = 2
# Of the NICs: 25 Gbit/s, which two cores fill, and the default of a simulated machine, which they do not.
LINK_LIMITS, CORES_LIMIT = 3.125e9, 12.5e9


class Machine(NamedTuple):
    """A machine to simulate, and which patterns to replay on it: each `every`-th, `scale` times as large."""

    name: str
    nodes: int
    network: Mapping[str, Any] = MappingProxyType({})
    nic_bytes_per_s: float = LINK_LIMITS
    every: int = 1
    scale: float = 1.0

    def to_json(self) -> dict[str, Any]:
        # A single message between nodes gets what the NIC or the core of a simulated machine moves.
        one_message = {"bandwidth_bytes_per_s": min(self.nic_bytes_per_s, 10.2e9)}
        return {
            "schema": SCHEMA, "nodes": self.nodes, "sockets": 1, "cores": RANKS_PER_NODE,
            "nic_bandwidth_bytes_per_s": self.nic_bytes_per_s, "levels": {"inter_node": one_message},
            **self.network,
        }  # fmt: skip

    def patterns(self) -> dict[str, Pattern]:
        made = exchanges(self.nodes * RANKS_PER_NODE, self.scale)
        return dict(list(made.items())[:: self.every])


def _fat_tree(nodes_per_leaf: int, uplinks: int) -> dict[str, Any]:
    return {"fat_tree": {"nodes_per_leaf": nodes_per_leaf, "uplinks_per_leaf": uplinks}}


def _dragonfly(groups: int, routers: int, nodes: int, links: int) -> dict[str, Any]:
    return {
        "dragonfly": {
            "groups": groups, "routers_per_group": routers, "nodes_per_router": nodes,
            "links_between_groups": links,
        }
    }  # fmt: skip


# The 64 nodes exchange a quarter of the bytes, so that all messages fit in the memory of a laptop.
MACHINES = (
    Machine("2 nodes, crossbar", 2),
    Machine("8 nodes, crossbar", 8),
    Machine("8 nodes, crossbar, 100 Gbit/s", 8, nic_bytes_per_s=CORES_LIMIT, every=3),
    Machine("8 nodes, fat tree", 8, _fat_tree(4, 4), every=3),
    Machine("8 nodes, fat tree tapered 2:1", 8, _fat_tree(4, 2), every=3),
    Machine("8 nodes, dragonfly", 8, _dragonfly(2, 2, 2, 2), every=3),
    Machine("64 nodes, crossbar", 64, every=3, scale=0.25),
    Machine("64 nodes, fat tree", 64, _fat_tree(8, 8), every=3, scale=0.25),
    Machine("64 nodes, fat tree tapered 2:1", 64, _fat_tree(8, 4), every=3, scale=0.25),
    Machine("64 nodes, dragonfly", 64, _dragonfly(4, 4, 4, 8), every=3, scale=0.25),
)


def main(words: Sequence[str] = ()) -> int:
    """Measure, predict and replay on each machine; print the errors and keep them in a file."""
    parser = argparse.ArgumentParser(prog="python -m bench simgrid-exchanges", description=__doc__)
    parser.add_argument(
        "--nodes", type=int, action="append", help="only machines of so many; repeat for several"
    )
    parser.add_argument(
        "--json", type=Path, default=Path("bench-simgrid-exchanges.json"), help="file to write"
    )
    options = parser.parse_args(list(words))
    known = sorted({machine.nodes for machine in MACHINES})
    if unknown := set(options.nodes or ()) - set(known):
        parser.error(f"there are no machines of {min(unknown)} nodes; there are {', '.join(map(str, known))}")
    found: dict[str, Any] = {}
    for machine in MACHINES:
        if machine.nodes not in (options.nodes or known):
            continue
        with tempfile.TemporaryDirectory() as folder:
            compared = _compare(machine, Path(folder))
        found[machine.name] = {"machine": machine.to_json(), "patterns": compared}
        options.json.write_text(json.dumps(found, indent=1))
        print(f"\n{machine.name}: {len(compared)} patterns of {machine.nodes * RANKS_PER_NODE} ranks")
        report(compared)
    return 0


def _compare(machine: Machine, folder: Path) -> dict[str, Any]:
    say(f"{machine.name}: measuring")
    described = folder / "machine.json"
    described.write_text(json.dumps(machine.to_json()))
    where = ["--launches", 1, "--launcher", f"simgrid:{described}", "--quiet"]
    profile = measured_profile(where, folder / "measured", {"contention": "60s", "completion": "30s"})
    layout = f"{machine.nodes}x1x{RANKS_PER_NODE}"
    return replayed(machine.name, save_patterns(machine.patterns(), folder), profile, layout, where, folder)
