"""Parsing of the options of suites."""

import pytest

from earlybird.data.errors import InputError
from earlybird.measure.suites import SUITES, options_of


def options(quick=False, **texts):
    texts = {name.replace("_", "-"): text for name, text in texts.items()}
    return options_of([SUITES["collective"]], {"quick": quick} | texts)


def test_sizes_are_listed_or_powers_of_two_in_a_range():
    assert options(sizes="8,1KiB").sizes_bytes == (8, 1024)
    assert options(sizes="1..16").sizes_bytes == (1, 2, 4, 8, 16)
    assert options(sizes="1..16,3,4").sizes_bytes == (1, 2, 4, 8, 16, 3)
    assert options(sizes="1..64KiB", quick=True).sizes_bytes == (1, 16, 256, 4096, 65536)


def test_ranks_are_every_number_of_a_range():
    assert options(ranks="2..5,8").ranks == (2, 3, 4, 5, 8)
    assert options(ranks="2,4").ranks == (2, 4)


def test_algorithms_have_their_segments_in_bytes():
    parsed = options(algorithm="linear,pipeline:8KiB,own-binomial:0", segments="0,1KiB")
    assert parsed.algorithms == ("linear", "pipeline:8192", "own-binomial")
    assert parsed.segments_bytes == (0, 1024)


def test_a_root_is_a_number_and_mappings_are_names():
    parsed = options(root="0", map_by="core,node", op="bcast, reduce")
    assert (parsed.root, parsed.map_by, parsed.operations) == (0, ("core", "node"), ("bcast", "reduce"))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"sizes": "16..1"}, "--sizes has 16..1; give an ascending range"),
        ({"sizes": "0..16"}, "--sizes has 0..16"),
        ({"sizes": "1..big"}, "--sizes is 'big'"),
        ({"ranks": "8..2"}, "--ranks has '8..2'; give rank counts"),
        ({"ranks": "2..x"}, "--ranks has '2..x'"),
        ({"ranks": "all"}, "--ranks has 'all'"),
        ({"root": "first"}, "--root is 'first'; give a rank"),
        ({"algorithm": "pipeline:many"}, "--algorithm has pipeline:many, its segment is 'many'"),
    ],
)
def test_invalid_values_are_refused(texts, message):
    with pytest.raises(InputError) as error:
        options(**texts)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ranks": "1..999999999999"}, "more than 1000 values of an option; give fewer"),
        ({"ranks": "1.." + "9" * 5000}, "--ranks has '1..99"),
        ({"sizes": ",".join(map(str, range(2000)))}, "more than 1000 values"),
        ({"root": "9" * 5000}, "--root is '99"),
        ({"sizes": ",".join(map(str, range(1000))), "ranks": "2..900"}, "899000 combinations"),
        ({"sizes": 5}, "settings.sizes of the run is 5; give what --sizes takes"),
    ],
)
def test_more_points_than_can_be_measured_are_refused_before_they_take_memory(given, says):
    with pytest.raises(InputError) as refused:
        options(**given)
    assert says in str(refused.value) and len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("suite", "option"),
    [
        (suite, option)
        for suite in SUITES.values()
        for option in suite.takes
        if option.choices or option.values
    ],
    ids=lambda item: item.name,
)
def test_another_value_than_an_option_states_is_refused_in_the_same_way(suite, option):
    allowed = option.choices or option.values
    assert option.read(allowed[-1], {}) == ((allowed[-1],) if option.choices else allowed[-1])
    with pytest.raises(InputError, match=f"^{option.option} has 'qqq'; give (one|some) of {allowed[0]}, "):
        option.read("qqq", {})
