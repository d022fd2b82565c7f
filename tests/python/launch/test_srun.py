"""Slurm's srun: how a layout becomes its words, and a launch through a stand-in for it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.launch import local
from earlybird.launch.launcher import Request
from earlybird.launch.local import SrunLauncher
from earlybird.launch.mpiexec import Invocation
from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.toolchain.build import require_built

# Takes the words that srun is given, and lets mpiexec start as many ranks.
STAND_IN = """#!/bin/sh
printf '%s ' "$@" > "$(dirname "$0")/words"
while [ $# -gt 0 ]; do
  case "$1" in
    -n) ranks=$2; shift 2;;
    -N) shift 2;;
    --*) shift;;
    *) break;;
  esac
done
exec {mpiexec} -n "$ranks" -bind-to core "$@"
"""


@pytest.fixture
def srun(tmp_path, monkeypatch):
    """Put a stand-in for srun on PATH; returns its folder."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(mpiexec):
        (folder / "srun").write_text(STAND_IN.format(mpiexec=mpiexec))
        (folder / "srun").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        return folder

    return make


def launcher(family="mpich"):
    return SrunLauncher(Flavour(family, family, "1", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec")))


def words_for(monkeypatch, layout, family="mpich") -> list[str]:
    caught: list[Invocation] = []
    monkeypatch.setattr(local, "_launch", lambda *arguments: caught.append(arguments[3]))
    launcher(family).launch(Request("0", "pingpong", [], layout), Path(), lambda *told: None)
    return list(caught[0].words)


@pytest.mark.parametrize(
    ("layout", "map_by", "distribution"),
    [
        ("2x1x4", "core", "block:block"),
        ("2x2x2", "core", "block:block"),
        ("2x2x2", "socket", "block:cyclic"),
        # One rank per socket: filling a socket first would put both on one.
        ("1x2x1", "core", "block:cyclic"),
        ("2x4x1", "core", "block:cyclic"),
        ("4x1x2", "node", "cyclic:block"),
        ("1x1x1", "core", "block:block"),
    ],
)
def test_a_layout_becomes_a_distribution(monkeypatch, layout, map_by, distribution):
    asked = parse_layout(layout, map_by)
    words = words_for(monkeypatch, asked)
    assert words[:5] == ["srun", "-n", str(asked.num_ranks), "-N", str(asked.num_nodes)]
    assert f"--distribution={distribution}" in words
    assert "--cpu-bind=cores" in words


def test_each_mpi_gets_the_plugin_it_speaks(monkeypatch):
    assert "--mpi=pmix" in words_for(monkeypatch, parse_layout("1x1x2"), "openmpi")
    assert "--mpi=pmi2" in words_for(monkeypatch, parse_layout("1x1x2"), "mpich")


def test_a_layout_that_srun_cannot_place_is_refused(srun):
    srun("none")
    uneven = Layout(np.array([0, 0, 1]), np.array([0, 0, 0]), "uneven.csv")
    with pytest.raises(InputError, match=r"uneven\.csv"):
        launcher().check(uneven)
    launcher().check(parse_layout("2x1x2"))


def test_without_srun_the_launcher_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="not on PATH"):
        launcher().check(parse_layout("1x1x2"))


@pytest.mark.mpi
def test_measuring_through_srun(earlybird, tmp_path, srun):
    try:
        flavour = find_flavour("mpich")
        require_built(flavour)
    except InputError as error:
        pytest.skip(str(error))
    folder = srun(flavour.mpiexec)
    earlybird("measure", "pingpong", "--launcher", "srun", "--mpi", "mpich", "--levels", "intra_socket",
              "--sizes", "8", "--launches", "1", "--budget", "1s", "-o", "run")  # fmt: skip
    assert "-n 2 -N 1 --mpi=pmi2" in (folder / "words").read_text()
    (launch,) = [json.loads(line) for line in (tmp_path / "run" / "launches.ndjson").read_text().splitlines()]
    assert (launch["launcher"], launch["exit"], launch["binding"]) == ("srun", 0, "core, by Slurm")
    assert launch["command_line"][0] == "srun"
    assert shutil.which("srun") == str(folder / "srun")
