"""`--threads`, as a user types it: it reaches the kernel, stays with the run, and keeps profiles apart."""

import json

import pytest

from earlybird.data.run import Run

pytestmark = pytest.mark.mpi


@pytest.fixture
def earlybird(in_process):
    return in_process


def test_a_replay_keeps_its_threads_when_it_is_resumed(earlybird, tmp_path, mpi):
    (tmp_path / "pattern.csv").write_text("src,dst,bytes\n0,1,5000\n0,1,5000\n0,1,0\n1,0,90000\n")
    common = ("-o", "run", "--quiet", "--budget", "1s")
    earlybird("replay", "pattern.csv", "--layout", "1x1x2", "--mpi", mpi, "--threads", "2",
              "--launches", "1", *common)  # fmt: skip
    earlybird("replay", "--resume", "--launches", "2", *common)
    run = Run.open(tmp_path / "run")
    assert run.header["settings"]["threads"] == 2
    launches = run.launches()
    assert [launch["threads_per_rank"] for launch in launches] == [2, 2]
    assert all(len(entry["threads"]) == 2 for launch in launches for entry in launch["placement"])
    samples = list(run.samples())
    assert len(samples) == 2 and all(sample.validated for sample in samples)


def test_a_profile_says_how_many_threads_it_holds_for(earlybird, refused, tmp_path, any_mpi):
    for threads in ("1", "2"):
        earlybird("measure", "contention", "--mpi", any_mpi, "--sizes", "8,4KiB,64KiB", "--competitors", "1",
                  "--threads", threads, "--launches", "2", "--budget", "1s", "-o", threads)  # fmt: skip
    earlybird("fit", "2", "-o", "two.json")
    assert json.loads((tmp_path / "two.json").read_text())["context"]["threads_per_rank"] == 2
    refused(earlybird("fit", "1", "2", check=False), "threads_per_rank is 1", "2 in another")
