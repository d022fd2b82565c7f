"""Derive from completion times whether senders wait for delivery at each size, and where that changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas

from earlybird.data.kernels import COMPLETION
from earlybird.data.levels import LEVELS
from earlybird.data.measure_commands import ANYWHERE, LaunchOptions, measure_command
from earlybird.data.profile import Level, Protocol
from earlybird.data.units import format_bytes
from earlybird.fit.switches import reported_switch

# A send waits if, with a late receiver and with a prompt one, it completes only after this share of the time
# until its message has arrived. Late: the receiver pauses for three deliveries or more, so a send that needs
# the receiver takes at least three quarters, and one that does not at most a quarter. Prompt: the models
# charge a rank the whole delivery or none of it, so the wrong choice costs least at one half. Both are
# needed: over TCP a rendezvous of some 100 KB needs a reply from its receiver, but completes long before
# delivery, because the kernel holds the data.
WAITS_SHARE = 0.5
# A send that is complete after a share between these of the delivery waits for a part of it: the rest is
# buffered, about as many bytes for all sizes. One size whose sends buffer less than this share of
# them, and all larger ones, wait for the whole delivery.
PART_SHARES = (0.1, 0.95)
WHOLE_SHARE = 0.25
# The sum of the squared errors of buffers, as a part of that of one share for all sizes, must be below this.
BETTER = 0.5
# As messages grow, sends change at most twice between waiting and not waiting. The first and the second
# change must correct this many sizes. A single size that differs from its neighbours counts as noise.
STEP_GAINS = (1, 2)


@dataclass(frozen=True)
class Waiting:
    """The decision for one level on whether its sends wait for delivery.

    Attributes
    ----------
    size_bytes : (S,) measured sizes, ascending.
    share : (S,) share of the delivery after which a send was complete, the lower of late and prompt receiver.
    decided : (S,) bool, constant except for two steps at most.
    oversubscribed : true if ranks shared cores.
    buffered_bytes : bytes of a message that are buffered when its send is complete, if it waits for a part;
        None if no size does.
    whole_from_bytes : smallest size from which sends nevertheless wait for the whole delivery; None if there
        is none.
    awaiting_bytes : the last size that does not, -1 if all do, and the smallest from which on all sends to a
        late receiver were complete only when that had come, though their senders do not wait for delivery:
        the data is buffered once the receive is posted; None if there is none.
    """

    size_bytes: np.ndarray
    share: np.ndarray
    decided: np.ndarray
    oversubscribed: bool
    buffered_bytes: int | None = None
    whole_from_bytes: int | None = None
    awaiting_bytes: tuple[int, int] | None = None

    def exceptions_bytes(self) -> list[int]:
        """Return the sizes at which the measurement differs from the decision."""
        return [int(size) for size in self.size_bytes[(self.share >= WAITS_SHARE) != self.decided]]

    def steps(self) -> list[tuple[int, int]]:
        """Return (last size before, first size after) for every step."""
        pairs = pairwise(zip(self.size_bytes.tolist(), self.decided, strict=True))
        return [(before, after) for (before, was), (after, now) in pairs if was != now]


@dataclass(frozen=True)
class _Piece:
    """A range of sizes from min_bytes on that all wait or all do not; `extra` goes to the protocol that
    begins there.
    """

    min_bytes: int
    waits: bool
    extra: Mapping[str, Any]
    buffered_bytes: int | None = None
    awaits_receive: bool | None = None


def find_waiting(completions: pandas.DataFrame) -> dict[str, Waiting]:
    """Return level -> whether its senders wait, from `Observations.completions`.

    The share of a point is the median of the shares of its iterations, then over launches: a disturbance of
    an iteration affects both of its times. Samples with more ranks than cores count only if there are no
    others. A size without late or prompt receiver counts only if the other one shows that senders do not
    wait. Messages of several pairs at once show only what is buffered.
    """
    return {
        level: waiting
        for level in LEVELS
        if (waiting := _of_level(completions[completions.level == level])) is not None
    }


def with_senders(level: Level, waiting: Waiting | None, thresholds_bytes: Mapping[str, int]) -> Level:
    """Return `level` with measured `sender_waits`; a protocol in which it changes becomes several of the same
    name.

    A step lies between two measured sizes. It is placed at the beginning of a protocol between them, else at
    a threshold that the library reports, else at the size after it. Protocols outside the measured sizes do
    not change.
    """
    if waiting is None:
        return level
    pieces = _pieces(level, waiting, thresholds_bytes)
    ends = [*(protocol.min_bytes for protocol in level.protocols[1:]), np.inf]
    protocols = [
        part
        for protocol, end in zip(level.protocols, ends, strict=True)
        for part in _divided(protocol, end, pieces, waiting)
    ]
    return replace(level, protocols=tuple(protocols))


def warnings(
    levels: Iterable[Level], found: Mapping[str, Waiting], launch: LaunchOptions = ANYWHERE
) -> list[str]:
    """Return the caveats of the `sender_waits` of fitted levels, which were measured with `launch`."""
    command = measure_command(COMPLETION.name, {}, launch)
    texts = []
    for level in levels:
        waiting = found.get(level.name)
        names = [p.name for p in level.protocols if not p.extra.get("sender_waits_measured")]
        if names:
            said = (
                "whether senders wait for delivery is assumed from the protocol's name "
                f"({', '.join(dict.fromkeys(names))})"
            )
            if len(names) == len(level.protocols) == 1:
                wait = "wait" if level.protocols[0].sender_waits else "do not wait"
                said = (
                    f"one line describes all sizes and is named {names[0]}, but times alone do not show "
                    f"which protocol the MPI uses; that senders {wait} for delivery is assumed"
                )
            texts.append(
                f"{level.name}: {said}; `{command}` measures it; fit that run together with these runs"
            )
        if waiting is None:
            continue
        if exceptions := waiting.exceptions_bytes():
            sizes = ", ".join(map(format_bytes, exceptions))
            texts.append(
                f"{level.name}: at {sizes} the measurement of sender waiting contradicts the profile, "
                f"in which it changes {len(waiting.steps())} times with the size"
            )
        if waiting.oversubscribed:
            texts.append(
                f"{level.name}: completion was measured with more ranks than cores; a late receiver "
                "still shows which sends do not wait"
            )
    return texts


def _of_level(rows: pandas.DataFrame) -> Waiting | None:
    keys = ["size_bytes", "receiver", "pairs"]
    rows = rows[~rows.oversubscribed | rows.groupby(keys).oversubscribed.transform("all")]
    shared, rows = rows[rows.pairs > 1], rows[rows.pairs == 1]
    if rows.empty:
        return None
    between_nodes = rows.level.iloc[0] == "inter_node"
    buffered_bytes, whole_from_bytes = (
        _buffered(shared if len(shared) else rows) if between_nodes else (None, None)
    )
    keys = keys[:2]
    shares = rows.groupby(keys).share.median().unstack("receiver")
    share = shares.min(axis=1)
    known = shares.reindex(columns=["late", "prompt"]).notna().all(axis=1) | (share < WAITS_SHARE)
    share = share[known]
    if share.empty:
        return None
    values = share.to_numpy()
    return Waiting(
        share.index.to_numpy(),
        values,
        _with_few_steps(values),
        bool(rows[rows.size_bytes.isin(share.index)].oversubscribed.any()),
        buffered_bytes,
        None if whole_from_bytes is None or _completes_alone(shares, whole_from_bytes) else whole_from_bytes,
        _awaiting(shares),
    )


def _completes_alone(shares: pandas.DataFrame, from_bytes: int) -> bool:
    """Return whether a send of this size or more was complete long before a late receiver had its message."""
    late = shares.reindex(columns=["late"])["late"]
    return bool((late[late.index >= from_bytes] < WAITS_SHARE).any())


def _awaiting(shares: pandas.DataFrame) -> tuple[int, int] | None:
    """Return `Waiting.awaiting_bytes`. A late receiver has its message after the pause, which is most of the
    time, so a send that was complete after WAITS_SHARE of it had awaited the end of the pause."""
    both = shares.reindex(columns=["late", "prompt"]).dropna()
    awaits = (both["late"] >= WAITS_SHARE) & (both["prompt"] < WAITS_SHARE)
    others = np.flatnonzero(~awaits.to_numpy() & (both["late"] < WAITS_SHARE).to_numpy())
    first = int(others[-1]) + 1 if len(others) else 0
    if first == len(both) or not awaits.iloc[first:].any():
        return None
    return (int(both.index[first - 1]) if first else -1), int(both.index[first])


def _buffered(rows: pandas.DataFrame) -> tuple[int | None, int | None]:
    """Return `Waiting.buffered_bytes` and `whole_from_bytes`, from the sends of data with a prompt receiver;
    the first is None if a constant share of the delivery, such as a copy, explains the other sizes better.
    """
    prompt = rows[(rows.receiver == "prompt") & (rows.size_bytes > 0)]
    shares = prompt.groupby("size_bytes").share.median()
    size_bytes, share = shares.index.to_numpy(dtype=float), shares.to_numpy()
    left_bytes = size_bytes * (1 - share)
    # From the largest down: whole deliveries, where others of this size would leave the buffered bytes.
    whole_from = len(share)
    while (
        whole_from
        and share[whole_from - 1] >= PART_SHARES[1]
        and not (left_bytes[whole_from - 1] >= WHOLE_SHARE * left_bytes[: whole_from - 1].max(initial=0.0))
    ):
        whole_from -= 1
    size_bytes, share, left_bytes = (values[:whole_from] for values in (size_bytes, share, left_bytes))
    candidates = left_bytes[(share >= PART_SHARES[0]) & (share < PART_SHARES[1])]
    whole_from_bytes = int(shares.index[whole_from]) if 0 < whole_from < len(shares) else None
    if not len(candidates):
        return None, whole_from_bytes

    def squares(buffered: float) -> float:
        least = np.median(share[size_bytes <= buffered]) if (size_bytes <= buffered).any() else 0.0
        return float(((share - np.maximum(1 - buffered / size_bytes, least)) ** 2).sum())

    best = min(candidates.tolist(), key=squares)
    if squares(best) >= BETTER * float(((share - np.median(share)) ** 2).sum()):
        return None, whole_from_bytes
    near = left_bytes[(size_bytes > best) & (share < PART_SHARES[1])]
    buffered = float(np.median(near)) if len(near) else best
    return round(buffered), whole_from_bytes


def _with_few_steps(share: np.ndarray) -> np.ndarray:
    """Return (S,) bool, the division that the fewest measured sizes contradict; among equals the nearest to
    `share`.

    The search is exhaustive, with steps in either direction; each further step must correct `STEP_GAINS`
    sizes.
    """
    measured = share >= WAITS_SHARE
    best = _nearest(0, measured, share)
    for num_steps, gain in enumerate(STEP_GAINS, start=1):
        if num_steps >= len(share):
            break
        candidate = _nearest(num_steps, measured, share)
        if _wrong(best, measured) - _wrong(candidate, measured) >= gain:
            best = candidate
    return best


def _nearest(num_steps, measured, share):
    size_index = np.arange(len(share))
    candidates = [
        np.searchsorted(cuts, size_index, side="right") % 2 == odd
        for cuts in combinations(range(1, len(share)), num_steps)
        for odd in (0, 1)
    ]
    return min(candidates, key=lambda decided: (_wrong(decided, measured), _distance(decided, share)))


def _wrong(decided, measured):
    return int((decided != measured).sum())


def _distance(decided, share):
    return float(((np.clip(share, 0, 1) - decided) ** 2).sum())


def _pieces(level: Level, waiting: Waiting, thresholds_bytes: Mapping[str, int]) -> list[_Piece]:
    pieces = [_Piece(0, bool(waiting.decided[0]), {}, waiting.buffered_bytes)]
    for before, after in waiting.steps():
        extra: dict[str, Any] = {"sender_waits_changes_between_bytes": [before, after]}
        begins, threshold = _begin(level, before, after, thresholds_bytes)
        pieces.append(_Piece(begins, not pieces[-1].waits, extra | threshold, waiting.buffered_bytes))
    pieces = _with_awaiting(level, waiting, thresholds_bytes, pieces)
    start = waiting.whole_from_bytes
    if start is None:
        return pieces
    extra = next((piece.extra for piece in pieces if piece.min_bytes == start), {})
    before = [piece for piece in pieces if piece.min_bytes < start]
    if before and before[-1].waits and before[-1].buffered_bytes is None:
        return before
    return [*before, _Piece(start, True, extra)]


def _begin(
    level: Level, before: int, after: int, thresholds_bytes: Mapping[str, int]
) -> tuple[int, dict[str, Any]]:
    """Return where a step between two measured sizes is, and the library variable that says so."""
    begun = [p.min_bytes for p in level.protocols if before < p.min_bytes <= after]
    reported = reported_switch(before, after, thresholds_bytes)
    if begun:
        return begun[0], {}
    if reported is not None:
        name, start = reported
        return start, {"threshold": name}
    return after, {}


def _with_awaiting(
    level: Level, waiting: Waiting, thresholds_bytes: Mapping[str, int], pieces: list[_Piece]
) -> list[_Piece]:
    """Return the pieces, divided where messages of senders that do not wait begin to await their receive."""
    if waiting.awaiting_bytes is None:
        return pieces
    before, after = waiting.awaiting_bytes
    start, threshold = (0, {}) if before < 0 else _begin(level, before, after, thresholds_bytes)
    if all(piece.min_bytes != start for piece in pieces):
        within = [piece for piece in pieces if piece.min_bytes < start][-1]
        pieces = sorted(
            [*pieces, replace(within, min_bytes=start, extra=threshold)], key=lambda piece: piece.min_bytes
        )
    return [
        replace(piece, awaits_receive=True) if piece.min_bytes >= start and not piece.waits else piece
        for piece in pieces
    ]


def _divided(protocol: Protocol, end: float, pieces: list[_Piece], waiting: Waiting) -> list[Protocol]:
    """Divide `protocol`, which ends before `end` bytes, at the pieces that begin inside it."""
    last_bytes = max(waiting.size_bytes[-1], waiting.whole_from_bytes or 0)
    starts = [protocol.min_bytes, *(p.min_bytes for p in pieces if protocol.min_bytes < p.min_bytes < end)]
    parts = []
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        # These keys describe the beginning of the protocol, not that of a later part.
        dropped = {"begins_between_bytes", "threshold"} if start > protocol.min_bytes else set()
        part = replace(
            protocol, min_bytes=start, extra={k: v for k, v in protocol.extra.items() if k not in dropped}
        )
        if start <= last_bytes and stop > waiting.size_bytes[0]:
            piece = [p for p in pieces if p.min_bytes <= start][-1]
            begins = piece.extra if piece.min_bytes == start else {}
            extra = {**part.extra, "sender_waits_measured": True, **begins}
            part = replace(
                part, sender_waits=piece.waits, buffered_bytes=piece.buffered_bytes,
                awaits_receive=piece.awaits_receive, extra=extra,
            )  # fmt: skip
        parts.append(part)
    return parts
