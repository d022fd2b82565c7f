"""Projections: the change that saves most, every change with its interval, and what is assumed."""

import dataclasses

from earlybird.data import files
from earlybird.data.projection import (
    AGGREGATION,
    LAYOUT,
    ProjectedChange,
    ProjectedPhase,
    Projection,
    WorkBalance,
)
from earlybird.data.schema import Estimate
from earlybird.present.contents import contents
from earlybird.present.material import Material, collect
from earlybird.present.render import html as page
from earlybird.present.render.text import render
from earlybird.record.advice import advise_program
from tests.recordings import in_memory, ring

ASSUMED = {LAYOUT: "computation takes the same time on the other layout"}


PHASE_S, RUN_S = 1.0, 2.0


def change(kind, name, of_run):
    """A change of phase 1 that makes the run faster by value, low and high."""
    low, value, high = of_run
    time_s = Estimate(*(PHASE_S - (RUN_S - RUN_S / ratio) for ratio in (value, high, low)))
    return ProjectedChange(
        kind,
        name,
        f"do {name}",
        time_s,
        Estimate(*(PHASE_S / one for one in time_s)),
        Estimate(value, low, high),
    )


def projection(*changes, recording="rec", notes=()):
    halo = ProjectedPhase(
        1, ("Isend", "Waitall"), ("exchange <halo>",), 100, PHASE_S, 0.5, 0.4, changes, notes
    )
    other = ProjectedPhase(2, ("Allreduce",), (), 100, 0.2, 0.2)
    return Projection(recording, 8, RUN_S, "2x1x4", phases=(halo, other), assumptions=ASSUMED)


CLEAR = change(LAYOUT, "4x1x2", (1.1, 1.2, 1.3))
SMALL = change(AGGREGATION, "64 to 8 messages", (0.9, 1.01, 1.1))


def chapter(*projections):
    return contents(Material(projections=projections)).chapters["projection"]


def test_the_change_that_saves_most_is_the_answer():
    result = chapter(projection(SMALL, CLEAR, notes=("less than half was predicted",)))
    (answer,) = result.answers
    assert (answer.number, answer.interval, answer.do) == ("speed-up 1.20", "1.10 .. 1.30", "do 4x1x2")
    assert "the layout 4x1x2" in answer.sentence and "by phase 1" in answer.sentence
    assert "1.20 times as fast (95 %: 1.10 .. 1.30)" in result.sentence
    assert any("Layout: assumes that computation" in line for line in result.lines)
    assert list(result.warnings) == ["Phase 1: less than half was predicted"]
    phases, changes = result.shown
    assert [row[1] for row in changes.rows] == ["the layout 4x1x2", "64 to 8 messages"]
    assert [row[-2] for row in phases.rows] == ["500 ms", "200 ms"] and phases.rows[1][-1] == ""


def test_of_a_change_that_is_not_known_the_page_says_why():
    unknown = dataclasses.replace(
        CLEAR, time_s=None, speed_up=None, run_speed_up=None, reason="nothing can be said: no core"
    )
    result = chapter(projection(unknown))
    assert "No change is clearly faster." in result.answers[0].sentence and not result.figures
    (row,) = result.shown[1].rows
    assert "unknown" in row and any("nothing can be said: no core" in cell for cell in row)
    assert "unknown" in page.render(Material(projections=(projection(unknown, CLEAR),)))


def test_of_a_change_of_which_a_bound_is_known_the_page_gives_no_more():
    bound = dataclasses.replace(
        change(AGGREGATION, "64 to 8 messages", (1.1, 1.2, 4.0)),
        time_s=Estimate(0.667, 0.05, 0.818), speed_up=Estimate(1.5, 1.22, 20.0),
    )  # fmt: skip
    result = chapter(projection(bound))
    answer = result.answers[0]
    assert "at most 818 ms" in result.shown[1].rows[0]
    assert (answer.number, answer.interval) == ("speed-up at least 1.10", "")
    advised = contents(Material(advice=(advise_program(projection(bound)),))).chapters["advice"]
    assert advised.answers[0].number == "speed-up at least 1.10" and not advised.answers[0].interval
    assert "at most 1.82 s" in advised.sentence
    assert "at most 1.82 s" in advised.answers[0].sentence and "4.00" not in str(advised.shown[0].rows)


def test_a_layout_that_slows_another_phase_as_much_down_is_no_advice():
    faster = projection(CLEAR)
    slower = ProjectedChange(
        LAYOUT, "4x1x2", "", Estimate.exact(0.6), Estimate.exact(1 / 3), Estimate.exact(2 / 2.4)
    )
    phases = (faster.phases[0], dataclasses.replace(faster.phases[1], changes=(slower,)))
    assert chapter(dataclasses.replace(faster, phases=phases)).answers[0].do == "nothing to do"


def test_a_change_that_is_not_clearly_faster_is_no_advice():
    for found, text in (
        (projection(SMALL), "No change is clearly faster."),
        (projection(), "no change to project."),
    ):
        result = chapter(found)
        assert text in result.answers[0].sentence and result.answers[0].do == "nothing to do"
        assert len(result.figures) == len(found.phases[0].changes)
        assert len(result.shown) == 1 + bool(found.phases[0].changes)


def test_projections_of_recordings_with_one_name_are_told_apart(tmp_path):
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    for path in paths:
        files.write_json(path, projection(CLEAR).to_json())
    material = collect(paths)
    titles = [answer.what for answer in contents(material).chapters["projection"].answers]
    assert titles == [f"Program recorded in rec, 8 ranks, {path.name}" for path in paths]


def test_the_page_and_the_terminal_have_every_change():
    material = Material(projections=(projection(CLEAR, SMALL),))
    html, text = page.render(material), render(material)
    for word in ("4x1x2", "64 to 8 messages"):
        assert word in html and word in text
    assert "exchange &lt;halo&gt;" in html and "exchange <halo>" not in html


def test_a_recording_without_a_projection_says_how_to_make_one():
    material = Material(recordings=(in_memory(4, ring(4)),))
    assert any("&& earlybird project " in one.command for one in contents(material).absent)
    assert not any("earlybird project " in one.command for one in contents(Material()).absent)
    first, *_ = (one.command for one in contents(material).absent)
    assert first.startswith("earlybird measure ") and " && earlybird advise program " in first


def test_uneven_work_is_what_to_do_where_no_change_is_clear():
    uneven = dataclasses.replace(projection(SMALL), balance=WorkBalance(3, 1.5, 1.0))
    result = chapter(uneven)
    assert result.answers[0].do.startswith("distribute the work evenly: rank 3 computes for 1.5 s")
    assert any("500 ms shorter, 25 %" in text for text in result.warnings)
    advised = contents(Material(advice=(advise_program(uneven),))).chapters["advice"]
    assert "distribute the work evenly" in advised.answers[0].do


def test_advice_for_a_program_says_what_it_assumes_and_nothing_of_pipelines():
    result = contents(Material(advice=(advise_program(projection(CLEAR)),))).chapters["advice"]
    assert "layout: computation takes the same time" in " ".join(result.lines)
    assert "Where a point was measured" not in " ".join(result.lines)
    assert "a recorded program: " in result.sentence.lower()
    assert "measured speed-up" not in result.shown[0].header
