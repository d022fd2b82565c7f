"""What counts as a false alarm, and which programs a file names."""

from pathlib import Path

import pytest

from bench import stuck_alarms
from bench.stuck_alarms import Job, Outcome, read_programs, report
from bench.stuck_suites import ANSWER
from earlybird.data.errors import InputError

JOB = Job("computes", 4, Path(), ("./works",))


def ended(*verdicts, status=0, is_stopped=False):
    return Outcome(JOB, stuck_alarms.RECORD, "mpich", 10.0, status, verdicts, is_stopped)


def test_programs_that_compute_are_no_alarm(capsys):
    assert report([ended(), ended("computing", "unknown", "computing")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "computing 2, unknown 1" in lines[-2] and lines[-1] == "2 runs, 0 alarms"


@pytest.mark.parametrize(
    "outcome",
    [
        ended("deadlock"),
        ended("computing", "ended"),
        ended(is_stopped=True),
        ended(status=1),
        ended(status=None),
    ],
)
def test_an_accusation_an_end_and_a_failure_fail(outcome):
    assert report([ended(), outcome]) == 1


def test_answers_are_found_among_the_messages_of_a_program():
    text = "note\nDeadlock: rank 1 is there.\nnot a Deadlock: x\nComputing: rank 2.\n"
    assert ANSWER.findall(text) == ["Deadlock", "Computing"]


def test_programs_of_a_file(tmp_path):
    file = tmp_path / "programs"
    file.write_text("# comment\n\nlulesh 8 /apps ./lulesh-{mpi} -s 8 '-i 1'\n")
    (job,) = read_programs(file, "intel")
    assert job == Job("lulesh", 8, Path("/apps"), ("./lulesh-intel", "-s", "8", "-i 1"))
    for wrong in ("lulesh 8 /apps", "lulesh x /apps ./lulesh", "lulesh 0 /apps ./lulesh"):
        file.write_text(wrong)
        with pytest.raises(InputError, match="give name, number of ranks, folder and command"):
            read_programs(file, "intel")
    with pytest.raises(InputError, match="give a file of programs"):
        read_programs(tmp_path / "absent", "intel")
