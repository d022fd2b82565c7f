"""Files of every schema version load for ever: the golden files of version 1."""

from pathlib import Path

import numpy as np
import pytest

from earlybird.data import files
from earlybird.data.advice import collectives_advice_from_json, load_advice
from earlybird.data.baseline import load_baseline
from earlybird.data.check import load_check
from earlybird.data.comparison import load_comparison
from earlybird.data.errors import InputError
from earlybird.data.guidelines import load_guidelines
from earlybird.data.history import history_from_json, load_history
from earlybird.data.layout import parse_layout
from earlybird.data.node_counts import node_counts_from_json
from earlybird.data.pattern import load_pattern
from earlybird.data.prediction import load_prediction
from earlybird.data.profile import load_profile
from earlybird.data.projection import projection_from_json
from earlybird.data.recorded_rank import RECEIVED
from earlybird.data.recorded_trace import COMPLETION, load_traces
from earlybird.data.recording import load_recording
from earlybird.data.run import Run
from earlybird.data.run_comparison import load_run_comparison
from earlybird.data.simulated_machine import load_simulated_machine
from earlybird.data.simulated_program import simulated_program_from_json
from earlybird.data.speed_ups import speed_up_text
from earlybird.data.tolerance import tolerance_from_json

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden"


def test_run_1_loads_with_its_unterminated_line_left_out():
    run = Run.open(GOLDEN / "run-1")
    pingpong, exchange = run.samples()
    assert run.id == "20240229T120000-0a1b2c"
    assert run.header["a_later_key"] == {"kept": True}
    assert [launch["version"] for launch in run.launches()] == ["4.2.1"]
    assert pingpong.median_s() == 5e-7
    assert pingpong.batch == 100
    assert exchange.method == "irecv-first"
    assert exchange.rank_times_s.tolist() == [[1e-6, 2e-6], [3e-6, 1.5e-6]]
    assert exchange.rounds.tolist() == [0, 1]
    assert exchange.oversubscribed and not exchange.converged
    assert exchange.extra["events_s"] == [[[0.0], [1e-6]], [[0.0], [2e-6]]]


def test_profile_1_loads_with_its_defaults():
    profile = load_profile(GOLDEN / "profile-1.json")
    eager, rendezvous = profile.level("intra_socket").protocols
    assert (eager.sender_waits, rendezvous.sender_waits) == (False, True)
    assert profile.level("inter_node").protocols[0].sender_waits is False
    assert profile.level("inter_node").protocols[0].min_bytes == 0
    assert rendezvous.bandwidth_bytes_per_s == {1: 1e10, 2: 1.6e10, 4: 2e10}
    assert profile.level("intra_socket").protocol_index(np.array([0, 65535, 65536])).tolist() == [0, 0, 1]
    assert profile.forms[0]["parameters"] == {"alpha_s": 1e-6}
    assert profile.intervals["intra_socket"]["latency_s"] == [4e-7, 6e-7]


def test_pattern_1_loads():
    pattern = load_pattern(GOLDEN / "pattern-1.csv")
    assert pattern.triples().tolist() == [
        [3, 0, 100000], [0, 1, 200000], [1, 2, 400000], [2, 3, 400000], [2, 3, 0]
    ]  # fmt: skip
    # Predictions and comparisons name a pattern by this digest: it may never change.
    assert pattern.sha256() == "c9a2cd043a2311ae6e13d3794a1af6cfcb37bfa7119d71af64bfe20cd71349cd"


def test_layout_1_loads():
    layout = parse_layout(str(GOLDEN / "layout-1.csv"))
    assert layout.node.tolist() == [0, 0, 1, 1]
    assert layout.level(np.array([2, 0, 0]), np.array([3, 1, 2])).tolist() == [0, 1, 2]


def test_projection_1_loads():
    found = projection_from_json(
        files.read_json(GOLDEN / "projection-1.json", "projection", "earlybird.projection/1")
    )
    layout, mpi = found.run_changes()
    assert (layout.kind, layout.phases, mpi.kind) == ("layout", (1,), "mpi")
    assert layout.run_speed_up.value == pytest.approx(2 / 1.7)
    assert [speed_up_text(one.speed_up) for one in found.phases[0].changes] == ["1.43", "unknown"]
    assert found.balance.saved_s() == pytest.approx((0.2, 0.2))
    assert "with even work the run could be 200 ms shorter, 10 %" in found.uneven_work()
    assert found.to_json()["a_later_key"] is True


def test_simulated_program_1_loads():
    found = simulated_program_from_json(
        files.read_json(GOLDEN / "simulated-program-1.json", "simulation", "earlybird.simulated-program/1")
    )
    assert (found.changes, found.num_ranks) == (("--compute MPI_Allreduce=0.5x",), 2)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.simulated_s == pytest.approx(0.26025, rel=1e-5)
    assert {row.call for row in found.phases} >= {"MPI_Waitall", "MPI_Allreduce"}
    assert found.to_json()["a_later_key"] is True


def test_run_comparison_1_loads():
    found = load_run_comparison(GOLDEN / "run-comparison-1.json")
    assert [(one.config["size_bytes"], one.verdict) for one in found.changes] == [
        (8, "same"), (65536, "slower"),
    ]  # fmt: skip
    assert found.changes[1].ratio.value == pytest.approx(1.2, abs=0.02)
    assert [(one.what, one.before, one.after) for one in found.differences] == [("version", "5.0.1", "5.0.2")]


def test_check_1_loads():
    found = load_check(GOLDEN / "check-1.json")
    assert found.hosts == ["node0", "node1", "node2", "node3"]
    assert [(one.kind, one.hosts, one.measure) for one in found.findings] == [
        ("link", ("node1", "node2"), "bandwidth"), ("node", ("node1",), "/dev/shm"),
    ]  # fmt: skip
    assert found.bad_hosts() == ["node1"]
    assert found.nodes[1].facts["shm_bytes"] == 1 << 26


def test_baseline_1_loads():
    found = load_baseline(GOLDEN / "baseline-1.json")
    assert (found.name, found.mpi, found.circumstances["version"]) == ("monday", "mpich", "5.0.1")
    assert [len(one.launch_medians_s) for one in found.points] == [5, 5]


def test_history_1_loads():
    found = load_history(GOLDEN / "history-1.json")
    assert len(found.runs) == 12
    (change,) = found.series[1].changes
    assert (change.kind, change.first) == ("step", 6)
    assert found.differences["6"][0].after == "5.0.2"


def test_a_history_with_a_change_outside_its_runs_is_refused():
    value = files.read_json(GOLDEN / "history-1.json", "history")
    value["series"][1]["changes"][0]["last"] = 12
    with pytest.raises(InputError, match="counted from 0"):
        history_from_json(value)


def test_prediction_1_loads():
    prediction = load_prediction(GOLDEN / "prediction-1.json")
    assert prediction.time_s == pytest.approx([3e-6, 5e-6])
    assert prediction.slowest_rank == 1
    assert prediction.time_interval_s.shape == (2, 2)
    assert prediction.extra == {"a_later_key": "kept"}


def test_tolerance_1_loads():
    found = tolerance_from_json(files.read_json(GOLDEN / "tolerance-1.json", "tolerance"))
    latency, bandwidth = found.curves
    assert (found.model, found.ranks, found.layout) == ("fair", 3, "3x1x1")
    assert latency.name == "latency between nodes" and len(latency.time_s) == 13
    assert bandwidth.value == 1e10 and bandwidth.factor_at(0.05) == pytest.approx(0.95, abs=1e-3)


def test_node_counts_1_load():
    found = node_counts_from_json(files.read_json(GOLDEN / "node-counts-1.json", "node counts"))
    assert [one.nodes for one in found.counts] == [1, 2, 4]
    assert found.counts[1].inter_node_bytes == 500000 and found.counts[1].time_s.value == pytest.approx(96e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": [1.0]}, "factors and time_s have different lengths"),
        ({"level": "rack"}, "level is 'rack'"),
        ({"parameter": "loss"}, "parameter is 'loss'"),
        ({"time_s": "x"}, "time_s"),
    ],
)
def test_a_broken_tolerance_is_refused(change, message):
    value = files.read_json(GOLDEN / "tolerance-1.json", "tolerance")
    value["curves"][0] |= change
    with pytest.raises(InputError, match=message):
        tolerance_from_json(value)


def test_comparison_1_loads():
    comparison = load_comparison(GOLDEN / "comparison-1.json")
    assert comparison.error == {"staircase": 0.25, "postal": 0.625}
    assert comparison.slowest_error["postal"] == -0.5
    assert comparison.predicted_s["postal"].tolist() == [1e-6, 2e-6]
    assert comparison.extra == {"pattern_sha256": "ab"}


def test_advice_1_loads():
    advice = load_advice(GOLDEN / "advice-1.json")
    many, single = advice.ranked
    assert (many.method, many.speed_up) == ("many", (1.14, 1.12, 1.16))
    assert many.action == "one persistent message per partition"
    assert many.extra == {"partitions": 8, "source": "measured"}
    assert single.speed_up is None and single.time_s == (0.0067, 0.0067, 0.0067)
    assert [(one.from_bytes, one.to_bytes, one.method) for one in advice.size_ranges] == [
        (512, 108000, "single"), (108000, 1 << 30, "many")
    ]  # fmt: skip
    assert (advice.operation, advice.asked["threads"], advice.baseline) == ("pipeline", 8, "single")
    assert advice.notes == ("a note",) and advice.extra == {"a_later_key": "kept"}


def test_collectives_advice_1_loads():
    value = files.read_json(GOLDEN / "collectives-advice-1.json", "advice")
    found = collectives_advice_from_json(value)
    assert [one.asked["operation"] for one in found.advice] == ["bcast", "barrier"]
    assert found.advice[0].ranked[0].speed_up == (2.0, 1.8, 2.2)
    assert [piece.extra["config"]["kind"] for piece in found.pieces()] == ["rules", "rules"]
    assert found.to_json() == value
    with pytest.raises(InputError, match="advice is missing or empty"):
        collectives_advice_from_json(value | {"advice": []})


def test_simulated_machine_1():
    machine = load_simulated_machine(GOLDEN / "simulated-machine-1.json")
    assert machine.shape == "4x2x16" and machine.eager_bytes == 8192
    assert machine.levels["inter_node"].latency_s == 2.1e-6
    assert machine.nic_bandwidth_bytes_per_s == 2.5e10 and machine.sources == {"inter_node": "ping-pong"}


def test_guidelines_1_loads():
    found = load_guidelines(GOLDEN / "guidelines-1.json")
    (violated,) = [one for one in found.checks if one.outcome == "violated"]
    assert violated.text() == "allgather(64 B) <= gather(64 B) + bcast(256 B)"
    assert violated.ratio.low > 1.05 and "gather and bcast" in violated.remedy
    assert found.unchecked == ("barrier <= allreduce (needs barrier and allreduce)",)


def test_recording_1_loads_with_what_it_does_not_know_absent():
    recording = load_recording(GOLDEN / "recording-1")
    assert (recording.size, recording.ended_early, recording.facts) == (2, [], {})
    sent = recording.sent()
    assert (sent.src.tolist(), sent.messages.tolist(), sent.bytes.tolist()) == ([0, 1], [5, 5], [20, 20])
    first = recording.ranks[0]
    assert (first.settings, first.binding, first.load, first.open_call) == ({}, (), (), None)
    assert {one.identity for one in first.communicators.values()} == {None} and not first.epoch_samples
    assert ("main", "", 0) in {(step.function, step.file, step.line) for step in first.sites.values()}
    trace = load_traces(recording)[0]
    assert (len(trace.records), trace.num, trace.is_whole) == (20, 23, False)
    assert not trace.request.any() and np.isnan(trace.posted_s).all()
    assert [first.calls[call] for call in trace.records["call"][-2:]] == ["MPI_Barrier", "MPI_Finalize"]
    assert trace.records["order"][trace.records["role"] == RECEIVED].tolist() == [1, 2, 3, 4, 5]


def test_recording_1_with_a_trace_2_loads_with_its_requests():
    recording = load_recording(GOLDEN / "recording-1-trace-2")
    assert recording.settings == {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": {"recursive_doubling": (0, 1)}}
    assert recording.facts["host"]["host"] == "node0"
    first, second = recording.ranks[0], recording.ranks[1]
    assert first.binding == (0, 1) and len(first.load) == 3
    identities = [{one.identity for one in of_rank.communicators.values()} for of_rank in (first, second)]
    assert identities[0] == identities[1] and None not in identities[0]
    (samples,) = (one for one in first.epoch_samples.values() if len(one.epochs) == 5)
    assert samples.variant.tolist() == [0] * 5
    trace = load_traces(recording)[0]
    assert trace.is_whole and not trace.is_cut and len(trace.clocks_s) >= 2
    completions = trace.records["kind"] == COMPLETION
    assert [first.calls[call] for call in trace.records["call"][completions]] == ["MPI_Isend"] * 5
    assert trace.request[completions].tolist() == [2, 4, 6, 8, 10]
    assert np.isfinite(trace.posted_s[completions]).all()
