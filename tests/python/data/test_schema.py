"""Declared schemas: unknown keys survive at every depth, former keys load, errors name the value."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypedDict

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.schema import OMIT_EMPTY, Bytes, Count, Extra, NotNegative, Record, check_keys, decode
from earlybird.data.tolerance import tolerance_from_json

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden"


@dataclass(frozen=True)
class Part(Record):
    method: str
    size_bytes: Bytes = 0
    times_s: np.ndarray | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class Closed(Record):
    latency_s: NotNegative = 0.0


@dataclass(frozen=True)
class Whole(Record):
    schema: ClassVar[str] = "earlybird.whole/1"

    parts: dict[str, tuple[Part, ...]]
    closed: Closed | None = None
    rates: dict[Count, NotNegative] = field(default_factory=dict, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)


VALUE = {
    "schema": "earlybird.whole/1",
    "parts": {"a": [{"method": "many", "size_bytes": 8, "times_s": [1.0, 2.0], "do": 1}], "b": []},
    "closed": {"latency_s": 1.5},
    "rates": {"2": 1.0},
    "extra": ["a key of this name is as unknown as others"],
    "later": {"kept": None, "do": "a key of this name is current in a value that nothing describes"},
}


def test_a_value_comes_back_with_its_unknown_keys():
    whole = decode(VALUE, Whole, "the file")
    assert whole.to_json() == VALUE
    assert whole.rates == {2: 1.0} and whole.parts["a"][0].extra == {"do": 1}


def test_keys_of_an_earlier_version_load_at_every_depth():
    earlier = VALUE | {"parts": {"a": [{"way": "many"}]}}
    assert decode(earlier, Whole, "the file").parts["a"][0].method == "many"


def test_optional_values_are_omitted_when_empty():
    assert decode({"schema": Whole.schema, "parts": {}}, Whole, "").to_json() == {
        "schema": Whole.schema, "parts": {}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": "earlybird.whole/2"}, "has the schema 'earlybird.whole/2'; this version reads"),
        ({"parts": 3}, ": parts is 3; give a JSON object"),
        ({"parts": {"a": [], "b": [{"method": 3}]}}, r": parts\.b\[0\]\.method is 3; give text"),
        ({"parts": {"a": [], "b": [{}]}}, r", parts\.b\[0\] has no 'method'; give it"),
        ({"parts": {"a": [{"method": "x", "size_bytes": -1}]}}, "size_bytes is -1; give a whole number >= 0"),
        ({"parts": {"a": [{"method": "x", "size_bytes": 10**30}]}}, "give a whole number <= 46116860184"),
        ({"parts": {"a": [{"method": "x", "times_s": [1, None]}]}}, "times_s: give a JSON list of numbers"),
        ({"parts": {"a": [{"method": "x", "times_s": [[1], [1, 2]]}]}}, "lists of one length"),
        ({"closed": {"latency_s": float("inf")}}, r"closed\.latency_s is inf; give a number <="),
        ({"closed": {"latency_s": 10**400}}, r"closed\.latency_s is 10000.*\.\.\.; give a number of at most"),
        ({"closed": {"speed": 1}}, "has the key 'speed'; the keys are latency_s"),
        ({"rates": {"1": 1.0, "0": 1.0}}, "rates key is '0'; give a whole number >= 1"),
    ],
)
def test_an_error_names_path_value_and_what_is_allowed(change, says):
    with pytest.raises(InputError, match=f"^the file.*{says}.*; do this$|^the file {says}"):
        decode(VALUE | change, Whole, "the file", "do this")


@pytest.mark.parametrize("key", ["\udcff", "a\ud800"])
def test_a_key_that_is_not_text_is_refused(key):
    with pytest.raises(InputError, match="is not text"):
        check_keys({key: 1}, TypedDict("Known", {"host": str}, total=False), "the file")


def test_a_wrong_number_in_a_list_of_times_is_named():
    value = json.loads((GOLDEN / "tolerance-1.json").read_text())
    value["curves"][0]["time_s"][3] = None
    with pytest.raises(InputError, match=r"curves\[0\].time_s\[3\] is None"):
        tolerance_from_json(value)
