"""Forms of pipelines in a profile: read as written, refused in one sentence where a number is impossible."""

import copy

import pytest

from earlybird.data.errors import InputError
from earlybird.data.pipeline_form import pipeline_form_from_json
from earlybird.data.profile import profile_from_json

FORM = {
    "what": {"operation": "pipeline", "method": "many", "level": "intra_socket", "threads": 4, "vcis": 16},
    "form": "joined",
    "parameters": {
        "messages": "each",
        "protocols": [
            {"min_bytes": 0, "latency_s": 1e-6, "overhead_s": 5e-7, "bandwidth_bytes_per_s": 1e10},
            {"min_bytes": 8192, "latency_s": 2e-6, "overhead_s": 0.0, "bandwidth_bytes_per_s": 2e10},
        ],
        "per_partition_s": 1e-8,
        "overlap": 0.5,
        "burst_bytes": 1048576.0,
        "post_burst_s_per_byte": 1e-11,
    },
    "range": {"size_bytes": [512, 16777216], "partitions": [4, 128], "gamma_s_per_byte": [0, 1e-9]},
    "held_out_error": 0.05,
}


def test_a_form_comes_back_as_it_is():
    assert pipeline_form_from_json(FORM).to_json() == FORM
    with_replicates = FORM | {"replicates": [FORM["parameters"]]}
    assert pipeline_form_from_json(with_replicates).to_json() == with_replicates


def test_a_form_with_the_keys_of_an_earlier_version_loads():
    earlier = copy.deepcopy(FORM)
    for part, now, before in (
        (earlier["what"], "method", "way"),
        (earlier["parameters"], "burst_bytes", "swift_bytes"),
        (earlier["parameters"], "post_burst_s_per_byte", "beyond_s_per_byte"),
    ):
        part[before] = part.pop(now)
    assert pipeline_form_from_json(earlier).to_json() == FORM


def test_other_forms_of_a_profile_are_kept_as_they_are():
    others = [{"what": {"operation": "pingpong"}, "form": "piecewise_postal"}, {"what": 3}, "text"]
    value = {"schema": "earlybird.profile/1", "levels": {}, "forms": [*others, FORM]}
    profile = profile_from_json(value)
    assert [form.method for form in profile.pipelines] == ["many"]
    assert profile.to_json()["forms"] == value["forms"]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("what", "level"), "moon", "what: level is 'moon'; give one of intra_socket"),
        (("what", "method"), 3, "what.method is 3; give text"),
        (("what", "threads"), 0, "what.threads is 0; give a whole number >= 1"),
        (("parameters", "messages"), "some", "messages is 'some'; give one of one, each"),
        (("parameters", "messages"), 0, "parameters.messages is 0; give a whole number >= 1"),
        (("parameters", "overlap"), 2, "parameters.overlap is 2; give a number <= 1"),
        (("parameters", "per_partition_s"), -1, "parameters.per_partition_s is -1; give a number >= 0"),
        (("parameters", "protocols"), [], r"min_bytes is \[\]; it must begin at 0"),
        (
            ("parameters", "protocols", 0, "bandwidth_bytes_per_s"),
            0,
            r"protocols\[0\].bandwidth_bytes_per_s is 0; give a number >= 0.001",
        ),
        (
            ("parameters", "protocols", 0, "latency_s"),
            "1us",
            r"parameters.protocols\[0\].latency_s is \'1us\'; give a number",
        ),
        (("parameters", "protocols", 0, "min_bytes"), 4, r"min_bytes is \[4, 8192\]"),
        (("range", "partitions"), 4, "range.partitions is 4; give a JSON list"),
        (("replicates",), 3, "replicates is 3; give a JSON list"),
    ],
)
def test_what_is_impossible_is_named(path, value, says):
    form = copy.deepcopy(FORM)
    place = form
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=says):
        pipeline_form_from_json(form)
