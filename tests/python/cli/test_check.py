"""`earlybird check` without ranks: what it prints if it cannot complete."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from earlybird.check.plan import make_plan
from earlybird.cli.commands import check as command
from earlybird.data.check import NODE, Check, CheckedNode, Finding
from earlybird.data.errors import WorkError
from earlybird.measure import planned_check

SENTENCE = "the check ended after 1 s: mpiexec reports that a rank on <node1> failed"


@pytest.fixture(params=["planned_check", "perform_check"])
def failed(earlybird, monkeypatch, request):
    def fail(*arguments):
        raise WorkError(SENTENCE)

    plan = make_plan(4)
    monkeypatch.setattr(planned_check, "planned_check", lambda *arguments: SimpleNamespace(plan=plan))
    monkeypatch.setattr(planned_check if request.param == "planned_check" else command, request.param, fail)

    def run(*arguments):
        ended = earlybird("check", *arguments, check=False)
        assert ended.returncode == 3 and ended.stderr.endswith(f"earlybird: {SENTENCE}\n")
        return ended.stdout

    return run


def test_a_check_that_cannot_complete_is_an_error_in_junit(failed):
    root = ElementTree.fromstring(failed("--format", "junit"))
    (suite,) = root
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")
    assert [error.get("message") for error in root.iterfind("testsuite/testcase/error")] == [SENTENCE]


def test_a_check_that_cannot_complete_is_an_error_in_json(failed):
    assert json.loads(failed("--json")) == {"error": SENTENCE}


@pytest.mark.parametrize("format", ["table", "csv"])
def test_a_check_that_cannot_complete_has_no_table(failed, format):
    assert failed("--format", format) == ""


@pytest.mark.parametrize(("bad", "status"), [([], 0), ([1], 1), ([0, 1, 2], 3)])
def test_without_a_good_node_there_is_no_file_of_good_hosts(earlybird, monkeypatch, tmp_path, bad, status):
    """Given an empty one, mpiexec starts the application where it runs itself."""
    size = np.zeros((3, 3))
    findings = tuple(Finding(NODE, (f"n{k}",), "outcast", 1.0, 2.0, "", "expected") for k in bad)
    nodes = tuple(CheckedNode(f"n{k}") for k in range(3))
    check = Check("mpich", "hosts", 1, 1, 0.1, 1.0, 1.0, 1, nodes, size, size, size, size, findings)
    monkeypatch.setattr(planned_check, "planned_check", lambda *arguments: SimpleNamespace(plan=make_plan(3)))

    def perform(*arguments):
        (tmp_path / "c").mkdir()  # as the run in which samples are kept
        return check

    monkeypatch.setattr(command, "perform_check", perform)
    ended = earlybird("check", "-o", tmp_path / "c", check=False)
    assert ended.returncode == status
    assert (tmp_path / "c" / "ok.txt").exists() == (status < 3)
    assert (tmp_path / "c" / "bad.txt").read_text() == "".join(f"n{k}\n" for k in bad)
    assert ("no host is left" in ended.stderr) == (status == 3)


def test_two_nodes_that_nothing_judges_are_in_no_file_of_good_hosts(earlybird, monkeypatch, tmp_path):
    size, nodes = np.zeros((2, 2)), tuple(CheckedNode(f"n{k}") for k in range(2))
    check = Check("mpich", "hosts", 1, 1, 0.1, 1.0, 1.0, 1, nodes, size, size, size, size, ())
    monkeypatch.setattr(planned_check, "planned_check", lambda *arguments: SimpleNamespace(plan=make_plan(2)))

    def perform(*arguments):
        (tmp_path / "c").mkdir()
        return check

    monkeypatch.setattr(command, "perform_check", perform)
    ended = earlybird("check", "-o", tmp_path / "c", check=False)
    assert ended.returncode == 3 and "no ok.txt, because nothing was decided" in ended.stderr
    assert not (tmp_path / "c" / "ok.txt").exists()
    states = [line.split()[-2:] for line in ended.stdout.splitlines() if line.startswith(("n0 ", "n1 "))]
    assert states == [["not", "judged"]] * 2


@pytest.mark.parametrize(("launcher", "bad"), [("srun", [1, 2]), ("srun", []), ("hosts", [1])])
def test_bad_nodes_of_slurm_can_be_excluded_and_drained_as_printed(earlybird, monkeypatch, launcher, bad):
    size = np.zeros((4, 4))
    findings = tuple(Finding(NODE, (f"n{k}",), "outcast", 1.0, 2.0, "", "expected") for k in bad)
    nodes = tuple(CheckedNode(f"n{k}") for k in range(4))
    check = Check("mpich", launcher, 1, 1, 0.1, 1.0, 1.0, 1, nodes, size, size, size, size, findings)
    monkeypatch.setattr(planned_check, "planned_check", lambda *arguments: SimpleNamespace(plan=make_plan(4)))
    monkeypatch.setattr(command, "perform_check", lambda *arguments: check)
    monkeypatch.setattr("earlybird.launch.slurm._scontrol", lambda *arguments: "n[1-2]\n")
    (*_, last) = earlybird("check", check=False).stderr.splitlines()
    if launcher != "srun" or not bad:
        assert "scontrol" not in last
        return
    # The shell would look for files of that name.
    assert last == (
        "next: srun --exclude='n[1-2]', sbatch --exclude='n[1-2]', or as an administrator: scontrol update "
        "nodename='n[1-2]' state=drain reason='earlybird check'"
    )
    monkeypatch.setattr("earlybird.launch.slurm._scontrol", lambda *arguments: "")  # does not answer
    assert "srun --exclude=n1,n2," in earlybird("check", check=False).stderr
