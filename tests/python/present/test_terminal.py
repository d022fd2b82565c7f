"""The terminal output has the same answers, in at most 100 columns of plain text."""

from earlybird.present.contents import contents
from earlybird.present.core.table import Column, Table
from earlybird.present.material import Material, collect
from earlybird.present.render import text as terminal
from earlybird.present.render.terminal import cut_lines


def test_all_sentences_and_errors_fit_into_100_columns(everything):
    material = collect(everything)
    text = terminal.render(material)
    assert max(map(len, text.splitlines())) <= 100
    flat = " ".join(text.split())
    for chapter in contents(material).chapters.values():
        assert chapter.question in flat and chapter.sentence in flat
    assert "staircase 7.0 % -7.0 %" in flat


def test_long_names_are_truncated_and_control_characters_replaced(tmp_path, make):
    run = make.measured_run(tmp_path / "run", host="h\x1b[31m" + "x" * 300)
    text = terminal.render(collect([run]))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_commands_that_are_wrapped_can_be_pasted(everything):
    text = terminal.render(collect(everything))
    start = text.index("    earlybird predict exchange")
    command = text[start : text.index("\n\n", start)]
    assert "`" not in command
    assert all(line.endswith(" \\") for line in command.splitlines()[:-1])


def test_many_ranks_are_a_short_table_of_the_slowest(make):
    exchange = make.pattern(300)
    text = terminal.render(Material(patterns=(exchange,), comparisons=(make.comparison(exchange, 300),)))
    assert "the 8 slowest of 300" in " ".join(text.split())
    assert len(text.splitlines()) < 80


def test_without_input_the_commands_are_shown():
    text = terminal.render(Material())
    assert "`earlybird measure pingpong contention completion -o run`" in text


def test_values_that_rows_share_become_headings_of_a_table_that_is_too_wide():
    def columns(width):
        return [
            Column("level", lambda row: "same socket", common=True),
            Column("threads", lambda row: row[0], common=True),
            Column("size", lambda row: row[1], common=True),
            Column("method", lambda row: row[2], left=True),
            Column("what it is", lambda row: width * "x"),
        ]

    items = [(1, "8 B", "single"), (1, "8 B", "many"), (1, "64 B", "single"), (2, "8 B", "single")]
    wide = cut_lines(Table("", columns(80), items))
    assert wide[0] == "level same socket:" and wide[1].split() == ["size", "method", "what", "it", "is"]
    assert [line.split()[:2] for line in wide[2:]] == [
        ["threads", "1:"], ["8", "B"], ["many", 80 * "x"], ["64", "B"], ["threads", "2:"], ["8", "B"],
    ]  # fmt: skip
    narrow = cut_lines(Table("", columns(8), items))
    assert narrow[0].split()[:3] == ["level", "threads", "size"] and len(narrow) == 5
    assert max(map(len, cut_lines(Table("", columns(200), items)))) == 100
