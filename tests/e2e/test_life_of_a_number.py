"""docs/developers/life-of-a-number.md is true: commands run, claims hold, functions that it names exist."""

import ast
import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "developers" / "life-of-a-number.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.(?:py|cpp|c|h)):([\w.:]+)`", PAGE)))
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
MINUTES = 5
WORDS_PER_MINUTE = 230


def _names_of_python(path: Path) -> set[str]:
    """Functions, classes and, as Class.name, what stands inside classes."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return names


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda value: value)
def test_every_function_named_is_there(file, name):
    if file.endswith(".py"):
        assert name in _names_of_python(ROOT / "src" / "earlybird" / file)
    else:
        definition = rf"^\w[\w:<>&* ]*[ &*]{re.escape(name)}\("
        assert re.search(definition, (ROOT / "native" / file).read_text(), re.MULTILINE)


def test_the_page_names_its_hops_and_is_read_in_five_minutes():
    assert len(NAMED) > 40
    assert len(PAGE.split()) < MINUTES * WORDS_PER_MINUTE


def _steps(block: str) -> list[tuple[str, str]]:
    """(command, what it prints) of each `$ ` line."""
    return [
        (step.partition("\n")[0], step.partition("\n")[2])
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]


@pytest.fixture(scope="module")
def followed(tmp_path_factory) -> Path:
    """A folder in which every command of the page was run in order and printed what the page says."""
    folder = tmp_path_factory.mktemp("life")
    shutil.copytree(ROOT / "examples" / "worked", folder / "examples" / "worked")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in BLOCKS:
        for command, printed in _steps(block):
            result = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=dict(os.environ) | {"PATH": path},
                capture_output=True, text=True,
            )  # fmt: skip
            assert result.returncode == 0, f"{command}\n{result.stderr}"
            assert result.stdout == printed or not printed, command
    return folder


def _figures(page: Path) -> dict:
    """The figures of a page, which are compressed inside it."""
    packed = re.search(r'<script type="text/plain" id="figures">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(gzip.decompress(base64.b85decode(packed[1])))


@pytest.mark.thorough
@pytest.mark.mpi
def test_a_time_sample_arrives_in_the_report(any_mpi, followed):
    lines = (followed / "run" / "samples.ndjson").read_text().splitlines()
    samples = [json.loads(line) for line in lines]
    # The kernel printed nine digits, and nothing has touched them since.
    for line in lines:
        (times,) = re.findall(r'"times_s": \[(.*?)\]', line)
        digits = [re.sub(r"e.*|\D", "", word).lstrip("0") for word in times.split(", ")]
        assert max(map(len, digits)) <= 9
    # A busy machine may have spent the budget before the second launch.
    assert 1 <= len({sample["launch"] for sample in samples}) <= 2
    launched = [np.median(s["times_s"][s["warmup"] :]) for s in samples if s["config"]["size_bytes"] == 1024]
    expected_s = np.median(launched)

    points = json.loads((followed / "points.json").read_text())["points"]
    (printed,) = [point for point in points if point["size_bytes"] == 1024]
    assert printed["time_s"] == pytest.approx(expected_s, rel=1e-12)

    traces = _figures(followed / "report.html")["time-intra_socket"]["data"]
    (curve,) = [trace for trace in traces if trace["mode"] == "lines+markers"]
    assert curve["y"][curve["x"].index(1024)] == pytest.approx(expected_s, rel=1e-12)

    profile = json.loads((followed / "profile.json").read_text())
    (form,) = profile["forms"]
    protocol = [p for p in form["parameters"]["protocols"] if p["min_bytes"] <= 1024][-1]
    fitted_s = protocol["latency_s"] + 1024 / protocol["bandwidth_bytes_per_s"]
    (line,) = [trace for trace in traces if trace.get("meta") == "fit"]
    drawn = [y for x, y in zip(line["x"], line["y"], strict=True) if x == 1024]
    assert any(y == pytest.approx(fitted_s, rel=1e-9) for y in drawn)
    assert list(profile["levels"]) == ["intra_socket"]


@pytest.mark.thorough
@pytest.mark.mpi
def test_a_message_arrives_as_a_bar(any_mpi, followed):
    prediction = json.loads((followed / "prediction.json").read_text())
    assert prediction["receive_s"][:2] == pytest.approx([20e-6, 36.67e-6], rel=1e-3)
    assert prediction["time_s"][0] == pytest.approx(38.67e-6, rel=1e-3)
    traces = [trace for figure in _figures(followed / "exchange.html").values() for trace in figure["data"]]
    bars = [trace["y"] for trace in traces if trace.get("type") == "bar"]
    assert any(np.allclose(y, prediction["time_s"], rtol=1e-9) for y in bars)
