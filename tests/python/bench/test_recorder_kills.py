"""The verdict of a campaign, and what makes a recording wrong."""

import pytest

from bench import recorder_kills
from tests.recordings import in_memory, ring


@pytest.fixture
def campaign(monkeypatch, tmp_path):
    def run(results, *arguments):
        left = iter(results)
        monkeypatch.setattr(recorder_kills, "_compiled", lambda *arguments: tmp_path)
        monkeypatch.setattr(recorder_kills, "_kill_once", lambda *arguments: next(left))
        monkeypatch.setattr(
            recorder_kills, "chosen_flavours", lambda names: [type("F", (), {"name": name}) for name in names]
        )
        return recorder_kills.main(["--mpi", "mpich", "--kills", str(len(results)), *arguments])

    return run


def test_readable_recordings_alone_are_a_success(campaign, capsys):
    assert campaign(["readable"] * 3) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["mpich", "3", "3", "0", "0", "0", "0"]


def test_a_rank_killed_before_mpi_init_leaves_nothing_and_that_is_no_failure(campaign):
    assert campaign(["readable", "nothing yet"]) == 0


@pytest.mark.parametrize("how", ["unreadable", "wrong", "hung"])
def test_one_failure_fails(campaign, how):
    assert campaign(["readable", how]) == 1


def test_bytes_must_be_those_of_the_messages():
    assert recorder_kills._is_right(in_memory(3, ring(3, 5, 100)))
    assert not recorder_kills._is_right(in_memory(3, ring(3, 5, 101)))


def test_no_kill_is_refused(capsys):
    assert recorder_kills.main(["--kills", "0"]) == 2
    assert "give 1 or more" in capsys.readouterr().err
