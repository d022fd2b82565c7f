"""What `where` prints, and when a watch of `record --stuck` reports and stops."""

import json
from itertools import chain, repeat

import pytest

from earlybird.cli.commands import where as command
from earlybird.cli.session import stuck
from earlybird.data.rank_states import (
    FINALIZED,
    RECEIVE,
    RUNS,
    STOPPED,
    Awaited,
    CommunicatorState,
    RankState,
    ThreadState,
)
from earlybird.present.subjects.where.answer import print_where, where_as_json

WORLD = {"world": CommunicatorState("MPI_COMM_WORLD", range(2))}


def waiting_for(rank, peer, **others):
    awaited = Awaited(RECEIVE, "MPI_Recv", peer, 5, "world", 8)
    thread = ThreadState(0, "MPI_Recv", True, 62.0, "main (a.c:3)", (awaited,))
    return RankState(rank, RUNS, "n0", (thread,), WORLD, **others)


DEADLOCK = {0: waiting_for(0, 1), 1: waiting_for(1, 0)}
COMPUTING = {
    0: waiting_for(0, 1),
    1: RankState(1, RUNS, "n0", (ThreadState(0, "MPI_Recv", False, 62.0),), WORLD),
}


@pytest.fixture
def clock(monkeypatch):
    """The seconds that have passed, in a list of one."""
    passed = [100.0]
    monkeypatch.setattr(stuck.time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(stuck.time, "sleep", lambda seconds: None)
    return passed


@pytest.fixture
def watch(monkeypatch, clock, tmp_path):
    """watch(states, may_stop): a watch over ranks in these states, what it reports, and their progress."""

    def make(states, may_stop=True, again=None):
        progress, reported = {0: 1, 1: 1}, []
        looks = chain([states], repeat(again or states))
        monkeypatch.setattr(stuck, "progress_of", lambda recording: dict(progress))
        monkeypatch.setattr(stuck, "look", lambda *_, **__: next(looks))
        return stuck.StuckWatch(tmp_path, 60.0, may_stop, reported.append), reported, progress

    return make


def test_ranks_that_get_on_are_not_stuck(watch, clock):
    watching, reported, progress = watch(DEADLOCK)
    for _ in range(30):
        clock[0] += 10
        progress[1] += 1
        assert not watching.look()
    assert not reported


@pytest.mark.parametrize("may_stop", [True, False])
def test_a_deadlock_is_reported_once_and_stopped_if_that_is_allowed(watch, clock, may_stop):
    watching, reported, _ = watch(DEADLOCK, may_stop)
    answers = []
    for _ in range(7):
        answers.append(watching.look())
        clock[0] += 10
    assert answers == [False] * 6 + [may_stop]
    assert [where.verdict for where in reported] == ["deadlock"]
    clock[0] += 1000
    assert watching.look() == may_stop
    assert len(reported) == 1


def test_ranks_that_compute_are_reported_and_never_stopped(watch, clock):
    watching, reported, _ = watch(COMPUTING)
    for _ in range(20):
        assert not watching.look()
        clock[0] += 10
    assert [where.verdict for where in reported] == ["computing"]


def test_what_a_second_look_does_not_confirm_is_not_stopped(watch, clock):
    watching, reported, _ = watch(DEADLOCK, again=COMPUTING)
    for _ in range(20):
        assert not watching.look()
        clock[0] += 10
    assert [where.verdict for where in reported] == ["deadlock", "computing"]


def test_the_answer_as_json_and_as_a_table(capsys):
    where = stuck.judge(DEADLOCK)
    answer = json.loads(json.dumps(where_as_json(where)))
    assert list(answer) == ["schema", "verdict", "sentence", "guilty", "cycle", "threads", "states"]
    assert answer["schema"] == "earlybird.where/1"
    assert answer["threads"][0] == {
        "rank": 0, "thread": 0, "call": "MPI_Recv", "site": "main (a.c:3)", "since_s": 62.0,
        "pending": [{"peer": 1, "tag": 5, "communicator": "MPI_COMM_WORLD", "bytes": 8}],
    }  # fmt: skip
    print_where(where)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == where.sentence
    assert lines[3].split() == ["ranks", "in", "waits", "for", "place", "for"]
    assert lines[4].startswith("0      MPI_Recv  from rank 1, tag 5  main (a.c:3)")


def test_a_rank_that_is_stopped_says_where(capsys):
    print_where(stuck.judge({**COMPUTING, 1: RankState(1, STOPPED, "n0", COMPUTING[1].threads, WORLD)}))
    assert "stopped after MPI_Recv" in capsys.readouterr().out


def test_a_followed_program_is_a_line_of_json_each_time_until_it_ends(monkeypatch, in_process, tmp_path):
    looks = iter([DEADLOCK, DEADLOCK, COMPUTING, {}])
    monkeypatch.setattr(command, "look", lambda _: next(looks))
    monkeypatch.setattr(command, "is_being_recorded", lambda _: True)
    monkeypatch.setattr(command.time, "sleep", lambda _: None)
    result = in_process("where", "--follow", "--json", tmp_path)
    verdicts = [json.loads(line)["verdict"] for line in result.stdout.splitlines()]
    assert verdicts == ["deadlock", "computing"]
    assert "the program has ended" in result.stderr


def test_what_ranks_waited_for_while_they_were_stuck_is_kept_to_the_end(monkeypatch, tmp_path):
    latest = stuck.judge(DEADLOCK)
    monkeypatch.setattr(stuck, "look", lambda *_, **__: {0: waiting_for(0, 1), 1: RankState(1, FINALIZED)})
    kept = stuck.last_state(tmp_path, latest)
    assert kept.sentence == latest.sentence and kept.ranks[1].threads
    monkeypatch.setattr(stuck, "look", lambda *_, **__: {k: RankState(k, FINALIZED) for k in range(2)})
    assert stuck.last_state(tmp_path, latest) is None


def test_ranks_that_go_on_after_an_answer_leave_it_behind(watch, clock):
    made, reported, progress = watch(COMPUTING)
    made.look()
    clock[0] += 70
    made.look()
    assert len(reported) == 1 and not made.has_got_on
    for _ in range(3):
        clock[0] += 1
        progress[0] += 1
        made.look()
    assert made.has_got_on
