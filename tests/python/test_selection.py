"""What a session leaves out is counted by cause, and what passed in an earlier session is not run again."""

from types import SimpleNamespace as Made

from tests import selection


def item(nodeid, mark=None, **params):
    made = Made(nodeid=nodeid, get_closest_marker=lambda name: name == mark)
    if params:
        made.callspec = Made(params=params)
    return made


def report(nodeid, reason=None):
    return Made(nodeid=nodeid, longrepr=reason and ("file.py", 1, f"Skipped: {reason}"))


def test_tests_of_an_mpi_that_is_not_built_are_left_out_and_counted():
    items = [item("a[mpich]", mpi="mpich"), item("a[intel]", mpi="intel"), item("b"), item("c", size=1)]
    selected, left_out, causes = selection.split(items, ["mpich"], frozenset())
    assert [one.nodeid for one in selected] == ["a[mpich]", "b", "c"]
    assert [one.nodeid for one in left_out] == ["a[intel]"]
    assert causes == {"intel is not built (make setup MPI=intel)": 1}


def test_what_passed_for_one_mpi_is_still_run_on_another():
    items = [item("a[mpich]", mpi="mpich"), item("a[intel]", mpi="intel"), item("b"), item("c")]
    selected, _, causes = selection.split(items, ["mpich", "intel"], frozenset({"a[mpich]", "b"}))
    assert [one.nodeid for one in selected] == ["a[intel]", "c"]
    assert causes == {selection.ALREADY_PASSED: 2}


def test_what_does_not_depend_on_the_mpi_is_run_on_one():
    items = [
        item(f"{name}[{mpi}]", name, mpi=mpi) for name in ("one_mpi", "b") for mpi in ("openmpi", "intel")
    ]
    _, left_out, causes = selection.split(items, ["openmpi", "intel"], frozenset())
    assert [one.nodeid for one in left_out] == ["one_mpi[intel]"]
    assert causes == {selection.ON_ONE_MPI: 1}
    assert selection.split(items, ["openmpi", "intel"], frozenset(), every_mpi=True)[0] == items


def test_a_process_runs_a_file_as_a_whole_and_a_native_one_mpi_by_mpi():
    assert (
        selection.unit_of("tests/native/test_a.py::test_b[mpich-2_ranks]") == "tests/native/test_a.py mpich"
    )
    assert selection.unit_of("tests/native/test_a.py::test_b[2-intel]") == "tests/native/test_a.py intel"
    for alone in ("tests/native/test_a.py", "tests/e2e/test_a.py", "tests/python/cli/test_a.py"):
        assert selection.unit_of(f"{alone}::test_b[of intel::]") == alone
    assert selection.unit_of("tests/e2e/test_a.py::test_b[intel]") == "tests/e2e/test_a.py"


def test_a_test_passed_when_its_fixtures_ended_without_an_error_too(tmp_path):
    stats = {
        "passed": [report("a"), report("b"), report("c")],
        "error": [report("b")],
        "failed": [report("d")],
        "skipped": [report("e", "why")],
    }
    assert selection.passed_ids(stats) == ["a", "c"]
    (tmp_path / "passed").write_text('["a", "c"]')
    assert selection.read_passed(str(tmp_path / "passed")) == {"a", "c"}
    assert selection.read_passed(None) == frozenset()


def test_skips_are_one_line_per_cause_the_most_frequent_first():
    stats = {"skipped": [report("a", "no\nSlurm"), report("b", "no cores"), report("c", "no Slurm")]}
    lines = selection.cause_lines(selection.skip_causes(stats))
    assert lines == ["     2  no Slurm", "     1  no cores"]
