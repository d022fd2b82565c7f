"""What a point lacks is a declared default, or unknown in one sentence; null is as absent."""

import pickle

import pytest

from earlybird.data.errors import InputError
from earlybird.data.parameters import Parameters


def test_what_earlier_versions_left_out_has_a_default():
    assert Parameters("pipeline", {})["threads"] == 1 and Parameters("collective", {})["root"] == 0
    assert Parameters("collective", {"root": None, "map_by": "node"})["root"] == 0
    assert "root" not in Parameters("collective", {"root": None})


def test_a_value_without_default_is_unknown_by_name():
    with pytest.raises(InputError, match=r"a point of msgrate \(size_bytes=8\) has no 'threads'"):
        Parameters("msgrate", {"size_bytes": 8})["threads"]
    with pytest.raises(InputError, match="has no 'ranks'"):
        Parameters("collective", {"ranks": None})["ranks"]


def test_points_are_what_was_written():
    written = {"size_bytes": 8, "vcis": None}
    given = Parameters("pingpong", written)
    assert given == written and dict(given) == written and given.get("vcis", 4) == 4
    again = pickle.loads(pickle.dumps(given))
    assert again == written and again["competitors"] == 1
