"""The reference is advised unless another option is clearly faster inside the measured range."""

from dataclasses import replace

import pytest

from earlybird.advise.options import Option, choose, decides, notes, order, settles, stays
from earlybird.data.advice import EXTRAPOLATED, MEASURED, MODEL
from earlybird.data.results import Result
from earlybird.data.schema import Estimate


def option(name, value, low, high, work=1, basis=MODEL, **more):
    return Option(name, (work,), Estimate.exact(1 / value), Estimate(value, low, high), basis, **more)


REFERENCE = option("single", 1.0, 1.0, 1.0, work=0, is_reference=True)


def names(*options):
    return [options[k].name for k in order(options)]


def test_a_clearly_faster_option_is_first_and_an_unclear_one_is_not():
    assert names(REFERENCE, option("many", 1.3, 1.1, 1.5)) == ["many", "single"]
    assert names(REFERENCE, option("many", 1.3, 0.9, 1.8)) == ["single", "many"]
    assert names(REFERENCE, option("many", 1.04, 1.01, 1.07)) == ["single", "many"]


def test_of_options_that_are_nearly_equal_the_one_with_less_work_is_first():
    nearly = option("a", 1.52, 1.4, 1.6, work=2), option("b", 1.5, 1.4, 1.6)
    assert names(REFERENCE, *nearly) == ["b", "a", "single"]


def test_an_extrapolated_option_ranks_below_all_others():
    beyond = option("many", 9.0, 8.0, 10.0, basis=EXTRAPOLATED)
    assert names(REFERENCE, beyond, option("fence", 0.8, 0.7, 0.9)) == ["single", "fence", "many"]
    only = replace(REFERENCE, basis=EXTRAPOLATED), beyond
    assert names(*only) == ["many", "single"]
    assert "outside the measured range" in notes(only, beyond, "COMMAND")[0]


def test_noise_stops_the_advice_and_says_how_to_measure_again():
    noisy = option("many", 1.3, 1.01, 1.5, is_reliable=False)
    assert names(REFERENCE, noisy) == ["single", "many"]
    (note,) = notes((REFERENCE, noisy), REFERENCE, "COMMAND")
    assert note.startswith("too noisy to tell") and "many, speed-up 1.30 (1.01 .. 1.50)" in note
    assert note.endswith("measure again with COMMAND")


def test_what_is_far_beyond_noise_is_not_called_unclear():
    fast = option("many", 350, 304, 403, is_reliable=False)
    assert names(REFERENCE, fast) == ["single", "many"]
    (note,) = notes((REFERENCE, fast), REFERENCE, "COMMAND")
    assert "fewer than 5 launches" in note and "350.00 (304.00 .. 403.00)" in note
    assert note.endswith("measure again with COMMAND")


@pytest.mark.parametrize(
    "slow", [(350, 304, 403, False, True), (1.3, 1.01, 1.5, False, True), (1.3, 1.1, 1.5, True, False)]
)
def test_where_ranks_share_cores_no_more_launches_are_asked_for(slow):
    *speed_up, is_reliable, is_significant = slow
    shared = option(
        "many", *speed_up, launches=24, shares_cores=True,
        is_reliable=is_reliable, is_significant=is_significant,
    )  # fmt: skip
    (note,) = notes((REFERENCE, shared), REFERENCE, "COMMAND")
    assert "in 24 launches" in note and "COMMAND" not in note and "fewer than" not in note
    assert note.endswith("ranks share cores: more launches will not help; measure with a core for each rank")


def test_enough_launches_on_cores_of_their_own_settle_a_point():
    assert settles([result(5, 5)]) and not settles([result(4)]) and not settles([])
    assert not settles([result(24, oversubscribed=True)])


def result(launches, noisy=0, oversubscribed=False):
    one = Estimate.exact(1.0)
    return Result("pipeline", "time_to_solution", "many", {}, one, 0.9, launches, noisy, oversubscribed)


def test_noisy_results_and_shared_cores_decide_only_with_enough_launches():
    assert decides([result(3)]) and decides([result(3, 1)]) and decides([])
    assert not decides([result(3, 2)]) and not decides([result(3, oversubscribed=True)])
    assert decides([result(5, 5, oversubscribed=True)])
    assert decides([result(3, 3), result(3)]) and not decides([result(3, 3), result(3, 3), result(3)])


def test_a_model_that_disagrees_with_the_measurement_is_reported():
    """A measured 2.16 (1.50 .. 3.00), repeated within 1.08 and 3.24, stands although the model predicts 5.57
    (4.89 .. 19.65)."""
    measured = option("many", 2.16, 1.08, 3.24, basis=MEASURED,
                      measured_speed_up=Estimate(2.16, 1.5, 3.0),
                      predicted_speed_up=Estimate(5.57, 4.89, 19.65))  # fmt: skip
    (note,) = notes((REFERENCE, measured), measured, "COMMAND")
    assert "DISAGREES" in note and "5.57 (4.89 .. 19.65)" in note and "2.16 (1.50 .. 3.00)" in note
    alike = replace(measured, predicted_speed_up=Estimate(3.5, 3.0, 4.0))
    assert not notes((REFERENCE, alike), alike, "COMMAND")


def test_an_option_stays_while_it_is_clearly_faster_and_no_other_is_by_the_margin():
    many = option("many", 1.5, 1.2, 1.8)
    assert stays(many, (REFERENCE, many, option("fence", 1.7, 1.4, 2.0)))  # the intervals overlap
    assert stays(many, (REFERENCE, many, option("fence", 1.57, 1.57, 1.57)))  # less than 5 %
    assert not stays(many, (REFERENCE, many, option("fence", 2.0, 1.9, 2.1)))
    assert not stays(option("many", 1.5, 0.9, 1.8), (REFERENCE,))
    assert stays(REFERENCE, (REFERENCE, option("many", 1.5, 0.9, 1.8)))
    assert not stays(REFERENCE, (REFERENCE, many))


def test_without_a_reference_the_fastest_is_first():
    alone = [replace(option(name, value, 1, 1), speed_up=None) for name, value in (("a", 1.0), ("b", 2.0))]
    assert choose(alone) == 1
