"""The chapter on recordings: what costs most first, then matrices, sizes, calls, ranks and communicators."""

import dataclasses
import random
import re
import sys

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.analysis.communicators import topology_text
from earlybird.cli import main
from earlybird.data.recorded_rank import Arrivals, Communicator, OpenCall, Step
from earlybird.data.recording import load_recording
from earlybird.present.contents import contents
from earlybird.present.material import Material, collect
from earlybird.present.render import html as page
from earlybird.present.render.text import render
from earlybird.present.subjects.recording.chapter import MAX_DRAWN
from earlybird.present.subjects.recording.ranks import MAX_BARS, MAX_COLUMNS
from earlybird.present.subjects.recording.tables import MAX_PAIRS, MAX_RANKS
from tests.recordings import (
    WAITALL,
    add_traces,
    entries,
    halo,
    in_memory,
    on_disk,
    open_call_file,
    rank_file,
    ring,
)


def waiting(rank):
    return 0.2 + 0.1 * (rank % 5)


def material(*recordings, names=()):
    names = tuple(names) or tuple(f"rec{k}" for k in range(len(recordings)))
    return Material(recordings=recordings, names={"recordings": names}, paths={"recordings": names})


def chapter(*recordings):
    found = contents(material(*recordings)).chapters["recording"]
    for figure in found.figures:
        if not figure.absence:
            go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    return found


def figure(found, id):
    return next(one for one in found.figures if one.id == f"recording-{id}")


def table(found, start):
    return next(one for one in found.tables if one.caption.startswith(start))


@pytest.fixture(scope="module")
def eight():
    messages = [*halo(2), (2, 5, 7, 1 << 20)]
    return in_memory(8, messages, waiting, host=lambda rank: f"n{rank % 2}")


def test_the_first_sentence_names_the_call_with_most_time_and_its_spread(eight):
    sentence = chapter(eight).sentence
    # (2 + 3 + 4 + 5 + 6 + 2 + 3 + 4) / 10 s in 8 runs of 2 s
    assert sentence.startswith(
        "MPI_Waitall takes the most time of all calls: 18 % of the run, from 10 % on rank 0 to 30 % on "
        "rank 4."
    )
    assert "The pair with most bytes is rank 2 to rank 5: 7 MiB in 7 messages" in sentence
    assert "Rank 2 sends 5.1 times the mean of all ranks." in sentence
    (answer,) = contents(material(eight)).answers
    assert answer.number == "23 % in MPI" and answer.interval == "15 % to 35 % by rank"
    assert "earlybird pattern recording rec0 -o exchange.csv" in answer.do


def test_where_threads_overlap_shares_say_what_100_percent_is(eight):
    def of_two_threads(rank):
        again = rank.entries.copy()
        again["thread"] = 1
        again["time_ns"] *= 10
        return dataclasses.replace(rank, entries=np.concatenate([rank.entries, again]))

    ranks = {number: of_two_threads(rank) for number, rank in eight.ranks.items()}
    found = chapter(dataclasses.replace(eight, ranks=ranks))
    assert "199 % of the run" in found.sentence
    assert "Times of a rank's threads, up to 2, add up: 100 % is the run of one thread." in found.sentence
    assert "where they overlap" in table(found, "Time by call").caption
    alone = chapter(eight)
    assert "threads" not in alone.sentence and "threads" not in table(alone, "Time by call").caption


def test_waiting_is_named_with_its_cause_and_the_rank_that_is_waited_for(tmp_path):
    folder = on_disk(tmp_path / "rec", 4, ring(4))
    (answer,) = contents(material(load_recording(folder))).answers
    assert "record again with `--events 10000`" in answer.do
    add_traces(folder, 4)
    found = chapter(load_recording(folder))
    # Of 4 x 3 sends of 0.1 s and waits of 0.01 s, but 0.21 s on the rank after the late one.
    assert (
        "Of the time in MPI, 31 % is waiting: 31 % for late senders; 100 % of the waiting is for rank 1."
        in found.sentence
    )
    bars = {trace["name"]: trace["y"] for trace in figure(found, "waits-0").data}
    window_s = 2.31
    assert bars["late senders"] == pytest.approx([0, 0, 0.6 / window_s, 0], abs=1e-3)
    assert "late ranks in collectives" not in bars  # there are none
    rows = table(found, "Waiting by place").rows
    assert rows[0][0] == "MPI_Waitall" and rows[0][-1] == "rank 1"
    assert "record again" not in contents(material(load_recording(folder))).answers[0].do
    assert "rank 1" in rows[0] and "mostly for" in render(material(load_recording(folder)))


def test_without_imbalance_no_ranks_are_named():
    sentence = chapter(in_memory(8, ring(8))).sentence
    assert "MPI_Waitall takes the most time of all calls: 10 % of the run. All calls" in sentence
    assert "8 pairs have the most bytes, 2.93 KiB each, 12 % of all; one is rank 0 to rank 1." in sentence
    assert "times the mean" not in sentence


def test_ranks_that_ended_early_stand_at_the_top():
    recording = in_memory(4, ring(4), absent=(1,), end=lambda rank: None if rank == 2 else "finalize")
    report = contents(material(recording))
    assert report.trust_line == "2 of 4 ranks were recorded until MPI_Finalize. 2 warnings."
    assert [text[:6] for text in report.warnings] == ["Rank 1", "Rank 2"]
    assert list(report.chapters["recording"].lines[1:3]) == list(report.warnings)
    text = render(material(recording))
    assert text.index("2 of 4 ranks") < text.index("Rank 1 left no file")


def test_nothing_recorded_is_said_and_nothing_is_drawn():
    found = chapter(in_memory(0, []))
    assert found.sentence == "Nothing was recorded." and "called MPI_Init" in found.lines[1]
    assert not found.figures and not found.tables


def test_without_messages_the_matrix_says_why():
    found = chapter(in_memory(4, []))
    assert "sent no message" in figure(found, "matrix-0").absence and figure(found, "sizes-0").absence
    assert [one.caption.split()[0] for one in found.tables] == ["Time", "Phases,", "Time", "Communicators"]
    assert len(render(material(in_memory(4, [])))) > 100


def changed(recording, **more):
    """The recording with other attributes of each rank."""
    ranks = {rank: dataclasses.replace(one, **more) for rank, one in recording.ranks.items()}
    return dataclasses.replace(recording, ranks=ranks)


@pytest.mark.parametrize("size", [1, 3, MAX_BARS + 5])
def test_ranks_killed_at_once_have_no_shares(size):
    nothing = in_memory(size, []).ranks[0].entries[:0]
    for recording in (
        changed(in_memory(size, ring(size)), run_s=0.0),
        changed(in_memory(size, []), run_s=0.0, entries=nothing, communicators={}, end=None),
    ):
        assert chapter(recording).sentence.startswith("No MPI call took measurable time after MPI_Init.")
        assert render(material(recording)) and page.render(material(recording))


def test_messages_without_bytes_and_to_the_rank_itself_are_drawn():
    found = chapter(in_memory(2, [(0, 1, 3, 0)]), in_memory(1, [(0, 0, 2, 5)]))
    assert "rank 0 to rank 1: 0 B in 3 messages" in found.sentence
    assert "rank 0 to rank 0: 10 B in 2 messages, 100 % of all" in found.sentence


def test_tables_have_the_sums_of_the_recording(eight):
    found, sent = chapter(eight), eight.sent()
    calls = table(found, "Time by call")
    totals = eight.call_totals()
    assert [row[:2] for row in calls.rows[:-1]] == [[one.name, str(one.calls)] for one in totals]
    assert calls.rows[-1][:3] == [
        "all calls", str(sum(one.calls for one in totals)), str(sum(one.messages for one in totals)),
    ]  # fmt: skip
    assert sum(int(row[1]) for row in calls.rows[:-1]) == int(calls.rows[-1][1])
    sizes = table(found, "Message sizes")
    assert int(sizes.rows[-1][1]) == sent.messages.sum() == sum(int(row[1]) for row in sizes.rows[:-1])
    pairs = table(found, "Pairs of ranks")
    assert sum(int(row[2]) for row in pairs.rows) == sent.messages.sum()
    ranks = table(found, "Time in MPI and bytes")
    assert sum(int(row[4]) for row in ranks.rows) == int(calls.rows[-1][1])
    assert [row[1] for row in ranks.rows] == ["n0", "n1"] * 4


def test_the_matrix_has_a_figure_for_each_quantity_and_order(eight):
    found = chapter(eight)
    assert found.choices["quantity"] == ["bytes", "messages"]
    assert found.choices["order of ranks"] == ["by rank", "by node", "by community"]
    assert len([one for one in found.figures if one.id.startswith("recording-matrix")]) == 6
    by_rank, by_node = (figure(found, f"matrix-0-{order}-messages").data[0] for order in ("rank", "node"))
    assert "7 MiB</b> in 7 messages" in by_rank["hovertext"][2][5].replace("7.0", "7")
    sent = {(s, d) for s, d in zip(*(x.tolist() for x in (eight.sent().src, eight.sent().dst)), strict=True)}
    drawn = {(i, j) for i, row in enumerate(by_rank["z"]) for j, value in enumerate(row) if value is not None}
    assert drawn == sent
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    for i in range(8):
        assert [by_rank["z"][order[i]][order[j]] for j in range(8)] == by_node["z"][i]
    assert len(figure(found, "matrix-0-node-bytes").layout["shapes"]) == 2


def test_selectors_with_one_order_are_not_shown():
    found = chapter(in_memory(2, ring(2)))
    assert found.choices["order of ranks"] == ["by rank"]
    html = page.render(material(in_memory(2, ring(2))))
    assert '<select name="quantity">' in html and "order of ranks <select" not in html


def test_sizes_are_shares_of_messages_and_bytes(eight):
    messages, num_bytes = figure(chapter(eight), "sizes-0").data
    assert sum(messages["y"]) == pytest.approx(1, abs=1e-4) == sum(num_bytes["y"])
    assert messages["y"][-1] < num_bytes["y"][-1]  # the few large ones
    assert messages["hovertext"][-1].startswith("1 MiB to below 2 MiB")


def test_bars_of_calls_and_of_ranks_are_shares_of_the_run(eight):
    found = chapter(eight)
    (bars,) = figure(found, "calls-0").data
    assert bars["y"][0] == "MPI_Waitall" and "MPI_Init" not in bars["y"]
    assert bars["x"][0] + bars["error_x"]["array"][0] == pytest.approx(0.3, abs=1e-3)
    assert bars["x"][0] - bars["error_x"]["arrayminus"][0] == pytest.approx(0.1, abs=1e-3)
    stack = {trace["name"]: trace["y"] for trace in figure(found, "ranks-0").data}
    assert stack["MPI_Waitall"] == pytest.approx([waiting(rank) / 2 for rank in range(8)], abs=1e-3)


@pytest.mark.parametrize("size", [MAX_BARS + 1, MAX_COLUMNS + 50])
def test_many_ranks_have_a_map(size):
    one = figure(chapter(in_memory(size, ring(size), waiting)), "ranks-0")
    (trace,) = one.data
    per_column = 1 if size <= MAX_COLUMNS else 2
    assert len(trace["z"][0]) == size // per_column
    assert ("mean of 2 ranks" in one.caption) == (per_column == 2)
    assert trace["hovertext"][1][0].startswith("rank 0, MPI_Waitall" if per_column == 1 else "ranks 0 to 1, ")


def test_topologies_are_in_words():
    grid = Communicator("grid", 0, range(8), topology="cart", dims=(4, 2), periods=(1, 0))
    assert topology_text(grid) == "Cartesian, 4x2, periodic in dimension 0"
    assert topology_text(Communicator("", 0, range(8), topology="dist_graph")) == "distributed graph"
    found = chapter(in_memory(8, ring(8), communicators=lambda rank: {1: grid}))
    (row,) = table(found, "Communicators").rows
    assert row[:4] == ["grid", "8", "Cartesian, 4x2, periodic in dimension 0", "8 ranks"]


def test_several_recordings_have_a_selector_and_names(eight):
    other = in_memory(4, ring(4))
    found = chapter(eight, other, in_memory(2, ring(2)))
    assert found.choices["recording"] == ["rec0", "rec1"]
    assert {one.choice["recording"] for one in found.figures if one.choice} == {"rec0", "rec1"}
    assert "1 more recording" in [one.title for one in found.figures] and MAX_DRAWN == 2
    assert "rec1: MPI_Waitall takes the most time" in found.sentence
    captions = [one.caption for one in found.tables]
    assert len(set(captions)) == len(captions) == 18
    first, *others = [one.do for one in found.answers]
    assert first.count("`earlybird ") == 2 and "`--events 10000`" in first
    assert others == [f"the commands of rec0 apply to rec{k}, too" for k in (1, 2)]


def test_a_recording_of_a_hang_has_its_own_commands_after_others():
    normal, hung = in_memory(4, ring(4)), in_memory(4, ring(4))
    opened = OpenCall("MPI_Waitall", 0, None, 1.0, 3, 0, 1, None, 2.0)
    hung.ranks[0] = dataclasses.replace(hung.ranks[0], end=None, open_calls=[opened])
    first, other, again = (one.do for one in chapter(normal, hung, hung).answers)
    assert "`--events 10000`" in first
    assert "`--stuck 60s`" in other and "`earlybird pattern recording rec1 -o" in other
    assert "rec0" not in other and "advise program" not in other
    assert again.endswith("; the commands of rec1 apply to rec2, too")


def test_text_of_a_recording_is_escaped():
    evil = "<img src=x onerror=alert(1)>"
    recording = in_memory(
        4, ring(4), host=lambda rank: f"{evil}{rank}",
        communicators=lambda rank: {1: Communicator(evil, rank, range(4))},
    )  # fmt: skip
    html = page.render(material(recording, names=[evil]))
    assert "<img" not in html


@pytest.mark.thorough
def test_a_page_of_more_than_a_thousand_ranks_is_drawn_and_small():
    side, chosen = 11, random.Random(1)
    size = side**3
    messages = halo(side) + [
        (chosen.randrange(size), chosen.randrange(size), chosen.randrange(1, 99), chosen.randrange(1 << 20))
        for _ in range(5_000)
    ]
    recording = in_memory(size, messages, waiting, host=lambda rank: f"node{rank // 64:04d}")
    found = chapter(recording)
    assert "Each row and column is a node" in figure(found, "matrix-0-node-bytes").caption or (
        "ranks: there are too many" in figure(found, "matrix-0-node-bytes").caption
    )
    assert re.search(r"Each row and column is \d+ ranks", figure(found, "matrix-0-rank-bytes").caption)
    assert len(table(found, "Pairs").rows) == MAX_PAIRS
    assert len(table(found, "Time in MPI and bytes").rows) == MAX_RANKS
    assert len(page.render(material(recording))) < 2e6


def test_a_dense_page_is_small():
    chosen = random.Random(1)
    dense = [
        (s, d, chosen.randrange(1, 9999), chosen.randrange(1 << 24))
        for s in range(200)
        for d in range(200)
        if s != d
    ]
    recording = in_memory(200, dense, waiting, host=lambda rank: f"node{rank // 20}")
    assert len(page.render(material(recording))) < 2e6


def run_command(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["earlybird", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main.run()
    return caught.value.code


@pytest.mark.parametrize("given", ["rec", "rec/recording.json"])
def test_the_command_takes_the_folder_of_a_recording(monkeypatch, capsys, tmp_path, given):
    monkeypatch.chdir(tmp_path)
    on_disk(tmp_path / "rec", 4, ring(4), waiting)
    assert run_command(monkeypatch, "report", given, "-o", "page.html", "--terminal") == 0
    output = capsys.readouterr().out
    assert "MPI_Waitall takes the most time of all calls" in output
    assert "earlybird pattern recording rec -o exchange.csv" in output
    assert "Communication matrix" in (tmp_path / "page.html").read_text()


def test_a_recording_stands_next_to_a_run(everything, tmp_path):
    found = contents(collect([*everything, on_disk(tmp_path / "rec", 4, ring(4))]))
    assert next(iter(found.chapters)) == "recording" and "measured" in found.chapters
    assert "samples converged" in found.trust_line and "4 of 4 ranks were recorded" in found.trust_line
    assert found.answers[0].what == "Program recorded in rec, 4 ranks"


def test_a_damaged_recording_is_refused_in_a_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    folder = on_disk(tmp_path / "rec", 2, ring(2))
    rank = folder / "rank-1.ebr"
    rank.write_bytes(rank.read_bytes()[:50])
    assert run_command(monkeypatch, "report", "rec") == 0  # as of a rank that was killed at once
    (folder / "recording.json").write_text('{"schema": "earlybird.recording/99"}')
    capsys.readouterr()
    (tmp_path / "report.html").unlink()
    assert run_command(monkeypatch, "report", "rec") == 2
    output = capsys.readouterr()
    assert output.err.startswith("earlybird: ") and output.err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


def test_phases_have_their_functions_times_and_messages_of_one_epoch():
    found = chapter(in_memory(4, ring(4)))
    phases = table(found, "Phases")
    assert [row[:3] for row in phases.rows] == [
        ["1", "Isend, Irecv, Waitall", "exchange"],
        ["2", "Allreduce", "sum"],
    ]
    first = dict(zip(phases.header, phases.rows[0], strict=True))
    assert (first["ranks"], first["epochs"]) == ("4", "1")
    assert first["messages"] == first["messages per epoch"] == "12"
    assert (first["time"], first["of the run"]) == ("2 s", "25 %")
    (bars,) = figure(found, "phases-0").data
    assert (bars["base"], bars["x"], bars["text"]) == ([0.1, 0.1], [1.9, 1.9], ["25 %", "5.0 %"])


def test_arrivals_of_threads_are_drawn_by_thread_and_by_time():
    site = Step("", "/bin/app", 64, "fill")
    classes = np.zeros(64, int)
    classes[[0, 20, 21]] = 6, 4, 2  # the last thread; 0.5 to 1 ms; 1 to 2 ms
    arrivals = Arrivals(1, site, 3, np.array([1e-3, 7e-4, 0.0]), classes)
    found = chapter(changed(in_memory(2, ring(2)), arrivals=(arrivals,)))
    assert "threads reach the end of fill 850 us before the last one." in found.sentence
    (bars,) = figure(found, "arrivals-0").data
    assert bars["y"] == pytest.approx([1e-3, 7e-4, 0])
    (shares,) = figure(found, "arrivals-0-leads").data
    assert shares["y"][0] == 0.5 and shares["y"][-2:] == pytest.approx([1 / 3, 1 / 6], abs=1e-3)
    row = table(found, "Arrival of threads").rows[0]
    assert row[1:] == ["fill", "3", "6", "850 us", "1 ms"]
    assert not [one for one in chapter(in_memory(2, ring(2))).figures if "arrivals" in one.id]


def test_a_program_that_hung_is_said_to_have_and_no_call_to_have_taken_most_time(tmp_path):
    folder = on_disk(tmp_path / "rec", 2, ring(2))
    for rank in range(2):
        (folder / f"rank-{rank}.ebr").write_bytes(rank_file(rank, 2, entries(rank, ring(2), 0.5), end=None))
        (folder / f"rank-{rank}.open").write_bytes(open_call_file((2.5, WAITALL, 0, 1 - rank, 7)))
    hung = load_recording(folder)
    found = contents(material(hung))
    sentence = found.chapters["recording"].sentence
    assert sentence.startswith("Rank 0 had not returned from MPI_Waitall with rank 1")
    assert "Rank 1 had not returned" in sentence and "takes the most time" not in sentence
    (answer,) = found.chapters["recording"].answers
    assert "did not end" in dataclasses.astuple(answer)
