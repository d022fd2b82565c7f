"""Advice on pipelines: the best method first, crossovers where the formulas cross, the settings named."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from earlybird.advise.pipelined import advise_pipeline, kept_beyond
from earlybird.data.advice import SizeRange
from earlybird.data.profile import profile_from_json
from earlybird.data.results import Result, results_to_json
from earlybird.data.schema import Estimate

BANDWIDTH = 1e10


def form(method, messages, latency_s, overhead_s, **what):
    return {
        "what": {"operation": "pipeline", "method": method, "level": "intra_socket", "threads": 4} | what,
        "form": "joined",
        "parameters": {
            "messages": messages,
            "protocols": [
                {"latency_s": latency_s, "overhead_s": overhead_s, "bandwidth_bytes_per_s": BANDWIDTH}
            ],
        },
        "range": {"size_bytes": [512, 1 << 24], "partitions": [4, 64], "gamma_s_per_byte": [0, 1e-9]},
    }


def profile(*forms, flavour="mpich"):
    level = {"protocols": [{"latency_s": 1.0, "bandwidth_bytes_per_s": {"1": 1.0}}]}
    return profile_from_json(
        {"schema": "earlybird.profile/1", "context": {"flavour": flavour},
         "levels": {"intra_socket": level}, "forms": list(forms)}
    )  # fmt: skip


TWO = (form("single", "one", 1e-6, 0.0), form("many", "each", 1e-6, 1e-6), form("earlybird", "planned", 1, 1))


def always(gamma):
    return lambda theta: gamma


def test_the_method_with_the_least_time_is_first_with_its_speed_up_and_what_to_do():
    # gamma*beta = 4: all but the last partition of 4 is on its way before that is ready.
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, always(4e-10))
    first = advice.ranked[0]
    assert (first.method, first.extra["partitions"], first.extra["messages"]) == ("many", 4, 4)
    single_s, many_s = 1e-6 + (1 << 22) / BANDWIDTH, 2e-6 + (1 << 20) / BANDWIDTH
    assert first.time_s.value == pytest.approx(many_s)
    assert first.speed_up.value == pytest.approx(single_s / many_s)
    assert "a communicator for each thread" in first.action
    assert [one.method for one in advice.ranked] == ["many", "single", "earlybird"]


def test_the_crossover_lies_where_the_formulas_cross():
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, always(4e-10))
    assert [one.method for one in advice.size_ranges] == ["single", "many"]
    assert (advice.size_ranges[0].from_bytes, advice.size_ranges[-1].to_bytes) == (512, 1 << 24)
    at = advice.size_ranges[1].from_bytes
    assert advice.size_ranges[0].to_bytes == at
    # many = 2 us + s/4/beta, or with the delay s/4*gamma hiding less than three messages 5 us + s/beta - D;
    # single = 1 us + s/beta; a speed-up of 1.05 decides.
    single_s = 1e-6 + at / BANDWIDTH
    many_s = max(5e-6 + at / BANDWIDTH - 4e-10 * at / 4, 2e-6 + at / 4 / BANDWIDTH)
    assert many_s == pytest.approx(single_s / 1.05, rel=0.02)
    assert not any(one.extra["extrapolated"] for one in advice.size_ranges)


def test_without_a_delay_one_message_is_advised_everywhere():
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, always(0.0))
    assert advice.ranked[0].method == "single"
    assert [one.method for one in advice.size_ranges] == ["single"]


def test_a_delay_that_grows_with_partitions_asks_for_more_of_them():
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, lambda theta: 4e-10 * (theta - 0.9))
    assert advice.ranked[0].extra["partitions"] > 4
    assert advice.ranked[0].extra["partitions"] <= 64


def test_less_work_is_advised_where_more_speeds_up_too_little():
    near = form("many", "each", 0.0, 0.99e-6)
    advice = advise_pipeline(profile(form("single", "one", 1e-6, 0.0), near, TWO[2]), 4, 4, always(1.0))
    assert advice.ranked[0].method == "single"
    assert advice.ranked[1].time_s.value < advice.ranked[0].time_s.value


@pytest.mark.parametrize(
    ("flavour", "setting"), [("mpich", "MPIR_CVAR_CH4_NUM_VCIS=16"), ("intel", "I_MPI_THREAD_MAX=16")]
)
def test_contexts_and_aggregation_come_with_their_settings(flavour, setting):
    forms = [
        form("single", "one", 1e-6, 0.0), form("many", "each", 1e-6, 1e-7, vcis=16),
        form("many", "each", 1e-6, 1e-6), form("earlybird:4096", 4096, 1e-6, 1e-6),
    ]  # fmt: skip
    do = {
        (one.method, one.extra.get("vcis")): one.action
        for one in advise_pipeline(profile(*forms, flavour=flavour), 1 << 22, 4, always(4e-10)).ranked
    }
    assert setting in do["many", 16] and setting not in do["many", None]
    assert "EARLYBIRD_AGGR_SIZE=4096" in do["earlybird:4096", None]
    assert f"earlybird exec --mpi {flavour}" in do["earlybird:4096", None]


def test_partitions_divide_the_size():
    advice = advise_pipeline(profile(*TWO), 4 * 3 * 1000, 4, lambda theta: 1e-9 * theta)
    assert all(12000 % one.extra["partitions"] == 0 for one in advice.ranked)


def test_a_method_kept_in_the_table_of_sizes_though_another_is_advised_is_explained():
    """`many` is faster than `fence`, but not clearly: the table keeps `fence` where it began."""
    ranges = [SizeRange(512, 4096, "single", ""), SizeRange(4096, 1 << 20, "fence", "", {"vcis": 4})]
    first = SimpleNamespace(option=SimpleNamespace(name="many"))
    (note,) = kept_beyond(ranges, first, 8192)
    assert "fence with 4 contexts is kept for 8 KiB though many is advised" in note
    assert kept_beyond(ranges, SimpleNamespace(option=SimpleNamespace(name="single")), 1024) == []


def test_methods_measured_with_other_threads_are_not_compared_with_those_with_the_same():
    """One message of 4 threads takes longer than of one: compared with it, every method of one thread would
    gain."""
    alone = form("rma-fence", "each", 1e-9, 1e-9, threads=1)
    advice = advise_pipeline(profile(*TWO, alone), 1 << 22, 4, always(4e-10))
    assert {one.method for one in advice.ranked} == {"single", "many", "earlybird"}
    assert any("with other threads than single and so left out: rma-fence" in note for note in advice.notes)
    advice = advise_pipeline(profile(*TWO, alone), 1 << 22, 2, always(4e-10))
    assert any("with other threads than single" in note for note in advice.notes)
    only = advise_pipeline(profile(TWO[0], alone), 1 << 22, 4, always(4e-10))
    assert "rma-fence" in {one.method for one in only.ranked}


def measured(method, size_bytes, partitions, time_s, speed_up=None, gamma=4e-10, **more):
    """A result of five launches whose speed-up varies by 5 %."""
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": size_bytes, "partitions": partitions,
              "threads": 4, "gamma_s_per_byte": gamma}  # fmt: skip
    interval = None if speed_up is None else Estimate(speed_up, 0.95 * speed_up, 1.05 * speed_up)
    time = Estimate(time_s, 0.98 * time_s, 1.02 * time_s)
    values = {"launches": 5, "speed_up": interval, "reference": "single", "speed_up_coverage": 0.94} | more
    return Result("pipeline", "time_to_solution", method, config, time, 0.94, **values)


def grid(speed_up, **more):
    """Results of `single` and `many` at sizes of 64 KiB to 4 MiB in 4 and 8 partitions."""
    found = []
    for size in (1 << 16, 1 << 18, 1 << 20, 1 << 22):
        for partitions in (4, 8):
            single_s = 1e-6 + size / BANDWIDTH
            found.append(measured("single", size, partitions, single_s, **more))
            found.append(measured("many", size, partitions, single_s / speed_up, speed_up, **more))
    return found


def advised(results, size_bytes=1 << 20, **more):
    forms = [form | {"range": form["range"] | {"partitions": [4, 8]}} for form in TWO[:2]]
    whole = replace(profile(*forms), extra={"results": results_to_json(results)})
    return advise_pipeline(whole, size_bytes, 4, always(4e-10), **more)


def test_a_measured_point_stands_and_a_model_that_disagrees_is_reported():
    """The model predicts a speed-up of `many` of 2 and more; measured it is 0.7 times as fast."""
    advice = advised(grid(0.7))
    assert [one.method for one in advice.ranked] == ["single", "many"]
    many = advice.ranked[1]
    assert many.basis == "measured" and many.measured_speed_up.value == many.speed_up.value
    assert many.speed_up.value == 0.7 and many.predicted_speed_up.value > 2
    assert any("THE MODEL DISAGREES WITH THE MEASUREMENT for many" in note for note in advice.notes)
    assert [one.method for one in advice.size_ranges] == ["single"]


def test_between_measured_points_the_model_is_corrected_by_them():
    single, many = advised(grid(0.7), size_bytes=1 << 19).ranked
    assert many.basis == "model" and many.measured_speed_up is None
    assert single.method == "single" and many.predicted_speed_up.value > 2 * many.speed_up.value
    assert many.speed_up.low < 0.7 < many.speed_up.high


def test_noisy_measurements_of_few_launches_give_no_advice():
    clear, noisy = advised(grid(1.5)), advised(grid(1.5, launches=3, noisy=3))
    assert clear.ranked[0].method == "many" and noisy.ranked[0].method == "single"
    assert any("noisy" in note and "--launches" in note for note in noisy.notes)
    assert noisy.ranked[1].measured_state == "noisy in 3"


def test_outside_the_measured_range_nothing_is_advised_over_what_was_measured():
    advice = advise_pipeline(profile(*TWO[:2]), 256, 4, always(4e-10))
    assert {one.basis for one in advice.ranked} == {"extrapolated"}
    assert any("outside the measured range" in note for note in advice.notes)


def test_a_measured_method_with_too_few_points_for_a_model_is_in_the_answer():
    two = [measured("single", 1 << 20, 4, 1e-4), measured("rma-fence", 1 << 20, 4, 5e-5, 2.0)]
    levels_only = replace(profile(), extra={"results": results_to_json(two)})
    advice = advise_pipeline(levels_only, 1 << 20, 4, always(4e-10))
    assert [(one.method, one.basis) for one in advice.ranked] == [
        ("rma-fence", "measured"),
        ("single", "measured"),
    ]
    assert advice.ranked[0].measured_speed_up.value == 2
    assert any("left out: earlybird, many" in note for note in advice.notes)


def test_a_measured_number_of_partitions_is_a_choice_whatever_it_is():
    three = [measured("single", 3 << 18, 12, 1e-4), measured("many", 3 << 18, 12, 2e-5, 5.0)]
    advice = advised([*grid(0.7), *three], size_bytes=3 << 18)
    assert (advice.ranked[0].method, advice.ranked[0].extra["partitions"]) == ("many", 12)
    assert advice.ranked[0].measured_speed_up.value == 5


def test_times_that_the_clock_did_not_resolve_correct_nothing():
    zero = measured("many", 1 << 20, 4, 0.0)
    many = {one.method: one for one in advised([*grid(1.5)[:-2], zero]).ranked}["many"]
    assert many.time_s.low > 0 and many.speed_up.low > 0
