"""`earlybird build` prepares several MPIs in parallel; a failure does not affect the others."""

import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from earlybird.cli import main
from earlybird.cli.commands import build as build_command
from earlybird.data.errors import WorkError
from earlybird.machine.flavours import Flavour
from earlybird.present.render.notes import note


@pytest.fixture
def build(monkeypatch, capsys):
    """build(prepare, *names) runs the command with `prepare(name)` in place of installing and compiling;
    returns the exit status, stdout and stderr."""

    def run(prepare, *names, json=False):
        mpicc = Path("/mpi/bin/mpicc")
        flavour_of = {name: Flavour(name, "mpich", "1.0", mpicc, mpicc.parent / "mpiexec") for name in names}
        monkeypatch.setattr(build_command, "install_flavour", lambda name, say: None)
        monkeypatch.setattr(build_command.flavours, "find_flavour", flavour_of.get)
        monkeypatch.setattr(build_command, "build_native", lambda flavour, say: prepare(flavour.name))
        arguments = [text for name in names for text in ("--mpi", name)]
        monkeypatch.setattr(sys, "argv", ["earlybird", "build", *arguments, *(["--json"] if json else [])])
        with pytest.raises(SystemExit) as end:
            main.run()
        return end.value.code, *capsys.readouterr()

    return run


def test_mpis_are_prepared_in_parallel_and_reported_in_order(build):
    meeting, first_prepared = threading.Barrier(3, timeout=60), threading.Event()

    def prepare(name):
        meeting.wait()  # fails if one waits for another to finish
        if name == "mpich":  # finishes last
            assert first_prepared.wait(60)
        elif name == "intel":
            first_prepared.set()
        return f"/built/{name}"

    status, out, err = build(prepare, "mpich", "openmpi", "intel", "mpich")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"{name} 1.0 is ready: /built/{name}" for name in ("mpich", "openmpi", "intel")
    ]


def test_the_builds_are_listed_as_json(build):
    status, out, _ = build(lambda name: f"/built/{name}", "mpich", "intel", json=True)
    built = json.loads(out)["built"]
    assert status == 0
    assert [(one["name"], one["version"], one["prefix"]) for one in built] == [
        ("mpich", "1.0", "/built/mpich"),
        ("intel", "1.0", "/built/intel"),
    ]


def test_concurrent_notes_are_whole_lines(monkeypatch):
    written = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=written.append, flush=lambda: None))
    note("installing mpich")
    assert written == ["installing mpich\n"]


def test_the_others_are_ready_if_one_fails(build):
    ready = []

    def prepare(name):
        if name == "openmpi":
            raise WorkError("the disk is full")
        ready.append(name)
        return f"/built/{name}"

    status, out, err = build(prepare, "mpich", "openmpi", "intel")
    assert (status, err) == (1, "earlybird: the disk is full\n")
    assert out == "mpich 1.0 is ready: /built/mpich\n"
    assert sorted(ready) == ["intel", "mpich"]
