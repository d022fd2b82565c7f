"""Parameters that are changed, and how much each matters, against sums by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.exchange_models import MODELS
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import profile_from_json
from earlybird.predict import Predictor
from earlybird.predict.node_counts import node_counts
from earlybird.predict.what_if import FACTORS, changed_profile, sensitivities, tolerance

WORKED = Path(__file__).parents[3] / "examples" / "worked"
TABLE = {"1": 1e9, "2": 1.5e9}
EAGER = {"name": "eager", "latency_s": 1e-6, "bandwidth_bytes_per_s": TABLE}
RENDEZVOUS = {"name": "rendezvous", "min_bytes": 1000, "latency_s": 4e-6, "bandwidth_bytes_per_s": TABLE}


def profile(**more):
    levels = {"intra_socket": {"protocols": [EAGER, RENDEZVOUS]}, "inter_node": {"protocols": [EAGER]}}
    return profile_from_json({"schema": "earlybird.profile/1", "levels": levels} | more)


def parameters(found, level="intra_socket"):
    protocols = found.levels[level].protocols
    return np.array([(item.latency_s, item.bandwidth_bytes_per_s[1]) for item in protocols])


@pytest.mark.parametrize(
    ("settings", "intra", "inter"),
    [
        (["inter_node.bandwidth=2x"], [(1e-6, 1e9), (4e-6, 1e9)], [(1e-6, 2e9)]),
        (["intra_socket.latency=0.5x"], [(5e-7, 1e9), (2e-6, 1e9)], [(1e-6, 1e9)]),
        (["intra_socket.rendezvous.latency=1us"], [(1e-6, 1e9), (1e-6, 1e9)], [(1e-6, 1e9)]),
        (["intra_socket.bandwidth=3GB/s"], [(1e-6, 3e9), (4e-6, 3e9)], [(1e-6, 1e9)]),
        (["inter_node.latency=2x", "inter_node.latency=2x"], [(1e-6, 1e9), (4e-6, 1e9)], [(4e-6, 1e9)]),
    ],
)
def test_settings_change_what_they_name_and_nothing_else(settings, intra, inter):
    given = profile()
    found = changed_profile(given, settings)
    assert parameters(found) == pytest.approx(np.array(intra))
    assert parameters(found, "inter_node") == pytest.approx(np.array(inter))
    assert given == profile()


def test_a_bandwidth_keeps_its_ratios_and_replicates_change_alike():
    slower = {"levels": {"inter_node": {"protocols": [EAGER | {"latency_s": 3e-6}]}}}
    found = changed_profile(
        profile(replicates=[slower]), ["inter_node.bandwidth=4GB/s", "inter_node.latency=2x"]
    )
    (item,) = found.levels["inter_node"].protocols
    assert item.bandwidth_bytes_per_s == {1: 4e9, 2: 6e9}
    (drawn,) = found.replicates[0].levels["inter_node"].protocols
    assert drawn.latency_s == pytest.approx(6e-6) and drawn.bandwidth_bytes_per_s[2] == pytest.approx(6e9)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bandwidth=2x", "give LEVEL.bandwidth=VALUE"),
        ("inter_node.speed=2x", "give LEVEL.bandwidth=VALUE"),
        ("somewhere.latency=2x", "choose one of intra_socket"),
        ("inter_socket.latency=2x", "no level inter_socket"),
        ("inter_node.rendezvous.latency=2x", "has the protocols eager, not rendezvous"),
        ("inter_node.bandwidth=0x", "not above 0"),
        ("inter_node.bandwidth=1e999x", "too large"),
        ("inter_node.bandwidth=1e300x", r"bandwidth of eager becomes inf B/s; .* 1e-30 and 1e\+30 B/s"),
        ("inter_node.bandwidth=1e-320x", "bandwidth of eager becomes 9.99989e-312 B/s"),
        ("inter_node.bandwidth=1e290GB/s", r"at most 1e\+30 bytes/s"),
        ("inter_node.latency=1e300x", r"latency of eager becomes 1e\+294 s; .* between 0 and 1e\+30 s"),
        ("inter_node.bandwidth=1.2.3x", "1.2.3x"),
        ("inter_node.bandwidth=fast", "fast"),
        (
            "inter_node.bandwidth=2",
            "2 has no unit; give a factor, such as 2x, or a bandwidth, such as 12GB/s",
        ),
        ("inter_node.bandwidth=1.2e9", "1.2e9 has no unit"),
        ("inter_node.latency=5", "5 has no unit; give a factor, such as 2x, or a latency, such as 5us"),
        ("inter_node.latency= 0 ", "has no unit"),
        ("inter_node.latency=5uz", "such as 5us$"),
        ("inter_node.bandwidth=5GB", "such as 12GB/s$"),
    ],
)
def test_a_setting_without_meaning_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        changed_profile(profile(), [text])


def test_replicates_too_are_within_the_range():
    drawn = {"levels": {"inter_node": {"protocols": [EAGER | {"latency_s": 1e6}]}}}
    with pytest.raises(InputError, match=r"latency of eager becomes 1e\+31 s"):
        changed_profile(profile(replicates=[drawn]), ["inter_node.latency=1e25x"])


@pytest.mark.parametrize("text", ["inter_node.latency=1e-320x", "inter_node.latency=0us"])
def test_a_latency_may_become_0(text):
    assert changed_profile(profile(), [text]).levels["inter_node"].protocols[0].latency_s == 0


@pytest.mark.parametrize("model", MODELS)
def test_sensitivities_are_the_shares_of_the_slowest_rank(model):
    """One message of 9000 bytes: 4 us of latency and 9 us for its bytes."""
    predictor = Predictor(Pattern(np.array([0]), np.array([1]), np.array([9000])), parse_layout("1x1x2"))
    found = {
        (one.level, one.protocol, one.parameter): one.value
        for one in sensitivities(predictor, profile(), model, "message")
    }
    assert found == {
        ("intra_socket", "eager", "latency"): 0,
        ("intra_socket", "eager", "bandwidth"): 0,
        ("intra_socket", "rendezvous", "latency"): pytest.approx(4 / 13, rel=1e-6),
        ("intra_socket", "rendezvous", "bandwidth"): pytest.approx(9 / 13, rel=1e-6),
    }


def test_a_line_in_several_entries_is_one_protocol():
    waits = EAGER | {"min_bytes": 500, "sender_waits": True}
    levels = {"intra_socket": {"protocols": [EAGER, waits]}}
    found = profile_from_json({"schema": "earlybird.profile/1", "levels": levels})
    predictor = Predictor(Pattern(np.array([0]), np.array([1]), np.array([9000])), parse_layout("1x1x2"))
    shares = [one.value for one in sensitivities(predictor, found, "staircase", "message")]
    assert shares == pytest.approx([1 / 10, 9 / 10], rel=1e-6)


def test_the_command_prints_both(in_process):
    worked = (WORKED / "pattern.csv", "--profile", WORKED / "profile.json", "--layout", "1x1x4")
    alone, faster = (
        in_process("predict", *worked, *more, "--format", "csv").stdout
        for more in ((), ("--set", "intra_socket.bandwidth=2x"))
    )
    times = [[float(line.split(",")[2]) for line in text.splitlines()[1:]] for text in (alone, faster)]
    assert times[0] == pytest.approx([2 * one for one in times[1]])
    shown = in_process("predict", *worked, "--sensitivity").stdout
    assert "bandwidth" in shown and "1 % slower" in shown
    assert in_process("predict", *worked, "--set", "x=2", check=False).returncode == 2


@pytest.mark.parametrize(
    "options",
    [["--layout", "2x1x2"], ["--layout", "2x1x2", "--sensitivity"], ["--layout", "2x1x2", "--tolerance"],
     ["--nodes", "2,4"]],
)  # fmt: skip
def test_a_setting_of_a_level_without_messages_is_noted(in_process, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(profile().to_json()))
    (tmp_path / "x.csv").write_text("src,dst,bytes\n0,2,3000\n1,3,3000\n")
    settings = ("--set", "intra_socket.eager.latency=2x", "--set", "inter_node.latency=2x")
    done = in_process("predict", "x.csv", "--profile", "p.json", *options, *settings)
    assert [line for line in done.stderr.splitlines() if "--set" in line] == [
        "--set intra_socket.eager.latency=2x changes nothing: no message of the exchange uses the level "
        "intra_socket"
    ]


@pytest.mark.parametrize("model", MODELS)
def test_the_time_against_a_parameter_and_what_is_tolerated(model):
    """One message of 9000 bytes: 4 us of latency and 9 us for its bytes."""
    predictor = Predictor(Pattern(np.array([0]), np.array([1]), np.array([9000])), parse_layout("1x1x2"))
    found = tolerance(predictor, profile(), model)
    latency, bandwidth = found.curves
    assert found.time_s == pytest.approx(13e-6) and found.layout == "1x1x2"
    assert (latency.name, latency.value) == ("latency on the same socket", 4e-6)
    assert (bandwidth.name, bandwidth.value) == ("bandwidth on the same socket", 1e9)
    assert latency.time_s == pytest.approx([9e-6 + 4e-6 * factor for factor in FACTORS])
    assert bandwidth.time_s == pytest.approx([4e-6 + 9e-6 / factor for factor in FACTORS])
    for growth in found.growths:
        assert latency.factor_at(growth) == pytest.approx(1 + growth * 13 / 4, rel=1e-4)
        assert bandwidth.factor_at(growth) == pytest.approx(1 / (1 + growth * 13 / 9), rel=1e-4)
    assert found.most_critical(0.05) is bandwidth


def test_what_does_not_matter_is_tolerated_whatever_it_is():
    """Between sockets nothing but a message of 0 bytes: its latency counts, the bandwidth does not."""
    levels = {"intra_socket": {"protocols": [EAGER]}, "inter_socket": {"protocols": [EAGER]}}
    found = tolerance(
        Predictor(Pattern(np.array([0]), np.array([1]), np.array([0])), parse_layout("1x2x1")),
        profile_from_json({"schema": "earlybird.profile/1", "levels": levels}), "staircase",
    )  # fmt: skip
    latency, bandwidth = found.curves
    assert bandwidth.factor_at(0.01) is None and bandwidth.tolerated_text(0.01) == "any"
    assert found.most_critical(0.01) is latency and latency.factor_at(0.01) == pytest.approx(1.01)
    # Beyond the factors of the curve: 4 us of latency and 10 ms for the bytes.
    large = Predictor(Pattern(np.array([0]), np.array([1]), np.array([10**7])), parse_layout("1x1x2"))
    assert tolerance(large, profile(), "postal").curves[0].factor_at(0.05) == pytest.approx(126.05, rel=1e-4)


def test_an_exchange_that_takes_no_time_has_no_tolerance():
    empty = Predictor(Pattern(np.array([]), np.array([]), np.array([])), parse_layout("1x1x2"))
    with pytest.raises(InputError, match="staircase predicts 0 s"):
        tolerance(empty, profile(), "staircase")


def test_node_counts_are_the_predictions_of_their_layouts():
    pattern = Pattern(np.array([0, 2, 1]), np.array([1, 3, 2]), np.array([10, 200, 3000]))
    found = node_counts(pattern, map(parse_layout, ("1x1x4", "2x1x2")), profile(), "queue")
    assert [one.nodes for one in found.counts] == [1, 2]
    assert found.counts[1].level_bytes == {"intra_socket": 210, "inter_socket": 0, "inter_node": 3000}
    assert found.counts[1].share("inter_node") == pytest.approx(3000 / 3210)
    for one in found.counts:
        alone = Predictor(pattern, parse_layout(one.layout)).predict(profile(), "queue")
        assert one.time_s.value == alone.time_s.max() == alone.time_s[one.slowest_rank]
        assert one.intra_node_s + one.inter_node_s == one.time_s.value


def test_the_command_compares_numbers_of_nodes(in_process, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(profile().to_json()))
    (tmp_path / "x.csv").write_text("src,dst,bytes\n0,1,10\n1,2,3000\n3,0,100\n")
    exchange = ("predict", "x.csv", "--profile", "p.json")
    table = in_process(*exchange, "--nodes", "1,2,4").stdout.splitlines()
    assert [row.split()[:2] for row in table[1:4]] == [["1", "4"], ["2", "2"], ["4", "1"]]
    assert table[3].endswith("100.0 %         3.04 KiB") and " on 1 node" in table[4]
    written = in_process(*exchange, "--nodes", "1,2,4", "--json").stdout
    assert json.loads(written)["schema"] == "earlybird.node-counts/1"
    (tmp_path / "n.json").write_text(written)
    assert in_process("show", "n.json").stdout.splitlines() == table
    by_node = json.loads(in_process(*exchange, "--nodes", "2", "--map-by", "node", "--json").stdout)
    assert by_node["counts"][0]["layout"] == "2x1x2 by node"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nodes", "3"], "4 ranks cannot be divided evenly among 3 nodes"),
        (["--nodes", "1,,2"], "--nodes is '1,,2'; give whole numbers from 1 to"),
        (["--nodes", "0"], "--nodes is '0'"),
        (["--nodes", "2", "--layout", "2x1x2"], "--nodes and --layout are both given"),
        (["--nodes", "2", "--tolerance"], "--nodes and --tolerance are both given"),
        (["--sensitivity", "--tolerance"], "--sensitivity and --tolerance are both given"),
        (["--sockets", "2"], "--sockets 2 is for --nodes, which is missing"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_a_sentence(in_process, options, message):
    worked = (WORKED / "pattern.csv", "--profile", WORKED / "profile.json")
    refused = in_process("predict", *worked, *options, check=False)
    assert refused.returncode == 2 and message in refused.stderr and refused.stderr.count("\n") == 1


def test_the_command_prints_and_writes_the_tolerance(in_process, tmp_path):
    worked = ("predict", WORKED / "pattern.csv", "--profile", WORKED / "profile.json", "--layout", "1x1x4")
    shown = in_process(*worked, "--tolerance").stdout
    assert "1 % longer at" in shown and "the exchange takes 63.7 us and depends most on" in shown
    points = in_process(*worked, "--tolerance", "--format", "csv").stdout.splitlines()
    assert len(points) == 1 + 2 * len(FACTORS)
    written = in_process(*worked, "--tolerance", "--set", "intra_socket.latency=2x", "--json").stdout
    assert json.loads(written)["settings"] == ["intra_socket.latency=2x"]
    (tmp_path / "t.json").write_text(written)
    assert "4 us" in in_process("show", "t.json").stdout
    reported = " ".join(in_process("report", "t.json", "--terminal").stdout.split())
    assert "depends most on the bandwidth" in reported
