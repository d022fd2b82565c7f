"""Advice is sorted by speed-up and shown with intervals and the settings to use."""

import json
from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest

from earlybird.data.advice import Advice, Alternative, SizeRange
from earlybird.data.schema import Estimate
from earlybird.present.contents import contents
from earlybird.present.core import axes
from earlybird.present.material import Material, collect
from earlybird.present.render import html as page
from earlybird.present.render.text import render


def chapter(*pieces):
    return contents(Material(advice=pieces)).chapters["advice"]


def cells(table, head):
    return [row[table.header.index(head)] for row in table.rows]


def bcast(**more):
    ranked = (
        Alternative(
            "pipeline:8192",
            Estimate.exact(1e-4),
            Estimate(1.9, 1.7, 2.1),
            "use FILE",
            "measured",
            measured_speed_up=Estimate(1.9, 1.7, 2.1),
            extra={"segment_bytes": 8192},
        ),
        Alternative("default", Estimate.exact(1.9e-4), Estimate.exact(1.0), "nothing"),
    )
    size_ranges = (
        SizeRange(1, 4096, "default", "nothing"),
        SizeRange(4096, 1 << 20, "pipeline:8192", "use FILE"),
    )
    asked = {"operation": "bcast", "ranks": 8, "size_bytes": 1 << 16, "map_by": "node"}
    return Advice("collective", asked, "default", ranked, size_ranges, **more)


def test_advice_is_sorted_by_speed_up_with_interval_and_setting(make):
    result = chapter(make.advice(1.4), bcast())
    assert "speed-up 1.90 over the MPI's default (95 %: 1.70 .. 2.10), measured" in result.sentence
    table = result.shown[0]
    assert "Broadcast: 64 KiB, 8 ranks, mapped by node" in result.sentence
    first, second = result.answers
    assert (first.do, second.do) == ("use FILE", "set A=1")
    assert "pipeline in segments of 8 KiB" in first.sentence
    assert (second.number, second.interval) == ("speed-up 1.40", "1.30 .. 1.50")
    assert "With message per partition, 16 contexts instead of single message" in second.sentence
    assert "6 ms (5.8 ms .. 6.2 ms)" in second.sentence
    assert cells(result.shown[1], "speed-up (95 %)") == ["1.40 (1.30 .. 1.50)", "1.00"]
    assert cells(table, "speed-up (95 %)")[0] == cells(table, "measured")[0] == "1.90 (1.70 .. 2.10)"
    assert (cells(table, "basis")[0], cells(table, "what to do")[0]) == ("measured", "use FILE")
    assert table.caption.endswith("; speed-up over the MPI's default")
    assert not result.absent


def test_the_mapping_is_not_repeated_if_the_layout_includes_it():
    asked = {"operation": "bcast", "ranks": 8, "map_by": "node", "layout": "4x1x2 by node"}
    advice = Advice(
        "collective",
        asked,
        "default",
        (Alternative("default", Estimate.exact(1e-6), Estimate.exact(1.0), "nothing"),),
    )
    assert chapter(advice).answers[0].what == "Broadcast: 8 ranks, layout 4x1x2 by node"


def test_crossovers_are_a_strip_of_colours(make):
    (figure,) = chapter(make.advice()).figures
    go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    assert figure.sentence == (
        "Advised: single message up to 100 KiB and message per partition from 100 KiB."
    )
    single, many, letters = figure.data
    assert (single["fillcolor"], many["fillcolor"]) == (axes.color("single"), axes.color("many"))
    assert single["x"][1] == many["x"][0] == 100 << 10 and "extrapolated" in many["text"]
    assert letters["text"] == ["S", "M"]


def test_the_chapter_reports_that_the_reference_is_the_fastest():
    advice = Advice(
        "pipeline",
        {"threads": 1},
        "single",
        (Alternative("single", Estimate.exact(1e-6), Estimate.exact(1.0), "leave it"),),
    )
    result = chapter(advice)
    assert "no method is clearly faster than single message" in result.sentence
    assert result.answers[0].do == "nothing to do"
    assert result.shown[0].rows[0][-1] == "nothing to do"
    assert result.figures == [] and result.tables == []


def test_an_algorithm_that_the_mpi_cannot_select_is_for_comparison():
    ranked = (
        Alternative("pipeline:8192", Estimate.exact(3.6e-4), Estimate(1.09, 1.05, 1.2), "A=2 B=3"),
        Alternative("own-binomial", Estimate.exact(1e-4), Estimate(4.0, 3.0, 5.0), "send along a tree"),
        Alternative("default", Estimate.exact(4e-4), Estimate.exact(1.0), "nothing: the default"),
    )
    result = chapter(Advice("collective", {"operation": "bcast", "ranks": 8}, "default", ranked))
    (answer,) = result.answers
    assert answer.number == "speed-up 1.09" and answer.do == "start the job with `A=2 B=3 mpiexec ...`"
    assert cells(result.shown[0], "what to do")[1] == "for comparison; the MPI cannot select it"


def test_size_ranges_whose_ends_read_the_same_are_merged(make):
    def merged(*ends_and_methods):
        ranges = tuple(SizeRange(low, high, method, "do it") for low, high, method in ends_and_methods)
        (figure,) = chapter(replace(make.advice(), size_ranges=ranges)).figures
        return figure.sentence

    first = (1024, 1030, "earlybird"), (1030, 8192, "single"), (8192, 1 << 20, "many")
    assert merged(*first) == "Advised: single message up to 8 KiB and message per partition from 8 KiB."
    middle = (512, 8192, "single"), (8192, 8200, "earlybird"), (8200, 1 << 20, "many")
    assert (
        merged(*middle) == "Advised: single message up to 8.01 KiB and message per partition from 8.01 KiB."
    )
    again = (512, 8192, "single"), (8192, 8200, "earlybird"), (8200, 1 << 20, "single")
    assert merged(*again) == "Advised at every size: single message."


def test_without_advice_there_is_no_chapter_but_the_commands():
    report = contents(Material())
    assert "advice" not in report.chapters
    pipeline, collective = (one for one in report.absent if one.question == "What should I do?")
    assert pipeline.command.startswith("earlybird advise pipeline")
    assert "&& earlybird advise collective --op bcast --ranks 4 --profile" in collective.command


def test_notes_refer_to_their_advice_and_are_not_repeated(make):
    note = "outside of what was measured"
    assert "Outside of what was measured" in chapter(make.advice(notes=(note,))).warnings
    notes = chapter(make.advice(notes=(note,)), bcast(notes=(note, "8 ranks share 2 cores"))).warnings
    assert notes[0] == "Outside of what was measured"  # of both
    assert len(notes) == 2 and notes[1].startswith("Broadcast") and notes[1].endswith("share 2 cores")


def test_a_file_of_settings_can_be_copied_from_the_page():
    html = page.render(Material(advice=(bcast(extra={"config": "2\n7 <b>\n"}),)))
    assert "The settings as a file" in html and "2\n7 &lt;b&gt;\n</pre>" in html


def test_settings_show_their_use_and_what_is_extrapolated():
    config = {
        "kind": "rules",
        "text": "2\n7\n",
        "use": "mpiexec --mca FILE",
        "left_out": ["linear from 9 bytes up"],
    }
    ranked = (
        Alternative(
            "linear",
            Estimate.exact(1e-4),
            None,
            "do it",
            extra={"algorithm": "linear", "extrapolated": ["ranks"]},
        ),
    )
    size_ranges = (SizeRange(1, 64, "linear", "do it", {"extrapolated": ["ranks", "size_bytes"]}),)
    asked = {
        "operation": "reduce",
        "ranks": 4,
        "size_bytes": 8,
        "map_by": "core",
        "layout": "1x1x4",
        "root": 0,
    }
    result = chapter(Advice("collective", asked, "", ranked, size_ranges, extra={"config": config}))
    assert result.listings == [
        ("The settings as a file (mpiexec --mca FILE): reduce: 8 B, 4 ranks, mapped by core, layout 1x1x4",
         "2\n7\n")
    ]  # fmt: skip
    assert result.warnings[-1].endswith("so they are left out: linear from 9 bytes up")
    (table,) = result.shown
    assert table.header == ["", "algorithm", "extrapolated", "time", "basis", "what to do"]
    assert cells(table, "extrapolated") == ["ranks"]
    assert cells(result.tables[0], "extrapolated") == ["in ranks and size"]
    assert not chapter(bcast(extra={"config": {"text": None}})).listings


def test_settings_for_several_operations_are_shown_once():
    collected = collect([Path(__file__).parents[2] / "recorded" / "golden" / "collectives-advice-1.json"])
    result = contents(collected).chapters["advice"]
    assert [answer.what.partition(":")[0] for answer in result.answers] == ["Broadcast", "Barrier"]
    ((title, text),) = result.listings
    assert text == "2  # operations\n" and "broadcast: " in title and "barrier: " in title
    assert len(result.warnings) == 1


def test_the_terminal_begins_with_every_piece_of_advice(make):
    text = render(Material(advice=(make.advice(), bcast())))
    flat = " ".join(text.split())
    assert flat.startswith("Answers ------- Broadcast: 64 KiB, 8 ranks, mapped by node: speed-up 1.90 (1.70")
    assert flat.index("Do: use FILE") < flat.index("A buffer that") < flat.index("1. What should I do?")
    assert max(map(len, text.splitlines())) <= 100
    assert "there is none" not in flat and "no advice" not in flat


def test_unknown_operations_and_keys_are_shown_unchanged():
    asked = {"colour": "red", "size_bytes": 8, "ranks": None, "window_bytes": 2048}
    alternative = Alternative(
        "<b>method</b>",
        Estimate.exact(1e-6),
        None,
        "do it",
        extra={"deep": {"a": 1}, "on": True, "wait_s": 2e-6},
    )
    advice = Advice("shuffle", asked, "", (alternative,), (SizeRange(0, 8, "<b>method</b>", "do it"),))
    (answer,) = chapter(advice).answers
    assert answer.what == "Shuffle: 8 B, colour red, window 2 KiB"
    assert (answer.number, answer.sentence) == ("1 us", "<b>method</b>.")
    table = chapter(advice).shown[0]
    assert [cells(table, head) for head in ("on", "wait", "what to do")] == [["yes"], ["2 us"], ["do it"]]
    html = page.render(Material(advice=(advice,)))
    assert "<b>method</b>" not in html
    assert "&lt;b&gt;method" in json.dumps([list(figure.data) for figure in chapter(advice).figures])


def test_a_layout_is_called_one_and_has_no_measured_columns():
    ranked = (
        Alternative("core", Estimate.exact(2e-3), Estimate.exact(1.0), "--map-by core"),
        Alternative("node", Estimate.exact(3e-3), Estimate(0.7, 0.6, 0.8), "--map-by node"),
    )
    found = chapter(Advice("layout", {"layout": "2x1x4", "model": "fair"}, "core", ranked))
    assert (
        "The layout of an exchange: layout 2x1x4, model fair: no layout is clearly faster" in found.sentence
    )
    assert any("Replay the advised exchange" in line for line in found.lines)
    assert found.shown[0].header == ["", "layout", "time", "speed-up (95 %)", "basis", "what to do"]


@pytest.mark.parametrize(
    ("operation", "noun"),
    [("layout", "layout"), ("partition", "partition"), ("aggregate", "number of leaders")],
)
def test_alternatives_of_exchanges_keep_their_own_names_and_are_only_predicted(operation, noun):
    ranked = (
        Alternative("partitioned", Estimate.exact(1e-3), Estimate(2.0, 1.9, 2.1), "use FILE"),
        Alternative("single", Estimate.exact(2e-3), Estimate.exact(1.0), "--map-by core"),
    )
    found = chapter(Advice(operation, {"layout": "2x1x2"}, "single", ranked))
    assert "With partitioned instead of single: time 1 ms, speed-up 2.00" in found.answers[0].sentence
    assert found.sentence.endswith("), predicted.")
    for table in (*found.shown, *found.brief):
        assert cells(table, noun) == ["partitioned", "single"]
    assert found.shown[0].caption.endswith("; speed-up over single")
    stay = chapter(Advice(operation, {}, "partitioned", ranked))
    assert f"no {noun} is clearly faster than partitioned" in stay.sentence
    assert stay.answers[0].sentence.endswith("partitioned (predicted).")
