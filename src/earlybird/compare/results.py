"""The one table of results: a row for every method at every point of the samples of a run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from earlybird.compare.intervals import over_launches
from earlybird.compare.motifs import motif_figures
from earlybird.compare.partitioned import partitioned_metrics
from earlybird.compare.ratios import Ratio, chained_ratio, paired_ratio
from earlybird.data import kernels
from earlybird.data.collective_algorithms import (
    COMPLETION,
    MEAN_OVER_RANKS,
    OWN,
    REDUCE_LOCAL,
    ROOTED,
    VERIFICATION,
)
from earlybird.data.errors import Unknown
from earlybird.data.results import Result
from earlybird.data.run import Sample, as_completion, rank_times_of_launches, thread_times_of_launches
from earlybird.data.schema import Estimate, estimate_keys
from earlybird.data.statistics import MEAN, MEDIAN, Statistic
from earlybird.models.pipelined import delay_rate_s_per_byte, large_message_gain

# The samples of every method at one point.
_Point = Mapping[str | None, Sequence[Sample]]


def results(
    samples: Iterable[Sample],
    fitted_s: Mapping[tuple[Any, ...], float] | None = None,
    statistic: Statistic = MEDIAN,
) -> list[Result]:
    """Return a result for every method at every point, in the order of `samples`.

    The checks of collective algorithms are no times of a method and are left out. `fitted_s` are the times
    that fitted models predict, by `Sample.point`. `statistic` is that of times and figures, see
    `intervals.over_launches`; speed-ups are medians in any case.
    """
    points: dict[tuple[Any, ...], dict[str | None, list[Sample]]] = {}
    for sample in samples:
        if sample.quantity != VERIFICATION:
            kernel, quantity, method, config = sample.point()
            points.setdefault((kernel, quantity, config), {}).setdefault(method, []).append(sample)
    fitted_s = fitted_s or {}
    return [_result(method, point, fitted_s, statistic) for point in points.values() for method in point]


def delay_rate(config: Mapping[str, Any]) -> float:
    """Return gamma of a pipeline in s/B; if all partitions are computed, that of (9) of Gillis et al.
    2023.
    """
    if "compute_s_per_byte" not in config:
        return config["gamma_s_per_byte"]
    theta = config["partitions"] // config["threads"]
    return delay_rate_s_per_byte(
        config["compute_s_per_byte"], theta, config.get("epsilon", 0.0), config.get("delta", 0.0)
    )


def ordered(results: Sequence[Result]) -> list[Result]:
    """Order results by kernel as in `results`, then as the kernel says: by point and method."""
    names = list(dict.fromkeys(result.kernel for result in results))

    def key(result: Result) -> tuple[Any, ...]:
        return names.index(result.kernel), *kernels.kernel_of(result.kernel).sort_key(result)

    return sorted(results, key=key)


def merge_means(results: Sequence[Result]) -> list[Result]:
    """Return one result for each collective: an import has the mean over ranks as a separate quantity, which
    becomes a figure of the completion, as in measured results. If there is no completion it stays.
    """
    means_s = {_call(result): result.time_s.value for result in results if result.quantity == MEAN_OVER_RANKS}
    completed = {_call(result) for result in results if result.quantity == COMPLETION}
    return [
        replace(result, figures={"mean_s": means_s[_call(result)], **result.figures})
        if result.quantity == COMPLETION and _call(result) in means_s
        else result
        for result in results
        if result.quantity != MEAN_OVER_RANKS or _call(result) not in completed
    ]


def _call(result: Result) -> tuple[str, frozenset[tuple[str, Any]]]:
    return result.method, frozenset(result.config.items())


def _result(
    method: str | None, point: _Point, fitted_s: Mapping[tuple[Any, ...], float], statistic: Statistic
) -> Result:
    samples, first = point[method], point[method][0]
    reference = kernels.kernel_of(first.kernel).reference if first.quantity != REDUCE_LOCAL else ""
    ratio, through = _speed_up(method, reference, point) if method != reference else (None, "")
    time_s, coverage = _time_s(samples, statistic)
    return Result(
        first.kernel,
        first.quantity,
        method or "",
        first.config,
        time_s,
        coverage,
        len(samples),
        sum(not sample.converged for sample in samples),
        any(sample.oversubscribed for sample in samples),
        ratio.estimate if ratio else None,
        ratio.coverage if ratio else 0.0,
        reference,
        through,
        fitted_s.get(first.point()),
        _figures(samples, point.get(reference, ()), statistic),
        ", ".join(sorted({sample.statistic for sample in samples if sample.statistic})),
        max(sample.rounding for sample in samples),
        statistic == MEAN,
    )


def _time_s(samples: Sequence[Sample], statistic: Statistic) -> tuple[Estimate, float]:
    """The time of a point, and the coverage of its interval."""
    return over_launches([sample.steady_times_s() for sample in samples], statistic)


def _figures(
    samples: Sequence[Sample], of_reference: Sequence[Sample], statistic: Statistic
) -> dict[str, Any]:
    """What else the times say, where the points have what that is made of."""
    make = _FIGURES.get(samples[0].kernel)
    try:
        return make(samples, of_reference, statistic) if make else {}
    except Unknown:
        return {}


def _speed_up(method: str | None, reference: str, point: _Point) -> tuple[Ratio | None, str]:
    """Return the time of the reference over that of `method`. If an MPI runs one algorithm per launch, no
    launch has both; they are then compared through an algorithm of Earlybird, which all launches have.
    """
    of_reference, samples = point.get(reference, ()), point[method]
    if ratio := paired_ratio(of_reference, samples):
        return ratio, ""
    for name, common in point.items():
        if (name or "").startswith(OWN) and (ratio := chained_ratio(of_reference, common, samples)):
            return ratio, name or ""
    return None, ""


def _bandwidth(samples: Sequence[Sample], _: Sequence[Sample], statistic: Statistic) -> dict[str, Any]:
    """Return the bytes per second that all receivers together receive."""
    config, time_s = samples[0].config, _time_s(samples, statistic)[0].value
    size_bytes = config["competitors"] * config["size_bytes"]
    return {"bandwidth_bytes_per_s": size_bytes / time_s if time_s > 0 else None}


def _completion(samples: Sequence[Sample], _: Sequence[Sample], statistic: Statistic) -> dict[str, Any]:
    """Return when sends complete and when their messages are received, the median over pairs, and the ratio
    of the two.
    """
    of_ranks = rank_times_of_launches(samples, statistic)
    if len(of_ranks) % 2:
        raise Unknown(
            f"a completion has the times of {len(of_ranks)} ranks, which are no pairs; measure it again"
        )
    send_s, receive_s = np.median(np.split(of_ranks, 2), axis=1).tolist()
    rank_times = [(sample, sample.rank_times_s) for sample in samples if sample.rank_times_s is not None]
    fractions = [
        np.divide(*np.split(times_s[sample.warmup :], 2, axis=1)).ravel() for sample, times_s in rank_times
    ]
    fraction = over_launches(fractions, statistic)[0].value
    return {"send_complete_s": send_s, "received_s": receive_s, "fraction": fraction}


def _pipeline(samples: Sequence[Sample], singles: Sequence[Sample], statistic: Statistic) -> dict[str, Any]:
    """Return the delay of the last partition, and the speed-up by (4) of Gillis et al. 2023 at the bandwidth
    of a single message; None if that was not measured.
    """
    config = samples[0].config
    size_bytes, partitions, threads = config["size_bytes"], config["partitions"], config["threads"]
    gamma, single_s = delay_rate(config), _time_s(singles, statistic)[0].value if singles else 0.0
    beta = size_bytes / single_s if single_s > 0 else None
    return {
        "threads": threads,
        "delay_s": gamma * (size_bytes // partitions),
        "delay_rate_s_per_byte": gamma,
        "single_bandwidth_bytes_per_s": beta,
        "ideal_speed_up": beta and large_message_gain(threads, partitions // threads, gamma, beta),
    }


def _message_rate(samples: Sequence[Sample], _: Sequence[Sample], statistic: Statistic) -> dict[str, Any]:
    """Return the messages per second of all threads until the last one is done, and of each thread over its
    time.
    """
    threads, window = samples[0].config["threads"], samples[0].config["window"]
    launches = [np.maximum(sample.steady_times_s(), 1e-12) for sample in samples]
    times_s = over_launches(launches, statistic)[0]
    rate, low, high = (threads * window * one for one in times_s.inverse())
    of_threads = thread_times_of_launches(samples, statistic)
    return {
        "rate_per_s": rate,
        "rate_low_per_s": low,
        "rate_high_per_s": high,
        "thread_rates_per_s": None if of_threads is None else (window / of_threads).tolist(),
    }


def _packing(samples: Sequence[Sample], _: Sequence[Sample], statistic: Statistic) -> dict[str, Any]:
    """Return the seconds for each byte that is packed or unpacked."""
    size_bytes = samples[0].config["size_bytes"]
    estimate = _time_s(samples, statistic)[0]
    per_byte = [value_s / size_bytes for value_s in estimate]
    return dict(zip(estimate_keys("s_per_byte"), per_byte, strict=True))


def _collective(samples: Sequence[Sample], _: Sequence[Sample], statistic: Statistic) -> dict[str, Any]:
    """Return the mean over ranks, as the OSU benchmarks report it, or the completion if that mean is the
    time; and when the root is done.
    """
    config = samples[0].config
    if any(sample.rank_times_s is None for sample in samples):
        return {}
    of_ranks = rank_times_of_launches(samples, statistic)
    figures: dict[str, Any] = {"mean_s": float(of_ranks.mean())}
    if samples[0].quantity == MEAN_OVER_RANKS:
        completion_s = _time_s([as_completion(sample) for sample in samples], statistic)[0]
        figures |= dict(zip(estimate_keys("completion_s"), completion_s, strict=True))
    if config["operation"] not in ROOTED:
        return figures | {"root": None, "root_s": None}
    return figures | {"root_s": float(of_ranks[config["root"]])}


_FIGURES: Mapping[str, Callable[[Sequence[Sample], Sequence[Sample], Statistic], dict[str, Any]]] = {
    kernels.PINGPONG.name: _bandwidth,
    kernels.CONTENTION.name: _bandwidth,
    kernels.COMPLETION.name: _completion,
    kernels.PIPELINE.name: _pipeline,
    kernels.PARTITIONED.name: partitioned_metrics,
    kernels.MSGRATE.name: _message_rate,
    kernels.COLLECTIVE.name: _collective,
    kernels.PACKING.name: _packing,
    **dict.fromkeys(kernels.MOTIFS, motif_figures),
}
