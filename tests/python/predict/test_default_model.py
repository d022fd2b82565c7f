"""The default model of an exchange: by replays or by its levels, the same for predictions and for advice."""

import importlib.util
import json
from dataclasses import replace

import numpy as np
import pytest

from earlybird.advise.aggregation import DIRECT, advise_aggregation
from earlybird.advise.layout import Swaps, advise_layout
from earlybird.advise.partition import advise_partition
from earlybird.data.exchange_models import MODELS
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Replay, load_profile, profile_from_json, save_profile
from earlybird.patterns.mesh import tetrahedral_mesh
from earlybird.predict import choose_model, merge_profiles, predict_exchange
from earlybird.predict.solvers import SOLVERS

_PROTOCOL = {"latency_s": 2e-6, "bandwidth_bytes_per_s": {"1": 10e9, "2": 16e9, "4": 20e9}}
LEVELS = {name: {"protocols": [_PROTOCOL]} for name in ("intra_socket", "inter_socket", "inter_node")}
PROFILE = profile_from_json({"schema": "earlybird.profile/1", "id": "p", "levels": LEVELS})
REPLAYS = (
    Replay("inter_node", {"staircase": 0.3, "fair": 0.2, "queue": 0.1, "max-rate": 0.05}),
    Replay("inter_node", {"staircase": 0.3, "fair": 0.1, "queue": 0.2}),
    Replay("inter_node", {"staircase": 0.3, "fair": 0.1, "queue": 0.3}),
    Replay("intra_socket", {"staircase": 0.3, "max-rate": 0.1, "postal": 0.4}),
)
REPLAYED = replace(PROFILE, replays=REPLAYS)
SIMULATED = replace(PROFILE, context={"launcher": "simgrid"})
CROSSING = ["intra_socket", "inter_node"]


@pytest.mark.parametrize(
    ("levels", "profile", "name", "reason"),
    [
        ([], PROFILE, "staircase", "errs least inside nodes"),
        (["intra_socket"], PROFILE, "staircase", "errs least inside nodes"),
        (["inter_socket"], SIMULATED, "staircase", "errs least inside nodes"),
        (CROSSING, PROFILE, "queue", "errs least between nodes over TCP"),
        (CROSSING, SIMULATED, "fair", "errs least between nodes that SimGrid simulates"),
        (CROSSING, REPLAYED, "fair", "errs least between nodes: 10 % in 3 replays"),
        (["intra_socket"], REPLAYED, "max-rate", "errs least on the same socket: 10 % in 1 replay"),
        (["inter_socket"], REPLAYED, "staircase", "errs least inside nodes"),
    ],
)
def test_the_default_is_what_errs_least_in_exchanges_that_go_as_far(levels, profile, name, reason):
    assert choose_model(levels, profile) == (name, reason)
    assert choose_model(levels, profile, "postal") == ("postal", "")


def test_replays_of_models_of_another_version_are_no_evidence_for_them():
    other = Replay("inter_node", {"new": 0.01})
    assert choose_model(CROSSING, replace(PROFILE, replays=(other,))).name == "queue"
    both = Replay("inter_node", {"new": 0.01, "postal": 0.5})
    assert choose_model(CROSSING, replace(PROFILE, replays=(both,))).name == "postal"


def test_replays_are_kept_in_files_and_by_merged_profiles(tmp_path):
    save_profile(REPLAYED, tmp_path / "p.json")
    assert load_profile(tmp_path / "p.json").replays == REPLAYS
    assert "replays" not in PROFILE.to_json()
    apart = [replace(REPLAYED, levels={name: REPLAYED.levels[name]}, replays=()) for name in LEVELS]
    apart[0] = replace(apart[0], replays=REPLAYS[3:])
    assert merge_profiles(apart).replays == REPLAYS[3:]


def test_a_prediction_says_why_its_model_was_chosen_unless_it_was_named():
    pattern, layout = _ring(4), parse_layout("2x1x2")
    chosen = predict_exchange(pattern, layout, REPLAYED)
    assert (chosen.model, chosen.extra["model_reason"]) == choose_model(CROSSING, REPLAYED)
    assert "model_reason" not in predict_exchange(pattern, layout, REPLAYED, "fair").extra


def _ring(num_ranks: int) -> Pattern:
    rank = np.arange(num_ranks)
    return Pattern(rank, (rank + 1) % num_ranks, 1000 * (rank + 1) ** 2)


@pytest.mark.parametrize("profile", [PROFILE, SIMULATED, REPLAYED], ids=["plain", "simulated", "replayed"])
@pytest.mark.parametrize("shape", ["1x1x8", "2x2x2"])
def test_advice_and_prediction_of_an_exchange_are_the_same_numbers(profile, shape):
    pattern, layout = _ring(8), parse_layout(shape)
    predicted = predict_exchange(pattern, layout, profile)

    def check(advice, method: str, predicted) -> None:
        alternative = next(one for one in advice.ranked if one.method == method)
        assert alternative.time_s.value == predicted.time_s.max()
        assert advice.asked["model"] == predicted.model
        assert advice.extra["model_reason"] == predicted.extra["model_reason"]

    check(advise_layout(pattern, profile, {"core": layout}, swaps=Swaps(0)).advice, "core", predicted)
    if layout.num_nodes > 1:
        check(advise_aggregation(pattern, layout, profile).advice, DIRECT, predicted)
    if profile is REPLAYED:
        found = advise_partition(tetrahedral_mesh(200, 1), layout, profile, num_seeds=1)
        baseline = found.advice.baseline
        check(found.advice, baseline, predict_exchange(found.patterns[baseline], layout, profile))


def test_every_model_has_its_own_formula():
    assert SOLVERS.keys() == MODELS.keys()
    assert len({solver.ends_s for solver in SOLVERS.values()}) == len(MODELS)


def test_a_model_without_a_solver_fails_at_import(monkeypatch):
    monkeypatch.setitem(MODELS, "new", MODELS["postal"])
    spec = importlib.util.find_spec("earlybird.predict.solvers")
    with pytest.raises(ValueError, match="models without a solver, or without a record"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_a_further_model_of_both_ends_runs_its_own_formula(monkeypatch):
    monkeypatch.setitem(MODELS, "third", replace(MODELS["queue"], name="third", errs_least=()))
    monkeypatch.setitem(SOLVERS, "third", SOLVERS["postal"])
    pattern, layout = _ring(8), parse_layout("4x1x2")
    third, postal, queue = (
        predict_exchange(pattern, layout, PROFILE, name) for name in ("third", "postal", "queue")
    )
    assert third.inter_node_s.tolist() == postal.inter_node_s.tolist() != queue.inter_node_s.tolist()
    assert third.intra_node_s.tolist() == queue.intra_node_s.tolist()


def test_the_command_names_the_model_and_why(in_process, tmp_path):
    save_profile(PROFILE, tmp_path / "p.json")
    _ring(4).save(tmp_path / "x.csv")
    exchange = ("predict", "x.csv", "--profile", "p.json", "--layout", "2x1x2")
    reason = "errs least between nodes over TCP"
    assert f"by the queue model ({reason})" in in_process(*exchange).stderr
    assert json.loads(in_process(*exchange, "--json").stdout)["model_reason"] == reason
    assert f"By the queue model ({reason})" in in_process(*exchange, "--tolerance").stdout
    counts = ("predict", "x.csv", "--profile", "p.json", "--nodes", "1,2")
    assert json.loads(in_process(*counts, "--json").stdout)["model"] == "queue"
    advised = in_process("advise", "layout", "x.csv", "--profile", "p.json", "--layout", "2x1x2")
    assert "predicted by queue (errs least between nodes over TCP)" in advised.stderr
