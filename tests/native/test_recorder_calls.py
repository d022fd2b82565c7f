"""One-sided communication, persistent collectives and files are counted exactly, on every MPI."""

import random
from collections import Counter

import pytest

from tests.recorded_traffic import RANKS, expected, pairs_of, phases_of

pytestmark = pytest.mark.mpi

# How often each style of tests/native/programs/record_calls.c moves the data of the messages.
ONE_SIDED = {
    "put_fence": 1, "get_fence": 1, "accumulate_fence": 1, "put_lock": 1, "rput": 1, "rget": 1,
    "put_post": 1, "put_split": 3,
}  # fmt: skip
STARTS = 3
LARGE_COUNTS = ("mpich", "intel")


def messages_of(style):
    """60 messages between random ranks, of one parity in `put_split`."""
    chosen = random.Random(style)
    pairs = [(s, d) for s in range(RANKS) for d in range(RANKS) if style != "put_split" or s % 2 == d % 2]
    limits = (0, 1, 50, 3000, 60000)
    return [(*chosen.choice(pairs), 4 * chosen.randint(0, chosen.choice(limits))) for _ in range(60)]


@pytest.fixture
def record_calls(record):
    def run(mpi, styles, **more):
        return record(mpi, styles, program="record_calls", **more)

    return run


def totals_of(recording):
    return {total.name: (total.calls, total.bytes) for total in recording.call_totals()}


def test_data_moved_by_one_side_is_counted_once_for_its_pair(mpi, record_calls):
    times = ONE_SIDED | ({"put_large": 1} if mpi in LARGE_COUNTS else {})
    styles = {style: messages_of(style) for style in [*times, "both_ways"]}
    _, recording = record_calls(mpi, styles)
    wanted = {style: expected(styles[style], times[style]) for style in times}
    wanted["both_ways"] = atomics_of(styles["both_ways"])
    phases = phases_of(recording, styles)
    assert {style: pairs_of(recording.one_sided(of)) for style, of in phases.items()} == wanted
    assert pairs_of(recording.sent()) == pairs_of(recording.received()) == {}
    totals = totals_of(recording)
    assert totals["MPI_Fetch_and_op"] == (2 * len(styles["both_ways"]), 3 * 4 * len(styles["both_ways"]))
    assert {"MPI_Put", "MPI_Win_create"} <= set(totals)
    # The time of synchronisation is that of its target.
    locks = Counter()
    for rank, one in recording.ranks.items():
        for entry in one.entries[one.entries["call"] == one.calls.index("MPI_Win_unlock")]:
            locks[rank, int(entry["peer"])] += int(entry["calls"])
            assert entry["time_ns"] > 0
    assert locks == Counter((src, dst) for src, dst, _ in styles["put_lock"])


def atomics_of(messages):
    """What the style `both_ways` moves: each message both ways, an integer both ways twice, and one back."""
    counts, sizes = Counter(), Counter()
    for src, dst, size in messages:
        counts[src, dst] += 3
        sizes[src, dst] += size + 2 * 4
        counts[dst, src] += 4
        sizes[dst, src] += size + 3 * 4
    return {pair: (counts[pair], sizes[pair]) for pair in counts}


def test_persistent_collectives_are_counted_at_every_start(mpi, record_calls):
    blocks = ("persistent_alltoallv", "persistent_alltoallw", "persistent_neighbours")
    styles = {style: messages_of(style) for style in blocks} | {"persistent_collectives": []}
    _, recording = record_calls(mpi, styles)
    wanted = {"persistent_collectives": {}}
    for style in blocks:
        sizes = Counter()
        for src, dst, size in styles[style]:
            sizes[src, dst] += size
        wanted[style] = {pair: (STARTS, STARTS * size) for pair, size in sizes.items() if size > 0}
    phases = phases_of(recording, styles)
    assert {style: pairs_of(recording.sent(of)) for style, of in phases.items()} == wanted
    assert {style: pairs_of(recording.received(of)) for style, of in phases.items()} == wanted
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
    _, recording = record_calls(mpi, {"files": []})
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
    result, recording = record_calls(mpi, {"sessions": []})
    assert result.stderr.count("earlybird: the program uses MPI sessions") == 1
    assert "warning: the program uses MPI sessions" in result.stderr
    assert not recording.ranks


def test_one_sided_data_is_shown_and_becomes_part_of_a_pattern(
    any_mpi, record_calls, own_process, in_process
):
    messages = [(0, 1, 1000), (0, 1, 1001), (2, 3, 8), (1, 1, 5)]
    result, recording = record_calls(any_mpi, {"rput": messages})
    assert not recording.uses_sessions
    assert "one-sided" in result.stdout
    left_out = own_process("pattern", "recording", "rec", "-o", "none.csv", check=False)
    assert "--one-sided" in left_out.stderr
    in_process("pattern", "recording", "rec", "-o", "exchange.csv", "--all", "--one-sided")
    shown = in_process("show", "exchange.csv", "--format", "csv").stdout
    assert sorted(shown.splitlines()[1:]) == ["0,1,1000", "0,1,1001", "2,3,8"]
