"""The plan of Gillis et al. 2023 measures the paper's figures, with threads that fit the machine."""

from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.measure.groups import Library, Options, Resources
from earlybird.papers.gillis.plan import plan, remarks

GILLIS = Options()


def mpich(*shape):
    return replace(Resources.of(*shape), family="mpich", library=Library("mpich"))


def groups(options=GILLIS, resources=None, mpi="mpich"):
    (step,) = plan(options, resources or mpich(64, 2), mpi)
    return step.groups


def points(found, **wanted):
    return [point for group in found for point in group.points if wanted.items() <= point.items()]


def test_on_a_large_machine_the_set_is_that_of_the_paper():
    found = groups(resources=mpich(64, 2, 2))
    assert {point["level"] for point in points(found)} == {"inter_node"}
    assert {(p["threads"], p["partitions"], p["gamma_s_per_byte"], "vcis" in p) for p in points(found)} == {
        (1, 1, 0.0, False),
        (32, 32, 0.0, False),
        (32, 32, 0.0, True),
        (4, 128, 0.0, False),
        (4, 4, 100e-12, False),
    }
    assert {point.get("receivers") for point in points(found)} == {"threads"}
    methods = {method for group in found for method in group.methods}
    assert {
        "rma-many-active",
        "stream",
        "partitioned",
        "earlybird:512",
        "earlybird:16384",
        "earlybird-partition",
    } <= methods
    assert not remarks(GILLIS, mpich(64, 2, 2))


def test_on_a_small_machine_fewer_threads_send_as_many_partitions_and_it_says_so():
    small = mpich(2, 1)
    shapes = {(p["threads"], p["partitions"]) for p in points(groups(resources=small))}
    assert shapes == {(1, 1), (2, 2), (1, 128), (1, 4)}
    output = " ".join(remarks(GILLIS, small))
    assert "2 threads a rank (paper: 32), 7 and 8 with 1 (paper: 4)" in output and "oversubscribed" in output


def test_threads_asked_for_are_those_of_the_figures_on_contention():
    found = groups(Options(threads=(8,)), mpich(2, 1))
    assert {p["partitions"] for p in points(found, threads=8)} == {8}


def test_the_delay_fits_the_link_of_a_virtual_cluster():
    slow = mpich(2, 1, 2, 250e6)
    (gamma,) = {p["gamma_s_per_byte"] for p in points(groups(resources=slow))} - {0.0}
    assert gamma * 250e6 == pytest.approx(2.5)


def test_between_virtual_nodes_mpich_is_asked_for_no_contexts_with_which_it_never_starts():
    slow = mpich(2, 1, 2, 250e6)
    found = groups(resources=slow)
    assert not [group for group in found if group.vcis or group.streams]
    assert any("no figure 6" in output for output in remarks(GILLIS, slow))


def test_an_mpi_without_contexts_leaves_out_the_figure_that_needs_them_and_says_so():
    resources = replace(Resources.of(64, 1), family="openmpi", library=Library("openmpi", streams=False))
    found = groups(resources=resources, mpi="openmpi")
    assert not [p for p in points(found) if "vcis" in p]
    assert any("figure 6" in output for output in remarks(GILLIS, resources))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (Options(threads=(1, 2)), "--threads has 2 numbers"),
        (Options(levels=("intra_socket", "inter_socket")), "give one of them"),
    ],
)
def test_a_figure_has_one_level_and_one_number_of_threads(options, sentence):
    with pytest.raises(InputError, match=sentence):
        groups(options)
