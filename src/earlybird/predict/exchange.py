"""Predict the time of an exchange: competing messages by the formulas of `models`, added over levels."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.exchange_models import (
    BOTH_ENDS,
    COMBINE,
    MIXED,
    SHARES,
    SHARING,
    ExchangeModel,
    exchange_model,
)
from earlybird.data.kinds import require_kind
from earlybird.data.layout import MAX_PLACE, Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import Profile
from earlybird.data.threads import begun
from earlybird.data.units import MAX_BYTES
from earlybird.models.compiled import ChangingExchange, select_messages
from earlybird.predict.changing import changing_exchange
from earlybird.predict.default_model import ChosenModel, choose_model
from earlybird.predict.packing import Packing, packing_times_s
from earlybird.predict.parts import Part, alike
from earlybird.predict.ranges import INTERVAL_PERCENT
from earlybird.predict.solvers import SOLVERS, times_s

MAX_REPLICATES = 200
# What a model may cost for all replicates together (`solvers.Solver.work`); there are a few in any case.
_REPLICATES_WORK, _MIN_REPLICATES = 2 * 10**8, 5
# With this many replicates an interval covers 90 % or more, and needs no note.
_ENOUGH_REPLICATES = 40
_CHANGED = ", changed"
# The kinds of `update`'s arguments; isinstance is fast with the first one.
_MAPPINGS = (dict, Mapping)
# Messages of which the levels are looked up together.
_AT_ONCE = 1 << 18
# The number of ranks that a note lists.
_MAX_NAMED = 8


def predict_exchange(
    pattern: Pattern,
    layout: Layout,
    profile: Profile,
    model: str | None = None,
    *,
    share: str = SHARES[0],
    mixed: str = MIXED[0],
    combine: str = COMBINE[0],
    packing: Packing | None = None,
) -> Prediction:
    """Predict the seconds per rank for the messages of `pattern`, all posted at once, on `layout` (Thune et
    al. 2023).

    Parameters
    ----------
    model : one of `data.exchange_models`, by default that of `choose_model`; then `extra` says why.
    share : recipient of equal shares in `fair` between nodes: every `message`, or every receiving `process`.
    mixed : completion of messages if a rank receives from its own socket and from others of its node: (9)
        `per-level`, both parts ending with the last byte that the rank receives, or over the `union`.
    combine : the `sum` (18) of a rank's times inside its node and between nodes; or their `overlap`: its
        latencies are added, and of the rest the longer time counts, as if different hardware carried the
        messages.
    packing : a description of how each message is packed before it is sent and unpacked after it is received,
        with the costs of the profile; this time is added to that of each rank. By default messages are not
        packed.

    Returns
    -------
    Prediction with arrays of shape (P,), P from the layout. If the profile has replicates, `time_interval_s`
    has the 2.5 and 97.5 percentiles of the same model over them (at most the first 200; `fair` and `queue`
    use fewer for large exchanges, at least 5; a note says so below 40): the uncertainty of the parameters,
    not of the model.

    Raises
    ------
    InputError : the pattern has a rank outside the layout; the profile does not have a required level or
        BW(1); the model, `share`, `mixed` or `combine` is unknown; an argument is of another kind.
    """
    return Predictor(pattern, layout, mixed=mixed, combine=combine).predict(
        profile, model, share=share, packing=packing
    )


def silent_senders(pattern: Pattern, time_s: np.ndarray, model: str, *, besides: str = "") -> str | None:
    """Return the reason why the (P,) `time_s` of `model` is 0 for ranks that send; None if there are no such
    ranks.
    """
    is_sender = np.zeros(len(time_s), bool)
    is_sender[pattern.src] = True
    ranks = np.flatnonzero(is_sender & (time_s == 0))
    if not len(ranks):
        return None
    named = ", ".join(map(str, ranks[:_MAX_NAMED])) + (", ..." if len(ranks) > _MAX_NAMED else "")
    subject = f"ranks {named} only send and are" if len(ranks) > 1 else f"rank {named} only sends and is"
    why = (
        "the profile says that senders of such messages do not wait for delivery"
        if exchange_model(model).is_joint
        else f"{model} counts what a rank receives"
    )
    return f"{subject} predicted to take 0 s{besides}: {why}, and no model contains the cost of the send call"


def used_levels(pattern: Pattern, layouts: Iterable[Layout]) -> tuple[str, ...]:
    """Return the levels that have messages on any of the layouts, the nearest first."""
    used: set[str] = set()
    for layout in layouts:
        pattern.check_ranks(layout.num_ranks)
        for begin in range(0, pattern.num_messages, _AT_ONCE):
            ends = (values[begin : begin + _AT_ONCE] for values in (pattern.src, pattern.dst))
            used |= set(_names(layout.levels_of_messages(*ends)))
            if len(used) == len(LEVELS):
                break
    return tuple(name for name in LEVELS if name in used)


def _names(level: np.ndarray) -> tuple[str, ...]:
    """Return the names of the levels of the messages; `level` (M,) has their indices."""
    return tuple(name for k, name in enumerate(LEVELS) if (level == k).any())


class Predictor:
    """A pattern on a layout, with all data that do not depend on a profile computed once.

    Predictions for several profiles and models share it, and `update` changes it; see `predict_exchange` for
    the arguments and the errors.
    """

    def __init__(self, pattern: Pattern, layout: Layout, *, mixed: str = MIXED[0], combine: str = COMBINE[0]):
        require_kind(pattern, Pattern, "the pattern", "a Pattern, such as Pattern.load('mesh.csv')")
        require_kind(layout, Layout, "the layout", "a Layout, such as Layout.parse('2x2x8')")
        pattern.check_ranks(layout.num_ranks)
        _check_choice("mixed", mixed, MIXED)
        _check_choice("combine", combine, COMBINE)
        self.num_ranks = layout.num_ranks
        self.mixed, self.combine = mixed, combine
        self._prepare(pattern, layout)
        self._changing: tuple[Profile, ChangingExchange] | None = None
        self._slowest_rank = 0
        self._changed: tuple[dict[int, tuple[int, int]], dict[int, int]] = {}, {}

    def _prepare(self, pattern: Pattern, layout: Layout) -> None:
        self._pattern, self._layout = pattern, layout
        self._level = layout.levels_of_messages(pattern.src, pattern.dst)
        self._parts: dict[tuple[str, ...], Part] = {}
        self._node_group = layout.node_group()
        self._socket_group = layout.socket_group()
        self._most_ranks_of_a_node = int(np.bincount(self._node_group).max())
        self._levels = _names(self._level)
        self._digest: str | None = None
        self._total_bytes = pattern.total_bytes

    @property
    def pattern(self) -> Pattern:
        """The messages after all updates."""
        self._apply_changes()
        return self._pattern

    @property
    def layout(self) -> Layout:
        """The placement of the ranks after all updates."""
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

        Two ranks that swap their places are two entries of `moved`. The next `slowest_now_s` takes time in
        proportion to the messages that the change affects, and reads every rank once; other predictions
        prepare the exchange again.

        Raises InputError, and changes nothing, for a rank or message that does not exist, for numbers that
        are negative or not whole, for sizes that add up to more than MAX_BYTES, and for arguments that are
        not mappings.
        """
        places = self._checked_places({} if moved is None else moved)
        sizes, total_bytes = self._checked_sizes({} if resized is None else resized)
        self._changed[0].update(places)
        self._changed[1].update(sizes)
        self._total_bytes = total_bytes
        if self._changing is None:
            return
        changing = self._changing[1]
        if places:
            place = np.array(list(places.values()), dtype=np.int64)
            if not changing.has(place):
                self._changing = None  # a node or socket that there was not: prepared again
                return
            ranks = np.fromiter(places, np.int64, len(places))
            changing.move(ranks, place[:, 0].copy(), place[:, 1].copy())
        if sizes:
            messages = np.fromiter(sizes, np.int64, len(sizes))
            changing.resize(messages, np.fromiter(sizes.values(), np.int64, len(sizes)))

    def _checked_places(self, moved: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        require_kind(moved, _MAPPINGS, "moved", "the new place of each rank: {rank: (node, socket)}")
        places = {}
        for rank, place in moved.items():
            try:
                node, socket = place
            except (TypeError, ValueError):
                raise InputError(
                    f"rank {rank} is moved to {place!r}; give a node and a socket, such as (0, 1)"
                ) from None
            if not (
                _within(rank, self.num_ranks - 1) and _within(node, MAX_PLACE) and _within(socket, MAX_PLACE)
            ):
                raise InputError(
                    f"rank {rank} is moved to node {node}, socket {socket}; give whole numbers: ranks are 0 "
                    f"to {self.num_ranks - 1}, nodes and sockets count from 0"
                )
            places[int(rank)] = int(node), int(socket)
        return places

    def _checked_sizes(self, resized: Mapping[int, int]) -> tuple[dict[int, int], int]:
        """Return the sizes by message, and the total of all messages after the update."""
        require_kind(resized, _MAPPINGS, "resized", "the new size of each message: {message: bytes}")
        sizes, total_bytes = {}, self._total_bytes
        for message, size_bytes in resized.items():
            if not (_within(message, len(self._pattern.bytes) - 1) and _within(size_bytes, MAX_BYTES)):
                raise InputError(
                    f"message {message} is given {size_bytes} bytes; give whole numbers: messages are 0 to "
                    f"{len(self._pattern.bytes) - 1}, sizes 0 to {MAX_BYTES}"
                )
            message = int(message)
            before_bytes = self._changed[1].get(message, int(self._pattern.bytes[message]))
            sizes[message] = int(size_bytes)
            total_bytes += sizes[message] - before_bytes
        if total_bytes > MAX_BYTES:
            raise InputError(f"the pattern's sizes would add up to more than {MAX_BYTES} bytes")
        return sizes, total_bytes

    def _apply_changes(self) -> None:
        """Prepare again the data that `update` has changed."""
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
        text = self._layout.text
        if moved:
            text = text.removesuffix(_CHANGED) + _CHANGED
        pattern = Pattern(self._pattern.src, self._pattern.dst, size_bytes) if resized else self._pattern
        self._changed = {}, {}
        self._prepare(pattern, Layout(node, socket, text))

    def slowest_now_s(self, profile: Profile) -> float:
        """Return the seconds of the slowest rank by the staircase, in time that depends on what `update` has
        changed.

        It serves optimisers: the first call with a profile prepares everything. Raises InputError as
        `predict` and `changing_exchange` do, for a profile without levels, and if times overlap.
        """
        if self.combine != COMBINE[0]:
            raise InputError(f"slowest_now_s needs combine {COMBINE[0]!r}; this one has {self.combine!r}")
        if self._changing is None or self._changing[0] is not profile:
            _require_profile(profile)
            self._changing = profile, changing_exchange(self.pattern, self.layout, profile, self.mixed)
        changing = self._changing[1]
        for level, name in enumerate(LEVELS):
            if name not in profile.levels and changing.num_messages(level):
                profile.level(name)  # raises: its times are those of another level
        time_s, self._slowest_rank = changing.slowest()
        return time_s

    def slowest_rank_now(self) -> int:
        """Return the slowest rank of the last call of `slowest_now_s`."""
        return self._slowest_rank

    def choose_model(self, profile: Profile, named: str | None = None) -> ChosenModel:
        """Return the model with which this exchange is predicted, `named` or not; see `choose_model`."""
        _require_profile(profile)
        return choose_model(self.levels, profile, named)

    def predict(
        self,
        profile: Profile,
        model: str | None = None,
        *,
        share: str = SHARES[0],
        packing: Packing | None = None,
    ) -> Prediction:
        """Predict the times of the exchange; see `predict_exchange`."""
        chosen = self.choose_model(profile, model)
        record, model = self._checked(profile, chosen.name, share), chosen.name
        sha256 = begun(self._sha256)  # next to the computation, for many messages take as long
        found = self._times([profile], record, share)
        replicates = _replicates(profile, self._num_replicates(profile, record, share))
        interval_s = None
        if replicates:
            interval_s = np.percentile(
                self._times(replicates, record, share).time_s(self.combine), INTERVAL_PERCENT, axis=0
            ).T
        notes = self.reservations(profile, model)
        besides = " besides packing" if packing else ""
        if silent := silent_senders(self.pattern, found.time_s(self.combine)[0], model, besides=besides):
            notes.append(silent)
        if len(replicates) < min(len(profile.replicates), _ENOUGH_REPLICATES):
            notes.append(_few_replicates(len(replicates)))
        packing_s = None
        if packing is not None:
            packing_s, unmeasured = packing_times_s(self.pattern, self.num_ranks, profile, packing)
            notes += unmeasured
            interval_s = None if interval_s is None else interval_s + packing_s[:, None]
        prediction = Prediction(
            model=model,
            receive_s=found.receive_s[0],
            intra_node_s=found.intra_node_s[0],
            inter_node_s=found.inter_node_s[0],
            overlap_s=found.overlap_s[0] if self.combine == "overlap" else None,
            packing_s=packing_s,
            profile_id=profile.id,
            pattern_sha256=sha256(),
            layout=self._layout.text,
            time_interval_s=interval_s,
            extra=chosen.to_json()
            | self._choices(record, share)
            | (packing.to_json() if packing else {})
            | ({"notes": notes} if notes else {}),
        )
        return prediction.require_possible()

    def slowest_s(
        self, profile: Profile, model: str | None = None, *, share: str = SHARES[0]
    ) -> tuple[float, np.ndarray]:
        """Return the seconds of the slowest rank, and (R,) its seconds by every replicate of the profile."""
        record = self._checked(profile, model, share)
        profiles = [profile, *_replicates(profile, self._num_replicates(profile, record, share))]
        slowest_s = self._times(profiles, record, share).time_s(self.combine).max(axis=1)
        return float(slowest_s[0]), slowest_s[1:]

    def slowest_at_once_s(self, profile: Profile, model: str | None = None) -> float:
        """Return the seconds of the slowest rank if its messages inside a node and between nodes overlap."""
        record = self._checked(profile, model, SHARES[0])
        return float(self._times([profile], record, SHARES[0]).time_s("overlap").max())

    def _checked(self, profile: Profile, model: str | None, share: str) -> ExchangeModel:
        """Return the record of `model`, or of the default, with all changes applied; raise InputError."""
        record = exchange_model(self.choose_model(profile, model).name)
        _check_choice("share", share, SHARES)
        self._apply_changes()
        return record

    def _choices(self, model: ExchangeModel, share: str) -> dict[str, str]:
        """Return the options that affect the result, for the file of the prediction."""
        share_counts = model is SHARING and "inter_node" in self.levels
        mixed_counts = model.is_joint and {"intra_socket", "inter_socket"} <= set(self.levels)
        overlaps = self.combine == "overlap" and "inter_node" in self.levels and len(self.levels) > 1
        return (
            ({"share": share} if share_counts else {})
            | ({"mixed": self.mixed} if mixed_counts else {})
            | ({"combine": self.combine} if overlaps else {})
        )

    def _num_replicates(self, profile: Profile, model: ExchangeModel, share: str) -> int:
        work_of = SOLVERS[model.name].work
        if work_of is None or "inter_node" not in self.levels or not profile.replicates:
            return MAX_REPLICATES
        part = self._part(("inter_node",))
        work = work_of(part.classes((profile.level("inter_node"),)), share)
        return min(MAX_REPLICATES, max(_MIN_REPLICATES, _REPLICATES_WORK // max(work, 1)))

    def _sha256(self) -> str:
        if self._digest is None:
            self._digest = self._pattern.sha256()
        return self._digest

    def _apart(self) -> Iterator[Part]:
        """Yield the messages of each level separately."""
        return (self._part((name,)) for name in self.levels)

    def _joint(self) -> Iterator[Part]:
        """Yield the messages inside nodes together, on and off a socket, because they compete with each
        other; then the messages between nodes.
        """
        inside = tuple(name for name in self.levels if name != "inter_node")
        return (self._part(names) for names in (inside, self.levels[len(inside) :]) if names)

    def _part(self, names: tuple[str, ...]) -> Part:
        if names not in self._parts:
            kinds = [LEVELS.index(name) for name in names]
            group = self._node_group if names == ("inter_node",) else self._socket_group
            src, dst, size_bytes, level = select_messages(
                self._level, kinds, self._pattern.src, self._pattern.dst, self._pattern.bytes
            )
            self._parts[names] = Part(names, src, dst, size_bytes, level, group, self.mixed)
        return self._parts[names]

    def _times(self, profiles: Sequence[Profile], model: ExchangeModel, share: str) -> "_Times":
        """Compute the times, one row per profile."""
        shape = (len(profiles), self.num_ranks)
        receive_s, transfer_s, latency_s = (np.zeros((2, *shape)) for _ in range(3))
        for part in self._joint() if model.is_joint else self._apart():
            between_nodes = part.names == ("inter_node",)
            name = model.name if between_nodes else model.inside or model.name
            levels = [tuple(profile.level(name) for name in part.names) for profile in profiles]
            for rows, sets in alike(levels):
                of_part = times_s(part, sets, name, share)
                for sum_s, part_s in zip((receive_s, transfer_s, latency_s), of_part, strict=True):
                    sum_s[int(between_nodes)][rows] += part_s
        both_receive_s = receive_s.max(axis=0) if self.combine == "overlap" else receive_s.sum(axis=0)
        intra_s, inter_s = transfer_s + latency_s
        return _Times(both_receive_s, intra_s, inter_s, transfer_s.min(axis=0))

    def reservations(self, profile: Profile, model: str | None = None) -> list[str]:
        """Return notes on a prediction from `profile` outside the measured range, one sentence each."""
        record = self._checked(profile, model, SHARES[0])
        notes = []
        for part in self._joint() if record.is_joint else self._apart():
            both_ends = record.limits == BOTH_ENDS and part.names == ("inter_node",)
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
        if record.inside and "inter_node" not in self.levels:
            notes.append(
                f"no message goes between nodes, so the result of {record.name} is that of the "
                f"{record.inside}"
            )
        cores = profile.machine.get("cores")
        if isinstance(cores, int) and self._most_ranks_of_a_node > cores:
            notes.append(
                f"the layout puts {self._most_ranks_of_a_node} ranks on a node, but the profile's machine "
                "has "
                f"{cores} cores; no model contains the time that ranks wait for a core"
            )
        return notes


class _Times(NamedTuple):
    """The (R, P) seconds to receive without latency, inside nodes and between them, and the part of these two
    that is simultaneous if they overlap.
    """

    receive_s: np.ndarray
    intra_node_s: np.ndarray
    inter_node_s: np.ndarray
    overlap_s: np.ndarray

    def time_s(self, combine: str) -> np.ndarray:
        both_s = self.intra_node_s + self.inter_node_s
        return both_s - self.overlap_s if combine == "overlap" else both_s


def _within(value: object, last: int) -> bool:
    """Return whether `value` is a whole number from 0 to `last`."""
    try:
        return 0 <= operator.index(value) <= last  # type: ignore[arg-type]
    except TypeError:
        return False


def _require_profile(profile: Profile) -> None:
    require_kind(profile, Profile, "the profile", "a Profile, such as Profile.load('profile.json')")


def _check_choice(name: str, given: str, allowed: Sequence[str]) -> None:
    if not isinstance(given, str) or given not in allowed:
        raise InputError(f"the {name} is {given!r}; choose one of {', '.join(allowed)}")


def _replicates(profile: Profile, largest_number: int) -> list[Profile]:
    """Return the first refitted parameter sets of a profile."""
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
