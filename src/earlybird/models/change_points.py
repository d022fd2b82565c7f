"""Find when a series of repeated measurements changed: steps and drifts, and how certain they are.

Changes are found one after the other, by least squares on a series without outliers, and all are placed again
when another is found. A permutation test on the residuals of the other changes decides whether a change
counts: how often does a series without order have a change as large?
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

import numpy as np

Kind = Literal["step", "drift"]
STEP: Final = "step"
DRIFT: Final = "drift"
# On each side of a step, and between the ends of a drift: what a few values show is noise.
MIN_VALUES, MIN_DRIFT = 3, 7
MAX_CHANGES = 5
# An outlier differs from its neighbours by more than so many standard deviations, and is moved there.
_OUTLIER_DEVIATIONS, _NEIGHBOURS = 3.0, 3
_DEVIATIONS_OF_MAD = 1.4826
# Of the Bayesian information criterion: a height, and the place. The place of a break counts as three
# parameters (Ninomiya, Statistics & Probability Letters 2015), each of the two kinks of a drift as two.
_STEP_PARAMETERS, _DRIFT_PARAMETERS = 4, 5
# Values of permuted series that are held at once.
_PERMUTED_VALUES = 100_000
# A drift begins and ends at one of so many places at most; two shapes closer than this are one.
_MAX_ENDS, _MIN_APART = 60, 0.01


@dataclass(frozen=True)
class ChangePoint:
    """A change of `height`, from the value `first` (the first one changed) until `last`; for a step both are
    the same.

    `p_value` : probability that a series without order has a change as large.
    """

    kind: Kind
    first: int
    last: int
    height: float
    p_value: float = 1.0


def least_distance(count: int, level: float) -> int | None:
    """Return how many of `count` values must lie on each side of a step without noise for a p-value of at
    most `level`: of the orders of the values, 2 / C(count, k) have such a step. None if no step is that rare.
    """
    distances = range(MIN_VALUES, count // 2 + 1)
    return next((k for k in distances if level * math.comb(count, k) >= 2), None)


def find_changes(
    values: np.ndarray, *, level: float, random: np.random.Generator, most: int = MAX_CHANGES
) -> list[ChangePoint]:
    """Find the changes of a series, in the order of their position, each with a p-value of at most `level`.

    Parameters
    ----------
    values : (n,) in the order of time, such as logarithms of times: a height is then relative.
    level : in (0, 1); a series that changed is permuted 2/level times, another one a few times.

    Returns
    -------
    An empty list for fewer than 2 * MIN_VALUES values, or if nothing changed.
    """
    values = without_outliers(np.asarray(values, dtype=float))
    found: list[ChangePoint] = []
    if len(values) < 2 * MIN_VALUES:
        return found
    while len(found) < most:
        rest = values - _sum(found, len(values))
        p = _p_value(rest, level, random)
        if p > level:
            break
        shapes = _shapes(len(values))
        found += [replace(one, p_value=p) for one in shapes.best(rest)]
        found = _placed_again(values, found, shapes)
    return sorted(found, key=lambda one: one.first)


def without_outliers(values: np.ndarray) -> np.ndarray:
    """Return (n,) values in which single values far from their neighbours are moved towards them."""
    near = np.lib.stride_tricks.sliding_window_view(
        np.pad(values, _NEIGHBOURS, mode="reflect") if len(values) > _NEIGHBOURS else values,
        min(2 * _NEIGHBOURS + 1, len(values)),
    )
    if len(near) != len(values):
        return values
    middle = np.median(near, axis=1)
    distance = values - middle
    deviation = _DEVIATIONS_OF_MAD * np.median(np.abs(distance - np.median(distance)))
    return middle + np.clip(distance, -_OUTLIER_DEVIATIONS * deviation, _OUTLIER_DEVIATIONS * deviation)


def _step_gains(values: np.ndarray) -> np.ndarray:
    """Return (..., n - 1) reductions of the sum of squares by a step before value k + 1."""
    n = values.shape[-1]
    sums = np.cumsum(values, axis=-1)
    k = np.arange(1, n)
    return (sums[..., :-1] - k / n * sums[..., -1:]) ** 2 * n / (k * (n - k))


def _allowed(gains: np.ndarray) -> np.ndarray:
    return gains[..., MIN_VALUES - 1 : gains.shape[-1] - MIN_VALUES + 1]


def _p_value(values: np.ndarray, level: float, random: np.random.Generator) -> float:
    """Return the p-value of the largest step among those of permuted values; from part of them if it is above
    `level` anyway.
    """
    largest = _allowed(_step_gains(values)).max()
    count = int(np.ceil(2 / level))
    done, larger = 0, 0
    while done < count and 1 + larger <= level * (count + 1):
        part = min(max(_PERMUTED_VALUES // len(values), 1), count - done)
        permuted = random.permuted(np.tile(values, (part, 1)), axis=1)
        others = _allowed(_step_gains(permuted)).max(axis=1)
        larger += int((others >= largest * (1 - 1e-12)).sum())
        done += part
    return (1 + larger) / (done + 1)


class _Shapes:
    """The set of all steps and drifts of n values; for long series, of drifts that begin and end on a
    grid.
    """

    def __init__(self, n: int):
        stride = -(-n // _MAX_ENDS)
        ends = np.arange(0, n, stride)
        i, j = np.triu_indices(len(ends), -(-MIN_DRIFT // stride))
        steps = np.arange(MIN_VALUES, n - MIN_VALUES + 1)
        self.num_steps = len(steps)
        self.first = np.concatenate([steps, ends[i]])
        self.last = np.concatenate([steps, ends[j]])
        x = np.arange(n)
        is_step = np.arange(len(self.first)) < self.num_steps
        rise = (x - self.first[:, None] + is_step[:, None]) / np.maximum(self.last - self.first, 1)[:, None]
        centred = np.clip(rise, 0, 1)
        centred -= centred.mean(axis=1, keepdims=True)
        self.unit = np.linalg.norm(centred, axis=1)
        self.shapes = centred / self.unit[:, None]
        self.overlap = self.shapes @ self.shapes.T
        self.penalty = np.where(is_step, _STEP_PARAMETERS, _DRIFT_PARAMETERS) * np.log(n)

    def best(self, values: np.ndarray, most: int = 2) -> list[ChangePoint]:
        """Return the change, or the two changes if `most` is 2, with the least Bayesian information
        criterion.
        """
        n, centred = len(values), values - values.mean()
        product, total = self.shapes @ centred, float(centred @ centred)
        alone = n * np.log(np.maximum(total - product**2, 1e-300)) + self.penalty
        one = int(np.argmin(alone))
        if most == 1:
            return [self._change(one, product[one])]
        # Of two unit shapes with overlap c, the part that the second adds to the first.
        apart = 1 - self.overlap**2
        np.fill_diagonal(apart, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            more = (product[None, :] - self.overlap * product[:, None]) ** 2 / apart
        more[apart < _MIN_APART] = 0
        both = n * np.log(np.maximum(total - product[:, None] ** 2 - more, 1e-300))
        both += self.penalty[:, None] + self.penalty[None, :]
        i, j = np.unravel_index(int(np.argmin(both)), both.shape)
        if both[i, j] >= alone[one]:
            return [self._change(one, product[one])]
        c = self.overlap[i, j]
        first = (product[i] - c * product[j]) / (1 - c**2)
        second = (product[j] - c * product[i]) / (1 - c**2)
        return [self._change(int(i), first), self._change(int(j), second)]

    def _change(self, k: int, coefficient: float) -> ChangePoint:
        kind: Kind = STEP if k < self.num_steps else DRIFT
        height = float(coefficient / self.unit[k])
        return ChangePoint(kind, int(self.first[k]), int(self.last[k]), height)


@lru_cache(maxsize=2)
def _shapes(n: int) -> _Shapes:
    """Return the cached shapes of n values: the series of a history have one length, and most have no
    change.
    """
    return _Shapes(n)


def _sum(changes: list[ChangePoint], n: int) -> np.ndarray:
    """Return (n,) the sum of `changes` that is added to a series, beginning at 0."""
    x = np.arange(n)
    total = np.zeros(n)
    for one in changes:
        length = max(one.last - one.first, 1)
        rise = np.clip((x - one.first + (one.kind == STEP)) / length, 0, 1)
        total += one.height * rise
    return total


def _placed_again(values: np.ndarray, changes: list[ChangePoint], shapes: _Shapes) -> list[ChangePoint]:
    """Move each change to its best position next to the others, twice."""
    changes = list(changes)
    for _ in range(2 if len(changes) > 2 else 0):
        for k, one in enumerate(changes):
            rest = values - _sum([*changes[:k], *changes[k + 1 :]], len(values))
            changes[k] = replace(shapes.best(rest, most=1)[0], p_value=one.p_value)
    return changes
