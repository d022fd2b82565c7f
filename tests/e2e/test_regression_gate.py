"""The example of a step of continuous integration: exit status, JUnit XML and a table for a merge request."""

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import EARLYBIRD

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "tests" / "e2e" / "profile.json"


@pytest.fixture
def gate(tmp_path, earlybird):
    """Run gate.sh against a baseline of the planted profile, with one that is `factor` times as slow."""

    def profile(name: str, factor: float) -> str:
        value = json.loads(PROFILE.read_text())
        for level in value["levels"].values():
            for protocol in level["protocols"]:
                protocol["latency_s"] *= factor
                table = protocol["bandwidth_bytes_per_s"]
                protocol["bandwidth_bytes_per_s"] = {n: rate / factor for n, rate in table.items()}
        (tmp_path / name).write_text(json.dumps(value))
        return f"synthetic:{name}"

    of_measure = ("--sizes", "8,64KiB,1MiB")
    earlybird(
        "measure", "pingpong", "--launches", "10", "--launcher", profile("planted.json", 1), *of_measure,
        "--quiet", "-o", "run",
    )  # fmt: skip
    earlybird("baseline", "save", "planted", "run")

    def run(factor: float, baseline: str = "planted") -> subprocess.CompletedProcess:
        return subprocess.run(
            [
                ROOT / "examples" / "regression-gate" / "gate.sh", baseline,
                "--launcher", profile("now.json", factor), *of_measure, "--seed", "2",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
            env=os.environ | {"PATH": f"{EARLYBIRD.parent}:{os.environ['PATH']}"},
        )  # fmt: skip

    return run


@pytest.mark.thorough
def test_the_gate_opens_closes_and_says_why(gate, tmp_path):
    passed = gate(1.0)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "0 slower" in passed.stdout
    closed = gate(1.2)
    assert closed.returncode == 1, closed.stdout + closed.stderr
    suite = ElementTree.parse(tmp_path / "gate" / "junit.xml").getroot()[0]
    assert int(suite.get("failures")) == len(suite.findall("*/failure")) > 0
    assert "| slower |" in (tmp_path / "gate" / "summary.md").read_text()
    unknown = gate(1.0, "unknown")
    assert unknown.returncode == 2
    assert "no baselines/unknown.json" in unknown.stderr
