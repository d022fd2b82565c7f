"""Predict the time of an exchange: competing messages by the formulas of `models`, added over levels."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS, Layout
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.units import MAX_BYTES
from earlybird.models import fair, maxrate, postal, staircase
from earlybird.models.compiled import ChangingExchange
from earlybird.predict.ranges import INTERVAL_PERCENT

MODELS = ("staircase", "fair", "max-rate", "postal")
SHARES = fair.SHARES
MIXED = ("per-level", "union")
MAX_REPLICATES = 200
# What `fair` may cost, in steps times what a step costs (`fair.Sharing.work`), about 20 ns each: with a step
# for each message for one parameter set, and for all replicates together, of which there are a few in any
# case.
_FAIR_EXACT_WORK, _FAIR_REPLICATES_WORK, _MIN_FAIR_REPLICATES = 2 * 10**7, 2 * 10**8, 5
# With this many replicates an interval covers 90 % or more, and needs no note.
_ENOUGH_REPLICATES = 40
# Otherwise completions within 0.5 % of the elapsed time are one step, of which there are about 700.
_FAIR_BATCH_FRACTION, _FAIR_BATCHED_STEPS = 5e-3, 700
_FAIR_MESSAGE_WORK = 3
# Divisions of the messages into protocols that are kept: replicates may differ in where protocols begin.
_MOST_KEPT = 8
# `slowest_now_s` keeps bandwidths for as many ranks on a node as there are.
MOST_CHANGING = 100_000
_CHANGED = ", changed"
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
    `fair` uses fewer for large exchanges, at least 5; a note says so below 40): the uncertainty of the
    parameters, not of the model.

    Raises
    ------
    InputError : the pattern has a rank outside the layout; the profile does not have a required level or
        BW(1); the model, `share` or `mixed` is unknown.
    """
    return Predictor(pattern, layout, mixed=mixed).predict(profile, model, share=share)


def silent_senders(pattern: Pattern, time_s: np.ndarray, model: str) -> str | None:
    """Why the (P,) `time_s` of `model` is 0 for ranks that send; None if there are no such ranks."""
    is_sender = np.bincount(pattern.src, minlength=len(time_s)) > 0
    ranks = np.flatnonzero(is_sender & (time_s == 0))
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


class Predictor:
    """A pattern on a layout, with everything that does not depend on a profile computed once.

    Predictions for several profiles and models share it, and `update` changes it; see `predict_exchange` for
    the arguments and the errors.
    """

    def __init__(self, pattern: Pattern, layout: Layout, *, mixed: str = "per-level"):
        pattern.check_ranks(layout.num_ranks)
        _check_choice("mixed", mixed, MIXED)
        self.num_ranks = layout.num_ranks
        self.mixed = mixed
        self._prepare(pattern, layout)
        self._changing: tuple[Profile, ChangingExchange] | None = None
        self._slowest_rank = 0
        self._changed: tuple[dict[int, tuple[int, int]], dict[int, int]] = {}, {}

    def _prepare(self, pattern: Pattern, layout: Layout) -> None:
        self._pattern, self._layout = pattern, layout
        self._level = layout.level(pattern.src, pattern.dst)
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._node_group = np.unique(layout.node, return_inverse=True)[1].reshape(-1)
        self._socket_group = layout.socket_group()
        self._most_ranks_of_a_node = int(np.bincount(self._node_group).max())
        self._levels = tuple(name for k, name in enumerate(LEVELS) if (self._level == k).any())
        self._digest: str | None = None

    @property
    def pattern(self) -> Pattern:
        """The messages as they are now."""
        self._apply_changes()
        return self._pattern

    @property
    def layout(self) -> Layout:
        """Where the ranks are now."""
        self._apply_changes()
        return self._layout

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that have messages."""
        self._apply_changes()
        return self._levels

    def update(
        self,
        moved: Mapping[int, tuple[int, int]] | None = None,
        resized: Mapping[int, int] | None = None,
    ) -> None:
        """Move ranks to other (node, socket), all at once, and give messages, by number, another size.

        Two ranks that swap their places are two entries of `moved`. `slowest_now_s` then takes time in
        proportion to what the change reaches, other predictions are made anew.

        Raises InputError, and changes nothing, for a rank or message that is not there, or a negative number.
        """
        moved, resized = moved or {}, resized or {}
        self._check_changes(moved, resized)
        self._changed[0].update(moved)
        self._changed[1].update(resized)
        if self._changing is None:
            return
        changing = self._changing[1]
        if moved:
            places = np.array(list(moved.values()), dtype=np.int64)
            if (places.max(axis=0) >= self._room).any():
                self._changing = None  # a node or socket that there was not: prepared anew
                return
            ranks = np.fromiter(moved, np.int64, len(moved))
            changing.move(ranks, places[:, 0].copy(), places[:, 1].copy())
        if resized:
            messages = np.fromiter(resized, np.int64, len(resized))
            changing.resize(messages, np.fromiter(resized.values(), np.int64, len(resized)))

    def _check_changes(self, moved: Mapping[int, tuple[int, int]], resized: Mapping[int, int]) -> None:
        for rank, (node, socket) in moved.items():
            if not (0 <= rank < self.num_ranks and node >= 0 and socket >= 0):
                raise InputError(
                    f"rank {rank} is moved to node {node}, socket {socket}; ranks are 0 to "
                    f"{self.num_ranks - 1}, nodes and sockets count from 0"
                )
        for message, size_bytes in resized.items():
            if not (0 <= message < len(self._pattern.bytes) and 0 <= size_bytes <= MAX_BYTES):
                raise InputError(
                    f"message {message} is given {size_bytes} bytes; messages are 0 to "
                    f"{len(self._pattern.bytes) - 1}, sizes 0 to {MAX_BYTES}"
                )

    def _apply_changes(self) -> None:
        """Prepare anew what `update` has changed."""
        moved, resized = self._changed
        if not moved and not resized:
            return
        node, socket, size_bytes = (
            values.copy() for values in (self._layout.node, self._layout.socket, self._pattern.bytes)
        )
        for rank, place in moved.items():
            node[rank], socket[rank] = place
        for message, new_bytes in resized.items():
            size_bytes[message] = new_bytes
        text = self._layout.text.removesuffix(_CHANGED) + (_CHANGED if moved else "")
        pattern = Pattern(self._pattern.src, self._pattern.dst, size_bytes) if resized else self._pattern
        self._changed = {}, {}
        self._prepare(pattern, Layout(node, socket, text))

    def slowest_now_s(self, profile: Profile) -> float:
        """Seconds of the slowest rank by the staircase, in time that depends on what `update` has changed.

        For optimisers: the first call with a profile prepares everything. Raises InputError as `predict`
        does, and with `mixed` "union" or more than MOST_CHANGING ranks.
        """
        if self._changing is None or self._changing[0] is not profile:
            self._apply_changes()
            self._changing = profile, self._changing_exchange(profile)
        time_s, self._slowest_rank = self._changing[1].slowest()
        return time_s

    def slowest_rank_now(self) -> int:
        """The rank that the last `slowest_now_s` found."""
        return self._slowest_rank

    def _changing_exchange(self, profile: Profile) -> ChangingExchange:
        if self.mixed != MIXED[0] or self.num_ranks > MOST_CHANGING:
            raise InputError(
                f"an exchange that changes has mixed {MIXED[0]!r} and at most {MOST_CHANGING} ranks; this "
                f"one has {self.mixed!r} and {self.num_ranks}"
            )
        levels = [profile.levels.get(name) for name in LEVELS]
        for name, level in zip(LEVELS, levels, strict=True):
            if level is None and name in self._levels:
                profile.level(name)  # raises
        known = next(level for level in levels if level is not None)
        # A level that is absent has no message yet; if one comes to it, its times are those of another level.
        filled = [level or known for level in levels]
        protocols = [item for level in filled for item in level.protocols]
        first = np.cumsum([0, *(len(level.protocols) for level in filled)])
        self._room = np.array([self._layout.node.max() + 1, self._layout.socket.max() + 1])
        inside, outside = (
            _bandwidth([[_table(level, item) for level in part for item in level.protocols]], self.num_ranks)[
                0
            ]
            for part in (filled[:2], filled[2:])
        )
        return ChangingExchange(
            self._layout.node, self._layout.socket, int(self._room[0]), int(self._room[1]), self._pattern.src,
            self._pattern.dst, self._pattern.bytes, first, np.array([item.min_bytes for item in protocols]),
            np.array([item.latency_s for item in protocols]),
            np.array([bool(item.sender_waits) for item in protocols]), inside, outside,
        )  # fmt: skip

    def predict(self, profile: Profile, model: str = "staircase", *, share: str = "message") -> Prediction:
        """See `predict_exchange`."""
        _check_choice("model", model, MODELS)
        _check_choice("share", share, SHARES)
        self._apply_changes()
        receive_s, intra_node_s, inter_node_s = (part[0] for part in self._times([profile], model, share))
        replicates = _replicates(profile, self._num_replicates(profile, model, share))
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
            pattern_sha256=self._sha256,
            time_interval_s=interval_s,
            extra=self._choices(model, share) | ({"notes": notes} if notes else {}),
        )

    def slowest_s(
        self, profile: Profile, model: str = "staircase", *, share: str = "message"
    ) -> tuple[float, np.ndarray]:
        """Seconds of the slowest rank, and (R,) the same by every replicate of the profile."""
        _check_choice("model", model, MODELS)
        _check_choice("share", share, SHARES)
        self._apply_changes()
        profiles = [profile, *_replicates(profile, self._num_replicates(profile, model, share))]
        _, intra_s, inter_s = self._times(profiles, model, share)
        slowest_s = (intra_s + inter_s).max(axis=1)
        return float(slowest_s[0]), slowest_s[1:]

    def _choices(self, model: str, share: str) -> dict[str, str]:
        """The options that affect the result, for the file of the prediction."""
        share_counts = model == "fair" and "inter_node" in self.levels
        mixed_counts = model in _SHARING and {"intra_socket", "inter_socket"} <= set(self.levels)
        return ({"share": share} if share_counts else {}) | ({"mixed": self.mixed} if mixed_counts else {})

    def _num_replicates(self, profile: Profile, model: str, share: str) -> int:
        if model != "fair" or "inter_node" not in self.levels or not profile.replicates:
            return MAX_REPLICATES
        part = self._part(("inter_node",))
        work = part.classes((profile.level("inter_node"),)).work(share)
        return min(MAX_REPLICATES, max(_MIN_FAIR_REPLICATES, _FAIR_REPLICATES_WORK // max(work, 1)))

    @property
    def _sha256(self) -> str:
        if self._digest is None:
            self._digest = self._pattern.sha256()
        return self._digest

    def _apart(self) -> Iterator["_Part"]:
        """The messages of each level separately."""
        return (self._part((name,)) for name in self.levels)

    def _joint(self) -> Iterator["_Part"]:
        """Messages on and off a socket together: they compete with each other."""
        inside = tuple(name for name in self.levels if name != "inter_node")
        return (self._part(names) for names in (inside, self.levels[len(inside) :]) if names)

    def _part(self, names: tuple[str, ...]) -> "_Part":
        if names not in self._parts:
            kinds = [LEVELS.index(name) for name in names]
            here = np.logical_or.reduce([self._level == kind for kind in kinds])
            group = self._node_group if names == ("inter_node",) else self._socket_group
            src, dst, size_bytes = (
                values[here] for values in (self.pattern.src, self.pattern.dst, self.pattern.bytes)
            )
            level = np.searchsorted(kinds, self._level[here])
            self._parts[names] = _Part(names, src, dst, size_bytes, level, group, self.mixed)
        return self._parts[names]

    def _times(
        self, profiles: Sequence[Profile], model: str, share: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(receive_s, intra_node_s, inter_node_s), each (R, P), one row per profile."""
        shape = (len(profiles), self.num_ranks)
        receive_s, intra_s, inter_s = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for part in self._joint() if model in _SHARING else self._apart():
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
        self._apply_changes()
        notes = []
        for part in self._joint() if model in _SHARING else self._apart():
            both_ends = model == "fair" and part.names == ("inter_node",)
            most, does = part.most_receivers, "receive"
            if both_ends and part.most_senders > most:
                most, does = part.most_senders, "send"
            levels = tuple(profile.level(name) for name in part.names)
            used = part.classes(levels).is_used
            for level in levels:
                here, used = used[: len(level.protocols)], used[len(level.protocols) :]
                tables = [item for item, is_used in zip(level.protocols, here, strict=True) if is_used]
                measured = min((max(item.bandwidth_bytes_per_s) for item in tables), default=0)
                if tables and most > measured:
                    notes.append(
                        f"{level.name}: {most} processes {does} at once, but the profile has N up to "
                        f"{measured}; its bandwidth is constant beyond, so the real times may be longer"
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


@dataclass(frozen=True, eq=False)
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
    _classes: dict[tuple, "_Classes"] = field(default_factory=dict)

    @cached_property
    def fraction(self) -> np.ndarray:
        """(M,) c of equation (9)."""
        if len(self.names) == 1 or self.mixed == "union":
            return staircase.completion_fractions(self.dst, self.bytes)
        return staircase.completion_fractions(self.dst * len(self.names) + self.level, self.bytes)

    @cached_property
    def receivers(self) -> np.ndarray:
        """The ranks that receive at least one byte, by group; the others do not compete."""
        return self._by_group(self.dst)

    @cached_property
    def first(self) -> np.ndarray:
        """(G+1,): where each group begins in `receivers`."""
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

    def classes(self, levels: Sequence[Level]) -> "_Classes":
        """What follows from where the protocols of `levels` begin, computed once."""
        key = _key(levels)
        if key not in self._classes:
            if len(self._classes) >= _MOST_KEPT:
                self._classes.clear()
            self._classes[key] = _Classes.of(self, levels)
        return self._classes[key]

    def times(self, levels: Sequence[tuple[Level, ...]], model: str, share: str) -> _Times:
        """(receive_s, time_s), each (R, P), for parameter sets, a tuple of levels each, that differ only
        in latencies and bandwidths."""
        classes = self.classes(levels[0])
        latencies_s = [[item.latency_s for level in row for item in level.protocols] for row in levels]
        latency_s = np.array(latencies_s) @ classes.num_received.T
        if model == "fair":
            receive_s, send_s = self._fair_s(classes, levels, share)
            return receive_s, latency_s + np.maximum(receive_s, send_s)
        receive_s = self._receive_s(classes, levels, model)
        if model == "staircase":
            return receive_s, latency_s + np.maximum(receive_s, classes.send_s(receive_s))
        return receive_s, latency_s + receive_s

    def _receive_s(self, classes: "_Classes", levels: Sequence[tuple[Level, ...]], model: str) -> np.ndarray:
        tables = _tables(levels)
        single = np.array([[rates[0] for _, rates in row] for row in tables])
        if model == "postal":
            return postal.uncontended_time_s(classes.volume_bytes, single)
        receive_s = np.zeros((len(levels), len(self.group)))
        volume_bytes = classes.volume_bytes[self.receivers]
        if model == "staircase":
            bandwidth = _bandwidth(tables, self.most_receivers)
            receive_s[:, self.receivers] = staircase.group_times_s(self.first, volume_bytes, bandwidth)
        elif model == "max-rate":
            largest = np.array([[rates.max() for _, rates in row] for row in tables])
            for begin, end in zip(self.first[:-1], self.first[1:], strict=True):
                times_s = maxrate.extended_time_s(volume_bytes[begin:end], single, largest)
                receive_s[:, self.receivers[begin:end]] = times_s
        else:
            raise ValueError(f"_receive_s has no formula for the model {model}")
        return receive_s

    def _fair_s(self, classes: "_Classes", levels: Sequence[tuple[Level, ...]], share: str) -> _Times:
        """(R, P) each: when the last message is received, and the last waited-for send delivered."""
        bandwidth = _bandwidth(_tables(levels), max(self.most_receivers, self.most_senders, 1))
        sharing, batch_fraction = classes.sharing(share), classes.batch_fraction(share)

        def last_s(capacity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            completed_s = sharing.completion_times_s(capacity, batch_fraction=batch_fraction)
            ends = np.zeros((2, len(self.group)))
            np.maximum.at(ends[0], self.dst, completed_s)
            np.maximum.at(ends[1], self.src[classes.waits], completed_s[classes.waits])
            return ends[0], ends[1]

        with ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), len(bandwidth))) as pool:
            rows = list(pool.map(last_s, bandwidth))
        return np.array([receive_s for receive_s, _ in rows]), np.array([send_s for _, send_s in rows])


@dataclass(frozen=True, eq=False)
class _Classes:
    """The messages of a part by class, (M,) or (P, C) for C classes.

    Attributes
    ----------
    num_received, volume_bytes : (P, C), messages and bytes that each rank receives.
    is_used : (C,), whether a message with bytes is of the class.
    waits : places of the messages for which their senders wait.
    """

    part: _Part
    message_class: np.ndarray
    num_received: np.ndarray
    volume_bytes: np.ndarray
    is_used: np.ndarray
    waits: np.ndarray
    _sharing: dict[str, fair.Sharing] = field(default_factory=dict)

    @classmethod
    def of(cls, part: _Part, levels: Sequence[Level]) -> "_Classes":
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
        """The waiting senders, where each begins in the arrays that follow, and of its messages the receiver
        and the fraction of (9)."""
        src = self.part.src[self.waits]
        order = np.argsort(src, kind="stable")
        src, messages = src[order], self.waits[order]
        first = np.flatnonzero(np.diff(src, prepend=-1))
        return src[first], first, self.part.dst[messages], self.part.fraction[messages]

    def send_s(self, receive_s: np.ndarray) -> np.ndarray:
        """(R, P) when each rank's waited-for sends are delivered, (8) of Thune et al. 2023: the last of them,
        without the latency of its receiver; 0 without any. `receive_s` (R, P)."""
        senders, first, dst, fraction = self._waited_for
        waits_s = np.zeros(receive_s.shape)
        if len(senders):
            for row, times_s in zip(waits_s, receive_s, strict=True):
                row[senders] = np.maximum.reduceat(fraction * times_s[dst], first)
        return waits_s

    def sharing(self, share: str) -> fair.Sharing:
        if share not in self._sharing:
            part = self.part
            self._sharing[share] = fair.Sharing(
                part.src, part.dst, part.bytes, part.group, self.message_class, len(self.is_used), share
            )
        return self._sharing[share]

    def batch_fraction(self, share: str) -> float:
        one = self.sharing(share)
        return 0.0 if one.num_competing * one.work <= _FAIR_EXACT_WORK else _FAIR_BATCH_FRACTION

    def work(self, share: str) -> int:
        """What `fair` costs for one parameter set: its steps, and every message once."""
        one = self.sharing(share)
        steps = one.num_competing
        if self.batch_fraction(share):
            steps = min(steps, _FAIR_BATCHED_STEPS)
        return one.work * steps + _FAIR_MESSAGE_WORK * one.num_competing


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


def _key(levels: Sequence[Level]) -> tuple:
    """Equal for levels that give every message the same protocol and the same waiting senders."""
    return tuple(tuple((item.min_bytes, item.sender_waits) for item in level.protocols) for level in levels)


def _alike(levels: Sequence[tuple[Level, ...]]) -> Iterable[tuple[list[int], list[tuple[Level, ...]]]]:
    """Rows of `levels` in batches that give every message the same protocol and the same waiting senders."""
    batches: dict[tuple, list[int]] = {}
    for row, group in enumerate(levels):
        batches.setdefault(_key(group), []).append(row)
    return [(rows, [levels[row] for row in rows]) for rows in batches.values()]
