"""`earlybird build` prepares several MPIs at the same time, and one that fails takes none along."""

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from earlybird.cli import build_command, main
from earlybird.cli.common import note
from earlybird.data.errors import WorkError
from earlybird.machine.flavours import Flavour


@pytest.fixture
def build(monkeypatch, capsys):
    """build(prepare, *names) runs the command with `prepare(name)` in place of installing and compiling;
    returns the exit status, stdout and stderr."""

    def run(prepare, *names):
        mpicc = Path("/mpi/bin/mpicc")
        flavour_of = {name: Flavour(name, "mpich", "1.0", mpicc, mpicc.parent / "mpiexec") for name in names}
        monkeypatch.setattr(build_command, "install_flavour", lambda name, say: None)
        monkeypatch.setattr(build_command.flavours, "find_flavour", flavour_of.get)
        monkeypatch.setattr(build_command, "build_native", lambda flavour, say: prepare(flavour.name))
        words = [word for name in names for word in ("--mpi", name)]
        monkeypatch.setattr(sys, "argv", ["earlybird", "build", *words])
        with pytest.raises(SystemExit) as end:
            main.run()
        return end.value.code, *capsys.readouterr()

    return run


def test_every_mpi_is_prepared_while_the_others_are_and_told_in_the_order_asked(build):
    meeting, first_told = threading.Barrier(3, timeout=60), threading.Event()

    def prepare(name):
        meeting.wait()  # breaks where one waits for another's end
        if name == "mpich":  # ends last
            assert first_told.wait(60)
        elif name == "intel":
            first_told.set()
        return f"/built/{name}"

    status, out, err = build(prepare, "mpich", "openmpi", "intel", "mpich")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"{name} 1.0 is ready: /built/{name}" for name in ("mpich", "openmpi", "intel")
    ]


def test_what_several_say_at_once_comes_in_whole_lines(monkeypatch):
    written = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=written.append, flush=lambda: None))
    note("installing mpich")
    assert written == ["installing mpich\n"]


def test_the_others_are_ready_where_one_fails(build):
    ready = []

    def prepare(name):
        if name == "openmpi":
            raise WorkError("the moon is in the way")
        ready.append(name)
        return f"/built/{name}"

    status, out, err = build(prepare, "mpich", "openmpi", "intel")
    assert (status, err) == (1, "earlybird: the moon is in the way\n")
    assert out == "mpich 1.0 is ready: /built/mpich\n"
    assert sorted(ready) == ["intel", "mpich"]
