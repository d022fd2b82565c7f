"""Runs commands in this process: these tests check output and errors, not the end of a process."""

import pytest

from earlybird.cli import main


@pytest.fixture
def earlybird(in_process):
    return in_process


@pytest.fixture
def run_main(monkeypatch, capsys):
    """run_main(*arguments) runs `earlybird` in the current folder: (exit status, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["earlybird", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main.run()
        return (end.value.code, *capsys.readouterr())

    return run
