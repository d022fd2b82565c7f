"""The suites of motifs: which process grids, points and launches the options name, and what they refuse."""

import re
from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.data.units import parse_triple
from earlybird.machine.flavours import SIMULATED
from earlybird.measure.groups import Library
from earlybird.measure.motif_options import COMB, HALO3D, SWEEP3D, options_of
from earlybird.measure.motif_shapes import (
    largest_face_bytes,
    largest_halo_bytes,
    near_cubic,
)
from earlybird.measure.suites import SUITES, Options, Resources
from earlybird.toolchain.build import native_sources

MPICH = replace(Resources.of(4, 1), family="mpich", library=Library("mpich"))
OPENMPI = replace(MPICH, family="openmpi", library=Library("openmpi"))
SIMULATION = replace(
    Resources.of(16, 2, 8), family=SIMULATED,
    library=Library("simgrid", partitioned=False, streams=False, earlybird=False),
)  # fmt: skip
KINDS = {"halo3d": HALO3D, "sweep3d": SWEEP3D, "comb": COMB}
# The mapping that places two ranks on sockets of their own, by nodes.
SECOND = {1: "socket", 2: "node"}


def parsed(suite, texts):
    """The options in the form that a user types."""
    settings = {"quick": False}
    by_name = {option.name: option for option in options_of(KINDS[suite])}
    return {by_name[name].field: by_name[name].read(text, settings) for name, text in texts.items()}


def groups(suite, resources=MPICH, quick=True, **texts):
    texts = {name.replace("_", "-"): text for name, text in texts.items()}
    return SUITES[suite].groups(Options(quick=quick, **parsed(suite, texts)), resources, "here")


def points(*arguments, **texts):
    found = [point for group in groups(*arguments, **texts) for point in group.points]
    return list({str(point): point for point in found}.values())


@pytest.mark.parametrize(
    ("ranks", "cube", "square"),
    [
        (1, (1, 1, 1), (1, 1, 1)), (2, (2, 1, 1), (2, 1, 1)), (4, (2, 2, 1), (2, 2, 1)),
        (8, (2, 2, 2), (4, 2, 1)), (12, (3, 2, 2), (4, 3, 1)), (7, (7, 1, 1), (7, 1, 1)),
        (216, (6, 6, 6), (18, 12, 1)),
    ],
)  # fmt: skip
def test_process_grids_have_short_sides(ranks, cube, square):
    assert near_cubic(ranks, 3) == cube
    assert near_cubic(ranks, 2) == square


def test_the_largest_message_is_padded_to_equal_partitions():
    assert largest_halo_bytes((8, 6, 10), (2, 1, 1), 1, 7, False, 4) == 6 * 12 * 8
    assert largest_halo_bytes((8, 6, 10), (2, 1, 1), 3, 27, False, 1) == 3 * 6 * 10 * 8
    assert largest_halo_bytes((9, 6, 10), (1, 1, 2), 1, 7, False, 4) == 9 * 6 * 8
    assert largest_halo_bytes((9, 6, 10), (1, 1, 1), 1, 7, False, 4) == 0
    assert largest_halo_bytes((9, 6, 10), (1, 1, 1), 1, 7, True, 4) == 9 * 12 * 8
    assert largest_face_bytes((9, 6, 10), (1, 2, 1), 5, 2, 4) == 8 * 2 * 9 * 8
    assert largest_face_bytes((9, 6, 10), (1, 1, 1), 5, 2, 4) == 0


def test_launches_with_and_without_libearlybird_have_the_reference():
    found = groups("halo3d", ranks="2", compute="0")
    assert [(group.methods, group.preload) for group in found] == [
        (("funnelled", "persistent", "multiple", "partitioned"), False),
        (("funnelled", "persistent", "multiple", "earlybird"), True),
    ]
    (only,) = groups("halo3d", ranks="2", compute="0", methods="earlybird")
    assert only.methods == ("funnelled", "earlybird") and only.preload
    (only,) = groups("halo3d", ranks="2", compute="0", methods="multiple")
    assert only.methods == ("funnelled", "multiple") and not only.preload


def test_ranks_have_a_thread_per_core_unless_told_otherwise():
    assert [(p["ranks"], p["threads"], p["partitions"]) for p in points("halo3d", compute="0")] == [
        (2, 2, 4),
        (4, 1, 4),
    ]
    chosen = points("halo3d", compute="0", ranks="2", threads="1,3")
    assert [(p["threads"], p["partitions"]) for p in chosen] == [(1, 4), (3, 6)]


def test_strong_and_weak_scaling_divide_or_multiply_the_cells():
    found = points("halo3d", ranks="1,8", cells="8x8x16", scaling="strong,weak", compute="0", threads="1")
    assert [(p["scaling"], p["process_grid"], p["cells"]) for p in found] == [
        ("strong", "1x1x1", "8x8x16"),
        ("weak", "1x1x1", "8x8x16"),
        ("strong", "2x2x2", "8x8x16"),
        ("weak", "2x2x2", "16x16x32"),
    ]


def test_points_are_every_combination():
    found = points(
        "comb", ranks="2", stencil="7,27", periodic="yes,no", buffers="packed,derived", variables="1,2",
        compute="0,1ms", noise="none,single",
    )  # fmt: skip
    assert len(found) == 2 * 2 * 2 * 2 * 3
    assert {type(point["stencil"]) for point in found} == {int}
    found = points("sweep3d", ranks="2", threads="1", partitions="1,8", planes_per_block="3")
    assert [(p["partitions"], p["compute_s"]) for p in found] == [(1, 0.0), (1, 1e-4), (8, 0.0), (8, 1e-4)]


def test_partitions_of_derived_datatypes_have_equal_sizes():
    (point,) = points("comb", ranks="2", buffers="derived", cells="8x8x9", compute="0", threads="1")
    assert point["partitions"] == 3
    (point,) = points("comb", ranks="2", buffers="packed", cells="8x8x9", compute="0", threads="1")
    assert point["partitions"] == 4


def test_simulated_ranks_measure_what_they_can():
    (group, *_) = groups("halo3d", SIMULATION, ranks="216", compute="0")
    assert group.methods == ("funnelled", "persistent") and group.points[0]["process_grid"] == "6x6x6"
    (group, *_) = groups("sweep3d", SIMULATION, ranks="64", compute="0")
    assert group.methods == ("funnelled",)
    for suite in KINDS:
        (remark,) = SUITES[suite].remarks(Options(quick=True), SIMULATION)
        assert f"of {suite} only funnelled" in remark


def test_calls_that_open_mpi_has_wrong_are_left_out_and_named():
    for more in ({"ranks": "4"}, {"periodic": "yes"}, {"buffers": "derived"}, {"threads": "2"}):
        found = groups("halo3d", OPENMPI, **({"ranks": "2", "compute": "0", "threads": "1"} | more))
        assert not any("partitioned" in group.methods for group in found)
        with pytest.raises(InputError, match="--methods has partitioned and Open MPI"):
            groups("halo3d", OPENMPI, **({"ranks": "2", "threads": "1", "methods": "partitioned"} | more))
    assert "partitioned" in groups("halo3d", OPENMPI, ranks="2", threads="1", compute="0")[0].methods
    found = SUITES["comb"].remarks(Options(quick=True), OPENMPI)
    assert any("partitioned is left out where openmpi delivers wrong data" in one for one in found)


def test_an_mpi_without_partitioned_calls_has_those_of_libearlybird():
    old = replace(MPICH, library=Library("old", partitioned=False))
    (group,) = groups("halo3d", old, ranks="2", compute="0")
    assert group.methods == ("funnelled", "persistent", "multiple", "earlybird")
    found = SUITES["halo3d"].remarks(Options(quick=True), old)
    assert found[0] == "old has no partitioned communication of its own: only libearlybird's is measured"


def test_more_threads_than_cores_are_named():
    found = SUITES["halo3d"].remarks(Options(quick=True, ranks=(4,), threads=(2,)), MPICH)
    assert len(found) == 1 and "than its 4 cores" in found[0]
    assert SUITES["halo3d"].remarks(Options(quick=True, ranks=(4,)), MPICH) == []
    (remark,) = SUITES["halo3d"].remarks(Options(quick=True, ranks=(1,)), MPICH)
    assert remark == "halo3d on 1 rank sends nothing: it has no neighbour"


def test_fewer_partitions_than_usual_are_named():
    few = Options(ranks=(2,), threads=(1,), cells=((4, 4, 2),), cell_buffers=("derived",))
    assert any(
        "comb: messages have 2 partitions or more, not 4" in one for one in SUITES["comb"].remarks(few, MPICH)
    )


def test_threads_may_share_a_partition_of_a_halo_exchange_and_this_is_said():
    given = Options(ranks=(2,), threads=(8,), partitions=(4,), cells=((8, 8, 4),), cell_buffers=("packed",))
    found = {p["partitions"] for g in SUITES["halo3d"].groups(given, MPICH, "mpich") for p in g.points}
    assert found == {4}
    remarks = SUITES["halo3d"].remarks(given, MPICH)
    assert any("4 partitions of 8 threads: threads share a partition" in remark for remark in remarks)


@pytest.mark.parametrize("resources", [Resources.of(16, 2), Resources.of(16, 1, 2)])
def test_threads_of_ranks_that_fill_one_socket_have_its_cores(resources):
    resources = replace(resources, family="mpich", library=Library("mpich"))
    for map_by, threads in (("core", 8), (SECOND[resources.nodes], 16)):
        found = points("halo3d", resources, ranks="2", compute="0", map_by=map_by)
        assert {point["threads"] for point in found} == {threads}
        options = Options(quick=True, ranks=(2,), map_by=(map_by,))
        assert SUITES["halo3d"].remarks(options, resources) == []
    (remark,) = SUITES["halo3d"].remarks(Options(quick=True, ranks=(2,), threads=(16,)), resources)
    assert "on a socket than its 16 cores" in remark


@pytest.mark.parametrize(
    ("suite", "cores", "threads"),
    [("sweep3d", 64, 8), ("halo3d", 128, 32), ("comb", 12, 4), ("halo3d", 12, 6)],
)
def test_default_threads_can_share_the_cells_of_a_rank(suite, cores, threads):
    resources = replace(MPICH, cores_per_socket=cores)
    assert {point["threads"] for point in points(suite, resources, ranks="2")} == {threads}


def test_virtual_nodes_share_the_cores_of_one_machine():
    virtual = replace(Resources.of(2, 1, 4, 1e6), family="mpich", library=Library("mpich"))
    assert [(p["ranks"], p["threads"]) for p in points("halo3d", virtual, compute="0")] == [(2, 1), (4, 1)]
    for map_by in ("core", "node"):
        options = Options(quick=True, ranks=(4,), map_by=(map_by,))
        (remark,) = SUITES["halo3d"].remarks(options, virtual)
        assert "on a socket than its 2 cores" in remark
    with pytest.raises(InputError, match="the cores here are 2"):
        groups("halo3d", virtual, ranks="65")


def test_starts_until_libearlybird_has_settled():
    text = (native_sources() / "include/earlybird.h").read_text()
    starts = int(re.search(r"EARLYBIRD_STARTS_UNTIL_SETTLED (\d+)", text).group(1))

    def settling_s(suite, **texts):
        group = groups(suite, ranks="2", compute="1ms", threads="1", **texts)[-1]
        assert group.preload
        return group.settling_s(group.points[0])

    assert settling_s("halo3d") == pytest.approx(starts * 1e-3)
    assert settling_s("halo3d", buffers="derived") == pytest.approx(2 * starts * 1e-3)
    # Of 8 blocks each request is started for 4; there are four corners.
    assert settling_s("sweep3d", planes_per_block="4") == pytest.approx(-(-starts // 4) * 4 * 8 * 1e-3)
    assert settling_s("sweep3d", planes_per_block="32") == pytest.approx(starts * 4 * 1e-3)


@pytest.mark.parametrize(
    ("suite", "texts", "expected"),
    [
        ("halo3d", {"ranks": "0"}, "--ranks has '0'"),
        ("halo3d", {"ranks": "65"}, "--ranks has 65; give 1 to 64"),
        ("halo3d", {"ranks": "4", "process_grid": "3x1x1"}, "which is 3 ranks, and --ranks has 4"),
        (
            "halo3d",
            {"ranks": "4,6", "process_grid": "2x2x1"},
            "--ranks has 6, and no --process-grid .* 3x2x1",
        ),
        ("halo3d", {"process_grid": "2x2"}, "--process-grid has '2x2'; give three numbers"),
        ("sweep3d", {"process_grid": "2x1x2"}, "form a 2-D grid; give 1 along z, such as 2x2x1"),
        ("halo3d", {"cells": "0x8x8"}, "--cells has '0x8x8'"),
        ("halo3d", {"ranks": "8", "cells": "8x1x8"}, "a rank needs a cell .* give 2x2x2 or more"),
        ("halo3d", {"partitions": "3", "threads": "2"}, "which 2 threads do not share evenly; .* as 4, or"),
        ("sweep3d", {"partitions": "2", "threads": "4"}, "which 4 threads do not share evenly; .* as 4$"),
        (
            "halo3d",
            {"partitions": "64", "threads": "1"},
            "--partitions has 64 and a rank has 32 planes .* or more --cells along z",
        ),
        ("comb", {"buffers": "derived", "threads": "3"}, "3 threads do not share the 32 planes .* evenly"),
        ("halo3d", {"threads": "64"}, "64 threads are more than the 32 planes .* at most 32 --threads"),
        ("comb", {"buffers": "derived", "partitions": "3", "threads": "1"}, "sends equal partitions"),
        ("comb", {"buffers": "derived", "process_grid": "1x1x2", "cells": "8x8x9"}, "--buffers packed"),
        (
            "sweep3d",
            {"partitions": "9", "threads": "1"},
            "--partitions has 9 and a rank has 8 --variables; give at most 8, or more --variables",
        ),
        ("sweep3d", {"variables": "2", "threads": "4"}, "4 threads are more than the 2 --variables"),
        (
            "halo3d",
            {"cells": "2x2x2048", "partitions": "2048", "threads": "1"},
            "--partitions has 2048; give at most 1024: .* tags",
        ),
        ("sweep3d", {"planes_per_block": "33"}, "--planes-per-block is 33 and there are 32 planes"),
        ("halo3d", {"noise": "single", "compute": "0"}, "--noise changes .* and --compute is 0"),
        ("halo3d", {"stencil": "9"}, "--stencil has '9'; give some of 7, 27"),
        ("halo3d", {"periodic": "perhaps"}, "--periodic has 'perhaps'; give some of yes, no"),
        ("halo3d", {"scaling": "none"}, "--scaling has 'none'"),
        ("halo3d", {"variables": "5000"}, "--variables has 5000; give 1 to 4096"),
        ("halo3d", {"methods": "single"}, "--methods has 'single'; give some of funnelled, persistent"),
        ("halo3d", {"cells": "90000x9000x9000"}, "a message has"),
    ],
)
def test_what_cannot_be_measured_is_refused(suite, texts, expected):
    with pytest.raises(InputError, match=expected):
        groups(suite, **texts)


@pytest.mark.parametrize(
    ("suite", "texts", "expected"),
    [
        ("halo3d", {"methods": "earlybird"}, "--methods has earlybird and simulated ranks"),
        ("sweep3d", {"methods": "persistent"}, "SMPI loses persistent messages"),
        ("halo3d", {"threads": "2"}, "--threads has 2, and a simulated rank has one thread"),
    ],
)
def test_what_simulated_ranks_lack_is_refused(suite, texts, expected):
    with pytest.raises(InputError, match=expected):
        groups(suite, SIMULATION, **texts)


def test_cells_beyond_the_memory_are_refused():
    small = replace(MPICH, memory_bytes=1 << 20)
    with pytest.raises(InputError, match="are free; give fewer cells"):
        groups("halo3d", small, ranks="2", cells="64x64x64")
    # The blocks of all ranks take 39 MB in four styles, and the whole grid in each rank 140 MB.
    cells = {"ranks": "64", "process_grid": "8x8x1", "cells": "64x64x64", "variables": "1", "threads": "1"}
    enough = replace(MPICH, memory_bytes=60 << 20)
    assert groups("halo3d", enough, **cells)
    with pytest.raises(InputError, match="to verify them, for which each rank computes all 64x64x64"):
        groups("sweep3d", enough, **cells)


def test_real_nodes_have_each_the_memory_of_one():
    cells = {"ranks": "4", "cells": "64x64x64", "threads": "1", "compute": "0"}
    nodes = replace(Resources.of(2, 1, 2), family="mpich", library=Library("mpich"), memory_bytes=20 << 20)
    assert groups("halo3d", nodes, **cells)
    with pytest.raises(InputError, match="are free"):
        groups("halo3d", replace(nodes, link_bytes_per_s=1e6), **cells)


def test_a_number_without_three_parts_is_no_grid():
    assert parse_triple("4x2x1", "--cells", "") == (4, 2, 1)
    for text in ("4x2", "4x2x1x1", "4x-2x1", "axbxc", "4 x 2 x 1", ""):
        with pytest.raises(InputError, match="give three numbers"):
            parse_triple(text, "--cells", "8x8x8")
