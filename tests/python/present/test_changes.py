"""The chapter on comparisons of runs and histories."""

import json
from pathlib import Path

import pytest

from earlybird.data.history import load_history
from earlybird.data.run_comparison import load_run_comparison, run_comparison_from_json
from earlybird.present.contents import contents
from earlybird.present.material import Material, collect
from earlybird.present.render.html import render
from earlybird.present.render.text import render as render_terminal
from earlybird.present.subjects.changes.chapter import changes_chapter

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden"


@pytest.fixture
def comparison():
    return load_run_comparison(GOLDEN / "run-comparison-1.json")


@pytest.fixture
def history():
    return load_history(GOLDEN / "history-1.json")


def test_nothing_to_compare_is_no_chapter():
    assert changes_chapter(Material()).sentence == ""


def test_a_comparison_names_the_slowest_point_and_what_differs(comparison):
    chapter = changes_chapter(Material(run_comparisons=(comparison,)))
    (answer,) = chapter.answers
    assert (answer.number, answer.interval) == ("+20 %", "+18 % .. +21 %")
    assert "1 point slower, pingpong 64 KiB most" in answer.sentence
    assert answer.do == "check what differs: version"
    assert chapter.shown[0].rows == [["version", "5.0.1", "5.0.2"]]
    assert [row[0] for row in chapter.tables[0].rows] == ["pingpong 64 KiB", "pingpong 8 B"]


def test_its_figures_show_every_point_with_its_interval(comparison):
    whiskers, by_size = changes_chapter(Material(run_comparisons=(comparison,))).figures
    drawn = {trace["name"]: trace for trace in whiskers.data}
    assert drawn["slower"]["x"] == [pytest.approx(comparison.changes[1].ratio.value - 1)]
    assert drawn["slower"]["y"] == ["pingpong 64 KiB"]
    assert by_size.data[0]["x"] == [8, 65536]


def test_nothing_slower_is_nothing_to_do(comparison):
    value = json.loads((GOLDEN / "run-comparison-1.json").read_text())
    value["changes"] = value["changes"][:1]
    chapter = changes_chapter(Material(run_comparisons=(run_comparison_from_json(value),)))
    assert chapter.answers[0].do == "nothing to do"
    assert len(chapter.figures) == 1  # one size is no line


def test_a_history_is_dated(history):
    chapter = changes_chapter(Material(histories=(history,)))
    (answer,) = chapter.answers
    assert answer.number == "+10 %"
    assert "slower from 2026-11-07 03:00 on, by a step" in answer.sentence
    assert answer.do == "check what differs since then: version"
    (figure,) = chapter.figures
    (trace,) = figure.data
    assert len(trace["x"]) == len(history.runs)
    (table,) = chapter.brief
    assert table.header == ["from", "kind", "change", "point", "run"]  # no drift that has an end
    assert [row[0] for row in table.rows] == ["2026-11-07 03:00"]
    assert trace["y"][-1] == pytest.approx(0.1, abs=0.03)


def test_both_are_inputs_of_a_report(comparison):
    material = collect([GOLDEN / "run-comparison-1.json", GOLDEN / "history-1.json"])
    assert contents(material).answers[0].what == f"{comparison.after} against {comparison.before}"
    assert "What became slower?" in render(material)
    assert "+20 %" in render_terminal(material)
