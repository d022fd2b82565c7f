"""Profile: the cost of MPI on a machine in one context, by level and protocol."""

import itertools
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS
from earlybird.data.units import MAX_BYTES

SCHEMA = "earlybird.profile/1"
# Defaults for a profile's context or a launch without these keys: threads per rank, and the network, which is
# recorded only for a virtual cluster.
USUAL_CONTEXT = {"threads_per_rank": 1, "network": "not a virtual cluster's"}


@dataclass(frozen=True)
class Protocol:
    """One protocol of a level (short, eager, rendezvous): a straight line in the message size, for every N.

    Attributes
    ----------
    min_bytes : smallest size of the protocol; 0 for the first of a level.
    latency_s : tau, seconds per message.
    sender_waits : whether a send completes only at delivery.
    bandwidth_bytes_per_s : N -> bytes/s received by the whole group when N of its processes receive at once.
    extra : unknown keys; they are preserved.
    """

    name: str
    min_bytes: int
    latency_s: float
    sender_waits: bool
    bandwidth_bytes_per_s: Mapping[int, float]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def bandwidth_table(self) -> tuple[np.ndarray, np.ndarray]:
        """(N sorted, bytes/s), the two columns that the models interpolate."""
        counts = sorted(self.bandwidth_bytes_per_s)
        return np.array(counts), np.array([self.bandwidth_bytes_per_s[n] for n in counts], dtype=float)

    def continues(self, before: "Protocol") -> bool:
        """Whether this is the same line as `before`, except for `sender_waits`."""
        line, line_before = ((p.name, p.latency_s, dict(p.bandwidth_bytes_per_s)) for p in (self, before))
        return line == line_before


@dataclass(frozen=True)
class Level:
    """The protocols of one level, by ascending `min_bytes`."""

    name: str
    protocols: tuple[Protocol, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def protocol_index(self, size_bytes: np.ndarray) -> np.ndarray:
        """Which of `protocols` carries a message of each size."""
        starts = np.array([protocol.min_bytes for protocol in self.protocols])
        return np.searchsorted(starts, size_bytes, side="right") - 1


@dataclass(frozen=True)
class Profile:
    """The results of `fit` in one context. A hand-written file requires only `levels`, which may be empty if
    there are `forms`."""

    levels: Mapping[str, Level]
    id: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    runs: tuple[Mapping[str, str], ...] = ()
    forms: tuple[Mapping[str, Any], ...] = ()
    intervals: Mapping[str, Any] = field(default_factory=dict)
    replicates: tuple[Any, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def level(self, name: str) -> Level:
        """The level `name`; InputError when this profile has none."""
        if name not in self.levels:
            raise InputError(
                f"the profile {self.id or '(no id)'} has no level {name}, which this pattern and layout "
                f"need; it has {', '.join(self.levels) or 'none'}: measure at "
                "that level, then fit again"
            )
        return self.levels[name]

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "schema": SCHEMA,
            "id": self.id,
            "machine": self.machine,
            "context": self.context,
        }
        value["runs"] = list(self.runs)
        value["levels"] = {name: _level_to_json(level) for name, level in self.levels.items()}
        value["forms"] = list(self.forms)
        if self.intervals:
            value["intervals"] = self.intervals
        if self.replicates:
            value["replicates"] = list(self.replicates)
        return value | dict(self.extra)


def load_profile(path: str | Path) -> Profile:
    """Read a profile; raises InputError for missing or invalid values."""
    return profile_from_json(files.read_json(path, "profile", SCHEMA), f"the profile {path}")


def save_profile(profile: Profile, path: str | Path) -> None:
    files.write_json(path, profile.to_json())


def profile_from_json(value: Mapping[str, Any], where: str = "the profile") -> Profile:
    """Build a Profile from its JSON object, checking every number."""
    if value.get("schema") != SCHEMA:
        raise InputError(f"{where} has the schema {value.get('schema')!r}; this version reads {SCHEMA!r}")
    levels = value.get("levels")
    if not isinstance(levels, dict) or not (levels or value.get("forms")):
        raise InputError(f"{where} has no 'levels'; give at least one of {', '.join(LEVELS)}")
    unknown = [name for name in levels if name not in LEVELS]
    if unknown:
        raise InputError(f"{where} has the level {unknown[0]!r}; the levels are {', '.join(LEVELS)}")
    known = {"schema", "id", "machine", "context", "runs", "levels", "forms", "intervals", "replicates"}
    for name, kind in (("machine", dict), ("context", dict), ("intervals", dict), ("runs", list),
                       ("forms", list), ("replicates", list), ("id", str)):  # fmt: skip
        if not isinstance(value.get(name, kind()), kind):
            raise InputError(
                f"{where}: '{name}' must be a JSON {'object' if kind is dict else kind.__name__}"
            )
    return Profile(
        levels={name: _level_from_json(name, level, where) for name, level in levels.items()},
        id=value.get("id", ""),
        machine=value.get("machine", {}),
        context=value.get("context", {}),
        runs=tuple(value.get("runs", ())),
        forms=tuple(value.get("forms", ())),
        intervals=value.get("intervals", {}),
        replicates=tuple(value.get("replicates", ())),
        extra={key: item for key, item in value.items() if key not in known},
    )


def _level_to_json(level: Level) -> dict[str, Any]:
    return {"protocols": [_protocol_to_json(protocol) for protocol in level.protocols]} | dict(level.extra)


def _protocol_to_json(protocol: Protocol) -> dict[str, Any]:
    return {
        "name": protocol.name,
        "min_bytes": protocol.min_bytes,
        "latency_s": protocol.latency_s,
        "sender_waits": protocol.sender_waits,
        "bandwidth_bytes_per_s": {str(n): b for n, b in sorted(protocol.bandwidth_bytes_per_s.items())},
    } | dict(protocol.extra)


def _level_from_json(name: str, value: Any, where: str) -> Level:
    protocols = value.get("protocols") if isinstance(value, dict) else None
    if not isinstance(protocols, list) or not protocols:
        raise InputError(f"{where}, level {name}: 'protocols' must be a list with at least one protocol")
    result = tuple(
        _protocol_from_json(item, f"{where}, level {name}, protocol {k}") for k, item in enumerate(protocols)
    )
    starts = [protocol.min_bytes for protocol in result]
    if starts[0] != 0 or any(a >= b for a, b in itertools.pairwise(starts)):
        raise InputError(f"{where}, level {name}: min_bytes is {starts}; it must begin at 0 and ascend")
    return Level(name, result, {key: item for key, item in value.items() if key != "protocols"})


def _protocol_from_json(value: Any, where: str) -> Protocol:
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object; give latency_s and bandwidth_bytes_per_s")
    latency_s = value.get("latency_s")
    if not _is_number(latency_s) or latency_s < 0:
        raise InputError(f"{where}: latency_s is {latency_s!r}; give seconds, 0 or more")
    table = value.get("bandwidth_bytes_per_s")
    if not isinstance(table, dict) or not table:
        raise InputError(
            f'{where}: bandwidth_bytes_per_s must map N to bytes per second, such as {{"1": 1e10}}'
        )
    bandwidth: dict[int, float] = {}
    for key, item in table.items():
        if not re.fullmatch(r"[1-9][0-9]{0,8}", str(key)) or not _is_number(item) or item <= 0:
            raise InputError(
                f"{where}: bandwidth_bytes_per_s has {key!r}: {item!r}; give N >= 1 and a rate above 0"
            )
        bandwidth[int(key)] = float(item)
    min_bytes = value.get("min_bytes", 0)
    if isinstance(min_bytes, bool) or not isinstance(min_bytes, int) or not 0 <= min_bytes <= MAX_BYTES:
        raise InputError(f"{where}: min_bytes is {min_bytes!r}; give whole bytes, 0 to {MAX_BYTES}")
    name = value.get("name", "rendezvous")
    sender_waits = value.get("sender_waits", name == "rendezvous")
    if not isinstance(name, str) or not isinstance(sender_waits, bool):
        raise InputError(f"{where}: name must be text and sender_waits true or false")
    known = {"name", "min_bytes", "latency_s", "sender_waits", "bandwidth_bytes_per_s"}
    return Protocol(
        name,
        min_bytes,
        float(latency_s),
        sender_waits,
        bandwidth,
        {k: v for k, v in value.items() if k not in known},
    )


def _is_number(value: Any) -> bool:
    # abs() < inf, not isfinite(): a JSON integer may be too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
