"""Largest values of the segments of an array, without a loop over segments."""

import numpy as np


def largest_places(segment: np.ndarray, value: np.ndarray, num: int) -> np.ndarray:
    """Return for each of `num` segments the place of its largest value, the first of equal ones; -1 if it has
    none.

    Parameters
    ----------
    segment, value : (N,) the segment of each place, and its value.
    """
    order = np.lexsort([-value, segment])
    places = np.full(num, -1)
    ordered = segment[order]
    is_first = np.diff(ordered, prepend=-1) != 0
    places[ordered[is_first]] = order[is_first]
    return places


def largest_until(segment: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return for each place that of the largest value in its segment so far, itself included; of equal ones
    the last. Segments ascend."""
    order = np.argsort(value, kind="stable")
    height = np.empty(len(value), np.int64)
    height[order] = np.arange(len(value))
    most = np.maximum.accumulate(segment * max(len(value), 1) + height)
    places: np.ndarray = order[most - segment * max(len(value), 1)]
    return places
