"""The chapter on guidelines of collectives."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from earlybird.data.guidelines import load_guidelines
from earlybird.present.material import Material, collect
from earlybird.present.render.html import render
from earlybird.present.render.text import render as render_terminal
from earlybird.present.subjects.guidelines.chapter import guidelines_chapter

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden" / "guidelines-1.json"


@pytest.fixture
def golden():
    return load_guidelines(GOLDEN)


def test_without_guidelines_there_is_no_chapter():
    assert guidelines_chapter(Material()).sentence == ""


def test_the_worst_violation_is_the_answer_with_its_remedy(golden):
    chapter = guidelines_chapter(Material(guidelines=(golden,)))
    (answer,) = chapter.answers
    assert (answer.number, answer.interval) == ("+212 %", "+205 % .. +219 %")
    assert "1 of 2 checks violated, allgather(64 B) <= gather(64 B) + bcast(256 B) most" in answer.sentence
    assert answer.do.startswith("call gather and bcast instead")
    assert "1 violated, 0 inconclusive, 1 holds of 2 checks; 1 unchecked" in chapter.sentence
    assert [row[-1] for row in chapter.tables[0].rows] == ["violated", "holds"]
    (to_do,) = chapter.shown
    assert [(row[0], row[-1]) for row in to_do.rows] == [(golden.checks[0].text(), answer.do)]
    assert chapter.tables[1].rows == [
        ["allgather <= gather + bcast", "1", "0", "0"], ["split of bcast", "0", "0", "1"],
    ]  # fmt: skip
    assert chapter.lines[-1].startswith("Not checked: barrier <= allreduce")


def test_ratios_are_drawn_by_size_with_intervals(golden):
    (figure,) = guidelines_chapter(Material(guidelines=(golden,))).figures
    drawn = {trace["name"]: trace for trace in figure.data}
    assert set(drawn) == {"allgather &lt;= gather + bcast", "split of bcast"}
    trace = drawn["allgather &lt;= gather + bcast"]
    assert (trace["x"], trace["y"]) == ([64], [3.12])
    assert trace["error_y"]["arrayminus"] == [pytest.approx(3.12 - 3.05)]


def test_nothing_violated_is_nothing_to_do(golden):
    kept = replace(golden, checks=golden.checks[1:])
    (answer,) = guidelines_chapter(Material(guidelines=(kept,))).answers
    assert (answer.sentence, answer.do) == ("No guideline is violated.", "nothing to do")


def test_the_page_and_the_terminal_show_a_file_of_guidelines(tmp_path):
    value = json.loads(GOLDEN.read_text())
    path = tmp_path / "guidelines.json"
    path.write_text(json.dumps(value))
    material = collect([path])
    assert "Which collectives take longer" in render(material)
    text = render_terminal(material)
    assert "allgather(64 B) <= gather(64 B)" in text and "violated" in text
    assert "Each collective was measured in 10 launches or more." in text
