"""`earlybird history` over synthetic nights: a step is dated to the night, a drift to the week."""

import csv
import io
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.run import Run, Sample

NIGHTS, FIRST = 60, datetime(2026, 9, 1, 3, tzinfo=UTC)
SIZES = (8, 1024, 65536, 1 << 20)
STEP_AT, DRIFT_FROM = 40, 20


@pytest.fixture
def earlybird(in_process):
    return in_process


def write_night(folder: Path, night: int, slower: dict[int, float], random, version: str) -> None:
    started = (FIRST + timedelta(days=night)).isoformat()
    run = Run.create(folder / f"night-{night:02}", machine={"host": "a"}, command=[], seed=1, started=started)
    level = {"mpi": "mpich", "level": "intra_socket"}
    for launch in range(3):
        run.append_launch({"id": f"l{launch}", "version": version, "layout": "1x1x2"})
        luck = 0.005 * random.standard_normal()
        noise = {size: 0.01 * random.standard_normal(10) for size in SIZES}
        run.append_samples(
            Sample(
                "pingpong", "time", level | {"size_bytes": size}, f"l{launch}",
                (1e-6 + size / 1e10) * slower.get(size, 1.0) * np.exp(luck + noise[size]),
            )
            for size in SIZES
        )  # fmt: skip


@pytest.fixture(scope="module")
def nightly(tmp_path_factory):
    """With a step at one size, a drift at another, and a new version from the step on."""
    folder = tmp_path_factory.mktemp("nightly")
    random = np.random.default_rng(5)
    for night in range(NIGHTS):
        drift = np.clip((night - DRIFT_FROM) / (NIGHTS - DRIFT_FROM), 0, 1)
        slower = {1024: 1.06 if night >= STEP_AT else 1.0, 65536: 1 + 0.08 * drift}
        write_night(folder, night, slower, random, "5.0.2" if night >= STEP_AT else "5.0.1")
    return sorted(folder.iterdir())


def test_changes_are_dated(earlybird, nightly):
    found = json.loads(earlybird("history", *nightly[::-1], "--json").stdout)
    changes = {one["config"]["size_bytes"]: one["changes"] for one in found["series"]}
    assert changes[8] == changes[1 << 20] == []
    (step,), (drift,) = changes[1024], changes[65536]
    assert (step["kind"], step["first"]) == ("step", STEP_AT)
    assert step["ratio"] == pytest.approx(1.06, abs=0.01)
    assert drift["kind"] == "drift"
    assert abs(drift["first"] - DRIFT_FROM) <= 7
    assert found["differences"][str(STEP_AT)][0] == {
        "what": "version", "before": "5.0.1", "after": "5.0.2", "prevents_comparison": False,
    }  # fmt: skip


def test_the_table_names_the_night_and_what_differs(earlybird, nightly):
    printed = earlybird("history", *nightly).stdout
    day = (FIRST + timedelta(days=STEP_AT)).strftime("%Y-%m-%d")
    assert any(day in line and "step" in line and "+6" in line for line in printed.splitlines())
    assert f"from {day} 03:00: version: 5.0.1 -> 5.0.2" in printed


def test_other_formats(earlybird, nightly, tmp_path):
    rows = list(csv.DictReader(io.StringIO(earlybird("history", *nightly, "--format", "csv").stdout)))
    assert {row["kind"] for row in rows} == {"step", "drift"}
    rows = list(csv.DictReader(io.StringIO(earlybird("history", *nightly, "--format", "otava").stdout)))
    assert len(rows) == NIGHTS
    assert float(rows[0]["pingpong 1 MiB"]) == pytest.approx(1e-6 + (1 << 20) / 1e10, rel=0.05)
    printed = earlybird("history", *nightly, "-o", "history.json").stdout
    assert earlybird("show", "history.json").stdout == printed


def test_clean_histories_raise_no_alarm(earlybird, tmp_path):
    random = np.random.default_rng(7)
    for night in range(NIGHTS):
        write_night(tmp_path, night, {}, random, "5.0.1")
    printed = earlybird("history", *sorted(tmp_path.glob("night-*"))).stdout
    assert printed.strip().endswith("0 changes of 4 points")


def test_too_few_runs_are_refused(earlybird, nightly, refused):
    refused(earlybird("history", *nightly[:5], check=False), "at least 6")
    refused(earlybird("history", nightly[0], check=False), "1 run is no history")
    refused(earlybird("history", "missing", check=False), "missing")
    refused(earlybird("history", *nightly[:7], nightly[3], check=False), "night-03 is given twice")
    for level in ("0", "0.001%", "100%"):
        refused(earlybird("history", *nightly[:6], "--level", level, check=False), "--level")


@pytest.mark.parametrize(
    ("started", "problem"),
    [
        ("", "which is no time"),
        ("monday", "which is no time"),
        ("0001-01-01T00:00:00+23:00", "which is no time"),
    ],
)
def test_a_start_that_is_no_time_is_refused(earlybird, nightly, refused, tmp_path, started, problem):
    copy = tmp_path / "copy"
    shutil.copytree(nightly[0], copy)
    header = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(header | {"started": started}))
    refused(earlybird("history", copy, *nightly[1:7], check=False), problem)


def test_it_warns_of_runs_of_several_hosts(earlybird, nightly, tmp_path):
    for number, night in enumerate(nightly[:12]):
        header = json.loads((night / "run.json").read_text())
        copy = tmp_path / night.name
        shutil.copytree(night, copy)
        (copy / "run.json").write_text(json.dumps(header | {"machine": {"host": "ab"[number % 2]}}))
    assert "several hosts, a and b" in earlybird("history", *sorted(tmp_path.glob("night-*"))).stderr


def test_it_warns_of_runs_that_cannot_show_a_change(earlybird, nightly):
    assert "at least 12 runs can" in earlybird("history", *nightly[:9]).stderr
    assert "only with at least 6 runs" in earlybird("history", *nightly[:12]).stderr
    assert earlybird("history", *nightly).stderr == ""
