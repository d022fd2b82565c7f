"""The suite `packing`: which layouts, caches and sizes it measures, and what it refuses."""

from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.measure.effort import Effort, overrun_remark
from earlybird.measure.groups import MIB, Resources
from earlybird.measure.suites import SUITES, options_of

SUITE = SUITES["packing"]


def groups(**settings):
    return SUITE.groups(options_of([SUITE], {"quick": False} | settings), Resources.of(2, 1), "mpich")


def test_every_layout_is_packed_with_hot_and_cold_caches_on_one_rank():
    (group,) = groups(sizes="64,1KiB")
    assert group.layout.num_ranks == 1 and group.methods == ("pack", "unpack", "loop-pack", "loop-unpack")
    found = [(point["packing"], point["cache"], point["size_bytes"]) for point in group.points]
    assert len(found) == len(set(found)) == 3 * 2 * 2
    (group,) = groups(packing="indexed", cache="cold", methods="unpack", quick=True)
    assert group.methods == ("unpack",)
    assert {(point["packing"], point["cache"]) for point in group.points} == {("indexed", "cold")}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sizes": "12"}, "--sizes has 12 bytes; .* multiples of 8, at most 256 MiB"),
        ({"sizes": "0"}, "--sizes has 0 bytes"),
        ({"packing": "random"}, "--packing has 'random'; give some of contiguous, strided, indexed"),
        ({"methods": "copy"}, "--methods has 'copy'; give some of pack, unpack, loop-pack, loop-unpack"),
        ({"cache": "warm"}, "--cache has 'warm'; give some of hot, cold"),
        ({"threads": 2}, "--threads is 2 and packing measures one thread"),
    ],
)
def test_what_cannot_be_measured_is_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        groups(**settings)


def test_emptying_large_caches_is_in_the_estimate():
    """Twice 300 MiB are read before each of 8 iterations of 4 methods, 3 layouts and 3 sizes."""
    resources = replace(Resources.of(2, 1), cache_bytes=300 * MIB)
    options = options_of([SUITE], {"quick": True})
    effort = Effort(1, 5.0)
    cold_s = effort.plan(SUITE.groups(options, resources, "mpich")).least_s()
    assert 10 < cold_s < 60
    small = SUITE.groups(options, replace(resources, cache_bytes=MIB), "mpich")
    assert effort.plan(small).least_s() < cold_s / 5
    remark = overrun_remark(SUITE.groups(options, resources, "mpich"), effort)
    assert "more than the budget of 5 s" in remark and "emptying the caches" in remark
    assert overrun_remark(small, effort) is None
    (group,) = SUITE.groups(options, resources, "mpich")
    (hot,) = SUITE.groups(options.changed(caches=("hot",)), resources, "mpich")
    assert hot.computing_s(hot.points[0]) == 0 < group.computing_s(group.points[-1])
