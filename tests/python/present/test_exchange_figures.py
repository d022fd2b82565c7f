"""Figures of a pattern on its layout and of what an exchange tolerates, against counts by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.comparison import Comparison, EmptyExchange
from earlybird.data.layout import parse_layout, save_layout
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.data.prediction import Prediction
from earlybird.data.run import Sample
from earlybird.data.tolerance import Tolerance, ToleranceCurve, Tolerated
from earlybird.present.contents import contents
from earlybird.present.material import Material, collect
from earlybird.present.subjects.exchange import volumes
from earlybird.present.subjects.exchange.figures import ranks_figure
from earlybird.present.subjects.exchange.matrix import MAX_CELLS
from earlybird.present.subjects.exchange.sources import exchanges
from earlybird.present.subjects.exchange.view import Exchange

# On 2x2x1: ranks 0 and 1 on the sockets of node 0, 2 and 3 on those of node 1.
PATTERN = Pattern(np.array([0, 0, 2, 3]), np.array([1, 2, 3, 0]), np.array([10, 200, 3000, 40]))
LAYOUT = parse_layout("2x2x1")


def chapter(*, layout=LAYOUT, patterns=(PATTERN,), **more):
    return contents(Material(patterns=patterns, layout=layout, **more)).chapters["exchange"]


def figures(found):
    return {figure.id: figure for figure in found.figures}


def bars(figure):
    return {trace["name"]: trace["y"] for trace in figure.data}


def prediction(layout, pattern=PATTERN, num_ranks=4):
    times_s = np.full(num_ranks, 1e-3)
    return Prediction("staircase", times_s, times_s, times_s, "p", pattern.sha256(), layout=layout)


def test_the_volumes_of_ranks_and_nodes_are_stacked_by_level():
    found = figures(chapter())
    assert list(found) == ["matrix-0", "nodes-0", "volumes-0"]
    assert bars(found["volumes-0"]) == {
        "across sockets": [0, 10, 0, 3000],
        "between nodes": [40, 0, 200, 0],
    }
    assert bars(found["nodes-0"]) == {"across sockets": [10, 3000], "between nodes": [40, 200]}
    assert "rank 3, node 1, 1 message" in found["volumes-0"].data[0]["hovertext"][3]


def test_the_table_has_the_columns_of_the_paper():
    (table,) = chapter().shown
    assert dict(zip(table.header, table.rows[0], strict=True)) == {
        "layout": "2x2x1", "ranks": "4", "messages": "4", "most messages of a rank": "1",
        "volume": "3.17 KiB", "most volume of a rank": "2.93 KiB",
        "same socket": "0.0 %", "across sockets": "92.6 %", "between nodes": "7.4 %",
    }  # fmt: skip


def test_the_sentence_says_what_the_layout_means():
    assert chapter().sentence == (
        "On 2x2x1, the exchange moves 3.17 KiB in 4 messages: 0.0 % on the same socket, 93 % across sockets "
        "and 7.4 % between nodes; a rank receives at most 1 message, and if any, 10 B to 2.93 KiB (rank 3)."
    )


def test_without_a_layout_or_with_one_node_there_is_less_to_draw():
    assert set(figures(chapter(layout=None))) == {"matrix-0"}
    assert set(figures(chapter(layout=parse_layout("1x1x4")))) == {"matrix-0", "volumes-0"}


def test_the_matrix_has_sizes_and_lines_between_nodes():
    matrix = figures(chapter())["matrix-0"]
    assert matrix.data[0]["text"][0] == ["", "10", "200", ""]
    assert matrix.data[0]["text"][2] == ["", "", "", "2.9K"]
    assert {shape["x0"] for shape in matrix.layout["shapes"]} == {1.5, -0.5}
    assert "Lines separate nodes" in matrix.caption
    by_node = figures(chapter(layout=parse_layout("2x2x1", "node")))["matrix-0"]
    assert not by_node.layout["shapes"]


@pytest.mark.parametrize(
    ("num_ranks", "per_rank", "cells"), [(16, 1, 16), (200, 3, 200), (200, 40, 50), (512, 1, 64)]
)
def test_a_matrix_is_exact_while_few_ranks_or_few_pairs_keep_the_page_small(num_ranks, per_rank, cells):
    src = np.repeat(np.arange(num_ranks), per_rank)
    dst = (src + 1 + np.tile(np.arange(per_rank), num_ranks)) % num_ranks
    trace = figures(chapter(layout=None, patterns=(Pattern(src, dst, src + 1),)))["matrix-0"].data[0]
    assert len(trace["z"]) == cells and ("text" in trace) == (num_ranks <= 16)
    filled = sum(value is not None for row in trace["z"] for value in row)
    assert filled == sum(text != "" for row in trace["hovertext"] for text in row) <= MAX_CELLS**2


@pytest.mark.parametrize(
    ("num_ranks", "ticks"),
    [(7, [*range(7)]), (8, [*range(8)]), (9, [0, 2, 4, 6, 8]), (64, [*range(0, 64, 8)])],
)
def test_the_labels_of_a_matrix_have_equal_distances(num_ranks, ticks):
    src = np.arange(num_ranks)
    ring = Pattern(src, np.roll(src, -1), src + 1)
    matrix = figures(chapter(layout=None, patterns=(ring,)))["matrix-0"]
    for axis in ("xaxis", "yaxis"):
        assert matrix.layout[axis]["tickvals"] == ticks
        assert matrix.layout[axis]["ticktext"] == list(map(str, ticks))


def test_the_caption_of_times_names_what_there_is():
    predicted = figures(chapter(predictions=(prediction("2x2x1"),)))["ranks-0"]
    assert predicted.caption == "The predictions of each model."
    (exchange,) = exchanges(Material(predictions=(prediction("2x2x1"),)))
    measured = replace(exchange, measured_s=np.full(4, 1e-3))
    assert ranks_figure(measured, "a").caption == (
        "Median over iterations, then launches, and the predictions of each model."
    )
    alone = replace(measured, predicted_s={})
    assert ranks_figure(alone, "a").caption == "Median over iterations, then launches."


def test_of_many_ranks_the_one_of_each_node_with_most_is_drawn(monkeypatch):
    monkeypatch.setattr(volumes, "MAX_BARS", 3)
    found = figures(chapter())
    assert bars(found["volumes-0"]) == {"across sockets": [0, 3000], "between nodes": [40, 0]}
    assert found["volumes-0"].layout["xaxis"]["ticktext"] == ["0", "3"]
    assert "Of each node, the rank that receives most" in found["volumes-0"].caption


def test_many_ranks_of_few_nodes_are_not_a_single_bar():
    src = np.arange(1000)
    pattern = Pattern(src, (src + 1) % 1000, src + 1)
    found = figures(chapter(layout=parse_layout("1x2x500"), patterns=(pattern,)))
    assert len(found["volumes-0"].data[0]["y"]) == 250
    assert "Of each 4 ranks in order" in found["volumes-0"].caption


def test_many_nodes_are_summed_and_many_bars_are_areas(monkeypatch):
    monkeypatch.setattr(volumes, "MAX_BARS", 3)
    monkeypatch.setattr(volumes, "MAX_WIDE", 1)
    found = figures(chapter(layout=parse_layout("4x1x1")))
    assert bars(found["nodes-0"]) == {"between nodes": [50, 3200]}
    assert found["nodes-0"].data[0]["stackgroup"] and "sum over 2 nodes" in found["nodes-0"].caption
    assert found["volumes-0"].layout["xaxis"]["ticktext"] == ["0", "3"]
    assert "Of each 2 ranks in order" in found["volumes-0"].caption


def test_messages_without_bytes_have_a_reason_and_no_messages_no_figure():
    zero = Pattern(np.array([0]), np.array([1]), np.array([0]))
    assert figures(chapter(patterns=(zero,)))["volumes-0"].absence == "No message has any bytes."
    empty = Pattern(np.array([]), np.array([]), np.array([]))
    assert set(figures(chapter(patterns=(empty,)))) == {"matrix-0"}


def test_predictions_for_two_layouts_are_two_exchanges_named_by_them():
    found = chapter(layout=None, predictions=(prediction("2x2x1"), prediction("4x1x1 by node")))
    assert [row[:2] for row in found.shown[0].rows] == [
        ["layout 2x2x1", "2x2x1"],
        ["layout 4x1x1 by node", "4x1x1 by node"],
    ]
    # A prediction that does not say its layout takes the one that is given.
    (item,) = exchanges(Material(patterns=(PATTERN,), predictions=(prediction(""),), layout=LAYOUT))
    assert item.where is LAYOUT and item.predicted_s


def test_a_replay_on_a_layout_file_knows_its_nodes(tmp_path, make):
    exchange = make.pattern()
    replay = make.replay_run(tmp_path / "replay", exchange)
    value = json.loads((replay / "comparison.json").read_text()) | {"layout": "places.csv"}
    (replay / "comparison.json").write_text(json.dumps(value))
    assert exchanges(collect([replay]))[0].where is None
    save_layout(parse_layout("4x1x1"), replay / "layout.csv")
    assert len(exchanges(collect([replay]))[0].traffic.nodes) == 4


def test_errors_over_an_exchange_without_data_are_in_the_table_of_all_errors():
    measured, predicted = np.array([4e-3, 2e-3]), {"staircase": np.array([3e-3, 2e-3])}
    empty = EmptyExchange(measured / 2, {"staircase": measured}, {"staircase": 0.0}, {"staircase": 0.0})
    error = {"staircase": 1 / 6}
    comparison = Comparison(measured, predicted, error, {"staircase": -0.25}, empty=empty)
    report = contents(Material(comparisons=(comparison,)))
    assert report.chapters["accuracy"].shown[0].rows == [
        ["staircase over empty", "0.0 %", "0.0 %", "4 ms"],
        ["staircase", "16.7 %", "-25.0 %", "3 ms"],
        ["measured", "", "", "4 ms"],
    ]
    times = report.chapters["exchange"].tables[0]
    assert times.header == ["rank", "measured", "empty", "staircase", "idle"]
    assert times.rows[1] == ["1", "2 ms", "1 ms", "2 ms", "2 ms"]


def tolerance(*factors):
    curves = tuple(
        ToleranceCurve("inter_node", parameter, value, (0.5, 1.0, 2.0), times, (Tolerated(0.05, factor),))
        for (parameter, value, times), factor in zip(
            (("latency", 2e-6, (9e-6, 1e-5, 1.2e-5)), ("bandwidth", 1e10, (1.6e-5, 1e-5, 7e-6))),
            factors, strict=True,
        )
    )  # fmt: skip
    return Tolerance("fair", 4, 1e-5, curves, "2x2x1", "p", PATTERN.sha256())


def test_a_tolerance_is_drawn_and_names_what_matters_most():
    found = chapter(patterns=(), layout=None, tolerances=(tolerance(1.25, 0.9),))
    assert found.sentence == (
        "By the fair model, the exchange takes 10 us and depends most on the bandwidth between nodes: with 9 "
        "GB/s instead of 10 GB/s it takes 5 % longer."
    )
    assert found.answers[0].number == "9 GB/s" and found.answers[0].do == "send fewer bytes between nodes"
    (figure,) = found.figures
    assert [trace["name"] for trace in figure.data] == ["Latency between nodes", "Bandwidth between nodes"]
    assert figure.data[0]["y"] == [9e-6, 1e-5, 1.2e-5]
    assert figure.layout["xaxis"]["ticktext"] == ["1/2", "1", "2"]
    assert found.closing[0].rows == [
        ["between nodes", "latency", "2 us", "2.5 us (1.25x)"],
        ["between nodes", "bandwidth", "10 GB/s", "9 GB/s (0.9x)"],
    ]


def test_for_an_exchange_that_tolerates_everything_nothing_is_to_do():
    found = chapter(patterns=(), layout=None, tolerances=(tolerance(None, None),))
    assert "10 us, the same with any latency" in found.sentence
    assert [answer.do for answer in found.answers] == ["nothing to do"]
    assert found.closing[0].rows[0][3] == "any"


NODE_COUNTS = Path(__file__).parents[2] / "recorded" / "golden" / "node-counts-1.json"


def test_other_numbers_of_nodes_are_drawn_and_the_best_one_is_named():
    found = contents(collect([NODE_COUNTS])).chapters["exchange"]
    assert found.sentence == (
        "By the staircase model, the exchange of 4 ranks takes 46 us on 4 nodes, 62 us on 1 node and 96 us "
        "on 2 nodes."
    )
    (answer,) = found.answers
    assert (answer.number, answer.do) == ("46 us", "place the ranks as in the layout `4x1x1`")
    assert answer.sentence == found.sentence
    (figure,) = found.figures
    assert figure.data[-1]["x"] == [1, 2, 4]
    assert figure.data[-1]["y"] == pytest.approx([6.2e-5, 9.6e-5, 4.6e-5], rel=0.01)
    assert "between nodes 46 us" in figure.data[-1]["hovertext"][1]
    assert found.closing[0].rows[1][:3] == ["2", "2", "96 us"]


def test_numbers_of_nodes_whose_intervals_overlap_recommend_none(tmp_path):
    value = json.loads(NODE_COUNTS.read_text())
    for one in value["counts"]:
        one["time_low_s"], one["time_high_s"] = 4e-5, 1e-4
    (tmp_path / "close.json").write_text(json.dumps(value | {"notes": ["a reservation"]}))
    found = contents(collect([tmp_path / "close.json"]))
    assert not found.chapters["exchange"].answers[0].do and found.warnings == ["A reservation"]


def test_a_page_has_several_predictions_of_node_counts(tmp_path, in_process):
    (tmp_path / "a.json").write_text(NODE_COUNTS.read_text())
    (tmp_path / "b.json").write_text(NODE_COUNTS.read_text().replace('"ranks": 4', '"ranks": 8'))
    shown = in_process("report", "a.json", "b.json", "--terminal", "-o", "page.html").stdout
    assert "the exchange (a.json) of 4 ranks" in shown and "the exchange (b.json) of 8 ranks" in shown
    assert (tmp_path / "page.html").read_text().count("Time against the number of nodes: ") >= 2


def test_the_command_takes_a_layout_for_patterns(tmp_path, in_process):
    save_pattern(PATTERN, tmp_path / "mesh.csv")
    shown = in_process("report", "mesh.csv", "--layout", "2x2x1", "--map-by", "node", "--terminal").stdout
    assert "On 2x2x1 by node, the exchange moves 3.17 KiB" in shown
    for arguments, message in [
        (("mesh.csv", "--layout", "1x1x2"), "the pattern contains rank 2"),
        (("mesh.csv", "--map-by", "node"), "--layout, which is missing"),
        (("p.json", "--layout", "2x2x1"), "--layout 2x2x1 is for patterns, but none is given"),
    ]:
        (tmp_path / "p.json").write_text(json.dumps(prediction("2x2x1").to_json()))
        refused = in_process("report", *arguments, "--terminal", check=False)
        assert refused.returncode == 2
        assert message in refused.stderr and refused.stderr.count("\n") == 1


def test_an_exchange_that_packs_says_so():
    config = {"mpi": "mpich", "packing": "strided", "packing_by": "loop"}
    sample = Sample("exchange", "exchange", config, "0", np.ones(3))
    assert "strided data packed by loop" in Exchange("run", "", 2, None, samples=(sample,)).title
    plain = Sample("exchange", "exchange", {"mpi": "mpich"}, "0", np.ones(3))
    assert "packed" not in Exchange("run", "", 2, None, samples=(plain,)).title
