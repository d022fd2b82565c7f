"""Predicted methods: from pipelines where they were measured, from latency and bandwidth elsewhere."""

import pytest

from earlybird.data.errors import InputError
from earlybird.data.profile import profile_from_json
from earlybird.predict.pipelined import method_models, pipeline_level, predict_methods, reservations

LEVEL = {"protocols": [{"latency_s": 2e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]}


def form(method, messages, *, overhead_s=1e-6, level="intra_socket", replicates=(), **what):
    def parameters(each_s):
        protocol = {"latency_s": 1e-6, "overhead_s": each_s, "bandwidth_bytes_per_s": 1e10}
        return {"messages": messages, "protocols": [protocol]}

    return {
        "what": {"operation": "pipeline", "method": method, "level": level, "threads": 1} | what,
        "form": "joined",
        "parameters": parameters(overhead_s),
        "range": {"size_bytes": [512, 1 << 20], "partitions": [1, 32], "gamma_s_per_byte": [0, 1e-9]},
        "replicates": [parameters(each_s) for each_s in replicates],
    }


def profile(*forms, levels=("intra_socket",)):
    return profile_from_json(
        {"schema": "earlybird.profile/1", "id": "p", "levels": dict.fromkeys(levels, LEVEL),
         "forms": list(forms)}
    )  # fmt: skip


def predictions(models, *what):
    return {found.method: found for found in predict_methods(models, *what)}


def test_without_pipelines_every_message_costs_its_latency():
    models = method_models(profile(), "intra_socket", 8)
    found = predictions(models, 800_000, 8, 0.0)
    assert {one.source for one in found.values()} == {"levels"}
    assert found["single"].time_s == pytest.approx(2e-6 + 800e-6)
    assert found["many"].time_s == pytest.approx(8 * 2e-6 + 800e-6)
    assert found["many"].speed_up == pytest.approx(802 / 816)
    assert found["earlybird"].messages == 1
    # The last partition is 100 kB and comes when the others have long left.
    late = predictions(models, 800_000, 8, 5e-3)
    assert late["many"].time_s == pytest.approx(2e-6 + 100e-6)
    assert late["earlybird"].time_s == pytest.approx(2e-6 + 100e-6)
    assert (
        "not measured as pipelines: single, earlybird, many"
        in reservations(models, 1, 1, 0.0, "`measure`", "intra_socket")[0]
    )


def test_measured_methods_are_listed_with_others_and_their_threads():
    models = method_models(
        profile(form("single", "one"), form("many", "each", threads=4), form("many", "each", threads=16)),
        "intra_socket",
        8,
    )
    assert [(model.method, model.source) for model in models] == [
        ("single", "pipeline fit at 1 thread"),
        ("earlybird", "levels"),
        ("many", "pipeline fit at 4 threads"),
    ]
    notes = reservations(models, 512, 1, 0.0, "`measure`", "intra_socket")
    assert any(
        note.startswith("pipeline fit at 4 threads: many; these times do not include how") for note in notes
    )
    assert (
        method_models(profile(form("many", "each", threads=8)), "intra_socket", 8)[2].source == "pipeline fit"
    )


def test_contexts_are_methods_of_their_own():
    models = method_models(profile(form("many", "each"), form("many", "each", vcis=16)), "intra_socket", 1)
    assert [(one.method, one.vcis) for one in models if one.method == "many"] == [
        ("many", None),
        ("many", 16),
    ]


def test_gains_have_intervals_where_both_methods_have_replicates():
    single = form("single", "one", replicates=(1e-6, 2e-6, 3e-6))
    many = form("many", "each", replicates=(1e-6, 2e-6, 3e-6))
    found = predictions(method_models(profile(single, many), "intra_socket", 1), 1000, 10, 0.0)
    low, high = found["many"].speed_up_interval
    assert low <= found["many"].speed_up <= high and high - low > 0.001
    assert found["earlybird"].speed_up_interval is None
    # The same draws make single faster and slower on both sides of its ratio to itself.
    assert found["single"].speed_up_interval == (1, 1)


def test_what_lies_outside_the_measured_range_is_said():
    models = method_models(profile(form("single", "one"), form("many", "each")), "intra_socket", 1)
    notes = " ".join(reservations(models, 1 << 30, 64, 1e-8, "`measure`", "intra_socket"))
    assert "512 B to 1 MiB; 1 GiB is extrapolated (single, many)" in notes
    assert "1 to 32; 64 is extrapolated (many)" in notes
    assert "0 us/MB to 1000 us/MB; 1e+04 us/MB is extrapolated (many)" in notes


def test_the_level_is_the_outermost_with_pipelines():
    both = ("intra_socket", "inter_node")
    assert pipeline_level(profile(levels=both), None) == "inter_node"
    assert pipeline_level(profile(form("many", "each"), levels=both), None) == "intra_socket"
    assert pipeline_level(profile(form("many", "each"), levels=both), "inter_node") == "inter_node"
    for asked, says in (("moon", "--level is 'moon'"), ("inter_socket", "has no level inter_socket")):
        with pytest.raises(InputError, match=says):
            pipeline_level(profile(), asked)
