"""Intervals from replicates, and notes on values outside the measured range."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

INTERVAL_PERCENT = (2.5, 97.5)


def interval(drawn: np.ndarray, found: float) -> tuple[float, float]:
    """Return the interval of the replicates, extended to include the fitted value `found`: resampled medians
    of few launches may all lie on one side of it.
    """
    low, high = np.percentile(drawn, INTERVAL_PERCENT)
    return min(float(low), found), max(float(high), found)


def extrapolations(
    label: str,
    values: Sequence[Any],
    measured: Iterable[tuple[str, tuple[float, float]]],
    text: Callable[[Any], str],
    names_text: Callable[[Sequence[str]], str] = ", ".join,
) -> list[str]:
    """Return a note for each measured range, of (name, range) pairs, that does not contain all `values`."""
    beyond: dict[tuple[float, float], dict[str, None]] = {}
    for name, (low, high) in measured:
        if not all(low <= value <= high for value in values):
            beyond.setdefault((low, high), {})[name] = None
    notes = []
    for (low, high), names in beyond.items():
        outside = ", ".join(dict.fromkeys(text(value) for value in values if not low <= value <= high))
        notes.append(
            f"{label} were measured from {text(low)} to {text(high)}; {outside} is extrapolated "
            f"({names_text(list(names))})"
        )
    return notes
