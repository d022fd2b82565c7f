"""The marker measures_time: few tests have it, and what fails once is run again and named in the summary."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace as Made

import pytest

from tests import selection

ROOT = Path(__file__).parents[2]
MAX_MARKED = 12


def marks_in(path: Path) -> list[tuple[str, ast.expr, ast.AST]]:
    """Marker, its expression and what it decorates, or the expression itself, of a file of tests."""
    text = path.read_text()
    if selection.MEASURES_TIME not in text and "flaky" not in text:
        return []  # in a thousandth of the time
    tree = ast.parse(text)
    decorated = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorated |= {id(getattr(each, "func", each)): node for each in node.decorator_list}
    return [
        (node.attr, node, decorated.get(id(node), node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("pytest.mark.")
    ]


def test_few_tests_have_the_marker_each_as_a_function_of_its_own_with_its_reason():
    marked = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for name, mark, owner in marks_in(path):
            where = f"{path.relative_to(ROOT)}:{mark.lineno}"
            assert name != "flaky" or path.name == "conftest.py", f"{where}: use measures_time"
            if name != selection.MEASURES_TIME:
                continue
            assert path.parent.name in ("e2e", "native"), where
            assert isinstance(owner, ast.FunctionDef), f"{where}: mark a test, no parameter and no file"
            (call,) = [each for each in owner.decorator_list if getattr(each, "func", None) is mark]
            (why,) = call.args
            assert isinstance(why, ast.Constant) and len(why.value.split()) >= 4, f"{where}: say why"
            marked.append(where)
    assert 0 < len(marked) <= MAX_MARKED, marked


TESTS = """
import pathlib
import pytest

COUNTS = pathlib.Path(__file__).with_name("counts")

def run_number(name):
    COUNTS.mkdir(exist_ok=True)
    with open(COUNTS / name, "a") as file:
        file.write("x")
    return (COUNTS / name).stat().st_size

@pytest.fixture(scope="module")
def made():
    return run_number("made")

@pytest.mark.alone
@pytest.mark.measures_time("its time is that of this test")
def test_late_once(made, tmp_path):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
    assert (run_number("late"), made) == (2, 1), "late"

@pytest.mark.measures_time("its time is that of this test")
def test_late_again():
    run_number("again")
    assert False

@pytest.mark.measures_time("its time is that of this test")
def test_error():
    run_number("error")
    raise OSError("no time")

def test_unmarked():
    run_number("unmarked")
    assert False
"""


@pytest.mark.thorough
@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_assertion_that_fails_once_is_named_and_passed_and_any_other_failure_stays(tmp_path, workers):
    (tmp_path / "test_measured.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", ROOT / "pyproject.toml"]
    command += ["--rootdir", tmp_path, "-n", workers, "--dist", "loadfile", tmp_path / "test_measured.py"]
    result = subprocess.run(
        [*map(str, command)], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        | {"PYTHONPATH": str(ROOT), "EARLYBIRD_HOME": str(tmp_path / "home")},  # where its locks are
    )  # fmt: skip
    assert "3 failed, 1 passed, 2 rerun" in result.stdout, result.stdout + result.stderr
    counts = {path.name: path.stat().st_size for path in (tmp_path / "counts").iterdir()}
    assert counts == {"made": 1, "late": 2, "again": 2, "error": 1, "unmarked": 1}
    lines = result.stdout.splitlines()
    (begin,) = [k for k, line in enumerate(lines) if "run a second time" in line]
    assert "2 tests that measure time" in lines[begin]
    assert [line.partition(": ")[::2] for line in lines[begin + 1 : begin + 3]] == [
        ("test_measured.py::test_late_again", "assert False"),
        ("test_measured.py::test_late_once", "AssertionError: late"),
    ]
    passed = json.loads((tmp_path / ".pytest_cache/v" / selection.CACHE_KEY).read_text())
    assert passed == ["test_measured.py::test_late_once"]


def test_what_a_test_failed_with_first_is_said_once():
    def report(nodeid, message):
        return Made(nodeid=nodeid, longrepr=Made(reprcrash=message and Made(message=message)))

    stats = {
        "rerun": [report("b", "AssertionError: slow\nmore"), report("a", "x" * 999), report("b", "left")]
    }
    lines = selection.second_run_lines(stats)
    assert [line.partition(":")[0] for line in lines] == ["a", "b"]
    assert lines[1] == "b: AssertionError: slow" and len(lines[0]) == selection.SECOND_RUN_LENGTH
    assert selection.second_run_lines({}) == []
