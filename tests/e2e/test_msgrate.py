"""`measure msgrate` as a user types it, from the table to the report, and what it refuses."""

import csv
import json

import pytest

pytestmark = pytest.mark.mpi


@pytest.fixture
def earlybird(in_process):
    return in_process


@pytest.mark.thorough
def test_a_run_is_printed_resumed_and_plotted(earlybird, refused, tmp_path, any_mpi):
    small = (
        "--mpi",
        any_mpi,
        "--threads",
        "1,2",
        "--window",
        "8",
        "--methods",
        "shared,per-thread,processes",
    )
    arguments = ("measure", "msgrate", *small, "--launches", "1", "--budget", "100ms", "-o", "run")
    points = json.loads(earlybird(*arguments, "--json").stdout)["points"]
    assert [(row["threads"], row["method"]) for row in points] == [
        (threads, method) for threads in (1, 2) for method in ("shared", "per-thread", "processes")
    ]
    for row in points:
        assert row["rate_per_s"] == pytest.approx(row["threads"] * 8 / row["time_s"])
        assert len(row["thread_rates_per_s"]) == row["threads"]
        assert (row["speed_up"] is None) == (row["method"] != "per-thread")
    again = earlybird("measure", "--resume", "-o", "run", "--format", "csv").stdout.splitlines()
    rates = [row["thread_rates_per_s"].split() for row in csv.DictReader(again)]
    assert [len(one) for one in rates] == [1, 1, 1, 2, 2, 2]
    refused(earlybird("measure", "--resume", "-o", "run", "--threads", "4", check=False), "--threads is 4")
    earlybird("report", "run", "-o", "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "Messages per second of threads" in page and "one communicator per thread" in page


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--threads", "0"), "--threads has '0'"),
        (("--window", "0"), "--window is 0"),
        (("--methods", "pigeon"), "--methods has 'pigeon'; give some of shared"),
        (("--format", "osu"), "--format osu"),
        (("--launcher", "synthetic:p.json"), "does not describe msgrate"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(
    in_process, refused, tmp_path, any_mpi, arguments, output
):
    level = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]}
    profile = {"schema": "earlybird.profile/1", "levels": {"intra_socket": level}}
    (tmp_path / "p.json").write_text(json.dumps(profile))
    refused(in_process("measure", "msgrate", "--mpi", any_mpi, *arguments, "-o", "run", check=False), output)
    assert not (tmp_path / "run").exists()


def test_several_numbers_of_threads_are_for_suites_that_compare_them(in_process, refused, any_mpi):
    arguments = ("measure", "pingpong", "--mpi", any_mpi, "--threads", "1,2", "-o", "run")
    refused(
        in_process(*arguments, check=False),
        "--threads is 1,2, but only pipeline, partitioned",
        "take several",
    )
