"""The plan of Temucin et al. 2022 measures the figures of the paper, with its motifs."""

from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.measure.groups import Library, Options, Resources
from earlybird.papers.temucin.plan import plan, remarks

TEMUCIN = Options()
QUICK = TEMUCIN.changed(quick=True)


def mpich(*cores, **more):
    return replace(Resources.of(*cores, **more), family="mpich", library=Library("mpich"))


def groups(kernel, options=QUICK, resources=None):
    steps = plan(options, resources or mpich(2, 1), "here")
    return [group for step in steps for group in step.groups if group.kernel == kernel]


def points(*arguments):
    found = [point for group in groups(*arguments) for point in group.points]
    return list({str(point): point for point in found}.values())


def test_the_motifs_have_the_styles_of_the_paper():
    for kernel in ("sweep3d", "halo3d"):
        found = {(group.methods, group.preload) for group in groups(kernel) if group.threads != 1}
        assert found == {
            (("funnelled", "multiple", "partitioned"), False),
            (("funnelled", "multiple", "earlybird"), True),
        }
    (alone,) = [group for group in groups("halo3d") if group.threads == 1]
    assert alone.methods == ("funnelled",) and not alone.preload


def test_the_motifs_have_the_noise_and_computation_of_the_paper():
    for kernel in ("sweep3d", "halo3d"):
        for options, compute_s in ((QUICK, 1e-3), (TEMUCIN, 10e-3)):
            found = points(kernel, options)
            assert {(p["compute_s"], p["noise"], p["noise_share"]) for p in found} == {
                (compute_s, "single", 0.04)
            }
        assert len(points(kernel)) < len(points(kernel, TEMUCIN))


@pytest.mark.parametrize(
    ("cores", "sweep", "halo"),
    [
        ((2, 1), (2, {2}), (2, {1, 2, 16})),
        ((16, 1), (4, {4}), (8, {1, 2, 16})),
        ((64, 2), (4, {16}), (8, {1, 8, 64})),
        ((12, 1), (4, {2}), (2, {1, 4, 32})),
    ],
)
def test_ranks_and_threads_fit_the_cores(cores, sweep, halo):
    for kernel, (ranks, threads) in (("sweep3d", sweep), ("halo3d", halo)):
        found = points(kernel, QUICK, mpich(*cores))
        assert {point["ranks"] for point in found} == {ranks}
        assert {point["threads"] for point in found} == threads
    # Of Halo3D as in the paper, so that threads share partitions.
    shapes = {(p["threads"], p["partitions"]) for p in points("halo3d", QUICK, mpich(*cores))}
    assert shapes == {(1, 4), (sorted(halo[1])[1], 4), (max(halo[1]), 8)}


def test_messages_grow_from_kilobytes_to_megabytes_in_partitions_of_one_size():
    for kernel in ("sweep3d", "halo3d"):
        found = points(kernel, TEMUCIN, mpich(64, 1))
        sizes = sorted({point["size_bytes"] for point in found})
        assert sizes[0] <= 1 << 15 and sizes[-1] == 1 << 21 and len(sizes) == 4
    assert {point["partitions"] for point in points("sweep3d")} == {16}
    # Of one and of many threads the messages are the same: nothing is padded.
    of_threads = {}
    for point in points("halo3d", QUICK):
        of_threads.setdefault(point["threads"], []).append(point["size_bytes"])
    assert of_threads[1] == of_threads[2] == of_threads[16]


def test_virtual_nodes_have_a_rank_each_and_messages_that_their_link_carries():
    slow = mpich(2, 1, nodes=4, link_bytes_per_s=1.25e6)
    for kernel, ranks in (("sweep3d", 4), ("halo3d", 2)):
        found = points(kernel, QUICK, slow)
        assert {point["ranks"] for point in found} == {ranks}
        assert max(point["size_bytes"] for point in found) <= 125_000
        assert all(group.layout.num_nodes == ranks for group in groups(kernel, QUICK, slow))


def test_a_level_within_a_node_has_its_ranks_there():
    found = groups("sweep3d", QUICK.changed(levels=("intra_socket",)), mpich(8, 2, nodes=4))
    assert all(group.layout.num_nodes == 1 and set(group.layout.socket) == {0} for group in found)


def test_what_differs_from_the_paper_is_named():
    first, *others = remarks(QUICK, mpich(2, 1))
    assert "Sweep3D with 2 ranks of 2 threads" in first and "(paper: 8 and 64 threads)" in first
    assert len(others) == 2 and "than its 2 cores" in others[0] and "share a partition" in others[1]
    openmpi = replace(mpich(16, 1), family="openmpi", library=Library("openmpi"))
    assert any("partitioned is left out where openmpi" in one for one in remarks(QUICK, openmpi))
    assert not any("partitioned" in group.methods for group in groups("sweep3d", QUICK, openmpi))


def test_drawn_times_have_no_motifs():
    drawn = Resources.of(4, 1)
    assert groups("sweep3d", QUICK, drawn) == groups("halo3d", QUICK, drawn) == []
    (remark,) = remarks(QUICK, drawn)
    assert "Sweep3D and Halo3D are left out" in remark


def test_the_metrics_have_every_panel_of_the_paper():
    found = points("partitioned", TEMUCIN, mpich(64, 2))
    assert {(p["compute_s"], p["noise"], p["noise_share"]) for p in found if p["cache"] == "hot"} == {
        (0.01, "none", 0.0), (0.01, "uniform", 0.04), (0.01, "uniform", 0.1), (0.1, "none", 0.0),
        (0.1, "uniform", 0.04), (0.1, "uniform", 0.1), (0.1, "single", 0.04), (0.1, "gaussian", 0.04),
    }  # fmt: skip
    assert {p["partitions"] for p in found if p["cache"] == "cold"} == {1, 4, 16}
    assert len({tuple(p.items()) for p in found}) == len(found)


def test_options_replace_the_curves_of_the_paper():
    options = TEMUCIN.changed(sizes_bytes=(4096,), partitions=(2, 8), computes_s=(1e-3,), noise_shares=(0.2,))
    found = points("partitioned", options)
    assert {(p["size_bytes"], p["compute_s"]) for p in found} == {(4096, 1e-3)}
    assert {p["partitions"] for p in found} == {2, 8} and {p["noise_share"] for p in found} == {0.0, 0.2}


def test_a_figure_has_one_level():
    with pytest.raises(InputError, match="give one of them"):
        plan(TEMUCIN.changed(levels=("intra_socket", "inter_socket")), mpich(2, 2), "here")
