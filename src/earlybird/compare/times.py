"""Compare measured with predicted seconds per rank, and compute the error of each model."""

from collections.abc import Iterable, Mapping

import numpy as np

from earlybird.data.comparison import Comparison
from earlybird.data.errors import InputError
from earlybird.data.prediction import Prediction
from earlybird.data.run import Sample, rank_medians_of_launches


def measured_times(samples: Iterable[Sample]) -> np.ndarray:
    """(P,) seconds per rank: the median over steady iterations, then over launches.

    `samples` are the launches of one exchange, each with `rank_times_s`. Raises InputError if there is
    none, or if they differ in the number of ranks.
    """
    launches = list(samples)
    num_ranks = set()
    for sample in launches:
        if sample.rank_times_s is None:
            raise InputError(
                f"a sample of {sample.kernel} has no rank_times_s; "
                "give the run of an exchange, made by `earlybird replay`"
            )
        num_ranks.add(sample.rank_times_s.shape[1])
    if not launches:
        raise InputError("the run has no samples of an exchange; make one with `earlybird replay`")
    if len(num_ranks) > 1:
        raise InputError("the samples differ in their number of ranks; compare the launches of one exchange")
    return rank_medians_of_launches(launches)


def compare_times(measured_s: np.ndarray, predictions: Mapping[str, Prediction]) -> Comparison:
    """Errors of each model: equation (11) of Thune et al. 2023 and the signed error of the slowest rank.

    error = sum |T_actual - T_model| / sum T_actual; slowest_error = (max predicted - max measured)/max
    measured, below zero if the predicted time is too short. `measured_s` (P,) seconds, as `measured_times`
    returns them. Raises InputError if a prediction has another number of ranks or nothing was measured.
    """
    measured_s = np.asarray(measured_s, dtype=float)
    predicted_s = {model: prediction.time_s for model, prediction in predictions.items()}
    for model, times_s in predicted_s.items():
        if len(times_s) != len(measured_s):
            raise InputError(
                f"the prediction {model} has {len(times_s)} ranks and the measurement {len(measured_s)}; "
                "predict and replay on the same layout"
            )
    if not measured_s.sum() > 0:
        raise InputError(
            "every measured time is 0 s, so no relative error exists; compare a run with messages"
        )
    slowest_s = measured_s.max()
    return Comparison(
        measured_s=measured_s,
        predicted_s=predicted_s,
        error={
            model: float(np.abs(measured_s - times_s).sum() / measured_s.sum())
            for model, times_s in predicted_s.items()
        },
        slowest_error={
            model: float((times_s.max() - slowest_s) / slowest_s) for model, times_s in predicted_s.items()
        },
    )
