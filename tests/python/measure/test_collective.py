"""The suite collective: which launches its methods take, among which ranks, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.measure.collective import collective_groups, first_ranks, remarks
from earlybird.measure.groups import Library, Options, Resources

PLACE = replace(Resources.of(2, 2, 2), family="mpich", library=Library("mpich"))


def groups(family="mpich", resources=PLACE, **options):
    resources = replace(resources, family=family, library=Library(family))
    return collective_groups(Options(**options), resources, family)


def of_operation(found, operation):
    return [group for group in found if group.points[0]["operation"] == operation]


def test_the_first_ranks_of_the_whole_machine_by_each_mapping():
    assert first_ranks(PLACE, 3, "core").node.tolist() == [0, 0, 0]
    assert first_ranks(PLACE, 3, "core").socket.tolist() == [0, 0, 1]
    assert first_ranks(PLACE, 3, "socket").socket.tolist() == [0, 1, 0]
    assert first_ranks(PLACE, 3, "node").node.tolist() == [0, 1, 0]
    assert first_ranks(PLACE, 8, "core").text == "2x2x2"
    assert first_ranks(PLACE, 3, "node").text == "first 3 of 2x2x2 by node"
    assert first_ranks(PLACE, 10, "core").num_ranks == 10  # more than cores


def test_ranks_fill_the_layout_that_is_given():
    found = groups(operations=("allreduce",), layout="2x1x1", sizes_bytes=(8,), algorithms=("default",))
    (group,) = of_operation(found, "allreduce")
    assert group.layout.node.tolist() == [0, 1] and group.points[0]["layout"] == "2x1x1"
    found = groups(
        operations=("bcast",), layout="1x1x4", ranks=(2, 4), sizes_bytes=(8,), algorithms=("default",)
    )
    assert [(group.layout.num_ranks, set(group.layout.socket.tolist())) for group in found] == [
        (2, {0}), (4, {0}),
    ]  # fmt: skip


@pytest.mark.parametrize(("statistic", "is_mean"), [(None, False), ("completion", False), ("mean", True)])
def test_the_statistic_is_that_of_all_operations(statistic, is_mean):
    found = groups(statistic=statistic)
    assert {group.mean_over_ranks for group in found if group.methods} == {is_mean}
    said = remarks(Options(statistic=statistic), PLACE)
    assert any("is the mean over ranks" in remark for remark in said) == is_mean


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "4x1x1"}, "there are 2 nodes here; give a layout of at most 2"),
        ({"layout": "1x3x1"}, "there are 2 sockets of a node here"),
        ({"layout": "2x1x1", "ranks": (4,)}, "--ranks has 4 and --layout 2x1x1 has 2"),
    ],
)
def test_a_layout_that_the_machine_does_not_have_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        groups(operations=("bcast",), **options)


def test_by_default_broadcast_and_reduce_ours_and_the_mpis_on_all_cores():
    found = groups()
    assert {group.points[0]["operation"] for group in found} == {"bcast", "reduce", "reduce_local"}
    assert {group.layout.num_ranks for group in found} == {2, 4, 8}
    assert of_operation(found, "bcast")[0].methods == (
        "default", "own-linear", "own-pipeline:8192", "own-binomial", "linear", "pipeline:8192", "binomial",
    )  # fmt: skip


def test_two_cores_still_try_four_ranks():
    found = groups(resources=replace(PLACE, cores_per_socket=2, sockets=1, nodes=1))
    assert {group.layout.num_ranks for group in found} == {2, 4}


def test_one_launch_holds_all_methods_of_mpich_and_open_mpi():
    for family in ("mpich", "openmpi"):
        (group,) = groups(family, operations=("bcast",), ranks=(4,), sizes_bytes=(8,))
        assert set(group.settings) == {"default", "linear", "pipeline:8192", "binomial"}


def test_the_choice_of_the_mpi_is_left_to_a_persons_own_settings_where_nothing_is_forced():
    for family in ("mpich", "openmpi"):
        for group in groups(family, operations=("bcast",), ranks=(4,), algorithms=("own-binomial",)):
            assert "default" in group.methods and not group.settings and not group.environment


def test_a_tree_type_of_mpich_takes_a_launch_with_the_default():
    found = groups(
        operations=("bcast",), ranks=(4,), algorithms=("linear", "binomial:64"), sizes_bytes=(128,)
    )
    assert [group.methods for group in found] == [("default", "linear"), ("default", "binomial:64")]
    assert found[1].environment["MPIR_CVAR_BCAST_TREE_TYPE"] == "knomial_2"


def test_intel_takes_a_launch_for_each_algorithm_with_one_of_ours():
    found = groups("intel", operations=("reduce",), ranks=(4,), algorithms=("linear", "own-linear"))[:-1]
    assert [group.methods for group in found] == [
        ("default", "own-linear", "own-binomial"),
        ("own-binomial", "linear"),
    ]
    assert not found[0].environment and found[1].environment["I_MPI_ADJUST_REDUCE_NETWORK_KARY_RADIX"] == "3"


def test_points_hold_what_distinguishes_them():
    (group, local) = groups(
        operations=("reduce",),
        ranks=(3,),
        algorithms=("linear",),
        sizes_bytes=(7, 8),
        map_by=("node",),
        root=2,
    )
    assert group.points[1] == {
        "mpi": "mpich", "operation": "reduce", "ranks": 3, "layout": "first_3_of_2x2x2_by_node",
        "map_by": "node", "size_bytes": 8, "root": 2, "datatype": "double",
    }  # fmt: skip
    assert group.points[0]["datatype"] == "byte"
    assert local.methods == () and [point["operation"] for point in local.points] == ["reduce_local"] * 2


def test_segments_go_to_the_algorithms_that_cut():
    (group,) = groups(
        "openmpi", operations=("bcast",), ranks=(4,), sizes_bytes=(1 << 20,),
        algorithms=("linear", "pipeline", "own-binomial"), segments_bytes=(0, 4096),
    )  # fmt: skip
    assert group.methods == (
        "default",
        "linear",
        "pipeline",
        "pipeline:4096",
        "own-binomial",
        "own-binomial:4096",
    )


def test_a_segment_that_holds_the_whole_message_is_not_measured_twice():
    found = groups(
        "openmpi", operations=("bcast",), ranks=(4,), sizes_bytes=(64, 8192), algorithms=("pipeline",),
        segments_bytes=(0, 4096),
    )  # fmt: skip
    assert [(group.methods, group.points[0]["size_bytes"]) for group in found] == [
        (("default", "pipeline"), 64),
        (("default", "pipeline", "pipeline:4096"), 8192),
    ]


def test_an_algorithm_is_left_out_where_the_mpi_would_take_another():
    options = {"operations": ("bcast",), "algorithms": ("scatter-allgather",), "sizes_bytes": (8,)}
    found = groups(ranks=(3, 4), **options)
    assert [group.methods for group in found] == [("default",), ("default", "scatter-allgather")]
    (output,) = remarks(Options(ranks=(3, 4), **options), PLACE)
    assert "scatter-allgather of bcast needs a power of two of ranks" in output
    with pytest.raises(InputError, match="needs a power of two of ranks"):
        groups(ranks=(3,), **options)


def test_the_tree_is_verified_once_at_the_most_ranks_unless_asked_for():
    def verifying(**more):
        found = groups(operations=("bcast",), ranks=(2, 3, 4), sizes_bytes=(8,), **more)
        return [group.layout.num_ranks for group in found if group.verifies]

    assert verifying() == [4]
    assert verifying(verify="all") == [3, 4]  # of two ranks all trees are alike
    assert verifying(verify="none") == []


def test_what_a_verification_takes_is_known():
    for ranks, seconds in ((4, 2 * 4 * 0.1), (16, 2 * 16 * 0.05), (64, 2 * 16 * 0.05)):
        (group,) = groups(operations=("bcast",), ranks=(ranks,), algorithms=("linear",), sizes_bytes=(8,))
        assert group.verification_s == pytest.approx(seconds)


def test_a_barrier_has_no_size_and_operations_without_root_no_tree():
    found = groups("openmpi", operations=("barrier", "allgather"), ranks=(4,))
    assert [point["size_bytes"] for point in of_operation(found, "barrier")[0].points] == [0]
    assert not any(group.verifies for group in found)
    assert "two-ranks" not in {method for group in found for method in group.methods}


def test_the_link_carries_what_the_busiest_node_sends():
    resources = replace(Resources.of(2, 1, 2, link_bytes_per_s=1e6), family="mpich", library=Library("mpich"))
    (bcast,) = groups(
        resources=resources, operations=("bcast",), ranks=(4,), sizes_bytes=(1000,), algorithms=("linear",)
    )
    assert bcast.link_s(bcast.points[0]) == pytest.approx(2 * 2 * 1000 / 1e6)  # two methods, two ranks there
    (alltoall,) = groups(
        resources=resources, operations=("alltoall",), ranks=(4,), sizes_bytes=(1000,), algorithms=("linear",)
    )
    assert alltoall.link_s(alltoall.points[0]) == pytest.approx(2 * 4 * 1000 / 1e6)


def test_blocks_of_different_sizes_and_neighbours_distinguish_points():
    found = groups(
        operations=("alltoallv", "neighbor_alltoallv"), ranks=(8,), sizes_bytes=(8, 64), algorithms=("own",),
        skews=(1, 2), topologies=("ring", "random-3"),
    )  # fmt: skip
    exchange, neighbours = found
    assert [(point["skew"], point["size_bytes"]) for point in exchange.points] == [
        (1, 8), (1, 64), (2, 8), (2, 64),
    ]  # fmt: skip
    assert len(neighbours.points) == 8 and exchange.methods == ("default", "own-linear")
    assert {(point["topology"], point["skew"]) for point in neighbours.points} == {
        ("ring", 1), ("ring", 2), ("random-3", 1), ("random-3", 2),
    }  # fmt: skip
    assert "skew" not in groups(operations=("neighbor_alltoall",), ranks=(4,))[0].points[0]


def test_by_default_the_largest_block_is_at_most_half_of_all():
    for ranks, skew in ((2, 1), (3, 1.5), (4, 2), (8, 4), (16, 4)):
        (group,) = groups(
            "intel", operations=("alltoallv",), ranks=(ranks,), algorithms=("own",), sizes_bytes=(8,)
        )
        assert group.points[0]["skew"] == skew
    (ring,) = groups(operations=("neighbor_alltoallv",), ranks=(8,), algorithms=("own",), sizes_bytes=(8,),
                     topologies=("ring",))  # fmt: skip
    assert ring.points[0]["skew"] == 1


def test_persistent_operations_are_measured_when_asked_for():
    (group,) = groups(operations=("alltoall",), ranks=(4,), sizes_bytes=(8,), algorithms=("persistent",))
    assert group.methods == ("default", "persistent") and not group.settings
    (group,) = groups(operations=("allgather",), ranks=(4,), sizes_bytes=(8,), algorithms=("all-persistent",))
    assert {"persistent", "persistent-ring", "persistent-ring-tsp"} < set(group.methods)
    assert group.settings["persistent-ring"].call == {"MPIR_CVAR_IALLGATHER_INTRA_ALGORITHM": "2"}
    (group,) = groups(operations=("allgather",), ranks=(4,), sizes_bytes=(8,), algorithms=("all",))
    assert not any(method.startswith("persistent") for method in group.methods)
    (group,) = groups(
        "intel", operations=("bcast",), ranks=(4,), sizes_bytes=(8,), algorithms=("persistent",)
    )
    assert group.methods == ("default", "persistent")
    with pytest.raises(InputError, match="the persistent gather of Intel MPI delivers wrong data"):
        groups("intel", operations=("gather",), ranks=(4,), sizes_bytes=(8,), algorithms=("persistent",))
    old = replace(PLACE, library=Library("old", persistent_collectives=False))
    with pytest.raises(InputError, match="old has no persistent collectives"):
        collective_groups(Options(operations=("bcast",), algorithms=("persistent",)), old, "old")


def test_the_link_carries_the_blocks_of_neighbours():
    resources = replace(Resources.of(2, 1, 2, link_bytes_per_s=1e6), family="mpich", library=Library("mpich"))
    options = {"resources": resources, "ranks": (4,), "sizes_bytes": (1000,), "algorithms": ("default",)}
    (ring,) = groups(operations=("neighbor_alltoall",), topologies=("ring",), **options)
    assert ring.link_s(ring.points[0]) == pytest.approx(2 * 2 * 1000 / 1e6)
    (skewed,) = groups(operations=("alltoallv",), skews=(2,), **options)
    assert skewed.link_s(skewed.points[0]) == pytest.approx(2 * 4 * 1000 / 1e6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"operations": ("alltoallv",), "ranks": (2,), "skews": (4,)},
            "a rank of alltoallv has 2 blocks among 2",
        ),
        ({"operations": ("bcast",), "skews": (4,)}, "--skew is 4, which only allgatherv, alltoallv"),
        ({"operations": ("alltoallv",), "topologies": ("ring",)}, "--topology is ring, which only neighbor_"),
        (
            {"operations": ("neighbor_alltoall",), "ranks": (4,), "topologies": ("random-4",)},
            "give --ranks 5",
        ),
        (
            {"operations": ("bcast",), "algorithms": ("persistent-magic",)},
            "there are of bcast persistent-linear",
        ),
        ({"algorithms": ("chain",)}, "not an algorithm of bcast or reduce that MPICH can be forced to use"),
        ({"algorithms": ("own-chain",)}, "--algorithm has 'own-chain'"),
        ({"algorithms": ("linear:4096",)}, "has no segments; give linear"),
        ({"operations": ("reduce",), "algorithms": ("pipeline:12",)}, "give multiples of 8"),
        ({"ranks": (1,)}, "--ranks has 1; give 2 to"),
        ({"ranks": (100000,)}, "--ranks has 100000; give 2 to"),
        ({"ranks": (4, 8), "root": 4}, "--root is 4 and the fewest ranks are 4; give 0 to 3"),
        ({"operations": ("alltoall",), "root": 1}, "alltoall has no root"),
        ({"sizes_bytes": (0,)}, "--sizes has 0 bytes and bcast moves data"),
        ({"sizes_bytes": (1 << 31,)}, "at most 2147483647"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        groups(**options)


def test_buffers_of_all_ranks_of_a_node_must_fit_together():
    small = replace(PLACE, memory_bytes=100 << 20)
    with pytest.raises(InputError, match=r"alltoall of 1 MiB among 8 ranks needs 64 MiB .* 32 MiB are free"):
        groups(
            resources=replace(small, memory_bytes=32 << 20),
            operations=("alltoall",),
            ranks=(8,),
            sizes_bytes=(1 << 20,),
        )
    assert groups(resources=small, operations=("alltoall",), ranks=(8,), sizes_bytes=(1 << 20,))
    one_machine = replace(small, link_bytes_per_s=1e9)  # nodes of a virtual cluster share it
    with pytest.raises(InputError, match="128 MiB"):
        groups(resources=one_machine, operations=("alltoall",), ranks=(8,), sizes_bytes=(1 << 20,))


@pytest.mark.parametrize(
    ("operation", "algorithm", "buffers"),
    [
        ("bcast", "own-linear", 8),
        ("reduce", "linear", 9),
        ("reduce", "own-linear", 16),  # 7 more, one of each child
        ("reduce", "own", 30),
        ("allreduce", "ring", 16),
        ("gather", "linear", 16),  # the root alone has room for all
        ("allgather", "ring", 72),
        ("alltoallv", "linear", 128),
        ("neighbor_alltoall", "linear", 48),  # 2x4: three neighbours
    ],
)
def test_only_buffers_that_there_are_must_fit(operation, algorithm, buffers):
    resources = replace(PLACE, link_bytes_per_s=1e9, memory_bytes=buffers << 20)  # one machine
    options = {"operations": (operation,), "algorithms": (algorithm,), "ranks": (8,)}
    assert groups(resources=resources, sizes_bytes=(1 << 20,), **options)
    with pytest.raises(InputError, match="smaller --sizes"):
        groups(resources=resources, sizes_bytes=((1 << 20) + 8,), **options)


def test_non_powers_of_two_are_as_good_as_others():
    found = groups(operations=("bcast",), ranks=(5,), sizes_bytes=(8,), algorithms=("binomial",))
    assert found[0].settings["binomial"].call["MPIR_CVAR_BCAST_INTRA_ALGORITHM"] == "1"
    assert np.bincount(found[0].layout.node).tolist() == [4, 1]


def test_several_threads_of_a_rank_are_refused_before_anything_starts():
    with pytest.raises(InputError, match="--threads is 2 and collective measures one thread of every rank"):
        groups(operations=("bcast",), launcher_threads=2)


def test_mappings_that_place_ranks_alike_are_named():
    options = Options(operations=("bcast",), ranks=(2, 4), map_by=("core", "socket", "node"))
    assert remarks(options, PLACE) == []
    flat = replace(PLACE, nodes=1, sockets=1, cores_per_socket=2)
    (output,) = remarks(options, flat)
    assert output.startswith("--map-by core and socket and node place these ranks identically here")
    assert remarks(options.changed(map_by=("core",)), flat) == []
