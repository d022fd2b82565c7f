"""Waiting times of traces whose calls are known: by rank, by cause, and with clocks that differ."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.analysis.waits import NO_SEND, OTHER_COMMUNICATOR, OTHER_SENDS, join_traces, waits_of
from earlybird.data.errors import InputError
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL, POLLS, load_trace
from earlybird.data.recording import Recording
from tests.recordings import (
    CALLS,
    TRACE_HEAD_BYTES,
    TRACED,
    former_trace_file,
    in_memory,
    trace_file,
    world,
)

NAMES = (
    *CALLS, "MPI_Recv", "MPI_Reduce", "MPI_Iprobe", "MPI_Barrier", "MPI_Ssend", "MPI_Probe",
    "MPI_Test", "MPI_Win_lock", "MPI_Win_fence", "MPI_Wait", "MPI_Waitany", "MPI_Waitsome", "MPI_Start",
    "MPI_Send_init", "MPI_Sendrecv", "MPI_Iallreduce", "MPI_Testall", "MPI_Send", "MPI_Isendrecv",
)  # fmt: skip
(
    RECV, REDUCE, IPROBE, BARRIER, SSEND, PROBE, TEST, WIN_LOCK, FENCE, WAIT, WAITANY, WAITSOME, START,
    SEND_INIT, SENDRECV, IALLREDUCE, TESTALL, SEND, ISENDRECV,
) = range(len(CALLS), len(NAMES))  # fmt: skip
_, ISEND, IRECV, WAITALL, ALLREDUCE, FINALIZE, BCAST = range(len(CALLS))
WORLD, NOBODY, NO_TAG = 1, -1, -1


def sent(begin, peer, tag=0, size=8):
    return (begin, begin + 1e-6, ISEND, SENT, WORLD, peer, tag, 1, size)


def received(begin, end, peer, tag=0, size=8):
    return (begin, end, RECV, RECEIVED, WORLD, peer, tag, 1, size)


def waitall(begin, end, *messages):
    """The call, and the messages (peer, tag) that it completes."""
    rows = [(begin, end, IRECV, RECEIVED, WORLD, peer, tag, 0, 8) for peer, tag in messages]
    return [(begin, end, WAITALL, CALL, 0, NOBODY, NO_TAG, 1, 0), *rows]


def collective(call, begin, end, root=NOBODY):
    return (begin, end, call, CALL, WORLD, root, NO_TAG, 1, 8)


def recording_of(size, boots=None, **changes):
    recorded = in_memory(size, [])
    ranks = {
        rank: replace(one, calls=NAMES, boot=boots[rank] if boots else "one", **changes)
        for rank, one in recorded.ranks.items()
    }
    return Recording(Path("rec"), (), ranks)


def traces_of(tmp_path, records, capacity=1000, ahead_s=None):
    traces = {}
    for rank, rows in records.items():
        path = tmp_path / f"rank-{rank}.trace"
        path.write_bytes(trace_file(rows, capacity, ahead_s=ahead_s[rank] if ahead_s else 0.0))
        traces[rank] = load_trace(path, NAMES, 100)
    return traces


def waits(tmp_path, records, capacity=1000, ahead_s=None, boots=None, **changes):
    recording = recording_of(len(records), boots, **changes)
    return waits_of(recording, join_traces(recording, traces_of(tmp_path, records, capacity, ahead_s)))


def test_a_late_sender_is_waited_for_until_it_sends(tmp_path):
    found = waits(tmp_path, {0: [received(1.0, 1.5, 1)], 1: [sent(1.4, 0)]})
    assert found.late_sender_s == pytest.approx([0.4, 0])
    assert found.caused_s == pytest.approx([0, 0.4])
    assert (found.num_matched, found.num_received, found.is_whole) == (1, 1, True)
    (place, _) = found.places
    assert (place.call, place.calls, place.late) == ("MPI_Recv", 1, 1)
    assert place.late_sender_s == pytest.approx(0.4) and place.time_s == pytest.approx(0.5)


def test_an_early_sender_is_not_waited_for(tmp_path):
    found = waits(tmp_path, {0: [received(1.0, 1.5, 1)], 1: [sent(0.9, 0)]})
    assert found.waiting_s.sum() == 0 and found.places[0].late is None


def test_a_wait_lasts_until_the_last_message_was_sent_and_not_longer(tmp_path):
    records = {
        0: [*waitall(1.0, 1.5, (1, 0), (2, 0)), *waitall(2.0, 2.1, (1, 5))],
        1: [sent(1.2, 0), sent(2.2, 0, tag=5)],  # the latter after the wait, by an error of the clocks
        2: [sent(1.3, 0)],
    }
    found = waits(tmp_path, records)
    assert found.late_sender_s == pytest.approx([0.4, 0, 0])
    assert found.caused_s == pytest.approx([0, 0.1, 0.3])


LARGE = 10**6


def isend(begin, peer, request, tag=0):
    return (begin, begin + 1e-3, ISEND, SENT, WORLD, peer, tag, ONE_CALL, LARGE, request)


def irecv(begin, request):
    return (begin, begin + 1e-3, IRECV, CALL, WORLD, NOBODY, NO_TAG, ONE_CALL, 0, request)


def completes(call, begin, end, *requests):
    """The call, and what it completes: ("sent" or "received", peer, request, posted_s, tag)."""
    rows = [(begin, end, call, CALL, 0, NOBODY, NO_TAG, ONE_CALL, 0)]
    for what, peer, request, posted, *tag in requests:
        is_sent = what == "sent"
        rows.append((
            begin, end, ISEND if is_sent else IRECV, SENT if is_sent else RECEIVED, WORLD, peer,
            tag[0] if tag else 0, COMPLETION if is_sent else MESSAGE, LARGE, request, posted,
        ))  # fmt: skip
    return rows


def recv(begin, end, peer, request=1):
    return (begin, end, RECV, RECEIVED, WORLD, peer, 0, ONE_CALL, LARGE, request)


def test_the_wait_for_a_send_lasts_until_its_receive_is_posted(tmp_path):
    sender = [isend(1.0, 1, 1), *completes(WAIT, 1.1, 1.6, ("sent", 1, 1, 1.0))]
    found = waits(tmp_path, {0: sender, 1: [recv(1.5, 1.61, 0)]})
    assert found.late_receiver_s == pytest.approx([0.4, 0]) and found.late_sender_s.sum() == 0
    assert found.caused_s == pytest.approx([0, 0.4]) and found.unexamined == []
    (place,) = (place for place in found.places if place.call == "MPI_Wait")
    assert (place.late, place.waiting_s) == (1, pytest.approx(0.4))
    # Posted by MPI_Irecv, and completed much later.
    receiver = [irecv(1.4, 1), *completes(WAIT, 1.8, 1.9, ("received", 0, 1, 1.4))]
    found = waits(tmp_path, {0: sender, 1: receiver})
    assert found.late_receiver_s == pytest.approx([0.3, 0])
    # The MPI has kept the message.
    found = waits(tmp_path, {0: sender, 1: [recv(1.7, 1.71, 0)]})
    assert found.waiting_s.sum() == 0 and found.unexamined == []


def test_a_receive_that_was_posted_before_makes_no_late_receiver(tmp_path):
    """The receiver computes: it is outside the MPI until it comes back, and then waits for nobody."""
    sender = [isend(1.0, 1, 1), *completes(WAIT, 1.1, 1.6, ("sent", 1, 1, 1.0))]
    receiver = [irecv(0.9, 1), *completes(WAIT, 1.5, 1.6, ("received", 0, 1, 0.9))]
    found = waits(tmp_path, {0: sender, 1: receiver})
    assert found.late_receiver_s.sum() == found.late_sender_s.sum() == 0
    assert found.peer_outside_s == pytest.approx([0.4, 0])
    # A receiver that does not come back was not waited for.
    receiver = [irecv(0.9, 1), *completes(WAIT, 1.7, 1.8, ("received", 0, 1, 0.9))]
    assert waits(tmp_path, {0: sender, 1: receiver}).waiting_s.sum() == 0


def test_a_persistent_send_is_that_of_its_start(tmp_path):
    start = (1.0, 1.001, START, CALL, 0, NOBODY, NO_TAG, ONE_CALL, 0)
    message = (1.0, 1.001, SEND_INIT, SENT, WORLD, 1, 0, MESSAGE, LARGE, 4)
    done = (1.1, 1.6, SEND_INIT, SENT, WORLD, 1, 0, COMPLETION, LARGE, 4, 1.0)
    sender = [start, message, *completes(WAIT, 1.1, 1.6), done]
    found = waits(tmp_path, {0: sender, 1: [recv(1.5, 1.6, 0)]})
    assert found.late_receiver_s == pytest.approx([0.4, 0]) and found.unexamined == []


@pytest.mark.parametrize(("receiver_s", "sender_s"), [(1.5, 1.3), (1.2, 1.4)])
def test_a_wait_for_sends_and_receives_is_for_the_sender_first_and_then_for_the_receiver(
    tmp_path, receiver_s, sender_s
):
    """Rank 1 posts its receive late, rank 2 sends late."""
    waitall = completes(WAITALL, 1.0, 1.6, ("sent", 1, 1, 0.9), ("received", 2, 2, 0.9))
    records = {
        0: [isend(0.9, 1, 1), irecv(0.9, 2), *waitall],
        1: [recv(receiver_s, 1.6, 0)],
        2: [isend(sender_s, 0, 1)],
    }
    found = waits(tmp_path, records)
    of_sender_s, of_receiver_s = sender_s - 1.0, max(receiver_s - sender_s, 0)
    assert found.late_sender_s == pytest.approx([of_sender_s, 0, 0])
    assert found.late_receiver_s == pytest.approx([of_receiver_s, 0, 0])
    assert found.caused_s == pytest.approx([0, of_receiver_s, of_sender_s])
    (place,) = (place for place in found.places if place.call == "MPI_Waitall")
    assert (place.late, place.waiting_s) == (2, pytest.approx(of_sender_s + of_receiver_s))


@pytest.mark.parametrize("first", [ISEND, IRECV])
def test_a_rank_that_comes_late_to_an_exchange_is_a_late_sender(tmp_path, first):
    """It posts its receive at once before or after it sends: nobody waits for the receive."""

    def exchange(begin, peer, end):
        sent_s, posted_s = (begin, begin + 1e-6) if first == ISEND else (begin + 1e-6, begin)
        starts = sorted([isend(sent_s, peer, 1), irecv(posted_s, 2)])
        done = ("sent", peer, 1, sent_s), ("received", peer, 2, posted_s)
        return [*starts, *completes(WAITALL, begin + 2e-3, end, *done)]

    found = waits(tmp_path, {0: exchange(1.0, 1, 1.23), 1: exchange(1.2, 0, 1.23)})
    assert found.late_sender_s == pytest.approx([0.198, 0], abs=2e-6)
    assert found.late_receiver_s == pytest.approx([0, 0], abs=2e-6)


def sendrecv(begin, end, peer):
    return [
        (begin, end, SENDRECV, CALL, WORLD, NOBODY, NO_TAG, ONE_CALL, 0),
        (begin, end, SENDRECV, SENT, WORLD, peer, 0, MESSAGE, LARGE),
        (begin, end, SENDRECV, RECEIVED, WORLD, peer, 0, MESSAGE, LARGE, 1),
    ]


def test_a_rank_that_comes_late_to_send_and_receive_in_one_call_is_a_late_sender(tmp_path):
    """Its part of both begins with the call."""
    found = waits(tmp_path, {0: sendrecv(1.0, 1.23, 1), 1: sendrecv(1.2, 1.23, 0)})
    assert found.late_sender_s == pytest.approx([0.2, 0]) and found.late_receiver_s.sum() == 0
    assert found.caused_s == pytest.approx([0, 0.2])


def test_in_traces_without_requests_a_call_that_receives_is_judged_by_what_it_receives(tmp_path):
    """Rank 1 has posted the receive by MPI_Irecv, of which they do not say when."""
    traces = {}
    records = {
        0: [row[:9] for row in sendrecv(1.0, 1.6, 1)],
        1: [sent(1.2, 0, size=LARGE), (1.3, 1.6, WAIT, CALL, 0, NOBODY, NO_TAG, ONE_CALL, 0),
            (1.3, 1.6, IRECV, RECEIVED, WORLD, 0, 0, MESSAGE, LARGE)],
    }  # fmt: skip
    for rank, rows in records.items():
        (tmp_path / f"rank-{rank}.trace").write_bytes(former_trace_file(rows, 100))
        traces[rank] = load_trace(tmp_path / f"rank-{rank}.trace", NAMES, 100)
    recording = recording_of(2)
    found = waits_of(recording, join_traces(recording, traces))
    assert found.late_sender_s == pytest.approx([0.2, 0]) and found.late_receiver_s.sum() == 0
    assert found.unexamined == []


@pytest.mark.parametrize("call_number", [WAITANY, WAITSOME])
def test_a_wait_for_any_request_is_for_the_first_that_is_complete(tmp_path, call_number):
    sent_to = [("sent", 1, 1, 0.9), ("sent", 2, 2, 0.9)][: 2 if call_number == WAITSOME else 1]
    records = {
        0: [isend(0.9, 1, 1), isend(0.91, 2, 2), *completes(call_number, 1.0, 1.6, *sent_to)],
        1: [recv(1.2, 1.3, 0)],
        2: [recv(1.5, 1.6, 0)],
    }
    assert waits(tmp_path, records).late_receiver_s == pytest.approx([0.2, 0, 0])


def test_polls_until_a_send_is_complete_wait_for_its_receiver(tmp_path):
    polls = (1.0, 1.6, TESTALL, CALL, 0, NOBODY, NO_TAG, POLLS, 900)
    done = (1.59, 1.6, ISEND, SENT, WORLD, 1, 0, COMPLETION, LARGE, 1, 0.9)
    found = waits(tmp_path, {0: [isend(0.9, 1, 1), polls, done], 1: [recv(1.5, 1.6, 0)]})
    assert found.late_receiver_s == pytest.approx([0.5, 0])


def test_polls_that_complete_nothing_wait_for_what_a_later_one_completes(tmp_path):
    """The time inside them until the receiver comes, not that between them; those before are another's."""
    other = [isend(0.5, 1, 9, tag=7), *completes(TEST, 0.6, 0.61, ("sent", 1, 9, 0.5, 7))]
    polls = [row for k in range(5) for row in completes(TEST, 1.0 + 0.2 * k, 1.1 + 0.2 * k)]
    last = completes(TEST, 2.0, 2.1, ("sent", 1, 1, 0.9))
    receiver = [(0.1, 0.62, RECV, RECEIVED, WORLD, 0, 7, ONE_CALL, LARGE, 1), recv(1.65, 2.1, 0, 2)]
    found = waits(tmp_path, {0: [*other, isend(0.9, 1, 1), *polls, *last], 1: receiver})
    assert found.late_receiver_s == pytest.approx([3 * 0.1 + 0.05, 0]) and found.unexamined == []


def test_a_blocking_send_waits_for_a_receive_that_is_posted_and_completed_later(tmp_path):
    send = (1.0, 1.6, SEND, SENT, WORLD, 1, 0, ONE_CALL, LARGE)
    receiver = [irecv(1.3, 1), *completes(WAIT, 1.5, 1.6, ("received", 0, 1, 1.3))]
    found = waits(tmp_path, {0: [send], 1: receiver})
    assert found.late_receiver_s == pytest.approx([0.3, 0])
    assert found.peer_outside_s == pytest.approx([0.199, 0])


def test_a_send_and_receive_in_one_call_waits_for_both_peers(tmp_path):
    both = [
        (1.0, 1.6, SENDRECV, CALL, WORLD, NOBODY, NO_TAG, ONE_CALL, 0),
        (1.0, 1.6, SENDRECV, SENT, WORLD, 1, 0, MESSAGE, LARGE),
        (1.0, 1.6, SENDRECV, RECEIVED, WORLD, 2, 0, MESSAGE, LARGE, 1),
    ]
    found = waits(tmp_path, {0: both, 1: [recv(1.5, 1.6, 0)], 2: [isend(1.2, 0, 1)]})
    assert found.late_sender_s == pytest.approx([0.2, 0, 0])
    assert found.late_receiver_s == pytest.approx([0.3, 0, 0])


def test_a_request_that_sends_and_receives_waits_for_both_peers(tmp_path):
    start = [
        (0.9, 0.91, ISENDRECV, CALL, WORLD, NOBODY, NO_TAG, ONE_CALL, 0),
        (0.9, 0.91, ISENDRECV, SENT, WORLD, 1, 0, MESSAGE, LARGE, 3),
    ]
    done = (1.0, 1.6, ISENDRECV, RECEIVED, WORLD, 2, 0, MESSAGE, LARGE, 3, 0.9)
    records = {0: [*start, *completes(WAIT, 1.0, 1.6), done], 1: [recv(1.5, 1.6, 0)], 2: [isend(1.2, 0, 1)]}
    found = waits(tmp_path, records)
    assert found.late_sender_s == pytest.approx([0.2, 0, 0])
    assert found.late_receiver_s == pytest.approx([0.3, 0, 0])


def test_completions_of_what_is_not_examined_are_named_with_their_share(tmp_path):
    start = (1.0, 1.001, IALLREDUCE, CALL, WORLD, NOBODY, NO_TAG, ONE_CALL, 8, 1)
    done = (1.1, 1.4, IALLREDUCE, CALL, WORLD, NOBODY, NO_TAG, COMPLETION, 8, 1, 1.0)
    unreceived = [isend(2.0, 1, 2), *completes(WAIT, 2.1, 2.2, ("sent", 1, 2, 2.0))]
    found = waits(tmp_path, {0: [start, *completes(WAIT, 1.1, 1.4), done, *unreceived], 1: [call(5.0, 5.1)]})
    assert found.unexamined == ["MPI_Wait for MPI_Iallreduce", "MPI_Wait for MPI_Isend"]
    (place,) = (place for place in found.places if place.call == "MPI_Wait")
    assert place.unknown_s == pytest.approx(0.4)
    assert found.unknown_s == pytest.approx([0.4, 0])
    # So are the polls before.
    polls = [*completes(TEST, 1.1, 1.2), *completes(TEST, 1.3, 1.4), (1.3, *done[1:])]
    found = waits(tmp_path, {0: [start, *polls], 1: [call(5.0, 5.1)]})
    assert found.unexamined == ["MPI_Test for MPI_Iallreduce"]
    assert found.in_mpi_s.sum() - found.examined_s == pytest.approx(0.2)
    # One that completes nothing, such as for MPI_REQUEST_NULL or MPI_PROC_NULL, waits for nobody.
    nobody = (1.1, 1.4, ISEND, SENT, WORLD, -2, 0, COMPLETION, 0, 1, 1.0)
    found = waits(tmp_path, {0: [isend(1.0, -2, 1), *completes(WAIT, 1.1, 1.4), nobody], 1: [call(5.0, 5.1)]})
    assert found.unexamined == [] and found.waiting_s.sum() == 0


def test_in_traces_without_requests_the_wait_for_a_send_is_not_known(tmp_path):
    send = (1.0, 1.001, ISEND, SENT, WORLD, 1, 0, ONE_CALL, LARGE)
    wait = (1.1, 1.6, WAIT, CALL, 0, NOBODY, NO_TAG, ONE_CALL, 0)
    traces = {}
    for rank, rows in {0: [send, wait], 1: [recv(1.5, 1.6, 0)]}.items():
        (tmp_path / f"rank-{rank}.trace").write_bytes(former_trace_file(rows, 100))
        traces[rank] = load_trace(tmp_path / f"rank-{rank}.trace", NAMES, 100)
    recording = recording_of(2)
    found = waits_of(recording, join_traces(recording, traces))
    assert found.unexamined == ["MPI_Wait"] and found.waiting_s.sum() == 0
    assert found.in_mpi_s.sum() - found.examined_s == pytest.approx(0.5)


def test_a_probe_of_a_message_whose_send_is_not_known_does_not_wait_for_the_next_one(tmp_path):
    probe = (1.0, 1.41, PROBE, CALL, WORLD, 1, 0, ONE_CALL, 0)
    records = {0: [probe, received(1.42, 1.43, 1, tag=9), received(1.5, 1.6, 1)], 1: [sent(1.4, 0)]}
    found = waits(tmp_path, records)
    assert found.late_sender_s.sum() == 0 and "MPI_Probe" in found.unexamined


def test_duplicates_are_told_apart_by_their_identities(tmp_path):
    """Ranks number them in the order of first use."""

    def of(rank):
        numbers = {1: 11, 2: 12} if rank == 0 else {1: 12, 2: 11}
        return {number: replace(world(rank, 2), identity=identity) for number, identity in numbers.items()}

    recording = recording_of(2)
    ranks = {rank: replace(one, communicators=of(rank)) for rank, one in recording.ranks.items()}
    recording = replace(recording, ranks=ranks)
    on_second = {0: [received(1.0, 1.5, 1)], 1: [(*sent(1.4, 0)[:4], 2, *sent(1.4, 0)[5:])]}
    found = waits_of(recording, join_traces(recording, traces_of(tmp_path, on_second)))
    assert found.num_matched == 1 and found.late_sender_s == pytest.approx([0.4, 0])
    on_other = {0: [received(1.0, 1.5, 1)], 1: [sent(1.4, 0)]}
    assert waits_of(recording, join_traces(recording, traces_of(tmp_path, on_other))).num_matched == 0
    # A fence of a window of these ranks may be recorded with either.
    fences = {0: [collective(FENCE, 1.0, 1.35)], 1: [collective(FENCE, 1.3, 1.36)]}
    found = waits_of(recording, join_traces(recording, traces_of(tmp_path, fences)))
    assert found.late_collective_s == pytest.approx([0.3, 0])


def test_an_identity_that_one_rank_does_not_know_is_used_by_none(tmp_path):
    """A rank that has used several of them one after another knows none, one that has used one does."""

    def of(rank, *identities):
        return {number: replace(world(rank, 3), identity=one) for number, one in enumerate(identities, WORLD)}

    recording = recording_of(3)
    records = {0: [sent(1.4, 1), sent(2.4, 2)], 1: [received(1.0, 1.5, 0)], 2: [received(2.0, 2.5, 0)]}
    for known, num_matched in (((12,), 2), ((12, 13), 0)):
        communicators = {0: of(0, None), 1: of(1, 11), 2: of(2, *known)}
        ranks = {
            rank: replace(one, communicators=communicators[rank]) for rank, one in recording.ranks.items()
        }
        changed = replace(recording, ranks=ranks)
        found = waits_of(changed, join_traces(changed, traces_of(tmp_path, records)))
        assert (found.num_matched, found.num_received) == (num_matched, 2)


def call(begin, end):
    """Another call of a rank."""
    return (begin, end, IPROBE, CALL, WORLD, NOBODY, NO_TAG, 1, 0)


def test_a_blocking_send_that_lasts_until_the_receive_has_waited_for_it(tmp_path):
    def send(begin, end):
        return (begin, end, SSEND, SENT, WORLD, 0, 0, 1, 8)

    found = waits(tmp_path, {0: [received(1.3, 1.6, 1)], 1: [send(1.0, 1.5)]})
    assert found.late_receiver_s == pytest.approx([0, 0.3]) and found.late_sender_s.sum() == 0
    assert found.caused_s == pytest.approx([0.3, 0])
    # The MPI has kept the message: the send was over before.
    found = waits(tmp_path, {0: [received(1.3, 1.6, 1)], 1: [send(1.0, 1.1)]})
    assert found.waiting_s.sum() == 0


def test_a_probe_waits_for_the_message_that_is_received_next(tmp_path):
    probe = (1.0, 1.41, PROBE, CALL, WORLD, 1, 0, 1, 0)
    records = {0: [probe, received(1.42, 1.43, 1), received(1.5, 1.6, 1)], 1: [sent(1.4, 0), sent(1.41, 0)]}
    found = waits(tmp_path, records)
    assert found.late_sender_s == pytest.approx([0.4, 0])
    assert found.caused_s == pytest.approx([0, 0.4])


def test_polls_wait_for_the_message_that_the_last_one_completes(tmp_path):
    polls = (1.0, 1.5, TEST, CALL, 0, NOBODY, NO_TAG, POLLS, 900)
    message = (1.49, 1.5, IRECV, RECEIVED, WORLD, 1, 0, 0, 8)
    found = waits(tmp_path, {0: [polls, message], 1: [sent(1.4, 0)]})
    assert found.late_sender_s == pytest.approx([0.4, 0])


def test_ranks_wait_in_fences_that_synchronize_and_only_in_these(tmp_path):
    """Rank 1 comes 0.3 s late; in the second fence rank 0 does not wait for it."""
    records = {
        0: [collective(FENCE, 1.0, 1.35), collective(FENCE, 2.0, 2.001)],
        1: [collective(FENCE, 1.3, 1.36), collective(FENCE, 2.3, 2.31)],
    }
    found = waits(tmp_path, records)
    assert found.late_collective_s == pytest.approx([0.3, 0])


def test_a_fence_that_one_rank_has_on_another_communicator_shifts_no_barrier(tmp_path):
    records = {
        0: [collective(FENCE, 0.5, 0.6), collective(BARRIER, 1.0, 1.4), collective(BARRIER, 2.0, 2.1)],
        1: [collective(BARRIER, 1.3, 1.4), collective(BARRIER, 2.0, 2.1)],
    }
    assert waits(tmp_path, records).late_collective_s == pytest.approx([0.3, 0])


def test_waiting_for_two_ranks_in_one_call_is_for_each_its_own(tmp_path):
    """Rank 1 sends 0.4 s late; rank 2 has begun to send, and then computes until 1.95 s."""
    records = {
        0: [*waitall(1.0, 2.0, (1, 0), (2, 0))],
        1: [sent(1.4, 0)],
        2: [sent(0.9, 0), call(1.95, 2.1)],
    }
    found = waits(tmp_path, records)
    assert found.late_sender_s == pytest.approx([0.4, 0, 0])
    assert found.peer_outside_s == pytest.approx([0.55, 0, 0])
    assert found.caused_s == pytest.approx([0, 0.4, 0.55])


def test_calls_whose_waiting_is_not_known_are_named(tmp_path):
    lock = (1.0, 1.5, WIN_LOCK, CALL, WORLD, 1, NO_TAG, 1, 0)
    found = waits(tmp_path, {0: [lock, received(2.0, 2.1, 1)], 1: [sent(1.9, 0)]})
    assert found.unexamined == ["MPI_Win_lock"]
    assert found.examined_s == pytest.approx(0.1, abs=1e-5)


def test_a_sender_that_began_in_time_and_computes_is_outside_the_mpi(tmp_path):
    records = {0: [received(1.0, 1.5, 1)], 1: [sent(0.9, 0), call(1.45, 1.6)]}
    found = waits(tmp_path, records)
    assert found.late_sender_s.sum() == 0
    assert found.peer_outside_s == pytest.approx([0.45, 0])
    assert found.caused_s == pytest.approx([0, 0.45]) and found.places[0].late == 1
    # Between its calls only, and after it began to send.
    records = {0: [received(1.0, 1.5, 1)], 1: [sent(1.1, 0), call(1.2, 1.3), call(1.45, 1.6)]}
    found = waits(tmp_path, records)
    assert found.late_sender_s == pytest.approx([0.1, 0])
    assert found.peer_outside_s == pytest.approx([0.1 + 0.15, 0], abs=1e-5)


@pytest.mark.parametrize(
    "sender",
    [
        [sent(0.9, 0), call(1.6, 1.7)],  # the message came without it
        [sent(0.9, 0)],
        [sent(0.9, 0), call(0.95, 1.6)],  # it was inside all the time
    ],
)
def test_a_sender_that_did_not_return_before_the_end_was_not_waited_for(tmp_path, sender):
    assert waits(tmp_path, {0: [received(1.0, 1.5, 1)], 1: sender}).waiting_s.sum() == 0


def test_of_several_senders_outside_the_mpi_the_last_to_return_counts(tmp_path):
    records = {
        0: waitall(1.0, 1.5, (1, 0), (2, 0), (3, 0)),
        1: [sent(0.9, 0), call(1.2, 1.3)],
        2: [sent(0.8, 0), call(1.4, 1.5)],
        3: [sent(0.8, 0), call(1.55, 1.6)],
    }
    found = waits(tmp_path, records)
    assert found.peer_outside_s == pytest.approx([0.4, 0, 0, 0])
    assert found.caused_s == pytest.approx([0, 0, 0.4, 0])


def test_a_rank_is_inside_the_mpi_while_one_of_its_threads_is(tmp_path):
    threads = [sent(0.9, 0), call(0.95, 1.2), call(1.0, 1.1), call(1.4, 1.5)]
    found = waits(tmp_path, {0: [received(1.0, 1.5, 1)], 1: threads})
    assert found.peer_outside_s == pytest.approx([0.2, 0])


def test_messages_of_one_tag_are_received_in_the_order_sent(tmp_path):
    records = {
        0: [received(1.0, 1.5, 1, tag=7), received(2.0, 2.5, 1, tag=3), received(3.0, 3.5, 1, tag=3)],
        1: [sent(0.5, 0, tag=3), sent(1.1, 0, tag=7), sent(3.2, 0, tag=3)],
    }
    assert waits(tmp_path, records).late_sender_s == pytest.approx([0.1 + 0.2, 0])


def test_ranks_wait_for_the_last_one_in_collectives(tmp_path):
    records = {
        0: [collective(ALLREDUCE, 1.0, 1.6), collective(BCAST, 2.0, 2.1, 1), collective(REDUCE, 3.0, 3.6, 0)],
        1: [
            collective(ALLREDUCE, 1.5, 1.6),
            collective(BCAST, 2.05, 2.1, 1),
            collective(REDUCE, 3.0, 3.1, 0),
        ],
        2: [collective(ALLREDUCE, 1.2, 1.6), collective(BCAST, 2.3, 2.4, 1), collective(REDUCE, 3.5, 3.6, 0)],
    }
    found = waits(tmp_path, records)
    # In a broadcast the others wait for the root, in a reduction the root for the others.
    assert found.late_collective_s == pytest.approx([0.5 + 0.05 + 0.5, 0, 0.3])
    assert found.caused_s == pytest.approx([0, 0.5 + 0.05 + 0.3, 0.5])
    assert {place.call: place.late for place in found.places} == {
        "MPI_Allreduce": 1, "MPI_Bcast": 1, "MPI_Reduce": 2,
    }  # fmt: skip


def test_a_full_ring_is_matched_from_its_end(tmp_path):
    steps = range(50)
    records = {
        0: [row for k in steps for row in (received(k, k + 0.5, 1), collective(BARRIER, k + 0.6, k + 0.9))],
        1: [row for k in steps for row in (sent(k + 0.25, 0), collective(BARRIER, k + 0.8, k + 0.9))],
    }
    found = waits(tmp_path, records, capacity=20)
    assert not found.is_whole and found.num_matched == 10
    assert found.late_sender_s == pytest.approx([10 * 0.25, 0])
    assert found.late_collective_s == pytest.approx([10 * 0.2, 0])
    # Ranks that did not reach the end may lack messages there.
    cut = waits(tmp_path, records, capacity=20, end=None)
    assert (cut.num_matched, cut.waiting_s.sum()) == (0, 0)


def test_clocks_of_nodes_are_compared_by_their_messages(tmp_path):
    ahead_s, latency = {0: 0.0, 1: 0.0, 2: 5000.0}, 1e-4
    records = {
        0: [sent(1.0, 2), received(2.0, 2.0 + latency, 2), received(3.0, 3.4, 2), received(4.0, 4.3, 1)],
        1: [sent(4.2, 0)],
        2: [received(1.0, 1.0 + latency, 0), sent(2.0, 0), sent(3.4 - latency, 0)],
    }
    found = waits(tmp_path, records, ahead_s=ahead_s, boots=["a", "a", "b"])
    assert found.clock_uncertainty_s == pytest.approx(latency, abs=1e-8) and found.unconnected == []
    assert found.late_sender_s == pytest.approx([0.4 - latency + 0.2, 0, 0], abs=1e-6)


def test_clocks_that_drift_are_compared_over_the_run(tmp_path):
    """The clock of rank 1 gains 50 us per second, for 100 s, and as much is lost from there on."""
    latency_s, steps = 2e-5, range(400)

    def by_1(time_s):
        return time_s + 5e-5 * min(time_s, 200 - time_s)

    records = {0: [], 1: []}
    for k in steps:
        begin_s = 0.5 * k
        there_s, back_s = begin_s + latency_s, begin_s + 0.1
        records[0] += [sent(begin_s, 1), received(back_s, back_s + latency_s, 1)]
        records[1] += [received(by_1(begin_s), by_1(there_s), 0), sent(by_1(back_s), 0)]
    recording = recording_of(2, ["a", "b"])
    joined = join_traces(recording, traces_of(tmp_path, records, ahead_s={0: 0.0, 1: 5000.0}))
    assert joined.clocks.ahead_s[1] == pytest.approx(5000, abs=0.02)
    events, matches = joined.events, joined.matches
    took_s = events.end_s[matches.received] - events.begin_s[matches.sent]
    assert len(took_s) == 2 * len(steps)
    assert took_s == pytest.approx(latency_s, abs=4 * latency_s)
    assert np.median(np.abs(took_s - latency_s)) < 5e-6


def test_without_messages_between_nodes_nothing_is_said_about_them(tmp_path):
    """And the ranks are named."""
    records = {0: [collective(BCAST, 1.0, 2.0, 1)], 1: [collective(BCAST, 1.5, 2.0, 1)]}
    found = waits(tmp_path, records, ahead_s={0: 0.0, 1: 77.0}, boots=["a", "b"])
    assert found.waiting_s.sum() == 0 and found.unconnected == [1]


def test_messages_of_other_sizes_are_no_pair(tmp_path):
    found = waits(tmp_path, {0: [received(1.0, 1.5, 1, size=4)], 1: [sent(1.4, 0, size=8)]})
    assert (found.num_matched, found.num_received) == (0, 1)


def test_it_is_known_what_a_receive_without_a_send_lacks(tmp_path):
    late = received(1.0, 1.5, 1)
    assert waits(tmp_path, {0: [late], 1: [sent(1.4, 0)]}).unmatched == ""
    for other in (
        sent(1.4, 0, tag=9),
        sent(1.4, 2),
        call(1.0, 1.1),
    ):  # another tag, another pair, none at all
        assert waits(tmp_path, {0: [late], 1: [other], 2: [sent(1.4, 0)]}).unmatched == NO_SEND
    assert waits(tmp_path, {0: [late], 1: [sent(1.4, 0, size=4)]}).unmatched == OTHER_SENDS
    two = {number: replace(world(0, 2), identity=number) for number in (1, 2)}
    on_other = (*sent(1.4, 0)[:4], 2, *sent(1.4, 0)[5:])
    assert waits(tmp_path, {0: [late], 1: [on_other]}, communicators=two).unmatched == OTHER_COMMUNICATOR
    # Alike and without identities: which is which is not known.
    two = {1: world(0, 2), 2: world(0, 2)}
    found = waits(tmp_path, {0: [late], 1: [sent(1.4, 0)]}, communicators=two)
    assert found.unmatched == OTHER_COMMUNICATOR


def test_receives_are_matched_in_the_order_in_which_they_were_posted(tmp_path):
    first, second = received(2.0, 2.5, 1), received(1.0, 1.5, 1)
    records = {0: [(*second, 7), (*first, 3)], 1: [sent(2.3, 0), sent(3.0, 0)]}
    # The receive that ends later was posted first and gets the first message.
    assert waits(tmp_path, records).late_sender_s == pytest.approx([0.5 + 0.3, 0])


def test_ranks_without_a_file_do_not_matter_to_others(tmp_path):
    whole = recording_of(4)
    recording = Recording(Path("rec"), (), {rank: whole.ranks[rank] for rank in (0, 2)})
    traces = traces_of(tmp_path, {0: [received(1.0, 1.5, 2), sent(1.6, 3)], 2: [sent(1.4, 0)]})
    found = waits_of(recording, join_traces(recording, traces))
    assert found.ranks.tolist() == [0, 2] and found.late_sender_s == pytest.approx([0.4, 0])


def test_communicators_that_are_alike_are_not_compared(tmp_path):
    records = {0: [received(1.0, 1.5, 1)], 1: [sent(1.4, 0)]}
    two = {1: world(0, 2), 2: world(0, 2)}
    found = waits(tmp_path, records, communicators=two)
    assert (found.num_matched, found.num_received) == (0, 1)
    named = {1: world(0, 2), 2: replace(world(0, 2), name="rows")}
    assert waits(tmp_path, records, communicators=named).num_matched == 1


def test_blocks_of_collectives_and_partitioned_transfers_are_no_messages(tmp_path):
    block = (1.0, 1.1, ALLREDUCE, RECEIVED, WORLD, 1, NO_TAG, 0, 8)
    records = {0: [block], 1: [(1.4, 1.5, ALLREDUCE, SENT, WORLD, 0, NO_TAG, 0, 8)]}
    assert waits(tmp_path, records).num_received == 0


def test_a_tag_with_more_sends_than_receives_is_left_out(tmp_path):
    records = {0: [received(1.0, 1.5, 1, tag=1), received(2.0, 2.5, 1, tag=2)],
               1: [sent(1.4, 0, tag=1), sent(2.1, 0, tag=2), sent(2.2, 0, tag=2)]}  # fmt: skip
    assert waits(tmp_path, records).num_matched == 1
    # Of a job that was killed, the last messages were not received.
    assert waits(tmp_path, records, end=None).num_matched == 2


def test_records_that_are_not_whole_are_left_out(tmp_path):
    path = tmp_path / "rank-0.trace"
    data = bytearray(trace_file([sent(k, 1) for k in range(5)], 10))
    third = TRACE_HEAD_BYTES + 2 * TRACED.itemsize
    data[third : third + 4] = bytes(4)  # the third one's turn
    path.write_bytes(data[:-10])
    trace = load_trace(path, NAMES, 100)
    assert trace.records["number"].tolist() == [4] and not trace.is_whole
    assert trace.begin_s == pytest.approx(np.array([1003]))


@pytest.mark.parametrize("where", [0, 8])
def test_a_damaged_trace_is_refused_in_a_sentence(tmp_path, where):
    path = tmp_path / "rank-0.trace"
    data = bytearray(trace_file([sent(1, 1)], 10))
    data[where : where + 8] = bytes(8)
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged or of another version"):
        load_trace(path, NAMES, 100)


# The places of begin, duration and peer in a record.
@pytest.mark.parametrize(
    ("place", "value"), [(8, 2**63), (16, 2**64 - 5), (52, 1_500_000_000), (52, 2**32 - 9)]
)
def test_a_trace_with_values_that_cannot_be_is_refused(tmp_path, place, value):
    path = tmp_path / "rank-0.trace"
    data = bytearray(trace_file([sent(k, 1) for k in range(3)], 10))
    at, width = TRACE_HEAD_BYTES + TRACED.itemsize + place, 4 if place == 52 else 8
    data[at : at + width] = value.to_bytes(width, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="is damaged"):
        load_trace(path, NAMES, 100)


def test_an_empty_trace_is_none(tmp_path):
    path = tmp_path / "rank-0.trace"
    path.write_bytes(b"")
    assert load_trace(path, NAMES, 100) is None
