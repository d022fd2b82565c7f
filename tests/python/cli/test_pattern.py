"""`earlybird pattern` from the command line: files, summaries, and one sentence for wrong input."""

import csv
import functools
import io
import json
import os
import re
import shutil
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.pattern import load_pattern
from earlybird.patterns.recorded import check_messages, phase_of
from tests.recordings import of_epochs, ring
from tests.reference import needs_reference, reference

PAGE = Path(__file__).parents[3] / "docs" / "patterns.md"
NORNE = "norne_actnum.prop"


@pytest.fixture
def pattern(monkeypatch, run_main, tmp_path):
    """pattern("mesh", ...) runs the command in an empty folder: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    return functools.partial(run_main, "pattern")


def test_mesh_writes_a_pattern_and_its_partition(pattern):
    status, out, err = pattern(
        "mesh", "--cells", 2000, "--parts", 4, "--bytes-per-cell", "1KiB", "-o", "mesh.csv",
        "--partition-out", "mesh.part", "--json",
    )  # fmt: skip
    summary = json.loads(out)
    messages = load_pattern("mesh.csv")
    part = np.array([int(line) for line in Path("mesh.part").read_text().splitlines()])
    assert (status, err) == (0, "")
    assert summary["messages"] == messages.num_messages
    assert summary["total_bytes"] == messages.total_bytes
    assert summary["smallest_bytes"] == messages.bytes.min()
    assert summary["pattern_sha256"] == messages.sha256()
    assert summary["most_sent_by_a_rank"] == np.bincount(messages.src).max()
    assert len(part) == summary["cells"]
    assert set(part.tolist()) == {0, 1, 2, 3}
    assert (messages.bytes % 1024 == 0).all()


def test_same_command_gives_the_same_file_and_a_wider_halo_more_bytes(pattern):
    arguments = ["mesh", "--cells", 2000, "--parts", 3, "--seed", 9]
    pattern(*arguments, "-o", "a.csv")
    pattern(*arguments, "-o", "b.csv")
    pattern(*arguments, "-o", "wide.csv", "--halo-width", 2)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert load_pattern("wide.csv").total_bytes > load_pattern("a.csv").total_bytes


def test_mesh_of_a_given_graph(pattern):
    Path("line.graph").write_text("4 3\n2\n1 3\n2 4\n3\n")
    Path("line.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 2\n4 3\n")
    for name in ("line.graph", "line.mtx"):
        status, _, _ = pattern("mesh", name, "--parts", 2, "-o", "line.csv")
        assert status == 0
        assert sorted(load_pattern("line.csv").triples().tolist()) == [[0, 1, 8], [1, 0, 8]]


def test_mesh_of_an_active_cell_mask(pattern):
    Path("mask").write_text("ACTNUM\n1 1 1 0 1 1 1 1 /\n")
    status, out, _ = pattern("mesh", "mask", "--dims", "2x2x2", "--parts", 7, "-o", "p.csv", "--json")
    assert status == 0
    # Seven of the eight corners of a cube: twelve edges minus the three at the missing corner.
    assert json.loads(out)["messages"] == 2 * 9
    mask = ("mask", "--dims", "2x2x2", "--refine", 3)
    status, out, _ = pattern("mesh", *mask, "--parts", 7, "-o", "p.csv", "--json")
    assert (status, json.loads(out)["cells"]) == (0, 7 * 27)


def test_the_grid_of_a_deck_needs_no_option_and_must_agree_with_it(pattern):
    Path("deck").write_text("SPECGRID\n 8 2 1 1 F /\nMINPV\n 1 /\nACTNUM\n 8*1 4*1 4*0 /\n")
    asked = ("mesh", "deck", "--parts", 2, "-o", "out.csv", "--json")
    status, out, err = pattern(*asked)
    assert status == 0 and json.loads(out)["cells"] == 12
    assert "MINPV" in err and "the mesh is that of ACTNUM alone" in err
    Path("out.csv").unlink()
    status, _, err = pattern(*asked, "--dims", "2x8x1")
    assert status == 2 and "given as 2x8x1, but SPECGRID" in err and "says 8x2x1" in err
    assert not Path("out.csv").exists()


def test_the_last_line_of_a_mesh_needs_no_end(pattern):
    Path("mask").write_text("ACTNUM 8*1 /")
    assert pattern("mesh", "mask", "--dims", "2x2x2", "--parts", 2, "-o", "p.csv")[0] == 0
    Path("line.graph").write_text("% a line\n2 1\n2\n1")
    assert pattern("mesh", "line.graph", "--parts", 2, "-o", "p.csv")[0] == 0
    Path("x").write_text("x")
    status, _, err = pattern("mesh", "x", "--parts", 2, "-o", "p.csv")
    assert status == 2 and "x is no METIS graph and no Matrix Market file, and has no Eclipse" in err


def test_a_mesh_from_a_pipe(pattern):
    os.mkfifo("pipe")
    writer = Thread(target=Path("pipe").write_text, args=["4 3\n2\n1 3\n2 4\n3\n"], daemon=True)
    writer.start()
    assert pattern("mesh", "pipe", "--parts", 2, "-o", "line.csv")[0] == 0
    assert load_pattern("line.csv").num_messages == 2


@needs_reference(NORNE)
@pytest.mark.parametrize("parts", [2, 3, 8])
def test_norne_splits_into_parts_that_all_exchange(pattern, parts):
    mask = (reference(NORNE), "--dims", "46x112x22")
    status, out, _ = pattern("mesh", *mask, "--parts", parts, "-o", "norne.csv", "--json")
    summary = json.loads(out)
    assert status == 0
    assert (summary["cells"], summary["ranks"]) == (44927, parts)
    assert summary["fewest_sent_by_a_rank"] >= 1


def test_halo_and_random_print_a_summary(pattern):
    status, out, _ = pattern("halo", "--grid", "2x1x1", "--cells", "8x8x8", "-o", "halo.csv")
    assert status == 0
    assert "halo.csv: 2 messages, 2 ranks, 1 KiB" in out
    assert "512 B to 512 B, median 512 B" in out
    status, out, _ = pattern(
        "random", "--ranks", 4, "--messages", 9, "--max-size", "2kB", "-o", "r.npz", "--format", "csv"
    )
    (row,) = csv.DictReader(io.StringIO(out))
    assert status == 0
    assert (row["messages"], row["ranks"]) == ("9", "4")
    assert load_pattern("r.npz").bytes.max() <= 2000


def test_convert_goes_round_all_formats(pattern):
    pattern("random", "--ranks", 5, "--messages", 40, "-o", "a.csv")
    for source, target in (("a.csv", "b.npz"), ("b.npz", "c.mtx"), ("c.mtx", "d.csv")):
        assert pattern("convert", source, "-o", target)[0] == 0
    assert Path("a.csv").read_bytes() == Path("d.csv").read_bytes()


def test_empty_pattern_has_a_summary(pattern):
    Path("empty.csv").write_text("src,dst,bytes\n")
    status, out, _ = pattern("convert", "empty.csv", "-o", "e.mtx", "--json")
    assert (status, json.loads(out)["messages"]) == (0, 0)
    assert pattern("convert", "e.mtx", "-o", "again.csv")[0] == 0
    assert Path("again.csv").read_text() == "src,dst,bytes\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mesh", "--parts", "0"], "parts is 0"),
        (["mesh", "--parts", "500", "--cells", "200"], "ask for at most"),
        (["mesh", "--parts", "2", "--cells", "5"], "cells is 5"),
        (["mesh", "--parts", "two"], "'--parts'"),
        (["mesh", "--parts", "2", "--bytes-per-cell", "8 apples"], "--bytes-per-cell is '8 apples'"),
        (["mesh", "--parts", "2", "--cells", "500", "--halo-width", "0"], "halo width is 0"),
        (["mesh", "--parts", "2", "none.graph"], "does not exist"),
        (["mesh", "--parts", "2", "none.graph", "--cells", "500"], "give one of them"),
        (["mesh", "--parts", "2", "mask"], "mask has neither SPECGRID nor DIMENS; add"),
        (
            ["mesh", "--parts", "2", "--dims", "2x2x2"],
            "--dims is the grid of an ACTNUM mask, which is missing",
        ),
        (["mesh", "--parts", "2", "g", "--dims", "2x2x2"], "an ACTNUM mask, but g is a graph; omit --dims"),
        (["mesh", "--parts", "2", "mask", "--dims", "2x2"], "--dims has '2x2'"),
        (["mesh", "--parts", "2", "--refine", "2"], "--refine divides the cells of an ACTNUM mask"),
        (["mesh", "--parts", "2", "g", "--refine", "2"], "--refine divides the cells of an ACTNUM mask"),
        (["mesh", "--parts", "2", "mask", "--dims", "2x2x2", "--refine", "0"], "refinement is 0"),
        (["mesh", "--parts", "2", "mask", "--dims", "46x112x22", "--refine", "9"], "82627776; at"),
        (["mesh", "--parts", "2", "--partition-out", "no/where"], "the folder no does not exist"),
        (["halo", "--grid", "2x0x1"], "--grid has '2x0x1'"),
        (["halo", "--grid", "2x2x2", "--cells", "64"], "--cells has '64'"),
        (["halo", "--grid", "2x2x2", "--neighbours", "18"], "neighbours is 18"),
        (["halo", "--grid", "2x2x2", "--rank-order", "y"], "'y' is not one of 'x-fastest', 'z-fastest'"),
        (["random", "--ranks", "1", "--messages", "3"], "no other rank"),
        (["random", "--ranks", "4", "--messages", "3", "--min-size", "1GB"], "largest size is"),
        (
            ["random", "--ranks", "4", "--messages", "3", "--distribution", "zipf"],
            "not one of 'log-uniform', 'uniform'",
        ),
        (["convert", "none.csv"], "does not exist"),
        (["convert", "bad.csv"], "bad.csv line 3 (2,2,8)"),
    ],
)
def test_wrong_input_is_one_sentence_and_writes_nothing(pattern, arguments, message):
    Path("bad.csv").write_text("src,dst,bytes\n0,1,8\n2,2,8\n")
    Path("mask").write_text("-- of a reservoir\nACTNUM\n8*1 /\n")
    Path("g").write_text("% a mesh\n3 2\n2\n1 3\n2\n")
    Path("out.csv").write_text("old")
    status, out, err = pattern(*arguments, "-o", "out.csv")
    assert (status, out) == (2, "")
    assert message in err
    assert err.startswith("earlybird: ") and err.count("\n") == 1
    assert Path("out.csv").read_text() == "old"


@pytest.mark.parametrize("output", ["no/folder.csv", "."])
def test_unwritable_output_is_refused_before_the_work(pattern, output, monkeypatch):
    monkeypatch.setattr("earlybird.patterns.mesh.tetrahedral_mesh", None)
    status, _, err = pattern("mesh", "--parts", 2, "-o", output)
    assert (status, "cannot write" in err) == (2, True)


def test_a_pattern_of_another_suffix_is_refused_before_the_work(pattern, monkeypatch):
    monkeypatch.setattr("earlybird.patterns.mesh.tetrahedral_mesh", None)
    status, out, err = pattern("mesh", "--parts", 2, "-o", "p.xlsx")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "written as p.xlsx; give a name that ends in .csv, .npz, .mtx or .mm" in err
    assert pattern("random", "--ranks", 4, "--messages", 9, "-o", "plain")[0] == 0
    assert load_pattern("plain").num_messages == 9


@pytest.mark.parametrize("subcommand", ["mesh", "halo", "random", "convert"])
def test_help_shows_an_example(pattern, subcommand):
    status, out, _ = pattern(subcommand, "--help")
    assert status == 0
    assert f"Example:\n  earlybird pattern {subcommand}" in out


def examples_of(page: Path) -> list[tuple[str, str]]:
    """(command, output shown) of every console block."""
    blocks = re.findall(r"```console\n\$ earlybird pattern (.*)\n((?:.*\n)*?)```", page.read_text())
    assert blocks
    return blocks


@pytest.mark.parametrize("of_norne", [False, pytest.param(True, marks=needs_reference(NORNE))])
def test_documented_examples_print_what_the_page_shows(pattern, of_norne):
    if of_norne:
        shutil.copy(reference(NORNE), ".")
    examples = [one for one in examples_of(PAGE) if ("norne" in one[0]) is of_norne]
    assert examples
    for arguments, shown in examples:
        status, out, err = pattern(*arguments.split())
        assert (status, err) == (0, "")
        # Figures may differ with the versions of METIS and Qhull; the text may not.
        masked = [re.sub(r"[0-9.]+( (B|KiB|MiB))?", "#", text) for text in (out, shown)]
        assert masked[0] == masked[1]


@pytest.mark.parametrize(("entries", "says"), [("1 1 9\n2 2 9\n", "2 entries"), ("2 2 9\n", "1 entry")])
def test_the_diagonal_of_a_matrix_is_dropped_when_it_is_converted(pattern, tmp_path, entries, says):
    rows = entries + "1 2 4\n"
    Path("m.mtx").write_text(
        f"%%MatrixMarket matrix coordinate integer general\n2 2 {rows.count(chr(10))}\n{rows}"
    )
    status, _, err = pattern("convert", "m.mtx", "-o", "m.csv")
    assert status == 0 and f"dropped {says} on the diagonal of m.mtx" in err
    assert Path("m.csv").read_text() == "src,dst,bytes\n0,1,4\n"


def test_a_message_to_oneself_in_a_csv_and_other_bad_entries_of_a_matrix_are_refused(pattern):
    Path("p.csv").write_text("src,dst,bytes\n0,1,4\n1,1,4\n")
    status, _, err = pattern("convert", "p.csv", "-o", "q.csv")
    assert status == 2 and "p.csv line 3" in err and "itself" in err
    Path("m.mtx").write_text("%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 4\n1 2 -4\n")
    status, _, err = pattern("convert", "m.mtx", "-o", "m.csv")
    assert status == 2 and "m.mtx line 4" in err and "negative" in err


def test_an_epoch_of_a_recorded_rotation_is_written_and_can_be_chosen(in_process, tmp_path, monkeypatch):
    turns = [[(rank, (rank + by) % 4, 1, 1000) for rank in range(4)] for by in (1, 2, 3)]
    recording = of_epochs(4, [*turns, turns[1]])
    monkeypatch.setattr("earlybird.data.recording.load_recording", lambda source: recording)
    written = in_process("pattern", "recording", "rec", "-o", "turn.csv")
    assert (
        "4 epochs of phase 1 have 3 different exchanges; this is that of epoch 2, the most frequent one, "
        "which 2 have; give --epoch for another one"
    ) in written.stderr
    shown = in_process("show", "turn.csv", "--format", "csv").stdout.splitlines()[1:]
    assert shown == [f"{src},{dst},1000" for src, dst, *_ in turns[1]]
    in_process("pattern", "recording", "rec", "-o", "third.csv", "--epoch", 3)
    shown = in_process("show", "third.csv", "--format", "csv").stdout.splitlines()[1:]
    assert shown == [f"{src},{dst},1000" for src, dst, *_ in turns[2]]
    for options, sentence in (
        (["--epoch", 5], "there are epochs 1 to 4, given is 5"),
        (["--epoch", 1, "--all"], "--all is the whole run and --epoch a part of it"),
    ):
        refused = in_process("pattern", "recording", "rec", "-o", "no.csv", *options, check=False)
        assert refused.returncode == 2 and sentence in refused.stderr
        assert not (tmp_path / "no.csv").exists()


def test_a_phase_without_messages_is_refused_with_those_that_have_some(in_process, tmp_path, monkeypatch):
    recording = of_epochs(4, [ring(4)])
    monkeypatch.setattr("earlybird.data.recording.load_recording", lambda source: recording)
    refused = in_process("pattern", "recording", "rec", "-o", "no.csv", "--phase", 2, check=False)
    said = "phase 2 has no message between ranks; phase 1 has some: give --phase 1"
    assert refused.returncode == 2 and said in refused.stderr and not (tmp_path / "no.csv").exists()
    to_itself = of_epochs(2, [[(0, 0, 1, 100)]])
    with pytest.raises(InputError, match="phase 1 has no message between ranks, and neither has another one"):
        check_messages(to_itself, phase_of(to_itself, 1))


def test_pairs_exchange_a_size_each(run_main, tmp_path):
    path = tmp_path / "pairs.csv"
    status, _, err = run_main("pattern", "pairs", "--sizes", "2KiB,512", "-o", path)
    assert status == 0, err
    assert sorted(path.read_text().splitlines()[1:]) == ["0,1,2048", "1,0,2048", "2,3,512", "3,2,512"]
    status, _, err = run_main("pattern", "pairs", "--sizes", "1KiB,many", "-o", path)
    assert status == 2 and "--sizes" in err
