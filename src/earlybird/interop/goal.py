"""Writes an exchange as a schedule in GOAL, the text format of LogGOPSim (Hoefler et al. 2010)."""

from collections.abc import Iterator

import numpy as np

from earlybird.data.pattern import Pattern

# LogGOPSim charges (size - 1) * G without a sign: 0 bytes would take ages.
MIN_BYTES = 1


def goal_schedule(pattern: Pattern, num_ranks: int) -> str:
    """Return a schedule with all messages of an exchange, posted at once: no operation requires another.

    A rank posts its receives, then its sends, in the order of the pattern. Several messages of one pair have
    the tags 0, 1, ..., so that each receive matches its own send. A message of 0 bytes is written as
    MIN_BYTES. A rank without messages computes for 0 ns. `num_ranks` is at least one more than any rank of
    the pattern.
    """
    return "".join(_lines(pattern, num_ranks))


def _lines(pattern: Pattern, num_ranks: int) -> Iterator[str]:
    sizes = np.maximum(pattern.bytes, MIN_BYTES)
    tags = _numbers_in_pair(pattern)
    received, sent = _by_rank(pattern.dst, num_ranks), _by_rank(pattern.src, num_ranks)
    yield f"num_ranks {num_ranks}\n"
    for rank in range(num_ranks):
        operations = [f"recv {sizes[k]}b from {pattern.src[k]} tag {tags[k]}" for k in received[rank]]
        operations += [f"send {sizes[k]}b to {pattern.dst[k]} tag {tags[k]}" for k in sent[rank]]
        yield f"\nrank {rank} {{\n"
        for number, operation in enumerate(operations or ["calc 0"], start=1):
            yield f"l{number}: {operation}\n"
        yield "}\n"


def _by_rank(ranks: np.ndarray, num_ranks: int) -> list[np.ndarray]:
    """Return the messages of each rank, in their order."""
    order = np.argsort(ranks, kind="stable")
    return np.split(order, np.searchsorted(ranks[order], np.arange(1, num_ranks)))


def _numbers_in_pair(pattern: Pattern) -> np.ndarray:
    """Return, for each message, how many with the same src and dst precede it."""
    order = np.lexsort([pattern.dst, pattern.src])
    src, dst = pattern.src[order], pattern.dst[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
    starts = np.flatnonzero(is_first)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    return numbers
