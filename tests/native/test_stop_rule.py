"""The harness's stop rule computes the results of the shared vectors, as the Python rule does."""

import json
import math
import subprocess
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from tests.partitioned import suite_program

VECTORS = json.loads((Path(__file__).parent / "stop_rule_vectors.json").read_text())["cases"]


def _number(value) -> float:
    return math.inf if value is None else value


def test_stop_rule_agrees_with_the_shared_vectors(any_mpi):
    lines = [
        " ".join(map(repr, [case["target"], case["t_quantile"], *case["times_s"]])) + "\n" for case in VECTORS
    ]
    program = suite_program(find_flavour(any_mpi), "stop_rule_check")
    output = subprocess.run(
        [program], input="".join(lines), capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in output.splitlines()]
    assert len(rows) == len(VECTORS) >= 20
    for case, row in zip(VECTORS, rows, strict=True):
        assert int(row[0]) == case["warmup"], case
        expected = [
            case["low_s"],
            case["high_s"],
            _number(case["relative_half_width"]),
            _number(case["student_t_relative_half_width"]),
        ]
        assert [float(word) for word in row[1:5]] == pytest.approx(expected, rel=1e-12, abs=1e-12), case
        assert [row[5] == "1", row[6] == "1"] == [case["stop_median"], case["stop_paper"]], case
