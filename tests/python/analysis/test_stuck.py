"""Who waits for whom, on planted states of ranks."""

import time
from dataclasses import replace

import pytest

from earlybird.analysis.stuck.sentences import named_ranks
from earlybird.analysis.stuck.verdict import FOREVER, judge
from earlybird.analysis.stuck.waits import is_nonblocking, kind_of
from earlybird.data.rank_states import (
    ANY_TAG,
    COLLECTIVE,
    COMPLETED_TAG,
    ENDED,
    EXCLUSIVE_LOCK,
    FINALIZED,
    LOCK,
    PARTITIONED_RECEIVE,
    PARTITIONED_SEND,
    POSTED_TAG,
    RECEIVE,
    RUNS,
    SEND,
    STOPPED,
    UNSEEN,
    Awaited,
    CommunicatorState,
    Entered,
    RankState,
    ThreadState,
)
from earlybird.data.recorded_rank import ANY_PEER, NO_PEER

WORLD, DUP = "world", "dup"


def receive(peer, tag=5, communicator=WORLD, call="MPI_Recv", **others):
    return Awaited(RECEIVE, call, peer, tag, communicator, 8, **others)


def send(peer, tag=5, communicator=WORLD, call="MPI_Send", **others):
    return Awaited(SEND, call, peer, tag, communicator, 8, **others)


def inside(*awaited, call=None, left_out=0, **others):
    """A thread in a call that waits for something."""
    name = call or awaited[0].call
    return ThreadState(0, name, True, 62.0, "main (a.c:1)", tuple(awaited), left_out, **others)


def computing(call="MPI_Allreduce"):
    return ThreadState(0, call, False, 30.0, "main (a.c:9)")


def job(*threads, entered=None, sent=None, received=None, states=None, communicators=(WORLD, DUP)):
    """A job of ranks in these threads. `entered`: {(rank, communicator): [Entered]}; `sent` and `received`:
    {rank: {channel: ...}}; `states`: {rank: state}."""
    size, entered, states = len(threads), entered or {}, states or {}
    ranks = {}
    for rank, of_rank in enumerate(threads):
        many = of_rank if isinstance(of_rank, tuple) else (of_rank,)
        many = tuple(replace(thread, number=number) for number, thread in enumerate(filter(None, many)))
        known = {}
        for name in communicators:
            calls = entered.get((rank, name), [])
            title = "MPI_COMM_WORLD" if name == WORLD else name
            known[name] = CommunicatorState(title, range(size), len(calls), dict(enumerate(calls, 1)))
        requests = tuple(
            awaited for thread in many if thread.call.startswith("MPI_Wait") for awaited in thread.awaited
        )
        ranks[rank] = RankState(
            rank, states.get(rank, RUNS), "n0", many, known, requests, (sent or {}).get(rank, {}),
            (received or {}).get(rank, {}),
        )  # fmt: skip
    return ranks


def in_collectives(*calls):
    """Threads in the first collective of MPI_COMM_WORLD, with what they have entered; None: elsewhere."""
    threads, entered = [], {}
    for rank, each in enumerate(calls):
        if isinstance(each, ThreadState) or each is None:
            threads.append(each)
            continue
        each = Entered(each) if isinstance(each, str) else each
        entered[rank, WORLD] = [each]
        root = each.root
        threads.append(inside(Awaited(COLLECTIVE, each.call, root, ANY_TAG, WORLD, each.bytes, 1)))
    return job(*threads, entered=entered)


def test_receives_that_wait_for_each_other_are_a_deadlock_and_others_wait_for_them():
    states = in_collectives("MPI_Allreduce", inside(receive(3, 5)), "MPI_Allreduce", inside(receive(1, 6)))
    where = judge(states)
    assert where.verdict == "deadlock"
    assert where.cycle == (1, 3)
    assert where.guilty == (1, 3)
    assert where.sentence == (
        "Deadlock: rank 1 is in MPI_Recv from rank 3, tag 5 (main (a.c:1), 62 s); rank 3 is in MPI_Recv from "
        "rank 1, tag 6 (main (a.c:1), 62 s); ranks 0 and 2 wait for them in MPI_Allreduce no. 1."
    )


def test_sends_that_wait_for_each_other_are_no_deadlock_where_messages_are_buffered():
    where = judge(job(inside(send(1)), inside(send(0))))
    assert (where.verdict, where.cycle) == ("buffering", (0, 1))
    assert "not buffered" in where.sentence


def test_synchronous_sends_that_wait_for_each_other_are_a_deadlock():
    calls = [inside(send(peer, call="MPI_Ssend")) for peer in (1, 0)]
    assert judge(job(*calls)).verdict == "deadlock"


def test_one_send_in_a_cycle_suffices_for_buffering():
    where = judge(job(inside(send(1)), inside(send(2, call="MPI_Ssend")), inside(send(0, call="MPI_Ssend"))))
    assert where.verdict == "buffering"


@pytest.mark.parametrize(
    ("wanted", "sent", "what"),
    [
        (receive(0, 6), (1, WORLD, 5), "with tag 5"),
        (receive(0, 5, DUP), (1, WORLD, 5), "on MPI_COMM_WORLD"),
        (receive(2, 5), (1, WORLD, 5), "to it with this tag"),
        (receive(0, 5), (2, WORLD, 5), "to rank 2"),
    ],
)
def test_a_message_that_almost_matches_is_named(wanted, sent, what):
    states = job(inside(receive(1, 99)), inside(wanted), inside(receive(1, 98)), sent={0: {sent: (1, 8)}})
    where = judge(states)
    assert where.verdict == "mismatch"
    assert where.guilty == (1, 0)
    assert what in where.sentence


@pytest.mark.parametrize(
    ("wanted", "sent", "whom"),
    [
        (receive(1, 5, "reversed"), (1, WORLD, 5), "to it on MPI_COMM_WORLD"),
        (receive(0, 5, WORLD), (0, "reversed", 5), "to rank 0 on reversed"),
    ],
)
def test_the_same_numbers_of_ranks_in_another_communicator_are_a_near_miss(wanted, sent, whom):
    """Rank 0 sends to number 1, and rank 1 receives from number 0, of which one names other processes."""
    states = job(inside(receive(1, 99)), inside(wanted), sent={0: {sent: (1, 8)}})
    for rank, state in states.items():
        known = CommunicatorState("reversed", (1, 0))
        states[rank] = replace(state, communicators={**state.communicators, "reversed": known})
    where = judge(states)
    assert (where.verdict, where.guilty) == ("mismatch", (1, 0))
    assert f"such a message {whom}" in where.sentence


def test_a_blocked_send_that_almost_matches_is_named():
    where = judge(job(inside(send(1, 5)), inside(receive(0, 6))))
    assert where.verdict == "mismatch"
    assert "sends such a message to it with tag 5" in where.sentence


def test_a_message_that_was_received_is_no_near_miss():
    states = job(
        inside(receive(1, 9)), inside(receive(0, 6)),
        sent={0: {(1, WORLD, 5): (3, 8)}}, received={1: {(0, WORLD, 5): 3}},
    )  # fmt: skip
    assert judge(states).verdict == "deadlock"


def test_a_message_for_an_open_receive_is_no_near_miss():
    opened = receive(0, 5, call="MPI_Irecv")
    states = job(inside(receive(1, 9)), inside(receive(0, 6)), sent={0: {(1, WORLD, 5): (1, 8)}})
    states[1] = replace(states[1], requests=(opened,))
    assert judge(states).verdict == "deadlock"


def test_a_receive_from_a_rank_in_finalize_misses_its_message():
    where = judge(job(ThreadState(0, "MPI_Finalize", True, 5.0), inside(receive(0, 6))))
    assert (where.verdict, where.guilty) == ("missing", (1, 0))
    assert "rank 0 has not sent it and is in MPI_Finalize" in where.sentence


def test_waitall_waits_only_for_what_is_missing():
    requests = [receive(0, tag, call="MPI_Irecv", posted_s=tag) for tag in range(10)]
    states = job(
        ThreadState(0, "MPI_Finalize", True, 5.0), inside(*requests, call="MPI_Waitall"),
        sent={0: {(1, WORLD, tag): (1, 1) for tag in range(10) if tag != 7}},
    )  # fmt: skip
    where = judge(states)
    assert where.verdict == "missing"
    assert "MPI_Waitall for MPI_Irecv from rank 0, tag 7 (" in where.sentence
    assert [awaited.tag for awaited in where.pending[1, 0]] == [7]


def test_sends_of_a_waitall_may_be_complete():
    """Rank 0 waits for the message of rank 2, which computes; its own one is buffered."""
    requests = [send(1, 5, call="MPI_Isend"), receive(2, 6, call="MPI_Irecv")]
    states = job(
        inside(*requests, call="MPI_Waitall"), inside(receive(0, 7)), computing(),
        sent={0: {(1, WORLD, 5): (1, 8)}},
    )  # fmt: skip
    where = judge(states)
    assert (where.verdict, where.guilty) == ("computing", (2,))


def test_what_any_rank_may_send_is_missing_only_if_none_can():
    threads = [inside(receive(ANY_PEER)), inside(receive(0)), inside(receive(0))]
    assert judge(job(*threads)).verdict == "deadlock"
    threads[2] = computing()
    assert judge(job(*threads)).verdict == "computing"


def test_waitany_needs_only_one_request():
    requests = [receive(peer, call="MPI_Irecv") for peer in (1, 2)]
    threads = [inside(*requests, call="MPI_Waitany"), inside(receive(0)), computing()]
    assert judge(job(*threads)).verdict == "computing"
    threads[2] = inside(receive(0))
    assert judge(job(*threads)).verdict == "deadlock"


def test_requests_of_which_nothing_is_known_may_complete():
    thread = inside(send(1, call="MPI_Isend"), call="MPI_Waitall", left_out=3)
    where = judge(job(thread, inside(receive(0, 9))))
    assert where.verdict == "unknown"


def test_a_collective_that_a_rank_skips():
    threads = ["MPI_Barrier", "MPI_Barrier", ThreadState(0, "MPI_Finalize", True, 9.0), "MPI_Barrier"]
    where = judge(in_collectives(*threads))
    assert (where.verdict, where.guilty) == ("collective", (2,))
    assert "ranks 0, 1 and 3 are in MPI_Barrier no. 1" in where.sentence
    assert "rank 2 has not entered it: it is in MPI_Finalize" in where.sentence


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (Entered("MPI_Barrier"), Entered("MPI_Allreduce"), "rank 3 has entered MPI_Allreduce"),
        (Entered("MPI_Bcast", 0), Entered("MPI_Bcast", 1), "with root 1"),
        (Entered("MPI_Allreduce", bytes=8), Entered("MPI_Allreduce", bytes=16), "with 16 B"),
    ],
)
def test_a_collective_that_a_rank_enters_as_another_one(one, other, what):
    where = judge(in_collectives(one, one, one, other))
    assert (where.verdict, where.guilty) == ("collective", (3,))
    assert what in where.sentence
    assert "no. 1 of MPI_COMM_WORLD" in where.sentence


def test_collectives_of_two_communicators_in_another_order():
    states = job(
        *(
            inside(Awaited(COLLECTIVE, "MPI_Barrier", NO_PEER, ANY_TAG, name, None, 1))
            for name in (WORLD, DUP)
        ),
        entered={(0, WORLD): [Entered("MPI_Barrier")], (1, DUP): [Entered("MPI_Barrier")]},
    )  # fmt: skip
    where = judge(states)
    assert (where.verdict, where.cycle) == ("collective", (0, 1))


def test_a_communicator_without_a_name_is_named_by_its_ranks():
    states = job(inside(receive(1, communicator=DUP)), inside(receive(0, communicator=DUP)))
    for state in states.values():
        state.communicators[DUP] = CommunicatorState("", range(2))
    assert "tag 5 on a communicator of ranks 0 and 1 (" in judge(states).sentence


def test_ranks_behind_the_root_of_a_broadcast_wait_for_the_root_alone():
    bcast = Entered("MPI_Bcast", 0)
    where = judge(in_collectives(inside(receive(1, 3)), bcast, bcast))
    assert (where.verdict, where.cycle) == ("deadlock", (0, 1))
    where = judge(in_collectives(computing(), bcast, inside(receive(1, 3))))
    assert (where.verdict, where.guilty) == ("computing", (0,))


def test_a_rank_that_computes_is_named_and_never_stopped():
    where = judge(in_collectives("MPI_Barrier", computing(), "MPI_Barrier"))
    assert (where.verdict, where.guilty) == ("computing", (1,))
    assert where.verdict not in FOREVER
    assert "ranks 0 and 2 wait for it in MPI_Barrier no. 1" in where.sentence


def test_which_rank_ended_first_is_not_known_of_a_job_that_is_over():
    where = judge(in_collectives("MPI_Barrier", computing(), "MPI_Barrier"), is_over=True)
    assert "rank 1 computed or ended after MPI_Allreduce (main (a.c:9)); ranks 0 and 2" in where.sentence


def test_a_rank_that_polls_may_get_on():
    polling = ThreadState(0, "MPI_Iprobe", True, 9.0, is_polling=True)
    where = judge(job(polling, computing(), computing()))
    assert where.verdict == "computing"
    where = judge(job(polling, inside(receive(0))))
    assert where.verdict == "unknown"
    assert "rank 0 polls with MPI_Iprobe" in where.sentence


@pytest.mark.parametrize(("state", "verdict"), [(STOPPED, "stopped"), (ENDED, "ended")])
def test_a_process_that_does_not_run(state, verdict):
    threads = [inside(receive(2)), inside(receive(0)), computing()]
    where = judge(job(*threads, states={2: state}))
    assert (where.verdict, where.guilty) == (verdict, (2,))
    assert "rank 0 waits for it in MPI_Recv from rank 2, tag 5" in where.sentence
    assert "rank 1 waits for it" in where.sentence


def test_a_rank_that_has_left_the_mpi():
    where = judge(job(inside(receive(1)), None, states={1: FINALIZED}))
    assert (where.verdict, where.guilty) == ("missing", (1,))


def test_a_rank_on_another_node_may_get_on():
    where = judge(job(inside(receive(1)), None, states={1: UNSEEN}))
    assert (where.verdict, where.guilty) == ("unreachable", (1,))
    assert where.sentence.startswith("Unreachable: rank 1 on n0 cannot be seen from here")


def test_a_partition_that_is_never_ready():
    sends = Awaited(PARTITIONED_SEND, "MPI_Psend_init", 0, 3, WORLD, 32, partitions=4, num_ready=3)
    receives = Awaited(PARTITIONED_RECEIVE, "MPI_Precv_init", 1, 3, WORLD, 32)
    where = judge(job(inside(receives, call="MPI_Wait"), inside(sends, call="MPI_Wait")))
    assert (where.verdict, where.guilty) == ("partitioned", (1,))
    assert "3 of 4 partitions ready" in where.sentence


@pytest.mark.parametrize(
    ("partitions", "ready", "text"),
    [
        (4, {0, 1, 3}, "3 of 4 partitions ready, not partition 2"),
        (8, {0, 3, 4}, "3 of 8 partitions ready, not partitions 1-2 and 5-7"),
        (8, set(), "0 of 8 partitions ready, not partitions 0-7"),
        (20, set(range(1, 20, 2)), "10 of 20 partitions ready, not partitions 0, 2, 4, 6 and 6 more"),
        (600, set(range(2, 512)), "510 of 600 partitions ready, not partitions 0-1 and 88 more"),
        (600, set(range(512)) - {5}, "511 of 600 partitions ready, not partitions 5 and 88 more"),
        (600, set(range(512)), "512 of 600 partitions ready"),
    ],
)
def test_partitions_that_are_not_ready_are_named_where_they_are_awaited_and_where_they_are_owed(
    partitions, ready, text
):
    unready = tuple(number for number in range(min(partitions, 512)) if number not in ready)
    sends = Awaited(
        PARTITIONED_SEND, "MPI_Psend_init", 0, 3, WORLD, 32, partitions=partitions, num_ready=len(ready),
        unready=unready,
    )  # fmt: skip
    receives = Awaited(PARTITIONED_RECEIVE, "MPI_Precv_init", 1, 3, WORLD, 32, partitions=2)
    sentence = judge(job(inside(receives, call="MPI_Wait"), inside(sends, call="MPI_Wait"))).sentence
    assert f"to rank 0, tag 3, {text} " in sentence
    assert not unready or f"from rank 1, tag 3, {text}." in sentence
    sentence = judge(job(inside(receives, call="MPI_Wait"), computing(), states={1: ENDED})).sentence
    assert "partition" not in sentence


def test_which_partitions_a_receive_lacks_is_not_said_if_it_may_be_of_either_of_two_sends():
    sends = [
        Awaited(
            PARTITIONED_SEND, "MPI_Psend_init", 0, 3, WORLD, 32, partitions=4, num_ready=3, unready=(number,)
        )
        for number in (1, 2)
    ]
    receives = Awaited(PARTITIONED_RECEIVE, "MPI_Precv_init", 1, 3, WORLD, 32)
    where = judge(job(inside(receives, call="MPI_Wait"), inside(*sends, call="MPI_Waitall")))
    assert (where.verdict, where.guilty) == ("partitioned", (1,))
    assert "from rank 1, tag 3." in where.sentence
    for number in (1, 2):
        assert f"to rank 0, tag 3, 3 of 4 partitions ready, not partition {number}" in where.sentence


def test_another_thread_may_send():
    helper = computing()
    states = job((inside(receive(1)), helper), inside(receive(0)))
    assert judge(states).verdict == "computing"
    states = job((inside(receive(1)), inside(receive(1, 8))), inside(receive(0)))
    assert judge(states).verdict == "deadlock"


def test_a_rank_that_has_got_on_between_two_looks_is_running():
    where = judge(job(inside(receive(1), is_steady=False), inside(receive(0))))
    assert where.verdict == "running"


def test_messages_that_were_not_counted_prove_nothing():
    states = job(
        inside(receive(1, 9)), inside(receive(0, 6)), sent={0: {(1, WORLD, 5): (1, 8)}},
    )  # fmt: skip
    states[1] = replace(states[1], counts_all=False)
    assert judge(states).verdict == "deadlock"


def test_communicators_that_a_rank_does_not_tell_apart_prove_nothing():
    states = in_collectives("MPI_Barrier", inside(receive(0)))
    assert judge(states).verdict == "deadlock"
    communicators = {DUP: states[1].communicators[DUP]}
    states[1] = replace(states[1], communicators=communicators, knows_communicators=False)
    assert judge(states).verdict == "unknown"


def test_a_send_and_its_receive_are_no_deadlock():
    """What moves data is not known: an MPI may need its sender to call it."""
    where = judge(job(inside(send(1, 5)), inside(receive(0, 5))))
    assert where.verdict == "unknown"


def test_one_sided_calls_and_finalize():
    assert judge(job(*[ThreadState(0, "MPI_Win_fence", True, 4.0)] * 2)).verdict == "one-sided"
    assert judge(job(*[ThreadState(0, "MPI_Finalize", True, 4.0)] * 2)).verdict == "finalize"


def test_not_all_ranks_are_in_finalize_if_one_has_ended():
    """Of ranks whose threads may all call the MPI none can any more after one is in MPI_Finalize."""
    finalizing = [ThreadState(0, "MPI_Finalize", True, 4.0)] * 2
    for has_other_threads in (False, True):
        states = job(*finalizing, None, states={2: ENDED})
        for rank in (0, 1):
            states[rank] = replace(states[rank], has_other_threads=has_other_threads)
        where = judge(states, is_over=True)
        assert (where.verdict, where.guilty) == ("ended", (2,))
        assert "rank 2 has ended without MPI_Finalize; ranks 0 and 1 wait for it" in where.sentence
    for state, verdict in ((ENDED, "ended"), (STOPPED, "stopped")):
        where = judge(job(*finalizing, finalizing[0], states={2: state}), is_over=True)
        assert (where.verdict, where.guilty) == (verdict, (2,))
    moving = replace(finalizing[0], is_steady=False)
    assert judge(job(finalizing[0], moving, None, states={2: ENDED}), is_over=True).verdict != "finalize"
    left = job(*finalizing, None, states={2: FINALIZED})
    assert judge(left, is_over=True).verdict == "finalize"


def test_ranks_in_the_same_place_are_one_clause():
    where = judge(in_collectives(*["MPI_Barrier"] * 50, computing(), *["MPI_Barrier"] * 50))
    assert "ranks 0-49 and 51-100 wait for it in MPI_Barrier no. 1" in where.sentence
    assert named_ranks([3]) == "rank 3"
    assert named_ranks([0, 1, 4, 5, 6, 9]) == "ranks 0, 1, 4-6 and 9"


@pytest.mark.parametrize("shape", ["collective", "chain", "ring"])
def test_a_thousand_ranks(shape):
    num, begin_s = 1000, time.process_time()
    if shape == "collective":
        where = judge(in_collectives(*["MPI_Allreduce"] * (num - 1), inside(receive(0))))
        assert (where.verdict, where.cycle) == ("deadlock", (0, num - 1))
    elif shape == "chain":
        where = judge(job(*(inside(receive(rank + 1)) for rank in range(num - 1)), computing()))
        assert (where.verdict, where.guilty) == ("computing", (num - 1,))
    else:
        where = judge(job(*(inside(receive((rank + 1) % num)) for rank in range(num))))
        assert (where.verdict, len(where.cycle)) == ("deadlock", num)
    assert len(where.sentence) < 2000
    assert time.process_time() - begin_s < 5


def test_a_thread_in_another_call_than_the_one_that_matters():
    """Rank 0 waits in two threads; that in the collective is the second one."""
    barrier = inside(Awaited(COLLECTIVE, "MPI_Barrier", NO_PEER, ANY_TAG, WORLD, None, 1))
    reduce = inside(Awaited(COLLECTIVE, "MPI_Allreduce", NO_PEER, ANY_TAG, WORLD, 8, 1))
    entered = {(0, WORLD): [Entered("MPI_Barrier")], (1, WORLD): [Entered("MPI_Allreduce")]}
    where = judge(job((inside(receive(1, 9)), barrier), reduce, entered=entered))
    assert where.verdict == "collective"
    assert "rank 0 has entered MPI_Barrier" in where.sentence
    ended = job((inside(receive(0, 9)), inside(receive(1))), None, states={1: FINALIZED})
    assert "rank 0 is in MPI_Recv from rank 1" in judge(ended).sentence


def test_threads_that_have_no_place_may_act():
    states = job(inside(receive(1, 1)), inside(receive(0, 2)))
    assert judge(states).verdict == "deadlock"
    states[0] = replace(states[0], has_other_threads=True)
    where = judge(states)
    assert where.verdict == "unknown"
    assert "rank 0 may have threads that have not called the MPI yet" in where.sentence


def test_what_a_rank_without_a_page_has_sent_may_be_there():
    """The message of rank 1, which has left the MPI, may have arrived; rank 2 computes."""
    wanted = [receive(peer, call="MPI_Irecv") for peer in (1, 2)]
    states = job(inside(*wanted, call="MPI_Waitall"), None, computing(), states={1: FINALIZED})
    states[1] = RankState(1, FINALIZED, counts_all=False, knows_communicators=False)
    assert judge(states).verdict == "computing"
    sends = [send(1, call="MPI_Issend"), receive(2, call="MPI_Irecv")]
    states[0] = job(inside(*sends, call="MPI_Waitall"))[0]
    assert judge(states).verdict == "computing"


def test_a_rank_without_a_page_may_have_entered_a_collective():
    reduce = Entered("MPI_Reduce", 0, 8)
    states = in_collectives(reduce, None, computing())
    states[1] = RankState(1, FINALIZED, counts_all=False, knows_communicators=False)
    assert judge(states).verdict not in FOREVER


def test_a_receive_from_any_rank_may_have_taken_any_of_the_messages():
    """It has that of rank 2, whose MPI_Waitall so waits for rank 4 alone, which computes."""
    wanted = [receive(3, 2, call="MPI_Irecv"), receive(ANY_PEER, 1, call="MPI_Irecv", posted_s=1.0)]
    sends = [send(0, 1, call="MPI_Issend"), receive(4, 3, call="MPI_Irecv")]
    message = {(0, WORLD, 1): (1, 8)}
    states = job(
        inside(*wanted, call="MPI_Waitall"), inside(send(0, 1, call="MPI_Issend"), call="MPI_Wait"),
        inside(*sends, call="MPI_Waitall"), inside(receive(2, 4)), computing(), sent={1: message, 2: message},
    )  # fmt: skip
    assert judge(states).verdict == "computing"


def test_the_root_of_a_broadcast_may_be_on_another_node():
    """Rank 1 is in it, rank 2 waits for a message that rank 1 sends afterwards."""
    bcast = Entered("MPI_Bcast", 0)
    states = in_collectives(None, bcast, inside(receive(1)))
    states[0] = RankState(0, UNSEEN, counts_all=False, knows_communicators=False)
    assert judge(states).verdict == "unreachable"


def test_a_root_that_computes_may_not_have_done_its_part():
    """It has entered by MPI_Ibcast."""
    bcast = Entered("MPI_Ibcast", 0)
    waits = inside(Awaited(COLLECTIVE, "MPI_Ibcast", 0, ANY_TAG, WORLD, None, 1), call="MPI_Wait")
    entered = {(rank, WORLD): [bcast] for rank in (0, 1)}
    where = judge(job(computing(), waits, inside(receive(1)), entered=entered))
    assert where.verdict == "computing"


def test_deadlocks_that_have_nothing_to_do_with_each_other():
    where = judge(job(*(inside(receive(peer)) for peer in (1, 0, 3, 2))))
    assert (where.verdict, where.cycle) == ("deadlock", (0, 1))
    assert where.guilty == (0, 1, 2, 3)
    assert "; apart from that, deadlock: rank 2 is in MPI_Recv from rank 3, tag 5" in where.sentence


def test_a_thread_that_waits_for_another_one_does_not_compute():
    idle = replace(computing(), is_idle=True)
    calls = [(inside(receive(1)), idle), (inside(receive(0)), idle)]
    assert judge(job(*calls)).verdict == "deadlock"
    where = judge(job(*calls[:1], (computing(), idle)))
    assert (where.verdict, where.guilty) == ("computing", (1,))
    where = judge(job(*calls[:1], idle))  # nobody knows whom it waits for
    assert (where.verdict, where.guilty) == ("computing", (1,))
    assert "rank 1 has used no processor for 30 s after MPI_Allreduce" in where.sentence


def test_the_place_of_a_request_and_of_a_collective_are_named():
    irecv = receive(1, call="MPI_Irecv", site=7)
    states = job(inside(irecv, call="MPI_Wait"), inside(receive(0)))
    states[0] = replace(states[0], place_of=lambda address, call: f"start (a.c:{address})")
    assert (
        "MPI_Wait for MPI_Irecv in start (a.c:7) from rank 1, tag 5 (main (a.c:1), 62 s)"
        in judge(states).sentence
    )
    states = in_collectives(Entered("MPI_Bcast", 0, site=3), Entered("MPI_Bcast", 1, site=3))
    states[0] = replace(states[0], place_of=lambda address, call: f"start (a.c:{address})")
    assert "rank 0 has entered MPI_Bcast with root 0 (start (a.c:3), 62 s)" in judge(states).sentence


def with_window(states, entered):
    """The states with a window of which ranks have entered the first synchronization."""
    calls = {1: Entered("MPI_Win_fence")}
    for rank, state in states.items():
        known = CommunicatorState(
            "window 1 of MPI_COMM_WORLD", range(len(states)), int(rank in entered), calls, is_window=True
        )
        states[rank] = replace(state, communicators={**state.communicators, "window": known})
    return states


def test_a_fence_that_a_rank_does_not_enter_is_one_sided():
    fence = inside(Awaited(COLLECTIVE, "MPI_Win_fence", NO_PEER, ANY_TAG, "window", None, 1))
    where = judge(with_window(job(fence, inside(receive(0)), fence), {0, 2}))
    assert (where.verdict, where.guilty) == ("one-sided", (1, 0))
    assert where.sentence.startswith(
        "One-sided: rank 0 is in MPI_Win_fence no. 1 of window 1 of MPI_COMM_WORLD"
    )
    assert where.verdict not in FOREVER
    assert judge(with_window(job(fence, computing(), fence), {0, 2})).verdict == "computing"


def test_an_epoch_that_a_rank_does_not_end_is_one_sided():
    wait = inside(receive(1, COMPLETED_TAG, "window", "MPI_Win_wait"))
    start = inside(receive(0, POSTED_TAG, "window", "MPI_Win_complete"))
    where = judge(with_window(job(wait, inside(receive(0))), set()))
    assert (where.verdict, where.cycle) == ("one-sided", (0, 1))
    assert "rank 0 is in MPI_Win_wait for MPI_Win_complete of rank 1 on window 1" in where.sentence
    posted = with_window(job(wait, start, sent={0: {(1, "window", POSTED_TAG): (1, 0)}}), set())
    assert judge(posted).verdict == "one-sided"  # both are in their calls, and the message is there
    assert not judge(posted).cycle


@pytest.mark.parametrize(("held", "wanted", "waits"), [(1, 0, True), (0, 1, True), (0, 0, False)])
def test_a_lock_that_a_rank_does_not_end_is_one_sided(held, wanted, waits):
    assert EXCLUSIVE_LOCK == 1
    locking = inside(Awaited(LOCK, "MPI_Win_lock", 2, ANY_TAG, "window", None, wanted))
    states = with_window(job(inside(receive(1)), locking, inside(receive(0))), set())
    lock = Awaited(LOCK, "MPI_Win_lock_all", ANY_PEER, ANY_TAG, "window", None, held)
    states[0] = replace(states[0], locks=(lock,))
    where = judge(states)
    assert where.verdict not in FOREVER
    assert where.cycle == ((0, 1) if waits else ())
    assert ("MPI_Win_lock of rank 2 on window 1" in where.sentence) == waits
    assert ("rank 0 holds the lock (MPI_Win_lock_all)" in where.sentence) == waits
    states[0] = replace(states[0], threads=(computing(),))
    assert judge(states).verdict == "computing"
    elsewhere = replace(states[0], threads=(inside(receive(1)),), locks=(replace(lock, peer=1),))
    assert not judge({**states, 0: elsewhere}).cycle


def test_of_several_locks_of_a_rank_that_is_named_for_which_another_one_waits():
    def lock(call, peer, is_exclusive):
        return Awaited(LOCK, call, peer, ANY_TAG, "window", None, EXCLUSIVE_LOCK if is_exclusive else 0)

    wanted = lock("MPI_Win_flush", 2, False)
    states = with_window(job(inside(receive(1)), inside(wanted), inside(receive(0))), set())
    of_another, of_all, exclusive = (
        lock("MPI_Win_lock_of_1", 1, True),
        lock("MPI_Win_lock_all", ANY_PEER, False),
        lock("MPI_Win_lock", 2, True),
    )
    states[0] = replace(states[0], locks=(of_another, of_all, exclusive))
    assert "rank 0 holds the lock (MPI_Win_lock)" in judge(states).sentence
    states[1] = replace(states[1], threads=(inside(replace(wanted, number=EXCLUSIVE_LOCK)),))
    states[0] = replace(states[0], locks=(of_another, of_all))
    assert "rank 0 holds the lock (MPI_Win_lock_all)" in judge(states).sentence


def test_ranks_in_calls_on_a_file_may_read_or_write():
    calls = [Entered("MPI_File_read_all"), Entered("MPI_File_write_all"), Entered("MPI_File_read_all")]
    assert judge(in_collectives(*calls)).verdict == "unknown"
    assert judge(in_collectives("MPI_File_close", "MPI_File_close", inside(receive(0)))).verdict == "deadlock"


def test_the_starts_of_a_persistent_collective_are_numbered_on_their_own():
    barrier = inside(
        Awaited(COLLECTIVE, "MPI_Barrier_init", NO_PEER, ANY_TAG, WORLD, None, 1), call="MPI_Wait"
    )
    states = in_collectives(*(Entered("MPI_Barrier_init") for _ in range(3)))
    states = {rank: replace(state, threads=(barrier,)) for rank, state in states.items()}
    assert judge(states).verdict == "unknown"  # all have started it
    states = in_collectives("MPI_Barrier_init", "MPI_Barrier_init", inside(receive(0)))
    assert judge(states).cycle == (0, 2)


def test_the_groups_of_an_intercommunicator_wait_for_each_other():
    barrier = inside(Awaited(COLLECTIVE, "MPI_Barrier", NO_PEER, ANY_TAG, "inter", None, 1))
    states = job(barrier, barrier, inside(receive(0)), barrier)
    for rank, state in states.items():
        entered = {} if rank == 2 else {1: Entered("MPI_Barrier")}
        known = CommunicatorState("", (0, 1) if rank < 2 else (2, 3), len(entered), entered, is_inter=True)
        states[rank] = replace(state, communicators={**state.communicators, "inter": known})
    where = judge(states)
    assert (where.verdict, where.cycle) == ("deadlock", (0, 2))
    wildcards = {0: inside(receive(ANY_PEER, 5, "inter")), 2: inside(receive(0))}
    states = {
        rank: replace(state, threads=(wildcards.get(rank, computing()),)) for rank, state in states.items()
    }
    assert judge(states).verdict == "computing"  # rank 3 may send
    assert judge(states).guilty == (3,)


def test_a_neighbourhood_collective_that_a_rank_does_not_enter():
    call = "MPI_Neighbor_allgather"
    where = judge(in_collectives(call, inside(receive(0)), call))
    assert (where.verdict, where.cycle) == ("deadlock", (0, 1))


def test_what_a_thread_that_polls_may_wait_for_is_shown():
    opened = receive(1, 7, call="MPI_Irecv")
    states = job(replace(inside(call="MPI_Test"), is_polling=True), computing())
    states[0] = replace(states[0], requests=(opened,))
    assert judge(states).pending[0, 0] == (opened,)


def test_many_deadlocks_that_are_alike_are_one_clause():
    where = judge(job(*(inside(receive(rank ^ 1)) for rank in range(40))))
    assert where.guilty == tuple(range(40))
    assert where.sentence.endswith("; deadlock of ranks 6-39, too.")


def test_a_message_that_a_link_does_not_deliver():
    def rank(number, host, peer, **others):
        return RankState(
            number, RUNS, host, (inside(receive(peer)),), {WORLD: CommunicatorState("w", range(2))}, **others
        )

    ranks = {
        0: rank(0, "a", 1, sent={(1, WORLD, 5): (3, 8)}),
        1: rank(1, "b", 0, received={(0, WORLD, 5): 2}),
    }
    answer = judge(ranks)
    assert (answer.verdict, answer.guilty) == ("unreachable", (0, 1))
    assert "rank 1 on b waits for a message that rank 0 on a has sent" in answer.sentence
    on_one = {number: replace(state, host="a") for number, state in ranks.items()}
    assert judge(on_one).verdict == "unknown"
    counts_some = ranks | {0: replace(ranks[0], counts_all=False)}
    assert judge(counts_some).verdict != "unreachable"


def test_a_collective_on_a_file_may_start_a_request():
    for call, is_request in (("MPI_File_iwrite_all", True), ("MPI_File_write_all", False)):
        assert (kind_of(call), is_nonblocking(call)) == ("file_write_all", is_request)
    assert (kind_of("MPI_Ibarrier"), is_nonblocking("MPI_Ibarrier")) == ("barrier", True)
