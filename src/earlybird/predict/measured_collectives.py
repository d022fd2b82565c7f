"""Measured collectives of a profile, and predictions of the forms corrected by those of the same
placement."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from earlybird.data.collective_algorithms import Method, parse_method
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.predict.collective import AlgorithmModel, Placed
from earlybird.predict.outlook import (
    CorrectedModel,
    Outlook,
    is_resolved,
    of_repetition,
    p_value,
    ratio_of,
    within,
)
from earlybird.predict.ranges import INTERVAL_PERCENT

Point = tuple[int, int]  # bytes of the buffer, bytes of a segment


class MeasuredCollectives:
    """The algorithms of one operation on one placement, relative to `reference`, the MPI's default.

    Parameters
    ----------
    models : `reference` is one of them, or None.
    results : the measured results of the profile. Results of the same ranks and mapping, on the measured
        machine, correct a model; no result does if the placement is another one.
    """

    def __init__(
        self,
        models: Iterable[AlgorithmModel],
        reference: AlgorithmModel | None,
        results: Iterable[Result],
        placed: Placed,
    ):
        table: dict[str, dict[Point, Result]] = {}
        for result in results:
            config = result.config
            here = config.get("ranks"), config.get("map_by"), config.get("root", 0)
            is_here = result.kernel == COLLECTIVE.name and here == (placed.ranks, placed.map_by, 0)
            if is_here and is_resolved(result):
                method = parse_method(result.method)
                key = f"{config['operation']} {method.name}"
                table.setdefault(key, {})[config["size_bytes"], method.segment_bytes] = result
        self._has_results = bool(table)
        self._algorithms = {
            id(model): _Algorithm(model, table.get(f"{model.form.operation} {model.form.algorithm}", {}))
            for model in models
        }
        self._reference = None if reference is None else self._algorithms[id(reference)]

    def results_of(self, model: AlgorithmModel) -> list[Result]:
        """Return the measured results of an algorithm on this placement."""
        return list(self._algorithms[id(model)].results.values())

    def results_at(self, model: AlgorithmModel, size_bytes: float) -> list[Result]:
        """Return the measured results of an algorithm at one size, with any segments."""
        results = self._algorithms[id(model)].results
        return [result for (size, _), result in results.items() if size == size_bytes]

    def sizes_bytes(self, model: AlgorithmModel) -> list[int]:
        """Return the sizes at which an algorithm was measured on this placement, in order."""
        return sorted({size for size, _ in self._algorithms[id(model)].results})

    @property
    def are_launches_known(self) -> bool:
        """True if times have their launches; a profile of an earlier version has times alone."""
        return self._has_results

    def has(self, model: AlgorithmModel, size_bytes: float, segment_bytes: int) -> bool:
        """Return whether an algorithm was measured at this point on this placement."""
        return (size_bytes, segment_bytes) in self._algorithms[id(model)].results

    def outlook(self, model: AlgorithmModel, size_bytes: float, segment_bytes: int) -> Outlook:
        """Return the time and speed-up of an algorithm at one size."""
        algorithm = self._algorithms[id(model)]
        reference = self._reference or algorithm
        result = algorithm.results.get((size_bytes, segment_bytes))
        speed_up = _measured_speed_up(algorithm, reference, (size_bytes, segment_bytes))
        if result is not None and speed_up is not None:
            repeated = of_repetition(speed_up, result.launches, algorithm.spread)
            return Outlook(result.time_s, speed_up if algorithm is reference else repeated, result, speed_up)
        time_s = algorithm.corrected_s((size_bytes, segment_bytes))
        time = within(time_s, algorithm.time_bound)
        if algorithm is reference:
            return Outlook(time, Estimate.exact(1.0))
        bound = algorithm.speed_up_bound(reference)
        if bound is None:
            return Outlook(time, self.predicted_speed_up(model, size_bytes, segment_bytes))
        return Outlook(time, within(reference.corrected_s((size_bytes, 0)) / time_s, bound))

    def p_values(self) -> dict[tuple[int, Point], float]:
        """Return the p-value of every measured speed-up over the default of several launches, by the id of
        its model and its point.
        """
        reference = self._reference
        found: dict[tuple[int, Point], float] = {}
        for model, algorithm in self._algorithms.items():
            if reference is None or algorithm is reference:
                continue
            for point, result in algorithm.results.items():
                speed_up = _measured_speed_up(algorithm, reference, point)
                p = speed_up and p_value(speed_up, result.launches, algorithm.spread)
                if p is not None:
                    found[model, point] = p
        return found

    def predicted_speed_up(self, model: AlgorithmModel, size_bytes: float, segment_bytes: int) -> Estimate:
        """Return the speed-up that the forms alone predict, with the intervals of their coefficients and
        errors.
        """
        reference = model if self._reference is None else self._reference.model
        if reference is model:
            return Estimate.exact(1.0)
        time_s, default_s = model.form_s(size_bytes, segment_bytes), reference.form_s(size_bytes, 0)
        value = default_s / time_s
        wide = within(value, math.hypot(reference.error_bound, model.error_bound))
        drawn_s = model.drawn_form_s(size_bytes, segment_bytes)
        default_drawn_s = reference.drawn_form_s(size_bytes, 0)
        if not len(drawn_s) or len(drawn_s) != len(default_drawn_s) or not drawn_s.all():
            return wide
        low, high = np.percentile(default_drawn_s / drawn_s, INTERVAL_PERCENT)
        return Estimate(value, min(float(low), wide.low), max(float(high), wide.high))


class _Algorithm(CorrectedModel):
    """An algorithm with its measured points on this placement."""

    def __init__(self, model: AlgorithmModel, results: Mapping[Point, Result]):
        measured = model.measured_points()
        found = {point: result for point, result in results.items() if point in measured}
        if not results:  # a profile of an earlier version has times without intervals
            found = {point: _without_interval(model, point, measured[point]) for point in measured}
        super().__init__(found, model.error_bound)
        self.model = model

    def coordinates(self, point: tuple) -> np.ndarray:
        size_bytes, segment_bytes = point
        part = min(segment_bytes or size_bytes, size_bytes)
        return np.log2([max(size_bytes, 1), max(part, 1)])

    def model_s(self, point: tuple) -> float:
        return self.model.form_s(*point)

    def reference_point(self, point: tuple) -> tuple:
        return point[0], 0  # the MPI's default has no segments


def _without_interval(model: AlgorithmModel, point: Point, time_s: float) -> Result:
    method = Method(model.form.algorithm, point[1]).text
    return Result(COLLECTIVE.name, COLLECTIVE.quantity, method, {}, Estimate.exact(time_s), 0.0, 1)


def _measured_speed_up(algorithm: _Algorithm, reference: _Algorithm, point: Point) -> Estimate | None:
    """Return the speed-up over the default at the same size: of common rounds, or else the ratio of the two
    times.
    """
    result, default = algorithm.results.get(point), reference.results.get((point[0], 0))
    if algorithm is reference:
        return Estimate.exact(1.0)
    if result is None or default is None:
        return None
    return result.speed_up or ratio_of(default.time_s, result.time_s)
