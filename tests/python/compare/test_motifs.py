"""Throughput, time split, scaling and the best style of motifs, from samples with known times."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.compare.motifs import compared_with_best, over_best, scaling
from earlybird.compare.results import results
from earlybird.data.run import Sample

CONFIG = {
    "mpi": "mpich", "ranks": 2, "layout": "1x1x2", "process_grid": "2x1x1", "cells": "8x8x8", "variables": 1,
    "stencil": 7, "periodic": "no", "buffers": "packed", "threads": 1, "partitions": 4, "compute_s": 0.0,
    "noise": "none", "noise_share": 0.0, "size_bytes": 512, "scaling": "strong",
}  # fmt: skip


def sample(time_s, method="funnelled", launch="halo3d-0", **config):
    """Rank 1 is the slowest: half of its time is computation, and a tenth communication."""
    rank_times_s = np.full((6, 2), time_s) * [0.5, 1.0]
    split_s = rank_times_s[:, :, None] * [0.5, 0.1, 0.4]
    return Sample(
        "halo3d", "step", CONFIG | config, launch, rank_times_s[:, 1], warmup=2,
        rank_times_s=rank_times_s, method=method, rounds=np.arange(6),
        extra={"split_s": split_s.tolist(), "sent_bytes": 1000, "messages": 2, "seed": 1},
    )  # fmt: skip


def test_throughput_and_the_parts_of_the_slowest_rank():
    reference, other = results([sample(1e-3), sample(2e-3, "earlybird")])
    assert reference.speed_up is None and other.speed_up.value == pytest.approx(0.5)
    assert other.reference == "funnelled"
    figures = reference.figures
    assert figures["throughput_bytes_per_s"] == pytest.approx(1e6)
    assert [figures[name] for name in ("computing_s", "communicating_s", "waiting_s")] == pytest.approx(
        [5e-4, 1e-4, 4e-4]
    )
    assert (figures["sent_bytes"], figures["messages"]) == (1000, 2) and "partitions_sent" not in figures


def test_samples_without_a_split_have_no_parts():
    broken = sample(1e-3)
    for split_s in (None, [[1, 2]], "fast", [[[1, 2, 3]]]):
        broken.extra["split_s"] = split_s
        (result,) = results([broken])
        assert "computing_s" not in result.figures and "throughput_bytes_per_s" in result.figures


def test_strong_scaling_compares_with_the_fewest_ranks():
    four = {"ranks": 4, "process_grid": "2x2x1", "layout": "1x1x4", "size_bytes": 256}
    found = scaling(results([sample(1e-3), sample(4e-4, **four), sample(9.0, cells="9x9x9")]))
    assert [one.result.config["ranks"] for one in found] == [2, 4]
    assert [one.speed_up for one in found] == pytest.approx([1, 2.5])
    assert [one.efficiency for one in found] == pytest.approx([1, 1.25])


def test_weak_scaling_compares_equal_blocks():
    weak = {"scaling": "weak", "ranks": 8, "process_grid": "2x2x2", "cells": "8x16x16"}
    found = scaling(results([sample(1e-3, scaling="weak"), sample(2e-3, **weak), sample(1.0)]))
    assert [one.result.config["cells"] for one in found] == ["8x8x8", "8x16x16"]
    assert [one.efficiency for one in found] == pytest.approx([1, 0.5])


def test_times_of_zero_have_no_efficiency():
    found = scaling(results([sample(0.0), sample(0.0, ranks=4, process_grid="4x1x1")]))
    assert [one.efficiency for one in found] == [None, None]


def launches(**times_s):
    """Samples of each style, one for each of its times, which are those of launches 0, 1, 2 .."""
    return [
        replace(sample(time_s, style), launch=f"halo3d-{k}")
        for style, of_launches in times_s.items()
        for k, time_s in enumerate(of_launches)
    ]


def test_libearlybird_is_compared_with_the_best_other_style():
    (found,) = over_best(launches(funnelled=[3, 3, 3], multiple=[2, 2, 2], earlybird=[2.0, 2.2, 4.0]))
    assert (found.other, found.kernel, found.config["cells"]) == ("multiple", "halo3d", "8x8x8")
    assert found.speed_up.value == pytest.approx(2 / 2.2)
    assert (found.speed_up.low, found.speed_up.high) == pytest.approx((0.5, 1.0))
    assert found.is_slower and not found.is_clearly_slower


@pytest.mark.parametrize(
    ("times_s", "slower", "clearly"),
    [
        ([2.0, 2.05, 2.09], False, False),
        ([2.0, 2.12, 3.0], True, False),
        ([2.12, 2.2, 2.3], True, True),
        ([1.0, 1.5, 4.0], False, False),
    ],
)
def test_slower_means_by_more_than_5_percent(times_s, slower, clearly):
    (found,) = over_best(launches(funnelled=[2, 2, 2], earlybird=times_s))
    assert (found.is_slower, found.is_clearly_slower) == (slower, clearly)


def test_styles_of_launches_without_the_reference_are_not_compared():
    alone = [replace(one, launch="halo3d-9") for one in launches(partitioned=[1.0])]
    (found,) = over_best([*launches(funnelled=[2, 2], earlybird=[2, 2]), *alone])
    assert found.other == "funnelled" and found.speed_up.value == 1
    assert over_best([*launches(earlybird=[2.0]), *alone]) == []
    assert over_best(launches(funnelled=[2.0], multiple=[1.0])) == []


def test_every_point_is_compared_and_other_kernels_are_not():
    larger = [
        replace(one, config=CONFIG | {"cells": "9x9x9"}) for one in launches(funnelled=[1], earlybird=[2])
    ]
    others = [replace(one, kernel="pipeline") for one in larger]
    found = over_best([*launches(funnelled=[2], earlybird=[2]), *larger, *others])
    assert [(one.config["cells"], one.is_slower) for one in found] == [("8x8x8", False), ("9x9x9", True)]


def test_mappings_of_the_same_ranks_are_not_compared():
    by_node = {"layout": "2x1x1_by_node"}
    found = scaling(results([sample(1e-3), sample(9e-3, **by_node), sample(5e-4, ranks=4, layout="2x1x2")]))
    assert [one.speed_up for one in found] == pytest.approx([1, 2])


def best_other(samples):
    by_method = {}
    for one in samples:
        by_method.setdefault(one.method, []).append(one)
    return compared_with_best(by_method)


def test_the_library_is_compared_with_the_best_other_style():
    both = [sample(4e-3), sample(3e-3, "multiple"), sample(2e-3, "earlybird")]
    other, ratio = best_other(both)
    assert (other, ratio.value) == ("multiple", pytest.approx(1.5))
    # Partitioned calls of the MPI are measured in other launches: through the reference.
    own = [sample(8e-3, launch="own"), sample(5e-3, "partitioned", "own")]
    other, ratio = best_other([*both, *own])
    assert (other, ratio.value) == ("partitioned", pytest.approx((4 / 2) / (8 / 5)))
    assert best_other(both[:2]) is None and best_other(both[2:]) is None
