"""`earlybird report` on the command line: the page is written atomically, errors are one sentence."""

import sys

import pytest

from earlybird.cli import main


def run_command(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["earlybird", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main.run()
    return caught.value.code


def test_page_and_terminal_are_written_by_one_call(monkeypatch, capsys, everything, tmp_path):
    assert run_command(monkeypatch, *everything, "-o", tmp_path / "page.html", "--terminal") == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    output = capsys.readouterr()
    assert "3. How far off was the prediction?" in output.out
    assert "page.html" in output.err and "page.html" not in output.out


def test_terminal_alone_writes_no_file(monkeypatch, capsys, everything, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert run_command(monkeypatch, *everything, "--terminal") == 0
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("arguments", [["notes.txt"], ["absent"], ["run", "-o", "no/such/folder/page.html"]])
def test_bad_input_is_one_sentence_and_status_2(monkeypatch, capsys, tmp_path, make, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    make.measured_run(tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    assert run_command(monkeypatch, *arguments) == 2
    output = capsys.readouterr()
    assert output.err.startswith("earlybird: ") and output.err.count("\n") == 1 and not output.out
    assert sorted(tmp_path.rglob("*")) == before
