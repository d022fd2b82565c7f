"""The soak of partitioned transfers is refused where libearlybird, which it tests, is not built."""

import pytest

from bench import __main__ as bench


@pytest.mark.parametrize("names_it", [True, False])
def test_without_the_library_nothing_is_run(any_mpi, monkeypatch, capsys, names_it):
    monkeypatch.setattr("earlybird.toolchain.build.is_built", lambda flavour: False)
    monkeypatch.setattr("bench.commands.is_built", lambda flavour: False)
    assert bench.run(["partitioned-soak", *(["--mpi", any_mpi] if names_it else [])]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("partitioned-soak: ") and err.count("\n") == 1
    assert "run `earlybird build" in err


def test_without_the_library_alone_nothing_is_run(any_mpi, monkeypatch, capsys):
    monkeypatch.setattr("earlybird.toolchain.build.has_library", lambda flavour: False)
    assert bench.run(["partitioned-soak", "--mpi", any_mpi]) == 2
    assert f"libearlybird is not built for {any_mpi}; run `earlybird build" in capsys.readouterr().err
