"""Checks of simulated programs are counted as the goals say; bad options end before measuring."""

import pytest

from bench.__main__ import run
from bench.program_checks import Check, report, summary
from earlybird.data.schema import Estimate


def check(predicted, measured, error=0.01, spread=0.02):
    """A check whose two intervals are `spread` wide on either side."""
    around = [Estimate(value, value * (1 - spread), value * (1 + spread)) for value in (predicted, measured)]
    return Check("layout", "mpich", "ring", *around, error, "two ranks")


def test_errors_are_of_the_checks_in_which_the_run_changes(capsys):
    checks = [check(2.0, 1.6), check(0.5, 0.52), check(1.0, 1.14, error=-0.05)]
    report(checks)
    output = capsys.readouterr().out
    assert "+25 %" in output and "-3.8 %" in output
    line = summary("two ranks", checks)
    assert line in output
    assert "as recorded off by 1.0 % in the median, worst 5.0 %" in line
    assert "in 2 of 3 the run changes by 15 % or more and the speed-up is known" in line
    assert ": off by 14 % in the median" in line
    assert "worst 25 %" in line and "contains the measured median in 0 of 3" in line
    assert "overlaps its interval in 1, its ends are 4.1 % apart in the median; unknown: 0" in line


def test_without_a_change_of_15_percent_no_error_is_given():
    assert "in 0 of 1 the run changes" in summary("x", [check(1.0, 1.1)])


@pytest.mark.parametrize(
    ("options", "said"), [(["--rounds", "0"], "give 1 or more"), (["--mpi", "nope"], "nope")]
)
def test_bad_options_are_refused(capsys, options, said):
    assert run(["simulated-programs", *options]) == 2
    assert said in capsys.readouterr().err
