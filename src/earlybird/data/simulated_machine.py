"""A machine to simulate: its nodes, sockets and cores, and the costs of messages between them."""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.layout import MAX_RANKS, Layout
from earlybird.data.levels import LEVELS
from earlybird.data.schema import Bandwidth, Bytes, NotNegative, Positive, Ranks, Record, decode
from earlybird.data.simulated_network import Dragonfly, FatTree

SCHEMA = "earlybird.simulated-machine/1"


@dataclass(frozen=True)
class LevelCost(Record):
    """The cost of one message of a level with no other message in flight.

    Attributes
    ----------
    latency_s : time from the call of the sender to the return of the receiver for the smallest message, both
        overheads included: half the round trip of a ping-pong.
    bandwidth_bytes_per_s : bandwidth of a large message.
    """

    latency_s: Positive
    bandwidth_bytes_per_s: Bandwidth


# Default: nodes of two AMD EPYC 7H12 (Rome, 64 cores), as in Insaghi (paper) on broadcasts and reductions;
# the overheads and latencies are its slopes against the number of processes.
_LEVELS = {
    "intra_socket": LevelCost(0.431e-6, 10.2e9),
    "inter_socket": LevelCost(0.735e-6, 5.3e9),
    "inter_node": LevelCost(1.368e-6, 10.2e9),
}
_SOURCES = {
    "intra_socket latency": "that between sockets times 1.7/2.9, the ratio of an Epyc Rome 7742 in Table I "
    "of Thune et al. 2023",
    "inter_socket latency": "Insaghi, pipelined broadcast by socket to 128 processes: 0.7352 us per process",
    "inter_node latency": "Insaghi, pipelined broadcast by node: 1.3682 us per process",
    "bandwidths inside a node": "Epyc Rome 7742 in Table I of Thune et al. 2023, one message and the most",
    "inter_node bandwidth": "that inside a socket: a core moves data no faster",
    "nic_bandwidth_bytes_per_s": "assumed: 100 Gbit/s",
    "send_overhead_s": "Insaghi, linear broadcast by socket up to 128 processes: 0.1572 us per process",
    "receive_overhead_s": "Insaghi, linear reduction by socket up to 128 processes: 0.0658 us per process",
    "eager_bytes": "assumed: 4 KiB, as of Open MPI within a node",
}


@dataclass(frozen=True)
class SimulatedMachine(Record):
    """A machine of `nodes` identical nodes, each with `sockets` of `cores`.

    Attributes
    ----------
    socket_bandwidth_bytes_per_s : bandwidth shared by all messages that start or end in one socket.
    sockets_bandwidth_bytes_per_s : bandwidth shared by all messages between sockets of a node in one
        direction, to higher or to lower numbers.
    nic_bandwidth_bytes_per_s : bandwidth shared by all messages that leave a node; the same for the messages
        that enter it.
    send_overhead_s, receive_overhead_s : time that a message occupies its sender and its receiver.
    eager_bytes : a message larger than this starts only after its receive is posted.
    fat_tree, dragonfly : the network between the nodes; without either, one switch without limits.
    sources : sources of these numbers.
    nodes, sockets, cores : numbers of nodes, of sockets of a node, and of cores of a socket.
    levels : costs of one message: `intra_socket`, `inter_socket`, `inter_node`.
    """

    schema: ClassVar[str] = SCHEMA

    nodes: Ranks
    sockets: Ranks
    cores: Ranks
    levels: dict[str, LevelCost] = field(default_factory=lambda: dict(_LEVELS))
    socket_bandwidth_bytes_per_s: Bandwidth = 51.0e9
    sockets_bandwidth_bytes_per_s: Bandwidth = 30.3e9
    nic_bandwidth_bytes_per_s: Bandwidth = 12.5e9
    send_overhead_s: NotNegative = 0.157e-6
    receive_overhead_s: NotNegative = 0.066e-6
    eager_bytes: Bytes = 4096
    fat_tree: FatTree | None = None
    dragonfly: Dragonfly | None = None
    sources: dict[str, str] = field(default_factory=lambda: dict(_SOURCES))

    def __post_init__(self) -> None:
        if self.levels.keys() != set(LEVELS):
            raise ValueError(f"the levels are {', '.join(self.levels)}; give only {', '.join(LEVELS)}")
        if self.nodes * self.sockets * self.cores > MAX_RANKS:
            raise ValueError(f"it has more than {MAX_RANKS} cores; give a smaller one")
        if self.fat_tree and self.dragonfly:
            raise ValueError("it has both a fat_tree and a dragonfly; give one of them")
        if self.network:
            self.network.check(self.nodes)
        least_s, least = self.overheads_s, "the two overheads together"
        fastest = self.levels["intra_socket"].bandwidth_bytes_per_s
        for name in LEVELS:
            cost = self.levels[name]
            if cost.latency_s < least_s:
                raise ValueError(
                    f"{name} latency_s is {cost.latency_s:g}, less than {least} ({least_s:g}); "
                    "give at least as much"
                )
            least_s, least = cost.latency_s, f"that of {name}"
            if cost.bandwidth_bytes_per_s > fastest:
                raise ValueError(
                    f"{name} bandwidth_bytes_per_s is {cost.bandwidth_bytes_per_s:g}, more than inside a "
                    f"socket ({fastest:g}); a core moves data no faster, give at most that"
                )

    @property
    def shape(self) -> str:
        return f"{self.nodes}x{self.sockets}x{self.cores}"

    @property
    def network(self) -> FatTree | Dragonfly | None:
        return self.fat_tree or self.dragonfly

    @property
    def overheads_s(self) -> float:
        return self.send_overhead_s + self.receive_overhead_s

    def check(self, layout: Layout) -> None:
        """Raise InputError if the layout needs more nodes, sockets or cores."""
        sockets = int(layout.socket.max()) + 1
        _, ranks = np.unique(layout.node.astype(np.int64) * sockets + layout.socket, return_counts=True)
        for needed, there, what in (
            (int(layout.node.max()) + 1, self.nodes, "nodes"),
            (sockets, self.sockets, "sockets in a node"),
            (int(ranks.max()), self.cores, "cores in a socket"),
        ):
            if needed > there:
                raise InputError(
                    f"the layout {layout.text} needs {needed} {what} and the machine {self.shape} has "
                    f"{there}; give a smaller layout or a larger machine"
                )

    def describe(self) -> str:
        """Return a description that is unique to the machine's numbers."""
        text = json.dumps(self.to_json() | {"sources": None}, sort_keys=True)
        return f"simulated {self.shape}, machine {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def parse_simulated_machine(text: str) -> SimulatedMachine:
    """Parse `2x2x64` (nodes x sockets x cores per socket) with the default costs, or read the JSON file at a
    path."""
    match = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})", text.strip())
    if match:
        shape = dict(zip(("nodes", "sockets", "cores"), map(int, match.groups()), strict=True))
        return decode({"schema": SCHEMA} | shape, SimulatedMachine, f"the simulated machine {text}")
    if not (text.endswith(".json") or (os.sep in text and files.suffix_of(text) == ".json")):
        raise InputError(
            f"the simulated machine is {text!r}; give NODESxSOCKETSxCORES, cores per socket, such as 2x2x64, "
            f"or a JSON file with the schema {SCHEMA}"
        )
    return load_simulated_machine(text)


def load_simulated_machine(path: str | Path) -> SimulatedMachine:
    """Read a machine from a file; missing values are the values of `NODESxSOCKETSxCORES`."""
    # The defaults' sources do not apply to given numbers.
    value = {"sources": {}} | files.read_json(path, "simulated machine", SCHEMA)
    if isinstance(given := value.get("levels"), dict):
        defaults = {name: cost.to_json() for name, cost in _LEVELS.items()}
        value["levels"] = defaults | {
            name: defaults.get(name, {}) | cost if isinstance(cost, dict) else cost
            for name, cost in given.items()
        }
    return decode(value, SimulatedMachine, f"the simulated machine {path}")
