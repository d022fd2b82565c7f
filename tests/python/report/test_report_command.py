"""`earlybird report` as a user types it: the page whole or not at all, errors in one sentence."""

import sys

import pytest

from earlybird.cli import main


def run_command(monkeypatch, *words) -> int:
    monkeypatch.setattr(sys, "argv", ["earlybird", "report", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        main.run()
    return caught.value.code


def test_page_and_terminal_come_from_one_call(monkeypatch, capsys, everything, tmp_path):
    assert run_command(monkeypatch, *everything, "-o", tmp_path / "page.html", "--terminal") == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    told = capsys.readouterr()
    assert "4. How far off was the prediction?" in told.out
    assert "page.html" in told.err and "page.html" not in told.out


def test_terminal_alone_writes_no_file(monkeypatch, capsys, everything, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert run_command(monkeypatch, *everything, "--terminal") == 0
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("words", [["notes.txt"], ["absent"], ["run", "-o", "no/such/folder/page.html"]])
def test_bad_input_is_one_sentence_and_status_2(monkeypatch, capsys, tmp_path, make, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    make.measured_run(tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    assert run_command(monkeypatch, *words) == 2
    told = capsys.readouterr()
    assert told.err.startswith("earlybird: ") and told.err.count("\n") == 1 and not told.out
    assert sorted(tmp_path.rglob("*")) == before
