"""Predict the time of an exchange: competing messages by the formulas of `models`, added over levels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS, Layout
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.models import fair, maxrate, postal, staircase
from earlybird.predict.ranges import INTERVAL_PERCENT

MODELS = ("staircase", "fair", "max-rate", "postal")
SHARES = fair.SHARES
MIXED = ("per-level", "union")
MAX_REPLICATES = 200
# The fair model has one step per message between nodes: limit the messages of all replicates together, but
# use at least this many replicates.
_FAIR_REPLICATE_MESSAGES, _MIN_FAIR_REPLICATES = 20_000, 5
# With this many replicates an interval covers 90 % or more, and needs no note.
_ENOUGH_REPLICATES = 40
# With more messages, completions within 0.5 % of the elapsed time are one step. Times of ranks change by at
# most about 1.2 %, error (11) by 0.6 %; the error of the model itself is about 10 %.
_FAIR_EXACT_MESSAGES, _FAIR_BATCH_FRACTION = 2_000, 5e-3
# The number of ranks that a note lists.
_MOST_NAMED = 8

# Models in which messages from the own socket and from others compete.
_SHARING = ("staircase", "fair")

# Predicted times, each (R, P) for R parameter sets: receive without latency, and the total.
_Times = tuple[np.ndarray, np.ndarray]


def predict_exchange(
    pattern: Pattern,
    layout: Layout,
    profile: Profile,
    model: str = "staircase",
    *,
    share: str = "message",
    mixed: str = "per-level",
) -> Prediction:
    """Seconds per rank for the messages of `pattern`, all posted at once, on `layout` (Thune et al. 2023).

    Parameters
    ----------
    model : `staircase` (7)-(9), with messages both on and off a socket (12)-(17); `fair`, the staircase
        inside nodes and max-min fair sharing of both ends between them; `max-rate` (10); `postal` (1).
        Intra-node and inter-node times are added as (18).
    share : what gets an equal share in `fair` between nodes: every `message`, or every receiving `process`.
    mixed : completion of messages if a rank receives from its own socket and from others of its node: (9)
        `per-level`, both parts ending with the last byte that the rank receives, or over the `union`.

    Returns
    -------
    Prediction with arrays of shape (P,), P from the layout. If the profile has replicates,
    `time_interval_s` holds the 2.5 and 97.5 percentiles of the same model over them (at most the first 200;
    `fair` uses fewer, at least 5, with more than 100 messages between nodes; a note says so below 40): the
    uncertainty of the parameters, not of the model.

    Raises
    ------
    InputError : the pattern has a rank outside the layout; the profile does not have a required level or
        BW(1); the model, `share` or `mixed` is unknown.
    """
    return Exchange(pattern, layout, mixed=mixed).predict(profile, model, share=share)


def silent_senders(pattern: Pattern, time_s: np.ndarray, model: str) -> str | None:
    """Why the (P,) `time_s` of `model` is 0 for ranks that send; None if there are no such ranks."""
    senders = np.unique(pattern.src)
    ranks = senders[time_s[senders] == 0]
    if not len(ranks):
        return None
    named = ", ".join(map(str, ranks[:_MOST_NAMED])) + (", ..." if len(ranks) > _MOST_NAMED else "")
    subject = f"ranks {named} only send and are" if len(ranks) > 1 else f"rank {named} only sends and is"
    why = (
        "the profile says that senders of such messages do not wait for delivery"
        if model in _SHARING
        else f"{model} counts what a rank receives"
    )
    return f"{subject} predicted to take 0 s: {why}, and no model contains the cost of the send call"


class Exchange:
    """A pattern on a layout, with everything that does not depend on a profile computed once."""

    def __init__(self, pattern: Pattern, layout: Layout, *, mixed: str = "per-level"):
        pattern.check_ranks(layout.num_ranks)
        _check_choice("mixed", mixed, MIXED)
        self.pattern = pattern
        self.num_ranks = layout.num_ranks
        self.mixed = mixed
        self._level = layout.level(pattern.src, pattern.dst)
        self._node_group = np.unique(layout.node, return_inverse=True)[1].reshape(-1)
        self._socket_group = layout.socket_group()
        self._most_ranks_of_a_node = int(np.bincount(self._node_group).max())
        self.levels = tuple(name for k, name in enumerate(LEVELS) if (self._level == k).any())

    def predict(self, profile: Profile, model: str = "staircase", *, share: str = "message") -> Prediction:
        """See `predict_exchange`."""
        _check_choice("model", model, MODELS)
        _check_choice("share", share, SHARES)
        receive_s, intra_node_s, inter_node_s = (part[0] for part in self._times([profile], model, share))
        replicates = _replicates(profile, self._num_replicates(model))
        interval_s = None
        if replicates:
            _, intra_s, inter_s = self._times(replicates, model, share)
            interval_s = np.percentile(intra_s + inter_s, INTERVAL_PERCENT, axis=0).T
        notes = self.reservations(profile, model)
        if silent := silent_senders(self.pattern, intra_node_s + inter_node_s, model):
            notes.append(silent)
        if len(replicates) < min(len(profile.replicates), _ENOUGH_REPLICATES):
            notes.append(_few_replicates(len(replicates)))
        return Prediction(
            model=model,
            receive_s=receive_s,
            intra_node_s=intra_node_s,
            inter_node_s=inter_node_s,
            profile_id=profile.id,
            pattern_sha256=self.pattern.sha256(),
            time_interval_s=interval_s,
            extra=self._choices(model, share) | ({"notes": notes} if notes else {}),
        )

    def slowest_s(
        self, profile: Profile, model: str = "staircase", *, share: str = "message"
    ) -> tuple[float, np.ndarray]:
        """Seconds of the slowest rank, and (R,) the same by every replicate of the profile."""
        _check_choice("model", model, MODELS)
        _check_choice("share", share, SHARES)
        profiles = [profile, *_replicates(profile, self._num_replicates(model))]
        _, intra_s, inter_s = self._times(profiles, model, share)
        slowest_s = (intra_s + inter_s).max(axis=1)
        return float(slowest_s[0]), slowest_s[1:]

    def _choices(self, model: str, share: str) -> dict[str, str]:
        """The options that affect the result, for the file of the prediction."""
        share_counts = model == "fair" and "inter_node" in self.levels
        mixed_counts = model in _SHARING and {"intra_socket", "inter_socket"} <= set(self.levels)
        return ({"share": share} if share_counts else {}) | ({"mixed": self.mixed} if mixed_counts else {})

    def _num_replicates(self, model: str) -> int:
        messages = int(((self._level == LEVELS.index("inter_node")) & (self.pattern.bytes > 0)).sum())
        if model != "fair" or not messages:
            return MAX_REPLICATES
        return min(MAX_REPLICATES, max(_MIN_FAIR_REPLICATES, _FAIR_REPLICATE_MESSAGES // messages))

    @cached_property
    def _apart(self) -> tuple["_Part", ...]:
        """The messages of each level separately."""
        return tuple(self._part((name,)) for name in self.levels)

    @cached_property
    def _joint(self) -> tuple["_Part", ...]:
        """Messages on and off a socket together: they compete with each other."""
        inside = tuple(name for name in self.levels if name != "inter_node")
        if len(inside) < 2:
            return self._apart
        return (self._part(inside), *(self._part((name,)) for name in self.levels if name not in inside))

    def _part(self, names: tuple[str, ...]) -> "_Part":
        kinds = [LEVELS.index(name) for name in names]
        here = np.isin(self._level, kinds)
        group = self._node_group if names == ("inter_node",) else self._socket_group
        src, dst, size_bytes = (
            values[here] for values in (self.pattern.src, self.pattern.dst, self.pattern.bytes)
        )
        return _Part(
            names, src, dst, size_bytes, np.searchsorted(kinds, self._level[here]), group, self.mixed
        )

    def _times(
        self, profiles: Sequence[Profile], model: str, share: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(receive_s, intra_node_s, inter_node_s), each (R, P), one row per profile."""
        shape = (len(profiles), self.num_ranks)
        receive_s, intra_s, inter_s = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for part in self._joint if model in _SHARING else self._apart:
            between_nodes = part.names == ("inter_node",)
            # Inside a node both ends are the same memory, and fair is the staircase.
            inside = "staircase" if model == "fair" and not between_nodes else model
            levels = [tuple(profile.level(name) for name in part.names) for profile in profiles]
            for rows, alike in _alike(levels):
                part_receive_s, part_total_s = part.times(alike, inside, share)
                receive_s[rows] += part_receive_s
                (inter_s if between_nodes else intra_s)[rows] += part_total_s
        return receive_s, intra_s, inter_s

    def reservations(self, profile: Profile, model: str = "staircase") -> list[str]:
        """Notes on a prediction from `profile` outside the measured range, one sentence each."""
        notes = []
        for part in self._joint if model in _SHARING else self._apart:
            both_ends = model == "fair" and part.names == ("inter_node",)
            most, does = part.most_receivers(), "receive"
            if both_ends and part.most_senders() > most:
                most, does = part.most_senders(), "send"
            for k, name in enumerate(part.names):
                level = profile.level(name)
                used = np.unique(level.protocol_index(part.bytes[(part.bytes > 0) & (part.level == k)]))
                measured = min((max(level.protocols[k].bandwidth_bytes_per_s) for k in used), default=0)
                if used.size and most > measured:
                    notes.append(
                        f"{name}: {most} processes {does} at once, but the profile has N up to {measured}; "
                        "its bandwidth is constant beyond, so the real times may be longer"
                    )
        if model == "fair" and "inter_node" not in self.levels:
            notes.append("no message goes between nodes, so the result of fair is that of the staircase")
        cores = profile.machine.get("cores")
        if isinstance(cores, int) and self._most_ranks_of_a_node > cores:
            notes.append(
                f"the layout puts {self._most_ranks_of_a_node} ranks on a node, but the profile's machine "
                "has "
                f"{cores} cores; no model contains the time that ranks wait for a core"
            )
        return notes


@dataclass(frozen=True)
class _Part:
    """The messages of one level, or of both inside a node, (M,) each, and the group of every rank, (P,).

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

    @cached_property
    def fraction(self) -> np.ndarray:
        """(M,) c of equation (9)."""
        if len(self.names) == 1 or self.mixed == "union":
            return staircase.completion_fractions(self.dst, self.bytes)
        return staircase.completion_fractions(self.dst * len(self.names) + self.level, self.bytes)

    def most_receivers(self) -> int:
        """The largest number of ranks of one group that receive a byte."""
        return self._most(self.dst)

    def most_senders(self) -> int:
        return self._most(self.src)

    def _most(self, end: np.ndarray) -> int:
        ranks = np.unique(end[self.bytes > 0])
        return int(np.bincount(self.group[ranks]).max(initial=0))

    def times(self, levels: Sequence[tuple[Level, ...]], model: str, share: str) -> _Times:
        """(receive_s, time_s), each (R, P), for parameter sets, a tuple of levels each, that differ only
        in latencies and bandwidths."""
        protocols = [[item for level in row for item in level.protocols] for row in levels]
        message_class = self._message_class(levels[0])
        counts = self._sum_by_protocol(message_class, len(protocols[0]), np.ones_like(self.bytes))
        latency_s = np.array([[item.latency_s for item in row] for row in protocols]) @ counts.T
        waits = np.array([item.sender_waits for item in protocols[0]])[message_class]
        if model == "fair":
            receive_s, send_s = self._fair_s(message_class, waits, levels, share)
            return receive_s, latency_s + np.maximum(receive_s, send_s)
        volume_bytes = self._sum_by_protocol(message_class, len(protocols[0]), self.bytes)
        receive_s = self._receive_s(volume_bytes, levels, model)
        if model == "staircase":
            return receive_s, latency_s + np.maximum(receive_s, self._send_s(waits, receive_s))
        return receive_s, latency_s + receive_s

    def _message_class(self, levels: tuple[Level, ...]) -> np.ndarray:
        classes = np.empty(len(self.bytes), dtype=np.int64)
        first = 0
        for k, level in enumerate(levels):
            here = self.level == k
            classes[here] = first + level.protocol_index(self.bytes[here])
            first += len(level.protocols)
        return classes

    def _sum_by_protocol(self, message_class: np.ndarray, num_classes: int, values: np.ndarray) -> np.ndarray:
        """(P, C) sums of (M,) int64 values over the messages each rank receives of each class."""
        sums = np.zeros((len(self.group), num_classes), dtype=np.int64)
        np.add.at(sums, (self.dst, message_class), values)
        return sums

    def _receive_s(
        self, volume_bytes: np.ndarray, levels: Sequence[tuple[Level, ...]], model: str
    ) -> np.ndarray:
        tables = _tables(levels)
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
            elif model == "staircase":
                shared = bandwidth[:, : len(ranks)]
                receive_s[:, ranks] = staircase.receive_times_s(volume_bytes[ranks], shared)
            else:
                raise ValueError(f"_receive_s has no formula for the model {model}")
        return receive_s

    def _send_s(self, waits: np.ndarray, receive_s: np.ndarray) -> np.ndarray:
        """(R, P) when each rank's waited-for sends are delivered."""
        src, dst, fraction = self.src[waits], self.dst[waits], self.fraction[waits]
        return np.stack(
            [staircase.send_waits_s(src, fraction * times_s[dst], len(self.group)) for times_s in receive_s]
        )

    def _fair_s(
        self, message_class: np.ndarray, waits: np.ndarray, levels: Sequence[tuple[Level, ...]], share: str
    ) -> _Times:
        """(R, P) each: when the last message is received, and the last waited-for send delivered."""
        bandwidth = _bandwidth(_tables(levels), max(self.most_receivers(), self.most_senders(), 1))
        completed_s = fair.completion_times_s(
            self.src,
            self.dst,
            self.bytes,
            self.group,
            message_class,
            bandwidth,
            share,
            batch_fraction=_FAIR_BATCH_FRACTION if len(self.bytes) > _FAIR_EXACT_MESSAGES else 0.0,
        )
        return self._last_s(self.dst, completed_s), self._last_s(self.src[waits], completed_s[:, waits])

    def _last_s(self, rank: np.ndarray, completed_s: np.ndarray) -> np.ndarray:
        """(R, P) the last of (R, M) completions of each rank, 0 without any."""
        last_s = np.zeros((len(completed_s), len(self.group)))
        for row, times_s in zip(last_s, completed_s, strict=True):
            np.maximum.at(row, rank, times_s)
        return last_s


def _check_choice(name: str, given: str, allowed: Sequence[str]) -> None:
    if given not in allowed:
        raise InputError(f"the {name} is {given!r}; choose one of {', '.join(allowed)}")


def _replicates(profile: Profile, largest_number: int) -> list[Profile]:
    """The refitted parameter sets of a profile, the first ones."""
    return [
        Profile(replicate.levels, f"{profile.id} (replicate {k})")
        for k, replicate in enumerate(profile.replicates[:largest_number])
    ]


def _few_replicates(number: int) -> str:
    # Percentile p lies at the fraction p between the lowest and the highest of n values; a new value lies
    # between two neighbours with the probability 1/(n+1).
    low, high = INTERVAL_PERCENT
    percent = (high - low) * (number - 1) / (number + 1)
    return (
        f"an exchange this large is predicted with {number} replicates: its intervals cover about "
        f"{percent:.0f} % of the parameters' uncertainty instead of {high - low:.0f} %"
    )


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


def _tables(levels: Sequence[tuple[Level, ...]]) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """[R][C] the bandwidth table of each parameter set and class."""
    return [[_table(level, item) for level in row for item in level.protocols] for row in levels]


def _bandwidth(tables: list[list[tuple[np.ndarray, np.ndarray]]], num_receivers: int) -> np.ndarray:
    """(R, num_receivers, C) with BW(n) of each protocol at n-1."""
    n = np.arange(1, num_receivers + 1)
    return np.array([[staircase.bandwidth_at(n, *table) for table in row] for row in tables]).transpose(
        0, 2, 1
    )


def _alike(levels: Sequence[tuple[Level, ...]]) -> Iterable[tuple[list[int], list[tuple[Level, ...]]]]:
    """Rows of `levels` in batches that give every message the same protocol and the same waiting senders."""
    batches: dict[tuple, list[int]] = {}
    for row, group in enumerate(levels):
        key = tuple(tuple((item.min_bytes, item.sender_waits) for item in level.protocols) for level in group)
        batches.setdefault(key, []).append(row)
    return [(rows, [levels[row] for row in rows]) for rows in batches.values()]
