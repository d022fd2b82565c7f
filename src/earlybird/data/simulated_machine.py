"""A machine to simulate: its nodes, sockets and cores, and the costs of messages between them."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS, MAX_RANKS

SCHEMA = "earlybird.simulated-machine/1"


@dataclass(frozen=True)
class LevelCost:
    """One message of a level with no other message in flight.

    Attributes
    ----------
    latency_s : from the call of the sender to the return of the receiver for the smallest message, both
        overheads included: half the round trip of a ping-pong.
    bandwidth_bytes_per_s : that of a large message.
    """

    latency_s: float
    bandwidth_bytes_per_s: float


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
class SimulatedMachine:
    """`nodes` identical nodes, each with `sockets` of `cores`.

    Attributes
    ----------
    levels : cost of one message on each of LEVELS.
    socket_bandwidth_bytes_per_s : shared by all messages that start or end in one socket.
    sockets_bandwidth_bytes_per_s : shared by all messages from one socket of a node to the others.
    nic_bandwidth_bytes_per_s : shared by all messages that leave a node; the same for those that enter it.
    send_overhead_s, receive_overhead_s : time that a message occupies its sender and its receiver.
    eager_bytes : a larger message starts only after its receive is posted.
    sources : where these numbers come from.
    """

    nodes: int
    sockets: int
    cores: int
    levels: Mapping[str, LevelCost] = field(default_factory=lambda: dict(_LEVELS))
    socket_bandwidth_bytes_per_s: float = 51.0e9
    sockets_bandwidth_bytes_per_s: float = 30.3e9
    nic_bandwidth_bytes_per_s: float = 12.5e9
    send_overhead_s: float = 0.157e-6
    receive_overhead_s: float = 0.066e-6
    eager_bytes: int = 4096
    sources: Mapping[str, str] = field(default_factory=lambda: dict(_SOURCES))

    @property
    def shape(self) -> str:
        return f"{self.nodes}x{self.sockets}x{self.cores}"

    @property
    def overheads_s(self) -> float:
        return self.send_overhead_s + self.receive_overhead_s

    def describe(self) -> str:
        """A description that is unique to the machine's numbers."""
        text = json.dumps(self.to_json() | {"sources": None}, sort_keys=True)
        return f"simulated {self.shape}, machine {hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA} | asdict(self)


def parse_simulated_machine(text: str) -> SimulatedMachine:
    """`2x2x64` (nodes x sockets x cores per socket) with the default costs, or the path of a JSON file."""
    match = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})", text.strip())
    if match:
        return _checked(SimulatedMachine(*map(int, match.groups())), text)
    if not text.endswith(".json"):
        raise InputError(
            f"the simulated machine is {text!r}; give NODESxSOCKETSxCORES, cores per socket, such as 2x2x64, "
            f"or a JSON file with the schema {SCHEMA}"
        )
    return load_simulated_machine(text)


def load_simulated_machine(path: str | Path) -> SimulatedMachine:
    """The machine of a file; missing values are those of `NODESxSOCKETSxCORES`."""
    value = files.read_json(path, "simulated machine", SCHEMA)
    known = {field.name for field in fields(SimulatedMachine)}
    for name in value.keys() - known - {"schema"}:
        raise InputError(f"{path} has the key {name!r}; a simulated machine has {', '.join(sorted(known))}")
    for name in ("nodes", "sockets", "cores"):
        if name not in value:
            raise InputError(f"{path} has no key {name!r}; give the number of {name} as a whole number")
    levels = dict(_LEVELS)
    given_levels = _object(value.get("levels", {}), path, "levels")
    for name, cost in given_levels.items():
        if name not in LEVELS:
            raise InputError(f"{path} has the level {name!r}; the levels are {', '.join(LEVELS)}")
        cost = _object(cost, path, f"levels.{name}")
        for key in cost.keys() - {"latency_s", "bandwidth_bytes_per_s"}:
            raise InputError(f"{path} has {key!r} in {name}; give latency_s and bandwidth_bytes_per_s")
        levels[name] = replace(levels[name], **cost)
    given = {name: item for name, item in value.items() if name not in ("schema", "levels")}
    # The defaults' sources do not apply to given numbers.
    sources = _object(value.get("sources", {}), path, "sources")
    return _checked(SimulatedMachine(**(given | {"levels": levels, "sources": sources})), str(path))


def _object(value: Any, path: str | Path, name: str) -> dict:
    if not isinstance(value, dict):
        raise InputError(f"{path} has {value!r} for {name}; give an object")
    return value


def _checked(machine: SimulatedMachine, name: str) -> SimulatedMachine:
    """`machine`, or InputError for its first invalid number."""
    for key in ("nodes", "sockets", "cores", "eager_bytes"):
        value = getattr(machine, key)
        if not isinstance(value, int) or isinstance(value, bool) or value < (key != "eager_bytes"):
            raise InputError(
                f"the simulated machine {name} has {key} = {value!r}; give a whole number from 1 up"
            )
    if machine.nodes * machine.sockets * machine.cores > MAX_RANKS:
        raise InputError(f"the simulated machine {name} has more than {MAX_RANKS} cores; give a smaller one")
    numbers = {
        key: getattr(machine, key)
        for key in (
            "socket_bandwidth_bytes_per_s", "sockets_bandwidth_bytes_per_s", "nic_bandwidth_bytes_per_s",
            "send_overhead_s", "receive_overhead_s",
        )
    }  # fmt: skip
    for level, cost in machine.levels.items():
        numbers |= {f"{level} {key}": number for key, number in asdict(cost).items()}
    for key, value in numbers.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or (value == 0 and not key.endswith("overhead_s")):
            raise InputError(f"the simulated machine {name} has {key} = {value!r}; give a number above 0")
    least_s, least = machine.overheads_s, "the two overheads together"
    for level in LEVELS:
        cost = machine.levels[level]
        if cost.latency_s < least_s:
            raise InputError(
                f"the simulated machine {name} has {level} latency_s = {cost.latency_s:g}, less than {least} "
                f"({least_s:g}); give at least as much"
            )
        least_s, least = cost.latency_s, f"that of {level}"
        inside = machine.levels["intra_socket"].bandwidth_bytes_per_s
        if cost.bandwidth_bytes_per_s > inside:
            raise InputError(
                f"the simulated machine {name} has {level} bandwidth_bytes_per_s = "
                f"{cost.bandwidth_bytes_per_s:g}, more than inside a socket ({inside:g}); a core moves "
                "data no faster, give at most that"
            )
    return machine
