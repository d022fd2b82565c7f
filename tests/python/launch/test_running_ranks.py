"""Which pages of ranks are those of the recording that is looked at, on planted pages."""

import json
import os
import select
import signal
import struct
import threading
import time
import zlib

import numpy as np
import pytest

from earlybird.data import node_pages, recorded_page
from earlybird.data.rank_states import ENDED, RUNS, UNSEEN
from earlybird.launch import other_nodes, running_ranks
from earlybird.launch.other_nodes import LookGivenUp
from earlybird.launch.recorded_command import has_signal
from earlybird.launch.running_ranks import look, progress_of


def page(rank, size, pid, progress=1):
    data = np.zeros(1, recorded_page._PAGE)
    data["open"]["magic"], data["head"]["magic"] = recorded_page._OPEN_MAGIC, recorded_page._MAGIC
    data["head"]["pid"], data["head"]["rank"], data["head"]["size"] = pid, rank, size
    data["head"]["pid_namespace"] = os.stat("/proc/self/ns/pid").st_ino
    data["calls"]["progress"][0, 0], data["calls"]["ended_ticks"][0, 0] = progress, 1
    return data.tobytes()


def chunk(value):
    payload = json.dumps(value).encode()
    return struct.pack("=IIQII", 0x43524245, 1, len(payload), zlib.crc32(payload), 0) + payload


def write_rank(folder, rank, pid, boot="another", end=None):
    header = {"kind": "header", "host": f"host{rank}", "boot": boot, "pid": pid, "calls": ["MPI_Send"]}
    ended = b"" if end is None else chunk({"kind": "end", "how": end})
    (folder / f"rank-{rank}.ebr").write_bytes(chunk(header) + ended)


def write_bundle(path, pages, is_final=True):
    """Write the file of an agent; `pages`: state and content by the name of the page."""
    head = np.zeros(1, node_pages._HEAD)
    head["magic"], head["serial"], head["num_pages"] = node_pages._MAGIC, 9, len(pages)
    head["period_ms"], head["is_final"] = 1000, is_final
    parts = [head.tobytes()]
    for name, (state, data) in pages.items():
        num = -(-len(data) // node_pages._BLOCK)
        about = np.zeros(1, node_pages._PAGE)
        about["name"], about["state"] = name.encode(), node_pages._STATES.index(state)
        about["num_threads"], about["bytes"], about["num_blocks"] = 1, num * node_pages._BLOCK, num
        bitmap = np.packbits(np.ones(num, bool), bitorder="little").tobytes()
        bitmap = bitmap.ljust(-(-num // (8 * node_pages._BLOCK)) * node_pages._BLOCK, b"\0")
        parts += [about.tobytes(), bitmap, data.ljust(num * node_pages._BLOCK, b"\0")]
    path.write_bytes(b"".join(parts))


@pytest.fixture(autouse=True)
def own_shared_memory(monkeypatch, tmp_path_factory):
    monkeypatch.setattr(running_ranks, "_SHARED_MEMORY", tmp_path_factory.mktemp("shm"))
    monkeypatch.setattr(running_ranks, "LOOK_S", 0.0)


def test_pages_that_an_earlier_job_left_on_another_node_do_not_count(tmp_path):
    for rank in (0, 1):
        write_rank(tmp_path, rank, pid=100 + rank)
    present = {f"rank-{rank}.open": (RUNS, page(rank, 2, 100 + rank)) for rank in (0, 1)}
    write_bundle(tmp_path / "rank-0.pages", present)
    earlier = {"rank-0.open": (RUNS, page(0, 8, 77)), "rank-1.open": (ENDED, page(1, 8, 101))}
    write_bundle(tmp_path / "rank-1.pages", earlier | {"rank-5.open": (RUNS, page(5, 8, 105))})
    assert {rank: state.state for rank, state in look(tmp_path).items()} == {0: RUNS, 1: RUNS}


@pytest.mark.parametrize(
    ("boot", "pid", "state"), [("own", 2**22 + 1, ENDED), ("another", 2**22 + 1, UNSEEN), ("own", 5, UNSEEN)]
)
def test_a_page_is_local_if_its_process_is_of_this_machine(tmp_path, boot, pid, state):
    write_rank(tmp_path, 0, pid, running_ranks._own_boot() if boot == "own" else boot)
    write_rank(tmp_path, 1, os.getpid(), running_ranks._own_boot())
    (tmp_path / "rank-0.open").write_bytes(page(0, 2, 2**22 + 1))
    (tmp_path / "rank-1.open").write_bytes(page(1, 2, os.getpid()))
    states = look(tmp_path)
    assert (states[0].state, states[1].state) == (state, RUNS)


def test_all_pages_tell_whether_ranks_get_on(tmp_path):
    write_bundle(tmp_path / "rank-0.pages", {"rank-0.open": (RUNS, page(0, 2, 1, progress=3))})
    write_bundle(tmp_path / "rank-1.pages", {"rank-0.open": (ENDED, page(0, 2, 2, progress=7))})
    (tmp_path / "rank-1.open").write_bytes(page(1, 2, 3, progress=4))
    assert sorted(progress_of(tmp_path).values()) == [3, 4, 7]


def waiting_thread(wait, reader):
    """Start a thread that waits; it ends with the write end of the pipe `reader`."""
    thread = threading.Thread(target=wait, args=(reader,), daemon=True)
    thread.start()
    end_s = time.monotonic() + 60
    while not running_ranks._waits_in(os.getpid(), thread.native_id).startswith(
        running_ranks._WAITS_FOR_EVENT
    ):
        if time.monotonic() > end_s:
            pytest.skip("the kernel does not say in which function a thread waits")
        time.sleep(0.01)
    return thread


@pytest.mark.skipif(os.uname().machine not in running_ranks._TIME_LIMITS, reason="another processor")
@pytest.mark.parametrize(
    ("wait", "has_limit"),
    [
        (lambda reader: select.select([reader], [], []), False),
        (lambda reader: select.select([reader], [], [], 60), True),
        (lambda reader: _poll(reader).poll(), False),
        (lambda reader: _poll(reader).poll(60_000), True),
    ],
)
def test_a_time_limit_of_a_thread_that_waits_is_seen(wait, has_limit):
    reader, writer = os.pipe()
    thread = waiting_thread(wait, reader)
    try:
        task = thread.native_id
        assert running_ranks._has_time_limit(os.getpid(), task) == has_limit
        clock_ns = time.monotonic_ns()
        for began_ns, is_of_init in ((clock_ns + 10**9, True), (clock_ns - 60 * 10**9, False)):
            data = bytearray(page(0, 1, os.getpid()))
            at = recorded_page._PAGE.fields["head"][1] + recorded_page._HEAD.fields["begin_ns"][1]
            data[at : at + 8] = max(began_ns, 0).to_bytes(8, "little")
            made = recorded_page.Page(bytes(data))
            assert running_ranks._may_wake(made, task, is_for_thread=False) != is_of_init
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)


def _poll(reader):
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    return poll


@pytest.mark.skipif(os.uname().machine not in running_ranks._TIME_LIMITS, reason="another processor")
def test_a_thread_that_waits_for_another_one_for_a_time_may_wake():
    made = recorded_page.Page(page(0, 1, os.getpid()))
    for limit_s, may_wake in ((60, True), (None, False)):
        event = threading.Event()
        thread = waiting_thread(lambda _, event=event, limit_s=limit_s: event.wait(limit_s), 0)
        assert running_ranks._may_wake(made, thread.native_id, is_for_thread=True) == may_wake
        event.set()
        thread.join()


def test_a_signal_ends_the_wait_for_other_nodes(tmp_path):
    write_rank(tmp_path, 0, pid=100)
    write_bundle(tmp_path / "rank-0.pages", {"rank-0.open": (RUNS, page(0, 1, 100))}, is_final=False)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        assert not has_signal()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        with pytest.raises(LookGivenUp):
            look(tmp_path, is_urgent=has_signal)
        assert signal.sigwait({signal.SIGTERM}) == signal.SIGTERM
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_the_end_of_a_job_does_not_wait_for_agents_of_ranks_that_have_finalized(tmp_path, monkeypatch):
    def fail(_):
        raise AssertionError("it waits")

    monkeypatch.setattr(other_nodes.time, "sleep", fail)
    write_rank(tmp_path, 0, pid=100, end="finalize")
    write_bundle(tmp_path / "rank-0.pages", {"rank-0.open": (RUNS, page(0, 1, 100))}, is_final=False)
    assert look(tmp_path, is_over=True) == {}
