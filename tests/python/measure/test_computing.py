"""How long threads compute: which combinations the options name, and what they refuse."""

import pytest

from earlybird.data.errors import InputError
from earlybird.measure.computing import COMPUTE, NOISE, NOISE_PERCENT, Computation, computations
from earlybird.measure.groups import Options


def parsed(compute=None, noise=None, percent=None) -> tuple[Computation, ...]:
    given = ((COMPUTE, compute), (NOISE, noise), (NOISE_PERCENT, percent))
    return computations(Options(**{one.field: one.read(text, {}) for one, text in given if text is not None}))


def test_without_a_choice_threads_do_not_compute():
    assert parsed() == (Computation(0.0, "none", 0.0),)


def test_every_combination_is_named_once():
    """Noise needs a computation, a model and a strength: what lacks one of them is the same point."""
    assert parsed("0,10ms", "none,single,gaussian", "0,4") == (
        Computation(0.0, "none", 0.0),
        Computation(0.01, "none", 0.0),
        Computation(0.01, "single", 0.04),
        Computation(0.01, "gaussian", 0.04),
    )
    assert parsed("1ms", "uniform") == (Computation(0.001, "uniform", 0.04),)


def test_percents_are_exact_shares():
    assert [one.noise_share for one in parsed("1ms", "single", "7,10,100")] == [0.07, 0.1, 1.0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"compute": "10"}, None),
        ({"compute": "11"}, "--compute has 11, which is 11 s; give 0 to 10s"),
        ({"compute": "-1ms"}, "--compute is '-1ms'"),
        ({"noise": "pink"}, "--noise has 'pink'; give some of none, single"),
        ({"noise": "single", "percent": "101"}, "--noise-percent has '101'; give 0 to 100"),
        ({"noise": "single", "percent": "nan"}, "--noise-percent has 'nan'"),
        ({"percent": "4"}, "--noise is missing"),
    ],
)
def test_what_is_no_computation_is_refused(given, expected):
    if expected is None:
        assert parsed(**given)
        return
    with pytest.raises(InputError) as error:
        parsed(**given)
    assert expected in str(error.value)
