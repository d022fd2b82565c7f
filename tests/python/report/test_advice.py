"""Advice is told by gain, each with its interval and what does it; several pieces stand together."""

import json

import plotly.graph_objects as go

from earlybird.data.advice import Advice, Alternative, Stretch
from earlybird.report import axes, page
from earlybird.report.chapters import chapters
from earlybird.report.material import Material
from earlybird.report.terminal import render


def chapter(*pieces):
    return next(one for one in chapters(Material(advice=pieces)) if one.id == "advice")


def bcast(**more):
    ranked = (
        Alternative("pipeline:8192", 1e-4, 1.9, "use FILE", None, (1.7, 2.1), {"segment_bytes": 8192}),
        Alternative("default", 1.9e-4, 1.0, "nothing"),
    )
    stretches = (Stretch(1, 4096, "default", "nothing"), Stretch(4096, 1 << 20, "pipeline:8192", "use FILE"))
    asked = {"operation": "bcast", "ranks": 8, "size_bytes": 1 << 16, "map_by": "node"}
    return Advice("collective", asked, "default", ranked, stretches, **more)


def test_the_largest_gain_comes_first_with_interval_and_setting(make):
    told = chapter(make.advice(1.4), bcast())
    assert "1.90 times as fast as the MPI's own choice (95 %: 1.70 to 2.10)" in told.sentence
    assert "Broadcast: 64 KiB, 8 ranks, mapped by node" in told.sentence
    assert [step.do for step in told.steps] == ["use FILE", "set A=1"]
    assert "pipeline in segments of 8 KiB" in told.steps[0].what
    assert "6 ms (95 %: 5.8 ms to 6.2 ms), 1.40 times as fast as one message" in told.steps[1].gain
    assert "a message per partition, 16 contexts" in told.steps[1].what
    assert [row[3] for row in told.shown[1].rows] == ["1.40", "1.00"]
    assert told.shown[0].rows[0][-2:] == ["1.70 to 2.10", "use FILE"]
    assert told.shown[0].caption.endswith("; gain over the MPI's own choice")
    assert not told.absent


def test_a_layout_that_tells_the_mapping_tells_it_alone():
    asked = {"operation": "bcast", "ranks": 8, "map_by": "node", "layout": "4x1x2 by node"}
    advice = Advice("collective", asked, "default", (Alternative("default", 1e-6, 1.0, "nothing"),))
    assert chapter(advice).steps[0].what.startswith("Broadcast: 8 ranks, layout 4x1x2 by node: ")


def test_crossovers_are_a_strip_of_colours(make):
    (figure,) = chapter(make.advice()).figures
    go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    assert figure.sentence == ("Best is one message up to 100 KiB and a message per partition from 100 KiB.")
    single, many, letters = figure.data
    assert (single["fillcolor"], many["fillcolor"]) == (axes.color("single"), axes.color("many"))
    assert single["x"][1] == many["x"][0] == 100 << 10 and "extrapolated" in many["text"]
    assert letters["text"] == ["S", "M"]


def test_where_nothing_gains_the_chapter_says_so():
    advice = Advice("pipeline", {"threads": 1}, "single", (Alternative("single", 1e-6, 1.0, "leave it"),))
    told = chapter(advice)
    assert "one message is already the best, there is nothing to gain" in told.sentence
    assert told.figures == [] and told.tables == []


def test_without_advice_the_command_that_gives_some_is_named(make):
    none = chapter()
    assert none.absent[0][1].startswith("earlybird advise pipeline") and not none.lines
    assert none.absent[1][1].startswith("earlybird advise collective")
    material = Material(comparisons=(make.comparison(make.pattern()),))
    assert "the slowest rank" in next(one for one in chapters(material) if one.id == "advice").lines[0]


def test_notes_name_the_advice_they_belong_to_and_the_same_is_said_once(make):
    note = "outside of what was measured"
    assert "Outside of what was measured" in chapter(make.advice(notes=(note,))).lines
    lines = chapter(make.advice(notes=(note,)), bcast(notes=(note, "8 ranks share 2 cores"))).lines
    assert len(lines) == 3 and "Broadcast" in lines[1] and "a buffer that threads fill" in lines[1]
    assert lines[2].endswith("8 ranks share 2 cores")


def test_a_file_of_settings_can_be_copied_from_the_page():
    html = page.render(Material(advice=(bcast(extra={"config": "2\n7 <b>\n"}),)))
    assert "The settings as a file" in html and "2\n7 &lt;b&gt;\n</pre>" in html


def test_settings_tell_how_they_are_used_and_what_is_extrapolated():
    config = {
        "kind": "rules",
        "text": "2\n7\n",
        "use": "mpiexec --mca FILE",
        "left_out": ["linear from 9 bytes up"],
    }
    ranked = (
        Alternative("linear", 1e-4, None, "do it", extra={"algorithm": "linear", "extrapolated": ["ranks"]}),
    )
    stretches = (Stretch(1, 64, "linear", "do it", {"extrapolated": ["ranks", "size_bytes"]}),)
    asked = {
        "operation": "reduce",
        "ranks": 4,
        "size_bytes": 8,
        "map_by": "core",
        "layout": "1x1x4",
        "root": 0,
    }
    told = chapter(Advice("collective", asked, "", ranked, stretches, extra={"config": config}))
    assert told.listings == [
        ("The settings as a file (mpiexec --mca FILE): reduce: 8 B, 4 ranks, mapped by core, layout 1x1x4",
         "2\n7\n")
    ]  # fmt: skip
    assert told.lines[-1].endswith("beside the rest: linear from 9 bytes up")
    (table,) = told.shown
    assert table.header == ["method", "time", "95 %", "gain", "95 %", "extrapolated", "what to do"]
    assert table.rows[0][5] == "ranks" and told.tables[0].rows[0][4] == "extrapolated in ranks and size"
    assert not chapter(bcast(extra={"config": {"text": None}})).listings


def test_the_terminal_numbers_the_steps(make):
    text = render(Material(advice=(make.advice(), bcast())))
    flat = " ".join(text.split())
    assert "1. Broadcast: 64 KiB, 8 ranks" in flat and "Do: use FILE" in flat and "2. A buffer that" in flat
    assert max(map(len, text.splitlines())) <= 100
    assert "there is none" not in flat and "no advice" not in flat


def test_an_operation_and_words_that_this_version_does_not_know_are_told_as_they_are():
    asked = {"colour": "red", "size_bytes": "big", "ranks": None, "window_bytes": 2048}
    alternative = Alternative(
        "<b>method</b>", 1e-6, None, "do it", extra={"deep": {"a": 1}, "on": True, "wait_s": 2e-6}
    )
    told = Advice("shuffle", asked, "", (alternative,), (Stretch(0, 8, "<b>method</b>", "do it"),))
    (step,) = chapter(told).steps
    assert step.what == "Shuffle: size big, colour red, window 2 KiB: <b>method</b>."
    assert "a gain is not known" in step.gain
    assert chapter(told).shown[0].rows[0][5:] == ["-", "yes", "2 us", "do it"]
    html = page.render(Material(advice=(told,)))
    assert "<b>method</b>" not in html
    assert "&lt;b&gt;method" in json.dumps([list(figure.data) for figure in chapter(told).figures])
