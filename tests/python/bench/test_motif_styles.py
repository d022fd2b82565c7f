"""The share of slower points of each MPI, and the verdict, from points with known ratios."""

import json

import pytest

from bench import motif_styles
from bench.motif_styles import MEMORY, Found, clearly_slower_shares
from earlybird.compare.motifs import OverBest
from earlybird.compare.ratios import Ratio
from earlybird.data.schema import Estimate

CONFIG = {
    "mpi": "mpich", "cells": "16x16x16", "stencil": 7, "buffers": "packed", "compute_s": 1e-3,
    "noise": "single", "noise_share": 0.04,
}  # fmt: skip


def point(speed_up, mpi="mpich", motif="halo3d", style="earlybird"):
    ratio = Ratio(Estimate(speed_up, speed_up - 0.05, speed_up + 0.05), 0.94, 5)
    return Found(MEMORY, mpi, OverBest(motif, CONFIG, style, "multiple", ratio))


@pytest.fixture
def measured(monkeypatch):
    def run(points, *arguments):
        monkeypatch.setattr(motif_styles, "_measure", lambda *arguments: iter(points))
        return motif_styles.main(["--place", "memory", *arguments])

    return run


def test_shares_are_of_all_points_of_an_mpi():
    found = [point(0.8), point(1.1), point(0.94), point(0.85, motif="comb"), point(1.0, "intel")]
    assert clearly_slower_shares(found) == {"mpich": 0.5, "intel": 0.0}


def test_one_point_of_ten_is_allowed(measured, capsys):
    assert measured([point(0.8), *[point(1.0)] * 9]) == 0
    out = capsys.readouterr().out
    assert "10 % of the points of each MPI: met" in out
    (row,) = [line for line in out.splitlines() if "multiple" in line]
    assert row.split()[-5:] == ["0.80", "0.75", "..", "0.85", "yes"]


def test_more_slower_points_of_one_mpi_fail(measured, capsys, tmp_path):
    unclear, clear = point(0.93, "openmpi"), point(0.8, "openmpi")
    points = [unclear, clear, *[point(1.0)] * 9]
    assert measured(points, "--json", str(tmp_path / "points.json")) == 1
    out = capsys.readouterr().out
    assert "missed (openmpi 50 %)" in out
    rows = [line.split()[3:] for line in out.splitlines() if line.startswith("all")]
    assert [[row[0], row[1], row[4]] for row in rows] == [["2", "2", "1"], ["9", "0", "0"]]
    first = json.loads((tmp_path / "points.json").read_text())["points"][0]
    assert (first["mpi"], first["best_other"], first["slower"], first["clearly_slower"]) == (
        "openmpi", "multiple", True, False,
    )  # fmt: skip


def test_other_styles_are_counted_too_and_do_not_decide(measured, capsys):
    assert measured([point(1.0), point(0.8, style="persistent")]) == 0
    out = capsys.readouterr().out
    (row,) = [line.split() for line in out.splitlines() if "persistent" in line]
    assert row[:4] == ["mpich", "persistent", "1", "1"]


def test_points_without_a_slower_one_have_no_list(measured, capsys):
    assert measured([point(1.0)]) == 0
    assert "Slower points" not in capsys.readouterr().out
