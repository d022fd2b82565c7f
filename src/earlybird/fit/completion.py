"""Whether senders wait for delivery: what completion times say of each size, and where that changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas

from earlybird.data.layout import LEVELS
from earlybird.data.profile import Level, Protocol
from earlybird.data.units import format_bytes
from earlybird.fit.switches import told_switch

# A send waits where, with a late receiver and with a prompt one, it is complete only after this share of the
# time until its message has arrived. Late: the receiver's pause is three deliveries or more, so a send that
# needs the receiver takes three quarters at least, one that does not a quarter at most. Prompt: in a model a
# rank's own time holds all of the delivery or nothing of it, so halfway is where the wrong choice errs least.
# Both are needed: over TCP a rendezvous of some 100 KB needs its receiver's answer, and is complete long
# before delivery all the same, because the kernel has the data.
WAITS_SHARE = 0.5
# As messages grow, sends change at most twice between waiting and not waiting; so many sizes the first and
# the second change must set right. A single size that differs from its neighbours is taken for noise.
STEP_GAINS = (1, 2)

MEASURE = "earlybird measure completion -o RUN"


@dataclass(frozen=True)
class Waiting:
    """Whether the sends of one level wait for delivery.

    Attributes
    ----------
    size_bytes : (S,) measured, ascending.
    share : (S,) of the delivery after which a send was complete, the smaller one of late and prompt receiver.
    decided : (S,) bool, constant but for two steps at most.
    oversubscribed : whether ranks shared cores.
    """

    size_bytes: np.ndarray
    share: np.ndarray
    decided: np.ndarray
    oversubscribed: bool

    def exceptions_bytes(self) -> list[int]:
        """Sizes measured otherwise than decided."""
        return [int(size) for size in self.size_bytes[(self.share >= WAITS_SHARE) != self.decided]]

    def steps(self) -> list[tuple[int, int]]:
        """(last size before, first size after) of every step."""
        pairs = pairwise(zip(self.size_bytes.tolist(), self.decided, strict=True))
        return [(before, after) for (before, was), (after, now) in pairs if was != now]


@dataclass(frozen=True)
class _Piece:
    """Sizes from min_bytes on that all wait or all do not; `extra` goes to the protocol that begins there."""

    min_bytes: int
    waits: bool
    extra: Mapping[str, Any]


def find_waiting(completions: pandas.DataFrame) -> dict[str, Waiting]:
    """Level -> whether its senders wait, of `Observations.completions`.

    The share of a point is the median over iterations, of each its own, then over launches: what disturbs an
    iteration disturbs both its times. Samples with more ranks than cores count where there are no others. A
    size whose late or prompt receiver is missing counts where the other one shows that nobody waits.
    """
    return {
        level: waiting
        for level in LEVELS
        if (waiting := _of_level(completions[completions.level == level])) is not None
    }


def with_senders(level: Level, waiting: Waiting | None, thresholds_bytes: Mapping[str, int]) -> Level:
    """`level` with measured `sender_waits`; a protocol inside which it changes becomes several of one name.

    A step lies between two measured sizes: where a protocol begins between them it is put there, else at a
    threshold the library tells, else at the size after it. Protocols outside the measured sizes stay as they
    are.
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


def warnings(levels: Iterable[Level], found: Mapping[str, Waiting]) -> list[str]:
    """What to be wary of in the `sender_waits` of fitted levels."""
    texts = []
    for level in levels:
        waiting = found.get(level.name)
        names = [p.name for p in level.protocols if not p.extra.get("sender_waits_measured")]
        if names:
            texts.append(
                f"{level.name}: whether senders wait for delivery is assumed from the protocol's name "
                f"({', '.join(dict.fromkeys(names))}); `{MEASURE}` measures it, fit that run together with "
                "these"
            )
        if waiting is None:
            continue
        if exceptions := waiting.exceptions_bytes():
            sizes = ", ".join(map(format_bytes, exceptions))
            texts.append(
                f"{level.name}: at {sizes} senders were measured to wait otherwise than the profile says, "
                f"which changes {len(waiting.steps())} times with the size"
            )
        if waiting.oversubscribed:
            texts.append(
                f"{level.name}: completion was measured with more ranks than cores; a late receiver shows "
                "all the same which sends wait for nobody"
            )
    return texts


def _of_level(rows: pandas.DataFrame) -> Waiting | None:
    if rows.empty:
        return None
    keys = ["size_bytes", "receiver"]
    rows = rows[~rows.oversubscribed | rows.groupby(keys).oversubscribed.transform("all")]
    shares = rows.groupby(keys).share.median().unstack("receiver")
    share = shares.min(axis=1)
    told = shares.reindex(columns=["late", "prompt"]).notna().all(axis=1) | (share < WAITS_SHARE)
    share = share[told]
    if share.empty:
        return None
    values = share.to_numpy()
    return Waiting(
        share.index.to_numpy(),
        values,
        _with_few_steps(values),
        bool(rows[rows.size_bytes.isin(share.index)].oversubscribed.any()),
    )


def _with_few_steps(share: np.ndarray) -> np.ndarray:
    """(S,) bool, the division that fewest measured sizes contradict; of equal ones the nearest to `share`.

    An exhaustive search, steps in either direction; a further step must set right `STEP_GAINS` sizes.
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
    return min(candidates, key=lambda one: (_wrong(one, measured), _distance(one, share)))


def _wrong(decided, measured):
    return int((decided != measured).sum())


def _distance(decided, share):
    return float(((np.clip(share, 0, 1) - decided) ** 2).sum())


def _pieces(level: Level, waiting: Waiting, thresholds_bytes: Mapping[str, int]) -> list[_Piece]:
    pieces = [_Piece(0, bool(waiting.decided[0]), {})]
    for before, after in waiting.steps():
        extra: dict[str, Any] = {"sender_waits_changes_between_bytes": [before, after]}
        begun = [p.min_bytes for p in level.protocols if before < p.min_bytes <= after]
        told = told_switch(before, after, thresholds_bytes)
        if begun:
            start = begun[0]
        elif told is not None:
            extra["threshold"], start = told
        else:
            start = after
        pieces.append(_Piece(start, not pieces[-1].waits, extra))
    return pieces


def _divided(protocol: Protocol, end: float, pieces: list[_Piece], waiting: Waiting) -> list[Protocol]:
    """`protocol`, which ends before `end` bytes, cut where a piece begins inside it."""
    starts = [protocol.min_bytes, *(p.min_bytes for p in pieces if protocol.min_bytes < p.min_bytes < end)]
    parts = []
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        # What belongs to the beginning of the protocol does not belong to a later part of it.
        told = {"begins_between_bytes", "threshold"} if start > protocol.min_bytes else set()
        part = replace(
            protocol, min_bytes=start, extra={k: v for k, v in protocol.extra.items() if k not in told}
        )
        if start <= waiting.size_bytes[-1] and stop > waiting.size_bytes[0]:
            piece = [p for p in pieces if p.min_bytes <= start][-1]
            begins = piece.extra if piece.min_bytes == start else {}
            extra = {**part.extra, "sender_waits_measured": True, **begins}
            part = replace(part, sender_waits=piece.waits, extra=extra)
        parts.append(part)
    return parts
