"""`earlybird replay --profile`: which models are compared, and the options of their predictions."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from earlybird.data import memory
from earlybird.data.errors import InputError
from earlybird.data.exchange_models import MODELS
from earlybird.data.labels import percent
from earlybird.data.layout import parse_layout
from earlybird.data.packing_form import Packed, PackingForm, PackingTimes
from earlybird.data.pattern import load_pattern
from earlybird.data.profile import load_profile
from earlybird.data.run import Run
from earlybird.measure.replays import check_exchange, compare_run, packing_of, predict_all
from earlybird.predict.packing import Packing, packing_times_s
from tests.python.cli.test_fit import write_run

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def replay(earlybird, tmp_path):
    """Replay an example against its own profile, with samples drawn from it; returns the comparison."""

    def run(example: str, layout: str, *more: str) -> dict:
        folder = EXAMPLES / example
        shutil.copy(folder / "profile.json", tmp_path / f"{example}.json")
        arguments = (
            "--profile",
            f"{example}.json",
            "--launcher",
            f"synthetic:{example}.json",
            "--layout",
            layout,
        )
        earlybird("replay", folder / "pattern.csv", *arguments, "--quiet", "-o", "run", "--json", *more)
        return json.loads((tmp_path / "run" / "comparison.json").read_text())

    return run


def test_fair_is_compared_if_messages_go_between_nodes(replay):
    compared = replay("fan-out", "3x1x1")
    assert list(compared["error"]) == list(MODELS)
    assert compared["predicted_s"]["fair"] == pytest.approx([40e-6, 22e-6, 42e-6])
    assert compared["share"] == "message"


def test_fair_is_omitted_if_it_equals_the_staircase(replay):
    compared = replay("worked", "1x1x4")
    assert set(compared["error"]) == {name for name, model in MODELS.items() if not model.inside}
    assert "share" not in compared


def test_the_requested_share_is_predicted_and_stored(replay):
    assert replay("fan-out", "3x1x1", "--share", "process")["share"] == "process"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--share", "process"), "add --profile"),
        (("--mixed", "union"), "add --profile"),
        (("--combine", "overlap"), "add --profile"),
        (
            ("--share", "byte", "--profile", EXAMPLES / "fan-out" / "profile.json"),
            "'byte' is not one of 'message'",
        ),
        (
            ("--combine", "max", "--profile", EXAMPLES / "fan-out" / "profile.json"),
            "'max' is not one of 'sum', 'overlap'",
        ),
        (
            ("--mixed", "both", "--profile", EXAMPLES / "fan-out" / "profile.json"),
            "'both' is not one of 'per-level'",
        ),
    ],
)
def test_wrong_options_of_predictions_are_refused(earlybird, refused, more, message):
    launcher = ("--launcher", f"synthetic:{EXAMPLES / 'fan-out' / 'profile.json'}", "-o", "run")
    arguments = ("replay", EXAMPLES / "fan-out" / "pattern.csv", "--layout", "3x1x1", *launcher, *more)
    refused(earlybird(*arguments, check=False), message)


def test_another_way_to_combine_times_is_named_if_it_errs_much_less(earlybird, tmp_path):
    """The times are drawn from the profile, whose levels add."""
    level = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9, "2": 2e9}}]}
    levels = {"intra_socket": level, "inter_node": level}
    (tmp_path / "p.json").write_text(
        json.dumps({"schema": "earlybird.profile/1", "id": "p", "levels": levels})
    )
    (tmp_path / "both.csv").write_text("src,dst,bytes\n0,1,1000000\n2,1,1000000\n")
    arguments = ("replay", "both.csv", "--profile", "p.json", "--launcher", "synthetic:p.json",
                 "--layout", "2x1x2", "--quiet", "-o")  # fmt: skip
    assert "--combine" not in earlybird(*arguments, "added").stderr
    overlapping = earlybird(*arguments, "overlapping", "--combine", "overlap")
    assert "with --combine sum the error of staircase is 0.5 %, with --combine overlap that of " in (
        overlapping.stderr
    )
    compared = json.loads((tmp_path / "overlapping" / "comparison.json").read_text())
    assert compared["combine"] == "overlap"
    resumed = earlybird("replay", "--resume", "-o", "overlapping", "--json").stdout
    assert json.loads(resumed)["combine"] == "overlap"


LINKS = "virtual links of 200 Mbit/s each way"


@pytest.fixture
def noted(replay, tmp_path):
    """The notes on a replay with MPICH whose launches have `launch`, compared with profiles of these "
    "contexts."""

    def run(launch: dict, *contexts: dict, level: str = "inter_node") -> list[str]:
        replay("fan-out", "3x1x1")
        for name, change in (("samples", {"config": {"mpi": "mpich"}}), ("launches", launch)):
            path = tmp_path / "run" / f"{name}.ndjson"
            lines = [json.loads(line) | change for line in path.read_text().splitlines()]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        profile = load_profile(tmp_path / "fan-out.json")
        parts = [replace(profile, context=context, levels={level: profile.level("inter_node")})
                 for context in contexts]  # fmt: skip
        pattern = load_pattern(EXAMPLES / "fan-out" / "pattern.csv")
        where = parse_layout("3x1x1")
        predictions = predict_all(pattern, where, profile)
        printed = []
        run = Run.open(tmp_path / "run")
        compared = compare_run(run, pattern, where, parts, profile, predictions, note=printed.append)
        assert {f"warning: {one}" for one in compared.extra["notes"]} <= set(printed)
        return compared.extra["notes"]

    return run


def test_a_profile_of_other_threads_is_noted(noted):
    assert noted({"threads_per_rank": 2}, {"flavour": "mpich"}) == [
        "the profile was measured with --threads 1, the replay with 2"
    ]


def test_a_profile_of_another_network_is_noted(noted):
    assert noted({"network": LINKS}, {"flavour": "mpich"}) == [
        f"the profile's network is not a virtual cluster's, the replay's is {LINKS}"
    ]


def test_every_profile_is_compared_with_the_launches(noted):
    other = {"flavour": "openmpi", "network": LINKS, "threads_per_rank": 4}
    assert len(noted({}, {"flavour": "mpich"}, other)) == 3


def test_a_profile_that_agrees_or_has_no_context_is_not_noted(noted):
    assert noted({"network": LINKS, "threads_per_rank": 2},
                 {"flavour": "mpich", "network": LINKS, "threads_per_rank": 2}, {}) == []  # fmt: skip


def test_a_profile_of_levels_that_no_message_needs_is_not_noted(noted):
    assert noted({"threads_per_rank": 2}, {"flavour": "openmpi"}, level="intra_socket") == []


def test_threads_of_synthetic_ranks_are_reported_to_have_no_effect(earlybird):
    folder = EXAMPLES / "fan-out"
    arguments = ("--layout", "3x1x1", "--launcher", f"synthetic:{folder / 'profile.json'}", "--threads", "2")
    warnings = earlybird("replay", folder / "pattern.csv", *arguments, "--quiet", "-o", "run").stderr
    assert "--threads 2 has no effect" in warnings


def test_the_empty_exchange_is_replayed_if_asked_for_and_stays_when_resumed(replay, earlybird, tmp_path):
    compared = replay("worked", "1x1x4", "--empty", "--launches", "2")
    assert len(compared["empty"]["measured_s"]) == 4
    assert compared["empty"]["error"]["staircase"] < 0.02
    earlybird("replay", "--resume", "-o", "run", "--launches", "3")
    samples = Run.open(tmp_path / "run").samples()
    assert sorted("empty" in sample.config for sample in samples) == [False] * 3 + [True] * 3
    shown = json.loads(earlybird("show", "run", "--json").stdout)
    assert len(shown.get("empty_s", shown.get("empty", {}).get("measured_s"))) == 4


def test_a_resumed_replay_is_compared_with_the_profile_it_was_started_with(
    replay, earlybird, refused, tmp_path
):
    before = replay("fan-out", "3x1x1", "--share", "process", "--launches", "2")
    resumed = ("replay", "--resume", "-o", "run", "--launches", "3", "--json")
    after = json.loads(earlybird(*resumed).stdout)
    assert after["predicted_s"] == before["predicted_s"]
    assert after["share"] == "process"
    assert json.loads(earlybird(*resumed, "--share", "message").stdout)["share"] == "message"

    run_json = tmp_path / "run" / "run.json"
    stored = tmp_path / "fan-out.json"
    assert json.loads(run_json.read_text())["settings"]["profile"] == [str(stored)]
    moved = tmp_path / "moved.json"
    run_json.write_text(run_json.read_text().replace("synthetic:fan-out.json", "synthetic:moved.json"))
    stored.rename(moved)
    refused(
        earlybird(*resumed, check=False),
        f"run was started with the profile {stored}, which does not exist any more; "
        "give its present path with --profile",
    )
    again = json.loads(earlybird(*resumed, "--profile", "moved.json").stdout)
    assert again["predicted_s"] == before["predicted_s"]


def test_a_replay_without_a_profile_is_resumed_without_one(earlybird, refused):
    folder = EXAMPLES / "fan-out"
    launcher = ("--launcher", f"synthetic:{folder / 'profile.json'}", "--layout", "3x1x1")
    earlybird("replay", folder / "pattern.csv", *launcher, "--quiet", "-o", "run")
    resumed = ("replay", "--resume", "-o", "run")
    assert "add --profile PROFILE.json to compare" in earlybird(*resumed).stdout
    refused(earlybird(*resumed, "--share", "process", check=False), "add --profile")


def test_without_shared_cores_no_empty_exchange_is_replayed(replay):
    assert "empty" not in replay("worked", "1x1x4")


def test_exchanges_that_follow_each_other_are_predicted_one_after_the_other(replay, earlybird, tmp_path):
    pattern = EXAMPLES / "fan-out" / "pattern.csv"
    once = replay("fan-out", "3x1x1")
    shutil.rmtree(tmp_path / "run")
    twice = replay("fan-out", "3x1x1", "--then", str(pattern), "--launches", "2")
    assert twice["default_model"] == "queue" and twice["error"]["queue"] < 0.02
    for model in MODELS:
        assert max(twice["predicted_s"][model]) == pytest.approx(2 * max(once["predicted_s"][model]))
    earlybird("replay", "--resume", "-o", "run", "--launches", "3")
    (counts,) = {sample.config["stages"] for sample in Run.open(tmp_path / "run").samples()}
    assert counts == "2+2"


def test_stages_have_no_empty_exchange(earlybird, refused):
    pattern = EXAMPLES / "fan-out" / "pattern.csv"
    more = ("--then", pattern, "--empty", "--layout", "3x1x1")
    refused(earlybird("replay", pattern, *more, check=False), "omit it, or --then")


@pytest.mark.parametrize("part", ["save_pattern", "save_layout"])
def test_a_replay_that_ends_while_it_is_created_begins_again(earlybird, monkeypatch, tmp_path, part):
    """A run without its pattern could not be continued, and would be in the way of another try."""
    folder = EXAMPLES / "fan-out"
    launcher = ("--launcher", f"synthetic:{folder / 'profile.json'}", "--layout", "3x1x1")
    arguments = ("replay", folder / "pattern.csv", *launcher, "--quiet", "-o", "run")

    def interrupt(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"earlybird.measure.replays.{part}", interrupt)
        assert earlybird(*arguments, check=False).returncode == 130
    assert not (tmp_path / "run").exists()
    earlybird(*arguments)
    earlybird("replay", "--resume", "-o", "run", "--launches", "3")


def test_replays_given_to_fit_choose_the_default_model_and_are_no_part_of_what_is_fitted(
    replay, earlybird, tmp_path, refused
):
    measured = write_run(tmp_path / "measured")
    earlybird("fit", measured, "-o", "before.json")
    compared = replay("worked", "1x1x4")
    assert compared["default_model"] == "staircase" and compared["model_reason"] == "errs least inside nodes"
    printed = earlybird("fit", measured, "run", "-o", "p.json").stderr
    before, profile = (load_profile(tmp_path / name) for name in ("before.json", "p.json"))
    assert replace(profile, replays=()) == before
    (of_run,) = profile.replays
    assert (of_run.level, of_run.run_id) == ("intra_socket", compared["run_id"])
    assert set(of_run.error) == set(compared["error"])
    best = min(of_run.error, key=of_run.error.__getitem__)
    exchange = ("predict", EXAMPLES / "worked" / "pattern.csv", "--profile", "p.json", "--layout", "1x1x4")
    reason = f"(errs least on the same socket: {percent(of_run.error[best])} in 1 replay)"
    assert f"{best} {reason}" in printed
    assert f"{best} model {reason}" in earlybird(*exchange).stderr
    refused(earlybird("fit", "run", check=False), "is a replay, to which nothing is fitted")
    path = tmp_path / "run" / "samples.ndjson"
    path.write_text(path.read_text().replace('"synthetic"', '"openmpi"'))
    refused(earlybird("fit", measured, "run", check=False), "measured with mpich, the replay with openmpi")
    (tmp_path / "run" / "layout.csv").write_text("rank,node,socket\n0,0,0\n1,0,0\n")
    refused(earlybird("fit", measured, "run", check=False), "2 ranks")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--packing", "strided"), "those of the launcher synthetic do not"),
        (("--packing", "diagonal"), "'diagonal' is not one of"),
        (("--packing-by", "datatype"), "--packing-by datatype is given without --packing"),
        (("--packing-cache", "cold"), "--packing-cache cold is given without --packing"),
    ],
)
def test_packing_that_cannot_be_replayed_is_refused(earlybird, refused, more, message):
    launcher = ("--launcher", f"synthetic:{EXAMPLES / 'fan-out' / 'profile.json'}", "-o", "run")
    arguments = ("replay", EXAMPLES / "fan-out" / "pattern.csv", "--layout", "3x1x1", *launcher, *more)
    refused(earlybird(*arguments, check=False), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv",), "the pattern none.csv does not exist"),
        ((EXAMPLES / "fan-out" / "pattern.csv", "--profile", "nosuch"), "give one of the profiles thune-"),
        ((EXAMPLES / "fan-out" / "pattern.csv",), "replay needs a layout"),
    ],
)
def test_what_can_never_be_replayed_is_refused_before_a_layout_is_asked_for(
    earlybird, refused, arguments, message
):
    refused(earlybird("replay", *arguments, check=False), message)


def test_a_packed_replay_is_compared_with_packing_in_the_prediction(replay, tmp_path):
    """As a run in which ranks packed: rank 1 receives two messages."""
    replay("fan-out", "3x1x1")
    profile = load_profile(tmp_path / "fan-out.json")
    forms = [
        PackingForm(
            what=Packed(packing="strided", cache="hot", method=method),
            parameters=PackingTimes(size_bytes=(1,), time_s=(time_s,)),
        )
        for method, time_s in (("pack", 1e-9), ("unpack", 2e-9))
    ]
    profile = replace(profile, forms=(*profile.forms, *forms))
    pattern, where = load_pattern(EXAMPLES / "fan-out" / "pattern.csv"), parse_layout("3x1x1")
    packing = packing_of({"packing": "strided", "packing_cache": "hot", "packing_by": "datatype"})
    assert packing.by == "mpi"
    plain, packed = (predict_all(pattern, where, profile, packing=given) for given in (None, packing))
    moved_s = packing_times_s(pattern, 3, profile, packing)[0]
    assert (moved_s > 0).all()
    assert packed["staircase"].time_s == pytest.approx(plain["staircase"].time_s + moved_s)
    samples = tmp_path / "run" / "samples.ndjson"
    samples.write_text(samples.read_text().replace('"config": {', '"config": {"packing_by": "datatype", '))
    run = Run.open(tmp_path / "run")
    compared = compare_run(run, pattern, where, [profile], profile, packed, packing=packing).extra
    assert (compared["packing"], compared["packing_cache"]) == ("strided", "hot")
    assert (compared["packing_by"], compared["predicted_packing_by"]) == ("datatype", "mpi")
    assert any("strided data (datatype)" in note for note in compared["notes"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--packing", "strided"), None),
        (("--packing-by", "loop", "--packing-cache", "cold"), None),
        (("--packing", "indexed"), "--packing is indexed, but run was started with strided"),
        (("--packing-by", "mpi"), "--packing-by is mpi, but run was started with loop"),
        (("--packing", "strided", "--packing-cache", "hot"), "--packing-cache is hot, but"),
    ],
)
def test_only_options_of_packing_that_are_given_are_compared_with_the_run(
    replay, earlybird, tmp_path, refused, more, message
):
    replay("fan-out", "3x1x1")
    path = tmp_path / "run" / "run.json"
    header = json.loads(path.read_text())
    header["settings"] |= {"packing": "strided", "packing_by": "loop", "packing_cache": "cold"}
    path.write_text(json.dumps(header))
    # The ranks of this launcher do not pack, which is noticed later.
    later = "those of the launcher synthetic do not"
    refused(earlybird("replay", "--resume", "-o", "run", *more, check=False), message or later)


@pytest.mark.parametrize(("packing", "times"), [(None, 1), ("contiguous", 2.5), ("strided", 9.5)])
def test_a_replay_needs_the_memory_of_all_that_a_message_takes(monkeypatch, packing, times):
    pattern, where = load_pattern(EXAMPLES / "fan-out" / "pattern.csv"), parse_layout("1x1x3")
    launcher = SimpleNamespace(name="local", check=lambda layout: None)
    packing = packing and Packing(packing)
    needed = 2 * pattern.total_bytes * times / 0.7
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: needed * 1.001)
    check_exchange(pattern, where, launcher, packing)
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: needed * 0.999)
    with pytest.raises(InputError, match="for its buffers"):
        check_exchange(pattern, where, launcher, packing)
