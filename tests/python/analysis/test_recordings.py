"""Sums of recordings: they equal those of the recording itself, in every split and order."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.analysis.calls import call_times
from earlybird.analysis.communicators import communicator_totals
from earlybird.analysis.gaps import remarks
from earlybird.analysis.matrix import MAX_FILLED, MAX_ROWS, UNKNOWN_HOST, matrices
from earlybird.analysis.messages import by_size_class, bytes_by_rank, heaviest_pairs
from earlybird.data.recorded_rank import Communicator
from earlybird.data.recording import load_recording
from earlybird.models.rank_order import MAX_CLUSTERED, community_order
from tests.recordings import RUN_S, halo, in_memory, on_disk, ring, start_recording, world

MESSAGES = [*ring(6), (0, 1, 2, 0), (3, 3, 4, 7), (5, 2, 1, 1 << 20)]


@pytest.fixture(scope="module")
def recording():
    return in_memory(6, MESSAGES, waiting_s=lambda rank: 0.1 * rank, host=lambda rank: f"n{rank % 2}")


def test_calls_have_the_sums_of_the_recording(recording):
    calls = call_times(recording)
    totals = recording.call_totals()
    assert list(calls.names) == [total.name for total in totals]
    for k, total in enumerate(totals):
        assert calls.calls[k].sum() == total.calls
        assert calls.messages[k].sum() == total.messages
        assert calls.bytes[k].sum() == total.bytes
        assert calls.time_s[k].sum() == pytest.approx(total.time_s)


def test_shares_are_those_of_the_run_without_mpi_init(recording):
    calls = call_times(recording)
    assert calls.names[0] == "MPI_Init" and 0 not in calls.in_run
    waiting = calls.totals[calls.names.index("MPI_Waitall")]
    spread = waiting.spread
    assert (spread.low, spread.low_rank) == (0, 0)
    assert (spread.high, spread.high_rank) == (pytest.approx(0.5 / RUN_S), 5)
    assert spread.median == pytest.approx(0.25 / RUN_S)
    assert waiting.share == pytest.approx(1.5 / (6 * RUN_S))
    assert not calls.totals[0].is_in_run and calls.whole.is_in_run
    assert calls.whole.share == pytest.approx(np.mean(calls.in_mpi))


def test_calls_of_ranks_that_number_functions_differently_are_joined(recording):
    one = recording.ranks[0]
    assert one.calls[:2] == ("MPI_Init", "MPI_Isend")
    swapped = one.entries.copy()
    swapped["call"] = [{0: 1, 1: 0}.get(call, call) for call in swapped["call"].tolist()]
    calls = ("MPI_Isend", "MPI_Init", *one.calls[2:])
    other = type(one)(**{**vars(one), "calls": calls, "entries": swapped})
    changed = type(recording)(recording.path, (), {**recording.ranks, 0: other})
    before, after = call_times(recording), call_times(changed)
    assert before.names == after.names and (before.calls == after.calls).all()


def test_nothing_recorded_has_no_calls():
    calls = call_times(in_memory(0, []))
    assert (calls.names, calls.in_run, calls.totals, calls.costliest) == ((), [], [], None)


def test_size_classes_have_all_messages(recording):
    totals = recording.sent()
    classes = by_size_class(totals)
    assert [(one.low_bytes, one.high_bytes, one.messages) for one in classes] == [
        (0, 0, 2), (4, 7, 4), (512, 1023, 18), (1 << 20, (1 << 21) - 1, 1),
    ]  # fmt: skip
    assert sum(one.bytes for one in classes) == totals.bytes.sum() == 28 + 18_000 + (1 << 20)


def test_heaviest_pairs_and_bytes_of_ranks(recording):
    pairs = recording.sent().by_pair()
    heaviest = heaviest_pairs(pairs)
    assert (heaviest[0].src, heaviest[0].dst, heaviest[0].bytes) == (5, 2, 1 << 20)
    assert [pair.bytes for pair in heaviest] == sorted((pair.bytes for pair in heaviest), reverse=True)
    sent, received = bytes_by_rank(pairs, 6)
    assert sent.tolist() == [3000, 3000, 3000, 3028, 3000, 3000 + (1 << 20)]
    assert received.sum() == sent.sum() and received[2] == 3000 + (1 << 20)


@pytest.mark.parametrize("size", [1, 2, 6, MAX_ROWS, MAX_ROWS + 1, 1000])
def test_every_order_of_the_matrix_has_all_bytes(size):
    recorded = in_memory(size, ring(size), host=lambda rank: f"n{rank % 3}")
    pairs = recorded.sent().by_pair()
    found = matrices(recorded, pairs)
    assert [matrix.rows.order for matrix in found] == ["rank", *["node"] * (size > 1)] + ["community"] * (
        size > 2
    )
    for matrix in found:
        assert matrix.rows.num <= MAX_ROWS and len(matrix.rows.of_rank) == size
        assert matrix.bytes.sum() == pairs.bytes.sum() and matrix.messages.sum() == pairs.messages.sum()
        assert set(matrix.rows.of_rank.tolist()) == set(range(matrix.rows.num))


def test_a_cell_has_the_bytes_of_its_ranks(recording):
    pairs = recording.sent().by_pair()
    for matrix in matrices(recording, pairs):
        names = list(matrix.rows.names)
        assert matrix.bytes[names.index("rank 5"), names.index("rank 2")] == 1 << 20
    by_node = matrices(recording, pairs)[1]
    assert list(by_node.rows.names) == [f"rank {rank}" for rank in (0, 2, 4, 1, 3, 5)]


def test_many_ranks_are_joined_by_node_and_too_many_nodes_by_ranks():
    for per_node, unit in ((32, "node"), (1, "block")):
        recorded = in_memory(640, ring(640), host=lambda rank, per_node=per_node: f"n{rank // per_node}")
        by_rank, by_node, _ = matrices(recorded, recorded.sent().by_pair())
        assert by_node.rows.unit == unit and by_rank.rows.unit == "block"
        assert by_rank.rows.names[0] == "ranks 0 to 3" and by_rank.rows.ranks_per_row == 4
        if unit == "node":
            assert by_node.rows.names[3] == "node n3 (32 ranks)" and by_node.messages[3, 4] == 3


def test_a_dense_matrix_has_fewer_rows():
    dense = [(src, dst, 1, 8) for src in range(100) for dst in range(100) if src != dst]
    recorded = in_memory(100, dense)
    for matrix in matrices(recorded, recorded.sent().by_pair()):
        assert np.count_nonzero(matrix.messages) <= MAX_FILLED and matrix.rows.num == 50
        assert matrix.bytes.sum() == 8 * len(dense)


def test_ranks_without_a_file_have_an_unknown_node():
    recorded = in_memory(300, ring(300), host=lambda rank: f"n{rank // 50}", absent=(7,))
    names = matrices(recorded, recorded.sent().by_pair())[1].rows.names
    assert f"node {UNKNOWN_HOST} (1 rank)" in names and "node n0 (49 ranks)" in names


@pytest.mark.parametrize("num_ranks", [8, 40, MAX_CLUSTERED, MAX_CLUSTERED + 100])
def test_a_community_is_contiguous(num_ranks):
    """Four groups of every fourth rank exchange much, and a little with the next rank."""
    src = np.concatenate([np.arange(num_ranks - 4), np.arange(num_ranks - 1)])
    dst = np.concatenate([np.arange(4, num_ranks), np.arange(1, num_ranks)])
    weight = np.concatenate([np.full(num_ranks - 4, 10**6), np.full(num_ranks - 1, 10)])
    order = community_order(src, dst, weight, num_ranks)
    assert sorted(order.tolist()) == list(range(num_ranks))
    group = order % 4
    assert np.count_nonzero(np.diff(group)) == 3


def test_ranks_without_messages_have_a_place():
    none = np.zeros(0, np.int64)
    assert community_order(none, none, none, 3).tolist() == [0, 1, 2]
    assert community_order(none, none, none, 0).tolist() == []
    alone = community_order(np.array([0, 2]), np.array([3, 2]), np.array([0, 5]), 5).tolist()
    assert sorted(alone) == list(range(5)) and abs(alone.index(0) - alone.index(3)) == 1


def test_a_communicator_is_one_row_for_all_ranks_that_know_it():
    size = 6
    line = dict(topology="cart", dims=(3, 2), periods=(1, 0))

    def known(rank):
        half = Communicator("half", rank // 2, range(rank % 2, size, 2))
        inter = [range(0, 3), range(3, 6)][:: 1 if rank < 3 else -1]
        return {
            2: half, 3: half, 1: world(rank, size), 4: Communicator("grid", rank, range(size), **line),
            5: Communicator("bridge", rank % 3, *inter),
        }  # fmt: skip

    recorded = in_memory(size, ring(size), communicators=known)
    totals = {
        (one.communicator.name, min(one.communicator.members)): one for one in communicator_totals(recorded)
    }
    assert len(totals) == 5
    first = totals["MPI_COMM_WORLD", 0]
    assert (first.known_by, first.alike) == (6, 1)
    # Three messages of 1000 bytes and an MPI_Allreduce of 8 bytes each; receives are calls, too.
    assert (first.calls, first.bytes) == (6 * (3 + 3 + 1), 6 * 3008)
    assert [(totals["half", k].known_by, totals["half", k].alike) for k in (0, 1)] == [(3, 2)] * 2
    assert totals["bridge", 0].known_by == 6 and totals["grid", 0].communicator.dims == (3, 2)


def test_remarks_name_ranks_that_ended_early_or_left_no_file():
    ends = {2: None, 3: "abort", 4: "exit"}
    recorded = in_memory(6, ring(6), absent=(1,), end=lambda rank: ends.get(rank, "finalize"))
    said = remarks(recorded)
    assert [text.split(" ", 2)[1] for text in said] == ["1", "2", "3", "4"]
    assert "left no file" in said[0] and "killed, interrupted" in said[1] and "MPI_Abort" in said[2]
    assert remarks(in_memory(2, ring(2))) == []
    assert "nothing was recorded" in remarks(in_memory(0, []))[0]
    (alone,) = remarks(in_memory(1, []))
    assert "one rank" in alone and "mpiexec -n 4" in alone


def test_files_and_memory_are_the_same_recording(tmp_path):
    waiting = lambda rank: 0.1 * rank  # noqa: E731
    loaded = load_recording(on_disk(tmp_path / "rec", 8, halo(2), waiting))
    memory = in_memory(8, halo(2), waiting)
    assert loaded.call_totals() == memory.call_totals()
    for name in ("src", "dst", "size_class", "messages", "bytes"):
        assert getattr(loaded.sent(), name).tolist() == getattr(memory.sent(), name).tolist()
    assert loaded.ranks[3].communicators[1].members == range(8)
    assert communicator_totals(loaded) == communicator_totals(memory)


def test_files_without_a_chunk_are_named_as_of_a_full_disk(tmp_path):
    start_recording(tmp_path / "rec", {"command": ["./app"]})
    assert "no rank called MPI_Init" in remarks(load_recording(tmp_path / "rec"))[0]
    for rank in (0, 1):
        (tmp_path / "rec" / f"rank-{rank}.ebr").touch()
    (all_empty,) = remarks(load_recording(tmp_path / "rec"))
    assert "ranks 0, 1 left an empty file, as on a full disk" in all_empty
    folder = on_disk(tmp_path / "other", 4, ring(4))
    (folder / "rank-1.ebr").write_bytes(b"")
    (folder / "rank-2.ebr").unlink()
    absent, empty = remarks(load_recording(folder))
    assert (
        "rank 2 left no file, so only" in absent and "rank 1 left an empty file, as on a full disk" in empty
    )


@pytest.mark.parametrize(
    ("waits_s", "said"), [((None, None), False), ((0.01, 0.0), False), ((1.0, 0.6), True)]
)
def test_ranks_that_share_cores_get_a_remark(waits_s, said):
    recording = in_memory(2, ring(2))
    ranks = {rank: replace(recording.ranks[rank], core_wait_s=wait_s) for rank, wait_s in enumerate(waits_s)}
    changed = replace(recording, ranks=ranks)
    assert changed.core_wait_share == (
        None if waits_s[0] is None else pytest.approx(sum(waits_s) / 2 / RUN_S)
    )
    assert any("waited for a core in 40 % of the run" in one for one in remarks(changed)) == said


def test_what_precedes_the_recorder_comes_with_a_remedy_for_a_tool_or_for_the_program(recording):
    (tool,) = remarks(replace(recording, hidden=("MPI_Wait", "/opt/tool/libtool.so.1")))
    assert tool.startswith("MPI_Wait of /opt/tool/libtool.so.1 precedes the recorder's")
    assert tool.endswith("; record without this tool")
    for program in ("/home/me/app.x", "the program"):
        (own,) = remarks(replace(recording, hidden=("MPI_Wait", program)))
        assert own.endswith(
            "; the program defines MPI_Wait itself: link it with the shared MPI, or let its wrapper call the "
            "next library's MPI_Wait"
        )
