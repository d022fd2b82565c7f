"""The suite `pipeline`: which methods share a launch, what threads and contexts make of a point, what is
refused."""

from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.measure.groups import MPICH_WHEEL_CONTEXTS, Library, Options, Resources
from earlybird.measure.noise import Noise
from earlybird.measure.pipeline import METHODS, pipeline_groups

MPICH = replace(Resources.of(4, 1), family="mpich", library=Library("mpich"))
VIRTUAL = replace(Resources.of(2, 1, nodes=2, link_bytes_per_s=1e8), family="mpich", library=Library("mpich"))
DEBIAN = replace(MPICH, family="openmpi", library=Library("system", partitioned=False, streams=False))


def groups(resources=MPICH, **options):
    return pipeline_groups(
        Options(**options), resources, resources.library.name if resources.library else "synthetic"
    )


def kinds(found):
    return [(group.methods, group.preload, group.streams) for group in found]


def test_partitioned_and_earlybird_have_launches_of_their_own_with_the_other_methods_in_both():
    assert kinds(groups()) == [
        (("single", "many", "partitioned"), False, 0),
        (("single", "many", "earlybird"), True, 0),
    ]
    assert kinds(groups(methods=("rma-fence",))) == [(("single", "rma-fence"), False, 0)]
    assert kinds(groups(methods=("single",))) == [(("single",), False, 0)]
    assert kinds(groups(methods=("earlybird",), aggregation_bytes=(512, 4096))) == [
        (("single", "earlybird", "earlybird:512", "earlybird:4096"), True, 0)
    ]


def test_all_methods_are_those_that_the_mpi_has_each_with_single():
    found = groups(methods=("all",), threads=(2,))
    assert {method for group in found for method in group.methods} == set(METHODS)
    assert [group.streams for group in found] == [0, 0, 2] and found[-1].methods == ("single", "stream")
    here = {method for group in groups(DEBIAN, methods=("all",)) for method in group.methods}
    assert here == set(METHODS) - {"partitioned", "stream"}
    assert kinds(groups(DEBIAN)) == [(("single", "many", "earlybird"), True, 0)]


def test_threads_and_contexts_have_launches_of_their_own_and_points_that_say_so():
    found = groups(methods=("many",), threads=(1, 3), vcis=(1, 4), sizes_bytes=(1200,))
    assert [(group.threads, group.vcis) for group in found] == [(1, 1), (1, 4), (3, 1), (3, 4)]
    for group in found:
        (point,) = group.points
        assert (point["threads"], point["vcis"]) == (group.threads, group.vcis)
        # As many partitions as threads share evenly, 4 or a little more.
        assert point["partitions"] == {1: 4, 3: 6}[group.threads]
    assert "vcis" not in groups(methods=("many",))[0].points[0]
    (group,) = groups(methods=("many",), launcher_threads=2)
    assert group.threads == 2 and group.points[0]["threads"] == 2


def test_contexts_are_lanes_of_libearlybird():
    found = groups(methods=("many", "partitioned", "earlybird", "earlybird-partition"), vcis=(1, 31))
    lanes = {(group.vcis, group.preload): group.environment.get("EARLYBIRD_LANES") for group in found}
    assert lanes == {(1, False): None, (1, True): None, (31, False): None, (31, True): "16"}
    assert any({"earlybird", "earlybird-partition"} <= set(group.methods) for group in found)


def test_points_say_that_threads_receive_if_they_do():
    (group,) = groups(methods=("many",), receivers="threads")
    assert {point["receivers"] for point in group.points} == {"threads"}
    (group,) = groups(methods=("many",), receivers="one")
    assert all("receivers" not in point for point in group.points)


def test_a_noisy_computation_replaces_a_delay():
    (group,) = groups(methods=("many",), sizes_bytes=(4000,), noise=Noise(1e-9, 0.04, 0.5))
    (point,) = group.points
    noise = {key: point.get(key) for key in ("compute_s_per_byte", "epsilon", "delta", "gamma_s_per_byte")}
    assert noise == {"compute_s_per_byte": 1e-9, "epsilon": 0.04, "delta": 0.5, "gamma_s_per_byte": None}


def test_contexts_of_streams_count():
    most = MPICH_WHEEL_CONTEXTS
    assert groups(methods=("stream",), vcis=(most - 2,), threads=(2,))
    with pytest.raises(InputError, match=rf"stream, which takes 2 contexts in addition to the {most - 1}"):
        groups(methods=("stream",), vcis=(most - 1,), threads=(2,))
    assert all(not group.streams for group in groups(methods=("all",), vcis=(most - 1,), threads=(2,)))


def test_between_virtual_nodes_mpich_has_no_streams_unless_they_are_asked_for():
    found = groups(VIRTUAL, methods=("all",), vcis=(1,))
    assert {group.streams for group in found if group.layout.num_nodes == 2} == {0}
    assert {group.streams for group in found if group.layout.num_nodes == 1} == {0, 1}


@pytest.mark.parametrize(
    ("resources", "options", "sentence"),
    [
        (
            MPICH,
            {"methods": ("pigeon",)},
            "'pigeon'; the methods are single, many, .*earlybird:BYTES, earlybird-segments:NUMBER and all",
        ),
        (MPICH, {"methods": ("earlybird-fresh",)}, "the methods are"),
        (MPICH, {"threads": (3,), "partitions": (4,)}, "4, which 3 threads do not share .* such as 6"),
        (
            MPICH,
            {"partitions": (32001,), "sizes_bytes": (32001,)},
            "--partitions has 32001; give 32000 at most",
        ),
        (MPICH, {"vcis": (32,)}, "32 and the MPICH of PyPI takes 31"),
        (VIRTUAL, {"methods": ("stream",)}, "--methods has stream and MPICH hangs"),
        (VIRTUAL, {"vcis": (1, 2)}, "--vcis has 2 and MPICH hangs in MPI_Init"),
        (MPICH, {"noise": Noise(1.0)}, "make a thread compute"),
        (DEBIAN, {"methods": ("partitioned",)}, "system has no partitioned communication of its own"),
        (DEBIAN, {"methods": ("stream",)}, r"system has no streams \(MPIX_Stream\)"),
        (DEBIAN, {"vcis": (1,)}, "contexts of MPICH .*, and this is system"),
        (
            replace(DEBIAN, library=Library("system", earlybird=False)),
            {"aggregation_bytes": (512,)},
            "earlybird:512 and libearlybird is not built for system",
        ),
        (Resources.of(4, 1), {"methods": ("rma-fence",)}, "synthetic draws times of many, single only"),
        (Resources.of(4, 1), {"vcis": (1,)}, "synthetic draws its times"),
    ],
)
def test_what_cannot_be_measured_is_refused(resources, options, sentence):
    with pytest.raises(InputError, match=sentence):
        groups(resources, **options)
