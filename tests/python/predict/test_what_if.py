"""Parameters that are changed, and how much each matters, against sums by hand."""

from pathlib import Path

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import profile_from_json
from earlybird.predict import MODELS, Predictor
from earlybird.predict.what_if import changed_profile, sensitivities

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
    ("text", "telling"),
    [
        ("bandwidth=2x", "give LEVEL.bandwidth=VALUE"),
        ("inter_node.speed=2x", "give LEVEL.bandwidth=VALUE"),
        ("somewhere.latency=2x", "choose one of intra_socket"),
        ("inter_socket.latency=2x", "no level inter_socket"),
        ("inter_node.rendezvous.latency=2x", "has the protocols eager, not rendezvous"),
        ("inter_node.bandwidth=0x", "not above 0"),
        ("inter_node.bandwidth=1e999x", "too large"),
        ("inter_node.bandwidth=1.2.3x", "1.2.3x"),
        ("inter_node.bandwidth=fast", "fast"),
    ],
)
def test_a_setting_without_meaning_is_refused(text, telling):
    with pytest.raises(InputError, match=telling):
        changed_profile(profile(), [text])


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
