"""Advised layouts keep every place, are never predicted slower than the reference, and find known optima."""

import itertools
import json
import re
import shlex

import numpy as np
import pytest

from earlybird.advise import layout as advising
from earlybird.advise.layout import (
    IMPROVED,
    PARTITIONED,
    Swaps,
    advise_layout,
    partitioned_layout,
)
from earlybird.data.errors import InputError
from earlybird.data.layout import even_layout, parse_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.pattern import Pattern
from earlybird.data.profile import profile_from_json
from earlybird.patterns.near_exchange import near_exchange
from earlybird.patterns.random_exchange import random_exchange
from earlybird.predict import Predictor

COSTS = {"intra_socket": (1e10, 1e-6), "inter_socket": (5e9, 2e-6), "inter_node": (1e9, 5e-6)}


def _level(bandwidth, latency_s):
    line = {"latency_s": latency_s, "bandwidth_bytes_per_s": {"1": bandwidth, "4": 2 * bandwidth}}
    return {"protocols": [line]}


def _profile(replicates=()):
    levels = {name: _level(*costs) for name, costs in COSTS.items()}
    return profile_from_json(
        {"schema": "earlybird.profile/1", "levels": levels, "replicates": list(replicates)}
    )


def pairs_far_apart(num_ranks):
    """Rank k exchanges with k + P/2 alone."""
    half = num_ranks // 2
    src = np.arange(num_ranks)
    return Pattern(src, (src + half) % num_ranks, np.full(num_ranks, 10**6))


def orders(shape, map_by="core"):
    return {one: parse_layout(shape, one) for one in (map_by, *MAPPINGS)}


def places(layout):
    return sorted(zip(layout.node.tolist(), layout.socket.tolist(), strict=True))


@pytest.mark.parametrize("shape", ["2x1x4", "4x1x2", "2x2x2", "1x2x4", "1x1x8"])
@pytest.mark.parametrize(
    "pattern", [pairs_far_apart(8), random_exchange(8, 60, seed=3)], ids=["pairs", "random"]
)
def test_every_layout_has_the_places_of_the_reference_and_the_best_is_no_slower(shape, pattern):
    found = advise_layout(pattern, _profile(), orders(shape), swaps=Swaps(500))
    wanted = places(parse_layout(shape))
    assert all(places(one) == wanted for one in found.layouts.values())
    times_s = {
        name: Predictor(pattern, one).predict(_profile(), found.advice.asked["model"]).time_s.max()
        for name, one in found.layouts.items()
    }
    assert {one.method: one.time_s.value for one in found.advice.ranked} == pytest.approx(times_s)
    assert times_s[found.advice.ranked[0].method] <= times_s["core"]


def test_pairs_come_together_by_partition_and_by_swaps(monkeypatch):
    """No message needs to leave its node."""
    pattern, profile = pairs_far_apart(16), _profile()
    found = advise_layout(pattern, profile, orders("4x1x4"), swaps=Swaps(0))
    best = found.layouts[PARTITIONED]
    assert (best.node[pattern.src] == best.node[pattern.dst]).all()
    assert found.advice.ranked[0].method in ("node", PARTITIONED) and IMPROVED not in found.layouts
    # By swaps alone, from ranks that fill the nodes by core.
    monkeypatch.setattr(advising, "partitioned_layout", lambda pattern, places: places)
    found = advise_layout(pattern, profile, {"core": parse_layout("4x1x4")}, swaps=Swaps(4000))
    best = found.layouts[IMPROVED]
    assert (best.node[pattern.src] == best.node[pattern.dst]).all()
    assert found.advice.ranked[0].method == IMPROVED


def test_swaps_improve_scattered_neighbours_and_the_same_seed_gives_the_same():
    pattern, profile = near_exchange(64, 8, mean_size_bytes=50_000), _profile()
    one, same = (
        advise_layout(pattern, profile, orders("8x1x8", "node"), model="staircase", swaps=Swaps(3000))
        for _ in range(2)
    )
    assert one.advice == same.advice
    ranked = {each.method: each for each in one.advice.ranked}
    assert one.advice.baseline == "node" and ranked[IMPROVED].speed_up.value > 1.2


@pytest.fixture
def scattered(monkeypatch):
    """(pattern, profile, orders) that swaps improve from the first on."""
    monkeypatch.setattr(advising, "partitioned_layout", lambda pattern, places: places)
    usual = {"node": parse_layout("8x1x8", "node")}
    return near_exchange(64, 8, mean_size_bytes=50_000), _profile(), usual


def clock_of_one_second_a_look(monkeypatch):
    seconds = itertools.count()
    monkeypatch.setattr(advising.time, "monotonic", lambda: next(seconds))


def test_a_budget_ends_the_swaps_and_says_that_another_run_may_differ(scattered, monkeypatch):
    clock_of_one_second_a_look(monkeypatch)
    for limits, done in ((Swaps(None, 400), "399 swaps"), (Swaps(3000, 400), "399 of 3000 swaps")):
        found = advise_layout(*scattered, model="staircase", swaps=limits)
        assert found.advice.extra["swaps_ended_by"] == "budget"
        (note,) = [one for one in found.advice.notes if "--budget" in one]
        assert note.startswith(f"--budget ended the search after {done}, so that")
        assert places(found.layouts[IMPROVED]) == places(parse_layout("8x1x8"))


def test_a_budget_that_the_count_does_not_reach_changes_nothing(scattered):
    alone, within = (
        advise_layout(*scattered, model="staircase", swaps=Swaps(500, budget_s)) for budget_s in (None, 1e6)
    )
    assert alone.advice == within.advice
    assert alone.advice.extra == {"swaps": 500, "swaps_ended_by": "count"}


def test_an_interrupt_keeps_the_best_layout_so_far(scattered):
    best_s = []

    def interrupt(done, spent_s, then_s):
        best_s.append(then_s)
        if done == 600:
            raise KeyboardInterrupt

    pattern, profile, usual = scattered
    found = advise_layout(pattern, profile, usual, model="staircase", swaps=Swaps(3000), on_swap=interrupt)
    assert any(one.startswith("interrupted after 600 of 3000 swaps: the best") for one in found.advice.notes)
    kept = Predictor(pattern, found.layouts[IMPROVED]).slowest_now_s(profile)
    assert kept == pytest.approx(best_s[-1]) and best_s[-1] < best_s[0]


def test_what_swaps_improve_by_the_staircase_alone_is_not_listed():
    pattern, profile = near_exchange(64, 8, mean_size_bytes=50_000), _profile()
    found = advise_layout(pattern, profile, orders("8x1x8", "node"), model="fair", swaps=Swaps(3000))
    assert IMPROVED not in found.layouts
    assert any(
        "made the layout partitioned faster by staircase and fair" in note for note in found.advice.notes
    )


def test_a_note_that_holds_of_some_layouts_names_them():
    """Between two ranks of one node no message takes the network, unless ranks are placed by node."""
    found = advise_layout(
        Pattern([0], [1], [10**6]), _profile(), orders("2x1x2"), model="fair", swaps=Swaps(0)
    )
    (note,) = [note for note in found.advice.notes if "no message goes between nodes" in note]
    assert note.startswith("layout core: ")


@pytest.mark.parametrize(
    ("most_ranks", "reason"), [(8, "made the layout core faster"), (4, "at most 4 ranks")]
)
def test_a_note_says_why_no_layout_is_improved(monkeypatch, most_ranks, reason):
    monkeypatch.setattr(advising, "MAX_RANKS", most_ranks)
    pairs = Pattern(np.arange(8), np.arange(8) ^ 1, np.full(8, 10**6))
    found = advise_layout(pairs, _profile(), orders("4x1x2"), swaps=Swaps(100))
    assert IMPROVED not in found.layouts
    (note,) = [note for note in found.advice.notes if IMPROVED in note]
    assert reason in note


def test_a_layout_that_only_gains_where_times_add_up_is_not_advised():
    """In a ring, each rank sends to another node while its neighbour on the same node sends to it."""
    levels = {"intra_socket": _level(1e9, 1e-6), "inter_node": _level(1e9, 1e-6)}
    profile = profile_from_json({"schema": "earlybird.profile/1", "levels": levels})
    ranks = np.arange(8)
    ring = Pattern(ranks, (ranks + 1) % 8, np.full(8, 10**6))
    found = advise_layout(ring, profile, orders("4x1x2"), swaps=Swaps(0))
    times_s = {
        name: Predictor(ring, one).slowest_s(profile, "fair")[0] for name, one in found.layouts.items()
    }
    assert times_s["node"] < 0.9 * times_s["core"]
    assert found.advice.ranked[0].method == "core"
    assert any("node would be" in note and "proceed at once" in note for note in found.advice.notes)


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_a_partition_has_exactly_the_places_of_each_node(parts):
    pattern = near_exchange(5 * parts, 4)
    layout = partitioned_layout(pattern, parse_layout(f"{parts}x1x5"))
    assert np.bincount(layout.node).tolist() == [5] * parts


def test_speed_ups_have_the_intervals_of_common_draws():
    """Replicates in which everything is slower by one factor change the times and not their ratio."""
    replicates = [
        {"levels": {name: _level(rate / by, tau_s * by) for name, (rate, tau_s) in COSTS.items()}}
        for by in (0.8, 1.0, 1.3)
    ]
    found = advise_layout(pairs_far_apart(8), _profile(replicates), orders("2x1x4"), swaps=Swaps(200))
    best = found.advice.ranked[0]
    assert best.time_s.high / best.time_s.low > 1.3
    assert best.speed_up.high / best.speed_up.low == pytest.approx(1)


def test_the_command_writes_the_advised_layout(in_process, tmp_path):
    (tmp_path / "p.csv").write_text(
        "src,dst,bytes\n" + "".join(f"{k},{(k + 4) % 8},1000000\n" for k in range(8))
    )
    (tmp_path / "profile.json").write_text(json.dumps(_profile().to_json()))
    arguments = (
        "advise",
        "layout",
        "p.csv",
        "--profile",
        "profile.json",
        "--layout",
        "4x1x2",
        "--swaps",
        "500",
    )
    found = json.loads(in_process(*arguments, "-o", "l.csv", "--json").stdout)
    assert found["operation"] == "layout" and found["baseline"] == "core"
    layout = parse_layout(str(tmp_path / "l.csv"))
    assert layout.node.tolist() == layout.node[(np.arange(8) + 4) % 8].tolist()
    shown = in_process(*arguments).stdout
    assert "speed-up over core" in shown
    limited = json.loads(in_process(*arguments, "--budget", "1ms", "--json").stdout)
    assert limited["swaps_ended_by"] == "budget" and limited["swaps"] < 500
    for wrong in (
        ("--budget", "0"),
        ("--budget", "soon"),
        ("-o", "l.txt"),
        ("--model", "logp"),
        ("--map-by", "slot"),
    ):
        assert in_process(*arguments, *wrong, check=False).returncode == 2


def test_the_action_names_the_file_or_the_command_that_writes_it(in_process, tmp_path):
    """Ranks that exchange are neither neighbours nor a node count apart, so no order of a launcher has them
    together."""
    peers = [5, 4, 7, 6, 1, 0, 3, 2]
    rows = "".join(f"{k},{peer},1000000\n" for k, peer in enumerate(peers))
    (tmp_path / "p.csv").write_text("src,dst,bytes\n" + rows)
    (tmp_path / "profile.json").write_text(json.dumps(_profile().to_json()))
    options = ("--profile", "profile.json", "--layout", "4x1x2", "--swaps", "9")
    arguments = ("advise", "layout", "p.csv", *options)
    found = json.loads(in_process(*arguments, "-o", "l.csv", "--json").stdout)
    shown = in_process(*arguments).stdout
    best = found["ranked"][0]["method"]
    assert found["ranked"][0]["action"] == (
        f"the layout {best}, in l.csv; then `earlybird export l.csv --to openmpi --hosts ... -o FILE` writes "
        "a file for mpiexec"
    )
    (tmp_path / "-p.csv").write_text((tmp_path / "p.csv").read_text())
    of_a_dash = in_process("advise", "layout", *options, "--", "-p.csv").stdout
    for printed in (shown, of_a_dash):
        again = re.search(
            r"^1\. the layout \S+, which `earlybird (.* -o layout.csv)` writes; then", printed, re.M
        )
        in_process(*shlex.split(again[1]))
        assert (tmp_path / "layout.csv").read_text() == (tmp_path / "l.csv").read_text()
        (tmp_path / "layout.csv").unlink()
    (tmp_path / "advice.json").write_text(json.dumps(found))
    page = in_process("report", "advice.json", "--terminal").stdout
    assert "\n    earlybird export l.csv --to openmpi --hosts ... -o FILE\n" in page


def test_swaps_that_end_early_name_no_command_that_would_write_another_layout(
    in_process, tmp_path, monkeypatch
):
    near_exchange(64, 8, mean_size_bytes=50_000).save(tmp_path / "p.csv")
    _profile().save(tmp_path / "profile.json")

    def interrupt(self, done, spent_s):
        if done == 600:
            raise KeyboardInterrupt
        return done / 3000

    monkeypatch.setattr(advising, "partitioned_layout", lambda pattern, places: places)
    asked = ("--profile", "profile.json", "--layout", "8x1x8", "--map-by", "node", "--model", "staircase")
    for ended_by, status in (("interrupt", 130), ("budget", 0)):
        with monkeypatch.context() as patch:
            if ended_by == "interrupt":
                patch.setattr(Swaps, "share", interrupt)
            else:
                clock_of_one_second_a_look(patch)
            limit = ("--budget", "2000s") if ended_by == "budget" else ()
            for output in ((), ("-o", "l.csv")):
                done = in_process("advise", "layout", "p.csv", *asked, "--json", *limit, *output, check=False)
                found = json.loads(done.stdout)
                assert (found["swaps_ended_by"], done.returncode) == (ended_by, status)
                assert ("earlybird: interrupted\n" in done.stderr) == (ended_by == "interrupt")
                action = f"the layout {IMPROVED}, "
                kept = "in l.csv; then `earlybird export l.csv " if output else "give -o to keep it"
                assert found["ranked"][0]["action"].startswith(action + kept)
        assert places(parse_layout(str(tmp_path / "l.csv"))) == places(parse_layout("8x1x8"))
        (tmp_path / "l.csv").unlink()


def test_nodes_are_filled_evenly_with_the_ranks_of_the_pattern(in_process, tmp_path):
    """12 ranks on 4 nodes of 2 sockets, which no shape describes."""
    pattern, cores = pairs_far_apart(12), {"cores_per_socket": [8, 8]}
    pattern.save(tmp_path / "p.csv")
    (tmp_path / "profile.json").write_text(json.dumps(_profile().to_json() | {"machine": cores}))
    arguments = ("p.csv", "--profile", "profile.json", "--json")
    found = json.loads(in_process("advise", "layout", *arguments, "--nodes", "4", "-o", "l.csv").stdout)
    assert found["asked"]["layout"] == "4 x 3 ranks"
    assert places(parse_layout(str(tmp_path / "l.csv"))) == places(even_layout(12, 4, 2))
    same = json.loads(in_process("advise", "layout", *arguments, "--nodes", "2", "--sockets", "1").stdout)
    assert same["asked"]["layout"] == "2x1x6"
    aggregated = json.loads(in_process("advise", "aggregate", *arguments, "--nodes", "2").stdout)
    assert aggregated["asked"]["layout"] == "2x2x3"
    for nodes, layout in ((2, "2x2x3"), (4, "out-4/layout.csv")):  # 3 ranks on 2 sockets are no shape
        done = in_process("advise", "aggregate", *arguments, "--nodes", nodes, "-o", f"out-{nodes}")
        assert f"--layout {layout} --profile profile.json, with --launcher" in done.stderr
    written, wanted = parse_layout(str(tmp_path / "out-4" / "layout.csv")), even_layout(12, 4, 2)
    assert (written.node.tolist(), written.socket.tolist()) == (wanted.node.tolist(), wanted.socket.tolist())
    assert not (tmp_path / "out-2" / "layout.csv").exists()


@pytest.mark.parametrize("advice", ["layout", "aggregate"])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "the nodes of the ranks are missing; give --layout"),
        (("--nodes", "4", "--layout", "4x1x2"), "--nodes and --layout are both given"),
        (("--layout", "4x1x2", "--sockets", "2"), "--sockets 2 is for --nodes"),
        (("--nodes", "2,4"), "--nodes is '2,4', but advice is for one number of nodes; give one, such as 2;"),
        (("--nodes", "2, 4,4"), "give one, such as 2; earlybird predict --nodes 2,4 compares them"),
        (("--nodes", "x"), "--nodes is 'x'; give whole numbers"),
        (("--nodes", "3"), "8 ranks cannot be divided evenly among 3 nodes"),
    ],
)
def test_nodes_that_do_not_fit_are_refused(in_process, tmp_path, advice, given, sentence):
    pairs_far_apart(8).save(tmp_path / "p.csv")
    (tmp_path / "profile.json").write_text(json.dumps(_profile().to_json()))
    done = in_process("advise", advice, "p.csv", "--profile", "profile.json", *given, check=False)
    assert done.returncode == 2 and sentence in done.stderr


def test_the_same_number_of_nodes_twice_is_one_number(in_process, tmp_path):
    pairs_far_apart(8).save(tmp_path / "p.csv")
    _profile().save(tmp_path / "profile.json")
    in_process("advise", "layout", "p.csv", "--profile", "profile.json", "--swaps", "9", "--nodes", "2, 2")


@pytest.mark.parametrize("given", ["layout.csv", "8"])
def test_layouts_of_unequal_nodes_are_refused(in_process, given):
    done = in_process("advise", "layout", "p.csv", "--layout", given, check=False)
    assert done.returncode == 2
    assert f"--layout is '{given}'" in done.stderr and "give NODESxSOCKETSxRANKS" in done.stderr


def test_what_predictions_refuse_is_refused():
    with pytest.raises(InputError, match="the layout has 4 ranks"):
        advise_layout(pairs_far_apart(8), _profile(), orders("2x1x2"))
