"""Predict an exchange: which messages compete where, by the formulas of `models`, added over levels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS, Layout
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import SCHEMA, Level, Profile, Protocol, profile_from_json
from earlybird.models import maxrate, postal, staircase
from earlybird.predict.profiles import replicate_levels

MODELS = ("staircase", "max-rate", "postal")
MAX_REPLICATES = 200
INTERVAL_PERCENT = (2.5, 97.5)

# The parts of a predicted time, each (R, P) for R parameter sets: receive without latency, and all of it.
_Times = tuple[np.ndarray, np.ndarray]


def predict_exchange(
    pattern: Pattern, layout: Layout, profile: Profile, model: str = "staircase"
) -> Prediction:
    """Seconds per rank for the messages of `pattern`, all posted at once, on `layout` (Thune et al. 2023).

    Parameters
    ----------
    model : `staircase` (7)-(9), `max-rate` (10) or `postal` (1); intra-node and inter-node times are added as
    (18).

    Returns
    -------
    Prediction with arrays of shape (P,), P from the layout. Where the profile has replicates,
    `time_interval_s` holds the 2.5 and 97.5 percentiles of the same model over them (the first 200 at most):
    the uncertainty of the parameters, not of the model.

    Raises
    ------
    InputError : the pattern names a rank outside the layout; the profile lacks a level or BW(1) that is
        needed; the model, or what it would need here, is not built.
    """
    return Exchange(pattern, layout).predict(profile, model)


class Exchange:
    """A pattern on a layout, with all that does not depend on a profile worked out once and kept."""

    def __init__(self, pattern: Pattern, layout: Layout):
        pattern.check_ranks(layout.num_ranks)
        self.pattern = pattern
        self.num_ranks = layout.num_ranks
        level = layout.level(pattern.src, pattern.dst)
        node_group = np.unique(layout.node, return_inverse=True)[1].reshape(-1)
        groups = (layout.socket_group(), layout.socket_group(), node_group)
        self._most_ranks_of_a_node = int(np.bincount(node_group).max())
        self._parts = {
            name: _Part(pattern.src[here], pattern.dst[here], pattern.bytes[here], groups[k])
            for k, name in enumerate(LEVELS)
            if (here := level == k).any()
        }

    def predict(self, profile: Profile, model: str = "staircase") -> Prediction:
        """See `predict_exchange`."""
        self._check_model(model)
        receive_s, intra_node_s, inter_node_s = (part[0] for part in self._times([profile], model))
        replicates = _replicates(profile)
        interval_s = None
        if replicates:
            _, intra_s, inter_s = self._times(replicates, model)
            interval_s = np.percentile(intra_s + inter_s, INTERVAL_PERCENT, axis=0).T
        notes = self.reservations(profile)
        return Prediction(
            model=model,
            receive_s=receive_s,
            intra_node_s=intra_node_s,
            inter_node_s=inter_node_s,
            profile_id=profile.id,
            pattern_sha256=self.pattern.sha256(),
            time_interval_s=interval_s,
            extra={"notes": notes} if notes else {},
        )

    def _check_model(self, model: str) -> None:
        if model == "fair":
            raise InputError(
                "the model 'fair' (max-min fair sharing of both ends) is not built yet; "
                f"choose one of {', '.join(MODELS)}"
            )
        if model not in MODELS:
            raise InputError(f"the model is {model!r}; choose one of {', '.join(MODELS)}")
        if model == "staircase" and {"intra_socket", "inter_socket"} <= self._parts.keys():
            raise InputError(
                "the pattern mixes intra_socket and inter_socket messages on this layout, and the staircase "
                "of that mixture is not built yet; "
                "choose --model max-rate or postal, or a layout with one of the two"
            )

    def _times(self, profiles: Sequence[Profile], model: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(receive_s, intra_node_s, inter_node_s), each (R, P), one row per profile."""
        shape = (len(profiles), self.num_ranks)
        receive_s, intra_s, inter_s = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for name, part in self._parts.items():
            levels = [profile.level(name) for profile in profiles]
            for rows, alike in _alike(levels):
                part_receive_s, part_total_s = part.times(alike, model)
                receive_s[rows] += part_receive_s
                (inter_s if name == "inter_node" else intra_s)[rows] += part_total_s
        return receive_s, intra_s, inter_s

    def reservations(self, profile: Profile) -> list[str]:
        """Where a prediction from `profile` leaves what was measured, a sentence each."""
        notes = []
        for name, part in self._parts.items():
            level = profile.level(name)
            used = np.unique(level.protocol_index(part.bytes[part.bytes > 0]))
            measured = min((max(level.protocols[k].bandwidth_bytes_per_s) for k in used), default=0)
            receivers = part.most_receivers()
            if used.size and receivers > measured:
                notes.append(
                    f"{name}: {receivers} processes receive at once, the profile knows N up to {measured}; "
                    "its bandwidth is held constant beyond, so the true times may be longer"
                )
        cores = profile.machine.get("cores")
        if isinstance(cores, int) and self._most_ranks_of_a_node > cores:
            notes.append(
                f"the layout puts {self._most_ranks_of_a_node} ranks on a node and the profile's machine has "
                f"{cores} cores; the wait for a core is in no model"
            )
        return notes


@dataclass(frozen=True)
class _Part:
    """The messages of one level, (M,) each, and the group (socket or node) of every rank, (P,)."""

    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    group: np.ndarray

    @cached_property
    def fraction(self) -> np.ndarray:
        """(M,) c of equation (9)."""
        return staircase.completion_fractions(self.dst, self.bytes)

    def most_receivers(self) -> int:
        """The largest number of ranks of one group that receive a byte."""
        receivers = np.unique(self.dst[self.bytes > 0])
        return int(np.bincount(self.group[receivers]).max(initial=0))

    def times(self, levels: Sequence[Level], model: str) -> _Times:
        """(receive_s, time_s), each (R, P), for levels that differ in latencies and bandwidths alone."""
        protocol = levels[0].protocol_index(self.bytes)
        volume_bytes = self._sum_by_protocol(protocol, levels[0], self.bytes)
        counts = self._sum_by_protocol(protocol, levels[0], np.ones_like(self.bytes))
        receive_s = self._receive_s(volume_bytes, levels, model)
        busy_s = receive_s
        if model == "staircase":
            busy_s = np.maximum(receive_s, self._send_s(protocol, levels[0], receive_s))
        latency_s = np.array([[item.latency_s for item in level.protocols] for level in levels])
        return receive_s, latency_s @ counts.T + busy_s

    def _sum_by_protocol(self, protocol: np.ndarray, level: Level, values: np.ndarray) -> np.ndarray:
        """(P, C) sums of (M,) int64 values over the messages each rank receives by each protocol."""
        sums = np.zeros((len(self.group), len(level.protocols)), dtype=np.int64)
        np.add.at(sums, (self.dst, protocol), values)
        return sums

    def _receive_s(self, volume_bytes: np.ndarray, levels: Sequence[Level], model: str) -> np.ndarray:
        tables = [[_table(level, item) for item in level.protocols] for level in levels]
        single = np.array([[rates[0] for _, rates in row] for row in tables])
        if model == "postal":
            return postal.uncontended_time_s(volume_bytes, single)
        largest = np.array([[rates.max() for _, rates in row] for row in tables])
        members = list(_members(self.group, volume_bytes))
        bandwidth = _bandwidth(tables, max((len(ranks) for ranks in members), default=0))
        receive_s = np.zeros((len(levels), len(self.group)))
        for ranks in members:
            if model == "max-rate":
                receive_s[:, ranks] = maxrate.extended_time_s(volume_bytes[ranks], single, largest)
            else:
                shared = bandwidth[:, : len(ranks)]
                receive_s[:, ranks] = staircase.receive_times_s(volume_bytes[ranks], shared)
        return receive_s

    def _send_s(self, protocol: np.ndarray, level: Level, receive_s: np.ndarray) -> np.ndarray:
        """(R, P) when each rank's waited-for sends are delivered."""
        waits = np.array([item.sender_waits for item in level.protocols])[protocol]
        src, dst, fraction = self.src[waits], self.dst[waits], self.fraction[waits]
        return np.stack(
            [staircase.send_waits_s(src, fraction * times_s[dst], len(self.group)) for times_s in receive_s]
        )


def _replicates(profile: Profile) -> list[Profile]:
    """The refitted parameter sets of a profile, at most MAX_REPLICATES of them."""
    return [
        profile_from_json(
            {"schema": SCHEMA, "id": f"{profile.id} (replicate {k})", "levels": replicate_levels(profile, k)},
            f"the profile {profile.id}, replicate {k}",
        )
        for k in range(min(len(profile.replicates), MAX_REPLICATES))
    ]


def _members(group: np.ndarray, volume_bytes: np.ndarray) -> Iterable[np.ndarray]:
    """The ranks of each group that receive at least one byte; the others do not compete."""
    receivers = np.flatnonzero(volume_bytes.any(axis=1))
    order = np.argsort(group[receivers], kind="stable")
    starts = np.flatnonzero(np.diff(group[receivers][order], prepend=-1))
    return np.split(receivers[order], starts[1:]) if len(receivers) else []


def _table(level: Level, protocol: Protocol) -> tuple[np.ndarray, np.ndarray]:
    counts, rates = protocol.bandwidth_table()
    if counts[0] != 1:
        raise InputError(
            f"level {level.name}, protocol {protocol.name}: bandwidth_bytes_per_s begins at N = {counts[0]}; "
            "every model needs N = 1, the bandwidth of a single pair: measure it or add it to the profile"
        )
    return counts, rates


def _bandwidth(tables: list[list[tuple[np.ndarray, np.ndarray]]], num_receivers: int) -> np.ndarray:
    """(R, num_receivers, C) with BW(n) of each protocol at n-1."""
    n = np.arange(1, num_receivers + 1)
    return np.array([[staircase.bandwidth_at(n, *table) for table in row] for row in tables]).transpose(
        0, 2, 1
    )


def _alike(levels: Sequence[Level]) -> Iterable[tuple[list[int], list[Level]]]:
    """Rows of `levels` in batches that give every message the same protocol and the same waiting senders."""
    batches: dict[tuple, list[int]] = {}
    for row, level in enumerate(levels):
        key = tuple((protocol.min_bytes, protocol.sender_waits) for protocol in level.protocols)
        batches.setdefault(key, []).append(row)
    return [(rows, [levels[row] for row in rows]) for rows in batches.values()]
