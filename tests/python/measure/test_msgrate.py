"""Which launches the suite msgrate makes of its methods, threads and the MPI's contexts, and what it
refuses."""

from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.data.methods import MSGRATE_METHODS
from earlybird.measure.groups import Options, Resources
from earlybird.measure.suites import SUITES

ONE_SOCKET = replace(Resources.of(cores_per_socket=8, sockets=1), family="mpich")


def groups(resources=ONE_SOCKET, mpi="mpich", **options):
    return SUITES["msgrate"].groups(Options(**options), resources, mpi)


def output(found):
    return [(group.methods, group.layout.num_ranks, group.threads, group.vcis) for group in found]


def test_methods_that_can_share_a_launch_do_and_contexts_have_one_of_their_own():
    assert output(groups(threads=(1, 2))) == [
        (("shared", "per-thread"), 2, 1, None),
        (("processes",), 2, 1, None),
        (("shared", "per-thread"), 2, 2, None),
        (("shared", "per-thread-contexts"), 2, 2, 2),
        (("processes",), 4, 1, None),
    ]
    for group in groups(threads=(2,)):
        (point,) = group.points
        assert (point["size_bytes"], point["window"], point["threads"]) == (8, 64, 2)
        assert point.get("vcis") == group.vcis


def test_thread_levels_have_launches_of_their_own_on_request():
    found = groups(methods=("serialized", "shared", "funneled"), threads=(2,))
    assert output(found) == [
        (("shared",), 2, 2, None), (("funneled",), 2, 2, None), (("serialized",), 2, 2, None),
    ]  # fmt: skip


def test_points_of_reused_buffers_say_so():
    assert {group.points[0].get("buffers") for group in groups(threads=(1,))} == {None}
    assert {group.points[0].get("buffers") for group in groups(threads=(1,), buffers="vary")} == {None}
    assert {group.points[0].get("buffers") for group in groups(threads=(1,), buffers="reuse")} == {"reuse"}


def test_threads_share_no_communicator_where_intel_mpi_is_split():
    found = groups(replace(ONE_SOCKET, family="intel"), "intel", threads=(2,))
    assert [group.methods for group in found if group.vcis] == [("per-thread-contexts",)]


def test_open_mpi_has_no_launch_with_contexts():
    found = groups(replace(ONE_SOCKET, family="openmpi"), "openmpi", threads=(2,))
    assert output(found) == [(("shared", "per-thread"), 2, 2, None), (("processes",), 4, 1, None)]


@pytest.mark.parametrize(
    ("resources", "counts"),
    [
        (Resources.of(1, 1), [1, 2]),
        (Resources.of(2, 1), [1, 2]),
        (Resources.of(8, 1), [1, 2, 4]),
        (Resources.of(8, 2), [1, 2, 4, 1, 2, 4, 8]),
        (Resources.of(6, 1, nodes=2), [1, 2, 1, 2, 4]),
    ],
)
def test_threads_go_up_to_the_cores_that_a_rank_may_have(resources, counts):
    found = groups(resources, methods=("shared",))
    assert [group.threads for group in found] == counts


def test_pairs_of_processes_sit_where_the_threads_would():
    resources = replace(Resources.of(4, 2, nodes=2), family="mpich")
    found = groups(resources, methods=("processes",), threads=(2,))
    assert [group.layout.text for group in found] == ["1x1x4", "1x2x2", "2x1x2"]


def test_contexts_end_where_the_mpi_has_no_more():
    wheel = [group.vcis for group in groups(threads=(16, 32)) if group.vcis]
    own = [group.vcis for group in groups(mpi="/opt/mpi/bin/mpicc", threads=(16, 32)) if group.vcis]
    assert (wheel, own) == ([16], [16, 32])


def test_mpich_has_no_launch_with_contexts_between_virtual_nodes_where_it_never_starts():
    virtual = replace(Resources.of(2, 1, nodes=2, link_bytes_per_s=1e8), family="mpich")
    found = {(g.points[0]["level"], g.vcis) for g in groups(virtual, threads=(2,))}
    assert found == {("intra_socket", None), ("intra_socket", 2), ("inter_node", None)}
    with pytest.raises(InputError, match="MPICH hangs in MPI_Init"):
        groups(virtual, threads=(2,), methods=MSGRATE_METHODS)
    intel = groups(replace(virtual, family="intel"), "intel", threads=(2,), levels=("inter_node",))
    assert 2 in [group.vcis for group in intel]


def test_contexts_are_taken_at_their_word_where_the_mpi_is_not_known_yet():
    """A script for a batch system is printed on a machine that may have no MPI."""
    anywhere = replace(ONE_SOCKET, family=None)
    assert [g.vcis for g in groups(anywhere, "mpi", threads=(2,), methods=("per-thread-contexts",))] == [2]
    assert not [g for g in groups(anywhere, "mpi", threads=(2,)) if g.vcis]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"window": 0}, "--window is 0; give 1 to 65536"),
        ({"sizes_bytes": (1 << 31,)}, "2147483648 bytes"),
        ({"sizes_bytes": (1 << 24,), "threads": (2,)}, "2147483648 bytes at once"),
        ({"methods": ("per-thread-contexts",), "threads": (1,)}, "from 2 threads on"),
        ({"methods": MSGRATE_METHODS, "threads": (2, 32)},
         "32 and mpich has at most 31 communication contexts"),
        ({"resources": replace(ONE_SOCKET, family="openmpi"), "mpi": "openmpi", "methods": MSGRATE_METHODS},
         "openmpi has no communication contexts"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        groups(**options)
