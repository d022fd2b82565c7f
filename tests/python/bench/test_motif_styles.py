"""The share of slower points of each MPI, and the verdict, from points with known ratios."""

import json

import pytest

from bench import motif_styles
from bench.motif_styles import MEMORY, Found, slower_shares
from earlybird.compare.motifs import OverBest
from earlybird.compare.ratios import Ratio
from earlybird.data.schema import Estimate

CONFIG = {
    "mpi": "mpich", "cells": "16x16x16", "stencil": 7, "buffers": "packed", "compute_s": 1e-3,
    "noise": "single", "noise_share": 0.04,
}  # fmt: skip


def point(speed_up, mpi="mpich", motif="halo3d"):
    ratio = Ratio(Estimate(speed_up, speed_up - 0.05, speed_up + 0.05), 0.94, 5)
    return Found(MEMORY, mpi, OverBest(motif, CONFIG, "persistent", ratio))


@pytest.fixture
def measured(monkeypatch):
    def run(points, *words):
        monkeypatch.setattr(motif_styles, "_measure", lambda *arguments: iter(points))
        return motif_styles.main(["--place", "memory", *words])

    return run


def test_shares_are_of_all_points_of_an_mpi():
    found = [point(0.9), point(1.1), point(0.94, motif="comb"), point(0.96), point(1.0, "intel")]
    assert slower_shares(found) == {"mpich": 0.5, "intel": 0.0}


def test_one_point_of_ten_is_allowed(measured, capsys):
    assert measured([point(0.8), *[point(1.0)] * 9]) == 0
    out = capsys.readouterr().out
    assert "10 % of the points of each MPI: met" in out
    (row,) = [line for line in out.splitlines() if "persistent" in line]
    assert row.split()[-5:] == ["0.80", "0.75", "..", "0.85", "yes"]


def test_more_slower_points_of_one_mpi_fail(measured, capsys, tmp_path):
    unclear = point(0.93, "openmpi")
    assert measured([unclear, *[point(1.0)] * 9], "--json", str(tmp_path / "points.json")) == 1
    out = capsys.readouterr().out
    assert "missed (openmpi 100 %)" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("all")]
    assert [row[3:6] for row in rows] == [["1", "1", "0"], ["9", "0", "0"]]
    first = json.loads((tmp_path / "points.json").read_text())["points"][0]
    assert (first["mpi"], first["best_other"], first["slower"], first["clearly_slower"]) == (
        "openmpi", "persistent", True, False,
    )  # fmt: skip


def test_points_without_a_slower_one_have_no_list(measured, capsys):
    assert measured([point(1.0)]) == 0
    assert "Slower points" not in capsys.readouterr().out
