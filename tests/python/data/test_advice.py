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
    with pytest.raises(InputError, match=f"has no {name!r}"):
        advice_from_json(value)


def test_advice_without_alternatives_is_refused():
    with pytest.raises(InputError, match="ranked is empty; give an alternative"):
        advice_from_json(ADVICE.to_json() | {"ranked": []})
