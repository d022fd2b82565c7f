"""`earlybird compare --guidelines`: formats, exit status, refusals."""

import csv
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from earlybird.data.run import Run, Sample


@pytest.fixture
def run(tmp_path):
    """A run of two operations with two sizes each; a reduce of 8 bytes takes four times that of 64."""
    made = Run.create(tmp_path / "run", machine={"host": "a"}, command=[], seed=1)
    random = np.random.default_rng(1)
    for launch in range(10):
        for operation in ("bcast", "reduce"):
            name = f"{operation}-{launch}"
            made.append_launch({"id": name, "layout": "1x1x2"})
            for size in (8, 64):
                config = {
                    "mpi": "mpich", "operation": operation, "ranks": 2, "layout": "1x1x2", "map_by": "core",
                    "size_bytes": size, "root": 0,
                }  # fmt: skip
                usual = 4e-6 if (operation, size) == ("reduce", 8) else 1e-6
                times_s = usual * (1 + 0.01 * random.normal() + 0.01 * random.normal(size=20))
                made.append_samples([
                    Sample("collective", "completion", config, name, times_s, method="default")
                ])  # fmt: skip
    return made


def test_a_violated_guideline_fails_in_every_format(earlybird, run):
    def printed(format: str, status: int = 1) -> str:
        result = earlybird("compare", "--guidelines", "run", "--format", format, check=False)
        assert result.returncode == status, result.stdout + result.stderr
        return result.stdout

    found = json.loads(printed("json"))
    assert found["schema"] == "earlybird.guidelines/1"
    (violated,) = [one for one in found["checks"] if one["outcome"] == "violated"]
    assert (violated["operation"], violated["size_bytes"], violated["kind"]) == ("reduce", 8, "monotony")
    rows = list(csv.DictReader(printed("csv").splitlines()))
    assert [row["outcome"] for row in rows] == [one["outcome"] for one in found["checks"]]
    (suite,) = ElementTree.fromstring(printed("junit"))
    assert (int(suite.get("tests")), int(suite.get("failures"))) == (len(rows), 1)
    assert "reduce(8 B) <= reduce(64 B)" in printed("markdown")
    table = printed("table")
    assert f"1 violated, 0 inconclusive, {len(rows) - 1} holds of {len(rows)} checks" in table
    assert "to do     reduce(8 B) on 2 ranks: send 64 B instead" in table
    assert "unchecked bcast <= scatter + allgather" in table
    unchecked = len([line for line in table.splitlines() if line.startswith("unchecked ")])
    assert f"checks; {unchecked} unchecked" in table and unchecked == len(found["unchecked"])
    lines = [re.split(r"\s{2,}", line) for line in table.splitlines()]
    for row in (
        ["guideline", "violated", "inconclusive", "holds"],
        ["monotony of bcast", "0", "0", "1"],
        ["monotony of reduce", "1", "0", "0"],
    ):
        assert row in lines


def test_written_guidelines_are_printed_again(earlybird, run):
    printed = earlybird("compare", "--guidelines", "run", "-o", "found.json", check=False).stdout
    assert earlybird("show", "found.json").stdout == printed


def test_a_larger_effect_passes(earlybird, run):
    earlybird("compare", "--guidelines", "run", "--min-effect", "400%")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run", "run"), "one run"),
        (("run", "--mpi", "a", "--mpi", "b"), "--mpi once"),
        (("run", "--mpi", "openmpi"), "no samples of openmpi"),
        (("run", "--baseline", "monday"), "--baseline"),
        (("missing",), "missing"),
    ],
)
def test_bad_input_is_refused(earlybird, run, refused, arguments, named):
    refused(earlybird("compare", "--guidelines", *arguments, check=False), named)
