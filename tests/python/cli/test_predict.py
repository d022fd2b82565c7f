"""`earlybird predict` from the command line; the worked example and the examples of docs/models.md."""

import csv
import io
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.pattern import Pattern, save_pattern
from earlybird.models.maxrate import maxrate_bandwidth, maxrate_time_s, slowest_time_s

ROOT = Path(__file__).parents[3]
WORKED = ["examples/worked/pattern.csv", "--profile", "examples/worked/profile.json", "--layout", "1x1x4"]
EXAMPLES = re.findall(r"```console\n\$ earlybird (.+)\n([^`]*)```", (ROOT / "docs" / "models.md").read_text())


@pytest.fixture
def earlybird(monkeypatch, run_main):
    """Run the command in the repository's root; returns (exit status, stdout, stderr)."""
    monkeypatch.chdir(ROOT)
    return run_main


def _refusal(result):
    status, out, err = result
    assert (status, out) == (2, "")
    assert err.startswith("earlybird: ") and err.count("\n") == 1
    return err


@pytest.mark.parametrize("arguments", [["predict"], ["predict", "exchange"]])
def test_worked_example_is_exact(earlybird, arguments):
    status, out, _ = earlybird(*arguments, *WORKED, "--json")
    value = json.loads(out)
    assert status == 0
    assert value["receive_s"] == pytest.approx([20e-6, 110e-6 / 3, 185e-6 / 3, 185e-6 / 3], rel=1e-12)
    assert value["time_s"] == pytest.approx([116e-6 / 3, 191e-6 / 3, 191e-6 / 3, 191e-6 / 3], rel=1e-12)
    assert value["intra_node_s"] == value["time_s"]
    assert value["inter_node_s"] == [0, 0, 0, 0]
    assert {key: value[key] for key in ("schema", "model", "ranks", "slowest_rank", "profile_id")} == {
        "schema": "earlybird.prediction/1",
        "model": "staircase",
        "ranks": 4,
        "slowest_rank": 1,
        "profile_id": "worked-example",
    }
    assert re.fullmatch("[0-9a-f]{64}", value["pattern_sha256"])
    assert "time_interval_s" not in value


@pytest.mark.parametrize(("arguments", "expected"), EXAMPLES)
def test_examples_of_the_models_page_print_what_the_page_says(earlybird, arguments, expected):
    status, out, err = earlybird(*shlex.split(arguments))
    assert (status, bool(out)) == (0, True), err
    assert not expected or out == expected


def test_csv_has_every_rank_in_si_units(earlybird):
    _, out, _ = earlybird("predict", *WORKED, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["rank", "time_s", "receive_s", "intra_node_s", "inter_node_s"]
    assert [float(row["time_s"]) for row in rows] == pytest.approx(np.array([116, 191, 191, 191]) / 3e6)


def test_table_reports_the_slowest_rank_on_stderr(earlybird):
    _, out, err = earlybird("predict", *WORKED)
    assert [line.split()[0] for line in out.splitlines()] == ["rank", "0", "1", "2", "3"]
    assert "63.7 us, the time of rank 1, the slowest" in err and "4 messages, 1.05 MiB" in err


def test_table_of_many_ranks_shows_the_slowest(earlybird):
    _, out, err = earlybird("predict", *WORKED[:-1], "1x1x40")
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["1", "2", "3", "0"]
    assert len(out.splitlines()) == 33
    assert "32 slowest of 40 ranks" in err


def _write_profile(path, *levels, **extra):
    parts = {
        level: {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]} for level in levels
    }
    path.write_text(json.dumps({"schema": "earlybird.profile/1", "levels": parts} | extra))
    return path


def test_several_profiles_give_their_levels_and_map_by_places_the_ranks(earlybird, tmp_path):
    intra, inter = (
        _write_profile(tmp_path / f"{level}.json", level) for level in ("intra_socket", "inter_node")
    )
    arguments = ["predict", WORKED[0], "--layout", "2x1x2", "--profile", intra, "--profile", inter, "--json"]
    by_core, by_node = (json.loads(earlybird(*arguments, "--map-by", name)[1]) for name in ("core", "node"))
    # By core, 0->1 and 2->3 stay inside their nodes; by node, no message of the ring does.
    assert [time_s > 0 for time_s in by_core["intra_node_s"]] == [True] * 4
    assert by_node["intra_node_s"] == [0] * 4


def test_interval_of_the_replicates_is_shown(earlybird, tmp_path):
    level = {"protocols": [{"latency_s": 3e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]}
    path = _write_profile(
        tmp_path / "p.json", "intra_socket", replicates=[{"levels": {"intra_socket": level}}]
    )
    arguments = ["predict", WORKED[0], "--layout", "1x1x4", "--profile", path]
    value = json.loads(earlybird(*arguments, "--json")[1])
    expected = np.array(value["time_s"]) + 2e-6
    assert np.array(value["time_interval_s"]) == pytest.approx(np.column_stack([expected, expected]))
    assert "time-low" in earlybird(*arguments)[1]


def test_fair_and_its_share_are_options(earlybird):
    arguments = ["predict", "examples/fan-out/pattern.csv", "--profile", "examples/fan-out/profile.json"]
    arguments += ["--layout", "3x1x1", "--json", "--model", "fair"]
    by_message, by_process = (
        json.loads(earlybird(*arguments, *more)[1]) for more in ([], ["--share", "process"])
    )
    assert (by_message["share"], by_process["share"]) == ("message", "process")
    assert by_message["time_s"] == pytest.approx([40e-6, 22e-6, 42e-6])


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".mtx"])
@pytest.mark.parametrize("command", [["predict"], ["advise", "layout"], ["advise", "aggregate"]])
def test_that_a_pattern_has_no_messages_is_said(earlybird, tmp_path, command, suffix):
    path, profile = tmp_path / f"empty{suffix}", "examples/fan-out/profile.json"
    save_pattern(Pattern([], [], []), path)
    status, out, err = earlybird(*command, path, "--layout", "2x1x2", "--profile", profile)
    assert status == 0 and out
    assert f"warning: the pattern {path} has no messages\n" in err
    assert "slowest" not in err
    if command == ["predict"]:
        assert err.endswith("The exchange has no messages, so that it takes no time on any rank.\n")


def _level(bandwidth):
    return {"protocols": [{"latency_s": 0, "bandwidth_bytes_per_s": {"1": bandwidth}}]}


def _write(folder, levels, messages):
    """The arguments for a profile of these levels and a pattern."""
    (folder / "p.json").write_text(json.dumps({"schema": "earlybird.profile/1", "id": "p", "levels": levels}))
    (folder / "p.csv").write_text("src,dst,bytes\n" + messages)
    return "predict", folder / "p.csv", "--profile", folder / "p.json"


def test_what_overlaps_is_printed_and_stored(earlybird, tmp_path):
    levels = {"intra_socket": _level(1e9), "inter_node": _level(1e9)}
    asked = _write(tmp_path, levels, "0,1,1000\n2,1,4000\n")
    placed, overlap = (*asked, "--layout", "2x1x2"), ("--combine", "overlap")
    assert "overlap" not in earlybird(*placed)[1]
    shown = earlybird(*placed, *overlap)[1].splitlines()
    assert shown[0].split()[-1] == "overlap"
    assert re.split(r"  +", shown[2].strip()) == ["1", "4 us", "4 us", "1 us", "4 us", "1 us"]
    for question in ("--tolerance", "--sensitivity"):
        assert json.loads(earlybird(*placed, *overlap, question, "--json")[1])["combine"] == "overlap"
    nodes = json.loads(earlybird(*asked, *overlap, "--nodes", "1,3", "--json")[1])
    assert nodes["combine"] == "overlap"
    for one in nodes["counts"]:
        both_s = one["intra_node_s"] + one["inter_node_s"]
        assert one["time_s"] == pytest.approx(both_s - one["overlap_s"])


def test_a_bandwidth_that_makes_no_times_is_refused(earlybird, tmp_path):
    asked = _write(tmp_path, {"inter_node": _level(1e308)}, "0,1,1000\n")
    error = _refusal(earlybird(*asked, "--layout", "2x1x1", "--model", "fair"))
    assert "bandwidth_bytes_per_s.1 is 1e+308; give a number <= 1e+30" in error


def test_messages_inside_and_outside_a_socket_are_ordered_by_the_option(earlybird, tmp_path):
    (tmp_path / "p.csv").write_text("src,dst,bytes\n1,0,30000\n2,0,10000\n")
    profile = _write_profile(tmp_path / "p.json", "intra_socket", "inter_socket")
    value = json.loads(profile.read_text())
    for level in value["levels"].values():
        level["protocols"][0]["sender_waits"] = True
    profile.write_text(json.dumps(value))
    arguments = ["predict", tmp_path / "p.csv", "--profile", profile, "--layout", "1x2x2", "--json"]
    apart, union = (
        json.loads(earlybird(*arguments, "--mixed", mixed)[1]) for mixed in ("per-level", "union")
    )
    # At 1 GB/s rank 0 has its 40 kB after 40 us, and the smaller of the two messages after half of that.
    assert apart["time_s"][1:3] == pytest.approx([40e-6, 40e-6])
    assert union["time_s"][1:3] == pytest.approx([40e-6, 20e-6])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ["--model", "logp"],
            "'logp' is not one of 'staircase', 'fair', 'queue', 'max-rate', 'postal', 'links'",
        ),
        (["--share", "process"], "--share applies to --model fair, but the model is staircase"),
        (["--model", "fair", "--share", "byte"], "'--share': 'byte' is not one of 'message', 'process'"),
        (["--model", "postal", "--mixed", "union"], "--mixed applies to the models staircase, fair"),
        (["--mixed", "both"], "'--mixed': 'both' is not one of 'per-level', 'union'"),
        (["--layout", "1x1x3"], "contains rank 3"),
        (["--layout", "1x2x2"], "no level inter_socket"),
        (["--layout", "4x1x1"], "no level inter_node"),
        (["--layout", "four"], "the layout is 'four'"),
        (["--map-by", "board"], "'--map-by': 'board' is not one of 'core'"),
        (
            ["--profile", "examples/worked/profile.json"],
            "two of the given profiles have the level intra_socket",
        ),
        (["--profile", "nowhere.json"], "nowhere.json does not exist"),
        (
            ["--profile", "nosuch"],
            "nosuch does not exist; check the path, or give one of the profiles thune-epyc-rome, ",
        ),
        (["another.csv"], "one pattern, but 2 are given"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_2(earlybird, change, message):
    assert re.search(message, _refusal(earlybird("predict", *WORKED, *change)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("src,dst,size\n0,1,5\n", "line 1"),
        ("src,dst,bytes\n0,1,5\n1,1,5\n", "line 3"),
        ("src,dst,bytes\n0,1,-5\n", "line 2"),
        ("src,dst,bytes\n0,1,five\n", "line 2"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_line(earlybird, tmp_path, text, message):
    path = tmp_path / "pattern.csv"
    path.write_text(text)
    assert message in _refusal(earlybird("predict", path, *WORKED[1:]))


@pytest.mark.parametrize(
    ("arguments", "missing"), [((*WORKED[:3], "--map-by", "node"), "--layout"), (WORKED[:1], "--profile")]
)
def test_a_missing_option_is_reported(earlybird, arguments, missing):
    assert missing in _refusal(earlybird("predict", *arguments))


def test_a_pattern_may_come_from_a_pipe(earlybird):
    read, write = os.pipe()
    with os.fdopen(write, "w") as pipe:
        pipe.write((ROOT / WORKED[0]).read_text())
    from_pipe = earlybird("predict", f"/dev/fd/{read}", *WORKED[1:])
    os.close(read)
    assert from_pipe[:2] == earlybird("predict", *WORKED)[:2]


def test_without_a_layout_one_node_has_all_ranks(earlybird):
    status, out, err = earlybird("predict", *WORKED[:3], "--json")
    assert status == 0 and "no --layout is given: assuming 1 node of 4 ranks on one socket" in err
    assert json.loads(out) == json.loads(earlybird("predict", *WORKED, "--json")[1])


@pytest.mark.parametrize(("cores", "layout"), [([2, 2], "1x2x2"), ([1, 1], "1x2x2"), ([8, 8], "1x1x4")])
def test_without_a_layout_ranks_fill_the_sockets_that_were_measured(earlybird, tmp_path, cores, layout):
    path = tmp_path / "p.json"
    profile = json.loads((ROOT / "examples" / "worked" / "profile.json").read_text())
    slow = json.loads(json.dumps(profile["levels"]["intra_socket"]))
    for protocol in slow["protocols"]:
        protocol["latency_s"] *= 3
    profile |= {"levels": profile["levels"] | {"inter_socket": slow}, "machine": {"cores_per_socket": cores}}
    path.write_text(json.dumps(profile))
    _, assumed, err = earlybird("predict", WORKED[0], "--profile", path, "--json")
    given = earlybird("predict", WORKED[0], "--profile", path, "--layout", layout, "--json")[1]
    assert json.loads(assumed) == json.loads(given)
    assert ("2 sockets of at most 2" in err) == (layout == "1x2x2")


@pytest.mark.parametrize("replicate", [7, {}, {"levels": {"intra_socket": {"protocols": []}}}])
def test_a_broken_replicate_is_refused(earlybird, tmp_path, replicate):
    path = _write_profile(tmp_path / "p.json", "intra_socket", replicates=[replicate])
    refusal = _refusal(earlybird("predict", WORKED[0], "--layout", "1x1x4", "--profile", path))
    assert "replicates[0]" in refusal


ACROSS = ("predict", "examples/networks/across.csv", "--layout", "8x1x1")


def test_messages_share_the_links_between_switches_of_a_described_machine(earlybird):
    """Four messages of 1 MB each way pass two uplinks, at 12.5 GB/s."""
    for machine, expected_s in (("8x1x2", 1e6 / 10.2e9), ("examples/networks/fat-tree.json", 2e6 / 12.5e9)):
        status, out, _ = earlybird(*ACROSS, "--machine", machine, "--json")
        assert status == 0
        assert earlybird(*ACROSS, "--machine", machine, "--model", "links", "--json")[1] == out
        assert json.loads(out)["model"] == "links"
        assert json.loads(out)["receive_s"] == pytest.approx([expected_s] * 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*ACROSS, "--machine", "nope.json"), "nope.json does not exist"),
        ((*ACROSS, "--machine", "4x1x2"), "needs 8 nodes"),
        ((*ACROSS, "--machine", "8x1x2", "--model", "fair"), "--machine and --model, which needs a profile"),
        ((*ACROSS, "--machine", "8x1x2", "--profile", "p.json"), "--machine and --profile are both given"),
        ((*ACROSS, "--model", "links"), "links needs --machine"),
        ((*ACROSS[:2], "--machine", "8x1x2"), "add --layout"),
    ],
)
def test_what_does_not_go_with_a_described_machine_is_refused(earlybird, arguments, message):
    assert message in _refusal(earlybird(*arguments))


def _packing_form(method, time_s, layout="strided", cache="hot"):
    what = {"operation": "packing", "packing": layout, "cache": cache, "method": method}
    return {
        "what": what,
        "form": "table",
        "parameters": {"size_bytes": [1000, 4000], "time_s": [time_s, 4 * time_s]},
    }


@pytest.fixture
def packed(tmp_path):
    """Rank 0 sends to 1 and 2 to 1; a profile in which packing a byte takes 1 ns and unpacking it 2 ns."""
    asked = _write(tmp_path, {"intra_socket": _level(1e9)}, "0,1,1000\n2,1,4000\n")
    value = json.loads((tmp_path / "p.json").read_text())
    forms = [_packing_form("pack", 1e-6), _packing_form("unpack", 2e-6)]
    forms += [
        _packing_form("loop-pack", 3e-6, cache="cold"),
        _packing_form("loop-unpack", 4e-6, cache="cold"),
    ]
    forms += [_packing_form("pack", 5e-6, layout="indexed")]
    (tmp_path / "p.json").write_text(json.dumps(value | {"forms": forms}))
    return *asked, "--layout", "1x1x3"


def test_packing_adds_what_a_rank_packs_and_unpacks(earlybird, packed):
    plain = json.loads(earlybird(*packed, "--json")[1])
    assert not any("packing" in key for key in plain)
    value = json.loads(earlybird(*packed, "--packing", "strided", "--json")[1])
    assert value["packing_s"] == pytest.approx([1e-6, 10e-6, 4e-6])
    assert value["time_s"] == pytest.approx(np.add(plain["time_s"], value["packing_s"]))
    assert value["intra_node_s"] == plain["intra_node_s"]
    assert (value["packing"], value["packing_cache"], value["packing_by"]) == ("strided", "hot", "mpi")
    postal = json.loads(earlybird(*packed, "--model", "postal", "--packing", "strided", "--json")[1])
    assert "ranks 0, 2 only send and are predicted to take 0 s besides packing" in postal["notes"][0]
    cold = "--packing", "strided", "--packing-cache", "cold", "--packing-by", "loop"
    assert json.loads(earlybird(*packed, *cold, "--json")[1])["packing_s"] == pytest.approx(
        [3e-6, 20e-6, 12e-6]
    )
    rows = list(csv.DictReader(io.StringIO(earlybird(*packed, *cold, "--format", "csv")[1])))
    assert [float(row["packing_s"]) for row in rows] == pytest.approx([3e-6, 20e-6, 12e-6])


def test_packing_is_a_column_of_the_table_and_of_the_report(earlybird, packed, tmp_path):
    shown, note = earlybird(*packed, "--packing", "strided")[1:]
    assert shown.splitlines()[0].split()[-1] == "packing" and shown.splitlines()[2].split()[-2:] == [
        "10",
        "us",
    ]
    assert "staircase (strided packing, hot, by MPI)" in note
    (tmp_path / "prediction.json").write_text(earlybird(*packed, "--packing", "strided", "--json")[1])
    page = earlybird("report", tmp_path / "prediction.json", "--terminal")[1]
    assert re.search(
        r"rank  +staircase \(strided packing, hot, by MPI\)  +strided packing, hot, by MPI  +idle", page
    )
    assert earlybird("show", tmp_path / "prediction.json")[1] == shown


def test_messages_beyond_the_measured_sizes_of_packing_are_noted(earlybird, packed, tmp_path):
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,8000\n")
    value = json.loads(earlybird(*packed, "--packing", "strided", "--json")[1])
    assert value["packing_s"] == pytest.approx([8e-6, 16e-6, 0])
    assert any("packing was measured up to 3.91 KiB" in note for note in value["notes"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--packing", "contiguous"],
            "no costs of packing and unpacking contiguous data with hot caches by mpi",
        ),
        (["--packing", "indexed"], "it has strided hot mpi and strided cold loop: choose of these"),
        (["--packing-by", "loop"], "without --packing; add it"),
        (["--packing", "strided", "--tolerance"], "--packing and --tolerance are both given"),
        (["--packing", "diagonal"], "diagonal"),
    ],
)
def test_packing_that_the_profile_does_not_have_is_refused(earlybird, packed, options, said):
    assert said in _refusal(earlybird(*packed, *options))


def test_a_profile_without_costs_of_packing_says_how_to_measure_them(earlybird):
    error = _refusal(earlybird("predict", *WORKED, "--packing", "strided"))
    assert "has no costs of packing; measure them with `earlybird measure packing -o packing`" in error


def _slowest_s(earlybird, pattern, ranks, model):
    asked = f"examples/worked/{pattern}.csv", "--profile", "examples/worked/profile.json"
    value = json.loads(
        earlybird("predict", *asked, "--layout", f"1x1x{ranks}", "--model", model, "--json")[1]
    )
    return max(value["time_s"])


def test_equations_2_and_4_of_thune_et_al_are_special_cases_of_models(earlybird):
    measured_s = maxrate_time_s(3, 180e3, 2e-6, 18e9)
    ideal_s = maxrate_time_s(3, 180e3, 2e-6, float(maxrate_bandwidth(3, 10e9, 20e9)))
    assert _slowest_s(earlybird, "equal", 3, "staircase") == pytest.approx(measured_s)
    assert _slowest_s(earlybird, "equal", 3, "max-rate") == pytest.approx(ideal_s)
    slowest_s = slowest_time_s(1, 1_100_000, 400_000, 2e-6, 10e9, 20e9)
    assert _slowest_s(earlybird, "pattern", 4, "max-rate") == pytest.approx(slowest_s)
