"""Tables fit a terminal and are cut there; elsewhere they are plain, complete and as wide as needed."""

import io
import re

import pytest

from earlybird.cli.session import progress
from earlybird.present.core.table import Column, Table, text_table
from earlybird.present.render import terminal as printing
from earlybird.present.render.terminal import FIRST_ROWS, LONG_TABLE, WIDE_TABLE, fits, print_table

HEADER = ["name", "a long column", "n"]
ROWS = [["first [bold]", "a sentence that is longer than all of the others", 1], ["second", "short", 10]]
PLAIN = """\
name                                             a long column   n
first [bold]  a sentence that is longer than all of the others   1
second                                                   short  10
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """terminal(columns) makes stdout and stderr a terminal of so many columns, and returns it."""

    def open_terminal(columns=40):
        stream = Terminal()
        for name, value in {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return open_terminal


def test_a_file_gets_plain_lines_of_any_width(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    print_table(text_table("", HEADER, ROWS, left=("name",)))
    assert capsys.readouterr().out == PLAIN


def columns_with(note):
    """Two common columns, of which only the second one changes, and two of each item."""
    return [
        Column("place", lambda item: "here", common=True),
        Column("size", lambda item: item // 2, common=True),
        Column("n", lambda item: item),
        Column("note", lambda item: note),
    ]


def test_a_wide_table_names_above_it_what_all_rows_have_in_common():
    wide = columns_with("x" * WIDE_TABLE)
    assert fits(Table("", columns_with("x"), range(4))) and not fits(Table("", wide, range(4)))
    same, table = Table("", wide, range(4)).split()
    assert same == "place here"
    assert table.header == ["size", "n", "note"]
    assert [row[:2] for row in table.sparse_rows] == [["0", "0"], ["", "1"], ["1", "2"], ["", "3"]]
    same, table = Table("", wide, range(1)).split()
    assert (same, table.header) == ("place here, size 0", ["n", "note"])


def test_a_table_that_is_cut_keeps_its_sums_and_counts_the_other_rows():
    columns = [Column("size", lambda item: item[0]), Column("count", lambda item: item[1])]
    whole = Table("Sizes", columns, [(1, 5), (2, 3), (4, 1)]).summed(("all", 9))
    assert whole.first(3, "size").rows == whole.rows and whole.rows[-1] == ["all", "9"]
    cut = whole.first(1, "size", "in the file")
    assert (cut.caption, cut.rows) == ("Sizes; 2 more sizes in the file", [["1", "5"], ["all", "9"]])


def test_the_width_of_a_terminal_decides(terminal):
    table = Table("", columns_with("x" * 40), range(4))
    terminal(40)
    assert not fits(table)
    terminal(80)
    assert fits(table)


def plain(stream):
    return re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())


def test_a_terminal_gets_lines_of_its_width_with_the_same_cells(terminal):
    stream = terminal()
    print_table(text_table("", HEADER, ROWS, left=("name",)))
    lines = plain(stream).splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 40
    assert set(" ".join(lines).split()) >= {"name", "first", "[bold]", "second", "short", "10"}


def test_a_table_that_fits_is_the_plain_one(terminal):
    stream = terminal(200)
    print_table(text_table("", HEADER, ROWS, left=("name",)))
    assert [line.rstrip() for line in plain(stream).splitlines()] == PLAIN.splitlines()


@pytest.mark.parametrize("num_rows", [LONG_TABLE, LONG_TABLE + 1])
def test_a_long_table_is_cut_on_a_terminal_only(terminal, capsys, monkeypatch, num_rows):
    rows = [[f"row{k}"] for k in range(num_rows)]
    stream = terminal()
    print_table(text_table("", ["name"], rows))
    cut = num_rows > LONG_TABLE
    assert stream.getvalue().count("row") == (FIRST_ROWS if cut else num_rows) + cut
    assert (f"\n{num_rows - FIRST_ROWS} more rows; --all prints them\n" in stream.getvalue()) == cut
    monkeypatch.setattr(printing, "_prints_all", True)
    print_table(text_table("", ["name"], rows))
    assert f"row{num_rows - 1}" in stream.getvalue()
    monkeypatch.undo()
    print_table(text_table("", ["name"], rows))
    assert capsys.readouterr().out.count("row") == num_rows


def test_all_prints_all_ranks_and_holds_for_one_command(in_process, tmp_path):
    (tmp_path / "p.csv").write_text("src,dst,bytes\n" + "".join(f"{k},{k + 1},1000\n" for k in range(99)))
    arguments = ("show", "p.csv")
    assert "--all" in in_process("show", "--help").stdout
    assert "--all" not in in_process("gain", "--help").stdout
    in_process(*arguments, "--all")
    assert printing.prints_all()
    in_process(*arguments)
    assert not printing.prints_all()


def test_progress_on_a_terminal_is_one_line_that_fits_and_vanishes(terminal):
    stream = terminal(80)
    line = progress.ProgressLine()
    line.update(1, 4, "collective of a description too long for a terminal 1x1x4 8 B", 3.0, None)
    assert "\n" not in plain(stream)
    drawn = plain(stream).rpartition("\r")[2]
    assert "25 %" in drawn and "1 of up to 4" in drawn and "8 B" not in drawn and len(drawn) <= 80
    before = len(stream.getvalue())
    line.close()
    assert "\x1b[2K" in stream.getvalue()[before:]
    line.close()


def test_in_a_pipe_long_names_are_folded_and_nothing_is_lost(capsys):
    name = "std::vector<std::map<int, double>>::exchange(int, int, double const*, std::function<void(int)>)"
    rows = [["MPI_Recv", name, "1 s"], ["MPI_Send", "main", "2 s"]]
    columns = [
        Column("call", lambda row: row[0], left=True),
        Column("in", lambda row: row[1], left=True, folded=True),
        Column("time", lambda row: row[2]),
    ]
    print_table(Table("", columns, rows))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and max(map(len, lines)) <= WIDE_TABLE
    place = slice(lines[0].index("in"), lines[0].index("time"))
    assert " ".join(line[place].strip() for line in lines[1:3]) == name
    assert lines[1].endswith("1 s") and lines[3].split() == ["MPI_Send", "main", "2", "s"]
    # A column that may be copied, such as a setting, stays whole.
    print_table(text_table("", ["call", "in", "time"], rows, ["call", "in"]))
    assert name in capsys.readouterr().out
