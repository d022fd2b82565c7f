"""Advice on pipelines: the best method first, crossovers where the formulas cross, the settings named."""

import pytest

from earlybird.advise.pipelined import advise_pipeline
from earlybird.data.profile import profile_from_json

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


def test_the_method_with_the_least_time_is_first_with_its_gain_and_what_to_do():
    # gamma*beta = 4: all but the last partition of 4 is on its way before that is ready.
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, always(4e-10))
    first = advice.ranked[0]
    assert (first.method, first.extra["partitions"], first.extra["messages"]) == ("many", 4, 4)
    single_s, many_s = 1e-6 + (1 << 22) / BANDWIDTH, 2e-6 + (1 << 20) / BANDWIDTH
    assert first.time_s == pytest.approx(many_s)
    assert first.gain == pytest.approx(single_s / many_s)
    assert "a communicator for each thread" in first.do
    assert [one.method for one in advice.ranked] == ["many", "single", "earlybird"]


def test_the_crossover_lies_where_the_formulas_cross():
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, always(4e-10))
    assert [stretch.method for stretch in advice.stretches] == ["single", "many"]
    assert (advice.stretches[0].from_bytes, advice.stretches[-1].to_bytes) == (512, 1 << 30)
    at = advice.stretches[1].from_bytes
    assert advice.stretches[0].to_bytes == at
    # many = 2 us + s/4/beta, or with the delay s/4*gamma hiding less than three messages 5 us + s/beta - D;
    # single = 1 us + s/beta; 10 % less decides.
    single_s = 1e-6 + at / BANDWIDTH
    many_s = max(5e-6 + at / BANDWIDTH - 4e-10 * at / 4, 2e-6 + at / 4 / BANDWIDTH)
    assert many_s == pytest.approx(0.9 * single_s, rel=0.02)
    assert advice.stretches[1].extra["extrapolated"] and not advice.stretches[0].extra["extrapolated"]


def test_without_a_delay_one_message_is_advised_everywhere():
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, always(0.0))
    assert advice.ranked[0].method == "single"
    assert [stretch.method for stretch in advice.stretches] == ["single"]


def test_a_delay_that_grows_with_partitions_asks_for_more_of_them():
    advice = advise_pipeline(profile(*TWO), 1 << 22, 4, lambda theta: 4e-10 * (theta - 0.9))
    assert advice.ranked[0].extra["partitions"] > 4
    assert advice.ranked[0].extra["partitions"] <= 64


def test_less_work_is_advised_where_more_gains_too_little():
    near = form("many", "each", 0.0, 0.99e-6)
    advice = advise_pipeline(profile(form("single", "one", 1e-6, 0.0), near, TWO[2]), 4, 4, always(1.0))
    assert advice.ranked[0].method == "single"
    assert advice.ranked[1].time_s < advice.ranked[0].time_s


@pytest.mark.parametrize(
    ("flavour", "setting"), [("mpich", "MPIR_CVAR_CH4_NUM_VCIS=16"), ("intel", "I_MPI_THREAD_MAX=16")]
)
def test_contexts_and_aggregation_come_with_their_settings(flavour, setting):
    forms = [
        form("single", "one", 1e-6, 0.0), form("many", "each", 1e-6, 1e-7, vcis=16),
        form("many", "each", 1e-6, 1e-6), form("earlybird:4096", 4096, 1e-6, 1e-6),
    ]  # fmt: skip
    do = {
        (one.method, one.extra.get("vcis")): one.do
        for one in advise_pipeline(profile(*forms, flavour=flavour), 1 << 22, 4, always(4e-10)).ranked
    }
    assert setting in do["many", 16] and setting not in do["many", None]
    assert "EARLYBIRD_AGGR_SIZE=4096" in do["earlybird:4096", None]
    assert f"earlybird exec --mpi {flavour}" in do["earlybird:4096", None]


def test_partitions_divide_the_size():
    advice = advise_pipeline(profile(*TWO), 4 * 3 * 1000, 4, lambda theta: 1e-9 * theta)
    assert all(12000 % one.extra["partitions"] == 0 for one in advice.ranked)


def test_a_method_kept_at_a_crossover_though_another_is_advised_is_explained():
    """Just below the size where `many` takes 10 % less it takes more than 5 % less."""
    changes = advise_pipeline(profile(*TWO), 1 << 22, 4, always(4e-10))
    assert not any("is kept for" in note for note in changes.notes)
    below = 4 * round(0.98 * changes.stretches[0].to_bytes / 4)
    advice = advise_pipeline(profile(*TWO), below, 4, always(4e-10))
    assert (advice.ranked[0].method, advice.stretches[0].method) == ("many", "single")
    (note,) = [note for note in advice.notes if "is kept for" in note]
    assert "single is kept" in note and "many is advised" in note and "10% less" in note


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
