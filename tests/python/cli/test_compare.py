"""`earlybird compare` on runs of the synthetic launcher: verdicts, formats, exit status, refusals."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from earlybird.data.run import Run, Sample
from tests.conftest import EARLYBIRD

PROFILE = Path(__file__).parents[2] / "e2e" / "profile.json"
SIZES = ("8", "1KiB", "64KiB", "1MiB")


@pytest.fixture
def earlybird(in_process):
    return in_process


@pytest.fixture
def measured(earlybird, tmp_path):
    """Measure a run of 12 points with a profile whose bandwidths are `factor` times the planted ones."""
    shutil.copy(PROFILE, tmp_path / "planted.json")

    def measure(name: str, factor: float = 1.0, seed: int = 1, launches: int = 5) -> Path:
        profile = json.loads(PROFILE.read_text())
        for level in profile["levels"].values():
            for protocol in level["protocols"]:
                protocol["latency_s"] /= factor
                table = protocol["bandwidth_bytes_per_s"]
                protocol["bandwidth_bytes_per_s"] = {n: rate * factor for n, rate in table.items()}
        (tmp_path / f"{name}.json").write_text(json.dumps(profile))
        earlybird(
            "measure", "contention", "--launcher", f"synthetic:{name}.json", "--sizes", ",".join(SIZES),
            "--launches", launches, "--seed", seed, "--quiet", "-o", name,
        )  # fmt: skip
        return tmp_path / name

    return measure


def compared(earlybird, *arguments: str, status: int = 0) -> dict:
    result = earlybird("compare", *arguments, "--json", check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return json.loads(result.stdout)


def test_runs_of_one_machine_are_the_same(earlybird, measured):
    measured("a", seed=1)
    measured("b", seed=2)
    found = compared(earlybird, "a", "b")
    assert {one["verdict"] for one in found["changes"]} <= {"same", "inconclusive"}
    assert found["geometric_mean"] == pytest.approx(1, abs=0.02)


@pytest.mark.thorough
def test_what_fails_is_no_verdict(measured, tmp_path):
    """Status 1 says that a point is slower. Where every line is written at once, an error comes elsewhere;
    tests/e2e/test_standard_streams.py has a full disk and a reader that ends without that."""
    measured("a", seed=1)

    def status(arguments, stdout, unbuffered=""):
        ended = subprocess.run(
            [EARLYBIRD, *arguments], cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
        errors = [line for line in ended.stderr.splitlines() if not line.startswith("warning:")]
        return ended.returncode, " ".join(errors)

    full = (3, "earlybird: cannot read or write the output: no space left on device; check the path, "
               "permissions and free space")  # fmt: skip
    with open("/dev/full", "w") as disk:
        assert status(("compare", "a", "a"), disk, unbuffered="1") == full
    code, said = status(("compare", "a", "a", "-o", "/dev/full"), subprocess.DEVNULL)
    assert code == 3 and "earlybird: cannot write /dev/full: no space left on device" in said
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as pipe:
        for unbuffered in ("", "1"):
            assert status(("compare", "a", "a"), pipe, unbuffered) == (3, "")
        assert status(("show", "a"), pipe, unbuffered="1") == (0, "")
    for command, expected in (("compare a a", 3), ("show a", 1), ("show a --json", 1), ("show --help", 1)):
        closed = subprocess.run(
            ["sh", "-c", f"exec {EARLYBIRD} {command} >&-"], cwd=tmp_path, capture_output=True, text=True
        )
        assert closed.returncode == expected
        said = closed.stderr.splitlines()[-1]
        assert said == "earlybird: cannot read or write the output: stdout is closed; redirect it"
    # Of stderr nothing is missed.
    closed = subprocess.run(["sh", "-c", f"exec {EARLYBIRD} compare a a >/dev/null 2>&-"], cwd=tmp_path)
    assert closed.returncode == 0


def test_a_slower_machine_fails_in_every_format(earlybird, measured):
    measured("a", seed=1)
    measured("b", factor=0.8, seed=2)
    found = compared(earlybird, "a", "b", status=1)
    assert {one["verdict"] for one in found["changes"]} == {"slower"}
    assert found["geometric_mean"] == pytest.approx(1.25, abs=0.03)
    for change in found["changes"]:
        assert change["ratio_low"] <= change["ratio"] <= change["ratio_high"]
        assert change["adjusted_p_value"] <= 0.05
    tree = ElementTree.fromstring(earlybird("compare", "a", "b", "--format", "junit", check=False).stdout)
    (suite,) = tree
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) == len(found["changes"])
    markdown = earlybird("compare", "a", "b", "--format", "markdown", check=False).stdout
    assert markdown.count("| slower |") == len(found["changes"])
    table = earlybird("compare", "a", "b", check=False)
    assert table.returncode == 1
    assert f"{len(found['changes'])} slower, 0 faster" in table.stdout


def test_the_faster_side_passes(earlybird, measured):
    measured("a", seed=1)
    measured("b", factor=1.25, seed=2)
    assert {one["verdict"] for one in compared(earlybird, "a", "b")["changes"]} == {"faster"}


def test_a_smaller_change_than_asked_for_is_none(earlybird, measured):
    measured("a", seed=1)
    measured("b", factor=0.8, seed=2)
    found = compared(earlybird, "a", "b", "--min-effect", "50%")
    assert {one["verdict"] for one in found["changes"]} == {"same"}


def test_few_launches_do_not_decide(earlybird, measured):
    measured("a", launches=3, seed=1)
    measured("b", factor=0.5, launches=3, seed=2)
    found = compared(earlybird, "a", "b")
    assert {one["verdict"] for one in found["changes"]} == {"inconclusive"}
    assert "too few launches" in found["notes"][0]
    compared(earlybird, "a", "b", "--strict", status=1)


def test_a_written_comparison_is_printed_again(earlybird, measured):
    measured("a", seed=1)
    measured("b", seed=2)
    printed = earlybird("compare", "a", "b", "-o", "comparison.json").stdout
    assert earlybird("show", "comparison.json").stdout == printed
    found = compared(earlybird, "a", "b")
    assert json.loads(earlybird("show", "comparison.json", "--json").stdout) == found


def test_points_of_one_side_are_listed(earlybird, measured, tmp_path):
    run = measured("a", seed=1)
    lines = (run / "samples.ndjson").read_text().splitlines(keepends=True)
    shutil.copytree(run, tmp_path / "b")
    kept = [line for line in lines if json.loads(line)["config"]["size_bytes"] != 8]
    (tmp_path / "b" / "samples.ndjson").write_text("".join(kept))
    found = compared(earlybird, "a", "b")
    assert {one["config"]["size_bytes"] for one in found["only_before"]} == {8}
    assert found["only_after"] == []
    (line,) = [
        line for line in earlybird("compare", "a", "b").stdout.splitlines() if line.startswith("only before")
    ]
    assert "8 B" in line  # which all points of this side have in common, but not with the others


def test_a_single_slower_point_is_named_in_full(earlybird, measured):
    measured("a", seed=1)
    run = measured("b", seed=1)

    def slow_down(one):
        if (one["config"]["size_bytes"], one["config"]["competitors"]) == (1024, 4):
            one["times_s"] = [2 * time_s for time_s in one["times_s"]]

    change_line(run / "samples.ndjson", slow_down)
    lines = earlybird("compare", "a", "b", "--level", "50%", "--format", "markdown", check=False).stdout
    (line,) = [line for line in lines.splitlines() if "slower |" in line]
    assert "N=4" in line and "1 KiB" in line


def change_line(path: Path, change) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        change(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_what_differs_is_named(earlybird, measured):
    measured("a", seed=1)
    run = measured("b", seed=2)
    change_line(run / "launches.ndjson", lambda one: one.update(environment={"MPIR_CVAR_X": "1"}))
    found = compared(earlybird, "a", "b")
    assert {
        "what": "environment.MPIR_CVAR_X",
        "before": "",
        "after": "1",
        "prevents_comparison": False,
    } in found["differences"]


@pytest.mark.parametrize("what", ["host", "network", "placement"])
def test_other_places_are_refused(earlybird, measured, refused, what):
    measured("a", seed=1)
    run = measured("b", seed=2)
    if what == "host":
        header = json.loads((run / "run.json").read_text())
        header["machine"]["host"] = "elsewhere"
        (run / "run.json").write_text(json.dumps(header))
    elif what == "network":
        change_line(run / "launches.ndjson", lambda one: one.update(network="cluster at 200mbit"))
    else:
        change_line(run / "launches.ndjson", lambda one: one.update(placement=[{"rank": 0, "cpus": [7]}] * 2))
    refused(earlybird("compare", "a", "b", check=False), what, "--anyway")
    compared(earlybird, "a", "b", "--anyway")


def test_two_mpis_of_one_run(earlybird, measured, refused):
    run = measured("a", seed=1)
    other = measured("b", factor=0.8, seed=2)
    for name in ("samples.ndjson", "launches.ndjson"):
        change_line(
            other / name,
            lambda one: one.update(
                launch=f"other-{one.get('launch')}", id=f"other-{one.get('id')}",
                config=one.get("config", {}) | {"mpi": "slow"},
            ),
        )  # fmt: skip
        with open(run / name, "a") as stream:
            stream.write((other / name).read_text())
    found = compared(earlybird, "a", "--mpi", "synthetic", "--mpi", "slow", status=1)
    assert found["changes"]
    assert compared(earlybird, "a", status=1) == found
    refused(earlybird("compare", "a", "a", check=False), "--mpi")
    refused(earlybird("compare", "a", "b", "--mpi", "openmpi", check=False), "no samples of openmpi")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("a",), "a second run"),
        (("a", "missing"), "missing"),
        (("a", "a", "--mpi", "x", "--mpi", "y"), "--mpi"),
        (("a", "a", "--level", "0"), "--level"),
        (("a", "a", "--min-effect", "much"), "--min-effect"),
        (("a", "a", "a", "-o", "file.json"), "-o"),
        (("a", "--guidelines", "--anyway"), "omit --anyway"),
        (("a", "--guidelines", "--folder", "kept"), "--folder"),
        (("a", "a", "--folder", "kept"), "--folder"),
    ],
)
def test_bad_input_is_refused(earlybird, measured, refused, arguments, named):
    measured("a", launches=1)
    refused(earlybird("compare", *arguments, check=False), named)


def test_runs_with_nothing_in_common(earlybird, measured, refused):
    measured("a", launches=1)
    earlybird(
        "measure", "pingpong", "--launcher", "synthetic:planted.json", "--sizes", "8", "--launches", "1",
        "--quiet", "-o", "b",
    )  # fmt: skip
    refused(earlybird("compare", "a", "b", check=False), "no point in common")


def test_a_baseline_stands_for_its_run(earlybird, measured):
    measured("a", seed=1)
    measured("b", factor=0.8, seed=2)
    earlybird("baseline", "save", "monday", "a")
    of_run, of_baseline = (
        compared(earlybird, *arguments, status=1) for arguments in (("a", "b"), ("--baseline", "monday", "b"))
    )
    for one, other in zip(of_run["changes"], of_baseline["changes"], strict=True):
        assert one["adjusted_p_value"] == other["adjusted_p_value"]
        assert one["ratio"] == pytest.approx(other["ratio"])
    (row,) = json.loads(earlybird("baseline", "list", "--json").stdout)
    assert (row["name"], row["points"], row["launches"]) == ("monday", len(of_run["changes"]), 5)
    shown = earlybird("show", "baselines/monday.json").stdout
    assert "contention" in shown
    assert re.search(r"^thread_level +none$", shown, re.MULTILINE)


def test_a_baseline_is_replaced_only_on_request(earlybird, measured, refused, tmp_path):
    measured("a", seed=1)
    measured("b", factor=0.8, seed=2)
    earlybird("baseline", "save", "monday", "a")
    before = (tmp_path / "baselines" / "monday.json").read_text()
    refused(earlybird("baseline", "save", "monday", "b", check=False), "--replace")
    assert (tmp_path / "baselines" / "monday.json").read_text() == before
    saved = json.loads(earlybird("baseline", "save", "monday", "b", "--replace", "--json").stdout)
    assert saved == {"file": "baselines/monday.json", "mpi": "synthetic", "points": 12, "launches": 5}
    assert {one["verdict"] for one in compared(earlybird, "--baseline", "monday", "b")["changes"]} == {"same"}


def test_a_foreign_file_leaves_the_other_baselines_in_the_list(earlybird, measured, tmp_path):
    measured("a")
    for name in ("monday", "wednesday"):
        earlybird("baseline", "save", name, "a")
    (tmp_path / "baselines" / "tuesday.json").write_text('{"name": ')
    listed = earlybird("baseline", "list", "--json")
    assert [one["name"] for one in json.loads(listed.stdout)] == ["monday", "wednesday"]
    (warning,) = listed.stderr.splitlines()
    assert warning.startswith("warning: tuesday.json is not listed: ") and "is not JSON" in warning


@pytest.fixture
def checked(tmp_path):
    def write(name: str) -> Path:
        run = Run.create(tmp_path / name, machine={"host": "a"}, command=["earlybird", "check"], seed=0)
        run.append_launch({"id": "check-0", "layout": "4x1x1"})
        point = {"mpi": "mpich", "part": "incast", "root": 0, "size_bytes": 8}
        run.append_samples([Sample("check", "incast", point, "check-0", np.array([1e-6, 2e-6, 1e-6]))])
        return run.path

    return write


def test_a_run_of_a_check_that_did_not_complete_is_no_baseline(earlybird, checked, refused, tmp_path):
    checked("c")
    refused(earlybird("baseline", "save", "monday", "c", check=False), "c is of `earlybird check`", "measure")
    assert not (tmp_path / "baselines").exists()


def test_runs_of_checks_are_not_to_be_continued(earlybird, checked):
    checked("c")
    checked("d")
    said = earlybird("compare", "c", "d", check=False).stderr
    assert "two launches at most" in said and "--resume" not in said


def test_only_baselines_are_listed_for_one_that_does_not_exist(earlybird, measured, refused, tmp_path):
    measured("a")
    earlybird("baseline", "save", "monday", "a")
    (tmp_path / "baselines" / "package.json").write_text('{"name": "x"}')
    refused(
        earlybird("compare", "--baseline", "none", "a", check=False), "baselines; it has monday; save one"
    )
    refused(earlybird("compare", "--baseline", "package", "a", check=False), "package.json holds no baseline")


def test_bad_baselines_are_refused(earlybird, measured, refused, tmp_path):
    measured("a", launches=1)
    refused(earlybird("compare", "--baseline", "none", "a", check=False), "no baseline none", "save")
    refused(earlybird("baseline", "save", "../x", "a", check=False), "../x")
    warned = earlybird("baseline", "save", "monday", "a")
    assert "1 launch" in warned.stderr
    path = tmp_path / "baselines" / "monday.json"
    (tmp_path / "baselines" / "tuesday.json").write_text(
        path.read_text().replace('"size_bytes": 8', '"size_bytes": [8]')
    )
    refused(earlybird("compare", "--baseline", "tuesday", "a", check=False), "size_bytes")
    path.write_text(path.read_text().replace("earlybird.baseline/1", "earlybird.baseline/9"))
    refused(earlybird("compare", "--baseline", "monday", "a", check=False), "earlybird.baseline/9")
