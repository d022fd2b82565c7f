"""Simulated programs whose threads create, join and meet each other, against closed forms."""

import pytest

from earlybird.models.program import Semantics, simulate
from tests.python.models.program_texts import Written, network

BW, LATENCY_S, SIZE = 1e9, 3e-6, 500_000
SENT_S = SIZE / BW + LATENCY_S


class Threads(Written):
    """Threads 0 and 3 are those that begin the ranks 0 and 1; 1 and 2 are of rank 0."""

    def __init__(self):
        super().__init__([0, 0, 0, 1])

    def wait_for(self, thread, other, cost_s=0.0):
        """Let a thread wait for what the other one has done so far."""
        k = self.collective(Semantics.WAIT_FOR_THREAD, other)
        for one, s in sorted(((thread, cost_s), (other, 0.0))):
            self.add(one, "wait", [self.add(one, "enter", k, s)], 0.0)


def _forked(works_s, sends=True, meets=False):
    """Rank 0 computes for 1 ms and creates two threads, which compute and send to rank 1; it joins them."""
    written = Threads()
    written.add(0, "compute", 1e-3)
    for worker in (1, 2):
        written.wait_for(worker, 0, 1e-5)
    messages = []
    for worker, work_s in zip((1, 2), works_s, strict=True):
        written.add(worker, "compute", work_s)
    if meets:
        k = written.collective(Semantics.THREADS_WAIT)
        for worker in (1, 2):
            written.add(worker, "wait", [written.add(worker, "enter", k, 2e-6)], 0.0)
    for worker in (1, 2):
        if sends:
            messages.append(written.message(SIZE))
            written.send(worker, messages[-1])
    for worker in (1, 2):
        written.wait_for(0, worker)
    for m in messages:
        written.receive(3, m)
    return written


def _ends_s(written, **more):
    """When rank 0 has joined its threads, and the end of the run."""
    program = written.program()
    run = simulate(program, network([0, 1], BW, LATENCY_S, **more))
    return run.end_s[program.first[1] - 1], run.end_of_run_s


@pytest.mark.parametrize("works_s", [(3e-3, 5e-3), (5e-3, 3e-3), (0.0, 0.0)])
def test_a_join_ends_when_the_last_thread_has_ended(works_s):
    joined_s, end_s = _ends_s(_forked(works_s))
    assert joined_s == pytest.approx(1e-3 + 1e-5 + max(works_s))
    assert end_s >= joined_s + SENT_S


def test_a_join_waits_for_what_the_thread_sends():
    joined_s, _ = _ends_s(_forked((3e-3, 5e-3)), waits=True)
    assert joined_s == pytest.approx(1e-3 + 1e-5 + 5e-3 + SIZE / BW)


def test_threads_meet_at_a_barrier():
    works_s = (3e-3, 5e-3)
    written = _forked(works_s, sends=False, meets=True)
    program = written.program()
    run = simulate(program, network([0, 1], BW))
    ends_s = run.end_s[program.first[1:4] - 1]
    assert ends_s == pytest.approx(1e-3 + 1e-5 + max(works_s) + 2e-6)


def test_a_rank_whose_threads_compute_or_wait_for_each_other_is_outside_the_mpi():
    """A message to rank 0 that needs the receiver inside begins when its thread comes back from computing."""
    written = Threads()
    m = written.message(SIZE)
    posted = written.add(0, "receive", m, 0.0)
    for worker in (1, 2):
        written.wait_for(worker, 0)
    written.add(1, "compute", 5e-3)
    written.add(2, "compute", 1e-3)
    for worker in (1, 2):
        written.wait_for(0, worker)
    written.add(0, "wait", [posted], 0.0)
    written.add(3, "compute", 5e-4)
    written.send(3, m)
    program = written.program()
    run = simulate(program, network([0, 1], BW, LATENCY_S, waits=True, inside=True))
    assert run.begun_s[m] == pytest.approx(5e-3)
    assert run.end_of_run_s == pytest.approx(5e-3 + SENT_S)


@pytest.mark.parametrize(
    ("semantics", "root", "threads", "why"),
    [
        (Semantics.WAIT_FOR_THREAD, 4, (0, 1), "root"),
        (Semantics.ALL_WAIT, 0, (0, 1), "a rank enters a collective twice"),
        (Semantics.THREADS_WAIT, 0, (0, 0), "a thread enters a collective twice"),
    ],
)
def test_wrong_threads_are_refused(semantics, root, threads, why):
    written = Threads()
    k = written.collective(semantics, root)
    for thread in threads:
        written.add(thread, "enter", k, 0.0)
    with pytest.raises(ValueError, match=why):
        simulate(written.program(), network([0, 1], BW))
