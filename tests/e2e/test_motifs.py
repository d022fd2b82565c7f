"""`measure halo3d`, `sweep3d` and `comb` as a user types it: printed, resumed, refused."""

import csv
import json

import pytest

pytestmark = pytest.mark.mpi


@pytest.fixture
def earlybird(in_process):
    return in_process


def test_a_run_is_printed_and_resumed(earlybird, refused, any_mpi):
    small = (
        "--ranks",
        "1,2",
        "--threads",
        "1",
        "--cells",
        "8x8x8",
        "--compute",
        "0",
        "--methods",
        "earlybird",
    )
    arguments = ("measure", "halo3d", "--mpi", any_mpi, *small, "--launches", "1", "--budget", "100ms")
    table = earlybird(*arguments, "-o", "run").stdout
    assert "speed-up over funnelled" in table and "ratios of medians" in table and "strong" in table
    again = earlybird("measure", "--resume", "-o", "run", "--format", "csv").stdout.splitlines()
    rows = list(csv.DictReader(again))
    assert [(row["ranks"], row["method"]) for row in rows] == [
        (ranks, method) for ranks in "12" for method in ("funnelled", "earlybird")
    ]
    for row in rows[2:]:
        assert float(row["throughput_bytes_per_s"]) == pytest.approx(
            float(row["sent_bytes"]) / float(row["time_s"])
        )
        assert float(row["sent_bytes"]) == 2 * 8 * 8 * 8
    refused(
        earlybird("measure", "--resume", "-o", "run", "--cells", "9x9x9", check=False), "--cells is 9x9x9"
    )


@pytest.mark.thorough
def test_several_motifs_share_a_run(earlybird, any_mpi):
    common = ("--mpi", any_mpi, "--quick", "--launches", "1", "--budget", "100ms", "--json", "-o", "run")
    points = json.loads(earlybird("measure", "sweep3d", "comb", *common).stdout)["points"]
    assert {point["kernel"] for point in points} == {"sweep3d", "comb"}
    assert {point["buffers"] for point in points if point["kernel"] == "comb"} == {"packed", "derived"}
    assert all(point["waiting_s"] >= 0 for point in points)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("halo3d", "--ranks", "4", "--process-grid", "3x1x1"), "which is 3 ranks"),
        (("sweep3d", "--ranks", "4", "--cells", "1x8x8"), "a rank needs a cell"),
        (("comb", "--noise-percent", "4"), "--noise is missing"),
        (("comb", "--format", "osu"), "--format osu"),
        (("sweep", "--ranks", "4"), "did you mean sweep3d? The suites are"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(
    in_process, refused, tmp_path, any_mpi, arguments, output
):
    refused(in_process("measure", *arguments, "--mpi", any_mpi, "-o", "run", check=False), output)
    assert not (tmp_path / "run").exists()


def test_a_script_measures_motifs_on_nodes(in_process):
    script = in_process("measure", "sweep3d", "--ranks", "8", "--print-script", "slurm", "-o", "run").stdout
    assert "measure sweep3d --ranks 8" in script and "srun" in script
