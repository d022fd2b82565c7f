"""Find the sizes at which another choice becomes the best."""

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np

# Sizes tried per octave; bisection then locates a change to this relative accuracy.
_PER_OCTAVE, _KNOWN_TO = 2, 0.01
Choice = TypeVar("Choice")


def best_by_size(
    smallest_bytes: float,
    largest_bytes: float,
    best: Callable[[float], Choice],
    keeps: Callable[[Choice, float], bool],
) -> list[tuple[int, int, Choice]]:
    """Return the ranges of sizes from small to large, each with its first size, its last size and its choice.

    Parameters
    ----------
    best : returns the best choice at a size.
    keeps : returns whether a choice made at a smaller size is kept at this size.
    """
    begin = max(smallest_bytes, 1)
    octaves = max(float(np.log2(max(largest_bytes, begin) / begin)), 0.0)
    sizes = begin * 2.0 ** (np.arange(int(np.ceil(octaves * _PER_OCTAVE)) + 1) / _PER_OCTAVE)
    choice = best(sizes[0])
    begins = [(round(smallest_bytes), choice)]
    for low, high in pairwise(np.minimum(sizes, largest_bytes)):
        if not keeps(choice, high) and (following := best(high)) is not choice:
            begins.append((_first_left(choice, low, high, keeps), following))
            choice = following
    ends = [*(start for start, _ in begins[1:]), round(largest_bytes)]
    return [(start, end, one) for (start, one), end in zip(begins, ends, strict=True)]


def _first_left(choice: Choice, low: float, high: float, keeps: Callable[[Choice, float], bool]) -> int:
    """Return the first size at which `choice` is no longer kept; it is kept at `low` and not at `high`."""
    while high > low * (1 + _KNOWN_TO):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(choice, middle) else (low, middle)
    return int(np.ceil(high))
