"""The verdict of a campaign."""

import pytest

from bench import session_kills


@pytest.mark.parametrize(("left", "status"), [("nothing", 0), ("processes", 1), ("shared memory", 1)])
def test_nothing_left_alone_is_a_success(monkeypatch, capsys, left, status):
    results = iter(["nothing", left])
    monkeypatch.setattr(session_kills, "_end_once", lambda *arguments: next(results))
    monkeypatch.setattr(
        session_kills, "chosen_flavours", lambda names: [type("F", (), {"name": name}) for name in names]
    )
    assert session_kills.main(["--mpi", "mpich", "--kills", "2"]) == status
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["mpich", "2"]


def test_no_kill_is_refused(capsys):
    assert session_kills.main(["--kills", "0"]) == 2
    assert "give 1 or more" in capsys.readouterr().err
