"""What a page says of threads that poll."""

import numpy as np
import pytest

from earlybird.analysis.stuck.verdict import judge
from earlybird.data import recorded_page
from earlybird.data.recorded_page import Page


def page(**of_call):
    """A page with one thread, whose last call was an MPI_Test that did not succeed."""
    data = np.zeros(1, recorded_page._PAGE)
    data["open"]["magic"], data["head"]["magic"] = recorded_page._OPEN_MAGIC, recorded_page._MAGIC
    data["head"]["tick_s"], data["head"]["size"] = 1e-9, 1
    call = data["calls"][0, :1]
    for name, value in {"ended_ticks": 9, "polling_ticks": 5, "turn": 8, "progress": 3, **of_call}.items():
        call[name] = value
    return data.tobytes()


@pytest.mark.parametrize(
    ("again", "is_inside", "is_polling", "is_steady"),
    [
        ({"turn": 28}, True, True, True),  # in between two polls
        ({"turn": 29, "begin_ticks": 8}, True, True, True),  # at the begin of one
        ({}, False, False, True),  # has computed since the last one
        ({"turn": 28, "progress": 4}, True, True, False),
    ],
)
def test_a_thread_that_polls(again, is_inside, is_polling, is_steady):
    state = Page(page(), page(**again)).state(1.0, ["MPI_Test"], lambda *_: "")
    (thread,) = state.threads
    assert (thread.is_inside, thread.is_polling, thread.is_steady) == (is_inside, is_polling, is_steady)


NUM_RANKS = 1000


def pages_of_a_job(awaited):
    """The pages of ranks in an MPI_Allreduce, or in an MPI_Recv from the rank that they await."""
    data = np.zeros(1, recorded_page._PAGE)
    data["open"]["magic"], data["head"]["magic"] = recorded_page._OPEN_MAGIC, recorded_page._MAGIC
    head, call, more = data["head"][0:1], data["calls"][0, :1], data["more"][0, :1]
    known, channels = data["communicators"][0, :1], data["channels"][0, :8]
    head["tick_s"], head["size"], head["num_communicators"] = 1e-9, NUM_RANKS, 1
    known["identity"], known["number"], known["size"], known["stride"] = 7, 1, NUM_RANKS, 1
    known["name"], known["entered"]["call"] = b"MPI_COMM_WORLD", 1
    known["entered"]["root"] = more["root"] = more["send_peer"] = -1
    call["begin_ticks"], call["communicator"], call["tag"] = 5, 1, 3
    channels["is_used"], channels["communicator"], channels["tag"] = 2, 1, 9
    channels["sent"] = channels["received"] = 100
    for rank in range(NUM_RANKS):
        head["rank"] = rank
        call["peer"], call["call"] = awaited.get(rank, -1), rank not in awaited
        known["num_entered"] = more["number"] = rank not in awaited
        channels["peer"] = (rank + np.array([-4, -3, -2, -1, 1, 2, 3, 4])) % NUM_RANKS
        yield data.tobytes()


def test_a_thousand_ranks_are_one_line():
    states = {
        rank: Page(data).state(1.0, ["MPI_Recv", "MPI_Allreduce"], lambda *_: "")
        for rank, data in enumerate(pages_of_a_job({1: 3, 3: 1}))
    }
    where = judge(states)
    assert (where.verdict, where.cycle, where.guilty) == ("deadlock", (1, 3), (1, 3))
    assert where.sentence.endswith("; ranks 0, 2 and 4-999 wait for them in MPI_Allreduce no. 1.")
