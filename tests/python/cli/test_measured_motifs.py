"""The tables of motifs say at how many points libearlybird is slower than another style."""

import numpy as np
import pytest

from earlybird.compare.motifs import scaling
from earlybird.compare.results import results
from earlybird.data.kernels import HALO3D
from earlybird.data.run import Run, Sample
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.measured.columns import column_of
from earlybird.present.subjects.measured.terminal import print_samples
from earlybird.present.subjects.motifs.answer import slower_text
from earlybird.present.subjects.motifs.tables import Row, scaling_table

CONFIG = {
    "mpi": "mpich", "ranks": 2, "layout": "1x1x2", "process_grid": "2x1x1", "cells": "8x8x8", "variables": 1,
    "stencil": 7, "periodic": "no", "buffers": "packed", "threads": 1, "partitions": 4, "compute_s": 0.0,
    "noise": "none", "noise_share": 0.0, "size_bytes": 512, "scaling": "strong",
}  # fmt: skip
SHAPE = [column_of(column) for column in HALO3D.columns if column.common]


def point(kernel="halo3d", cells="8x8x8", **times_s):
    return [
        Sample(
            kernel, "step", CONFIG | {"cells": cells}, f"{kernel}-{k}", np.full(6, time_s), method=style,
            rounds=np.arange(6), extra={"sent_bytes": 1000, "messages": 2},
        )
        for style, of_launches in times_s.items()
        for k, time_s in enumerate(of_launches)
    ]  # fmt: skip


SLOWER = point(funnelled=[1.0, 1.0], earlybird=[1.2, 1.3])
UNCLEAR = point(cells="16x8x8", funnelled=[1.0, 1.0], earlybird=[1.0, 1.3])
FASTER = point(cells="32x8x8", funnelled=[1.0, 1.0], earlybird=[0.7, 0.8])


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (FASTER, "at 0 of 1 point"),
        ([*FASTER, *UNCLEAR], "at 1 of 2 points, clearly (the whole interval) at 0 of them"),
        ([*FASTER, *UNCLEAR, *SLOWER], "at 2 of 3 points, clearly (the whole interval) at 1 of them"),
    ],
)
def test_the_points_at_which_libearlybird_is_slower_are_counted(samples, expected):
    text = slower_text(samples)
    assert text == f"libearlybird is more than 5 % slower than the best other style {expected}"


def test_the_line_is_below_the_table_of_each_motif_with_libearlybird(tmp_path, capsys):
    run = Run.create(tmp_path / "run", machine={}, command=[], seed=1)
    samples = [*SLOWER, *point("sweep3d", funnelled=[1.0], multiple=[2.0])]
    print_samples(run, samples, "table")
    halo, sweep = capsys.readouterr().out.split("\nsweep3d: ")
    assert "libearlybird is more than 5 % slower" in halo and "libearlybird" not in sweep
    print_samples(run, samples, "csv")
    assert "libearlybird" not in capsys.readouterr().out


# Of each setting another value than in CONFIG, with what belongs to it.
OTHERS = [
    {"scaling": "weak"}, {"layout": "2x1x1_by_node"}, {"process_grid": "1x2x1"}, {"cells": "8x8x4"},
    {"variables": 2}, {"stencil": 27}, {"periodic": "yes"}, {"buffers": "derived"}, {"threads": 2},
    {"partitions": 8}, {"compute_s": 1e-3}, {"noise": "single", "noise_share": 0.04},
    {"planes_per_block": 2},
]  # fmt: skip


def measured(**config):
    return results([Sample("halo3d", "step", CONFIG | config, "halo3d-0", np.ones(6), method="funnelled")])


def labels(columns, items):
    """Of each row, in the columns that are shown."""
    header = Table("", columns, items).header
    heads = [head for head in header if head not in ("time", "speed-up", "efficiency", "state")]
    return [tuple(str(column.text(item)) for column in columns if column.head in heads) for item in items]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other)))
def test_points_that_differ_in_one_setting_have_different_labels(other):
    planes = {"planes_per_block": 4} if "planes_per_block" in other else {}
    both = [*measured(**planes), *measured(**planes | other)]
    assert len(set(labels(SHAPE, both))) == 2
    four = {"ranks": 4, "process_grid": "2x2x1", "layout": "1x1x4"}
    if "scaling" in other:
        other = other | {"cells": "8x16x8"}  # each rank has 4x8x8
    if "layout" in other:
        other = other | {"layout": "2x1x2_by_node"}
    if "process_grid" in other:
        other = {"process_grid": "4x1x1"}
    scaled = scaling([*both, *measured(**planes | four), *measured(**planes | four | other)])
    table = scaling_table([Row(row.result, row) for row in scaled])
    assert len(set(labels(table.columns, table.items))) == len(scaled) == 4


def test_tables_have_no_columns_for_what_is_the_same_in_all_rows():
    (one,) = measured(layout="2x1x1_by_node", planes_per_block=4)
    heads = Table("", SHAPE, [one]).header
    assert "mapped by" not in heads and "planes per block" not in heads


def test_the_line_above_a_table_names_no_column_that_the_table_has_not():
    named, rest = Table("", SHAPE, measured()).split()
    assert named == "P 2, grid 2x1x1, cells 8x8x8, stencil 7, threads 1, partitions 4, compute 0 ns"
    assert rest.header == []


def test_a_column_that_is_shown_has_a_text_in_every_row():
    column = Column("buffers", lambda text: text, common=True, optional=True, default="packed")
    assert Table("", [column], ["", "derived"]).rows == [["packed"], ["derived"]]
    assert Table("", [column], ["", ""]).header == []
