"""Profiles: a rewrite changes nothing, unknown keys survive, impossible numbers are refused."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.levels import LEVELS
from earlybird.data.profile import load_profile, profile_from_json, save_profile

POSITIVE = st.floats(min_value=1e-3, max_value=1e9)
# Whatever a key is, a number under a name that ends in _s or _bytes is limited.
UNKNOWN = st.dictionaries(
    st.text().map("x_{}_of_later".format), st.integers() | st.text() | st.none(), max_size=2
)
BANDWIDTH = st.dictionaries(st.integers(1, 512).map(str), POSITIVE, min_size=1, max_size=4)


@st.composite
def profile_values(draw) -> dict:
    levels = {}
    for level in draw(st.lists(st.sampled_from(LEVELS), min_size=1, unique=True)):
        starts = [0, *sorted(draw(st.sets(st.integers(1, 1 << 22), max_size=2)))]
        protocols = [
            {"name": draw(st.sampled_from(["short", "eager", "rendezvous"])), "min_bytes": start,
             "latency_s": draw(POSITIVE), "sender_waits": draw(st.booleans()),
             "bandwidth_bytes_per_s": draw(BANDWIDTH)} | draw(UNKNOWN)
            for start in starts
        ]  # fmt: skip
        levels[level] = {"protocols": protocols} | draw(UNKNOWN)
    return {
        "schema": "earlybird.profile/1",
        "id": draw(st.text()),
        "machine": draw(UNKNOWN),
        "context": draw(UNKNOWN),
        "runs": [],
        "levels": levels,
        "forms": [],
    } | draw(UNKNOWN)


@given(value=profile_values())
def test_rewritten_profile_is_unchanged(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("profile") / "profile.json"
    save_profile(profile_from_json(value), path)
    assert json.loads(path.read_text()) == value
    assert load_profile(path) == profile_from_json(value)


def test_hand_written_profile_needs_levels_alone():
    protocol = {"latency_s": 2e-6, "bandwidth_bytes_per_s": {"1": 1e10}}
    value = {"schema": "earlybird.profile/1", "levels": {"intra_socket": {"protocols": [protocol]}}}
    (got,) = profile_from_json(value).level("intra_socket").protocols
    assert (got.name, got.min_bytes, got.sender_waits) == ("rendezvous", 0, True)


def test_level_that_is_needed_and_missing_is_named():
    protocol = {"latency_s": 2e-6, "bandwidth_bytes_per_s": {"1": 1e10}}
    value = {"schema": "earlybird.profile/1", "levels": {"intra_socket": {"protocols": [protocol]}}}
    with pytest.raises(InputError, match=r"no level inter_node.*has intra_socket"):
        profile_from_json(value).level("inter_node")


def test_bandwidth_table_ascends_in_n():
    protocol = {"latency_s": 0, "bandwidth_bytes_per_s": {"10": 3e9, "2": 2e9, "1": 1e9}}
    value = {"schema": "earlybird.profile/1", "levels": {"intra_socket": {"protocols": [protocol]}}}
    counts, rates = profile_from_json(value).level("intra_socket").protocols[0].bandwidth_table()
    assert (counts.tolist(), rates.tolist()) == ([1, 2, 10], [1e9, 2e9, 3e9])


GOOD = {
    "schema": "earlybird.profile/1",
    "levels": {
        "intra_socket": {
            "protocols": [
                {"name": "eager", "min_bytes": 0, "latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}},
                {
                    "name": "rendezvous",
                    "min_bytes": 8,
                    "latency_s": 1e-6,
                    "bandwidth_bytes_per_s": {"1": 1e9},
                },
            ]
        }
    },
}


RACKS = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]}


@pytest.mark.parametrize(
    ("path", "bad", "says"),
    [
        (["schema"], "earlybird.profile/2", "/2'; this version reads 'earlybird.profile/1'"),
        (["schema"], None, "schema"),
        (["levels"], {}, "no 'levels'"),
        (["levels"], {"between_racks": RACKS}, "'between_racks'; give one of intra_socket"),
        (["levels", "intra_socket"], [], r"levels.intra_socket is \[\]; give a JSON object"),
        (["levels", "intra_socket", "protocols"], [], "levels.intra_socket: min_bytes is .*begin at 0"),
        (["levels", "intra_socket", "protocols", 0, "min_bytes"], 1, "begin at 0"),
        (["levels", "intra_socket", "protocols", 1, "min_bytes"], 0, "ascend"),
        (["levels", "intra_socket", "protocols", 1, "min_bytes"], 10**40, "min_bytes"),
        (["levels", "intra_socket", "protocols", 1, "min_bytes"], "8KiB", "min_bytes is '8KiB'"),
        (["levels", "intra_socket", "protocols", 0, "latency_s"], "2us", "0..latency_s is '2us'; give"),
        (["levels", "intra_socket", "protocols", 0, "latency_s"], -1, "latency_s is -1"),
        (["levels", "intra_socket", "protocols", 0, "latency_s"], float("nan"), "latency_s is nan"),
        (["levels", "intra_socket", "protocols", 0, "latency_s"], 10**400, "latency_s"),
        (["levels", "intra_socket", "protocols", 0, "latency_s"], True, "latency_s is True"),
        (["levels", "intra_socket", "protocols", 0, "bandwidth_bytes_per_s"], {}, "must map N"),
        (["levels", "intra_socket", "protocols", 0, "bandwidth_bytes_per_s"], {"0": 1e9}, "key is '0'; give"),
        (["levels", "intra_socket", "protocols", 0, "bandwidth_bytes_per_s"], {"two": 1e9}, "'two'"),
        (["levels", "intra_socket", "protocols", 0, "bandwidth_bytes_per_s"], {"1": 0}, "give a number >"),
        (["levels", "intra_socket", "protocols", 0, "sender_waits"], "yes", "sender_waits"),
        (["machine"], [], r"machine is \[\]; give a JSON object"),
        (["id"], 3, "id is 3; give text"),
    ],
)  # fmt: skip
def test_impossible_profile_is_refused(path, bad, says):
    value = copy.deepcopy(GOOD)
    profile_from_json(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = bad
    with pytest.raises(InputError, match=says) as refused:
        profile_from_json(value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [("profile", "warnings", "one"), ("protocol", "bounded_n", [2, "x"]), ("level", "held_out_error", "5 %")],
)
def test_a_key_that_is_read_and_has_another_type_is_refused(place, key, value):
    protocol = {"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}}
    level = {"protocols": [protocol]}
    profile = {"schema": "earlybird.profile/1", "levels": {"intra_socket": level}}
    {"profile": profile, "level": level, "protocol": protocol}[place][key] = value
    with pytest.raises(InputError, match=key):
        profile_from_json(profile)
