"""`earlybird advise aggregate`: leaders where latency counts, direct messages where bandwidth does."""

import json
from pathlib import Path

import numpy as np
import pytest

from earlybird.advise.aggregation import advise_aggregation
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.patterns.aggregation import aggregated
from earlybird.predict.exchange import Predictor

LAYOUT = parse_layout("2x1x8")


@pytest.fixture
def advise(tmp_path, in_process):
    """advise(size_bytes, *options): the advice for messages of one size between all ranks of two nodes."""
    inside = Protocol(latency_s=1e-7, bandwidth_bytes_per_s={1: 1e10, 8: 4e10})
    outside = Protocol(latency_s=2e-5, bandwidth_bytes_per_s={1: 1e10, 8: 1e10})
    lines = {"intra_socket": inside, "inter_node": outside}
    profile = Profile({name: Level(name, (line,)) for name, line in lines.items()})
    profile.save(tmp_path / "profile.json")

    def run(size_bytes, *options):
        src, dst = (axis.ravel() for axis in np.meshgrid(np.arange(8), np.arange(8, 16), indexing="ij"))
        pattern = Pattern(np.append(src, dst), np.append(dst, src), np.full(128, size_bytes))
        save_pattern(pattern, tmp_path / "exchange.csv")
        shown = in_process(
            "advise", "aggregate", tmp_path / "exchange.csv", "--layout", "2x1x8", "--profile",
            tmp_path / "profile.json", "--json", *options,
        )  # fmt: skip
        return pattern, profile, json.loads(shown.stdout)

    return run


def test_short_messages_go_through_leaders_whose_times_add_up(advise, tmp_path):
    pattern, profile, found = advise(100, "-o", tmp_path / "out")
    best = found["ranked"][0]
    assert best["method"] == "1 leader" and best["speed_up"] > 2 and best["messages_between_nodes"] == 2
    assert best["action"].endswith(f", whose exchanges are in {tmp_path / 'out'}")
    action = advise(100)[2]["ranked"][0]["action"]
    assert "whose exchanges `earlybird advise aggregate " in action and "-o aggregated` writes" in action
    stages = aggregated(pattern, LAYOUT).all().values()
    assert best["time_s"] == pytest.approx(
        sum(Predictor(one, LAYOUT).slowest_s(profile, "queue")[0] for one in stages)
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "collect.csv", "between.csv", "distribute.csv"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "numbers"), [("2x1x8", {1}), ("4x1x8", {1, 2, 3}), ("5x1x2", {1, 2}), ("9x1x8", {1, 2, 4, 8})]
)
def test_every_leader_has_another_node_to_send_to(layout, numbers):
    level = Level("inter_node", (Protocol(latency_s=1e-6, bandwidth_bytes_per_s={1: 1e9}),))
    ring = np.arange(parse_layout(layout).num_ranks)
    pattern = Pattern(ring, np.roll(ring, 8), np.full(len(ring), 8))
    profile = Profile({"inter_node": level, "intra_socket": Level("intra_socket", level.protocols)})
    stages = advise_aggregation(pattern, parse_layout(layout), profile).stages
    assert {int(name.split()[0]) for name in stages} == numbers


def test_an_exchange_without_messages_takes_no_time(advise, tmp_path, in_process):
    advise(100)
    save_pattern(Pattern(*np.zeros((3, 0), dtype=np.int64)), tmp_path / "empty.csv")
    shown = in_process(
        "advise", "aggregate", tmp_path / "empty.csv", "--layout", "2x1x8", "--profile",
        tmp_path / "profile.json", "--json",
    )  # fmt: skip
    first = json.loads(shown.stdout)["ranked"][0]
    assert (first["method"], first["time_s"]) == ("direct", 0)


def test_long_messages_go_directly_and_the_exchanges_are_written_to_check_it(advise, tmp_path):
    _, _, found = advise(10**6, "-o", tmp_path / "out")
    assert found["ranked"][0]["method"] == "direct" and (tmp_path / "out" / "between.csv").exists()


@pytest.mark.parametrize(("launcher", "is_shared"), [("cluster", True), ("simgrid", False), ("local", False)])
def test_virtual_nodes_share_the_cores_of_one_machine(launcher, is_shared):
    level = Level("inter_node", (Protocol(latency_s=1e-6, bandwidth_bytes_per_s={1: 1e9}),))
    profile = Profile({"inter_node": level}, context={"launcher": launcher, "network": "100 Mbit/s"})
    pattern = Pattern(np.array([0]), np.array([1]), np.array([8]))
    notes = advise_aggregation(pattern, parse_layout("2x1x1"), profile).advice.notes
    assert any("share the cores of one machine" in note for note in notes) is is_shared


def test_what_a_folder_holds_is_not_overwritten(advise, tmp_path, in_process, refused):
    advise(100, "-o", tmp_path / "out")
    before = (tmp_path / "out" / "between.csv").read_text()
    arguments = ("advise", "aggregate", tmp_path / "exchange.csv", "--layout", "2x1x8", "--profile")
    again = in_process(*arguments, tmp_path / "profile.json", "-o", tmp_path / "out", check=False)
    refused(again, "exists already", "give a new folder")
    assert (tmp_path / "out" / "between.csv").read_text() == before


def test_on_one_node_there_is_nothing_to_aggregate(in_process, refused, tmp_path):
    worked = Path(__file__).parents[3] / "examples" / "worked"
    pattern, profile = worked / "pattern.csv", worked / "profile.json"
    arguments = ("advise", "aggregate", pattern, "--profile", profile, "--layout", "1x1x4")
    refused(in_process(*arguments, check=False), "nothing to aggregate")


def test_a_pattern_of_more_ranks_than_the_layout_is_refused():
    outside = Protocol(latency_s=1e-6, bandwidth_bytes_per_s={1: 1e10})
    profile = Profile({name: Level(name, (outside,)) for name in ("intra_socket", "inter_node")})
    with pytest.raises(InputError, match=r"rank 100000 \(message 0\), but the layout has 16 ranks"):
        advise_aggregation(Pattern([100_000], [0], [8]), LAYOUT, profile)
