"""The costs of messages and calls of recorded operations, on a layout with the costs of a profile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pipeline_form import PipelineForm
from earlybird.data.profile import REUSED, Profile, Protocol
from earlybird.models.program import Network, Operation, Program
from earlybird.predict.parts import bandwidth_up_to, table
from earlybird.record.early_messages import early_costs, measured_pipelines
from earlybird.record.operations import ALWAYS, EARLY, NEVER, SENDERS, Operations

# The latency of a profile is half a round trip of small messages: what the sender and the receiver do for it
# and what lies between take a third each, since no run of the profile tells them apart.
OVERHEAD_SHARE = 1 / 3
# Sizes that are told apart, in each doubling; how far from the measured sizes they may be; and the least part
# of the time in which bytes move.
_BUCKETS, _BEYOND, _MIN_MOVING = 4, 1.5, 0.2


@dataclass(frozen=True, eq=False)
class Place:
    """Where messages are sent.

    Attributes
    ----------
    profile, layout : of messages and ranks.
    measured : the profile without the parameters that a change has set.
    has_progress : whether messages move while ranks compute, as with a thread of the MPI for it.
    reuse : 1 if caches hold the buffers of messages inside a node, which programs use again, 0 if these come
        from memory; between them between both costs.
    fitted : the profile that the times with reused buffers belong to, if `measured` is a draw of it.
    recorded : the layout as recorded, and the flavour of its profile; None: this one.
    """

    profile: Profile
    layout: Layout
    measured: Profile
    has_progress: bool = False
    reuse: float = 1.0
    fitted: Profile | None = None
    recorded: tuple[Layout, str] | None = None

    def has_moved(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Return whether messages go another way than when they were recorded: by another MPI, or on another
        level."""
        if self.recorded is None:
            return np.zeros(len(src), bool)
        layout, flavour = self.recorded
        if str(self.measured.context.get("flavour", "")) != flavour:
            return np.ones(len(src), bool)
        moved: np.ndarray = layout.level(src, dst) != self.layout.level(src, dst)
        return moved


@dataclass(frozen=True)
class _Cost:
    """The cost of the messages of a protocol: their latency, BW(n) for n up to a number of receivers, and who
    waits for whom as in `models.program.Network`."""

    latency_s: float
    bandwidth_bytes_per_s: np.ndarray
    is_between: bool
    waits: bool
    awaits_receive: bool


def _waiting(protocol: Protocol) -> tuple[bool, bool]:
    waits = bool(protocol.sender_waits)
    return waits, waits if protocol.awaits_receive is None else protocol.awaits_receive


def _costs(place: Place, name: str, size_bytes: np.ndarray, most: int) -> tuple[np.ndarray, list[_Cost]]:
    """Return the cost of each size at a level, as an index, and the costs.

    The latency of a level is that of messages which follow each other; a message that is awaited takes that
    of the ping-pong at least, if the profile has it.
    """
    level, measured = place.profile.level(name), place.measured.level(name)
    protocol = level.protocol_index(size_bytes)
    _, lines = place.measured.ping_pong(name)
    starts = np.array([line.min_bytes for line in lines] or [0.0])
    line = np.maximum(np.searchsorted(starts, size_bytes, side="right") - 1, 0)
    reused_s = measured.extra.get(REUSED) or {}
    bucket = np.zeros(len(size_bytes), np.int64)
    if reused_s and place.reuse > 0:
        bucket = np.round(_BUCKETS * np.log2(np.maximum(size_bytes, 1))).astype(np.int64)
    num_buckets = int(bucket.max(initial=0)) + 1
    kinds, number = np.unique((len(starts) * protocol + line) * num_buckets + bucket, return_inverse=True)
    costs = []
    for kind in kinds.tolist():
        of_kind, of_bucket = divmod(kind, num_buckets)
        of_protocol, of_line = divmod(of_kind, len(starts))
        item, before = (of.protocols[of_protocol] for of in (level, measured))
        alone_s = lines[of_line].latency_s if lines else 0.0
        # What changes the latency of a level changes that of its ping-pong in proportion.
        changed = item.latency_s / before.latency_s if before.latency_s else 1.0
        rates = bandwidth_up_to([[table(level, item)]], most)[0, :, 0]
        latency_s = max(item.latency_s, alone_s * changed)
        if of_bucket:
            fitted = (place.fitted or place.measured).level(name).protocols[of_protocol]
            alone_s = max(fitted.latency_s, alone_s)
            shorter, gains = _gains_of_reuse(fitted, reused_s, alone_s, of_bucket, most)
            latency_s, rates = latency_s * shorter**place.reuse, rates * gains**place.reuse
        costs.append(_Cost(latency_s, rates, name == "inter_node", *_waiting(item)))
    return number.reshape(-1), costs


def _costs_of_early(
    place: Place, name: str, form: PipelineForm, size_bytes: np.ndarray, most: int
) -> tuple[np.ndarray, list[_Cost]]:
    """Return the same of messages in partitions, as far as the profile has measured them; what changes the
    level changes them in proportion."""
    of_level, level_costs = _costs(place, name, size_bytes, most)
    of_measured, measured_costs = _costs(replace(place, profile=place.measured), name, size_bytes, most)
    of_form, form_costs = early_costs(form, size_bytes)
    _, first, number = np.unique(len(form_costs) * of_level + of_form, return_index=True, return_inverse=True)
    costs = []
    for k in first.tolist():
        own, now, before = form_costs[of_form[k]], level_costs[of_level[k]], measured_costs[of_measured[k]]
        latency_s = own.latency_s * (now.latency_s / before.latency_s if before.latency_s else 1.0)
        rates = own.bandwidth_bytes_per_s * now.bandwidth_bytes_per_s / before.bandwidth_bytes_per_s[0]
        costs.append(_Cost(latency_s, rates, now.is_between, now.waits, now.awaits_receive))
    return number.reshape(-1), costs


def _costs_by_message(
    operations: Operations, place: Place, most: int
) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, list[_Cost]]]]:
    """Yield messages that have costs in common, with these."""
    of_level = place.layout.level(operations.src, operations.dst)
    threads = max(map(len, operations.leads_s.values()), default=1)
    for k, name in enumerate(LEVELS):
        here = np.flatnonzero(of_level == k)
        early = here[operations.sender[here] == EARLY]
        form = measured_pipelines(place.measured, name, threads) if len(early) else None
        if form is not None:
            here = np.setdiff1d(here, early)
            yield early, _costs_of_early(place, name, form, operations.bytes[early], most)
        if len(here):
            yield here, _costs(place, name, operations.bytes[here], most)


def _gains_of_reuse(
    protocol: Protocol, reused_s: Mapping[str, Mapping[str, float]], latency_s: float, bucket: int, most: int
) -> tuple[float, np.ndarray]:
    """Return by how much shorter the latency of messages of a size is, and by how much faster their bytes
    move for each n, if a cache holds their buffers; 1 for sizes that were not measured."""
    size_bytes = 2.0 ** (bucket / _BUCKETS)
    counts, measured_s, fitted_s = [], [], []
    for n in sorted(map(int, reused_s)):
        of_size = sorted((int(size), time_s) for size, time_s in reused_s[str(n)].items() if int(size) > 0)
        if not of_size or size_bytes > of_size[-1][0] * _BEYOND or size_bytes < of_size[0][0] / _BEYOND:
            continue
        sizes, times_s = np.array(of_size).T
        rate = float(bandwidth_up_to([[protocol.bandwidth_table()]], n)[0, -1, 0])
        counts.append(n)
        fitted_s.append(n * size_bytes / rate)
        measured_s.append(float(np.exp(np.interp(np.log(size_bytes), np.log(sizes), np.log(times_s)))))
    if not counts:
        return 1.0, np.ones(most)
    fitted, measured = np.array(fitted_s), np.array(measured_s)
    # Caches make nothing slower: longer times are those of one message instead of many.
    measured = np.minimum(measured, latency_s + fitted)
    shorter = float(np.exp(np.log(measured / (latency_s + fitted)).mean()))
    moving_s = np.maximum(measured - shorter * latency_s, _MIN_MOVING * measured)
    gains: np.ndarray = np.interp(np.arange(1, most + 1), counts, np.maximum(fitted / moving_s, 1.0))
    return shorter, gains


def moves_alone(profile: Profile) -> bool:
    """Return whether messages move while ranks compute: those that SimGrid simulates do."""
    return profile.context.get("launcher") == "simgrid"


def reuse_of(operations: Operations, profile: Profile, layout: Layout) -> float:
    """Return 0 if the messages that the ranks of a node complete at once are more than its caches hold."""
    sizes = [int(cache.get("size_bytes") or 0) for cache in profile.machine.get("caches") or ()]
    if not sizes or not len(operations.bytes):
        return 1.0
    num_sets = len(operations.set_first) - 1
    of_set = np.repeat(np.arange(num_sets), np.diff(operations.set_first))
    kinds = operations.operation[operations.set_requests]
    is_message = (kinds == Operation.SEND) | (kinds == Operation.RECEIVE)
    messages = operations.argument[operations.set_requests[is_message]]
    at_once = np.bincount(of_set[is_message], operations.bytes[messages], num_sets)
    rank_of_set = operations.rank[operations.operation == Operation.WAIT_ALL]
    of_rank = np.zeros(operations.size)
    np.maximum.at(of_rank, rank_of_set, at_once)
    return float(np.bincount(layout.node, of_rank).max() <= max(sizes))


def network_of(operations: Operations, place: Place) -> tuple[Network, np.ndarray, np.ndarray]:
    """Return the network, the class of each message, and the (C,) overheads of senders."""
    layout = place.layout
    most = int(np.bincount(layout.node).max())
    costs: list[_Cost] = []
    number = np.zeros(len(operations.bytes), np.int64)
    for here, (own, of_own) in _costs_by_message(operations, place, most):
        number[here] = len(costs) + own
        costs += of_own
    if not costs:  # no messages
        costs = [_Cost(0.0, np.ones(most), False, False, False)]
    # A class is a cost and whether the sender waits in any case.
    num_senders = len(SENDERS)
    kinds, message_class = np.unique(num_senders * number + operations.sender, return_inverse=True)
    kinds = kinds if len(kinds) else np.zeros(1, np.int64)
    chosen = [costs[kind // num_senders] for kind in kinds.tolist()]
    always = kinds % num_senders
    waits = (np.array([cost.waits for cost in chosen]) | (always == ALWAYS)) & (always != NEVER)
    awaits = (waits | np.array([cost.awaits_receive for cost in chosen])) & (always != NEVER)
    latency_s = np.array([cost.latency_s for cost in chosen])
    network = Network(
        layout.node, _groups(layout), np.column_stack([cost.bandwidth_bytes_per_s for cost in chosen]),
        latency_s * (1 - 2 * OVERHEAD_SHARE), latency_s * OVERHEAD_SHARE,
        np.array([cost.is_between for cost in chosen]), waits,
        awaits & (always != EARLY) & (not place.has_progress), awaits,
    )  # fmt: skip
    return network, message_class.reshape(-1), latency_s * OVERHEAD_SHARE


def _groups(layout: Layout) -> np.ndarray:
    width = int(layout.socket.max(initial=0)) + 1
    return np.unique(layout.node * width + layout.socket, return_inverse=True)[1].reshape(-1)


def program_of(
    operations: Operations, network: Network, message_class: np.ndarray, send_s: np.ndarray,
    has_moved: np.ndarray | None = None,
) -> Program:  # fmt: skip
    """Return the program: the part of a send's duration for which its message does not wait follows it. That
    is copying, which takes no longer than the bytes of messages that go another way take there."""
    seconds = np.array(operations.own_s, float)
    if has_moved is not None:
        moved = np.flatnonzero(has_moved & (operations.send_wait >= 0))
        rate = network.bandwidth_bytes_per_s[0, message_class[moved]]
        copying_s = np.where(network.waits[message_class[moved]], 0.0, operations.bytes[moved] / rate)
        calls = operations.send_wait[moved]
        most_s = np.bincount(calls, copying_s + send_s[message_class[moved]], len(seconds))
        seconds[calls] = np.minimum(seconds[calls], most_s[calls])
    sends = np.flatnonzero(operations.operation == Operation.SEND)
    of_message = operations.argument[sends]
    overhead_s = send_s[message_class[of_message]]
    seconds[sends] = overhead_s
    of_call = operations.send_wait[of_message] >= 0
    if of_call.any():
        rest_s = np.zeros(len(seconds))
        np.add.at(rest_s, operations.send_wait[of_message[of_call]], overhead_s[of_call])
        here = np.flatnonzero(rest_s)
        seconds[here] = np.maximum(seconds[here] - rest_s[here], 0.0)
        # A call that waits for its send takes as long as that takes.
        waits = np.array(network.awaits_receive)[message_class[of_message]].astype(bool)
        waits &= operations.is_blocking[of_message]
        waits &= of_call
        seconds[operations.send_wait[of_message[waits]]] = 0.0
    return Program(
        operations.size, operations.thread_rank, operations.first, operations.operation, seconds,
        operations.argument, operations.set_first, operations.set_requests, operations.bytes, message_class,
        operations.semantics, operations.root,
    )  # fmt: skip
