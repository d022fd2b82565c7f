"""The results of two simulated nodes in docs/results match docs/results/simulation.md."""

from pathlib import Path

import pytest

from earlybird.compare.trees import verify
from earlybird.data.run import Run
from earlybird.data.simulated_machine import parse_simulated_machine

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "simgrid-two-nodes"
MACHINE = parse_simulated_machine("2x2x64")
OPERATIONS = ("bcast", "reduce")
MAPPINGS = ("socket", "node")


@pytest.fixture(scope="module")
def times_s() -> dict[tuple, float]:
    """(operation, mapping, method, ranks) -> seconds for one byte."""
    return {
        (s.config["operation"], s.config["map_by"], s.method, s.config["ranks"]): float(s.times_s[0])
        for name in ("own", "forced")
        for s in Run.open(FOLDER / name).samples()
        if s.quantity == "completion"
    }


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("map_by", MAPPINGS)
@pytest.mark.parametrize("own", ["own-", ""])
def test_a_pipeline_is_slowest_for_one_byte_and_a_binomial_tree_fastest(times_s, operation, map_by, own):
    for ranks in (64, 128, 129, 256):
        linear, pipeline, binomial = (
            times_s[operation, map_by, own + name, ranks] for name in ("linear", "pipeline", "binomial")
        )
        assert binomial < linear < pipeline


@pytest.mark.parametrize("method", ["own-pipeline", "own-linear"])
def test_by_socket_a_step_is_seen_where_the_second_node_begins_and_by_node_none(times_s, method):
    further_s = MACHINE.levels["inter_node"].latency_s - MACHINE.levels["inter_socket"].latency_s
    for map_by, step_s in (("socket", further_s), ("node", 0.0)):
        series = [times_s["bcast", map_by, method, ranks] for ranks in (124, 128, 129)]
        usual_s = (series[1] - series[0]) / 4
        # By node one of two neighbours on a node of its own adds nothing, hence the width of one message.
        assert series[2] - series[1] - usual_s == pytest.approx(step_s, abs=1.1 * MACHINE.send_overhead_s)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_a_process_adds_to_a_pipeline_is_a_hop(times_s, operation):
    for map_by, level in (("socket", "inter_socket"), ("node", "inter_node")):
        first, last = (times_s[operation, map_by, "own-pipeline", ranks] for ranks in (16, 112))
        assert (last - first) / 96 == pytest.approx(MACHINE.levels[level].latency_s, rel=0.02)


def test_every_forced_algorithm_is_confirmed():
    run = Run.open(FOLDER / "forced")
    verifications = verify(run.samples(), run.launches()).values()
    forced = {(one.operation, one.method) for one in verifications if one.verification.verdict == "confirmed"}
    assert forced >= {(op, method) for op in OPERATIONS for method in ("linear", "pipeline", "binomial")}


def test_where_a_pipeline_of_one_segment_never_wins_the_size_decides_between_the_others():
    best: dict[tuple, tuple[float, str]] = {}
    for sample in Run.open(FOLDER / "sizes").samples():
        if sample.method != "default" and sample.config["operation"] == "bcast":
            key = tuple(sample.config[name] for name in ("map_by", "ranks", "size_bytes"))
            best[key] = min(best.get(key, (float("inf"), "")), (float(sample.times_s[0]), sample.method))
    assert {method for _, method in best.values()} == {"own-binomial"}


def test_runs_tell_what_was_simulated():
    for folder in FOLDER.iterdir():
        run = Run.open(folder)
        assert run.header["machine"]["simulated"] == MACHINE.to_json()
        assert {launch["network"] for launch in run.launches()} == {MACHINE.describe()}
        assert all(sample.validated for sample in run.samples())
