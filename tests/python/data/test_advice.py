"""Advice is read as it was written; a file that lacks a part is refused."""

import json

import pytest

from earlybird.data.advice import Advice, Alternative, SizeRange, advice_from_json, load_advice
from earlybird.data.errors import InputError
from earlybird.data.schema import Estimate

ADVICE = Advice(
    "pipeline",
    {"threads": 8},
    "single",
    (Alternative("many", Estimate(1e-3, 0.9e-3, 1.1e-3), Estimate(1.5, 1.4, 1.6), "do this", "measured",
                 Estimate.exact(1.2), Estimate(1e-3, 0.9e-3, 1.1e-3), Estimate(1.5, 1.4, 1.6), "converged",
                 {"partitions": 8}),
     Alternative("single", Estimate.exact(1.5e-3), None, "do that")),
    (SizeRange(512, 1 << 30, "many", "do this", {"partitions": 8}),),
    "p",
    ("a note",),
)  # fmt: skip


def test_advice_comes_back_as_it_is(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(ADVICE.to_json() | {"later": 1}))
    again = load_advice(tmp_path / "a.json")
    assert again.to_json() == ADVICE.to_json() | {"later": 1} and again.ranked == ADVICE.ranked


@pytest.mark.parametrize("name", ["ranked", "operation", "asked"])
def test_a_missing_part_is_refused(name):
    value = {key: item for key, item in ADVICE.to_json().items() if key != name}
    with pytest.raises(InputError, match=f"has no {name!r}|{name} is missing"):
        advice_from_json(value)


def test_advice_without_alternatives_is_refused():
    with pytest.raises(InputError, match="ranked is missing or empty; give an alternative"):
        advice_from_json(ADVICE.to_json() | {"ranked": []})


def test_what_earlier_versions_wrote_or_left_out_is_read():
    """Intervals of the first version, which may be null, and no baseline."""
    value = ADVICE.to_json()
    del value["baseline"]
    first = {"method": "many", "time_s": 1e-3, "time_interval_s": [9e-4, 1.1e-3], "gain": 1.5,
             "gain_interval": None, "do": "this"}  # fmt: skip
    advice = advice_from_json(value | {"ranked": [first]})
    assert advice.ranked[0].time_s == Estimate(1e-3, 9e-4, 1.1e-3)
    assert advice.ranked[0].speed_up == Estimate.exact(1.5) and advice.baseline == ""


def test_an_error_in_an_interval_names_its_key():
    value = ADVICE.to_json()
    value["ranked"][0]["time_low_s"] = "a"
    with pytest.raises(InputError, match=r"ranked\[0\].time_low_s is 'a'; give a number"):
        advice_from_json(value)


@pytest.mark.parametrize(
    ("key", "value"), [("partitions", -8), ("vcis", "two"), ("message_bytes", "8"), ("extrapolated", 3)]
)
def test_a_further_value_of_another_type_is_refused_with_its_place(key, value):
    given = ADVICE.to_json()
    given["ranked"][0][key] = value
    with pytest.raises(InputError, match=rf"ranked\[0\].{key} is {value!r}; give"):
        advice_from_json(given)
