"""Verdicts on findings: what intervals leave open is unclear, not different."""

import pytest

from earlybird.data.schema import Estimate
from earlybird.papers.temucin.statements import judged
from earlybird.papers.verdicts import (
    AGREES,
    DIFFERS,
    UNCLEAR,
    are_same,
    at_least,
    differ,
    exceeds,
    falls,
    is_close,
    mostly,
    peaks_inside,
    quotient,
    rises,
    verdict,
)
from earlybird.present.core.notation import ratio_text


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (2.5, 2.6, AGREES),
        (2.7, 3.0, DIFFERS),
        (1.0, 2.3, DIFFERS),
        (2.6, 3.0, UNCLEAR),  # reaches into the tolerance
        (1.0, 9.0, UNCLEAR),  # contains the printed value, and much else
    ],
)
def test_a_ratio_is_compared_with_its_interval(low, high, expected):
    assert verdict(is_close(Estimate((low + high) / 2, low, high), 2.54)) == expected


@pytest.mark.parametrize(
    ("finding", "values", "expected"),
    [
        (rises, [(1, 1, 1), (2, 1.9, 2.1)], AGREES),
        (rises, [(1, 1, 1.95), (2, 1.9, 2.1)], UNCLEAR),
        (rises, [(2, 1.9, 2.1), (1, 1, 1)], DIFFERS),
        (falls, [(2, 1.9, 2.1), (1, 1, 1)], AGREES),
        # Every corner of the intervals differs, but not what is inside of them.
        (are_same, [(1.5, 1, 2), (1.5, 1.4, 1.6)], UNCLEAR),
        (are_same, [(1, 1, 1), (1.01, 1, 1.02)], AGREES),
        # No value differs from itself, however wide its interval is.
        (are_same, [(1, 0.97, 1.04), (1, 1, 1)], AGREES),
        (differ, [(1, 0.97, 1.04), (1, 1, 1)], DIFFERS),
        (differ, [(1, 0.9, 1.1), (2, 1.9, 2.1), (1, 0.5, 3)], AGREES),
        (peaks_inside, [(1, 1, 1), (2, 1.5, 2.5), (1, 1, 1.4)], AGREES),
        (peaks_inside, [(1, 1, 1), (2, 1.5, 2.5), (1, 1, 1.6)], UNCLEAR),
        (peaks_inside, [(3, 3, 3), (2, 1.5, 2.5), (1, 1, 1.6)], DIFFERS),
        (mostly(lambda one: exceeds(one, 1)), [(2, 2, 2), (2, 0, 4), (2, 2, 2)], AGREES),
        (mostly(lambda one: exceeds(one, 1)), [(2, 2, 2), (2, 0, 4), (0, 0, 0)], UNCLEAR),
        (mostly(lambda one: exceeds(one, 1)), [(2, 2, 2), (0, 0, 1), (2, 0, 4), (0, 0, 0)], DIFFERS),
    ],
)
def test_a_finding_is_judged_over_the_intervals(finding, values, expected):
    assert verdict(finding([Estimate(*value) for value in values])) == expected


def test_a_quotient_has_the_extremes_of_both():
    assert quotient(Estimate(4, 3, 6), Estimate(2, 1, 3)) == Estimate(2, 1, 6)
    assert at_least(1, [None, False]) is None and at_least(1, [False, False]) is False


def test_an_unclear_finding_shows_the_intervals_that_leave_it_open():
    values = [("few", Estimate(1, 1, 1)), ("many", Estimate(2, 0.5, 3))]
    judged_here = judged("MPICH", "earlybird", values, rises, ratio_text)
    assert (judged_here.verdict, judged_here.here) == (UNCLEAR, "few: 1.00, many: 2.00 (0.50 .. 3.00)")
    values[1] = ("many", Estimate(2, 1.5, 3))
    assert judged("MPICH", "earlybird", values, rises, ratio_text).here == "few: 1.00, many: 2.00"
