"""Measured pipelines of a profile, and predictions of the joined model corrected by those near the point."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from earlybird.data.kernels import PIPELINE
from earlybird.data.methods import SINGLE
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.predict.outlook import CorrectedModel, Outlook, is_resolved, of_repetition, ratio_of, within
from earlybird.predict.pipelined import MethodModel, predict_methods

# The delay rate at which the coordinate of the delay begins to grow like an octave: 10 us/MB.
_UNIT_RATE_S_PER_BYTE = 1e-11

Point = tuple[int, int, float]  # bytes of the buffer, partitions, delay rate with 3 digits


class MeasuredPipelines:
    """The methods of a profile at one level, relative to the reference `single`.

    Parameters
    ----------
    models : models of one level; `reference` is one of them.
    results : the measured results of the profile.
    threads : the number of threads requested; results of other numbers of threads correct a model, but do not
        measure the point.
    """

    def __init__(
        self,
        models: Iterable[MethodModel],
        reference: MethodModel | None,
        results: Iterable[Result],
        level: str,
        threads: int,
    ):
        self._threads = threads
        table: dict[tuple, dict[Point, Result]] = {}
        for result in results:
            config = result.config
            is_here = result.kernel == PIPELINE.name and config.get("level") == level
            if is_here and "gamma_s_per_byte" in config and is_resolved(result):
                key = result.method, config.get("vcis"), config.get("threads", 1)
                table.setdefault(key, {})[point_of(config)] = result
        self._methods = {id(model): _Method(model, table, model.threads or threads) for model in models}
        self._reference = None if reference is None else self._methods[id(reference)]

    def results_of(self, model: MethodModel) -> list[Result]:
        """Return all measured results of a method at this level, with the threads of its model."""
        return list(self._methods[id(model)].results.values())

    def outlook(self, model: MethodModel, size_bytes: float, partitions: int, gamma: float) -> Outlook:
        """Return the time and speed-up of a method for a buffer whose last partition is late by gamma times
        its size.
        """
        method, reference = self._methods[id(model)], self._reference or self._methods[id(model)]
        point = point_of({"size_bytes": size_bytes, "partitions": partitions, "gamma_s_per_byte": gamma})
        if method.threads == self._threads and (result := method.results.get(point)):
            speed_up = _measured_speed_up(method, reference, point)
            if speed_up is not None:
                repeated = of_repetition(speed_up, result.launches, method.spread)
                return Outlook(result.time_s, speed_up if method is reference else repeated, result, speed_up)
        here = size_bytes, partitions, gamma
        time_s = method.corrected_s(here)
        ratio = reference.corrected_s(here) / time_s
        if method is reference:
            return Outlook(within(time_s, method.time_bound), Estimate.exact(1.0))
        bound = method.speed_up_bound(reference)
        if bound is None:  # without measured points there is nothing but the model
            return Outlook(
                within(time_s, model.error_bound),
                self.predicted_speed_up(model, size_bytes, partitions, gamma),
            )
        return Outlook(within(time_s, method.time_bound), within(ratio, bound))

    def predicted_speed_up(
        self, model: MethodModel, size_bytes: float, partitions: int, gamma: float
    ) -> Estimate:
        """Return the speed-up that the models alone predict, with the intervals of their parameters and
        errors.
        """
        reference = model if self._reference is None else self._reference.model
        if reference is model:
            return Estimate.exact(1.0)
        delay_s = gamma * size_bytes / partitions
        found = predict_methods([model], size_bytes, partitions, delay_s, reference)[0]
        low, high = found.speed_up_interval or (found.speed_up, found.speed_up)
        wide = within(found.speed_up, math.hypot(reference.error_bound, model.error_bound))
        return Estimate(found.speed_up, min(low, wide.low), max(high, wide.high))


class _Method(CorrectedModel):
    """A method with the measured points of its number of threads."""

    def __init__(self, model: MethodModel, table: Mapping[tuple, Mapping[Point, Result]], threads: int):
        super().__init__(table.get((model.method, model.vcis, threads), {}), model.error_bound)
        self.model, self.threads = model, threads
        self._singles = table.get((SINGLE, model.vcis, threads), {})

    def coordinates(self, point: tuple) -> np.ndarray:
        size_bytes, partitions, gamma = point
        delay = 1 + gamma / _UNIT_RATE_S_PER_BYTE
        return np.log2([max(size_bytes, 1), partitions, delay])

    def model_s(self, point: tuple) -> float:
        size_bytes, partitions, gamma = point
        return float(self.model.time_s(size_bytes, partitions, gamma * size_bytes / partitions))

    def measured_s(self, point: tuple) -> float:
        """Return the time of `single` over the speed-up, which drifts less than times."""
        result, single = self.results[point], self._singles.get(point)
        if result.speed_up is None or single is None:
            return result.time_s.value
        return single.time_s.value / result.speed_up.value


def point_of(config: Mapping[str, float]) -> Point:
    gamma = float(f"{config['gamma_s_per_byte']:.3g}")
    return config["size_bytes"], config["partitions"], gamma


def _measured_speed_up(method: _Method, reference: _Method, point: Point) -> Estimate | None:
    """Return the speed-up over the reference at the same point: of common rounds, or else the ratio of the
    two times.
    """
    result, other = method.results[point], reference.results.get(point)
    if method is reference:
        return Estimate.exact(1.0)
    if other is None:
        return None
    if method.model.vcis == reference.model.vcis and result.speed_up is not None:
        return result.speed_up
    return ratio_of(other.time_s, result.time_s)
