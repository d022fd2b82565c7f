"""The tables of motifs say at how many points libearlybird is slower than another style."""

import numpy as np
import pytest

from earlybird.cli.output.measured import print_samples
from earlybird.cli.output.motifs import slower_text
from earlybird.data.run import Run, Sample

CONFIG = {
    "mpi": "mpich", "ranks": 2, "layout": "1x1x2", "process_grid": "2x1x1", "cells": "8x8x8", "variables": 1,
    "stencil": 7, "periodic": "no", "buffers": "packed", "threads": 1, "partitions": 4, "compute_s": 0.0,
    "noise": "none", "noise_share": 0.0, "size_bytes": 512, "scaling": "strong",
}  # fmt: skip


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
