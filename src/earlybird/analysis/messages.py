"""Messages of a recording: by size class, the heaviest pairs, and the bytes of each rank."""

from dataclasses import dataclass

import numpy as np

from earlybird.data.recording import PairTotals

_UNEVEN = 1.5  # a rank that sends so many times the mean is named


@dataclass(frozen=True)
class SizeClass:
    """The messages from `low_bytes` to `high_bytes` (inclusive), and their bytes in total."""

    low_bytes: int
    high_bytes: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Pair:
    src: int
    dst: int
    messages: int
    bytes: int


def by_size_class(totals: PairTotals) -> list[SizeClass]:
    """Return the size classes that contain messages, from the smallest."""
    found = []
    for number in np.unique(totals.size_class).tolist():
        chosen = totals.size_class == number
        low, high = (1 << number - 1, (1 << number) - 1) if number > 0 else (0, 0)
        found.append(
            SizeClass(low, high, int(totals.messages[chosen].sum()), int(totals.bytes[chosen].sum()))
        )
    return found


def heaviest_pairs(pairs: PairTotals) -> list[Pair]:
    """Return the pairs of `by_pair`, the one with most bytes first, then by sender and receiver."""
    order = np.lexsort([pairs.dst, pairs.src, -pairs.messages, -pairs.bytes])
    columns = (getattr(pairs, name)[order].tolist() for name in ("src", "dst", "messages", "bytes"))
    return [Pair(*row) for row in zip(*columns, strict=True)]


def bytes_by_rank(pairs: PairTotals, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes that each of `size` ranks sends and receives: two int64 arrays of shape (size,)."""
    sent, received = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(sent, pairs.src, pairs.bytes)
    np.add.at(received, pairs.dst, pairs.bytes)
    return sent, received


def main_sender(sent: np.ndarray) -> tuple[int, float] | None:
    """Return the rank that sends most of the bytes `sent` by each rank, and how many times the mean that is;
    None if no rank sends much more than the others."""
    most, mean = int(np.argmax(sent)), float(sent.mean())
    return (most, float(sent[most]) / mean) if sent[most] > _UNEVEN * mean else None
