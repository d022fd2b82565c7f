"""Simulated recordings: runs of two ranks whose times can be computed by hand, and what is refused."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.profile import Level, Profile, Protocol, Replicate
from earlybird.data.recorded_rank import CALL, NULL_PEER, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL
from earlybird.data.recording import load_recording
from earlybird.data.simulated_program import simulated_program_from_json
from earlybird.models.program import Operation
from earlybird.present.subjects.program.simulated import change_line
from earlybird.record import simulation
from earlybird.record.conditions import conditions_as_recorded
from earlybird.record.operations import ALWAYS, BYTES_PER_EVENT, NEVER, operations_of
from earlybird.record.window import parse_window
from tests import recordings
from tests.recordings import ALLREDUCE, FINALIZE, INIT, IRECV, ISEND, WAITALL

WORLD, LATENCY_S, BANDWIDTH, SMALL = 1, 3e-6, 1e9, 10_000
OVERHEAD_S = LATENCY_S / 3  # of the sender, of the receiver, and of the way between
# What the ranks do: rank 0 computes for 100 ms and sends; rank 1 waits for it. Both meet in an allreduce, to
# which rank 0 comes at 200 ms, and which costs 1 ms; then they compute until the end.
SENT_S, MEET_S, COST_S, END_S = 0.1, 0.2, 0.001, 0.31
SEND_CALL_S = 1e-4


def level(name, latency_s=LATENCY_S, bandwidth=BANDWIDTH):
    table = {1: bandwidth, 2: 2 * bandwidth}
    return Level(name, (
        Protocol(name="eager", min_bytes=0, latency_s=latency_s, bandwidth_bytes_per_s=table),
        Protocol(name="rendezvous", min_bytes=SMALL, latency_s=latency_s, bandwidth_bytes_per_s=table),
    ))  # fmt: skip


PROFILE = Profile({"intra_socket": level("intra_socket")}, "p")
LAYOUT = parse_layout("1x1x2", "core")


def _call(begin_s, end_s, call, request=0, kind=ONE_CALL, role=CALL, size=0, peer=-1, tag=-1, posted_s=None):
    of = 0 if call == WAITALL or call in (INIT, FINALIZE) else WORLD
    return (begin_s, end_s, call, role, of, peer, tag, kind, size, request, posted_s)


def _rows(size):
    """The events of both ranks for a message of this size that the profile predicts exactly."""
    arrives_s = SENT_S + OVERHEAD_S + size / BANDWIDTH + OVERHEAD_S + OVERHEAD_S
    sent_s = SENT_S + SEND_CALL_S
    waited_s = SENT_S + OVERHEAD_S + size / BANDWIDTH if size >= SMALL else sent_s
    done_s = max(sent_s, waited_s)
    rank_0 = [
        _call(-1.0, 0.0, INIT),
        _call(SENT_S, sent_s, ISEND, 1, role=SENT, size=size, peer=1, tag=5),
        _call(sent_s, done_s, WAITALL),
        _call(sent_s, done_s, ISEND, 1, COMPLETION, SENT, size, 1, 5, SENT_S),
        _call(MEET_S, MEET_S + COST_S, ALLREDUCE, size=8),
        _call(END_S - 0.01, END_S, FINALIZE),
    ]
    rank_1 = [
        _call(-1.0, 0.002, INIT),
        _call(0.01, 0.011, IRECV, 1, peer=0),
        _call(0.02, arrives_s, WAITALL),
        _call(0.02, arrives_s, IRECV, 1, MESSAGE, RECEIVED, size, 0, 5, 0.01),
        _call(0.15, MEET_S + COST_S, ALLREDUCE, size=8),
        _call(END_S, END_S + 0.05, FINALIZE),
    ]
    return rank_0, rank_1


@pytest.fixture
def recorded(tmp_path):
    """recorded(size) is the folder of the recording with a message of this size."""

    def make(size=1000, capacity=100):
        folder = recordings.on_disk(tmp_path / "rec", 2, [(0, 1, 1, size)])
        for rank, rows in enumerate(_rows(size)):
            (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, capacity, begin_s=1000.0))
        return folder

    return make


def _predict(folder, *changes, profile=PROFILE):
    operations = operations_of(load_recording(folder))
    given = conditions_as_recorded(operations, profile, LAYOUT)
    return simulation.predict_program(operations, given, [change(operations) for change in changes])


@pytest.mark.parametrize("size", [1000, 500_000], ids=["eager", "rendezvous"])
def test_run_that_the_profile_predicts_is_simulated_as_recorded(recorded, size):
    found = _predict(recorded(size))
    assert found.recorded_s == pytest.approx(END_S, abs=1e-8)
    assert found.as_recorded_s == pytest.approx(END_S, abs=1e-8)
    assert found.simulated_s == found.as_recorded_s
    assert (found.num_ranks, found.num_messages, found.changes) == (2, 1, ())
    assert simulated_program_from_json(json.loads(json.dumps(found.to_json()))) == found


def test_phases_tell_computing_from_waiting_and_transfer(recorded):
    rows = {row.call: row for row in _predict(recorded(500_000)).phases}
    waits = rows["MPI_Waitall"]
    # Rank 1 waits from 20 ms until the message is sent, and both for its bytes.
    assert waits.waiting_s == pytest.approx(SENT_S + OVERHEAD_S - 0.02, abs=1e-8)
    assert rows["MPI_Allreduce"].waiting_s == pytest.approx(MEET_S - 0.15, abs=1e-8)
    assert rows["MPI_Allreduce"].transfer_s == pytest.approx(2 * COST_S, abs=1e-8)
    assert rows["MPI_Isend"].computing_s == pytest.approx(SENT_S, abs=1e-8)


def test_critical_path_is_as_long_as_the_run(recorded):
    found = _predict(recorded())
    total_s = sum(part.computing_s + part.communicating_s for part in found.critical_path)
    assert total_s == pytest.approx(found.simulated_s)
    by_rank = {part.rank: 0.0 for part in found.critical_path}
    for part in found.critical_path:
        by_rank[part.rank] += part.computing_s
    # Rank 0 until the allreduce, and then rank 1, which is the last to end.
    assert by_rank[1] == pytest.approx(END_S - MEET_S - COST_S, abs=1e-6)


def test_efficiencies_multiply(recorded):
    found = _predict(recorded()).efficiency
    assert found.parallel == pytest.approx(found.load_balance * found.serialization * found.transfer)
    computed_s = (SENT_S + MEET_S - SENT_S - SEND_CALL_S + END_S - 0.01 - MEET_S - COST_S,
                  0.008 + 0.009 + 0.15 - SENT_S - 4e-6 + END_S - MEET_S - COST_S)  # fmt: skip
    assert found.load_balance == pytest.approx(sum(computed_s) / 2 / max(computed_s), abs=1e-5)


def test_computing_before_a_site_takes_a_multiple(recorded):
    found = _predict(recorded(), lambda all_of: simulation.computing_change(all_of, "MPI_Allreduce", 0.5))
    computes_s = MEET_S - SENT_S - SEND_CALL_S
    assert found.simulated_s == pytest.approx(END_S - computes_s / 2, abs=1e-7)
    assert found.as_recorded_s == pytest.approx(END_S, abs=1e-8)


def test_balanced_ranks_compute_the_mean_before_a_site(recorded):
    found = _predict(recorded(), lambda all_of: simulation.balance_change(all_of, "MPI_Allreduce"))
    arrived_s = SENT_S + 4e-6
    own_s = MEET_S - SENT_S - SEND_CALL_S, 0.15 - arrived_s
    meets_s = max(SENT_S + SEND_CALL_S, arrived_s) + sum(own_s) / 2
    assert found.simulated_s == pytest.approx(meets_s + END_S - MEET_S, abs=1e-7)


def test_changed_bandwidth_and_progress_change_the_message(recorded):
    size = 500_000_000
    folder = recorded(size)
    slow = _predict(folder)
    fast = _predict(folder, lambda _: simulation.settings_change(["intra_socket.bandwidth=10x"]))
    assert slow.as_recorded_s - fast.simulated_s == pytest.approx(0.9 * size / BANDWIDTH, abs=3e-6)


def test_replicates_of_the_profile_widen_the_interval(recorded):
    size = 40_000_000
    slower = [
        Replicate({"intra_socket": level("intra_socket", bandwidth=BANDWIDTH * by)}) for by in (0.9, 1.1)
    ]
    profile = replace(PROFILE, replicates=tuple(slower))

    def faster(_):
        return simulation.settings_change(["intra_socket.bandwidth=10x"])

    folder = recorded(size)
    alone, drawn = (_predict(folder, faster, profile=of) for of in (PROFILE, profile))
    assert drawn.simulated_s == alone.simulated_s
    assert drawn.interval_s[0] < 0.995 * alone.interval_s[0]
    assert drawn.interval_s[1] > 1.005 * alone.interval_s[1]


def test_few_launches_and_errors_between_sizes_widen_the_interval(recorded):
    folder = recorded(40_000_000)

    def width(**extra):
        of = replace(PROFILE.levels["intra_socket"], extra=extra)
        replicates = tuple(Replicate({"intra_socket": level("intra_socket", bandwidth=BANDWIDTH * by)})
                           for by in (0.99, 1.01))  # fmt: skip
        profile = replace(PROFILE, levels={"intra_socket": of}, replicates=replicates)
        found = _predict(
            folder, lambda _: simulation.settings_change(["intra_socket.bandwidth=10x"]), profile=profile
        )
        return found.interval_s[1] - found.interval_s[0]

    many, few, wrong = width(launches=30), width(launches=3), width(launches=30, held_out_error=0.2)
    assert few > 2 * many and wrong > 2 * many


def test_messages_take_the_time_with_reused_buffers_if_that_was_measured(recorded):
    size = 1 << 22
    of = replace(
        PROFILE.levels["intra_socket"],
        extra={"reused_s": {"1": {str(size): LATENCY_S + size / BANDWIDTH / 4}}},
    )
    folder, profile = recorded(size), replace(PROFILE, levels={"intra_socket": of})
    plain, cached = _predict(folder), _predict(folder, profile=profile)
    gained_s = plain.as_recorded_s - cached.as_recorded_s
    assert gained_s == pytest.approx(0.75 * size / BANDWIDTH, rel=1e-3)  # rank 0 waits for its send


def test_copying_of_a_send_is_not_kept_where_its_message_goes_another_way(recorded):
    """Rank 0 copies for 100 us when it sends; on one node its message waits for the receiver instead."""
    size = 500_000
    profile = replace(PROFILE, levels=PROFILE.levels | {"inter_node": level("inter_node")})
    operations = operations_of(load_recording(recorded(size)))
    given = conditions_as_recorded(operations, profile, parse_layout("2x1x1", "core"))
    moved = simulation.predict_program(operations, given, [simulation.layout_change(LAYOUT, "1x1x2")])
    stays = simulation.predict_program(
        operations, given, [simulation.settings_change(["inter_node.latency=1x"])]
    )
    sends = [next(row for row in of.phases if row.call == "MPI_Isend") for of in (stays, moved)]
    assert sends[0].transfer_s == pytest.approx(SEND_CALL_S, abs=1e-8)
    assert sends[1].transfer_s == pytest.approx(OVERHEAD_S, abs=1e-8)


def test_messages_of_more_bytes_than_caches_hold_take_the_time_of_memory(recorded):
    size = 1 << 22
    machine = {"caches": [{"size_bytes": 1 << 20}]}
    of = replace(PROFILE.levels["intra_socket"], extra={"reused_s": {"1": {str(size): 1e-4}}})
    folder = recorded(size)
    plain = _predict(folder)
    cold = _predict(folder, profile=replace(PROFILE, levels={"intra_socket": of}, machine=machine))
    assert cold.phases == plain.phases


def test_several_changes_are_simulated_together(recorded):
    found = _predict(
        recorded(),
        lambda all_of: simulation.computing_change(all_of, "MPI_Isend", 0.5),
        lambda all_of: simulation.computing_change(all_of, "MPI_Allreduce", 0.5),
    )
    # Rank 0 comes at 100 ms, rank 1 after half of its own computing.
    arrived_s = SENT_S / 2 + 4e-6
    assert found.simulated_s == pytest.approx(
        END_S - MEET_S + max(SENT_S / 2 + SEND_CALL_S + (MEET_S - SENT_S - SEND_CALL_S) / 2,
                             arrived_s + (0.15 - SENT_S - 4e-6) / 2), abs=1e-6,
    )  # fmt: skip


def test_receiver_that_computes_makes_a_large_message_wait(recorded):
    """Rank 1 posts its receive and computes: until it comes into the MPI, or not with progress."""
    size = 50_000_000
    computes_longer = 0.2

    def late(all_of):
        change = simulation.computing_change(all_of, "MPI_Waitall", 1.0)
        rank, sites = all_of.rank, [call for call, _ in all_of.sites]
        chosen = (rank == 1) & (all_of.site == sites.index("MPI_Waitall")) & (all_of.operation == 0)
        return replace(
            change,
            apply=lambda given: replace(given, compute_s=np.where(chosen, computes_longer, given.compute_s)),
        )

    folder = recorded(size)
    waits = _predict(folder, late)
    moves = _predict(folder, late, lambda _: simulation.progress_change())
    begins_s = 0.011 + computes_longer
    # Rank 0 waits for rank 1 to come into the MPI; then the bytes move, and both go on.
    after_s = (MEET_S - SENT_S - OVERHEAD_S - size / BANDWIDTH) + END_S - MEET_S
    assert waits.simulated_s == pytest.approx(begins_s + size / BANDWIDTH + after_s, abs=2e-6)
    assert moves.simulated_s < waits.simulated_s - 0.04
    rows = {row.call: row for row in waits.phases}
    assert rows["MPI_Waitall"].waiting_s == pytest.approx(begins_s - SENT_S - SEND_CALL_S, abs=1e-5)
    most = waits.critical_path[0]
    assert (most.rank, most.site) == (1, "MPI_Waitall")


def test_received_messages_without_a_send_are_counted(recorded):
    folder = recorded()
    rows = [row for row in _rows(1000)[0] if row[2] != ISEND]
    (folder / "rank-0.trace").write_bytes(recordings.trace_file(rows, 100, begin_s=1000.0))
    found = _predict(folder)
    assert found.num_messages == 0 and "1 received message without a send" in found.notes[-1]


def test_waits_for_cores_count_as_computing_and_the_result_says_so(recorded):
    operations = operations_of(load_recording(recorded()))
    conditions = conditions_as_recorded(operations, PROFILE, LAYOUT)
    found = simulation.predict_program(operations, conditions, core_wait_share=0.34)
    assert "waited for a core in 34 %" in found.notes[0] and "not known" in found.remedy()
    plain = simulation.predict_program(operations, conditions, core_wait_share=0.0)
    assert "not known" not in plain.remedy()
    faster = [simulation.computing_change(operations, "MPI_Allreduce", 0.5)]
    alone, waited = (
        simulation.predict_program(operations, conditions, faster, share) for share in (0.0, 0.34)
    )
    # A change may end all of the waiting, or double it.
    assert waited.interval_s[0] == pytest.approx(0.66 * alone.interval_s[0])
    assert waited.interval_s[1] == pytest.approx(1.34 * alone.interval_s[1])
    assert "speed-up 1.19" in change_line(alone)
    hardly_known = simulation.predict_program(operations, conditions, faster, core_wait_share=0.7)
    assert "speed-up unknown" in change_line(hardly_known)
    same = [simulation.computing_change(operations, "MPI_Allreduce", 1.0)]
    unchanged = simulation.predict_program(operations, conditions, same, core_wait_share=0.7)
    assert change_line(unchanged) == "With --compute MPI_Allreduce=1x nothing changes: 310 ms."
    assert simulation.simulated_speed_up(operations, conditions, plain.simulated_s, same, 0.7) == (1, 1, 1)


def test_collectives_that_messages_explain_change_as_these(recorded):
    """An allreduce of 80 MB costs what an exchange of all data takes."""
    operations = operations_of(load_recording(recorded()))
    size = 80_000_000
    enters = operations.operation == Operation.ENTER
    costs_s = np.where(enters, LATENCY_S + size / BANDWIDTH, operations.own_s)
    operations = replace(
        operations, own_s=costs_s, recorded_s=END_S + LATENCY_S + size / BANDWIDTH - COST_S,
        collective_bytes=np.array([size]),
    )  # fmt: skip
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    change = simulation.settings_change(["intra_socket.bandwidth=2x"])
    found = simulation.predict_program(operations, given, [change])
    assert found.as_recorded_s - found.simulated_s == pytest.approx(0.5 * size / BANDWIDTH, rel=1e-3)
    # The ring and Rabenseifner's algorithm take as long.
    assert found.interval_s == pytest.approx((found.simulated_s, found.simulated_s), rel=1e-2)
    assert not found.notes


def test_collectives_that_messages_do_not_explain_widen_the_interval_of_another_network(recorded):
    """The allreduce of 8 bytes costs 60 ms of 310 ms."""
    operations = operations_of(load_recording(recorded()))
    costs_more = np.where(operations.operation == Operation.ENTER, 0.06, operations.own_s)
    operations = replace(operations, own_s=costs_more, recorded_s=END_S + 0.06 - COST_S)
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    change = simulation.settings_change(["intra_socket.bandwidth=2x"])
    found = simulation.predict_program(operations, given, [change])
    assert found.interval_s == pytest.approx((found.simulated_s - 0.06, found.simulated_s + 0.06), rel=1e-3)
    alone = simulation.predict_program(operations, given, [simulation.progress_change()])
    assert alone.interval_s[1] < 1.01 * alone.simulated_s


def test_site_that_is_not_there_is_refused_with_those_that_are(recorded):
    with pytest.raises(InputError, match=r"no call site foo; it has MPI_Allreduce, MPI_Finalize"):
        _predict(recorded(), lambda all_of: simulation.computing_change(all_of, "foo", 0.5))


def test_layout_of_other_ranks_is_refused(recorded):
    operations = operations_of(load_recording(recorded()))
    with pytest.raises(InputError, match="has 2 ranks and the layout 1x1x4 has 4"):
        conditions_as_recorded(operations, PROFILE, parse_layout("1x1x4", "core"))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: [path.unlink() for path in folder.glob("*.trace")], "no events"),
        (lambda folder: (folder / "rank-1.trace").unlink(), "rank 1 .* left no events"),
        (lambda folder: (folder / "rank-1.ebr").unlink(), "rank 1 .* left no file"),
        (lambda folder: recordings.cut_trace(folder / "rank-0.trace"), "end 310 ms after MPI_Init"),
    ],
)
def test_traces_with_holes_are_refused(recorded, damage, reason):
    folder = recorded()
    damage(folder)
    with pytest.raises(InputError, match=rf"{reason}.*--events all"):
        operations_of(load_recording(folder))


def test_overwritten_events_are_simulated_from_when_all_ranks_are_whole(recorded):
    """Rank 0 has kept the last two calls, from the end of its allreduce's predecessor on."""
    found = _predict(recorded(capacity=3))
    # Rank 0 has kept the record of the send that its MPI_Waitall completed, and what follows.
    begins_s = SENT_S + SEND_CALL_S
    assert found.recorded_s == pytest.approx(END_S - begins_s, abs=1e-6)
    assert found.as_recorded_s == pytest.approx(END_S - begins_s, abs=1e-6)
    assert "only the last 210 ms of the run is simulated" in found.notes[-1]


def test_events_that_are_whole_from_the_end_on_are_refused(recorded):
    with pytest.raises(InputError, match="whole only from its end on"):
        operations_of(load_recording(recorded(capacity=1)))


def _window(folder, text, *changes):
    operations = operations_of(load_recording(folder), parse_window(text))
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    return simulation.predict_program(operations, given, [change(operations) for change in changes])


def test_window_in_seconds_keeps_what_is_under_way(recorded):
    """The window begins while rank 1 waits for a message that is sent later, and ends in the allreduce."""
    folder = recorded()
    found = _window(folder, "50ms..180ms")
    assert found.recorded_s == pytest.approx(0.13) and found.as_recorded_s == pytest.approx(0.13, abs=1e-7)
    assert found.num_messages == 1
    assert "only --window 50ms..180ms is simulated" in found.notes[0]
    # From within the wait for a message that is being sent: it keeps what it took.
    later = _window(folder, "100.002ms..180ms")
    assert later.num_messages == 0 and "1 message or collective under way" in later.notes[0]
    assert later.as_recorded_s == pytest.approx(0.079998, abs=1e-7)


def test_window_that_ends_in_calls_of_all_ranks_is_as_long_as_it_is(recorded):
    """Both ranks are in the allreduce, one of them since 150 ms."""
    found = _window(recorded(), "50ms..200.5ms")
    assert found.recorded_s == pytest.approx(0.1505) and "MPI_Allreduce (51 ms)" in found.notes[1]
    assert found.as_recorded_s == pytest.approx(0.1505, abs=1e-7)


def test_window_in_which_a_rank_makes_no_call_is_its_computing(recorded):
    found = _window(recorded(), "30ms..90ms")
    assert found.as_recorded_s == pytest.approx(0.06) == found.recorded_s


def test_window_ends_where_ranks_still_compute(recorded):
    half = _window(
        recorded(), "0s..150ms", lambda all_of: simulation.computing_change(all_of, "MPI_Isend", 0.5)
    )
    # What rank 1 computes until the end of the window follows the message.
    assert half.simulated_s == pytest.approx(0.15 - SENT_S / 2, abs=1e-6)


def test_window_of_calls_begins_and_ends_with_them(recorded):
    found = _window(recorded(), "MPI_Allreduce:1..1")
    assert found.recorded_s == pytest.approx(MEET_S + COST_S - 0.15, abs=1e-8)
    assert found.as_recorded_s == pytest.approx(found.recorded_s, abs=1e-8)
    assert "nothing was under way" in found.notes[-1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2s", "two moments"), ("3s..2s", "ends where it begins or before"),
        ("9s..10s", "run ends after 310"),
        ("MPI_Allreduce:1..2", "rank 0 has made 1 call of"), ("MPI_Send:1..2", "blocking collective"),
        ("MPI_Allreduce:0..2", "from 1 on"), ("MPI_Allreduce:2..1", "earlier call first"),
        ("MPI_Allreduce:1", "first and the last call"), ("Allreduce:1..2", "blocking collective"),
        ("x..y", "beginning of --window is .x.; .*such as 2s or 0.5$"),
    ],
)  # fmt: skip
def test_windows_that_are_not_in_the_run_are_refused(recorded, text, reason):
    with pytest.raises(InputError, match=reason):
        operations_of(load_recording(recorded()), parse_window(text))


def test_window_before_the_events_that_are_kept_is_refused(recorded):
    with pytest.raises(InputError, match="were overwritten"):
        operations_of(load_recording(recorded(capacity=3)), parse_window("0s..1ms"))


@pytest.mark.parametrize(
    ("window", "num", "reason"),
    [
        (None, 12, r"has 12 events, whose simulation takes about .*give --window 0s\.\.[0-9.]+s, which fits"),
        ("0s..", 12, r"--window 0s\.\. has 12 events, .*give a window of 83 % of this one"),
        ("0s..1s", 12, r"give --window 0s\.\.0\.83s,"),
        ("MPI_Allreduce:1..1", 8, r"give MPI_Allreduce:1\.\.1,"),
    ],
)  # fmt: skip
def test_more_events_than_fit_are_refused_with_the_memory_and_the_window_that_fits(
    recorded, monkeypatch, window, num, reason
):
    folder = recorded()
    free = 10 if num == 12 else 5
    monkeypatch.setattr("earlybird.data.memory.available_memory_bytes", lambda: free * BYTES_PER_EVENT)
    with pytest.raises(InputError, match=reason):
        operations_of(load_recording(folder), window and parse_window(window))


def test_a_window_of_a_recording_that_does_not_fit_is_simulated(recorded, monkeypatch):
    folder = recorded()
    expected = operations_of(load_recording(folder))
    monkeypatch.setattr("earlybird.record.partial_traces._MARGIN_S", 1e-6)
    monkeypatch.setattr("earlybird.data.memory.available_memory_bytes", lambda: 11 * BYTES_PER_EVENT)
    found = operations_of(load_recording(folder), parse_window("0s..150ms"))
    assert found.num_calls < expected.num_calls and found.recorded_s == pytest.approx(0.15)


def test_a_recording_without_events_is_refused_with_the_command_that_records_them(tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 2, [])
    with pytest.raises(
        InputError, match=r"earlybird record --events all -o \S*rec-events -- mpiexec -n 2 \./app$"
    ):
        operations_of(load_recording(folder))


def test_a_billion_events_are_refused_before_they_are_read(recorded):
    folder = recorded(capacity=10**9)
    with (folder / "rank-0.trace").open("r+b") as file:  # sparse
        file.seek(16)
        file.write(struct.pack("=Q", 10**9))  # records of this rank
        file.truncate(10**9 * 64 + recordings.TRACE_HEAD_BYTES)
    with pytest.raises(InputError, match=r"has 1000000006 events, .* takes about 745 GiB of memory, and"):
        operations_of(load_recording(folder))


# Requests of one MPI_Waitall: a message, and a collective or something that is not simulated.
IALLREDUCE = "MPI_Iallreduce"


def _mixed(tmp_path, other_of=(0, 1), late_s=0.0, name=IALLREDUCE, with_message=True, peer=-1):
    """Rank 1 waits for a message of rank 0, sent at 100 ms, and for a collective that ends at 150 ms."""
    calls = (*recordings.CALLS, name)
    folder = recordings.on_disk(tmp_path / "rec", 2, [(0, 1, 1, 1000)])
    for rank in range(2):
        path = folder / f"rank-{rank}.ebr"
        path.write_bytes(recordings.rank_file(rank, 2, recordings.entries(rank, [], 0.1), calls=calls))
        other = len(calls) - 1
        rows = [_call(-1.0, 0.0, INIT)]
        if rank in other_of:
            rows.append(
                _call(0.01 + late_s * (rank == 0), 0.011 + late_s * (rank == 0), other, 9, size=8, peer=peer)
            )
        if rank == 0 and with_message:
            rows.append(_call(SENT_S, SENT_S + SEND_CALL_S, ISEND, 1, role=SENT, size=1000, peer=1, tag=5))
        if rank == 1 and with_message:
            rows.append(_call(0.012, 0.013, IRECV, 1, peer=0))
        begin_s = 0.02 if rank else SENT_S + 0.01
        rows.append(_call(begin_s, 0.15, WAITALL))
        if rank == 1 and with_message:
            rows.append(_call(begin_s, 0.15, IRECV, 1, MESSAGE, RECEIVED, 1000, 0, 5, 0.012))
        if rank == 0 and with_message:
            rows.append(_call(begin_s, 0.15, ISEND, 1, COMPLETION, SENT, 1000, 1, 5, SENT_S))
        if rank in other_of:
            rows.append(_call(begin_s, 0.15, other, 9, COMPLETION, size=8, peer=peer, posted_s=0.01))
        rows.append(_call(0.2, 0.3, FINALIZE))
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, 100, begin_s=1000.0))
    return folder


@pytest.mark.parametrize("name", [IALLREDUCE, "MPI_Pstart"])
@pytest.mark.parametrize("with_message", [True, False])
def test_wait_keeps_what_requests_beside_messages_took(tmp_path, name, with_message):
    found = _predict(_mixed(tmp_path, name=name, with_message=with_message))
    assert found.as_recorded_s == pytest.approx(0.2, abs=1e-7)
    kept = [note for note in found.notes if "are not simulated and keep their recorded duration" in note]
    assert bool(kept) == (name != IALLREDUCE)
    assert all("MPI_Waitall" in note for note in kept)


def test_requests_of_proc_null_beside_messages_take_nothing(tmp_path):
    found = _predict(_mixed(tmp_path, name="MPI_Isend", peer=NULL_PEER))
    assert not [note for note in found.notes if "are not simulated" in note]
    assert found.as_recorded_s < found.recorded_s - 0.01


def test_non_blocking_collective_is_awaited_by_the_call_that_completes_it(tmp_path):
    """Rank 0 starts it at 60 ms: rank 1 waits for that, and 90 ms more, also if rank 0 comes earlier."""
    folder = _mixed(tmp_path, late_s=0.05, with_message=False)
    late = _predict(folder)
    early = _predict(folder, lambda all_of: simulation.computing_change(all_of, IALLREDUCE, 0.0))
    rows = {row.call: row for row in late.phases}
    assert rows["MPI_Waitall"].waiting_s == pytest.approx(0.06 - 0.02, abs=1e-6)
    assert early.simulated_s < late.simulated_s - 0.03


def test_persistent_sends_are_synchronous_or_buffered_by_their_name(tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 2, [(0, 1, 1, 8)])
    for name, expected in (("MPI_Ssend_init", ALWAYS), ("MPI_Bsend_init", NEVER)):
        calls = tuple(name if call == "MPI_Isend" else call for call in recordings.CALLS)
        for rank, rows in enumerate(_rows(8)):
            (folder / f"rank-{rank}.ebr").write_bytes(
                recordings.rank_file(rank, 2, recordings.entries(rank, [], 0.1), calls=calls)
            )
            (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, 100, begin_s=1000.0))
        assert operations_of(load_recording(folder)).sender.tolist() == [expected]


def test_program_of_one_rank_is_its_computing(tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 1, [])
    rows = [_call(-1.0, 0.0, INIT), _call(0.1, 0.2, ALLREDUCE, size=8), _call(0.4, 0.5, FINALIZE)]
    (folder / "rank-0.trace").write_bytes(recordings.trace_file(rows, 100, begin_s=1000.0))
    operations = operations_of(load_recording(folder))
    given = conditions_as_recorded(operations, PROFILE, parse_layout("1x1x1", "core"))
    found = simulation.predict_program(operations, given)
    assert found.as_recorded_s == pytest.approx(0.4) == found.recorded_s
    assert "are not simulated and keep their recorded duration: MPI_Allreduce (100 ms)" in found.notes[0]


def test_sends_that_wait_for_each_other_only_in_the_simulation_are_refused(tmp_path):
    """Both ranks send before they post their receives, which the MPI of the recording buffered."""
    folder = recordings.on_disk(tmp_path / "rec", 2, [(0, 1, 1, SMALL), (1, 0, 1, SMALL)])
    for rank in range(2):
        other = 1 - rank
        rows = [
            _call(-1.0, 0.0, INIT),
            _call(0.1, 0.11, ISEND, 1, role=SENT, size=SMALL, peer=other, tag=5),
            _call(0.11, 0.12, WAITALL),
            _call(0.11, 0.12, ISEND, 1, COMPLETION, SENT, SMALL, other, 5, 0.1),
            _call(0.12, 0.13, IRECV, 2, peer=other),
            _call(0.13, 0.14, WAITALL),
            _call(0.13, 0.14, IRECV, 2, MESSAGE, RECEIVED, SMALL, other, 5, 0.12),
            _call(0.2, 0.3, FINALIZE),
        ]
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, 100, begin_s=1000.0))
    with pytest.raises(InputError, match="rank 0 waits for ever in MPI_Waitall: the profile makes a send"):
        _predict(folder)


def test_error_as_recorded_names_where_it_comes_from(recorded):
    slow = replace(PROFILE, levels={"intra_socket": level("intra_socket", latency_s=0.5)})
    found = _predict(recorded(), profile=slow)
    assert found.error > 0.1
    assert "errs by more than 10 %, most in MPI_Waitall" in found.notes[0]
    assert found.interval_s[0] < found.simulated_s < found.interval_s[1]
