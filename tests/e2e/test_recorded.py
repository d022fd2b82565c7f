"""Run folders recorded on real machines are still read, fitted alike and rendered to the same report."""

import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "recorded" / "epyc-two-cores"
PARTS = ("run", "profile.json", "replay")


def _folder(mpi: str) -> Path:
    return RECORDED / mpi


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_recorded_run_is_fitted_to_the_recorded_profile(in_process, tmp_path, mpi):
    in_process("fit", _folder(mpi) / "run", "-o", "profile.json")
    fitted = json.loads((tmp_path / "profile.json").read_text())["levels"]
    recorded = json.loads((_folder(mpi) / "profile.json").read_text())["levels"]
    assert fitted.keys() == recorded.keys()
    for level in recorded:
        pairs = zip(fitted[level]["protocols"], recorded[level]["protocols"], strict=True)
        for mine, theirs in pairs:
            for key in ("name", "min_bytes", "sender_waits"):
                assert mine[key] == theirs[key]
            assert mine.get("threshold") == theirs.get("threshold")
            assert mine["latency_s"] == pytest.approx(theirs["latency_s"], rel=1e-6)
            assert mine["bandwidth_bytes_per_s"] == pytest.approx(theirs["bandwidth_bytes_per_s"], rel=1e-6)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_recorded_run_is_rendered_to_the_same_report(earlybird, mpi):
    """After a change of wording, in that folder:
    `earlybird report run profile.json replay --terminal > report.txt`."""
    output = earlybird("report", *PARTS, "--terminal", cwd=_folder(mpi)).stdout
    assert output == (_folder(mpi) / "report.txt").read_text()


def test_two_recorded_mpis_stand_side_by_side_on_one_page(in_process, tmp_path):
    parts = [_folder(mpi) / part for mpi in ("mpich", "openmpi") for part in PARTS]
    in_process("report", *parts, "-o", "both.html")
    page = (tmp_path / "both.html").read_text()
    assert "MPICH 5.0.2" in page and "Open MPI 5.0.11" in page
