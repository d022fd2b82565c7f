"""`earlybird import repro` reads what ReproMPI printed; the texts are real."""

from pathlib import Path

import numpy as np
import pytest

from earlybird.data.run import Run
from earlybird.interop.reprompi import read_repro

RECORDED = Path(__file__).parents[2] / "recorded" / "benchmarks"
REPRO = ("--mpi", "mpich")


@pytest.fixture
def imported(earlybird, tmp_path):
    def run(name: str) -> list:
        earlybird("import", "repro", RECORDED / f"{name}.txt", *REPRO, "-o", "run")
        return Run.open(tmp_path / "run").samples()

    return run


def repro_rows(name: str) -> list[list[str]]:
    text = (RECORDED / f"{name}.txt").read_text()
    return [line.split() for line in text.splitlines() if "MPI_" in line and not line.startswith("#")]


def test_repro_has_every_iteration_of_a_collective(imported):
    samples = imported("repro_barrier")
    rows = repro_rows("repro_barrier")
    by_size = {(one.config["operation"], one.config["size_bytes"]): one.times_s.tolist() for one in samples}
    assert by_size["bcast", 8] == [float(row[3]) for row in rows if row[0] == "MPI_Bcast" and row[2] == "8"]
    # A barrier has no data: its three jobs are one point.
    assert len(by_size["barrier", 0]) == 60 and len(by_size) == 10
    assert {(one.quantity, one.method, one.config["ranks"]) for one in samples} == {
        ("completion", "default", 2)
    }
    roots = {one.config["operation"]: one.config.get("root") for one in samples}
    assert roots == {"bcast": 0, "allreduce": None, "alltoall": None, "barrier": None}


def test_repro_with_processes_has_the_times_of_ranks(imported):
    rows = [row for row in repro_rows("repro_processes") if row[1] == "MPI_Reduce" and row[3] == "4096"]
    of_rank = [[float(row[5]) - float(row[4]) for row in rows if row[0] == rank] for rank in "01"]
    sample = imported("repro_processes")[-1]
    assert (sample.config["operation"], sample.config["size_bytes"]) == ("reduce", 4096)
    assert np.allclose(sample.rank_times_s, np.transpose(of_rank), atol=1e-12)
    assert np.allclose(sample.times_s, np.max(of_rank, axis=0), atol=1e-12)


def test_repro_by_one_clock_counts_from_the_first_rank(imported):
    """And sizes are counts of the datatype, here of doubles."""
    rows = [row for row in repro_rows("repro_window_processes") if row[3] == "512"]
    begins = np.reshape([float(row[7]) for row in rows], (2, 5))
    ends = np.reshape([float(row[8]) for row in rows], (2, 5))
    sample = imported("repro_window_processes")[-1]
    assert sample.config["size_bytes"] == 4096
    assert np.allclose(sample.times_s, ends.max(axis=0) - begins.min(axis=0), atol=1e-12)


def test_iterations_that_missed_their_window_are_left_out(earlybird, tmp_path):
    printed = earlybird("import", "repro", RECORDED / "repro_window.txt", *REPRO, "-o", "run").stderr
    missed = [row for row in repro_rows("repro_window") if row[3] != "0"]
    assert missed and f"{len(missed)} iterations that missed" in printed
    kept = sum(len(one.times_s) for one in Run.open(tmp_path / "run").samples())
    assert kept == len(repro_rows("repro_window")) - len(missed)


def test_repro_names_what_it_leaves_out(earlybird):
    printed = earlybird("import", "repro", RECORDED / "repro_shuffled.txt", *REPRO, "-o", "run").stderr
    assert "left out: MPI_Scan" in printed


REPRO_TEXT = "#@datatype_size_bytes=1\n#@nprocs=2\n#@nrep=2\n"
REPRO_HEADER = " test nrep count runtime_sec\n"
REPRO_WHOLE = REPRO_HEADER + "MPI_Bcast 0 8 0.1\nMPI_Bcast 1 8 0.1\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "#@nprocs="),
        (REPRO_HEADER + "MPI_Bcast 0 8 0.1\n", "#@nprocs="),
        (REPRO_TEXT + REPRO_HEADER, "no rows"),
        (REPRO_TEXT + REPRO_HEADER + "MPI_Bcast 0 8 0.1\n", "repetition 1 of MPI_Bcast, of 2"),
        (REPRO_TEXT + REPRO_HEADER + "MPI_Bcast 0 8\n", "cut off"),
        (REPRO_TEXT + REPRO_HEADER + "MPI_Bcast 0 8 nan\n", "an impossible number"),
        (REPRO_TEXT + REPRO_HEADER + "MPI_Bcast 0 -8 0.1\n", "an impossible number"),
        (REPRO_TEXT + REPRO_HEADER + "MPI_Bcast 0 8 x\n", "no number"),
        (REPRO_TEXT + REPRO_HEADER + "MPI_Scan 0 8 0.1\nMPI_Scan 1 8 0.1\n", "it has MPI_Scan"),
        ((REPRO_TEXT + REPRO_HEADER + "MPI_Bcast 0 8 0.1\nMPI_Bcast 1 8 0.1\n") * 2, "2 outputs"),
        (REPRO_TEXT + " test count runtime_sec\nMPI_Bcast 8 0.1\n", "no nrep"),
        (REPRO_TEXT + " test nrep runtime_sec\nMPI_Bcast 0 0.1\n", "no count"),
        (REPRO_TEXT + "process test nrep count loc_tstart_sec\n0 MPI_Bcast 0 8 0.1\n", "no loc_tend_sec"),
        (REPRO_TEXT.replace("#@nprocs=2", "#@nprocs=x") + REPRO_HEADER + "MPI_Bcast 1 8 0.1\n", "#@nprocs=x"),
        (REPRO_TEXT + "#@mpi_in_place=1\n" + REPRO_WHOLE, "'#@mpi_in_place=1', and what that changes"),
        (REPRO_TEXT + "#@clear-cache=memset\n" + REPRO_WHOLE, "'#@clear-cache=memset', and what that"),
        (REPRO_TEXT + "#@root_proc=2\n" + REPRO_WHOLE, "#@root_proc=2"),
        (REPRO_TEXT + "#@root_proc=rotate\n" + REPRO_WHOLE, "#@root_proc=rotate"),
    ],
)
def test_other_texts_of_repro_are_refused(earlybird, refused, tmp_path, text, named):
    (tmp_path / "text.txt").write_text(text)
    refused(earlybird("import", "repro", "text.txt", *REPRO, "-o", "run", check=False), named)
    assert not (tmp_path / "run").exists()


def test_summaries_of_repro_are_refused(earlybird, refused):
    path = RECORDED / "repro_summary.txt"
    refused(
        earlybird("import", "repro", path, *REPRO, "-o", "run", check=False),
        "summaries alone",
        "--output-file",
    )


def test_how_ranks_began_and_were_timed_are_points_of_their_own(earlybird, refused, tmp_path):
    """The window and the global clock of the recorded text, against the defaults."""
    text = (RECORDED / "repro_window.txt").read_text()
    plain = text.replace("procsync=window", "procsync=MPI_Barrier").replace("=global", "=local")
    (tmp_path / "plain.txt").write_text(plain)
    earlybird("import", "repro", RECORDED / "repro_window.txt", *REPRO, "-o", "window")
    earlybird("import", "repro", "plain.txt", *REPRO, "-o", "plain")
    configs = [Run.open(tmp_path / name).samples()[0].config for name in ("window", "plain")]
    assert configs[0] == configs[1] | {
        "procsync": "window", "runtime_type": "global", "clocksync": "HCA3O"
    }  # fmt: skip
    launches = [Run.open(tmp_path / name).launches()[0] for name in ("window", "plain")]
    assert {one["datatype"] for one in launches} == {"MPI_DOUBLE, MPI_BOR of reductions"}
    refused(earlybird("compare", "plain", "window", check=False), "first differ in clocksync")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("clock=MPI_Wtime", "clock=RDTSCP", {"clock": "RDTSCP"}),
        ("clocksync=HCA3O", "clocksync=SKaMPI", {}),
        ("procsync=MPI_Barrier", "procsync=roundtime", {"procsync": "roundtime", "clocksync": "HCA3O"}),
        ("runtime_type=local", "runtime_type=global ", {"runtime_type": "global", "clocksync": "HCA3O"}),
    ],
)
def test_clocks_are_parameters_where_times_depend_on_them(old, new, changed):
    text = (RECORDED / "repro_barrier.txt").read_text()
    assert old in text
    plain, other = (read_repro(one, "text").points[0].config for one in (text, text.replace(old, new)))
    assert other == {**plain, **changed}
