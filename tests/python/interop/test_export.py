"""Matrices and schedules are read back equal, and wrong options are refused in a sentence."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

from earlybird.analysis.waits import join_traces
from earlybird.cli import main
from earlybird.data.pattern import Pattern, load_pattern, save_pattern
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT, Step
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL, load_trace
from earlybird.data.recording import load_recording
from earlybird.interop.chrome_trace import chrome_trace
from earlybird.interop.goal import goal_schedule
from tests.recordings import CALLS, IRECV, ISEND, WAITALL, add_traces, in_memory, on_disk, ring, trace_file

MESSAGES = [*ring(5), (0, 1, 2, 0), (3, 3, 4, 7), (4, 2, 1, 3_000_000_000)]


def run(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["earlybird", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main.run()
    return caught.value.code


@pytest.fixture
def rec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return on_disk(tmp_path / "rec", 5, MESSAGES)


def read_goal(text):
    """(number of ranks, {rank: operations}) of a schedule; fails on any line that LogGOPSim does not read."""
    lines = text.splitlines()
    num_ranks = int(re.fullmatch(r"num_ranks (\d+)", lines[0])[1])
    operations, rank = {}, None
    for line in lines[1:]:
        if match := re.fullmatch(r"rank (\d+) \{", line):
            assert rank is None
            rank = int(match[1])
            operations[rank] = []
        elif line == "}":
            rank = None
        elif line:
            label, operation = re.fullmatch(r"(l\d+): (.+)", line).groups()
            assert label == f"l{len(operations[rank]) + 1}"
            if operation != "calc 0":
                kind, *numbers = re.fullmatch(
                    r"(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)", operation
                ).groups()
                assert operation.split()[2] == {"send": "to", "recv": "from"}[kind]
                operations[rank].append((kind, *map(int, numbers)))
            else:
                operations[rank].append(("calc",))
    assert rank is None
    return num_ranks, operations


def matched(operations):
    """Messages (src, dst, bytes), in order, after checking that each send has one receive of its size."""
    sends = {
        (rank, peer, tag): size
        for rank, own in operations.items()
        for kind, size, peer, tag in (one for one in own if one[0] == "send")
    }
    receives = {
        (peer, rank, tag): size
        for rank, own in operations.items()
        for kind, size, peer, tag in (one for one in own if one[0] == "recv")
    }
    assert sends == receives
    for src, dst, _ in sends:
        tags = sorted(tag for s, d, tag in sends if (s, d) == (src, dst))
        assert tags == list(range(len(tags)))
    return sorted((src, dst, size) for (src, dst, _), size in sends.items())


@st.composite
def patterns(draw):
    rank = st.integers(0, 5)
    rows = draw(st.lists(st.tuples(rank, rank, st.integers(0, 10**12)).filter(lambda row: row[0] != row[1])))
    return Pattern(*np.array(rows, np.int64).reshape(-1, 3).T)


@given(patterns(), st.integers(0, 3))
def test_a_schedule_has_the_messages_of_the_pattern(pattern, more):
    num_ranks, operations = read_goal(goal_schedule(pattern, max(pattern.num_ranks_named, 1) + more))
    assert sorted(operations) == list(range(num_ranks)) and all(operations.values())
    wanted = sorted((src, dst, max(size, 1)) for src, dst, size in pattern.triples().tolist())
    assert matched(operations) == wanted
    assert sum(len(own) for own in operations.values() if own != [("calc",)]) == 2 * pattern.num_messages


@pytest.mark.parametrize("quantity", ["bytes", "messages"])
def test_a_matrix_is_read_back_equal(monkeypatch, capsys, rec, quantity):
    assert (
        run(monkeypatch, "export", "rec", "--to", "matrix-market", "-o", "m.mtx", "--quantity", quantity) == 0
    )
    assert "wrote m.mtx: 5 ranks, 7 entries" in capsys.readouterr().err
    matrix = scipy.io.mmread("m.mtx", spmatrix=False).tocoo()
    assert matrix.shape == (5, 5) and matrix.data.dtype.kind == "i"
    pairs = load_recording(rec).sent().by_pair()
    wanted = dict(zip(zip(pairs.src.tolist(), pairs.dst.tolist(), strict=True),
                      getattr(pairs, quantity).tolist(), strict=True))  # fmt: skip
    found = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    assert {(row, column): value for row, column, value in found} == wanted


def test_a_matrix_of_bytes_is_a_pattern_of_ours(monkeypatch, rec):
    assert run(monkeypatch, "export", "rec", "--to", "matrix-market", "-o", "m.mtx") == 0
    assert run(monkeypatch, "pattern", "recording", "rec", "--combined", "-o", "p.csv") == 0
    assert run(monkeypatch, "pattern", "convert", "m.mtx", "-o", "q.csv") == 0
    assert sorted(load_pattern("p.csv").triples().tolist()) == sorted(
        load_pattern("q.csv").triples().tolist()
    )


def test_a_recording_and_its_pattern_give_the_same_schedule(monkeypatch, capsys, rec, tmp_path):
    assert run(monkeypatch, "export", "rec", "--to", "goal", "-o", "a.goal", "--json") == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == {"file": "a.goal", "format": "goal", "ranks": 5, "messages": 18}
    assert "left out 4 messages from a rank to itself" in output.err
    assert run(monkeypatch, "pattern", "recording", "rec", "-o", "p.csv") == 0
    assert run(monkeypatch, "export", "p.csv", "--to", "goal", "-o", "b.goal") == 0
    assert (tmp_path / "a.goal").read_text() == (tmp_path / "b.goal").read_text()
    assert run(monkeypatch, "export", "rec", "--to", "goal", "--combined", "-o", "c.goal") == 0
    _, operations = read_goal((tmp_path / "c.goal").read_text())
    assert matched(operations) == [(0, 1, 3000), (1, 2, 3000), (2, 3, 3000), (3, 4, 3000), (4, 0, 3000),
                                   (4, 2, 3_000_000_000)]  # fmt: skip


def test_a_trace_has_a_slice_for_each_call_and_an_arrow_for_each_message(monkeypatch, capsys, rec):
    add_traces(rec, 5, steps=4)
    assert run(monkeypatch, "export", "rec", "--to", "chrome-trace", "-o", "t.json", "--json") == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == {"file": "t.json", "format": "chrome-trace", "ranks": 5, "events": 60}
    with open("t.json") as stream:
        events = json.load(stream)["traceEvents"]
    slices = [one for one in events if one["ph"] == "X"]
    assert {(one["name"], one["cat"]) for one in slices} == {("MPI_Isend", "sent"), ("MPI_Waitall", "call")}
    assert len(slices) == 5 * 4 * 2 and min(one["ts"] for one in slices) == 0
    assert slices[0] == {
        "ph": "X", "name": "MPI_Isend", "cat": "sent", "pid": 0, "tid": 0, "ts": 0.0, "dur": 1e5,
        "args": {"peer": 1, "tag": 5, "bytes": 1000, "communicator": "MPI_COMM_WORLD"},
    }  # fmt: skip
    # A call that completes a message has what is known of it.
    waits = [one["args"] for one in slices if one["name"] == "MPI_Waitall" and one["pid"] == 0]
    assert [one["peer"] for one in waits] == [4] * 4 and {one["bytes"] for one in waits} == {1000}
    assert all(one["request"] > 0 and one["tag"] == 5 for one in waits)
    begins = {one["id"]: one for one in events if one["ph"] == "s"}
    ends = {one["id"]: one for one in events if one["ph"] == "f"}
    assert len(begins) == 20 and begins.keys() == ends.keys()
    for number, begin in begins.items():
        assert ends[number]["pid"] == (begin["pid"] + 1) % 5 and ends[number]["ts"] > begin["ts"]
        # Each end is inside of a slice of its rank, to which a viewer binds it.
        for end in (begin, ends[number]):
            assert any(
                one["pid"] == end["pid"] and one["ts"] <= end["ts"] <= one["ts"] + one["dur"]
                for one in slices
            )
    assert {one["args"]["name"] for one in events if one["name"] == "process_name"} == {
        f"rank {rank} on n0" for rank in range(5)
    }


def test_the_slice_of_a_call_that_completes_several_requests_lists_them(tmp_path):
    calls = (*CALLS, "MPI_Wait_c")
    recording = in_memory(2, [])
    step = Step("MPI_Waitall", "/bin/app", 7, "exchange", "/src/halo.c", 31)
    ranks = {rank: replace(one, calls=calls, sites={9: step}) for rank, one in recording.ranks.items()}
    recording = replace(recording, ranks=ranks)
    rows = [
        (1.0, 1.5, WAITALL, CALL, 0, -1, -1, ONE_CALL, 0),
        (1.0, 1.5, IRECV, RECEIVED, 1, 1, 3, MESSAGE, 80, 1, 0.5),
        (1.0, 1.5, ISEND, SENT, 1, 1, 4, COMPLETION, 96, 2, 0.6),
        (2.0, 2.5, len(CALLS), CALL, 0, -1, -1, ONE_CALL, 0),
    ]
    (tmp_path / "rank-0.trace").write_bytes(trace_file(rows, 100, site=9))
    joined = join_traces(recording, {0: load_trace(tmp_path / "rank-0.trace", calls, 100)})
    lines = json.loads("".join(chrome_trace(joined.events, joined.matches, recording)))["traceEvents"]
    world = {"communicator": "MPI_COMM_WORLD"}
    waitall, wait = (one for one in lines if one["ph"] == "X")
    assert waitall["args"] == {
        "site": "exchange (halo.c:31)",
        "messages": [
            {"what": "received", "peer": 1, "tag": 3, "bytes": 80, "request": 1} | world,
            {"what": "completed", "peer": 1, "tag": 4, "bytes": 96, "request": 2} | world,
        ],
    }  # fmt: skip
    assert wait["name"] == "MPI_Wait"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["rec", "--to", "chrome-trace", "-o", "x"],
            "record the program again with `earlybird record --events",
        ),
        (
            ["absent", "--to", "chrome-trace", "-o", "x"],
            "absent does not exist; check the path of the recording",
        ),
        (["absent", "--to", "loggps", "-o", "x"], "check the path, or give one of the profiles thune"),
        (["rec", "--to", "chrome-trace", "--quantity", "bytes", "-o", "x"], "--quantity"),
        (["rec", "--to", "goal", "--quantity", "bytes", "-o", "x"], "--quantity"),
        (["rec", "--to", "matrix-market", "--combined", "-o", "x"], "--combined"),
        (["rec", "--to", "otf2", "-o", "x"], "otf2"),
        (["none", "--to", "goal", "-o", "x"], "does not exist"),
        (["rec", "--to", "goal", "-o", "no/x"], "does not exist"),
        (["rec", "--to", "goal", "-o", "."], "folder"),
        (["empty.csv", "--to", "goal", "-o", "x"], "no messages"),
        (["nothing", "--to", "goal", "-o", "x"], "nothing was recorded"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_no_file(monkeypatch, capsys, rec, tmp_path, arguments, said):
    save_pattern(Pattern([], [], []), "empty.csv")
    on_disk(tmp_path / "nothing", 0, [])
    before = sorted(tmp_path.rglob("*"))
    assert run(monkeypatch, "export", *arguments) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("earlybird: ") and said in last
    assert sorted(tmp_path.rglob("*")) == before
