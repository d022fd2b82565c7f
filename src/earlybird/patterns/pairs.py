"""Pairs of ranks that exchange messages of one size per pair in both directions."""

from collections.abc import Sequence

from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.patterns.checks import require_range, require_ranks, require_total_bytes


def pairs_exchange(sizes_bytes: Sequence[int]) -> Pattern:
    """Return the pattern in which ranks 2k and 2k + 1 send `sizes_bytes[k]` to each other: with 2s, s and s/2
    the experiment of figure 3 of Thune et al. 2023. Raises InputError."""
    if not sizes_bytes:
        raise InputError("there is no pair; give the size of at least one")
    require_ranks(2 * len(sizes_bytes))
    for size_bytes in sizes_bytes:
        require_range(size_bytes, "the size of a message", 0)
    require_total_bytes(2 * sum(sizes_bytes))
    first = [2 * k for k in range(len(sizes_bytes))]
    second = [rank + 1 for rank in first]
    return Pattern([*first, *second], [*second, *first], [*sizes_bytes, *sizes_bytes])
