"""One-sided communication, persistent collectives and files are counted exactly, on every MPI."""

import random
from collections import Counter

import pytest

from tests.conftest import require_mpi
from tests.recorded_traffic import RANKS, expected, pairs_of

pytestmark = pytest.mark.mpi

# How often each style of tests/native/programs/record_calls.c moves the data of the messages.
ONE_SIDED = {
    "put_fence": 1, "get_fence": 1, "accumulate_fence": 1, "put_lock": 1, "rput": 1, "rget": 1,
    "put_post": 1, "put_split": 3,
}  # fmt: skip
STARTS = 3


def messages_of(style):
    """60 messages between random ranks, of one parity in `put_split`."""
    chosen = random.Random(style)
    pairs = [(s, d) for s in range(RANKS) for d in range(RANKS) if style != "put_split" or s % 2 == d % 2]
    limits = (0, 1, 50, 3000, 60000)
    return [(*chosen.choice(pairs), 4 * chosen.randint(0, chosen.choice(limits))) for _ in range(60)]


@pytest.fixture
def record_calls(record):
    def run(mpi, style, messages, **more):
        return record(mpi, style, messages, program="record_calls", **more)

    return run


def totals_of(recording):
    return {total.name: (total.calls, total.bytes) for total in recording.call_totals()}


@pytest.mark.parametrize("style", ONE_SIDED)
def test_data_moved_by_one_side_is_counted_once_for_its_pair(mpi, record_calls, style):
    messages = messages_of(style)
    _, recording = record_calls(mpi, style, messages)
    assert pairs_of(recording.one_sided()) == expected(messages, ONE_SIDED[style])
    assert pairs_of(recording.sent()) == pairs_of(recording.received()) == {}


def test_atomics_move_data_both_ways(mpi, record_calls):
    messages = messages_of("both_ways")
    _, recording = record_calls(mpi, "both_ways", messages)
    counts, sizes = Counter(), Counter()
    for src, dst, size in messages:
        counts[src, dst] += 3
        sizes[src, dst] += size + 2 * 4
        counts[dst, src] += 4
        sizes[dst, src] += size + 3 * 4
    assert pairs_of(recording.one_sided()) == {pair: (counts[pair], sizes[pair]) for pair in counts}
    assert totals_of(recording)["MPI_Fetch_and_op"] == (2 * len(messages), 3 * 4 * len(messages))


@pytest.mark.parametrize("mpi", ["mpich", "intel"])
def test_one_sided_calls_with_large_counts_are_recorded(mpi, record_calls):
    require_mpi(mpi)
    messages = messages_of("put_large")
    _, recording = record_calls(mpi, "put_large", messages)
    assert pairs_of(recording.one_sided()) == expected(messages, 1)
    assert {"MPI_Put_c", "MPI_Win_create_c"} <= set(totals_of(recording))


def test_time_of_synchronisation_is_that_of_its_target(any_mpi, record_calls):
    messages = messages_of("put_lock")
    _, recording = record_calls(any_mpi, "put_lock", messages)
    locks = Counter()
    for rank, one in recording.ranks.items():
        for entry in one.entries[one.entries["call"] == one.calls.index("MPI_Win_unlock")]:
            locks[rank, int(entry["peer"])] += int(entry["calls"])
            assert entry["time_ns"] > 0
    assert locks == Counter((src, dst) for src, dst, _ in messages)


@pytest.mark.parametrize("style", ["persistent_alltoallv", "persistent_alltoallw", "persistent_neighbours"])
def test_blocks_of_persistent_collectives_are_counted_at_every_start(mpi, record_calls, style):
    messages = messages_of(style)
    _, recording = record_calls(mpi, style, messages)
    blocks = Counter()
    for src, dst, size in messages:
        blocks[src, dst] += size
    wanted = {pair: (STARTS, STARTS * size) for pair, size in blocks.items() if size > 0}
    assert pairs_of(recording.sent()) == pairs_of(recording.received()) == wanted


def test_bytes_of_persistent_collectives_are_counted_at_every_start(mpi, record_calls):
    _, recording = record_calls(mpi, "persistent_collectives", [])
    totals = totals_of(recording)
    assert totals["MPI_Barrier_init"] == (RANKS, 0)
    assert totals["MPI_Bcast_init"] == (RANKS, STARTS * RANKS * 400)
    assert totals["MPI_Allreduce_init"] == (RANKS, STARTS * RANKS * 80)
    assert totals["MPI_Gather_init"] == (RANKS, STARTS * (4 * 3 + 3 * 3))
    assert totals["MPI_Reduce_init"] == (RANKS, 0)
    starts = {total.name: total.starts for total in recording.call_totals()}
    assert starts["MPI_Barrier_init"] == starts["MPI_Gather_init"] == STARTS * RANKS
    assert starts["MPI_Reduce_init"] == starts["MPI_Start"] == 0


def test_bytes_of_files_are_those_that_each_rank_asks_for(mpi, record_calls):
    _, recording = record_calls(mpi, "files", [])
    totals = totals_of(recording)
    assert totals["MPI_File_write_at"] == (RANKS, sum(100 + rank for rank in range(RANKS)))
    assert totals["MPI_File_write_at_all"] == (RANKS, RANKS * 200)
    assert totals["MPI_File_iwrite_at"] == (RANKS, RANKS * 30)
    assert totals["MPI_File_read"] == (RANKS, RANKS * 10)
    assert totals["MPI_File_read_all"] == (RANKS, RANKS * 20)
    assert totals["MPI_File_read_at_all_begin"] == (RANKS, RANKS * 40)
    timed = ("open", "set_view", "sync", "seek", "read_at_all_end", "close")
    assert {totals[f"MPI_File_{name}"] for name in timed} == {(RANKS, 0)}


def test_a_program_that_uses_sessions_alone_is_reported(mpi, record_calls):
    result, recording = record_calls(mpi, "sessions", [])
    assert result.stderr.count("earlybird: the program uses MPI sessions") == 1
    assert "warning: the program uses MPI sessions" in result.stderr
    assert not recording.ranks


def test_one_sided_data_is_shown_and_becomes_part_of_a_pattern(any_mpi, record_calls, own_process):
    messages = [(0, 1, 1000), (0, 1, 1001), (2, 3, 8), (1, 1, 5)]
    result, recording = record_calls(any_mpi, "rput", messages)
    assert not recording.uses_sessions
    assert "one-sided" in result.stdout
    left_out = own_process("pattern", "recording", "rec", "-o", "none.csv", check=False)
    assert "--one-sided" in left_out.stderr
    own_process("pattern", "recording", "rec", "-o", "exchange.csv", "--all", "--one-sided")
    shown = own_process("show", "exchange.csv", "--format", "csv").stdout
    assert sorted(shown.splitlines()[1:]) == ["0,1,1000", "0,1,1001", "2,3,8"]
