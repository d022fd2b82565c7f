"""The suite `partitioned`: what it measures by default, its launches, and what it refuses."""

from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.measure import suites
from earlybird.measure.groups import Library, Resources
from earlybird.measure.partitioned import partitioned_groups, remarks

HERE = replace(Resources.of(8, 1), family="mpich", library=Library("mpich"))
SUITE = suites.SUITES["partitioned"]


def options(**given):
    return suites.options_of([SUITE], {"quick": False, "threads": 1, **given})


def points(**given):
    groups = partitioned_groups(options(**given), HERE, "mpich")
    return list({tuple(p.items()): p for group in groups for p in group.points}.values())


def test_launches_with_and_without_libearlybird_both_have_the_references():
    kinds = {(group.methods, group.preload) for group in partitioned_groups(options(), HERE, "mpich")}
    assert kinds == {(("single", "many", "partitioned"), False), (("single", "many", "earlybird"), True)}


def test_each_partition_has_a_thread_unless_threads_are_given():
    assert {(p["partitions"], p["threads"]) for p in points()} == {(1, 1), (4, 4), (16, 16)}
    found = points(partitions="6", thread_counts="4,8")
    assert {(p["partitions"], p["threads"]) for p in found} == {(6, 4), (6, 8)}
    assert {p["threads"] for p in points(sizes="4096", partitions="2048", thread_counts="4")} == {4}


def test_groups_have_one_thread_count_each():
    for group in partitioned_groups(options(), HERE, "mpich"):
        assert {point["threads"] for point in group.points} == {group.threads}


def test_sizes_are_rounded_down_to_multiples_of_the_partitions_and_this_is_said():
    given = options(sizes="1000", partitions="7")
    assert {p["size_bytes"] for p in points(sizes="1000", partitions="7")} == {994}
    assert any("rounded down" in remark and "994" in remark for remark in remarks(given, HERE))
    assert not any("rounded" in remark for remark in remarks(options(sizes="1001", partitions="7"), HERE))


def test_noise_and_caches_multiply_the_points():
    found = points(
        sizes="1024", partitions="4", compute="1ms,10ms", noise="none,uniform,gaussian", cache="hot,cold",
        **{"noise-percent": "4,10"},
    )  # fmt: skip
    assert len(found) == 2 * (1 + 2 * 2) * 2
    assert {(p["noise"], p["noise_share"]) for p in found} == {
        ("none", 0.0), ("uniform", 0.04), ("uniform", 0.1), ("gaussian", 0.04), ("gaussian", 0.1)
    }  # fmt: skip


def test_partitions_that_threads_share_are_named():
    given = options(partitions="4", thread_counts="8")
    assert any("4 partitions of 8 threads: threads share" in remark for remark in remarks(given, HERE))
    assert not any("share a partition" in remark for remark in remarks(options(), HERE))


def test_an_mpi_without_partitioned_calls_measures_ours_alone_and_says_so():
    without = replace(HERE, library=Library("system", partitioned=False))
    (group,) = {group.methods: group for group in partitioned_groups(options(), without, "system")}.values()
    assert group.methods == ("single", "many", "earlybird") and group.preload
    assert any("system has no partitioned communication" in remark for remark in remarks(options(), without))


@pytest.mark.parametrize(
    ("given", "library", "message"),
    [
        ({"sizes": "8", "partitions": "16"}, Library("mpich"), "a partition has at least 1 byte"),
        ({"partitions": "40000"}, Library("mpich"), "give 32000 at most"),
        ({"partitions": "2048"}, Library("mpich"), "--partitions has 2048, .* give --threads, such as"),
        ({"methods": "rma-fence"}, Library("mpich"), "--methods has 'rma-fence'; give some of single"),
        ({"methods": "partitioned"}, Library("system", partitioned=False), "system has no partitioned"),
        ({"cache": "warm"}, Library("mpich"), "give some of hot, cold"),
        ({"noise": "pink"}, Library("mpich"), "--noise has 'pink'; give some of none"),
        ({"noise": "single", "noise-percent": "-4"}, Library("mpich"), "give 0 to 100"),
        ({}, Library("system", partitioned=False, earlybird=False), "has no partitioned communication, and"),
    ],
)
def test_wrong_input_is_refused(given, library, message):
    with pytest.raises(InputError, match=message):
        partitioned_groups(options(**given), replace(HERE, library=library), "mpich")


def test_computing_and_settling_count_as_time():
    group = next(
        g for g in partitioned_groups(options(compute="10ms", noise="none"), HERE, "mpich") if g.preload
    )
    assert group.computing_s(group.points[0]) == pytest.approx(3 * 10e-3)
    assert group.settling_s(group.points[0]) == pytest.approx(110 * 10e-3)
