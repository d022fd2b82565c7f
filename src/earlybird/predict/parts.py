"""The messages of an exchange that compete with each other, by protocol."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.profile import Level, Protocol
from earlybird.models import staircase

# Divisions of the messages into protocols that are kept: replicates may differ in where protocols begin.
MAX_KEPT = 8
Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False)
class Part:
    """The messages of one level, or of both levels inside a node, (M,) each, and the group of every rank,
    (P,).

    `level` is the index of each message's level in `names`. A group is a socket, or for messages between
    nodes a node. A class is a protocol of one of the levels; classes are numbered consecutively.
    """

    names: tuple[str, ...]
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    level: np.ndarray
    group: np.ndarray
    mixed: str
    _classes: dict[tuple, "Classes"] = field(default_factory=dict)

    @cached_property
    def fraction(self) -> np.ndarray:
        """The (M,) fractions c of equation (9)."""
        if len(self.names) == 1 or self.mixed == "union":
            return staircase.completion_fractions(self.dst, self.bytes)
        return staircase.completion_fractions(self.dst * len(self.names) + self.level, self.bytes)

    @cached_property
    def receivers(self) -> np.ndarray:
        """The ranks that receive at least one byte, by group; the other ranks do not compete."""
        return self._by_group(self.dst)

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
        return int(np.bincount(self.group[self._by_group(self.src)]).max(initial=0))

    def _by_group(self, end: np.ndarray) -> np.ndarray:
        has_bytes = np.zeros(len(self.group), dtype=bool)
        has_bytes[end[self.bytes > 0]] = True
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

    def last_of_ranks_s(self, received_s: np.ndarray, sent_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the last time of the messages that each rank receives, and of those that it sends, (P,)
        each, from the times of the messages.
        """
        ends = np.zeros((2, len(self.group)))
        np.maximum.at(ends[0], self.dst, received_s)
        np.maximum.at(ends[1], self.src, sent_s)
        return ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class Classes:
    """The messages of a part by class, (M,) or (P, C) for C classes.

    Attributes
    ----------
    num_received, volume_bytes : (P, C) messages and bytes that each rank receives.
    is_used : (C,), whether a message with bytes is of the class.
    waits : places of the messages for which their senders wait.
    """

    part: Part
    message_class: np.ndarray
    num_received: np.ndarray
    volume_bytes: np.ndarray
    is_used: np.ndarray
    waits: np.ndarray
    _kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, part: Part, levels: Sequence[Level]) -> "Classes":
        protocols = [item for level in levels for item in level.protocols]
        num_classes = len(protocols)
        message_class = np.empty(len(part.bytes), dtype=np.int64)
        first = 0
        for k, level in enumerate(levels):
            here = slice(None) if len(levels) == 1 else part.level == k
            message_class[here] = first + level.protocol_index(part.bytes[here])
            first += len(level.protocols)
        shape = len(part.group), num_classes
        place = part.dst * num_classes + message_class
        volume_bytes = np.zeros(shape[0] * shape[1], dtype=np.int64)
        np.add.at(volume_bytes, place, part.bytes)  # exact, unlike bincount with weights
        num_received = np.bincount(place, minlength=len(volume_bytes))
        waits = np.flatnonzero(np.array([item.sender_waits for item in protocols], bool)[message_class])
        volume_bytes = volume_bytes.reshape(shape)
        return cls(
            part, message_class, num_received.reshape(shape), volume_bytes, volume_bytes.any(axis=0), waits
        )

    @cached_property
    def _waited_for(self) -> tuple[np.ndarray, ...]:
        """The waiting senders, the position at which each begins in the arrays that follow, and the receiver
        of each of its messages and the fraction of (9).
        """
        src = self.part.src[self.waits]
        order = np.argsort(src, kind="stable")
        src, messages = src[order], self.waits[order]
        first = np.flatnonzero(np.diff(src, prepend=-1))
        return src[first], first, self.part.dst[messages], self.part.fraction[messages]

    def send_s(self, receive_s: np.ndarray) -> np.ndarray:
        """Return (R, P) the time at which the last waited-for send of each rank is delivered, (8) of Thune et
        al. 2023, without the latency of its receiver; 0 for a rank without such sends. `receive_s` (R, P).
        """
        senders, first, dst, fraction = self._waited_for
        waits_s = np.zeros(receive_s.shape)
        if len(senders):
            for row, times_s in zip(waits_s, receive_s, strict=True):
                row[senders] = np.maximum.reduceat(fraction * times_s[dst], first)
        return waits_s

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
