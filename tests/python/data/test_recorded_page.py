"""What a page says of threads that poll."""

import numpy as np
import pytest

from earlybird.analysis.stuck.verdict import judge
from earlybird.data import recorded_page
from earlybird.data.recorded_page import Page
from tests.stuck_job import CALLS, pages_of_a_job


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


def test_a_thousand_ranks_are_one_line():
    states = {
        rank: Page(data).state(1.0, CALLS, lambda *_: "")
        for rank, data in enumerate(pages_of_a_job(1000, {1: 3, 3: 1}))
    }
    where = judge(states)
    assert (where.verdict, where.cycle, where.guilty) == ("deadlock", (1, 3), (1, 3))
    assert where.sentence.endswith("; ranks 0, 2 and 4-999 wait for them in MPI_Allreduce no. 1.")
