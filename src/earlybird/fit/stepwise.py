"""Search the structure of a model by adding one element at a time, and fit the larger of several lines."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from earlybird.models.regression import not_negative

MAX_PROTOCOLS = 3
# A structure needs this many points for each parameter.
POINTS_PER_PARAMETER = 3
# With fewer distinct values, none is left out.
MIN_LEFT_OUT = 3


class Fitted(Protocol):
    """A structure with its parameters; the structure with the lowest criterion is chosen."""

    @property
    def num_parameters(self) -> int: ...

    @property
    def criterion(self) -> float: ...


Model = TypeVar("Model", bound=Fitted)


def search(
    first: Model, larger: Callable[[Model], Iterable[Model]], num_points: int, least_fall: float = 0.0
) -> Model:
    """Replace a model by the best of those `larger` by one element, while the criterion falls by more than
    `least_fall`."""
    best = first
    while True:
        allowed = [one for one in larger(best) if has_enough(num_points, one.num_parameters)]
        better = min(allowed, key=lambda one: one.criterion, default=best)
        if not better.criterion < best.criterion - least_fall:
            return best
        best = better


def has_enough(num_points: int, num_parameters: int) -> bool:
    """Return whether there are POINTS_PER_PARAMETER points for each parameter."""
    return POINTS_PER_PARAMETER * num_parameters <= num_points


def with_another_protocol(min_bytes: Sequence[int], sizes: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Yield the sizes at which protocols can begin if there is one more than in `min_bytes`; `sizes` of
    messages ascend.

    A single size determines neither a bandwidth nor a latency: only the first protocol may have a single
    size.
    """
    for size in sizes[1:]:
        starts = tuple(sorted({*min_bytes, int(size)}))
        enough = (np.histogram(sizes, [*starts, np.inf])[0][1:] >= 2).all()
        if len(min_bytes) < len(starts) <= MAX_PROTOCOLS and enough:
            yield starts


@dataclass(frozen=True, eq=False)
class MaxOfLines:
    """A model of maxima and minima of linear functions: T = min over G groups, max over B bounds, of
    `features` @ parameters + `offset_s`; (G, B, n, p) and (G, B, n)."""

    features: np.ndarray
    offset_s: np.ndarray

    def predict_s(self, parameters: np.ndarray) -> np.ndarray:
        return self._bounds_s(parameters).max(axis=1).min(axis=0)

    def deciding(self, parameters: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the index of the line that determines the time of each point at these parameters."""
        bounds_s = self._bounds_s(parameters)
        bound = bounds_s.argmax(axis=1)  # (G, n)
        group = bounds_s.max(axis=1).argmin(axis=0)  # (n,)
        point = np.arange(len(group))
        return group, bound[group, point], point

    def fit(
        self, lines: tuple[np.ndarray, ...], time_s: np.ndarray, weight: np.ndarray, pull: float = 0.0
    ) -> np.ndarray:
        """Return the parameters of 0 or more that minimise the weighted squares, if `lines` determine the
        times.
        """
        rest_s = time_s - self.offset_s[lines]
        return not_negative(self.features[lines] * weight[:, None], rest_s * weight, pull)

    def _bounds_s(self, parameters: np.ndarray) -> np.ndarray:
        return self.features @ parameters + self.offset_s


def relative_errors(predicted_s: np.ndarray, measured_s: np.ndarray) -> np.ndarray:
    return np.abs(predicted_s / measured_s - 1)


def errors_left_out(
    values: np.ndarray, errors_of: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return (n,) relative errors at each of the distinct `values` left out in turn; nan if there are too
    few.

    `errors_of(train, test)` returns the errors at the points of mask `test` of a fit to those of `train`.
    """
    errors = np.full(len(values), np.nan)
    distinct = np.unique(values)
    if len(distinct) >= MIN_LEFT_OUT:
        for value in distinct:
            errors[values == value] = errors_of(values != value, values == value)
    return errors
