"""The table of results: time, interval and speed-up of every method at every point."""

import json
from dataclasses import replace

import numpy as np
import pytest

from earlybird.compare.results import results
from earlybird.data.results import results_from_json
from earlybird.data.run import Sample

POINT = {
    "mpi": "mpich",
    "level": "intra_socket",
    "size_bytes": 4000,
    "partitions": 4,
    "gamma_s_per_byte": 1e-9,
}
OPERATION = {"mpi": "mpich", "operation": "bcast", "ranks": 4, "layout": "1x1x4", "map_by": "core",
             "size_bytes": 8, "root": 0}  # fmt: skip


def pipeline(method, time_s, launch="0", rounds=8, converged=True, **more):
    times_s = np.full(rounds, time_s)
    return Sample("pipeline", "time_to_solution", POINT | more, launch, times_s, method=method,
                  rounds=np.arange(rounds), converged=converged)  # fmt: skip


def collective(method, time_s, launch="0", quantity="completion"):
    return Sample("collective", quantity, OPERATION, launch, np.full(6, time_s), method=method,
                  rounds=np.arange(6),
                  rank_times_s=np.tile(time_s * np.array([0.25, 1, 0.5, 0.25]), (6, 1)))  # fmt: skip


def by_method(samples):
    return {result.method: result for result in results(samples)}


def test_a_result_has_the_median_over_launches_and_the_interval_of_the_launches():
    launches = [pipeline("single", 1e-6 * k, str(k), converged=k > 1) for k in (1, 2, 3, 4, 9)]
    (single,) = results(launches)
    assert single.time_s == pytest.approx((3e-6, 1e-6, 9e-6)) and single.coverage == 1 - 2**-4
    assert (single.launches, single.noisy, single.state) == (5, 1, "noisy in 1")
    assert single.speed_up is None and single.reference == "single"


def test_speed_ups_are_of_the_reference_over_the_method_within_a_launch():
    slow = [pipeline(method, 2 * time_s, "1") for method, time_s in (("single", 8e-6), ("many", 4e-6))]
    found = by_method([pipeline("single", 8e-6), pipeline("many", 2e-6), *slow])
    assert found["many"].speed_up == pytest.approx((3, 2, 4)) and found["many"].through == ""


def test_a_method_is_compared_at_its_own_point_only():
    other = by_method([pipeline("single", 8e-6), pipeline("many", 4e-6, partitions=8)])
    assert other["many"].speed_up is None


def test_algorithms_without_a_common_launch_are_compared_through_one_of_ours():
    found = by_method(
        [collective("linear", 6e-6, "1"), collective("own-binomial", 2e-6, "1"),
         collective("own-binomial", 1e-6), collective("default", 2e-6)]
    )  # fmt: skip
    assert found["linear"].speed_up.value == pytest.approx(2 / 3)
    assert found["linear"].through == "own-binomial" and found["own-binomial"].through == ""


def test_checks_of_algorithms_are_no_results():
    assert not results([collective("linear", 1.0, quantity="delayed_completion")])


def test_the_ideal_speed_up_uses_the_bandwidth_of_a_single_message():
    """mu*(theta + (epsilon + delta)/2*(sqrt(theta) + 1) - 1) with theta = 4 partitions of one thread."""
    plain = by_method([pipeline("single", 8e-6), pipeline("many", 4e-6)])["many"].figures
    assert plain["ideal_speed_up"] == pytest.approx(4 / (4 - 1e-9 * 4000 / 8e-6))
    noise = {"compute_s_per_byte": 1e-9, "epsilon": 0.04, "delta": 0.0}
    noisy = by_method([pipeline("single", 8e-6, **noise)])["single"].figures
    assert noisy["delay_rate_s_per_byte"] == pytest.approx(3.06e-9)
    assert noisy["ideal_speed_up"] == pytest.approx(4 / (4 - 3.06e-9 * 4000 / 8e-6))
    threads = by_method([pipeline("single", 8e-6, **noise, threads=4)])["single"].figures
    assert threads["delay_rate_s_per_byte"] == pytest.approx(0.04e-9)


def test_rates_are_of_all_threads_and_of_each():
    """The article's MPICH 4.2.1 with two threads: 6.67 million messages per second with contexts."""
    config = {"mpi": "here", "level": "inter_node", "size_bytes": 8, "window": 64, "threads": 2}
    samples = [
        Sample("msgrate", "time_per_window", config, str(k), np.full(4, 128 / rate), method="per-thread",
               extra={"thread_times_s": [[128 / rate, 64 / rate]] * 4})
        for k, rate in enumerate((6.67e6, 7e6, 6e6))
    ]  # fmt: skip
    (result,) = results(samples)
    figures = result.figures
    assert [figures[f"rate{end}_per_s"] for end in ("", "_low", "_high")] == pytest.approx([6.67e6, 6e6, 7e6])
    assert figures["thread_rates_per_s"] == pytest.approx([6.67e6 / 2, 6.67e6])


def test_a_collective_has_the_mean_over_ranks_and_the_root():
    figures = by_method([collective("default", 4e-6)])["default"].figures
    assert (figures["mean_s"], figures["root_s"]) == pytest.approx((2e-6, 1e-6))


def test_the_mean_over_ranks_as_the_time_has_the_completion_as_a_figure():
    samples = [collective("default", 2e-6, str(k), "mean_over_ranks") for k in range(3)]
    samples = [replace(one, rank_times_s=2 * np.asarray(one.rank_times_s)) for one in samples]
    (result,) = results(samples)
    names = ("mean_s", "completion_s", "completion_low_s", "completion_high_s", "root_s")
    assert [result.figures[name] for name in names] == pytest.approx([2e-6, 4e-6, 4e-6, 4e-6, 1e-6])
    assert (result.quantity, result.time_s.value) == ("mean_over_ranks", 2e-6)


def test_a_result_survives_json():
    for result in results([pipeline("single", 8e-6), pipeline("many", 4e-6), collective("default", 1e-6)]):
        assert results_from_json(json.loads(json.dumps([result.to_json()])), "") == [result]


def test_a_result_has_the_time_that_a_fitted_model_predicts():
    many = pipeline("many", 4e-6)
    fitted = results([pipeline("single", 8e-6), many], {many.point(): 5e-6})
    found = {result.method: result for result in fitted}
    assert (found["many"].fitted_s, found["single"].fitted_s) == (5e-6, None)
    assert found["many"].row()["fitted_s"] == 5e-6


def test_a_reference_of_an_earlier_version_has_null_for_its_speed_up():
    value = {"kernel": "pipeline", "quantity": "time_to_solution", "method": "single", "time_s": 1e-6,
             "time_low_s": 1e-6, "time_high_s": 2e-6, "coverage": 0.9, "speed_up": None, "speed_up_low": None,
             "speed_up_high": None, "speed_up_coverage": None, "reference": "single", "through": "",
             "launches": 3, "noisy": 0, "oversubscribed": False, **POINT}  # fmt: skip
    (result,) = results_from_json([value], "")
    assert result.speed_up is None and result.config == POINT
    assert result.row()["speed_up_coverage"] is None and result.time_s.high == 2e-6


def _values(method, values_s, launch="0", **more):
    return replace(
        pipeline(method, 1.0, launch, rounds=len(values_s), **more), times_s=np.array(values_s) * 1e-6
    )


def test_means_are_over_the_iterations_of_all_launches_with_an_interval_by_students_t():
    launches = [_values("single", [1, 2, 3], "0"), _values("single", [4, 20], "1")]
    (median,) = results(launches)
    (mean,) = results(launches, statistic="mean")
    assert median.time_s.value == pytest.approx(7e-6) and not median.mean_of_iterations
    assert "mean_of_iterations" not in median.to_json()
    # 90 % of Student's t with 4 degrees of freedom: 2.1318.
    half_s = 2.1318 * np.std([1, 2, 3, 4, 20], ddof=1) / 5**0.5 * 1e-6
    assert mean.time_s == pytest.approx((6e-6, max(6e-6 - half_s, 0), 6e-6 + half_s), rel=1e-4)
    assert mean.coverage == 0.9 and mean.to_json()["mean_of_iterations"] is True
    (one,) = results([_values("single", [5])], statistic="mean")
    assert one.time_s == pytest.approx((5e-6, 5e-6, 5e-6)) and one.coverage == 0


def test_figures_follow_the_statistic_and_speed_ups_stay_medians():
    samples = [_values("single", [8, 8, 8, 40]), _values("many", [4, 4, 4, 4])]
    both = [
        {result.method: result for result in results(samples, statistic=name)} for name in ("median", "mean")
    ]
    assert [by["many"].speed_up.value for by in both] == [2, 2]
    size = POINT["size_bytes"]
    rates = [by["many"].figures["single_bandwidth_bytes_per_s"] for by in both]
    assert rates == pytest.approx([size / 8e-6, size / 16e-6])


def test_collectives_have_the_mean_of_each_rank_with_the_statistic():
    sample = replace(
        collective("linear", 1e-6),
        times_s=np.array([1.0, 1, 4]) * 1e-6,
        rank_times_s=np.outer([1.0, 1, 4], [0.5, 0.5, 1, 1]) * 1e-6,
        rounds=np.arange(3),
    )
    values = [results([sample], statistic=name)[0].figures["mean_s"] for name in ("median", "mean")]
    assert values == pytest.approx([0.75e-6, 1.5e-6])
