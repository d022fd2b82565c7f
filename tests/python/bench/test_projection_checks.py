"""The checks of projection are counted by what is near and inside; bad options end before measuring."""

import pytest

from bench.__main__ import run
from bench.projected_changes import Check, report
from earlybird.data.projection import LAYOUT, PARTITIONS
from earlybird.data.schema import Estimate


def test_near_and_inside_are_counted_for_each_change(capsys):
    report([
        Check(LAYOUT, "mpich", "ring", Estimate(2.0, 1.5, 2.5), Estimate(1.6, 1.5, 1.7)),
        Check(LAYOUT, "mpich", "far", Estimate(2.0, 1.9, 2.1), Estimate(1.8, 1.7, 1.9)),
        Check(PARTITIONS, "intel", "halo3d", Estimate(1.1, 1.0, 1.2), Estimate(1.1, 1.0, 1.2)),
    ], "a phase")  # fmt: skip
    output = capsys.readouterr().out
    assert "+25 %" in output and "+11 %" in output
    assert "layout: at most 15 % off in 1 of 2, measured value inside the interval in 1 of 2" in output
    assert "partitions: at most 15 % off in 1 of 1, measured value inside the interval in 1 of 1" in output


@pytest.mark.parametrize(
    ("options", "said"), [(["--rounds", "0"], "give 1 or more"), (["--mpi", "nope"], "nope")]
)
def test_bad_options_are_refused(capsys, options, said):
    assert run(["projection-checks", *options]) == 2
    assert said in capsys.readouterr().err
