"""The folder of `exec --stuck`: commands show that it was watched, or ask for a recording."""

import json

import pytest

from earlybird.data.kept_where import save_where
from tests.conftest import assert_refused
from tests.recordings import entries, rank_file, start_recording

SENTENCE = "Deadlock: rank 0 is in MPI_Recv from rank 1, tag 5; rank 1 is in MPI_Recv from rank 0, tag 6."


@pytest.fixture
def folder(tmp_path):
    """What two ranks leave that wait for each other."""
    start_recording(tmp_path / "stuck", {"command": ["mpiexec", "-n", "2", "./app"], "watched": True})
    threads = []
    for rank in range(2):
        file = rank_file(rank, 2, entries(rank, [], 0.0)[:0], "n0")
        (tmp_path / "stuck" / f"rank-{rank}.ebr").write_bytes(file)
        pending = [{"peer": 1 - rank, "tag": 5 + rank, "communicator": "MPI_COMM_WORLD", "bytes": 8}]
        thread = {"rank": rank, "thread": 0, "call": "MPI_Recv", "site": "main (app.c:9)", "since_s": 62.0}
        threads.append(thread | {"pending": pending})
    answer = {"schema": "earlybird.where/1", "verdict": "deadlock", "sentence": SENTENCE, "threads": threads}
    save_where(tmp_path / "stuck", answer)
    return tmp_path / "stuck"


def test_show_says_who_waited_and_that_nothing_was_counted(folder, in_process):
    result = in_process("show", folder)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("watched ") and "2 of 2 ranks" in lines[0]
    assert lines[1] == SENTENCE
    assert lines[2] == (
        "The ranks were watched by `earlybird exec --stuck`: no calls and messages were counted."
    )
    assert "Where the ranks were" in lines
    assert [line.split() for line in lines[-2:]] == [
        [str(rank), "MPI_Recv", "rank", f"{1 - rank},", "tag", f"{5 + rank}", "main", "(app.c:9)", "62", "s"]
        for rank in range(2)
    ]
    assert "No MPI call took" not in result.stdout and "Messages" not in result.stdout
    assert "is counted" not in result.stderr
    assert json.loads(in_process("show", folder, "--json").stdout)["where"]["verdict"] == "deadlock"


def test_the_report_has_the_answer_and_no_figures_of_calls(folder, in_process, tmp_path):
    result = in_process("report", folder, "-o", tmp_path / "report.html", check=False)
    page = (tmp_path / "report.html").read_text()
    assert result.returncode == 0, result.stderr
    assert SENTENCE in page and "Program watched in" in page
    assert "Where the ranks were" in page and "Time in MPI by rank" not in page


@pytest.mark.parametrize(
    "arguments",
    [
        ("pattern", "recording", "stuck", "-o", "x.csv"),
        ("predict", "program", "stuck"),
        ("advise", "program", "stuck"),
        ("export", "stuck", "--to", "goal", "-o", "x.goal"),
    ],
)
def test_commands_that_need_messages_ask_for_a_recording(folder, in_process, arguments):
    refused = in_process(*arguments, check=False)
    assert_refused(refused, "stuck is of `earlybird exec --stuck`", "with `earlybird record`")
