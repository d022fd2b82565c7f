"""Collectives with counts and among neighbours: what prints, compares, fits and reports them."""

import json

import pytest

from tests.collective_runs import planted_s, write_run

SKEWS = ({"skew": 1}, {"skew": 4})
NEIGHBOURS = ({"topology": "ring", "skew": 2},)


def write(path, slower=1.0, variants=SKEWS, **more):
    """`linear` takes half the time of `default`; all times are multiplied by `slower`."""

    def time_s(operation, method, node, socket, size_bytes):
        return 1e-5 * (1 + size_bytes / 1000) * (1 if method == "default" else 0.5) * slower

    options = {"ranks": (4,), "sizes": (8, 1024), "methods": ("default", "linear"), "mpi": "mpich"}
    return write_run(
        path, time_s, operations=("alltoallv",), library_version="MPICH Version: 5.0.2", variants=variants,
        **options | more,
    )  # fmt: skip


@pytest.fixture
def earlybird(monkeypatch, run_main, tmp_path):
    monkeypatch.chdir(tmp_path)
    return run_main


def test_show_prints_a_row_for_every_skew_and_topology(earlybird, tmp_path):
    write(tmp_path / "run")
    status, out, _ = earlybird("show", "run")
    assert status == 0 and "skew" in out.splitlines()[2].split() and "topology" not in out
    rows = json.loads(earlybird("show", "run", "--json")[1])["points"]
    assert [(row["skew"], row["size_bytes"]) for row in rows[::2]] == [(1, 8), (1, 1024), (4, 8), (4, 1024)]
    assert all(row["speed_up"] == pytest.approx(2, rel=0.1) for row in rows[1::2])
    write_run(tmp_path / "ring", planted_s, operations=("neighbor_alltoallv",), variants=NEIGHBOURS)
    assert "topology ring, skew 2" in earlybird("show", "ring")[1].splitlines()[1]


def test_compare_keeps_skews_apart(earlybird, tmp_path):
    write(tmp_path / "before", launches=6)
    write(tmp_path / "after", launches=6, slower=1.5, seed=2, variants=SKEWS[1:])
    changes = json.loads(earlybird("compare", "before", "after", "--json")[1])["changes"]
    assert {change["config"]["skew"] for change in changes} == {4} and len(changes) == 4
    assert {change["verdict"] for change in changes} == {"slower"}
    write(tmp_path / "same", launches=6, slower=1.5, seed=3)
    _, out, _ = earlybird("compare", "before", "same")
    assert "skew=1" in out and "skew=4" in out


def test_fit_leaves_them_out_and_says_so(earlybird, tmp_path):
    write(tmp_path / "run")
    status, out, err = earlybird("fit", "run", "-o", "p.json")
    assert (status, out) == (2, "") and "no model describes alltoallv" in err
    assert "`earlybird show RUN`" in err and not (tmp_path / "p.json").exists()
    write_run(tmp_path / "both", planted_s, methods=("linear",), launches=1)
    write_run(tmp_path / "more", planted_s, methods=("linear",), operations=("neighbor_alltoallv",),
              variants=NEIGHBOURS, launches=1)  # fmt: skip
    status, out, err = earlybird("fit", "both", "more", "-o", "p.json")
    assert status == 0 and "no model describes neighbor_alltoallv" in out + err
    forms = json.loads((tmp_path / "p.json").read_text())["forms"]
    assert {form["what"]["operation"] for form in forms} == {"bcast"}
    for command in ("predict", "advise"):
        arguments = ("--op", "alltoallv", "--ranks", 4, "--size", 8, "--profile", "p.json")
        status, out, err = earlybird(command, "collective", *arguments)
        assert (status, out) == (2, "") and "--op is 'alltoallv', and no model describes alltoallv" in err


def test_a_persistent_operation_is_advised_as_another_call(earlybird, tmp_path):
    def time_s(operation, method, node, socket, size_bytes):
        return planted_s(operation, "linear", node, socket, size_bytes) * (2 if method == "default" else 1)

    write_run(
        tmp_path / "run", time_s, methods=("default", "persistent"), mpi="mpich", launches=2, ranks=(2, 4, 8)
    )
    assert earlybird("fit", "run", "-o", "p.json")[0] == 0
    arguments = ("--op", "bcast", "--ranks", 8, "--size", 64, "--profile", "p.json", "--config", "rules")
    status, out, _ = earlybird("advise", "collective", *arguments)
    assert status == 0 and "1. replace MPI_Bcast by MPI_Bcast_init once, MPI_Start and MPI_Wait" in out


def test_the_report_has_a_setting_for_every_skew_and_the_variables_to_set(earlybird, tmp_path):
    write(tmp_path / "run")
    status, _, _ = earlybird("report", "run", "-o", "report.html")
    page = (tmp_path / "report.html").read_text()
    assert status == 0 and "alltoallv, skew 1" in page and "alltoallv, skew 4" in page
    assert "MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM=scattered" in page


def test_the_variables_are_those_of_the_mpi_of_the_points(earlybird, tmp_path):
    """In a run of several MPIs the first launch may be of another one."""
    write(tmp_path / "run")
    launches = tmp_path / "run" / "launches.ndjson"
    other = json.dumps({"id": "other", "library_version": "Open MPI v5.0.11"})
    launches.write_text(f"{other}\n{launches.read_text()}")
    earlybird("report", "run", "-o", "report.html")
    assert "MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM=scattered" in (tmp_path / "report.html").read_text()
