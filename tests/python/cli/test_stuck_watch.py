"""What `record --stuck` reports of ranks that do not get on, on planted states of ranks."""

import errno
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.cli.session import stuck, watched
from earlybird.data import recorded_page
from earlybird.data.rank_states import (
    ENDED,
    PARTITIONED_RECEIVE,
    PARTITIONED_SEND,
    RECEIVE,
    RUNS,
    STOPPED,
    Awaited,
    RankState,
    ThreadState,
    Where,
)
from earlybird.data.recorded_page import PageOwner
from earlybird.launch import running_ranks
from earlybird.launch.execution import Request
from earlybird.launch.other_nodes import files_of_agents
from earlybird.launch.running_ranks import process_state


@pytest.fixture
def watch(monkeypatch, tmp_path):
    """A watch of two ranks, the states of which a test may change; rank 0 waits for rank 1."""
    receives = Awaited(RECEIVE, "MPI_Recv", 1, 5, "world")
    states = {
        0: RankState(0, threads=(ThreadState(0, "MPI_Recv", True, 9.0, awaited=(receives,)),)),
        1: RankState(1, threads=(ThreadState(0, "MPI_Send", False, 9.0),)),
    }
    progress, reports = {0: 3, 1: 4}, []
    monkeypatch.setattr(stuck, "look", lambda *_, **__: dict(states))
    monkeypatch.setattr(stuck, "progress_of", lambda _: dict(progress))
    monkeypatch.setattr(stuck, "_AGAIN_S", 0.0)
    made = stuck.StuckWatch(tmp_path, 1e-9, True, lambda where: reports.append(where.verdict))
    made.look()
    reports.clear()
    made.states, made.progress, made.reports = states, progress, reports
    return made


def test_a_rank_that_ends_while_others_are_stuck_is_reported(watch):
    assert (watch.look(), watch.reports) == (False, ["computing"])
    assert (watch.look(), watch.reports) == (False, ["computing"])
    watch.states[1] = replace(watch.states[1], state=ENDED)
    assert (watch.look(), watch.reports) == (True, ["computing", "ended"])


def test_a_watch_that_sees_no_rank_says_so_once(watch, capsys):
    watch.progress.clear()
    for _ in range(3):
        assert not watch.look()
    assert capsys.readouterr().err.count("--stuck sees no rank") == 1


def test_a_failure_of_a_look_does_not_end_the_program(watch, monkeypatch, capsys):
    def fail(*_):
        raise StopIteration

    monkeypatch.setattr(stuck, "judge", fail)
    assert not watch.look()
    assert not watch.look()
    assert capsys.readouterr().err.count("cannot look at the ranks any longer") == 1


def test_a_failure_of_the_folder_ends_neither_the_command_nor_the_answer(
    watch, monkeypatch, capsys, tmp_path
):
    def fail(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(stuck, "progress_of", fail)
    monkeypatch.setattr(stuck, "look", fail)
    assert not watch.look()
    assert not watch.look()
    assert math.isfinite(watch.next_look_s)
    latest = Where("deadlock", "", (), (), {})
    assert stuck.last_state(tmp_path, latest) is latest
    assert stuck.last_state(tmp_path) is None
    assert capsys.readouterr().err.lower().count("input/output error") == 3


def test_a_folder_that_cannot_be_read_has_no_files_of_agents(monkeypatch, tmp_path):
    def fail(_):
        raise OSError(errno.ESTALE, "Stale file handle")

    (tmp_path / "rank-0.pages").touch()
    (tmp_path / "rank-0.pages.17").touch()
    assert [path.name for path in files_of_agents(tmp_path)] == ["rank-0.pages"]
    monkeypatch.setattr(os, "scandir", fail)
    assert files_of_agents(tmp_path) == []
    monkeypatch.undo()
    running_ranks.remove_shared_pages(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_process_that_cannot_be_seen_has_not_ended():
    own = os.stat("/proc/self/ns/pid").st_ino
    gone = PageOwner(2**22 + 1, 1, own, 0, 2)
    assert process_state(gone) == ENDED
    assert process_state(replace(gone, pid_namespace=own + 1)) == RUNS
    assert process_state(replace(gone, pid=os.getpid(), started=0)) in (RUNS, STOPPED)


def test_the_pages_of_the_latest_job_are_seen(tmp_path):
    for name in ("rank-0.open", "rank-0.job-2.open", "rank-1.job-2.open", "rank-0.job-1.open"):
        (tmp_path / name).write_bytes(bytes(running_ranks.PAGE_BYTES))
    _, by_rank = running_ranks._by_rank(running_ranks._local_pages(tmp_path))
    assert by_rank == {0: "rank-0.job-2.open", 1: "rank-1.job-2.open"}


def test_pages_of_earlier_jobs_are_removed_unless_their_process_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(running_ranks, "_SHARED_MEMORY", tmp_path)
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    folders = [tmp_path / f"earlybird-{os.geteuid()}-{number}" for number in range(3)]
    for folder, pids in zip(folders, [(2**22 + 1,), (2**22 + 1, os.getpid()), ()], strict=True):
        folder.mkdir()
        for rank, pid in enumerate(pids):
            data = np.zeros(1, recorded_page._PAGE)
            data["open"]["magic"], data["head"]["magic"] = recorded_page._OPEN_MAGIC, recorded_page._MAGIC
            data["head"]["pid"], data["head"]["started"] = pid, started
            data["head"]["pid_namespace"] = os.stat("/proc/self/ns/pid").st_ino
            (folder / f"rank-{rank}.open").write_bytes(data.tobytes())
    running_ranks.remove_stale_pages()
    assert not folders[0].exists()
    assert len(list(folders[1].iterdir())) == 2
    assert folders[2].exists()


def test_a_rank_that_has_removed_its_page_has_not_ended_early(tmp_path):
    own = os.stat("/proc/self/ns/pid").st_ino
    gone = PageOwner(2**22 + 1, 1, own, 0, 2)
    assert running_ranks._state_now(tmp_path, "rank-0.open", gone) == "finalized"
    (tmp_path / "rank-0.open").write_bytes(bytes(running_ranks.PAGE_BYTES))
    assert running_ranks._state_now(tmp_path, "rank-0.open", gone) == ENDED


def test_a_page_that_comes_back_unchanged_has_not_got_on(watch):
    watch._limit_s = 3600.0
    began_s = watch._since_s
    known = watch.progress.pop(1)
    watch.look()
    watch.progress[1] = known
    watch.look()
    assert watch._since_s == began_s
    watch.progress[1] += 1
    watch.look()
    assert watch._since_s > began_s


def test_stop_does_not_act_while_a_thread_may_wake(watch, capsys):
    watch.states[1] = replace(watch.states[1], state=ENDED)
    watch.states[0] = replace(watch.states[0], may_wake=True)
    assert (watch.look(), watch.look(), watch.reports) == (False, False, ["ended"])
    assert capsys.readouterr().err.count("--stop does not end the command: threads of rank 0") == 1
    watch.states[0] = replace(watch.states[0], may_wake=False)
    assert watch.look()


def test_stop_says_why_it_does_not_act(watch, capsys):
    watch.look()
    text = "--stop does not end the command: ranks may get on after the verdict computing"
    assert (watch.look(), capsys.readouterr().err.count(text)) == (False, 1)


@pytest.mark.parametrize("is_concurrent", [True, False])
def test_stop_acts_on_a_missing_partition_unless_another_thread_may_ready_it(watch, capsys, is_concurrent):
    sends = Awaited(PARTITIONED_SEND, "MPI_Psend_init", 0, 3, "world", 32, partitions=4, num_ready=3)
    receives = Awaited(PARTITIONED_RECEIVE, "MPI_Precv_init", 1, 3, "world", 32)
    for rank, awaited in enumerate((receives, sends)):
        thread = ThreadState(0, "MPI_Wait", True, 9.0, awaited=(awaited,))
        watch.states[rank] = RankState(
            rank, threads=(thread,), requests=(awaited,), is_concurrent=is_concurrent
        )
    assert (watch.look(), watch.reports) == (not is_concurrent, ["partitioned"])
    said = "another thread of rank 1 may make the partitions ready" in capsys.readouterr().err
    assert said == is_concurrent


def test_stop_does_not_act_on_a_receive_whose_sender_waits_for_something_else(watch, capsys):
    """Its send may be complete, and is not seen any more."""
    receives = Awaited(PARTITIONED_RECEIVE, "MPI_Precv_init", 1, 3, "world", 32)
    from_rank_0 = Awaited(RECEIVE, "MPI_Recv", 0, 5, "world", 32)
    for rank, awaited in enumerate((receives, from_rank_0)):
        thread = ThreadState(0, awaited.call, True, 9.0, awaited=(awaited,))
        watch.states[rank] = RankState(rank, threads=(thread,), requests=(awaited,))
    assert (watch.look(), watch.reports) == (False, ["partitioned"])
    assert "no rank waits for partitions that it must make ready itself" in capsys.readouterr().err


class Interrupted(BaseException):
    """As KeyboardInterrupt, which would end the tests."""


@pytest.mark.parametrize("is_reported", [True, False])
def test_an_interruption_at_the_end_does_not_remove_an_answer(monkeypatch, tmp_path, is_reported):
    given = {}

    def run(program, arguments, environment, is_quiet, made):
        given.update(environment)
        (output / "rank-0.open").touch()
        made.latest = Where("deadlock", "", (), (), {}) if is_reported else None

    def interrupt(*_):
        raise Interrupted

    output = tmp_path / "rec"
    monkeypatch.setattr(
        watched, "_prepared", lambda _: ("app", ["app"], {"EARLYBIRD_RECORD_SYNCHRONOUS": "1"})
    )
    monkeypatch.setattr(watched, "run_recorded", run)
    monkeypatch.setattr(watched, "last_state", interrupt)
    with pytest.raises(Interrupted):
        watched.run_watched(
            Request(["app"], None, True, None), output, 60.0, may_stop=False, is_synchronous=False
        )
    assert output.exists() == is_reported
    assert given["EARLYBIRD_RECORD_PAGES"] == "only"


def test_a_recording_inside_of_exec_counts_and_buffers(tmp_path):
    inherited = {"EARLYBIRD_RECORD_PAGES": "only", "EARLYBIRD_RECORD_SYNCHRONOUS": "1"}
    variables = inherited | running_ranks.recorder_variables(tmp_path)
    assert [variables[name] for name in inherited] == ["", ""]
