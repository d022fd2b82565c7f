"""Files of ranks: whole chunks count, a later entry replaces an earlier one, bad files are refused."""

import json
import math
import os
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest

from earlybird.analysis.gaps import lost_parts, remarks
from earlybird.data.errors import InputError
from earlybird.data.kept_where import save_where
from earlybird.data.rank_file import read_whole
from earlybird.data.recorded_rank import CALL, GOT, PUT, RECEIVED, SENT, STARTED, Step
from earlybird.data.recording import load_recording
from earlybird.patterns.recorded import exchange_of_all
from tests.recordings import start_recording

CALLS = ["MPI_Send", "MPI_Recv"]


def chunk(kind, payload):
    return struct.pack("=IIQII", 0x43524245, kind, len(payload), zlib.crc32(payload), 0) + payload


def text(**value):
    return chunk(1, json.dumps(value).encode())


def header(rank, size=2, **more):
    value = {
        "rank": rank,
        "size": size,
        "host": "n",
        "mpi": "An MPI",
        "thread_level": "single",
        "calls": CALLS,
    }
    return text(**{"kind": "header", "schema": "earlybird.recording/1"} | value | more)


def entries(*rows, run_ns=1000):
    """Rows: call, role, size class, peer, messages, bytes."""
    packed = [
        struct.pack(
            "=HBBIiIII4Q", call, role, size_class, 1, peer, 0, 0, 0, messages, messages, size, 10 * messages
        )
        for call, role, size_class, peer, messages, size in rows
    ]
    return chunk(2, struct.pack("=Q", run_ns) + b"".join(packed))


END = text(kind="end", how="finalize", run_s=2.0)


@pytest.fixture
def written(tmp_path):
    """written({rank: bytes}) is a recording with these files."""

    def write(contents, name="rec"):
        folder = tmp_path / name
        start_recording(folder, {"command": ["app"]})
        for rank, data in contents.items():
            (folder / f"rank-{rank}.ebr").write_bytes(data)
        return folder

    return write


def rows_of(totals):
    return np.column_stack([totals.src, totals.dst, totals.messages, totals.bytes]).tolist()


def test_the_last_total_of_a_key_counts(written):
    first = entries((0, SENT, 4, 1, 3, 30), (0, SENT, 5, 1, 1, 20))
    then = entries((0, SENT, 4, 1, 5, 50), run_ns=3_000_000_000)
    recording = load_recording(written({0: header(0) + first + then + END, 1: header(1) + END}))
    assert rows_of(recording.sent()) == [[0, 1, 5, 50], [0, 1, 1, 20]]
    assert rows_of(recording.sent().by_pair()) == [[0, 1, 6, 70]]
    assert recording.run_s == 3.0
    assert recording.command == ("app",)
    (send,) = recording.call_totals()
    assert (send.name, send.calls, send.messages, send.bytes) == ("MPI_Send", 6, 6, 70)
    assert send.time_s == pytest.approx(60e-9)


def test_a_file_cut_anywhere_counts_up_to_the_last_whole_chunk(written, tmp_path):
    parts = [header(0), entries((0, SENT, 4, 1, 3, 30)), entries((0, SENT, 4, 1, 5, 50)), END]
    data = b"".join(parts)
    folder = written({})
    ends = np.cumsum([len(part) for part in parts])
    for length in range(len(data) + 1):
        (folder / "rank-0.ebr").write_bytes(data[:length])
        recording = load_recording(folder)
        whole = int((ends <= length).sum())
        assert bool(recording.ranks) == (whole > 0)
        if whole:
            messages = {1: [], 2: [[0, 1, 3, 30]], 3: [[0, 1, 5, 50]], 4: [[0, 1, 5, 50]]}[whole]
            assert rows_of(recording.sent()) == messages
            assert recording.ended_early == ([] if whole == 4 else [0])
            assert recording.ranks[0].is_cut == (length not in ends)
            assert not recording.ranks[0].is_damaged


def test_nothing_after_a_damaged_chunk_counts(written):
    damaged = bytearray(entries((0, SENT, 4, 1, 5, 50)))
    damaged[-1] ^= 1
    data = header(0) + entries((0, SENT, 4, 1, 3, 30)) + bytes(damaged) + END
    recording = load_recording(written({0: data}))
    assert rows_of(recording.sent()) == [[0, 1, 3, 30]]
    assert recording.ranks[0].is_cut


@pytest.mark.parametrize("at", ["head", "length", "payload", "last"])
def test_a_file_that_was_changed_is_damaged_and_not_cut(written, at):
    first, then = entries((0, SENT, 4, 1, 3, 30)), entries((0, SENT, 4, 1, 5, 50))
    data = bytearray(header(0) + first + then + END)
    place = {"head": 0, "length": 9, "payload": 30, "last": len(then) + 30}[at]
    begin = len(header(0)) + len(first) + place
    data[begin : begin + 2] = b"\xff\xff"
    recording = load_recording(written({0: bytes(data), 1: header(1) + END}))
    assert recording.ranks[0].is_damaged and recording.missing == []
    (said,) = lost_parts(recording)
    assert "rank-0.ebr is damaged, so only" in said and "record again" in said


@pytest.mark.parametrize("place", [0, 8, 30])
def test_a_file_that_was_changed_at_its_beginning_is_refused(written, place):
    data = bytearray(header(1) + END)
    data[place : place + 8] = b"\xff" * 8
    with pytest.raises(InputError, match=r"rank-1.ebr is damaged at its beginning; record"):
        load_recording(written({0: header(0) + END, 1: bytes(data)}))


def test_the_file_of_another_rank_is_refused(written):
    with pytest.raises(InputError, match=r"rank-1.ebr is that of rank 0; put the right one"):
        load_recording(written({0: header(0) + END, 1: header(0) + END}))


def test_a_file_of_zeros_is_as_an_empty_one(written):
    assert load_recording(written({0: header(0) + END, 1: b"\0" * 100})).empty == (1,)


def test_messages_of_a_rank_without_a_file_are_those_that_others_received(written):
    data = header(1) + entries((1, RECEIVED, 4, 0, 2, 20), (0, SENT, 4, 0, 1, 9)) + END
    recording = load_recording(written({1: data}))
    assert recording.missing == [0]
    assert rows_of(recording.sent()) == [[0, 1, 2, 20], [1, 0, 1, 9]]


def test_one_sided_data_goes_from_the_memory_read_to_the_memory_written(written):
    first = header(0) + entries((0, PUT, 4, 1, 3, 30), (0, GOT, 5, 1, 1, 20), (0, SENT, 1, 1, 1, 1)) + END
    recording = load_recording(written({0: first, 1: header(1) + entries((0, GOT, 4, 0, 2, 16)) + END}))
    assert rows_of(recording.one_sided()) == [[0, 1, 5, 46], [1, 0, 1, 20]]
    assert rows_of(recording.sent()) == [[0, 1, 1, 1]]
    assert exchange_of_all(recording).pattern.num_messages == 1
    pattern = exchange_of_all(recording, one_sided=True).pattern
    assert (pattern.num_messages, pattern.total_bytes) == (7, 67)


def test_starts_of_persistent_collectives_are_no_calls(written):
    def row(role, calls, size):
        return struct.pack("=HBBIiIII4Q", 0, role, 3, 1, -1, 0, 0, 0, calls, 0, size, 10)

    counted = chunk(2, struct.pack("=Q", 1) + row(CALL, 1, 0) + row(STARTED, 6, 42))
    (total,) = load_recording(written({0: header(0) + counted + END})).call_totals()
    assert (total.calls, total.starts, total.messages, total.bytes) == (1, 6, 0, 42)


def test_sessions_are_said(written, tmp_path):
    folder = written({rank: header(rank, size=2) + END for rank in range(2)})
    assert remarks(load_recording(folder)) == []
    (folder / "sessions").touch()
    assert ["sessions" in sentence for sentence in remarks(load_recording(folder))] == [True]


def test_a_pattern_has_each_pairs_messages_and_bytes(written):
    data = header(0) + entries((0, SENT, 4, 1, 3, 31), (0, SENT, 1, 1, 1, 1), (0, SENT, 4, 0, 7, 60)) + END
    recording = load_recording(written({0: data, 1: header(1) + END}))
    made = exchange_of_all(recording)
    pattern, left_out = made.pattern, made.left_out
    assert pattern.triples().tolist() == [[0, 1, 1], [0, 1, 11], [0, 1, 10], [0, 1, 10]]
    assert left_out == 7
    combined = exchange_of_all(recording, combined=True).pattern
    assert combined.triples().tolist() == [[0, 1, 32]]


def test_a_main_thread_has_slept_where_it_neither_ran_nor_waited_for_a_core(written):
    """At least 1.5 s of 2 s, for the first rank may have slept in its call of 0.4 s."""
    ends = [
        {"ran_s": 0.1, "core_wait_s": 0.0},
        {"ran_s": 0.5, "core_wait_s": 0.5},
        {"ran_s": 2.1, "core_wait_s": 0},
    ]
    in_calls = entries((1, CALL, 0, -1, 40_000_000, 0))  # of 10 ns each
    files = {
        rank: header(rank, size=3)
        + in_calls * (rank == 0)
        + text(kind="end", how="finalize", run_s=2.0, **end)
        for rank, end in enumerate(ends)
    }
    recording = load_recording(written(files))
    assert [recording.ranks[rank].slept_s for rank in range(3)] == pytest.approx([1.5, 1.0, 0.0])
    assert recording.slept_share == pytest.approx((0.75 + 0.5) / 3)
    assert load_recording(written({0: header(0) + END}, "other")).slept_share is None


def test_waiting_for_a_core_is_a_share_of_the_run(written):
    ends = [{}, {"core_wait_s": 0.5}, {"core_wait_s": 9.0}]
    files = {
        rank: header(rank, size=3) + text(kind="end", how="finalize", run_s=2.0, **end)
        for rank, end in enumerate(ends)
    }
    recording = load_recording(written(files))
    assert [recording.ranks[rank].core_wait_s for rank in range(3)] == [None, 0.5, 9.0]
    assert recording.core_wait_share == pytest.approx((0.25 + 1.0) / 2)
    assert load_recording(written({0: header(0) + END}, "other")).core_wait_share is None


def test_what_had_been_counted_of_an_open_epoch_adds_to_the_totals_unless_more_follows(written):
    totals, row = entries((0, SENT, 4, 1, 3, 30)), (0, SENT, 4, 1, 2, 20)
    pending = entries(row, row, (1, RECEIVED, 4, 1, 1, 9), run_ns=4_000_000_000)
    pending = chunk(4, pending[24:])
    recording = load_recording(written({0: header(0) + totals + pending, 1: header(1) + END}))
    assert rows_of(recording.sent()) == [[0, 1, 7, 70]]
    assert rows_of(recording.received()) == [[1, 0, 1, 9]]
    assert recording.ranks[0].run_s == 4.0
    counted = entries((0, SENT, 4, 1, 7, 70))
    later = load_recording(written({0: header(0) + totals + pending + counted, 1: header(1) + END}, "later"))
    assert rows_of(later.sent()) == [[0, 1, 7, 70]] and not rows_of(later.received())


def test_settings_and_conditions_of_ranks_are_kept(written):
    of_rank = {
        0: {
            "settings": {
                "MPIR_CVAR_X": "1",
                "OMP_NUM_THREADS": "2",
                "I_MPI_INFO_LCPU": "2",
                "EARLYBIRD_HOME": "/",
            },
            "binding": [0, 1],
            "load": [0.5, 1, 2],
        },
        1: {"settings": {"MPIR_CVAR_X": "3"}},
    }
    recording = load_recording(written({rank: header(rank, **more) + END for rank, more in of_rank.items()}))
    assert recording.settings == {
        "MPIR_CVAR_X": {"1": (0,), "3": (1,)}, "OMP_NUM_THREADS": {"2": (0,)}
    }  # fmt: skip
    assert (recording.ranks[0].binding, recording.ranks[0].load) == ((0, 1), (0.5, 1.0, 2.0))
    assert (recording.ranks[1].binding, recording.ranks[1].load) == ((), ())


def test_libraries_preloaded_to_record_are_no_settings(written):
    ours = "/x/libearlybird_recorder.so:/mpi/lib/libmpi.so.12"
    values = (f"/y/libmpiP.so:{ours}", ours)
    headers = {rank: header(rank, settings={"LD_PRELOAD": value}) for rank, value in enumerate(values)}
    recording = load_recording(written({rank: one + END for rank, one in headers.items()}))
    assert recording.settings == {"LD_PRELOAD": {"/y/libmpiP.so": (0,)}}


def test_communicators_keep_their_identity(written):
    world = {"rank": 0, "name": "", "topology": "none", "members": [0, 1]}
    data = header(0) + text(kind="communicator", number=1, **world)
    data += text(kind="communicator", number=2, identity=2**64 - 1, **world) + END
    known = load_recording(written({0: data, 1: header(1) + END})).ranks[0].communicators
    assert (known[1].identity, known[2].identity) == (None, 2**64 - 1)


def test_samples_of_epochs_are_kept_by_phase_and_thread(written):
    first = [[0, SENT, 1, 1, 1, 8], [1, RECEIVED, 1, 1, 1, 8]]
    samples = {"phase": 1, "thread": 0, "sampled": [[0, 0], [1, 1], [9, 0]], "variants": [first, []]}
    data = header(0) + text(kind="epochs", **samples | {"sampled": []})
    data += text(kind="epochs", **samples) + text(
        kind="epochs", phase=2, thread=0, sampled=[], variants=[], complete=False
    )
    found = load_recording(written({0: data + END, 1: header(1) + END})).ranks[0].epoch_samples
    assert set(found) == {(1, 0), (2, 0)} and not found[2, 0].is_complete
    assert (found[1, 0].epochs.tolist(), found[1, 0].variant.tolist()) == ([0, 1, 9], [0, 1, 0])
    assert found[1, 0].variants[0]["role"].tolist() == [SENT, RECEIVED] and found[1, 0].is_complete
    assert len(found[1, 0].variants[1]) == 0


def open_calls(*calls, zero=10**9, written=0):
    """The file of open calls: for each thread begin in seconds, site, call, communicator, peer, tag."""
    tick_s = 1e-9
    head = struct.pack("=QIIdQQ", 0x314E45504F4245, len(calls), 64, tick_s, zero, written)
    slots = [
        struct.pack("=QQIIiiQ3Q", zero + round(begin / tick_s) if begin is not None else 0, *more, 0, 0, 0, 0)
        for begin, *more in calls
    ]
    return head.ljust(64, b"\0") + b"".join(slots)


def test_the_call_in_which_a_rank_hung_is_known(written):
    modules = [{"module": "/bin/app", "begin": 4096, "end": 8192}]
    data = header(0) + text(kind="modules", modules=modules) + entries((0, SENT, 4, 1, 3, 30))
    folder = written({0: data, 1: header(1) + END})
    (folder / "rank-0.open").write_bytes(open_calls((None, 0, 0, 0, 0, 0), (2.5, 4100, 1, 1, 1, 7)))
    (folder / "rank-1.open").write_bytes(open_calls((2.5, 4100, 1, 1, 1, 7)))
    recording = load_recording(folder)
    opened = recording.ranks[0].open_call
    assert (opened.call, opened.thread, opened.peer, opened.tag) == ("MPI_Recv", 1, 1, 7)
    assert opened.since_s == pytest.approx(2.5)
    assert (opened.site.module, opened.site.offset) == ("/bin/app", 4)
    assert recording.ranks[1].open_call is None  # it has ended
    assert opened.seen_s is None and "had not returned from MPI_Recv" in lost_parts(recording)[-1]
    (folder / "rank-0.open").write_bytes(open_calls((2.5, 4100, 1, 1, 1, 7), written=4 * 10**9))
    recording = load_recording(folder)
    assert recording.ranks[0].open_call.seen_s == pytest.approx(3)
    assert lost_parts(recording)[-1].endswith("when that was last written")  # it may have returned since
    for length in range(0, 192, 8):
        (folder / "rank-0.open").write_bytes(open_calls((2.5, 1, 1, 1, 1, 7))[:length])
        opened = load_recording(folder).ranks[0].open_call
        assert opened is None or opened.site is None


def test_a_run_that_is_taken_for_a_recording_is_named(tmp_path):
    (tmp_path / "run.json").touch()
    with pytest.raises(InputError, match="is a run of `measure`, not a recording; give a folder that"):
        load_recording(tmp_path)


def test_who_waited_for_whom_and_for_how_long_is_kept(written, in_process):
    data = header(0) + entries((0, SENT, 4, 1, 3, 30))
    folder = written({0: data, 1: header(1) + END})
    (folder / "rank-0.open").write_bytes(open_calls((2.5, 0, 1, 1, 1, 7)))
    assert "takes the most time" not in in_process("show", folder).stdout  # the open call may take more
    threads = [{"rank": 0, "thread": 0, "call": "MPI_Recv", "site": "", "since_s": 40.0, "pending": []}]
    kept = {
        "schema": "earlybird.where/1",
        "verdict": "deadlock",
        "sentence": "Deadlock: ranks.",
        "threads": threads,
    }
    save_where(folder, kept)
    recording = load_recording(folder)
    assert recording.ranks[0].open_call.open_s == 40
    assert recording.run_s == pytest.approx(42.5)
    assert max(recording.call_totals(), key=lambda total: total.time_s).name == "MPI_Recv"
    lines = in_process("show", folder).stdout.splitlines()
    assert "42.5 s" in lines[0]
    assert lines[1] == "Deadlock: ranks." and any(line.startswith("MPI_Recv takes") for line in lines)
    shown = json.loads(in_process("show", folder, "--json").stdout)
    assert shown["where"] == kept
    assert (shown["open_calls"][0]["entered_s"], shown["open_calls"][0]["since_s"]) == (2.5, 40.0)
    save_where(folder, kept | {"states": {"0": "ended", "1": "ended"}})
    assert "1      has ended without MPI_Finalize" in in_process("show", folder).stdout
    for damage in (
        {"threads": 3},
        {"states": {"x": "ended"}},
        {"sentence": 1},
        {"schema": "earlybird.where/9"},
        {"threads": [{"rank": -1}]},
        {"threads": [{"rank": 0, "pending": 3}]},
        {"threads": [{"rank": 0, "pending": [{"peer": "x"}]}]},
    ):
        save_where(folder, kept | damage)
        with pytest.raises(InputError, match=r"where\.json"):
            load_recording(folder)


def test_too_many_messages_for_a_pattern_are_refused(written):
    data = header(0) + entries((0, SENT, 4, 1, 10**7, 10**8)) + END
    with pytest.raises(InputError, match="--combined"):
        exchange_of_all(load_recording(written({0: data})))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (header(0, schema="earlybird.recording/9"), "earlybird.recording/9"),
        (END, "no header"),
        (header(0, calls=None), "damaged"),
        (header("x"), "damaged"),
        (header(0) + chunk(1, b"{"), "damaged"),
        (header(0) + chunk(1, b"[]"), "damaged"),
        (header(0) + chunk(2, b"\0" * 9), "damaged"),
        (header(0) + entries((7, SENT, 4, 1, 3, 30)), "damaged"),
        (header(0) + text(kind="communicator", number=1), "damaged"),
        (header(0) + text(kind="epochs", phase=1, thread=0, sampled=[[0, 1]], variants=[[]]), "damaged"),
        (header(0) + text(kind="epochs", phase=1, thread=0, sampled=[], variants=[[[1]]]), "damaged"),
        (header(0) + text(kind="place", address=1), "damaged"),
        (header(0, settings=[]), "damaged"),
        (header(0) + text(kind="end", how="finalize", run_s=2.0, core_wait_s=-1.0), "damaged"),
        (header(0) + text(kind="end", how="finalize", run_s=2.0, core_wait_s=math.nan), "damaged"),
        (header(0) + text(kind="end", how="finalize", run_s=1e300), "run_s is 1e[+]300"),
        (header(0, begin_s=1e15), "begin_s is"),
        (header(0) + entries((0, SENT, 4, 1_500_000_000, 3, 30)), "peer is"),
        (header(0) + entries((0, SENT, 4, -9, 3, 30)), "peer is"),
        (header(0) + entries((0, SENT, 4, 1, 3, 2**63)), "bytes is"),
        (header(0) + entries(*[(0, SENT, 4, peer, 3, 2**62) for peer in (0, 1)]), "bytes is .* altogether"),
        (header(0) + text(kind="communicator", number=1, rank=0, name="c", topology="none",
                          members={"first": 0, "stride": 1, "num": 1_000_000}), "has the ranks 0 to 999999"),
        (header(0) + text(kind="phase", number=1, region=1, steps=[
            {"call": 9, "module": "a", "offset": 1, "function": "f", "address": 1}]), "damaged"),
    ],
)  # fmt: skip
def test_files_of_no_recording_are_refused_in_a_sentence(written, data, said):
    with pytest.raises(InputError, match=said):
        load_recording(written({0: data}))


def test_a_device_in_the_place_of_a_file_is_not_read(written):
    folder = written({0: header(0) + END})
    (folder / "rank-1.ebr").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is a device"):
        load_recording(folder)


def test_files_that_do_not_fit_into_memory_are_refused(written):
    path = written({0: header(0) + END})
    for name in ("rank-0.ebr", "rank-0.open"):
        (path / name).touch()
        os.truncate(path / name, 1 << 42)
        with pytest.raises(InputError, match="has 4 TiB, which take about 12 TiB of memory"):
            read_whole(path / name)


def test_a_folder_that_is_no_recording_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is no recording \(no recording\.json in it\)"):
        load_recording(tmp_path)
    (tmp_path / "recording.json").write_text('{"schema": "earlybird.recording/2"}')
    with pytest.raises(InputError, match="recording/2"):
        load_recording(tmp_path)
    with pytest.raises(InputError, match="exists already"):
        start_recording(tmp_path, {})
    with pytest.raises(InputError, match="cannot create"):
        start_recording(tmp_path / "no" / "rec", {})


def test_a_recording_to_which_no_rank_has_written_is_replaced(tmp_path, written):
    start_recording(tmp_path / "rec", {"command": ["first"]})
    start_recording(tmp_path / "rec", {"command": ["second"]})
    assert load_recording(tmp_path / "rec").command == ("second",)
    (tmp_path / "rec" / "rank-0.ebr").write_bytes(b"")
    with pytest.raises(InputError, match="exists already"):
        start_recording(tmp_path / "rec", {})


def test_ranks_of_a_larger_second_job_are_not_taken_for_the_first(written):
    """Its first ranks have a number of the job in their names; the names of the others were free."""
    first = {rank: header(rank) + entries((0, SENT, 4, 1 - rank, 1, 8)) + END for rank in (0, 1)}
    second = {rank: header(rank, 4) + entries((0, SENT, 4, 0, 1, 8)) + END for rank in (2, 3)}
    recording = load_recording(written(first | second))
    assert (recording.size, list(recording.ranks), recording.num_other) == (2, [0, 1], 2)
    assert not recording.missing


def test_a_place_has_the_best_name_that_is_known():
    place = Step("MPI_Send", "/bin/stencil", 0x1436)
    assert (place.name, place.place) == ("stencil+0x1436",) * 2
    with_line = replace(place, file="src/halo.c", line=31)
    assert (with_line.name, with_line.place) == ("halo.c:31",) * 2
    named = replace(with_line, function="main")
    assert (named.name, named.place) == ("main", "main (halo.c:31)")
