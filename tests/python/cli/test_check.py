"""`earlybird check` without ranks: what it prints if it cannot complete."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from earlybird.check.plan import make_plan
from earlybird.cli.session import checking
from earlybird.data.errors import WorkError

SENTENCE = "the check ended after 1 s: mpiexec reports that a rank on <node1> failed"


@pytest.fixture(params=["planned_check", "perform_check"])
def failed(earlybird, monkeypatch, request):
    def fail(*arguments):
        raise WorkError(SENTENCE)

    plan = make_plan(4)
    monkeypatch.setattr(checking, "planned_check", lambda *arguments: SimpleNamespace(plan=plan))
    monkeypatch.setattr(checking, request.param, fail)

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
