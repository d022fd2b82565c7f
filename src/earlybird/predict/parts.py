"""The messages of an exchange that compete with each other, by protocol."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.profile import Level, Protocol
from earlybird.models import compiled, staircase

# Divisions of the messages into protocols that are kept: replicates may differ in where protocols begin.
MAX_KEPT = 8
Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False)
class Part:
    """The messages of one level, or of both levels inside a node, (M,) each, and the group of every rank,
    (P,).

    `level` is the index of each message's level in `names`, None if that is one level. A group is a socket,
    or for messages between nodes a node. A class is a protocol of one of the levels; classes are numbered
    consecutively.
    """

    names: tuple[str, ...]
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    level: np.ndarray | None
    group: np.ndarray
    mixed: str
    _classes: dict[tuple, "Classes"] = field(default_factory=dict)
    _fractions: list[tuple[int, tuple[np.ndarray, np.ndarray]]] = field(default_factory=list)

    def fractions(self, least_bytes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers (K,) of messages, at least of all those of `least_bytes` or more, and their
        fractions c of equation (9); kept for as many bytes or more."""
        if not self._fractions or self._fractions[0][0] > least_bytes:
            is_one = self.level is None or self.mixed == "union"
            receiver = self.dst if is_one else self.dst * len(self.names) + self.level
            found = staircase.completion_fractions(receiver, self.bytes, least_bytes)
            self._fractions[:] = [(least_bytes, found)]
        return self._fractions[0][1]

    @cached_property
    def receivers(self) -> np.ndarray:
        """The ranks that receive at least one byte, by group; the other ranks do not compete."""
        return self._by_group(self._ends[1])

    @cached_property
    def first(self) -> np.ndarray:
        """The (G+1,) positions in `receivers` at which each group begins."""
        groups = self.group[self.receivers]
        return np.append(np.flatnonzero(np.diff(groups, prepend=-1)), len(groups))

    @cached_property
    def most_receivers(self) -> int:
        """The largest number of ranks of one group that receive a byte."""
        return int(np.diff(self.first).max(initial=0))

    @cached_property
    def most_senders(self) -> int:
        return int(np.bincount(self.group[self._by_group(self._ends[0])]).max(initial=0))

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        return compiled.ends_of_messages(self.src, self.dst, self.bytes, len(self.group))

    def _by_group(self, has_bytes: np.ndarray) -> np.ndarray:
        ranks = np.flatnonzero(has_bytes)
        return ranks[np.argsort(self.group[ranks], kind="stable")]

    def classes(self, levels: Sequence[Level]) -> "Classes":
        """Return the data that follow from where the protocols of `levels` begin, computed once."""
        key = _key(levels)
        if key not in self._classes:
            if len(self._classes) >= MAX_KEPT:
                self._classes.clear()
            self._classes[key] = Classes.of(self, levels)
        return self._classes[key]


@dataclass(frozen=True, eq=False)
class Classes:
    """The messages of a part by class, (M,) or (P, C) for C classes.

    Attributes
    ----------
    num_received, volume_bytes : (P, C) messages and bytes that each rank receives.
    is_used : (C,), whether a message with bytes is of the class.
    waits : (C,), whether senders wait for messages of the class.
    least_waited_bytes : no message for which a sender waits is smaller.
    """

    part: Part
    message_class: np.ndarray
    num_received: np.ndarray
    volume_bytes: np.ndarray
    is_used: np.ndarray
    waits: np.ndarray
    least_waited_bytes: int
    _kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, part: Part, levels: Sequence[Level]) -> "Classes":
        waits = np.array([item.sender_waits for level in levels for item in level.protocols], bool)
        min_bytes = [[item.min_bytes for item in level.protocols] for level in levels]
        message_class, num_received, volume_bytes = compiled.classify_messages(
            part.level, part.dst, part.bytes, min_bytes, len(part.group)
        )
        # The first protocol of a level also has the messages below its `min_bytes`.
        begins = [begin for starts in min_bytes for begin in (0, *starts[1:])]
        least_bytes = min((begin for begin, does in zip(begins, waits, strict=True) if does), default=0)
        return cls(
            part, message_class, num_received, volume_bytes, volume_bytes.any(axis=0), waits, least_bytes
        )

    def send_s(self, receive_s: np.ndarray) -> np.ndarray:
        """Return (R, P) the time at which the last waited-for send of each rank is delivered, (8) of Thune et
        al. 2023, without the latency of its receiver; 0 for a rank without such sends. `receive_s` has the
        shape (R, P).
        """
        if not self.waits.any():
            return np.zeros(receive_s.shape)
        of, part = self.message_class, self.part
        messages, fractions = part.fractions(self.least_waited_bytes)
        return np.array([
            compiled.delivered_s(messages, fractions, part.src, part.dst, of, self.waits, row)
            for row in receive_s
        ])  # fmt: skip

    def keep(self, kind: Callable[..., Kept], *arguments: Any) -> Kept:
        """Return `kind` of these messages and the arguments, such as the data that a model prepares; it is
        made once.
        """
        if (kind, arguments) not in self._kept:
            self._kept[kind, arguments] = kind(self, *arguments)
        return self._kept[kind, arguments]


def table(level: Level, protocol: Protocol) -> tuple[np.ndarray, np.ndarray]:
    counts, rates = protocol.bandwidth_table()
    if counts[0] != 1:
        raise InputError(
            f"level {level.name}, protocol {protocol.name}: bandwidth_bytes_per_s begins at N = {counts[0]}; "
            "every model needs N = 1, the bandwidth of a single pair: measure it or add it to the profile"
        )
    return counts, rates


def bandwidth_tables(levels: Sequence[tuple[Level, ...]]) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Return [R][C] the bandwidth table of each parameter set and class."""
    return [[table(level, item) for level in row for item in level.protocols] for row in levels]


def bandwidth_up_to(tables: list[list[tuple[np.ndarray, np.ndarray]]], num_receivers: int) -> np.ndarray:
    """Return (R, num_receivers, C) with BW(n) of each protocol at n-1."""
    n = np.arange(1, num_receivers + 1)
    return np.array([[staircase.bandwidth_at(n, *table) for table in row] for row in tables]).transpose(
        0, 2, 1
    )


def _key(levels: Sequence[Level]) -> tuple:
    """Return a key that is equal for levels that give every message the same protocol and the same waiting
    senders.
    """
    return tuple(
        tuple((item.min_bytes, item.sender_waits, item.buffered) for item in level.protocols)
        for level in levels
    )


def alike(levels: Sequence[tuple[Level, ...]]) -> Iterable[tuple[list[int], list[tuple[Level, ...]]]]:
    """Yield the rows of `levels` in batches that give every message the same protocol and the same waiting
    senders.
    """
    batches: dict[tuple, list[int]] = {}
    for row, group in enumerate(levels):
        batches.setdefault(_key(group), []).append(row)
    return [(rows, [levels[row] for row in rows]) for rows in batches.values()]
