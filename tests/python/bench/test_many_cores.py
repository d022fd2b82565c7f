"""Launches that are packed, run by the script alone, and collected."""

import subprocess
from types import SimpleNamespace

import pytest

from bench import many_cores
from bench.__main__ import run
from earlybird.data.errors import InputError
from earlybird.data.run import Run
from tests.conftest import require_mpi


@pytest.mark.mpi
def test_a_script_measures_what_was_packed(tmp_path, monkeypatch):
    require_mpi("mpich")
    monkeypatch.setattr(many_cores, "MEASURED", {"msgrate": {"threads": (2,), "methods": ("shared",)}})
    monkeypatch.setattr(many_cores, "LAUNCHES", 2)
    monkeypatch.setattr(many_cores, "_MEASURING_SHARE", 0.02)
    packed, run = tmp_path / "packed", tmp_path / "run"
    assert many_cores.main(["pack", str(packed), "--cores", "2", "--minutes", "0.2"]) == 0
    with pytest.raises(InputError, match="no launches that have ended"):
        many_cores.main(["collect", str(packed), "-o", str(run)])
    environment = {"PATH": "/usr/bin:/bin"}
    subprocess.run(["sh", packed / "run.sh"], env=environment, check=True, timeout=120)
    assert many_cores.main(["collect", str(packed), "-o", str(run)]) == 0
    collected = Run.open(run)
    assert [launch["exit"] for launch in collected.launches()] == [0, 0]
    assert [sample.config["threads"] for sample in collected.samples()] == [2, 2]
    assert len({sample.launch for sample in collected.samples()}) == 2


def test_too_few_cores_are_refused(tmp_path):
    with pytest.raises(InputError, match="--cores is 1"):
        many_cores.main(["pack", str(tmp_path / "packed"), "--cores", "1"])


def test_the_arguments_of_a_comparison_reach_it(tmp_path, capsys):
    assert run(["many-cores", "pack", str(tmp_path / "packed"), "--cores", "1"]) == 2
    assert "--cores is 1" in capsys.readouterr().err
    assert run(["recorder-kill"]) == 2


def test_threads_that_contend_are_measured_with_every_number_of_lanes():
    of_16_cores = many_cores.requests(SimpleNamespace(family="mpich", name="mpich", label="mpich"), 16, 660)
    lanes = {
        request.vcis: request.environment.get("EARLYBIRD_LANES")
        for request in of_16_cores
        if request.vcis and "earlybird" in request.methods and request.threads == 8
    }
    assert lanes == {1: None, 2: "2", 4: "4", 8: "8", 16: "16"}
    others = many_cores.requests(SimpleNamespace(family="openmpi", name="openmpi", label="openmpi"), 16, 660)
    assert others and not any(request.environment.get("EARLYBIRD_LANES") for request in others)
