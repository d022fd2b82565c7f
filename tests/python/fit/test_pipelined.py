"""Pipelines give back the costs they were drawn from, and say how well."""

import json

import numpy as np
import pandas
import pytest

from earlybird.data.errors import InputError
from earlybird.data.profile import load_profile
from earlybird.data.run import Run, Sample
from earlybird.fit import pipelined as fitting
from earlybird.fit.observations import read_runs
from earlybird.fit.profile import fit_profile
from earlybird.fit.resampling import NUM_REPLICATES
from earlybird.models.pipelined import PipelineCosts, pipeline_time_s

SIZES = (512, 8 << 10, 128 << 10, 1 << 20, 16 << 20)
PARTITIONS = (1, 4, 32)
GAMMAS = (0.0, 1e-10, 1e-9)
ONE_PROTOCOL = PipelineCosts(np.array([0]), np.array([1e-6]), np.array([4e-7]), np.array([1e-10]))


def table(method, messages, costs, *, launches=5, noise=0.02, pace=lambda launch: 1.0, threads=1):
    random = np.random.default_rng(7)
    rows = [
        (
            method, "intra_socket", threads, 0, size, partitions, gamma, f"launch{launch}",
            float(pipeline_time_s(messages, partitions, size / partitions, gamma * size / partitions, costs))
            * random.lognormal(0, noise) * pace(launch),
            False,
        )
        for launch in range(launches)
        for size in SIZES
        for partitions in PARTITIONS
        for gamma in GAMMAS
    ]  # fmt: skip
    return pandas.DataFrame(rows, columns=list(fitting.COLUMNS))


def predicted_s(form, size, partitions, gamma):
    parameters = form.parameters
    delay_s = gamma * size / partitions
    costs = PipelineCosts(**parameters.columns())
    return float(pipeline_time_s(parameters.messages, partitions, size / partitions, delay_s, costs))


def median_error(form, rows):
    errors = [
        abs(predicted_s(form, row.size_bytes, row.partitions, row.gamma_s_per_byte) / row.time_s - 1)
        for row in rows.itertuples()
    ]
    return np.median(errors)


def test_costs_come_back_from_noisy_times():
    (form,) = fitting.pipeline_forms(table("many", "each", ONE_PROTOCOL))
    (protocol,) = form.parameters.protocols
    assert protocol.latency_s == pytest.approx(1e-6, rel=0.1)
    assert protocol.overhead_s == pytest.approx(4e-7, rel=0.05)
    assert protocol.bandwidth_bytes_per_s == pytest.approx(1e10, rel=0.03)
    assert form.parameters.overlap == 1 and form.parameters.burst_bytes is None
    assert form.extra["error"] < 0.02 and form.extra["held_out_error"] < 0.03
    assert form.extra["held_out_error_sizes"] < 0.05
    assert form.range == {"size_bytes": (512, 16 << 20), "partitions": (1, 32), "gamma_s_per_byte": (0, 1e-9)}
    latencies = [one.protocols[0].latency_s for one in form.replicates]
    assert len(latencies) == NUM_REPLICATES
    assert min(latencies) < 1.02e-6 and max(latencies) > 0.98e-6


def test_the_kept_parameters_mean_to_the_model_what_the_fit_saw():
    rows = table("earlybird", "planned", ONE_PROTOCOL, launches=1)
    (form,) = fitting.pipeline_forms(rows)
    assert median_error(form, rows) == pytest.approx(form.extra["error"], abs=0.01)
    assert median_error(form, rows) < 0.03


def test_a_protocol_for_large_messages_and_the_calls_are_found():
    costs = PipelineCosts(
        np.array([0, 8192]), np.array([5e-7, 5e-7]), np.array([1e-7, 3e-6]), np.array([5e-10, 1e-10]),
        per_partition_s=5e-8,
    )  # fmt: skip
    (form,) = fitting.pipeline_forms(table("many", "each", costs, launches=1))
    small, large = form.parameters.protocols
    assert large.min_bytes == 8192
    assert large.overhead_s == pytest.approx(3e-6, rel=0.1)
    assert large.bandwidth_bytes_per_s == pytest.approx(1e10, rel=0.05)
    # With one message for each partition, calls and messages are indistinguishable.
    assert small.overhead_s + form.parameters.per_partition_s == pytest.approx(1.5e-7, rel=0.1)


def test_an_mpi_that_moves_nothing_early_has_no_overlap():
    costs = PipelineCosts(np.array([0]), np.array([1e-6]), np.array([4e-7]), np.array([1e-10]), overlap=0.0)
    (form,) = fitting.pipeline_forms(table("many", "each", costs, launches=1))
    assert form.parameters.overlap == pytest.approx(0.0, abs=0.05)


def test_bytes_beyond_a_cache_are_found():
    costs = PipelineCosts(
        np.array([0]), np.array([1e-6]), np.array([0.0]), np.array([1e-10]),
        burst_bytes=1 << 20, post_burst_s_per_byte=1e-10,
    )  # fmt: skip
    (form,) = fitting.pipeline_forms(table("single", "one", costs, launches=1))
    assert form.parameters.burst_bytes == 1 << 20
    assert form.parameters.post_burst_s_per_byte == pytest.approx(1e-10, rel=0.1)
    assert [protocol.overhead_s for protocol in form.parameters.protocols] == [0]


@pytest.mark.parametrize("messages", ["one", "each"])
def test_what_the_partitioned_calls_of_an_mpi_send_is_found_out(messages):
    (form,) = fitting.pipeline_forms(table("partitioned", messages, ONE_PROTOCOL, launches=1))
    assert form.parameters.messages == messages


def test_the_method_gives_the_aggregation():
    (form,) = fitting.pipeline_forms(table("earlybird:65536", 65536, ONE_PROTOCOL, launches=1))
    assert form.parameters.messages == 65536


def test_slow_launches_without_a_method_do_not_make_it_fast():
    slow = table("single", "one", ONE_PROTOCOL, pace=lambda launch: 2.0)
    quick = table("single", "one", ONE_PROTOCOL, launches=4).assign(launch=lambda rows: "other" + rows.launch)
    many = table("many", "each", ONE_PROTOCOL, pace=lambda launch: 2.0)
    forms = {form.method: form for form in fitting.pipeline_forms(pandas.concat([slow, quick, many]))}
    ratio = predicted_s(forms["many"], 8192, 4, 0.0) / predicted_s(forms["single"], 8192, 4, 0.0)
    true_s = [float(pipeline_time_s(m, 4, 2048.0, 0.0, ONE_PROTOCOL)) for m in ("each", "one")]
    assert ratio == pytest.approx(true_s[0] / true_s[1], rel=0.1)


def test_methods_threads_and_contexts_have_forms_of_their_own():
    rows = pandas.concat(
        [
            table("single", "one", ONE_PROTOCOL, launches=1),
            table("single", "one", ONE_PROTOCOL, launches=1, threads=4),
            table("many", "each", ONE_PROTOCOL, launches=1).assign(vcis=16),
            table("many", "each", ONE_PROTOCOL, launches=1).head(3).assign(threads=8),
        ]
    )
    found = [(form.method, form.threads, form.vcis) for form in fitting.pipeline_forms(rows)]
    assert sorted(found, key=str) == [("many", 1, 16), ("single", 1, None), ("single", 4, None)]


def write_run(
    path, *, methods=("single", "many"), threads=1, config=None, environment=None, launches=1, slower=1.0
):
    run = Run.create(path, machine={"cpu_model": "Test CPU", "cores": 4}, command=["earlybird"], seed=1)
    messages = {"single": "one", "many": "each"}
    for launch in range(launches):
        run.append_launch(
            {
                "id": f"pipeline-{launch}", "kernel": "pipeline", "flavour": "mpich", "version": "1",
                "launcher": "local", "threads_per_rank": threads, "environment": environment or {},
                "set_by_launcher": sorted(environment or {}), "control_variables": dict(environment or {}),
            }
        )  # fmt: skip
        run.append_samples(
            Sample(
                "pipeline",
                "time_to_solution",
                {"mpi": "mpich", "level": "intra_socket", "size_bytes": size, "partitions": partitions,
                 "gamma_s_per_byte": gamma} | (config or {}),
                f"pipeline-{launch}",
                np.full(3, slower * float(pipeline_time_s(
                    messages[method], partitions, size / partitions, gamma * size / partitions, ONE_PROTOCOL
                ))),
                method=method,
            )
            for method in methods
            for size in SIZES
            for partitions in (4, 8)
            for gamma in (0.0, 1e-9)
        )  # fmt: skip
    return path


def test_a_run_of_pipelines_alone_becomes_a_profile_with_the_level_of_single(tmp_path):
    profile = fit_profile(read_runs([write_run(tmp_path / "run")]))
    (protocol,) = profile.levels["intra_socket"].protocols
    assert protocol.latency_s == pytest.approx(1.4e-6, rel=1e-3)
    assert protocol.bandwidth_bytes_per_s[1] == pytest.approx(1e10, rel=1e-3)
    assert any("the method single of pipelines" in warning for warning in profile.extra["warnings"])
    (tmp_path / "p.json").write_text(json.dumps(profile.to_json()))
    forms = load_profile(tmp_path / "p.json").pipelines
    assert [(form.method, form.threads) for form in forms] == [("single", 1), ("many", 1)]
    assert forms[1].parameters.protocols[0].overhead_s == pytest.approx(4e-7, rel=0.01)


def test_a_level_takes_its_single_messages_from_the_fewest_threads(tmp_path):
    """Times with more threads include the barriers between them."""
    few = write_run(tmp_path / "one")
    many = write_run(tmp_path / "four", config={"threads": 4}, slower=5.0)
    (protocol,) = fit_profile(read_runs([many, few])).levels["intra_socket"].protocols
    assert protocol.latency_s == pytest.approx(1.4e-6, rel=1e-3)


def test_computations_with_noise_are_named_where_nothing_else_was_measured(tmp_path):
    run = Run.create(tmp_path / "noise", machine={}, command=["earlybird"], seed=1)
    run.append_launch({"id": "0", "kernel": "pipeline"})
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 64, "partitions": 4}
    noise = {"compute_s_per_byte": 1e-9, "epsilon": 0.04, "delta": 0.0}
    run.append_samples(
        [Sample("pipeline", "time_to_solution", config | noise, "0", np.ones(3), method="single")]
    )
    with pytest.raises(InputError, match=r"pipelines with full compute noise \(--ai\)"):
        read_runs([run.path])


def test_threads_and_contexts_of_pipelines_make_no_other_context(tmp_path):
    contexts = {"MPIR_CVAR_CH4_NUM_VCIS": "4"}
    runs = [
        write_run(tmp_path / "one"),
        # Runs of earlier versions keep the threads with the launch alone.
        write_run(tmp_path / "four", threads=4),
        write_run(tmp_path / "contexts", threads=4, config={"threads": 4, "vcis": 4}, environment=contexts),
    ]
    forms = fit_profile(read_runs(runs)).pipelines
    assert [(form.method, form.threads, form.vcis) for form in forms] == [
        (method, threads, vcis)
        for threads, vcis in ((1, None), (4, None), (4, 4))
        for method in ("single", "many")
    ]


def test_times_of_receiving_threads_are_not_mixed_with_those_of_one(tmp_path):
    alone = write_run(tmp_path / "one")
    threads = write_run(tmp_path / "threads", config={"receivers": "threads"}, slower=3.0)
    mixed, theirs = fit_profile(read_runs([alone, threads])), fit_profile(read_runs([threads]))
    one_s = float(pipeline_time_s("each", 4, 2048.0, 0.0, ONE_PROTOCOL))
    for profile, receivers, slower in ((mixed, None, 1.0), (theirs, "threads", 3.0)):
        assert {form.what.receivers for form in profile.pipelines} == {receivers}
        many = next(form for form in profile.pipelines if form.method == "many")
        assert predicted_s(many, 8192, 4, 0.0) == pytest.approx(slower * one_s, rel=0.2)
        assert sum("receiving threads" in warning for warning in profile.extra["warnings"]) == 1


def test_a_chosen_number_of_messages_has_no_model(tmp_path):
    methods = ("single", "many")
    run = write_run(tmp_path / "run", methods=methods)
    samples = run / "samples.ndjson"
    text = samples.read_text()
    samples.write_text(text + text.replace('"many"', '"earlybird-segments:2"'))
    profile = fit_profile(read_runs([run]))
    assert {form.method for form in profile.pipelines} == set(methods)


def test_caveats_give_warnings(tmp_path):
    few = table("many", "each", ONE_PROTOCOL, launches=1).head(3)
    alike = table("partitioned", "each", ONE_PROTOCOL, launches=1).query("partitions == 4")
    single = table("single", "one", ONE_PROTOCOL, launches=1).query("partitions == 4")
    shared = table("single", "one", ONE_PROTOCOL, launches=1, threads=4).assign(oversubscribed=True)
    warnings = fitting.warnings(pandas.concat([few, alike, single, shared]))
    assert "pipelines of many have fewer than 4 points" in warnings[0]
    assert "45 samples of pipelines with 4 threads had more of them than cores" in warnings[1]
    assert "pipelines of partitioned have one number of partitions" in warnings[2]
    assert "78 of 78 points of pipelines have fewer than 5 launches (1 at least)" in warnings[3]
    assert len(warnings) == 4
    assert fitting.warnings(table("many", "each", ONE_PROTOCOL, launches=5)) == []


def test_pipelines_without_single_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(Exception, match="no pipelines with the method single; run `earlybird measure"):
        read_runs([write_run(tmp_path / "run", methods=("many",))])


@pytest.mark.parametrize(
    "config", [{"partitions": 0}, {"partitions": "four"}, {"level": "moon"}, {"threads": 0}]
)
def test_an_unusable_pipeline_is_refused_in_a_sentence(tmp_path, config):
    with pytest.raises(InputError, match=next(iter(config))):
        read_runs([write_run(tmp_path / "run", config=config)])


def test_a_fit_keeps_the_best_of_all_turns_also_the_last(monkeypatch):
    points = fitting._Launches(table("many", "each", ONE_PROTOCOL, noise=0)).points(
        ("many", "intra_socket", 1, 0)
    )
    structure = fitting._Structure("each")
    design, guess = fitting._design(points, structure), fitting._guess(points, structure)
    monkeypatch.setattr(fitting, "MAX_TURNS", 1)
    parameters, error = fitting._refine(design, points.time_s, guess, False)
    first = np.abs(design.predict_s(guess) / points.time_s - 1).mean()
    assert error < first and (parameters != guess).any()
    assert error == pytest.approx(np.abs(design.predict_s(parameters) / points.time_s - 1).mean())
