"""Compare measured with predicted seconds per rank, and compute the error of each model."""

from collections.abc import Iterable, Mapping

import numpy as np

from earlybird.data.comparison import Comparison, EmptyExchange
from earlybird.data.errors import InputError
from earlybird.data.kernels import EXCHANGE
from earlybird.data.prediction import Prediction
from earlybird.data.run import Sample, rank_times_of_launches
from earlybird.data.statistics import MEDIAN, Statistic

# (P,) seconds of the exchange without data, and model -> (P,) seconds predicted with them.
EmptyTimes = tuple[np.ndarray, Mapping[str, np.ndarray]]


def exchange_samples(samples: Iterable[Sample], *, empty: bool = False) -> list[Sample]:
    """Return the launches of the exchange of a run, or of the same exchange with empty messages."""
    return [one for one in samples if one.kernel == EXCHANGE.name and ("empty" in one.config) == empty]


def measured_times(samples: Iterable[Sample], statistic: Statistic = MEDIAN) -> np.ndarray:
    """Return (P,) seconds per rank: the median over steady iterations, then over launches.

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
    return rank_times_of_launches(launches, statistic)


def compare_times(
    measured_s: np.ndarray, predictions: Mapping[str, Prediction], empty: EmptyTimes | None = None
) -> Comparison:
    """Compute the errors of each model: equation (11) of Thune et al. 2023 and the signed error of the
    slowest rank.

    error = sum |T_actual - T_model| / sum T_actual; slowest_error = (max predicted - max measured)/max
    measured, below zero if the predicted time is too short. `measured_s` (P,) seconds, as `measured_times`
    returns them; `empty` are the times of the same exchange without data, and what the models predict with
    them. Raises InputError if a prediction has another number of ranks or nothing was measured.
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
    without_data = None
    if empty is not None:
        empty_s, with_empty_s = empty
        without_data = EmptyExchange(empty_s, dict(with_empty_s), *_errors(measured_s, with_empty_s))
    return Comparison(measured_s, predicted_s, *_errors(measured_s, predicted_s), empty=without_data)


def _errors(
    measured_s: np.ndarray, predicted_s: Mapping[str, np.ndarray]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the error (11) and the slowest rank's error of each model."""
    slowest_s = measured_s.max()
    return (
        {
            model: float(np.abs(measured_s - times_s).sum() / measured_s.sum())
            for model, times_s in predicted_s.items()
        },
        {model: float((times_s.max() - slowest_s) / slowest_s) for model, times_s in predicted_s.items()},
    )
